"""Sets plain text as a PDF: headings, numbered paragraphs and tables, enough for sample documents.

Only the fonts that every reader has, so nothing is embedded; lines are broken by counting letters,
so no font is measured. A heading begins with `#` signs, a numbered paragraph with its number.
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
_LETTER = 0.52  # a letter's usual width, as a part of the font's size
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
    """Space above it, besides its own height."""
    number: str = ""


def pdf_of(text: str, footer: str) -> bytes:
    """The text as A4 pages; the footer stands on each of them."""
    return _file([_page(lines, footer, index) for index, lines in enumerate(_pages(text), 1)])


def _pages(text: str) -> Iterator[list[_Line]]:
    page: list[_Line] = []
    at = float(_TOP)
    for line in _lines(text):
        needed = line.above + 1.3 * line.size
        if page and at - needed < _BOTTOM:
            yield page
            page, at = [], float(_TOP)
        at -= needed
        page.append(line)
    yield page


def _lines(text: str) -> Iterator[_Line]:
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if "|" in paragraph:
            yield from (_Line(row.strip(), _BODY, False, _LEFT, 0) for row in paragraph.split("\n"))
            continue
        joined = " ".join(paragraph.split())
        if heading := _HEADING.fullmatch(joined):
            size = _HEADING_SIZES[len(heading[1])]
            yield from _wrapped(heading[2], size, True, _LEFT, 14)
        elif numbered := _NUMBERED.fullmatch(joined):
            yield from _wrapped(numbered[2], _BODY, False, _LEFT + _INDENT, 8, numbered[1])
        else:
            yield from _wrapped(joined, _BODY, False, _LEFT, 8)


def _wrapped(
    text: str, size: int, bold: bool, left: int, above: float, number: str = ""
) -> Iterator[_Line]:
    letters = int((WIDTH - _LEFT - left) / (_LETTER * size))
    for row, part in enumerate(textwrap.wrap(text, letters)):
        yield _Line(part, size, bold, left, 0 if row else above, "" if row else number)


def _page(lines: list[_Line], footer: str, number: int) -> bytes:
    at = float(_TOP)
    drawn = []
    for line in lines:
        at -= line.above + 1.3 * line.size
        if line.number:
            drawn.append(_drawn(line.number, line.size, line.bold, _LEFT, at))
        drawn.append(_drawn(line.text, line.size, line.bold, line.left, at))
    # Last, as readers take a page in the order it was drawn.
    drawn.append(_drawn(f"{footer}    {number}", 9, False, _LEFT, 40))
    return zlib.compress(b"\n".join(drawn))


def _drawn(text: str, size: int, bold: bool, left: int, at: float) -> bytes:
    encoded = text.encode("cp1252", "replace")
    escaped = re.sub(rb"([()\\])", rb"\\\1", encoded)
    font = b"/F2" if bold else b"/F1"
    return b"BT %b %d Tf %d %.1f Td (%b) Tj ET" % (font, size, left, at, escaped)


def _file(pages: list[bytes]) -> bytes:
    """The pages as objects, a table of where each object begins, and a trailer."""
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
    return _numbered(objects)


def _numbered(objects: list[bytes]) -> bytes:
    made = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n" % size
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, len(made))
    return made + head + table + trailer
