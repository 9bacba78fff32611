"""Many files at once: while one is embedded the next is read, and a bad one stops nobody."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio

from readingroom.bases.documents.ingestion import Ingestion, Outcome
from readingroom.bases.documents.models import FileOutcome, FolderIngested
from readingroom.core.errors import Internal, KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.ingest.intake import Intake, open_in_thread

logger = logging.getLogger(__name__)

_AT_ONCE = 3  # one is embedded, one is read, one has been read and waits


@dataclass(frozen=True, slots=True)
class Offered:
    """A file to be ingested: how it is called, how it is opened, and where it lies, if anywhere."""

    name: str
    open: Callable[[], AbstractContextManager[Intake]]
    file_path: str | None = None


class Batch:
    """Files for one application."""

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
        self._seats = anyio.Semaphore(_AT_ONCE)
        self._shares: list[float] = []

    async def run(self, files: Sequence[Offered]) -> FolderIngested:
        """Ingest them all; the outcomes come in the order of the files."""
        self._shares = [0.0] * len(files)
        outcomes: dict[int, FileOutcome] = {}

        async def ingest(place: int) -> None:
            async with self._seats:
                outcomes[place] = await self._outcome(place, files[place])
            await self._tell(place, 1.0, f"{files[place].name}: {outcomes[place].status}")

        async with anyio.create_task_group() as tasks:
            for place in range(len(files)):
                tasks.start_soon(ingest, place)
        told = [outcomes[place] for place in range(len(files))]
        counts = Counter(one.status for one in told)
        return FolderIngested(
            application_ref=self._application_ref,
            file_count=len(told),
            ingested=counts["success"],
            already_ingested=counts["already_ingested"],
            skipped=counts["skipped"],
            failed=counts["error"],
            files=told,
        )

    async def _outcome(self, place: int, offered: Offered) -> FileOutcome:
        async def report(done: float, total: float | None, message: str | None) -> None:
            await self._tell(place, done / total if total else 0.0, f"{offered.name}: {message}")

        try:
            async with open_in_thread(offered.open()) as intake:
                found = await self._ingestion.ingest(
                    intake,
                    self._application_ref,
                    offered.file_path,
                    self._document_type,
                    report,
                )
        except KnowledgeError as error:
            return _failed(offered, error)
        except Exception as error:  # one bad file never stops the rest
            logger.error("a file of a folder could not be ingested", exc_info=error)
            return _failed(offered, Internal("It failed on our side; the server's log says why"))
        return _told(offered, found)

    async def _tell(self, place: int, share: float, message: str) -> None:
        self._shares[place] = share
        await self._report(sum(self._shares), len(self._shares), message)


def _failed(offered: Offered, error: KnowledgeError) -> FileOutcome:
    return FileOutcome(
        file=offered.name, status="error", error_type=error.code, message=error.message
    )


def _told(offered: Offered, found: Outcome) -> FileOutcome:
    said = found.model_dump(include=set(FileOutcome.model_fields))
    return FileOutcome(file=offered.name, **said)
