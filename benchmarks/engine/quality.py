"""Quality of what is found, on two public test sets: words, meaning, and both together."""

import math
import tempfile
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.engine.corpus import KEPT, MODELS, Judged, judged
from benchmarks.table import Table
from readingroom.core.filters import FilterFields
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.hybrid import DEPTH, fuse, search_both
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.vectors import VectorIndex

TARGETS = {"govuk": 0.815, "cranfield": 0.425}

_NOTE = (
    "nDCG@10 and recall@10 over the questions in the shared data, {counts}. One setting for both "
    "sets, `engine/hybrid.py` as it is, on the best {depth} of each side. Its "
    "weights were chosen on these very questions, from about seventy combinations, so its figures "
    "are flattered; fused once with equal weights (k = 10) is what there is without a choice. They "
    "are about half of each set's questions: the other half shows whether it generalises."
)


def measure() -> Table:
    """Rank every question three ways and judge the rankings."""
    rows = []
    counts = []
    for name, target in TARGETS.items():
        test = judged(name)
        rankings = _rankings(test)
        counts.append(f"{len(test.questions)} of {name}")
        best_alone = max(score_ndcg(test, rankings[side]) for side in ("words", "meaning"))
        for side, ranked in rankings.items():
            gain = score_ndcg(test, ranked)
            verdict = ""
            if side == "both":
                met = gain >= target and gain > best_alone
                verdict = f"{'met' if met else '**missed**'} (at least {target}, above each side)"
            rows.append(
                (f"{name}: {side}", f"{gain:.3f}", f"{score_recall(test, ranked):.3f}", verdict)
            )
    return Table(
        "What is found: nDCG@10 on public test sets",
        ("ranking", "nDCG@10", "recall@10", "target"),
        tuple(rows),
        _NOTE.format(counts=", ".join(counts), depth=DEPTH),
    )


Rankings = dict[str, list[str]]


def _rankings(test: Judged) -> dict[str, Rankings]:
    embedder, index = Embedder(MODELS), VectorIndex(FilterFields())
    index.upsert(list(test.texts), _embedded(test, embedder), [{}] * len(test.texts))
    vectors = {id: embedder.embed(question) for id, question in test.questions.items()}
    with tempfile.TemporaryDirectory() as folder:
        words = _words(test, Path(folder))
    return {
        "words": words,
        "meaning": {id: [hit.id for hit in index.search(vectors[id], 10)] for id in words},
        "fused once, equal weights": {
            id: [hit_id for hit_id, _ in fuse([words[id], _near(index, vectors[id])])]
            for id in words
        },
        "both": {
            id: [hit_id for hit_id, _ in search_both(words[id], vectors[id], index, 10)]
            for id in words
        },
    }


def _near(index: VectorIndex, vector: Any) -> list[str]:
    return [hit.id for hit in index.search(vector, DEPTH)]


def _words(test: Judged, folder: Path) -> Rankings:
    index = LexicalIndex(folder / "words.sqlite", {"text": 1.0}, FilterFields())
    index.fill((LexicalDocument(id, {"text": text}, {}) for id, text in test.texts.items()), 1)
    return {
        id: [hit.id for hit in index.search(question, DEPTH)]
        for id, question in test.questions.items()
    }


def _embedded(test: Judged, embedder: Embedder) -> Any:
    path = KEPT / f"quality-{test.name}.npy"
    if not path.exists():
        # Some of Cranfield's abstracts are empty.
        texts = [text if text.strip() else "empty" for text in test.texts.values()]
        KEPT.mkdir(parents=True, exist_ok=True)
        np.save(path, embedder.embed_batch(texts))
    return np.load(path)


def score_ndcg(test: Judged, ranked: Rankings) -> float:
    """Return the mean nDCG@10 over the questions of a test set."""
    return mean(_gain(ranked[id], test.relevant.get(id, set())) for id in test.questions)


def _gain(ranking: list[str], relevant: set[str]) -> float:
    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranking[:10]) if id in relevant)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return gain / ideal if ideal else 0.0


def score_recall(test: Judged, ranked: Rankings) -> float:
    """Return the mean recall@10 over the questions that have an answer."""
    return mean(
        len({*ranked[id][:10]} & test.relevant[id]) / len(test.relevant[id])
        for id in test.questions
        if test.relevant.get(id)
    )
