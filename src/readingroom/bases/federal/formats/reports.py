"""Reads committee reports: what api.congress.gov says of them in JSON, and their text in HTML.

Bills cite reports too; a report that only a bill speaks of has a record, and no more than that.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.people import parse_chamber
from readingroom.bases.federal.formats.parts.xml import parse_iso_date
from readingroom.bases.federal.schema.congress import GPO
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
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

_SPOKEN = {"hrpt": "H. Rept.", "srpt": "S. Rept.", "erpt": "Ex. Rept."}
_ID = re.compile(r"crpt:(\d+)([hse]rpt)(\d+)(?:-(.+))?", re.ASCII)
_TITLE = re.compile(r"<title>\s*-?\s*(.*?)\s*</title>", re.S | re.I)
_PRINTED = re.compile(
    r"\[(House|Senate|Executive|Senate Executive) Report (\d+)-(\d+)(?:,? (Part \d+))?\]"
)
_TAG = re.compile(r"</?[A-Za-z][^>\n]*>")


class Reports:
    """`/committee-report/117/hrpt/351`: a report, in its parts."""

    format_id: ClassVar[str] = "report/2"
    sources: ClassVar[tuple[str, ...]] = ("committee_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.lstrip()[:1] == b"{" and b'"committeeReports"' in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        for item in json.loads(file.data)["committeeReports"]:
            yield _parse_report(item, provenance)


class ReportTexts:
    """`CRPT-117hrpt351.htm`: what a report says."""

    format_id: ClassVar[str] = "report-text/1"
    sources: ClassVar[tuple[str, ...]] = ("committee_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return _PRINTED.search(start.head.decode("utf-8", "replace")) is not None

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        markup = file.data.decode("utf-8", "replace")
        printed, title = _PRINTED.search(markup), _TITLE.search(markup)
        if printed is None:
            raise ValueError("the page does not say which report it is")
        kind = "Ex" if "Executive" in printed[1] else printed[1][0]
        cite = f"{kind}. Rept. {printed[2]}-{printed[3]}" + (f",{printed[4]}" if printed[4] else "")
        body = html.unescape(_TAG.sub("", markup[printed.start() :])).strip()
        yield build_cited_report(
            cite, [], provenance, html.unescape(title[1]) if title else None, body
        )


def build_cited_report(
    citation: str,
    bills: list[str],
    provenance: Provenance,
    title: str | None = None,
    body: str = "",
) -> ParsedRecord:
    """A report of which only its citation is known, and perhaps its text."""
    id = parse_report_citation(citation)
    match = _ID.fullmatch(id or "")
    if id is None or match is None:
        raise ValueError(f"{citation!r} is not a committee report")
    record = _build_record(
        match[1],
        match[2],
        match[3],
        match[4],
        title,
        None,
        provenance,
        provenance.sha256,
        bills=bills,
    )
    text = Text("text", body, record.title, record.url, provenance.sha256) if body else None
    return ParsedRecord(
        record, partial=True, head=SearchHead(record.title), facets=_build_facets(record), text=text
    )


def _parse_report(data: dict[str, Any], provenance: Provenance) -> ParsedRecord:
    # Part 1 has the id of the report itself: citations without a part mean it.
    part = int(data.get("part") or 1)
    related = data.get("associatedBill") or data.get("associatedBills") or ()
    bills = {
        make_bill_id(item["congress"], item["type"], item["number"]): item
        for item in related
        if item["type"].lower() in BILL_TYPES
    }
    record = _build_record(
        data["congress"],
        data["type"].lower(),
        data["number"],
        f"pt{part}" if part > 1 else None,
        data.get("title"),
        parse_iso_date(data.get("issueDate")),
        provenance,
        hash_item(data),
        session=data.get("sessionNumber"),
        conference=str(data.get("isConferenceReport")).lower() == "true",
        updated_at=data.get("updateDate"),
        committees=[
            make_committee_id(committee["systemCode"]) for committee in data.get("committees") or ()
        ],
        bills=list(bills),
    )
    return ParsedRecord(
        record,
        head=SearchHead(record.title, action=record.citation_string),
        facets=_build_facets(record),
        links=[
            Link(
                LinkKind.COMMITTEE_REPORT,
                bill,
                f"associatedBill: {item['type']} {item['number']}, congress {item['congress']}",
            )
            for bill, item in bills.items()
        ],
        revision=record.updated_at,
    )


def _build_record(
    congress: int | str,
    kind: str,
    number: int | str,
    part: str | None,
    title: str | None,
    issued: str | None,
    provenance: Provenance,
    raw_sha256: str,
    **fields: Any,
) -> CommitteeReport:
    label = f"{_SPOKEN[kind]} {congress}-{number}" + (f", {_spell_part(part)}" if part else "")
    package = f"CRPT-{congress}{kind}{number}" + (f"-{part}" if part else "")
    about = " ".join((title or "").split())
    return CommitteeReport(
        id=make_report_id(congress, kind, number, part),
        title=f"{label}, {about}" if about else label,
        congress=int(congress),
        type=kind,
        number=int(number),
        part=part,
        # Executive reports, on treaties and nominations, are the Senate's alone.
        chamber=parse_chamber("senate" if kind == "erpt" else kind),
        issued_at=issued,
        **build_citation_fields(
            provenance,
            url=f"https://www.govinfo.gov/app/details/{package}",
            org=GPO,
            cite=f"{label}, {about}" if about else label,
            published_at=issued,
            raw_sha256=raw_sha256,
        ),
        **fields,
    )


def _spell_part(part: str) -> str:
    """`pt2` as `Part 2`, `bk1` as `Book 1`."""
    words = {"pt": "Part", "bk": "Book"}
    return f"{words[part[:2]]} {part[2:]}" if part[:2] in words else part.capitalize()


def _build_facets(record: CommitteeReport) -> dict[str, list[str]]:
    return {
        "congress": [str(record.congress)],
        "type": [record.type],
        "chamber": [record.chamber] if record.chamber else [],
        "bill": record.bills,
    }
