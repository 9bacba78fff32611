"""Reads the Federal Register: whole issues in USLM XML, single documents in its API's JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts import references
from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_law_links
from readingroom.bases.federal.formats.parts.prose import extract_prose
from readingroom.bases.federal.formats.parts.topics import (
    SubjectSpellings,
    build_topic,
    build_topic_links,
    drop_repeated_topics,
    find_listed_subjects,
)
from readingroom.bases.federal.formats.parts.xml import (
    find_text,
    hash_element,
    parse_iso_date,
    parse_xml,
)
from readingroom.bases.federal.formats.uslm import USLM_NAMESPACE, parse_spelled_date
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_cfr_id, make_docket_id, parse_federal_id
from readingroom.bases.federal.schema.presidents import find_president_on
from readingroom.bases.federal.schema.records import LinkKind, PresidentialDocument, Rule
from readingroom.core.text import fold_dashes

PUBLISHER = "Office of the Federal Register"
_PRESIDENTIAL_DOCUMENT_TYPE = "presidential document"
_TYPE_BY_API_TYPE = {
    "rule": "rule",
    "proposed rule": "proposed rule",
    "notice": "notice",
    _PRESIDENTIAL_DOCUMENT_TYPE: _PRESIDENTIAL_DOCUMENT_TYPE,
}
# EPA-HQ-OAR-2025-0001, FDA-2017-N-5437, DoD-2009-OS-0160; not SR-MIAX-2017-39, a file of the SEC.
_DOCKET_NUMBER_PATTERN = re.compile(
    r"(?<![\w-])(?!SR-)(?:[A-Z][a-z][A-Z]|[A-Z][A-Z0-9]*)(?:-[A-Z0-9]+)*"
    r"-(?:19|20)\d\d(?:-[A-Z]+)?-\d{4,5}\b"
)
_CFR_PARTS_PATTERN = re.compile(r"(\d+) CFR Parts? (\d+[a-z]?(?:(?:,? and |, )\d+[a-z]?)*)")
_JSON_FIRST_BYTE_COUNT = 65_536
_DOCUMENT_HREF_PATTERN = re.compile(r"/us/fr/\d+/frdoc([^/]+)")
# Above a document the President signed: `Executive Order 13834 of May 17, 2018`.
_ORDER_DESIGNATION_PATTERN = re.compile(
    r"(Executive Order|Proclamation|Notice|Memorandum|(?:Presidential )?Determination"
    r"|(?:Presidential )?Order)(?: (?:No\. ?)?([\d-]+))? of ([A-Z][a-z]+ \d{1,2}, \d{4})"
)
_PAGE_HEADER_PATTERN = re.compile(r"Title 3\b.*|The President|Presidential Documents?", re.I)
# As the Register's API calls the kinds of presidential documents.
_API_TYPE_BY_DESIGNATION = {
    "Presidential Determination": "Determination",
    "Order": "Presidential Order",
}


class RegisterIssueLoader:
    """`FR-2017-10-03-uslm.xml`: every document of one day's issue."""

    format_id: ClassVar[str] = "register-issue/5"
    record_source_names: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for_columns: ClassVar[str | None] = "published_at"

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            USLM_NAMESPACE in file_start_reader.first_bytes
            and b"<frDoc" in file_start_reader.first_bytes
        )

    def parse(
        self, raw_file: RawFile, file_stamp: FileStamp
    ) -> Iterator[ParsedRecord | FileProblem]:
        issue_element = parse_xml(raw_file.data)
        metadata_element = issue_element.find("meta")
        published_at, volume_number_text = (
            parse_iso_date(find_text(metadata_element, "date")),
            find_text(metadata_element, "volume"),
        )
        listed_titles_by_number = _read_listed_titles(issue_element)
        printed_document_numbers = set()
        document_elements = list(filter(_is_document_element, issue_element.iter()))
        subjects_by_document = [*map(find_listed_subjects, document_elements)]
        subject_spellings = SubjectSpellings(chain.from_iterable(subjects_by_document))
        for document_element, listed_subjects in zip(
            document_elements, subjects_by_document, strict=True
        ):
            topic_names = subject_spellings.spell(listed_subjects)
            for topic_name in topic_names:
                yield build_topic(topic_name, file_stamp, "federal_register")
            parsed_document = _parse_printed_document(
                document_element,
                topic_names,
                published_at,
                volume_number_text,
                listed_titles_by_number,
                file_stamp,
            )
            printed_document_numbers.add(parsed_document.record.id.removeprefix("presdoc:"))
            yield parsed_document
        for missing_document_number in sorted(
            listed_titles_by_number.keys() - printed_document_numbers
        ):
            yield FileProblem(
                f"the contents of this issue list {missing_document_number} "
                f"({listed_titles_by_number[missing_document_number][:100]}), which is not in the "
                f"file: download the issue of {published_at} again, or load the document from the "
                "Federal Register's API"
            )


