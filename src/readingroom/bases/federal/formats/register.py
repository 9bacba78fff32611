"""Reads the Federal Register: whole issues in USLM XML, single documents in its API's JSON."""

import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts import references
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_laws
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    distinct_topics,
)
from readingroom.bases.federal.formats.parts.xml import (
    extract_prose,
    get_text,
    hash_element,
    iso_date,
    parse,
)
from readingroom.bases.federal.formats.uslm import NAMESPACE
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    citation_fields,
    digest,
)
from readingroom.bases.federal.schema.ids import cfr_id, docket_id, federal_id
from readingroom.bases.federal.schema.records import LinkKind, PresidentialDocument, Rule
from readingroom.core.text import fold_dashes

ORG = "Office of the Federal Register"
_TYPES = {
    "rule": "rule",
    "proposed rule": "proposed rule",
    "notice": "notice",
    "presidential document": "presidential document",
}
# EPA-HQ-OAR-2025-0001, FDA-2017-N-5437, ED-2017-ICCD-0105; not SR-MIAX-2017-39, a file of the SEC.
_DOCKET = re.compile(
    r"(?<![\w-])(?!SR-)[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-(?:19|20)\d\d(?:-[A-Z]+)?-\d{4,5}\b"
)
_PARTS = re.compile(r"(\d+) CFR Parts? (\d+[a-z]?(?:(?:,? and |, )\d+[a-z]?)*)")
_FAR = 65_536
_DOCUMENTS = ("rule", "proposedRule", "notice", "presidentialDocument")


class RegisterIssues:
    """`FR-2017-10-03-uslm.xml`: every document of one day's issue."""

    name: ClassVar[str] = "register-issue/3"
    sources: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for: ClassVar[str | None] = "published_at"

    def matches(self, start: FileStart) -> bool:
        return NAMESPACE in start.head and b"<frDoc" in start.head

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        issue = parse(file.data)
        meta = issue.find("meta")
        published, volume = iso_date(get_text(meta, "date")), get_text(meta, "volume")
        for tag in _DOCUMENTS:
            for told in issue.iter(tag):
                yield _printed(told, published, volume, origin)


class RegisterJson:
    """A document, or a page of results, as api/v1/documents of the Federal Register gives it."""

    name: ClassVar[str] = "register-json/3"
    sources: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        # The API may put a long abstract and every agency first.
        return start.head.lstrip()[:1] == b"{" and b'"document_number"' in start.read(_FAR)

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        told = json.loads(file.data)
        for one in told.get("results", [told]):
            for name in distinct_topics(one.get("topics") or ()):
                yield build_topic(name, origin, "federal_register")
            yield _from_api(one, origin)


def slugify(agency: str) -> str:
    return "-".join(re.findall("[a-z0-9]+", agency.lower()))


def _printed(
    told: Element, published: str | None, volume: str | None, origin: Provenance
) -> ParsedRecord:
    meta, preface = told.find("meta"), told.find("preface")
    number = federal_id(get_text(meta, "docNumber") or "").id
    kind = (get_text(meta, "type") or told.tag).removeprefix("Federal Register ").lower()
    agencies = list(dict.fromkeys(_agencies(preface)))
    page = get_text(meta, "startingPage")
    summary = told.find(".//statement[@role='summary']")
    main = told.find("main")
    action = get_text(meta, "property[@role='ACTION']")
    fields = {
        "number": number,
        "kind": kind,
        "title": get_text(preface, "subject") or number,
        "published": published,
        "fr_citation": f"{volume} FR {page}" if volume and page else None,
        "abstract": _without_heading(summary),
        "agencies": agencies,
        "slugs": [slugify(agency) for agency in agencies],
        "action": action,
        "url": f"https://www.federalregister.gov/d/{number}",
        "raw": hash_element(told),
        "cfr": _refs(preface, "affected"),
        "dockets": _refs(preface, "property[@role='DEPDOC']"),
        "rins": [one.removeprefix("RIN ") for one in _refs(preface, "property[@role='RIN']")],
        "body": extract_prose(main) if main is not None else "",
        "authorities": [get_text(one) or "" for one in told.iter("authority")],
        "cited": references.collect_references((main,)).regulations if main is not None else {},
    }
    return _entry(fields, origin)


def _without_heading(summary: Element | None) -> str | None:
    told = get_text(summary)
    return re.sub(r"^SUMMARY:\s*", "", told) if told else None


def _agencies(preface: Element | None) -> Iterator[str]:
    for name in preface.iterfind("organization") if preface is not None else ():
        style = (name.get("style") or "").rpartition(":")[2]
        if style in ("AGENCY", "SUBAGY") and (told := get_text(name)):
            yield title_case(told) if told.isupper() else told


def title_case(capitals: str) -> str:
    """`BUREAU OF LAND MANAGEMENT` as `Bureau of Land Management`."""
    words = [word.capitalize() for word in capitals.split()]
    return " ".join(word.lower() if word in ("Of", "And", "The", "For") else word for word in words)


