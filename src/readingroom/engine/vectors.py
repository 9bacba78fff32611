"""Finds the nearest vectors among the rows that pass a filter: filter first, then scan, in memory.

Rows are never changed. A write kills rows and appends others, then publishes a new view, so that
readers need no lock and see a write whole or not at all. Dead rows are swept out now and then.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from readingroom.core.filters import Fields, Filter, Metadata
from readingroom.engine.rows import Floats, RowNumbers, Rows, RowView, signs_of

DIMENSIONS = 384

# A scan of this many rows takes about as long as embedding the question: always exact.
_SMALL = 65_536
# Of a larger index, so many rows that pass are still scanned exactly.
_FEW = 4_096
# Beyond it signs choose so many rows for the exact distance (recall 0.998 on real vectors).
_DEPTH = 1_000
_BLOCK = 8_192
_GATHERED = 512
_SWEEP = 1_024
# What a product of 384 floats may be off.
_ROUNDING = 1e-5


@dataclass(frozen=True, slots=True)
class VectorHit:
    """A row that was found; `distance` is the squared Euclidean one, as in Chroma's `l2`."""

    id: str
    distance: float

    @property
    def score(self) -> float:
        """The relevance score of the contracts; the cosine, where vectors have unit length."""
        return max(0.0, 1 - self.distance / 2)


