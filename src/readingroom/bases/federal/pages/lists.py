"""Lists of federal records: the sources, and one source with filters and a histogram over time."""

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from readingroom.bases.federal.filters import parse_filters
from readingroom.bases.federal.names.filter_values import SOURCE_NAME_BY_REFERENCE_FILTER
from readingroom.bases.federal.query.aggregate_models import Buckets, Interval, Series
from readingroom.bases.federal.query.aggregates import Aggregation
from readingroom.bases.federal.query.links import read_titles_and_urls
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Column, Source, get_source
from readingroom.bases.federal.service import FederalService
from readingroom.protocol.pages import (
    FormRefusal,
    PageLink,
    PageRequest,
    RenderedPage,
    SourceFreshness,
    ToolExample,
)
from readingroom.web.charts import Chart, ChartBar, TimeBin, draw_bars, draw_histogram
from readingroom.web.templates import format_count, format_identifier, render_template

render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_PAGE_SIZE = 50
_ID_AND_TITLE_PATTERN = re.compile(r"(?P<id>[A-Za-z][\w:.-]*\d) \((?P<title>[^;]+?)\)(?=[,;])")
"""A record that a refusal names: its id, and its title in parentheses."""
_DATE_FIELD_NAME = "published_at"
_MAX_DAYS_SHOWN_BY_MONTH = 5 * 366
"""A list that spans more time is shown by year."""
_MAX_DAYS_SHOWN_BY_DAY = 62
"""A list that is narrowed to no more time is shown by day: one bar for a month says nothing."""


