"""Reads a PDF's pages with pypdfium2: lines with geometry and typography, images, renderings.

Runs inside the sandbox: PDFium may crash or hang on a hostile file, and takes that process only.
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
from readingroom.ingest.read.formats.images import image_ratio
from readingroom.ingest.read.page import BROKEN_WORD, DPI, Line, PageUnreadable, Sheet, normal

if TYPE_CHECKING:  # slow to import, and most PDFs never need a picture
    from PIL.Image import Image

_BOLD = re.compile("bold|black|heavy|semib|demi", re.IGNORECASE)


@contextmanager
def opened(data: bytes, most_pages: int) -> Iterator[pypdfium2.PdfDocument]:
    """The document, or a refusal that says what is wrong with it."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise Refusal("extraction_failed", _why(error)) from error
    with document:
        count = len(document)
        if count > most_pages:
            raise Refusal(
                "extraction_failed",
                f"The PDF claims {count:,} pages; at most {most_pages:,} are read",
            )
        yield document


def _why(error: pypdfium2.PdfiumError) -> str:
    if error.err_code == pdfium.FPDF_ERR_PASSWORD:
        return "The PDF is encrypted and does not open without its password"
    if error.err_code == pdfium.FPDF_ERR_SECURITY:
        return "The PDF is encrypted in a way that is not supported"
    if error.err_code == pdfium.FPDF_ERR_SUCCESS:
        return "The PDF has no pages"
    return "The PDF is damaged and cannot be opened"


def read_sheet(document: pypdfium2.PdfDocument, index: int) -> Sheet:
    """One page's text layer and image ratio; a page that cannot be loaded says so in its note."""
    number = index + 1
    label = normal(document.get_page_label(index)).strip() or str(number)
    try:
        with closing(document[index]) as page:
            height = page.get_height()
            return Sheet(number, label, height, _lines(page), image_ratio=image_ratio(page))
    except pypdfium2.PdfiumError:
        return Sheet(number, label, 0.0, note="The page is damaged and cannot be read")


def render(
    document: pypdfium2.PdfDocument,
    index: int,
    most_pixels: int,
    dpi: int = DPI,
    grey: bool = True,
) -> "Image":
    """A page as a picture, at fewer dots per inch where so many would be too large."""
    try:
        with closing(document[index]) as page:
            width, height = page.get_size()
            wanted = width * height * (dpi / 72) ** 2
            scale = dpi / 72 * min(1.0, (most_pixels / max(wanted, 1)) ** 0.5)
            picture: Image = page.render(scale=scale, grayscale=grey).to_pil()
            return picture
    except pypdfium2.PdfiumError as error:
        raise PageUnreadable("it cannot be rendered") from error


def _lines(page: pypdfium2.PdfPage) -> list[Line]:
    with closing(page.get_textpage()) as textpage:
        count = textpage.count_chars()
        if count <= 0:
            return []
        text = textpage.get_text_range(errors="surrogatepass")
        glyphs = _Glyphs(textpage, count, exact=len(text) == count, placed=_placer(page))
        lines: list[Line] = []
        start = 0
        for raw in text.split("\r\n"):
            line = _line(raw, start, glyphs)
            start += len(raw) + 2
            if line is None:
                continue
            if lines and _continues(lines[-1], line):
                _append(lines[-1], line)
            else:
                lines.append(line)
        return lines


def _line(raw: str, start: int, glyphs: "_Glyphs") -> Line | None:
    stripped = raw.strip()
    # PDFium joins words across line ends and leaves one of two signs where the hyphen was.
    text = normal(stripped.replace("\ufffe", BROKEN_WORD)).strip()
    if not text:
        return None
    first = start + raw.index(stripped[0])
    box = glyphs.box(first)
    looked_at = first
    if stripped[0].isdigit() and (letter := _first_letter(stripped)):
        # A footnote begins with its raised number, which says nothing of the line's size.
        looked_at = first + letter
        size = glyphs.box(looked_at).size
    else:
        size = box.size
    low = glyphs.box(first + len(stripped) - 1).bottom if BROKEN_WORD in text else box.bottom
    return Line(text, box.left, box.bottom, size, glyphs.is_bold(looked_at), low)


def _first_letter(text: str) -> int:
    return next((place for place, sign in enumerate(text[:16]) if sign.isalpha()), 0)


def _continues(line: Line, more: Line) -> bool:
    """Whether two stretches stand on one row: a raised footnote mark or a wide gap parted them."""
    near = abs(line.low - more.bottom) < 0.5 * max(line.size, more.size)
    return near and more.left > line.left


def _append(line: Line, more: Line) -> None:
    glue = "" if more.text[0] in ".,;:)]’”" else " "
    line.text += glue + more.text
    line.low = more.low


@dataclass(slots=True)
class _Box:
    left: float
    bottom: float
    size: float


Placed = Callable[[pdfium.FS_RECTF], _Box]


def _placer(page: pypdfium2.PdfPage) -> Placed:
    """Turns boxes the way the page is turned: text on a landscape page runs up the sheet."""
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
    """What PDFium knows of single characters; asked once or twice a line, for each ask costs."""

    def __init__(
        self, textpage: pypdfium2.PdfTextPage, count: int, exact: bool, placed: Placed
    ) -> None:
        self._textpage = textpage
        self._last = count - 1
        self._exact = exact
        self._placed = placed
        self._rect = pdfium.FS_RECTF()
        self._name = ctypes.create_string_buffer(128)
        self._flags = ctypes.c_int()

    def box(self, place: int) -> _Box:
        pdfium.FPDFText_GetLooseCharBox(self._textpage, self._index(place), self._rect)
        return self._placed(self._rect)

    def is_bold(self, place: int) -> bool:
        self._name.value = b""
        pdfium.FPDFText_GetFontInfo(
            self._textpage, self._index(place), self._name, len(self._name), self._flags
        )
        return _BOLD.search(self._name.value.decode("latin-1")) is not None

    def _index(self, place: int) -> int:
        if not self._exact:  # some characters are left out of the text, or added to it
            place = pdfium.FPDFText_GetCharIndexFromTextIndex(self._textpage, place)
        return min(max(place, 0), self._last)
