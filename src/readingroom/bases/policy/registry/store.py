"""The catalogue of policies and revisions, on the Redis protocol with the contract's keys.

Every change is one WATCH/MULTI transaction: the revisions of a policy are read, a rule of
`timeline` says which of them change and how, and that is written only if nobody else wrote in
between; otherwise it starts again.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from valkey.exceptions import ValkeyError, WatchError

from readingroom.bases.policy.errors import PolicyExists, PolicyNotFound
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, Revision
from readingroom.core.dates import count_days_since_epoch
from readingroom.storage.keyvalue import KeyValueClient, make_registry_unavailable_error

_ALL_POLICIES_KEY = "policies_all"
# Incremented in every transaction, so one round trip tells a reader that nothing has changed.
_GENERATION_KEY = "readingroom:policy_generation"

_ADDED_FIELD_NAMES = ("local_authority", "area", "successor_authorities", "stage")
"""Fields that the contract does not have: they are stored where they are set."""

Timeline = tuple[Revision, ...]
"""The revisions of one policy, newest first."""
ChangeRule = Callable[[Timeline], Sequence[Revision]]
"""Takes the revisions of a policy as they are and returns those to write."""
ReplacementRule = Callable[[Timeline], tuple[Sequence[Revision], Sequence[str]]]
"""As `Rule`, and returns the ids of the revisions to delete too."""
_Record = TypeVar("_Record", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every policy by slug, and the revisions of each, as read at one moment."""

    generation: str | None
    policies_by_slug: dict[str, Policy]
    timelines_by_slug: dict[str, Timeline]


