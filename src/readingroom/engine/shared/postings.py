"""Which chunks have a stem, in memory, and the BM25 scores that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from readingroom.core.arrays import ArrayLike, NDArray, np
from readingroom.core.filters import Condition
from readingroom.engine.rows import RowView
from readingroom.engine.shared.terms import BM25_B, BM25_K1
from readingroom.engine.words import LexicalHit, sort_hits

Posting = tuple[int, int, int]
"""A row that has the stem, how often it has it, and how many words the row has in all."""

_POSTING_TYPE = [("row", "<u4"), ("occurrences", "<u2"), ("tokens", "<u2")]
_MAX_STORED_COUNT = 65_535
# The parameters of FTS5's own bm25().


class StemPostings:
    """The rows that have one stem, in ascending order; one writer appends, any readers."""

    def __init__(self, reserved_count: int = 0) -> None:
        self._postings = np.empty(reserved_count, _POSTING_TYPE)
        self._posting_count = 0

    @classmethod
    def make_from_columns(
        cls,
        row_numbers: "NDArray[Any]",
        occurrence_counts: "NDArray[Any]",
        token_counts: "NDArray[Any]",
    ) -> "StemPostings":
        """Return the postings of rows in any order; one whose number is below 0 is left out."""
        stem_postings = cls()
        row_mask = row_numbers >= 0
        stem_postings.append_packed_postings(
            pack_postings(
                row_numbers[row_mask],
                occurrence_counts[row_mask],
                token_counts[row_mask],
            )
        )
        stem_postings.sort_rows()
        return stem_postings

    def append_postings(self, postings: Sequence[Posting]) -> None:
        """Add rows, all of which come after those that are there."""
        # Column by column, which takes a fraction of converting tuples.
        packed_postings = pack_postings(*zip(*postings, strict=True))
        self.append_packed_postings(packed_postings[np.argsort(packed_postings["row"])])

    def append_packed_postings(self, packed_postings: "NDArray[np.void]") -> None:
        """Add rows as `pack_postings` returns them; call `sort_rows` unless in order."""
        new_posting_count = self._posting_count + len(packed_postings)
        if new_posting_count > len(self._postings):
            # By half at least, so that many small writes do not copy everything each time.
            larger_array = np.zeros(
                max(new_posting_count, self._posting_count * 3 // 2), _POSTING_TYPE
            )
            larger_array[: self._posting_count] = self._postings[: self._posting_count]
            self._postings = larger_array
        self._postings[self._posting_count : new_posting_count] = packed_postings
        self._posting_count = new_posting_count

    def sort_rows(self) -> None:
        """Put the rows in order, before anybody reads them."""
        postings = self._postings[: self._posting_count]
        if (postings["row"][1:] < postings["row"][:-1]).any():
            self._postings = postings[np.argsort(postings["row"])]

    def read_rows_before(self, row_limit: int) -> "NDArray[np.void]":
        """Return the postings of the first `row_limit` rows; a writer may be adding others."""
        # The count is read first: `append` raises it after the postings are in place.
        posting_count = self._posting_count
        postings = self._postings[:posting_count]
        if posting_count and postings["row"][-1] >= row_limit:
            return postings[: np.searchsorted(postings["row"], row_limit)]
        return postings


def pack_postings(
    row_numbers: ArrayLike, occurrence_counts: ArrayLike, token_counts: ArrayLike
) -> "NDArray[np.void]":
    """Return postings as they are kept, in the order they have."""
    packed_postings = np.empty(np.shape(row_numbers)[0], _POSTING_TYPE)
    packed_postings["row"] = row_numbers
    packed_postings["occurrences"] = np.minimum(occurrence_counts, _MAX_STORED_COUNT)
    packed_postings["tokens"] = np.minimum(token_counts, _MAX_STORED_COUNT)
    return packed_postings


class RowsByChunk:
    """The row of each chunk, by the number that the database has given the chunk."""

    def __init__(
        self, chunk_numbers: "NDArray[np.int64]", row_numbers: "NDArray[np.int64]"
    ) -> None:
        ascending_order = np.argsort(chunk_numbers, kind="stable")
        self._chunk_numbers = chunk_numbers[ascending_order]
        self._row_numbers = row_numbers[ascending_order]

    def find_row_numbers(self, chunk_numbers: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the row of each chunk, -1 of an unknown one."""
        if not len(self._chunk_numbers):
            return np.full(len(chunk_numbers), -1)
        insertion_indexes = np.searchsorted(self._chunk_numbers, chunk_numbers)
        insertion_indexes[insertion_indexes == len(self._chunk_numbers)] = 0
        return np.where(
            self._chunk_numbers[insertion_indexes] == chunk_numbers,
            self._row_numbers[insertion_indexes],
            -1,
        )

    def replace_rows(self, new_row_by_chunk: Mapping[int, int]) -> "RowsByChunk":
        """Return the same with other rows for these chunks, which may be new."""
        if not new_row_by_chunk:
            return self
        new_chunk_numbers = np.fromiter(new_row_by_chunk.keys(), np.int64, len(new_row_by_chunk))
        new_row_numbers = np.fromiter(new_row_by_chunk.values(), np.int64, len(new_row_by_chunk))
        kept_mask = ~np.isin(self._chunk_numbers, new_chunk_numbers)
        return RowsByChunk(
            np.concatenate([self._chunk_numbers[kept_mask], new_chunk_numbers]),
            np.concatenate([self._row_numbers[kept_mask], new_row_numbers]),
        )


@dataclass(frozen=True, slots=True)
class WordView:
    """The rows at one moment, and the postings of some stems, at least as new."""

    row_view: RowView
    postings_by_stem: Mapping[str, StemPostings]

    def rank_rows(
        self,
        rarity_by_stem: Mapping[str, float],
        average_token_count: float,
        conditions: Sequence[Condition],
        k: int,
    ) -> list[LexicalHit]:
        """Return the k best rows that meet the conditions, best first, equal ones by id.

        `rarity_by_stem` has the stems of the question, each with how much it counts.
        """
        passing_mask = np.zeros(self.row_view.row_count, bool)
        passing_mask[self.row_view.find_matching_row_numbers(conditions)] = True
        scores = np.zeros(self.row_view.row_count)
        for stem, rarity in rarity_by_stem.items():
            postings = self.postings_by_stem[stem].read_rows_before(self.row_view.row_count)
            postings = postings[passing_mask[postings["row"]]]
            occurrence_counts = postings["occurrences"].astype(float)
            length_norms = BM25_K1 * (
                1 - BM25_B + BM25_B * postings["tokens"] / average_token_count
            )
            scores[postings["row"]] += (
                rarity * occurrence_counts * (BM25_K1 + 1) / (occurrence_counts + length_norms)
            )
        return self._list_best_hits(scores, k)

    def _list_best_hits(self, scores: "NDArray[np.float64]", k: int) -> list[LexicalHit]:
        matching_row_numbers = np.flatnonzero(scores)
        if len(matching_row_numbers) > k:
            matching_scores = scores[matching_row_numbers].astype(np.float32)
            kth_score = np.partition(matching_scores, -k)[-k]
            # With all that equal the k-th: their ids decide.
            matching_row_numbers = matching_row_numbers[matching_scores >= kth_score]
        hits = [
            LexicalHit(self.row_view.ids[row_number], float(scores[row_number]))
            for row_number in matching_row_numbers
        ]
        return sort_hits(hits)[:k]
