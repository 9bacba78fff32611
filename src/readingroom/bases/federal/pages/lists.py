"""Lists of federal records: the sources, and one source with filters and a histogram over time."""

import datetime as dt
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.query.aggregate_models import Buckets, Interval, Series
from readingroom.bases.federal.query.aggregates import Aggregation
from readingroom.bases.federal.schema.sources import BY_NAME, Column, Source, find_source
from readingroom.bases.federal.service import FederalService
from readingroom.protocol.pages import PageRequest, RenderedPage, SourceFreshness, ToolExample
from readingroom.web.charts import Bar, Bin, Chart, draw_bars, draw_histogram
from readingroom.web.templates import format_words, render_template

render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_PAGE_SIZE = 50
_DATE = "published_at"
_MONTHS_UP_TO_DAYS = 5 * 366
"""A list that spans more time is shown by year."""


class ListPages:
    """The pages that list records."""

    def __init__(self, service: FederalService) -> None:
        self._service = service

    async def show_sources(self, request: PageRequest) -> RenderedPage:
        """Return every source with how much of it is loaded."""
        loaded = [item for item in await self._service.list_progress() if item.is_loaded]
        ordered = sorted(loaded, key=lambda item: -item.records)
        total = sum(item.records for item in ordered)
        chart = draw_bars(
            [
                Bar(BY_NAME[item.source].label, item.records, f"/records/{item.source}")
                for item in ordered
            ],
            f"{total:,} federal records of {len(ordered)} kinds are loaded.",
            ("Source", "Records"),
        )
        body = render("sources.html", chart=chart if ordered else None, sources=ordered)
        return RenderedPage("Federal records", body, data=ordered)

    async def list_freshness(self) -> list[SourceFreshness]:
        """Return up to which day each source is loaded, or the day of its newest record."""
        return [
            SourceFreshness(
                BY_NAME[item.source].label,
                f"/records/{item.source}",
                f"{item.records:,} record{'s' if item.records != 1 else ''}",
                item.loaded_up_to,
                item.newest_record_at,
            )
            for item in await self._service.list_progress()
            if item.is_loaded
        ]

    async def show_source(self, request: PageRequest) -> RenderedPage:
        """Return the records of a source that pass the filters, and how many there were when."""
        source = find_source(request.get("source"))
        chosen = read_filters(source, request)
        row_filter = parse_filters(source.table, chosen)
        page = await self._service.list_records(
            source, row_filter, _PAGE_SIZE, request.get("cursor") or None
        )
        chart = await self._draw_times(source, chosen)
        groups = await self._draw_groups(source, chosen, request.get("by"))
        body = render(
            "source.html",
            source=source,
            title=source.label,
            records=[_Row.read(record) for record in page.results],
            chart=chart,
            groups=groups,
            by=request.get("by"),
            group_names=source.table.plan.groups,
            filters=[
                _make_field(column, chosen) for column in source.columns if not column.measure
            ],
            since=chosen.get("since", ""),
            until=chosen.get("until", ""),
            next_address=make_list_address(source, {**chosen, "cursor": page.next_cursor})
            if page.next_cursor
            else None,
            loaded_up_to=page.loaded_up_to,
            series_address=_make_series_address(source, chosen),
        )
        example = ToolExample("count", {"resource": source.name, "filters": chosen})
        return RenderedPage(source.label, body, data=page, tool_example=example)

    async def _draw_times(self, source: Source, chosen: Mapping[str, Any]) -> Chart | None:
        """Return a bar for each month or year, which narrows the list to it."""
        if (_DATE, _DATE) not in source.table.plan.times:
            return None
        series = await self._read_series(source, chosen, "year")
        dated = [bucket for bucket in series.buckets if bucket.value]
        if not dated:
            return None
        span = dt.date.fromisoformat(dated[-1].end) - dt.date.fromisoformat(dated[0].start)
        if span.days <= _MONTHS_UP_TO_DAYS:
            series = await self._read_series(source, chosen, "month")
        return _draw_series(source, series, chosen)

    async def _read_series(
        self, source: Source, chosen: Mapping[str, Any], interval: Interval
    ) -> Series:
        row_filter = parse_filters(source.table, chosen)
        return await self._service.compute_time_series(
            Aggregation(source.table, row_filter, time_field=_DATE, interval=interval)
        )

    async def _draw_groups(
        self, source: Source, chosen: Mapping[str, Any], group_by: str
    ) -> Chart | None:
        """Return the ten largest groups by one field, each a link to its records."""
        if group_by not in source.table.plan.groups:
            return None
        row_filter = parse_filters(source.table, chosen)
        answer = await self._service.compute_aggregate(
            Aggregation(source.table, row_filter, group_by=group_by, top=10)
        )
        if not isinstance(answer, Buckets) or not answer.buckets:
            return None
        bars = [
            Bar(
                "none" if bucket.key is None else str(bucket.key),
                float(bucket.value),
                None
                if bucket.key is None
                else make_list_address(source, {**chosen, group_by: bucket.key}),
            )
            for bucket in answer.buckets
        ]
        field = format_words(group_by)
        finding = f"By {field.lower()}, most are of {bars[0].label}: {bars[0].value:,.0f}."
        return draw_bars(bars, finding, (field, "Records"))


