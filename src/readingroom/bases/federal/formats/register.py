"""Reads the Federal Register: whole issues in USLM XML, single documents in its API's JSON."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts import references
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_laws
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.formats.parts.xml import (
    extract_prose,
    get_text,
    hash_element,
    parse,
    parse_iso_date,
)
from readingroom.bases.federal.formats.uslm import NAMESPACE, parse_spelled_date
from readingroom.bases.federal.schema.entries import (
    FileProblem,
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_cfr_id, make_docket_id, parse_federal_id
from readingroom.bases.federal.schema.presidents import find_president_on
from readingroom.bases.federal.schema.records import LinkKind, PresidentialDocument, Rule
from readingroom.core.text import fold_dashes

ORG = "Office of the Federal Register"
_PRESIDENTIAL = "presidential document"
_TYPES = {
    "rule": "rule",
    "proposed rule": "proposed rule",
    "notice": "notice",
    _PRESIDENTIAL: _PRESIDENTIAL,
}
# EPA-HQ-OAR-2025-0001, FDA-2017-N-5437, ED-2017-ICCD-0105; not SR-MIAX-2017-39, a file of the SEC.
_DOCKET = re.compile(
    r"(?<![\w-])(?!SR-)[A-Z][A-Z0-9]*(?:-[A-Z0-9]+)*-(?:19|20)\d\d(?:-[A-Z]+)?-\d{4,5}\b"
)
_PARTS = re.compile(r"(\d+) CFR Parts? (\d+[a-z]?(?:(?:,? and |, )\d+[a-z]?)*)")
_JSON_HEAD_BYTES = 65_536
_DOCUMENT_REF = re.compile(r"/us/fr/\d+/frdoc([^/]+)")
# Above a document the President signed: `Executive Order 13834 of May 17, 2018`.
_DESIGNATION = re.compile(
    r"(Executive Order|Proclamation|Notice|Memorandum|(?:Presidential )?Determination"
    r"|(?:Presidential )?Order)(?: (?:No\. ?)?([\d-]+))? of ([A-Z][a-z]+ \d{1,2}, \d{4})"
)
_RUNNING_HEAD = re.compile(r"Title 3\b.*|The President|Presidential Documents?", re.I)
# As the Register's API calls the kinds of presidential documents.
_PRESIDENTIAL_TYPES = {
    "Presidential Determination": "Determination",
    "Order": "Presidential Order",
}


class RegisterIssues:
    """`FR-2017-10-03-uslm.xml`: every document of one day's issue."""

    format_id: ClassVar[str] = "register-issue/4"
    sources: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for_columns: ClassVar[str | None] = "published_at"

    def matches(self, start: FileStart) -> bool:
        return NAMESPACE in start.head and b"<frDoc" in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord | FileProblem]:
        issue = parse(file.data)
        meta = issue.find("meta")
        published, volume = parse_iso_date(get_text(meta, "date")), get_text(meta, "volume")
        listed_titles = _read_contents(issue)
        printed_numbers = set()
        for document in issue.iter():
            if _is_document(document):
                entry = _parse_printed(document, published, volume, listed_titles, provenance)
                printed_numbers.add(entry.record.id.removeprefix("presdoc:"))
                yield entry
        for number in sorted(listed_titles.keys() - printed_numbers):
            yield FileProblem(
                f"the contents of this issue list {number} ({listed_titles[number][:100]}), which "
                f"is not in the file: download the issue of {published} again, or load the "
                "document from the Federal Register's API"
            )


def _is_document(element: Element) -> bool:
    """Whether an element is a document: it has a number of its own, and is no unit of the issue."""
    if element.tag == "component" or not len(element) or element[0].tag != "meta":
        return False
    return element[0].find("docNumber") is not None


def _read_contents(issue: Element) -> dict[str, str]:
    """Return the title of every document that the contents of an issue list, by its number."""
    titles = {}
    for contents in issue.iter("toc"):
        if contents.get("role") != "fr-contents":
            continue
        for item in contents.iter("referenceItem"):
            for target in item.iterfind("target"):
                if match := _DOCUMENT_REF.fullmatch(fold_dashes(target.get("href") or "")):
                    number = parse_federal_id(match[1]).id
                    titles[number] = (get_text(item, "label") or "").rstrip(" ,")
    return titles


class RegisterJson:
    """A document, or a page of results, as api/v1/documents of the Federal Register gives it."""

    format_id: ClassVar[str] = "register-json/3"
    sources: ClassVar[tuple[str, ...]] = ("federal_register", "presidential_documents")
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        # The API may put a long abstract and every agency first.
        return start.head.lstrip()[:1] == b"{" and b'"document_number"' in start.read(
            _JSON_HEAD_BYTES
        )

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        data = json.loads(file.data)
        for result in data.get("results", [data]):
            for name in drop_repeated_topics(result.get("topics") or ()):
                yield build_topic(name, provenance, "federal_register")
            yield _parse_api(result, provenance)


