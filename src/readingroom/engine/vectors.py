"""Finds the nearest vectors among the rows that pass a filter: filter first, then scan, in memory.

Rows are never changed. A write marks rows as deleted and appends others, then publishes a new view,
so readers need no lock and see all of a write or nothing. Deleted rows are removed now and then.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

from readingroom.core.arrays import Floats, NDArray, RowNumbers, np
from readingroom.core.filters import Filter, FilterFields, Metadata
from readingroom.engine.rows import RowArrays, RowView, pack_signs

DIMENSIONS = 384

# A scan of this many rows takes about as long as embedding the question: always exact.
_MAX_ROWS_OF_EXACT_INDEX = 65_536
# In a larger index, this many rows that pass the filter are still scanned exactly.
_MAX_EXACTLY_COMPARED_ROWS = 24_576
# Of more rows, signs choose at least this many for the exact distance, and at least one in so many:
# the more rows there are, the more of them agree in their signs with a query by chance.
_MIN_CANDIDATES = 1_000
_ROWS_PER_CANDIDATE = 50
# Where even the nearest rows are far from the query, signs hardly tell them from others. Then as
# many more are measured as may be nearer, up to this many in all.
_MAX_DOUBTFUL_ROWS = 16_384
# By how many standard deviations the signs of a row may differ more than its distance lets expect.
_SIGN_MARGIN_IN_STANDARD_DEVIATIONS = 2.5
_ROWS_PER_BLOCK = 8_192
# 512 vectors of 384 floats take 768 KB, which stay in a core's cache.
_ROWS_PER_GATHERING = 512
# Fewer deleted rows are not worth copying the others.
_MIN_ROWS_TO_REMOVE = 1_024
# Rounding error of a product of 384 floats.
_MAX_ROUNDING_ERROR = 1e-5


STEPS_PER_UNIT_DISTANCE = 100_000
"""Of a distance of 1. Within a step distances are equal: engines differ in the last digits."""


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row near the query; `distance` is the squared Euclidean one, as in Chroma's `l2`."""

    id: str
    distance: float

    @property
    def score(self) -> float:
        """The relevance score of the contracts: the cosine where vectors have unit length."""
        return max(0.0, 1 - self.distance / 2)


class VectorSearch(Protocol):
    """Finds chunks by meaning."""

    def __len__(self) -> int:
        """Return how many chunks can be found."""
        ...

    def search(self, query_vector: Floats, k: int, where: Filter | None = None) -> list[VectorHit]:
        """Return the k nearest chunks that pass the filter, nearest first, equal ones by id."""
        ...

    def get_vectors(self, chunk_ids: Sequence[str]) -> Mapping[str, Floats]:
        """Return the vectors of these chunks, without those that do not exist."""
        ...


