"""The codes by which plans name their policies: `LP5`, `H-1`, `7.3 (b)`, and headings with them."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from readingroom.ingest.structure.headings import TITLE_REGEX
from readingroom.ingest.structure.typography import Typography

# Codes as plans write them: LP5, BSC 1, DM3.2, H-1, S/12, H.4, ESD13a, AR-UA-ST1, H&D1, HG2-36.
_CODE_REGEX = (
    r"[A-Z]{1,6}(?:[/&.-][A-Z]{1,5})*[ ./-]?\d{1,3}(?:\.\d{1,2}|[-/]\d{1,3}(?!\d))?[A-Za-z]?"
)
# Codes that only the word "Policy" shows to be one: Env1, HOUSING 3, GNLP0337R, S/JH.
_WORDED_CODE_REGEX = (
    r"[A-Z]{1,3}[a-z]{1,6}\d{1,3}|[A-Z]{7,14} ?\d{1,3}|[A-Z]{2,6}\d{4}[A-Z]?"
    r"|\d{1,2}/\d{1,2}|[A-Z]{1,4}/[A-Z]{1,4}"
    # JP-Strat 1, H SP2a, NUA/Ho/1, ShAP 4, H(a), BEV-A.
    r"|[A-Z]{1,3}-[A-Z][a-z]{1,10}[ -]?\d{1,3}(?:\.\d{1,2})?|[A-Z]{1,6} [A-Z]{1,4}\d{1,3}[a-z]?"
    r"|[A-Z][A-Za-z]{0,3}(?:/[A-Z][A-Za-z]{0,3}){1,2}/\d{1,2}|[A-Z][a-z][A-Z]{1,3} ?\d{1,3}"
    r"|[A-Z]{1,3}\([a-z]\)|[A-Z]{2,5}-[A-Z](?![\w-])"
)

_SMALL_NUMBER_WORDS = (
    *("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven"),
    *("Twelve", "Thirteen", "Fourteen", "Fifteen", "Sixteen", "Seventeen", "Eighteen", "Nineteen"),
)


def _make_both_cases_regex(*words: str) -> str:
    """Return a pattern of words with capitals at their beginning or throughout."""
    return "(?:" + "|".join([*words, *map(str.upper, words)]) + ")"


_TENS_REGEX = _make_both_cases_regex("Twenty", "Thirty", "Forty", "Fifty")
_SMALL_NUMBERS_REGEX = _make_both_cases_regex(*_SMALL_NUMBER_WORDS)
# Numbers as words, and Roman ones, which only what follows tells from a word: `Policy Twelve`.
_SPELT_NUMBER_REGEX = (
    rf"(?:{_TENS_REGEX}(?:[ -]{_SMALL_NUMBERS_REGEX})?|{_SMALL_NUMBERS_REGEX})(?!\w)"
    r"|[IVXL]{1,6}(?=\s*[:–—])"
)
_HEADING_KIND_REGEX = _make_both_cases_regex(
    *("Core", "Strategic", "Non-Strategic", "Local", "Site", "Area", "Place", "Development"),
    *("Management", "Draft", "Detailed", "Allocations", "Allocation", "Spatial", "Thematic"),
    *("Generic", "Overarching", "Proposed", "Site-Specific", "Specific", "Minerals", "Waste"),
    *("Village", "Town Centre", "Borough-wide", "District-wide", "City-wide", "Key", "Sub Area"),
    *("Sub-Area", "Area Delivery Plan", "Delivery", "Growth", "Opportunity", "Non-strategic"),
)
_SITE_KIND_REGEX = _make_both_cases_regex(
    *("Strategic", "Housing", "Employment", "Mixed Use", "Mixed-Use", "Opportunity", "Key"),
    *("Development", "Regeneration", "Allocated", "Strategic Growth", "Growth"),
)
_SITE_WORD_REGEX = (
    rf"(?:(?:{_SITE_KIND_REGEX} )?{_make_both_cases_regex('Site')}"
    rf"|{_make_both_cases_regex('Strategic Location')})"
)
_POLICY_WORD_REGEX = (
    rf"(?:{_HEADING_KIND_REGEX}\s+)*{_make_both_cases_regex('Policy')}|(?:Non-s|S)trategic policy"
    rf"|{_make_both_cases_regex('Special Policy Area')}"
    # A plan of several councils may have letters before the word: `AB Allocation 3`.
    rf"|(?:[A-Z]{{2,4}} )?(?:{_SITE_KIND_REGEX} )?(?:{_make_both_cases_regex('Site')} )?"
    rf"{_make_both_cases_regex('Allocation')}"
)
_TOPIC_WORD_REGEX = (
    r"(?i:housing|employment|environment(?:al)?|transport|design|retail|econom(?:y|ic)|heritage"
    r"|infrastructure|community|general|delivery|neighbourhood|planning|rural|urban)"
)
# A part or a second code in brackets: `H1(12)`, `DS3(HA1)`, `1.1 (2)`, `1 (SC1)`.
_CODE_SUFFIX_REGEX = r"(?:\s?\((?:\d{1,2}|[A-Za-z]|[ivx]{2,4})\)|\([A-Z]{1,3}\d{1,3}\))?"
_NUMBER_SUFFIX_REGEX = r"\s?\((?:[a-z]|\d{1,2}|[A-Z]{1,5}\d{1,3})\)"
POLICY_HEADING_PATTERN = re.compile(
    # Headings of all kinds may be numbered.
    r"(?P<section>\d{1,2}(?:\.\d{1,3}){0,3}\.?\s+)?"
    rf"(?:(?P<topic>{_TOPIC_WORD_REGEX})\s+)?(?P<word>{_POLICY_WORD_REGEX})(?:\s+|\s*[:–—]\s*)"
    rf"(?:(?i:no\.?|number)\s+)?"
    rf"(?P<number>{_CODE_REGEX}{_CODE_SUFFIX_REGEX}(?![-/]\d)|{_WORDED_CODE_REGEX}"
    rf"|(?:[A-Z][a-z]+ ){{1,3}}\d{{1,3}}|{_SPELT_NUMBER_REGEX}"
    rf"|\d{{1,3}}(?:\.\d{{1,2}})?(?:[A-Za-z]|{_NUMBER_SUFFIX_REGEX})?"
    rf"|[A-Z](?=\s*[:–—-])|[A-Z]{{2}}(?=\s*[:–—]|\s-\s))"
    # Two policies may share a number.
    rf"(?P<part>\s+(?:Part|PART)\s+[A-Z](?=\s+[A-Z]|\s*[:–—-]|$))?"
    # What kind of policy it is may stand between its code and its title.
    rf"(?![\w/]|\.\d)\*?(?:\s*\((?P<continued>(?i:cont)(?s:.*))|\s*\((?P<bracketed>[A-Z][^()]{{4,100}})\)"
    rf"|\s*[:–—]\s*(?P<uncapped>[a-z](?s:.*))|,\s+(?P<after_comma>[A-Z](?s:.*))"
    rf"|(?:\s*\([A-Za-z -]{{5,30}}\))?{TITLE_REGEX})"
)
_NO_POLICY_CODE_LOOKAHEAD = (
    r"(?!(?:ANNEX|PART|TABLE|BOX|STEP|NOTE|PHASE|STAGE|ZONE|FIGURE|MAP|PPS|PPG|MPS)\b)"
)
CODE_HEADING_PATTERN = re.compile(
    rf"{_NO_POLICY_CODE_LOOKAHEAD}"
    rf"(?P<number>{_CODE_REGEX}(?:\([A-Z]\))?)(?:\s*[:–—-]\s*|\.?\s+)(?P<title>[A-Z“‘](?s:.*))"
)
# Plans may have another word for what is a policy: `Strategy 9 – A new town`.
_POLICY_SYNONYMS = ("Strategy", "Proposal")
_POLICY_SYNONYM_REGEX = _make_both_cases_regex(*_POLICY_SYNONYMS)
_SYNONYM_HEADING_PATTERN = re.compile(
    rf"(?P<word>{_POLICY_SYNONYM_REGEX})\s+(?P<number>{_CODE_REGEX}|\d{{1,3}}[A-Z]?)(?![\w/]){TITLE_REGEX}"
)
SITE_HEADING_PATTERN = re.compile(
    rf"(?P<word>{_SITE_WORD_REGEX})\s+(?P<number>(?:{_CODE_REGEX}|\d{{1,3}}[A-Za-z]?)(?:\s?\([a-z]\))?)(?![\w/])"
    rf"{TITLE_REGEX}"
)
# In a plan whose text calls them `Policy 6`.
NUMBER_HEADING_PATTERN = re.compile(r"(?P<number>\d{1,2}[A-Z]?)[.:]?\s+(?P<title>[A-Z“‘](?s:.*))")
# A title at the left of a bar, and the code at its right.
TITLE_BEFORE_CODE_PATTERN = re.compile(
    r"(?P<title>[A-Z][^.;:]{2,80}?)"
    rf"(?:\s+|\s*[(|–—-]\s*){_make_both_cases_regex('Policy')}\s+"
    rf"(?P<number>{_CODE_REGEX}|\d{{1,3}}[A-Z]?)\)?"
)
# Words that end no title: `Implementing Policy H1`, `Core Strategy Policy CS6`.
_WORD_BEFORE_POLICY_PATTERN = re.compile(
    r"of|to|and|for|the|see|with|under|in|by|plan|strategy|saved|former|old|national|local|core"
    r"|emerging|(?:implement|deliver|monitor|support|apply|explain)ing",
    re.IGNORECASE,
)
CODE_ALONE_PATTERN = re.compile(rf"{_NO_POLICY_CODE_LOOKAHEAD}(?P<number>{_CODE_REGEX})")
_POLICY_MENTION_PATTERN = re.compile(
    r"\b[Pp]olic(?:y|ies)\s+([A-Z]{1,6})(?:[/&.-][A-Z]{1,5})*[ ./-]?\d"
)

_POLICY_SYNONYM_BEGINNINGS = (*_POLICY_SYNONYMS, *map(str.upper, _POLICY_SYNONYMS))
_CODE_PARTS_PATTERN = re.compile(
    r"(?P<letters>[A-Z]+(?:[/.-][A-Z]+)*)(?P<separator>[ ./-]?)(?P<number>\d+(?:[./-]\d+)?)"
)
_LISTED_CODE_PATTERN = re.compile(
    rf"\b(?P<letters>(?:{_POLICY_SYNONYM_REGEX} )?[A-Z]+(?:[/.-][A-Z]+)*|{_POLICY_SYNONYM_REGEX})"
    r"[ ./-]?(?P<number>\d+(?:[./-]\d+)?)(?!\w)"
)
_SYNONYM_CODE_PATTERN = re.compile(
    r"(?P<letters>[A-Z]+(?: [A-Z]+(?:[/.-][A-Z]+)*)?)(?P<separator>[ ./-]?)"
    r"(?P<number>\d+(?:[./-]\d+)?)"
)
_FIRST_NUMBER_PATTERN = re.compile(r"0?1(?:[./-]0?1)?")
_LEADING_LETTERS_PATTERN = re.compile(r"[A-Z]+")
_REQUIREMENT_WORD_PATTERN = re.compile(
    r"\b(?:will|shall|must|should|permitted|required|refused|supported|resisted|allocated)\b"
)
_MONITORING_LABEL_PATTERN = re.compile(
    r"(?:(?:key|core|local|monitoring|policy|output|contextual) )?"
    r"(?:indicators?|targets?|triggers?)\b",
    re.IGNORECASE,
)
_PLAN_WORD_PATTERN = re.compile(r"\b(?:plan|strategy|policies|framework)\b", re.IGNORECASE)
_POLICY_WORD_PATTERN = re.compile(r"\bpolic(?:y|ies)\b", re.IGNORECASE)
_TITLE_PAGE_COUNT = 2
# Of codes of one look without "Policy", and of that word in the text: with fewer they are others'.
_MIN_FAMILY_CODES = 4
_MIN_POLICY_MENTIONS = 3
_MAX_CONTENTS_LINE_CHARS = 500
# Lines below a code in which a policy says what will be permitted.
_LINES_SEARCHED_FOR_REQUIREMENT = 12
# Lines below a code in which a table of monitoring names its columns.
_LINES_SEARCHED_FOR_MONITORING = 4


def find_named_prefixes(document_text: str) -> set[str]:
    """Return the letters of the codes that the text calls policies: `HOU` of `Policy HOU2`."""
    return {mention_match[1] for mention_match in _POLICY_MENTION_PATTERN.finditer(document_text)}


def get_code_letters(policy_code: str) -> str:
    """Return the letters that a code begins with; "" where it begins with none."""
    letters_match = _LEADING_LETTERS_PATTERN.match(policy_code)
    return letters_match[0] if letters_match else ""


LineLook = tuple[bool, int]
"""Whether the line of a code is bold, and its size."""


@dataclass(frozen=True, slots=True)
class _CodeLine:
    """A line that stands out and begins with a code."""

    line_index: int
    letters: str
    number: str
    look: tuple[bool, int, str]
    """Whether it is bold, its size, and what stands between letters and number."""

    @property
    def letters_and_number(self) -> tuple[str, str]:
        return self.letters, self.number


@dataclass(frozen=True, slots=True)
class CodeFamily:
    """Codes of one look that head rules of a plan."""

    prefixes: set[str]
    """The letters that they begin with, or the word: `TC`, `STRATEGY`."""
    listed_prefixes: set[str]
    """Those of them that the contents list."""
    look: LineLook
    is_like_policies: bool
    """Whether each heads a box, or the contents list them as they list the plan's policies."""


