"""Real text and its vectors for the engine's measurements, from the shared data beside the project.

Embedding takes minutes, so the vectors are kept in `build/bench` for the next run.
"""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from readingroom.engine.chunking import split
from readingroom.engine.embedding.embedder import Embedder

SHARED = Path(__file__).parents[3] / "shared" / "data"
KEPT = Path(__file__).parents[2] / "build" / "bench"
MODELS = KEPT / "models"

_RUNNING_TEXT = (
    "federal/uslm/**/*.xml",
    "federal/uslm/**/*.XML",
    "federal/crec/**/*.htm",
    "federal/saps/archive/*.yaml",
)


@dataclass(frozen=True)
class Judged:
    """A public test set: texts, questions, and which texts answer which question."""

    name: str
    texts: dict[str, str]
    questions: dict[str, str]
    relevant: dict[str, set[str]]


def judged(name: str) -> Judged:
    folder = SHARED / "retrieval" / name
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        question, text, _ = line.split("\t")
        relevant.setdefault(question, set()).add(text)
    return Judged(name, _lines(folder / "corpus.jsonl"), _lines(folder / "queries.jsonl"), relevant)


def chunks(count: int) -> list[str]:
    """So many different chunks of up to 800 characters: guidance, abstracts, laws, debates."""
    return list(islice(dict.fromkeys(_chunks()), count))


def vectors(texts: list[str]) -> Any:
    """Their vectors, embedded once and kept."""
    path = KEPT / f"vectors-{len(texts)}.npy"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        embedded = Embedder(MODELS).embed_batch(texts, report=_print_progress)
        np.save(path, embedded)
    return np.load(path)


def many(real: Any, count: int, seed: int = 1) -> Any:
    """As many vectors as wanted, made from real ones: each lies near one, about as chunks of one
    document lie near each other (cosine 0.8).
    """
    made = np.random.default_rng(seed)
    rows = np.empty((count, real.shape[1]), np.float32)
    for start in range(0, count, 20_000):
        near = real[made.integers(0, len(real), min(20_000, count - start))]
        noise = made.standard_normal(near.shape, np.float32) * (0.75 / np.sqrt(near.shape[1]))
        moved = near + noise
        rows[start : start + len(near)] = moved / np.linalg.norm(moved, axis=1, keepdims=True)
    return rows


def _lines(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["id"]: row["text"] for row in rows}


def _chunks() -> Iterator[str]:
    for name in ("govuk", "cranfield"):
        for text in judged(name).texts.values():
            yield from (span.of(text) for span in split(text) if span.length > 200)
    for pattern in _RUNNING_TEXT:
        for path in sorted(SHARED.glob(pattern)):
            text = _running(path.read_text("utf-8", errors="replace"))
            yield from (span.of(text) for span in split(text) if span.length > 400)


def _running(text: str) -> str:
    """A document's words without its markup."""
    bare = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r"[ \t\r]+", " ", bare))


def _print_progress(done: float, total: float | None, message: str | None) -> None:
    if done % 1024 == 0 or done == total:
        print(f"  embedding {done} of {total}", flush=True)


def natural(count: int, seed: int = 1) -> Iterator[str]:
    """As many chunks as wanted, made of real sentences: their words are as common as in text."""
    sentences = [
        part.strip()
        for chunk in chunks(24_000)
        for part in re.split(r"(?<=[.;:])\s", chunk)
        if 30 < len(part) < 400
    ]
    made = np.random.default_rng(seed)
    for _ in range(count):
        first = made.integers(0, len(sentences) - 3)
        others = made.integers(0, len(sentences), 2)
        # Two neighbours and two strangers: about 600 characters on more than one matter.
        yield " ".join([*sentences[first : first + 2], *(sentences[index] for index in others)])


def natural_questions(count: int, seed: int = 2) -> list[str]:
    """Questions of 5 to 12 words, as people ask: the questions of the test sets, cut to length."""
    asked = [
        question for name in ("govuk", "cranfield") for question in judged(name).questions.values()
    ]
    made = np.random.default_rng(seed)
    questions = []
    for question in asked:
        words = question.split()
        length = int(made.integers(5, 13))
        questions.append(" ".join(words[-length:]))
    return questions[:: max(1, len(questions) // count)][:count]
