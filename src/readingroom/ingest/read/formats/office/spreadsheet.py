"""Reads Excel workbooks (.xlsx): a page for each sheet, a line for each row."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from xml.etree.ElementTree import Element

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.formats.office.word import MAX_UNPACKED_OFFICE_BYTES
from readingroom.ingest.read.formats.office.xml import parse_xml
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_DATE_FORMAT_IDS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_FORMAT_CODE_LITERAL_PATTERN = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_FORMAT_LETTER_PATTERN = re.compile(r"[dmyhs]", re.IGNORECASE)
_EPOCH_BY_STARTS_IN_1904 = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 no zone in it
# The last day that Excel knows, in the year 9999.
_MAX_DATE_SERIAL_NUMBER = 2_958_466


def read_xlsx(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the sheets of a workbook; raise a `Refusal`."""
    zip_archive = Archive(file_bytes, MAX_UNPACKED_OFFICE_BYTES)
    workbook_element = parse_xml(zip_archive.read_member("xl/workbook.xml"))
    sheet_names_and_paths = _list_sheet_names_and_paths(zip_archive, workbook_element)
    if len(sheet_names_and_paths) > read_options.max_pages:
        raise Refusal(
            "extraction_failed",
            f"The workbook has {len(sheet_names_and_paths):,} sheets; "
            f"at most {read_options.max_pages:,} are read",
        )
    shared_texts = _read_shared_texts(zip_archive)
    format_number = _make_number_formatter(zip_archive, workbook_element)
    page_builder = PageBuilder()
    for sheet_name, sheet_path in sheet_names_and_paths:
        page_builder.add_paragraph(sheet_name, heading_level=1)
        for row_index, row_element in enumerate(
            parse_xml(zip_archive.read_member(sheet_path)).iter("row")
        ):
            cell_texts = [
                _read_cell_text(cell_element, shared_texts, format_number)
                for cell_element in row_element.iter("c")
            ]
            page_builder.add_row(cell_texts, is_first_row=row_index == 0)
        page_builder.end_page(sheet_name)
    return page_builder.finish_pages()


def _list_sheet_names_and_paths(
    zip_archive: Archive, workbook_element: Element
) -> list[tuple[str, str]]:
    """Return the sheets in their order: names, and the parts of the archive that hold them."""
    relations_element = parse_xml(zip_archive.read_member("xl/_rels/workbook.xml.rels"))
    target_paths_by_relation_id = {
        relation_element.get("Id"): relation_element.get("Target", "")
        for relation_element in relations_element.iter("Relationship")
    }
    sheet_names_and_paths = []
    for sheet_element in workbook_element.iter("sheet"):
        target_path = target_paths_by_relation_id.get(sheet_element.get("id"), "")
        sheet_path = target_path.lstrip("/") if target_path.startswith("/") else f"xl/{target_path}"
        if "worksheets" in sheet_path:  # not a chart that has a sheet of its own
            sheet_names_and_paths.append((sheet_element.get("name", ""), sheet_path))
    return sheet_names_and_paths


def _read_shared_texts(zip_archive: Archive) -> list[str]:
    if "xl/sharedStrings.xml" not in zip_archive:
        return []
    string_items = parse_xml(zip_archive.read_member("xl/sharedStrings.xml")).findall("si")
    return ["".join(_iterate_texts(string_item)) for string_item in string_items]


def _iterate_texts(string_item: Element) -> Iterator[str]:
    for child_element in string_item:
        if child_element.tag == "t":
            yield child_element.text or ""
        elif child_element.tag == "r":  # not `rPh`, which says how characters are pronounced
            yield from (text_element.text or "" for text_element in child_element.findall("t"))


def _read_cell_text(
    cell_element: Element, shared_texts: list[str], format_number: Callable[[str, str], str]
) -> str:
    cell_type = cell_element.get("t", "n")
    if cell_type == "inlineStr":
        inline_text_element = cell_element.find("is")
        return (
            "".join(_iterate_texts(inline_text_element)) if inline_text_element is not None else ""
        )
    value_element = cell_element.find("v")
    cell_value = (value_element.text or "") if value_element is not None else ""
    match cell_type:
        case "s":
            is_shared_text_index = (
                cell_value.isdecimal()
                and len(cell_value) < 9
                and int(cell_value) < len(shared_texts)
            )
            return shared_texts[int(cell_value)] if is_shared_text_index else ""
        case "b":
            return "TRUE" if cell_value == "1" else "FALSE" if cell_value else ""
        case "n":
            return format_number(cell_value, cell_element.get("s", "0"))
    return cell_value


def _make_number_formatter(
    zip_archive: Archive, workbook_element: Element
) -> Callable[[str, str], str]:
    """Return a function that writes a number as its cell's style wants: as a date or as it is."""
    date_style_numbers = _find_date_style_numbers(zip_archive)
    properties_element = workbook_element.find("workbookPr")
    starts_in_1904 = properties_element is not None and properties_element.get("date1904") in (
        "1",
        "true",
    )
    date_epoch = _EPOCH_BY_STARTS_IN_1904[starts_in_1904]

    def format_number(cell_value_text: str, style_number_text: str) -> str:
        try:
            serial_number = float(cell_value_text)
        except ValueError:
            return cell_value_text
        if style_number_text in date_style_numbers and 0 <= serial_number < _MAX_DATE_SERIAL_NUMBER:
            cell_moment = date_epoch + timedelta(seconds=round(serial_number * 86_400))
            if serial_number < 1:
                return f"{cell_moment:%H:%M}"
            return (
                f"{cell_moment:%Y-%m-%d}"
                if serial_number.is_integer()
                else f"{cell_moment:%Y-%m-%d %H:%M}"
            )
        # As Excel shows it: it stores 0.1 as 0.1 and 0.30000000000000004 for 0.1 + 0.2.
        return (
            f"{serial_number:.15g}" if "e" not in cell_value_text.lower() else f"{serial_number:g}"
        )

    return format_number


def _find_date_style_numbers(zip_archive: Archive) -> set[str]:
    """Return the numbers of the cell styles that show days or times."""
    if "xl/styles.xml" not in zip_archive:
        return set()
    styles_element = parse_xml(zip_archive.read_member("xl/styles.xml"))
    date_format_ids = {str(format_id) for format_id in _DATE_FORMAT_IDS}
    for number_format_element in styles_element.iter("numFmt"):
        format_code = _FORMAT_CODE_LITERAL_PATTERN.sub(
            "", number_format_element.get("formatCode", "")[:500]
        )
        if _DATE_FORMAT_LETTER_PATTERN.search(format_code):
            date_format_ids.add(number_format_element.get("numFmtId", ""))
    cell_formats_element = styles_element.find("cellXfs")
    return {
        str(style_number)
        for style_number, cell_format_element in enumerate(
            cell_formats_element if cell_formats_element is not None else ()
        )
        if cell_format_element.get("numFmtId") in date_format_ids
    }
