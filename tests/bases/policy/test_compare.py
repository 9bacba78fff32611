"""Two revisions compared: by likeness, so that a paragraph is followed through renumbering."""

import json
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest

from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare import diffs
from readingroom.bases.policy.compare.diffs import make_revision_diff
from readingroom.bases.policy.compare.likeness import (
    RevisionSection,
    list_revision_sections,
    pair_sections,
)
from readingroom.bases.policy.compare.passages import diff_words
from readingroom.bases.policy.models import ComparePolicyRevisions, NearestRevision, RevisionDiff
from readingroom.core.errors import InvalidCursor
from tests.requirements import requirement
from tests.support.growth import assert_grows_linearly
from tests.support.papers import typeset_framework
from tests.support.policy.base import make_policy_pdf
from tests.support.policy.chunks import read_chunks

PARAGRAPHS = [
    f"The council will look at {topic} with care, for {topic} matter to everybody who lives here "
    f"and the evidence on {topic} has been gathered over many years by people who know them well."
    for topic in ("homes", "trees", "roads", "schools", "shops", "rivers", "farms", "mills")
]


def compare(old: bytes, new: bytes, **asked: object) -> RevisionDiff:
    return compare_sections(
        list_revision_sections(read_chunks(old)), list_revision_sections(read_chunks(new)), **asked
    )


def compare_sections(
    old: list[RevisionSection], new: list[RevisionSection], **asked: object
) -> RevisionDiff:
    question = ComparePolicyRevisions.model_validate(
        {"source": "NPPF", "from_date": "2024-01-01", "to_date": "2025-01-01", **asked}
    )
    pairs = pair_sections(old, new)
    days = {"effective_from": date(2024, 1, 1), "effective_to": None}
    return make_revision_diff(
        question,
        pairs,
        NearestRevision(revision_id="old", version_label="Old", **days),
        NearestRevision(revision_id="new", version_label="New", **days),
    )


@requirement("policy:compare")
def test_a_paragraph_that_was_only_renumbered_is_moved_and_not_changed() -> None:
    added = "Bats have a paragraph of their own now, which nobody had thought of until this year."
    old = make_policy_pdf([("All", PARAGRAPHS)])
    new = make_policy_pdf([("All", [*PARAGRAPHS[:2], added, *PARAGRAPHS[2:5], *PARAGRAPHS[6:]])])

    diff = compare(old, new)

    changes = {
        (change.kind, change.from_section_ref, change.to_section_ref) for change in diff.changes
    }
    assert changes == {
        ("added", None, "Para 3"),
        ("removed", "Para 6", None),
        ("moved", "Para 3", "Para 4"),
        ("moved", "Para 4", "Para 5"),
        ("moved", "Para 5", "Para 6"),
    }
    assert all(change.diff == [] for change in diff.changes if change.kind == "moved")
    assert diff.summary.model_dump() == {
        "reworded": 0,
        "moved": 3,
        "moved_unchanged": 3,
        "added": 1,
        "removed": 1,
        "unchanged": 5,
    }


@requirement("policy:compare")
def test_a_paragraph_is_followed_when_it_is_moved_and_reworded() -> None:
    reworded = PARAGRAPHS[0].replace("with care", "with great care")
    old = make_policy_pdf([("All", PARAGRAPHS)])
    new = make_policy_pdf([("All", [*PARAGRAPHS[1:], reworded])])

    diff = compare(old, new)

    (change,) = [change for change in diff.changes if change.to_section_ref == "Para 8"]
    assert (change.kind, change.change, change.from_section_ref) == ("moved", "changed", "Para 1")
    assert [(part.op, part.text) for part in change.diff if part.text == "great"] == [
        ("insert", "great")
    ]


@requirement("policy:compare")
def test_numbers_of_footnotes_change_nothing() -> None:
    old = make_policy_pdf([("All", [text.replace("care,", "care12,") for text in PARAGRAPHS])])
    new = make_policy_pdf([("All", [text.replace("care,", "care13,") for text in PARAGRAPHS])])

    assert compare(old, new).changes == []


@requirement("policy:compare")
def test_pages_of_changes_together_are_all_of_them_once() -> None:
    old = make_policy_pdf([("All", PARAGRAPHS)])
    new = make_policy_pdf([("All", [text.replace("will", "may") for text in PARAGRAPHS])])

    whole = compare(old, new)
    refs: list[str] = []
    cursor = None
    while True:
        page = compare(old, new, limit=3, cursor=cursor)
        assert page.summary == whole.summary and page.changes_total == 8
        refs += [change.section_ref for change in page.changes]
        cursor = page.next_cursor
        if cursor is None:
            break

    assert refs == [change.section_ref for change in whole.changes]
    with pytest.raises(InvalidCursor):
        compare(old, new, cursor="3.abc")


