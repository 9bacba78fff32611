"""Row-aligned arrays of vectors and filter values: rows are appended and marked as deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from readingroom.core.arrays import Floats, NDArray, RowMask, RowNumbers, np
from readingroom.core.filters import (
    Condition,
    FilterFields,
    In,
    Range,
    Scalar,
    make_comparison_key,
)


class RowArrays:
    """The arrays of one writer. Rows before `row_count` never change, so views need no copy."""

    def __init__(
        self, filter_fields: FilterFields, dimensions: int, reserved_row_count: int
    ) -> None:
        self.filter_fields = filter_fields
        self.row_count = 0
        self.deleted_count = 0
        # Signs approximate distances only between vectors of unit length.
        self.have_unit_length = True
        self.ids: list[str] = []
        self.alive_mask = np.zeros(reserved_row_count, bool)
        self.vectors = np.empty((reserved_row_count, dimensions), np.float32)
        self.squared_lengths = np.empty(reserved_row_count, np.float32)
        # By plane of 64 dimensions and not by row: a scan then reads memory in order.
        self.signs = np.empty((-(-dimensions // 64), reserved_row_count), np.uint64)
        self.columns_by_field = {
            field_name: _EncodedColumn(np.empty(reserved_row_count, np.int32))
            for field_name in filter_fields.exact_match_fields
        }
        self.numbers_by_field = {
            field_name: np.empty(reserved_row_count, np.float64)
            for field_name in filter_fields.numeric_range_fields
        }

    def append_rows(
        self, row_ids: Sequence[str], vectors: Floats, metadatas: Sequence[Mapping[str, Any]]
    ) -> int:
        """Append rows and return the number of the first; no view shows them yet."""
        first_row_number, end_row_number = self.row_count, self.row_count + len(row_ids)
        self._reserve_rows(end_row_number)
        squared_lengths = np.einsum("ij,ij->i", vectors, vectors)
        self.have_unit_length = self.have_unit_length and bool(
            np.all(np.abs(squared_lengths - 1) < 1e-3)
        )
        self.ids.extend(row_ids)
        self.vectors[first_row_number:end_row_number] = vectors
        self.squared_lengths[first_row_number:end_row_number] = squared_lengths
        self.signs[:, first_row_number:end_row_number] = pack_signs(vectors)
        for field_name in self.filter_fields.exact_match_fields:
            self.columns_by_field[field_name].append_values(
                first_row_number, [metadata.get(field_name) for metadata in metadatas]
            )
        for field_name in self.filter_fields.numeric_range_fields:
            self.numbers_by_field[field_name][first_row_number:end_row_number] = [
                _convert_to_range_number(metadata.get(field_name)) for metadata in metadatas
            ]
        self.alive_mask[first_row_number:end_row_number] = True
        self.row_count = end_row_number
        return first_row_number

    def delete_rows(self, row_numbers: list[int]) -> None:
        """Mark rows as deleted."""
        # A copy, because the views of readers share the old array.
        self.alive_mask = self.alive_mask.copy()
        self.alive_mask[row_numbers] = False
        self.deleted_count += len(row_numbers)

    def get_metadata(self, row_number: int) -> dict[str, Any]:
        """Return the filter values of a row."""
        numbers_by_field = {
            field_name: float(value_column[row_number])
            for field_name, value_column in self.numbers_by_field.items()
        }
        values_by_field = {
            field_name: value_column.find_value(row_number)
            for field_name, value_column in self.columns_by_field.items()
        }
        # The values of columns last: they have the original type where a field is in both.
        return {
            field_name: range_number
            for field_name, range_number in numbers_by_field.items()
            if not np.isnan(range_number)
        } | {
            field_name: field_value
            for field_name, field_value in values_by_field.items()
            if field_value is not None
        }

    def make_view(self) -> "RowView":
        """Return the rows as they are now; later changes do not show in the view."""
        return RowView(
            row_count=self.row_count,
            living_row_count=self.row_count - self.deleted_count,
            have_unit_length=self.have_unit_length,
            ids=self.ids,
            alive_mask=self.alive_mask,
            vectors=self.vectors,
            squared_lengths=self.squared_lengths,
            signs=self.signs,
            columns_by_field=dict(self.columns_by_field),
            numbers_by_field=dict(self.numbers_by_field),
        )

    def _reserve_rows(self, needed_row_count: int) -> None:
        capacity = len(self.alive_mask)
        if needed_row_count <= capacity:
            return
        # By half at least, so that many small appends do not copy everything each time.
        new_capacity = max(needed_row_count, capacity + capacity // 2, 1024)
        self.alive_mask = _enlarge_array(self.alive_mask, new_capacity)
        self.vectors = _enlarge_array(self.vectors, new_capacity)
        self.squared_lengths = _enlarge_array(self.squared_lengths, new_capacity)
        self.signs = np.ascontiguousarray(_enlarge_array(self.signs.T, new_capacity).T)
        self.columns_by_field = {
            field_name: value_column.make_enlarged_copy(new_capacity)
            for field_name, value_column in self.columns_by_field.items()
        }
        self.numbers_by_field = {
            field_name: _enlarge_array(value_column, new_capacity)
            for field_name, value_column in self.numbers_by_field.items()
        }


@dataclass(frozen=True)
class RowView:
    """The rows at one moment. The arrays may be longer: only the first `row_count` rows count."""

    row_count: int
    living_row_count: int
    have_unit_length: bool
    ids: list[str]
    alive_mask: RowMask
    vectors: Floats
    squared_lengths: Floats
    signs: "NDArray[np.uint64]"
    columns_by_field: Mapping[str, "_EncodedColumn"]
    numbers_by_field: Mapping[str, "NDArray[np.float64]"]

    def keeps_row_numbers_of(self, earlier_view: "RowView") -> bool:
        """Return whether the rows have kept their numbers since an earlier view."""
        return self.ids is earlier_view.ids

    def find_matching_row_numbers(self, conditions: Sequence[Condition]) -> RowNumbers:
        """Return the rows that meet every condition and are not deleted."""
        # The posting list of the rarest value comes first. If even that holds much of the index,
        # comparing whole columns is faster, because it reads memory in order.
        rarest_condition = min(
            (condition for condition in conditions if isinstance(condition, In)),
            key=self._count_rows_having_value,
            default=None,
        )
        if (
            rarest_condition is None
            or self._count_rows_having_value(rarest_condition) > self.row_count // 8
        ):
            match_mask = self.alive_mask[: self.row_count].copy()
            for condition in conditions:
                match_mask &= self._match_condition(condition, slice(0, self.row_count))
            return np.flatnonzero(match_mask)
        candidate_row_numbers = self._list_rows_having_value(rarest_condition)
        matching_row_numbers = candidate_row_numbers[self.alive_mask[candidate_row_numbers]]
        for condition in conditions:
            matching_row_numbers = matching_row_numbers[
                self._match_condition(condition, matching_row_numbers)
            ]
        return matching_row_numbers

    def _count_rows_having_value(self, condition: In) -> int:
        """Return how many rows have one of the values, including deleted rows."""
        encoded_column = self.columns_by_field[condition.field_name]
        return sum(
            len(encoded_column.posting_lists_by_code[value_code])
            for value_code in encoded_column.find_codes(condition.values)
        )

    def _list_rows_having_value(self, condition: In) -> RowNumbers:
        encoded_column = self.columns_by_field[condition.field_name]
        value_codes = encoded_column.find_codes(condition.values)
        row_number_arrays = [
            encoded_column.posting_lists_by_code[value_code].read_rows_before(self.row_count)
            for value_code in value_codes
        ]
        return np.concatenate(row_number_arrays) if row_number_arrays else np.empty(0, np.int64)

    def _match_condition(self, condition: Condition, row_numbers: RowNumbers | slice) -> RowMask:
        match condition:
            case In(field_name, allowed_values):
                return self.columns_by_field[field_name].mask_rows_having(
                    allowed_values, row_numbers
                )
            case Range(field_name, lowest_value, highest_value):
                range_numbers = self.numbers_by_field[field_name][row_numbers]
                match_mask = ~np.isnan(range_numbers)
                if lowest_value is not None:
                    match_mask &= range_numbers >= lowest_value
                if highest_value is not None:
                    match_mask &= range_numbers <= highest_value
                return match_mask


class _EncodedColumn:
    """The values of one field, encoded as small integers, and the rows that have each value."""

    def __init__(self, value_codes: "NDArray[np.int32]") -> None:
        self.codes = value_codes
        self.values: list[Scalar] = []
        self.codes_by_value: dict[tuple[str, Scalar], int] = {}
        self.posting_lists_by_code: list[_PostingList] = []

    def append_values(self, first_row_number: int, field_values: Sequence[Scalar | None]) -> None:
        value_codes = np.array(
            [
                -1 if field_value is None else self._get_or_add_code(field_value)
                for field_value in field_values
            ],
            np.int32,
        )
        self.codes[first_row_number : first_row_number + len(value_codes)] = value_codes
        positions_in_code_order = np.argsort(value_codes, kind="stable")
        present_codes, code_start_positions = np.unique(
            value_codes[positions_in_code_order], return_index=True
        )
        for value_code, value_positions in zip(
            present_codes, np.split(positions_in_code_order, code_start_positions[1:]), strict=True
        ):
            if value_code >= 0:
                self.posting_lists_by_code[value_code].append_rows(
                    value_positions + first_row_number
                )

    def find_value(self, row_number: int) -> Scalar | None:
        value_code = self.codes[row_number]
        return self.values[value_code] if value_code >= 0 else None

    def find_codes(self, wanted_values: Sequence[Scalar]) -> set[int]:
        codes_or_none = (
            self.codes_by_value.get(make_comparison_key(wanted_value))
            for wanted_value in wanted_values
        )
        return {value_code for value_code in codes_or_none if value_code is not None}

    def mask_rows_having(
        self, wanted_values: Sequence[Scalar], row_numbers: RowNumbers | slice
    ) -> RowMask:
        value_codes = list(self.find_codes(wanted_values))
        # One longer than there are codes: the code -1, no value, selects the last, which is False.
        # Created after the codes were looked up, because a writer may be adding a value.
        selected_code_mask = np.zeros(len(self.values) + 1, bool)
        selected_code_mask[value_codes] = True
        return selected_code_mask[self.codes[row_numbers]]

    def make_enlarged_copy(self, capacity: int) -> "_EncodedColumn":
        """Return the same column with room for more; views keep the old one."""
        larger_column = _EncodedColumn(_enlarge_array(self.codes, capacity))
        larger_column.values, larger_column.codes_by_value, larger_column.posting_lists_by_code = (
            self.values,
            self.codes_by_value,
            self.posting_lists_by_code,
        )
        return larger_column

    def _get_or_add_code(self, field_value: Scalar) -> int:
        comparison_key = make_comparison_key(field_value)
        value_code = self.codes_by_value.get(comparison_key)
        if value_code is None:
            value_code = len(self.values)
            self.values.append(field_value)
            self.posting_lists_by_code.append(_PostingList())
            # Last: a reader that finds the code must find its posting list too.
            self.codes_by_value[comparison_key] = value_code
        return value_code


class _PostingList:
    """The rows that have one value, in ascending order."""

    def __init__(self) -> None:
        self._rows = np.empty(4, np.int64)
        self._row_count = 0

    def __len__(self) -> int:
        return self._row_count

    def append_rows(self, row_numbers: RowNumbers) -> None:
        new_row_count = self._row_count + len(row_numbers)
        if new_row_count > len(self._rows):
            self._rows = _enlarge_array(self._rows, max(new_row_count, 2 * len(self._rows)))
        self._rows[self._row_count : new_row_count] = row_numbers
        self._row_count = new_row_count

    def read_rows_before(self, row_limit: int) -> RowNumbers:
        """Return those among the first `row_limit` rows; a writer may be adding others."""
        # The count is read first: `append` raises it after the rows are in place.
        row_count = self._row_count
        row_numbers = self._rows[:row_count]
        return row_numbers[: np.searchsorted(row_numbers, row_limit)]


def pack_signs(vectors: Floats) -> "NDArray[np.uint64]":
    """Return the sign of every dimension as a bit, 64 in a plane, with a column for each vector."""
    vector_count, dimensions = vectors.shape
    sign_bits = np.zeros((vector_count, -(-dimensions // 64) * 64), np.uint8)
    sign_bits[:, :dimensions] = vectors > 0
    return np.ascontiguousarray(np.packbits(sign_bits, axis=1).view(np.uint64).T)


def _convert_to_range_number(filter_value: Scalar | None) -> float:
    return (
        np.nan
        if filter_value is None or isinstance(filter_value, bool | str)
        else float(filter_value)
    )


def _enlarge_array(array: "NDArray[Any]", capacity: int) -> "NDArray[Any]":
    larger_array = np.zeros((capacity, *array.shape[1:]), array.dtype)
    larger_array[: len(array)] = array
    return larger_array
