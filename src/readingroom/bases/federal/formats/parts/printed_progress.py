"""How far a bill came, as one of its texts prints it above, below and behind what it says."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import get_args
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.bill_stage import get_stage_of_version
from readingroom.bases.federal.formats.parts.people import parse_chamber
from readingroom.bases.federal.formats.parts.xml import find_text
from readingroom.bases.federal.schema.records import BillStage

_BILL_STAGES: tuple[BillStage, ...] = get_args(BillStage)
_PASSED_CHAMBER_PATTERN = re.compile(r"\b(?:Passed|Agreed to)(?: by)? the (House|Senate)\b", re.I)
_PASSED_HERE_PATTERN = re.compile(r"\bconsidered\b.*\b(?:passed|agreed to)\b", re.I | re.S)
_AGREED_BY_BOTH_PATTERN = re.compile(r"Agreed to\b", re.I)
_REPORTED_PATTERN = re.compile(
    r"\breported (?:the following|by|from|to|with|without|adversely|favorably)\b"
    r"|^(?!.*\bdischarged\b)(?:.*\breferred to the House Calendar"
    r"|.*\bcommitted to the Committee of the Whole House)\b",
    re.I | re.S,
)
_VITIATED_PATTERN = re.compile(r"\breporting vitiated\b", re.I)
_CHAMBER_BY_LAST_LETTER = {"h": "house", "s": "senate"}
_PASSED_HERE_VERSIONS = frozenset(("ath", "ats", "cph", "cps", "eh", "es"))
"""Versions that a chamber prints when it has passed a bill; `h` and `s` name the chamber."""
_ENGROSSED_AMENDMENT_VERSIONS = frozenset(("eah", "eas"))


@dataclass(frozen=True, slots=True)
class PrintedAction:
    """What a text prints of a step: its day, and its words without the day."""

    date: str | None
    text: str

    @classmethod
    def parse(cls, action_date: str | None, action_element: Element) -> "PrintedAction":
        return cls(action_date, find_text(action_element.find("actionDescription")) or "")


def determine_printed_progress(
    bill_type: str,
    version_code: str,
    printed_actions: Iterable[PrintedAction],
    introduced_at: str | None,
) -> tuple[BillStage, str | None]:
    """Return how far a bill had come, at least, and the day it did, where the text names one.

    The day on which a text was printed or received is not that day.
    """
    origin_chamber = parse_chamber(bill_type) or ""
    plain_version_code = version_code.rstrip("0123456789")
    first_day_by_step: dict[str, str] = {}
    reached_steps: set[str] = set()
    for printed_action in printed_actions:
        if _VITIATED_PATTERN.search(printed_action.text):
            reached_steps.discard("reported")
        for reached_step in _find_steps(printed_action, plain_version_code, origin_chamber):
            reached_steps.add(reached_step)
            first_day_by_step[reached_step] = min(
                filter(None, (first_day_by_step.get(reached_step), printed_action.date)),
                default="",
            )
    stage_of_actions: BillStage = "introduced"
    if "other" in reached_steps:
        stage_of_actions = "passed_both"
    elif "origin" in reached_steps:
        stage_of_actions = "passed_one"
    elif "reported" in reached_steps:
        stage_of_actions = "reported"
    bill_stage = max(
        stage_of_actions,
        _get_stage_of_printed_version(plain_version_code, origin_chamber),
        key=_BILL_STAGES.index,
    )
    deciding_step = {"reported": "reported", "passed_one": "origin", "passed_both": "other"}
    if bill_stage == "introduced":
        return bill_stage, introduced_at
    return bill_stage, first_day_by_step.get(deciding_step[bill_stage]) or None


def _find_steps(
    printed_action: PrintedAction, version_code: str, origin_chamber: str
) -> Iterator[str]:
    """Yield `reported`, and `origin` and `other` for the chamber that passed the bill."""
    printing_chamber = _find_printing_chamber(version_code) or origin_chamber
    if chamber_match := _PASSED_CHAMBER_PATTERN.search(printed_action.text):
        yield "origin" if chamber_match[1].lower() == origin_chamber else "other"
    elif _PASSED_HERE_PATTERN.search(printed_action.text):
        yield "origin" if printing_chamber == origin_chamber else "other"
    elif version_code == "enr" and _AGREED_BY_BOTH_PATTERN.match(printed_action.text):
        yield "other"
    elif not printed_action.text and version_code in _PASSED_HERE_VERSIONS:
        # `In the House of Representatives, U. S., February 10, 2015.`: when it was agreed to.
        yield "origin" if printing_chamber == origin_chamber else "other"
    elif not printed_action.text and version_code in _ENGROSSED_AMENDMENT_VERSIONS:
        yield "other"
    if _REPORTED_PATTERN.search(printed_action.text):
        yield "reported"


def _get_stage_of_printed_version(version_code: str, origin_chamber: str) -> BillStage:
    """Return what the version tells: what the other chamber printed had passed the first."""
    bill_stage = get_stage_of_version(version_code)
    printing_chamber = _find_printing_chamber(version_code)
    if printing_chamber is None or printing_chamber == origin_chamber:
        return bill_stage
    least_stage: BillStage = (
        "passed_both" if version_code in _PASSED_HERE_VERSIONS else "passed_one"
    )
    return max(bill_stage, least_stage, key=_BILL_STAGES.index)


def _find_printing_chamber(version_code: str) -> str | None:
    return _CHAMBER_BY_LAST_LETTER.get(version_code[-1:])
