"""Reads a PDF's pages with pypdfium2: lines with geometry and typography, images, renderings.

Runs inside the sandbox: if PDFium crashes or hangs on a hostile file, only that process is lost.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pypdfium2
import pypdfium2.raw as pdfium

from readingroom.ingest.document import Refusal
from readingroom.ingest.read.formats.images import measure_image_ratio
from readingroom.ingest.read.page import (
    BROKEN_WORD_MARK,
    OCR_DPI,
    Line,
    PageUnreadable,
    RawPage,
    normalize_text,
)

if TYPE_CHECKING:  # slow to import, and most PDFs never need a picture
    from PIL.Image import Image

_MAX_ROW_CHARS = 5_000
"""Pieces of a row are joined up to this length."""
_BOLD_FONT_NAME = re.compile("bold|black|heavy|semib|demi", re.IGNORECASE)


@contextmanager
def open_pdf(content: bytes, max_pages: int) -> Iterator[pypdfium2.PdfDocument]:
    """Open a PDF; raise a `Refusal` that says what is wrong with it."""
    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        raise Refusal("extraction_failed", _explain_open_error(error)) from error
    with document:
        page_count = len(document)
        if page_count > max_pages:
            raise Refusal(
                "extraction_failed",
                f"The PDF claims {page_count:,} pages; at most {max_pages:,} are read",
            )
        yield document


def _explain_open_error(error: pypdfium2.PdfiumError) -> str:
    if error.err_code == pdfium.FPDF_ERR_PASSWORD:
        return "The PDF is encrypted and does not open without its password"
    if error.err_code == pdfium.FPDF_ERR_SECURITY:
        return "The PDF is encrypted in a way that is not supported"
    if error.err_code == pdfium.FPDF_ERR_SUCCESS:
        return "The PDF has no pages"
    return "The PDF is damaged and cannot be opened"


def read_raw_page(document: pypdfium2.PdfDocument, index: int) -> RawPage:
    """Return a page's text layer and image ratio; for a damaged page, a raw_page with a note."""
    number = index + 1
    label = normalize_text(document.get_page_label(index)).strip() or str(number)
    try:
        with closing(document[index]) as page:
            height = page.get_height()
            return RawPage(
                number, label, height, _read_lines(page), image_ratio=measure_image_ratio(page)
            )
    except pypdfium2.PdfiumError:
        return RawPage(number, label, 0.0, note="The page is damaged and cannot be read")


def render_page(
    document: pypdfium2.PdfDocument,
    index: int,
    max_pixels: int,
    dpi: int = OCR_DPI,
    grey: bool = True,
) -> "Image":
    """Return a page as a picture, at a lower resolution where it would be too large."""
    try:
        with closing(document[index]) as page:
            width, height = page.get_size()
            pixel_count = width * height * (dpi / 72) ** 2
            scale = dpi / 72 * min(1.0, (max_pixels / max(pixel_count, 1)) ** 0.5)
            picture: Image = page.render(scale=scale, grayscale=grey).to_pil()
            return picture
    except pypdfium2.PdfiumError as error:
        raise PageUnreadable("it cannot be rendered") from error


def _read_lines(page: pypdfium2.PdfPage) -> list[Line]:
    with closing(page.get_textpage()) as textpage:
        character_count = textpage.count_chars()
        if character_count <= 0:
            return []
        text = textpage.get_text_range(errors="surrogatepass")
        glyphs = _Glyphs(
            textpage,
            character_count,
            is_exact=len(text) == character_count,
            to_box=_make_box_transform(page),
        )
        lines: list[Line] = []
        start = 0
        for raw_line in text.split("\r\n"):
            line = _parse_line(raw_line, start, glyphs)
            start += len(raw_line) + 2
            if line is None:
                continue
            if lines and _is_same_row(lines[-1], line):
                _append_to_row(lines[-1], line)
            else:
                lines.append(line)
        return lines


