"""Which revision was in force on a day: for one policy, for some, for all."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Reason, Revision
from readingroom.bases.policy.registry.store import PolicyRegistry


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is in force for one policy, or why nothing is."""

    source: str
    revision: Revision | None
    reason: Reason | None = None


class EffectiveDateResolver:
    """Answers from the registry alone: it is the source of truth for dates."""

    def __init__(self, registry: PolicyRegistry) -> None:
        self._registry = registry

    async def resolve_for_policy(self, source: str, day: date) -> Resolution:
        """The revision of one policy in force on a day."""
        await self._registry.policy(source)
        return _resolution(source, await self._registry.effective_revision(source, day))

    async def resolve_snapshot(
        self, day: date, sources: Iterable[str] | None = None
    ) -> dict[str, Resolution]:
        """The same for every policy, or for those named."""
        if sources is None:
            sources = [policy.source for policy in await self._registry.list_policies()]
        timelines = await self._registry.timelines(sources)
        return {
            source: _resolution(source, timeline.in_force(revisions, day))
            for source, revisions in timelines.items()
        }

    async def get_revision_ids_for_date(self, day: date) -> dict[str, str]:
        """Source to revision id, for the policies that have one in force."""
        snapshot = await self.resolve_snapshot(day)
        return {
            source: one.revision.revision_id for source, one in snapshot.items() if one.revision
        }

    async def validate_revision_for_date(self, source: str, revision_id: str, day: date) -> bool:
        """Whether this revision is the one in force on the day."""
        resolution = await self.resolve_for_policy(source, day)
        return resolution.revision is not None and resolution.revision.revision_id == revision_id


def _resolution(source: str, found: Revision | Reason) -> Resolution:
    if isinstance(found, Revision):
        return Resolution(source, found)
    return Resolution(source, None, found)