class ListPages:
    """The pages that list records."""

    def __init__(self, federal_service: FederalService) -> None:
        self._service = federal_service

    async def show_sources(self, request: PageRequest) -> RenderedPage:
        """Return every source with how much of it is loaded."""
        loaded_sources = [
            source_progress
            for source_progress in await self._service.list_progress()
            if source_progress.is_loaded
        ]
        sources_largest_first = sorted(
            loaded_sources, key=lambda source_progress: -source_progress.records
        )
        record_count = sum(source_progress.records for source_progress in sources_largest_first)
        source_chart = draw_bars(
            [
                ChartBar(
                    SOURCES_BY_NAME[source_progress.source].label,
                    source_progress.records,
                    f"/records/{source_progress.source}",
                )
                for source_progress in sources_largest_first
            ],
            f"{record_count:,} federal records of {len(sources_largest_first)} kinds are loaded.",
            ("Source", "Records"),
        )
        body_html = render(
            "sources.html",
            chart=source_chart if sources_largest_first else None,
            sources=sources_largest_first,
        )
        return RenderedPage("Federal records", body_html, data=sources_largest_first)

    async def list_source_freshness(self) -> list[SourceFreshness]:
        """Return up to which day each source is loaded, or the day of its newest record."""
        return [
            SourceFreshness(
                SOURCES_BY_NAME[source_progress.source].label,
                f"/records/{source_progress.source}",
                format_count(source_progress.records, "record"),
                source_progress.loaded_up_to,
                source_progress.newest_record_at,
            )
            for source_progress in await self._service.list_progress()
            if source_progress.is_loaded
        ]

    async def show_source(self, request: PageRequest) -> RenderedPage:
        """Return the records of a source that pass the filters, and how many there were when."""
        record_source = get_source(request.get_parameter("source"))
        chosen_filters = read_filters(record_source, request)
        form_values = _make_list_form_values(record_source, chosen_filters, request)
        if request.refusal:
            candidate_links = _list_candidate_links(record_source, chosen_filters, request.refusal)
            body_html = render(
                "source.html", **form_values, candidates=candidate_links, loaded_up_to=None
            )
            return RenderedPage(record_source.label, body_html)
        sql_filter = parse_filters(record_source.record_table, chosen_filters)
        record_page = await self._service.list_records(
            record_source, sql_filter, _PAGE_SIZE, request.get_parameter("cursor") or None
        )
        time_chart = await self._draw_time_chart(record_source, chosen_filters)
        group_chart = await self._draw_group_chart(
            record_source, chosen_filters, request.get_parameter("by")
        )
        body_html = render(
            "source.html",
            **form_values,
            records=[
                _ListedRecordRow.from_record(listed_record) for listed_record in record_page.results
            ],
            chart=time_chart,
            groups=group_chart,
            next_address=make_list_address(
                record_source, {**chosen_filters, "cursor": record_page.next_cursor}
            )
            if record_page.next_cursor
            else None,
            loaded_up_to=record_page.loaded_up_to,
            readings=await list_filter_readings(self._service, record_page.filters_read),
            series_address=_make_series_address(record_source, chosen_filters),
        )
        example_arguments = {"source": record_source.name, "filters": chosen_filters}
        tool_example = ToolExample("list_records", example_arguments)
        return RenderedPage(
            record_source.label, body_html, data=record_page, tool_example=tool_example
        )

    async def _draw_time_chart(
        self, record_source: Source, chosen_filters: Mapping[str, Any]
    ) -> Chart | None:
        """Return a bar for each month or year, which narrows the list to it."""
        if (
            _DATE_FIELD_NAME,
            _DATE_FIELD_NAME,
        ) not in record_source.record_table.aggregation_plan.date_names_and_columns:
            return None
        time_series = await self._compute_series(record_source, chosen_filters, "year")
        nonempty_buckets = [time_bucket for time_bucket in time_series.buckets if time_bucket.value]
        if not nonempty_buckets:
            return None
        period_with_records = dt.date.fromisoformat(
            nonempty_buckets[-1].end
        ) - dt.date.fromisoformat(nonempty_buckets[0].start)
        if period_with_records.days <= _MAX_DAYS_SHOWN_BY_MONTH:
            time_series = await self._compute_series(record_source, chosen_filters, "month")
        if _count_filtered_days(chosen_filters) <= _MAX_DAYS_SHOWN_BY_DAY:
            time_series = await self._compute_series(record_source, chosen_filters, "day")
        return _draw_series_chart(record_source, time_series, chosen_filters)

    async def _compute_series(
        self, record_source: Source, chosen_filters: Mapping[str, Any], time_interval: Interval
    ) -> Series:
        sql_filter = parse_filters(record_source.record_table, chosen_filters)
        return await self._service.compute_time_series(
            Aggregation(
                record_source.record_table,
                sql_filter,
                time_field=_DATE_FIELD_NAME,
                interval=time_interval,
            )
        )

    async def _draw_group_chart(
        self, record_source: Source, chosen_filters: Mapping[str, Any], group_by: str
    ) -> Chart | None:
        """Return the ten largest groups by one field, each a link to its records."""
        if group_by not in record_source.record_table.aggregation_plan.group_names:
            return None
        sql_filter = parse_filters(record_source.record_table, chosen_filters)
        group_counts = await self._service.compute_aggregate(
            Aggregation(record_source.record_table, sql_filter, group_by=group_by, top=10)
        )
        if not isinstance(group_counts, Buckets) or not group_counts.buckets:
            return None
        group_bars = [
            ChartBar(
                "none" if group_bucket.key is None else str(group_bucket.key),
                float(group_bucket.value),
                None
                if group_bucket.key is None
                else make_list_address(
                    record_source, {**chosen_filters, group_by: group_bucket.key}
                ),
            )
            for group_bucket in group_counts.buckets
        ]
        field_label = format_identifier(group_by)
        chart_caption = (
            f"By {field_label.lower()}, most are of {group_bars[0].label}: "
            f"{group_bars[0].value:,.0f}."
        )
        return draw_bars(group_bars, chart_caption, (field_label, "Records"))


