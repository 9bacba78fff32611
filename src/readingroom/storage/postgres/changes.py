"""Changes to a base in the shared database: each is one transaction, so none is ever half done."""

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import anyio

from readingroom.core.errors import KnowledgeError
from readingroom.storage.changes import StepHook, StoreChangeCoordinator, ignore_step
from readingroom.storage.intents import Intent
from readingroom.storage.postgres.database import PostgresDatabase


class TransactionChangeCoordinator:
    """The changes of one base; the methods of `StoreChangeCoordinator`, with nothing to recover."""

    def __init__(
        self, postgres_database: PostgresDatabase, base_name: str, on_step: StepHook = ignore_step
    ) -> None:
        self.on_step = on_step
        self._database = postgres_database
        self._base_name = base_name
        self._locks_by_key: dict[str, anyio.Lock] = defaultdict(anyio.Lock)

    @asynccontextmanager
    async def begin_change(self, lock_key: str) -> AsyncIterator[None]:
        """Enclose a change: one at a time for each key, and never cancelled once it has begun."""
        # The lock of this process first: those who wait for the database each hold a connection.
        async with self._locks_by_key[lock_key]:
            with anyio.CancelScope(shield=True):
                async with self._database.begin_change(f"{self._base_name}:{lock_key}"):
                    yield

    def pause_changes(self) -> AbstractAsyncContextManager[None]:
        """Read everything as it is at one moment; changes go on meanwhile, unseen."""
        return self._database.begin_snapshot()

    @asynccontextmanager
    async def record_intent(self, intent_kind: str, **intent_body: Any) -> AsyncIterator[Intent]:
        """Name the steps of a change; the transaction around it needs no record of it."""
        self.on_step(f"{intent_kind}:begin")
        yield Intent(0, intent_kind, intent_body)
        self.on_step(f"{intent_kind}:end")

    async def list_unfinished(self) -> list[Intent]:
        """Return nothing: what was not committed has never been."""
        return []

    async def recover_changes(
        self,
        finish_intent: Callable[[Intent], Awaitable[None]],
        fatal_errors: tuple[type[KnowledgeError], ...] = (),
    ) -> int:
        """Return 0: there is nothing to complete."""
        return 0


AnyChangeCoordinator = StoreChangeCoordinator | TransactionChangeCoordinator
"""The changes of a base, wherever its stores are."""


def make_change_coordinator(
    base_name: str, base_folder: Path, postgres_database: PostgresDatabase | None, on_step: StepHook
) -> AnyChangeCoordinator:
    """Return what runs the changes of a base in its folder, or in the database if there is one."""
    if postgres_database is None:
        return StoreChangeCoordinator(base_folder / "intents.db", on_step)
    return TransactionChangeCoordinator(postgres_database, base_name, on_step)


def open_restore(
    postgres_database: PostgresDatabase | None, base_name: str
) -> AbstractAsyncContextManager[None]:
    """Return a context in which a backup is put back: in a database, one transaction."""
    return (
        nullcontext()
        if postgres_database is None
        else postgres_database.begin_change(f"{base_name}:restore")
    )
