"""The shared database: its connections, and transactions that several stores join.

A change to a base writes to several stores, some from coroutines and some from threads. Inside
`begin_change` every store that asks for a connection gets that of the transaction, so all of them
commit together or not at all.
"""

import hashlib
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from readingroom.core.errors import InvalidSetting
from readingroom.core.imports import import_reference
from readingroom.core.settings import RoomSettings, reveal_secret
from readingroom.storage.database import close_all
from readingroom.storage.errors import DatabaseFailed
from readingroom.storage.postgres import schema
from readingroom.storage.postgres.notices import NoticeListener

Connection = Any
"""A `driver.PostgresConnection`; the driver is imported only where it is used."""

_MAX_CONNECTIONS = 16
"""Connections of one process: a server has about a hundred for all of its clients."""
_CONNECTION_WAIT_SECONDS = 60.0
# PostgreSQL refuses U+0000 in texts; one character for one, so that offsets still hold.
_NULL_CHARACTER_REPLACEMENT = {0: "\N{REPLACEMENT CHARACTER}"}
# A database stays here for as long as anybody uses it, and then closes its connections.
_open_databases_by_url: "WeakValueDictionary[str, PostgresDatabase]" = WeakValueDictionary()
_open_databases_lock = threading.Lock()


class SharedTransaction:
    """A transaction that is open; `commit_callbacks_by_key` make its last statements, each once."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.commit_callbacks_by_key: dict[str, Callable[[Connection], None]] = {}

    def commit(self) -> None:
        """Run what was left for the end, in an order that is the same for everybody, and commit."""
        # Rows that every writer changes are locked last, and always in the same order.
        for _, commit_callback in sorted(self.commit_callbacks_by_key.items()):
            commit_callback(self.connection)
        # After a statement that failed, COMMIT rolls back and raises nothing.
        if self.connection.execute("COMMIT").statusmessage != "COMMIT":
            raise DatabaseFailed("A statement of the transaction failed, so nothing was written")


class PostgresDatabase:
    """One database, shared by the stores of this process and by other processes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connect: Callable[[str], Connection] = _load_driver()
        self._idle_connections: list[Connection] = []
        # The list and not `self`: a finalizer that refers to its object keeps it alive.
        weakref.finalize(self, close_all, self._idle_connections)
        self._closing_count = 0
        self._connection_slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._current_transaction: ContextVar[SharedTransaction | None] = ContextVar(
            "current", default=None
        )
        self.notices = NoticeListener(self.open_own_connection)
        self._prepare_lock = threading.Lock()
        self._is_prepared = False

    def prepare(self) -> None:
        """Create the tables that are missing. Raise `SchemaTooNew`, or `DatabaseFailed`."""
        with self._prepare_lock:
            if not self._is_prepared:
                with self.lend_connection() as connection:
                    schema.migrate(connection)
                self._is_prepared = True

    @property
    def is_in_transaction(self) -> bool:
        """Whether the caller is inside a transaction, and so sees what nobody else does."""
        return self._current_transaction.get() is not None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend the connection of the current transaction, or one that commits each statement."""
        transaction = self._current_transaction.get()
        if transaction is not None:
            yield transaction.connection
            return
        with self.lend_connection() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[SharedTransaction]:
        """Join the current transaction, or enclose one that ends here."""
        transaction = self._current_transaction.get()
        if transaction is not None:
            yield transaction
            return
        with self.lend_connection() as connection:
            transaction = self._begin_transaction(connection, "BEGIN")
            context_token = self._current_transaction.set(transaction)
            try:
                yield transaction
                transaction.commit()
            except BaseException:
                connection.roll_back()
                raise
            finally:
                self._current_transaction.reset(context_token)

    @asynccontextmanager
    async def begin_change(self, lock_key: str) -> AsyncIterator[None]:
        """Enclose a change in one transaction: one at a time for each key, in all processes."""
        async with self._open_transaction("BEGIN", _hash_lock_key(lock_key)):
            yield

    @asynccontextmanager
    async def begin_snapshot(self) -> AsyncIterator[None]:
        """Let every store read the database as it is now, whatever others write meanwhile."""
        async with self._open_transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", None):
            yield

    @asynccontextmanager
    async def _open_transaction(
        self, begin_sql: str, lock_number: int | None
    ) -> AsyncIterator[None]:
        if self._current_transaction.get() is not None:
            yield  # a part of a larger change
            return
        connection_loan = self.lend_connection()
        # In a thread: it may have to wait for a place, and for the server to answer.
        connection = await anyio.to_thread.run_sync(connection_loan.__enter__)
        try:
            transaction = await anyio.to_thread.run_sync(
                self._begin_transaction, connection, begin_sql, lock_number
            )
            context_token = self._current_transaction.set(transaction)
            try:
                yield
                await anyio.to_thread.run_sync(transaction.commit)
            except BaseException:
                # Shielded: after a cancellation every wait ends at once, and the transaction would
                # stay open.
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(connection.roll_back)
                raise
            finally:
                self._current_transaction.reset(context_token)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(connection_loan.__exit__, None, None, None)

    def _begin_transaction(
        self, connection: Connection, begin_sql: str, lock_number: int | None = None
    ) -> SharedTransaction:
        connection.execute(begin_sql)
        # A lock of the transaction: the server releases it with the COMMIT or the ROLLBACK.
        if lock_number is not None:
            try:
                connection.execute("SELECT pg_advisory_xact_lock(?)", (lock_number,))
            except BaseException:
                connection.roll_back()
                raise
        return SharedTransaction(connection)

    @contextmanager
    def hold_lock(self, lock_key: str) -> Iterator[bool]:
        """Try to hold a lock of this name; yield whether it is ours until the exit.

        It is released with the connection, however this process ends.
        """
        # A connection of its own: the lock belongs to it, and one that is lent must come back.
        connection = self._connect(self.url)
        try:
            lock_row = connection.execute(
                "SELECT pg_try_advisory_lock(?)", (_hash_lock_key(lock_key),)
            ).fetchone()
            yield bool(lock_row[0])
            # The server notices a closed connection a moment later; this it has done at once.
            with suppress(DatabaseFailed):  # without a connection the lock is free already
                connection.execute("SELECT pg_advisory_unlock_all()")
        finally:
            connection.close()

    @asynccontextmanager
    async def hold_lock_async(self, lock_key: str) -> AsyncIterator[bool]:
        """As `hold_lock`, for a coroutine."""
        held_lock = self.hold_lock(lock_key)
        is_lock_held = await anyio.to_thread.run_sync(held_lock.__enter__)
        try:
            yield is_lock_held
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(held_lock.__exit__, None, None, None)

    def open_own_connection(self) -> Connection:
        """Open a connection that the caller keeps and closes, such as one that listens."""
        return self._connect(self.url)

    @contextmanager
    def lend_connection(self) -> Iterator[Connection]:
        """Lend a connection that belongs to no transaction of a base, also inside of one."""
        # Without one it goes on: whoever has them all may wait for this.
        has_slot = self._connection_slots.acquire(timeout=_CONNECTION_WAIT_SECONDS)
        try:
            closing_count_before = self._closing_count
            connection = self._take_idle_connection() or self._connect(self.url)
            try:
                yield connection
            finally:
                # One that was lent while the others were closed comes back too late for that.
                if connection.is_usable and closing_count_before == self._closing_count:
                    self._idle_connections.append(connection)
                else:
                    connection.close()
        finally:
            if has_slot:
                self._connection_slots.release()

    def _take_idle_connection(self) -> Connection | None:
        while True:
            try:
                connection = self._idle_connections.pop()
            except IndexError:
                return None
            if connection.is_usable:
                return connection
            connection.close()

    def close(self) -> None:
        """Close the idle connections, which are opened again when needed, and stop listening."""
        self.notices.close()
        self._closing_count += 1
        close_all(self._idle_connections)


def find_database(settings: RoomSettings) -> PostgresDatabase | None:
    """Return the database that the settings name, or None where everything is embedded.

    Raise `InvalidSetting` when the driver is not installed.
    """
    url = reveal_secret(settings.database_url)
    return open_database(url) if url else None


def open_database(url: str) -> PostgresDatabase:
    """Return the database at a URL, the same for all stores of this process."""
    with _open_databases_lock:
        database = _open_databases_by_url.get(url)
        if database is None:
            database = _open_databases_by_url[url] = PostgresDatabase(url)
        return database


def clean_text(any_text: str) -> str:
    """Return a text that PostgreSQL takes, of the same length."""
    return any_text.translate(_NULL_CHARACTER_REPLACEMENT)


def _load_driver() -> Callable[[str], Connection]:
    try:
        connect: Callable[[str], Connection] = import_reference(
            "readingroom.storage.postgres.driver:connect"
        )
    except ImportError as error:
        raise InvalidSetting(
            "READINGROOM_DATABASE_URL needs the PostgreSQL driver: "
            "pip install 'readingroom[postgres]'"
        ) from error
    return connect


def _hash_lock_key(lock_key: str) -> int:
    """Return the number of an advisory lock: the same in every process."""
    # Python's own `hash` differs from process to process; the lock's number is a signed `bigint`.
    key_digest = hashlib.sha256(f"readingroom:{lock_key}".encode()).digest()
    return int.from_bytes(key_digest[:8], "big", signed=True)
