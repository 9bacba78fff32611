"""A file that was read, as plain data: text, pages, sections and chunks.

The sandboxed process imports this module for every file, so it must not import anything slow.
"""

from dataclasses import dataclass
from typing import Literal

PageMethod = Literal["text_layer", "ocr"]
ExtractionMethod = Literal["text_layer", "ocr", "mixed"]
ImageSkipRule = Literal["probe", "ratio"]
PassageKind = Literal["policy", "supporting", "table", "appendix"]
"""What a passage of a plan is: its policies weigh more than what explains them."""
PictureFormat = Literal["png", "webp"]
RefusalCode = Literal["unsupported_file_type", "extraction_failed", "no_content", "no_chunks"]


class Refusal(Exception):
    """A file cannot be read; outside the sandbox it becomes the error with the same code."""

    def __init__(self, refusal_code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = refusal_code
        self.message = message


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is to be read."""

    enable_ocr: bool = True
    image_ratio_threshold: float = 0.7
    image_skip_rule: ImageSkipRule = "probe"
    find_sections: bool = False
    max_pages: int = 2000
    max_pixels: int = 40_000_000
    """Of one page for OCR; a larger page is scaled down."""


@dataclass(frozen=True, slots=True)
class PageWord:
    """A word and its place on the page as it is shown: shares of the page, from its upper left."""

    text: str
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where its cleaned text lies in the document's text, and how it was read."""

    number: int
    label: str
    """The page number as printed: `iv`, `A-3`; else the number."""
    start_offset: int
    end_offset: int
    text: str
    """Including the running headers and footers, which the document's text omits."""
    method: PageMethod
    image_ratio: float
    confidence: float | None
    """The mean confidence of the words read by OCR, 0 to 100."""
    reading_note: str | None
    """Why the page has no text, where the reason is known."""
    words: tuple[PageWord, ...] = ()
    """The words of a page that was read by OCR; those of other pages can be read again at once."""


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A span of text under one reference; a reference interrupted by a table has two spans."""

    ref: str
    path: tuple[str, ...]
    """Every ancestor and the section itself, outermost first."""
    title: str
    start_offset: int
    end_offset: int
    page: int
    lead_start_offset: int = 0
    """Where the headings above it begin, which are part of no section; its start without any."""
    kind: PassageKind = "supporting"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of the text that never crosses the start of a section, nor the headings above it."""

    index: int
    start_offset: int
    end_offset: int
    pages: tuple[int, ...]
    section_ref: str | None
    section_path: tuple[str, ...]
    section_title: str = ""
    kind: PassageKind = "supporting"
    own_start_offset: int = 0
    """Where its section's text begins, after the headings above it that the chunk begins with."""


@dataclass(frozen=True, slots=True)
class Classification:
    """The type and the kind of a planning document, and how they were determined."""

    document_type: str
    found_by: Literal["filename", "content", "fallback"]
    confidence: Literal["high", "medium", "low"]
    document_kind: str = "other"
    """Finer than the contract's types: what portals call it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's text and its structure."""

    text: str
    pages: tuple[Page, ...]
    sections: tuple[DocumentSection, ...]
    chunks: tuple[Chunk, ...]
    method: ExtractionMethod
    image_ratio: float
    contains_drawings: bool
    classification: Classification

    def get_chunk_text(self, chunk: Chunk) -> str:
        """Return the text of a chunk."""
        return self.text[chunk.start_offset : chunk.end_offset]

    @property
    def total_chars(self) -> int:
        """Number of characters of the cleaned text."""
        return len(self.text)

    @property
    def total_words(self) -> int:
        """Number of words of the cleaned text."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class ContainedEntry:
    """A file that was inside another, as the sandboxed process wrote it to its scratch folder."""

    file_name: str
    scratch_name: str


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of pictures, without any text that could be searched."""

    image_ratio: float
    total_pages: int
    reason: Literal["image_based"] = "image_based"
