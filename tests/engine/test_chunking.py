"""Chunks lie where the contracts' splitter cuts, and know their offsets and pages."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_text_splitters import RecursiveCharacterTextSplitter

from readingroom.engine.chunking import CHUNK_SEPARATORS, Span, find_page_numbers, split_into_spans
from tests.requirements import requirement

# Prose in small: words, every separator, white space that is stripped but is no separator.
_PARTS = ("a", "bc", "water", "x" * 30, *CHUNK_SEPARATORS, "\t", "\u00a0", "\r\n", ".", "é")
_TEXTS = st.lists(st.sampled_from(_PARTS), max_size=120).map("".join)


def split_by_langchain(text: str, size: int, overlap: int) -> list[str]:
    return RecursiveCharacterTextSplitter(
        chunk_size=size,
        chunk_overlap=overlap,
        separators=[*CHUNK_SEPARATORS, ""],
        keep_separator="end",
    ).split_text(text)


@requirement("engine:chunking:cuts", "documents:chunks")
@settings(max_examples=400)
@given(_TEXTS, st.integers(2, 60), st.data())
def test_the_chunks_are_those_of_the_splitter_that_the_contracts_name(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))

    spans = split_into_spans(text, size, overlap)

    assert [span.cut_from(text) for span in spans] == split_by_langchain(text, size, overlap)


@requirement("engine:chunking:cuts")
@pytest.mark.data
def test_real_pages_are_cut_as_the_named_splitter_cuts_them(shared_data: Path) -> None:
    text = (shared_data / "retrieval/govuk/corpus.jsonl").read_text("utf-8")[:300_000]

    assert [span.cut_from(text) for span in split_into_spans(text)] == split_by_langchain(
        text, 800, 200
    )


@requirement("engine:chunking:offsets", "documents:chunks")
@settings(max_examples=300)
@given(_TEXTS, st.integers(1, 60), st.data())
def test_every_word_of_a_text_lies_in_a_chunk_and_no_chunk_is_too_long(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))

    spans = split_into_spans(text, size, overlap)

    assert all(
        0 < span.length <= size and span.cut_from(text).strip() == span.cut_from(text)
        for span in spans
    )
    assert spans == sorted(spans)
    covered = {place for span in spans for place in range(span.start_offset, span.end_offset)}
    assert all(place in covered or text[place].isspace() for place in range(len(text)))


@requirement("engine:chunking:offsets")
@settings(max_examples=200)
@given(_TEXTS, st.integers(2, 60), st.data())
def test_neighbours_share_no_more_than_the_overlap(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))

    spans = split_into_spans(text, size, overlap)

    pairs = pairwise(spans)
    assert all(left.end_offset - right.start_offset <= overlap for left, right in pairs)


@requirement("engine:chunking:cuts")
def test_a_separator_stays_at_the_end_of_the_chunk_before_it() -> None:
    text = "One is here. Two is here."

    assert [span.cut_from(text) for span in split_into_spans(text, 14, 0)] == [
        "One is here.",
        "Two is here.",
    ]


@requirement("engine:chunking:offsets")
@pytest.mark.parametrize("text", ["", " \n\n\t "])
def test_a_text_without_words_has_no_chunks(text: str) -> None:
    assert split_into_spans(text) == []


@requirement("engine:chunking:offsets")
def test_a_million_characters_without_a_space_are_cut_into_windows() -> None:
    spans = split_into_spans("x" * 1_000_000)

    assert spans[:2] == [Span(0, 800), Span(600, 1400)]
    assert spans[-1].end_offset == 1_000_000


@requirement("engine:chunking:offsets")
@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, -1)])
def test_a_size_that_cannot_hold_its_overlap_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="overlap"):
        split_into_spans("words", size, overlap)


@requirement("engine:chunking:pages")
@given(st.lists(st.text("ab. ", max_size=40), min_size=1, max_size=6))
def test_a_chunk_touches_the_pages_its_characters_came_from(pages: list[str]) -> None:
    starts = [len("".join(pages[:number])) for number in range(len(pages))]
    page_of = [number for number, page in enumerate(pages, 1) for _ in page]

    for span in split_into_spans("".join(pages), 20, 5):
        assert find_page_numbers(span, starts) == sorted(
            set(page_of[span.start_offset : span.end_offset])
        )


@requirement("engine:chunking:pages")
def test_an_empty_page_and_a_text_without_pages_are_touched_by_nothing() -> None:
    assert find_page_numbers(Span(0, 8), [0, 4, 4, 8]) == [1, 3]
    assert find_page_numbers(Span(0, 8), []) == []