def find_code_families(typography: Typography, document_text: str) -> list[CodeFamily]:
    """Return the families of codes that head a plan's rules without the word "Policy".

    Such codes look alike, count from one or are listed in the contents, and the text below them
    says what will be permitted.
    """
    opening_text = " ".join(
        flow_line.line.text for flow_line in typography.lines if flow_line.page <= _TITLE_PAGE_COUNT
    )
    is_titled_as_plan = _PLAN_WORD_PATTERN.search(opening_text[:5_000]) is not None
    if (
        not is_titled_as_plan
        or len(_POLICY_WORD_PATTERN.findall(document_text)) < _MIN_POLICY_MENTIONS
    ):
        return []
    code_lines_by_look: defaultdict[tuple[bool, int, str], list[_CodeLine]] = defaultdict(list)
    for code_line in _iterate_code_lines(typography):
        code_lines_by_look[code_line.look].append(code_line)
    listed_codes = _list_codes_of_contents(typography)
    codes_listed_among_policies = _list_codes_among_policies_of_contents(typography)
    code_families: list[CodeFamily] = []
    for (is_bold, letter_size, _), code_lines in code_lines_by_look.items():
        family_letters = {
            code_line.letters
            for code_line in code_lines
            if _FIRST_NUMBER_PATTERN.fullmatch(code_line.number)
        }
        boxed_letters = _find_boxed_letters(typography, code_lines)
        family_letters |= boxed_letters | _find_listed_letters(
            {code_line.letters_and_number for code_line in code_lines}, listed_codes
        )
        family_lines = [
            code_line for code_line in code_lines if code_line.letters in family_letters
        ]
        family_codes = {code_line.letters_and_number for code_line in family_lines}
        codes_above_requirements = {
            code_line.letters_and_number
            for code_line in family_lines
            if is_above_requirement(typography, code_line.line_index)
        }
        if len(family_codes) >= _MIN_FAMILY_CODES and 3 * len(codes_above_requirements) >= 2 * len(
            family_codes
        ):
            code_families.append(
                CodeFamily(
                    {get_code_letters(letters) for letters, _ in family_codes},
                    {
                        get_code_letters(letters)
                        for letters in _find_listed_letters(family_codes, listed_codes)
                    },
                    (is_bold, letter_size),
                    family_letters <= boxed_letters or family_codes <= codes_listed_among_policies,
                )
            )
    return code_families


