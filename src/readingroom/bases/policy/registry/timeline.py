"""The rules of time: what a change to one revision does to the others of its policy.

Plain functions on the revisions of one policy. They return the revisions that changed; the registry
writes them in one transaction. Which revision is in force on a day is the resolver's to say.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any

from readingroom.bases.policy.errors import RevisionNotFound, RevisionOverlap, SoleRevision
from readingroom.bases.policy.registry.records import Revision, RevisionStatus
from readingroom.core.dates import day_before
from readingroom.core.errors import InvalidRequest

Revisions = Sequence[Revision]


# --- reading ---


def find_revision(revisions: Revisions, revision_id: str) -> Revision:
    """Return the revision of this id; raise `RevisionNotFound` naming those there are."""
    revision = _find(revisions, revision_id)
    if revision is None:
        raise RevisionNotFound(
            f"There is no revision {revision_id[:120]!r}",
            valid_revisions=[revision.revision_id for revision in revisions],
        )
    return revision


def last_day(revision: Revision, revisions: Revisions) -> date | None:
    """Return the last day a revision is in force; None while that is open.

    Creating a successor sets the end of its predecessor at once. While that successor is
    processing, or if it fails, the predecessor stays in force as if it did not exist.
    """
    # No closer: the end was chosen by a person, and holds whatever the others do.
    closer = _find(revisions, revision.closed_by)
    if closer is None or closer.counts:
        return revision.effective_to
    successor = find_successor(revision, revisions)
    return day_before(successor.effective_from) if successor else None


def find_successor(revision: Revision, revisions: Revisions) -> Revision | None:
    """Return the next revision that counts, if there is one."""
    return _first_after(revision, [other for other in revisions if other.counts])


def new_revision_id(source: str, start: date, existing_ids: Iterable[str]) -> str:
    """Return `rev_NPPF_2024_12`; a second one in the same month has the day too."""
    used = set(existing_ids)
    month = f"rev_{source}_{start:%Y_%m}"
    candidates = [month, f"{month}_{start:%d}"]
    # More candidates than ids in use, so that one of them is always free.
    candidates += [f"{month}_{start:%d}_{number}" for number in range(2, len(used) + 3)]
    return next(candidate for candidate in candidates if candidate not in used)


# --- changes ---


def create(revisions: Revisions, new: Revision) -> list[Revision]:
    """Add a revision and close an open one before it.

    Raises:
        RevisionOverlap: it shares a day with another revision.
    """
    changed = []
    for revision in revisions:
        if revision.effective_to is None and revision.effective_from < new.effective_from:
            end = day_before(new.effective_from)
            changed.append(_update(revision, effective_to=end, closed_by=new.revision_id))
        elif _overlaps(revision, new):
            raise _overlap_error(revision, new)
    return [new, *changed]


def amend(revisions: Revisions, revision_id: str, values: dict[str, Any]) -> list[Revision]:
    """Change a revision's own fields; its neighbours keep their dates.

    Raises:
        RevisionNotFound: there is no such revision.
        InvalidRequest: it would end before it begins.
        RevisionOverlap: it would share a day with another revision.
    """
    amended = _update(find_revision(revisions, revision_id), **values)
    if "effective_to" in values:
        # An end that somebody chose no longer depends on a successor.
        amended = _update(amended, closed_by=None)
    if amended.effective_to is not None and amended.effective_to < amended.effective_from:
        message = f"{revision_id} would end before it begins; change both days"
        raise InvalidRequest([{"field": "effective_to", "message": message}])
    others = _without(revisions, revision_id)
    for other in others:
        if _overlaps(other, amended):
            raise _overlap_error(other, amended)
    return _with_statuses([*others, amended], [amended])


def finish(revisions: Revisions, revision_id: str, values: dict[str, Any]) -> list[Revision]:
    """Activate a revision whose chunks are stored; the statuses of the others follow."""
    revision = find_revision(revisions, revision_id)
    finished = _update(revision, status=RevisionStatus.ACTIVE, **values)
    return _with_statuses([*_without(revisions, revision_id), finished], [finished])


def fail(revisions: Revisions, revision_id: str, error: str) -> list[Revision]:
    """Record why a file could not be ingested.

    A revision that counts keeps its status: it goes on answering from the chunks it has.
    """
    revision = find_revision(revisions, revision_id)
    # A failed reindex must not take a policy out of force.
    status = revision.status if revision.counts else RevisionStatus.FAILED
    return [_update(revision, status=status, error=error)]


def retry(revisions: Revisions, revision_id: str) -> list[Revision]:
    """Put a failed revision back to `processing`; leave any other as it is."""
    revision = find_revision(revisions, revision_id)
    if revision.status != RevisionStatus.FAILED:
        return []
    return [_update(revision, status=RevisionStatus.PROCESSING, error=None)]


def delete(revisions: Revisions, revision_id: str) -> list[Revision]:
    """Take a revision away; one that never counted gives back the days it had closed.

    Raises:
        SoleRevision: it is the only active revision of its policy.
    """
    deleted = find_revision(revisions, revision_id)
    others = _without(revisions, revision_id)
    # A policy without any active revision would have nothing in force, silently.
    active = [revision for revision in revisions if revision.status == RevisionStatus.ACTIVE]
    if active == [deleted]:
        raise SoleRevision(
            f"{revision_id} is the only active revision of {deleted.source}: "
            "add its successor first, or reindex it with another file"
        )
    closed = [revision for revision in others if revision.closed_by == revision_id]
    # It was in force, so the end of its predecessor is history and stays.
    if deleted.counts:
        changed = [_update(revision, closed_by=None) for revision in closed]
    else:
        changed = [_close_before_next(revision, others) for revision in closed]
    unchanged = [revision for revision in others if revision not in closed]
    return _with_statuses([*unchanged, *changed], changed)


# --- parts ---


def _with_statuses(revisions: Revisions, changed: list[Revision]) -> list[Revision]:
    """Return what changed, and every revision whose status has to follow.

    The latest that counts is `active`; those before it are `superseded`.
    """
    counting = sorted((revision for revision in revisions if revision.counts), key=_start)
    result = {revision.revision_id: revision for revision in changed}
    for revision in counting:
        is_latest = revision is counting[-1]
        status = RevisionStatus.ACTIVE if is_latest else RevisionStatus.SUPERSEDED
        if revision.status != status:
            result[revision.revision_id] = _update(revision, status=status)
    return list(result.values())


def _close_before_next(revision: Revision, others: Revisions) -> Revision:
    following = _first_after(revision, others)
    if following is None:
        return _update(revision, effective_to=None, closed_by=None)
    end = day_before(following.effective_from)
    return _update(revision, effective_to=end, closed_by=following.revision_id)


def _overlaps(revision: Revision, other: Revision) -> bool:
    return _begins_within(revision, other) or _begins_within(other, revision)


def _begins_within(revision: Revision, period: Revision) -> bool:
    if revision.effective_from < period.effective_from:
        return False
    return period.effective_to is None or revision.effective_from <= period.effective_to


def _overlap_error(existing: Revision, new: Revision) -> RevisionOverlap:
    period = f"{existing.effective_from} to {existing.effective_to or 'now'}"
    return RevisionOverlap(
        f"{new.version_label!r} would overlap with {existing.revision_id} "
        f"({period}, {existing.status}); change the dates of one of them, or delete it",
        overlaps=existing.revision_id,
    )


def _first_after(revision: Revision, others: Revisions) -> Revision | None:
    later = [other for other in others if _start(other) > _start(revision)]
    return min(later, key=_start, default=None)


def _without(revisions: Revisions, revision_id: str) -> list[Revision]:
    return [revision for revision in revisions if revision.revision_id != revision_id]


def _find(revisions: Revisions, revision_id: str | None) -> Revision | None:
    return next((item for item in revisions if item.revision_id == revision_id), None)


def _start(revision: Revision) -> date:
    return revision.effective_from


def _update(revision: Revision, **values: Any) -> Revision:
    return revision.model_copy(update=values)
