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
        source = find_source(request.get("source"))
        arguments = _read_arguments(source, request)
        filters = arguments["filters"]
        series = await self._service.compute_time_series(
            Aggregation(
                source.table,
                parse_filters(source.table, filters),
                time_field=arguments["time_field"],
                interval=arguments["interval"],
                group_by=arguments.get("group_by"),
                top=_MAX_GROUPS,
            )
        )
        title = f"{source.label} by {series.interval}"
        body = render(
            "series.html",
            source=source,
            title=title,
            series=series,
            charts=_draw_charts(source, series, filters, arguments.get("group_by")),
            arguments=arguments,
            since=filters.get("since", ""),
            until=filters.get("until", ""),
            group_by=arguments.get("group_by", ""),
            intervals=_INTERVALS,
            group_names=source.table.plan.groups,
            time_names=[field for field, _ in source.table.plan.times],
        )
        example = ToolExample("time_series", arguments)
        return RenderedPage(title, body, data=series, tool_example=example)


def _read_arguments(source: Source, request: PageRequest) -> dict[str, Any]:
    """Return the arguments of the tool that gives an agent the same."""
    time_fields = [field for field, _ in source.table.plan.times]
    if not time_fields:
        message = f"{source.label} have no date, so there is no series of them"
        raise InvalidArguments([{"field": "source", "message": message}])
    time_field = request.get("time_field") or time_fields[0]
    group_by, interval = request.get("group_by"), request.get("interval") or "month"
    for field, value, allowed in (
        ("time_field", time_field, time_fields),
        ("interval", interval, _INTERVALS),
        ("group_by", group_by, ["", *source.table.plan.groups]),
    ):
        if value not in allowed:
            message = f"one of {', '.join(filter(None, allowed))}"
            raise InvalidArguments([{"field": field, "message": message}])
    arguments: dict[str, Any] = {
        "resource": source.name,
        "time_field": time_field,
        "interval": interval,
        "filters": read_filters(source, request),
    }
    return arguments | ({"group_by": group_by} if group_by else {})


def _draw_charts(
    source: Source, series: Series, filters: Mapping[str, Any], group_by: str | None
) -> list[Chart]:
    groups: dict[Any, list[TimeBucket]] = {}
    for bucket in series.buckets:
        groups.setdefault(bucket.group, []).append(bucket)
    return [
        _draw_group(source, series, buckets, filters, group_by, group)
        for group, buckets in groups.items()
    ]


def _draw_group(
    source: Source,
    series: Series,
    buckets: Sequence[TimeBucket],
    filters: Mapping[str, Any],
    group_by: str | None,
    group: Any,
) -> Chart:
    chosen = {**filters, group_by: group} if group_by and group is not None else filters
    bins = [
        Bin(
            bucket.key,
            int(bucket.value),
            make_list_address(source, {**chosen, "since": bucket.start, "until": bucket.end}),
        )
        for bucket in buckets
    ]
    total = sum(item.count for item in bins)
    busiest = max(bins, key=lambda item: item.count)
    of_group = f" of {group or 'none'}" if group_by else ""
    finding = f"{total:,} {source.label}{of_group}; most in {busiest.label}: {busiest.count:,}."
    return draw_histogram(bins, finding, (format_words(series.interval), "Records"))
