"""Filters on the metadata of chunks, which each backend translates into its own language.

    And((Equals("source", "NPPF"), Range("effective_from", high=20241212)))

A chunk without the field never passes. Strings, numbers and booleans are never equal to each other.
An empty `In` passes nothing, and an empty `And` passes everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Scalar = str | int | float | bool
FilterNumber = int | float
Metadata = Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Equals:
    """The field has this value."""

    field_name: str
    value: Scalar


@dataclass(frozen=True, slots=True)
class In:
    """The field has one of these values."""

    field_name: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The field's number is neither below `low` nor above `high`; both ends are included."""

    field_name: str
    low: FilterNumber | None = None
    high: FilterNumber | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError(f"a range of {self.field_name!r} needs `low`, `high` or both")


@dataclass(frozen=True, slots=True)
class And:
    """Every part passes."""

    sub_filters: "tuple[Filter, ...]"


Filter = Equals | In | Range | And
Condition = In | Range


@dataclass(frozen=True, slots=True)
class FilterFields:
    """The fields of an index that filters may use: for equality, and for ranges of numbers."""

    exact_match_fields: tuple[str, ...] = ()
    numeric_range_fields: tuple[str, ...] = ()

    @property
    def field_names(self) -> list[str]:
        """The names of all fields, each once: a field may be in both tuples."""
        return list(dict.fromkeys((*self.exact_match_fields, *self.numeric_range_fields)))

    def parse_filter(self, chunk_filter: Filter | None) -> list[Condition]:
        """Return the filter's conditions; raise `ValueError` for a field that has no index."""
        flat_conditions = list(flatten_filter(chunk_filter))
        for flat_condition in flat_conditions:
            allowed_fields = (
                self.exact_match_fields
                if isinstance(flat_condition, In)
                else self.numeric_range_fields
            )
            if flat_condition.field_name not in allowed_fields:
                raise ValueError(
                    f"{flat_condition.field_name!r} is not a filter field; "
                    f"there are {allowed_fields}"
                )
        return flat_conditions

    def select_values(self, chunk_metadata: Metadata) -> dict[str, Scalar]:
        """Return the part of a chunk's metadata that filters may use."""
        filter_values = {
            field_name: chunk_metadata[field_name]
            for field_name in self.field_names
            if chunk_metadata.get(field_name) is not None
        }
        for field_name, filter_value in filter_values.items():
            if not isinstance(filter_value, str | int | float | bool):
                raise ValueError(f"{field_name!r} is {filter_value!r}, which cannot be filtered by")
        return filter_values


def flatten_filter(chunk_filter: Filter | None) -> Iterator[Condition]:
    """Yield the conditions of a filter, all of which must hold."""
    match chunk_filter:
        case And(sub_filters):
            for sub_filter in sub_filters:
                yield from flatten_filter(sub_filter)
        case Equals(field_name, value):
            yield In(field_name, (value,))
        case In() | Range():
            yield chunk_filter


def make_comparison_key(filter_value: Scalar) -> tuple[str, Scalar]:
    """Return a key that is the same for equal values, and different for 1, "1" and True."""
    # Before the others: to Python, True is an integer and equal to 1.
    if isinstance(filter_value, bool):
        return "truth", filter_value
    return ("text", filter_value) if isinstance(filter_value, str) else ("number", filter_value)
