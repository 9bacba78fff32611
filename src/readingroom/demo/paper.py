"""Typesets plain text as a PDF: headings, numbered paragraphs and tables, for sample documents.

It uses only fonts that every PDF reader has, so none is embedded, and breaks lines by counting
letters, so none is measured. A heading begins with `#`, a numbered paragraph with its number.
"""

import re
import textwrap
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

PAGE_WIDTH, PAGE_HEIGHT = 595, 842  # A4 in points
_LEFT_MARGIN, _TOP_BASELINE, _LOWEST_BASELINE = 72, 770, 80
_BODY_FONT_SIZE = 11
_FONT_SIZE_BY_HEADING_LEVEL = {1: 24, 2: 18, 3: 13}
_LETTER_WIDTH_SHARE = 0.52  # the usual width of a letter, as a share of the font size
_PARAGRAPH_INDENT = 36
_NUMBERED_PARAGRAPH_PATTERN = re.compile(r"(\d+(?:\.\d+)*\.?)\s+(.*)")
_HEADING_PATTERN = re.compile(r"(#{1,3})\s+(.*)")


@dataclass(frozen=True, slots=True)
class _Line:
    text: str
    font_size: int
    is_bold: bool
    left: int
    space_above: float
    """Extra space above the line."""
    paragraph_number: str = ""


def make_pdf(document_text: str, footer_text: str) -> bytes:
    """Return the text as a PDF of A4 pages with the footer on each of them."""
    numbered_pages = enumerate(_split_pages(document_text), 1)
    return _build_pdf_file(
        [
            _draw_page_stream(page_lines, footer_text, page_number)
            for page_number, page_lines in numbered_pages
        ]
    )


def _split_pages(document_text: str) -> Iterator[list[_Line]]:
    page_lines: list[_Line] = []
    baseline_y = float(_TOP_BASELINE)
    for paper_line in _break_lines(document_text):
        line_height = paper_line.space_above + 1.3 * paper_line.font_size
        if page_lines and baseline_y - line_height < _LOWEST_BASELINE:
            yield page_lines
            page_lines, baseline_y = [], float(_TOP_BASELINE)
        baseline_y -= line_height
        page_lines.append(paper_line)
    yield page_lines


def _break_lines(document_text: str) -> Iterator[_Line]:
    for paragraph_text in re.split(r"\n\s*\n", document_text.strip()):
        if "|" in paragraph_text:
            yield from (
                _Line(table_row.strip(), _BODY_FONT_SIZE, False, _LEFT_MARGIN, 0)
                for table_row in paragraph_text.split("\n")
            )
            continue
        paragraph_line = " ".join(paragraph_text.split())
        if heading_match := _HEADING_PATTERN.fullmatch(paragraph_line):
            font_size = _FONT_SIZE_BY_HEADING_LEVEL[len(heading_match[1])]
            yield from _wrap_paragraph(heading_match[2], font_size, True, _LEFT_MARGIN, 14)
        elif numbered_match := _NUMBERED_PARAGRAPH_PATTERN.fullmatch(paragraph_line):
            yield from _wrap_paragraph(
                numbered_match[2],
                _BODY_FONT_SIZE,
                False,
                _LEFT_MARGIN + _PARAGRAPH_INDENT,
                8,
                numbered_match[1],
            )
        else:
            yield from _wrap_paragraph(paragraph_line, _BODY_FONT_SIZE, False, _LEFT_MARGIN, 8)


def _wrap_paragraph(
    long_text: str,
    font_size: int,
    is_bold: bool,
    left_margin: int,
    space_above: float,
    paragraph_number: str = "",
) -> Iterator[_Line]:
    letters_per_line = int(
        (PAGE_WIDTH - _LEFT_MARGIN - left_margin) / (_LETTER_WIDTH_SHARE * font_size)
    )
    for line_index, line_text in enumerate(textwrap.wrap(long_text, letters_per_line)):
        yield _Line(
            line_text,
            font_size,
            is_bold,
            left_margin,
            0 if line_index else space_above,
            "" if line_index else paragraph_number,
        )


def _draw_page_stream(page_lines: list[_Line], footer_text: str, page_number: int) -> bytes:
    baseline_y = float(_TOP_BASELINE)
    pdf_operators = []
    for paper_line in page_lines:
        baseline_y -= paper_line.space_above + 1.3 * paper_line.font_size
        if paper_line.paragraph_number:
            pdf_operators.append(
                _draw_text(
                    paper_line.paragraph_number,
                    paper_line.font_size,
                    paper_line.is_bold,
                    _LEFT_MARGIN,
                    baseline_y,
                )
            )
        pdf_operators.append(
            _draw_text(
                paper_line.text,
                paper_line.font_size,
                paper_line.is_bold,
                paper_line.left,
                baseline_y,
            )
        )
    # Last, because readers extract text in the order in which it was drawn.
    pdf_operators.append(_draw_text(f"{footer_text}    {page_number}", 9, False, _LEFT_MARGIN, 40))
    return zlib.compress(b"\n".join(pdf_operators))


def _draw_text(
    line_text: str, font_size: int, is_bold: bool, left_margin: int, baseline_y: float
) -> bytes:
    # WinAnsiEncoding, which the fonts are declared with below, is Windows code page 1252.
    encoded_text = line_text.encode("cp1252", "replace")
    escaped_text = re.sub(rb"([()\\])", rb"\\\1", encoded_text)
    font_operand = b"/F2" if is_bold else b"/F1"
    return b"BT %b %d Tf %d %.1f Td (%b) Tj ET" % (
        font_operand,
        font_size,
        left_margin,
        baseline_y,
        escaped_text,
    )


def _build_pdf_file(page_streams: list[bytes]) -> bytes:
    """Return the PDF: its objects, the table of their offsets, and the trailer."""
    font_objects = [
        b"<</Type/Font/Subtype/Type1/BaseFont/%b/Encoding/WinAnsiEncoding>>" % font_name
        for font_name in (b"Helvetica", b"Helvetica-Bold")
    ]
    page_references_bytes = b" ".join(
        b"%d 0 R" % (5 + 2 * page_index) for page_index in range(len(page_streams))
    )
    pdf_objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(page_streams), page_references_bytes),
        *font_objects,
    ]
    for page_index, page_stream in enumerate(page_streams):
        pdf_objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R"
            b"/Resources<</Font<</F1 3 0 R/F2 4 0 R>>>>>>"
            % (PAGE_WIDTH, PAGE_HEIGHT, 6 + 2 * page_index)
        )
        stream_header = b"<</Length %d/Filter/FlateDecode>>stream\n" % len(page_stream)
        pdf_objects.append(stream_header + page_stream + b"\nendstream")
    return _join_numbered_objects(pdf_objects)


def _join_numbered_objects(pdf_objects: list[bytes]) -> bytes:
    pdf_bytes = b"%PDF-1.4\n"
    object_offsets = []
    for object_number, object_bytes in enumerate(pdf_objects, 1):
        object_offsets.append(len(pdf_bytes))
        pdf_bytes += b"%d 0 obj\n%b\nendobj\n" % (object_number, object_bytes)
    xref_bytes = b"".join(b"%010d 00000 n \n" % object_offset for object_offset in object_offsets)
    object_count = len(pdf_objects) + 1
    xref_header = b"xref\n0 %d\n0000000000 65535 f \n" % object_count
    pdf_trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        object_count,
        len(pdf_bytes),
    )
    return pdf_bytes + xref_header + xref_bytes + pdf_trailer
