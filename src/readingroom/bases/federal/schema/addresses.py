"""Official addresses, citations of votes and GovInfo packages, rewritten to ids."""

import re
from collections.abc import Callable
from functools import cache

_UrlRewriter = Callable[[re.Match[str]], str]

_URL_START_REGEX, _URL_REMAINDER_REGEX = r"(?:https?://)?(?:www\.)?", r"(?:[/?#.].*)?"
_GOVINFO_URL_REGEX = (
    rf"(?:{_URL_START_REGEX}govinfo\.gov/(?:app/details|content/pkg|metadata/pkg)/)?"
)
_ORDINAL_REGEX = r"(\d{1,3})(?:st|nd|rd|th)"
_BILL_PAGE_REGEX = r"((?:house|senate)-(?:bill|(?:joint-|concurrent-)?resolution))"
_FR_NUMBER_REGEX = r"([A-Z]?\d{1,4}(?:-\d{4})?-\d{1,6})"
_VOTE_WORD_REGEX = r"(?:roll ?call(?: vote)?|vote) (?:No\.? )?"
_UUID_REGEX = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def rewrite_url_to_id(url_or_citation: str) -> str | None:
    """Return the id, or a spelling of it, that an address names; None for any other text."""
    for url_pattern, url_rewriter in _compile_url_rules():
        if url_match := url_pattern.fullmatch(url_or_citation):
            return url_rewriter(url_match)
    return None


@cache
def _compile_url_rules() -> list[tuple[re.Pattern[str], _UrlRewriter]]:
    """Return the rules ready to be used; not before an address is met, of which few are."""
    return [
        (
            re.compile(url_regex + _URL_REMAINDER_REGEX, re.ASCII | re.I),
            _make_template_rewriter(template_or_rewriter)
            if isinstance(template_or_rewriter, str)
            else template_or_rewriter,
        )
        for url_regex, template_or_rewriter in _URL_RULES
    ]


def _make_template_rewriter(id_template: str) -> _UrlRewriter:
    return lambda url_match: url_match.expand(id_template)


def _make_house_vote_id(url_match: re.Match[str]) -> str:
    return _format_vote_id("house", int(url_match[1]), url_match[2])


def _make_vote_id_of_year(citation_match: re.Match[str]) -> str:
    return _format_vote_id(citation_match[1].lower(), int(citation_match[3]), citation_match[2])


def _format_vote_id(chamber_name: str, vote_year: int, roll_number: str) -> str:
    """Votes are counted by year; a session is a year of a Congress."""
    session_number = 1 if vote_year % 2 else 2
    return f"{chamber_name}:{(vote_year - 1787) // 2}:{session_number}:{roll_number}"


def _make_law_id(url_match: re.Match[str]) -> str:
    law_id_prefix = "pl" if url_match[2].lower() == "publ" else "pvtl"
    return f"{law_id_prefix}:{url_match[1]}-{url_match[3]}"


def _make_report_id(url_match: re.Match[str]) -> str:
    part_suffix = f"-pt{url_match[4]}" if url_match[4] not in (None, "1") else ""
    return f"crpt:{url_match[1]}{url_match[2][0]}rpt{url_match[3]}{part_suffix}"


