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

_MAX_PASSAGE_CHARS = 700
_MAX_HEADINGS_CHARS = 500  # an encoder reads about as much
# Sections that this server adds to a text; they name things and explain none.
_UNSEARCHED_HEADINGS = frozenset({"Updates to this page", "Abbreviations", "Attachments"})


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
    page_text = page.text
    sections = list_sections(page_text, page.anchors)
    passages = []
    for section, group_start, group_end in _group_blocks(page_text, sections):
        heading = section.heading if section else ""
        for passage_span in split(page_text[group_start:group_end], _MAX_PASSAGE_CHARS, 100):
            plain_passage = to_plain_text(passage_span.cut_from(page_text[group_start:group_end]))
            # The title and the heading say what a passage is about, which its own words may not.
            passage_context = " – ".join(dict.fromkeys(filter(None, [page.title, heading])))
            passages.append(
                Passage(
                    group_start + passage_span.start,
                    group_start + passage_span.end,
                    heading,
                    (section.anchor if section else None) or "",
                    f"{passage_context}\n{plain_passage}",
                )
            )
    if passages:
        # What the page as a whole is about, for questions that share no word with one passage.
        passages.append(replace(passages[0], searched_text=_describe_page(page, sections)))
    return passages


def _describe_page(page: GovukPage, sections: Sequence[SectionSpan]) -> str:
    """Return what a page says of itself: its title, its summary and its headings."""
    page_summary = read_text(page.content.get("description")) or ""
    headings = [
        section.heading
        for section in sections
        if section.heading not in (*_UNSEARCHED_HEADINGS, page.title)
    ]
    return f"{page.title}\n{page_summary}\n{'; '.join(headings)[:_MAX_HEADINGS_CHARS]}"


def _group_blocks(
    page_text: str, sections: list[SectionSpan]
) -> Iterator[tuple[SectionSpan | None, int, int]]:
    """Yield stretches of whole blocks that lie in one section, each about as long as a passage."""
    open_group: tuple[SectionSpan | None, int, int] | None = None
    for block_start, block_text in split_blocks(page_text):
        block_end = block_start + len(block_text)
        section = find_enclosing_section(sections, block_start)
        if block_text.startswith("#") or (section and section.heading in _UNSEARCHED_HEADINGS):
            continue
        is_continued = (
            open_group is not None
            and open_group[0] == section
            and block_end - open_group[1] <= _MAX_PASSAGE_CHARS
        )
        if open_group is not None and is_continued:
            open_group = (section, open_group[1], block_end)
            continue
        if open_group is not None:
            yield open_group
        open_group = (section, block_start, block_end)
    if open_group is not None:
        yield open_group