def _draw_series(source: Source, series: Series, chosen: Mapping[str, Any]) -> Chart:
    bins = [
        Bin(
            bucket.key,
            int(bucket.value),
            make_list_address(source, {**chosen, "since": bucket.start, "until": bucket.end}),
        )
        for bucket in series.buckets
    ]
    total = sum(item.count for item in bins)
    busiest = max(bins, key=lambda item: item.count)
    finding = (
        f"{total:,} {source.label} from {bins[0].label} to {bins[-1].label}; "
        f"most in {busiest.label}: {busiest.count:,}."
    )
    return draw_histogram(bins, finding, (format_words(series.interval), "Records"))


class _Row:
    """A record as a line of a list."""

    def __init__(
        self, record_id: str, title: str, href: str, published_at: str, detail: str
    ) -> None:
        self.record_id = record_id
        self.title = title
        self.href = href
        self.published_at = published_at
        self.detail = detail

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> "_Row":
        latest = record.get("latest_action") or {}
        detail = latest.get("text") or record.get("result") or record.get("type") or ""
        return cls(
            record["id"],
            str(record.get("title") or record["id"]),
            make_record_address(record["id"]),
            str(record.get("published_at") or ""),
            str(detail),
        )


def make_record_address(record_id: str) -> str:
    """Return the address of a record's own page."""
    return "/records/view?" + urlencode({"id": record_id})


def make_list_address(source: Source, values: Mapping[str, Any]) -> str:
    """Return the address of a source's list, narrowed by these filters."""
    chosen = {name: value for name, value in values.items() if value not in (None, "")}
    return f"/records/{source.name}?{urlencode(chosen)}" if chosen else f"/records/{source.name}"


def _make_series_address(source: Source, chosen: Mapping[str, Any]) -> str | None:
    """Return the address of the same over time; None where nothing has a date."""
    if not source.table.plan.times:
        return None
    return f"/records/{source.name}/series?{urlencode(chosen)}"


def read_filters(source: Source, request: PageRequest) -> dict[str, Any]:
    """Return the filters of a source that the address names, as its model takes them."""
    kinds = {column.name: column.kind for column in source.columns if not column.measure}
    names = [*kinds, *(facet.name for facet in source.table.plan.facets), "since", "until"]
    return {
        name: _read_value(kinds.get(name, "TEXT"), written)
        for name in names
        if (written := request.get(name))
    }


def _read_value(kind: str, written: str) -> Any:
    if kind == "INTEGER":
        return int(written) if written.isdecimal() and len(written) < 10 else written
    if kind == "BOOLEAN":
        return {"true": True, "false": False}.get(written.lower(), written)
    return written


def _make_field(column: Column, chosen: Mapping[str, Any]) -> dict[str, Any]:
    choices = ("true", "false") if column.kind == "BOOLEAN" else tuple(column.choices or ())
    value = chosen.get(column.name, "")
    written = str(value).lower() if isinstance(value, bool) else str(value)
    return {
        "name": column.name,
        "label": format_words(column.name),
        "choices": choices,
        "value": written,
    }
