"""Records of the documents base as its answers show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from readingroom.bases.documents.ids import format_doc_id
from readingroom.bases.documents.models import (
    ApplicationRecord,
    ChunkMetadata,
    DocumentHit,
    EmptyReason,
    ListedDocument,
    OverviewDocument,
    OverviewType,
)
from readingroom.bases.documents.registry.records import (
    Application,
    DocumentRecord,
    StoredChunk,
    format_citation,
    join_chunk_texts,
)
from readingroom.core.modes import Mode
from readingroom.engine.hybrid import group_neighbours

if TYPE_CHECKING:
    from readingroom.engine.index import ChunkHit


def make_list_entry(document_record: DocumentRecord) -> ListedDocument:
    """Return a document as lists show it."""
    return ListedDocument.model_validate(document_record, from_attributes=True)


def make_application_record(known_application: Application) -> ApplicationRecord:
    """Return an application's own record as answers show it."""
    return ApplicationRecord.model_validate(known_application, from_attributes=True)


def make_type_overview(
    document_type: str, document_records: Sequence[DocumentRecord]
) -> OverviewType:
    """Return the documents of one type among these."""
    records_of_type = [
        document_record
        for document_record in document_records
        if document_record.document_type == document_type
    ]
    return OverviewType(
        document_type=document_type,
        document_count=len(records_of_type),
        page_count=sum(document_record.page_count for document_record in records_of_type),
        word_count=sum(document_record.total_words for document_record in records_of_type),
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
            for document_record in records_of_type
        ],
    )


def group_chunks_by_passage(
    ranked_chunks: Sequence[StoredChunk], search_mode: Mode
) -> list[list[StoredChunk]]:
    """Return chunks that were found, best first, with those that overlap together.

    They were cut out of one stretch of text.
    """
    return group_neighbours(ranked_chunks, _do_chunks_overlap, search_mode)


def make_document_hit(passage_chunks: Sequence[StoredChunk], chunk_hit: ChunkHit) -> DocumentHit:
    """Return a passage of one chunk, or of neighbours of which the first is the one found best."""
    best_chunk = passage_chunks[0]
    neighbour_chunks = sorted(
        passage_chunks[1:], key=lambda neighbour_chunk: neighbour_chunk.chunk_index
    )
    page_numbers = sorted(
        {page_number for passage_chunk in passage_chunks for page_number in passage_chunk.pages}
    )
    passage_text = join_chunk_texts(passage_chunks).strip() if neighbour_chunks else best_chunk.text
    return DocumentHit(
        chunk_id=best_chunk.chunk_id,
        text=passage_text,
        relevance_score=chunk_hit.relevance_score,
        metadata=ChunkMetadata(
            application_ref=best_chunk.application_ref,
            document_id=best_chunk.document_id,
            source_file=best_chunk.source_file,
            document_type=best_chunk.document_type,
            page_numbers=",".join(map(str, page_numbers)),
            chunk_index=best_chunk.chunk_index,
            total_chunks=best_chunk.total_chunks,
            extraction_method=best_chunk.extraction_method,
            char_count=len(passage_text),
            word_count=len(passage_text.split()),
        ),
        citation=format_citation(best_chunk.source_file, page_numbers),
        id=format_doc_id(best_chunk.document_id, best_chunk.pages[0]),
        score=chunk_hit.score,
        parts=chunk_hit.score_parts,
        joined_chunk_ids=[neighbour_chunk.chunk_id for neighbour_chunk in neighbour_chunks],
    )


def _do_chunks_overlap(chunk: StoredChunk, other_chunk: StoredChunk) -> bool:
    """Return whether one chunk begins in the other."""
    earlier_chunk, later_chunk = sorted((chunk, other_chunk), key=lambda chunk: chunk.chunk_index)
    return (
        earlier_chunk.document_id == later_chunk.document_id
        and later_chunk.chunk_index == earlier_chunk.chunk_index + 1
        and later_chunk.start_offset < earlier_chunk.start_offset + len(earlier_chunk.text)
    )


def get_empty_reason(
    document_records: Sequence[DocumentRecord], document_types: Sequence[str] | None
) -> EmptyReason:
    """Return why a search limited to these types finds nothing in these documents."""
    if not document_records:
        return "no_documents"
    if document_types is not None and not any(
        document_record.document_type in document_types for document_record in document_records
    ):
        return "no_documents_of_these_types"
    return "nothing_matches"
