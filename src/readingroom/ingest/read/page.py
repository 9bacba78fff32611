"""A page as it was read: its lines with their place and look, before they become text."""

import re
import unicodedata
from dataclasses import dataclass, field

from readingroom.ingest.document import PageMethod

BROKEN_WORD = "\x02"
"""Stands where a word was broken at the end of a line, until the whole document is known."""

DPI = 300
"""What a page is rendered at for OCR."""

FEW_CHARACTERS = 10
"""A page with fewer has no text layer to speak of, by the contract."""

# Left alone by normalisation, which would make m2 of m² and a hundred and one halves of 10½.
_KEPT_AS_IS = re.compile("[²³¹¼-¾⁰-\u209f⅐-⅟↉]")
_NOISE = re.compile("[\x00\x01\x03-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b\ufeff\ud800-\udfff]")


class PageUnreadable(Exception):
    """A page could not be read, and why; told in the page's note."""


@dataclass(slots=True)
class Line:
    """One line of a page; places are in points from the lower left of the page as displayed."""

    text: str
    left: float
    bottom: float
    size: float
    """The height of its letters' boxes: font sizes are not to be believed."""
    bold: bool
    low: float
    """The bottom of its last row: a word broken over two rows has joined them."""
    gap: bool | None = None
    """Whether a blank line stands above it, where the reader knows; else geometry decides."""


@dataclass(slots=True)
class Sheet:
    """One page as read."""

    number: int
    label: str
    height: float
    lines: list[Line] = field(default_factory=list)
    method: PageMethod = "text_layer"
    image_ratio: float = 0.0
    confidence: float | None = None
    note: str | None = None

    @property
    def characters(self) -> int:
        return sum(len(line.text) for line in self.lines)

    @property
    def is_blank(self) -> bool:
        return self.characters < FEW_CHARACTERS


def normal(text: str) -> str:
    """Text without ligatures, exotic spaces and control characters."""
    if text.isascii() and text.isprintable():
        return text
    text = _NOISE.sub("", text)
    if unicodedata.is_normalized("NFKC", text):
        return text
    kept = _KEPT_AS_IS.findall(text)
    parts = [unicodedata.normalize("NFKC", part) for part in _KEPT_AS_IS.split(text)]
    return parts[0] + "".join(a + b for a, b in zip(kept, parts[1:], strict=True))
