"""Which files are accepted, by name, and what they really are, by their first bytes."""

from pathlib import PurePath
from typing import Literal

from readingroom.ingest.document import Refusal

Format = Literal["pdf", "png", "jpeg", "tiff", "bmp"]

EXTENSIONS = (".pdf", ".png", ".jpg", ".jpeg", ".tiff", ".tif", ".bmp")
HEAD = 1024
"""Bytes to look at: readers of PDF accept that much before its header."""

_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"BM", "bmp"),
)


def check_name(name: str) -> None:
    """Refuse a name whose extension we do not read."""
    extension = PurePath(name).suffix.lower()
    if extension not in EXTENSIONS:
        raise Refusal(
            "unsupported_file_type",
            f"Files named {extension or 'without an extension'} are not read; "
            f"these are: {', '.join(EXTENSIONS)}",
        )


def sniff(head: bytes, name: str) -> Format:
    """What the bytes are, whatever the file is called; a name alone convinces nobody."""
    if not head:
        raise Refusal("no_content", "The file is empty")
    for magic, format in _MAGIC:
        if head.startswith(magic):
            return format
    if b"%PDF-" in head[:HEAD]:
        return "pdf"
    raise Refusal(
        "extraction_failed",
        f"The file is named {PurePath(name).suffix.lower()}, but holds neither a PDF "
        "nor a PNG, JPEG, TIFF or BMP image",
    )
