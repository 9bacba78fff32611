"""The catalogue of policies and revisions, on the Redis protocol with the contract's keys.

Every change is one WATCH/MULTI transaction: the revisions of a policy are read, the rules of
`timeline` say what becomes of them, and it is written only if nobody else wrote in between.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from pydantic import BaseModel
from valkey.exceptions import ValkeyError, WatchError

from readingroom.bases.policy.errors import PolicyExists, PolicyNotFound
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, Reason, Revision
from readingroom.core.dates import days_since_epoch
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.keyvalue import KeyValues

ALL = "policies_all"
# Counted up in every transaction, so that a reader knows in one round trip that nothing changed.
_GENERATION = "readingroom:policy_generation"

Timeline = tuple[Revision, ...]
Plan = Callable[[Timeline], Sequence[Revision]]
_Record = TypeVar("_Record", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything at one moment: policies by slug, and the revisions of each, newest first."""

    generation: str | None
    policies: dict[str, Policy]
    timelines: dict[str, Timeline]


class PolicyRegistry:
    """What policies there are, and what became of each of their revisions."""

    def __init__(
        self, client: KeyValues, check: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """`check` is passed once, before anything is read or written."""
        self._client = client
        self._check = check
        self._read_last: Catalogue | None = None

    async def greet(self) -> None:
        """See that the server answers, and that it is the right one."""
        async with self._storage():
            await self._client.ping()

    async def catalogue(self) -> Catalogue:
        """All of it, read anew only when somebody has written."""
        async with self._storage():
            generation = await self._client.get(_GENERATION)
        # Read before the rest: what is written in between is read again the next time.
        if self._read_last is None or self._read_last.generation != generation:
            policies = {one.source: one for one in await self.list_policies()}
            self._read_last = Catalogue(generation, policies, await self.timelines(policies))
        return self._read_last

    async def create_policy(self, policy: Policy) -> None:
        """Register a policy; its slug must be free."""
        async with self._storage(), self._client.pipeline() as pipe:
            while True:
                try:
                    await pipe.watch(_policy(policy.source))
                    if await pipe.exists(_policy(policy.source)):
                        raise PolicyExists(
                            f"There is a policy {policy.source} already; add a revision to it"
                        )
                    pipe.multi()
                    pipe.hset(_policy(policy.source), mapping=_written(policy))
                    pipe.sadd(ALL, policy.source)
                    pipe.incr(_GENERATION)
                    await pipe.execute()
                    return
                except WatchError:
                    continue

    async def update_policy(self, policy: Policy) -> None:
        async with self._storage(), self._client.pipeline() as pipe:
            pipe.hset(_policy(policy.source), mapping=_written(policy))
            pipe.incr(_GENERATION)
            await pipe.execute()

    async def fill(self, policies: Iterable[Policy], revisions: Iterable[Revision]) -> None:
        """Write all of a catalogue at once, as it was elsewhere."""
        async with self._storage(), self._client.pipeline() as pipe:
            for policy in policies:
                pipe.hset(_policy(policy.source), mapping=_written(policy))
                pipe.sadd(ALL, policy.source)
            for revision in revisions:
                _put(pipe, revision)
            pipe.incr(_GENERATION)
            await pipe.execute()

    async def clear(self) -> None:
        """Forget everything."""
        catalogue = await self.catalogue()
        async with self._storage(), self._client.pipeline() as pipe:
            for source, revisions in catalogue.timelines.items():
                keys = [_revision(source, one.revision_id) for one in revisions]
                pipe.delete(_policy(source), _revisions(source), *keys)
            pipe.delete(ALL)
            pipe.incr(_GENERATION)
            await pipe.execute()

    async def list_policies(self) -> list[Policy]:
        """Every policy, by slug."""
        async with self._storage():
            sources = sorted(await self._client.smembers(ALL))
            found = await self._hashes([_policy(source) for source in sources])
        return [_read(Policy, values) for values in found if values]

    async def policy(self, source: str) -> Policy:
        async with self._storage():
            values = await self._client.hgetall(_policy(source))
            if not values:
                raise await self._no_policy(source)
        return _read(Policy, values)

    async def revisions(self, source: str) -> Timeline:
        """The revisions of one policy, newest first."""
        return (await self.timelines([source]))[source]

    async def timelines(self, sources: Iterable[str]) -> dict[str, Timeline]:
        """The revisions of several policies, newest first, in two round trips."""
        wanted = list(sources)
        async with self._storage():
            async with self._client.pipeline(transaction=False) as pipe:
                for source in wanted:
                    pipe.zrevrange(_revisions(source), 0, -1)
                ids = await pipe.execute()
            pairs = [(source, one) for source, of in zip(wanted, ids, strict=True) for one in of]
            hashes = await self._hashes([_revision(*pair) for pair in pairs])
        found: dict[str, list[Revision]] = {source: [] for source in wanted}
        for (source, _), values in zip(pairs, hashes, strict=True):
            if values:  # deleted between the two readings
                found[source].append(_read(Revision, values))
        return {source: tuple(revisions) for source, revisions in found.items()}

    async def effective_revision(self, source: str, day: date) -> Revision | Reason:
        """The revision in force on a day, or why there is none.

        Only revisions begun by then can be, so the sorted set is asked for those; a closing that
        has not taken effect yet is seen by looking at the successor it names.
        """
        async with self._storage():
            key = _revisions(source)
            begun = await self._client.zrevrangebyscore(key, days_since_epoch(day), "-inf")
            hashes = await self._hashes([_revision(source, one) for one in begun])
            candidates = [_read(Revision, values) for values in hashes if values]
            if not any(one.counts for one in candidates):
                return timeline.in_force(await self.revisions(source), day)
            closers = [one.closed_by for one in candidates if one.closed_by]
            others = await self._hashes([_revision(source, one) for one in closers])
        known = {one.revision_id: one for one in candidates}
        known |= {one.revision_id: one for one in (_read(Revision, of) for of in others if of)}
        return timeline.in_force(tuple(known.values()), day)

    async def change(self, source: str, plan: Plan, gone: Sequence[str] = ()) -> list[Revision]:
        """Write what `plan` makes of the policy's revisions, as if nobody else were there, and
        forget those that are `gone`.
        """
        async with self._storage(), self._client.pipeline() as pipe:
            while True:
                try:
                    written = plan(await self._watched(pipe, source))
                    pipe.multi()
                    for one in written:
                        _put(pipe, one)
                    for revision_id in gone:
                        pipe.delete(_revision(source, revision_id))
                        pipe.zrem(_revisions(source), revision_id)
                    pipe.incr(_GENERATION)
                    await pipe.execute()
                    return list(written)
                except WatchError:
                    continue

    async def delete_revision(self, source: str, revision_id: str) -> list[Revision]:
        """Forget a revision; returns the neighbours that changed with it."""
        return await self.change(
            source, lambda before: timeline.delete(before, revision_id), gone=[revision_id]
        )

    async def _watched(self, pipe: Any, source: str) -> Timeline:
        """The revisions as they are, with a watch on each: a write of anybody's undoes ours."""
        await pipe.watch(_policy(source), _revisions(source))
        if not await pipe.exists(_policy(source)):
            raise await self._no_policy(source)
        ids = await pipe.zrevrange(_revisions(source), 0, -1)
        keys = [_revision(source, one) for one in ids]
        if keys:
            await pipe.watch(*keys)
        return tuple([_read(Revision, await pipe.hgetall(key)) for key in keys])

    async def _no_policy(self, source: str) -> PolicyNotFound:
        known = sorted(await self._client.smembers(ALL))
        return PolicyNotFound(f"There is no policy {source[:120]!r}", valid_sources=known[:100])

    async def _hashes(self, keys: list[str]) -> list[dict[str, str]]:
        async with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hgetall(key)
            found: list[dict[str, str]] = await pipe.execute()
            return found

    @asynccontextmanager
    async def _storage(self) -> AsyncIterator[None]:
        try:
            if self._check is not None:
                await self._check()
                self._check = None
            yield
        except (OSError, ValkeyError) as error:
            raise RegistryUnavailable(f"The policy registry does not answer: {error}") from error


def _put(pipe: Any, revision: Revision) -> None:
    source, id = revision.source, revision.revision_id
    pipe.hset(_revision(source, id), mapping=_written(revision))
    pipe.zadd(_revisions(source), {id: days_since_epoch(revision.effective_from)})


def _policy(source: str) -> str:
    return f"policy:{source}"


def _revision(source: str, revision_id: str) -> str:
    return f"policy_revision:{source}:{revision_id}"


def _revisions(source: str) -> str:
    return f"policy_revisions:{source}"


def _written(record: BaseModel) -> dict[str, str]:
    """A record as a hash: every field is there, and none is an empty string."""
    values = record.model_dump(mode="json")
    return {name: "" if value is None else str(value) for name, value in values.items()}


def _read(kind: type[_Record], values: dict[str, str]) -> _Record:
    return kind.model_validate({name: value or None for name, value in values.items()})
