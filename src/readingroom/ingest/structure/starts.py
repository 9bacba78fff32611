"""A line that starts a section, as every finder of sections yields it."""

from dataclasses import dataclass
from typing import Literal

SUPPORTING_REF_PREFIX = "Supporting text to "
"""Begins the reference of text without numbers that explains a policy."""

SectionKind = Literal[
    "part",
    "chapter",
    "annex",
    "section",
    "policy",
    "supporting",
    "para",
    "heading",
    "exhibit",
]

LEVELS_BY_SECTION_KIND: dict[SectionKind, int] = {
    "part": 0,
    "chapter": 1,
    "annex": 1,
    "section": 2,
    "heading": 7,
    "policy": 8,
    "supporting": 8,
    "para": 8,
    "exhibit": 9,
}


@dataclass(frozen=True, slots=True)
class SectionStart:
    """A line that starts a section."""

    line_index: int
    kind: SectionKind
    ref: str
    title: str
    level: int


def make_section_start(
    line_index: int, section_kind: SectionKind, section_ref: str, section_title: str | None
) -> SectionStart:
    """Return a start at the usual level of its kind."""
    return SectionStart(
        line_index,
        section_kind,
        section_ref,
        section_title or "",
        LEVELS_BY_SECTION_KIND[section_kind],
    )
