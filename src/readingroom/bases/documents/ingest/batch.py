"""Ingestion of many files: one is read while another is embedded, and a bad one stops none."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio

from readingroom.bases.documents.ingest.ingestion import Ingestion, list_file_outcomes
from readingroom.bases.documents.models import FileOutcome, FolderIngested
from readingroom.core.errors import InternalError, KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.ingest.private_copy import PrivateCopy, enter_copy_in_thread

logger = logging.getLogger(__name__)

_MAX_CONCURRENT_FILES = 3  # one file is embedded, one is read, and one has been read and waits


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A file to ingest: its name, how to open it, and its path if it lies in a folder of theirs."""

    file_name: str
    open_copy: Callable[[], AbstractContextManager[PrivateCopy]]
    file_path: str | None = None


class IngestBatch:
    """The ingestion of several files into one application."""

    def __init__(
        self,
        ingestion: Ingestion,
        application_ref: str,
        document_type: str | None,
        report_progress: ReportProgress,
    ) -> None:
        self._ingestion = ingestion
        self._application_ref = application_ref
        self._document_type = document_type
        self._report_progress = report_progress
        self._file_slots = anyio.Semaphore(_MAX_CONCURRENT_FILES)
        self._done_shares: list[float] = []
        """How much of each file is done, from 0 to 1."""

    async def ingest_files(self, batch_files: Sequence[BatchFile]) -> FolderIngested:
        """Ingest all files; the outcomes come in the order of the files."""
        self._done_shares = [0.0] * len(batch_files)
        outcomes_by_file_index: dict[int, list[FileOutcome]] = {}

        async def ingest_file_at_index(file_index: int) -> None:
            async with self._file_slots:
                outcomes_by_file_index[file_index] = await self._ingest_file(
                    file_index, batch_files[file_index]
                )
            file_status = outcomes_by_file_index[file_index][0].status
            progress_message = f"{batch_files[file_index].file_name}: {file_status}"
            await self._report_batch_progress(file_index, 1.0, progress_message)

        async with anyio.create_task_group() as task_group:
            for file_index in range(len(batch_files)):
                task_group.start_soon(ingest_file_at_index, file_index)
        ordered_outcomes = [
            file_outcome
            for file_index in range(len(batch_files))
            for file_outcome in outcomes_by_file_index[file_index]
        ]
        status_counts = Counter(file_outcome.status for file_outcome in ordered_outcomes)
        return FolderIngested(
            application_ref=self._application_ref,
            file_count=len(ordered_outcomes),
            ingested=status_counts["success"],
            already_ingested=status_counts["already_ingested"],
            skipped=status_counts["skipped"],
            failed=status_counts["error"],
            files=ordered_outcomes,
        )

    async def _ingest_file(self, file_index: int, batch_file: BatchFile) -> list[FileOutcome]:
        """Return the outcome for a file, then those for the files inside it."""

        async def report_file_progress(
            done_step_count: float, total_step_count: float | None, progress_message: str | None
        ) -> None:
            await self._report_batch_progress(
                file_index,
                done_step_count / total_step_count if total_step_count else 0.0,
                f"{batch_file.file_name}: {progress_message}",
            )

        try:
            async with enter_copy_in_thread(batch_file.open_copy()) as private_copy:
                ingest_outcome = await self._ingestion.ingest_document(
                    private_copy,
                    self._application_ref,
                    batch_file.file_path,
                    self._document_type,
                    report_file_progress,
                )
        except KnowledgeError as error:
            return [FileOutcome.from_error(batch_file.file_name, error)]
        except Exception as error:  # one bad file must not stop the others
            logger.error("a file of a folder could not be ingested", exc_info=error)
            internal_error = InternalError("It failed on our side; the server's log says why")
            return [FileOutcome.from_error(batch_file.file_name, internal_error)]
        return list_file_outcomes(batch_file.file_name, ingest_outcome)

    async def _report_batch_progress(
        self, file_index: int, done_share_of_file: float, progress_message: str
    ) -> None:
        self._done_shares[file_index] = done_share_of_file
        # A sum over all files, because they end in any order.
        await self._report_progress(
            sum(self._done_shares),
            len(self._done_shares),
            progress_message,
        )
