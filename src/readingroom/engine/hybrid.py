"""One ranking of what two searches propose: one by words, one by meaning."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.confidence import (
    DEFAULT_CALIBRATION,
    make_scores_descend,
    score_compared_passages,
)
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.ranking import ComparedPassage
from readingroom.engine.second_look import (
    MAX_PASSAGES_READ_AGAIN,
    is_second_look_postponed,
    rescore_passages,
)
from readingroom.engine.words import parse_query

PROPOSALS_PER_SEARCH = 50
"""How many hits of each search are read side by side. More do not improve the first ten."""

MAX_GROUP_CHARS = 2_400
"""The length of a passage that is put together from neighbours: three chunks."""
_MAX_GROUPED_CHUNKS = 12  # the first ones, whatever follows them


class ChunkWithText(Protocol):
    """A chunk as a base stores it."""

    @property
    def text(self) -> str: ...


ChunkT = TypeVar("ChunkT", bound=ChunkWithText)


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage that matches a query; `score` is the probability that it answers it."""

    passage_id: str
    score: float
    score_parts: ScoreParts


def rank_proposals(
    query: str,
    semantic_ids: Sequence[str],
    lexical_ids: Sequence[str],
    compare_passages: Callable[[Sequence[str]], Sequence[ComparedPassage]],
    mode: Mode,
    wanted_passage_count: int,
) -> list[ScoredPassage]:
    """Return passages that either search proposes, in the order that the mode asks for.

    At least as many as `wanted_passage_count` says are returned, where so many are proposed.

    By meaning and by words that is the order of the search; by both, `compare_passages` decides,
    which reads passages side by side and returns them best first. A phrase in quotation marks comes
    before all that has it not. Scores never rise from one passage to the next.
    """
    if mode == "semantic":
        first_semantic_ids = semantic_ids[:wanted_passage_count]
        return _reorder_passages(
            _score_proposals_in_pages(
                first_semantic_ids, (), compare_passages, wanted_passage_count
            ),
            first_semantic_ids,
        )
    if mode == "lexical":
        first_lexical_ids = lexical_ids[:wanted_passage_count]
        return _reorder_passages(
            _score_proposals_in_pages(
                (), first_lexical_ids, compare_passages, wanted_passage_count
            ),
            first_lexical_ids,
        )
    scored_passages = _score_proposals_in_pages(
        semantic_ids, lexical_ids, compare_passages, wanted_passage_count
    )
    if parse_query(query).phrases:
        # A search by words finds nothing without the phrase, so what it has found is what has it.
        ids_with_phrase = set(lexical_ids)
        phrase_first_ids = sorted(
            (passage.passage_id for passage in scored_passages),
            key=lambda passage_id: passage_id not in ids_with_phrase,
        )
        return _reorder_passages(scored_passages, phrase_first_ids)
    return scored_passages


def rerank_first_passages(
    query: str,
    passages: Sequence[ScoredPassage],
    fetch_texts_by_id: Callable[[Sequence[str]], Mapping[str, str]],
    reranker: Reranker | None,
    decline_per_fit: float = DEFAULT_CALIBRATION.decline_per_fit,
) -> list[ScoredPassage]:
    """Return the passages with the first few in the order that reading them again gives.

    They stay as they are where there is no cross-encoder, where the second look is postponed, and
    where a phrase in quotation marks decides. `fetch_texts_by_id` returns texts by passage id, and
    `decline_per_fit` is that of the calibration that the scores were made with.
    """
    if reranker is None or is_second_look_postponed() or parse_query(query).phrases:
        return list(passages)
    first_passage_ids = [passage.passage_id for passage in passages[:MAX_PASSAGES_READ_AGAIN]]
    texts_by_id = fetch_texts_by_id(first_passage_ids)
    new_scores = rescore_passages(
        query,
        [passage.score for passage in passages],
        [texts_by_id.get(passage_id, "") for passage_id in first_passage_ids],
        reranker,
        decline_per_fit,
    )
    rescored_passages = [
        replace(passage, score=round(new_score, 6))
        for passage, new_score in zip(passages, new_scores, strict=True)
    ]
    # Sorted by score alone: what is equal keeps its order.
    return sorted(rescored_passages, key=lambda rescored_passage: -rescored_passage.score)


def count_spare_hits(mode: Mode) -> int:
    """Return how many hits to ask for beyond those wanted, since grouping leaves fewer."""
    return _MAX_GROUPED_CHUNKS if _are_neighbours_grouped(mode) else 0


