"""Records of the documents base: documents, chunks, applications and unread files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from readingroom.bases.documents.ids import ApplicationRef, StoredDocumentId
from readingroom.core.text import cite_pages
from readingroom.ingest.document import ExtractionMethod


# What a restore reads is validated by the annotations; nothing else checks them.
@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document's entry in the registry: the contract's fields, then ours."""

    document_id: StoredDocumentId
    file_path: str
    file_hash: str
    application_ref: ApplicationRef
    document_type: str
    chunk_count: int
    ingested_at: str
    extraction_method: ExtractionMethod
    contains_drawings: bool
    source_file: str
    total_chars: int
    total_words: int
    page_starts: tuple[int, ...]
    """Where each page begins in the cleaned text; a page without text begins with the next."""
    blank_pages: tuple[int, ...]
    """Pages that gave no text."""
    # Since 0.2: an entry of 0.1 has none of them.
    container_id: str = ""
    """The message or archive that it came in; empty for a file of its own."""
    kind: str = ""
    """Finer than its type; empty where nobody has determined it."""

    @property
    def page_count(self) -> int:
        return len(self.page_starts)

    @property
    def pages_without_text(self) -> list[int]:
        """The numbers of the pages that gave no text, as answers name them."""
        return list(self.blank_pages)

    @property
    def document_kind(self) -> str:
        """Its kind as answers name it: its type, where nothing finer is known."""
        return self.kind or self.document_type

    @property
    def contained_in(self) -> str | None:
        """The id of the message or archive that it came in, as answers name it."""
        return self.container_id or None


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as it is stored."""

    chunk_id: str
    text: str
    application_ref: ApplicationRef
    document_id: StoredDocumentId
    source_file: str
    document_type: str
    pages: tuple[int, ...]
    chunk_index: int
    total_chunks: int
    extraction_method: ExtractionMethod
    start_offset: int
    preceding_space: str
    """The white space before it that no chunk holds, needed to put the text together again."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application's own record; every field but its reference is optional."""

    reference: ApplicationRef
    address: str | None = None
    description: str | None = None
    validation_date: date | None = None
    status: str | None = None
    updated_at: datetime | None = None
    local_authority: str | None = None
    """Who decides it; local plans of this authority apply to it."""


@dataclass(frozen=True, slots=True)
class UnreadEntry:
    """A file that was submitted for an application and is not among its documents, and why."""

    application_ref: ApplicationRef
    file_hash: str
    source_file: str
    document_type: str
    outcome: Literal["skipped", "error"]
    reason: str
    """`image_based`, or an error code."""
    message: str
    at: str


def join_chunk_texts(chunks: Sequence[StoredChunk]) -> str:
    """Return the text that these chunks were cut from, in reading order; overlaps stand once."""
    new_text_pieces: list[str] = []
    covered_end_offset = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        # Overlapping chunks repeat the end of the one before; only what is new is taken.
        new_text_pieces.append(
            chunk.preceding_space + chunk.text[max(0, covered_end_offset - chunk.start_offset) :]
        )
        covered_end_offset = max(covered_end_offset, chunk.start_offset + len(chunk.text))
    return "".join(new_text_pieces)


def format_citation(source_file: str, page_numbers: Sequence[int]) -> str:
    """Return `Transport_Assessment.pdf, p. 14–15`."""
    return ", ".join(filter(None, [source_file, cite_pages(page_numbers)]))
