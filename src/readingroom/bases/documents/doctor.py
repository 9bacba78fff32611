"""Compares the registry with the chunks, the indexes and the files, and repairs differences."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from readingroom.bases.documents.models import DocumentsDiagnosis
from readingroom.bases.documents.registry.records import DocumentRecord
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.doctor import RepairableFinding


class DocumentsDoctor:
    """One check of the whole base; with `repair` it mends what it can."""

    def __init__(self, documents_service: DocumentsService, is_repairing: bool) -> None:
        self._service = documents_service
        self._should_repair = is_repairing

    async def diagnose_documents(self) -> DocumentsDiagnosis:
        """Check everything and return each difference with its fix."""
        document_store, ingestion = self._service.store, self._service.ingestion
        # Between two reads a change would look like a difference, so none may run meanwhile.
        async with ingestion.pause_changes():
            records_by_id = {
                document_record.document_id: document_record
                for document_record in await document_store.list_records()
            }
            chunk_counts_by_id = await document_store.count_chunks_by_document()
            indexed_chunk_counts = await document_store.count_indexed_chunks()
            interrupted_document_ids = [
                change_intent.body["document_id"]
                for change_intent in await ingestion.list_unfinished()
            ]
            document_ids_with_files = await ingestion.list_document_ids_with_files()
        document_findings = [
            *self._report_interrupted_changes(interrupted_document_ids),
            *self._report_orphan_data(chunk_counts_by_id, document_ids_with_files, records_by_id),
            *(
                document_finding
                for document_record in records_by_id.values()
                for document_finding in self._report_document_problems(
                    document_record, chunk_counts_by_id, document_ids_with_files
                )
            ),
            *self._report_index_difference(indexed_chunk_counts, chunk_counts_by_id.total()),
        ]
        return DocumentsDiagnosis(
            documents=len(records_by_id),
            chunks=chunk_counts_by_id.total(),
            complaints=[
                await document_finding.repair_and_report(self._should_repair)
                for document_finding in document_findings
            ],
        )

    def _report_interrupted_changes(
        self, interrupted_document_ids: list[str]
    ) -> Iterator[RepairableFinding]:
        for document_id in interrupted_document_ids:
            yield RepairableFinding(
                document_id,
                "an interrupted change could not be finished",
                "restart the server; its log says why it fails",
            )

    def _report_orphan_data(
        self,
        chunk_counts_by_id: Counter[str],
        document_ids_with_files: set[str],
        records_by_id: dict[str, DocumentRecord],
    ) -> Iterator[RepairableFinding]:
        for document_id in sorted(
            {*chunk_counts_by_id, *document_ids_with_files} - {*records_by_id}
        ):
            yield RepairableFinding(
                document_id,
                f"{chunk_counts_by_id[document_id]} chunks or a file belong to no registered "
                "document",
                "delete them",
                partial(self._service.ingestion.delete_orphan_document, document_id),
            )

    def _report_document_problems(
        self,
        document_record: DocumentRecord,
        chunk_counts_by_id: Counter[str],
        document_ids_with_files: set[str],
    ) -> Iterator[RepairableFinding]:
        has_file = document_record.document_id in document_ids_with_files
        chunk_count = chunk_counts_by_id[document_record.document_id]
        if chunk_count != document_record.chunk_count:
            yield RepairableFinding(
                document_record.document_id,
                f"the registry says {document_record.chunk_count} chunks, there are {chunk_count}",
                "ingest it again",
                # Without our copy there is nothing to ingest from.
                partial(self._service.reingest_document, document_record) if has_file else None,
            )
        if not has_file:
            yield RepairableFinding(
                document_record.document_id,
                "our copy of its file is missing, so its pages cannot be shown",
                "remove it and ingest it again",
            )

    def _report_index_difference(
        self, indexed_chunk_counts: tuple[int, int], chunk_count: int
    ) -> Iterator[RepairableFinding]:
        if indexed_chunk_counts != (chunk_count, chunk_count):
            yield RepairableFinding(
                "index",
                f"the indexes hold {indexed_chunk_counts} of {chunk_count} chunks",
                "rebuild them",
                self._service.store.rebuild_indexes,
            )