def _is_document_element(element: Element) -> bool:
    """Whether an element is a document: it has a number of its own, and is no unit of the issue."""
    if element.tag == "component" or not len(element) or element[0].tag != "meta":
        return False
    return element[0].find("docNumber") is not None


def _read_listed_titles(issue_element: Element) -> dict[str, str]:
    """Return the title of every document that the contents of an issue list, by its number."""
    title_by_number = {}
    for contents_element in issue_element.iter("toc"):
        if contents_element.get("role") != "fr-contents":
            continue
        for reference_element in contents_element.iter("referenceItem"):
            for target_element in reference_element.iterfind("target"):
                if document_match := _DOCUMENT_HREF_PATTERN.fullmatch(
                    fold_dashes(target_element.get("href") or "")
                ):
                    document_number = parse_federal_id(document_match[1]).id
                    title_by_number[document_number] = (
                        find_text(reference_element, "label") or ""
                    ).rstrip(" ,")
    return title_by_number


class RegisterJsonLoader:
    """A document, or a page of results, as api/v1/documents of the Federal Register gives it."""

    format_id: ClassVar[str] = "register-json/3"
    record_source_names: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        # The API may put a long abstract and every agency first.
        return file_start_reader.first_bytes.lstrip()[
            :1
        ] == b"{" and b'"document_number"' in file_start_reader.read_start(_JSON_FIRST_BYTE_COUNT)

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        file_data = json.loads(raw_file.data)
        for document_data in file_data.get("results", [file_data]):
            for topic_name in drop_repeated_topics(document_data.get("topics") or ()):
                yield build_topic(topic_name, file_stamp, "federal_register")
            yield _parse_api_document(document_data, file_stamp)


def slugify(agency_name: str) -> str:
    return "-".join(re.findall("[a-z0-9]+", agency_name.lower()))


def _parse_printed_document(
    document_element: Element,
    topic_names: list[str],
    published_at: str | None,
    volume_number_text: str | None,
    listed_titles_by_number: Mapping[str, str],
    file_stamp: FileStamp,
) -> ParsedRecord:
    metadata_element, preface_element = (
        document_element.find("meta"),
        document_element.find("preface"),
    )
    document_number = parse_federal_id(find_text(metadata_element, "docNumber") or "").id
    document_type = _parse_document_type(document_element.tag, find_text(metadata_element, "type"))
    agency_names = list(dict.fromkeys(_read_agency_names(preface_element)))
    first_page_label = find_text(metadata_element, "startingPage")
    summary_element = document_element.find(".//statement[@role='summary']")
    main_element = document_element.find("main")
    action_text = find_text(metadata_element, "property[@role='ACTION']")
    document_fields = {
        "number": document_number,
        "kind": document_type,
        "title": find_text(preface_element, "subject")
        or listed_titles_by_number.get(document_number)
        or document_number,
        "published": published_at,
        "fr_citation": f"{volume_number_text} FR {first_page_label}"
        if volume_number_text and first_page_label
        else None,
        "abstract": _read_summary(summary_element),
        "agencies": agency_names,
        "slugs": [slugify(agency_name) for agency_name in agency_names],
        "action": action_text,
        "url": f"https://www.federalregister.gov/d/{document_number}",
        "raw": hash_element(document_element),
        "cfr": _read_reference_texts(preface_element, "affected"),
        "dockets": _read_reference_texts(preface_element, "property[@role='DEPDOC']"),
        "rins": [
            rule_id_number.removeprefix("RIN ")
            for rule_id_number in _read_reference_texts(preface_element, "property[@role='RIN']")
        ],
        "topics": topic_names,
        "topics_label": "List of Subjects",
        "body": extract_prose(main_element) if main_element is not None else "",
        "authorities": [
            find_text(authority_element) or ""
            for authority_element in document_element.iter("authority")
        ],
        "cited": references.collect_references((main_element,)).words_by_cfr_section_id
        if main_element is not None
        else {},
    }
    if document_type == _PRESIDENTIAL_DOCUMENT_TYPE:
        document_fields |= _parse_presidential_fields(
            document_element, document_number, listed_titles_by_number, published_at
        )
    return _build_document(document_fields, file_stamp)


def _parse_document_type(tag_name: str, stated_type: str | None) -> str:
    if tag_name.startswith("presidential"):
        return _PRESIDENTIAL_DOCUMENT_TYPE
    return (stated_type or tag_name).removeprefix("Federal Register ").lower()


