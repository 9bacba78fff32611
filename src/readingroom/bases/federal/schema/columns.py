"""The values that the columns of a record have, read from its model instead of from its JSON.

A shared database computes them itself where they are not given; to give them costs a third of it.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Column
from readingroom.bases.federal.schema.tables import CITATION_FIELDS, list_path_steps

ComputedColumnValues = tuple[str | int | None, ...]


def list_computed_columns(source_name: str) -> tuple[str, ...]:
    """Return the columns of a source that are computed from a record, in their order."""
    return (*CITATION_FIELDS, *(column.name for column in SOURCES_BY_NAME[source_name].columns))


def read_column_values(full_record: Record) -> ComputedColumnValues:
    """Return what `list_computed_columns` has for a record."""
    get_plain_fields, nested_value_readers = _make_column_readers(full_record.source)
    column_values: tuple[Any, ...] = get_plain_fields(full_record)
    if nested_value_readers:
        column_values += tuple([read_value(full_record) for read_value in nested_value_readers])
    return column_values


@cache
def _make_column_readers(
    source_name: str,
) -> tuple[Callable[[Record], tuple[Any, ...]], Sequence[Callable[[Record], Any]]]:
    """Return what reads the leading columns that are plain fields, and what reads each other."""
    columns = SOURCES_BY_NAME[source_name].columns
    plain_column_count = next(
        (
            column_index
            for column_index, column in enumerate(columns)
            if not _is_plain_field(column)
        ),
        len(columns),
    )
    plain_field_names = [column.name for column in columns[:plain_column_count]]
    return (
        attrgetter(*CITATION_FIELDS, *plain_field_names),
        [_make_column_reader(column) for column in columns[plain_column_count:]],
    )


def _is_plain_field(column: Column) -> bool:
    return not column.json_path and column.sql_type != "BOOLEAN"


def _make_column_reader(column: Column) -> Callable[[Record], Any]:
    field_name, *inner_path_steps = list_path_steps(column)
    read_field = attrgetter(field_name)
    if column.sql_type == "BOOLEAN":
        return lambda full_record: (
            None
            if field_name in full_record.list_unknown_fields()
            else _convert_flag_to_number(read_field(full_record))
        )
    if not inner_path_steps:
        return read_field
    return lambda full_record: _follow_path(read_field(full_record), inner_path_steps)


def _convert_flag_to_number(flag: bool | None) -> int | None:
    return None if flag is None else int(flag)


def _follow_path(reached_value: Any, path_steps: Sequence[str]) -> Any:
    """Return what lies at the end of a path through models, dictionaries and lists, or None."""
    for path_step in path_steps:
        if not reached_value:  # nothing, or an empty list
            return None
        if path_step == "0":
            reached_value = reached_value[0]
        elif isinstance(reached_value, dict):
            reached_value = reached_value.get(path_step)
        else:
            reached_value = getattr(reached_value, path_step)
    return reached_value
