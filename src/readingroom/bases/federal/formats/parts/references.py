"""What a USLM document refers to: laws, the Code, regulations, the Register, as its links say."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from readingroom.bases.federal.schema.ids import make_cfr_id, make_law_id
from readingroom.core.text import fold_dashes

_LAW_HREF_PATTERN = re.compile(r"/us/pl/(\d+)/(\d+)(?:/.*)?")
_USC_HREF_PATTERN = re.compile(r"/us/usc/t(\w+)/s([^/]+)(?:/.*)?")
_CFR_HREF_PATTERN = re.compile(r"/us/cfr/t(\d+)/s([^/]+)(?:/.*)?")
_FR_HREF_PATTERN = re.compile(r"/us/fr/(\d+)/(\d+)")
_WHOLE_SECTION_HREF_PATTERN = re.compile(r"/us/cfr/t\d+/s[^/]+")
_CUT_OFF_NUMBER_END_PATTERN = re.compile(
    r"-\d+[a-z]?(?![\w]|\.\d)"
)  # not -479.39, the end of a range
_QUOTED_CHARS_AFTER = 60

WordsByReference = dict[str, str]
"""Ids or citations, each with the words that first name it."""


@dataclass(frozen=True, slots=True)
class References:
    """What elements refer to, in the order they first do."""

    words_by_law_id: WordsByReference = field(default_factory=dict)
    """By id."""
    words_by_usc_section: WordsByReference = field(default_factory=dict)
    """Sections of the United States Code: `22 U.S.C. 2778`."""
    words_by_cfr_section_id: WordsByReference = field(default_factory=dict)
    """Sections of the Code of Federal Regulations, by id."""
    words_by_register_page: WordsByReference = field(default_factory=dict)
    """Pages of the Federal Register: `78 FR 23676`."""


def collect_references(containing_elements: Iterable[Element]) -> References:
    """Return everything that the links in these elements refer to."""
    found_references = References()
    for containing_element in containing_elements:
        for ref_element in containing_element.iter("ref"):
            _add_reference(found_references, ref_element)
    return found_references


_REFERENCE_RULES_BY_HREF_PREFIX: dict[
    str, tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]]
] = {
    "pl": (
        "words_by_law_id",
        _LAW_HREF_PATTERN,
        lambda href_match: make_law_id(f"{href_match[1]}-{href_match[2]}"),
    ),
    "usc": (
        "words_by_usc_section",
        _USC_HREF_PATTERN,
        lambda href_match: f"{href_match[1]} U.S.C. {href_match[2]}",
    ),
    "cfr": (
        "words_by_cfr_section_id",
        _CFR_HREF_PATTERN,
        lambda href_match: make_cfr_id(href_match[1], href_match[2]),
    ),
    "fr": (
        "words_by_register_page",
        _FR_HREF_PATTERN,
        lambda href_match: f"{href_match[1]} FR {href_match[2]}",
    ),
}


def _add_reference(found_references: References, ref_element: Element) -> None:
    ref_href = fold_dashes(ref_element.get("href") or "")
    # The kind stands after `/us/`, so one pattern is tried on each link and not four.
    reference_rules = _REFERENCE_RULES_BY_HREF_PREFIX.get(ref_href[4:].partition("/")[0])
    if reference_rules is None:
        return
    field_name, href_pattern, build_reference = reference_rules
    following_text = fold_dashes(ref_element.tail or "")
    # The official markup ends the number of a section at its dash: 17 CFR 240.19b|-4.
    if (
        field_name == "words_by_cfr_section_id"
        and _WHOLE_SECTION_HREF_PATTERN.fullmatch(ref_href)
        and (number_end_match := _CUT_OFF_NUMBER_END_PATTERN.match(following_text))
    ):
        ref_href += number_end_match[0]
    if href_match := href_pattern.fullmatch(ref_href):
        words_by_reference: WordsByReference = getattr(found_references, field_name)
        reference_id = build_reference(href_match)
        if reference_id not in words_by_reference:
            words_by_reference[reference_id] = " ".join(
                ("".join(ref_element.itertext()) + following_text[:_QUOTED_CHARS_AFTER]).split()
            )