def _parse_line(raw_line: str, start: int, glyphs: "_Glyphs") -> Line | None:
    stripped_line = raw_line.strip()
    # PDFium joins words across line ends and leaves one of two characters for the hyphen.
    text = normalize_text(stripped_line.replace("\ufffe", BROKEN_WORD_MARK)).strip()
    if not text:
        return None
    first_index = start + raw_line.index(stripped_line[0])
    box = glyphs.get_box(first_index)
    typical_index = first_index
    if stripped_line[0].isdigit() and (letter_index := _find_first_letter(stripped_line)):
        # A footnote begins with a raised number, whose size is not that of the line.
        typical_index = first_index + letter_index
        size = glyphs.get_box(typical_index).size
    else:
        size = box.size
    last_bottom = (
        glyphs.get_box(first_index + len(stripped_line) - 1).bottom
        if BROKEN_WORD_MARK in text
        else box.bottom
    )
    return Line(text, box.left, box.bottom, size, glyphs.is_bold(typical_index), last_bottom)


def _find_first_letter(text: str) -> int:
    return next((index for index, char in enumerate(text[:16]) if char.isalpha()), 0)


def _is_same_row(line: Line, following_line: Line) -> bool:
    """Whether a line goes on after a raised footnote mark or a wide gap."""
    if len(line.text) > _MAX_ROW_CHARS:
        return False
    is_level = abs(line.last_bottom - following_line.bottom) < 0.5 * max(
        line.size, following_line.size
    )
    return is_level and following_line.left > line.left


def _append_to_row(line: Line, following_line: Line) -> None:
    separator = "" if following_line.text[0] in ".,;:)]’”" else " "
    line.text += separator + following_line.text
    line.last_bottom = following_line.last_bottom


@dataclass(slots=True)
class _Box:
    left: float
    bottom: float
    size: float


_BoxTransform = Callable[[pdfium.FS_RECTF], _Box]


def _make_box_transform(page: pypdfium2.PdfPage) -> _BoxTransform:
    """Return a function that rotates boxes as the page is rotated when it is displayed."""
    x0, y0, x1, y1 = page.get_bbox()
    match page.get_rotation():
        case 90:
            return lambda box: _Box(box.bottom - y0, x1 - box.right, box.right - box.left)
        case 180:
            return lambda box: _Box(x1 - box.right, y1 - box.top, box.top - box.bottom)
        case 270:
            return lambda box: _Box(y1 - box.top, box.left - x0, box.right - box.left)
    return lambda box: _Box(box.left - x0, box.bottom - y0, box.top - box.bottom)


class _Glyphs:
    """Boxes and fonts of single characters. Each call is slow, so a line needs one or two."""

    def __init__(
        self,
        textpage: pypdfium2.PdfTextPage,
        character_count: int,
        is_exact: bool,
        to_box: _BoxTransform,
    ) -> None:
        self._textpage = textpage
        self._last_index = character_count - 1
        self._is_exact = is_exact
        self._to_box = to_box
        self._rectangle = pdfium.FS_RECTF()
        self._font_name = ctypes.create_string_buffer(128)
        self._font_flags = ctypes.c_int()

    def get_box(self, index: int) -> _Box:
        pdfium.FPDFText_GetLooseCharBox(
            self._textpage, self._to_pdfium_index(index), self._rectangle
        )
        return self._to_box(self._rectangle)

    def is_bold(self, index: int) -> bool:
        self._font_name.value = b""
        pdfium.FPDFText_GetFontInfo(
            self._textpage,
            self._to_pdfium_index(index),
            self._font_name,
            len(self._font_name),
            self._font_flags,
        )
        return _BOLD_FONT_NAME.search(self._font_name.value.decode("latin-1")) is not None

    def _to_pdfium_index(self, index: int) -> int:
        if not self._is_exact:  # PDFium left some characters out of the text, or added some
            index = pdfium.FPDFText_GetCharIndexFromTextIndex(self._textpage, index)
        return min(max(index, 0), self._last_index)
