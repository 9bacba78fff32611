"""Revisions over time as pages show them: bars of a chart, and the days they were in force."""

import datetime as dt
from collections.abc import Sequence

from readingroom.bases.policy.admin_models import PolicyDetail, RevisionDetail
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.protocol.pages import PageLink
from readingroom.web.charts import Chart, GanttRow, GanttSpan, draw_gantt
from readingroom.web.templates import format_day, format_identifier


def can_be_in_force(revision: RevisionDetail) -> bool:
    """Whether a revision can be in force: it was read at least once."""
    return revision.status in (RevisionStatus.ACTIVE, RevisionStatus.SUPERSEDED)


def list_eligible_revisions(policy: PolicyDetail) -> list[RevisionDetail]:
    """Return the revisions that can be in force, the oldest first."""
    return [revision for revision in reversed(policy.revisions) if can_be_in_force(revision)]


def list_readable_revisions(policy: PolicyDetail) -> list[RevisionDetail]:
    """Return the revisions that were read, adopted or not, the oldest first."""
    return [
        revision
        for revision in reversed(policy.revisions)
        if can_be_in_force(revision) or revision.status == RevisionStatus.EMERGING
    ]


def list_revisions_by_status(
    policies: Sequence[PolicyDetail], *wanted_statuses: RevisionStatus
) -> list[RevisionDetail]:
    """Return the revisions of all policies that have one of these statuses."""
    return [
        revision
        for policy in policies
        for revision in policy.revisions
        if revision.status in wanted_statuses
    ]


def describe_period(first_day: dt.date, last_day: dt.date | None) -> str:
    """Return a sentence with the days on which a revision is in force."""
    if last_day is None:
        return f"In force from {format_day(first_day)} until further notice."
    return f"In force from {format_day(first_day)} to {format_day(last_day)}, both days included."


def determine_state_name(revision: RevisionDetail, today: dt.date) -> str:
    """Return what a revision is today: a class of the style sheet, and a key of `WORDS_BY_STATE`.

    The registry's own status tells the newest from those before it, whatever the day.
    """
    if not can_be_in_force(revision):
        return revision.status.value
    if revision.effective_from > today:
        return "coming"
    has_ended = revision.effective_to is not None and revision.effective_to < today
    return "superseded" if has_ended else "active"


WORDS_BY_STATE = {
    "active": "in force",
    "coming": "to come",
    "superseded": "no longer in force",
    "emerging": "not adopted",
    "processing": "being read",
    "failed": "failed",
}
"""What a revision is today, in words."""


def describe_last_day(revision: RevisionDetail, today: dt.date) -> str:
    """Return a revision's last day in force, or what is to be said in its place."""
    if revision.effective_to is not None:
        return format_day(revision.effective_to)
    return (
        "still in force"
        if determine_state_name(revision, today) == "active"
        else _describe_open_end(revision)
    )


def _describe_open_end(revision: RevisionDetail) -> str:
    if revision.status == RevisionStatus.EMERGING:
        return "in force on no day"
    return "until further notice"


def describe_revision(revision: RevisionDetail, today: dt.date) -> str:
    """Return a sentence that says when a revision is in force, or why it is not."""
    if revision.status == RevisionStatus.EMERGING:
        stage_text = format_identifier(revision.stage or "draft").lower()
        return f"Not adopted yet ({stage_text}): it is in force on no day."
    if not can_be_in_force(revision):
        return f"To be in force from {format_day(revision.effective_from)}, once it has been read."
    period_text = describe_period(revision.effective_from, revision.effective_to)
    return f"Not in force yet. {period_text}" if revision.effective_from > today else period_text


# --- charts ---


def make_gantt_row(policy: PolicyDetail, today: dt.date) -> GanttRow:
    """Return a policy as a line of a chart over time."""
    gantt_spans = [make_gantt_span(policy.source, revision, today) for revision in policy.revisions]
    return GanttRow(policy.title, gantt_spans, f"/policies/{policy.source}")


def make_gantt_span(
    policy_slug: str,
    revision: RevisionDetail,
    today: dt.date,
    status_class: str = "",
    span_note: str = "",
) -> GanttSpan:
    """Return a revision as a bar; `status_class` replaces its own, `span_note` is told of it."""
    state_name = determine_state_name(revision, today)
    is_still_open = state_name == "active" and revision.effective_to is None
    return GanttSpan(
        f"{policy_slug}, {revision.version_label}",
        revision.effective_from,
        revision.effective_to,
        status_class or state_name,
        f"/policies/{policy_slug}/{revision.revision_id}",
        span_note or WORDS_BY_STATE[state_name],
        open_end_label="" if is_still_open else _describe_open_end(revision),
    )


def draw_policy_chart(policy: PolicyDetail, asked_day: dt.date, today: dt.date) -> Chart:
    """Return a line for each revision of a policy, and which of them was in force on the day."""
    version_labels_in_force = [
        revision.version_label
        for revision in policy.revisions
        if can_be_in_force(revision)
        and revision.effective_from <= asked_day
        and (revision.effective_to is None or asked_day <= revision.effective_to)
    ]
    chart_finding_text = (
        f"On {format_day(asked_day)} the revision in force was {version_labels_in_force[0]}."
        if version_labels_in_force
        else f"On {format_day(asked_day)} no revision that was read here was in force."
    )
    gantt_rows = [
        GanttRow(
            revision.version_label,
            [make_gantt_span(policy.source, revision, today)],
            f"/policies/{policy.source}/{revision.revision_id}",
        )
        for revision in reversed(policy.revisions)
    ]
    return draw_gantt(
        gantt_rows,
        asked_day,
        chart_finding_text,
        make_day_address=lambda first_day: f"/policies/{policy.source}?date={first_day}",
    )


# --- ways from one revision to the next ---


def make_compare_address(
    policy_slug: str, older_revision: RevisionDetail, newer_revision: RevisionDetail
) -> str:
    """Return the address of the page that compares two revisions."""
    days_query = f"from={older_revision.effective_from}&to={newer_revision.effective_from}"
    return f"/policies/{policy_slug}/compare?{days_query}"


def make_change_links(policy: PolicyDetail, revision_id: str) -> list[PageLink]:
    """Return a link to what a revision changed, and to what the next one did."""
    eligible_revisions = list_eligible_revisions(policy)
    revision_ids = [revision.revision_id for revision in eligible_revisions]
    if revision_id not in revision_ids:
        return []
    revision_index = revision_ids.index(revision_id)
    labels_and_older_indexes = [
        ("What this revision changed", revision_index - 1),
        ("What the next one changed", revision_index),
    ]
    return [
        PageLink(
            link_label,
            make_compare_address(
                policy.source, eligible_revisions[older_index], eligible_revisions[older_index + 1]
            ),
        )
        for link_label, older_index in labels_and_older_indexes
        if 0 <= older_index < len(eligible_revisions) - 1
    ]


def find_successor(policy: PolicyDetail, revision_id: str) -> RevisionDetail | None:
    """Return the revision that replaced another; None where none has, or it was never in force."""
    eligible_revisions = list_eligible_revisions(policy)
    revision_ids = [revision.revision_id for revision in eligible_revisions]
    successor_index = revision_ids.index(revision_id) + 1 if revision_id in revision_ids else 0
    return (
        eligible_revisions[successor_index]
        if 0 < successor_index < len(eligible_revisions)
        else None
    )
