"""Named API keys in the shared database: the methods of `KeyRing`, for several processes.

Requests are answered from a copy in memory, so no request waits for the database. A thread reads
them again when it is told of a change, and looks for itself twice a second: a key that is revoked
anywhere is refused everywhere within a second.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from readingroom.core.settings import RoomSettings
from readingroom.storage.errors import (
    DatabaseConflict,
    DatabaseFailed,
    KeyExists,
    SchemaTooNew,
    StorageFailed,
)
from readingroom.storage.keys import (
    KEYS_LEFT_MESSAGE,
    Holder,
    Key,
    KeyRing,
    KeyRow,
    make_key_not_found_error,
)
from readingroom.storage.postgres.database import Connection, PostgresDatabase, find_database
from readingroom.storage.postgres.notices import NOTICE_CHANNEL_NAME

logger = logging.getLogger(__name__)

_KEYS_STORE_NAME = "api_keys"
_SECONDS_BETWEEN_LOOKS = 0.5
_MAX_STALE_SECONDS = 30.0
"""How long the copy is believed while the database does not answer; then nobody is let in."""
_HAS_SECRET_SQL = "SELECT 1 FROM api_keys WHERE subject IS NULL LIMIT 1"
_STALE_COPY_MESSAGE = (
    "Nobody can be let in just now: the database with the API keys does not answer, so no key can "
    "be checked. Try again in a minute, with the same key; if it goes on, tell whoever runs this "
    "server"
)
_STALE_ROOM_MESSAGE = (
    "Nobody can be let in just now: the database that says whether a key is asked for does not "
    "answer. Try again in a minute; if it goes on, tell whoever runs this server"
)
_CLOSED_MARK = "room_closed"
# Among the generations, where no table changes: revoking the last key does not open the room.
_MARK_CLOSED_SQL = f"INSERT INTO generations VALUES ('{_CLOSED_MARK}', 1) ON CONFLICT DO NOTHING"
_COLUMNS_SQL = "name, hash, created_at, subject, read_only, operator"


@dataclass(frozen=True)
class _KeyCopy:
    """All keys as they were at one moment."""

    generation: int
    holders_by_identifier: dict[bytes | str, Holder]
    """By the digest of a secret, and by the subject of tokens."""
    is_closed: bool
    """Whether a key is asked for."""
    read_at: float
    """When the database last said that it is so, as `time.monotonic` tells it."""


class SharedKeyRing(KeyRing):
    """The keys of all processes on one database."""

    def __init__(self, data_directory: Path, postgres_database: PostgresDatabase) -> None:
        super().__init__(data_directory)
        self._database = postgres_database
        self._key_copy: _KeyCopy | None = None
        self._copy_lock = threading.Lock()
        self._is_following = False
        self._has_ended = False
        self._change_event = threading.Event()

    def list_keys(self) -> list[Key]:
        """Return every key, sorted by name."""
        with self._open_transaction() as connection:
            key_rows = connection.execute(
                f"SELECT {_COLUMNS_SQL} FROM api_keys ORDER BY name"
            ).fetchall()
        return [
            Key(key_name, created_at, oauth_subject, read_only, is_operator)
            for key_name, _, created_at, oauth_subject, read_only, is_operator in key_rows
        ]

    def revoke_key(self, key_name: str) -> None:
        """Delete a key, which every process refuses within a second; raise `KeyNotFound`."""
        with self._open_transaction() as connection:
            if connection.execute(_HAS_SECRET_SQL).fetchone():  # which an older version has made
                connection.execute(_MARK_CLOSED_SQL)
            delete_cursor = connection.execute("DELETE FROM api_keys WHERE name = ?", (key_name,))
            if delete_cursor.rowcount == 0:
                raise make_key_not_found_error(key_name)
            _increase_generation(connection)
        self._follow_own_change()

    def has_keys(self) -> bool:
        """Return whether there is a key with a secret that can be sent."""
        with self._open_transaction() as connection:
            return connection.execute(_HAS_SECRET_SQL).fetchone() is not None

    def has_any_key(self) -> bool:
        return bool(self._get_copy(_STALE_COPY_MESSAGE).holders_by_identifier)

    def is_closed(self) -> bool:
        with self._open_transaction() as connection:
            return _is_room_closed(connection)

    def is_key_asked_for(self) -> bool:
        return self._get_copy(_STALE_ROOM_MESSAGE).is_closed

    def close_room(self) -> None:
        with self._open_transaction() as connection:
            connection.execute(_MARK_CLOSED_SQL)
            _increase_generation(connection)
        self._follow_own_change()

    def reopen_room(self) -> None:
        with self._open_transaction() as connection:
            if connection.execute(_HAS_SECRET_SQL).fetchone():
                raise KeyExists(KEYS_LEFT_MESSAGE)
            connection.execute(f"DELETE FROM generations WHERE store_name = '{_CLOSED_MARK}'")
            _increase_generation(connection)
        self._follow_own_change()

    def dump_keys(self, dump_folder: Path) -> None:
        """Write all keys to a file in a folder, as a data directory has it."""
        with self._open_transaction() as connection:
            key_rows = connection.execute(
                f"SELECT {_COLUMNS_SQL} FROM api_keys ORDER BY name"
            ).fetchall()
        own_ring = KeyRing(dump_folder)
        if self.is_closed():
            own_ring.close_room()
        if key_rows:
            own_ring.insert_rows(
                [
                    (*key_row[:4], int(key_row["read_only"]), int(key_row["operator"]))
                    for key_row in key_rows
                ]
            )

    def replace_all_keys(self, keys_file: Path) -> None:
        """Put the keys of a file that we made ourselves in place of all."""
        with self._database.transaction():
            with self._open_transaction() as connection:
                connection.execute("DELETE FROM api_keys")
            restored_ring = KeyRing(keys_file.parent)
            self.insert_rows(restored_ring.read_rows())
            if restored_ring.is_closed():
                self.close_room()

    def insert_rows(self, key_rows: list[KeyRow]) -> None:
        with self._open_transaction() as connection:
            if any(key_row[3] is None for key_row in key_rows):  # one has no subject, but a secret
                connection.execute(_MARK_CLOSED_SQL)
            for key_name, key_digest, created_at, oauth_subject, read_only, is_operator in key_rows:
                connection.execute(
                    f"INSERT INTO api_keys ({_COLUMNS_SQL}) VALUES (?, ?, ?, ?, ?, ?)",
                    (
                        key_name,
                        key_digest,
                        created_at,
                        oauth_subject,
                        bool(read_only),
                        bool(is_operator),
                    ),
                )
            _increase_generation(connection)
        self._follow_own_change()

    def _find_holder_by_column(self, column_value: bytes | str, column_name: str) -> Holder | None:
        return self._get_copy(_STALE_COPY_MESSAGE).holders_by_identifier.get(column_value)

    def _get_copy(self, stale_message: str) -> _KeyCopy:
        """Return the keys as they were a moment ago. Raise `StorageFailed` with this message."""
        if not self._is_following:
            self._begin_following()
        key_copy = self._key_copy
        if key_copy is None or time.monotonic() - key_copy.read_at > _MAX_STALE_SECONDS:
            raise StorageFailed(stale_message)
        return key_copy

    def follow_changes(self) -> None:
        try:
            self._begin_following()
        except StorageFailed as error:
            logger.warning("%s; trying again", error.message)

    def _begin_following(self) -> None:
        with self._copy_lock:
            if self._is_following:
                return
            # Whatever comes of the first look: no request is to wait for one that hangs.
            self._is_following = True
            try:
                self._key_copy = self._read_own_copy()
            finally:
                self._database.notices.subscribe(_KEYS_STORE_NAME, self._change_event.set)
                threading.Thread(target=self._run_follower, name="keys", daemon=True).start()

    def _run_follower(self) -> None:
        """Read the keys again whenever somebody has changed them."""
        # Its own: all that may be lent can be with those who wait for the database.
        connection: Connection | None = None
        is_failing = False
        while not self._has_ended:
            self._change_event.wait(_SECONDS_BETWEEN_LOOKS)
            self._change_event.clear()
            try:
                connection = self._open_or_keep(connection)
                self._refresh_copy(connection)
                is_failing = False
            except (DatabaseFailed, SchemaTooNew) as error:
                if not is_failing:  # once, not twice a second
                    logger.warning("The keys cannot be read: %s; trying again", error.message)
                is_failing = True
        if connection is not None:
            connection.close()

    def _open_or_keep(self, connection: Connection | None) -> Connection:
        if connection is not None:
            if connection.is_usable:
                return connection
            connection.close()
        self._database.prepare()
        return self._database.open_own_connection()

    def _follow_own_change(self) -> None:
        """Obey at once what this process has changed itself."""
        if self._key_copy is not None and not self._database.is_in_transaction:
            with self._open_transaction() as connection:
                self._refresh_copy(connection)

    def _refresh_copy(self, connection: Connection) -> None:
        # One at a time: an older copy must not take the place of a newer one.
        with self._copy_lock:
            self._key_copy = _read_copy(connection, self._key_copy)

    def close(self) -> None:
        """Stop looking for changes."""
        self._has_ended = True
        self._database.notices.unsubscribe(_KEYS_STORE_NAME, self._change_event.set)
        self._change_event.set()

    def _read_own_copy(self) -> _KeyCopy:
        with self._open_transaction() as connection:
            return _read_copy(connection, None)

    @contextmanager
    def _open_transaction(self) -> Iterator[Connection]:
        try:
            self._database.prepare()
            with self._database.transaction() as shared_transaction:
                yield shared_transaction.connection
        except DatabaseConflict as error:
            raise KeyExists(
                "There is a key of that name or for that subject already; revoke it first, or "
                "choose another"
            ) from error
        except DatabaseFailed as error:
            raise StorageFailed(f"The keys cannot be used: {error.message}") from error


def open_keys(settings: RoomSettings) -> KeyRing:
    """Return the keys in the data directory, or in the database that the settings name."""
    postgres_database = find_database(settings)
    return (
        KeyRing(settings.data)
        if postgres_database is None
        else SharedKeyRing(settings.data, postgres_database)
    )


def _read_copy(connection: Connection, previous_copy: _KeyCopy | None) -> _KeyCopy:
    begun_at = time.monotonic()
    # The generation first: keys that are newer than it are only read once more.
    generation_row = connection.execute(
        "SELECT generation FROM generations WHERE store_name = ?", (_KEYS_STORE_NAME,)
    ).fetchone()
    keys_generation = generation_row[0] if generation_row else 0
    if previous_copy is not None and previous_copy.generation == keys_generation:
        return replace(previous_copy, read_at=begun_at)
    key_rows = connection.execute(f"SELECT {_COLUMNS_SQL} FROM api_keys").fetchall()
    is_closed = _is_room_closed(connection)
    holders_by_identifier: dict[bytes | str, Holder] = {}
    for key_name, key_digest, _, oauth_subject, read_only, is_operator in key_rows:
        key_holder = Holder(key_name, bytes(key_digest).hex(), read_only, is_operator)
        holders_by_identifier[bytes(key_digest)] = key_holder
        if oauth_subject is not None:
            holders_by_identifier[oauth_subject] = key_holder
    return _KeyCopy(keys_generation, holders_by_identifier, is_closed, begun_at)


def _is_room_closed(connection: Connection) -> bool:
    closed_row = connection.execute(
        f"SELECT 1 WHERE EXISTS ({_HAS_SECRET_SQL}) OR EXISTS "
        f"(SELECT 1 FROM generations WHERE store_name = '{_CLOSED_MARK}')"
    ).fetchone()
    return closed_row is not None


def _increase_generation(connection: Any) -> None:
    connection.execute(
        "INSERT INTO generations VALUES (?, 1) ON CONFLICT (store_name) "
        "DO UPDATE SET generation = generations.generation + 1",
        (_KEYS_STORE_NAME,),
    )
    connection.execute("SELECT pg_notify(?, ?)", (NOTICE_CHANNEL_NAME, _KEYS_STORE_NAME))
