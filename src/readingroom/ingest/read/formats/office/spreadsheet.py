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
_FORMAT_LITERALS_PATTERN = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_LETTERS_PATTERN = re.compile(r"[dmyhs]", re.IGNORECASE)
_EPOCH_BY_IS_1904 = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001 no zone in it
# The last day that Excel knows, in the year 9999.
_MAX_SERIAL_DAY = 2_958_466


def read_xlsx(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the sheets of a workbook; raise a `Refusal`."""
    zip_archive = Archive(file_bytes, MAX_UNPACKED_BYTES)
    workbook_element = parse_xml(zip_archive.read_member("xl/workbook.xml"))
    sheet_paths = _list_sheet_paths(zip_archive, workbook_element)
    if len(sheet_paths) > read_options.max_pages:
        raise Refusal(
            "extraction_failed",
            f"The workbook has {len(sheet_paths):,} sheets; "
            f"at most {read_options.max_pages:,} are read",
        )
    shared_texts = _read_shared_texts(zip_archive)
    format_number = _make_number_formatter(zip_archive, workbook_element)
    page_builder = PageBuilder()
    for sheet_name, part_name in sheet_paths:
        page_builder.add_paragraph(sheet_name, heading_level=1)
        for row_index, row_element in enumerate(
            parse_xml(zip_archive.read_member(part_name)).iter("row")
        ):
            cell_texts = [
                _read_cell(cell_element, shared_texts, format_number)
                for cell_element in row_element.iter("c")
            ]
            page_builder.add_row(cell_texts, is_first_row=row_index == 0)
        page_builder.end_page(sheet_name)
    return page_builder.finish_pages()


def _list_sheet_paths(zip_archive: Archive, workbook_element: Element) -> list[tuple[str, str]]:
    """Return the sheets in their order: names, and the parts of the archive that hold them."""
    relations_element = parse_xml(zip_archive.read_member("xl/_rels/workbook.xml.rels"))
    target_by_relation = {
        relation_element.get("Id"): relation_element.get("Target", "")
        for relation_element in relations_element.iter("Relationship")
    }
    sheet_paths = []
    for sheet_element in workbook_element.iter("sheet"):
        target_path = target_by_relation.get(sheet_element.get("id"), "")
        part_name = target_path.lstrip("/") if target_path.startswith("/") else f"xl/{target_path}"
        if "worksheets" in part_name:  # not a chart that has a sheet of its own
            sheet_paths.append((sheet_element.get("name", ""), part_name))
    return sheet_paths


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


def _read_cell(
    cell_element: Element, shared_texts: list[str], format_number: Callable[[str, str], str]
) -> str:
    cell_type = cell_element.get("t", "n")
    if cell_type == "inlineStr":
        inline_element = cell_element.find("is")
        return "".join(_iterate_texts(inline_element)) if inline_element is not None else ""
    value_element = cell_element.find("v")
    cell_value = (value_element.text or "") if value_element is not None else ""
    match cell_type:
        case "s":
            is_known = (
                cell_value.isdecimal()
                and len(cell_value) < 9
                and int(cell_value) < len(shared_texts)
            )
            return shared_texts[int(cell_value)] if is_known else ""
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
    date_epoch = _EPOCH_BY_IS_1904[starts_in_1904]

    def format_number(cell_value: str, style_number: str) -> str:
        try:
            serial_number = float(cell_value)
        except ValueError:
            return cell_value
        if style_number in date_style_numbers and 0 <= serial_number < _MAX_SERIAL_DAY:
            cell_moment = date_epoch + timedelta(seconds=round(serial_number * 86_400))
            if serial_number < 1:
                return f"{cell_moment:%H:%M}"
            return (
                f"{cell_moment:%Y-%m-%d}"
                if serial_number.is_integer()
                else f"{cell_moment:%Y-%m-%d %H:%M}"
            )
        # As Excel shows it: it stores 0.1 as 0.1 and 0.30000000000000004 for 0.1 + 0.2.
        return f"{serial_number:.15g}" if "e" not in cell_value.lower() else f"{serial_number:g}"

    return format_number


def _find_date_style_numbers(zip_archive: Archive) -> set[str]:
    """Return the numbers of the cell styles that show days or times."""
    if "xl/styles.xml" not in zip_archive:
        return set()
    styles_element = parse_xml(zip_archive.read_member("xl/styles.xml"))
    date_format_ids = {str(format_id) for format_id in _DATE_FORMAT_IDS}
    for number_format in styles_element.iter("numFmt"):
        format_code = _FORMAT_LITERALS_PATTERN.sub("", number_format.get("formatCode", "")[:500])
        if _DATE_LETTERS_PATTERN.search(format_code):
            date_format_ids.add(number_format.get("numFmtId", ""))
    cell_formats = styles_element.find("cellXfs")
    return {
        str(format_index)
        for format_index, cell_format in enumerate(cell_formats if cell_formats is not None else ())
        if cell_format.get("numFmtId") in date_format_ids
    }
