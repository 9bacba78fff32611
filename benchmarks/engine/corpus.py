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

from readingroom.engine.chunking import split_into_spans
from readingroom.engine.embedding.embedder import Embedder

SHARED = Path(__file__).parents[3] / "shared" / "data"
CACHE_FOLDER = Path(__file__).parents[2] / "build" / "bench"
MODELS = CACHE_FOLDER / "models"

_PROSE_PATTERNS = (
    "federal/uslm/**/*.xml",
    "federal/uslm/**/*.XML",
    "federal/crec/**/*.htm",
    "federal/saps/archive/*.yaml",
)


@dataclass(frozen=True)
class TestSet:
    """A public test set: texts, questions, and which texts answer which question."""

    name: str
    texts: dict[str, str]
    questions: dict[str, str]
    relevant: dict[str, set[str]]


def load_test_set(name: str) -> TestSet:
    folder = SHARED / "retrieval" / name
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text("utf-8").splitlines():
        question, text, _ = line.split("\t")
        relevant.setdefault(question, set()).add(text)
    return TestSet(
        name, _read_texts(folder / "corpus.jsonl"), _read_texts(folder / "queries.jsonl"), relevant
    )


def load_chunks(count: int) -> list[str]:
    """So many different chunks of up to 800 characters: guidance, abstracts, laws, debates."""
    return list(islice(dict.fromkeys(_split_all_texts()), count))


def load_vectors(texts: list[str]) -> Any:
    """Their vectors, embedded once and kept."""
    path = CACHE_FOLDER / f"vectors-{len(texts)}.npy"
    if not path.exists():
        CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
        embedded = Embedder(MODELS).embed_batch(texts, report_progress=_print_progress)
        np.save(path, embedded)
    return np.load(path)


def make_similar_vectors(real_vectors: Any, count: int, seed: int = 1) -> Any:
    """As many vectors as wanted, made from real ones: each lies near one, about as chunks of one
    document lie near each other (cosine 0.8).
    """
    generator = np.random.default_rng(seed)
    rows = np.empty((count, real_vectors.shape[1]), np.float32)
    for start in range(0, count, 20_000):
        near = real_vectors[generator.integers(0, len(real_vectors), min(20_000, count - start))]
        noise = generator.standard_normal(near.shape, np.float32) * (0.75 / np.sqrt(near.shape[1]))
        noisy = near + noise
        rows[start : start + len(near)] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    return rows


def _read_texts(path: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {row["id"]: row["text"] for row in rows}


def _split_all_texts() -> Iterator[str]:
    for name in ("govuk", "cranfield"):
        for text in load_test_set(name).texts.values():
            yield from (span.cut_from(text) for span in split_into_spans(text) if span.length > 200)
    for pattern in _PROSE_PATTERNS:
        for path in sorted(SHARED.glob(pattern)):
            text = _strip_markup(path.read_text("utf-8", errors="replace"))
            yield from (span.cut_from(text) for span in split_into_spans(text) if span.length > 400)


def _strip_markup(text: str) -> str:
    """A document's words without its markup."""
    plain_text = html.unescape(re.sub(r"<[^>]+>", " ", text))
    return re.sub(r"\n\s*\n\s*", "\n\n", re.sub(r"[ \t\r]+", " ", plain_text))


def _print_progress(done: float, total: float | None, message: str | None) -> None:
    if done % 1024 == 0 or done == total:
        print(f"  embedding {done} of {total}", flush=True)


def make_natural_chunks(count: int, seed: int = 1) -> Iterator[str]:
    """As many chunks as wanted, made of real sentences: their words are as common as in text."""
    sentences = [
        part.strip()
        for chunk in load_chunks(24_000)
        for part in re.split(r"(?<=[.;:])\s", chunk)
        if 30 < len(part) < 400
    ]
    generator = np.random.default_rng(seed)
    for _ in range(count):
        first = generator.integers(0, len(sentences) - 3)
        others = generator.integers(0, len(sentences), 2)
        # Two neighbours and two strangers: about 600 characters on more than one matter.
        yield " ".join([*sentences[first : first + 2], *(sentences[index] for index in others)])


def make_questions(count: int, seed: int = 2) -> list[str]:
    """Questions of 5 to 12 words, as people ask: the questions of the test sets, cut to length."""
    questions_asked = [
        question
        for name in ("govuk", "cranfield")
        for question in load_test_set(name).questions.values()
    ]
    generator = np.random.default_rng(seed)
    questions = []
    for question in questions_asked:
        words = question.split()
        length = int(generator.integers(5, 13))
        questions.append(" ".join(words[-length:]))
    return questions[:: max(1, len(questions) // count)][:count]