def _list_codes_of_contents(typography: Typography) -> set[tuple[str, str]]:
    """Return letters and number of each code that the contents name."""
    return {
        (code_match["letters"].upper(), code_match["number"])
        for line_index in typography.contents_line_indexes
        for code_match in _LISTED_CODE_PATTERN.finditer(
            typography.lines[line_index].line.text[:_MAX_CONTENTS_LINE_CHARS]
        )
    }


def _list_codes_among_policies_of_contents(typography: Typography) -> set[tuple[str, str]]:
    """Return the codes that begin lines of the contents set in like those of `Policy H1`.

    There are none where chapters begin as far left.
    """
    contents_lines = [
        typography.lines[line_index].line for line_index in typography.contents_line_indexes
    ]
    left_edges_of_policies = {
        round(line.left)
        for line in contents_lines
        if POLICY_HEADING_PATTERN.match(line.text[:_MAX_CONTENTS_LINE_CHARS])
    } - {round(min((line.left for line in contents_lines), default=0.0))}
    return {
        (code_match["letters"].upper(), code_match["number"])
        for line in contents_lines
        if round(line.left) in left_edges_of_policies
        and (code_match := _LISTED_CODE_PATTERN.match(line.text[:_MAX_CONTENTS_LINE_CHARS]))
    }


