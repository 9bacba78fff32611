"""The guidance base's pages: a search, what the Commission changed, and what is kept here."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import anyio.to_thread

from readingroom.bases.guidance.models import Changes, RecentChanges, SearchGuidance, SearchResults
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.store import KeptCopy
from readingroom.bases.guidance.tools import make_call_context
from readingroom.core import clock
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageLink,
    PageRequest,
    RecordPageExtras,
    RenderedPage,
    SourceFreshness,
    ToolExample,
)
from readingroom.protocol.search import DeskRecord, make_record_page_path
from readingroom.storage.jobs.store import JobStore
from readingroom.web.templates import format_seconds, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")
_CHANGES_PERIOD = dt.timedelta(days=365)
_RESULTS_PER_PAGE = 20
_MAX_SHOWN_COPIES = 100


def make_pages(guidance_service: GuidanceService, job_store: JobStore) -> BasePages:
    """Return the pages of the guidance base."""
    base_pages = [
        BasePage(
            "/guidance",
            partial(_show_guidance, guidance_service),
            menu_label="Guidance",
            summary="Charity Commission guidance: what is current, withdrawn, or has changed.",
        ),
        BasePage("/guidance/copies", partial(_show_kept_copies, guidance_service)),
    ]
    return BasePages(
        base_pages,
        build_record_page_extras=_build_record_page_extras,
        list_source_freshness=partial(_list_source_freshness, guidance_service),
    )


async def _build_record_page_extras(
    request: PageRequest, desk_record: DeskRecord
) -> RecordPageExtras:
    """Return how fresh a page is, and the way to what else was changed since."""
    page_facts: list[tuple[str, str]] = []
    if cache_state := desk_record.record.get("cache"):
        age_text, lifetime_text = (
            format_seconds(cache_state["age_s"]),
            format_seconds(cache_state["ttl_s"]),
        )
        freshness_text = f"asked of GOV.UK {age_text} ago; counts as fresh for {lifetime_text}"
        if cache_state["stale"]:
            freshness_text += "; older than that, because GOV.UK does not answer"
        page_facts.append(("Freshness", freshness_text))
    related_links = [PageLink("Guidance that is kept here", "/guidance/copies")]
    updated_day = str(desk_record.record.get("public_updated_at") or "")[:10]
    if updated_day:
        related_links.insert(
            0, PageLink("What else has changed since then", f"/guidance?since={updated_day}")
        )
    breadcrumb_links = [PageLink("Guidance", "/guidance")]
    return RecordPageExtras(trail=breadcrumb_links, related=related_links, facts=page_facts)


async def _show_kept_copies(
    guidance_service: GuidanceService, request: PageRequest
) -> RenderedPage:
    """Return the pages that are kept here, each with its age against how long it is fresh."""
    now_seconds = clock.read_unix_seconds()
    shown_copies = [
        _ShownCopy.from_kept_copy(kept_copy, now_seconds)
        for kept_copy in guidance_service.list_kept_copies()[:_MAX_SHOWN_COPIES]
    ]
    shown_library = await anyio.to_thread.run_sync(
        _make_shown_library, guidance_service, now_seconds
    )
    outage_text = guidance_service.describe_outage()
    body_html = _render(
        "copies.html", copies=shown_copies, library=shown_library, outage=outage_text
    )
    return RenderedPage(
        "Guidance that is kept here",
        body_html,
        data={"cached": shown_copies, "offline": shown_library, "outage": outage_text},
        tool_example=ToolExample("get_source_metadata", {"path": shown_copies[0].path})
        if shown_copies
        else None,
    )


async def _list_source_freshness(guidance_service: GuidanceService) -> list[SourceFreshness]:
    now_seconds = clock.read_unix_seconds()
    shown_copies = [
        _ShownCopy.from_kept_copy(kept_copy, now_seconds)
        for kept_copy in guidance_service.list_kept_copies()
    ]
    stale_count = sum(not shown_copy.is_fresh for shown_copy in shown_copies)
    freshness_detail = "none was read since the start"
    if shown_copies:
        oldest_copy = max(shown_copies, key=lambda shown_copy: shown_copy.age_seconds)
        freshness_detail = (
            f"{len(shown_copies)} pages, {stale_count} to be asked for again; "
            f"oldest {oldest_copy.age_text}"
        )
    if outage_text := guidance_service.describe_outage():
        freshness_detail = f"{outage_text}; {freshness_detail}"
    freshness_rows = [SourceFreshness("Guidance, read live", "/guidance/copies", freshness_detail)]
    shown_library = await anyio.to_thread.run_sync(
        _make_shown_library, guidance_service, now_seconds
    )
    if shown_library:
        source_title, freshness_detail = (
            "Guidance, offline copy",
            f"{shown_library.page_count:,} pages",
        )
        freshness_rows.append(
            SourceFreshness(
                source_title, "/guidance/copies", freshness_detail, shown_library.synced_at or None
            )
        )
    return freshness_rows


@dataclass(frozen=True, slots=True)
class _ShownCopy:
    """A kept page as a line of a table."""

    path: str
    title: str
    href: str
    updated_at: str
    is_withdrawn: bool
    age_seconds: float
    ttl_seconds: float

    @classmethod
    def from_kept_copy(cls, kept_copy: KeptCopy, now_seconds: float) -> "_ShownCopy":
        return cls(
            kept_copy.path,
            kept_copy.title,
            make_record_page_path(f"guidance:{kept_copy.path}"),
            kept_copy.public_updated_at or "",
            kept_copy.is_withdrawn,
            max(0.0, now_seconds - kept_copy.fetched_at),
            kept_copy.ttl_seconds,
        )

    @property
    def is_fresh(self) -> bool:
        """Whether it is shown without asking GOV.UK again."""
        return self.age_seconds <= self.ttl_seconds

    @property
    def age_text(self) -> str:
        return format_seconds(self.age_seconds)

    @property
    def lifetime_text(self) -> str:
        """How long it counts as fresh."""
        return format_seconds(self.ttl_seconds)


@dataclass(frozen=True, slots=True)
class _ShownLibrary:
    """The offline copy as a page shows it."""

    page_count: int
    withdrawn_count: int
    pending_count: int
    synced_at: str
    """A day; empty before the first sync has ended."""
    pages: Sequence[tuple[str, str, bool, str]]
    """The path, its page here, whether it is withdrawn, and how long ago it was checked."""


def _make_shown_library(
    guidance_service: GuidanceService, now_seconds: float
) -> _ShownLibrary | None:
    """Return the offline copy, of which the first pages are listed; None where there is none."""
    if guidance_service.offline is None or not guidance_service.offline.library.has_database:
        return None
    library_status = guidance_service.offline.library.read_status()
    stored_pages = islice(guidance_service.offline.library.iterate_pages(), _MAX_SHOWN_COPIES)
    return _ShownLibrary(
        library_status.pages,
        library_status.withdrawn,
        library_status.pending,
        dt.datetime.fromtimestamp(library_status.synced_at, dt.UTC).date().isoformat()
        if library_status.synced_at
        else "",
        [
            (
                stored_page.path,
                make_record_page_path(f"guidance:{stored_page.path}"),
                stored_page.is_withdrawn,
                format_seconds(now_seconds - stored_page.checked_at),
            )
            for stored_page in stored_pages
        ],
    )


async def _show_guidance(guidance_service: GuidanceService, request: PageRequest) -> RenderedPage:
    """Return what a search finds, or what changed since a day."""
    query_text = request.get_parameter("q")
    since_text = request.get_parameter("since")
    since_day = parse_day(since_text) if since_text else clock.now().date() - _CHANGES_PERIOD
    call_context = make_call_context(request.tool_context)
    page_number = _read_page_number(request)
    paging_arguments = {"page": page_number, "page_size": _RESULTS_PER_PAGE}
    shown_answer: SearchResults | Changes
    if query_text:
        arguments: dict[str, Any] = {**paging_arguments, "query": query_text}
        shown_answer = await guidance_service.search(
            validate_model(SearchGuidance, arguments), call_context
        )
        tool_example = ToolExample("search_guidance", {"query": query_text})
    else:
        arguments = {**paging_arguments, "since": since_day}
        shown_answer = await guidance_service.list_changes(
            validate_model(RecentChanges, arguments), call_context
        )
        tool_example = ToolExample("recent_changes", {"since": since_day.isoformat()})
    shown_hits = (
        shown_answer.results if isinstance(shown_answer, SearchResults) else shown_answer.changes
    )
    body_html = _render(
        "guidance.html",
        query=query_text,
        day=since_day,
        answer=shown_answer,
        results=shown_hits,
        cache=shown_answer.cache,
        outage=guidance_service.describe_outage(),
        next_address=_make_next_page_address(request, page_number, shown_answer.total),
    )
    page_title = f"Guidance: {query_text}" if query_text else f"Guidance changed since {since_day}"
    return RenderedPage(page_title, body_html, data=shown_answer, tool_example=tool_example)


def _read_page_number(request: PageRequest) -> int:
    """Return which page of results is wanted. Raise InvalidArguments."""
    page_number_text = request.get_parameter("page") or "1"
    if not (page_number_text.isdecimal() and len(page_number_text) <= 4):
        raise InvalidArguments([{"field": "page", "message": "must be a number, from 1"}])
    return int(page_number_text)


def _make_next_page_address(request: PageRequest, page_number: int, hit_count: int) -> str | None:
    """Return the address of the next page of results; None on the last."""
    if page_number * _RESULTS_PER_PAGE >= hit_count:
        return None
    form_values = {param_name: request.get_parameter(param_name) for param_name in ("q", "since")}
    non_empty_values = {
        param_name: param_value for param_name, param_value in form_values.items() if param_value
    }
    return f"/guidance?{urlencode({**non_empty_values, 'page': page_number + 1})}"
