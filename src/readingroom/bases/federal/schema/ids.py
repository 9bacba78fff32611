"""Ids of federal records: their canonical forms, and other spellings that are accepted.

The canonical forms are those of the contract: `hr:119:1`, `S000033`, `2026-08558`. They are stored,
returned and routed by. People and other systems write ids in other ways too.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from readingroom.bases.federal.schema.addresses import rewrite_url_to_id
from readingroom.core.errors import UnrecognizedId
from readingroom.core.text import fold_dashes

BILL_TYPES = ("hr", "s", "hjres", "sjres", "hres", "sres", "hconres", "sconres")


@dataclass(frozen=True, slots=True)
class FederalId:
    """An id in its canonical form, and the source whose record it names."""

    source: str
    id: str


@dataclass(frozen=True, slots=True)
class _IdForm:
    """A way to write an id: a pattern, and a function that builds the canonical form."""

    source: str
    listed_form: str
    """How the form is listed in the error for an unrecognized id; empty for an alias."""
    pattern: re.Pattern[str]
    build_id: Callable[[re.Match[str]], str]


def make_bill_id(congress: int | str, bill_type: str, bill_number: int | str) -> str:
    return f"{_parse_bill_type(bill_type)}:{int(congress)}:{int(bill_number)}"


def make_vote_id(
    chamber_name: str, congress: int | str, session_number: int | str, roll_number: int | str
) -> str:
    return f"{chamber_name.lower()}:{int(congress)}:{int(session_number)}:{int(roll_number)}"


def make_law_id(law_number: str, is_private: bool = False) -> str:
    """`117-103` becomes `pl:117-103`; private laws have a series of their own."""
    congress_text, _, running_number = fold_dashes(law_number).partition("-")
    return f"{'pvtl' if is_private else 'pl'}:{int(congress_text)}-{int(running_number)}"


def make_committee_id(committee_code: str) -> str:
    """`hsag00` and `HSAG` are the committee, `hsag15` and `HSAG-15` a subcommittee of it."""
    committee_code = re.sub(r"[\s-]", "", committee_code.upper())
    return committee_code[:4] if committee_code[4:] == "00" else committee_code


def make_amendment_id(congress: int | str, amendment_type: str, amendment_number: int | str) -> str:
    return f"amdt:{int(congress)}:{amendment_type.lower()}:{int(amendment_number)}"


def make_sap_id(
    congress: int | str, issued_on: str, bill_codes: Sequence[str], repeat_number: int = 1
) -> str:
    """Return the id of a statement; those of a day on the same bills differ in a last number."""
    joined_codes_text = "-".join(bill_codes).lower() or "unnumbered"
    return f"sap:{int(congress)}:{issued_on}:{joined_codes_text}" + (
        f":{repeat_number}" if repeat_number > 1 else ""
    )


def make_report_id(
    congress: int | str, report_type: str, report_number: int | str, report_part: str | None = None
) -> str:
    """`crpt:117hrpt118`, and `crpt:117hrpt118-pt2` for a part that was printed separately."""
    return f"crpt:{int(congress)}{report_type.lower()}{int(report_number)}" + (
        f"-{report_part.lower()}" if report_part else ""
    )


def parse_report_citation(citation: str) -> str | None:
    """Return the id of a report from a citation such as `H. Rept. 117-118,Part 2`, or None."""
    citation_match = _REPORT_CITATION_PATTERN.match(fold_dashes(citation).strip())
    if citation_match is None:
        return None
    report_type = "erpt" if citation_match[1][0] in "Ee" else f"{citation_match[1][0]}rpt"
    return make_report_id(
        citation_match[2], report_type, citation_match[3], _parse_report_part(citation_match[4])
    )


def _parse_report_part(report_part_text: str | None) -> str | None:
    """`Part 2` and `Part II` become `pt2`, `Book 1` `bk1`; the first part is the report itself."""
    part_word, _, part_number = (report_part_text or "").lower().partition(" ")
    part_number = _DIGIT_BY_ROMAN_NUMERAL.get(part_number, part_number)
    part_prefix = {"part": "pt", "pt.": "pt", "book": "bk"}.get(part_word, part_word)
    return (
        None
        if (part_prefix, part_number) in (("", ""), ("pt", "1"))
        else f"{part_prefix}{part_number}"
    )


def make_cfr_id(title_number: int | str, section_number: str) -> str:
    return f"cfr:{int(title_number)}:{fold_dashes(section_number).lower()}"


def make_compilation_id(compilation_number: int | str) -> str:
    return f"comps:{int(compilation_number)}"


def make_proceeding_id(granule_id: str) -> str:
    """Return a granule such as `CREC-2005-07-20-pt1-PgE1551-2` in its usual case, with a prefix."""
    granule_match = _GRANULE_ID_PATTERN.fullmatch(granule_id)
    if granule_match is None:
        return f"crec:{granule_id}"
    issue_day, issue_part, page_label, granule_suffix = granule_match.groups()
    page_label = page_label.lower() if page_label.lower() == "null" else page_label.upper()
    cased_suffix = granule_suffix.lower().replace("frontm", "FrontM")
    return f"crec:CREC-{issue_day}-pt{issue_part}-Pg{page_label}{cased_suffix}"


@lru_cache(maxsize=4096)  # there are a thousand subjects, each of which occurs in many files
def make_topic_id(topic_name: str) -> str:
    ascii_name = (
        unicodedata.normalize("NFKD", topic_name).encode("ascii", "ignore").decode().lower()
    )
    return "topic:" + "-".join(re.findall("[a-z0-9]+", ascii_name))


_AGENCY_OF_DEPARTMENT_PATTERN = re.compile(
    r"(?!(?:the-)?(?:u-?s|united-states)-dep)(.+?)-department-of-.+"
)
_AGENCY_NAMED_BY_KIND_PATTERN = re.compile(r"(department|bureau|office)-of-(?:the-)?(.+)")


def make_agency_id(agency_name: str) -> str:
    """Return the id of an agency by its name or slug, with the slug that the Register would use.

    `Department of the Interior` and `Interior Department` become `agency:interior-department`, and
    `Bureau of Prisons, Department of Justice` becomes `agency:prisons-bureau`.
    """
    agency_slug = "-".join(re.findall("[a-z0-9]+", agency_name.lower()))
    if agency_of_department_match := _AGENCY_OF_DEPARTMENT_PATTERN.fullmatch(agency_slug):
        agency_slug = agency_of_department_match[1]
    if agency_kind_match := _AGENCY_NAMED_BY_KIND_PATTERN.fullmatch(agency_slug):
        agency_slug = f"{agency_kind_match[2]}-{agency_kind_match[1]}"
    return f"agency:{agency_slug}"


_ESTIMATE_URL_PATTERN = re.compile(r"cbo\.gov/publication/(\d+)", re.I)


def parse_estimate_id(url: str) -> str | None:
    """`https://www.cbo.gov/publication/57561` becomes `cbo:57561`."""
    url_match = _ESTIMATE_URL_PATTERN.search(url)
    return f"cbo:{int(url_match[1])}" if url_match else None


def make_staff_id(office_id: str) -> str:
    """`P000620-cañon_city` becomes `staff:P000620-canon_city`."""
    ascii_id = unicodedata.normalize("NFKD", office_id).encode("ascii", "ignore").decode()
    return f"staff:{re.sub('[^A-Za-z0-9._-]+', '_', ascii_id)}"


def make_docket_id(regulations_docket_number: str) -> str:
    return f"docket:{fold_dashes(regulations_docket_number).strip().upper()}"


def make_meeting_id(chamber_name: str | None, event_id: str) -> str:
    """Return the id of a meeting; each chamber has event numbers of its own."""
    return f"hearing:{(chamber_name or 'joint').lower()}-{event_id}"


def make_transcript_id(
    congress: int | str, chamber_name: str | None, jacket_number: int | str
) -> str:
    """Return the id of a printed hearing, as GovInfo has it: `hearing:CHRG-116shrg37721`."""
    return f"hearing:CHRG-{int(congress)}{(chamber_name or 'joint')[0].lower()}hrg{jacket_number}"


def make_membership_id(congress: int | str, committee_id: str, bioguide_id: str) -> str:
    return f"membership:{int(congress)}:{committee_id}:{bioguide_id}"


def parse_federal_id(written_id: str, congress: int | None = None) -> FederalId:
    """Return the canonical id for a text; `congress` completes a bill number without one.

    Raise UnrecognizedId if no form fits.
    """
    # NFKC also folds full-width letters and no-break spaces. Nearly all ids are ASCII and skip it.
    plain_id = (
        written_id
        if written_id.isascii()
        else fold_dashes(unicodedata.normalize("NFKC", written_id))
    )
    stripped_id = plain_id.strip()
    for id_spelling in (stripped_id, rewrite_url_to_id(stripped_id)):
        for id_form in _ID_FORMS if id_spelling else ():
            if id_match := id_form.pattern.fullmatch(id_spelling or ""):
                return FederalId(id_form.source, id_form.build_id(id_match))
    if congress and (id_match := _BARE_BILL_PATTERN.fullmatch(stripped_id)):
        return FederalId("bills", make_bill_id(congress, id_match[1], id_match[2]))
    raise UnrecognizedId(
        f"{written_id[:100]!r} is not the id of a federal record. Ids look like hr:119:1, "
        "S000033, HSAG, "
        "pl:117-103 or 2026-08558; names go to `resolve_entity`, words to `search`",
        valid_prefixes=list(LISTED_ID_FORMS),
    )


def parse_bill_number(written_number: str) -> tuple[str, int] | None:
    """Return type and number of a bill that is named without its Congress (`H.R. 22`), or None."""
    plain_number = (
        written_number
        if written_number.isascii()
        else fold_dashes(unicodedata.normalize("NFKC", written_number))
    )
    bill_match = _BARE_BILL_PATTERN.fullmatch(plain_number.strip())
    return (_parse_bill_type(bill_match[1]), int(bill_match[2])) if bill_match else None


def parse_amendment_number(written_number: str) -> tuple[str, int] | None:
    """Return type and number of an amendment named without its Congress (`SA 4999`), or None."""
    amendment_match = _BARE_AMENDMENT_PATTERN.fullmatch(fold_dashes(written_number).strip())
    return (
        (f"{amendment_match[1].lower()}amdt", int(amendment_match[2])) if amendment_match else None
    )


def _parse_bill_type(written_type: str) -> str:
    """`H.J.Res.`, `House Joint Resolution` and the `house-joint-resolution` of a URL are hjres."""
    type_letters = re.sub(r"[^a-z]", "", written_type.lower())
    for chamber_word, word_abbreviation in (
        ("house", "h"),
        ("senate", "s"),
        ("joint", "j"),
        ("concurrent", "con"),
    ):
        type_letters = type_letters.replace(chamber_word, word_abbreviation)
    type_letters = type_letters.replace("resolution", "res")
    return {"hbill": "hr", "sbill": "s"}.get(type_letters, type_letters)


def _make_id_form(
    source_name: str, listed_form: str, id_pattern: str, build_id: Callable[[re.Match[str]], str]
) -> _IdForm:
    return _IdForm(source_name, listed_form, re.compile(id_pattern, re.ASCII | re.I), build_id)


_BILL_TYPE_REGEX = "(" + "|".join(BILL_TYPES) + ")"
_PRINTED_BILL_TYPE_REGEX = (
    r"(H\.?\s?R\.?|S\.?|H\.?\s?J\.?\s?Res\.?|S\.?\s?J\.?\s?Res\.?|H\.?\s?Res\.?|S\.?\s?Res\.?"
    r"|H\.?\s?Con\.?\s?Res\.?|S\.?\s?Con\.?\s?Res\.?"
    r"|(?:House|Senate)[\s-](?:Bill|(?:(?:Joint|Concurrent)[\s-])?Resolution))"
)
_CONGRESS_REGEX = r"0*([1-9]\d{0,2})"
_NUMBER_REGEX = r"0*([1-9]\d{0,5})"
_NUMBER_SIGN_REGEX = r"(?:No[.:]?\s?)?"
_BARE_BILL_PATTERN = re.compile(
    rf"{_PRINTED_BILL_TYPE_REGEX}\s*{_NUMBER_SIGN_REGEX}{_NUMBER_REGEX}", re.ASCII | re.I
)
_ORDINAL_CONGRESS_REGEX = rf"{_CONGRESS_REGEX}(?:st|nd|rd|th)?(?:\s+Cong(?:ress|\.)?)?"
_OF_CONGRESS_REGEX = (
    rf"[\s,-]+\(?(?:of\s+)?(?:the\s+)?{_ORDINAL_CONGRESS_REGEX}\)?(?:\s*\((?:18|19|20)\d\d\))?"
)
_PRINTED_AMENDMENT_REGEX = (
    r"(S|H)(?:\.?\s?A(?:mdt|mendment)\.?|A|enate Amendment|ouse Amendment)\s?"
    rf"{_NUMBER_SIGN_REGEX}{_NUMBER_REGEX}"
)
_BARE_AMENDMENT_PATTERN = re.compile(_PRINTED_AMENDMENT_REGEX, re.ASCII | re.I)
_GRANULE_ID_PATTERN = re.compile(
    r"CREC-(\d{4}-\d\d-\d\d)-pt(\d+)-Pg(null|[A-Z]?)(.*)", re.ASCII | re.I
)
_DIGIT_BY_ROMAN_NUMERAL = dict(zip(("i", "ii", "iii", "iv", "v", "vi"), "123456", strict=True))
_REPORT_CITATION_PATTERN = re.compile(
    r"(H|S|Ex|Exec|House|Senate|Executive)\.?\s*(?:Re?pt\.?|Report)\s*(?:No\.\s*)?"
    r"0*(\d{1,3})-0*(\d{1,5})"
    r"(?:[, ]+((?:Part|Pt\.|Book) (?:\d+|[IVX]+\b)|Errata))?",
    re.ASCII | re.I,
)
# 2026-08558; older and corrected documents have 99-1234, E9-1234, C1-2024-01234.
_FR_NUMBER_REGEX = r"(\d{4}-\d{5}|\d{2}-\d{1,6}|[A-Z]\d{1,2}-\d{1,6}|[A-Z]\d{1,2}-\d{4}-\d{1,6})"
_ID_WORD_REGEX = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


def _build_uppercase_id(id_match: re.Match[str]) -> str:
    return id_match[1].upper()


def _build_lowercase_id(id_match: re.Match[str]) -> str:
    return id_match[0].lower()


_ID_FORMS = (
    _make_id_form(
        "bills",
        "hr:|s:|hjres:|sjres:|hres:|sres:|hconres:|sconres: (hr:119:1)",
        f"{_BILL_TYPE_REGEX}:{_CONGRESS_REGEX}:{_NUMBER_REGEX}",
        lambda id_match: make_bill_id(id_match[2], id_match[1], id_match[3]),
    ),
    _make_id_form(
        "bills",
        "",
        f"(?:bill:)?{_CONGRESS_REGEX}-{_BILL_TYPE_REGEX}-{_NUMBER_REGEX}",
        lambda id_match: make_bill_id(id_match[1], id_match[2], id_match[3]),
    ),
    _make_id_form(
        "bills",
        "",
        rf"{_PRINTED_BILL_TYPE_REGEX}\s*{_NUMBER_SIGN_REGEX}{_NUMBER_REGEX}{_OF_CONGRESS_REGEX}",
        lambda id_match: make_bill_id(id_match[3], id_match[1], id_match[2]),
    ),
    _make_id_form(
        "bills",
        "",
        rf"{_ORDINAL_CONGRESS_REGEX}[\s,]+{_PRINTED_BILL_TYPE_REGEX}\s*{_NUMBER_SIGN_REGEX}{_NUMBER_REGEX}",
        lambda id_match: make_bill_id(id_match[1], id_match[2], id_match[3]),
    ),
    _make_id_form(
        "roll_call_votes",
        "house:|senate: (house:118:1:37)",
        rf"(house|senate):{_CONGRESS_REGEX}:([1-3]):{_NUMBER_REGEX}",
        lambda id_match: make_vote_id(id_match[1], id_match[2], id_match[3], id_match[4]),
    ),
    _make_id_form(
        "congressional_record",
        "crec: (crec:CREC-2005-07-20-pt1-PgE1551-2)",
        rf"(?:crec:)?(CREC-{_ID_WORD_REGEX})",
        lambda id_match: make_proceeding_id(id_match[1]),
    ),
    _make_id_form(
        "public_laws",
        "pl: (pl:117-103)",
        rf"(?:pl:|P\.?\s?L\.?\s?|Pub(?:lic|\.)?\s?L(?:aw|\.)?\s?){_NUMBER_SIGN_REGEX}{_CONGRESS_REGEX}[-:]{_NUMBER_REGEX}",
        lambda id_match: make_law_id(f"{id_match[1]}-{id_match[2]}"),
    ),
    _make_id_form(
        "public_laws",
        "pvtl: (pvtl:112-1)",
        rf"(?:pvtl:|(?:Priv(?:ate|\.)?|Pvt\.?)\s?L(?:aw|\.)?\s?){_NUMBER_SIGN_REGEX}{_CONGRESS_REGEX}[-:]{_NUMBER_REGEX}",
        lambda id_match: make_law_id(f"{id_match[1]}-{id_match[2]}", is_private=True),
    ),
    _make_id_form(
        "legislators",
        "a bioguide id (S000033)",
        r"(?:member:|bioguide:)?([A-Z]\d{6})",
        _build_uppercase_id,
    ),
    _make_id_form(
        "crs_reports",
        "a CRS report number (R47892)",
        r"(?:crs:)?((?:R|RL|RS|IF|IN|LSB|TE)\d{5})",
        _build_uppercase_id,
    ),
    _make_id_form(
        "federal_register",
        "a Federal Register number (2026-08558)",
        f"(?:fr:)?{_FR_NUMBER_REGEX}",
        _build_uppercase_id,
    ),
    _make_id_form(
        "committees",
        "a committee code (HSAG, HSAG15)",
        r"(?:committee:)?([HSJ][A-Z]{3}(?:-?\d{2})?|(?![HS]R(?:ES|PT))[HSJ][A-Z]{3}\s\d{2})",
        lambda id_match: make_committee_id(id_match[1]),
    ),
    _make_id_form(
        "amendments",
        "amdt: (amdt:117:samdt:4999)",
        rf"amdt:{_CONGRESS_REGEX}:(hamdt|samdt|suamdt):{_NUMBER_REGEX}",
        lambda id_match: make_amendment_id(id_match[1], id_match[2], id_match[3]),
    ),
    _make_id_form(
        "amendments",
        "",
        rf"{_PRINTED_AMENDMENT_REGEX}(?:\s+to\s+[\w. ]+?)?{_OF_CONGRESS_REGEX}",
        lambda id_match: make_amendment_id(id_match[3], f"{id_match[1]}amdt", id_match[2]),
    ),
    _make_id_form(
        "saps",
        "sap: (sap:119:2025-06-30:hr1)",
        r"sap:[1-9]\d{0,2}:\d{4}-\d{2}-\d{2}:[a-z0-9-]{1,100}(?::[1-9]\d{0,2})?",
        _build_lowercase_id,
    ),
    _make_id_form(
        "presidential_documents",
        "presdoc: (presdoc:2026-11741)",
        f"presdoc:{_FR_NUMBER_REGEX}",
        lambda id_match: f"presdoc:{id_match[1].upper()}",
    ),
    _make_id_form(
        "committee_memberships",
        "membership: (membership:119:HSAG:S001157)",
        rf"membership:{_CONGRESS_REGEX}:([HSJ][A-Z]{{3}}(?:\d{{2}})?):([A-Z]\d{{6}})",
        lambda id_match: make_membership_id(id_match[1], id_match[2].upper(), id_match[3].upper()),
    ),
    _make_id_form(
        "topic_taxonomy",
        "topic: (topic:taxation)",
        r"topic:[a-z0-9]+(?:-[a-z0-9]+)*",
        _build_lowercase_id,
    ),
    _make_id_form(
        "agencies",
        "agency: (agency:coast-guard)",
        r"agency:([a-z0-9]+(?:-[a-z0-9]+)*)",
        lambda id_match: make_agency_id(id_match[1]),
    ),
    _make_id_form(
        "cbo_cost_estimates",
        "cbo: (cbo:62589)",
        rf"(?:cbo:|CBO\s(?:publication\s)?{_NUMBER_SIGN_REGEX}){_NUMBER_REGEX}",
        lambda id_match: f"cbo:{id_match[1]}",
    ),
    _make_id_form(
        "committee_reports",
        "crpt: (crpt:119hrpt105)",
        r"crpt:\d{1,3}[hsej]rpt\d{1,5}(?:-(?:pt|bk)\d{1,3}|-errata)?",
        _build_lowercase_id,
    ),
    _make_id_form(
        "cfr_sections",
        "cfr: (cfr:27:447.21)",
        rf"cfr:([1-9]\d?):({_ID_WORD_REGEX})",
        lambda id_match: make_cfr_id(id_match[1], id_match[2]),
    ),
    _make_id_form(
        "committee_reports",
        "",
        _REPORT_CITATION_PATTERN.pattern,
        lambda id_match: parse_report_citation(id_match[0]) or id_match[0],
    ),
    _make_id_form(
        "cfr_sections",
        "",
        # A paragraph, as in 478.11(a), is read with its section.
        r"([1-9]\d?)\s?C\.?\s?F\.?\s?R\.?\s?(?:\xa7\s?)?(\d{1,4}\.[\w.-]{1,60})"
        r"(?:\s?\([a-z\d]{1,4}\))*",
        lambda id_match: make_cfr_id(id_match[1], id_match[2]),
    ),
    _make_id_form(
        "cfr_sections",
        "",
        r"([1-9]\d?)\s?C\.?\s?F\.?\s?R\.?\s?(?:Part|Pt\.)\s?(\d{1,4}[a-z]?),?\s"
        r"App(?:endix|\.)\s([A-Z0-9]{1,4}(?:-[A-Z0-9]{1,4})?)",
        lambda id_match: make_cfr_id(id_match[1], f"{id_match[2]}.appendix-{id_match[3]}"),
    ),
    _make_id_form(
        "statute_compilations",
        "comps: (comps:1565)",
        rf"comps:{_NUMBER_REGEX}",
        lambda id_match: make_compilation_id(id_match[1]),
    ),
    _make_id_form(
        "lda_filings",
        "lda: (lda:<uuid>)",
        r"lda:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        _build_lowercase_id,
    ),
    _make_id_form(
        "regulations_dot_gov_dockets",
        "docket: (docket:EPA-HQ-OAR-2025-0001)",
        rf"docket:({_ID_WORD_REGEX})",
        lambda id_match: f"docket:{id_match[1].upper()}",
    ),
    _make_id_form(
        "hearings",
        "hearing: (hearing:<id>)",
        rf"hearing:({_ID_WORD_REGEX})",
        lambda id_match: f"hearing:{id_match[1]}",
    ),
    _make_id_form(
        "staff_directories",
        "staff: (staff:<id>)",
        rf"staff:({_ID_WORD_REGEX})",
        lambda id_match: f"staff:{id_match[1]}",
    ),
)

LISTED_ID_FORMS = tuple(id_form.listed_form for id_form in _ID_FORMS if id_form.listed_form)