def _find_listed_letters(
    codes: set[tuple[str, str]], listed_codes: set[tuple[str, str]]
) -> set[str]:
    """Return the letters of codes that the contents name: four of them, or all among others.

    Not all numbers need be in use: a plan may have a TC2, a TC4 and no other.
    """
    listed_counts_by_letters = Counter(letters for letters, _ in codes & listed_codes)
    if listed_counts_by_letters.total() < _MIN_FAMILY_CODES:
        return set()
    code_counts_by_letters = Counter(letters for letters, _ in codes)
    return {
        letters
        for letters, listed_count in listed_counts_by_letters.items()
        if listed_count >= _MIN_FAMILY_CODES or listed_count == code_counts_by_letters[letters]
    }


def _find_boxed_letters(typography: Typography, code_lines: Sequence[_CodeLine]) -> set[str]:
    """Return the letters of codes all of which head boxes with their text, enough of one look."""
    box_looks = [find_box_look(typography, code_line.line_index) for code_line in code_lines]
    counts_by_box_look = Counter(box_look for box_look in box_looks if box_look is not None)
    if not counts_by_box_look or counts_by_box_look.most_common(1)[0][1] < _MIN_FAMILY_CODES:
        return set()
    return {code_line.letters for code_line in code_lines} - {
        code_line.letters
        for code_line, box_look in zip(code_lines, box_looks, strict=True)
        if box_look is None
    }


