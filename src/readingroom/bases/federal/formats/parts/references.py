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

    laws: WordsByReference = field(default_factory=dict)
    """By id."""
    usc_sections: WordsByReference = field(default_factory=dict)
    """Sections of the United States Code: `22 U.S.C. 2778`."""
    cfr_sections: WordsByReference = field(default_factory=dict)
    """Sections of the Code of Federal Regulations, by id."""
    register_pages: WordsByReference = field(default_factory=dict)
    """Pages of the Federal Register: `78 FR 23676`."""


def collect_references(ref_elements: Iterable[Element]) -> References:
    """Return everything that the links in these elements refer to."""
    found_references = References()
    for element in ref_elements:
        for ref_element in element.iter("ref"):
            _add_reference(found_references, ref_element)
    return found_references


_REFERENCE_KIND_BY_HREF_PREFIX: dict[
    str, tuple[str, re.Pattern[str], Callable[[re.Match[str]], str]]
] = {
    "pl": ("laws", _LAW_HREF_PATTERN, lambda match: make_law_id(f"{match[1]}-{match[2]}")),
    "usc": ("usc_sections", _USC_HREF_PATTERN, lambda match: f"{match[1]} U.S.C. {match[2]}"),
    "cfr": ("cfr_sections", _CFR_HREF_PATTERN, lambda match: make_cfr_id(match[1], match[2])),
    "fr": ("register_pages", _FR_HREF_PATTERN, lambda match: f"{match[1]} FR {match[2]}"),
}


def _add_reference(found_references: References, ref_element: Element) -> None:
    ref_href = fold_dashes(ref_element.get("href") or "")
    # The kind stands after `/us/`, so one pattern is tried on each link and not four.
    reference_kind = _REFERENCE_KIND_BY_HREF_PREFIX.get(ref_href[4:].partition("/")[0])
    if reference_kind is None:
        return
    field_name, href_pattern, build_id = reference_kind
    following_text = fold_dashes(ref_element.tail or "")
    # The official markup ends the number of a section at its dash: 17 CFR 240.19b|-4.
    if (
        field_name == "cfr_sections"
        and _WHOLE_SECTION_HREF_PATTERN.fullmatch(ref_href)
        and (cut_match := _CUT_OFF_NUMBER_END_PATTERN.match(following_text))
    ):
        ref_href += cut_match[0]
    if href_match := href_pattern.fullmatch(ref_href):
        words_by_id: WordsByReference = getattr(found_references, field_name)
        referred_id = build_id(href_match)
        if referred_id not in words_by_id:
            words_by_id[referred_id] = " ".join(
                ("".join(ref_element.itertext()) + following_text[:_QUOTED_CHARS_AFTER]).split()
            )
