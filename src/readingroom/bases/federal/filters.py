"""Filters of lists, names and aggregates: a model for each table, and the same as SQL."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from readingroom.bases.federal.schema.sources import Column, RecordTable
from readingroom.bases.federal.schema.values import (
    SYNONYMS_BY_FILTER,
    VALUE_TYPE_BY_FILTER,
    make_choice_type,
)
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.tool import Day, ShortText

FiltersT = TypeVar("FiltersT", bound=BaseModel)


def _refuse_bool(filter_value: Any) -> Any:
    """Reject bool, which is an int in Python."""
    if isinstance(filter_value, bool):
        raise ValueError("must be a number")
    return filter_value


def _convert_number_to_text(filter_value: Any) -> Any:
    """Return a number as text: parts of the CFR and codes may be written without quotes."""
    is_number = isinstance(filter_value, int) and not isinstance(filter_value, bool)
    return str(filter_value) if is_number else filter_value


_TextOrNumber = Annotated[ShortText, BeforeValidator(_convert_number_to_text)]
_TYPE_BY_COLUMN_KIND: dict[str, Any] = {
    "INTEGER": Annotated[int, Field(ge=0, le=2**31), BeforeValidator(_refuse_bool)],
    "BOOLEAN": bool,
}


class SourceFilters(BaseModel):
    """The filters that every table has; each has fields of its own besides."""

    model_config = ConfigDict(extra="forbid")

    since: Day | None = Field(None, description="Published on this day or later.")
    until: Day | None = Field(None, description="Published on this day or earlier.")


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """A condition on the rows of a table in SQL, its values, and the filters it came from."""

    sql: str
    values: tuple[Any, ...]
    filters: Mapping[str, Any]


@cache
def make_filters_model(record_table: RecordTable) -> type[SourceFilters]:
    """Return the model of a table's filters, which reports those that do not fit."""
    type_by_facet_name = {
        group_facet.name: VALUE_TYPE_BY_FILTER.get(group_facet.name, _TextOrNumber)
        for group_facet in record_table.aggregation_plan.facets
    }
    type_by_filter_name = type_by_facet_name | {
        table_column.name: _choose_filter_value_type(table_column)
        for table_column in record_table.filter_columns
    }
    model_fields: dict[str, Any] = {
        filter_name: (filter_type | None, None)
        for filter_name, filter_type in type_by_filter_name.items()
    }
    model_name_prefix = record_table.name.title().replace("_", "")
    return create_model(f"{model_name_prefix}Filters", __base__=SourceFilters, **model_fields)


def _choose_filter_value_type(table_column: Column) -> Any:
    if table_column.sql_type != "TEXT":
        return _TYPE_BY_COLUMN_KIND[table_column.sql_type]
    if table_column.choices:
        return make_choice_type(table_column.choices, SYNONYMS_BY_FILTER.get(table_column.name))
    return VALUE_TYPE_BY_FILTER.get(table_column.name, _TextOrNumber)


def parse_filters(record_table: RecordTable, filter_values: Mapping[str, Any] | None) -> SqlFilter:
    """Check the filters that a tool was called with, and return them as SQL.

    Raise InvalidArguments for those that the table does not have, or whose value does not fit.
    """
    parsed_filters = validate_filters(
        make_filters_model(record_table), filter_values or {}, record_table.slug
    )
    return build_sql_filter(record_table, parsed_filters.model_dump(exclude_none=True))


def validate_filters(
    filters_class: type[FiltersT], filter_values: Mapping[str, Any], list_label: str
) -> FiltersT:
    """Return the filters of a list, checked; raise InvalidArguments, which names those it takes."""
    try:
        parsed_filters = filters_class.model_validate(dict(filter_values))
    except ValidationError as error:
        valid_filters_text = f"{list_label} takes {', '.join(filters_class.model_fields)}"
        raise InvalidArguments(
            [
                {
                    "field": f"filters.{field_problem['field']}",
                    "message": f"{field_problem['message']} ({valid_filters_text})",
                }
                for field_problem in InvalidArguments.from_validation_error(error).errors
            ]
        ) from error
    if isinstance(parsed_filters, SourceFilters):
        check_period(parsed_filters.since, parsed_filters.until, "filters.until")
    return parsed_filters


def check_period(since_day: str | None, until_day: str | None, field_name: str) -> None:
    """Raise InvalidArguments for a period that ends before it begins: nothing can be in it."""
    if since_day and until_day and until_day < since_day:
        problem_text = f"{until_day} is before `since`, {since_day}: no day is in this period"
        raise InvalidArguments([{"field": field_name, "message": problem_text}])


def build_sql_filter(record_table: RecordTable, filter_values: Mapping[str, Any]) -> SqlFilter:
    """Return checked filters as SQL; a tuple allows any of its values.

    Withdrawn records never pass.
    """
    sql_conditions = [record_table.active_rows_condition]
    sql_values: list[Any] = []
    for filter_name, filter_value in filter_values.items():
        allowed_values = filter_value if isinstance(filter_value, tuple) else (filter_value,)
        sql_conditions.append(_build_condition_sql(record_table, filter_name, len(allowed_values)))
        sql_values += allowed_values
    return SqlFilter(" AND ".join(sql_conditions), tuple(sql_values), dict(filter_values))


def _build_condition_sql(record_table: RecordTable, filter_name: str, allowed_count: int) -> str:
    if filter_name == "since":
        return f"{record_table.date_sql} >= ?"
    if filter_name == "until":
        return f"{record_table.date_sql} <= ?"
    comparison_sql = "= ?" if allowed_count == 1 else f"IN ({', '.join('?' * allowed_count)})"
    group_facet = next(
        (
            group_facet
            for group_facet in record_table.aggregation_plan.facets
            if group_facet.name == filter_name
        ),
        None,
    )
    if group_facet:
        return f"id IN (SELECT id FROM ({group_facet.rows_sql}) WHERE value {comparison_sql})"
    return f"{filter_name} {comparison_sql}"


def raise_invalid_filter(filter_name: str, problem_text: str) -> NoReturn:
    """Raise InvalidArguments for the value of one filter."""
    raise InvalidArguments([{"field": f"filters.{filter_name}", "message": problem_text}])