def group_neighbours(
    chunks: Sequence[ChunkT], are_neighbours: Callable[[ChunkT, ChunkT], bool], mode: Mode
) -> list[list[ChunkT]]:
    """Group found chunks that a reader wants as one passage, since one goes on from another.

    Chunks come best first, and so do the groups and what is in them. Only the first few are
    grouped, so that asking for more hits changes nothing in front of them. In a search by meaning
    or by words alone each chunk stays by itself, as the contracts have it. So does it where the
    second look is postponed: who reads the hits again joins them afterwards.
    """
    grouped_chunk_count = _MAX_GROUPED_CHUNKS if _are_neighbours_grouped(mode) else 0
    chunk_groups: list[list[ChunkT]] = []
    for chunk in chunks[:grouped_chunk_count]:
        for chunk_group in chunk_groups:
            if (
                any(are_neighbours(group_chunk, chunk) for group_chunk in chunk_group)
                and sum(len(group_chunk.text) for group_chunk in (*chunk_group, chunk))
                <= MAX_GROUP_CHARS
            ):
                chunk_group.append(chunk)
                break
        else:
            chunk_groups.append([chunk])
    return [*chunk_groups, *([chunk] for chunk in chunks[grouped_chunk_count:])]


def _are_neighbours_grouped(mode: Mode) -> bool:
    return mode == "hybrid" and not is_second_look_postponed()


def _score_proposals_in_pages(
    semantic_ids: Sequence[str],
    lexical_ids: Sequence[str],
    compare_passages: Callable[[Sequence[str]], Sequence[ComparedPassage]],
    wanted_passage_count: int,
) -> list[ScoredPassage]:
    """Return passages of both searches, best first: as many as wanted or more, if there are.

    Page by page, so that asking for more hits never changes the order of the first ones.
    """
    semantic_rank_by_id = {passage_id: rank for rank, passage_id in enumerate(semantic_ids, 1)}
    lexical_rank_by_id = {passage_id: rank for rank, passage_id in enumerate(lexical_ids, 1)}
    scored_passages: list[ScoredPassage] = []
    compared_ids: set[str] = set()
    for page_start_index in range(
        0, max(len(semantic_ids), len(lexical_ids)), PROPOSALS_PER_SEARCH
    ):
        if len(scored_passages) >= wanted_passage_count:
            break
        page_slice = slice(page_start_index, page_start_index + PROPOSALS_PER_SEARCH)
        page_passage_ids = list(
            dict.fromkeys((*semantic_ids[page_slice], *lexical_ids[page_slice]))
        )
        compared_passages = compare_passages(
            [passage_id for passage_id in page_passage_ids if passage_id not in compared_ids]
        )
        compared_ids.update(page_passage_ids)
        # Each page is scored by itself, so a later one may begin higher than the last one ended.
        max_score = scored_passages[-1].score if scored_passages else 1.0
        for compared_passage, score in zip(
            compared_passages, score_compared_passages(compared_passages), strict=True
        ):
            passage_id = compared_passage.passage_id
            score_parts = _make_score_parts(
                compared_passage,
                semantic_rank_by_id.get(passage_id),
                lexical_rank_by_id.get(passage_id),
            )
            scored_passages.append(
                ScoredPassage(passage_id, round(min(score, max_score), 6), score_parts)
            )
    return scored_passages


def _make_score_parts(
    compared_passage: ComparedPassage, semantic_rank: int | None, lexical_rank: int | None
) -> ScoreParts:
    return ScoreParts(
        semantic=None
        if compared_passage.cosine is None
        else round(max(0.0, compared_passage.cosine), 6),
        lexical=round(compared_passage.coverage, 4),
        rank_semantic=semantic_rank,
        rank_lexical=lexical_rank,
        matched_terms=compared_passage.matched_terms,
    )


def _reorder_passages(
    scored_passages: Sequence[ScoredPassage], ordered_ids: Sequence[str]
) -> list[ScoredPassage]:
    """Return the passages in the order of the ids; their scores never rise on the way."""
    passages_by_id = {passage.passage_id: passage for passage in scored_passages}
    reordered_passages = [
        passages_by_id[passage_id] for passage_id in ordered_ids if passage_id in passages_by_id
    ]
    capped_scores = make_scores_descend(passage.score for passage in reordered_passages)
    return [
        replace(passage, score=capped_score)
        for passage, capped_score in zip(reordered_passages, capped_scores, strict=True)
    ]
