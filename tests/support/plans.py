"""Sections that were noted while reading real plans, and how those of a document compare."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readingroom.engine.chunking import Span, find_page_numbers
from readingroom.ingest.document import Document

NOTES = Path(__file__).parents[1] / "fixtures" / "plan_sections.tsv"
_MADE_PLANS = Path(__file__).parents[1] / "fixtures" / "plans"
COUNCIL_PLANS = {
    path.stem: path
    for folder in (
        "councils",
        "districts",
        "parishes",
        "boroughs",
        "counties",
        "unitaries",
        "cities",
    )
    for path in _MADE_PLANS.glob(f"{folder}/*.pdf")
}
"""Plans by writers who had not seen the code, each beside what they noted of its policies."""
# Not a line of the text that happens to end in the word.
_CONTINUED = re.compile(r"(?:[^a-z\s].{0,100})?\b(?i:continued)\)?")
# After a year, only a full stop tells the mark from the number.
_FOOTNOTE_MARK = re.compile(
    r"(?<=[a-z)])([.,;:]?)\d{1,2}(?=[.,;:]?$)|(?<=^(?:19|20)\d\d)(\.)\d{1,2}$"
)
_DASH_ALONE = re.compile("[-–—]")

Verdict = Literal["exact", "stray", "wrong", "missing"]


@dataclass(frozen=True, slots=True)
class NotedSection:
    """A section of a plan as a reader noted it."""

    plan: str
    reference: str
    first_words: list[str]
    last_words: list[str]
    pages: list[int]
    word_count: int
    title: str = ""
    """Of a policy whose words were noted without its heading."""


def read_council_notes(plan: str) -> Iterator[NotedSection]:
    """Yield the policies of a plan that its writer noted, each without heading and footnotes."""
    notes_file = COUNCIL_PLANS[plan].with_name("policies.tsv")
    for line in notes_file.read_text("utf-8").splitlines()[1:]:
        name, reference, title, first, last, first_page, last_page, word_count = line.split("\t")
        if name == plan:
            pages = [*range(int(first_page), int(last_page) + 1)]
            yield NotedSection(
                plan, reference, first.split(), last.split(), pages, int(word_count), title
            )


def judge_council_policy(document: Document, noted: NotedSection) -> Verdict:
    """Say whether a section is a policy, whole and exact, below its heading and nothing else.

    Bullets, marks of footnotes and a printed "(continued)" do not count as words. A dash in the
    empty cell of a table may count or not.
    """
    spans = [
        section
        for section in document.sections
        if _fold_code(noted.reference) in map(_fold_code, section.path)
    ]
    if not spans:
        return "missing"
    words = [
        word
        for span in spans
        for word in _list_words(document.text[span.start_offset : span.end_offset])
    ]
    starts = [page.start_offset for page in document.pages]
    pages = sorted(
        {
            page
            for span in spans
            for page in find_page_numbers(
                trim(document, span.start_offset, span.end_offset), starts
            )
        }
    )
    first_words, last_words = (
        _list_words(" ".join(noted_words)) for noted_words in (noted.first_words, noted.last_words)
    )
    heading_length = _find_words(words[:60], first_words)
    if heading_length is None or _find_words(words, last_words) is None:
        return "wrong"
    # A badge or a margin may have the code before the title or after it.
    heading = sorted(_fold_code("".join(words[:heading_length])))
    word_count = len(words) - heading_length
    dash_count = sum(
        _DASH_ALONE.fullmatch(word) is not None
        for span in spans
        for line in document.text[span.start_offset : span.end_offset].splitlines()
        # One that begins a line is a bullet.
        for word in line.split()[1:]
    )
    is_long_enough = any(
        abs(counted_words - noted.word_count) <= max(4, 0.015 * noted.word_count)
        for counted_words in (word_count, word_count + dash_count)
    )
    if (
        heading == sorted(_fold_code(noted.reference + "".join(_list_words(noted.title))))
        and words[-len(last_words) :] == last_words
        and is_long_enough
        and pages == noted.pages
    ):
        return "exact"
    is_cut_short = word_count < noted.word_count and not is_long_enough
    return "wrong" if is_cut_short or word_count > 2 * noted.word_count + 20 else "stray"


def _list_words(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not _CONTINUED.fullmatch(line))
    words = (_FOOTNOTE_MARK.sub(r"\1\2", word) for line in lines for word in line.split())
    return [word for word in words if any(map(str.isalnum, word))]


def _find_words(words: list[str], wanted_words: list[str]) -> int | None:
    return next(
        (
            index
            for index in range(len(words) - len(wanted_words) + 1)
            if words[index : index + len(wanted_words)] == wanted_words
        ),
        None,
    )


def _fold_code(text: str) -> str:
    """Return the letters and digits of a reference, without the word "Policy" somewhere in it."""
    letters = "".join(character for character in text.casefold() if character.isalnum())
    return letters.replace("policy", "", 1)


def read_notes() -> Iterator[NotedSection]:
    for line in NOTES.read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        plan, reference, first, last, pages, word_count = line.split("\t")
        yield NotedSection(
            plan,
            reference,
            first.split(),
            last.split(),
            [int(page) for page in pages.split(",")],
            int(word_count),
        )


def judge_section(document: Document, noted: NotedSection) -> Verdict:
    """Say whether a section is whole and exact, has a stray head or tail, or is another text.

    White space in a code does not count: `CS 1` is `CS1`.
    """
    spans = [
        section for section in document.sections if fold(noted.reference) in map(fold, section.path)
    ]
    if not spans:
        return "missing"
    words = [
        word
        for span in spans
        for word in document.text[span.start_offset : span.end_offset].split()
    ]
    starts = [page.start_offset for page in document.pages]
    pages = sorted(
        {
            page
            for span in spans
            for page in find_page_numbers(
                trim(document, span.start_offset, span.end_offset), starts
            )
        }
    )
    has_first = words[:5] == noted.first_words
    has_last = words[-5:] == noted.last_words
    is_long_enough = abs(len(words) - noted.word_count) <= max(3, 0.03 * noted.word_count)
    if has_first and has_last and is_long_enough and pages == noted.pages:
        return "exact"
    shared = " ".join(noted.first_words) in " ".join(words[:40])
    is_there = shared and " ".join(noted.last_words) in " ".join(words)
    return "stray" if is_there and len(words) < 2 * noted.word_count + 20 else "wrong"


def trim(document: Document, start: int, end: int) -> Span:
    """Return a span without the white space around its text."""
    text = document.text[start:end]
    return Span(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def fold(reference: str) -> str:
    return reference.replace(" ", "").casefold()


def count_verdicts(verdicts: Iterable[Verdict]) -> Counter[Verdict]:
    return Counter(verdicts)
