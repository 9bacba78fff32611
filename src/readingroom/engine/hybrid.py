"""One ranking of what two searches propose: one by words, one by meaning."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.confidence import score_relevances
from readingroom.engine.ranking import Relevance
from readingroom.engine.words import parse_query

PROPOSALS = 50
"""How many hits of each search are read side by side. More do not improve the first ten."""


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage that matches a query; `score` is the probability that it answers it."""

    passage_id: str
    score: float
    parts: ScoreParts


def rank_proposals(
    query: str,
    by_meaning: Sequence[str],
    by_words: Sequence[str],
    compare: Callable[[Sequence[str]], Sequence[Relevance]],
    mode: Mode,
    wanted_count: int,
) -> list[ScoredPassage]:
    """Return passages that either search proposes, in the order that the mode asks for.

    At least as many as `wanted_count` says are returned, where so many are proposed.

    By meaning and by words that is the order of the search; by both, `compare` decides, which reads
    passages side by side and returns them best first. A phrase in quotation marks comes before all
    that has it not. Scores never rise from one passage to the next.
    """
    if mode == "semantic":
        nearest_ids = by_meaning[:wanted_count]
        return _reorder(_score_in_pages(nearest_ids, (), compare, wanted_count), nearest_ids)
    if mode == "lexical":
        matching = by_words[:wanted_count]
        return _reorder(_score_in_pages((), matching, compare, wanted_count), matching)
    scored = _score_in_pages(by_meaning, by_words, compare, wanted_count)
    if parse_query(query).phrases:
        with_phrase = set(by_words)
        phrase_first_ids = sorted(
            (passage.passage_id for passage in scored), key=lambda id: id not in with_phrase
        )
        return _reorder(scored, phrase_first_ids)
    return scored


def _score_in_pages(
    by_meaning: Sequence[str],
    by_words: Sequence[str],
    compare: Callable[[Sequence[str]], Sequence[Relevance]],
    wanted_count: int,
) -> list[ScoredPassage]:
    """Return passages of both searches, best first: `wanted_count` or more, if there are so many.

    Page by page, so that asking for more hits never changes the order of the first ones.
    """
    places_by_meaning = {passage_id: rank for rank, passage_id in enumerate(by_meaning, 1)}
    places_by_words = {passage_id: rank for rank, passage_id in enumerate(by_words, 1)}
    scored: list[ScoredPassage] = []
    compared_ids: set[str] = set()
    for page_start in range(0, max(len(by_meaning), len(by_words)), PROPOSALS):
        if len(scored) >= wanted_count:
            break
        page_slice = slice(page_start, page_start + PROPOSALS)
        page_ids = list(dict.fromkeys((*by_meaning[page_slice], *by_words[page_slice])))
        relevances = compare(
            [passage_id for passage_id in page_ids if passage_id not in compared_ids]
        )
        compared_ids.update(page_ids)
        highest = scored[-1].score if scored else 1.0
        for relevance, score in zip(relevances, score_relevances(relevances), strict=True):
            passage_id = relevance.passage_id
            score_parts = _make_parts(
                relevance, places_by_meaning.get(passage_id), places_by_words.get(passage_id)
            )
            scored.append(ScoredPassage(passage_id, round(min(score, highest), 6), score_parts))
    return scored


def _make_parts(
    relevance: Relevance, semantic_rank: int | None, lexical_rank: int | None
) -> ScoreParts:
    return ScoreParts(
        semantic=None if relevance.cosine is None else round(max(0.0, relevance.cosine), 6),
        lexical=round(relevance.coverage, 4),
        rank_semantic=semantic_rank,
        rank_lexical=lexical_rank,
        matched_terms=relevance.matched_terms,
    )


def _reorder(scored: Sequence[ScoredPassage], ordered_ids: Sequence[str]) -> list[ScoredPassage]:
    """Return the passages in the order of the ids; their scores never rise on the way."""
    by_id = {passage.passage_id: passage for passage in scored}
    ordered: list[ScoredPassage] = []
    for passage_id in ordered_ids:
        if passage := by_id.get(passage_id):
            highest = ordered[-1].score if ordered else 1.0
            ordered.append(replace(passage, score=min(passage.score, highest)))
    return ordered
