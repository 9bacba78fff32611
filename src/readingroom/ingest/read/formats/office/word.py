"""Reads Word documents (.docx): paragraphs, headings, tables, notes, and pages as Word set them.

Macros and embedded objects are not looked at.
"""

from collections.abc import Collection, Iterator
from xml.etree.ElementTree import Element

from readingroom.ingest.document import ReadOptions
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.formats.office.word_styles import ListNumbering, WordStyles
from readingroom.ingest.read.formats.office.xml import parse_xml
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

MAX_UNPACKED_OFFICE_BYTES = 128 * 2**20
"""Of the parts that are read; pictures, which are the bulk of an office file, are not."""

_PAGE_BREAK_MARK = "\f"
# Moved and deleted text is no longer part of the document, and a fallback repeats what stands
# beside it.
_SKIPPED_ELEMENT_TAGS = frozenset(
    ("del", "moveFrom", "Fallback", "instrText", "delText", "object", "pict")
)
_WRAPPER_ELEMENT_TAGS = frozenset(("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"))


def read_docx(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the pages of a document; raise a `Refusal`."""
    zip_archive = Archive(file_bytes, MAX_UNPACKED_OFFICE_BYTES)
    word_styles = WordStyles(_find_xml_part(zip_archive, "word/styles.xml"))
    list_numbering = ListNumbering(_find_xml_part(zip_archive, "word/numbering.xml"), word_styles)
    body_element = parse_xml(zip_archive.read_member("word/document.xml")).find("body")
    document_writer = _DocumentWriter(word_styles, list_numbering)
    if body_element is not None:
        document_writer.write_blocks(body_element)
    for notes_part_name, note_tag in (("footnotes", "footnote"), ("endnotes", "endnote")):
        notes_element = _find_xml_part(zip_archive, f"word/{notes_part_name}.xml")
        if notes_element is not None:
            document_writer.write_notes(notes_element, note_tag)
    return document_writer.page_builder.finish_pages()


def _find_xml_part(zip_archive: Archive, part_name: str) -> Element | None:
    return parse_xml(zip_archive.read_member(part_name)) if part_name in zip_archive else None


class _DocumentWriter:
    """Writes the blocks of a document to pages."""

    def __init__(self, word_styles: WordStyles, list_numbering: ListNumbering) -> None:
        self.page_builder = PageBuilder()
        self._styles = word_styles
        self._numbering = list_numbering

    def write_blocks(self, parent_element: Element) -> None:
        for block_element in _iterate_children(parent_element, ("p", "tbl")):
            if block_element.tag == "p":
                self._write_paragraph(block_element)
            else:
                self._write_table(block_element)

    def write_notes(self, notes_element: Element, note_tag: str) -> None:
        for note_element in notes_element.iter(note_tag):
            # Those with a type are the lines that separate notes from the text.
            if note_element.get("type") in (None, "normal"):
                note_text = "\n".join(
                    _read_element_text(paragraph_element)
                    for paragraph_element in note_element.iter("p")
                )
                self.page_builder.add_paragraph(
                    f"{note_element.get('id', '')} {note_text.strip()}".strip()
                )

    def _write_paragraph(self, paragraph_element: Element) -> None:
        properties_element = paragraph_element.find("pPr")
        style_id = _find_value_of_child(properties_element, "pStyle")
        paragraph_text = _read_element_text(paragraph_element)
        # Boxes of text hold paragraphs of their own, which come after the one they are tied to.
        text_box_elements = [
            text_box_element
            for text_box_element in _iterate_visible_elements(paragraph_element)
            if text_box_element.tag == "txbxContent"
        ]
        if paragraph_text.strip():
            list_label = self._numbering.make_next_label(properties_element, style_id)
            paragraph_text = f"{list_label} {paragraph_text}" if list_label else paragraph_text
        heading_level = self._styles.determine_heading_level(properties_element, style_id)
        text_before_break, *texts_after_breaks = paragraph_text.split(_PAGE_BREAK_MARK)
        if self._styles.breaks_page_before(properties_element):
            self.page_builder.end_page()
        self.page_builder.add_paragraph(text_before_break, heading_level)
        for page_text in texts_after_breaks:
            self.page_builder.end_page()
            self.page_builder.add_paragraph(page_text, heading_level)
        for text_box_element in text_box_elements:
            self.write_blocks(text_box_element)

    def _write_table(self, table_element: Element) -> None:
        is_first_row = True
        for row_element in _iterate_children(table_element, ("tr",)):
            cell_texts = [
                _read_element_text(cell_element)
                for cell_element in _iterate_children(row_element, ("tc",))
            ]
            if any(_PAGE_BREAK_MARK in cell_text for cell_text in cell_texts):
                self.page_builder.end_page()
            self.page_builder.add_row(
                [cell_text.replace(_PAGE_BREAK_MARK, " ") for cell_text in cell_texts], is_first_row
            )
            is_first_row = False


def _iterate_children(parent_element: Element, tag_names: Collection[str]) -> Iterator[Element]:
    """Yield the children with these tags, also those inside content controls and insertions."""
    child_iterators = [iter(parent_element)]
    while child_iterators:
        next_element = next(child_iterators[-1], None)
        if next_element is None:
            child_iterators.pop()
        elif next_element.tag in tag_names:
            yield next_element
        elif next_element.tag in _WRAPPER_ELEMENT_TAGS:
            child_iterators.append(iter(next_element))


def _iterate_visible_elements(element: Element) -> Iterator[Element]:
    """Yield what is inside an element, without what is deleted and what is inside boxes of text."""
    child_iterators = [iter(element)]
    while child_iterators:
        child_element = next(child_iterators[-1], None)
        if child_element is None:
            child_iterators.pop()
        elif child_element.tag not in _SKIPPED_ELEMENT_TAGS and not _is_hidden_text_run(
            child_element
        ):
            yield child_element
            if child_element.tag != "txbxContent":
                child_iterators.append(iter(child_element))


def _is_hidden_text_run(text_run: Element) -> bool:
    return text_run.tag == "r" and text_run.find("rPr/vanish") is not None


def _read_element_text(element: Element) -> str:
    text_pieces: list[str] = []
    for child_element in _iterate_visible_elements(element):
        match child_element.tag:
            case "t":
                text_pieces.append(child_element.text or "")
            case "tab" if (
                not child_element.attrib
            ):  # a tab stop, which is a setting, has attributes
                text_pieces.append(" ")
            case "noBreakHyphen":
                text_pieces.append("-")
            case "p" if text_pieces:
                text_pieces.append("\n")
            case "br" if child_element.get("type") == "page":
                text_pieces.append(_PAGE_BREAK_MARK)
            case "br" | "cr":
                text_pieces.append("\n")
            case "lastRenderedPageBreak":
                text_pieces.append(_PAGE_BREAK_MARK)
            case "footnoteReference" | "endnoteReference":
                text_pieces.append(f"[{child_element.get('id', '')}]")
    return "".join(text_pieces)


def _find_value_of_child(properties_element: Element | None, child_tag: str) -> str | None:
    child_element = properties_element.find(child_tag) if properties_element is not None else None
    return child_element.get("val") if child_element is not None else None
