"""Kinds of official records that no source here has, and where something about them is found."""

import re
from dataclasses import dataclass

from readingroom.core.errors import RecordNotFound


@dataclass(frozen=True, slots=True)
class UncoveredKind:
    """A kind of records that cannot be loaded: how it is asked for, and what there is instead."""

    label: str
    source_names: tuple[str, ...]
    """What somebody may write for a source of them, folded."""
    citation_pattern: re.Pattern[str]
    """Citations and official addresses of such a record."""
    mention_pattern: re.Pattern[str]
    """Words of a question that asks about them."""
    alternatives_text: str

    @property
    def notice(self) -> str:
        """What to tell whoever asks for them."""
        return f"{self.label} are not covered: no source here has them. {self.alternatives_text}"


def find_uncovered_kind(source_name: str) -> UncoveredKind | None:
    """Return the kind that somebody takes for a source, or None."""
    folded_name = source_name.strip().lower().replace("-", "_").replace(" ", "_")
    return next(
        (
            uncovered_kind
            for uncovered_kind in _UNCOVERED_KINDS
            if folded_name in uncovered_kind.source_names
        ),
        None,
    )


def refuse_uncovered_citation(citation: str) -> None:
    """Raise RecordNotFound for the citation or the official address of an uncovered record."""
    for uncovered_kind in _UNCOVERED_KINDS:
        if uncovered_kind.citation_pattern.match(citation.strip()):
            raise RecordNotFound(
                f"{citation.strip()[:100]!r} cannot be fetched. {uncovered_kind.notice}",
                source=uncovered_kind.source_names[0],
            )


def describe_uncovered_kinds(question_text: str) -> str | None:
    """Return what to tell beside an answer to a question about uncovered records, or None."""
    notice_texts = [
        uncovered_kind.notice
        for uncovered_kind in _UNCOVERED_KINDS
        if uncovered_kind.mention_pattern.search(question_text)
        or uncovered_kind.citation_pattern.match(question_text)
    ]
    return " ".join(notice_texts) or None


def _make_uncovered_kind(
    kind_label: str,
    source_names: tuple[str, ...],
    citation_pattern: str,
    mention_pattern: str,
    alternatives_text: str,
) -> UncoveredKind:
    return UncoveredKind(
        kind_label,
        source_names,
        re.compile(citation_pattern, re.ASCII | re.I),
        re.compile(rf"\b(?:{mention_pattern})\b", re.I),
        alternatives_text,
    )


_CONGRESS_GOV_URL_REGEX = r"(?:https?://)?(?:www\.)?(?:api\.)?congress\.gov/(?:v3/)?"
_GOVINFO_URL_REGEX = (
    r"(?:(?:https?://)?(?:www\.)?govinfo\.gov/(?:app/details|content/pkg|metadata/pkg)/)?"
)

_UNCOVERED_KINDS = (
    _make_uncovered_kind(
        "Nominations",
        ("nominations", "nomination", "presidential_nominations", "nominees", "pn"),
        rf"PN[\s:-]*\d|{_CONGRESS_GOV_URL_REGEX}nomination/",
        r"nominations?|nominees?|PN\s?\d+",
        "How the Senate voted on them is in roll_call_votes, what was said in "
        "congressional_record and hearings: search these by the nominee's name.",
    ),
    _make_uncovered_kind(
        "Treaties",
        ("treaties", "treaty", "treaty_documents", "treaty_document", "treaty_docs", "tdoc"),
        r"(?:Senate\s+)?Treaty\s+(?:Doc|No|Num)|T\.?\s?Doc\.?\s?(?:No\.?\s?)?\d|TDOC[\s:-]*\d"
        rf"|{_CONGRESS_GOV_URL_REGEX}treaty(?:-document)?/|{_GOVINFO_URL_REGEX}CDOC-\d+tdoc\d",
        r"treat(?:y|ies)|T\.?\s?Doc\.?\s?\d+",
        "Executive reports on them are in committee_reports, the Senate's votes in "
        "roll_call_votes, its debates in congressional_record.",
    ),
    _make_uncovered_kind(
        "Communications to Congress",
        (
            *("communications", "communication", "executive_communications"),
            *("house_communications", "senate_communications", "petitions", "memorials"),
        ),
        rf"(?:EC|PM|POM)[\s:-]*\d|{_CONGRESS_GOV_URL_REGEX}(?:house|senate)-(?:requirement|communication)/",
        r"executive\s+communications?|petitions\s+and\s+memorials|(?:EC|POM)[\s-]\d+",
        "The lists that the chambers print of them are in congressional_record.",
    ),
    _make_uncovered_kind(
        "Committee prints",
        ("committee_prints", "committee_print", "prints", "cprt"),
        rf"{_GOVINFO_URL_REGEX}CPRT-\d|{_CONGRESS_GOV_URL_REGEX}committee-print/|(?:H|S|J)\.?\s?Prt\.?\s?\d",
        r"committee\s+prints?|CPRT-\d+\w*",
        "What committees publish otherwise is in committee_reports and hearings.",
    ),
)
