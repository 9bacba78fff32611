"""References to sections: as documents write them, as people ask for them, and as they compare."""

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from readingroom.core.text import fold_dashes

_WHITE_SPACE_PATTERN = re.compile(r"\s+")
_PARAGRAPH_WORD_PATTERN = re.compile(r"\b(?:paragraphs?|paras?\.?|¶)\s*(?=\d)", re.IGNORECASE)
_POLICY_KIND_WORDS_REGEX = (
    r"(?:core|strategic|non-strategic|local|site|area|place|development|management|draft|detailed"
    r"|allocations?|spatial|thematic|generic|overarching|proposed|site-specific|specific|minerals"
    r"|waste|village|town centre|borough-wide|district-wide|city-wide|key|sub[ -]area"
    r"|area delivery plan|delivery|growth|opportunity)"
)
_WORDS_BEFORE_POLICY_PATTERN = re.compile(rf"\b(?:{_POLICY_KIND_WORDS_REGEX} )+(?=policy)")
_BLANK_BEFORE_BRACKET_PATTERN = re.compile(r"(?<=\d)[ ](?=\()")
_SEPARATOR_IN_POLICY_CODE_PATTERN = re.compile(r"(?<=[a-z])[ /-](?=\d)")
_PARAGRAPH_NUMBER_PATTERN = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_NUMBER_AND_CLAUSE_PATTERN = re.compile(
    rf"{_PARAGRAPH_NUMBER_PATTERN.pattern}\s?\([a-z]\)", re.ASCII
)
# Local plans number policies TR4, BSC 1, DM3.2, H-1, S/12 or ESD13a, and sites HG2-36.
_POLICY_CODE_REGEX = r"[a-z]{1,6}(?:[/&.-][a-z]{1,5})*[ /-]?\d{1,3}(?:\.\d{1,2}|[-/]\d{1,3}(?!\d))?"
_POLICY_CODE_RANGE_PATTERN = re.compile(r"(?P<first>.*\d)[-/]\d{1,3}")
_NUMBER_AND_LETTER_PATTERN = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,2})?)[a-z]", re.IGNORECASE)
_POLICY_CODE_PATTERN = re.compile(rf"{_POLICY_CODE_REGEX}[a-z]?", re.ASCII)
# Plans number sites so: H1(a), H1(12).
_POLICY_CODE_AND_CLAUSE_PATTERN = re.compile(
    rf"{_POLICY_CODE_REGEX}\s?\((?:[a-z]|\d{{1,2}})\)", re.ASCII
)
_SECTION_AND_CLAUSE_PATTERN = re.compile(
    r"(?P<section>.*?\d[a-z]?)\s?(?:\((?P<clause>\w{1,4})\)(?:\s?\(\w{1,4}\))*)"
)
_SECTION_AND_CLAUSE_LETTER_PATTERN = re.compile(r"(?P<section>.*\d)(?P<clause>[a-z])")
_WORDS_BEFORE_POLICY_CODE = ("policy", "site", "site allocation", "allocation")
_WORDS_BEFORE_NUMBER = ("para", "section", "chapter", "policy")

