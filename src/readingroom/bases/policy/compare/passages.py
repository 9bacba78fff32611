"""Texts of policies: put together from chunks, and compared word by word."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from readingroom.bases.policy.chunks.joining import join_chunk_texts, list_printed_page_labels
from readingroom.bases.policy.chunks.references import fold_ref, index_by_folded_ref
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.models import DiffPart, ListedSection
from readingroom.bases.policy.registry.records import (
    Revision,
    format_citation,
    format_section_name,
)
from readingroom.core.text import compare_words, fold_dashes

_QUOTE_MARK_TRANSLATION = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
)
_WHITE_SPACE_PATTERN = re.compile(r"\s+")
_SHOWN_WORDS_PER_END = 12  # of a long unchanged run, at either end


def index_references(chunks: Iterable[StoredChunk]) -> dict[str, str]:
    """Return folded reference → reference as the document writes it, in reading order."""
    return index_by_folded_ref(
        section_ref
        for chunk in chunks
        for section_ref in filter(None, (*chunk.section_path, chunk.section_ref))
    )


def select_section_chunks(chunks: Iterable[StoredChunk], section_ref: str) -> list[StoredChunk]:
    """Return the chunks of a section and of the sections in it."""
    folded_ref = fold_ref(section_ref)
    return [
        chunk
        for chunk in chunks
        if folded_ref in map(fold_ref, (*chunk.section_path, chunk.section_ref))
    ]


def join_section_text(chunks: Sequence[StoredChunk]) -> str:
    """Return the text of a section; headings that only stand above it are left out."""
    return join_chunk_texts([*_remove_headings_above(chunks)])


def _remove_headings_above(chunks: Sequence[StoredChunk]) -> Iterator[StoredChunk]:
    previous_chunk_index: int | None = None
    for chunk in sorted(chunks, key=lambda chunk: chunk.chunk_index):
        # Inside a chapter, the headings above its paragraphs are part of it.
        if (
            chunk.own_start_offset > chunk.start_offset
            and chunk.chunk_index - 1 != previous_chunk_index
        ):
            yield replace(
                chunk, text=chunk.text_without_headings, start_offset=chunk.own_start_offset
            )
        else:
            yield chunk
        previous_chunk_index = chunk.chunk_index


def describe_nearest_sections(section_refs: Sequence[str], chunks: Sequence[StoredChunk]) -> str:
    """Return `; the nearest are Policy LP5: Housing Need, Para 3`, or "" where there are none."""
    titles_by_ref = {
        listed_section.section_ref: listed_section.section_title
        for listed_section in list_sections(chunks)
    }
    section_names = [
        format_section_name(section_ref, titles_by_ref.get(section_ref, ""))
        for section_ref in section_refs
    ]
    return f"; the nearest are {', '.join(section_names)}" if section_names else ""


def list_sections(chunks: Sequence[StoredChunk]) -> list[ListedSection]:
    """Return the sections in reading order, each with the page that it begins on."""
    listed_sections_by_ref: dict[str, ListedSection] = {}
    for chunk in chunks:
        # Of a section without a text of its own only the reference is known.
        for section_ref in filter(None, (*chunk.section_path, chunk.section_ref)):
            is_own_section = section_ref == chunk.section_ref
            if section_ref not in listed_sections_by_ref or (
                is_own_section and not listed_sections_by_ref[section_ref].section_title
            ):
                listed_sections_by_ref[section_ref] = ListedSection(
                    section_ref=section_ref,
                    section_title=chunk.section_title if is_own_section else "",
                    passage_kind=chunk.passage_kind,
                    page_number=listed_sections_by_ref[section_ref].page_number
                    if section_ref in listed_sections_by_ref
                    else chunk.page_number,
                    printed_page=chunk.printed_pages[0] if chunk.printed_pages else None,
                )
    return [*listed_sections_by_ref.values()]


def get_section_title(section_chunks: Sequence[StoredChunk], section_ref: str) -> str:
    """Return the title of a section, which its own chunks know; empty where it has none."""
    return next(
        (chunk.section_title for chunk in section_chunks if chunk.section_ref == section_ref), ""
    )


def group_chunks_by_section(chunks: Sequence[StoredChunk]) -> dict[str, list[StoredChunk]]:
    """Return the chunks that stand directly in each section, in reading order."""
    chunks_by_ref: dict[str, list[StoredChunk]] = {}
    for chunk in chunks:
        chunks_by_ref.setdefault(chunk.section_ref, []).append(chunk)
    return chunks_by_ref


def diff_words(old_text: str, new_text: str, shows_whole_texts: bool = False) -> list[DiffPart]:
    """Return the runs of words that are the same, deleted and inserted.

    Long runs that are the same are shortened, unless the texts are wanted whole.
    """
    return [
        DiffPart(
            op=diff_run.operation,
            text=diff_run.text
            if shows_whole_texts or diff_run.operation != "equal"
            else diff_run.shorten(_SHOWN_WORDS_PER_END, "[…]"),
        )
        for diff_run in compare_words(old_text, new_text)
    ]


def fold_text(raw_text: str, strips_blanks: bool = True) -> str:
    """Return text with plain dashes and quotation marks, single blanks and no capitals."""
    folded_text = _WHITE_SPACE_PATTERN.sub(
        " ", fold_dashes(raw_text).translate(_QUOTE_MARK_TRANSLATION)
    ).casefold()
    return folded_text.strip() if strips_blanks else folded_text


def cite_section(
    revision: Revision,
    section_ref: str,
    section_chunks: Sequence[StoredChunk],
    page_numbers: Sequence[int],
) -> str:
    """Return the citation of a whole section."""
    return format_citation(
        revision,
        section_ref,
        page_numbers,
        get_section_title(section_chunks, section_ref),
        section_chunks[0].kind_note if section_chunks[0].section_ref == section_ref else "",
        list_printed_page_labels(section_chunks, page_numbers),
    )
