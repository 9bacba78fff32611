"""Accepts files by the extension of their name, and detects their format by their first bytes."""

from pathlib import PurePath
from typing import Literal

from readingroom.ingest.document import Refusal

Format = Literal["pdf", "png", "jpeg", "tiff", "bmp"]

EXTENSIONS = (".pdf", ".png", ".jpg", ".jpeg", ".tiff", ".tif", ".bmp")
HEAD_BYTES = 1024
"""Bytes that are examined: PDF readers accept that many before the header."""

_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"BM", "bmp"),
)


def check_file_name(file_name: str) -> None:
    """Raise a `Refusal` for a name whose extension is not supported."""
    extension = PurePath(file_name).suffix.lower()
    if extension not in EXTENSIONS:
        raise Refusal(
            "unsupported_file_type",
            f"Files {f'named {extension}' if extension else 'without an extension'} are not read; "
            f"these are: {', '.join(EXTENSIONS)}",
        )


def detect_format(head: bytes, file_name: str) -> Format:
    """Return the format of a file by its first bytes, whatever its name; raise a `Refusal`."""
    if not head:
        raise Refusal("no_content", "The file is empty")
    # Images first: bytes of a picture may happen to contain `%PDF-`.
    for magic, magic_format in _MAGIC:
        if head.startswith(magic):
            return magic_format
    if b"%PDF-" in head[:HEAD_BYTES]:
        return "pdf"
    raise Refusal(
        "extraction_failed",
        f"The file is named {PurePath(file_name).suffix.lower()}, but holds neither a PDF "
        "nor a PNG, JPEG, TIFF or BMP image",
    )