def slugify(agency: str) -> str:
    return "-".join(re.findall("[a-z0-9]+", agency.lower()))


def _parse_printed(
    document: Element,
    published: str | None,
    volume: str | None,
    listed_titles: Mapping[str, str],
    provenance: Provenance,
) -> ParsedRecord:
    meta, preface = document.find("meta"), document.find("preface")
    number = parse_federal_id(get_text(meta, "docNumber") or "").id
    kind = _parse_kind(document.tag, get_text(meta, "type"))
    agencies = list(dict.fromkeys(_read_agencies(preface)))
    page = get_text(meta, "startingPage")
    summary = document.find(".//statement[@role='summary']")
    main = document.find("main")
    action = get_text(meta, "property[@role='ACTION']")
    fields = {
        "number": number,
        "kind": kind,
        "title": get_text(preface, "subject") or listed_titles.get(number) or number,
        "published": published,
        "fr_citation": f"{volume} FR {page}" if volume and page else None,
        "abstract": _strip_heading(summary),
        "agencies": agencies,
        "slugs": [slugify(agency) for agency in agencies],
        "action": action,
        "url": f"https://www.federalregister.gov/d/{number}",
        "raw": hash_element(document),
        "cfr": _read_references(preface, "affected"),
        "dockets": _read_references(preface, "property[@role='DEPDOC']"),
        "rins": [
            item.removeprefix("RIN ") for item in _read_references(preface, "property[@role='RIN']")
        ],
        "body": extract_prose(main) if main is not None else "",
        "authorities": [get_text(element) or "" for element in document.iter("authority")],
        "cited": references.collect_references((main,)).regulations if main is not None else {},
    }
    if kind == _PRESIDENTIAL:
        fields |= _parse_signed(document, number, listed_titles, published)
    return _build_entry(fields, provenance)


def _parse_kind(tag: str, stated_type: str | None) -> str:
    if tag.startswith("presidential"):
        return _PRESIDENTIAL
    return (stated_type or tag).removeprefix("Federal Register ").lower()


def _parse_signed(
    document: Element, number: str, listed_titles: Mapping[str, str], published: str | None
) -> dict[str, Any]:
    """Return what only a document of the President has: who signed it when, as what.

    These are printed without a subject: the heading below `Notice of May 10, 2018` is the title.
    """
    preface, main = document.find("preface"), document.find("main")
    blocks = [fold_dashes(text) for element in document.iter() if (text := get_text(element))]
    designation = next(filter(None, map(_DESIGNATION.fullmatch, blocks)), None)
    kind, order_number, day = designation.groups() if designation else (None, None, "")
    signed = parse_spelled_date(day) or parse_spelled_date(get_text(document, ".//signatureDate"))
    president = find_president_on(signed or published or "")
    headings = (
        text
        for part in (preface, main)
        for element in (part.iter("heading") if part is not None else ())
        if (text := get_text(element))
        and not (_DESIGNATION.fullmatch(fold_dashes(text)) or _RUNNING_HEAD.fullmatch(text))
    )
    title = get_text(preface, "subject") or next(headings, None) or listed_titles.get(number)
    return {
        "title": title or (designation[0] if designation else number),
        "subtype": _PRESIDENTIAL_TYPES.get(kind, kind) if kind else None,
        "order": order_number if kind == "Executive Order" else None,
        "signed": signed,
        "president": president.name if president else None,
        "body": extract_prose(main if main is not None else document),
    }


def _strip_heading(summary: Element | None) -> str | None:
    text = get_text(summary)
    return re.sub(r"^SUMMARY:\s*", "", text) if text else None


def _read_agencies(preface: Element | None) -> Iterator[str]:
    for name in preface.iterfind("organization") if preface is not None else ():
        style = (name.get("style") or "").rpartition(":")[2]
        if style in ("AGENCY", "SUBAGY") and (text := get_text(name)):
            yield to_title_case(text) if text.isupper() else text


def to_title_case(capitals: str) -> str:
    """`BUREAU OF LAND MANAGEMENT` as `Bureau of Land Management`."""
    words = [word.capitalize() for word in capitals.split()]
    return " ".join(word.lower() if word in ("Of", "And", "The", "For") else word for word in words)


def _read_references(preface: Element | None, path: str) -> list[str]:
    elements = preface.iterfind(path) if preface is not None else ()
    return [fold_dashes(text).strip("[]") for element in elements if (text := get_text(element))]