_CLAUSE_REGEX = r"(?P<clause>(?:\s?\(\w{1,4}\))+|[a-z]\b)?"
_ASKED_PARAGRAPHS_PATTERN = re.compile(
    r"\b(?:paragraphs?|paras?\.?|¶)\s*(?P<numbers>\d+(?:\.\d+)*(?:\s*(?:,|and|&|or)\s*\d+(?:\.\d+)*)*)"
    + _CLAUSE_REGEX,
    re.IGNORECASE,
)
_ASKED_POLICIES_PATTERN = re.compile(
    rf"\b(?P<kinds>(?:{_POLICY_KIND_WORDS_REGEX}\s+)*)(?P<word>policy|policies)\s+(?P<codes>(?:{_POLICY_CODE_REGEX}[a-z]?|\d{{1,3}}(?:\.\d{{1,2}})?[a-z]?)\b"
    rf"(?:\s*(?:,|and|&|or)\s*(?:{_POLICY_CODE_REGEX}[a-z]?|\d{{1,3}}(?:\.\d{{1,2}})?[a-z]?)\b)*)"
    # Two policies may share a number.
    r"(?P<part>\s+part\s+[a-z]\b)?" + _CLAUSE_REGEX,
    re.IGNORECASE,
)
_SPELT_NUMBER_REGEX = (
    r"(?:(?:twenty|thirty|forty|fifty)(?:[ -](?:one|two|three|four|five|six|seven|eight|nine))?"
    r"|(?:four|six|seven|nine)(?:teen)?|eighteen|thirteen|fifteen"
    r"|one|two|three|five|eight|ten|eleven|twelve|[ivxl]{2,6})"
)
_ASKED_SECTION_WORDS_PATTERN = re.compile(
    r"\b(?P<ref>(?:chapter|annex|appendix|table|figure|section|part)\s+"
    r"(?:[A-Z]?\d+(?:[.-]\d+)*[a-z]?|[A-Z])"
    # What some plans call their policies.
    r"|(?:strategy|proposal|(?:strategic|housing|employment|mixed[ -]use|opportunity|key"
    rf"|development|regeneration|allocated)\s+site)\s+(?:{_POLICY_CODE_REGEX}[a-z]?|\d{{1,3}}[a-z]?)"
    rf"|policy\s+{_SPELT_NUMBER_REGEX})\b",
    re.IGNORECASE,
)
_BARE_POLICY_CODE_PATTERN = re.compile(
    r"(?<![\w/.-])(?<!class )(?<!Class )(?<!classes )(?<!road )(?<!junction )"
    r"(?P<code>[A-Z]{1,6}(?:[/.-][A-Z]{1,5})*[ /-]?\d{1,3}(?:\.\d{1,2}|[-/]\d{1,3})?[a-z]?)"
    r"(?![\w/-])" + _CLAUSE_REGEX
)
_POLICY_NAME_AND_NUMBER_PATTERN = re.compile(
    r"\b(?P<name>[A-Za-z][A-Za-z0-9_]{2,})\s+(?P<number>\d+(?:\.\d+)*)" + _CLAUSE_REGEX
)
_WHOLE_REFERENCE_PATTERN = re.compile(
    rf"\W*(?P<number>{_POLICY_CODE_REGEX}|\d+(?:\.\d+)*){_CLAUSE_REGEX}\W*", re.IGNORECASE
)
_QUERY_WORD_PATTERN = re.compile(r"[^\W\d_]{3,}")
_ASKING_WORDS_PATTERN = re.compile(
    "what|does|says?|the|polic(?:y|ies)|para(?:graphs?)?|section|chapter|annex|appendix|table"
    "|figure|about|and|for|tell|show|read|quote|text|full|explain|lists?"
)
_MIN_TOPIC_WORDS = 2
# The sign within `H&D1` separates nothing.
_LIST_SEPARATOR_PATTERN = re.compile(r"\s*(?:,|\band\b|\bor\b|(?<=\s)&|(?<=\d)&)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedReference:
    """A section that a question names."""

    folded_refs: tuple[str, ...]
    """The forms it may have in a document, the likeliest first."""
    clause: str | None = None
    """The part of it that is meant: `3` of `TR6(3)`, `d` of `11d`."""


def fold_ref(section_ref: str) -> str:
    """Return a reference in the form that is compared: `Paragraph 116` becomes `para116`."""
    folded_ref = _WHITE_SPACE_PATTERN.sub(" ", fold_dashes(section_ref)).strip().casefold()
    folded_ref = _BLANK_BEFORE_BRACKET_PATTERN.sub(
        "", _PARAGRAPH_WORD_PATTERN.sub("para ", folded_ref)
    )
    return _SEPARATOR_IN_POLICY_CODE_PATTERN.sub("", folded_ref)


def fold_ref_without_kind(section_ref: str) -> str:
    """Return the folded form of a reference without the kind of policy: `policy 3`.

    `Core Policy 3` may be asked for as `Policy 3`; a plan may have a `Development Policy 3` too.
    """
    return _WORDS_BEFORE_POLICY_PATTERN.sub("", fold_ref(section_ref))


def index_by_folded_ref(section_refs: Iterable[str]) -> dict[str, str]:
    """Return folded reference → reference, in their order; last the forms without their kinds."""
    distinct_refs = [*dict.fromkeys(section_refs)]
    refs_by_folded_ref: dict[str, str] = {}
    for fold_function in (fold_ref, fold_ref_without_kind):
        for section_ref in distinct_refs:
            refs_by_folded_ref.setdefault(fold_function(section_ref), section_ref)
    return refs_by_folded_ref


def find_section_ref(section_ref: str, refs_by_folded_ref: Mapping[str, str]) -> str | None:
    """Return the section that a reference means, as the document writes it, or None.

    `refs_by_folded_ref` are the references of the document by their folded form.

    A bare number may be that of a paragraph, section, chapter or policy, tried in this order; a
    bare code such as `TR4` is that of a policy. Of `TR6(3)` and `11d` it is the whole section.
    """
    candidate_folded_refs = list_folded_forms(section_ref)
    lower_case_ref = fold_dashes(section_ref).strip().casefold()
    for clause_pattern in (_SECTION_AND_CLAUSE_PATTERN, _SECTION_AND_CLAUSE_LETTER_PATTERN):
        if clause_match := clause_pattern.fullmatch(lower_case_ref):
            candidate_folded_refs += list_folded_forms(clause_match["section"])
    return next(
        (
            refs_by_folded_ref[candidate_folded_ref]
            for candidate_folded_ref in candidate_folded_refs
            if candidate_folded_ref in refs_by_folded_ref
            and not _have_different_policy_kinds(
                section_ref, refs_by_folded_ref[candidate_folded_ref]
            )
        ),
        None,
    )


def _have_different_policy_kinds(asked_ref: str, section_ref: str) -> bool:
    """Whether two references name different kinds of policy: `Core Policy`, `Local Policy`."""
    asked_kind_words, section_kind_words = (
        _WORDS_BEFORE_POLICY_PATTERN.findall(fold_ref(compared_ref))
        for compared_ref in (asked_ref, section_ref)
    )
    return bool(asked_kind_words and section_kind_words) and asked_kind_words != section_kind_words


def find_similar_refs(section_ref: str, refs_by_folded_ref: Mapping[str, str]) -> list[str]:
    """Return up to five sections whose references are written much like this one."""
    similar_folded_refs = difflib.get_close_matches(
        fold_ref(section_ref), refs_by_folded_ref, n=5, cutoff=0.5
    )
    return [refs_by_folded_ref[folded_ref] for folded_ref in similar_folded_refs]


def list_folded_forms(section_ref: str) -> list[str]:
    """Return the folded forms that a reference may have in a document, the likeliest first."""
    lower_case_ref = _WHITE_SPACE_PATTERN.sub(" ", fold_dashes(section_ref)).strip().casefold()
    folded_forms = [*dict.fromkeys([fold_ref(section_ref), fold_ref_without_kind(section_ref)])]
    if _NUMBER_AND_CLAUSE_PATTERN.fullmatch(lower_case_ref):
        folded_forms.append(fold_ref(f"policy {lower_case_ref}"))
    elif _PARAGRAPH_NUMBER_PATTERN.fullmatch(lower_case_ref):
        folded_forms += [
            fold_ref(f"{kind_word} {lower_case_ref}") for kind_word in _WORDS_BEFORE_NUMBER
        ]
    elif _POLICY_CODE_PATTERN.fullmatch(
        lower_case_ref
    ) or _POLICY_CODE_AND_CLAUSE_PATTERN.fullmatch(lower_case_ref):
        folded_forms += [
            fold_ref(f"{kind_word} {lower_case_ref}") for kind_word in _WORDS_BEFORE_POLICY_CODE
        ]
    return folded_forms


def find_asked_references(
    query_text: str, policy_name_words: Collection[str] = ()
) -> list[AskedReference]:
    """Return the sections that a question names, in its order.

    `policy_name_words` are words that name policies, in lower case: after one of them a mere number
    is that of a paragraph, as in `NPPF 11d`.
    """
    offsets_and_references_by_refs: dict[tuple[str, ...], tuple[int, AskedReference]] = {}
    for query_offset, asked_reference in _iterate_asked_references(
        query_text[:2000], policy_name_words
    ):
        offsets_and_references_by_refs.setdefault(
            asked_reference.folded_refs, (query_offset, asked_reference)
        )
    return [
        asked_reference
        for _, asked_reference in sorted(
            offsets_and_references_by_refs.values(),
            key=lambda offset_and_reference: offset_and_reference[0],
        )
    ]


def extract_topic_text(query_text: str) -> str:
    """Return what a question is about beside the sections that it names; empty for nothing."""
    topic_text = query_text[:2000]
    for reference_pattern in (
        _ASKED_PARAGRAPHS_PATTERN,
        _ASKED_POLICIES_PATTERN,
        _BARE_POLICY_CODE_PATTERN,
    ):
        topic_text = reference_pattern.sub(" ", topic_text)
    topic_words = _QUERY_WORD_PATTERN.findall(topic_text.casefold())
    has_topic = (
        sum(not _ASKING_WORDS_PATTERN.fullmatch(topic_word) for topic_word in topic_words)
        >= _MIN_TOPIC_WORDS
    )
    return " ".join(topic_text.split()) if has_topic else ""


def _iterate_asked_references(
    query_text: str, policy_name_words: Collection[str]
) -> Iterator[tuple[int, AskedReference]]:
    if reference_match := _WHOLE_REFERENCE_PATTERN.fullmatch(query_text):
        clause_ref = reference_match["clause"]
        folded_forms = list_folded_forms(reference_match["number"])
        if clause_ref and "(" in clause_ref:
            # A plan may number its policies so: `Policy 7.3 (b)`.
            folded_forms = list_folded_forms(reference_match["number"] + clause_ref) + folded_forms
        yield 0, _make_asked_reference(folded_forms, clause_ref)
    for reference_match in _ASKED_PARAGRAPHS_PATTERN.finditer(query_text):
        for paragraph_number in _LIST_SEPARATOR_PATTERN.split(reference_match["numbers"]):
            folded_forms = [
                fold_ref(f"para {paragraph_number}"),
                fold_ref(f"section {paragraph_number}"),
            ]
            yield (
                reference_match.start(),
                _make_asked_reference(folded_forms, reference_match["clause"]),
            )
    policy_matches = [*_ASKED_POLICIES_PATTERN.finditer(query_text)]
    for reference_match in policy_matches:
        for policy_code in _LIST_SEPARATOR_PATTERN.split(reference_match["codes"]):
            policy_ref = f"{reference_match['kinds']}policy {policy_code}"
            asked_refs = [
                policy_ref + (reference_match["part"] or ""),
                policy_ref + (reference_match["clause"] or ""),
                policy_ref,
            ]
            if letter_match := _NUMBER_AND_LETTER_PATTERN.fullmatch(policy_code):
                # Of a plan without a `Policy 5a`, it is a clause.
                asked_refs.append(f"{reference_match['kinds']}policy {letter_match['number']}")
            if reference_match["word"].casefold() == "policies" and (
                range_match := _POLICY_CODE_RANGE_PATTERN.fullmatch(policy_code)
            ):
                asked_refs.append(f"{reference_match['kinds']}policy {range_match['first']}")
            folded_forms = [*map(fold_ref, asked_refs), fold_ref_without_kind(policy_ref)]
            yield (
                reference_match.start(),
                _make_asked_reference(dict.fromkeys(folded_forms), reference_match["clause"]),
            )
    for reference_match in _ASKED_SECTION_WORDS_PATTERN.finditer(query_text):
        if any(
            policy_match.start() < reference_match.start() < policy_match.end()
            for policy_match in policy_matches
        ):
            continue  # the part of a policy
        yield (
            reference_match.start(),
            _make_asked_reference([fold_ref(reference_match["ref"])], None),
        )
    for reference_match in _BARE_POLICY_CODE_PATTERN.finditer(query_text):
        policy_code, clause_ref = reference_match["code"], reference_match["clause"] or ""
        policy_code_forms = (
            [policy_code + clause_ref, policy_code] if "(" in clause_ref else [policy_code]
        )
        folded_forms = [
            fold_ref(f"{kind_word} {policy_code_form}")
            for policy_code_form in policy_code_forms
            for kind_word in _WORDS_BEFORE_POLICY_CODE
        ]
        yield (
            reference_match.start(),
            _make_asked_reference(folded_forms, reference_match["clause"]),
        )
    for reference_match in _POLICY_NAME_AND_NUMBER_PATTERN.finditer(query_text):
        if reference_match["name"].casefold() in policy_name_words:
            folded_forms = list_folded_forms(reference_match["number"])[1:]
            yield (
                reference_match.start(),
                _make_asked_reference(folded_forms, reference_match["clause"]),
            )


def _make_asked_reference(folded_refs: Iterable[str], clause_ref: str | None) -> AskedReference:
    clause_match = re.search(r"\w+", clause_ref) if clause_ref else None
    return AskedReference(tuple(folded_refs), clause_match[0].casefold() if clause_match else None)


def has_clause_start(passage_text: str, clause_ref: str) -> bool:
    """Whether a clause such as `3.`, `(d)` or `iv)` begins in a text."""
    return bool(
        re.search(rf"(?:^|\n)\s*\(?{re.escape(clause_ref)}[.)]\s", passage_text, re.IGNORECASE)
    )
