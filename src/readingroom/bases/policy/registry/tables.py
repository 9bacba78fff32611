"""The catalogue of policies and revisions as tables of the shared database.

A change locks the policy's row, reads its revisions, and writes what a rule of `timeline` returns.
That no two revisions share a day is a constraint of the table too.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio.to_thread

from readingroom.bases.policy.errors import PolicyExists, PolicyNotFound, RevisionOverlap
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Policy, Revision
from readingroom.bases.policy.registry.store import Catalogue, ChangeRule, ReplacementRule, Timeline
from readingroom.storage.errors import (
    DatabaseConflict,
    DatabaseFailed,
    RegistryUnavailable,
)
from readingroom.storage.postgres.database import Connection, PostgresDatabase, SharedTransaction

_STORE_NAME = "policy_registry"
_NEWEST_FIRST_ORDER_SQL = "ORDER BY source, effective_from DESC, revision_id DESC"
_Result = TypeVar("_Result")


class SharedPolicyRegistry:
    """Reads and writes policies and their revisions; the methods of `PolicyRegistry`.

    Every method raises `RegistryUnavailable` when the database does not answer.
    """

    def __init__(self, postgres_database: PostgresDatabase) -> None:
        self._database = postgres_database
        self._catalogue: Catalogue | None = None

    async def ping(self) -> None:
        """Check that the database answers, and that its tables are of a version we know."""

        def check_database() -> None:
            self._database.prepare()
            with self._database.connection() as connection:
                connection.execute("SELECT 1")

        await self._run_in_thread(check_database)

    async def read_catalogue(self) -> Catalogue:
        """Return everything; it is read again only after somebody has written."""
        registry_generation = await self._run_in_thread(self._read_generation)
        # The generation is read first: what is written in between is then read the next time.
        if self._catalogue is None or self._catalogue.generation != registry_generation:
            policies_by_slug = {policy.source: policy for policy in await self.list_policies()}
            self._catalogue = Catalogue(
                registry_generation, policies_by_slug, await self.get_timelines(policies_by_slug)
            )
        return self._catalogue

    async def create_policy(self, policy: Policy) -> None:
        """Register a policy; raise `PolicyExists` if its slug is in use."""

        def insert_policy(shared_transaction: SharedTransaction) -> None:
            inserted_policy_row = shared_transaction.connection.execute(
                "INSERT INTO policies VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING source",
                (policy.source, policy.model_dump_json()),
            ).fetchone()
            if inserted_policy_row is None:
                raise PolicyExists(
                    f"The policy {policy.source} exists already; add a revision to it"
                )

        await self._write_in_transaction(insert_policy)

    async def update_policy(self, policy: Policy) -> None:
        """Write a policy over what is stored of it."""
        await self._write_in_transaction(
            lambda shared_transaction: _write_policy(shared_transaction.connection, policy)
        )

    async def restore_records(
        self, policies: Iterable[Policy], revisions: Iterable[Revision]
    ) -> None:
        """Write policies and revisions as a backup holds them, in one transaction."""

        def write_all(shared_transaction: SharedTransaction) -> None:
            for policy in policies:
                _write_policy(shared_transaction.connection, policy)
            for revision in revisions:
                _write_revision(shared_transaction.connection, revision)

        await self._write_in_transaction(write_all)

    async def delete_all(self) -> None:
        """Delete every policy and revision."""

        def delete_all_rows(shared_transaction: SharedTransaction) -> None:
            shared_transaction.connection.execute("DELETE FROM revisions")
            shared_transaction.connection.execute("DELETE FROM policies")

        await self._write_in_transaction(delete_all_rows)

    async def list_policies(self) -> list[Policy]:
        """Return every policy, in the order of their slugs."""

        def read_policies() -> list[Policy]:
            with self._database.connection() as connection:
                policy_rows = connection.execute(
                    "SELECT record FROM policies ORDER BY source"
                ).fetchall()
            return [Policy.model_validate(policy_record) for (policy_record,) in policy_rows]

        return await self._run_in_thread(read_policies)

    async def get_policy(self, policy_slug: str) -> Policy:
        """Return one policy; raise `PolicyNotFound`, which names those there are."""

        def read_policy() -> Policy:
            with self._database.connection() as connection:
                policy_row = connection.execute(
                    "SELECT record FROM policies WHERE source = ?",
                    (_replace_null_characters(policy_slug),),
                ).fetchone()
                if policy_row is None:
                    raise _make_not_found_error(connection, policy_slug)
            return Policy.model_validate(policy_row[0])

        return await self._run_in_thread(read_policy)

    async def get_revisions(self, policy_slug: str) -> Timeline:
        """Return the revisions of one policy, newest first; none for an unknown policy."""
        return (await self.get_timelines([policy_slug]))[policy_slug]

    async def get_timelines(self, policy_slugs: Iterable[str]) -> dict[str, Timeline]:
        """Return the revisions of several policies, newest first."""
        slug_list = list(policy_slugs)

        def read_timelines() -> dict[str, Timeline]:
            with self._database.connection() as connection:
                record_rows = connection.execute(
                    "SELECT source, record FROM revisions WHERE source = ANY(?) "
                    + _NEWEST_FIRST_ORDER_SQL,
                    ([_replace_null_characters(policy_slug) for policy_slug in slug_list],),
                ).fetchall()
            revisions_by_slug: dict[str, list[Revision]] = {
                policy_slug: [] for policy_slug in slug_list
            }
            for policy_slug, record_fields in record_rows:
                revisions_by_slug[policy_slug].append(Revision.model_validate(record_fields))
            return {
                policy_slug: tuple(policy_revisions)
                for policy_slug, policy_revisions in revisions_by_slug.items()
            }

        return await self._run_in_thread(read_timelines)

    async def change_revisions(self, policy_slug: str, apply_rule: ChangeRule) -> list[Revision]:
        """Write what `apply_rule` returns for the policy's revisions; as `replace_revisions`."""
        return await self.replace_revisions(
            policy_slug, lambda revisions_before: (apply_rule(revisions_before), ())
        )

    async def replace_revisions(
        self, policy_slug: str, apply_rule: ReplacementRule
    ) -> list[Revision]:
        """Write and delete what `apply_rule` returns for the policy's revisions, all or nothing.

        Returns what was written. Others who change the policy wait until this has ended.

        Raises:
            PolicyNotFound: there is no such policy.
        """

        def write_and_delete_revisions(shared_transaction: SharedTransaction) -> list[Revision]:
            connection = shared_transaction.connection
            changed_revisions, deleted_revision_ids = apply_rule(
                _lock_revisions(connection, policy_slug)
            )
            # Before the writes: a new revision may have the id of the one it replaces.
            connection.execute(
                "DELETE FROM revisions WHERE source = ? AND revision_id = ANY(?)",
                (policy_slug, list(deleted_revision_ids)),
            )
            for revision in changed_revisions:
                _write_revision(connection, revision)
            return list(changed_revisions)

        return await self._write_in_transaction(write_and_delete_revisions)

    async def has_policy(self, policy_slug: str) -> bool:
        """Return whether there is such a policy."""

        def is_policy_stored() -> bool:
            with self._database.connection() as connection:
                existing_row = connection.execute(
                    "SELECT 1 FROM policies WHERE source = ?",
                    (_replace_null_characters(policy_slug),),
                ).fetchone()
            return existing_row is not None

        return await self._run_in_thread(is_policy_stored)

    async def delete_policy(self, policy_slug: str) -> Timeline:
        """Delete a policy with all its revisions; return those there were.

        Raises:
            PolicyNotFound: there is no such policy.
        """

        def delete_policy_rows(shared_transaction: SharedTransaction) -> Timeline:
            revisions = _lock_revisions(shared_transaction.connection, policy_slug)
            shared_transaction.connection.execute(
                "DELETE FROM revisions WHERE source = ?", (policy_slug,)
            )
            shared_transaction.connection.execute(
                "DELETE FROM policies WHERE source = ?", (policy_slug,)
            )
            return revisions

        return await self._write_in_transaction(delete_policy_rows)

    async def delete_revision(self, policy_slug: str, revision_id: str) -> list[Revision]:
        """Delete a revision; returns the other revisions that changed with it."""
        return await self.replace_revisions(
            policy_slug,
            lambda revisions_before: (
                timeline.delete_revision(revisions_before, revision_id),
                [revision_id],
            ),
        )

    def _read_generation(self) -> str | None:
        with self._database.connection() as connection:
            generation_row = connection.execute(
                "SELECT generation FROM generations WHERE store_name = ?", (_STORE_NAME,)
            ).fetchone()
        return str(generation_row[0]) if generation_row else None

    async def _write_in_transaction(
        self, apply_change: Callable[[SharedTransaction], _Result]
    ) -> _Result:
        def run_transaction() -> _Result:
            with self._database.transaction() as shared_transaction:
                shared_transaction.commit_callbacks_by_key[_STORE_NAME] = _increment_generation
                return apply_change(shared_transaction)

        return await self._run_in_thread(run_transaction)

    async def _run_in_thread(self, call_database: Callable[[], _Result]) -> _Result:
        async with _translate_errors():
            return await anyio.to_thread.run_sync(call_database)


