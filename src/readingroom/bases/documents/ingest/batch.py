"""Ingestion of many files: one is read while another is embedded, and a bad one stops none."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio

from readingroom.bases.documents.ingest.ingestion import Ingestion, list_outcomes
from readingroom.bases.documents.models import FileOutcome, FolderIngested
from readingroom.core.errors import InternalError, KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.ingest.private_copy import PrivateCopy, open_in_thread

logger = logging.getLogger(__name__)

_MAX_CONCURRENT_FILES = 3  # one file is embedded, one is read, and one has been read and waits


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A file to ingest: its name, how to open it, and its path if it lies in a folder of theirs."""

    file_name: str
    open_copy: Callable[[], AbstractContextManager[PrivateCopy]]
    file_path: str | None = None


class Batch:
    """The ingestion of several files into one application."""

    def __init__(
        self,
        ingestion: Ingestion,
        application_ref: str,
        document_type: str | None,
        report: ReportProgress,
    ) -> None:
        self._ingestion = ingestion
        self._application_ref = application_ref
        self._document_type = document_type
        self._report = report
        self._slots = anyio.Semaphore(_MAX_CONCURRENT_FILES)
        self._shares: list[float] = []
        """How much of each file is done, from 0 to 1."""

    async def run(self, files: Sequence[BatchFile]) -> FolderIngested:
        """Ingest all files; the outcomes come in the order of the files."""
        self._shares = [0.0] * len(files)
        outcomes: dict[int, list[FileOutcome]] = {}

        async def ingest(index: int) -> None:
            async with self._slots:
                outcomes[index] = await self._ingest_file(index, files[index])
            message = f"{files[index].file_name}: {outcomes[index][0].status}"
            await self._report_share(index, 1.0, message)

        async with anyio.create_task_group() as tasks:
            for index in range(len(files)):
                tasks.start_soon(ingest, index)
        ordered_outcomes = [outcome for index in range(len(files)) for outcome in outcomes[index]]
        counts = Counter(outcome.status for outcome in ordered_outcomes)
        return FolderIngested(
            application_ref=self._application_ref,
            file_count=len(ordered_outcomes),
            ingested=counts["success"],
            already_ingested=counts["already_ingested"],
            skipped=counts["skipped"],
            failed=counts["error"],
            files=ordered_outcomes,
        )

    async def _ingest_file(self, index: int, file: BatchFile) -> list[FileOutcome]:
        """Return the outcome for a file, then those for the files inside it."""

        async def report(done: float, total: float | None, message: str | None) -> None:
            await self._report_share(
                index, done / total if total else 0.0, f"{file.file_name}: {message}"
            )

        try:
            async with open_in_thread(file.open_copy()) as private_copy:
                outcome = await self._ingestion.ingest(
                    private_copy,
                    self._application_ref,
                    file.file_path,
                    self._document_type,
                    report,
                )
        except KnowledgeError as error:
            return [FileOutcome.from_error(file.file_name, error)]
        except Exception as error:  # one bad file must not stop the others
            logger.error("a file of a folder could not be ingested", exc_info=error)
            failure = InternalError("It failed on our side; the server's log says why")
            return [FileOutcome.from_error(file.file_name, failure)]
        return list_outcomes(file.file_name, outcome)

    async def _report_share(self, index: int, share: float, message: str) -> None:
        self._shares[index] = share
        # A sum over all files, because they end in any order.
        await self._report(sum(self._shares), len(self._shares), message)
