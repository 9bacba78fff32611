"""How far a bill came, and what became of it, as the actions in its file tell."""

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

from readingroom.bases.federal.schema.congress import get_first_day_of_congress
from readingroom.bases.federal.schema.records import BillAction, BillOutcome, BillStage

# What the Library of Congress calls these steps. The words stand in files that have no codes.
_REPORTED_ACTION_CODES = frozenset(("5000", "14000", "H12100", "H12200"))
_REPORTED_TEXT_PATTERN = re.compile(
    r"(?:Committee on [^.]+\. )?Reported (?:by|to|\(Amended\)|adversely|from)", re.I
)
_CHAMBER_BY_PASSED_ACTION_CODE = {"8000": "house", "17000": "senate"}
_PASSED_TEXT_PATTERN = re.compile(
    r"Passed/agreed to in (House|Senate)|Passed (House|Senate)\b"
    r"|(?:Resolution|Concurrent resolution|Measure) agreed to in (House|Senate)",
    re.I,
)
_HOUSE_RESULT_CODES = frozenset(("H37100", "H37300"))
_HOUSE_PASSED_TEXT_PATTERN = re.compile(r"\b(?:Passed|Agreed to)\b")
_VETOED_TEXT_PATTERN = re.compile(r"(?:Pocket )?Vetoed by (?:the )?President", re.I)
_BECAME_LAW_TEXT_PATTERN = re.compile(r"Became (?:Public|Private) Law", re.I)

_STAGE_BY_VERSION_CODE: dict[str, BillStage] = {
    **dict.fromkeys(("rh", "rs"), "reported"),
    **dict.fromkeys(
        ("eh", "es", "cph", "cps", "rfh", "rfs", "rdh", "rds", "ath", "ats"), "passed_one"
    ),
    **dict.fromkeys(("eah", "eas", "enr", "pp"), "passed_both"),
}
"""How far a bill had come, at least, when a version of its text was printed."""


_STEPS_BY_STAGE: dict[BillStage, tuple[str, ...]] = {
    "introduced": ("introduced",),
    "reported": ("reported",),
    "passed_one": ("house", "senate"),
    "passed_both": ("house", "senate"),
    "vetoed": ("vetoed",),
    "law": ("law",),
}


@dataclass(frozen=True, slots=True)
class BillProgress:
    """The last stage a bill reached, the day it did, and what became of it."""

    stage: BillStage
    reached_at: str | None
    outcome: BillOutcome


def determine_progress(
    congress: int,
    bill_type: str,
    bill_actions: Iterable[BillAction],
    *,
    introduced_at: str | None,
    has_law: bool,
    as_of: str | None,
) -> BillProgress:
    """Return how far a bill came by its actions, as of the day of its file."""
    first_day_by_step = _find_first_day_by_step(bill_actions) | {"introduced": introduced_at or ""}
    bill_stage = _determine_stage(first_day_by_step.keys(), has_law)
    days_of_stage_steps = (
        first_day_by_step.get(stage_step) for stage_step in _STEPS_BY_STAGE[bill_stage]
    )
    reached_at = max(filter(None, days_of_stage_steps), default=None)
    return BillProgress(
        bill_stage,
        reached_at,
        _determine_outcome(congress, bill_type, bill_stage, first_day_by_step.keys(), as_of),
    )


def get_stage_of_version(version_code: str) -> BillStage:
    """Return how far a bill had come, at least, when this version of its text was printed."""
    return _STAGE_BY_VERSION_CODE.get(version_code.rstrip("0123456789"), "introduced")


def _find_first_day_by_step(bill_actions: Iterable[BillAction]) -> dict[str, str]:
    """Return the first day of each step that the actions name."""
    first_day_by_step: dict[str, str] = {}
    for bill_action in bill_actions:
        for stage_step in _find_steps_in_action(bill_action):
            first_day_by_step[stage_step] = min(
                filter(None, (first_day_by_step.get(stage_step), bill_action.date)), default=""
            )
    return first_day_by_step


def _find_steps_in_action(bill_action: BillAction) -> Iterable[str]:
    action_code, action_text = bill_action.code or "", bill_action.text
    if action_code in _REPORTED_ACTION_CODES or _REPORTED_TEXT_PATTERN.match(action_text):
        yield "reported"
    if passed_match := _PASSED_TEXT_PATTERN.match(action_text):
        yield (passed_match[1] or passed_match[2] or passed_match[3]).lower()
    elif action_code in _CHAMBER_BY_PASSED_ACTION_CODE:
        yield _CHAMBER_BY_PASSED_ACTION_CODE[action_code]
    elif action_code in _HOUSE_RESULT_CODES and _HOUSE_PASSED_TEXT_PATTERN.search(action_text):
        yield "house"
    if action_code == "31000" or _VETOED_TEXT_PATTERN.match(action_text):
        yield "vetoed"
    if action_code in ("36000", "E40000") or _BECAME_LAW_TEXT_PATTERN.match(action_text):
        yield "law"


def _determine_stage(reached_steps: Set[str], has_law: bool) -> BillStage:
    if has_law or "law" in reached_steps:
        return "law"
    if "vetoed" in reached_steps:
        return "vetoed"
    passed_chambers = reached_steps & {"house", "senate"}
    if passed_chambers:
        return "passed_both" if len(passed_chambers) == 2 else "passed_one"
    return "reported" if "reported" in reached_steps else "introduced"


def _determine_outcome(
    congress: int,
    bill_type: str,
    bill_stage: BillStage,
    reached_steps: Set[str],
    as_of: str | None,
) -> BillOutcome:
    if bill_stage in ("law", "vetoed"):
        return bill_stage
    # A resolution of one chamber needs that chamber alone, a concurrent one both; none is signed.
    needed_chambers = {"hres": {"house"}, "sres": {"senate"}}.get(bill_type)
    if bill_type in ("hconres", "sconres"):
        needed_chambers = {"house", "senate"}
    if needed_chambers and needed_chambers <= reached_steps:
        return "adopted"
    # What is not done when a Congress ends is done no more; an older file cannot know.
    next_congress_start_day = get_first_day_of_congress(congress + 1).isoformat()
    return "died" if as_of and as_of >= next_congress_start_day else "pending"
