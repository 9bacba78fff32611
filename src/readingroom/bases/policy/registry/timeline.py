"""The rules of time: what a change to one revision does to the others of its policy.

Plain functions on the revisions of one policy. They return the revisions that changed; the registry
writes them in one transaction. Which revision is in force on a day is the resolver's to say.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import Any

from readingroom.bases.policy.errors import (
    RevisionBusy,
    RevisionNotFound,
    RevisionOverlap,
    SoleRevision,
)
from readingroom.bases.policy.registry.records import Revision, RevisionStatus
from readingroom.core.dates import get_day_before
from readingroom.core.errors import InvalidRequest

Revisions = Sequence[Revision]


# --- reading ---


def get_revision(revisions: Revisions, revision_id: str) -> Revision:
    """Return the revision of this id; raise `RevisionNotFound` naming those there are."""
    revision = _find_revision_by_id(revisions, revision_id)
    if revision is None:
        raise RevisionNotFound(
            f"There is no revision {revision_id[:120]!r}",
            valid_revisions=[revision.revision_id for revision in revisions],
        )
    return revision


def find_last_day(revision: Revision, revisions: Revisions) -> date | None:
    """Return the last day a revision is in force; None while that is open.

    Creating a successor sets the end of its predecessor at once. While that successor is
    processing, or if it fails, the predecessor stays in force as if it did not exist.
    """
    # No closer: the end was chosen by a person, and holds whatever the others do.
    closing_revision = _find_revision_by_id(revisions, revision.closed_by)
    if closing_revision is None or closing_revision.can_be_in_force:
        return revision.effective_to
    later_revision = find_successor(revision, revisions)
    return get_day_before(later_revision.effective_from) if later_revision else None


def find_listed_last_day(revision: Revision, revisions: Revisions) -> date | None:
    """Return the last day that lists tell; one that a failed revision set is not told."""
    closing_revision = _find_revision_by_id(revisions, revision.closed_by)
    if closing_revision is None or closing_revision.status != RevisionStatus.FAILED:
        return revision.effective_to
    return find_last_day(revision, revisions)


def find_successor(revision: Revision, revisions: Revisions) -> Revision | None:
    """Return the next revision that counts, if there is one."""
    return _find_next_revision(
        revision, [other_revision for other_revision in revisions if other_revision.can_be_in_force]
    )


def choose_revision_id(policy_slug: str, first_day: date, existing_ids: Iterable[str]) -> str:
    """Return `rev_NPPF_2024_12`; a second one in the same month has the day too."""
    used_ids = set(existing_ids)
    month_revision_id = f"rev_{policy_slug}_{first_day:%Y_%m}"
    candidate_ids = [month_revision_id, f"{month_revision_id}_{first_day:%d}"]
    # More candidates than ids in use, so that one of them is always free.
    candidate_ids += [
        f"{month_revision_id}_{first_day:%d}_{suffix_number}"
        for suffix_number in range(2, len(used_ids) + 3)
    ]
    return next(candidate_id for candidate_id in candidate_ids if candidate_id not in used_ids)


# --- changes ---


def split_failed(
    revisions: Revisions, incoming_revision: Revision, closes_open: bool
) -> tuple[list[Revision], list[str]]:
    """Return the revisions without failed ones on days that another wants, and the ids of those.

    A revision that failed has no days that count, so it never stands in the way. With
    `closes_open`, an open one that begins before the other is only ended by it.
    """
    remaining_revisions = [*revisions]
    if incoming_revision.stage is not None:
        return remaining_revisions, []
    failed_ids = [
        revision.revision_id
        for revision in revisions
        if revision.status == RevisionStatus.FAILED
        and revision.stage is None
        and revision.revision_id != incoming_revision.revision_id
        and not (closes_open and _is_closed_by(revision, incoming_revision))
        and _are_overlapping(revision, incoming_revision)
    ]
    for revision_id in failed_ids:
        changed_revisions_by_id = {
            changed_revision.revision_id: changed_revision
            for changed_revision in delete_revision(remaining_revisions, revision_id)
        }
        other_revisions = _exclude_revision(remaining_revisions, revision_id)
        remaining_revisions = [
            changed_revisions_by_id.get(revision.revision_id, revision)
            for revision in other_revisions
        ]
    return remaining_revisions, failed_ids


def replace_failed(
    revisions: Revisions,
    incoming_revision: Revision,
    failed_ids: Sequence[str],
    closes_open: bool,
    apply_rule: Callable[[Revisions], list[Revision]],
) -> tuple[list[Revision], Sequence[str]]:
    """Take the failed revisions away and apply a rule to the rest, as one change.

    Returns the revisions that changed, and the ids of those that are gone. Raises `RevisionBusy`
    if other revisions than these would have to give way by now.
    """
    remaining_revisions, conflicting_ids = split_failed(revisions, incoming_revision, closes_open)
    if conflicting_ids != list(failed_ids):
        raise RevisionBusy(f"Revisions of {incoming_revision.source} have just changed; try again")
    changed_revisions_by_id = {
        revision.revision_id: revision
        for revision in remaining_revisions
        if revision not in revisions
    }
    changed_revisions_by_id |= {
        revision.revision_id: revision for revision in apply_rule(remaining_revisions)
    }
    return list(changed_revisions_by_id.values()), failed_ids


def add_revision(revisions: Revisions, new_revision: Revision) -> list[Revision]:
    """Add a revision and close an open one before it.

    Raises:
        RevisionOverlap: it shares a day with another revision.
    """
    closed_revisions = []
    # A plan that is not adopted takes no days, neither its own nor those of others.
    if new_revision.stage is not None:
        return [new_revision]
    for revision in _exclude_emerging(revisions):
        if _is_closed_by(revision, new_revision):
            last_day = get_day_before(new_revision.effective_from)
            closed_revisions.append(
                _copy_revision_with(
                    revision, effective_to=last_day, closed_by=new_revision.revision_id
                )
            )
        elif _are_overlapping(revision, new_revision):
            raise _make_overlap_error(revision, new_revision)
    return [new_revision, *closed_revisions]


def amend_revision(
    revisions: Revisions, revision_id: str, changed_values: dict[str, Any]
) -> list[Revision]:
    """Change a revision's own fields; its neighbours keep their dates.

    Raises:
        RevisionNotFound: there is no such revision.
        InvalidRequest: it would end before it begins.
        RevisionOverlap: it would share a day with another revision.
    """
    amended_revision = _copy_revision_with(get_revision(revisions, revision_id), **changed_values)
    if "effective_to" in changed_values:
        # An end that somebody chose no longer depends on a successor.
        amended_revision = _copy_revision_with(amended_revision, closed_by=None)
    if (
        amended_revision.effective_to is not None
        and amended_revision.effective_to < amended_revision.effective_from
    ):
        error_message = f"{revision_id} would end before it begins; change both days"
        raise InvalidRequest([{"field": "effective_to", "message": error_message}])
    other_revisions = _exclude_revision(revisions, revision_id)
    for other_revision in [] if amended_revision.stage else _exclude_emerging(other_revisions):
        if _are_overlapping(other_revision, amended_revision):
            raise _make_overlap_error(other_revision, amended_revision)
    return _update_statuses([*other_revisions, amended_revision], [amended_revision])


def activate_revision(
    revisions: Revisions, revision_id: str, changed_values: dict[str, Any]
) -> list[Revision]:
    """Activate a revision whose chunks are stored; the statuses of the others follow."""
    revision = get_revision(revisions, revision_id)
    revision_status = RevisionStatus.EMERGING if revision.stage else RevisionStatus.ACTIVE
    active_revision = _copy_revision_with(revision, status=revision_status, **changed_values)
    return _update_statuses(
        [*_exclude_revision(revisions, revision_id), active_revision], [active_revision]
    )


def record_failure(revisions: Revisions, revision_id: str, error_message: str) -> list[Revision]:
    """Record why a file could not be ingested.

    A revision that counts keeps its status: it goes on answering from the chunks it has.
    """
    revision = get_revision(revisions, revision_id)
    # A failed reindex must not take a policy out of force.
    revision_status = revision.status if revision.is_readable else RevisionStatus.FAILED
    return [_copy_revision_with(revision, status=revision_status, error=error_message)]


def set_chunk_count(revisions: Revisions, revision_id: str, chunk_count: int) -> list[Revision]:
    """Return a revision with the number of its chunks; none if it is unknown."""
    return [
        revision.model_copy(update={"chunk_count": chunk_count})
        for revision in revisions
        if revision.revision_id == revision_id
    ]


def reopen_revision(revisions: Revisions, revision_id: str) -> list[Revision]:
    """Put a failed revision back to `processing`; leave any other as it is."""
    revision = get_revision(revisions, revision_id)
    if revision.status != RevisionStatus.FAILED:
        return []
    return [_copy_revision_with(revision, status=RevisionStatus.PROCESSING, error=None)]


def delete_revision(revisions: Revisions, revision_id: str) -> list[Revision]:
    """Take a revision away; one that never counted gives back the days it had closed.

    Raises:
        SoleRevision: it is the only active revision of its policy.
    """
    deleted_revision = get_revision(revisions, revision_id)
    other_revisions = _exclude_revision(revisions, revision_id)
    # A policy without any active revision would have nothing in force, silently.
    active_revisions = [
        revision for revision in revisions if revision.status == RevisionStatus.ACTIVE
    ]
    if active_revisions == [deleted_revision]:
        raise SoleRevision(
            f"{revision_id} is the only active revision of {deleted_revision.source}: "
            "add its successor first, or reindex it with another file"
        )
    closed_revisions = [
        revision for revision in other_revisions if revision.closed_by == revision_id
    ]
    # It was in force, so the end of its predecessor is history and stays.
    if deleted_revision.can_be_in_force:
        changed_revisions = [
            _copy_revision_with(revision, closed_by=None) for revision in closed_revisions
        ]
    else:
        changed_revisions = [
            _reopen_until_next(revision, other_revisions) for revision in closed_revisions
        ]
    unchanged_revisions = [
        revision for revision in other_revisions if revision not in closed_revisions
    ]
    return _update_statuses([*unchanged_revisions, *changed_revisions], changed_revisions)


# --- parts ---


def _update_statuses(revisions: Revisions, changed_revisions: list[Revision]) -> list[Revision]:
    """Return what changed, and every revision whose status has to follow.

    The latest that counts is `active`; those before it are `superseded`.
    """
    eligible_revisions = sorted(
        (revision for revision in revisions if revision.can_be_in_force), key=_get_first_day
    )
    changed_revisions_by_id = {revision.revision_id: revision for revision in changed_revisions}
    for revision in eligible_revisions:
        is_latest = revision is eligible_revisions[-1]
        revision_status = RevisionStatus.ACTIVE if is_latest else RevisionStatus.SUPERSEDED
        if revision.status != revision_status:
            changed_revisions_by_id[revision.revision_id] = _copy_revision_with(
                revision, status=revision_status
            )
    return list(changed_revisions_by_id.values())


def _reopen_until_next(revision: Revision, other_revisions: Revisions) -> Revision:
    following_revision = _find_next_revision(revision, _exclude_emerging(other_revisions))
    if following_revision is None:
        return _copy_revision_with(revision, effective_to=None, closed_by=None)
    last_day = get_day_before(following_revision.effective_from)
    return _copy_revision_with(
        revision, effective_to=last_day, closed_by=following_revision.revision_id
    )


def _is_closed_by(revision: Revision, new_revision: Revision) -> bool:
    """Whether a revision is open, and begins before a new one, which then ends it."""
    return revision.effective_to is None and (revision.effective_from < new_revision.effective_from)


def _are_overlapping(revision: Revision, other_revision: Revision) -> bool:
    return _is_beginning_within(revision, other_revision) or _is_beginning_within(
        other_revision, revision
    )


def _is_beginning_within(revision: Revision, enclosing_revision: Revision) -> bool:
    if revision.effective_from < enclosing_revision.effective_from:
        return False
    return (
        enclosing_revision.effective_to is None
        or revision.effective_from <= enclosing_revision.effective_to
    )


def _make_overlap_error(existing_revision: Revision, new_revision: Revision) -> RevisionOverlap:
    """Return an error that says which days collide, and what to do about it."""
    policy_slug, existing_revision_id = existing_revision.source, existing_revision.revision_id
    period_text = f"{existing_revision.effective_from} to {existing_revision.effective_to or 'now'}"
    command_prefix = "readingroom policy"
    if new_revision.effective_from < existing_revision.effective_from:
        remedy_text = f"end this one by {get_day_before(existing_revision.effective_from)} (--to)"
    elif new_revision.effective_from > existing_revision.effective_from:
        last_day = get_day_before(new_revision.effective_from)
        remedy_text = (
            f"end that one first ({command_prefix} dates {policy_slug} {existing_revision_id} "
            f"--to {last_day})"
        )
    else:
        remedy_text = (
            f"give this one other days, or that one ({command_prefix} dates {policy_slug} "
            f"{existing_revision_id})"
        )
    return RevisionOverlap(
        f"{new_revision.version_label!r} would overlap with {existing_revision_id} ({period_text}, "
        f"{existing_revision.status}): {remedy_text}, or delete that one "
        f"({command_prefix} delete {policy_slug} {existing_revision_id})",
        overlaps=existing_revision_id,
    )


def _find_next_revision(revision: Revision, other_revisions: Revisions) -> Revision | None:
    later_revisions = [
        other_revision
        for other_revision in other_revisions
        if _get_first_day(other_revision) > _get_first_day(revision)
    ]
    return min(later_revisions, key=_get_first_day, default=None)


def _exclude_emerging(revisions: Revisions) -> list[Revision]:
    return [revision for revision in revisions if revision.stage is None]


def _exclude_revision(revisions: Revisions, revision_id: str) -> list[Revision]:
    return [revision for revision in revisions if revision.revision_id != revision_id]


def _find_revision_by_id(revisions: Revisions, revision_id: str | None) -> Revision | None:
    return next((revision for revision in revisions if revision.revision_id == revision_id), None)


def _get_first_day(revision: Revision) -> date:
    return revision.effective_from


def _copy_revision_with(revision: Revision, **changed_values: Any) -> Revision:
    return revision.model_copy(update=changed_values)
