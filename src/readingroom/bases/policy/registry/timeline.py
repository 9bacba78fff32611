"""The rules of time: which revision is in force on a day, and what a change does to the others.

Plain functions on the revisions of one policy. They return the revisions that changed; the registry
writes them in one transaction.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from readingroom.bases.policy.errors import RevisionNotFound, RevisionOverlap, SoleRevision
from readingroom.bases.policy.registry.records import Reason, Revision, RevisionStatus
from readingroom.core.dates import day_before
from readingroom.core.errors import InvalidRequest

Revisions = Sequence[Revision]


def in_force(revisions: Revisions, day: date) -> Revision | Reason:
    """The revision in force on a day, or why there is none."""
    counting = [one for one in revisions if one.counts]
    if not counting:
        return "no_active_revision"
    begun = [one for one in counting if one.effective_from <= day]
    if not begun:
        return "date_before_first_revision"
    # Periods do not overlap, so nothing before the last one begun can reach this day.
    last = max(begun, key=_start)
    end = closing(last, revisions)
    return last if end is None or day <= end else "date_in_gap"


def closing(revision: Revision, revisions: Revisions) -> date | None:
    """The last day a revision is in force.

    A closing is recorded when the successor is created. While that successor is processing, or if
    it fails, the days go on as if it did not exist.
    """
    closer = _find(revisions, revision.closed_by)
    if closer is None or closer.counts:
        return revision.effective_to
    following = [
        one for one in revisions if one.counts and one.effective_from > revision.effective_from
    ]
    return day_before(min(following, key=_start).effective_from) if following else None


def successor(revision: Revision, revisions: Revisions) -> Revision | None:
    """The next revision that counts."""
    later = [one for one in revisions if one.counts and _start(one) > _start(revision)]
    return min(later, key=_start, default=None)


def nearest(revisions: Revisions, day: date) -> Revision | None:
    """The revision that counts and lies closest to a day on which none was in force."""

    def distance(one: Revision) -> int:
        ends = [one.effective_from, one.effective_to or one.effective_from]
        return min(abs((end - day).days) for end in ends)

    return min((one for one in revisions if one.counts), key=distance, default=None)


def new_id(source: str, start: date, taken: Iterable[str]) -> str:
    """`rev_NPPF_2024_12`; a second one in the same month has the day too."""
    known = set(taken)
    month = f"rev_{source}_{start:%Y_%m}"
    candidates = [month, f"{month}_{start:%d}"]
    candidates += [f"{month}_{start:%d}_{number}" for number in range(2, len(known) + 3)]
    return next(one for one in candidates if one not in known)


def create(revisions: Revisions, new: Revision) -> list[Revision]:
    """Add a revision: an open one before it is closed, any other overlap is refused."""
    changed = []
    for one in revisions:
        if one.effective_to is None and one.effective_from < new.effective_from:
            end = day_before(new.effective_from)
            changed.append(_with(one, effective_to=end, closed_by=new.revision_id))
        elif _overlap(one, new):
            raise _refusal(one, new)
    return [new, *changed]


def amend(revisions: Revisions, revision_id: str, values: dict[str, Any]) -> list[Revision]:
    """Change a revision's own fields. Its neighbours stay as they are; an overlap is refused."""
    before = find(revisions, revision_id)
    after = _with(before, **values)
    if "effective_to" in values:
        after = _with(after, closed_by=None)  # an end that was chosen, not one that followed
    if after.effective_to is not None and after.effective_to < after.effective_from:
        told = f"{revision_id} would end before it begins; change both days"
        raise InvalidRequest([{"field": "effective_to", "message": told}])
    others = [one for one in revisions if one.revision_id != revision_id]
    for one in others:
        if _overlap(one, after):
            raise _refusal(one, after)
    return _settled([*others, after], [after])


