"""Reads the Code of Federal Regulations: volumes in USLM XML, a record for each section."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.entries import Entry, Head, Link, Origin, Text, cited
from readingroom.bases.federal.loaders import references
from readingroom.bases.federal.loaders.files import RawFile
from readingroom.bases.federal.loaders.legislators import digest
from readingroom.bases.federal.loaders.register import ORG, in_title_case, slug
from readingroom.bases.federal.loaders.uslm import is_uslm
from readingroom.bases.federal.loaders.xml import day, fingerprint, parse, prose, said
from readingroom.bases.federal.records import CfrSection, LinkKind
from readingroom.core.ids import cfr_id, fold_dashes

# What the printed number is: the attribute beside it loses the letter of `§ 478.25a`.
_PRINTED = re.compile(r"\u00a7+\s*([0-9][\w.-]*)")
_LEVELS = ("chapter", "subchapter", "part", "subpart")


class Regulations:
    """`CFR-2018-title27-vol3-uslm.xml`: the sections of a volume."""

    name: ClassVar[str] = "cfr/2"
    sources: ClassVar[tuple[str, ...]] = ("cfr_sections",)
    whole: ClassVar[str | None] = None

    def recognises(self, file: RawFile) -> bool:
        return is_uslm(file, b"<cfrDoc ")

    def read(self, file: RawFile, origin: Origin) -> Iterator[Entry]:
        volume = parse(file.data)
        meta = volume.find("meta")
        title = int(said(meta, "docNumber") or "")
        revised = day(said(meta, "docReleasePoint")) or day(said(meta, "created"))
        main = volume.find("main")
        if main is None:
            raise ValueError("no <main> in this file")
        for section, place in _sections(main, _Place(title, revised)):
            yield _entry(section, place, origin)


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
    resting_on: tuple[Element, ...] = ()


def _sections(node: Element, place: _Place) -> Iterator[tuple[Element, _Place]]:
    for child in node:
        if child.tag == "section":
            yield child, place
        else:
            yield from _sections(child, _inside(child, place))


def _inside(node: Element, place: _Place) -> _Place:
    if node.tag not in _LEVELS:
        return place
    heading, num = said(node, "heading"), node.find("num")
    value = num.get("value") if num is not None else None
    if node.tag == "chapter":
        return replace(place, chapter=_readable(heading))
    resting_on = node.find("authority")
    if resting_on is not None:
        told = re.sub(r"^Authority:\s*", "", said(resting_on) or "")
        place = replace(place, authority=told, resting_on=(resting_on,))
    if node.tag == "part":
        return replace(place, part=value, part_heading=_readable(heading), subpart=None)
    return replace(place, subpart=value) if node.tag == "subpart" else place


def _entry(section: Element, place: _Place, origin: Origin) -> Entry:
    number = _number(section)
    heading = (said(section, "heading") or "").rstrip(".") or None
    cite = f"{place.title} CFR {number}"
    title = f"{cite}, {heading}" if heading else cite
    notes = [said(one) or "" for one in section.iter("source")]
    body = prose(section)
    part = place.part or number.partition(".")[0]
    record = CfrSection(
        id=cfr_id(place.title, number),
        title=title,
        cfr_title=place.title,
        part=part,
        subpart=place.subpart,
        number=number,
        heading=heading,
        part_heading=place.part_heading,
        agency=place.chapter,
        revised_at=place.revised,
        authority=place.authority,
        source_note=" ".join(notes).strip("[] ") or None,
        fr_citations=references.register(section.iter("source")),
        laws=references.laws((section, *place.resting_on)),
        usc_references=references.code((section, *place.resting_on)),
        cfr_references=references.regulations((section,)),
        characters=len(body),
        **cited(
            origin,
            url=_page(place, part, number),
            org=ORG,
            cite=title,
            published_at=place.revised,
            raw_sha256=digest([fingerprint(section), place.authority]),
        ),
    )
    agencies = [place.chapter, slug(place.chapter)] if place.chapter else []
    return Entry(
        record,
        head=Head(title, place.part_heading or ""),
        facets={"type": ["section"], "agency": agencies},
        text=Text("text", body, title, record.url, record.raw_sha256, dated=place.revised),
        links=list(_links(record, place)),
        revision=place.revised,
    )


def _links(record: CfrSection, place: _Place) -> Iterator[Link]:
    resting_on = references.laws(place.resting_on)
    for law in record.laws:
        if law in resting_on:
            yield Link(LinkKind.AUTHORITY, law, f"authority of the part: {place.authority}")
        else:
            yield Link(LinkKind.MENTION, law, f"reference in {record.title}: {law}")
    for other in record.cfr_references:
        if other != record.id:
            yield Link(LinkKind.MENTION, other, f"reference in {record.title}: {other}")


def _number(section: Element) -> str:
    num = section.find("num")
    match = _PRINTED.search(fold_dashes(said(num) or ""))
    if match:
        return match[1].rstrip(".-")
    stated = num.get("value") if num is not None else None
    if not stated:
        raise ValueError("a section has no number")
    return stated


def _readable(heading: str | None) -> str | None:
    return in_title_case(heading) if heading and heading.isupper() else heading


def _page(place: _Place, part: str, number: str) -> str:
    year = place.revised[:4] if place.revised else "mostrecent"
    within = number.removeprefix(f"{part}.")
    return f"https://www.govinfo.gov/link/cfr/{place.title}/{part}?sectionnum={within}&year={year}"
