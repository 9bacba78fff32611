"""Reads the Code of Federal Regulations: volumes in USLM XML, a record for each section.

What is appended to a part, or to a subpart of it, is a record like a section.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.references import References, collect_references
from readingroom.bases.federal.formats.parts.xml import (
    extract_prose,
    get_text,
    hash_element,
    iso_date,
    parse,
)
from readingroom.bases.federal.formats.register import ORG, slugify, title_case
from readingroom.bases.federal.formats.uslm import is_uslm
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    citation_fields,
    digest,
)
from readingroom.bases.federal.schema.ids import cfr_id
from readingroom.bases.federal.schema.records import CfrSection, LinkKind
from readingroom.core.text import fold_dashes

# What the printed number is: the attribute beside it loses the letter of `§ 478.25a`.
_PRINTED = re.compile(r"\u00a7+\s*([0-9][\w.-]*)")
_LEVELS = ("chapter", "subchapter", "part", "subpart")
# Appendix A to Part 50, Supplement No. 1 to Subpart B of Part 730: the part is said beside it.
_OF_PART = re.compile(r"\s+(?:to|of)\s+part\s+\w+|\s*\[reserved\]", re.I | re.ASCII)
_LONGEST = 80


class Regulations:
    """`CFR-2018-title27-vol3-uslm.xml`: the sections and appendices of a volume."""

    name: ClassVar[str] = "cfr/3"
    sources: ClassVar[tuple[str, ...]] = ("cfr_sections",)
    complete_for: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return is_uslm(start, b"<cfrDoc ")

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        volume = parse(file.data)
        meta = volume.find("meta")
        title = int(get_text(meta, "docNumber") or "")
        revised = iso_date(get_text(meta, "docReleasePoint")) or iso_date(get_text(meta, "created"))
        main = volume.find("main")
        if main is None:
            raise ValueError("no <main> in this file")
        repeats: Counter[str] = Counter()
        for told, place in _provisions(main, _Place(title, revised)):
            named = _section(told, place) if told.tag == "section" else _appendix(told, place)
            repeats[named.number] += told.tag == "appendix"
            yield _entry(told, named.again(repeats[named.number]), place, origin)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a section stands, and what those above it say for it."""

    title: int
    revised: str | None
    chapter: str | None = None
    part: str | None = None
    part_heading: str | None = None
    subpart: str | None = None
    authority: str | None = None
    resting_on: References = field(default_factory=References)


@dataclass(frozen=True, slots=True)
class _Named:
    """What a section or an appendix is called."""

    number: str
    cite: str
    heading: str | None
    part: str | None
    within: str | None = None
    """The number of a section within its part."""

    def again(self, times: int) -> "_Named":
        """Two appendices of a part may both have no letter."""
        return self if times < 2 else replace(self, number=f"{self.number}-{times}")


def _provisions(node: Element, place: _Place) -> Iterator[tuple[Element, _Place]]:
    for child in node:
        if child.tag in ("section", "appendix"):
            yield child, place
        else:
            yield from _provisions(child, _inside(child, place))


def _inside(node: Element, place: _Place) -> _Place:
    if node.tag not in _LEVELS:
        return place
    heading, num = get_text(node, "heading"), node.find("num")
    value = num.get("value") if num is not None else None
    if node.tag == "chapter":
        return replace(place, chapter=_readable(heading))
    resting_on = node.find("authority")
    if resting_on is not None:
        told = re.sub(r"^Authority:\s*", "", get_text(resting_on) or "")
        place = replace(place, authority=told, resting_on=collect_references((resting_on,)))
    if node.tag == "part":
        return replace(place, part=value, part_heading=_readable(heading), subpart=None)
    return replace(place, subpart=value) if node.tag == "subpart" else place


def _section(told: Element, place: _Place) -> _Named:
    number = _number(told)
    heading = (get_text(told, "heading") or "").rstrip(".") or None
    part = place.part or number.partition(".")[0]
    within = number.removeprefix(f"{part}.")
    return _Named(number, f"{place.title} CFR {number}", heading, part, within)


