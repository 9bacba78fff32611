"""Records of the documents base as its answers show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readingroom.bases.documents.ids import format_doc_id
from readingroom.bases.documents.models import (
    ApplicationRecord,
    ChunkMetadata,
    DocumentHit,
    ListedDocument,
    OverviewDocument,
    OverviewType,
)
from readingroom.bases.documents.registry.records import (
    Application,
    DocumentRecord,
    StoredChunk,
    format_citation,
)

if TYPE_CHECKING:
    from readingroom.engine.index import ChunkHit


def to_listed_document(document_record: DocumentRecord) -> ListedDocument:
    """Return a document as lists show it."""
    return ListedDocument.model_validate(document_record, from_attributes=True)


def make_application_record(known_application: Application) -> ApplicationRecord:
    """Return an application's own record as answers show it."""
    return ApplicationRecord.model_validate(known_application, from_attributes=True)


def make_type_overview(
    document_type: str, document_records: Sequence[DocumentRecord]
) -> OverviewType:
    """Return the documents of one type among these."""
    matching_records = [
        document_record
        for document_record in document_records
        if document_record.document_type == document_type
    ]
    return OverviewType(
        document_type=document_type,
        document_count=len(matching_records),
        page_count=sum(document_record.page_count for document_record in matching_records),
        word_count=sum(document_record.total_words for document_record in matching_records),
        documents=[
            OverviewDocument(
                document_id=document_record.document_id,
                source_file=document_record.source_file,
                page_count=document_record.page_count,
                word_count=document_record.total_words,
                extraction_method=document_record.extraction_method,
                contains_drawings=document_record.contains_drawings,
                document_kind=document_record.document_kind,
                pages_without_text=list(document_record.blank_pages),
                id=format_doc_id(document_record.document_id),
            )
            for document_record in matching_records
        ],
    )


def make_document_hit(chunk: StoredChunk, chunk_hit: ChunkHit) -> DocumentHit:
    """Return a passage that a search found."""
    return DocumentHit(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        relevance_score=chunk_hit.relevance_score,
        metadata=ChunkMetadata(
            application_ref=chunk.application_ref,
            document_id=chunk.document_id,
            source_file=chunk.source_file,
            document_type=chunk.document_type,
            page_numbers=",".join(map(str, chunk.pages)),
            chunk_index=chunk.chunk_index,
            total_chunks=chunk.total_chunks,
            extraction_method=chunk.extraction_method,
            char_count=len(chunk.text),
            word_count=len(chunk.text.split()),
        ),
        citation=format_citation(chunk.source_file, chunk.pages),
        id=format_doc_id(chunk.document_id, chunk.pages[0]),
        score=chunk_hit.score,
        parts=chunk_hit.parts,
    )
