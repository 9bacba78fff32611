"""`/operations`: what runs, what failed, who calls, how long it takes; for operators."""

import datetime as dt
import platform
import shutil
import sqlite3
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio.to_thread

from readingroom import __version__
from readingroom.core import clock
from readingroom.core.errors import KnowledgeError
from readingroom.engine.embedding.weights import MODEL_NAME, has_weights
from readingroom.protocol.pages import BasePage, BasePages, PageRequest, RenderedPage, RunningWork
from readingroom.protocol.spec import KnowledgeBase
from readingroom.server.observe.history import CallHistory, CallSummary
from readingroom.server.pages.doctor import DoctorPages
from readingroom.server.settings import ServerSettings
from readingroom.storage.jobs.store import JobStore
from readingroom.storage.keys import KeyRing
from readingroom.web.charts import Chart, draw_sparkline
from readingroom.web.templates import format_seconds, render_template

_BYTES_PER_GIGABYTE = 10**9
_MAX_SHOWN_ITEMS = 10
"""Jobs and errors on the overview."""
_MAX_LISTED_JOBS = 200


class OperationsPages:
    """The pages for operators that need nothing but reading."""

    def __init__(
        self,
        knowledge_bases: Sequence[KnowledgeBase],
        settings: ServerSettings,
        job_store: JobStore,
        call_history: CallHistory,
        pages_of_bases: Sequence[BasePages],
        key_ring: KeyRing,
        doctor_pages: DoctorPages,
    ) -> None:
        self._bases = knowledge_bases
        self._settings = settings
        self._jobs = job_store
        self._history = call_history
        self._base_pages = pages_of_bases
        self._key_ring = key_ring
        self._doctor = doctor_pages

    def make_pages(self) -> list[BasePage]:
        """Return them."""
        return [
            BasePage(
                "/operations",
                self.show_overview,
                role="operator",
                menu_label="Operations",
                summary="What runs, what failed, who calls, and how long it takes.",
            ),
            BasePage("/operations/jobs", self.show_jobs, role="operator"),
            BasePage("/operations/errors", self.show_errors, role="operator"),
        ]

    async def show_jobs(self, request: PageRequest) -> RenderedPage:
        """Return the jobs that run, wait or have ended, the newest first."""
        background_jobs = await anyio.to_thread.run_sync(
            self._jobs.list_newest_jobs, _MAX_LISTED_JOBS
        )
        page_html = render_template(
            "jobs.html",
            jobs=background_jobs,
            work=await self._list_running_work(),
            format_moment=_format_utc_time,
        )
        return RenderedPage(
            "Jobs",
            page_html,
            data=[background_job.hide_question() for background_job in background_jobs],
        )

    async def show_errors(self, request: PageRequest) -> RenderedPage:
        """Return the last errors, and how many there were of each kind."""
        recent_errors = self._history.list_recent_errors()
        counts_by_name_and_code = Counter((error.name, error.code) for error in recent_errors)
        page_html = render_template(
            "errors.html",
            errors=[(_format_utc_time(error.at), error) for error in recent_errors],
            kinds=counts_by_name_and_code.most_common(20),
        )
        return RenderedPage("Errors", page_html, data=recent_errors)

    async def _list_running_work(self) -> list[RunningWork]:
        """Return what is being read or embedded and is no job."""
        return [
            work_entry
            for pages_of_base in self._base_pages
            for work_entry in await pages_of_base.list_running_work()
        ]

    async def show_overview(self, request: PageRequest) -> RenderedPage:
        """Return the state of the server on one page."""
        call_summaries = self._history.summarise_calls()
        background_jobs = await anyio.to_thread.run_sync(
            self._jobs.list_newest_jobs, _MAX_SHOWN_ITEMS
        )
        # What fits on the page; those of jobs and errors have more, and the log has all.
        all_errors = self._history.list_recent_errors()
        recent_errors = all_errors[:_MAX_SHOWN_ITEMS]
        base_readiness_rows = [await _check_base(knowledge_base) for knowledge_base in self._bases]
        machine_state = await anyio.to_thread.run_sync(_measure_machine, self._settings)
        newest_doctor_run = await self._doctor.find_newest_doctor_run()
        source_freshness_rows = [
            source_freshness
            for pages_of_base in self._base_pages
            for source_freshness in await pages_of_base.list_source_freshness()
        ]
        page_html = render_template(
            "operations.html",
            calls=[_make_call_table_row(call_summary) for call_summary in call_summaries[:40]],
            jobs=background_jobs,
            work=await self._list_running_work(),
            errors=[
                (_format_utc_time(recent_error.at), recent_error) for recent_error in recent_errors
            ],
            error_count=len(all_errors),
            states=base_readiness_rows,
            machine=machine_state,
            gigabyte=_BYTES_PER_GIGABYTE,
            uptime=format_seconds(clock.read_unix_seconds() - self._history.started_at),
            checkup=newest_doctor_run,
            checked_ago=format_seconds(clock.read_unix_seconds() - newest_doctor_run.job.created_at)
            if newest_doctor_run
            else "",
            freshness=source_freshness_rows,
            keys=self._key_ring.list_keys(),
            versions=_collect_versions(),
            request=request,
        )
        json_data: dict[str, Any] = {
            "calls": call_summaries,
            "errors": recent_errors,
            "jobs": [background_job.hide_question() for background_job in background_jobs],
            "work": await self._list_running_work(),
            "bases": {
                base_readiness.name: base_readiness.problem or "ready"
                for base_readiness in base_readiness_rows
            },
            "free_bytes": machine_state.free_bytes,
            "used_bytes": machine_state.data_folder_bytes,
            "model": machine_state.model_problem or "ready",
            "freshness": source_freshness_rows,
            "versions": _collect_versions(),
        }
        return RenderedPage("Operations", page_html, data=json_data)