class VectorIndex:
    """Vectors by id with the metadata that filters use; one writer at a time, any readers."""

    def __init__(
        self,
        filter_fields: FilterFields,
        dimensions: int = DIMENSIONS,
        reserved_row_count: int = 0,
    ) -> None:
        self.filter_fields = filter_fields
        self.dimensions = dimensions
        self._write_lock = threading.Lock()
        self._rows = RowArrays(filter_fields, dimensions, reserved_row_count)
        self._row_numbers_by_id: dict[str, int] = {}
        self._view = self._rows.make_view()

    def __len__(self) -> int:
        return self._view.living_row_count

    @property
    def view(self) -> RowView:
        """The rows as the last write has left them."""
        return self._view

    def __contains__(self, row_id: str) -> bool:
        return row_id in self._row_numbers_by_id

    def upsert_rows(
        self, row_ids: Sequence[str], vectors: Floats, metadatas: Sequence[Metadata]
    ) -> None:
        """Add rows, replacing those with the same ids; raise `ValueError` before any change."""
        matrix = _check_vectors(vectors, len(row_ids), self.dimensions)
        _check_ids_and_metadatas(row_ids, metadatas)
        with self._write_lock:
            self._replace_rows(
                row_ids,
                matrix,
                [self.filter_fields.select_values(metadata) for metadata in metadatas],
            )

    def update_metadata(self, row_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of rows; unknown ids are ignored."""
        _check_ids_and_metadatas(row_ids, metadatas)
        with self._write_lock:
            metadata_by_row_id = {
                row_id: metadata
                for row_id, metadata in zip(row_ids, metadatas, strict=True)
                if row_id in self._row_numbers_by_id
            }
            row_numbers = [self._row_numbers_by_id[row_id] for row_id in metadata_by_row_id]
            merged_metadatas = [
                {
                    **self._rows.get_metadata(row_number),
                    **self.filter_fields.select_values(metadata),
                }
                for row_number, metadata in zip(
                    row_numbers, metadata_by_row_id.values(), strict=True
                )
            ]
            self._replace_rows(
                list(metadata_by_row_id), self._rows.vectors[row_numbers], merged_metadatas
            )

    def delete_rows(self, row_ids: Sequence[str]) -> None:
        """Remove rows; unknown ids are ignored."""
        with self._write_lock:
            self._replace_rows(row_ids, np.empty((0, self.dimensions), np.float32), [])

    def search(self, vector: Floats, k: int, where: Filter | None = None) -> list[VectorHit]:
        """Return the k nearest rows that pass the filter, nearest first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        query_vector = _check_vectors(vector, 1, self.dimensions)[0]
        conditions = self.filter_fields.parse_filter(where)
        # Read once: a writer may publish another view while this search goes on.
        row_view = self._view
        return (
            _find_nearest_hits(
                row_view, query_vector, k, row_view.find_matching_row_numbers(conditions)
            )
            if k
            else []
        )

    def search_groups(
        self, vector: Floats, k: int, group_field_name: str, where: Filter | None = None
    ) -> list[VectorHit]:
        """Return the nearest row of each of the k nearest groups.

        A group is the rows that have the same value of `group_field_name`. It takes one scan,
        however many rows the nearest groups have.
        """
        query_vector = _check_vectors(vector, 1, self.dimensions)[0]
        row_view = self._view
        group_codes = row_view.columns_by_field[group_field_name].codes
        row_numbers = row_view.find_matching_row_numbers(self.filter_fields.parse_filter(where))
        # A negative code means that the row has no value of the field, so it is in no group.
        row_numbers, distances = _choose_candidates(
            row_view, query_vector, k, row_numbers[group_codes[row_numbers] >= 0]
        )
        nearest_first_positions = np.argsort(distances, kind="stable")
        _, group_first_positions = np.unique(
            group_codes[row_numbers[nearest_first_positions]], return_index=True
        )
        return _make_hits_by_exact_distance(
            row_view,
            query_vector,
            row_numbers[nearest_first_positions[np.sort(group_first_positions)[:k]]],
        )

    def get_vectors(self, row_ids: Sequence[str]) -> dict[str, Floats]:
        """Return the vectors of rows by id; unknown ids are left out."""
        # A write that removes deleted rows gives all others new numbers.
        with self._write_lock:
            row_numbers_by_id = self.find_row_numbers(row_ids)
            vectors = self._rows.vectors[list(row_numbers_by_id.values())]
        return dict(zip(row_numbers_by_id, vectors, strict=True))

    def find_row_numbers(self, row_ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of rows by id; unknown ids are left out. Only for the writer."""
        return {
            row_id: self._row_numbers_by_id[row_id]
            for row_id in row_ids
            if row_id in self._row_numbers_by_id
        }

    def list_row_numbers(self, row_ids: Sequence[str]) -> "NDArray[np.int64]":
        """Return the number of each row, -1 of an unknown one. Only for the writer."""
        find_row_number = self._row_numbers_by_id.get
        return np.fromiter(map(find_row_number, row_ids, repeat(-1)), np.int64, len(row_ids))

    def count_rows(self, where: Filter | None = None) -> int:
        """Return how many rows pass the filter."""
        return len(self._view.find_matching_row_numbers(self.filter_fields.parse_filter(where)))

    def list_row_ids(self, where: Filter | None = None) -> list[str]:
        """Return the ids of all rows that pass the filter, sorted."""
        row_view = self._view
        return sorted(
            row_view.ids[row_number]
            for row_number in row_view.find_matching_row_numbers(
                self.filter_fields.parse_filter(where)
            )
        )

    def _replace_rows(
        self, row_ids: Sequence[str], vectors: Floats, metadatas: Sequence[Mapping[str, Any]]
    ) -> None:
        """Delete the rows of these ids, append the new ones, and only then publish both."""
        replaced_row_numbers = list(
            {
                self._row_numbers_by_id[row_id]
                for row_id in row_ids
                if row_id in self._row_numbers_by_id
            }
        )
        if metadatas:
            first_row_number = self._rows.append_rows(row_ids, vectors, metadatas)
            self._row_numbers_by_id.update(
                zip(row_ids, range(first_row_number, first_row_number + len(row_ids)), strict=True)
            )
        else:
            for row_id in row_ids:
                self._row_numbers_by_id.pop(row_id, None)
        self._rows.delete_rows(replaced_row_numbers)
        # Copying takes as long as there are rows; waiting for a quarter of them makes it rare.
        if self._rows.deleted_count > max(_MIN_ROWS_TO_REMOVE, self._rows.row_count // 4):
            self._remove_deleted_rows()
        self._view = self._rows.make_view()

    def _remove_deleted_rows(self) -> None:
        """Copy the rows that are not deleted into new arrays; views keep the old ones."""
        old_arrays, living_row_numbers = (
            self._rows,
            np.flatnonzero(self._rows.alive_mask[: self._rows.row_count]),
        )
        new_arrays = RowArrays(self.filter_fields, self.dimensions, len(living_row_numbers))
        for block_start in range(0, len(living_row_numbers), _ROWS_PER_BLOCK):
            row_numbers = living_row_numbers[block_start : block_start + _ROWS_PER_BLOCK]
            metadatas = [old_arrays.get_metadata(int(row_number)) for row_number in row_numbers]
            new_arrays.append_rows(
                [old_arrays.ids[row_number] for row_number in row_numbers],
                old_arrays.vectors[row_numbers],
                metadatas,
            )
        self._rows = new_arrays
        self._row_numbers_by_id = {
            row_id: row_number for row_number, row_id in enumerate(new_arrays.ids)
        }


def _check_ids_and_metadatas(row_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
    if len(set(row_ids)) != len(row_ids):
        raise ValueError("an id comes twice in one batch")
    if len(metadatas) != len(row_ids):
        raise ValueError(f"{len(row_ids)} ids came with {len(metadatas)} metadatas")


def _check_vectors(vectors: Floats, expected_count: int, dimensions: int) -> Floats:
    matrix = np.atleast_2d(np.ascontiguousarray(vectors, np.float32))
    if matrix.shape != (expected_count, dimensions):
        raise ValueError(
            f"expected {expected_count} vectors of {dimensions} numbers, not {matrix.shape}"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("a vector contains a number that is not finite")
    return matrix


def _find_nearest_hits(
    row_view: RowView, query_vector: Floats, k: int, row_numbers: RowNumbers
) -> list[VectorHit]:
    row_numbers, distances = _choose_candidates(row_view, query_vector, k, row_numbers)
    if k < len(row_numbers):
        kth_distance = np.partition(distances, k - 1)[k - 1]
        # With those that rounding may have put behind the k-th, and those as near: ids decide.
        max_distance = kth_distance + _MAX_ROUNDING_ERROR + 1 / STEPS_PER_UNIT_DISTANCE
        row_numbers = row_numbers[distances <= max_distance]
    return _make_hits_by_exact_distance(row_view, query_vector, row_numbers)[:k]


def _choose_candidates(
    row_view: RowView, query_vector: Floats, k: int, row_numbers: RowNumbers
) -> tuple[RowNumbers, Floats]:
    """Return the rows that may be nearest, and the approximate distance of each."""
    if (
        len(row_numbers) <= _MAX_EXACTLY_COMPARED_ROWS
        or row_view.row_count <= _MAX_ROWS_OF_EXACT_INDEX
    ):
        return row_numbers, _approximate_distances(row_view, query_vector, row_numbers)
    # Signs tell angles, and by an angle alone only vectors of one length can be compared.
    if not row_view.have_unit_length:
        return row_numbers, _approximate_distances(row_view, query_vector, row_numbers)
    differing_sign_counts = _count_differing_signs(row_view, query_vector, row_numbers)
    cumulative_row_counts = np.cumsum(np.bincount(differing_sign_counts))
    candidate_count = max(_MIN_CANDIDATES, len(row_numbers) // _ROWS_PER_CANDIDATE, 100 * k)
    max_differing_signs = int(np.searchsorted(cumulative_row_counts, candidate_count))
    chosen_row_numbers = row_numbers[differing_sign_counts <= max_differing_signs]
    distances = _approximate_distances(row_view, query_vector, chosen_row_numbers)
    max_doubtful_differing_signs = min(
        _compute_max_differing_signs(distances, k, query_vector),
        int(np.searchsorted(cumulative_row_counts, max(_MAX_DOUBTFUL_ROWS, candidate_count))),
    )
    if max_doubtful_differing_signs <= max_differing_signs:
        return chosen_row_numbers, distances
    doubtful_mask = (differing_sign_counts > max_differing_signs) & (
        differing_sign_counts <= max_doubtful_differing_signs
    )
    doubtful_row_numbers = row_numbers[doubtful_mask]
    return np.concatenate((chosen_row_numbers, doubtful_row_numbers)), np.concatenate(
        (distances, _approximate_distances(row_view, query_vector, doubtful_row_numbers))
    )


def _approximate_distances(
    row_view: RowView, query_vector: Floats, row_numbers: RowNumbers
) -> Floats:
    """Return squared distances less the square of the query, which is the same for every row."""
    dot_products = _compute_dot_products(row_view, query_vector, row_numbers)
    distances: Floats = row_view.squared_lengths[row_numbers] - 2 * dot_products
    return distances


def _compute_max_differing_signs(distances: Floats, k: int, query_vector: Floats) -> int:
    """Return how many signs differ at most in nearly all rows as near as the k-th of these."""
    dimensions = len(query_vector)
    if len(distances) <= k:
        return dimensions
    # Rows have unit length: the cosine tells which share of the signs differs on average.
    kth_distance = float(np.partition(distances, k - 1)[k - 1])
    cosine = (1 - kth_distance) / 2 / max(float(np.linalg.norm(query_vector)), 1e-9)
    differing_sign_share = math.acos(min(1.0, max(-1.0, cosine))) / math.pi
    standard_deviation = math.sqrt(dimensions * differing_sign_share * (1 - differing_sign_share))
    return int(
        dimensions * differing_sign_share + _SIGN_MARGIN_IN_STANDARD_DEVIATIONS * standard_deviation
    )


def _make_hits_by_exact_distance(
    row_view: RowView, query_vector: Floats, row_numbers: RowNumbers
) -> list[VectorHit]:
    """Return these rows with their exact distances, nearest first, equal ones by id."""
    # Subtracted row by row in float64, so that equal vectors have equal distances.
    coordinate_differences = row_view.vectors[row_numbers].astype(np.float64) - query_vector
    distances = np.einsum("ij,ij->i", coordinate_differences, coordinate_differences)
    hits = [
        VectorHit(row_view.ids[row_number], float(distance))
        for row_number, distance in zip(row_numbers, distances, strict=True)
    ]
    return sorted(hits, key=lambda hit: (round(hit.distance * STEPS_PER_UNIT_DISTANCE), hit.id))


def _compute_dot_products(
    row_view: RowView, query_vector: Floats, row_numbers: RowNumbers
) -> Floats:
    """Return the product of each row with the query."""
    # Through a buffer that stays in the processor's cache: on 50,000 rows this is twice as fast as
    # one product of all rows, which waits for memory.
    dot_products = np.empty(len(row_numbers), np.float32)
    gathering_buffer = np.empty(
        (min(_ROWS_PER_GATHERING, len(row_numbers)), len(query_vector)), np.float32
    )
    for block_start in range(0, len(row_numbers), _ROWS_PER_GATHERING):
        block_row_numbers = row_numbers[block_start : block_start + _ROWS_PER_GATHERING]
        # Clipping is not needed, but the other modes write through a copy.
        gathered_vectors = row_view.vectors.take(
            block_row_numbers, axis=0, out=gathering_buffer[: len(block_row_numbers)], mode="clip"
        )
        np.dot(
            gathered_vectors,
            query_vector,
            out=dot_products[block_start : block_start + len(block_row_numbers)],
        )
    return dot_products


def _count_differing_signs(
    row_view: RowView, query_vector: Floats, row_numbers: RowNumbers
) -> "NDArray[np.uint16]":
    """Return in how many dimensions the sign of each row differs from the query's."""
    query_signs = pack_signs(query_vector[np.newaxis])[:, 0]
    # Of more than half of all rows, every row is compared: slices are faster than gathering.
    compares_all_rows = len(row_numbers) > row_view.row_count // 2
    differing_sign_counts = np.zeros(
        row_view.row_count if compares_all_rows else len(row_numbers), np.uint16
    )
    for block_start in range(0, len(differing_sign_counts), _ROWS_PER_BLOCK):
        block_slice = slice(
            block_start, min(block_start + _ROWS_PER_BLOCK, len(differing_sign_counts))
        )
        compared_rows = block_slice if compares_all_rows else row_numbers[block_slice]
        for sign_plane, query_sign in zip(row_view.signs, query_signs, strict=True):
            differing_sign_counts[block_slice] += np.bitwise_count(
                sign_plane[compared_rows] ^ query_sign
            )
    return differing_sign_counts[row_numbers] if compares_all_rows else differing_sign_counts
