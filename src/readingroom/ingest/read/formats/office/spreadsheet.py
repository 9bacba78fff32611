"""Reads Excel workbooks (.xlsx): a page for each sheet, a line for each row."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.formats.office.word import MAX_UNPACKED_BYTES
from readingroom.ingest.read.formats.office.xml import parse_xml
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_DATE_FORMAT_IDS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_FORMAT_LITERALS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_LETTERS = re.compile(r"[dmyhs]", re.IGNORECASE)
_EPOCHS = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 no zone in it
_MAX_DAY = 2_958_466
"""The last day that Excel knows, in the year 9999."""


def read_xlsx(content: bytes, file_name: str, options: ReadOptions) -> list[RawPage]:
    """Return the sheets of a workbook; raise a `Refusal`."""
    archive = Archive(content, MAX_UNPACKED_BYTES)
    workbook = parse_xml(archive.read("xl/workbook.xml"))
    sheet_paths = _list_sheet_paths(archive, workbook)
    if len(sheet_paths) > options.max_pages:
        raise Refusal(
            "extraction_failed",
            f"The workbook has {len(sheet_paths):,} sheets; at most {options.max_pages:,} are read",
        )
    shared_texts = _read_shared_texts(archive)
    format_number = _make_number_formatter(archive, workbook)
    pages = PageBuilder()
    for sheet_name, part_name in sheet_paths:
        pages.add_paragraph(sheet_name, heading_level=1)
        for row_index, row in enumerate(parse_xml(archive.read(part_name)).iter("row")):
            cells = [_read_cell(cell, shared_texts, format_number) for cell in row.iter("c")]
            pages.add_row(cells, is_first_row=row_index == 0)
        pages.end_page(sheet_name)
    return pages.finish()


def _list_sheet_paths(archive: Archive, workbook: Element) -> list[tuple[str, str]]:
    """Return the sheets in their order: names, and the parts of the archive that hold them."""
    relations = parse_xml(archive.read("xl/_rels/workbook.xml.rels"))
    targets = {
        relation.get("Id"): relation.get("Target", "")
        for relation in relations.iter("Relationship")
    }
    sheet_paths = []
    for sheet in workbook.iter("sheet"):
        target = targets.get(sheet.get("id"), "")
        part_name = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
        if "worksheets" in part_name:  # not a chart that has a sheet of its own
            sheet_paths.append((sheet.get("name", ""), part_name))
    return sheet_paths


def _read_shared_texts(archive: Archive) -> list[str]:
    if "xl/sharedStrings.xml" not in archive:
        return []
    items = parse_xml(archive.read("xl/sharedStrings.xml")).findall("si")
    return ["".join(_iterate_texts(item)) for item in items]


def _iterate_texts(item: Element) -> Iterator[str]:
    for child in item:
        if child.tag == "t":
            yield child.text or ""
        elif child.tag == "r":  # not `rPh`, which says how characters are pronounced
            yield from (text.text or "" for text in child.findall("t"))


def _read_cell(
    cell: Element, shared_texts: list[str], format_number: Callable[[str, str], str]
) -> str:
    cell_type = cell.get("t", "n")
    if cell_type == "inlineStr":
        inline_text = cell.find("is")
        return "".join(_iterate_texts(inline_text)) if inline_text is not None else ""
    value_element = cell.find("v")
    value = (value_element.text or "") if value_element is not None else ""
    match cell_type:
        case "s":
            is_known = value.isdecimal() and len(value) < 9 and int(value) < len(shared_texts)
            return shared_texts[int(value)] if is_known else ""
        case "b":
            return "TRUE" if value == "1" else "FALSE" if value else ""
        case "n":
            return format_number(value, cell.get("s", "0"))
    return value


def _make_number_formatter(archive: Archive, workbook: Element) -> Callable[[str, str], str]:
    """Return a function that writes a number as its cell's style wants: as a date or as it is."""
    date_styles = _find_date_styles(archive)
    properties = workbook.find("workbookPr")
    starts_1904 = properties is not None and properties.get("date1904") in ("1", "true")
    epoch = _EPOCHS[starts_1904]

    def format_number(value: str, style: str) -> str:
        try:
            number = float(value)
        except ValueError:
            return value
        if style in date_styles and 0 <= number < _MAX_DAY:
            moment = epoch + timedelta(seconds=round(number * 86_400))
            if number < 1:
                return f"{moment:%H:%M}"
            return f"{moment:%Y-%m-%d}" if number.is_integer() else f"{moment:%Y-%m-%d %H:%M}"
        # As Excel shows it: it stores 0.1 as 0.1 and 0.30000000000000004 for 0.1 + 0.2.
        return f"{number:.15g}" if "e" not in value.lower() else f"{number:g}"

    return format_number


def _find_date_styles(archive: Archive) -> set[str]:
    """Return the numbers of the cell styles that show days or times."""
    if "xl/styles.xml" not in archive:
        return set()
    styles = parse_xml(archive.read("xl/styles.xml"))
    date_formats = {str(format_id) for format_id in _DATE_FORMAT_IDS}
    for number_format in styles.iter("numFmt"):
        code = _FORMAT_LITERALS.sub("", number_format.get("formatCode", "")[:500])
        if _DATE_LETTERS.search(code):
            date_formats.add(number_format.get("numFmtId", ""))
    cell_formats = styles.find("cellXfs")
    return {
        str(index)
        for index, cell_format in enumerate(cell_formats if cell_formats is not None else ())
        if cell_format.get("numFmtId") in date_formats
    }
