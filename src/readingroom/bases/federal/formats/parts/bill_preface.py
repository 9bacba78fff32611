"""Parses what stands above the text of a bill: who introduced it when, and where it was sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.people import parse_chamber
from readingroom.bases.federal.formats.parts.xml import find_text
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.ids import make_committee_id
from readingroom.bases.federal.schema.records import (
    BillCommittee,
    CommitteeActivity,
    Cosponsor,
    Person,
)

# A member also reports a bill, for a committee: that is not to introduce it.
_INTRODUCED_PATTERN = re.compile(r"\b(?:introduced|submitted|reported) the following\b")
_REPORTED_PATTERN = re.compile(r"\breported\b", re.I)
_REPORTED_ORIGINAL_PATTERN = re.compile(r"\bfrom the .*\breported the following\b")
_REFERRED_PATTERN = re.compile(r"\breferred to\b", re.I)
_HONORIFIC_PATTERN = re.compile(r"^(?:Mr|Ms|Mrs|Miss|Dr)\.?\s+")
_OF_STATE_PATTERN = re.compile(r"\s+of\s+((?:[A-Z]\w+\s?)+)$")
_REPORT_HREF_PATTERN = re.compile(r"/us/([hs])rpt/(\d+)/(\d+)(?:/pt(\d+))?", re.ASCII)
_HOUSE_COMMITTEE_CODE_PATTERN = re.compile(r"H([A-Z]{2})(\d\d)")
# The House's own codes have two letters; all but this one become an id in the same way.
_SELECT_COMMITTEE_BY_CODE = {"IG": "HLIG"}


@dataclass
class PrintedPreface:
    """What the first page of a bill says of it."""

    sponsors: list[Person] = field(default_factory=list)
    cosponsors: list[Cosponsor] = field(default_factory=list)
    committees: list[BillCommittee] = field(default_factory=list)
    introduced_at: str | None = None


def parse_preface(dates_and_action_elements: list[tuple[str | None, Element]]) -> PrintedPreface:
    """Return what the actions on the first page say, each given with its date."""
    printed_preface = PrintedPreface()
    for action_date, action_element in dates_and_action_elements:
        # Without its date, which is printed before it with nothing between.
        action_text = (
            find_text(action_element, "actionDescription") or find_text(action_element) or ""
        )
        sponsor_element = action_element.find(".//sponsor")
        is_introduction = _INTRODUCED_PATTERN.search(action_text) is not None
        if is_introduction and sponsor_element is not None and not printed_preface.sponsors:
            printed_preface.sponsors.append(Person(**_parse_member_fields(sponsor_element)))
            printed_preface.introduced_at = action_date
        for cosponsor_element in action_element.iter("cosponsor"):
            printed_preface.cosponsors.append(
                Cosponsor(
                    **_parse_member_fields(cosponsor_element),
                    sponsored_at=action_date,
                    original=is_introduction,
                )
            )
        _add_committees(printed_preface.committees, action_element, action_text, action_date)
    return printed_preface


def find_short_titles(bill_element: Element) -> list[str]:
    """Return the short titles in the text of a bill, those of the whole bill first."""
    ranks_and_titles = [
        (title_element.get("role") not in (None, "act", "resolution"), short_title)
        for title_element in bill_element.iter("shortTitle")
        if (short_title := find_text(title_element))
    ]
    return list(
        dict.fromkeys(
            short_title
            for _, short_title in sorted(
                ranks_and_titles, key=lambda rank_and_title: rank_and_title[0]
            )
        )
    )


def find_printed_reports(bill_element: Element) -> dict[str, str]:
    """Return the reports that a text names, as they are cited, each with the words that do so.

    Several parts of one report may stand under one heading: `[Report No. 116-324, Parts I and II]`.
    """
    words_by_citation: dict[str, str] = {}
    parent_by_element = {
        child_element: parent_element
        for preface_element in bill_element.iterfind("preface")
        for parent_element in preface_element.iter()
        for child_element in parent_element
    }
    for report_element, parent_element in parent_by_element.items():
        href_match = _REPORT_HREF_PATTERN.fullmatch(report_element.get("href") or "")
        if report_element.tag != "relatedDocument" or href_match is None:
            continue
        type_letter, congress, report_number, part_number = href_match.groups()
        report_citation = f"{type_letter.upper()}. Rept. {congress}-{report_number}" + (
            f", Part {part_number}" if part_number else ""
        )
        stating_element = (
            parent_element if parent_element.tag == "relatedDocuments" else report_element
        )
        words_by_citation.setdefault(report_citation, f"preface: {find_text(stating_element)}")
    return words_by_citation


def _parse_member_fields(sponsor_element: Element) -> dict[str, Any]:
    """`Mr. Lawson of Florida`, with the id that the House or the Senate gave the member."""
    printed_name = _HONORIFIC_PATTERN.sub("", find_text(sponsor_element) or "")
    state_match = _OF_STATE_PATTERN.search(printed_name)
    state_code = (
        load_vocabulary().code_by_state_words.get(tuple(state_match[1].lower().split()))
        if state_match
        else None
    )
    return {
        "bioguide_id": sponsor_element.get("bioGuideId"),
        "lis_id": sponsor_element.get("senateId"),
        "name": _OF_STATE_PATTERN.sub("", printed_name) if state_code else printed_name,
        "state": state_code,
    }


def _add_committees(
    bill_committees: list[BillCommittee],
    action_element: Element,
    action_text: str,
    action_date: str | None,
) -> None:
    if _REPORTED_ORIGINAL_PATTERN.search(action_text) or (
        _REPORTED_PATTERN.search(action_text) and not _INTRODUCED_PATTERN.search(action_text)
    ):
        activity_name = "Reported by"
    elif _REFERRED_PATTERN.search(action_text):
        activity_name = "Referred to"
    else:
        return
    for committee_id, committee_name in _find_committee_ids_and_names(action_element):
        dated_activity = CommitteeActivity(name=activity_name, date=action_date)
        existing_committee = next(
            (
                bill_committee
                for bill_committee in bill_committees
                if bill_committee.id == committee_id
            ),
            None,
        )
        if existing_committee:
            existing_committee.activities.append(activity_name)
            existing_committee.dated_activities.append(dated_activity)
        else:
            chamber_name = parse_chamber(committee_id)
            bill_committees.append(
                BillCommittee(
                    id=committee_id, name=committee_name, chamber=chamber_name,
                    activities=[activity_name], dated_activities=[dated_activity],
                )
            )  # fmt: skip


def _find_committee_ids_and_names(action_element: Element) -> Iterator[tuple[str, str]]:
    for committee_element in action_element.iter("committee"):
        committee_code, committee_name = (
            committee_element.get("committeeId") or "",
            find_text(committee_element) or "",
        )
        if house_code_match := _HOUSE_COMMITTEE_CODE_PATTERN.fullmatch(committee_code):
            parent_code = _SELECT_COMMITTEE_BY_CODE.get(
                house_code_match[1], f"HS{house_code_match[1]}"
            )
            yield (
                make_committee_id(f"{parent_code}{house_code_match[2]}"),
                _spell_committee_name(committee_name),
            )
        elif committee_code.startswith(("S", "J")) and len(committee_code) == 6:
            yield make_committee_id(committee_code), _spell_committee_name(committee_name)


def _spell_committee_name(committee_name: str) -> str:
    """`the Judiciary`, after `the Committees on`, is the Committee on the Judiciary."""
    return committee_name if "ommittee" in committee_name else f"Committee on {committee_name}"