def _draw_series_chart(
    record_source: Source, time_series: Series, chosen_filters: Mapping[str, Any]
) -> Chart:
    time_bins = [
        TimeBin(
            time_bucket.key,
            int(time_bucket.value),
            make_list_address(
                record_source,
                {**chosen_filters, "since": time_bucket.start, "until": time_bucket.end},
            ),
        )
        for time_bucket in time_series.buckets
    ]
    record_count = sum(time_bin.count for time_bin in time_bins)
    busiest_bin = max(time_bins, key=lambda time_bin: time_bin.count)
    chart_caption = (
        f"{record_count:,} {lowercase_source_label(record_source)} from {time_bins[0].label} "
        f"to {time_bins[-1].label}; most in {busiest_bin.label}: {busiest_bin.count:,}."
    )
    return draw_histogram(
        time_bins, chart_caption, (format_identifier(time_series.interval), "Records")
    )


def _count_filtered_days(chosen_filters: Mapping[str, Any]) -> float:
    """Return how many days the filters leave; infinitely many where they do not say both ends."""
    try:
        first_day, last_day = [
            dt.date.fromisoformat(chosen_filters.get(bound_name, ""))
            for bound_name in ("since", "until")
        ]
    except ValueError:
        return math.inf
    return (last_day - first_day).days


class _ListedRecordRow:
    """A record as a line of a list."""

    def __init__(
        self, record_id: str, row_title: str, record_href: str, published_at: str, row_detail: str
    ) -> None:
        self.record_id = record_id
        self.title = row_title
        self.href = record_href
        self.published_at = published_at
        self.detail = row_detail

    @classmethod
    def from_record(cls, listed_record: Mapping[str, Any]) -> "_ListedRecordRow":
        latest_action = listed_record.get("latest_action") or {}
        row_detail = (
            latest_action.get("text")
            or listed_record.get("result")
            or listed_record.get("type")
            or ""
        )
        return cls(
            listed_record["id"],
            str(listed_record.get("title") or listed_record["id"]),
            make_record_address(listed_record["id"]),
            str(listed_record.get("published_at") or ""),
            str(row_detail),
        )


def lowercase_source_label(record_source: Source) -> str:
    """Return the name of a source inside a sentence: `bills`, but `CRS reports`."""
    source_label = record_source.label
    return (
        source_label if source_label[:2].isupper() else source_label[:1].lower() + source_label[1:]
    )


