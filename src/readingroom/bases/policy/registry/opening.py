"""Opens the registry where it is kept: in our own server, one at REDIS_URL, or the database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from readingroom.bases.policy.registry.store import PolicyRegistry
from readingroom.bases.policy.registry.tables import SharedPolicyRegistry
from readingroom.storage.keyvalue import (
    KeyValueClient,
    check_durability,
    check_room_id,
    open_key_values,
)
from readingroom.storage.postgres.database import PostgresDatabase

AnyPolicyRegistry = PolicyRegistry | SharedPolicyRegistry
"""A registry, wherever it is kept."""


@asynccontextmanager
async def open_registry(
    policy_folder: Path, redis_url: str | None, database: PostgresDatabase | None
) -> AsyncIterator[AnyPolicyRegistry]:
    """Yield the registry of a base; `policy_folder` is the base's own."""
    if database is not None:
        yield SharedPolicyRegistry(database)
        return
    async with open_key_values(redis_url, policy_folder / "registry") as client:
        yield PolicyRegistry(
            client, partial(_check_server, client, policy_folder, redis_url is not None)
        )


async def _check_server(client: KeyValueClient, policy_folder: Path, is_foreign: bool) -> None:
    if is_foreign:
        # A Redis of somebody else's may evict keys or lose writes in a crash; ours does neither.
        await check_durability(client)
    # The registry of one data directory must not be read with the chunks of another.
    await check_room_id(client, policy_folder / "room")
