"""Reads USLM XML: the text of bills and resolutions in each of their versions, and enacted laws."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats import reports
from readingroom.bases.federal.formats.parts.bill_preface import (
    PrintedPreface,
    find_short_titles,
    parse_preface,
)
from readingroom.bases.federal.formats.parts.bill_stage import get_stage_of_version
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.people import (
    build_committee_stub,
    build_legislator_stub,
    name_sponsors,
    parse_chamber,
)
from readingroom.bases.federal.formats.parts.xml import extract_prose, get_text, parse
from readingroom.bases.federal.schema.congress import (
    GPO,
    SPOKEN,
    build_bill_page_url,
    format_bill_number,
)
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
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

NAMESPACE = b"http://schemas.gpo.gov/xml/uslm"
_GOVINFO = "https://www.govinfo.gov/app/details"
# 116sjres65rfh, and in titles: 116 SJRES 65 RFH: Providing for the reappointment …
_CITED = re.compile(r"(\d+)\s?([A-Z]+)\s(\d+)\s?([A-Z]*\s?\d*)\s?:?\s*(.*)", re.S | re.I)
_COMPACT = re.compile(r"(\d+)([a-z]+)(\d+)([a-z]+\d*)")
_BILL_REF = re.compile(r"/us/bill/(\d+)/([a-z]+)/(\d+)")
_REPORT_REF = re.compile(r"/us/([hs])rpt/\d+/\d+")
_MAINS = ("main", "amendMain")
# Some files have no more than this where their title should be.
_KIND_ALONE = re.compile(r"(?:(?:Joint|Concurrent|Simple) )?Resolution|(?:A )?Bill|An Act", re.I)
_ENTITLED = re.compile(r"entitled “(?:An Act )?(.+?)[.,]?”")
_SPELT = re.compile(r"[A-Z][a-z]+\.? \d{1,2}, \d{4}")


class BillTexts:
    """`BILLS-116hr1rh.xml`: one version of the text of a bill or resolution."""

    format_id: ClassVar[str] = "uslm-bill/3"
    sources: ClassVar[tuple[str, ...]] = ("bills",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return is_uslm(start, b"<bill ", b"<resolution ", b"<engrossedAmendment ")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        root = parse(file.data)
        entry = _build_bill(root, _find_meta(root), provenance)
        # Stubs first: rows of cosponsors and committees have foreign keys to them.
        yield from _build_stubs(entry, provenance)
        yield entry


class Laws:
    """`115publ11-uslm.xml`: a public or private law as enacted."""

    format_id: ClassVar[str] = "uslm-law/4"
    sources: ClassVar[tuple[str, ...]] = ("public_laws", "committee_reports")
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return is_uslm(start, b"<pLaw ")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        root = parse(file.data)
        reported = list(_find_reports(root))
        yield _build_law(root, _find_meta(root), reported, provenance)
        bill = _find_bill(root)
        for citation, _ in reported:
            yield reports.build_cited_report(citation, [bill[0]] if bill else [], provenance)


def is_uslm(start: FileStart, *roots: bytes) -> bool:
    """Whether a file is in this language, and of one of these kinds."""
    return NAMESPACE in start.head and any(root in start.head for root in roots)


def _find_meta(element: Element) -> Element:
    for name in ("meta", "amendMeta"):
        if (meta := element.find(name)) is not None:
            return meta
    raise ValueError("no <meta> in this file")


def _build_bill(element: Element, meta: Element, provenance: Provenance) -> ParsedRecord:
    congress, kind, number, version = _parse_identity(meta)
    id = make_bill_id(congress, kind, number)
    about = _find_subject(element, meta) or id
    stage = get_text(meta, "docStage")
    dated = _find_newest_date(element)
    page = build_bill_page_url(congress, kind, number)
    cite = f"{format_bill_number(congress, kind, number)}, {about}"
    actions = [
        (_read_date(date) if (date := action.find("date")) is not None else None, action)
        for name in ("preface", "amendPreface")
        for action in element.iterfind(f"{name}//action")
    ]
    preface = parse_preface(actions)
    short_titles = find_short_titles(element)
    record = Bill(
        id=id,
        title=about,
        congress=congress,
        type=kind,
        number=number,
        origin_chamber=parse_chamber(kind),
        introduced_at=preface.introduced_at,
        sponsors=preface.sponsors,
        committees=preface.committees,
        short_titles=short_titles,
        cosponsor_count=len(preface.cosponsors),
        stage=get_stage_of_version(version),
        stage_at=dated,
        status_loaded=False,
        **build_citation_fields(provenance, url=page, org=GPO, cite=cite, published_at=dated),
    )
    return ParsedRecord(
        record,
        partial=True,
        is_fallback=True,
        head=SearchHead(
            "\n".join((cite, *short_titles)), action="\n".join(name_sponsors(preface.sponsors))
        ),
        facets={
            "congress": [str(congress)],
            "type": [kind],
            "chamber": [parse_chamber(kind) or ""],
            "member": [sponsor.bioguide_id for sponsor in preface.sponsors if sponsor.bioguide_id],
        },
        children=_build_children(preface),
        text=Text(
            part=version,
            body=extract_body(element),
            title=f"{SPOKEN[kind]} {number} ({stage or version.upper()}): {about}",
            url=f"{_GOVINFO}/BILLS-{congress}{kind}{number}{version}",
            raw_sha256=provenance.sha256,
            stage=stage,
            dated=dated,
        ),
    )


def _build_children(preface: PrintedPreface) -> dict[str, list[tuple[Any, ...]]]:
    rows: dict[str, list[tuple[Any, ...]]] = {
        "bill_cosponsors": [
            (position, cosponsor.bioguide_id, cosponsor.model_dump_json())
            for position, cosponsor in enumerate(preface.cosponsors, start=1)
        ],
        "bill_committees": [(committee.id,) for committee in preface.committees],
    }
    return {table: table_rows for table, table_rows in rows.items() if table_rows}


def _build_stubs(entry: ParsedRecord, provenance: Provenance) -> Iterator[ParsedRecord]:
    """Yield stubs of the people and committees that the first page names."""
    assert isinstance(entry.record, Bill)
    cosponsor_rows = entry.children.get("bill_cosponsors", ())
    cosponsors = (Cosponsor.model_validate_json(row[2]) for row in cosponsor_rows)
    for person in (*entry.record.sponsors, *cosponsors):
        if person.bioguide_id:
            yield build_legislator_stub(person, provenance)
    for committee in entry.record.committees:
        yield build_committee_stub(committee.id, committee.name, committee.chamber, provenance)


def _parse_identity(meta: Element) -> tuple[int, str, int, str]:
    """Congress, type, number and version, from the compact citation or from the title."""
    for cited_as in meta.iterfind("citableAs"):
        if match := _COMPACT.fullmatch((get_text(cited_as) or "").lower()):
            return int(match[1]), _parse_kind(match[2]), int(match[3]), match[4]
    if match := _CITED.match((get_text(meta, "title") or "").removeprefix("AMENDMENTS to ")):
        version = match[4].replace(" ", "").lower()
        return int(match[1]), _parse_kind(match[2]), int(match[3]), version or "pre"
    raise ValueError("the file does not say which bill it is")


def _parse_kind(text: str) -> str:
    if (kind := text.lower()) in SPOKEN:
        return kind
    raise ValueError(f"{text!r} is not a type of bill")


def _find_subject(element: Element, meta: Element) -> str | None:
    """What a bill is about: its title, or what stands for one where a file has none.

    Amendments name the act they amend, simple resolutions begin with what they resolve.
    """
    if title := get_text(element, ".//officialTitle") or _read_title(meta):
        return title
    main = next((child for name in _MAINS if (child := element.find(name)) is not None), element)
    opening = next(filter(None, map(get_text, main.iterfind(".//content"))), "")
    if entitled := _ENTITLED.search(opening):
        return entitled[1][:1].upper() + entitled[1][1:]
    heading = get_text(main, ".//section/heading")
    return (heading and _soften_capitals(heading)) or _get_first_sentence(opening)


def _read_title(meta: Element) -> str | None:
    match = _CITED.match(get_text(meta, "title") or "")
    title = match[5] if match else ""
    return None if not title or _KIND_ALONE.fullmatch(title) else title


def _soften_capitals(heading: str) -> str:
    plain = heading.rstrip(".")
    return plain.capitalize() if plain.isupper() else plain


def _get_first_sentence(text: str) -> str | None:
    first = text.removeprefix("That ").partition(". ")[0].rstrip(".")
    return (first[:1].upper() + first[1:])[:200] or None


def extract_body(element: Element) -> str:
    """What the document says, from its title to its last section, without its metadata."""
    for name in _MAINS:
        if (main := element.find(name)) is not None:
            return extract_prose(main)
    raise ValueError("no <main> in this file")


def _find_newest_date(root: Element) -> str | None:
    """The newest date its actions bear; some only spell it out."""
    dates = [date for element in root.iterfind(".//action/date") if (date := _read_date(element))]
    return max(dates, default=None)


def _read_date(element: Element) -> str | None:
    return element.get("date") or parse_spelled_date(get_text(element))


def parse_spelled_date(text: str | None) -> str | None:
    """The first `October 11, 2013` or `Mar. 27, 2017` in a text, as a date."""
    match = _SPELT.search(text or "")
    for pattern in ("%B %d, %Y", "%b. %d, %Y", "%b %d, %Y") if match else ():
        try:
            assert match is not None
            return datetime.strptime(match[0], pattern).date().isoformat()  # noqa: DTZ007 a day
        except ValueError:
            continue
    return None


def _build_law(
    element: Element, meta: Element, reported: Sequence[tuple[str, str]], provenance: Provenance
) -> ParsedRecord:
    # Where `publicPrivate` is missing, the type says it.
    private = (
        (get_text(meta, "publicPrivate") or get_text(meta, "type") or "")
        .lower()
        .startswith("private")
    )
    congress = int(get_text(meta, "congress") or "")
    number = int(get_text(meta, "docNumber") or "")
    id = make_law_id(f"{congress}-{number}", private)
    label = f"{'Private' if private else 'Public'} Law {congress}-{number}"
    about = fold_dashes(get_text(meta, "title") or label).partition(": ")[2] or label
    approved = _find_approval_date(element)
    bill = _find_bill(element)
    body = extract_body(element)
    citations = [get_text(cite) or "" for cite in meta.iterfind("citableAs")]
    stat = [citation for citation in citations if "Stat." in citation]
    package = f"PLAW-{congress}{'pvtl' if private else 'publ'}{number}"
    url = f"{_GOVINFO}/{package}"
    cite = ", ".join((label, *stat[:1]))
    record = Law(
        id=id,
        title=f"{label}: {about}" if about != label else label,
        congress=congress,
        number=number,
        private=private,
        bill_id=bill[0] if bill else None,
        approved_at=approved,
        statutes_at_large=stat[0] if stat else None,
        characters=len(body),
        **build_citation_fields(provenance, url=url, org=GPO, cite=cite, published_at=approved),
    )
    facets = {"congress": [str(congress)], "type": ["private" if private else "public"]}
    text = Text("text", body, record.title, url, provenance.sha256, "Enacted", approved)
    links = [Link(LinkKind.LAW, *bill)] if bill else []
    for citation, words in reported:
        links.append(Link(LinkKind.COMMITTEE_REPORT, parse_report_citation(citation) or "", words))
    return ParsedRecord(
        record, head=SearchHead(record.title), facets=facets, text=text, links=links
    )


def _find_reports(element: Element) -> Iterator[tuple[str, str]]:
    """The reports on what became a law, as they are cited, from the history printed after it."""
    for ref in element.iterfind("legislativeHistory//ref"):
        if match := _REPORT_REF.fullmatch(ref.get("href") or ""):
            text = " ".join("".join((*ref.itertext(), ref.tail or "")).split())
            citation = f"{match[1].upper()}. Rept. {fold_dashes(text)}"
            if parse_report_citation(citation):
                yield citation, f"legislativeHistory: {text}"


def _find_approval_date(root: Element) -> str | None:
    # The date of approval stands in one of these, the surest of them first.
    for path in ("main/longTitle//sidenote/p", "main/action/actionDescription", "main//sidenote/p"):
        for element in root.iterfind(path):
            if date := parse_spelled_date(get_text(element)):
                return date
    return None


def _find_bill(element: Element) -> tuple[str, str] | None:
    """The bill a law was, and the words that say so beside its title or in its history."""
    # The long title first: notes further down refer to other bills as well.
    for path in ("main/longTitle//ref", "legislativeHistory//ref", "main//sidenote//ref"):
        for ref in element.iterfind(path):
            if match := _BILL_REF.match(ref.get("href") or ""):
                id = parse_federal_id(f"bill:{match[1]}-{match[2]}-{match[3]}").id
                return id, f"{path.partition('//')[0]}: {get_text(ref) or ref.get('href')}"
    return None
