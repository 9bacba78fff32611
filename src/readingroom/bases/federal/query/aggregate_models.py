"""Questions and answers of aggregates: counts, sums and time series."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field

from readingroom.bases.federal.models import FiltersRead, FilterValues
from readingroom.bases.federal.schema.sources import Measure
from readingroom.protocol.tool import Answer, ShortText, ToolArguments

Interval = Literal["day", "week", "month", "quarter", "year"]
Top = Annotated[int, Field(ge=1, le=1000)]


class Count(ToolArguments):
    resource: ShortText = Field(description="What to count.")
    group_by: ShortText | None = Field(None, description="One count for each value.")
    filters: FilterValues | None = Field(
        None, description='Such as {"congress": 119, "party": "D", "since": "2025-01-01"}.'
    )
    top: Top = Field(20, description="How many groups, the largest first.")


class Sum(ToolArguments):
    resource: ShortText = Field(description="What to sum over.")
    sum_field: ShortText = Field(description="The number to add up.")
    group_by: ShortText | None = Field(None, description="One sum for each value.")
    filters: FilterValues | None = None
    top: Top = 20


class TimeSeries(ToolArguments):
    resource: ShortText = Field(description="What to count over time.")
    time_field: ShortText = Field(description="The date that counts.")
    interval: Interval
    group_by: ShortText | None = Field(None, description="One series for each value.")
    filters: FilterValues | None = None
    sum_field: ShortText | None = Field(None, description="Add this up instead.")
    top: Top = 20


# --- answers ---

Key = str | int | bool | None
Value = int | Decimal


class QueryCost(Answer):
    rows: int = Field(description="About how many rows were read.")
    most_rows: int = Field(description="How many may be read by one query.")
    took_ms: float


class Aggregated(Answer):
    """What every aggregate says besides its numbers."""

    resource: str
    unit: str | None = Field(None, description="Of the values: USD, or null for plain numbers.")
    loaded_up_to: str | None = None
    filters_read: FiltersRead = None
    note: str | None = None
    query_cost: QueryCost


class Total(Aggregated):
    """One number."""

    value: Value = Field(description="Exact; money is a decimal string.")


class Bucket(Answer):
    key: Key = Field(description="Null for what has no value in this field.")
    value: Value
    label: str | None = Field(
        default=None, description="What the record is called whose id the key is."
    )


class Buckets(Aggregated):
    """A number for each group, the largest first."""

    buckets: list[Bucket]
    total_buckets: int = Field(description="How many groups there are, shown or not.")
    truncated: bool


class TimeBucket(Answer):
    key: str = Field(description="2025-01-31, 2025-W05, 2025-01, 2025-Q1 or 2025.")
    start: str
    end: str
    group: Key = None
    label: str | None = None
    value: Value


class Series(Aggregated):
    """A number for each stretch of time, without gaps; with groups, one for each of them."""

    interval: Interval
    buckets: list[TimeBucket]
    total_buckets: int
    truncated: bool = Field(description="Whether there are more groups than are shown.")
    undated: Value = Field(description="What has no date in this field, and so is in no bucket.")


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
        return f"sum({self.measure.column})" if self.measure else "count(*)"

    def to_number(self, stored_value: int | None) -> int | Decimal:
        """Return a whole number, or a decimal with the digits of its field; never a float."""
        if self.measure is None or not self.measure.digits:
            return stored_value or 0
        return Decimal(stored_value or 0).scaleb(-self.measure.digits)
