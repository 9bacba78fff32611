"""`/operations`: what runs, what failed, who calls, how long it takes; for operators."""

import datetime as dt
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from readingroom.core import clock
from readingroom.core.errors import KnowledgeError
from readingroom.protocol.pages import BasePage, PageRequest, RenderedPage
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.observe.history import CallHistory, CallSummary
from readingroom.server.settings import ServerSettings
from readingroom.storage.jobs.store import JobStore
from readingroom.web.charts import Chart, draw_sparkline
from readingroom.web.templates import render_template

_GIGABYTE = 10**9


class OperationsPages:
    """The pages for operators that need nothing but reading."""

    def __init__(
        self,
        bases: Sequence[KnowledgeBase],
        settings: ServerSettings,
        jobs: JobStore,
        history: CallHistory,
    ) -> None:
        self._bases = bases
        self._settings = settings
        self._jobs = jobs
        self._history = history

    def make_pages(self) -> list[BasePage]:
        """Return them."""
        return [
            BasePage(
                "/operations",
                self.show_overview,
                role="operator",
                menu_label="Operations",
                summary="What runs, what failed, who calls, and how long it takes.",
            )
        ]

    async def show_overview(self, request: PageRequest) -> RenderedPage:
        """Return the state of the server on one page."""
        calls = self._history.summarise()
        jobs = await anyio.to_thread.run_sync(self._jobs.list_newest, 20)
        errors = self._history.list_errors()[:20]
        states = [await _check_base(base) for base in self._bases]
        disk = await anyio.to_thread.run_sync(shutil.disk_usage, self._settings.data)
        body = render_template(
            "operations.html",
            calls=[_ShownCalls(summary, _draw_calls(summary)) for summary in calls[:40]],
            jobs=jobs,
            errors=[(_format_time(error.at), error) for error in errors],
            states=states,
            free_gigabytes=disk.free / _GIGABYTE,
            uptime=_format_duration(clock.unix_seconds() - self._history.started_at),
        )
        data: dict[str, Any] = {
            "calls": calls,
            "errors": errors,
            "jobs": [job.hide_question() for job in jobs],
            "bases": {state.name: state.problem or "ready" for state in states},
            "free_bytes": disk.free,
        }
        return RenderedPage("Operations", body, data=data)


@dataclass(frozen=True, slots=True)
class _ShownCalls:
    """A line of the table of calls."""

    summary: CallSummary
    chart: Chart


@dataclass(frozen=True, slots=True)
class _BaseState:
    """Whether a base can answer."""

    name: str
    title: str
    problem: str


async def _check_base(base: KnowledgeBase) -> _BaseState:
    try:
        await base.check_ready()
    except KnowledgeError as error:
        return _BaseState(base.name, base.title, error.message)
    return _BaseState(base.name, base.title, "")


def _draw_calls(summary: CallSummary) -> Chart:
    finding = f"{summary.total} calls of {summary.name} in the last hour"
    return draw_sparkline(summary.by_minute, finding, ("Minute", "Calls"))


def _format_time(seconds: float) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%H:%M:%S")


def _format_duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} days"
