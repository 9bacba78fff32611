"""Opens the registry where it is kept: in our own server, one at REDIS_URL, or the database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from readingroom.core.imports import LazyModule
from readingroom.storage.postgres.database import PostgresDatabase

# A registry is opened when the base is served, and the client of Valkey is slow to import.
if TYPE_CHECKING:
    from readingroom.bases.policy.registry import store, tables
    from readingroom.storage import keyvalue
else:
    store = LazyModule("readingroom.bases.policy.registry.store")
    tables = LazyModule("readingroom.bases.policy.registry.tables")
    keyvalue = LazyModule("readingroom.storage.keyvalue")

AnyPolicyRegistry: TypeAlias = "store.PolicyRegistry | tables.SharedPolicyRegistry"
"""A registry, wherever it is kept."""


@asynccontextmanager
async def open_registry(
    base_folder: Path, redis_url: str | None, postgres_database: PostgresDatabase | None
) -> AsyncIterator[AnyPolicyRegistry]:
    """Yield the registry of a base; `base_folder` is the base's own."""
    if postgres_database is not None:
        yield tables.SharedPolicyRegistry(postgres_database)
        return
    async with keyvalue.open_key_values(redis_url, base_folder / "registry") as keyvalue_client:
        yield store.PolicyRegistry(
            keyvalue_client,
            partial(_check_server, keyvalue_client, base_folder, redis_url is not None),
        )


async def _check_server(
    keyvalue_client: keyvalue.KeyValueClient, base_folder: Path, is_foreign_server: bool
) -> None:
    if is_foreign_server:
        # A Redis of somebody else's may evict keys or lose writes in a crash; ours does neither.
        await keyvalue.check_server_durability(keyvalue_client)
    # The registry of one data directory must not be read with the chunks of another.
    await keyvalue.check_room_id(keyvalue_client, base_folder / "room")
