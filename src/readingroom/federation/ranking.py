"""Puts the hits of several bases into one order, and says how close the best one is."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readingroom.engine.confidence import score_relevances
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import fuse
from readingroom.engine.ranking import Passage, RankingWeights, rank_passages
from readingroom.engine.stems import shared_stemmer
from readingroom.protocol.search import DeskHit

_COMPARED_PER_BASE = 10  # hits of a base that are compared with the question by meaning
_COMPARED_CHARS = 240  # characters of a passage that are embedded for that
# How much more the order by meaning counts than the order inside one base, which may know little.
_MEANING_WEIGHT = 3.0
# For the confidence passages are compared as they are: the question is not improved by them.
_PLAIN = RankingWeights(feedback=0.0, expansion=0.0)


@dataclass(frozen=True, slots=True)
class RankedHits:
    """The hits of all bases, best first, and the highest probability that one answers."""

    hits: list[DeskHit]
    best_score: float


def rank_hits(
    query: str, rankings_by_base: Sequence[Sequence[DeskHit]], embedder: Embedder
) -> RankedHits:
    """Rank hits by their rank inside each base, and by likeness to the question."""
    # Two passages of one page have one id: the better one stands for it.
    hits = {hit.id: hit for ranking in rankings_by_base for hit in reversed(ranking)}
    compared = {
        hit.id: hits[hit.id] for ranking in rankings_by_base for hit in ranking[:_COMPARED_PER_BASE]
    }
    rankings = [[hit.id for hit in ranking] for ranking in rankings_by_base]
    weights = [1.0] * len(rankings)
    likeness: dict[str, float] = {}
    # One base that knows how near its passages are needs no second comparison.
    if len(rankings) > 1 or any(hit.parts is None for hit in compared.values()):
        likeness = _compare_meaning(query, list(compared.values()), embedder)
    if len(rankings) > 1:
        rankings.append(sorted(likeness, key=lambda id: (-likeness[id], id)))
        weights.append(_MEANING_WEIGHT)
    ordered = [
        hits[id].model_copy(update={"score": round(score, 6)})
        for id, score in fuse(rankings, weights)
    ]
    return RankedHits(ordered, _find_best_score(query, list(compared.values()), likeness))


def _compare_meaning(query: str, hits: Sequence[DeskHit], embedder: Embedder) -> dict[str, float]:
    """Return the cosine of each hit with the query; none of them where there is no model."""
    if not hits:
        return {}
    try:
        query_vector, *vectors = embedder.embed_each(
            [query, *(_text_of(hit)[:_COMPARED_CHARS] for hit in hits)]
        )
    except ModelUnavailable:
        return {}  # then the order inside each base is all there is
    return {hit.id: float(vector @ query_vector) for hit, vector in zip(hits, vectors, strict=True)}


def _find_best_score(query: str, hits: Sequence[DeskHit], likeness: Mapping[str, float]) -> float:
    """Return the highest score of these hits, each compared with the query in the same way."""
    passages = [
        Passage(
            hit.id,
            _text_of(hit),
            None,
            hit.parts.semantic if hit.parts else likeness.get(hit.id),
        )
        for hit in hits
    ]
    statistics = _PoolStatistics([passage.text for passage in passages])
    relevances = rank_passages(query, None, passages, statistics, _PLAIN)
    return max(score_relevances(relevances), default=0.0)


def _text_of(hit: DeskHit) -> str:
    return f"{hit.title}. {hit.snippet}"


class _PoolStatistics:
    """How common words are among a handful of passages, where no collection is at hand."""

    def __init__(self, texts: Sequence[str]) -> None:
        stems = [set(shared_stemmer().split(text)) for text in texts]
        self._frequencies = Counter(stem for text in stems for stem in text)
        self.documents = len(stems)
        self.average_length = sum(len(text.split()) for text in texts) / max(len(stems), 1)

    def frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return {stem: self._frequencies[stem] for stem in stems}
