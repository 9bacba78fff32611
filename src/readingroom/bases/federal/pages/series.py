"""Records over time as charts, with the query that they were drawn from."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.pages.lists import (
    list_filter_readings,
    lowercase_source_label,
    make_list_address,
    read_filters,
    render,
)
from readingroom.bases.federal.query.aggregate_models import Interval, Series, TimeBucket
from readingroom.bases.federal.query.aggregates import Aggregation
from readingroom.bases.federal.schema.sources import Source, get_source
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.web.charts import Chart, TimeBin, draw_histogram
from readingroom.web.templates import format_identifier

_MAX_DRAWN_GROUPS = 6
_INTERVALS: tuple[Interval, ...] = get_args(Interval)


class SeriesPages:
    """The page of a source over time."""

    def __init__(self, federal_service: FederalService) -> None:
        self._service = federal_service

    async def show_series(self, request: PageRequest) -> RenderedPage:
        """Return one chart, or one for each of the largest groups. Raise InvalidArguments."""
        record_source = get_source(request.get_parameter("source"))
        tool_arguments = _read_tool_arguments(record_source, request)
        chosen_filters = tool_arguments["filters"]
        time_series = await self._service.compute_time_series(
            Aggregation(
                record_source.record_table,
                parse_filters(record_source.record_table, chosen_filters),
                time_field=tool_arguments["time_field"],
                interval=tool_arguments["interval"],
                group_by=tool_arguments.get("group_by"),
                top=_MAX_DRAWN_GROUPS,
            )
        )
        page_title = f"{record_source.label} by {time_series.interval}"
        body_html = render(
            "series.html",
            **_make_series_form_values(record_source, tool_arguments, request),
            title=page_title,
            series=time_series,
            charts=_draw_group_charts(
                record_source, time_series, chosen_filters, tool_arguments.get("group_by")
            ),
            readings=await list_filter_readings(self._service, time_series.filters_read),
        )
        tool_example = ToolExample("time_series", tool_arguments)
        return RenderedPage(page_title, body_html, data=time_series, tool_example=tool_example)

    async def show_refused_form(self, request: PageRequest) -> RenderedPage:
        """Return the form as it was sent, with why it was refused."""
        record_source = get_source(request.get_parameter("source"))
        entered_values = {
            "time_field": request.get_parameter("time_field"),
            "interval": request.get_parameter("interval"),
            "group_by": request.get_parameter("group_by"),
            "filters": read_filters(record_source, request),
        }
        page_title = f"{record_source.label} over time"
        body_html = render(
            "series.html",
            **_make_series_form_values(record_source, entered_values, request),
            title=page_title,
            series=None,
        )
        return RenderedPage(page_title, body_html)


def _make_series_form_values(
    record_source: Source, arguments: Mapping[str, Any], request: PageRequest
) -> dict[str, Any]:
    """Return what the form shows, also where it was refused."""
    return {
        "request": request,
        "source": record_source,
        "arguments": arguments,
        "since": arguments["filters"].get("since", ""),
        "until": arguments["filters"].get("until", ""),
        "group_by": arguments.get("group_by", ""),
        "intervals": _INTERVALS,
        "group_names": record_source.record_table.aggregation_plan.group_names,
        "time_names": [*dict(record_source.record_table.aggregation_plan.date_names_and_columns)],
    }


def _read_tool_arguments(record_source: Source, request: PageRequest) -> dict[str, Any]:
    """Return the arguments of the tool that gives an agent the same."""
    time_field_names = [
        field_name
        for field_name, _ in record_source.record_table.aggregation_plan.date_names_and_columns
    ]
    if not time_field_names:
        problem_text = f"{record_source.label} have no date, so there is no series of them"
        raise InvalidArguments([{"field": "source", "message": problem_text}])
    time_field_name = request.get_parameter("time_field") or time_field_names[0]
    group_by, time_interval = (
        request.get_parameter("group_by"),
        request.get_parameter("interval") or "month",
    )
    for field_name, field_value, allowed_values in (
        ("time_field", time_field_name, time_field_names),
        ("interval", time_interval, _INTERVALS),
        ("group_by", group_by, ["", *record_source.record_table.aggregation_plan.group_names]),
    ):
        if field_value not in allowed_values:
            problem_text = f"one of {', '.join(filter(None, allowed_values))}"
            raise InvalidArguments([{"field": field_name, "message": problem_text}])
    tool_arguments: dict[str, Any] = {
        "resource": record_source.name,
        "time_field": time_field_name,
        "interval": time_interval,
        "filters": read_filters(record_source, request),
    }
    return tool_arguments | ({"group_by": group_by} if group_by else {})


def _draw_group_charts(
    record_source: Source,
    time_series: Series,
    chosen_filters: Mapping[str, Any],
    group_by: str | None,
) -> list[Chart]:
    buckets_by_group: dict[Any, list[TimeBucket]] = {}
    for time_bucket in time_series.buckets:
        buckets_by_group.setdefault(time_bucket.group, []).append(time_bucket)
    return [
        _draw_series_of_group(
            record_source, time_series, time_buckets, chosen_filters, group_by, group_key
        )
        for group_key, time_buckets in buckets_by_group.items()
    ]


def _draw_series_of_group(
    record_source: Source,
    time_series: Series,
    time_buckets: Sequence[TimeBucket],
    chosen_filters: Mapping[str, Any],
    group_by: str | None,
    group_key: Any,
) -> Chart:
    group_filters = (
        {**chosen_filters, group_by: group_key}
        if group_by and group_key is not None
        else chosen_filters
    )
    time_bins = [
        TimeBin(
            time_bucket.key,
            int(time_bucket.value),
            make_list_address(
                record_source,
                {**group_filters, "since": time_bucket.start, "until": time_bucket.end},
            ),
        )
        for time_bucket in time_buckets
    ]
    record_count = sum(time_bin.count for time_bin in time_bins)
    busiest_bin = max(time_bins, key=lambda time_bin: time_bin.count)
    group_phrase = f" of {group_key or 'none'}" if group_by else ""
    chart_caption = (
        f"{record_count:,} {lowercase_source_label(record_source)}{group_phrase}; "
        f"most in {busiest_bin.label}: {busiest_bin.count:,}."
    )
    return draw_histogram(
        time_bins, chart_caption, (format_identifier(time_series.interval), "Records")
    )