def _parse_presidential_fields(
    document_element: Element,
    document_number: str,
    listed_titles_by_number: Mapping[str, str],
    published_at: str | None,
) -> dict[str, Any]:
    """Return what only a document of the President has: who signed it when, as what.

    These are printed without a subject: the heading below `Notice of May 10, 2018` is the title.
    """
    preface_element, main_element = document_element.find("preface"), document_element.find("main")
    block_texts = [
        fold_dashes(block_text)
        for text_element in document_element.iter()
        if (block_text := find_text(text_element))
    ]
    designation_match = next(
        filter(None, map(_ORDER_DESIGNATION_PATTERN.fullmatch, block_texts)), None
    )
    document_type, order_number, signed_date_text = (
        designation_match.groups() if designation_match else (None, None, "")
    )
    signed_at = parse_spelled_date(signed_date_text) or parse_spelled_date(
        find_text(document_element, ".//signatureDate")
    )
    signing_president = find_president_on(signed_at or published_at or "")
    heading_texts = (
        block_text
        for heading_container in (preface_element, main_element)
        for text_element in (
            heading_container.iter("heading") if heading_container is not None else ()
        )
        if (block_text := find_text(text_element))
        and not (
            _ORDER_DESIGNATION_PATTERN.fullmatch(fold_dashes(block_text))
            or _PAGE_HEADER_PATTERN.fullmatch(block_text)
        )
    )
    document_title = (
        find_text(preface_element, "subject")
        or next(heading_texts, None)
        or listed_titles_by_number.get(document_number)
    )
    return {
        "title": document_title or (designation_match[0] if designation_match else document_number),
        "subtype": _API_TYPE_BY_DESIGNATION.get(document_type, document_type)
        if document_type
        else None,
        "order": order_number if document_type == "Executive Order" else None,
        "signed": signed_at,
        "president": signing_president.name if signing_president else None,
        "body": extract_prose(main_element if main_element is not None else document_element),
    }


def _read_summary(summary_element: Element | None) -> str | None:
    summary_text = find_text(summary_element)
    return re.sub(r"^SUMMARY:\s*", "", summary_text) if summary_text else None


def _read_agency_names(preface_element: Element | None) -> Iterator[str]:
    for organization_element in (
        preface_element.iterfind("organization") if preface_element is not None else ()
    ):
        organization_style = (organization_element.get("style") or "").rpartition(":")[2]
        if organization_style in ("AGENCY", "SUBAGY") and (
            agency_name := find_text(organization_element)
        ):
            yield to_title_case(agency_name) if agency_name.isupper() else agency_name


def to_title_case(capital_text: str) -> str:
    """`BUREAU OF LAND MANAGEMENT` as `Bureau of Land Management`."""
    title_words = [capital_word.capitalize() for capital_word in capital_text.split()]
    return " ".join(
        capital_word.lower() if capital_word in ("Of", "And", "The", "For") else capital_word
        for capital_word in title_words
    )


def _read_reference_texts(preface_element: Element | None, reference_path: str) -> list[str]:
    reference_elements = (
        preface_element.iterfind(reference_path) if preface_element is not None else ()
    )
    return [
        fold_dashes(reference_text).strip("[]")
        for reference_element in reference_elements
        if (reference_text := find_text(reference_element))
    ]


def _parse_api_document(document_data: dict[str, Any], file_stamp: FileStamp) -> ParsedRecord:
    document_number = parse_federal_id(document_data["document_number"]).id
    agency_names = [
        agency_data.get("name") or agency_data["raw_name"]
        for agency_data in document_data.get("agencies") or ()
    ]
    cfr_references = document_data.get("cfr_references") or ()
    document_fields = {
        "number": document_number,
        "kind": _TYPE_BY_API_TYPE.get(
            (document_data.get("type") or "").lower(), (document_data.get("type") or "").lower()
        ),
        "subtype": document_data.get("subtype"),
        "title": document_data["title"],
        "published": document_data.get("publication_date"),
        "fr_citation": document_data.get("citation"),
        "abstract": document_data.get("abstract"),
        "agencies": agency_names,
        "slugs": [
            agency_data.get("slug") or slugify(agency_data["name"])
            for agency_data in document_data.get("agencies") or ()
        ],
        "action": document_data.get("action"),
        "url": document_data.get("html_url")
        or f"https://www.federalregister.gov/d/{document_number}",
        "pdf_url": document_data.get("pdf_url"),
        "raw": hash_item(document_data),
        "cfr": [
            f"{cfr_data.get('title')} CFR Part {cfr_data.get('part')}"
            for cfr_data in cfr_references
        ],
        "dockets": document_data.get("docket_ids") or [],
        "rins": document_data.get("regulation_id_numbers") or [],
        "topics": document_data.get("topics") or [],
        "president": (document_data.get("president") or {}).get("name"),
        "signed": document_data.get("signing_date"),
        "order": document_data.get("executive_order_number"),
        "body": "",
    }
    return _build_document(document_fields, file_stamp)


