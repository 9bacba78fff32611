"""Finds what an item of the Congressional Record names, in the MODS of its issue."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.xml import find_text
from readingroom.bases.federal.schema.entries import RecordLink
from readingroom.bases.federal.schema.ids import (
    BILL_TYPES,
    make_amendment_id,
    make_bill_id,
    make_committee_id,
    make_law_id,
    make_report_id,
    make_vote_id,
)
from readingroom.bases.federal.schema.records import LinkKind

MentionedIdsWithElements = Iterator[tuple[str, Element]]
"""Ids, each with the element of the MODS that names it."""
MentionedElementsByField = dict[str, dict[str, Element]]
"""The same by the record's field, each id once."""


def find_mentioned_elements(mods_element: Element, session_number: int) -> MentionedElementsByField:
    """Return what an item names, by the field of its record; its votes are of this session."""
    return {
        "bills": _index_first_elements(_find_mentioned_bills(mods_element)),
        "amendments": _index_first_elements(_find_mentioned_amendments(mods_element)),
        "votes": _index_first_elements(_find_mentioned_votes(mods_element, session_number)),
        "laws": _index_first_elements(_find_mentioned_laws(mods_element)),
        "reports": _index_first_elements(_find_mentioned_reports(mods_element)),
        "committees": _index_first_elements(_find_mentioned_committees(mods_element)),
    }


def build_mention_links(
    elements_by_field: MentionedElementsByField,
) -> Iterator[RecordLink]:
    for element_by_id in elements_by_field.values():
        for mentioned_id, element in element_by_id.items():
            yield RecordLink(
                LinkKind.MENTION,
                mentioned_id,
                f"MODS of the item: {_quote_element(element)}",
            )


def find_mentioned_cfr_parts(mods_element: Element) -> Iterator[str]:
    for title_element in mods_element.findall("cfr"):
        for part_element in title_element.findall("part"):
            yield f"{title_element.get('title')} CFR Part {part_element.get('number')}"


def find_mentioned_usc_sections(mods_element: Element) -> Iterator[str]:
    for title_element in mods_element.findall("USCode"):
        for section_element in title_element.findall("section"):
            section_number = f"{section_element.get('number')}{section_element.get('detail') or ''}"
            yield f"{title_element.get('title')} U.S.C. {section_number}"


def _quote_element(element: Element) -> str:
    """An element as it stands in the file: its attributes, and what it says first, if anything."""
    attributes_xml = "".join(
        f' {attribute_name}="{attribute_value}"'
        for attribute_name, attribute_value in element.items()
    )
    first_text = find_text(element[0]) or "" if len(element) else ""
    return f"<{element.tag}{attributes_xml}> {first_text}".strip()


def _index_first_elements(
    ids_with_elements: MentionedIdsWithElements,
) -> dict[str, Element]:
    """What is named, each with the first element that names it."""
    first_element_by_id: dict[str, Element] = {}
    for mentioned_id, element in ids_with_elements:
        first_element_by_id.setdefault(mentioned_id, element)
    return first_element_by_id


def _find_mentioned_bills(mods_element: Element) -> MentionedIdsWithElements:
    for bill_element, congress_text, bill_number_text in _iterate_numbered_elements(
        mods_element, "bill"
    ):
        if (bill_type := bill_element.get("type", "").lower()) in BILL_TYPES:
            yield make_bill_id(congress_text, bill_type, bill_number_text), bill_element


def _find_mentioned_amendments(mods_element: Element) -> MentionedIdsWithElements:
    for amendment_element, congress_text, amendment_number in _iterate_numbered_elements(
        mods_element, "amendment"
    ):
        amendment_type = "samdt" if amendment_element.get("chamber") == "SENATE" else "hamdt"
        yield make_amendment_id(congress_text, amendment_type, amendment_number), amendment_element


def _find_mentioned_votes(mods_element: Element, session_number: int) -> MentionedIdsWithElements:
    for vote_element, congress_text, vote_number in _iterate_numbered_elements(
        mods_element, "congVote"
    ):
        if chamber_name := vote_element.get("chamber"):
            yield (
                make_vote_id(chamber_name, congress_text, session_number, vote_number),
                vote_element,
            )


def _find_mentioned_laws(mods_element: Element) -> MentionedIdsWithElements:
    for law_element, congress_text, law_number in _iterate_numbered_elements(mods_element, "law"):
        is_private = law_element.get("isPrivate") == "true"
        yield make_law_id(f"{congress_text}-{law_number}", is_private=is_private), law_element


def _find_mentioned_reports(mods_element: Element) -> MentionedIdsWithElements:
    for report_element, congress_text, report_number in _iterate_numbered_elements(
        mods_element, "congReport"
    ):
        report_type = f"{report_element.get('type', 'H')[0]}rpt"
        yield make_report_id(congress_text, report_type, report_number), report_element


def _find_mentioned_committees(mods_element: Element) -> MentionedIdsWithElements:
    for committee_element in mods_element.findall("congCommittee"):
        if committee_code := committee_element.get("authorityId"):
            yield make_committee_id(committee_code), committee_element


def _iterate_numbered_elements(
    mods_element: Element, tag_name: str
) -> Iterator[tuple[Element, str, str]]:
    """What is named by congress and number; a few lack one, and name nothing."""
    for numbered_element in mods_element.findall(tag_name):
        congress_text, item_number_text = (
            numbered_element.get("congress", ""),
            numbered_element.get("number", ""),
        )
        if congress_text.isdecimal() and item_number_text.isdecimal():
            yield numbered_element, congress_text, item_number_text
