"""Records over time as charts, with the query that they were drawn from."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.pages.lists import make_list_address, read_filters, render
from readingroom.bases.federal.query.aggregate_models import Interval, Series, TimeBucket
from readingroom.bases.federal.query.aggregates import Aggregation
from readingroom.bases.federal.schema.sources import Source, find_source
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.web.charts import Bin, Chart, draw_histogram
from readingroom.web.templates import format_words

_MAX_GROUPS = 6
_INTERVALS: tuple[Interval, ...] = get_args(Interval)


class SeriesPages:
    """The page of a source over time."""

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def show_series(self, request: PageRequest) -> RenderedPage:
        """Return one chart, or one for each of the largest groups. Raise InvalidArguments."""
        record_source = find_source(request.get("source"))
        arguments = _read_arguments(record_source, request)
        filters = arguments["filters"]
        series = await self._service.compute_time_series(
            Aggregation(
                record_source.table,
                parse_filters(record_source.table, filters),
                time_field=arguments["time_field"],
                interval=arguments["interval"],
                group_by=arguments.get("group_by"),
                top=_MAX_GROUPS,
            )
        )
        page_title = f"{record_source.label} by {series.interval}"
        body_html = render(
            "series.html",
            source=record_source,
            title=page_title,
            series=series,
            charts=_draw_charts(record_source, series, filters, arguments.get("group_by")),
            arguments=arguments,
            since=filters.get("since", ""),
            until=filters.get("until", ""),
            group_by=arguments.get("group_by", ""),
            intervals=_INTERVALS,
            group_names=record_source.table.plan.groups,
            time_names=[time_field for time_field, _ in record_source.table.plan.times],
        )
        example = ToolExample("time_series", arguments)
        return RenderedPage(page_title, body_html, data=series, tool_example=example)


def _read_arguments(record_source: Source, request: PageRequest) -> dict[str, Any]:
    """Return the arguments of the tool that gives an agent the same."""
    time_fields = [field_name for field_name, _ in record_source.table.plan.times]
    if not time_fields:
        problem_text = f"{record_source.label} have no date, so there is no series of them"
        raise InvalidArguments([{"field": "source", "message": problem_text}])
    time_field = request.get("time_field") or time_fields[0]
    group_by, interval = request.get("group_by"), request.get("interval") or "month"
    for field_name, field_value, allowed in (
        ("time_field", time_field, time_fields),
        ("interval", interval, _INTERVALS),
        ("group_by", group_by, ["", *record_source.table.plan.groups]),
    ):
        if field_value not in allowed:
            problem_text = f"one of {', '.join(filter(None, allowed))}"
            raise InvalidArguments([{"field": field_name, "message": problem_text}])
    arguments: dict[str, Any] = {
        "resource": record_source.name,
        "time_field": time_field,
        "interval": interval,
        "filters": read_filters(record_source, request),
    }
    return arguments | ({"group_by": group_by} if group_by else {})


def _draw_charts(
    record_source: Source, series: Series, filters: Mapping[str, Any], group_by: str | None
) -> list[Chart]:
    buckets_by_group: dict[Any, list[TimeBucket]] = {}
    for bucket in series.buckets:
        buckets_by_group.setdefault(bucket.group, []).append(bucket)
    return [
        _draw_group(record_source, series, buckets, filters, group_by, group_key)
        for group_key, buckets in buckets_by_group.items()
    ]


def _draw_group(
    record_source: Source,
    series: Series,
    buckets: Sequence[TimeBucket],
    filters: Mapping[str, Any],
    group_by: str | None,
    group_key: Any,
) -> Chart:
    group_filters = (
        {**filters, group_by: group_key} if group_by and group_key is not None else filters
    )
    bins = [
        Bin(
            bucket.key,
            int(bucket.value),
            make_list_address(
                record_source, {**group_filters, "since": bucket.start, "until": bucket.end}
            ),
        )
        for bucket in buckets
    ]
    record_total = sum(time_bin.count for time_bin in bins)
    busiest = max(bins, key=lambda time_bin: time_bin.count)
    of_group = f" of {group_key or 'none'}" if group_by else ""
    finding = (
        f"{record_total:,} {record_source.label}{of_group}; "
        f"most in {busiest.label}: {busiest.count:,}."
    )
    return draw_histogram(bins, finding, (format_words(series.interval), "Records"))
