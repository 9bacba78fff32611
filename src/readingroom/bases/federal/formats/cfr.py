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
    parse,
    parse_iso_date,
)
from readingroom.bases.federal.formats.register import ORG, slugify, to_title_case
from readingroom.bases.federal.formats.uslm import is_uslm
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_cfr_id
from readingroom.bases.federal.schema.records import CfrSection, LinkKind
from readingroom.core.text import fold_dashes

# What the printed number is: the attribute beside it loses the letter of `§ 478.25a`.
_PRINTED = re.compile(r"\u00a7+\s*([0-9][\w.-]*)")
_LEVELS = ("chapter", "subchapter", "part", "subpart")
# Appendix A to Part 50, Supplement No. 1 to Subpart B of Part 730: the part is said beside it.
_OF_PART = re.compile(r"\s+(?:to|of)\s+part\s+\w+|\s*\[reserved\]", re.I | re.ASCII)
# Some appendices have no letter: their number is made of the words of the heading.
_LONGEST = 80


class Regulations:
    """`CFR-2018-title27-vol3-uslm.xml`: the sections and appendices of a volume."""

    format_id: ClassVar[str] = "cfr/3"
    sources: ClassVar[tuple[str, ...]] = ("cfr_sections",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return is_uslm(start, b"<cfrDoc ")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        volume = parse(file.data)
        meta = volume.find("meta")
        title = int(get_text(meta, "docNumber") or "")
        revised = parse_iso_date(get_text(meta, "docReleasePoint")) or parse_iso_date(
            get_text(meta, "created")
        )
        main = volume.find("main")
        if main is None:
            raise ValueError("no <main> in this file")
        repeats: Counter[str] = Counter()
        for provision, context in _iterate_provisions(main, _Context(title, revised)):
            label = (
                _label_section(provision, context)
                if provision.tag == "section"
                else _label_appendix(provision, context)
            )
            # Only appendices: the printed number of a section is its identity.
            repeats[label.number] += provision.tag == "appendix"
            yield _build_entry(
                provision, label.with_repeat(repeats[label.number]), context, provenance
            )


@dataclass(frozen=True, slots=True)
class _Context:
    """The title, chapter and part above a section, and what they state for it."""

    title: int
    revised: str | None
    chapter: str | None = None
    part: str | None = None
    part_heading: str | None = None
    subpart: str | None = None
    authority: str | None = None
    resting_on: References = field(default_factory=References)


@dataclass(frozen=True, slots=True)
class _ProvisionLabel:
    """What a section or an appendix is called."""

    number: str
    cite: str
    heading: str | None
    part: str | None
    within: str | None = None
    """The number of a section within its part."""

    def with_repeat(self, times: int) -> "_ProvisionLabel":
        """Two appendices of a part may both have no letter."""
        return self if times < 2 else replace(self, number=f"{self.number}-{times}")


def _iterate_provisions(node: Element, context: _Context) -> Iterator[tuple[Element, _Context]]:
    for child in node:
        if child.tag in ("section", "appendix"):
            yield child, context
        else:
            yield from _iterate_provisions(child, _enter_level(child, context))


def _enter_level(node: Element, context: _Context) -> _Context:
    if node.tag not in _LEVELS:
        return context
    heading, num = get_text(node, "heading"), node.find("num")
    value = num.get("value") if num is not None else None
    if node.tag == "chapter":
        return replace(context, chapter=_soften_capitals(heading))
    resting_on = node.find("authority")
    if resting_on is not None:
        authority = re.sub(r"^Authority:\s*", "", get_text(resting_on) or "")
        context = replace(
            context, authority=authority, resting_on=collect_references((resting_on,))
        )
    if node.tag == "part":
        return replace(context, part=value, part_heading=_soften_capitals(heading), subpart=None)
    return replace(context, subpart=value) if node.tag == "subpart" else context


def _label_section(section: Element, context: _Context) -> _ProvisionLabel:
    number = _read_number(section)
    heading = (get_text(section, "heading") or "").rstrip(".") or None
    part = context.part or number.partition(".")[0]
    within = number.removeprefix(f"{part}.")
    return _ProvisionLabel(number, f"{context.title} CFR {number}", heading, part, within)


def _label_appendix(appendix: Element, context: _Context) -> _ProvisionLabel:
    """`Appendix A to Part 447—Forms` is number `447.appendix-a`, whichever element says so."""
    label, _, heading = (get_text(appendix, "heading") or "").partition("\u2014")
    if num := get_text(appendix, "num"):
        label, heading = num.rstrip("\u2014 "), get_text(appendix, "heading") or ""
    label = _soften_capitals(_OF_PART.sub("", fold_dashes(label)).strip(" -.")) or "Appendix"
    number = "-".join(re.findall("[a-z0-9]+", label.lower()))[:_LONGEST] or "appendix"
    where = f"{context.title} CFR Part {context.part}" if context.part else f"{context.title} CFR"
    return _ProvisionLabel(
        f"{context.part}.{number}" if context.part else number,
        f"{where}, {label}",
        _soften_capitals(heading.strip().rstrip(".")) or None,
        context.part,
    )


def _build_entry(
    provision: Element, label: _ProvisionLabel, context: _Context, provenance: Provenance
) -> ParsedRecord:
    title = f"{label.cite}, {label.heading}" if label.heading else label.cite
    notes = [get_text(element) or "" for element in provision.iter("source")]
    body = extract_prose(provision)
    own = collect_references((provision,))
    record = CfrSection(
        id=make_cfr_id(context.title, label.number),
        title=title,
        type="section" if provision.tag == "section" else "appendix",
        cfr_title=context.title,
        part=label.part,
        subpart=context.subpart,
        number=label.number,
        heading=label.heading,
        part_heading=context.part_heading,
        agency=context.chapter,
        revised_at=context.revised,
        authority=context.authority,
        source_note=" ".join(notes).strip("[] ") or None,
        fr_citations=list(collect_references(provision.iter("source")).register),
        laws=list(own.laws | context.resting_on.laws),
        usc_references=list(own.code | context.resting_on.code),
        cfr_references=list(own.regulations),
        characters=len(body),
        **build_citation_fields(
            provenance,
            url=_build_url(context, label),
            org=ORG,
            cite=title,
            published_at=context.revised,
            # The authority stands above, at the part, but is stored with each section.
            raw_sha256=hash_item([hash_element(provision), context.authority]),
        ),
    )
    agencies = [context.chapter, slugify(context.chapter)] if context.chapter else []
    return ParsedRecord(
        record,
        head=SearchHead(title, context.part_heading or ""),
        facets={"type": [record.type], "agency": agencies},
        text=Text("text", body, title, record.url, record.raw_sha256, dated=context.revised),
        links=list(_build_links(record.id, label.cite, own, context)),
        revision=context.revised,
    )


def _build_links(id: str, cite: str, own: References, context: _Context) -> Iterator[Link]:
    for law in context.resting_on.laws:
        yield Link(LinkKind.AUTHORITY, law, f"authority of the part: {context.authority}")
    # A law that is the authority of the part is not also a mention.
    for law, words in own.laws.items():
        if law not in context.resting_on.laws:
            yield Link(LinkKind.MENTION, law, f"reference in {cite}: {words}")
    for other, words in own.regulations.items():
        if other != id:
            yield Link(LinkKind.MENTION, other, f"reference in {cite}: {words}")


def _read_number(section: Element) -> str:
    num = section.find("num")
    match = _PRINTED.search(fold_dashes(get_text(num) or ""))
    if match:
        return match[1].rstrip(".-")
    stated = num.get("value") if num is not None else None
    if not stated:
        raise ValueError("a section has no number")
    return stated


def _soften_capitals(heading: str | None) -> str | None:
    return to_title_case(heading) if heading and heading.isupper() else heading


def _build_url(context: _Context, label: _ProvisionLabel) -> str:
    """GovInfo leads to a section, or to the part that an appendix is of."""
    year = context.revised[:4] if context.revised else "mostrecent"
    if label.part is None:
        return f"https://www.govinfo.gov/app/collection/cfr/{year}/title{context.title}"
    query = f"sectionnum={label.within}&" if label.within else ""
    return f"https://www.govinfo.gov/link/cfr/{context.title}/{label.part}?{query}year={year}"
