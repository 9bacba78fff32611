"""Reads statute compilations in USLM XML: a law as the laws after it have changed it."""

import re
from collections.abc import Iterator
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts import references
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.xml import get_text, parse, parse_iso_date
from readingroom.bases.federal.formats.register import to_title_case
from readingroom.bases.federal.formats.uslm import extract_body, is_uslm
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import make_compilation_id, make_law_id
from readingroom.bases.federal.schema.records import Compilation, LinkKind
from readingroom.core.text import fold_dashes

ORG = "Office of the Legislative Counsel, U.S. House of Representatives"
_LAW = re.compile(r"(?:Public Law|P\.\s?L\.)?\s*(\d{1,3})-(\d{1,4})")
_OWN = re.compile(r"/us/sComp/(\d+)/(\d+)(?:/.*)?")


class Compilations:
    """`COMPS-1565.xml`: one act as amended."""

    format_id: ClassVar[str] = "comps/1"
    sources: ClassVar[tuple[str, ...]] = ("statute_compilations",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return is_uslm(start, b"<statuteCompilation ")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        root = parse(file.data)
        meta = root.find("meta")
        if meta is None:
            raise ValueError("no <meta> in this file")
        yield _build_entry(root, meta, provenance)


def _build_entry(element: Element, meta: Element, provenance: Provenance) -> ParsedRecord:
    number = get_text(meta, "property[@role='fileId']")
    if not number:
        raise ValueError("the file does not say which compilation it is")
    edition = element.find("preface/editionNote")
    through = _find_last_law(edition, meta)
    amended, approved = (
        _read_amendment_date(edition),
        parse_iso_date(get_text(meta, "approvedDate")),
    )
    title = get_text(meta, "title") or f"Compilation {number}"
    title = to_title_case(title) if title.isupper() else title
    law = _find_law(element, meta)
    body = extract_body(element)
    published = amended or approved
    label = f"Public Law {law.partition(':')[2]}" if law else f"COMPS-{number}"
    since = f", as amended through {_cite_law(through)}" if through and through != law else ""
    cite = f"{title}, {label}{since}"
    url = f"https://www.govinfo.gov/app/details/COMPS-{number}"
    short = [text for name in meta.findall("containsShortTitle") if (text := get_text(name))]
    record = Compilation(
        id=make_compilation_id(number),
        title=title,
        congress=int(get_text(meta, "congress") or 0) or None,
        law_id=law,
        approved_at=approved,
        amended_through=through,
        amended_at=amended,
        statutes_at_large=_find_statutes_citation(meta),
        short_titles=short,
        usc_references=list(references.collect_references((element,)).code),
        sections=sum(1 for _ in element.iter("section")),
        characters=len(body),
        **build_citation_fields(provenance, url=url, org=ORG, cite=cite, published_at=published),
    )
    congress = [str(record.congress)] if record.congress else []
    return ParsedRecord(
        record,
        head=SearchHead("\n".join(dict.fromkeys((title, *short))), cite),
        facets={"congress": congress, "type": ["compilation"]},
        # Each edition is a version of the text, so that two of them can be compared.
        text=Text(
            through.partition(":")[2] if through else "text",
            body,
            title,
            url,
            provenance.sha256,
            f"As amended through {_cite_law(through)}" if through else "As amended",
            published,
        ),
        links=[Link(LinkKind.COMPILATION, law, f"the law it is the text of: {cite}")]
        if law
        else (),
        revision=published,
    )


def _find_law(element: Element, meta: Element) -> str | None:
    """The law it is the text of: as cited, else as its sections are numbered."""
    for cited_as in meta.iterfind("citableAs"):
        if match := _LAW.match(fold_dashes(get_text(cited_as) or "")):
            return make_law_id(f"{match[1]}-{match[2]}")
    for section in element.iter("section"):
        if match := _OWN.fullmatch(section.get("identifier") or ""):
            return make_law_id(f"{match[1]}-{match[2]}")
    return None


def _find_last_law(edition: Element | None, meta: Element) -> str | None:
    """The last law in it. The printed note is right where the metadata was not kept up."""
    for element in (edition, meta):
        match = _LAW.search(fold_dashes(get_text(element, "currentThroughPublicLaw") or ""))
        if match:
            return make_law_id(f"{match[1]}-{match[2]}")
    return None


def _read_amendment_date(edition: Element | None) -> str | None:
    date = edition.find("date") if edition is not None else None
    return parse_iso_date(date.get("date")) if date is not None else None


def _find_statutes_citation(meta: Element) -> str | None:
    citations = (get_text(element) or "" for element in meta.iterfind("citableAs"))
    return next((citation for citation in citations if "Stat." in citation), None)


def _cite_law(law: str) -> str:
    return f"P.L. {law.partition(':')[2]}"
