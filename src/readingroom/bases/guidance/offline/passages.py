"""Cuts the text of a page into passages that a search can find and a reader can place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.sections import (
    SectionSpan,
    find_enclosing_section,
    list_sections,
    split_blocks,
    to_plain_text,
)
from readingroom.bases.guidance.pages.values import read_text
from readingroom.engine.chunking import split

_PASSAGE_CHARS = 700
_MAX_HEADINGS_CHARS = 500  # an encoder reads about as much
# Sections that this server adds to a text; they name things and explain none.
_NOT_SEARCHED = frozenset({"Updates to this page", "Abbreviations", "Attachments"})


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a page's text: where it is, the heading it stands under, and what is searched."""

    start: int
    end: int
    heading: str
    anchor: str
    searched_text: str


def cut_passages(page: GovukPage) -> list[Passage]:
    """Return the passages of a page, in order; each lies in one section.

    The last is the first once more, searched by what the page says of itself.
    """
    text = page.text
    sections = list_sections(text, page.anchors)
    passages = []
    for section, start, end in _group_blocks(text, sections):
        heading = section.heading if section else ""
        for span in split(text[start:end], _PASSAGE_CHARS, 100):
            words = to_plain_text(span.of(text[start:end]))
            # The title and the heading say what a passage is about, which its own words may not.
            context = " – ".join(dict.fromkeys(filter(None, [page.title, heading])))
            passages.append(
                Passage(
                    start + span.start,
                    start + span.end,
                    heading,
                    (section.anchor if section else None) or "",
                    f"{context}\n{words}",
                )
            )
    if passages:
        # What the page as a whole is about, for questions that share no word with one passage.
        passages.append(replace(passages[0], searched_text=_describe_page(page, sections)))
    return passages


def _describe_page(page: GovukPage, sections: Sequence[SectionSpan]) -> str:
    """Return what a page says of itself: its title, its summary and its headings."""
    summary = read_text(page.content.get("description")) or ""
    headings = [
        section.heading
        for section in sections
        if section.heading not in (*_NOT_SEARCHED, page.title)
    ]
    return f"{page.title}\n{summary}\n{'; '.join(headings)[:_MAX_HEADINGS_CHARS]}"


def _group_blocks(
    text: str, sections: list[SectionSpan]
) -> Iterator[tuple[SectionSpan | None, int, int]]:
    """Yield stretches of whole blocks that lie in one section, each about as long as a passage."""
    current: tuple[SectionSpan | None, int, int] | None = None
    for start, block in split_blocks(text):
        end = start + len(block)
        section = find_enclosing_section(sections, start)
        if block.startswith("#") or (section and section.heading in _NOT_SEARCHED):
            continue
        is_continued = (
            current is not None and current[0] == section and end - current[1] <= _PASSAGE_CHARS
        )
        if current is not None and is_continued:
            current = (section, current[1], end)
            continue
        if current is not None:
            yield current
        current = (section, start, end)
    if current is not None:
        yield current