@asynccontextmanager
async def _translate_errors() -> AsyncIterator[None]:
    try:
        yield
    except DatabaseConflict as error:
        raise RevisionOverlap(
            "The revision shares a day with another one of its policy; look at the policy's "
            "revisions, then choose other days"
        ) from error
    except DatabaseFailed as error:
        raise RegistryUnavailable(
            f"The shared database does not answer: {error.message}"
        ) from error


def _increment_generation(connection: Connection) -> None:
    connection.execute(
        "INSERT INTO generations VALUES (?, 1) ON CONFLICT (store_name) "
        "DO UPDATE SET generation = generations.generation + 1",
        (_STORE_NAME,),
    )


def _lock_revisions(connection: Connection, policy_slug: str) -> Timeline:
    """Return the revisions of a policy, which nobody else changes until the transaction ends."""
    locked_policy_row = connection.execute(
        "SELECT source FROM policies WHERE source = ? FOR UPDATE",
        (_replace_null_characters(policy_slug),),
    ).fetchone()
    if locked_policy_row is None:
        raise _make_not_found_error(connection, policy_slug)
    revision_rows = connection.execute(
        f"SELECT record FROM revisions WHERE source = ? {_NEWEST_FIRST_ORDER_SQL}", (policy_slug,)
    ).fetchall()
    return tuple(Revision.model_validate(revision_record) for (revision_record,) in revision_rows)