def find_boxed_prefixes(typography: Typography, policy_line_indexes: Iterable[int]) -> set[str]:
    """Return the letters of codes that head boxes like those of the policies on these lines.

    Where many policies stand in boxes of one look, a box that begins with a mere code is another.
    """
    counts_by_box_look = Counter(
        find_box_look(typography, line_index) for line_index in policy_line_indexes
    )
    return {
        get_code_letters(typography.lines[code_line.line_index].line.text)
        for code_line in _iterate_code_lines(typography)
        if (box_look := find_box_look(typography, code_line.line_index)) is not None
        and counts_by_box_look[box_look] >= _MIN_FAMILY_CODES
        and is_above_requirement(typography, code_line.line_index)
    }


def find_box_look(typography: Typography, line_index: int) -> tuple[bool, int, int, int] | None:
    """Return weight, size and indent of the first line of a box, and its width; None of others."""
    flow_line = typography.lines[line_index]
    if flow_line.box is None or (
        line_index
        and typography.lines[line_index - 1].box == flow_line.box
        and typography.lines[line_index - 1].page == flow_line.page
    ):
        return None
    return (
        flow_line.line.is_bold,
        round(flow_line.line.letter_height),
        round(flow_line.line.left - flow_line.box.left),
        round(flow_line.box.right - flow_line.box.left),
    )


def find_site_heading_line_indexes(typography: Typography) -> set[int]:
    """Return the headings `Site H1(a)` of a plan that says below them what may be built there."""
    site_numbers_by_line_index = {
        line_index: site_match["number"]
        for line_index, flow_line in enumerate(typography.lines)
        if line_index not in typography.contents_line_indexes
        and not _is_inside_table(typography, line_index)
        and (site_match := SITE_HEADING_PATTERN.fullmatch(flow_line.line.text))
        and typography.is_heading(line_index)
        and typography.is_emphasised(line_index)
    }
    line_indexes_above_requirements = {
        line_index
        for line_index in site_numbers_by_line_index
        if is_above_requirement(typography, line_index)
    }
    site_numbers_above_requirements = {
        site_numbers_by_line_index[line_index] for line_index in line_indexes_above_requirements
    }
    site_numbers = {*site_numbers_by_line_index.values()}
    are_enough_sites = len(site_numbers_above_requirements) >= _MIN_FAMILY_CODES and 3 * len(
        site_numbers_above_requirements
    ) >= 2 * len(site_numbers)
    return {*site_numbers_by_line_index} if are_enough_sites else set()