_URL_RULES: tuple[tuple[str, str | _UrlRewriter], ...] = (
    (
        rf"{_URL_START_REGEX}congress\.gov/bill/{_ORDINAL_REGEX}-congress/{_BILL_PAGE_REGEX}/(\d+)",
        r"\2 \3, \1",
    ),
    (
        rf"{_URL_START_REGEX}congress\.gov/amendment/{_ORDINAL_REGEX}-congress/(house|senate)-amendment/(\d+)",
        r"\2 amendment \3, \1",
    ),
    (
        rf"{_URL_START_REGEX}congress\.gov/congressional-report/{_ORDINAL_REGEX}-congress/"
        r"(house|senate|executive)-report/(\d+)(?:/(\d+))?",
        _make_report_id,
    ),
    (rf"{_URL_START_REGEX}congress\.gov/(\d+)/plaws/publ(\d+)", r"pl:\1-\2"),
    (rf"{_URL_START_REGEX}congress\.gov/member/[^/]+/([A-Z]\d{{6}})", r"\1"),
    (rf"{_URL_START_REGEX}congress\.gov/committee/[^/]+/([hsj][a-z]{{3}}\d{{2}})", r"\1"),
    (rf"{_URL_START_REGEX}congress\.gov/crs-product/([A-Z]{{1,3}}\d{{5}})", r"\1"),
    (
        rf"{_URL_START_REGEX}crsreports\.congress\.gov/product/(?:pdf|details)(?:/\w+)?"
        r"[/?](?:prodcode=)?([A-Z]{1,3}\d{5})",
        r"\1",
    ),
    (rf"{_URL_START_REGEX}bioguide\.congress\.gov/search/bio/([A-Z]\d{{6}})", r"\1"),
    # A bill's text or status, with or without its version.
    (
        rf"{_GOVINFO_URL_REGEX}(?:BILLS(?:TATUS|UM)?-)?(\d{{1,3}})"
        r"(hr|s|[hs]jres|[hs]res|[hs]conres)(\d+)(?:[a-z]{2,4}\d?)?",
        r"bill:\1-\2-\3",
    ),
    (rf"{_GOVINFO_URL_REGEX}PLAW-(\d{{1,3}})(publ|pvtl)(\d+)", _make_law_id),
    (rf"{_GOVINFO_URL_REGEX}CREC-[\d-]{{10}}/(?:html/)?(CREC-[\w-]+)", r"crec:\1"),
    (
        rf"{_URL_START_REGEX}govinfo\.gov/link/bills/(\d{{1,3}})/(hr|s|[hs]jres|[hs]res|[hs]conres)/(\d+)",
        r"bill:\1-\2-\3",
    ),
    (rf"{_URL_START_REGEX}govinfo\.gov/link/plaw/(\d{{1,3}})/public/(\d+)", r"pl:\1-\2"),
    (rf"{_GOVINFO_URL_REGEX}COMPS-(\d+)", r"comps:\1"),
    (
        rf"{_GOVINFO_URL_REGEX}CRPT-(\d{{1,3}}[hsej]rpt\d{{1,5}}(?:-(?:pt|bk)\d{{1,3}}|-errata)?)",
        r"crpt:\1",
    ),
    (rf"{_GOVINFO_URL_REGEX}CHRG-(\w+)", lambda url_match: f"hearing:CHRG-{url_match[1].lower()}"),
    (
        rf"{_URL_START_REGEX}govinfo\.gov/link/cfr/(\d+)/(\w+)\?sectionnum=([\w-]+)(?:&.*)?",
        r"cfr:\1:\2.\3",
    ),
    (
        rf"{_URL_START_REGEX}federalregister\.gov/(?:d|a|documents/\d{{4}}/\d\d/\d\d)/{_FR_NUMBER_REGEX}",
        r"\1",
    ),
    (rf"{_URL_START_REGEX}federalregister\.gov/agencies/([a-z0-9-]+)", r"agency:\1"),
    (rf"FR\s?Doc\.?\s?(?:No\.?\s?)?{_FR_NUMBER_REGEX}", r"\1"),
    (rf"{_URL_START_REGEX}senate\.gov/.*vote_(\d+)_([12])_(\d+)", r"senate:\1:\2:\3"),
    (rf"{_URL_START_REGEX}clerk\.house\.gov/Votes/(\d{{4}})(\d+)", _make_house_vote_id),
    (rf"{_URL_START_REGEX}clerk\.house\.gov/evs/(\d{{4}})/roll(\d+)", _make_house_vote_id),
    (
        rf"(House|Senate) {_VOTE_WORD_REGEX}(\d+), {_ORDINAL_REGEX} Congress, "
        r"([123])(?:st|nd|rd) session(?: \([\d-]+\))?",
        r"\1:\3:\4:\2",
    ),
    (
        rf"(House|Senate) {_VOTE_WORD_REGEX}(\d+)(?:(?:,| in| of) (?=\d)| \()(\d{{4}})\)?",
        _make_vote_id_of_year,
    ),
    (
        r"(?:\xa7+|sec(?:tion|\.)?)\s?(\d{1,4}\.[\w-]{1,60})(?:\s?\([a-z\d]{1,4}\))* of title "
        r"([1-9]\d?)(?:,? (?:of the )?(?:C\.?F\.?R\.?|Code of Federal Regulations))?",
        r"cfr:\2:\1",
    ),
    (rf"{_URL_START_REGEX}cbo\.gov/publication/(\d+)", r"cbo:\1"),
    (rf"{_URL_START_REGEX}lda\.(?:senate\.)?gov/filings/public/filing/{_UUID_REGEX}", r"lda:\1"),
    (rf"{_URL_START_REGEX}regulations\.gov/docket/([\w-]+)", r"docket:\1"),
    (rf"{_URL_START_REGEX}docs\.house\.gov/.*EventID=(\d+)", r"hearing:house-\1"),
)
