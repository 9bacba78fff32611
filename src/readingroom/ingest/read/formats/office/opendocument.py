"""Reads OpenDocument texts (.odt): paragraphs, headings, lists, tables, and pages."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.formats.office.word import MAX_UNPACKED_OFFICE_BYTES
from readingroom.ingest.read.formats.office.xml import parse_xml
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_PAGE_BREAK_MARK = "\f"
_SKIPPED_ELEMENT_TAGS = frozenset(("tracked-changes", "annotation", "note-citation", "binary-data"))
_MAX_REPEATED_SPACES = 100


def read_odt(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the pages of a text; raise a `Refusal`."""
    zip_archive = Archive(file_bytes, MAX_UNPACKED_OFFICE_BYTES)
    if "META-INF/manifest.xml" in zip_archive and b"encryption-data" in zip_archive.read_member(
        "META-INF/manifest.xml"
    ):
        raise Refusal(
            "extraction_failed", "The file is encrypted and does not open without its password"
        )
    content_element = parse_xml(zip_archive.read_member("content.xml"))
    page_break_style_names = _find_page_break_style_names(content_element)
    page_builder = PageBuilder()
    body_element = content_element.find("body/text")
    for block_element in _iterate_block_elements(body_element) if body_element is not None else ():
        if block_element.get("style-name") in page_break_style_names:
            page_builder.end_page()
        if block_element.tag == "table":
            _write_table(block_element, page_builder)
        else:
            _write_paragraph(block_element, page_builder)
    return page_builder.finish_pages()


def _find_page_break_style_names(content_element: Element) -> set[str | None]:
    return {
        style_element.get("name")
        for style_element in content_element.iter("style")
        for properties_element in style_element
        if properties_element.get("break-before") == "page"
    }


def _iterate_block_elements(parent_element: Element) -> Iterator[Element]:
    """Yield headings, paragraphs and tables in order, also those in lists, sections and frames."""
    child_iterators = [iter(parent_element)]
    while child_iterators:
        next_element = next(child_iterators[-1], None)
        if next_element is None:
            child_iterators.pop()
        elif next_element.tag in ("h", "p", "table"):
            yield next_element
        elif next_element.tag not in _SKIPPED_ELEMENT_TAGS:
            child_iterators.append(iter(next_element))


def _write_paragraph(paragraph_element: Element, page_builder: PageBuilder) -> None:
    outline_level_text = (
        paragraph_element.get("outline-level", "1") if paragraph_element.tag == "h" else "0"
    )
    heading_level = (
        int(outline_level_text)
        if outline_level_text.isdecimal() and len(outline_level_text) < 3
        else 1
    )
    first_text, *later_texts = _read_paragraph_text(paragraph_element).split(_PAGE_BREAK_MARK)
    page_builder.add_paragraph(first_text, heading_level)
    for page_text in later_texts:
        page_builder.end_page()
        page_builder.add_paragraph(page_text, heading_level)


def _write_table(table_element: Element, page_builder: PageBuilder) -> None:
    is_first_row = True
    for row_element in table_element.iter("table-row"):
        cell_texts = [
            " ".join(
                _read_paragraph_text(paragraph_element)
                for paragraph_element in cell_element.iter("p")
            ).replace(_PAGE_BREAK_MARK, " ")
            for cell_element in row_element.findall("table-cell")
        ]
        page_builder.add_row(cell_texts, is_first_row)
        is_first_row = False


def _read_paragraph_text(paragraph_element: Element) -> str:
    text_pieces = [paragraph_element.text or ""]
    # Each entry of the stack is an element's children, and the text that follows the element.
    children_and_tail_stack = [(iter(paragraph_element), "")]
    while children_and_tail_stack:
        waiting_children, tail_text = children_and_tail_stack[-1]
        child_element = next(waiting_children, None)
        if child_element is None:
            text_pieces.append(tail_text)
            children_and_tail_stack.pop()
            continue
        text_pieces.append(_read_element_own_text(child_element))
        inner_children = (
            iter(()) if child_element.tag in _SKIPPED_ELEMENT_TAGS else iter(child_element)
        )
        closing_mark = "]" if child_element.tag == "note" else ""
        children_and_tail_stack.append((inner_children, closing_mark + (child_element.tail or "")))
    return "".join(text_pieces)


def _read_element_own_text(element: Element) -> str:
    match element.tag:
        case "s":
            space_count_text = element.get("c", "1")
            return " " * min(
                int(space_count_text) if space_count_text.isdecimal() else 1, _MAX_REPEATED_SPACES
            )
        case "tab":
            return " "
        case "line-break":
            return "\n"
        case "soft-page-break":
            return _PAGE_BREAK_MARK
        case "note":
            return " ["
    return "" if element.tag in _SKIPPED_ELEMENT_TAGS else element.text or ""
