"""`/operations/doctor`: the checks of `readingroom doctor`, begun from a page."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from readingroom.protocol.pages import BasePage, PageRequest, SeeOther
from readingroom.server.errors import DoctorFailed
from readingroom.server.settings import ServerSettings
from readingroom.storage.jobs.runner import JobHandler, ReportJobProgress
from readingroom.storage.jobs.store import BackgroundJob, JobStore

DOCTOR_JOB_KIND = "server.doctor"
_MAX_DOCTOR_SECONDS = 600
_FINDINGS_TABLE_HEADERS = ["What", "Problem", "What to do"]


@dataclass(frozen=True, slots=True)
class DoctorRun:
    """What the last check found."""

    job: BackgroundJob

    @property
    def has_no_problems(self) -> bool:
        """Whether nothing keeps anything from working; notes do not count."""
        return self.job.state == "done" and not self.job.outcome.get("complaint_count")


class DoctorPages:
    """The form that begins the checks, and the job that runs them."""

    def __init__(self, settings: ServerSettings, job_store: JobStore) -> None:
        self._settings = settings
        self._jobs = job_store

    def make_pages(self) -> list[BasePage]:
        """Return the page that begins a check."""
        return [
            BasePage("/operations/doctor", self.begin_doctor_run, method="POST", role="operator")
        ]

    def make_job_handlers(self) -> dict[str, JobHandler]:
        """Return the handler of the checks, by the kind of job."""
        return {DOCTOR_JOB_KIND: self.run_checks}

    async def begin_doctor_run(self, request: PageRequest) -> SeeOther:
        """Begin the checks, or lead to those that are running."""
        newest_doctor_run = await self.find_newest_doctor_run()
        if newest_doctor_run is None or newest_doctor_run.job.has_ended:
            add_doctor_job = partial(
                self._jobs.add_job, DOCTOR_JOB_KIND, "Check of the data and the machine", {}
            )
            background_job = await anyio.to_thread.run_sync(
                partial(add_doctor_job, caller_id=request.visitor.name)
            )
        else:
            background_job = newest_doctor_run.job
        return SeeOther(f"/jobs/{background_job.id}")

    async def find_newest_doctor_run(self) -> DoctorRun | None:
        """Return the newest check, also one that runs; None before the first."""
        newest_jobs = await anyio.to_thread.run_sync(
            self._jobs.list_newest_jobs, 1, DOCTOR_JOB_KIND
        )
        return DoctorRun(newest_jobs[0]) if newest_jobs else None

    async def run_checks(
        self, job_arguments: Mapping[str, Any], report_percent: ReportJobProgress
    ) -> Mapping[str, Any]:
        """Run the command in a process of its own and return its findings as a table."""
        await report_percent(10, "checking")
        # The command itself: it asks this server about the bases that it owns.
        command_line = [sys.executable, "-m", "readingroom", "doctor", "--json"]
        command_line += ["--data", str(self._settings.data)]
        doctor_report = _parse_doctor_report(await _run_doctor_command(command_line))
        complaint_entries, note_entries = doctor_report["complaints"], doctor_report["notes"]
        return {
            "link": "/operations",
            "link_label": "Operations",
            "headers": _FINDINGS_TABLE_HEADERS,
            "rows": [_make_finding_row(finding_entry, "") for finding_entry in complaint_entries]
            + [_make_finding_row(finding_entry, "note: ") for finding_entry in note_entries]
            or [["everything", "none was found", ""]],
            "complaint_count": len(complaint_entries),
            "checked": doctor_report["checked"],
        }


async def _run_doctor_command(command_line: list[str]) -> bytes:
    with anyio.move_on_after(_MAX_DOCTOR_SECONDS):
        doctor_process = await anyio.run_process(
            command_line, check=False, stdin=subprocess.DEVNULL
        )
        return doctor_process.stdout
    raise DoctorFailed(f"The check did not end within {_MAX_DOCTOR_SECONDS} seconds")


def _parse_doctor_report(json_output: bytes) -> dict[str, Any]:
    try:
        doctor_report: dict[str, Any] = json.loads(json_output)
    except ValueError as error:
        raise DoctorFailed("The check ended without a result; run `readingroom doctor`") from error
    return doctor_report


def _make_finding_row(finding_entry: Mapping[str, Any], problem_prefix: str) -> list[str]:
    return [
        finding_entry["subject"],
        problem_prefix + finding_entry["problem"],
        finding_entry["fix"],
    ]
