"""Compares the registry with the chunks, the indexes and the files, and mends what disagrees."""

from collections import Counter
from collections.abc import Iterator
from functools import partial

from readingroom.bases.documents.models import Diagnosis
from readingroom.bases.documents.records import DocumentRecord
from readingroom.bases.documents.service import DocumentsService
from readingroom.protocol.doctor import Finding


class Checkup:
    """One look at the whole base; `repair` mends what it finds."""

    def __init__(self, service: DocumentsService, repair: bool) -> None:
        self._service = service
        self._repair = repair

    async def diagnose(self) -> Diagnosis:
        store, ingestion = self._service.store, self._service.ingestion
        async with ingestion.paused():  # else it changes while we look
            records = {one.document_id: one for one in await store.documents()}
            census = await store.census()
            sizes = await store.index_sizes()
            unfinished = [intent.body["document_id"] for intent in await ingestion.unfinished()]
            kept = await ingestion.kept()
        findings = [
            *self._interrupted(unfinished),
            *self._orphans(census, kept, records),
            *(one for record in records.values() for one in self._document(record, census, kept)),
            *self._indexes(sizes, census.total()),
        ]
        return Diagnosis(
            documents=len(records),
            chunks=census.total(),
            complaints=[await one.check(self._repair) for one in findings],
        )

    def _interrupted(self, unfinished: list[str]) -> Iterator[Finding]:
        for document_id in unfinished:
            yield Finding(
                document_id,
                "an interrupted change could not be finished",
                "restart the server; its log says why it fails",
            )

    def _orphans(
        self, census: Counter[str], kept: set[str], records: dict[str, DocumentRecord]
    ) -> Iterator[Finding]:
        for document_id in sorted({*census, *kept} - {*records}):
            yield Finding(
                document_id,
                f"{census[document_id]} chunks or a file belong to no registered document",
                "delete them",
                partial(self._service.ingestion.sweep, document_id),
            )

    def _document(
        self, record: DocumentRecord, census: Counter[str], kept: set[str]
    ) -> Iterator[Finding]:
        there = record.document_id in kept
        held = census[record.document_id]
        if held != record.chunk_count:
            yield Finding(
                record.document_id,
                f"the registry says {record.chunk_count} chunks, there are {held}",
                "ingest it again",
                partial(self._service.ingest_again, record) if there else None,
            )
        if not there:
            yield Finding(
                record.document_id,
                "our copy of its file is missing, so its pages cannot be shown",
                "remove it and ingest it again",
            )

    def _indexes(self, sizes: tuple[int, int], total: int) -> Iterator[Finding]:
        if sizes != (total, total):
            yield Finding(
                "index",
                f"the indexes hold {sizes} of {total} chunks",
                "make them anew",
                self._service.store.rebuild,
            )
