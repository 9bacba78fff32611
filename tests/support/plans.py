"""Sections that were noted while reading real plans, and how those of a document compare."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readingroom.engine.chunking import Span, find_page_numbers
from readingroom.ingest.document import Document

NOTES = Path(__file__).parents[1] / "fixtures" / "plan_sections.tsv"

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
    words = [word for span in spans for word in document.text[span.start : span.end].split()]
    starts = [page.start for page in document.pages]
    pages = sorted(
        {
            page
            for span in spans
            for page in find_page_numbers(trim(document, span.start, span.end), starts)
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
