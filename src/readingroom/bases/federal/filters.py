"""Filters of lists, names and aggregates: a model for each table, and the same as SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from readingroom.bases.federal.schema.sources import Column, RecordTable
from readingroom.bases.federal.schema.values import VALUE_TYPES, make_choice_type
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.tool import Day, ShortText


def _reject_bool(value: Any) -> Any:
    """Reject bool, which is an int in Python."""
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


_TYPES: dict[str, Any] = {
    "INTEGER": Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_reject_bool)],
    "BOOLEAN": bool,
}


class SourceFilters(BaseModel):
    """The filters that every table has; each has fields of its own besides."""

    model_config = ConfigDict(extra="forbid")

    since: Day | None = Field(None, description="Published on this day or later.")
    until: Day | None = Field(None, description="Published on this day or earlier.")


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A condition on the rows of a table in SQL, its values, and the filters it came from."""

    sql: str
    values: tuple[Any, ...]
    filters: Mapping[str, Any]


@cache
def make_filters_model(table: RecordTable) -> type[SourceFilters]:
    """Return the model of a table's filters, which reports those that do not fit."""
    facets = {facet.name: VALUE_TYPES.get(facet.name, ShortText) for facet in table.plan.facets}
    types = facets | {column.name: _choose_type(column) for column in table.filters}
    fields: dict[str, Any] = {name: (type | None, None) for name, type in types.items()}
    title = table.name.title().replace("_", "")
    return create_model(f"{title}Filters", __base__=SourceFilters, **fields)


def _choose_type(column: Column) -> Any:
    if column.kind != "TEXT":
        return _TYPES[column.kind]
    if column.choices:
        return make_choice_type(column.choices)
    return VALUE_TYPES.get(column.name, ShortText)


def parse_filters(table: RecordTable, filters: Mapping[str, Any] | None) -> RowFilter:
    """Check the filters that a tool was called with, and return them as SQL.

    Raise InvalidArguments for those that the table does not have, or whose value does not fit.
    """
    model = make_filters_model(table)
    try:
        parsed = model.model_validate(dict(filters or {}))
    except ValidationError as error:
        valid = ", ".join(model.model_fields)
        raise InvalidArguments(
            [
                {
                    "field": f"filters.{problem['field']}",
                    "message": f"{problem['message']} ({table.path} takes {valid})",
                }
                for problem in InvalidArguments.from_validation_error(error).errors
            ]
        ) from error
    return build_row_filter(table, parsed.model_dump(exclude_none=True))


def build_row_filter(table: RecordTable, filters: Mapping[str, Any]) -> RowFilter:
    """Return checked filters as SQL; a tuple allows any of its values.

    Withdrawn records never pass.
    """
    conditions = [table.where]
    values: list[Any] = []
    for name, value in filters.items():
        allowed = value if isinstance(value, tuple) else (value,)
        conditions.append(_build_condition(table, name, len(allowed)))
        values += allowed
    return RowFilter(" AND ".join(conditions), tuple(values), dict(filters))


def _build_condition(table: RecordTable, name: str, allowed: int) -> str:
    if name == "since":
        return f"{table.date_sql} >= ?"
    if name == "until":
        return f"{table.date_sql} <= ?"
    is_allowed = "= ?" if allowed == 1 else f"IN ({', '.join('?' * allowed)})"
    facet = next((facet for facet in table.plan.facets if facet.name == name), None)
    if facet:
        return f"id IN (SELECT id FROM ({facet.rows}) WHERE value {is_allowed})"
    return f"{name} {is_allowed}"