class PolicyRegistry:
    """Reads and writes policies and their revisions.

    Every method raises `RegistryUnavailable` when the server does not answer.
    """

    def __init__(
        self,
        keyvalue_client: KeyValueClient,
        check_server: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`check_server` is awaited once, before anything is read or written."""
        self._client = keyvalue_client
        self._check_server = check_server
        self._catalogue: Catalogue | None = None

    async def ping(self) -> None:
        """Check that the server answers, and that it is the right one."""
        async with self._translate_errors():
            await self._client.ping()

    async def read_catalogue(self) -> Catalogue:
        """Return everything; it is read again only after somebody has written."""
        async with self._translate_errors():
            registry_generation = await self._client.get(_GENERATION_KEY)
        # The generation is read first: what is written in between is then read the next time.
        if self._catalogue is None or self._catalogue.generation != registry_generation:
            policies_by_slug = {policy.source: policy for policy in await self.list_policies()}
            self._catalogue = Catalogue(
                registry_generation, policies_by_slug, await self.get_timelines(policies_by_slug)
            )
        return self._catalogue

    async def create_policy(self, policy: Policy) -> None:
        """Register a policy; raise `PolicyExists` if its slug is in use."""
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            while True:
                try:
                    await redis_pipe.watch(_make_policy_key(policy.source))
                    if await redis_pipe.exists(_make_policy_key(policy.source)):
                        raise PolicyExists(
                            f"The policy {policy.source} exists already; add a revision to it"
                        )
                    redis_pipe.multi()
                    redis_pipe.hset(
                        _make_policy_key(policy.source), mapping=_make_redis_hash(policy)
                    )
                    redis_pipe.sadd(_ALL_POLICIES_KEY, policy.source)
                    redis_pipe.incr(_GENERATION_KEY)
                    await redis_pipe.execute()
                    return
                except WatchError:
                    continue

    async def update_policy(self, policy: Policy) -> None:
        """Write a policy over what is stored of it."""
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            # What is not set is not in the hash, so a value that was cleared has to go.
            redis_pipe.hdel(_make_policy_key(policy.source), *_ADDED_FIELD_NAMES)
            redis_pipe.hset(_make_policy_key(policy.source), mapping=_make_redis_hash(policy))
            redis_pipe.incr(_GENERATION_KEY)
            await redis_pipe.execute()

    async def restore_records(
        self, policies: Iterable[Policy], revisions: Iterable[Revision]
    ) -> None:
        """Write policies and revisions as a backup holds them, in one transaction."""
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            for policy in policies:
                redis_pipe.hset(_make_policy_key(policy.source), mapping=_make_redis_hash(policy))
                redis_pipe.sadd(_ALL_POLICIES_KEY, policy.source)
            for revision in revisions:
                _write_revision(redis_pipe, revision)
            redis_pipe.incr(_GENERATION_KEY)
            await redis_pipe.execute()

    async def delete_all(self) -> None:
        """Delete every policy and revision."""
        policy_catalogue = await self.read_catalogue()
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            for policy_slug, policy_revisions in policy_catalogue.timelines_by_slug.items():
                revision_keys = [
                    _make_revision_key(policy_slug, revision.revision_id)
                    for revision in policy_revisions
                ]
                redis_pipe.delete(
                    _make_policy_key(policy_slug), _make_revisions_key(policy_slug), *revision_keys
                )
            # Key by key, never FLUSHDB: the guidance base may keep its cache in the same database.
            redis_pipe.delete(_ALL_POLICIES_KEY)
            redis_pipe.incr(_GENERATION_KEY)
            await redis_pipe.execute()

    async def list_policies(self) -> list[Policy]:
        """Return every policy, in the order of their slugs."""
        async with self._translate_errors():
            policy_slugs = sorted(await self._client.smembers(_ALL_POLICIES_KEY))
            redis_hashes = await self._read_redis_hashes(
                [_make_policy_key(policy_slug) for policy_slug in policy_slugs]
            )
        return [_parse_redis_hash(Policy, redis_hash) for redis_hash in redis_hashes if redis_hash]

    async def get_policy(self, policy_slug: str) -> Policy:
        """Return one policy; raise `PolicyNotFound`, which names those there are."""
        async with self._translate_errors():
            redis_hash = await self._client.hgetall(_make_policy_key(policy_slug))
            if not redis_hash:
                raise await self._make_not_found_error(policy_slug)
        return _parse_redis_hash(Policy, redis_hash)

    async def has_policy(self, policy_slug: str) -> bool:
        """Return whether there is such a policy."""
        async with self._translate_errors():
            return bool(await self._client.exists(_make_policy_key(policy_slug)))

    async def get_revisions(self, policy_slug: str) -> Timeline:
        """Return the revisions of one policy, newest first; none for an unknown policy."""
        return (await self.get_timelines([policy_slug]))[policy_slug]

    async def get_timelines(self, policy_slugs: Iterable[str]) -> dict[str, Timeline]:
        """Return the revisions of several policies, newest first, in two round trips."""
        slugs = list(policy_slugs)
        async with self._translate_errors():
            async with self._client.pipeline(transaction=False) as redis_pipe:
                for policy_slug in slugs:
                    # Scored by first day, so Redis itself returns them newest first.
                    redis_pipe.zrevrange(_make_revisions_key(policy_slug), 0, -1)
                revision_ids_in_slug_order = await redis_pipe.execute()
            slug_and_id_pairs = [
                (policy_slug, revision_id)
                for policy_slug, revision_ids in zip(slugs, revision_ids_in_slug_order, strict=True)
                for revision_id in revision_ids
            ]
            redis_hashes = await self._read_redis_hashes(
                [_make_revision_key(*slug_and_id_pair) for slug_and_id_pair in slug_and_id_pairs]
            )
        revisions_by_slug: dict[str, list[Revision]] = {policy_slug: [] for policy_slug in slugs}
        for (policy_slug, _), redis_hash in zip(slug_and_id_pairs, redis_hashes, strict=True):
            if redis_hash:  # empty: it was deleted between the two reads
                revisions_by_slug[policy_slug].append(_parse_redis_hash(Revision, redis_hash))
        return {
            policy_slug: tuple(policy_revisions)
            for policy_slug, policy_revisions in revisions_by_slug.items()
        }

    async def change_revisions(self, policy_slug: str, apply_rule: ChangeRule) -> list[Revision]:
        """Write what `apply_rule` returns for the policy's revisions; as `replace_revisions`."""
        return await self.replace_revisions(
            policy_slug, lambda revisions_before: (apply_rule(revisions_before), ())
        )

    async def replace_revisions(
        self, policy_slug: str, apply_rule: ReplacementRule
    ) -> list[Revision]:
        """Write and delete what `apply_rule` returns for the policy's revisions, all or nothing.

        Returns what was written. When somebody else writes meanwhile, `apply_rule` is called
        again with what they wrote, so it must not have side effects.

        Raises:
            PolicyNotFound: there is no such policy.
        """
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            while True:
                try:
                    changed_revisions, deleted_revision_ids = apply_rule(
                        await self._watch_and_read_revisions(redis_pipe, policy_slug)
                    )
                    redis_pipe.multi()
                    # Before the writes: a new revision may have the id of the one it replaces.
                    for revision_id in deleted_revision_ids:
                        redis_pipe.delete(_make_revision_key(policy_slug, revision_id))
                        redis_pipe.zrem(_make_revisions_key(policy_slug), revision_id)
                    for revision in changed_revisions:
                        _write_revision(redis_pipe, revision)
                    redis_pipe.incr(_GENERATION_KEY)
                    await redis_pipe.execute()
                    return list(changed_revisions)
                except WatchError:
                    await redis_pipe.reset()

    async def delete_revision(self, policy_slug: str, revision_id: str) -> list[Revision]:
        """Delete a revision; returns the other revisions that changed with it."""
        return await self.replace_revisions(
            policy_slug,
            lambda revisions_before: (
                timeline.delete_revision(revisions_before, revision_id),
                [revision_id],
            ),
        )

    async def delete_policy(self, policy_slug: str) -> Timeline:
        """Delete a policy with all its revisions, in one transaction; return those there were.

        Raises:
            PolicyNotFound: there is no such policy.
        """
        async with self._translate_errors(), self._client.pipeline() as redis_pipe:
            while True:
                try:
                    revisions = await self._watch_and_read_revisions(redis_pipe, policy_slug)
                    redis_pipe.multi()
                    for revision in revisions:
                        redis_pipe.delete(_make_revision_key(policy_slug, revision.revision_id))
                    redis_pipe.delete(
                        _make_policy_key(policy_slug), _make_revisions_key(policy_slug)
                    )
                    redis_pipe.srem(_ALL_POLICIES_KEY, policy_slug)
                    redis_pipe.incr(_GENERATION_KEY)
                    await redis_pipe.execute()
                    return revisions
                except WatchError:
                    await redis_pipe.reset()

    async def _watch_and_read_revisions(self, redis_pipe: Any, policy_slug: str) -> Timeline:
        """Return the revisions; a write to any of them makes the transaction fail."""
        # Watched before anything is read: a write between the two would go unnoticed.
        await redis_pipe.watch(_make_policy_key(policy_slug), _make_revisions_key(policy_slug))
        if not await redis_pipe.exists(_make_policy_key(policy_slug)):
            raise await self._make_not_found_error(policy_slug)
        revision_ids = await redis_pipe.zrevrange(_make_revisions_key(policy_slug), 0, -1)
        revision_keys = [
            _make_revision_key(policy_slug, revision_id) for revision_id in revision_ids
        ]
        if revision_keys:
            # The set of ids does not change when a revision's own fields do, so each is watched
            # too.
            await redis_pipe.watch(*revision_keys)
        # After WATCH a pipeline answers at once, until MULTI; hence one round trip for each.
        redis_hashes = [await redis_pipe.hgetall(revision_key) for revision_key in revision_keys]
        if not all(redis_hashes):
            raise WatchError("a revision was deleted after the ids were read")
        return tuple(_parse_redis_hash(Revision, redis_hash) for redis_hash in redis_hashes)

    async def _make_not_found_error(self, policy_slug: str) -> PolicyNotFound:
        policy_slugs = sorted(await self._client.smembers(_ALL_POLICIES_KEY))
        return PolicyNotFound(
            f"There is no policy {policy_slug[:120]!r}", valid_sources=policy_slugs[:100]
        )

    async def _read_redis_hashes(self, redis_keys: list[str]) -> list[dict[str, str]]:
        async with self._client.pipeline(transaction=False) as redis_pipe:
            for redis_key in redis_keys:
                redis_pipe.hgetall(redis_key)
            redis_hashes: list[dict[str, str]] = await redis_pipe.execute()
            return redis_hashes

    @asynccontextmanager
    async def _translate_errors(self) -> AsyncIterator[None]:
        try:
            if self._check_server is not None:
                await self._check_server()
                # Only after it passed: a server that was down is checked again when it is back.
                self._check_server = None
            yield
        except (OSError, ValkeyError) as error:
            raise make_registry_unavailable_error(error) from error


def _write_revision(redis_pipe: Any, revision: Revision) -> None:
    policy_slug, revision_id = revision.source, revision.revision_id
    redis_pipe.hset(
        _make_revision_key(policy_slug, revision_id), mapping=_make_redis_hash(revision)
    )
    redis_pipe.zadd(
        _make_revisions_key(policy_slug),
        {revision_id: count_days_since_epoch(revision.effective_from)},
    )


def _make_policy_key(policy_slug: str) -> str:
    return f"policy:{policy_slug}"


def _make_revision_key(policy_slug: str, revision_id: str) -> str:
    return f"policy_revision:{policy_slug}:{revision_id}"


def _make_revisions_key(policy_slug: str) -> str:
    return f"policy_revisions:{policy_slug}"


def _make_redis_hash(stored_record: BaseModel) -> dict[str, str]:
    """Return a record as a Redis hash: a hash holds only strings, so None becomes an empty one."""
    record_fields = stored_record.model_dump(mode="json")
    return {
        field_name: "" if field_value is None else str(field_value)
        for field_name, field_value in record_fields.items()
        if field_value is not None or field_name not in _ADDED_FIELD_NAMES
    }


def _parse_redis_hash(record_class: type[_Record], redis_hash: dict[str, str]) -> _Record:
    return record_class.model_validate(
        {field_name: field_value or None for field_name, field_value in redis_hash.items()}
    )