def _refs(preface: Element | None, path: str) -> list[str]:
    found = preface.iterfind(path) if preface is not None else ()
    return [fold_dashes(told).strip("[]") for one in found if (told := get_text(one))]


def _from_api(told: dict[str, Any], origin: Provenance) -> ParsedRecord:
    number = federal_id(told["document_number"]).id
    agencies = [one.get("name") or one["raw_name"] for one in told.get("agencies") or ()]
    cfr = told.get("cfr_references") or ()
    fields = {
        "number": number,
        "kind": _TYPES.get((told.get("type") or "").lower(), (told.get("type") or "").lower()),
        "subtype": told.get("subtype"),
        "title": told["title"],
        "published": told.get("publication_date"),
        "fr_citation": told.get("citation"),
        "abstract": told.get("abstract"),
        "agencies": agencies,
        "slugs": [one.get("slug") or slugify(one["name"]) for one in told.get("agencies") or ()],
        "action": told.get("action"),
        "url": told.get("html_url") or f"https://www.federalregister.gov/d/{number}",
        "pdf_url": told.get("pdf_url"),
        "raw": digest(told),
        "cfr": [f"{one.get('title')} CFR Part {one.get('part')}" for one in cfr],
        "dockets": told.get("docket_ids") or [],
        "rins": told.get("regulation_id_numbers") or [],
        "topics": told.get("topics") or [],
        "president": (told.get("president") or {}).get("name"),
        "signed": told.get("signing_date"),
        "order": told.get("executive_order_number"),
        "body": "",
    }
    return _entry(fields, origin)


def _entry(told: dict[str, Any], origin: Provenance) -> ParsedRecord:
    """The two readings meet: a presidential document, or one of an agency."""
    cite = f"{told['title']}, {told['fr_citation'] or 'FR Doc. ' + told['number']}"
    source = citation_fields(
        origin,
        url=told["url"],
        org=ORG,
        cite=cite,
        published_at=told["published"],
        raw_sha256=told["raw"],
    )
    presidential = told["kind"] == "presidential document"
    record = (_presidential if presidential else _rule)(told, source)
    body = told["body"]
    text = Text("text", body, record.title, record.url, told["raw"], dated=told["published"])
    facets = {"type": [told["kind"]], "agency": [*told["slugs"], *told["agencies"]]}
    return ParsedRecord(
        record,
        head=SearchHead(told["title"], told["abstract"] or "", told["action"] or ""),
        facets=facets | {"topic": told.get("topics", []), "rin": told["rins"]},
        text=text if body else None,
        links=list(_links(told)),
    )


def _links(told: dict[str, Any]) -> Iterator[Link]:
    """The dockets, regulations, laws and subjects that a document names."""
    for written in told["dockets"]:
        for number in _DOCKET.findall(fold_dashes(written)):
            yield Link(LinkKind.DOCKET, docket_id(number), f"docket: {written}")
    for written in told["cfr"]:
        for title, parts in _PARTS.findall(written):
            for part in re.findall(r"\d+[a-z]?", parts):
                yield Link(LinkKind.CFR, cfr_id(title, part), f"affected: {written}")
    for section, words in told.get("cited", {}).items():
        yield Link(LinkKind.MENTION, section, f"reference in the text: {words}")
    rests_on = [
        link
        for written in told.get("authorities", ())
        for link in find_laws(written, LinkKind.AUTHORITY, "authority")
    ]
    yield from rests_on
    known_already = {link.id for link in rests_on}
    for link in find_laws(told["body"] or told["abstract"] or "", LinkKind.MENTION, "text"):
        if link.id not in known_already:
            yield link
    yield from build_topic_links(distinct_topics(told.get("topics", ())), "topics")


def _rule(told: dict[str, Any], source: dict[str, Any]) -> Rule:
    return Rule(
        id=told["number"],
        title=told["title"],
        document_number=told["number"],
        type=told["kind"],
        subtype=told.get("subtype"),
        action=told["action"],
        abstract=told["abstract"],
        agencies=told["agencies"],
        agency_slugs=told["slugs"],
        fr_citation=told["fr_citation"],
        cfr_references=told["cfr"],
        docket_ids=told["dockets"],
        regulation_id_numbers=told["rins"],
        topics=told.get("topics", []),
        pdf_url=told.get("pdf_url"),
        characters=len(told["body"]),
        **source,
    )


def _presidential(told: dict[str, Any], source: dict[str, Any]) -> PresidentialDocument:
    order = told.get("order")
    return PresidentialDocument(
        id=f"presdoc:{told['number']}",
        title=told["title"],
        document_number=told["number"],
        type=told.get("subtype"),
        abstract=told["abstract"],
        president=told.get("president"),
        signed_at=told.get("signed"),
        executive_order_number=str(order) if order else None,
        fr_citation=told["fr_citation"],
        topics=told.get("topics", []),
        pdf_url=told.get("pdf_url"),
        characters=len(told["body"]),
        **source,
    )
