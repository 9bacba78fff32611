"""What a Statement of Administration Policy says of its bill: for, against, or a threat of a veto.

Made to be right rather than complete: where the words are mixed, or speak of a part of the bill
only, the position is unknown.
"""

import re
from dataclasses import dataclass

from readingroom.bases.federal.schema.records import PolicyPosition

_MAX_EVIDENCE_CHARS = 300

_NAME_WORD_REGEX = r"(?:[A-Z][\w'’–-]*|[a-z]{2,4}|&|\([A-Z]+\)|“|”),?\s+"
# A bill by its number, by its name, or as `this bill`; not a provision of it.
_BILL_REGEX = (
    r"(?:(?:the\s+)?(?:House|Senate|final|swift|prompt|immediate|timely|Congressional|substitute)\s+)*"
    r"(?:(?:the\s+)?(?:passage|enactment|adoption)\s+of\b"
    r"|(?:H|S)\.\s?(?:R\.|J\.|Con\.|Res\.|\d)|HR\s?\d"
    r"|(?:this|the|these)\s+(?:important\s+)?(?:bipartisan\s+)?"
    r"(?:bills?|legislation|joint resolutions?|resolutions?)\b(?![’'])"
    rf"|(?:the\s+)?(?:{_NAME_WORD_REGEX}){{1,14}}?(?:Act|Resolution)\b(?!\s+of\s+the\s+bill))"
)
_SUPPORTS_PATTERN = re.compile(
    rf"\bAdministration(?:\s+therefore|\s+also)?,?\s+(?:strongly\s+|fully\s+)?supports\s+{_BILL_REGEX}"
)
_URGES_PATTERN = re.compile(
    r"\bAdministration\s+(?:strongly\s+)?(?:urges|encourages)\s+(?:the\s+)?"
    r"(?:House|Senate|Congress)\s+to\s+(?:swiftly\s+|quickly\s+)?pass\s+(?:this|the)\s+"
    r"(?:bill|legislation)"
)
_OPPOSES_PATTERN = re.compile(
    r"\bAdministration,?(?:\s+(?:therefore|however|also),?)?\s+(?:strongly\s+)?opposes\s+"
    + _BILL_REGEX
    + r"|\bbut\s+strongly\s+opposes\s+" + _BILL_REGEX
)  # fmt: skip
_RECOMMENDS_SIGNING_PATTERN = re.compile(
    r"\brecommend(?:\s+that)?\s+(?:he|the\s+President)\s+sign\b"
    r"|\b(?:he|the\s+President)\s+would\s+sign\s+(?:it|the\s+bill|this\s+bill)\b"
)
_VETO_PATTERN = re.compile(
    r"\b(?:he|the\s+President)\s+(?:would|will)\s+veto\b"
    r"|\brecommend(?:\s+that)?\s+(?:he|the\s+President)\s+veto\b"
    r"|\brecommend\s+a\s+veto\b"
)
# A veto of what the bill might yet become says little about the bill.
_CHANGE_TO_BILL_PATTERN = re.compile(r"\b(?:amendment|amended|provisions?|included?s?)\b", re.I)
_SENTENCE_START_PATTERN = re.compile(r"(?:^|[.!?*]\s+)(?=(?:If|Should|Were|For|Therefore|The)\b)")


@dataclass(frozen=True, slots=True)
class StatedPosition:
    """The position of a statement, and the words that say so."""

    position: PolicyPosition
    evidence_text: str | None = None


def determine_position(statement_text: str) -> StatedPosition:
    """Return the position that the words of a statement take, `unknown` where they take none."""
    collapsed_text = " ".join(statement_text.split())
    support_match = (
        _SUPPORTS_PATTERN.search(collapsed_text)
        or _URGES_PATTERN.search(collapsed_text)
        or _RECOMMENDS_SIGNING_PATTERN.search(collapsed_text)
    )
    oppose_match = _OPPOSES_PATTERN.search(collapsed_text)
    veto_match = _VETO_PATTERN.search(collapsed_text)
    if veto_match and _is_veto_conditional(collapsed_text, veto_match) and not oppose_match:
        return StatedPosition("unknown")
    if veto_match and not support_match:
        return StatedPosition("veto_threat", _quote_position(collapsed_text, veto_match))
    if support_match and not oppose_match and not veto_match:
        return StatedPosition("supports", _quote_position(collapsed_text, support_match))
    if oppose_match and not support_match:
        return StatedPosition("opposes", _quote_position(collapsed_text, oppose_match))
    return StatedPosition("unknown")


def _is_veto_conditional(statement_text: str, veto_match: re.Match[str]) -> bool:
    """Whether a veto is announced for what the bill might be changed to."""
    return bool(
        _CHANGE_TO_BILL_PATTERN.search(
            statement_text[
                _get_sentence_start_offset(statement_text, veto_match) : veto_match.start()
            ]
        )
    )


def _quote_position(statement_text: str, position_match: re.Match[str]) -> str:
    """Return the words that say so, from the beginning of their sentence."""
    start_offset = _get_sentence_start_offset(statement_text, position_match)
    quoted_text = statement_text[start_offset : start_offset + _MAX_EVIDENCE_CHARS]
    if position_match.end() > start_offset + _MAX_EVIDENCE_CHARS:
        quoted_text = statement_text[
            position_match.start() : position_match.start() + _MAX_EVIDENCE_CHARS
        ]
    return quoted_text.partition("*")[0].partition("EXECUTIVE OFFICE")[0].strip()


def _get_sentence_start_offset(statement_text: str, position_match: re.Match[str]) -> int:
    preceding_text = statement_text[: position_match.start() + 1]
    sentence_start_offsets = [
        start_match.end() for start_match in _SENTENCE_START_PATTERN.finditer(preceding_text)
    ]
    return sentence_start_offsets[-1] if sentence_start_offsets else position_match.start()