def finish(revisions: Revisions, revision_id: str, values: dict[str, Any]) -> list[Revision]:
    """A revision has its chunks: it counts from now on, and the statuses of all follow."""
    after = _with(find(revisions, revision_id), status=RevisionStatus.ACTIVE, **values)
    others = [one for one in revisions if one.revision_id != revision_id]
    return _settled([*others, after], [after])


def fail(revisions: Revisions, revision_id: str, why: str) -> list[Revision]:
    """A file could not be ingested; a revision that counts goes on with the chunks it has."""
    one = find(revisions, revision_id)
    return [_with(one, status=one.status if one.counts else RevisionStatus.FAILED, error=why)]


def retry(revisions: Revisions, revision_id: str) -> list[Revision]:
    """A revision that failed waits for its turn again."""
    one = find(revisions, revision_id)
    if one.status != RevisionStatus.FAILED:
        return []
    return [_with(one, status=RevisionStatus.PROCESSING, error=None)]


def delete(revisions: Revisions, revision_id: str) -> list[Revision]:
    """Take a revision away. One that never counted gives back the days it had closed."""
    gone = find(revisions, revision_id)
    others = [one for one in revisions if one.revision_id != revision_id]
    active = [one for one in revisions if one.status == RevisionStatus.ACTIVE]
    if active == [gone]:
        raise SoleRevision(
            f"{revision_id} is the only active revision of {gone.source}: "
            "add its successor first, or reindex it with another file"
        )
    closed = [one for one in others if one.closed_by == revision_id]
    if gone.counts:
        changed = [_with(one, closed_by=None) for one in closed]
    else:
        changed = [_closed_anew(one, others) for one in closed]
    kept = [one for one in others if one not in closed]
    return _settled([*kept, *changed], changed)


def find(revisions: Revisions, revision_id: str) -> Revision:
    found = _find(revisions, revision_id)
    if found is None:
        raise RevisionNotFound(
            f"There is no revision {revision_id[:120]!r}",
            valid_revisions=[one.revision_id for one in revisions],
        )
    return found


def _settled(revisions: Revisions, changed: list[Revision]) -> list[Revision]:
    """What changed, and every revision whose status is no longer right.

    The latest that counts is `active`; those before it are `superseded`.
    """
    counting = sorted((one for one in revisions if one.counts), key=_start)
    right = {one.revision_id: RevisionStatus.SUPERSEDED for one in counting[:-1]}
    right |= {one.revision_id: RevisionStatus.ACTIVE for one in counting[-1:]}
    known = {one.revision_id: one for one in revisions}
    result = {one.revision_id: one for one in changed}
    for revision_id, status in right.items():
        if known[revision_id].status != status:
            result[revision_id] = _with(known[revision_id], status=status)
    return list(result.values())


def _closed_anew(revision: Revision, others: Revisions) -> Revision:
    later = [one for one in others if _start(one) > _start(revision)]
    following = min(later, key=_start, default=None)
    if following is None:
        return _with(revision, effective_to=None, closed_by=None)
    end = day_before(following.effective_from)
    return _with(revision, effective_to=end, closed_by=following.revision_id)


def _overlap(one: Revision, other: Revision) -> bool:
    return _begins_within(one, other) or _begins_within(other, one)


def _begins_within(one: Revision, other: Revision) -> bool:
    if one.effective_from < other.effective_from:
        return False
    return other.effective_to is None or one.effective_from <= other.effective_to


def _refusal(one: Revision, new: Revision) -> RevisionOverlap:
    period = f"{one.effective_from} to {one.effective_to or 'now'}"
    return RevisionOverlap(
        f"{new.version_label!r} would overlap with {one.revision_id} ({period}, {one.status}); "
        "change the dates of one of them, or delete it",
        overlaps=one.revision_id,
    )


def _find(revisions: Revisions, revision_id: str | None) -> Revision | None:
    return next((one for one in revisions if one.revision_id == revision_id), None)


def _start(revision: Revision) -> date:
    return revision.effective_from


def _with(revision: Revision, **values: Any) -> Revision:
    return revision.model_copy(update=values)
