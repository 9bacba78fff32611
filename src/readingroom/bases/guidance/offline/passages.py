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
from readingroom.bases.guidance.pages.values import find_text
from readingroom.engine.chunking import split_into_spans

_MAX_PASSAGE_CHARS = 700
_MAX_HEADINGS_CHARS = 500  # an encoder reads about as much
# Sections that this server adds to a text; they name things and explain none.
_UNSEARCHED_HEADINGS = frozenset({"Updates to this page", "Abbreviations", "Attachments"})


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a page's text: where it is, the heading it stands under, and what is searched."""

    start_offset: int
    end_offset: int
    heading: str
    anchor: str
    searched_text: str


def cut_passages(govuk_page: GovukPage) -> list[Passage]:
    """Return the passages of a page, in order; each lies in one section.

    The last is the first once more, searched by what the page says of itself.
    """
    page_text = govuk_page.text
    section_spans = list_sections(page_text, govuk_page.anchors)
    passages = []
    for section_span, group_start_offset, group_end_offset in _group_blocks(
        page_text, section_spans
    ):
        section_heading = section_span.heading if section_span else ""
        for passage_span in split_into_spans(
            page_text[group_start_offset:group_end_offset], _MAX_PASSAGE_CHARS, 100
        ):
            plain_passage_text = to_plain_text(
                passage_span.cut_from(page_text[group_start_offset:group_end_offset])
            )
            # The title and the heading say what a passage is about, which its own words may not.
            heading_context = " – ".join(
                dict.fromkeys(filter(None, [govuk_page.title, section_heading]))
            )
            passages.append(
                Passage(
                    group_start_offset + passage_span.start_offset,
                    group_start_offset + passage_span.end_offset,
                    section_heading,
                    (section_span.anchor if section_span else None) or "",
                    f"{heading_context}\n{plain_passage_text}",
                )
            )
    if passages:
        # What the page as a whole is about, for questions that share no word with one passage.
        passages.append(
            replace(passages[0], searched_text=_describe_page(govuk_page, section_spans))
        )
    return passages


def _describe_page(govuk_page: GovukPage, section_spans: Sequence[SectionSpan]) -> str:
    """Return what a page says of itself: its title, its summary and its headings."""
    page_summary = find_text(govuk_page.content.get("description")) or ""
    section_headings = [
        section_span.heading
        for section_span in section_spans
        if section_span.heading not in (*_UNSEARCHED_HEADINGS, govuk_page.title)
    ]
    return (
        f"{govuk_page.title}\n{page_summary}\n{'; '.join(section_headings)[:_MAX_HEADINGS_CHARS]}"
    )


def _group_blocks(
    page_text: str, section_spans: list[SectionSpan]
) -> Iterator[tuple[SectionSpan | None, int, int]]:
    """Yield stretches of whole blocks that lie in one section, each about as long as a passage."""
    current_group: tuple[SectionSpan | None, int, int] | None = None
    for block_start_offset, block_text in split_blocks(page_text):
        block_end_offset = block_start_offset + len(block_text)
        section_span = find_enclosing_section(section_spans, block_start_offset)
        if block_text.startswith("#") or (
            section_span and section_span.heading in _UNSEARCHED_HEADINGS
        ):
            continue
        is_group_continued = (
            current_group is not None
            and current_group[0] == section_span
            and block_end_offset - current_group[1] <= _MAX_PASSAGE_CHARS
        )
        if current_group is not None and is_group_continued:
            current_group = (section_span, current_group[1], block_end_offset)
            continue
        if current_group is not None:
            yield current_group
        current_group = (section_span, block_start_offset, block_end_offset)
    if current_group is not None:
        yield current_group
