"""Quality of what is found, on two public test sets: words, meaning, and both together."""

import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any, get_args

import numpy as np

from benchmarks.engine.corpus import CACHE_FOLDER, MODELS, TestSet, load_test_set
from benchmarks.table import Table
from readingroom.core.arrays import Vector
from readingroom.core.filters import FilterFields
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.graph import Precision
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.ranking import (
    RANKING_WEIGHTS,
    ProposedPassage,
    RankingWeights,
    WordStatistics,
    rank_passages,
)
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.vectors import VectorIndex

TARGETS = {"govuk": 0.83, "cranfield": 0.435}
DEPTH = 50
"""How many hits of each search are ranked together, as in `engine/index.py`."""

_NOTE = (
    "nDCG@10 and recall@10 over the questions in the shared data, {counts}. One setting for both "
    "sets, on the best {depth} of each side. Both, nested: in each of {folds} outer folds the "
    "weights are those of {settings} settings that are best on the other folds, so no question "
    "judges a choice it took part in; p is the share of {flips} random exchanges of the two "
    "rankings that differ as much from fused by rank. About half of each set's questions are in "
    "the shared data: the other half shows whether it generalises."
)
_FOLDS = 5
_FLIPS = 5_000
_RANK_OFFSET = 10  # how slowly a lower rank counts less; the usual 60 does worse on both sets


def list_settings() -> list[RankingWeights]:
    """Return the weights that are tried."""
    return [
        replace(
            RANKING_WEIGHTS,
            word_weight=word_weight,
            half_weight_evidence=half_weight_evidence,
            feedback_weight=feedback_weight,
            expansion_passage_count=expansion_passage_count,
            expansion_stem_count=expansion_stem_count,
        )
        for (
            word_weight,
            half_weight_evidence,
            feedback_weight,
            expansion_passage_count,
            expansion_stem_count,
        ) in product((0.45, 0.5, 0.55), (0.7, 1.0), (0.4, 0.5), (4, 6), (30, 50))
    ]


def measure() -> Table:
    """Rank every question in several ways and judge the rankings."""
    test_sets = {name: load_test_set(name) for name in TARGETS}
    pools = {name: read_pools(test_set) for name, test_set in test_sets.items()}
    nested = _measure_nested(test_sets, pools)
    rows = []
    for name, target in TARGETS.items():
        test_set = test_sets[name]
        rankings = _rank_questions(pools[name])
        for side, ranked in rankings.items():
            recall = score_recall(test_set, ranked)
            rows.append(
                (f"{name}: {side}", f"{score_ndcg(test_set, ranked):.3f}", f"{recall:.3f}", "")
            )
        fused = rankings["fused by rank, equal weights"]
        baseline = [_gain(fused[id], test_set.relevant.get(id, set())) for id in test_set.questions]
        gain = float(np.mean(nested[name]))
        verdict = f"{'met' if gain >= target else '**missed**'} (at least {target})"
        p = compute_p_value(nested[name], np.array(baseline))
        rows.append((f"{name}: both, nested", f"{gain:.3f}", f"p = {p:.3f}", verdict))
    return Table(
        "What is found: nDCG@10 on public test sets",
        ("ranking", "nDCG@10", "recall@10", "target"),
        tuple(rows),
        _NOTE.format(
            counts=", ".join(f"{len(test_sets[name].questions)} of {name}" for name in TARGETS),
            depth=DEPTH,
            folds=_FOLDS,
            settings=len(list_settings()),
            flips=_FLIPS,
        ),
    )


