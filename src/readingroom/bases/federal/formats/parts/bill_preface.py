"""Parses what stands above the text of a bill: who introduced it when, and where it was sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.people import parse_chamber
from readingroom.bases.federal.formats.parts.xml import get_text
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.ids import make_committee_id
from readingroom.bases.federal.schema.records import (
    BillCommittee,
    CommitteeActivity,
    Cosponsor,
    Person,
)

# A member also reports a bill, for a committee: that is not to introduce it.
_INTRODUCED = re.compile(r"\b(?:introduced|submitted|reported) the following\b")
_REPORTED = re.compile(r"^Reported\b|\breported\b")
_REFERRED = re.compile(r"\breferred to\b")
_HONORIFIC = re.compile(r"^(?:Mr|Ms|Mrs|Miss|Dr)\.?\s+")
_OF_STATE = re.compile(r"\s+of\s+((?:[A-Z]\w+\s?)+)$")
_HOUSE_COMMITTEE = re.compile(r"H([A-Z]{2})(\d\d)")
# The House's own codes have two letters; all but this one become an id in the same way.
_SELECT_COMMITTEES = {"IG": "HLIG"}


@dataclass
class PrintedPreface:
    """What the first page of a bill says of it."""

    sponsors: list[Person] = field(default_factory=list)
    cosponsors: list[Cosponsor] = field(default_factory=list)
    committees: list[BillCommittee] = field(default_factory=list)
    introduced_at: str | None = None


def parse_preface(actions: list[tuple[str | None, Element]]) -> PrintedPreface:
    """Return what the actions on the first page say, each given with its date."""
    preface = PrintedPreface()
    for date, action in actions:
        text = get_text(action) or ""
        sponsor = action.find(".//sponsor")
        introduces = _INTRODUCED.search(text) is not None
        if introduces and sponsor is not None and not preface.sponsors:
            preface.sponsors.append(Person(**_parse_member(sponsor)))
            preface.introduced_at = date
        for cosponsor in action.iter("cosponsor"):
            preface.cosponsors.append(
                Cosponsor(**_parse_member(cosponsor), sponsored_at=date, original=introduces)
            )
        _add_committees(preface.committees, action, text, date)
    return preface


def find_short_titles(root: Element) -> list[str]:
    """Return the short titles in the text of a bill, those of the whole bill first."""
    titles = [
        (item.get("role") not in (None, "act", "resolution"), title)
        for item in root.iter("shortTitle")
        if (title := get_text(item))
    ]
    return list(dict.fromkeys(title for _, title in sorted(titles, key=lambda pair: pair[0])))


def _parse_member(element: Element) -> dict[str, Any]:
    """`Mr. Lawson of Florida`, with the id that the House or the Senate gave the member."""
    printed = _HONORIFIC.sub("", get_text(element) or "")
    state = _OF_STATE.search(printed)
    code = load_vocabulary().states.get(tuple(state[1].lower().split())) if state else None
    return {
        "bioguide_id": element.get("bioGuideId"),
        "lis_id": element.get("senateId"),
        "name": _OF_STATE.sub("", printed) if code else printed,
        "state": code,
    }


def _add_committees(
    committees: list[BillCommittee], action: Element, text: str, date: str | None
) -> None:
    if _REPORTED.search(text) and not _INTRODUCED.search(text):
        activity = "Reported by"
    elif _REFERRED.search(text):
        activity = "Referred to"
    else:
        return
    for id, name in _find_committees(action):
        dated = CommitteeActivity(name=activity, date=date)
        known = next((committee for committee in committees if committee.id == id), None)
        if known:
            known.activities.append(activity)
            known.dated_activities.append(dated)
        else:
            chamber = parse_chamber(id)
            committees.append(
                BillCommittee(
                    id=id, name=name, chamber=chamber,
                    activities=[activity], dated_activities=[dated],
                )
            )  # fmt: skip


def _find_committees(action: Element) -> Iterator[tuple[str, str]]:
    for element in action.iter("committee"):
        code, name = element.get("committeeId") or "", get_text(element) or ""
        if house := _HOUSE_COMMITTEE.fullmatch(code):
            base = _SELECT_COMMITTEES.get(house[1], f"HS{house[1]}")
            yield make_committee_id(f"{base}{house[2]}"), _spell_committee(name)
        elif code.startswith(("S", "J")) and len(code) == 6:
            yield make_committee_id(code), _spell_committee(name)


def _spell_committee(name: str) -> str:
    """`the Judiciary`, after `the Committees on`, is the Committee on the Judiciary."""
    return name if "ommittee" in name else f"Committee on {name}"
