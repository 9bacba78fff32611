"""The operator's commands on the documents base, run here or by the process that owns its folder.

A file is handed over as a copy in that folder: the owner may not be allowed to read the caller's.
"""

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from readingroom.bases.documents.backup import (
    BACKUP_FILE_NAME_PATTERN,
    restore_backup,
    write_backup,
)
from readingroom.bases.documents.doctor import DocumentsDoctor
from readingroom.bases.documents.ids import ApplicationRef
from readingroom.bases.documents.ingest.batch import BatchFile
from readingroom.bases.documents.models import (
    ApplicationList,
    ApplicationOverview,
    ApplicationSet,
    ChosenDocumentType,
    DocumentHits,
    DocumentList,
    DocumentsDiagnosis,
    DocumentText,
    FolderIngested,
    GetDocumentText,
    ListIngestedDocuments,
    Overview,
    RemovedDocument,
    RemoveDocument,
    SearchApplicationDocs,
    SetApplication,
)
from readingroom.bases.documents.service import DocumentsService
from readingroom.bases.documents.settings import DocumentsSettings
from readingroom.core.progress import ReportProgress
from readingroom.core.settings import RoomSettings
from readingroom.protocol.backup import BackupCounts, OwnerBackup, ReadBackup, WriteBackup
from readingroom.protocol.command import Command, RunCommand
from readingroom.protocol.doctor import Complaint
from readingroom.storage.handover import HANDOVER_FOLDER_NAME, HandoverName, open_handed_over_file


class _DocumentsCommand(Command):
    base: ClassVar[str] = "documents"


class HandedFile(BaseModel):
    """A file that was handed over, under the name it had."""

    model_config = ConfigDict(defer_build=True)

    name: str = Field(min_length=1, max_length=4096)
    copied: HandoverName


class IngestFiles(_DocumentsCommand):
    """Ingest files into one application, and wait until all of it can be searched."""

    name: ClassVar[str] = "documents.ingest"
    application_ref: ApplicationRef
    document_type: ChosenDocumentType = None
    files: list[HandedFile]

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> FolderIngested:
        async with AsyncExitStack() as open_handovers:
            batch_files = []
            for handed_file in self.files:
                handed_copy_path = await open_handovers.enter_async_context(
                    open_handed_over_file(documents_service.folder, handed_file.copied)
                )
                # Opened by the batch when its turn comes: hundreds of files would exhaust
                # descriptors.
                batch_files.append(
                    BatchFile(
                        handed_file.name,
                        partial(documents_service.open_upload, handed_copy_path, handed_file.name),
                    )
                )
            return await documents_service.ingest_files(
                batch_files, self.application_ref, self.document_type, report_progress
            )


class ListDocuments(_DocumentsCommand):
    """List the documents of an application."""

    name: ClassVar[str] = "documents.list"
    reads_only: ClassVar[bool] = True
    question: ListIngestedDocuments

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> DocumentList:
        return await documents_service.list_documents(self.question)


class ListApplications(_DocumentsCommand):
    """List every application."""

    name: ClassVar[str] = "documents.applications"
    reads_only: ClassVar[bool] = True

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> ApplicationList:
        return await documents_service.list_applications()


class SearchDocuments(_DocumentsCommand):
    """Search the documents."""

    name: ClassVar[str] = "documents.search"
    reads_only: ClassVar[bool] = True
    question: SearchApplicationDocs

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> DocumentHits:
        return await documents_service.search_documents(self.question)


class ReadDocument(_DocumentsCommand):
    """Return a document's text."""

    name: ClassVar[str] = "documents.text"
    reads_only: ClassVar[bool] = True
    question: GetDocumentText

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> DocumentText:
        return await documents_service.get_text(self.question)


class DropDocument(_DocumentsCommand):
    """Remove a document."""

    name: ClassVar[str] = "documents.remove"
    question: RemoveDocument

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> RemovedDocument:
        return await documents_service.remove_document(self.question)


class DescribeApplication(_DocumentsCommand):
    """Update an application's record."""

    name: ClassVar[str] = "documents.application"
    question: SetApplication

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> ApplicationSet:
        return await documents_service.set_application(self.question)


class ShowApplication(_DocumentsCommand):
    """Return an application with its documents by type."""

    name: ClassVar[str] = "documents.overview"
    reads_only: ClassVar[bool] = True
    question: ApplicationOverview

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> Overview:
        return await documents_service.get_overview(self.question)


class CheckDocuments(_DocumentsCommand):
    """Compare registry, chunks, indexes and files."""

    name: ClassVar[str] = "documents.doctor"
    repair: bool = False

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> DocumentsDiagnosis:
        return await DocumentsDoctor(documents_service, self.repair).diagnose_documents()


class BackUpDocuments(_DocumentsCommand, WriteBackup):
    """Write a backup of the whole base into the handover folder."""

    name: ClassVar[str] = "documents.backup"

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> BackupCounts:
        return await write_backup(
            documents_service, documents_service.folder / HANDOVER_FOLDER_NAME / self.folder
        )


class RestoreDocuments(_DocumentsCommand, ReadBackup):
    """Fill an empty base from a backup in the handover folder."""

    name: ClassVar[str] = "documents.restore"

    async def run(
        self, documents_service: DocumentsService, report_progress: ReportProgress
    ) -> BackupCounts:
        backup_folder = documents_service.folder / HANDOVER_FOLDER_NAME / self.folder
        return await restore_backup(documents_service, backup_folder, Path(self.home), self.replace)


# A restore is not among them: it runs on a folder that no server owns.
COMMANDS: tuple[type[Command], ...] = (
    IngestFiles,
    ListDocuments,
    ListApplications,
    SearchDocuments,
    ReadDocument,
    DropDocument,
    DescribeApplication,
    ShowApplication,
    CheckDocuments,
    BackUpDocuments,
)


class _DocumentsBackup(OwnerBackup):
    def relocate_paths(self, settings: RoomSettings, data_directory: Path) -> dict[str, Any]:
        """A store outside of the data directory stays where it is."""
        assert isinstance(settings, DocumentsSettings)
        chroma_directory = settings.chroma_persist_dir
        if chroma_directory and Path(chroma_directory).is_relative_to(settings.data):
            return {
                "chroma_persist_dir": str(
                    data_directory / Path(chroma_directory).relative_to(settings.data)
                )
            }
        return {}


def _has_documents(run_command: RunCommand, settings: RoomSettings) -> bool:
    applications = run_command(ListApplications(), settings)["applications"]
    return any(application["document_count"] for application in applications)


BACKUP = _DocumentsBackup(
    "documents", BackUpDocuments, RestoreDocuments, BACKUP_FILE_NAME_PATTERN, _has_documents
)


def run_doctor(
    settings: RoomSettings, is_repairing: bool, run_command: RunCommand
) -> list[Complaint]:
    """Return what the stores of the base disagree about; with `is_repairing`, mend what can be."""
    diagnosis_json = run_command(CheckDocuments(repair=is_repairing), settings)
    return [
        Complaint.model_validate(complaint_json) for complaint_json in diagnosis_json["complaints"]
    ]
