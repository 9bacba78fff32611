"""Reads the Code of Federal Regulations: volumes in USLM XML, a record for each section.

What is appended to a part, or to a subpart of it, is a record like a section.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.prose import extract_prose
from readingroom.bases.federal.formats.parts.references import References, collect_references
from readingroom.bases.federal.formats.parts.xml import (
    find_text,
    hash_element,
    parse_iso_date,
    parse_xml,
)
from readingroom.bases.federal.formats.register import PUBLISHER, slugify, to_title_case
from readingroom.bases.federal.formats.uslm import is_uslm
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_cfr_id
from readingroom.bases.federal.schema.records import CfrSection, LinkKind
from readingroom.core.text import fold_dashes

# What the printed number is: the attribute beside it loses the letter of `§ 478.25a`.
_PRINTED_SECTION_NUMBER_PATTERN = re.compile(r"\u00a7+\s*([0-9][\w.-]*)")
_LEVEL_TAGS = ("chapter", "subchapter", "part", "subpart")
# Appendix A to Part 50, Supplement No. 1 to Subpart B of Part 730: the part is said beside it.
_PART_REFERENCE_PATTERN = re.compile(r"\s+(?:to|of)\s+part\s+\w+|\s*\[reserved\]", re.I | re.ASCII)
# Some appendices have no letter: their number is made of the words of the heading.
_MAX_APPENDIX_SLUG_CHARS = 80


class CfrLoader:
    """`CFR-2018-title27-vol3-uslm.xml`: the sections and appendices of a volume."""

    format_id: ClassVar[str] = "cfr/4"
    record_source_names: ClassVar[tuple[str, ...]] = ("cfr_sections",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return is_uslm(file_start_reader, b"<cfrDoc ")

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        volume_element = parse_xml(raw_file.data)
        metadata_element = volume_element.find("meta")
        title_number = int(find_text(metadata_element, "docNumber") or "")
        revised_at = parse_iso_date(
            find_text(metadata_element, "docReleasePoint")
        ) or parse_iso_date(find_text(metadata_element, "created"))
        main_element = volume_element.find("main")
        if main_element is None:
            raise ValueError("no <main> in this file")
        count_by_appendix_number: Counter[str] = Counter()
        for provision_element, cfr_context in _iterate_provisions(
            main_element, _CfrContext(title_number, revised_at)
        ):
            provision_label = (
                _make_section_label(provision_element, cfr_context)
                if provision_element.tag == "section"
                else _make_appendix_label(provision_element, cfr_context)
            )
            # Only appendices: the printed number of a section is its identity.
            count_by_appendix_number[provision_label.number] += provision_element.tag == "appendix"
            yield _build_provision(
                provision_element,
                provision_label.with_repeat_number(
                    count_by_appendix_number[provision_label.number]
                ),
                cfr_context,
                file_stamp,
            )


@dataclass(frozen=True, slots=True)
class _CfrContext:
    """The title, chapter and part above a section, and what they state for it."""

    title_number: int
    revised_at: str | None
    chapter_heading: str | None = None
    part_number: str | None = None
    part_heading: str | None = None
    subpart_number: str | None = None
    authority_text: str | None = None
    authority_references: References = field(default_factory=References)


@dataclass(frozen=True, slots=True)
class _ProvisionLabel:
    """What a section or an appendix is called."""

    number: str
    citation_text: str
    heading: str | None
    part_number: str | None
    number_in_part: str | None = None
    """The number of a section within its part."""

    def with_repeat_number(self, repeat_number: int) -> "_ProvisionLabel":
        """Two appendices of a part may both have no letter."""
        return self if repeat_number < 2 else replace(self, number=f"{self.number}-{repeat_number}")


def _iterate_provisions(
    xml_node: Element, cfr_context: _CfrContext
) -> Iterator[tuple[Element, _CfrContext]]:
    for child_node in xml_node:
        if child_node.tag in ("section", "appendix"):
            yield child_node, cfr_context
        else:
            yield from _iterate_provisions(child_node, _extend_context(child_node, cfr_context))


def _extend_context(xml_node: Element, cfr_context: _CfrContext) -> _CfrContext:
    if xml_node.tag not in _LEVEL_TAGS:
        return cfr_context
    level_heading, number_element = find_text(xml_node, "heading"), xml_node.find("num")
    level_number_text = number_element.get("value") if number_element is not None else None
    if xml_node.tag == "chapter":
        return replace(cfr_context, chapter_heading=_convert_capitals_to_title_case(level_heading))
    authority_element = xml_node.find("authority")
    if authority_element is not None:
        authority_text = re.sub(r"^Authority:\s*", "", find_text(authority_element) or "")
        cfr_context = replace(
            cfr_context,
            authority_text=authority_text,
            authority_references=collect_references((authority_element,)),
        )
    if xml_node.tag == "part":
        return replace(
            cfr_context,
            part_number=level_number_text,
            part_heading=_convert_capitals_to_title_case(level_heading),
            subpart_number=None,
        )
    return (
        replace(cfr_context, subpart_number=level_number_text)
        if xml_node.tag == "subpart"
        else cfr_context
    )


def _make_section_label(section_element: Element, cfr_context: _CfrContext) -> _ProvisionLabel:
    section_number = _read_section_number(section_element)
    section_heading = (find_text(section_element, "heading") or "").rstrip(".") or None
    part_number = cfr_context.part_number or section_number.partition(".")[0]
    number_in_part = section_number.removeprefix(f"{part_number}.")
    return _ProvisionLabel(
        section_number,
        f"{cfr_context.title_number} CFR {section_number}",
        section_heading,
        part_number,
        number_in_part,
    )


def _make_appendix_label(appendix_element: Element, cfr_context: _CfrContext) -> _ProvisionLabel:
    """`Appendix A to Part 447—Forms` is number `447.appendix-a`, whichever element says so."""
    label_text, _, appendix_heading = (find_text(appendix_element, "heading") or "").partition(
        "\u2014"
    )
    if printed_label_text := find_text(appendix_element, "num"):
        label_text, appendix_heading = (
            printed_label_text.rstrip("\u2014 "),
            find_text(appendix_element, "heading") or "",
        )
    label_text = (
        _convert_capitals_to_title_case(
            _PART_REFERENCE_PATTERN.sub("", fold_dashes(label_text)).strip(" -.")
        )
        or "Appendix"
    )
    appendix_slug = (
        "-".join(re.findall("[a-z0-9]+", label_text.lower()))[:_MAX_APPENDIX_SLUG_CHARS]
        or "appendix"
    )
    part_citation = (
        f"{cfr_context.title_number} CFR Part {cfr_context.part_number}"
        if cfr_context.part_number
        else f"{cfr_context.title_number} CFR"
    )
    return _ProvisionLabel(
        f"{cfr_context.part_number}.{appendix_slug}" if cfr_context.part_number else appendix_slug,
        f"{part_citation}, {label_text}",
        _convert_capitals_to_title_case(appendix_heading.strip().rstrip(".")) or None,
        cfr_context.part_number,
    )


def _build_provision(
    provision_element: Element,
    provision_label: _ProvisionLabel,
    cfr_context: _CfrContext,
    file_stamp: FileStamp,
) -> ParsedRecord:
    provision_title = (
        f"{provision_label.citation_text}, {provision_label.heading}"
        if provision_label.heading
        else provision_label.citation_text
    )
    source_notes = [
        find_text(source_element) or "" for source_element in provision_element.iter("source")
    ]
    provision_text = extract_prose(provision_element)
    own_references = collect_references((provision_element,))
    provision_record = CfrSection(
        id=make_cfr_id(cfr_context.title_number, provision_label.number),
        title=provision_title,
        type="section" if provision_element.tag == "section" else "appendix",
        cfr_title=cfr_context.title_number,
        part=provision_label.part_number,
        subpart=cfr_context.subpart_number,
        number=provision_label.number,
        heading=provision_label.heading,
        part_heading=cfr_context.part_heading,
        agency=cfr_context.chapter_heading,
        revised_at=cfr_context.revised_at,
        authority=cfr_context.authority_text,
        source_note=" ".join(source_notes).strip("[] ") or None,
        fr_citations=list(
            collect_references(provision_element.iter("source")).words_by_register_page
        ),
        laws=list(
            own_references.words_by_law_id | cfr_context.authority_references.words_by_law_id
        ),
        usc_references=list(
            own_references.words_by_usc_section
            | cfr_context.authority_references.words_by_usc_section
        ),
        cfr_references=list(own_references.words_by_cfr_section_id),
        characters=len(provision_text),
        **build_citation_fields(
            file_stamp,
            url=_build_govinfo_url(cfr_context, provision_label),
            org=PUBLISHER,
            cite=provision_title,
            published_at=cfr_context.revised_at,
            # The authority stands above, at the part, but is stored with each section.
            raw_sha256=hash_item([hash_element(provision_element), cfr_context.authority_text]),
        ),
    )
    agency_facet_values = (
        [cfr_context.chapter_heading, slugify(cfr_context.chapter_heading)]
        if cfr_context.chapter_heading
        else []
    )
    return ParsedRecord(
        provision_record,
        searchable_fields=SearchableFields(provision_title, cfr_context.part_heading or ""),
        values_by_facet={"type": [provision_record.type], "agency": agency_facet_values},
        text=RecordText(
            "text",
            provision_text,
            provision_title,
            provision_record.url,
            provision_record.raw_sha256,
            dated=cfr_context.revised_at,
        ),
        links=list(
            _build_links(
                provision_record.id, provision_label.citation_text, own_references, cfr_context
            )
        ),
        revision=cfr_context.revised_at,
    )


def _build_links(
    provision_id: str, provision_citation: str, own_references: References, cfr_context: _CfrContext
) -> Iterator[RecordLink]:
    for law_id in cfr_context.authority_references.words_by_law_id:
        yield RecordLink(
            LinkKind.AUTHORITY, law_id, f"authority of the part: {cfr_context.authority_text}"
        )
    # A law that is the authority of the part is not also a mention.
    for law_id, cited_text in own_references.words_by_law_id.items():
        if law_id not in cfr_context.authority_references.words_by_law_id:
            yield RecordLink(
                LinkKind.MENTION, law_id, f"reference in {provision_citation}: {cited_text}"
            )
    for cited_section_id, cited_text in own_references.words_by_cfr_section_id.items():
        if cited_section_id != provision_id:
            yield RecordLink(
                LinkKind.MENTION,
                cited_section_id,
                f"reference in {provision_citation}: {cited_text}",
            )


def _read_section_number(section_element: Element) -> str:
    number_element = section_element.find("num")
    number_match = _PRINTED_SECTION_NUMBER_PATTERN.search(
        fold_dashes(find_text(number_element) or "")
    )
    if number_match:
        return number_match[1].rstrip(".-")
    number_attribute = number_element.get("value") if number_element is not None else None
    if not number_attribute:
        raise ValueError("a section has no number")
    return number_attribute


def _convert_capitals_to_title_case(heading_text: str | None) -> str | None:
    return to_title_case(heading_text) if heading_text and heading_text.isupper() else heading_text


def _build_govinfo_url(cfr_context: _CfrContext, provision_label: _ProvisionLabel) -> str:
    """GovInfo leads to a section, or to the part that an appendix is of."""
    edition_year = cfr_context.revised_at[:4] if cfr_context.revised_at else "mostrecent"
    if provision_label.part_number is None:
        return f"https://www.govinfo.gov/app/collection/cfr/{edition_year}/title{cfr_context.title_number}"
    url_query = (
        f"sectionnum={provision_label.number_in_part}&" if provision_label.number_in_part else ""
    )
    return f"https://www.govinfo.gov/link/cfr/{cfr_context.title_number}/{provision_label.part_number}?{url_query}year={edition_year}"
