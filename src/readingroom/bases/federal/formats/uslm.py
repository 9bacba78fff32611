"""Reads USLM XML: the text of bills and resolutions in each of their versions, and enacted laws."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats import reports
from readingroom.bases.federal.formats.parts.bill_preface import (
    PrintedPreface,
    find_printed_reports,
    find_short_titles,
    parse_preface,
)
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.people import (
    build_committee_stub,
    build_legislator_stub,
    format_sponsor_lines,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.printed_progress import (
    PrintedAction,
    determine_printed_progress,
)
from readingroom.bases.federal.formats.parts.prose import extract_prose
from readingroom.bases.federal.formats.parts.xml import find_text, parse_xml
from readingroom.bases.federal.schema.congress import (
    GPO_PUBLISHER,
    LABEL_BY_BILL_TYPE,
    build_bill_page_url,
    format_bill_number,
)
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import (
    make_bill_id,
    make_law_id,
    parse_federal_id,
    parse_report_citation,
)
from readingroom.bases.federal.schema.records import Bill, Cosponsor, Law, LinkKind
from readingroom.core.text import fold_dashes

USLM_NAMESPACE = b"http://schemas.gpo.gov/xml/uslm"
_GOVINFO_URL = "https://www.govinfo.gov/app/details"
# 116sjres65rfh, and in titles: 116 SJRES 65 RFH: Providing for the reappointment …
_SPACED_CITATION_PATTERN = re.compile(
    r"(\d+)\s?([A-Z]+)\s(\d+)\s?([A-Z]*\s?\d*)\s?:?\s*(.*)", re.S | re.I
)
_COMPACT_CITATION_PATTERN = re.compile(r"(\d+)([a-z]+)(\d+)([a-z]+\d*)")
_BILL_HREF_PATTERN = re.compile(r"/us/bill/(\d+)/([a-z]+)/(\d+)")
_REPORT_HREF_PATTERN = re.compile(r"/us/([hs])rpt/\d+/\d+")
_MAIN_TAGS = ("main", "amendMain")
# Some files have no more than this where their title should be.
_UNINFORMATIVE_TITLE_PATTERN = re.compile(
    r"(?:(?:Joint|Concurrent|Simple) )?Resolution|(?:A )?Bill|An Act", re.I
)
_ENTITLED_PATTERN = re.compile(r"entitled “(?:An Act )?(.+?)[.,]?”")
_MONTH_NAME_DATE_PATTERN = re.compile(r"[A-Z][a-z]+\.? \d{1,2}, \d{4}")


class BillTextLoader:
    """`BILLS-116hr1rh.xml`: one version of the text of a bill or resolution."""

    format_id: ClassVar[str] = "uslm-bill/4"
    record_source_names: ClassVar[tuple[str, ...]] = ("bills",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return is_uslm(file_start_reader, b"<bill ", b"<resolution ", b"<engrossedAmendment ")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        bill_element = parse_xml(raw_file.data)
        parsed_bill = _build_bill(bill_element, _get_metadata_element(bill_element), file_stamp)
        # Stubs first: rows of cosponsors and committees have foreign keys to them.
        yield from _build_first_page_stubs(parsed_bill, file_stamp)
        yield parsed_bill


class LawLoader:
    """`115publ11-uslm.xml`: a public or private law as enacted."""

    format_id: ClassVar[str] = "uslm-law/5"
    record_source_names: ClassVar[tuple[str, ...]] = ("public_laws", "committee_reports")
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return is_uslm(file_start_reader, b"<pLaw ")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        law_element = parse_xml(raw_file.data)
        citations_and_evidence = list(_find_cited_reports(law_element))
        yield _build_law(
            law_element, _get_metadata_element(law_element), citations_and_evidence, file_stamp
        )
        bill_id_and_evidence = _find_bill_and_evidence(law_element)
        for report_citation, _ in citations_and_evidence:
            yield reports.build_cited_report(
                report_citation,
                [bill_id_and_evidence[0]] if bill_id_and_evidence else [],
                file_stamp,
            )


def is_uslm(file_start_reader: FileStartReader, *root_tags: bytes) -> bool:
    """Whether a file is in this language, and of one of these kinds."""
    return USLM_NAMESPACE in file_start_reader.first_bytes and any(
        root_tag in file_start_reader.first_bytes for root_tag in root_tags
    )


def _get_metadata_element(document_element: Element) -> Element:
    for tag_name in ("meta", "amendMeta"):
        if (metadata_element := document_element.find(tag_name)) is not None:
            return metadata_element
    raise ValueError("no <meta> in this file")


def _build_bill(
    bill_element: Element, metadata_element: Element, file_stamp: FileStamp
) -> ParsedRecord:
    congress, bill_type, bill_number, version_code = _parse_bill_identity(metadata_element)
    bill_id = make_bill_id(congress, bill_type, bill_number)
    bill_title = _find_bill_title(bill_element, metadata_element) or bill_id
    stage_label = find_text(metadata_element, "docStage")
    newest_date = _find_newest_action_date(bill_element)
    bill_url = build_bill_page_url(congress, bill_type, bill_number)
    citation_text = f"{format_bill_number(congress, bill_type, bill_number)}, {bill_title}"
    printed_preface = parse_preface(
        _list_dates_and_action_elements(bill_element, ("preface", "amendPreface"))
    )
    bill_stage, reached_at = determine_printed_progress(
        bill_type,
        version_code,
        [
            PrintedAction.parse(*date_and_element)
            for date_and_element in _list_dates_and_action_elements(
                bill_element, ("preface", "amendPreface", "attestation", "endorsement")
            )
        ],
        printed_preface.introduced_at,
    )
    short_titles = find_short_titles(bill_element)
    evidence_by_report_citation = find_printed_reports(bill_element)
    report_id_by_citation = {
        report_citation: parse_report_citation(report_citation) or ""
        for report_citation in evidence_by_report_citation
    }
    bill_record = Bill(
        id=bill_id,
        title=bill_title,
        congress=congress,
        type=bill_type,
        number=bill_number,
        origin_chamber=parse_chamber(bill_type),
        introduced_at=printed_preface.introduced_at,
        sponsors=printed_preface.sponsors,
        committees=printed_preface.committees,
        short_titles=short_titles,
        cosponsor_count=len(printed_preface.cosponsors),
        committee_reports=list(report_id_by_citation),
        report_ids=list(report_id_by_citation.values()),
        stage=bill_stage,
        stage_at=reached_at,
        status_loaded=False,
        **build_citation_fields(
            file_stamp,
            url=bill_url,
            org=GPO_PUBLISHER,
            cite=citation_text,
            published_at=newest_date,
        ),
    )
    return ParsedRecord(
        bill_record,
        is_partial=True,
        is_fallback=True,
        searchable_fields=SearchableFields(
            "\n".join((citation_text, *short_titles)),
            action="\n".join(format_sponsor_lines(printed_preface.sponsors)),
        ),
        values_by_facet={
            "congress": [str(congress)],
            "type": [bill_type],
            "chamber": [parse_chamber(bill_type) or ""],
            "member": [
                bill_sponsor.bioguide_id
                for bill_sponsor in printed_preface.sponsors
                if bill_sponsor.bioguide_id
            ],
        },
        child_rows_by_table=_build_child_rows(printed_preface),
        text=RecordText(
            part=version_code,
            body=extract_body_text(bill_element),
            title=f"{LABEL_BY_BILL_TYPE[bill_type]} {bill_number} "
            f"({stage_label or version_code.upper()}): {bill_title}",
            url=f"{_GOVINFO_URL}/BILLS-{congress}{bill_type}{bill_number}{version_code}",
            raw_sha256=file_stamp.sha256,
            stage=stage_label,
            dated=newest_date,
        ),
        # No record of a report is made: what its citation says of it is all that is known.
        links=[
            RecordLink(
                LinkKind.COMMITTEE_REPORT,
                report_id,
                evidence_by_report_citation[report_citation],
            )
            for report_citation, report_id in report_id_by_citation.items()
        ],
    )


def _list_dates_and_action_elements(
    bill_element: Element, containing_tags: Sequence[str]
) -> list[tuple[str | None, Element]]:
    """Return the actions that stand in these parts of a text, each with its day."""
    return [
        (
            _read_element_date(date_element)
            if (date_element := action_element.find("date")) is not None
            else None,
            action_element,
        )
        for containing_tag in containing_tags
        for action_element in bill_element.iterfind(f"{containing_tag}//action")
    ]


def _build_child_rows(printed_preface: PrintedPreface) -> dict[str, list[tuple[Any, ...]]]:
    rows_by_table: dict[str, list[tuple[Any, ...]]] = {
        "bill_cosponsors": [
            (list_position, bill_cosponsor.bioguide_id, bill_cosponsor.model_dump_json())
            for list_position, bill_cosponsor in enumerate(printed_preface.cosponsors, start=1)
        ],
        "bill_committees": [(bill_committee.id,) for bill_committee in printed_preface.committees],
    }
    return {
        table_name: child_rows for table_name, child_rows in rows_by_table.items() if child_rows
    }


def _build_first_page_stubs(
    parsed_bill: ParsedRecord, file_stamp: FileStamp
) -> Iterator[ParsedRecord]:
    """Yield stubs of the people and committees that the first page names."""
    assert isinstance(parsed_bill.record, Bill)
    cosponsor_rows = parsed_bill.child_rows_by_table.get("bill_cosponsors", ())
    bill_cosponsors = (
        Cosponsor.model_validate_json(cosponsor_row[2]) for cosponsor_row in cosponsor_rows
    )
    for named_person in (*parsed_bill.record.sponsors, *bill_cosponsors):
        if named_person.bioguide_id:
            yield build_legislator_stub(named_person, file_stamp)
    for bill_committee in parsed_bill.record.committees:
        yield build_committee_stub(
            bill_committee.id, bill_committee.name, bill_committee.chamber, file_stamp
        )


def _parse_bill_identity(metadata_element: Element) -> tuple[int, str, int, str]:
    """Congress, type, number and version, from the compact citation or from the title."""
    for citation_element in metadata_element.iterfind("citableAs"):
        if citation_match := _COMPACT_CITATION_PATTERN.fullmatch(
            (find_text(citation_element) or "").lower()
        ):
            return (
                int(citation_match[1]),
                _parse_bill_type(citation_match[2]),
                int(citation_match[3]),
                citation_match[4],
            )
    if citation_match := _SPACED_CITATION_PATTERN.match(
        (find_text(metadata_element, "title") or "").removeprefix("AMENDMENTS to ")
    ):
        version_code = citation_match[4].replace(" ", "").lower()
        return (
            int(citation_match[1]),
            _parse_bill_type(citation_match[2]),
            int(citation_match[3]),
            version_code or "pre",
        )
    raise ValueError("the file does not say which bill it is")


def _parse_bill_type(type_text: str) -> str:
    if (bill_type := type_text.lower()) in LABEL_BY_BILL_TYPE:
        return bill_type
    raise ValueError(f"{type_text!r} is not a type of bill")


def _find_bill_title(bill_element: Element, metadata_element: Element) -> str | None:
    """What a bill is about: its title, or what stands for one where a file has none.

    Amendments name the act they amend, simple resolutions begin with what they resolve.
    """
    if official_title := find_text(bill_element, ".//officialTitle") or _find_metadata_title(
        metadata_element
    ):
        return official_title
    text_element = next(
        (
            main_element
            for tag_name in _MAIN_TAGS
            if (main_element := bill_element.find(tag_name)) is not None
        ),
        bill_element,
    )
    opening_text = next(filter(None, map(find_text, text_element.iterfind(".//content"))), "")
    if entitled_match := _ENTITLED_PATTERN.search(opening_text):
        return entitled_match[1][:1].upper() + entitled_match[1][1:]
    first_heading = find_text(text_element, ".//section/heading")
    return (first_heading and _lower_capital_heading(first_heading)) or _extract_first_sentence(
        opening_text
    )


def _find_metadata_title(metadata_element: Element) -> str | None:
    title_match = _SPACED_CITATION_PATTERN.match(find_text(metadata_element, "title") or "")
    printed_title = title_match[5] if title_match else ""
    return (
        None
        if not printed_title or _UNINFORMATIVE_TITLE_PATTERN.fullmatch(printed_title)
        else printed_title
    )


def _lower_capital_heading(heading_text: str) -> str:
    plain_heading = heading_text.rstrip(".")
    return plain_heading.capitalize() if plain_heading.isupper() else plain_heading


def _extract_first_sentence(paragraph_text: str) -> str | None:
    first_sentence = paragraph_text.removeprefix("That ").partition(". ")[0].rstrip(".")
    return (first_sentence[:1].upper() + first_sentence[1:])[:200] or None


def extract_body_text(document_element: Element) -> str:
    """What the document says, from its title to its last section, without its metadata."""
    for tag_name in _MAIN_TAGS:
        if (main_element := document_element.find(tag_name)) is not None:
            return extract_prose(main_element)
    raise ValueError("no <main> in this file")


def _find_newest_action_date(bill_element: Element) -> str | None:
    """The newest date its actions bear; some only spell it out."""
    action_dates = [
        action_date
        for date_element in bill_element.iterfind(".//action/date")
        if (action_date := _read_element_date(date_element))
    ]
    return max(action_dates, default=None)


def _read_element_date(date_element: Element) -> str | None:
    return date_element.get("date") or parse_spelled_date(find_text(date_element))


def parse_spelled_date(date_text: str | None) -> str | None:
    """The first `October 11, 2013` or `Mar. 27, 2017` in a text, as a date."""
    date_match = _MONTH_NAME_DATE_PATTERN.search(date_text or "")
    for date_format in ("%B %d, %Y", "%b. %d, %Y", "%b %d, %Y") if date_match else ():
        try:
            assert date_match is not None
            return datetime.strptime(date_match[0], date_format).date().isoformat()  # noqa: DTZ007 a day
        except ValueError:
            continue
    return None


def _build_law(
    law_element: Element,
    metadata_element: Element,
    citations_and_evidence: Sequence[tuple[str, str]],
    file_stamp: FileStamp,
) -> ParsedRecord:
    # Where `publicPrivate` is missing, the type says it.
    is_private = (
        (find_text(metadata_element, "publicPrivate") or find_text(metadata_element, "type") or "")
        .lower()
        .startswith("private")
    )
    congress = int(find_text(metadata_element, "congress") or "")
    law_number = int(find_text(metadata_element, "docNumber") or "")
    law_id = make_law_id(f"{congress}-{law_number}", is_private)
    law_label = f"{'Private' if is_private else 'Public'} Law {congress}-{law_number}"
    law_title = (
        fold_dashes(find_text(metadata_element, "title") or law_label).partition(": ")[2]
        or law_label
    )
    approved_at = _find_approval_date(law_element)
    bill_id_and_evidence = _find_bill_and_evidence(law_element)
    law_text = extract_body_text(law_element)
    citation_texts = [
        find_text(citation_element) or ""
        for citation_element in metadata_element.iterfind("citableAs")
    ]
    statutes_citations = [citation for citation in citation_texts if "Stat." in citation]
    package_id = f"PLAW-{congress}{'pvtl' if is_private else 'publ'}{law_number}"
    url = f"{_GOVINFO_URL}/{package_id}"
    citation_text = ", ".join((law_label, *statutes_citations[:1]))
    law_record = Law(
        id=law_id,
        title=f"{law_label}: {law_title}" if law_title != law_label else law_label,
        congress=congress,
        number=law_number,
        private=is_private,
        bill_id=bill_id_and_evidence[0] if bill_id_and_evidence else None,
        approved_at=approved_at,
        statutes_at_large=statutes_citations[0] if statutes_citations else None,
        characters=len(law_text),
        **build_citation_fields(
            file_stamp, url=url, org=GPO_PUBLISHER, cite=citation_text, published_at=approved_at
        ),
    )
    values_by_facet = {"congress": [str(congress)], "type": ["private" if is_private else "public"]}
    text_version = RecordText(
        "text", law_text, law_record.title, url, file_stamp.sha256, "Enacted", approved_at
    )
    law_links = [RecordLink(LinkKind.LAW, *bill_id_and_evidence)] if bill_id_and_evidence else []
    for citation, evidence_text in citations_and_evidence:
        law_links.append(
            RecordLink(
                LinkKind.COMMITTEE_REPORT, parse_report_citation(citation) or "", evidence_text
            )
        )
    return ParsedRecord(
        law_record,
        searchable_fields=SearchableFields(law_record.title),
        values_by_facet=values_by_facet,
        text=text_version,
        links=law_links,
    )


def _find_cited_reports(law_element: Element) -> Iterator[tuple[str, str]]:
    """The reports on what became a law, as they are cited, from the history printed after it."""
    for ref_element in law_element.iterfind("legislativeHistory//ref"):
        if report_match := _REPORT_HREF_PATTERN.fullmatch(ref_element.get("href") or ""):
            citation_text = " ".join(
                "".join((*ref_element.itertext(), ref_element.tail or "")).split()
            )
            report_citation = f"{report_match[1].upper()}. Rept. {fold_dashes(citation_text)}"
            if parse_report_citation(report_citation):
                yield report_citation, f"legislativeHistory: {citation_text}"


def _find_approval_date(law_element: Element) -> str | None:
    # The date of approval stands in one of these, the surest of them first.
    for date_path in (
        "main/longTitle//sidenote/p",
        "main/action/actionDescription",
        "main//sidenote/p",
    ):
        for date_element in law_element.iterfind(date_path):
            if approval_date := parse_spelled_date(find_text(date_element)):
                return approval_date
    return None


def _find_bill_and_evidence(law_element: Element) -> tuple[str, str] | None:
    """The bill a law was, and the words that say so beside its title or in its history."""
    # The long title first: notes further down refer to other bills as well.
    for ref_path in ("main/longTitle//ref", "legislativeHistory//ref", "main//sidenote//ref"):
        for ref_element in law_element.iterfind(ref_path):
            if bill_match := _BILL_HREF_PATTERN.match(ref_element.get("href") or ""):
                bill_id = parse_federal_id(
                    f"bill:{bill_match[1]}-{bill_match[2]}-{bill_match[3]}"
                ).id
                cited_text = find_text(ref_element) or ref_element.get("href")
                return bill_id, f"{ref_path.partition('//')[0]}: {cited_text}"
    return None