class VectorIndex:
    """Vectors by id with the metadata that filters ask for. One writer at a time, any readers."""

    def __init__(self, fields: Fields, dimensions: int = DIMENSIONS, reserve: int = 0) -> None:
        self.fields = fields
        self.dimensions = dimensions
        self._writing = threading.Lock()
        self._rows = Rows(fields, dimensions, reserve)
        self._row_of: dict[str, int] = {}
        self._view = self._rows.view()

    def __len__(self) -> int:
        return self._view.living

    def __contains__(self, id: str) -> bool:
        return id in self._row_of

    def upsert(self, ids: Sequence[str], vectors: Floats, metadatas: Sequence[Metadata]) -> None:
        """Add rows, in place of those with the same ids. A bad batch changes nothing."""
        checked = _checked(vectors, len(ids), self.dimensions)
        _check_pairs(ids, metadatas)
        with self._writing:
            self._replace(ids, checked, [self.fields.of(one) for one in metadatas])

    def update_metadata(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Lay new values over the old metadata of rows that are there; other ids are ignored."""
        _check_pairs(ids, metadatas)
        with self._writing:
            known = [
                (id, metadata)
                for id, metadata in zip(ids, metadatas, strict=True)
                if id in self._row_of
            ]
            rows = [self._row_of[id] for id, _ in known]
            laid = [
                {**self._rows.metadata(row), **self.fields.of(metadata)}
                for row, (_, metadata) in zip(rows, known, strict=True)
            ]
            self._replace([id for id, _ in known], self._rows.vectors[rows], laid)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove rows; ids that are not there are ignored."""
        with self._writing:
            self._replace(ids, np.empty((0, self.dimensions), np.float32), [])

    def search(self, vector: Floats, k: int, where: Filter | None = None) -> list[VectorHit]:
        """The k nearest rows that pass the filter, nearest first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k is a number of rows, not {k}")
        query = _checked(vector, 1, self.dimensions)[0]
        wanted = self.fields.conditions(where)
        view = self._view
        return _nearest(view, query, k, view.passing(wanted)) if k else []

    def search_groups(
        self, vector: Floats, k: int, field: str, where: Filter | None = None
    ) -> list[VectorHit]:
        """The nearest row of each of the k nearest groups, a group being the rows that have the
        same value of `field`. One scan, however many rows the nearest groups have.
        """
        query = _checked(vector, 1, self.dimensions)[0]
        view = self._view
        codes = view.columns[field].codes
        rows = view.passing(self.fields.conditions(where))
        rows, rough = _candidates(view, query, k, rows[codes[rows] >= 0])
        best_first = np.argsort(rough, kind="stable")
        _, firsts = np.unique(codes[rows[best_first]], return_index=True)
        return _exactly(view, query, rows[best_first[np.sort(firsts)[:k]]])

    def vectors_of(self, ids: Sequence[str]) -> Floats:
        """The vectors of rows that are there, in the order of the ids; others are left out."""
        with self._writing:
            rows = [self._row_of[id] for id in ids if id in self._row_of]
            return self._rows.vectors[rows]

    def matching(self, where: Filter | None = None) -> list[str]:
        """The ids of all rows that pass the filter, in the order of ids."""
        view = self._view
        return sorted(view.ids[row] for row in view.passing(self.fields.conditions(where)))

    def _replace(
        self, ids: Sequence[str], vectors: Floats, metadatas: Sequence[Mapping[str, Any]]
    ) -> None:
        """Kill the rows of these ids, append the new ones, and only then show both to readers."""
        killed = list({self._row_of[id] for id in ids if id in self._row_of})
        if metadatas:
            first = self._rows.append(ids, vectors, metadatas)
            self._row_of.update(zip(ids, range(first, first + len(ids)), strict=True))
        else:
            for id in ids:
                self._row_of.pop(id, None)
        self._rows.kill(killed)
        if self._rows.dead > max(_SWEEP, self._rows.count // 4):
            self._sweep()
        self._view = self._rows.view()

    def _sweep(self) -> None:
        """Move the living into new arrays; readers of the old ones are not disturbed."""
        old, living = self._rows, np.flatnonzero(self._rows.alive[: self._rows.count])
        new = Rows(self.fields, self.dimensions, len(living))
        for start in range(0, len(living), _BLOCK):
            rows = living[start : start + _BLOCK]
            metadatas = [old.metadata(int(row)) for row in rows]
            new.append([old.ids[row] for row in rows], old.vectors[rows], metadatas)
        self._rows = new
        self._row_of = {id: row for row, id in enumerate(new.ids)}


def _check_pairs(ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
    if len(set(ids)) != len(ids):
        raise ValueError("an id comes twice in one batch")
    if len(metadatas) != len(ids):
        raise ValueError(f"{len(ids)} ids came with {len(metadatas)} metadatas")


def _checked(vectors: Floats, count: int, dimensions: int) -> Floats:
    array = np.atleast_2d(np.ascontiguousarray(vectors, np.float32))
    if array.shape != (count, dimensions):
        raise ValueError(f"{count} vectors of {dimensions} numbers are wanted, not {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("a vector holds something that is not a finite number")
    return array


def _nearest(view: RowView, query: Floats, k: int, rows: RowNumbers) -> list[VectorHit]:
    rows, rough = _candidates(view, query, k, rows)
    if k < len(rows):
        furthest = np.partition(rough, k - 1)[k - 1]
        rows = rows[rough <= furthest + _ROUNDING]
    return _exactly(view, query, rows)[:k]


def _candidates(
    view: RowView, query: Floats, k: int, rows: RowNumbers
) -> tuple[RowNumbers, Floats]:
    """The rows worth a closer look, and about how far away each is."""
    if len(rows) > _FEW and view.count > _SMALL and view.are_units:
        rows = _nearest_by_signs(view, query, max(_DEPTH, 100 * k), rows)
    return rows, view.squares[rows] - 2 * _products(view, query, rows)


def _exactly(view: RowView, query: Floats, rows: RowNumbers) -> list[VectorHit]:
    """These rows, nearest first, row by row: so equal vectors have equal distances."""
    apart = view.vectors[rows].astype(np.float64) - query
    distances = np.einsum("ij,ij->i", apart, apart)
    hits = [
        VectorHit(view.ids[row], float(distance))
        for row, distance in zip(rows, distances, strict=True)
    ]
    return sorted(hits, key=lambda hit: (hit.distance, hit.id))


def _products(view: RowView, query: Floats, rows: RowNumbers) -> Floats:
    """Each row times the query, gathered through a buffer that stays in the processor's cache:
    on 50,000 rows twice as fast as one product of the whole, which waits for memory.
    """
    products = np.empty(len(rows), np.float32)
    buffer = np.empty((min(_GATHERED, len(rows)), len(query)), np.float32)
    for start in range(0, len(rows), _GATHERED):
        block = rows[start : start + _GATHERED]
        # Clipping is not needed, but the other modes write through a copy.
        gathered = view.vectors.take(block, axis=0, out=buffer[: len(block)], mode="clip")
        np.dot(gathered, query, out=products[start : start + len(block)])
    return products


def _nearest_by_signs(view: RowView, query: Floats, depth: int, rows: RowNumbers) -> RowNumbers:
    """About `depth` rows, those whose signs agree with the query's in most dimensions."""
    signs = signs_of(query[np.newaxis])[:, 0]
    every = len(rows) > view.count // 2
    differing = np.zeros(view.count if every else len(rows), np.uint16)
    for start in range(0, len(differing), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(differing)))
        chosen = block if every else rows[block]
        for plane, sign in zip(view.signs, signs, strict=True):
            differing[block] += np.bitwise_count(plane[chosen] ^ sign)
    if every:
        differing = differing[rows]
    furthest = np.searchsorted(np.cumsum(np.bincount(differing)), depth)
    return rows[differing <= furthest]
