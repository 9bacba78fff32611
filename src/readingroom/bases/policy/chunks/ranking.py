"""Orders passages of plans: with their headings, beside their neighbours, and by what they are."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from readingroom.core.arrays import Vector
from readingroom.core.filters import Metadata
from readingroom.engine.context import CONTEXT_FIELD_NAME
from readingroom.engine.ranking import (
    ComparedPassage,
    ProposedPassage,
    RankingWeights,
    WordStatistics,
    count_passage_stems,
    rank_passages,
)
from readingroom.engine.stems import count_words
from readingroom.protocol.search import is_heading_only
from readingroom.storage.chunks import Chunks

# Chosen on 350 questions over the plans and tried on 350 others: docs/engine.md.
_NEIGHBOURS_WEIGHT = 0.15
_WEIGHT_BY_PASSAGE_KIND = {"policy": 0.05, "table": -0.05, "appendix": -0.05}
_BARE_HEADING_WEIGHT = -0.3
_TABLE_OF_CONTENTS_WEIGHT = -0.5
# A question about a plan has one answer in it: what is like the best passage leads away from it.
_RANKING_WEIGHTS = RankingWeights(feedback_weight=0.0, expansion_share=0.0)
_DOT_LEADERS_PATTERN = re.compile(r"\.{6,}|(?:\. ){6,}")
_MIN_DOT_LEADERS = 2  # in a table of contents; one alone may be a line to write on


@dataclass(frozen=True, slots=True)
class _WordStatistics:
    """How common words are among the passages that are ranked.

    A word of every passage of the plan, such as its name, tells nothing about where in it an
    answer is, however rare the word is elsewhere.
    """

    document_count: int
    average_length: float
    passage_counts_by_stem: Mapping[str, int]

    def read_document_frequencies(self, word_stems: Sequence[str]) -> Mapping[str, int]:
        return {
            word_stem: self.passage_counts_by_stem[word_stem]
            for word_stem in word_stems
            if word_stem in self.passage_counts_by_stem
        }


class PlanRanker:
    """Ranks passages of plans; `fetch_chunks` returns the chunks with some ids.

    A section of a plan is cut into passages, and what its second one is about its first one and
    its headings say. So words count in the headings as well, and a passage gains by how well those
    before and after it fit. A policy outweighs what explains it, which outweighs tables and
    appendices; a bare heading or a table of contents has a question's words and not their answer.
    """

    def __init__(self, fetch_chunks: Callable[[Sequence[str]], Chunks]) -> None:
        self._fetch_chunks = fetch_chunks

    def __call__(
        self,
        question_text: str,
        query_vector: Vector | None,
        passages: Sequence[ProposedPassage],
        word_statistics: WordStatistics,
    ) -> list[ComparedPassage]:
        """Return how well each passage answers the question, best first, equal ones by id."""
        chunks = self._fetch_chunks([passage.id for passage in passages])
        metadata_by_passage_id = dict(zip(chunks.ids, chunks.metadatas, strict=True))
        passages_with_headings = [
            replace(
                passage,
                heading=str(metadata_by_passage_id.get(passage.id, {}).get(CONTEXT_FIELD_NAME, "")),
            )
            for passage in passages
        ]
        passages_compared_with_headings = rank_passages(
            question_text,
            query_vector,
            passages_with_headings,
            _compute_word_statistics(passages_with_headings),
            _RANKING_WEIGHTS,
        )
        fits_by_passage_id = {
            compared_passage.passage_id: compared_passage.fit
            for compared_passage in passages_compared_with_headings
        }
        texts_by_passage_id = {passage.id: passage.text for passage in passages}
        final_fits_by_passage_id = {
            passage_id: smoothed_fit
            + _get_kind_weight(texts_by_passage_id[passage_id], metadata_by_passage_id[passage_id])
            for passage_id, smoothed_fit in _smooth_with_neighbours(
                fits_by_passage_id, metadata_by_passage_id
            ).items()
        }
        # All but the order is told of the passage itself: confidence is calibrated on that.
        compared_passages = [
            replace(
                compared_passage,
                fit=round(final_fits_by_passage_id[compared_passage.passage_id], 6),
            )
            for compared_passage in rank_passages(
                question_text, query_vector, passages, word_statistics, _RANKING_WEIGHTS
            )
            if compared_passage.passage_id in final_fits_by_passage_id
        ]
        return sorted(
            compared_passages,
            key=lambda compared_passage: (-compared_passage.fit, compared_passage.passage_id),
        )


def _compute_word_statistics(passages: Sequence[ProposedPassage]) -> _WordStatistics:
    passage_counts_by_stem: Counter[str] = Counter()
    for stem_counts in count_passage_stems(passages):
        passage_counts_by_stem.update(stem_counts.keys())
    total_word_count = sum(count_words(passage.text) for passage in passages)
    return _WordStatistics(
        len(passages), total_word_count / max(len(passages), 1), passage_counts_by_stem
    )


def _smooth_with_neighbours(
    fits_by_passage_id: Mapping[str, float], metadata_by_passage_id: Mapping[str, Metadata]
) -> dict[str, float]:
    """Return the fit of each passage together with those before and after it in its revision.

    A neighbour that no search proposed fits as badly as the worst of those that were.
    """
    fits_by_revision_and_index = {
        (chunk_metadata["revision_id"], chunk_metadata["chunk_index"]): fits_by_passage_id[
            passage_id
        ]
        for passage_id, chunk_metadata in metadata_by_passage_id.items()
    }
    lowest_fit = min(fits_by_passage_id.values(), default=0.0)
    smoothed_fits_by_passage_id = {}
    for passage_id, chunk_metadata in metadata_by_passage_id.items():
        chunk_index = int(chunk_metadata["chunk_index"])
        neighbour_fits = [
            fits_by_revision_and_index.get(
                (chunk_metadata["revision_id"], neighbour_index), lowest_fit
            )
            for neighbour_index in (chunk_index - 1, chunk_index + 1)
        ]
        average_neighbour_fit = sum(neighbour_fits) / len(neighbour_fits)
        # Divided: scores fall with the distance to the best fit, so its scale must stay.
        smoothed_fits_by_passage_id[passage_id] = (
            fits_by_passage_id[passage_id] + _NEIGHBOURS_WEIGHT * average_neighbour_fit
        ) / (1 + _NEIGHBOURS_WEIGHT)
    return smoothed_fits_by_passage_id


def _get_kind_weight(passage_text: str, chunk_metadata: Metadata) -> float:
    if len(_DOT_LEADERS_PATTERN.findall(passage_text)) >= _MIN_DOT_LEADERS:
        return _TABLE_OF_CONTENTS_WEIGHT
    if is_heading_only(passage_text):
        return _BARE_HEADING_WEIGHT
    return _WEIGHT_BY_PASSAGE_KIND.get(str(chunk_metadata.get("passage_kind")), 0.0)
