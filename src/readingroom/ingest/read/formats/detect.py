"""Accepts files by the extension of their name, and detects their format by their first bytes."""

from pathlib import PurePath
from typing import Literal, get_args

from readingroom.ingest.document import Refusal

ImageFormat = Literal["png", "jpeg", "tiff", "bmp", "heic"]
TextFormat = Literal[
    "docx", "doc", "odt", "xlsx", "csv", "html", "markdown", "text", "rtf", "eml", "msg", "zip"
]
FileFormat = Literal["pdf"] | ImageFormat | TextFormat

IMAGE_FORMATS: tuple[ImageFormat, ...] = get_args(ImageFormat)
CONTAINER_FORMATS: tuple[TextFormat, ...] = ("eml", "msg", "zip")
"""Formats that hold other files, which are documents of their own."""

_FORMAT_BY_EXTENSION: dict[str, FileFormat] = {
    ".pdf": "pdf",
    ".png": "png",
    ".jpg": "jpeg",
    ".jpeg": "jpeg",
    ".tiff": "tiff",
    ".tif": "tiff",
    ".bmp": "bmp",
    ".heic": "heic",
    ".heif": "heic",
    ".docx": "docx",
    ".doc": "doc",
    ".odt": "odt",
    ".xlsx": "xlsx",
    ".csv": "csv",
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".txt": "text",
    ".rtf": "rtf",
    ".eml": "eml",
    ".msg": "msg",
    ".zip": "zip",
}
READABLE_EXTENSIONS = tuple(_FORMAT_BY_EXTENSION)
POLICY_EXTENSIONS = (".pdf", ".docx", ".md", ".html", ".htm")
"""What a revision of a policy may be: a text with headings."""
DETECTION_BYTE_COUNT = 1024
"""Bytes that are examined: PDF readers accept that many before the header."""

_ZIP_MAGIC_BYTES = b"PK\x03\x04"
_EMPTY_ZIP_MAGIC_BYTES = b"PK\x05\x06"
_COMPOUND_MAGIC_BYTES = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_MAGIC_BYTES_AND_FORMATS: tuple[tuple[bytes, FileFormat], ...] = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"{\\rtf", "rtf"),
)
_HEIC_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1")
_ZIP_FORMATS: tuple[FileFormat, ...] = ("docx", "odt", "xlsx", "zip")
_COMPOUND_FORMATS: tuple[FileFormat, ...] = ("doc", "msg")
_PLAIN_TEXT_FORMATS: tuple[FileFormat, ...] = ("csv", "html", "markdown", "text", "eml")
_MACRO_EXTENSIONS = (".docm", ".dotm", ".xlsm", ".xltm", ".pptm")


def find_format_by_extension(extension: str) -> FileFormat | None:
    """Return the format that files with an extension have; None for one that is not read."""
    return _FORMAT_BY_EXTENSION.get(extension)


def check_file_name(
    file_name: str, allowed_extensions: tuple[str, ...] = READABLE_EXTENSIONS
) -> None:
    """Raise a `Refusal` for a name whose extension is not among the supported ones."""
    extension = PurePath(file_name).suffix.lower()
    if extension in allowed_extensions:
        return
    macro_suffix = " with macros" if extension in _MACRO_EXTENSIONS else ""
    raise Refusal(
        "unsupported_file_type",
        f"Files {f'named {extension}{macro_suffix}' if extension else 'without an extension'} are "
        f"not read; these are: {', '.join(allowed_extensions)}. Save it as PDF",
    )


def detect_format(first_bytes: bytes, file_name: str) -> FileFormat:
    """Return the format of a file by its first bytes, then by its name; raise a `Refusal`."""
    if not first_bytes:
        raise Refusal("no_content", "The file is empty")
    extension = PurePath(file_name).suffix.lower()
    named_format = _FORMAT_BY_EXTENSION.get(extension)
    # Images first: bytes of a picture may happen to contain `%PDF-`.
    for magic_bytes, magic_format in _MAGIC_BYTES_AND_FORMATS:
        if first_bytes.startswith(magic_bytes):
            return magic_format
    if first_bytes[4:8] == b"ftyp" and first_bytes[8:12] in _HEIC_BRANDS:
        return "heic"
    if first_bytes.startswith((_ZIP_MAGIC_BYTES, _EMPTY_ZIP_MAGIC_BYTES)):
        if named_format in _ZIP_FORMATS:
            return named_format
        if named_format == "doc":
            return "docx"
    elif first_bytes.startswith(_COMPOUND_MAGIC_BYTES):
        if named_format in _COMPOUND_FORMATS:
            return named_format
        if named_format in ("docx", "xlsx"):
            # Office wraps what it encrypts in the older container.
            raise Refusal(
                "extraction_failed", "The file is encrypted and does not open without its password"
            )
    elif first_bytes.startswith(b"%PDF-"):
        return "pdf"
    elif named_format in _PLAIN_TEXT_FORMATS:
        return named_format
    elif first_bytes.startswith(b"BM"):
        return "bmp"
    elif b"%PDF-" in first_bytes[:DETECTION_BYTE_COUNT]:
        return "pdf"
    elif named_format == "doc" and first_bytes.lstrip()[:1] == b"<":
        return "html"  # programs save pages of the web under this name
    raise Refusal(
        "extraction_failed",
        f"The file is named {extension}, but holds something else. Where it comes from an "
        "address, fetch it again: it may be an error page",
    )