def _is_inside_table(typography: Typography, line_index: int) -> bool:
    """Whether a line stands in a table; one that begins a box may head text with a table in it."""
    flow_line = typography.lines[line_index]
    return (
        flow_line.box is not None
        and flow_line.box.is_grid
        and line_index > 0
        and typography.lines[line_index - 1].box == flow_line.box
    )


def find_heading_bar_line_indexes(typography: Typography) -> set[int]:
    """Return the headings `Affordable homes Policy H3` of a plan whose boxes begin with them."""
    policy_codes_by_line_index = {
        line_index: heading_match["number"]
        for line_index, flow_line in enumerate(typography.lines)
        if flow_line.box is not None
        and not flow_line.box.is_grid
        and (line_index == 0 or typography.lines[line_index - 1].box != flow_line.box)
        and typography.is_emphasised(line_index)
        and typography.is_heading(line_index)
        and (heading_match := TITLE_BEFORE_CODE_PATTERN.fullmatch(flow_line.line.text))
        and not _WORD_BEFORE_POLICY_PATTERN.fullmatch(heading_match["title"].split()[-1])
        and is_above_requirement(typography, line_index)
    }
    are_enough_policies = len({*policy_codes_by_line_index.values()}) >= _MIN_FAMILY_CODES
    return {*policy_codes_by_line_index} if are_enough_policies else set()


def _iterate_code_lines(typography: Typography) -> Iterator[_CodeLine]:
    for line_index, flow_line in enumerate(typography.lines):
        line_text = flow_line.line.text
        if not line_text[0].isupper() or line_index in typography.contents_line_indexes:
            continue
        code_match = CODE_HEADING_PATTERN.fullmatch(line_text) or CODE_ALONE_PATTERN.fullmatch(
            line_text
        )
        synonym_match = None if code_match else match_synonym_heading(line_text)
        # Where paragraphs have no gaps between them, size alone sets a heading apart.
        if not (code_match or synonym_match) or not (
            typography.is_emphasised(line_index)
            and (
                typography.is_block_start(line_index)
                or (
                    typography.is_large_line(line_index)
                    and typography.is_after_sentence(line_index)
                )
            )
        ):
            continue
        if synonym_match:
            code_text = f"{synonym_match['word'].upper()} {synonym_match['number']}"
            code_parts_match = _SYNONYM_CODE_PATTERN.match(code_text)
        else:
            assert code_match is not None
            code_parts_match = _CODE_PARTS_PATTERN.match(code_match["number"])
        if code_parts_match:
            code_look = (
                flow_line.line.is_bold,
                round(flow_line.line.letter_height),
                code_parts_match["separator"],
            )
            yield _CodeLine(
                line_index, code_parts_match["letters"], code_parts_match["number"], code_look
            )


def match_synonym_heading(line_text: str) -> re.Match[str] | None:
    """Return the parts of `Strategy 9 – A new town`, or None."""
    # Few lines begin so, and a pattern takes longer to say so.
    if not line_text.startswith(_POLICY_SYNONYM_BEGINNINGS):
        return None
    return _SYNONYM_HEADING_PATTERN.fullmatch(line_text)


def is_above_monitoring_labels(typography: Typography, line_index: int) -> bool:
    """Return whether the text below a line says how a policy is measured, not what it is."""
    lines_below = typography.lines[line_index + 1 : line_index + 1 + _LINES_SEARCHED_FOR_MONITORING]
    return any(_MONITORING_LABEL_PATTERN.match(flow_line.line.text) for flow_line in lines_below)


def is_above_requirement(typography: Typography, line_index: int) -> bool:
    """Return whether the text below a line says what will be permitted or is required."""
    lines_below = typography.lines[
        line_index + 1 : line_index + 1 + _LINES_SEARCHED_FOR_REQUIREMENT
    ]
    return any(_REQUIREMENT_WORD_PATTERN.search(flow_line.line.text) for flow_line in lines_below)