def _appendix(told: Element, place: _Place) -> _Named:
    """`Appendix A to Part 447—Forms` is number `447.appendix-a`, whichever element says so."""
    label, _, heading = (get_text(told, "heading") or "").partition("\u2014")
    if num := get_text(told, "num"):
        label, heading = num.rstrip("\u2014 "), get_text(told, "heading") or ""
    label = _readable(_OF_PART.sub("", fold_dashes(label)).strip(" -.")) or "Appendix"
    number = "-".join(re.findall("[a-z0-9]+", label.lower()))[:_LONGEST] or "appendix"
    where = f"{place.title} CFR Part {place.part}" if place.part else f"{place.title} CFR"
    return _Named(
        f"{place.part}.{number}" if place.part else number,
        f"{where}, {label}",
        _readable(heading.strip().rstrip(".")) or None,
        place.part,
    )


def _entry(told: Element, named: _Named, place: _Place, origin: Provenance) -> ParsedRecord:
    title = f"{named.cite}, {named.heading}" if named.heading else named.cite
    notes = [get_text(one) or "" for one in told.iter("source")]
    body = extract_prose(told)
    own = collect_references((told,))
    record = CfrSection(
        id=cfr_id(place.title, named.number),
        title=title,
        type="section" if told.tag == "section" else "appendix",
        cfr_title=place.title,
        part=named.part,
        subpart=place.subpart,
        number=named.number,
        heading=named.heading,
        part_heading=place.part_heading,
        agency=place.chapter,
        revised_at=place.revised,
        authority=place.authority,
        source_note=" ".join(notes).strip("[] ") or None,
        fr_citations=list(collect_references(told.iter("source")).register),
        laws=list(own.laws | place.resting_on.laws),
        usc_references=list(own.code | place.resting_on.code),
        cfr_references=list(own.regulations),
        characters=len(body),
        **citation_fields(
            origin,
            url=_page(place, named),
            org=ORG,
            cite=title,
            published_at=place.revised,
            raw_sha256=digest([hash_element(told), place.authority]),
        ),
    )
    agencies = [place.chapter, slugify(place.chapter)] if place.chapter else []
    return ParsedRecord(
        record,
        head=SearchHead(title, place.part_heading or ""),
        facets={"type": [record.type], "agency": agencies},
        text=Text("text", body, title, record.url, record.raw_sha256, dated=place.revised),
        links=list(_links(record.id, named.cite, own, place)),
        revision=place.revised,
    )


def _links(id: str, cite: str, own: References, place: _Place) -> Iterator[Link]:
    for law in place.resting_on.laws:
        yield Link(LinkKind.AUTHORITY, law, f"authority of the part: {place.authority}")
    for law, words in own.laws.items():
        if law not in place.resting_on.laws:
            yield Link(LinkKind.MENTION, law, f"reference in {cite}: {words}")
    for other, words in own.regulations.items():
        if other != id:
            yield Link(LinkKind.MENTION, other, f"reference in {cite}: {words}")


def _number(section: Element) -> str:
    num = section.find("num")
    match = _PRINTED.search(fold_dashes(get_text(num) or ""))
    if match:
        return match[1].rstrip(".-")
    stated = num.get("value") if num is not None else None
    if not stated:
        raise ValueError("a section has no number")
    return stated


def _readable(heading: str | None) -> str | None:
    return title_case(heading) if heading and heading.isupper() else heading


def _page(place: _Place, named: _Named) -> str:
    """GovInfo leads to a section, or to the part that an appendix is of."""
    year = place.revised[:4] if place.revised else "mostrecent"
    if named.part is None:
        return f"https://www.govinfo.gov/app/collection/cfr/{year}/title{place.title}"
    asked = f"sectionnum={named.within}&" if named.within else ""
    return f"https://www.govinfo.gov/link/cfr/{place.title}/{named.part}?{asked}year={year}"