def fuse_ranks(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Return the ids of all rankings by reciprocal rank fusion, equal scores by id."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, id in enumerate(ranking, 1):
            scores[id] = scores.get(id, 0.0) + 1 / (_RANK_OFFSET + rank)
    return sorted(scores, key=lambda id: (-scores[id], id))


def _measure_nested(
    test_sets: Mapping[str, TestSet], pools: Mapping[str, Sequence["Pool"]]
) -> dict[str, Any]:
    """Return the gain of each question under the weights that the other folds choose."""
    gains = {
        name: np.array(
            [
                [
                    _gain(pool.rank(weights), test_sets[name].relevant.get(pool.question_id, set()))
                    for pool in pools[name]
                ]
                for weights in list_settings()
            ]
        )
        for name in test_sets
    }
    folds = {
        name: np.random.default_rng(1).permutation(gains[name].shape[1]) % _FOLDS for name in gains
    }
    nested = {name: np.zeros(gains[name].shape[1]) for name in gains}
    for fold in range(_FOLDS):
        means = [gains[name][:, folds[name] != fold].mean(axis=1) for name in gains]
        chosen = int(np.argmax(np.sum(means, axis=0)))
        for name in gains:
            inside = folds[name] == fold
            nested[name][inside] = gains[name][chosen, inside]
    best = list_settings()[int(np.argmax(sum(gains[name].mean(axis=1) for name in gains)))]
    print(f"best over all questions: {best}")
    return nested


def compute_p_value(first: Any, second: Any) -> float:
    """Return how likely so large a mean difference is by chance: a paired randomisation test."""
    differences = first - second
    signs = np.random.default_rng(1).choice((-1, 1), (_FLIPS, len(differences)))
    exchanged = np.abs((signs * differences).mean(axis=1))
    return float((exchanged >= abs(differences.mean()) - 1e-12).mean())


Rankings = dict[str, list[str]]


def _rank_questions(pools: Sequence["Pool"]) -> dict[str, Rankings]:
    return {
        "words": {pool.question_id: pool.by_words for pool in pools},
        "meaning": {pool.question_id: pool.by_meaning for pool in pools},
        "fused by rank, equal weights": {
            pool.question_id: fuse_ranks([pool.by_words, pool.by_meaning]) for pool in pools
        },
        "both": {pool.question_id: pool.rank(RANKING_WEIGHTS) for pool in pools},
    }


@dataclass(frozen=True, slots=True)
class Pool:
    """The passages that both searches propose for a question."""

    question_id: str
    question: str
    vector: Vector
    by_words: list[str]
    by_meaning: list[str]
    passages: list[ProposedPassage]
    statistics: WordStatistics

    def rank(self, weights: RankingWeights) -> list[str]:
        """Return the ids of the passages, best first."""
        ranked = rank_passages(self.question, self.vector, self.passages, self.statistics, weights)
        return [relevance.passage_id for relevance in ranked]


def read_pools(
    test_set: TestSet,
    embedded: Collection[str] | None = None,
    precision: Precision = "float32",
) -> list[Pool]:
    """Return the pool of each question; only the `embedded` passages have vectors, or all."""
    embedder = Embedder(MODELS, precision=precision)
    vectors = dict(zip(test_set.texts, _embed_texts(test_set, embedder), strict=True))
    if embedded is not None:
        vectors = {id: vectors[id] for id in embedded}
    near = VectorIndex(FilterFields())
    near.upsert_rows(list(vectors), np.array(list(vectors.values())), [{}] * len(vectors))
    with tempfile.TemporaryDirectory() as folder:
        words = LexicalIndex(Path(folder) / "words.sqlite", {"text": 1.0}, FilterFields())
        words.replace_documents(
            (LexicalDocument(id, {"text": text}, {}) for id, text in test_set.texts.items()), 1
        )
        statistics = _Statistics(words, test_set)
        pools = []
        for id, question in test_set.questions.items():
            vector = embedder.embed(question)
            by_words = [hit.id for hit in words.search(question, DEPTH)]
            by_meaning = [hit.id for hit in near.search(vector, DEPTH)]
            passages = [
                ProposedPassage(hit, test_set.texts[hit], vectors.get(hit))
                for hit in dict.fromkeys((*by_words, *by_meaning))
            ]
            pools.append(Pool(id, question, vector, by_words, by_meaning, passages, statistics))
    return pools


class _Statistics:
    """All of an index's statistics in memory, which outlive its file."""

    def __init__(self, index: LexicalIndex, test_set: TestSet) -> None:
        statistics = index.read_statistics()
        self.document_count = statistics.document_count
        self.average_length = statistics.average_length
        stems = {
            stem
            for text in test_set.texts.values()
            for stem in get_shared_stemmer().stem_significant_words(text)
        }
        self._frequencies = index.read_document_frequencies(sorted(stems))

    def read_document_frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        return {stem: self._frequencies.get(stem, 0) for stem in stems}


def _embed_texts(test_set: TestSet, embedder: Embedder) -> Any:
    precision = embedder.identity.rpartition("/")[2]
    suffix = "" if precision == "float32" else f"-{precision}"
    path = CACHE_FOLDER / f"quality-{test_set.name}{suffix}.npy"
    if not path.exists():
        # Some of Cranfield's abstracts are empty.
        texts = [text if text.strip() else "empty" for text in test_set.texts.values()]
        CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
        np.save(path, embedder.embed_batch(texts))
    return np.load(path)


def measure_precision() -> Table:
    """What int8 loses on both sets, alone and beside words."""
    rows = []
    for set_name in ("govuk", "cranfield"):
        test_set = load_test_set(set_name)
        scores: dict[str, dict[str, float]] = {}
        for precision in get_args(Precision):
            rankings = _rank_questions(read_pools(test_set, precision=precision))
            scores[precision] = {
                way: score_ndcg(test_set, rankings[way]) for way in ("meaning", "both")
            }
        for way in ("meaning", "both"):
            exact, quick = scores["float32"][way], scores["int8"][way]
            verdict = "met" if exact - quick <= 0.005 else "**missed**"
            rows.append(
                (set_name, way, f"{exact:.4f}", f"{quick:.4f}", f"{verdict} (loss at most 0.005)")
            )
    return Table(
        "What int8 vectors find",
        ("test set", "searched by", "float32", "int8", "target"),
        tuple(rows),
        "nDCG@10 over the questions in the shared data; texts and questions embedded alike.",
    )


def score_ndcg(test_set: TestSet, ranked: Rankings) -> float:
    """Return the mean nDCG@10 over the questions of a test set."""
    return mean(_gain(ranked[id], test_set.relevant.get(id, set())) for id in test_set.questions)


def _gain(ranking: list[str], relevant: set[str]) -> float:
    gain = sum(1 / math.log2(rank + 2) for rank, id in enumerate(ranking[:10]) if id in relevant)
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return gain / ideal if ideal else 0.0


def score_recall(test_set: TestSet, ranked: Rankings) -> float:
    """Return the mean recall@10 over the questions that have an answer."""
    return mean(
        len({*ranked[id][:10]} & test_set.relevant[id]) / len(test_set.relevant[id])
        for id in test_set.questions
        if test_set.relevant.get(id)
    )
