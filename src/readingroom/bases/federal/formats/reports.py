"""Reads committee reports: what api.congress.gov says of them in JSON, and their text in HTML.

Bills cite reports too; a report that only a bill speaks of has a record, and no more than that.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.people import parse_chamber
from readingroom.bases.federal.formats.parts.xml import parse_iso_date, strip_page_markup
from readingroom.bases.federal.schema.congress import GPO_PUBLISHER
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import (
    BILL_TYPES,
    make_bill_id,
    make_committee_id,
    make_report_id,
    parse_report_citation,
)
from readingroom.bases.federal.schema.records import CommitteeReport, LinkKind

_PREFIX_BY_REPORT_TYPE = {"hrpt": "H. Rept.", "srpt": "S. Rept.", "erpt": "Ex. Rept."}
_REPORT_ID_PATTERN = re.compile(r"crpt:(\d+)([hse]rpt)(\d+)(?:-(.+))?", re.ASCII)
_HTML_TITLE_PATTERN = re.compile(r"<title>\s*-?\s*(.*?)\s*</title>", re.S | re.I)
_PRINTED_REPORT_PATTERN = re.compile(
    r"\[(House|Senate|Executive|Senate Executive) Report (\d+)-(\d+)(?:,? (Part \d+))?\]"
)


class CommitteeReportLoader:
    """`/committee-report/117/hrpt/351`: a report, in its parts."""

    format_id: ClassVar[str] = "report/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("committee_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.lstrip()[:1] == b"{"
            and b'"committeeReports"' in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for report_data in json.loads(raw_file.data)["committeeReports"]:
            yield _parse_report(report_data, file_stamp)


class CommitteeReportTextLoader:
    """`CRPT-117hrpt351.htm`: what a report says."""

    format_id: ClassVar[str] = "report-text/2"
    record_source_names: ClassVar[tuple[str, ...]] = ("committee_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            _PRINTED_REPORT_PATTERN.search(file_start_reader.first_bytes.decode("utf-8", "replace"))
            is not None
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        markup_text = raw_file.data.decode("utf-8", "replace")
        citation_match, title_match = (
            _PRINTED_REPORT_PATTERN.search(markup_text),
            _HTML_TITLE_PATTERN.search(markup_text),
        )
        if citation_match is None:
            raise ValueError("the page does not say which report it is")
        report_type_letters = "Ex" if "Executive" in citation_match[1] else citation_match[1][0]
        report_citation = (
            f"{report_type_letters}. Rept. {citation_match[2]}-{citation_match[3]}"
            + (f",{citation_match[4]}" if citation_match[4] else "")
        )
        report_text = strip_page_markup(markup_text[citation_match.start() :]).strip()
        yield build_cited_report(
            report_citation,
            [],
            file_stamp,
            html.unescape(title_match[1]) if title_match else None,
            report_text,
        )


def build_cited_report(
    report_citation: str,
    bill_ids: list[str],
    file_stamp: FileStamp,
    report_title: str | None = None,
    report_text: str = "",
) -> ParsedRecord:
    """A report of which only its citation is known, and perhaps its text."""
    report_id = parse_report_citation(report_citation)
    report_id_match = _REPORT_ID_PATTERN.fullmatch(report_id or "")
    if report_id is None or report_id_match is None:
        raise ValueError(f"{report_citation!r} is not a committee report")
    report_record = _build_report_record(
        report_id_match[1],
        report_id_match[2],
        report_id_match[3],
        report_id_match[4],
        report_title,
        None,
        file_stamp,
        file_stamp.sha256,
        bills=bill_ids,
    )
    text_version = (
        RecordText("text", report_text, report_record.title, report_record.url, file_stamp.sha256)
        if report_text
        else None
    )
    return ParsedRecord(
        report_record,
        is_partial=True,
        searchable_fields=SearchableFields(report_record.title),
        values_by_facet=_build_report_facets(report_record),
        text=text_version,
    )


def _parse_report(report_data: dict[str, Any], file_stamp: FileStamp) -> ParsedRecord:
    # Part 1 has the id of the report itself: citations without a part mean it.
    report_part_number = int(report_data.get("part") or 1)
    related_bills = report_data.get("associatedBill") or report_data.get("associatedBills") or ()
    bill_data_by_id = {
        make_bill_id(bill_data["congress"], bill_data["type"], bill_data["number"]): bill_data
        for bill_data in related_bills
        if bill_data["type"].lower() in BILL_TYPES
    }
    report_record = _build_report_record(
        report_data["congress"],
        report_data["type"].lower(),
        report_data["number"],
        f"pt{report_part_number}" if report_part_number > 1 else None,
        report_data.get("title"),
        parse_iso_date(report_data.get("issueDate")),
        file_stamp,
        hash_item(report_data),
        session=report_data.get("sessionNumber"),
        conference=str(report_data.get("isConferenceReport")).lower() == "true",
        updated_at=report_data.get("updateDate"),
        committees=[
            make_committee_id(committee_data["systemCode"])
            for committee_data in report_data.get("committees") or ()
        ],
        bills=list(bill_data_by_id),
    )
    return ParsedRecord(
        report_record,
        searchable_fields=SearchableFields(
            report_record.title, action=report_record.citation_string
        ),
        values_by_facet=_build_report_facets(report_record),
        links=[
            RecordLink(
                LinkKind.COMMITTEE_REPORT,
                bill_id,
                f"associatedBill: {bill_data['type']} {bill_data['number']}, "
                f"congress {bill_data['congress']}",
            )
            for bill_id, bill_data in bill_data_by_id.items()
        ],
        revision=report_record.updated_at,
    )


def _build_report_record(
    congress: int | str,
    report_type: str,
    report_number: int | str,
    report_part: str | None,
    report_title: str | None,
    issued_at: str | None,
    file_stamp: FileStamp,
    raw_sha256: str,
    **record_fields: Any,
) -> CommitteeReport:
    report_label = f"{_PREFIX_BY_REPORT_TYPE[report_type]} {congress}-{report_number}" + (
        f", {_spell_report_part(report_part)}" if report_part else ""
    )
    package_id = f"CRPT-{congress}{report_type}{report_number}" + (
        f"-{report_part}" if report_part else ""
    )
    plain_title = " ".join((report_title or "").split())
    return CommitteeReport(
        id=make_report_id(congress, report_type, report_number, report_part),
        title=f"{report_label}, {plain_title}" if plain_title else report_label,
        congress=int(congress),
        type=report_type,
        number=int(report_number),
        part=report_part,
        # Executive reports, on treaties and nominations, are the Senate's alone.
        chamber=parse_chamber("senate" if report_type == "erpt" else report_type),
        issued_at=issued_at,
        **build_citation_fields(
            file_stamp,
            url=f"https://www.govinfo.gov/app/details/{package_id}",
            org=GPO_PUBLISHER,
            cite=f"{report_label}, {plain_title}" if plain_title else report_label,
            published_at=issued_at,
            raw_sha256=raw_sha256,
        ),
        **record_fields,
    )


def _spell_report_part(report_part: str) -> str:
    """`pt2` as `Part 2`, `bk1` as `Book 1`."""
    word_by_part_code = {"pt": "Part", "bk": "Book"}
    return (
        f"{word_by_part_code[report_part[:2]]} {report_part[2:]}"
        if report_part[:2] in word_by_part_code
        else report_part.capitalize()
    )


def _build_report_facets(report_record: CommitteeReport) -> dict[str, list[str]]:
    return {
        "congress": [str(report_record.congress)],
        "type": [report_record.type],
        "chamber": [report_record.chamber] if report_record.chamber else [],
        "bill": report_record.bills,
    }
