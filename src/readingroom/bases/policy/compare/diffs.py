"""What changed between two revisions, as an answer: a summary first, then pages of bounded size."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from readingroom.bases.policy.compare.likeness import SectionPair
from readingroom.bases.policy.compare.passages import diff_words
from readingroom.bases.policy.models import (
    ChangeSummary,
    ComparePolicyRevisions,
    DiffPart,
    NearestRevision,
    RevisionDiff,
    SectionChange,
)
from readingroom.core.errors import InvalidCursor

ChangeName = Literal["added", "removed", "changed", "moved"]

_MAX_DIFF_PAGE_CHARS = 200_000
"""Of all diffs on a page: clients end at events of a megabyte, and each text is sent twice."""
_MAX_DIFF_CHARS = 40_000
"""Of one diff; a chapter that was replaced as a whole is cut."""
_MAX_COMPARED_WORDS = 40_000
"""On a page: what is compared takes time, however short the diff is."""


def make_revision_diff(
    arguments: ComparePolicyRevisions,
    section_pairs: Sequence[SectionPair],
    from_revision: NearestRevision,
    to_revision: NearestRevision,
    shows_whole_texts: bool = False,
) -> RevisionDiff:
    """Return the page of changes that a question asks for; raise `InvalidCursor`.

    Long runs of unchanged words are shortened, unless the texts are wanted whole.
    """
    changed_pairs = [
        section_pair for section_pair in section_pairs if section_pair.change_kind is not None
    ]
    arguments_digest = _hash_comparison_arguments(arguments, from_revision, to_revision)
    first_change_index = _parse_cursor(arguments.cursor, arguments_digest)
    section_changes: list[SectionChange] = []
    diff_char_count = compared_word_count = 0
    for section_pair in changed_pairs[first_change_index : first_change_index + arguments.limit]:
        compared_word_count += section_pair.word_count
        if section_changes and compared_word_count > _MAX_COMPARED_WORDS:
            break
        section_change = _make_section_change(section_pair, shows_whole_texts)
        diff_char_count += sum(len(diff_part.text) for diff_part in section_change.diff)
        # A page has at least one change, or a reader would never come to its end.
        if section_changes and diff_char_count > _MAX_DIFF_PAGE_CHARS:
            break
        section_changes.append(section_change)
    end_change_index = first_change_index + len(section_changes)
    return RevisionDiff(
        source=arguments.source,
        from_revision=from_revision,
        to_revision=to_revision,
        sections_compared=len(section_pairs),
        sections_unchanged=len(section_pairs) - len(changed_pairs),
        summary=count_changes(section_pairs),
        changes_total=len(changed_pairs),
        changes=section_changes,
        next_cursor=f"{end_change_index}.{arguments_digest}"
        if end_change_index < len(changed_pairs)
        else None,
    )


def _make_section_change(section_pair: SectionPair, shows_whole_texts: bool) -> SectionChange:
    old_section, new_section, change_kind = (
        section_pair.old_section,
        section_pair.new_section,
        section_pair.change_kind,
    )
    shown_section = new_section or old_section
    assert shown_section is not None and change_kind is not None
    diff_parts = (
        []
        if section_pair.has_same_words
        else diff_words(
            old_section.text if old_section else "",
            new_section.text if new_section else "",
            shows_whole_texts,
        )
    )
    return SectionChange(
        section_ref=shown_section.ref,
        change=find_change_name(section_pair) or "changed",
        from_page=old_section.page_number if old_section else None,
        to_page=new_section.page_number if new_section else None,
        diff=_shorten_diff(diff_parts),
        kind=change_kind,
        from_section_ref=old_section.ref if old_section else None,
        to_section_ref=new_section.ref if new_section else None,
        section_title=shown_section.title,
    )


def find_change_name(section_pair: SectionPair) -> ChangeName | None:
    """Return what a reader has to know of a section: a moved one may be reworded; None of none."""
    change_kind = section_pair.change_kind
    if change_kind is None or change_kind == "added" or change_kind == "removed":
        return change_kind
    return "moved" if section_pair.has_same_words else "changed"


def _shorten_diff(diff_parts: Sequence[DiffPart]) -> list[DiffPart]:
    """Return a diff of bounded length; what is cut off is told."""
    kept_diff_parts: list[DiffPart] = []
    chars_left = _MAX_DIFF_CHARS
    for diff_part in diff_parts:
        if len(diff_part.text) > chars_left:
            kept_diff_parts.append(
                DiffPart(op=diff_part.op, text=diff_part.text[:chars_left] + " […]")
            )
            break
        kept_diff_parts.append(diff_part)
        chars_left -= len(diff_part.text)
    return kept_diff_parts


def count_changes(section_pairs: Sequence[SectionPair]) -> ChangeSummary:
    """Return how many sections there are of each kind of change."""
    counts_by_change_kind = Counter(section_pair.change_kind for section_pair in section_pairs)
    return ChangeSummary(
        reworded=counts_by_change_kind["reworded"],
        moved=counts_by_change_kind["moved"],
        moved_unchanged=sum(
            section_pair.change_kind == "moved" and section_pair.has_same_words
            for section_pair in section_pairs
        ),
        added=counts_by_change_kind["added"],
        removed=counts_by_change_kind["removed"],
        unchanged=counts_by_change_kind[None],
    )


def _parse_cursor(page_cursor: str | None, arguments_digest: str) -> int:
    if page_cursor is None:
        return 0
    change_index_text, _, cursor_fingerprint = page_cursor.partition(".")
    # isdecimal alone also accepts digits of other scripts, which nobody was given.
    if (
        cursor_fingerprint != arguments_digest
        or not change_index_text.isascii()
        or not change_index_text.isdecimal()
    ):
        raise InvalidCursor("This cursor does not belong to this comparison; start without one")
    return int(change_index_text)


def _hash_comparison_arguments(
    arguments: ComparePolicyRevisions, from_revision: NearestRevision, to_revision: NearestRevision
) -> str:
    hashed_values = (from_revision.revision_id, to_revision.revision_id, arguments.section_ref)
    return hashlib.sha256(repr(hashed_values).encode()).hexdigest()[:12]
