"""A page as it was read: lines with position and typography, before they become text."""

import re
import unicodedata
from dataclasses import dataclass, field

from readingroom.ingest.document import PageMethod, PageWord

BROKEN_WORD_MARK = "\x02"
"""Marks a word broken at the end of a line, until the rest of the document is read."""

OCR_DPI = 300
"""Resolution at which a page is rendered for OCR."""

MIN_TEXT_LAYER_CHARACTERS = 10
"""By the contract, a page with fewer characters counts as having no text layer."""

# Not normalized: NFKC would turn m² into m2, and 10½ into 101/2.
_UNNORMALIZED_SIGN_PATTERN = re.compile("[²³¹¼-¾⁰-\u209f⅐-⅟↉]")
_NOISE_CHARACTER_PATTERN = re.compile(
    "[\x00\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b\ufeff\ud800-\udfff]"
)
# Longer texts are normalized in blocks: sorting thousands of accents on one letter takes long.
_NORMALIZED_BLOCK_CHARS = 4_000


class PageUnreadable(Exception):
    """A page could not be read; the reason goes into the page's note."""


@dataclass(slots=True)
class Line:
    """One line of a page; positions are in points from the lower left of the displayed page."""

    text: str
    left: float
    bottom: float
    letter_height: float
    """Height of its letters' boxes; the font sizes that a PDF states are unreliable."""
    is_bold: bool
    last_bottom: float
    """Bottom of its last row: rejoining a broken word merges two rows into one line."""
    has_gap_above: bool | None = None
    """Whether a blank line is above it, where the reader knows; None: the geometry decides."""
    is_italic: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A panel drawn on a page, in points from its lower left."""

    left: float
    bottom: float
    right: float
    top: float
    is_grid: bool
    """Whether vertical rules divide it into columns, as they do a table."""
    top_colours: frozenset[int] = frozenset()
    """Of the panels behind its first line, or of their outlines; none where rules are drawn."""
    bottom_colours: frozenset[int] = frozenset()
    """Of those behind its last line."""


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """A line drawn across a page, in points from its lower left; no part of a box."""

    left: float
    right: float
    vertical_position: float


@dataclass(slots=True)
class RawPage:
    """One page as it was read."""

    number: int
    label: str
    height: float
    lines: list[Line] = field(default_factory=list)
    method: PageMethod = "text_layer"
    image_ratio: float = 0.0
    drawn_line_count: int = 0
    """Lines and curves on it, of which a drawing has many; counted up to a bound."""
    confidence: float | None = None
    reading_note: str | None = None
    words: tuple[PageWord, ...] = ()
    """The words that OCR found, with their places."""
    boxes: list[Box] = field(default_factory=list)
    rules: list[DrawnRule] = field(default_factory=list)

    @property
    def character_count(self) -> int:
        return sum(len(page_line.text) for page_line in self.lines)

    @property
    def lacks_text(self) -> bool:
        return self.character_count < MIN_TEXT_LAYER_CHARACTERS


def normalize_text(raw_text: str) -> str:
    """Return the text without ligatures, exotic spaces and control characters."""
    if raw_text.isascii() and raw_text.isprintable():
        return raw_text
    if len(raw_text) > _NORMALIZED_BLOCK_CHARS:
        block_start_offsets = range(0, len(raw_text), _NORMALIZED_BLOCK_CHARS)
        return "".join(
            normalize_text(
                raw_text[block_start_offset : block_start_offset + _NORMALIZED_BLOCK_CHARS]
            )
            for block_start_offset in block_start_offsets
        )
    raw_text = _NOISE_CHARACTER_PATTERN.sub("", raw_text)
    if unicodedata.is_normalized("NFKC", raw_text):
        return raw_text
    unnormalized_signs = _UNNORMALIZED_SIGN_PATTERN.findall(raw_text)
    normalized_pieces = [
        unicodedata.normalize("NFKC", text_piece)
        for text_piece in _UNNORMALIZED_SIGN_PATTERN.split(raw_text)
    ]
    return normalized_pieces[0] + "".join(
        unnormalized_sign + text_piece
        for unnormalized_sign, text_piece in zip(
            unnormalized_signs, normalized_pieces[1:], strict=True
        )
    )
