"""The codes by which plans name their policies: `LP5`, `H-1`, `7.3 (b)`, and headings with them."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from readingroom.ingest.structure.headings import TITLE_PATTERN
from readingroom.ingest.structure.typography import Typography

# Codes as plans write them: LP5, BSC 1, DM3.2, H-1, S/12, H.4, ESD13a, AR-UA-ST1.
_CODE = r"[A-Z]{1,6}(?:[/-][A-Z]{1,5})*[ ./-]?\d{1,3}(?:\.\d{1,2})?[A-Za-z]?"
_KIND_WORDS = (
    r"(?:Core|Strategic|Non-Strategic|Local|Site|Area|Place|Development|Management|Draft|Detailed"
    r"|Allocations?|CORE|STRATEGIC|NON-STRATEGIC|LOCAL|SITE|AREA|PLACE|DEVELOPMENT|MANAGEMENT|DRAFT"
    r"|DETAILED|ALLOCATIONS?)"
)
_SITE_WORDS = r"(?:Site|SITE)"
_POLICY_WORDS = rf"(?:{_KIND_WORDS}\s+)*(?:Policy|POLICY)|(?:Site |SITE )?(?:Allocation|ALLOCATION)"
_TOPIC_WORDS = (
    r"(?i:housing|employment|environment(?:al)?|transport|design|retail|econom(?:y|ic)|heritage"
    r"|infrastructure|community|general|spatial|delivery|neighbourhood|planning|rural|urban)"
)
POLICY_HEADING = re.compile(
    rf"(?:(?P<topic>{_TOPIC_WORDS})\s+)?(?P<word>{_POLICY_WORDS})\s+(?:(?i:no\.?|number)\s+)?"
    rf"(?P<number>{_CODE}|(?:[A-Z][a-z]+ ){{1,3}}\d{{1,3}}|[A-Z]{{2,6}} [A-Z]{{1,4}}\d{{1,3}}"
    rf"|\d{{1,3}}(?:\.\d{{1,2}})?(?:[A-Z]|\s?\([a-z]\))?|[A-Z](?=\s*[:–—-]))"
    # Two policies may share a number.
    rf"(?P<part>\s+(?:Part|PART)\s+[A-Z](?=\s+[A-Z]|\s*[:–—-]|$))?"
    # What kind of policy it is may stand between its code and its title.
    rf"(?![\w/])(?:\s*\((?i:cont)(?s:.*)|(?:\s*\([A-Za-z -]{{5,30}}\))?{TITLE_PATTERN})"
)
_CODE_OF_NO_POLICY = (
    r"(?!(?:ANNEX|PART|TABLE|BOX|STEP|NOTE|PHASE|STAGE|ZONE|FIGURE|MAP|PPS|PPG|MPS)\b)"
)
CODE_HEADING = re.compile(
    rf"{_CODE_OF_NO_POLICY}"
    rf"(?P<number>{_CODE})(?:\s*[:–—-]\s*|\s+)(?P<title>[A-Z“‘](?s:.*))"
)
SITE_HEADING = re.compile(
    rf"(?P<word>{_SITE_WORDS})\s+(?P<number>(?:{_CODE}|\d{{1,3}}[A-Z]?)(?:\s?\([a-z]\))?)(?![\w/])"
    rf"{TITLE_PATTERN}"
)
CODE_ALONE = re.compile(rf"{_CODE_OF_NO_POLICY}(?P<number>{_CODE})")
_MENTION = re.compile(r"\b[Pp]olic(?:y|ies)\s+([A-Z]{1,6})[ ./-]?\d")

_CODE_PARTS = re.compile(r"(?P<letters>[A-Z]+(?:[/-][A-Z]+)*)(?P<separator>[ ./-]?)(?P<number>\d+)")
_LETTERS = re.compile(r"[A-Z]+")
_RULING_WORD = re.compile(
    r"\b(?:will|shall|must|should|permitted|required|refused|supported|resisted|allocated)\b"
)
_PLAN_WORD = re.compile(r"\b(?:plan|strategy|policies|framework)\b", re.IGNORECASE)
_POLICY_WORD = re.compile(r"\bpolic(?:y|ies)\b", re.IGNORECASE)
_TITLE_PAGES = 2
# Of codes of one look without "Policy", and of that word in the text: with fewer they are others'.
_MIN_FAMILY_CODES = 4
_MIN_POLICY_WORDS = 3
# Lines below a code in which a policy says what will be permitted.
_RULED_LINES = 12


def find_named_prefixes(document_text: str) -> set[str]:
    """Return the letters of the codes that the text calls policies: `HOU` of `Policy HOU2`."""
    return {mention_match[1] for mention_match in _MENTION.finditer(document_text)}


def get_prefix(policy_code: str) -> str:
    """Return the letters that a code begins with; "" where it begins with none."""
    letters_match = _LETTERS.match(policy_code)
    return letters_match[0] if letters_match else ""


CodeLook = tuple[bool, int]
"""Whether the line of a code is bold, and its size."""


@dataclass(frozen=True, slots=True)
class _CodeLine:
    """A line that stands out and begins with a code."""

    line_index: int
    letters: str
    number: int
    look: tuple[bool, int, str]
    """Whether it is bold, its size, and what stands between letters and number."""


def find_family_prefixes(typography: Typography, document_text: str) -> dict[str, set[CodeLook]]:
    """Return the letters of codes that head a plan's rules without the word "Policy", with looks.

    Such codes look alike, count from one, and the text below them says what will be permitted.
    """
    opening_text = " ".join(
        flow_line.line.text for flow_line in typography.lines if flow_line.page <= _TITLE_PAGES
    )
    is_plan = _PLAN_WORD.search(opening_text[:5_000]) is not None
    if not is_plan or len(_POLICY_WORD.findall(document_text)) < _MIN_POLICY_WORDS:
        return {}
    lines_by_look: defaultdict[tuple[bool, int, str], list[_CodeLine]] = defaultdict(list)
    for code_line in _iterate_code_lines(typography):
        lines_by_look[code_line.look].append(code_line)
    looks_by_prefix: defaultdict[str, set[CodeLook]] = defaultdict(set)
    for (is_bold, size, _), code_lines in lines_by_look.items():
        first_letters = {code_line.letters for code_line in code_lines if code_line.number == 1}
        family_lines = [code_line for code_line in code_lines if code_line.letters in first_letters]
        codes = {(code_line.letters, code_line.number) for code_line in family_lines}
        ruling_codes = {
            (code_line.letters, code_line.number)
            for code_line in family_lines
            if _is_followed_by_rule(typography, code_line.line_index)
        }
        if len(codes) >= _MIN_FAMILY_CODES and 3 * len(ruling_codes) >= 2 * len(codes):
            for letters, _ in codes:
                looks_by_prefix[get_prefix(letters)].add((is_bold, size))
    return looks_by_prefix


def is_listed(code_prefix: str, contents_text: str) -> bool:
    """Return whether the contents of a plan list codes that begin with these letters."""
    code_pattern = rf"\b{re.escape(code_prefix)}[ ./-]?(\d{{1,3}})(?!\w)"
    return len({*re.findall(code_pattern, contents_text)}) >= _MIN_FAMILY_CODES


def find_site_lines(typography: Typography) -> set[int]:
    """Return the headings `Site H1(a)` of a plan that says below them what may be built there."""
    numbers_by_line = {
        line_index: site_match["number"]
        for line_index, flow_line in enumerate(typography.lines)
        if line_index not in typography.contents_lines
        and not (flow_line.box and flow_line.box.is_grid)
        and (site_match := SITE_HEADING.fullmatch(flow_line.line.text))
        and typography.is_heading(line_index)
        and typography.stands_out(line_index)
    }
    ruled_lines = {
        line_index for line_index in numbers_by_line if _is_followed_by_rule(typography, line_index)
    }
    ruled_numbers = {numbers_by_line[line_index] for line_index in ruled_lines}
    site_numbers = {*numbers_by_line.values()}
    is_family = len(ruled_numbers) >= _MIN_FAMILY_CODES and 3 * len(ruled_numbers) >= 2 * len(
        site_numbers
    )
    return {*numbers_by_line} if is_family else set()


def _iterate_code_lines(typography: Typography) -> Iterator[_CodeLine]:
    for line_index, flow_line in enumerate(typography.lines):
        line_text = flow_line.line.text
        if not line_text[0].isupper() or line_index in typography.contents_lines:
            continue
        code_match = CODE_HEADING.fullmatch(line_text) or CODE_ALONE.fullmatch(line_text)
        if code_match is None or not (
            typography.stands_out(line_index) and typography.begins_block(line_index)
        ):
            continue
        code_parts = _CODE_PARTS.match(code_match["number"])
        if code_parts:
            look = (flow_line.line.is_bold, round(flow_line.line.size), code_parts["separator"])
            yield _CodeLine(line_index, code_parts["letters"], int(code_parts["number"]), look)


def _is_followed_by_rule(typography: Typography, line_index: int) -> bool:
    """Return whether the text below a line says what will be permitted or is required."""
    lines_below = typography.lines[line_index + 1 : line_index + 1 + _RULED_LINES]
    return any(_RULING_WORD.search(flow_line.line.text) for flow_line in lines_below)
