"""Chunks as the store returns them, made from a PDF without a store and without a model."""

from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.ingest.document import Document, ReadOptions
from readingroom.ingest.read.reader import read_file


def read_chunks(content: bytes, revision_id: str = "rev") -> list[StoredChunk]:
    options = ReadOptions(find_sections=True, enable_ocr=False)
    document = read_file(content, "policy.pdf", options, lambda *_: None)
    assert isinstance(document, Document)
    return [
        StoredChunk(
            chunk_id=f"{revision_id}-{chunk.index}",
            text=document.get_chunk_text(chunk),
            source="NPPF",
            revision_id=revision_id,
            section_ref=chunk.section_ref or "",
            section_path=chunk.section_path,
            pages=chunk.pages,
            chunk_index=chunk.index,
            start_offset=chunk.start_offset,
            end_offset=chunk.end_offset,
            extraction_method="text_layer",
            page_start_offsets=tuple(
                document.pages[page - 1].start_offset for page in chunk.pages[1:]
            ),
            own_start_offset=chunk.own_start_offset,
            section_title=chunk.section_title,
            passage_kind=chunk.kind,
        )
        for chunk in document.chunks
    ]