@dataclass(frozen=True, slots=True)
class _CallTableRow:
    """A line of the table of calls."""

    summary: CallSummary
    chart: Chart
    calls_per_minute_text: str
    """The same numbers in words."""


@dataclass(frozen=True, slots=True)
class _BaseReadiness:
    """Whether a base can answer."""

    name: str
    title: str
    problem: str


async def _check_base(knowledge_base: KnowledgeBase) -> _BaseReadiness:
    try:
        await knowledge_base.check_ready()
    except KnowledgeError as error:
        return _BaseReadiness(knowledge_base.name, knowledge_base.title, error.message)
    return _BaseReadiness(knowledge_base.name, knowledge_base.title, "")


def _make_call_table_row(call_summary: CallSummary) -> _CallTableRow:
    busiest_count = max(call_summary.calls_per_minute)
    chart_finding_text = (
        f"{call_summary.total} calls of {call_summary.name} in the last hour, "
        f"at most {busiest_count} a minute"
    )
    call_chart = draw_sparkline(
        call_summary.calls_per_minute, chart_finding_text, ("Minute", "Calls")
    )
    minute_count = len(call_summary.calls_per_minute)
    counts_in_words = [
        f"{minute_count - 1 - minute_index} min ago {call_count}"
        for minute_index, call_count in enumerate(call_summary.calls_per_minute)
        if call_count
    ]
    return _CallTableRow(call_summary, call_chart, ", ".join(reversed(counts_in_words)))


def _format_utc_time(unix_seconds: float) -> str:
    return dt.datetime.fromtimestamp(unix_seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True, slots=True)
class _MachineState:
    """What the server stands on."""

    free_bytes: int
    data_folder_bytes: int
    model_problem: str
    """Why searches go by words only; empty while the model is there."""


def _measure_machine(settings: ServerSettings) -> _MachineState:
    data_folder_bytes = sum(
        _measure_file_bytes(data_path) for data_path in settings.data.rglob("*")
    )
    has_model = has_weights(settings.models_folder, settings.embedding_model_dir)
    model_problem = (
        "" if has_model else "not here: searches go by words (`readingroom model install`)"
    )
    return _MachineState(shutil.disk_usage(settings.data).free, data_folder_bytes, model_problem)


def _measure_file_bytes(file_path: Path) -> int:
    """Return the bytes of a plain file; 0 for anything else, also for what was just deleted."""
    try:
        file_status = file_path.lstat()
    except FileNotFoundError:
        return 0
    return file_status.st_size if stat.S_ISREG(file_status.st_mode) else 0


def _collect_versions() -> dict[str, str]:
    return {
        "Reading Room": __version__,
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        "MCP SDK": metadata.version("mcp"),
        "Embedding model": MODEL_NAME,
    }
