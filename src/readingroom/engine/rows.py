"""Row-aligned arrays of vectors and filter values: appended to, killed, and viewed by readers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readingroom.core.filters import Condition, Fields, In, Range, Value, same_kind

RowNumbers = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


class Rows:
    """The arrays, grown by appending; what lies before `count` is never written again."""

    def __init__(self, fields: Fields, dimensions: int, reserve: int) -> None:
        self.fields = fields
        self.count = 0
        self.dead = 0
        self.are_units = True
        self.ids: list[str] = []
        self.alive = np.zeros(reserve, bool)
        self.vectors = np.empty((reserve, dimensions), np.float32)
        self.squares = np.empty(reserve, np.float32)
        self.signs = np.empty((-(-dimensions // 64), reserve), np.uint64)
        self.columns = {field: _Column(np.empty(reserve, np.int32)) for field in fields.equality}
        self.numbers = {field: np.empty(reserve, np.float64) for field in fields.ranges}

    def append(
        self, ids: Sequence[str], vectors: Floats, metadatas: Sequence[Mapping[str, Any]]
    ) -> int:
        first, end = self.count, self.count + len(ids)
        self._grow(end)
        squares = np.einsum("ij,ij->i", vectors, vectors)
        self.are_units = self.are_units and bool(np.all(np.abs(squares - 1) < 1e-3))
        self.ids.extend(ids)
        self.vectors[first:end] = vectors
        self.squares[first:end] = squares
        self.signs[:, first:end] = signs_of(vectors)
        for field in self.fields.equality:
            self.columns[field].append(first, [one.get(field) for one in metadatas])
        for field in self.fields.ranges:
            self.numbers[field][first:end] = [_number(one.get(field)) for one in metadatas]
        self.alive[first:end] = True
        self.count = end
        return first

    def kill(self, rows: list[int]) -> None:
        # A copy, because readers hold the old one.
        self.alive = self.alive.copy()
        self.alive[rows] = False
        self.dead += len(rows)

    def metadata(self, row: int) -> dict[str, Any]:
        found = {field: column.value(row) for field, column in self.columns.items()}
        numbers = {field: float(column[row]) for field, column in self.numbers.items()}
        kept = {field: number for field, number in numbers.items() if not np.isnan(number)}
        return kept | {field: value for field, value in found.items() if value is not None}

    def view(self) -> "RowView":
        """What is there now; later appends and kills do not show in it."""
        return RowView(
            count=self.count,
            living=self.count - self.dead,
            are_units=self.are_units,
            ids=self.ids,
            alive=self.alive,
            vectors=self.vectors,
            squares=self.squares,
            signs=self.signs,
            columns=dict(self.columns),
            numbers=dict(self.numbers),
        )

    def _grow(self, needed: int) -> None:
        capacity = len(self.alive)
        if needed <= capacity:
            return
        larger = max(needed, capacity + capacity // 2, 1024)
        self.alive = _larger(self.alive, larger)
        self.vectors = _larger(self.vectors, larger)
        self.squares = _larger(self.squares, larger)
        self.signs = np.ascontiguousarray(_larger(self.signs.T, larger).T)
        self.columns = {field: column.grown(larger) for field, column in self.columns.items()}
        self.numbers = {field: _larger(column, larger) for field, column in self.numbers.items()}


@dataclass(frozen=True)
class RowView:
    """The rows as they were at one moment. Arrays may be longer: only `count` rows are meant."""

    count: int
    living: int
    are_units: bool
    ids: list[str]
    alive: Mask
    vectors: Floats
    squares: Floats
    signs: NDArray[np.uint64]
    columns: Mapping[str, "_Column"]
    numbers: Mapping[str, NDArray[np.float64]]

    def passing(self, wanted: Sequence[Condition]) -> RowNumbers:
        """The living rows that meet every condition.

        The rarest value's posting list is where the search begins; where even that holds much of
        the index, whole columns are compared instead, which reads memory in order.
        """
        rarest = min(
            (part for part in wanted if isinstance(part, In)), key=self._at_most, default=None
        )
        listed = None if rarest is None else self._listed(rarest)
        if listed is None or len(listed) > self.count // 8:
            mask = self.alive[: self.count].copy()
            for part in wanted:
                mask &= self._meets(part, slice(0, self.count))
            return np.flatnonzero(mask)
        rows = listed[self.alive[listed]]
        for part in wanted:
            rows = rows[self._meets(part, rows)]
        return rows

    def _at_most(self, part: In) -> int:
        """How many rows have one of the values, the dead included."""
        column = self.columns[part.field]
        return sum(len(column.postings[code]) for code in column.codes_of(part.values))

    def _listed(self, part: In) -> RowNumbers:
        column = self.columns[part.field]
        found = [column.postings[code].before(self.count) for code in column.codes_of(part.values)]
        return np.concatenate(found) if found else np.empty(0, np.int64)

    def _meets(self, part: Condition, rows: RowNumbers | slice) -> Mask:
        match part:
            case In(field, values):
                return self.columns[field].has(values, rows)
            case Range(field, low, high):
                numbers = self.numbers[field][rows]
                met = ~np.isnan(numbers)
                if low is not None:
                    met &= numbers >= low
                if high is not None:
                    met &= numbers <= high
                return met


class _Column:
    """The values of one field as small numbers, and for each value the rows that have it."""

    def __init__(self, codes: NDArray[np.int32]) -> None:
        self.codes = codes
        self.values: list[Value] = []
        self.code_of: dict[tuple[str, Value], int] = {}
        self.postings: list[_Posting] = []

    def append(self, first: int, values: Sequence[Value | None]) -> None:
        codes = np.array([-1 if value is None else self._code(value) for value in values], np.int32)
        self.codes[first : first + len(codes)] = codes
        order = np.argsort(codes, kind="stable")
        met, starts = np.unique(codes[order], return_index=True)
        for code, rows in zip(met, np.split(order, starts[1:]), strict=True):
            if code >= 0:
                self.postings[code].append(rows + first)

    def value(self, row: int) -> Value | None:
        code = self.codes[row]
        return self.values[code] if code >= 0 else None

    def codes_of(self, values: Sequence[Value]) -> set[int]:
        known = (self.code_of.get(same_kind(value)) for value in values)
        return {code for code in known if code is not None}

    def has(self, values: Sequence[Value], rows: RowNumbers | slice) -> Mask:
        codes = list(self.codes_of(values))
        # One more than there are codes: -1, which means no value, finds the last, which is False.
        # Made after the codes are known, because a writer may be adding one.
        wanted = np.zeros(len(self.values) + 1, bool)
        wanted[codes] = True
        return wanted[self.codes[rows]]

    def grown(self, capacity: int) -> "_Column":
        """The same column with room for more; the old one stays as readers know it."""
        larger = _Column(_larger(self.codes, capacity))
        larger.values, larger.code_of, larger.postings = self.values, self.code_of, self.postings
        return larger

    def _code(self, value: Value) -> int:
        key = same_kind(value)
        code = self.code_of.get(key)
        if code is None:
            code = len(self.values)
            self.values.append(value)
            self.postings.append(_Posting())
            # Last: whoever finds the code finds its posting list.
            self.code_of[key] = code
        return code


class _Posting:
    """The rows that have one value, in rising order."""

    def __init__(self) -> None:
        self._rows = np.empty(4, np.int64)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, rows: RowNumbers) -> None:
        end = self._length + len(rows)
        if end > len(self._rows):
            self._rows = _larger(self._rows, max(end, 2 * len(self._rows)))
        self._rows[self._length : end] = rows
        self._length = end

    def before(self, count: int) -> RowNumbers:
        """Those among the first `count` rows; a writer may be adding others."""
        length = self._length
        rows = self._rows[:length]
        return rows[: np.searchsorted(rows, count)]


def signs_of(vectors: Floats) -> NDArray[np.uint64]:
    """The sign of every dimension as a bit, 64 to a plane; one column a vector."""
    count, dimensions = vectors.shape
    bits = np.zeros((count, -(-dimensions // 64) * 64), np.uint8)
    bits[:, :dimensions] = vectors > 0
    return np.ascontiguousarray(np.packbits(bits, axis=1).view(np.uint64).T)


def _number(value: Value | None) -> float:
    return np.nan if value is None or isinstance(value, bool | str) else float(value)


def _larger(array: NDArray[Any], length: int) -> NDArray[Any]:
    larger = np.zeros((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
