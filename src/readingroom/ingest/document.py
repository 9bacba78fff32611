"""What is learned from a file: its text, its pages, its sections, its chunks. Plain data.

The sandboxed process imports this module at every document, so it imports nothing that is slow.
"""

from dataclasses import dataclass
from typing import Literal

PageMethod = Literal["text_layer", "ocr"]
Method = Literal["text_layer", "ocr", "mixed"]
ImageSkip = Literal["probe", "ratio"]
RefusalCode = Literal["unsupported_file_type", "extraction_failed", "no_content", "no_chunks"]


class Refusal(Exception):
    """A file cannot be read, and why; told as the error of the same code outside the sandbox."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Options:
    """How a file is to be read."""

    enable_ocr: bool = True
    image_ratio_threshold: float = 0.7
    image_skip: ImageSkip = "probe"
    find_sections: bool = False
    most_pages: int = 2000
    most_pixels: int = 40_000_000
    """Of one page given to OCR; a larger one is scaled down."""


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where its cleaned text lies in the document's, and what is known of it."""

    number: int
    label: str
    """As printed: `iv`, `A-3`, or the number again."""
    start: int
    end: int
    text: str
    """With the running headers and footers that the document's text leaves out."""
    method: PageMethod
    image_ratio: float
    confidence: float | None
    """The mean confidence of the words read by OCR, 0 to 100."""
    note: str | None
    """Why this page gave no text, where there is a reason to tell."""


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of text under one reference; a reference resumed after a table has two of them."""

    ref: str
    path: tuple[str, ...]
    """Every ancestor and the section itself, outermost first."""
    title: str
    start: int
    end: int
    page: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the text, never across a section's start."""

    index: int
    start: int
    end: int
    pages: tuple[int, ...]
    section_ref: str | None
    section_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Classification:
    """What kind of planning document this is, and how that was found out."""

    document_type: str
    found_by: Literal["filename", "content", "fallback"]
    confidence: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read."""

    text: str
    pages: tuple[Page, ...]
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    method: Method
    image_ratio: float
    contains_drawings: bool
    classification: Classification

    def text_of(self, chunk: Chunk) -> str:
        """A chunk's text."""
        return self.text[chunk.start : chunk.end]

    @property
    def total_chars(self) -> int:
        """Characters of the cleaned text."""
        return len(self.text)

    @property
    def total_words(self) -> int:
        """Words of the cleaned text."""
        return len(self.text.split())


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file of pictures, with nothing in it that could be searched."""

    image_ratio: float
    total_pages: int
    reason: Literal["image_based"] = "image_based"