def _parse_api(data: dict[str, Any], provenance: Provenance) -> ParsedRecord:
    number = parse_federal_id(data["document_number"]).id
    agencies = [agency.get("name") or agency["raw_name"] for agency in data.get("agencies") or ()]
    cfr = data.get("cfr_references") or ()
    fields = {
        "number": number,
        "kind": _TYPES.get((data.get("type") or "").lower(), (data.get("type") or "").lower()),
        "subtype": data.get("subtype"),
        "title": data["title"],
        "published": data.get("publication_date"),
        "fr_citation": data.get("citation"),
        "abstract": data.get("abstract"),
        "agencies": agencies,
        "slugs": [
            agency.get("slug") or slugify(agency["name"]) for agency in data.get("agencies") or ()
        ],
        "action": data.get("action"),
        "url": data.get("html_url") or f"https://www.federalregister.gov/d/{number}",
        "pdf_url": data.get("pdf_url"),
        "raw": hash_item(data),
        "cfr": [f"{item.get('title')} CFR Part {item.get('part')}" for item in cfr],
        "dockets": data.get("docket_ids") or [],
        "rins": data.get("regulation_id_numbers") or [],
        "topics": data.get("topics") or [],
        "president": (data.get("president") or {}).get("name"),
        "signed": data.get("signing_date"),
        "order": data.get("executive_order_number"),
        "body": "",
    }
    return _build_entry(fields, provenance)


def _build_entry(fields: dict[str, Any], provenance: Provenance) -> ParsedRecord:
    """The two readings meet: a presidential document, or one of an agency."""
    cite = f"{fields['title']}, {fields['fr_citation'] or 'FR Doc. ' + fields['number']}"
    source = build_citation_fields(
        provenance,
        url=fields["url"],
        org=ORG,
        cite=cite,
        published_at=fields["published"],
        raw_sha256=fields["raw"],
    )
    presidential = fields["kind"] == _PRESIDENTIAL
    record = (_build_presidential if presidential else _build_rule)(fields, source)
    body = fields["body"]
    text = Text("text", body, record.title, record.url, fields["raw"], dated=fields["published"])
    facets = {"type": [fields["kind"]], "agency": [*fields["slugs"], *fields["agencies"]]}
    return ParsedRecord(
        record,
        head=SearchHead(fields["title"], fields["abstract"] or "", fields["action"] or ""),
        facets=facets | {"topic": fields.get("topics", []), "rin": fields["rins"]},
        text=text if body else None,
        links=list(_find_links(fields)),
    )


def _find_links(fields: dict[str, Any]) -> Iterator[Link]:
    """The dockets, regulations, laws and subjects that a document names."""
    for text in fields["dockets"]:
        for number in _DOCKET.findall(fold_dashes(text)):
            yield Link(LinkKind.DOCKET, make_docket_id(number), f"docket: {text}")
    for text in fields["cfr"]:
        for title, parts in _PARTS.findall(text):
            for part in re.findall(r"\d+[a-z]?", parts):
                yield Link(LinkKind.CFR, make_cfr_id(title, part), f"affected: {text}")
    for section, words in fields.get("cited", {}).items():
        yield Link(LinkKind.MENTION, section, f"reference in the text: {words}")
    rests_on = [
        link
        for text in fields.get("authorities", ())
        for link in find_laws(text, LinkKind.AUTHORITY, "authority")
    ]
    yield from rests_on
    linked = {link.id for link in rests_on}
    for link in find_laws(fields["body"] or fields["abstract"] or "", LinkKind.MENTION, "text"):
        if link.id not in linked:
            yield link
    yield from build_topic_links(drop_repeated_topics(fields.get("topics", ())), "topics")


def _build_rule(fields: dict[str, Any], source: dict[str, Any]) -> Rule:
    return Rule(
        id=fields["number"],
        title=fields["title"],
        document_number=fields["number"],
        type=fields["kind"],
        subtype=fields.get("subtype"),
        action=fields["action"],
        abstract=fields["abstract"],
        agencies=fields["agencies"],
        agency_slugs=fields["slugs"],
        fr_citation=fields["fr_citation"],
        cfr_references=fields["cfr"],
        docket_ids=fields["dockets"],
        regulation_id_numbers=fields["rins"],
        topics=fields.get("topics", []),
        pdf_url=fields.get("pdf_url"),
        characters=len(fields["body"]),
        **source,
    )


def _build_presidential(fields: dict[str, Any], source: dict[str, Any]) -> PresidentialDocument:
    order = fields.get("order")
    return PresidentialDocument(
        id=f"presdoc:{fields['number']}",
        title=fields["title"],
        document_number=fields["number"],
        type=fields.get("subtype"),
        abstract=fields["abstract"],
        president=fields.get("president"),
        signed_at=fields.get("signed"),
        executive_order_number=str(order) if order else None,
        fr_citation=fields["fr_citation"],
        topics=fields.get("topics", []),
        pdf_url=fields.get("pdf_url"),
        characters=len(fields["body"]),
        **source,
    )
