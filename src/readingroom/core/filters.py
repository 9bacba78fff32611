"""One small language for which chunks may answer; each backend turns it into its own.

    And((Equals("source", "NPPF"), Range("effective_from", high=20241212)))

A chunk without the field never passes. Text, numbers and truth values are never equal to each
other. In particular `In` of nothing passes nothing, and `And` of nothing passes everything.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

Value = str | int | float | bool
Number = int | float
Metadata = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Equals:
    """The field has this value."""

    field: str
    value: Value


@dataclass(frozen=True, slots=True)
class In:
    """The field has one of these values."""

    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The field's number is neither below `low` nor above `high`; both ends belong to it."""

    field: str
    low: Number | None = None
    high: Number | None = None

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ValueError(f"a range of {self.field!r} without ends asks nothing")


@dataclass(frozen=True, slots=True)
class And:
    """All of these hold."""

    parts: "tuple[Filter, ...]"


Filter = Equals | In | Range | And
Condition = In | Range


@dataclass(frozen=True, slots=True)
class Fields:
    """What a filter may ask of an index: values that are equal, numbers in a range."""

    equality: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()

    def conditions(self, where: Filter | None) -> list[Condition]:
        """The filter's conditions, or an error that names a field which is not among these."""
        wanted = list(conditions(where))
        for part in wanted:
            known = self.equality if isinstance(part, In) else self.ranges
            if part.field not in known:
                raise ValueError(f"{part.field!r} is no filter field here; there are {known}")
        return wanted

    def of(self, metadata: Metadata) -> dict[str, Value]:
        """The part of a chunk's metadata that filters may ask for."""
        names = dict.fromkeys((*self.equality, *self.ranges))
        known = {name: metadata[name] for name in names if metadata.get(name) is not None}
        for name, value in known.items():
            if not isinstance(value, str | int | float | bool):
                raise ValueError(f"{name!r} holds {value!r}, which no filter can ask for")
        return known


def conditions(where: Filter | None) -> Iterator[Condition]:
    """The filter as a flat list of conditions that must all hold."""
    match where:
        case And(parts):
            for part in parts:
                yield from conditions(part)
        case Equals(field, value):
            yield In(field, (value,))
        case In() | Range():
            yield where


def same_kind(value: Value) -> tuple[str, Value]:
    """A key under which equal values meet, and 1, "1" and True do not."""
    if isinstance(value, bool):
        return "truth", value
    return ("text", value) if isinstance(value, str) else ("number", value)
