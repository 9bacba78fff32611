"""What a list, a resolution or an aggregate is narrowed by: the filters of its source, as SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from readingroom.bases.federal.models import Day, Word
from readingroom.bases.federal.sources import Source
from readingroom.core.errors import InvalidArguments

_KINDS: dict[str, Any] = {
    "INTEGER": Annotated[int, Field(ge=0, le=2**31)],
    "BOOLEAN": bool,
    "TEXT": Word,
}


class SourceFilters(BaseModel):
    """What every source can be narrowed by; each has fields of its own besides."""

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
def filters_of(source: Source) -> type[SourceFilters]:
    """The filters of one source, as a model that says which do not fit."""
    fields: dict[str, Any] = {
        column.name: (_KINDS[column.kind] | None, None) for column in source.columns
    }
    return create_model(f"{source.record.__name__}Filters", __base__=SourceFilters, **fields)


def read(source: Source, filters: Mapping[str, Any] | None) -> Narrowed:
    """Filters as a tool is given them; one that the source does not have is named."""
    try:
        told = filters_of(source).model_validate(dict(filters or {}))
    except ValidationError as error:
        problems = InvalidArguments.of(error).errors
        valid = ", ".join(filters_of(source).model_fields)
        raise InvalidArguments(
            [
                {
                    "field": f"filters.{one['field']}",
                    "message": f"{one['message']} ({source.path} takes {valid})",
                }
                for one in problems
            ]
        ) from error
    return narrowed(told.model_dump(exclude_none=True))


def narrowed(filters: Mapping[str, Any]) -> Narrowed:
    """The same filters as conditions; withdrawn records never pass."""
    where, values = ["status = 'active'"], []
    for name, value in filters.items():
        where.append(_CONDITIONS.get(name, f"{name} = ?"))
        values.append(value)
    return Narrowed(" AND ".join(where), tuple(values), dict(filters))


_CONDITIONS = {"since": "published_at >= ?", "until": "published_at <= ?"}
