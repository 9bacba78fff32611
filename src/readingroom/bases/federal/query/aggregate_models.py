"""Questions and answers of aggregates: counts, sums and time series."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from readingroom.bases.federal.models import FiltersRead, FilterValues
from readingroom.bases.federal.schema.sources import Measure, RecordTable
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.tool import Answer, ShortText, ToolArguments

Interval = Literal["day", "week", "month", "quarter", "year"]
TopN = Annotated[int, Field(ge=1, le=1000)]


class Count(ToolArguments):
    resource: ShortText = Field(description="What to count.")
    group_by: ShortText | None = Field(None, description="One count for each value.")
    filters: FilterValues | None = Field(
        None, description='Such as {"congress": 119, "party": "D", "since": "2025-01-01"}.'
    )
    top: TopN = Field(20, description="How many groups, the largest first.")


class Sum(ToolArguments):
    resource: ShortText = Field(description="What to sum over.")
    sum_field: ShortText = Field(description="The number to add up.")
    group_by: ShortText | None = Field(None, description="One sum for each value.")
    filters: FilterValues | None = None
    top: TopN = 20


class TimeSeries(ToolArguments):
    resource: ShortText = Field(description="What to count over time.")
    time_field: ShortText = Field(description="The date that counts.")
    interval: Interval
    group_by: ShortText | None = Field(None, description="One series for each value.")
    filters: FilterValues | None = None
    sum_field: ShortText | None = Field(None, description="Add this up instead.")
    top: TopN = 20


# --- answers ---

GroupKey = str | int | bool | None
AggregateValue = int | Decimal


class QueryCost(Answer):
    rows: int = Field(description="About how many rows were read.")
    most_rows: int = Field(description="How many may be read by one query.")
    took_ms: float


class AggregateAnswer(Answer):
    """What every aggregate says besides its numbers."""

    resource: str
    unit: str | None = Field(None, description="Of the values: USD, or null for plain numbers.")
    loaded_up_to: str | None = None
    filters_read: FiltersRead = None
    note: str | None = None
    query_cost: QueryCost


class Total(AggregateAnswer):
    """One number."""

    value: AggregateValue = Field(description="Exact; money is a decimal string.")


class Bucket(Answer):
    key: GroupKey = Field(description="Null for what has no value in this field.")
    value: AggregateValue
    label: str | None = Field(
        default=None, description="What the record is called whose id the key is."
    )


class Buckets(AggregateAnswer):
    """A number for each group, the largest first."""

    buckets: list[Bucket]
    total_buckets: int = Field(description="How many groups there are, shown or not.")
    truncated: bool


class TimeBucket(Answer):
    key: str = Field(description="2025-01-31, 2025-W05, 2025-01, 2025-Q1 or 2025.")
    start: str
    end: str
    group: GroupKey = None
    label: str | None = None
    value: AggregateValue


class Series(AggregateAnswer):
    """A number for each stretch of time, without gaps; with groups, one for each of them."""

    interval: Interval
    buckets: list[TimeBucket]
    total_buckets: int
    truncated: bool = Field(description="Whether there are more groups than are shown.")
    undated: AggregateValue = Field(
        description="What has no date in this field, and so is in no bucket."
    )


# --- the statement ---


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """An aggregate as parts of SQL, and about how many rows it reads."""

    from_sql: str
    where_sql: str
    sql_values: tuple[Any, ...]
    measure: Measure | None
    group_column: str | None
    time_column: str | None
    record_count: int
    """About how many records are read."""
    row_count: int
    """About how many rows are read: the records, and what is joined to them."""

    @property
    def value_sql(self) -> str:
        return f"sum({self.measure.column_name})" if self.measure else "count(*)"

    def to_number(self, stored_value: int | None) -> int | Decimal:
        """Return a whole number, or a decimal with the digits of its field; never a float."""
        if self.measure is None or not self.measure.decimal_digits:
            return stored_value or 0
        return Decimal(stored_value or 0).scaleb(-self.measure.decimal_digits)


@dataclass(slots=True)
class CostMeter:
    """What a query has cost so far, in steps of the database and in time."""

    max_steps: int
    deadline: float
    steps_between_checks: int
    step_count: int = 0

    def is_exhausted(self) -> bool:
        """The database calls this every `steps_between_checks` steps; True stops the query."""
        self.step_count += self.steps_between_checks
        return self.step_count > self.max_steps or time.perf_counter() > self.deadline


# --- fields and keys ---


def check_eligible_field(
    argument_name: str, field_name: str, eligible_fields: Sequence[str], record_table: RecordTable
) -> None:
    """Raise InvalidArguments unless a field is among the eligible ones."""
    if field_name not in eligible_fields:
        choices_text = (
            f"one of {', '.join(eligible_fields)}" if eligible_fields else "none: leave it out"
        )
        problem_text = f"{record_table.slug} has no {field_name[:100]!r} here; {choices_text}"
        raise InvalidArguments([{"field": argument_name, "message": problem_text}])


def read_group_key(record_table: RecordTable, group_by: str | None, stored_key: Any) -> GroupKey:
    """Return a group's key as its column means it: SQLite has no booleans."""
    is_boolean = any(
        column.sql_type == "BOOLEAN" for column in record_table.columns if column.name == group_by
    )
    return bool(stored_key) if is_boolean and stored_key is not None else stored_key