async def list_filter_readings(
    federal_service: FederalService, filters_read: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the filters that were read otherwise than written, each with what was taken.

    A record is given by its title, and with its page; another value as it is stored.
    """
    if not filters_read:
        return []
    record_ids = [
        str(filters_read[filter_name])
        for filter_name in filters_read
        if filter_name in SOURCE_NAME_BY_REFERENCE_FILTER
    ]
    title_and_url_by_id = await federal_service.store.query(
        lambda db: read_titles_and_urls(db, record_ids)
    )
    return [
        {
            "label": format_identifier(filter_name),
            "values": [
                _make_filter_value_link(
                    stored_value,
                    filter_name in SOURCE_NAME_BY_REFERENCE_FILTER,
                    title_and_url_by_id,
                )
                for stored_value in (
                    resolved_value if isinstance(resolved_value, list) else [resolved_value]
                )
            ],
        }
        for filter_name, resolved_value in filters_read.items()
    ]


def _make_filter_value_link(
    stored_value: Any, is_record_id: bool, title_and_url_by_id: Mapping[str, Mapping[str, Any]]
) -> dict[str, str | None]:
    shown_text = str(stored_value)
    if not is_record_id:
        return {"text": shown_text, "href": None}
    record_title = title_and_url_by_id.get(shown_text, {}).get("title")
    return {
        "text": f"{record_title} ({shown_text})" if record_title else shown_text,
        "href": make_record_address(shown_text) if record_title else None,
    }


def list_member_bill_links(member_id: str) -> Sequence[PageLink]:
    """Return the ways to the bills that a member sponsored and cosponsored."""
    return [
        PageLink(link_label, make_list_address(SOURCES_BY_NAME["bills"], {filter_name: member_id}))
        for link_label, filter_name in (
            ("Bills sponsored", "sponsor"),
            ("Bills cosponsored", "cosponsor"),
        )
    ]


def make_record_address(record_id: str) -> str:
    """Return the address of a record's own page."""
    return "/records/view?" + urlencode({"id": record_id})


def make_list_address(record_source: Source, filter_values: Mapping[str, Any]) -> str:
    """Return the address of a source's list, narrowed by these filters."""
    given_filters = {
        filter_name: filter_value
        for filter_name, filter_value in filter_values.items()
        if filter_value not in (None, "")
    }
    return (
        f"/records/{record_source.name}?{urlencode(given_filters)}"
        if given_filters
        else f"/records/{record_source.name}"
    )


def _make_series_address(record_source: Source, chosen_filters: Mapping[str, Any]) -> str | None:
    """Return the address of the same over time; None where nothing has a date."""
    if not record_source.record_table.aggregation_plan.date_names_and_columns:
        return None
    return f"/records/{record_source.name}/series?{urlencode(chosen_filters)}"


def read_filters(record_source: Source, request: PageRequest) -> dict[str, Any]:
    """Return the filters of a source that the address names, as its model takes them."""
    sql_type_by_column = {
        table_column.name: table_column.sql_type
        for table_column in record_source.columns
        if not table_column.is_measure
    }
    filter_names = [
        *sql_type_by_column,
        *(group_facet.name for group_facet in record_source.record_table.aggregation_plan.facets),
        "since",
        "until",
    ]
    return {
        filter_name: _parse_filter_value(sql_type_by_column.get(filter_name, "TEXT"), written_value)
        for filter_name in filter_names
        if (written_value := request.get_parameter(filter_name))
    }


def _parse_filter_value(column_sql_type: str, written_value: str) -> Any:
    if column_sql_type == "INTEGER":
        return (
            int(written_value)
            if written_value.isdecimal() and len(written_value) < 10
            else written_value
        )
    if column_sql_type == "BOOLEAN":
        return {"true": True, "false": False}.get(written_value.lower(), written_value)
    return written_value


def _make_list_form_values(
    record_source: Source, chosen_filters: Mapping[str, Any], request: PageRequest
) -> dict[str, Any]:
    """Return what the form of a list shows, also where its filters are refused."""
    return {
        "request": request,
        "source": record_source,
        "title": record_source.label,
        "by": request.get_parameter("by"),
        "group_names": record_source.record_table.aggregation_plan.group_names,
        "filters": [
            _make_filter_field(table_column, chosen_filters)
            for table_column in record_source.columns
            if not table_column.is_measure
        ],
        "since": chosen_filters.get("since", ""),
        "until": chosen_filters.get("until", ""),
    }


def _list_candidate_links(
    record_source: Source, chosen_filters: Mapping[str, Any], form_refusal: FormRefusal
) -> list[PageLink]:
    """Return the records that a refused name may mean, each leading to the list for it."""
    refused_filter_names = [
        field_name.removeprefix("filters.") for field_name in form_refusal.fields
    ]
    return [
        PageLink(
            f"{id_and_title_match['title']} ({id_and_title_match['id']})",
            make_list_address(
                record_source, {**chosen_filters, filter_name: id_and_title_match["id"]}
            ),
        )
        for filter_name in refused_filter_names
        if filter_name in SOURCE_NAME_BY_REFERENCE_FILTER
        for id_and_title_match in _ID_AND_TITLE_PATTERN.finditer(form_refusal.message)
    ]


def _make_filter_field(table_column: Column, chosen_filters: Mapping[str, Any]) -> dict[str, Any]:
    allowed_choices = (
        ("true", "false")
        if table_column.sql_type == "BOOLEAN"
        else tuple(table_column.choices or ())
    )
    chosen_value = chosen_filters.get(table_column.name, "")
    value_text = str(chosen_value).lower() if isinstance(chosen_value, bool) else str(chosen_value)
    return {
        "name": table_column.name,
        "label": format_identifier(table_column.name),
        "choices": allowed_choices,
        "value": value_text,
    }
