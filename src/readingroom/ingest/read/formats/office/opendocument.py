"""Reads OpenDocument texts (.odt): paragraphs, headings, lists, tables, and pages."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.formats.office.word import MAX_UNPACKED_BYTES
from readingroom.ingest.read.formats.office.xml import parse_xml
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_PAGE_MARK = "\f"
_SKIPPED_ELEMENTS = frozenset(("tracked-changes", "annotation", "note-citation", "binary-data"))
_MAX_SPACES = 100


def read_odt(content: bytes, file_name: str, options: ReadOptions) -> list[RawPage]:
    """Return the pages of a text; raise a `Refusal`."""
    archive = Archive(content, MAX_UNPACKED_BYTES)
    if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read(
        "META-INF/manifest.xml"
    ):
        raise Refusal(
            "extraction_failed", "The file is encrypted and does not open without its password"
        )
    root = parse_xml(archive.read("content.xml"))
    page_break_styles = _find_page_break_styles(root)
    pages = PageBuilder()
    body = root.find("body/text")
    for block in _iterate_blocks(body) if body is not None else ():
        if block.get("style-name") in page_break_styles:
            pages.end_page()
        if block.tag == "table":
            _write_table(block, pages)
        else:
            _write_paragraph(block, pages)
    return pages.finish()


def _find_page_break_styles(root: Element) -> set[str | None]:
    return {
        style.get("name")
        for style in root.iter("style")
        for properties in style
        if properties.get("break-before") == "page"
    }


def _iterate_blocks(container: Element) -> Iterator[Element]:
    """Yield headings, paragraphs and tables in order, also those in lists, sections and frames."""
    stack = [iter(container)]
    while stack:
        element = next(stack[-1], None)
        if element is None:
            stack.pop()
        elif element.tag in ("h", "p", "table"):
            yield element
        elif element.tag not in _SKIPPED_ELEMENTS:
            stack.append(iter(element))


def _write_paragraph(paragraph: Element, pages: PageBuilder) -> None:
    level = paragraph.get("outline-level", "1") if paragraph.tag == "h" else "0"
    heading_level = int(level) if level.isdecimal() and len(level) < 3 else 1
    first_text, *later_texts = _read_text(paragraph).split(_PAGE_MARK)
    pages.add_paragraph(first_text, heading_level)
    for page_text in later_texts:
        pages.end_page()
        pages.add_paragraph(page_text, heading_level)


def _write_table(table: Element, pages: PageBuilder) -> None:
    is_first_row = True
    for row in table.iter("table-row"):
        cells = [
            " ".join(_read_text(paragraph) for paragraph in cell.iter("p")).replace(_PAGE_MARK, " ")
            for cell in row.findall("table-cell")
        ]
        pages.add_row(cells, is_first_row)
        is_first_row = False


def _read_text(paragraph: Element) -> str:
    text_pieces = [paragraph.text or ""]
    # Each entry of the stack is an element's children, and the text that follows the element.
    stack = [(iter(paragraph), "")]
    while stack:
        children, tail = stack[-1]
        child = next(children, None)
        if child is None:
            text_pieces.append(tail)
            stack.pop()
            continue
        text_pieces.append(_read_own_text(child))
        inner_children = iter(()) if child.tag in _SKIPPED_ELEMENTS else iter(child)
        closing_mark = "]" if child.tag == "note" else ""
        stack.append((inner_children, closing_mark + (child.tail or "")))
    return "".join(text_pieces)


def _read_own_text(element: Element) -> str:
    match element.tag:
        case "s":
            count = element.get("c", "1")
            return " " * min(int(count) if count.isdecimal() else 1, _MAX_SPACES)
        case "tab":
            return " "
        case "line-break":
            return "\n"
        case "soft-page-break":
            return _PAGE_MARK
        case "note":
            return " ["
    return "" if element.tag in _SKIPPED_ELEMENTS else element.text or ""