def _build_document(document_fields: dict[str, Any], file_stamp: FileStamp) -> ParsedRecord:
    """The two readings meet: a presidential document, or one of an agency."""
    citation_label = document_fields["fr_citation"] or f"FR Doc. {document_fields['number']}"
    citation_text = f"{document_fields['title']}, {citation_label}"
    citation_fields = build_citation_fields(
        file_stamp,
        url=document_fields["url"],
        org=PUBLISHER,
        cite=citation_text,
        published_at=document_fields["published"],
        raw_sha256=document_fields["raw"],
    )
    is_presidential = document_fields["kind"] == _PRESIDENTIAL_DOCUMENT_TYPE
    document_record = (_build_presidential_document if is_presidential else _build_rule)(
        document_fields, citation_fields
    )
    document_text = document_fields["body"]
    text_version = RecordText(
        "text",
        document_text,
        document_record.title,
        document_record.url,
        document_fields["raw"],
        dated=document_fields["published"],
    )
    values_by_facet = {
        "type": [document_fields["kind"]],
        "agency": [*document_fields["slugs"], *document_fields["agencies"]],
    }
    return ParsedRecord(
        document_record,
        searchable_fields=SearchableFields(
            document_fields["title"],
            document_fields["abstract"] or "",
            document_fields["action"] or "",
        ),
        values_by_facet=values_by_facet
        | {"topic": document_fields["topics"], "rin": document_fields["rins"]},
        text=text_version if document_text else None,
        links=list(_find_document_links(document_fields)),
    )


def _find_document_links(document_fields: dict[str, Any]) -> Iterator[RecordLink]:
    """The dockets, regulations, laws and subjects that a document names."""
    for docket_text in document_fields["dockets"]:
        for regulations_docket_number in _DOCKET_NUMBER_PATTERN.findall(fold_dashes(docket_text)):
            yield RecordLink(
                LinkKind.DOCKET, make_docket_id(regulations_docket_number), f"docket: {docket_text}"
            )
    for affected_cfr_text in document_fields["cfr"]:
        for cfr_title_number, cfr_part_numbers_text in _CFR_PARTS_PATTERN.findall(
            affected_cfr_text
        ):
            for cfr_part_number in re.findall(r"\d+[a-z]?", cfr_part_numbers_text):
                yield RecordLink(
                    LinkKind.CFR,
                    make_cfr_id(cfr_title_number, cfr_part_number),
                    f"affected: {affected_cfr_text}",
                )
    for cited_section_id, cited_words in document_fields.get("cited", {}).items():
        yield RecordLink(
            LinkKind.MENTION, cited_section_id, f"reference in the text: {cited_words}"
        )
    authority_links = [
        law_link
        for authority_text in document_fields.get("authorities", ())
        for law_link in find_law_links(authority_text, LinkKind.AUTHORITY, "authority")
    ]
    yield from authority_links
    authority_law_ids = {law_link.id for law_link in authority_links}
    for law_link in find_law_links(
        document_fields["body"] or document_fields["abstract"] or "", LinkKind.MENTION, "text"
    ):
        if law_link.id not in authority_law_ids:
            yield law_link
    yield from build_topic_links(
        drop_repeated_topics(document_fields["topics"]),
        document_fields.get("topics_label", "topics"),
    )


def _build_rule(document_fields: dict[str, Any], citation_fields: dict[str, Any]) -> Rule:
    return Rule(
        id=document_fields["number"],
        title=document_fields["title"],
        document_number=document_fields["number"],
        type=document_fields["kind"],
        subtype=document_fields.get("subtype"),
        action=document_fields["action"],
        abstract=document_fields["abstract"],
        agencies=document_fields["agencies"],
        agency_slugs=document_fields["slugs"],
        fr_citation=document_fields["fr_citation"],
        cfr_references=document_fields["cfr"],
        docket_ids=document_fields["dockets"],
        regulation_id_numbers=document_fields["rins"],
        topics=document_fields["topics"],
        pdf_url=document_fields.get("pdf_url"),
        characters=len(document_fields["body"]),
        **citation_fields,
    )


def _build_presidential_document(
    document_fields: dict[str, Any], citation_fields: dict[str, Any]
) -> PresidentialDocument:
    order_number = document_fields.get("order")
    return PresidentialDocument(
        id=f"presdoc:{document_fields['number']}",
        title=document_fields["title"],
        document_number=document_fields["number"],
        type=document_fields.get("subtype"),
        abstract=document_fields["abstract"],
        president=document_fields.get("president"),
        signed_at=document_fields.get("signed"),
        executive_order_number=str(order_number) if order_number else None,
        fr_citation=document_fields["fr_citation"],
        topics=document_fields["topics"],
        pdf_url=document_fields.get("pdf_url"),
        characters=len(document_fields["body"]),
        **citation_fields,
    )
