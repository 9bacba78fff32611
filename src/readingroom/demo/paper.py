"""Typesets plain text as a PDF: headings, numbered paragraphs and tables, for sample documents.

It uses only fonts that every PDF reader has, so none is embedded, and breaks lines by counting
letters, so none is measured. A heading begins with `#`, a numbered paragraph with its number.
"""

import re
import textwrap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

WIDTH, HEIGHT = 595, 842  # A4 in points
_LEFT, _TOP, _BOTTOM = 72, 770, 80
_BODY = 11
_HEADING_SIZES = {1: 24, 2: 18, 3: 13}
_LETTER_WIDTH = 0.52  # the usual width of a letter, as a share of the font size
_INDENT = 36
_NUMBERED = re.compile(r"(\d+(?:\.\d+)*\.?)\s+(.*)")
_HEADING = re.compile(r"(#{1,3})\s+(.*)")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    size: int
    bold: bool
    left: int
    above: float
    """Extra space above the line."""
    number: str = ""


def make_pdf(text: str, footer: str) -> bytes:
    """Return the text as a PDF of A4 pages with the footer on each of them."""
    pages = enumerate(_split_pages(text), 1)
    return _build_file([_draw_page(lines, footer, number) for number, lines in pages])


def _split_pages(text: str) -> Iterator[list[_Line]]:
    page: list[_Line] = []
    y = float(_TOP)
    for line in _break_lines(text):
        height = line.above + 1.3 * line.size
        if page and y - height < _BOTTOM:
            yield page
            page, y = [], float(_TOP)
        y -= height
        page.append(line)
    yield page


def _break_lines(text: str) -> Iterator[_Line]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if "|" in paragraph:
            yield from (_Line(row.strip(), _BODY, False, _LEFT, 0) for row in paragraph.split("\n"))
            continue
        joined = " ".join(paragraph.split())
        if heading := _HEADING.fullmatch(joined):
            size = _HEADING_SIZES[len(heading[1])]
            yield from _wrap(heading[2], size, True, _LEFT, 14)
        elif numbered := _NUMBERED.fullmatch(joined):
            yield from _wrap(numbered[2], _BODY, False, _LEFT + _INDENT, 8, numbered[1])
        else:
            yield from _wrap(joined, _BODY, False, _LEFT, 8)


def _wrap(
    text: str, size: int, bold: bool, left: int, above: float, number: str = ""
) -> Iterator[_Line]:
    letters = int((WIDTH - _LEFT - left) / (_LETTER_WIDTH * size))
    for row, part in enumerate(textwrap.wrap(text, letters)):
        yield _Line(part, size, bold, left, 0 if row else above, "" if row else number)


def _draw_page(lines: list[_Line], footer: str, number: int) -> bytes:
    y = float(_TOP)
    operators = []
    for line in lines:
        y -= line.above + 1.3 * line.size
        if line.number:
            operators.append(_draw_text(line.number, line.size, line.bold, _LEFT, y))
        operators.append(_draw_text(line.text, line.size, line.bold, line.left, y))
    # Last, because readers extract text in the order in which it was drawn.
    operators.append(_draw_text(f"{footer}    {number}", 9, False, _LEFT, 40))
    return zlib.compress(b"\n".join(operators))


def _draw_text(text: str, size: int, bold: bool, left: int, y: float) -> bytes:
    # WinAnsiEncoding, which the fonts are declared with below, is Windows code page 1252.
    encoded = text.encode("cp1252", "replace")
    escaped = re.sub(rb"([()\\])", rb"\\\1", encoded)
    font = b"/F2" if bold else b"/F1"
    return b"BT %b %d Tf %d %.1f Td (%b) Tj ET" % (font, size, left, y, escaped)


def _build_file(pages: list[bytes]) -> bytes:
    """Return the PDF: its objects, the table of their offsets, and the trailer."""
    fonts = [
        b"<</Type/Font/Subtype/Type1/BaseFont/%b/Encoding/WinAnsiEncoding>>" % name
        for name in (b"Helvetica", b"Helvetica-Bold")
    ]
    kids = b" ".join(b"%d 0 R" % (5 + 2 * index) for index in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), kids),
        *fonts,
    ]
    for index, content in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>" % (WIDTH, HEIGHT, 6 + 2 * index)
        )
        head = b"<</Length %d/Filter/FlateDecode>>stream\n" % len(content)
        objects.append(head + content + b"\nendstream")
    return _number_objects(objects)


def _number_objects(objects: list[bytes]) -> bytes:
    body = b"%PDF-1.4\n"
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, len(body))
    return body + head + table + trailer
