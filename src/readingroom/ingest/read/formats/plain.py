"""Reads plain texts: .txt, Markdown and .csv, in whatever usual encoding they are."""

import codecs
import csv
import io
import re
import sys
from collections import Counter

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_BYTE_ORDER_MARKS_AND_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARKDOWN_HEADING_PATTERN = re.compile(r"(?P<marks>#{1,6})\s+(?P<title>[^#].*?)\s*#*")
_MARKDOWN_LINK_PATTERN = re.compile(r"!?\[([^\]\[]{0,500})\]\([^()\s]{0,2000}\)")
_MARKDOWN_EMPHASIS_PATTERN = re.compile(r"\*{1,3}|(?<!\w)_{1,3}(?=\w)|(?<=\w)_{1,3}(?!\w)|`")
_MARKDOWN_RULE_PATTERN = re.compile(r"[-*_ =|:+]{3,}")
# Of a line in which emphasis and links are looked for.
_MAX_MARKDOWN_LINE_CHARS = 10_000
_CSV_DELIMITER_CHARACTERS = ",;\t|"
_SAMPLED_LINE_COUNT = 20


def decode_text(file_bytes: bytes) -> str:
    """Return the characters of a text, by its byte order mark, as UTF-8, or as Windows-1252."""
    for byte_order_mark, text_encoding in _BYTE_ORDER_MARKS_AND_ENCODINGS:
        if file_bytes.startswith(byte_order_mark):
            return file_bytes.decode(text_encoding, "replace")
    if b"\x00" in file_bytes:
        raise Refusal("extraction_failed", "The file is named like a text, but holds other data")
    try:
        return file_bytes.decode("utf-8")
    except UnicodeDecodeError:
        # Every byte means something there, so this cannot fail.
        return file_bytes.decode("cp1252", "replace")


def read_text(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a text, page by page where it has form feeds; raise a `Refusal`."""
    page_builder = PageBuilder()
    for page_text in decode_text(file_bytes).split("\f"):
        add_paragraphs(page_text, page_builder)
        page_builder.end_page()
    return page_builder.finish_pages()


def read_markdown(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a Markdown text, its headings as headings; raise a `Refusal`."""
    page_builder = PageBuilder()
    paragraph_lines: list[str] = []
    for raw_line in [*decode_text(file_bytes).splitlines(), ""]:
        stripped_line = raw_line.strip()
        heading_match = _MARKDOWN_HEADING_PATTERN.fullmatch(
            stripped_line[:_MAX_MARKDOWN_LINE_CHARS]
        )
        if heading_match or not stripped_line:
            page_builder.add_paragraph("\n".join(paragraph_lines))
            paragraph_lines.clear()
        if heading_match:
            page_builder.add_paragraph(
                _strip_markdown_marks(heading_match["title"]), len(heading_match["marks"])
            )
        elif stripped_line and not _MARKDOWN_RULE_PATTERN.fullmatch(
            stripped_line[:_MAX_MARKDOWN_LINE_CHARS]
        ):
            paragraph_lines.append(_strip_markdown_marks(stripped_line))
    return page_builder.finish_pages()


def read_csv(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a table, a line for each row; raise a `Refusal`."""
    csv_text = decode_text(file_bytes)
    page_builder = PageBuilder()
    csv.field_size_limit(sys.maxsize)  # of the whole process; the text itself is bounded
    csv_rows = csv.reader(
        io.StringIO(csv_text, newline=""), delimiter=_guess_csv_delimiter(csv_text)
    )
    try:
        for row_index, cell_texts in enumerate(csv_rows):
            page_builder.add_row(cell_texts, is_first_row=row_index == 0)
    except csv.Error as error:
        raise Refusal("extraction_failed", f"The table cannot be read: {error}") from error
    return page_builder.finish_pages()


def add_paragraphs(plain_text: str, page_builder: PageBuilder) -> None:
    """Add a text to a page; blank lines separate its paragraphs."""
    paragraph_lines: list[str] = []
    for raw_line in [*plain_text.splitlines(), ""]:
        if raw_line.strip():
            paragraph_lines.append(raw_line)
        elif paragraph_lines:
            page_builder.add_paragraph("\n".join(paragraph_lines))
            paragraph_lines.clear()


def _strip_markdown_marks(text_line: str) -> str:
    """Return a line without the signs by which Markdown marks links and emphasis."""
    if len(text_line) > _MAX_MARKDOWN_LINE_CHARS:
        return text_line
    linkless_line = _MARKDOWN_LINK_PATTERN.sub(r"\1", text_line.removeprefix("> "))
    return _MARKDOWN_EMPHASIS_PATTERN.sub("", linkless_line).strip("| ").replace("|", " | ")


def _guess_csv_delimiter(csv_text: str) -> str:
    """Return the sign that separates the cells: the one of which most lines have as many."""
    sampled_lines = [csv_line for csv_line in csv_text[:100_000].splitlines() if csv_line.strip()][
        :_SAMPLED_LINE_COUNT
    ]

    def count_alike_lines(column_delimiter: str) -> tuple[int, int]:
        line_counts_by_delimiter_count = Counter(
            csv_line.count(column_delimiter) for csv_line in sampled_lines
        )
        del line_counts_by_delimiter_count[0]
        return max(line_counts_by_delimiter_count.values(), default=0), max(
            line_counts_by_delimiter_count, default=0
        )

    return max(_CSV_DELIMITER_CHARACTERS, key=count_alike_lines)
