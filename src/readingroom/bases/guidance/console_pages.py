"""The guidance base's page: a search, and what the Commission changed since a day."""

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any

from readingroom.bases.guidance.models import Changes, RecentChanges, SearchGuidance, SearchResults
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.tools import make_call_context
from readingroom.core import clock
from readingroom.core.dates import parse_day
from readingroom.core.errors import validate_model
from readingroom.protocol.pages import BasePage, BasePages, PageRequest, RenderedPage, ToolExample
from readingroom.storage.jobs.store import JobStore
from readingroom.web.templates import render_template

_render = partial(render_template, folder=Path(__file__).parent / "templates")
_LOOK_BACK = dt.timedelta(days=365)
_RESULTS_PER_PAGE = 20


def make_pages(service: GuidanceService, jobs: JobStore) -> BasePages:
    """Return the page of the guidance base."""
    page = BasePage(
        "/guidance",
        partial(_show_guidance, service),
        menu_label="Guidance",
        summary="Charity Commission guidance: what is current, withdrawn, or has changed.",
    )
    return BasePages([page])


async def _show_guidance(service: GuidanceService, request: PageRequest) -> RenderedPage:
    """Return what a search finds, or what changed since a day."""
    query = request.get("q")
    since = request.get("since")
    day = parse_day(since) if since else clock.now().date() - _LOOK_BACK
    context = make_call_context(request.call)
    answer: SearchResults | Changes
    if query:
        arguments: dict[str, Any] = {"query": query, "page_size": _RESULTS_PER_PAGE}
        answer = await service.search(validate_model(SearchGuidance, arguments), context)
        example = ToolExample("search_guidance", {"query": query})
    else:
        arguments = {"since": day, "page_size": _RESULTS_PER_PAGE}
        answer = await service.list_changes(validate_model(RecentChanges, arguments), context)
        example = ToolExample("recent_changes", {"since": day.isoformat()})
    results = answer.results if isinstance(answer, SearchResults) else answer.changes
    body = _render(
        "guidance.html", query=query, day=day, answer=answer, results=results, cache=answer.cache
    )
    title = f"Guidance: {query}" if query else f"Guidance changed since {day}"
    return RenderedPage(title, body, data=answer, tool_example=example)