def make_sections(texts: Iterable[str], first: int = 1) -> list[RevisionSection]:
    """Numbered paragraphs with these texts, as a revision has them."""
    chunks = []
    start = 0
    for number, text in enumerate(texts, first):
        chunk_text = f"{number}. {text}"
        end = start + len(chunk_text)
        place = ("NPPF", "rev_x", f"Para {number}", (), (1,), number, start, end)
        chunks.append(StoredChunk(f"c{number}", chunk_text, *place, "text_layer", (), start))
        start = end + 2
    return list_revision_sections(chunks)


@requirement("policy:compare")
def test_thousands_of_paragraphs_with_the_same_words_are_paired_in_no_time() -> None:
    def pair_equal_sections(count: int) -> None:
        old = make_sections(["Reserved."] * count)
        new = make_sections(["Reserved."] * count, first=count + 1)
        pairs = pair_sections(old, new)
        assert all(pair.change_kind == "moved" and pair.has_same_words for pair in pairs)

    assert_grows_linearly(pair_equal_sections, 2000)


@requirement("policy:compare")
def test_of_equal_paragraphs_that_of_the_same_number_comes_first() -> None:
    pairs = pair_sections(make_sections(["Reserved."] * 3), make_sections(["Reserved."] * 3, 2))
    refs = [
        (pair.old_section and pair.old_section.ref, pair.new_section and pair.new_section.ref)
        for pair in pairs
    ]
    assert refs == [("Para 2", "Para 2"), ("Para 3", "Para 3"), ("Para 1", "Para 4")]


@requirement("policy:compare")
def test_a_long_text_of_few_words_is_compared_by_sentences_or_as_a_whole() -> None:
    sentences = [f"a b a b {number}." for number in range(2000)]
    changed = [*sentences[:1000], "a b a c.", *sentences[1001:]]
    parts = diff_words(" ".join(sentences), " ".join(changed))
    assert [(part.op, part.text) for part in parts[1:3]] == [
        ("delete", sentences[1000]),
        ("insert", "a b a c."),
    ]
    assert [part.op for part in parts] == ["equal", "delete", "insert", "equal"]
    whole = diff_words("a b. " * 2000, "b a. " * 1000 + "a b. " * 1000)
    assert [part.op for part in whole] == ["delete", "insert"]


@requirement("policy:compare")
def test_a_page_of_changes_compares_a_bounded_number_of_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = make_sections(PARAGRAPHS)
    new = make_sections([text.replace("will", "may") for text in PARAGRAPHS])
    monkeypatch.setattr(diffs, "_MAX_COMPARED_WORDS", 150)
    refs: list[str] = []
    cursor = None
    while not refs or cursor:
        page = compare_sections(old, new, cursor=cursor)
        assert len(page.changes) == 2
        refs += [change.section_ref for change in page.changes]
        cursor = page.next_cursor
    assert refs == [f"Para {number}" for number in range(1, 9)]


@pytest.mark.data
@requirement("policy:compare")
def test_no_paragraph_of_the_framework_with_equal_words_is_shown_as_changed(
    shared_data: Path,
) -> None:
    markdown = (shared_data / "policy" / "NPPF_December_2024.md").read_text("utf-8")
    amended = markdown.replace(
        "\n116. ", "\n116. A new paragraph about nothing that was there.\n117. "
    )
    amended = _renumber(amended, markdown.index("\n116. "))

    diff = compare(typeset_framework(markdown), typeset_framework(amended), limit=500)

    assert {change.kind for change in diff.changes} == {"moved", "added"}
    assert all(change.change == "moved" for change in diff.changes if change.kind == "moved")
    assert [change.to_section_ref for change in diff.changes if change.kind == "added"] == [
        "Para 116"
    ]


def _renumber(markdown: str, offset: int) -> str:
    """Count the paragraphs after the new one up by one."""
    head, tail = markdown[:offset], markdown[offset:]
    body = tail.index("\n117. ") + 1

    def count_up(match: re.Match[str]) -> str:
        return f"{int(match[1]) + 1}. "

    first_line_end = tail.index("\n", body)
    return (
        head
        + tail[:first_line_end]
        + re.sub(r"(?m)^(\d{3})\. (?=\D)", count_up, tail[first_line_end:])
    )


@pytest.mark.data
@requirement("policy:compare")
def test_the_answer_on_two_very_different_frameworks_is_bounded(shared_data: Path) -> None:
    markdown = (shared_data / "policy" / "NPPF_December_2024.md").read_text("utf-8")
    draft = (shared_data / "policy" / "NPPF_Draft_December_2025.pdf").read_bytes()

    diff = compare(typeset_framework(markdown), draft, limit=500)

    assert len(json.dumps(diff.model_dump(mode="json"))) < 500_000
    assert diff.next_cursor is not None
    for change in diff.changes:
        inserted = " ".join(part.text for part in change.diff if part.op == "insert").split()
        deleted = " ".join(part.text for part in change.diff if part.op == "delete").split()
        assert not change.diff or inserted != deleted
