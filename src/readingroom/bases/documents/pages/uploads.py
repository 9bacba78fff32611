"""Uploads from the console: files kept until a job has read them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio

from readingroom.bases.documents.ingest.batch import BatchFile
from readingroom.bases.documents.models import FileOutcome
from readingroom.bases.documents.service import DocumentsService
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.pages import SentFile
from readingroom.storage.jobs.runner import ReportJobProgress
from readingroom.web.templates import format_identifier

UPLOAD_JOB_KIND = "documents.upload"


class UploadJobs:
    """Reads the files that a form has left in a folder."""

    def __init__(self, documents_service: DocumentsService) -> None:
        self._service = documents_service

    async def run_job(
        self, job_arguments: Mapping[str, Any], report_percent: ReportJobProgress
    ) -> Mapping[str, Any]:
        """Ingest the files of one upload, and return the outcome for each.

        Begun again, it finds those that it has read already there.
        """
        job_folder = Path(job_arguments["folder"])
        if not await anyio.Path(job_folder).is_dir():
            raise RecordNotFound("The uploaded files are gone; send them again")

        async def report_batch_progress(
            done_file_count: float, total_file_count: float | None, progress_message: str | None
        ) -> None:
            await report_percent(
                100 * done_file_count / total_file_count if total_file_count else 0.0,
                progress_message or "",
            )

        batch_files = [
            BatchFile(
                moved_file_entry["name"],
                partial(
                    self._service.open_upload,
                    job_folder / moved_file_entry["stored_as"],
                    moved_file_entry["name"],
                ),
            )
            for moved_file_entry in job_arguments["files"]
        ]
        application_ref = job_arguments["application_ref"]
        ingest_report = await self._service.ingest_files(
            batch_files, application_ref, None, report_batch_progress
        )
        return {
            "link": make_application_address(application_ref),
            "link_label": f"Application {application_ref}",
            "headers": ["File", "Outcome", "Why"],
            "rows": [
                [
                    file_outcome.file,
                    _TEXT_BY_OUTCOME_STATUS[file_outcome.status],
                    _explain_outcome(file_outcome),
                ]
                for file_outcome in ingest_report.files
            ],
        }


_TEXT_BY_OUTCOME_STATUS = {
    "success": "read",
    "already_ingested": "already there",
    "skipped": "skipped",
    "error": "failed",
}


def _explain_outcome(file_outcome: FileOutcome) -> str:
    if file_outcome.same_as and file_outcome.same_as != file_outcome.file:
        return f"It is the same, byte for byte, as {file_outcome.same_as}, which is kept"
    return file_outcome.message or format_identifier(file_outcome.reason or "")


def move_sent_files(sent_files: Sequence[SentFile], job_folder: Path) -> list[dict[str, str]]:
    """Move the files of a form to a folder that outlives the request; return how they lie there."""
    moved_file_entries = []
    for file_index, sent_file in enumerate(sent_files):
        stored_file_name = str(file_index)
        sent_file.path.rename(job_folder / stored_file_name)
        # A browser may send a path; only its last part is the file's name.
        file_name = sent_file.file_name.replace("\\", "/").rpartition("/")[2]
        moved_file_entries.append({"name": file_name, "stored_as": stored_file_name})
    return moved_file_entries


def make_application_address(application_ref: str) -> str:
    """Return the address of an application's page."""
    return f"/applications/view?ref={quote(application_ref, safe='')}"
