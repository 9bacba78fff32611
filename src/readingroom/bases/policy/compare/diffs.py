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

_MAX_PAGE_CHARS = 200_000
"""Of all diffs on a page: clients end at events of a megabyte, and each text is sent twice."""
_MAX_DIFF_CHARS = 40_000
"""Of one diff; a chapter that was replaced as a whole is cut."""
_MAX_COMPARED_WORDS = 40_000
"""On a page: what is compared takes time, however short the diff is."""


def make_diff(
    question: ComparePolicyRevisions,
    pairs: Sequence[SectionPair],
    from_revision: NearestRevision,
    to_revision: NearestRevision,
) -> RevisionDiff:
    """Return the page of changes that a question asks for; raise `InvalidCursor`."""
    changed_pairs = [pair for pair in pairs if pair.kind is not None]
    fingerprint = _hash_question(question, from_revision, to_revision)
    offset = _parse_cursor(question.cursor, fingerprint)
    changes: list[SectionChange] = []
    page_chars = compared_words = 0
    for pair in changed_pairs[offset : offset + question.limit]:
        compared_words += pair.word_count
        if changes and compared_words > _MAX_COMPARED_WORDS:
            break
        change = _make_change(pair)
        page_chars += sum(len(part.text) for part in change.diff)
        # A page has at least one change, or a reader would never come to its end.
        if changes and page_chars > _MAX_PAGE_CHARS:
            break
        changes.append(change)
    end = offset + len(changes)
    return RevisionDiff(
        source=question.source,
        from_revision=from_revision,
        to_revision=to_revision,
        sections_compared=len(pairs),
        sections_unchanged=len(pairs) - len(changed_pairs),
        summary=_summarise(pairs),
        changes_total=len(changed_pairs),
        changes=changes,
        next_cursor=f"{end}.{fingerprint}" if end < len(changed_pairs) else None,
    )


def _make_change(pair: SectionPair) -> SectionChange:
    before, after, kind = pair.before, pair.after, pair.kind
    section = after or before
    assert section is not None and kind is not None
    changed_words: Literal["moved", "changed"] = "moved" if pair.has_same_words else "changed"
    diff = (
        []
        if pair.has_same_words
        else diff_words(before.text if before else "", after.text if after else "")
    )
    return SectionChange(
        section_ref=section.ref,
        change=kind if kind == "added" or kind == "removed" else changed_words,
        from_page=before.page if before else None,
        to_page=after.page if after else None,
        diff=_cut_diff(diff),
        kind=kind,
        from_section_ref=before.ref if before else None,
        to_section_ref=after.ref if after else None,
        section_title=section.title,
    )


def _cut_diff(diff: Sequence[DiffPart]) -> list[DiffPart]:
    """Return a diff of bounded length; what is cut off is told."""
    kept_parts: list[DiffPart] = []
    chars_left = _MAX_DIFF_CHARS
    for part in diff:
        if len(part.text) > chars_left:
            kept_parts.append(DiffPart(op=part.op, text=part.text[:chars_left] + " […]"))
            break
        kept_parts.append(part)
        chars_left -= len(part.text)
    return kept_parts


def _summarise(pairs: Sequence[SectionPair]) -> ChangeSummary:
    kinds = Counter(pair.kind for pair in pairs)
    return ChangeSummary(
        reworded=kinds["reworded"],
        moved=kinds["moved"],
        moved_unchanged=sum(pair.kind == "moved" and pair.has_same_words for pair in pairs),
        added=kinds["added"],
        removed=kinds["removed"],
        unchanged=kinds[None],
    )


def _parse_cursor(cursor: str | None, fingerprint: str) -> int:
    if cursor is None:
        return 0
    offset, _, cursor_fingerprint = cursor.partition(".")
    # isdecimal alone also accepts digits of other scripts, which nobody was given.
    if cursor_fingerprint != fingerprint or not offset.isascii() or not offset.isdecimal():
        raise InvalidCursor("This cursor does not belong to this comparison; start without one")
    return int(offset)


def _hash_question(
    question: ComparePolicyRevisions, from_revision: NearestRevision, to_revision: NearestRevision
) -> str:
    compared = (from_revision.revision_id, to_revision.revision_id, question.section_ref)
    return hashlib.sha256(repr(compared).encode()).hexdigest()[:12]
