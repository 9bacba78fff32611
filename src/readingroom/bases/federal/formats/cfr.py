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

    def matches(self, file_start: FileStart) -> bool:
        return is_uslm(file_start, b"<cfrDoc ")

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        volume = parse(file.data)
        metadata = volume.find("meta")
        title_number = int(get_text(metadata, "docNumber") or "")
        revised = parse_iso_date(get_text(metadata, "docReleasePoint")) or parse_iso_date(
            get_text(metadata, "created")
        )
        main = volume.find("main")
        if main is None:
            raise ValueError("no <main> in this file")
        repeats: Counter[str] = Counter()
        for provision, cfr_context in _iterate_provisions(main, _Context(title_number, revised)):
            provision_label = (
                _label_section(provision, cfr_context)
                if provision.tag == "section"
                else _label_appendix(provision, cfr_context)
            )
            # Only appendices: the printed number of a section is its identity.
            repeats[provision_label.number] += provision.tag == "appendix"
            yield _build_entry(
                provision,
                provision_label.with_repeat(repeats[provision_label.number]),
                cfr_context,
                provenance,
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


def _iterate_provisions(node: Element, cfr_context: _Context) -> Iterator[tuple[Element, _Context]]:
    for child_node in node:
        if child_node.tag in ("section", "appendix"):
            yield child_node, cfr_context
        else:
            yield from _iterate_provisions(child_node, _enter_level(child_node, cfr_context))


def _enter_level(node: Element, cfr_context: _Context) -> _Context:
    if node.tag not in _LEVELS:
        return cfr_context
    level_heading, num = get_text(node, "heading"), node.find("num")
    level_number = num.get("value") if num is not None else None
    if node.tag == "chapter":
        return replace(cfr_context, chapter=_soften_capitals(level_heading))
    resting_on = node.find("authority")
    if resting_on is not None:
        authority = re.sub(r"^Authority:\s*", "", get_text(resting_on) or "")
        cfr_context = replace(
            cfr_context, authority=authority, resting_on=collect_references((resting_on,))
        )
    if node.tag == "part":
        return replace(
            cfr_context,
            part=level_number,
            part_heading=_soften_capitals(level_heading),
            subpart=None,
        )
    return replace(cfr_context, subpart=level_number) if node.tag == "subpart" else cfr_context


def _label_section(section_element: Element, cfr_context: _Context) -> _ProvisionLabel:
    section_number = _read_number(section_element)
    section_heading = (get_text(section_element, "heading") or "").rstrip(".") or None
    part_number = cfr_context.part or section_number.partition(".")[0]
    within = section_number.removeprefix(f"{part_number}.")
    return _ProvisionLabel(
        section_number,
        f"{cfr_context.title} CFR {section_number}",
        section_heading,
        part_number,
        within,
    )


def _label_appendix(appendix: Element, cfr_context: _Context) -> _ProvisionLabel:
    """`Appendix A to Part 447—Forms` is number `447.appendix-a`, whichever element says so."""
    appendix_label, _, appendix_heading = (get_text(appendix, "heading") or "").partition("\u2014")
    if num := get_text(appendix, "num"):
        appendix_label, appendix_heading = (
            num.rstrip("\u2014 "),
            get_text(appendix, "heading") or "",
        )
    appendix_label = (
        _soften_capitals(_OF_PART.sub("", fold_dashes(appendix_label)).strip(" -.")) or "Appendix"
    )
    appendix_id = "-".join(re.findall("[a-z0-9]+", appendix_label.lower()))[:_LONGEST] or "appendix"
    containing_part = (
        f"{cfr_context.title} CFR Part {cfr_context.part}"
        if cfr_context.part
        else f"{cfr_context.title} CFR"
    )
    return _ProvisionLabel(
        f"{cfr_context.part}.{appendix_id}" if cfr_context.part else appendix_id,
        f"{containing_part}, {appendix_label}",
        _soften_capitals(appendix_heading.strip().rstrip(".")) or None,
        cfr_context.part,
    )


def _build_entry(
    provision: Element,
    provision_label: _ProvisionLabel,
    cfr_context: _Context,
    provenance: Provenance,
) -> ParsedRecord:
    provision_title = (
        f"{provision_label.cite}, {provision_label.heading}"
        if provision_label.heading
        else provision_label.cite
    )
    notes = [get_text(source_note) or "" for source_note in provision.iter("source")]
    provision_text = extract_prose(provision)
    own = collect_references((provision,))
    section_record = CfrSection(
        id=make_cfr_id(cfr_context.title, provision_label.number),
        title=provision_title,
        type="section" if provision.tag == "section" else "appendix",
        cfr_title=cfr_context.title,
        part=provision_label.part,
        subpart=cfr_context.subpart,
        number=provision_label.number,
        heading=provision_label.heading,
        part_heading=cfr_context.part_heading,
        agency=cfr_context.chapter,
        revised_at=cfr_context.revised,
        authority=cfr_context.authority,
        source_note=" ".join(notes).strip("[] ") or None,
        fr_citations=list(collect_references(provision.iter("source")).register),
        laws=list(own.laws | cfr_context.resting_on.laws),
        usc_references=list(own.code | cfr_context.resting_on.code),
        cfr_references=list(own.regulations),
        characters=len(provision_text),
        **build_citation_fields(
            provenance,
            url=_build_url(cfr_context, provision_label),
            org=ORG,
            cite=provision_title,
            published_at=cfr_context.revised,
            # The authority stands above, at the part, but is stored with each section.
            raw_sha256=hash_item([hash_element(provision), cfr_context.authority]),
        ),
    )
    agencies = [cfr_context.chapter, slugify(cfr_context.chapter)] if cfr_context.chapter else []
    return ParsedRecord(
        section_record,
        head=SearchHead(provision_title, cfr_context.part_heading or ""),
        facets={"type": [section_record.type], "agency": agencies},
        text=Text(
            "text",
            provision_text,
            provision_title,
            section_record.url,
            section_record.raw_sha256,
            dated=cfr_context.revised,
        ),
        links=list(_build_links(section_record.id, provision_label.cite, own, cfr_context)),
        revision=cfr_context.revised,
    )


def _build_links(
    section_id: str, cite: str, own: References, cfr_context: _Context
) -> Iterator[Link]:
    for law in cfr_context.resting_on.laws:
        yield Link(LinkKind.AUTHORITY, law, f"authority of the part: {cfr_context.authority}")
    # A law that is the authority of the part is not also a mention.
    for law, cited_words in own.laws.items():
        if law not in cfr_context.resting_on.laws:
            yield Link(LinkKind.MENTION, law, f"reference in {cite}: {cited_words}")
    for cited_section_id, cited_words in own.regulations.items():
        if cited_section_id != section_id:
            yield Link(LinkKind.MENTION, cited_section_id, f"reference in {cite}: {cited_words}")


def _read_number(section_element: Element) -> str:
    num = section_element.find("num")
    number_match = _PRINTED.search(fold_dashes(get_text(num) or ""))
    if number_match:
        return number_match[1].rstrip(".-")
    stated = num.get("value") if num is not None else None
    if not stated:
        raise ValueError("a section has no number")
    return stated


def _soften_capitals(heading: str | None) -> str | None:
    return to_title_case(heading) if heading and heading.isupper() else heading


def _build_url(cfr_context: _Context, provision_label: _ProvisionLabel) -> str:
    """GovInfo leads to a section, or to the part that an appendix is of."""
    edition_year = cfr_context.revised[:4] if cfr_context.revised else "mostrecent"
    if provision_label.part is None:
        return f"https://www.govinfo.gov/app/collection/cfr/{edition_year}/title{cfr_context.title}"
    query = f"sectionnum={provision_label.within}&" if provision_label.within else ""
    return f"https://www.govinfo.gov/link/cfr/{cfr_context.title}/{provision_label.part}?{query}year={edition_year}"