def _make_not_found_error(connection: Connection, policy_slug: str) -> PolicyNotFound:
    slug_rows = connection.execute(
        "SELECT source FROM policies ORDER BY source LIMIT 100"
    ).fetchall()
    policy_slugs = [policy_slug for (policy_slug,) in slug_rows]
    return PolicyNotFound(f"There is no policy {policy_slug[:120]!r}", valid_sources=policy_slugs)


def _write_policy(connection: Connection, policy: Policy) -> None:
    connection.execute(
        "INSERT INTO policies VALUES (?, ?) ON CONFLICT (source) "
        "DO UPDATE SET record = excluded.record",
        (policy.source, _make_record_json(policy)),
    )


def _write_revision(connection: Connection, revision: Revision) -> None:
    # A plan that is not adopted has no days, so it shares none with others.
    has_days = revision.stage is None
    connection.execute(
        "INSERT INTO revisions VALUES (?, ?, ?, CASE WHEN ? THEN daterange(?, ?, '[]') END, ?) "
        "ON CONFLICT (source, revision_id) DO UPDATE SET effective_from = excluded.effective_from, "
        "days = excluded.days, record = excluded.record",
        (
            revision.source,
            revision.revision_id,
            revision.effective_from,
            has_days,
            revision.effective_from,
            revision.effective_to,
            _make_record_json(revision),
        ),
    )


def _make_record_json(stored_record: Policy | Revision) -> str:
    record_fields = stored_record.model_dump(mode="json")
    return json.dumps(
        {
            field_name: _replace_null_characters(field_value)
            for field_name, field_value in record_fields.items()
        }
    )


def _replace_null_characters(json_value: Any) -> Any:
    """Return a value that PostgreSQL takes: it has no texts with U+0000."""
    return (
        json_value.replace("\0", "\N{REPLACEMENT CHARACTER}")
        if isinstance(json_value, str)
        else json_value
    )
