"""What a list, a resolution or an aggregate is narrowed by: its filters, as SQL."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
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

from readingroom.bases.federal.models import Day
from readingroom.bases.federal.schema import values as spelling
from readingroom.bases.federal.schema.sources import Column, Resource
from readingroom.bases.federal.schema.values import Word
from readingroom.core.errors import InvalidArguments


def _no_truth(told: Any) -> Any:
    """True is no number, though Python takes it for 1."""
    if isinstance(told, bool):
        raise ValueError("must be a number")
    return told


_KINDS: dict[str, Any] = {
    "INTEGER": Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_no_truth)],
    "BOOLEAN": bool,
}


class SourceFilters(BaseModel):
    """What every resource can be narrowed by; each has fields of its own besides."""

    model_config = ConfigDict(extra="forbid")

    since: Day | None = Field(None, description="Published on this day or later.")
    until: Day | None = Field(None, description="Published on this day or earlier.")


@dataclass(frozen=True, slots=True)
class Narrowed:
    """Conditions on the rows of a source, and the values they speak of."""

    sql: str
    values: tuple[Any, ...]
    filters: Mapping[str, Any]


@cache
def filters_of(resource: Resource) -> type[SourceFilters]:
    """The filters of one resource, as a model that says which do not fit."""
    facets = {one.name: spelling.BY_NAME.get(one.name, Word) for one in resource.plan.facets}
    kinds = facets | {column.name: _kind(column) for column in resource.filters}
    fields: dict[str, Any] = {name: (kind | None, None) for name, kind in kinds.items()}
    title = resource.name.title().replace("_", "")
    return create_model(f"{title}Filters", __base__=SourceFilters, **fields)


def _kind(column: Column) -> Any:
    if column.kind != "TEXT":
        return _KINDS[column.kind]
    if column.among:
        return spelling.one_of(column.among)
    return spelling.BY_NAME.get(column.name, Word)


def read(resource: Resource, filters: Mapping[str, Any] | None) -> Narrowed:
    """Filters as a tool is given them; one that the resource does not have is named."""
    try:
        told = filters_of(resource).model_validate(dict(filters or {}))
    except ValidationError as error:
        problems = InvalidArguments.of(error).errors
        valid = ", ".join(filters_of(resource).model_fields)
        raise InvalidArguments(
            [
                {
                    "field": f"filters.{one['field']}",
                    "message": f"{one['message']} ({resource.path} takes {valid})",
                }
                for one in problems
            ]
        ) from error
    return narrowed(resource, told.model_dump(exclude_none=True))


def narrowed(resource: Resource, filters: Mapping[str, Any]) -> Narrowed:
    """The same filters as conditions; withdrawn records never pass."""
    where = [resource.where, *(_condition(resource, name) for name in filters)]
    return Narrowed(" AND ".join(where), tuple(filters.values()), dict(filters))


def as_stored(db: sqlite3.Connection, resource: Resource, asked: Narrowed) -> Narrowed:
    """The same, with names of an open list (`commerce`, `epa`) in the case they are kept in.

    A name that is there as it was written means itself.
    """
    open_names = {
        column.name
        for column in resource.filters
        if column.kind == "TEXT" and not column.among and column.name not in spelling.BY_NAME
    }
    filters = {
        name: _stored(db, resource, name, value) if name in open_names else value
        for name, value in asked.filters.items()
    }
    return replace(asked, values=tuple(filters.values()), filters=filters)


def _stored(db: sqlite3.Connection, resource: Resource, name: str, value: str) -> str:
    for loosely in ("", "COLLATE NOCASE"):
        found = db.execute(
            f"SELECT {name} FROM {resource.name} WHERE {name} = ? {loosely} LIMIT 1", (value,)
        ).fetchone()
        if found:
            return str(found[0])
    return value


def _condition(resource: Resource, name: str) -> str:
    if name == "since":
        return f"{resource.dated} >= ?"
    if name == "until":
        return f"{resource.dated} <= ?"
    facet = next((one for one in resource.plan.facets if one.name == name), None)
    return f"id IN (SELECT id FROM ({facet.rows}) WHERE value = ?)" if facet else f"{name} = ?"
