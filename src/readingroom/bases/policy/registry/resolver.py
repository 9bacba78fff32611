"""Which revision was in force on a day: the one place that decides it.

Search, sections, comparisons, quotations, snapshots and REST all ask the resolver, so no two of
them can answer differently for the same day.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from readingroom.bases.policy.errors import RevisionNotFound
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.opening import AnyPolicyRegistry
from readingroom.bases.policy.registry.records import (
    NotInForceReason,
    Policy,
    Revision,
    RevisionStatus,
)

if TYPE_CHECKING:
    from readingroom.bases.policy.registry.store import Timeline


@dataclass(frozen=True, slots=True)
class PolicyOnDay:
    """The revision of one policy in force on a day, or the reason why there is none."""

    policy: Policy
    day: date
    timeline: Timeline
    """All revisions of the policy, newest first, as they were when the day was resolved."""
    revision: Revision | None
    reason: NotInForceReason | None

    @property
    def source(self) -> str:
        return self.policy.source

    @property
    def unread_revisions(self) -> list[Revision]:
        """The revisions that would be in force on the day, had their files been readable."""
        last_start_day = max(
            (
                revision.effective_from
                for revision in self.timeline
                if revision.can_be_in_force and revision.effective_from <= self.day
            ),
            default=date.min,
        )
        return [
            revision
            for revision in self.timeline
            if revision.status == RevisionStatus.FAILED
            and last_start_day < revision.effective_from <= self.day
            and self.day <= (timeline.find_last_day(revision, self.timeline) or date.max)
        ]

    def resolve_day(self, asked_day: date) -> PolicyOnDay:
        """Resolve another day against the same reading of the registry."""
        return _resolve_policy_on_day(self.policy, self.timeline, asked_day)

    def resolve_last_day(self, revision: Revision) -> PolicyOnDay:
        """Resolve the last day on which a revision is in force, at most the day of this one."""
        last_day = timeline.find_last_day(revision, self.timeline)
        return self.resolve_day(min(last_day or date.max, self.day))

    def require_revision(self) -> Revision:
        """Return the revision in force.

        Raises:
            RevisionNotFound: none was in force; the error names the reason and the nearest one.
        """
        if self.revision is not None:
            return self.revision
        nearest_revision = self.find_nearest_revision()
        emerging_revision_ids = [
            revision.revision_id
            for revision in self.timeline
            if revision.status == RevisionStatus.EMERGING
        ]
        unread_revision_ids = [revision.revision_id for revision in self.unread_revisions]
        raise RevisionNotFound(
            f"No revision of {self.source} was in force on {self.day}: {self.reason}"
            + (
                f"; not adopted, but here: {', '.join(emerging_revision_ids)}"
                if emerging_revision_ids
                else ""
            )
            + (
                f"; could not be read: {', '.join(unread_revision_ids)}"
                if unread_revision_ids
                else ""
            ),
            reason=self.reason,
            nearest=nearest_revision.revision_id if nearest_revision else None,
            use_tool="list_policy_revisions",
        )

    def find_nearest_revision(self) -> Revision | None:
        """Return the revision that begins or ends closest to the day, if any counts."""
        asked_day = self.day

        def count_days_away(revision: Revision) -> int:
            # An open end is no distance: such a revision is near only by its beginning.
            boundary_days = [
                revision.effective_from,
                revision.effective_to or revision.effective_from,
            ]
            return min(abs((boundary_day - asked_day).days) for boundary_day in boundary_days)

        eligible_revisions = (revision for revision in self.timeline if revision.can_be_in_force)
        return min(eligible_revisions, key=count_days_away, default=None)


class EffectiveDateResolver:
    """Resolves days from the registry, which is the source of truth for dates."""

    def __init__(self, policy_registry: AnyPolicyRegistry) -> None:
        self._registry = policy_registry

    async def resolve_for_policy(self, policy_slug: str, asked_day: date) -> PolicyOnDay:
        """Resolve a day for one policy; raise `PolicyNotFound` if it is not registered."""
        policy = await self._registry.get_policy(policy_slug)
        return _resolve_policy_on_day(
            policy, await self._registry.get_revisions(policy_slug), asked_day
        )

    async def resolve_snapshot(
        self, asked_day: date, policy_slugs: Collection[str] | None = None
    ) -> dict[str, PolicyOnDay]:
        """Resolve a day for every policy, or for those of `policy_slugs` that are registered."""
        policy_catalogue = await self._registry.read_catalogue()
        return {
            policy_slug: _resolve_policy_on_day(
                policy, policy_catalogue.timelines_by_slug[policy_slug], asked_day
            )
            for policy_slug, policy in policy_catalogue.policies_by_slug.items()
            if policy_slugs is None or policy_slug in policy_slugs
        }

    async def get_revision_ids_for_date(self, asked_day: date) -> dict[str, str]:
        """Return source → revision id for the policies that have a revision in force."""
        policies_on_day_by_slug = await self.resolve_snapshot(asked_day)
        return {
            policy_slug: policy_on_day.revision.revision_id
            for policy_slug, policy_on_day in policies_on_day_by_slug.items()
            if policy_on_day.revision
        }

    async def validate_revision_for_date(
        self, policy_slug: str, revision_id: str, asked_day: date
    ) -> bool:
        """Return whether this revision is the one in force on the day."""
        revision = (await self.resolve_for_policy(policy_slug, asked_day)).revision
        return revision is not None and revision.revision_id == revision_id


def _resolve_policy_on_day(policy: Policy, revisions: Timeline, asked_day: date) -> PolicyOnDay:
    def make_policy_without_revision(not_in_force_reason: NotInForceReason) -> PolicyOnDay:
        return PolicyOnDay(policy, asked_day, revisions, None, not_in_force_reason)

    eligible_revisions = [revision for revision in revisions if revision.can_be_in_force]
    if not eligible_revisions:
        return make_policy_without_revision("no_active_revision")
    started_revisions = [
        revision for revision in eligible_revisions if revision.effective_from <= asked_day
    ]
    if not started_revisions:
        return make_policy_without_revision("date_before_first_revision")
    # Periods do not overlap, so no revision before the last one to start can reach this day.
    latest_started_revision = max(started_revisions, key=lambda revision: revision.effective_from)
    last_day = timeline.find_last_day(latest_started_revision, revisions)
    if last_day is not None and asked_day > last_day:
        return make_policy_without_revision("date_in_gap")
    return PolicyOnDay(policy, asked_day, revisions, latest_started_revision, None)
