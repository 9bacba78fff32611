"""Named API keys, stored as hashes in SQLite; added and revoked while a server runs."""

import hashlib
import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readingroom.core import clock
from readingroom.storage.database import (
    Database,
    DatabaseError,
    connect,
    open_small_database,
    open_untrusted,
)
from readingroom.storage.errors import (
    BackupUnusable,
    InvalidKeyName,
    InvalidSubject,
    KeyExists,
    KeyNotFound,
    StorageFailed,
    describe_cause,
)
from readingroom.storage.key_uses import KeyUseDays

KEYS_FILE_NAME = "keys.db"
_KEY_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
# The name under which MCP_API_KEY appears in logs and sessions.
_RESERVED_NAME = "env"

# Offset in the file header where SQLite counts transactions, unless the database uses a WAL.
_CHANGE_COUNTER_OFFSET = 24

FileGeneration = tuple[int, int, bytes]
KeyRow = tuple[Any, ...]
"""A key as it is stored: name, digest, when it was made, subject, read-only, operator."""

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS api_keys (
    name TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    subject TEXT,
    read_only INTEGER NOT NULL DEFAULT 0
) STRICT
"""
# Columns that the first version of the table did not have.
_TYPE_BY_ADDED_COLUMN = {"subject": "TEXT", "read_only": "INTEGER NOT NULL DEFAULT 0"}
# A table of its own: version 0.1.0 adds keys to a table that has exactly those columns.
_OPERATORS_SCHEMA_SQL = "CREATE TABLE IF NOT EXISTS key_operators (hash BLOB PRIMARY KEY) STRICT"
_IS_OPERATOR_SQL = "EXISTS (SELECT 1 FROM key_operators WHERE key_operators.hash = api_keys.hash)"
_WORKERS_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS worker_keys (
    name TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    created_at TEXT NOT NULL
) STRICT
"""
KEYS_LEFT_MESSAGE = "There are keys: revoke them first, and then open the room"
_HAS_SECRET_SQL = "SELECT 1 FROM api_keys WHERE subject IS NULL LIMIT 1"
# It has a row once there was a key with a secret: revoking the last one does not open the room.
_CLOSED_TABLE_SQL = "CREATE TABLE IF NOT EXISTS room_closed (mark INTEGER PRIMARY KEY) STRICT"
_MARK_CLOSED_SQL = "INSERT OR IGNORE INTO room_closed VALUES (1)"
_SUBJECT_INDEX_SQL = "CREATE UNIQUE INDEX IF NOT EXISTS api_keys_subjects ON api_keys (subject)"

# OpenID Connect allows no longer one.
_MAX_SUBJECT_CHARS = 255


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown: without the secret, which only its holder has."""

    name: str
    created_at: str
    subject: str | None = None
    """The subject whose OAuth tokens it accepts; such a key has no secret that can be sent."""
    read_only: bool = False
    """Whether its holder can neither see nor call tools that write."""
    operator: bool = False
    """Whether its holder may run the server in the console: keys, jobs, errors."""
    last_used_on: str | None = None
    """The last day on which it was used; None if it never was, or not since that is noted."""
    worker: bool = False
    """Whether its holder may embed passages for the server, and nothing else."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a key. A later key of the same name is another holder, and gets no old sessions."""

    name: str
    digest: str
    read_only: bool = False
    operator: bool = False


class KeyRing:
    """The keys of one data directory; the file is created with the first key."""

    def __init__(self, data_directory: Path) -> None:
        self.path = data_directory / KEYS_FILE_NAME
        # As a string: every request calls os.stat, which is slower with a Path.
        self._path_string = str(self.path)
        self._key_uses = KeyUseDays(data_directory)
        self._reading_connection: Database | None = None
        self._header_descriptor = -1  # a descriptor on the same file
        # Device and inode of the open file: a restore may replace the file at any time.
        self._open_file_id: tuple[int, int] | None = None
        self._cached_holders_by_identifier: dict[bytes | str, Holder] = {}
        """Cached by the digest of a secret or by the subject of a token."""
        self._cached_generation: FileGeneration | None = None

    def add_key(self, key_name: str, read_only: bool = False, is_operator: bool = False) -> str:
        """Make a key and return its secret, which cannot be read again.

        Raise `InvalidKeyName` or `KeyExists`.
        """
        new_secret = "rr_" + secrets.token_urlsafe(32)
        self._insert_key(key_name, hash_secret(new_secret.encode()), None, read_only, is_operator)
        return new_secret

    def add_subject(self, key_name: str, subject: str, read_only: bool = False) -> None:
        """Accept the OAuth tokens of a subject under this name.

        Raise `InvalidSubject`, `InvalidKeyName` or `KeyExists`.
        """
        if not _is_valid_subject(subject):
            raise InvalidSubject(
                f"A subject is 1 to {_MAX_SUBJECT_CHARS} printable characters, exactly as the "
                "token's `sub` has it"
            )
        # A random digest fills the column: no secret has it, so the key cannot be sent.
        self._insert_key(key_name, secrets.token_bytes(32), subject, read_only, operator=False)

    def _insert_key(
        self, key_name: str, key_digest: bytes, subject: str | None, read_only: bool, operator: bool
    ) -> None:
        check_key_name(key_name)
        key_row = (key_name, key_digest, clock.format_now(), subject, int(read_only), int(operator))
        self.insert_rows([key_row])

    def insert_rows(self, key_rows: list[KeyRow]) -> None:
        """Add keys, all or none. Raise `KeyExists`."""
        with self._open_writer() as db:
            if any(key_row[3] is None for key_row in key_rows):  # one has no subject, but a secret
                db.execute(_MARK_CLOSED_SQL)
            key_name = ""
            try:
                for key_row in key_rows:
                    key_name = key_row[0]
                    _insert_key_row(db, key_row)
            except sqlite3.IntegrityError as error:
                conflict_text = (
                    "for that subject" if "subject" in str(error) else f"named {key_name!r}"
                )
                raise KeyExists(
                    f"There is a key {conflict_text} already; revoke it first, or choose another"
                ) from error

    def list_keys(self) -> list[Key]:
        """Return every key, sorted by name."""
        key_rows = self._query_keys_file(
            f"SELECT name, hash, created_at, subject, read_only, {_IS_OPERATOR_SQL} FROM api_keys "
            "ORDER BY name"
        )
        last_use_day_by_digest = self._key_uses.read_days_by_digest()
        return [
            Key(
                key_name,
                created_at,
                subject,
                bool(is_read_only),
                bool(is_operator),
                last_use_day_by_digest.get(key_digest.hex()),
            )
            for key_name, key_digest, created_at, subject, is_read_only, is_operator in key_rows
        ]

    def restore_keys(self, copied_file: Path) -> list[Key]:
        """Add the keys of another file, which is not trusted, and return them.

        Only rows are taken over, since a database can also hold triggers, which would act on every
        later change of the keys. Raise `BackupUnusable` for anything that is not a key.
        """
        try:
            key_rows = _read_untrusted_rows(copied_file)
            is_closed = _was_untrusted_file_closed(copied_file)
        except DatabaseError as error:
            raise BackupUnusable(f"The keys of the backup cannot be read: {error}") from error
        if not all(_is_valid_key_row(*key_row) for key_row in key_rows):
            raise BackupUnusable("The keys of the backup are not such as Reading Room makes")
        self.insert_rows(key_rows)
        if is_closed:
            self.close_room()
        return [
            Key(key_name, created_at, subject, bool(is_read_only), bool(is_operator))
            for key_name, _, created_at, subject, is_read_only, is_operator in key_rows
        ]

    def read_rows(self) -> list[KeyRow]:
        """Return all keys as they are stored."""
        return _read_untrusted_rows(self.path)

    def revoke_key(self, key_name: str) -> None:
        """Delete a key, whose next request is then refused; raise `KeyNotFound`."""
        if not self.path.exists():
            raise make_key_not_found_error(key_name)
        with self._open_writer() as db:
            if db.execute(_HAS_SECRET_SQL).fetchone():  # of a file that an older version has made
                db.execute(_MARK_CLOSED_SQL)
            if db.execute("DELETE FROM api_keys WHERE name = ?", (key_name,)).rowcount == 0:
                raise make_key_not_found_error(key_name)
            db.execute("DELETE FROM key_operators WHERE hash NOT IN (SELECT hash FROM api_keys)")

    def find_holder(self, secret_bytes: bytes) -> Holder | None:
        """Return the holder of the key with this secret, or None."""
        # By its hash: the time that the lookup takes reveals nothing about the secret.
        return self._find_holder_by_column(hash_secret(secret_bytes), "hash")

    def find_holder_by_digest(self, key_digest: str) -> Holder | None:
        """Return the holder of the key whose secret has this digest, or None."""
        return self._find_holder_by_column(bytes.fromhex(key_digest), "hash")

    def find_subject_holder(self, subject: str) -> Holder | None:
        """Return the holder whose key accepts the OAuth tokens of this subject, or None."""
        return self._find_holder_by_column(subject, "subject")

    def _find_holder_by_column(self, column_value: bytes | str, column_name: str) -> Holder | None:
        # A revoked key must be refused at once, so the cache is valid for one generation only.
        generation = self._read_file_generation()
        if generation != self._cached_generation:
            self._cached_holders_by_identifier.clear()
            self._cached_generation = generation
        if column_value not in self._cached_holders_by_identifier:
            key_rows = self._query_keys_file(
                f"SELECT name, hash, read_only, {_IS_OPERATOR_SQL} FROM api_keys "
                f"WHERE {column_name} = ?",
                column_value,
            )
            if not key_rows:
                return None
            key_name, key_digest, read_only, is_operator = key_rows[0]
            holder = Holder(key_name, key_digest.hex(), bool(read_only), bool(is_operator))
            self._cached_holders_by_identifier[column_value] = holder
        holder = self._cached_holders_by_identifier[column_value]
        self._key_uses.record_use(holder.digest)
        return holder

    def has_keys(self) -> bool:
        """Return whether there is a key with a secret that can be sent."""
        return bool(self._query_keys_file(_HAS_SECRET_SQL))

    def has_any_key(self) -> bool:
        """Return whether anybody can be let in: by a secret, or by the tokens of a subject."""
        return bool(self._query_keys_file("SELECT 1 FROM api_keys LIMIT 1"))

    def is_closed(self) -> bool:
        """Return whether a key is asked for: there is one, or was one, and nobody reopened it."""
        return self.has_keys() or bool(self._query_keys_file("SELECT 1 FROM room_closed"))

    def is_key_asked_for(self) -> bool:
        """Return what `is_closed` does, for requests: without waiting for another machine."""
        return self.is_closed()

    def follow_changes(self) -> None:
        """Begin to follow what other machines change, if any can; a failure is only logged."""

    def close_room(self) -> None:
        """Ask for a key from now on, also when there is none."""
        with self._open_writer() as db:
            db.execute(_MARK_CLOSED_SQL)

    def reopen_room(self) -> None:
        """Let a server that starts from now on be open. Raise `KeyExists` while there are keys."""
        if self.has_keys():
            raise KeyExists(KEYS_LEFT_MESSAGE)
        if self.path.exists():
            with self._open_writer() as db:
                db.execute("DELETE FROM room_closed")

    @contextmanager
    def _open_writer(self) -> Iterator[Database]:
        """Open a transaction on the file, which is created when it does not exist."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Before SQLite creates it, readable for everybody.
            self.path.touch(mode=0o600)
            with closing(connect(self.path)) as db:
                _create_keys_table(db)
                with db.transaction():
                    yield db
        except (OSError, DatabaseError) as error:
            raise self._make_storage_error(error) from error

    def _query_keys_file(self, sql: str, *sql_values: object) -> list[tuple[Any, ...]]:
        try:
            reader = self._open_reader()
            return reader.execute(sql, sql_values).fetchall() if reader else []
        except (OSError, DatabaseError) as error:
            raise self._make_storage_error(error) from error

    def _open_reader(self) -> Database | None:
        """Return a reader of the file that is there now; None when there is no file."""
        try:
            file_status = os.stat(self._path_string)  # noqa: PTH116 (see above)
        except FileNotFoundError:
            return None
        if self._open_file_id != (file_status.st_dev, file_status.st_ino):
            if self._header_descriptor >= 0:
                os.close(self._header_descriptor)
            self._header_descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            # A server looks at the keys from the thread that starts it, and then from another.
            self._reading_connection = connect(self.path, from_any_thread=True)
            # The first writer may be between making the file and making the table.
            _create_keys_table(self._reading_connection)
            self._open_file_id = (file_status.st_dev, file_status.st_ino)
        return self._reading_connection

    def _read_file_generation(self) -> FileGeneration | None:
        """Return a value that every write, by any process, changes; None when there is no file."""
        try:
            if self._open_reader() is None:
                return None
            assert self._open_file_id is not None
            return (
                *self._open_file_id,
                os.pread(self._header_descriptor, 4, _CHANGE_COUNTER_OFFSET),
            )
        except (OSError, DatabaseError) as error:
            raise self._make_storage_error(error) from error

    def _make_storage_error(self, error: Exception) -> StorageFailed:
        return StorageFailed(
            f"The keys in {self.path.name} cannot be used: {describe_cause(error)}"
        )


def make_key_not_found_error(key_name: str) -> KeyNotFound:
    """Return the error for a name that no key has."""
    return KeyNotFound(f"There is no key named {key_name!r}; `readingroom keys list` shows all")


class WorkerKeys:
    """The keys of workers, which embed passages and may do nothing else.

    They have a table of their own: who looks for the key of a caller, 0.1.0 too, finds none.
    """

    def __init__(self, data_directory: Path) -> None:
        self._path = data_directory / KEYS_FILE_NAME

    def add_key(self, key_name: str) -> str:
        """Make a key and return its secret, which cannot be read again.

        Raise `InvalidKeyName` or `KeyExists`.
        """
        check_key_name(key_name)
        new_secret = "rrw_" + secrets.token_urlsafe(32)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch(mode=0o600)  # before SQLite creates it, readable for everybody
        with open_small_database(self._path, _SCHEMA_SQL + ";" + _WORKERS_SCHEMA_SQL) as db:
            taken_names_sql = "SELECT name FROM api_keys UNION ALL SELECT name FROM worker_keys"
            if (key_name,) in db.execute(taken_names_sql).fetchall():
                raise KeyExists(
                    f"There is a key named {key_name!r} already; revoke it first, or choose another"
                )
            db.execute(
                "INSERT INTO worker_keys (name, hash, created_at) VALUES (?, ?, ?)",
                (key_name, hash_secret(new_secret.encode()), clock.format_now()),
            )
        return new_secret

    def list_keys(self) -> list[Key]:
        """Return every key of a worker, sorted by name."""
        key_rows = self._execute_sql("SELECT name, created_at FROM worker_keys ORDER BY name")
        return [Key(key_name, created_at, worker=True) for key_name, created_at in key_rows]

    def revoke_key(self, key_name: str) -> bool:
        """Delete the key of a worker; return whether there was one."""
        return bool(
            self._execute_sql("DELETE FROM worker_keys WHERE name = ? RETURNING 1", key_name)
        )

    def find_worker_name(self, secret_bytes: bytes) -> str | None:
        """Return the name of the key with this secret, or None."""
        key_rows = self._execute_sql(
            "SELECT name FROM worker_keys WHERE hash = ?", hash_secret(secret_bytes)
        )
        return str(key_rows[0][0]) if key_rows else None

    def _execute_sql(self, sql: str, *sql_values: object) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with open_small_database(self._path, _WORKERS_SCHEMA_SQL) as db:
            return db.execute(sql, sql_values).fetchall()


def check_key_name(key_name: str) -> None:
    """Raise `InvalidKeyName` for what cannot name a key."""
    if not _is_valid_key_name(key_name):
        raise InvalidKeyName(
            f"{key_name!r} cannot name a key: use 1 to 64 letters, digits, '.', '-' or '_', "
            f"starting with a letter or digit, and not {_RESERVED_NAME!r}"
        )


def _create_keys_table(db: Database) -> None:
    """Create the table, and add the columns that an older one does not have."""
    db.execute(_SCHEMA_SQL)
    db.execute(_OPERATORS_SCHEMA_SQL)
    db.execute(_CLOSED_TABLE_SQL)
    if _list_missing_column_names(db):
        with db.transaction():
            # Read again: another process may have added them before the transaction began.
            for column_name in _list_missing_column_names(db):
                column_type = _TYPE_BY_ADDED_COLUMN[column_name]
                db.execute(f"ALTER TABLE api_keys ADD COLUMN {column_name} {column_type}")
    db.execute(_SUBJECT_INDEX_SQL)


def _insert_key_row(db: Database, key_row: KeyRow) -> None:
    *column_values, operator = key_row
    db.execute(
        "INSERT INTO api_keys (name, hash, created_at, subject, read_only) VALUES (?, ?, ?, ?, ?)",
        column_values,
    )
    if operator:
        db.execute("INSERT INTO key_operators (hash) VALUES (?)", (key_row[1],))


def _list_missing_column_names(db: Database) -> list[str]:
    present_names = {name for _, name, *_ in db.execute("PRAGMA table_info(api_keys)")}
    return [name for name in _TYPE_BY_ADDED_COLUMN if name not in present_names]


def _read_untrusted_rows(keys_path: Path) -> list[KeyRow]:
    """Return the rows of a file that may be anybody's, in the order of our columns."""
    with closing(open_untrusted(keys_path)) as db:
        missing_column_names = _list_missing_column_names(db)
        subject_sql = "NULL" if "subject" in missing_column_names else "subject"
        read_only_sql = "0" if "read_only" in missing_column_names else "read_only"
        table_names = {table_name for (table_name,) in db.execute(db.dialect.table_names_sql)}
        operator_sql = _IS_OPERATOR_SQL if "key_operators" in table_names else "0"
        return db.execute(
            f"SELECT name, hash, created_at, {subject_sql}, {read_only_sql}, {operator_sql} "
            "FROM api_keys ORDER BY name"
        ).fetchall()


def _was_untrusted_file_closed(keys_path: Path) -> bool:
    with closing(open_untrusted(keys_path)) as db:
        has_table_sql = "SELECT 1 FROM sqlite_master WHERE name = 'room_closed'"
        has_table = db.execute(has_table_sql).fetchone() is not None
        return has_table and db.execute("SELECT 1 FROM room_closed").fetchone() is not None


def _is_valid_key_row(
    key_name: object,
    key_digest: object,
    created_at: object,
    subject: object,
    is_read_only: object,
    is_operator: object,
) -> bool:
    return (
        isinstance(key_name, str)
        and _is_valid_key_name(key_name)
        and isinstance(key_digest, bytes)
        and len(key_digest) == hashlib.sha256().digest_size
        and isinstance(created_at, str)
        and created_at.isprintable()
        and (subject is None or (isinstance(subject, str) and _is_valid_subject(subject)))
        and is_read_only in (0, 1)
        and is_operator in (0, 1)
        # What is listed as read-only must not run the server.
        and not (is_operator and (is_read_only or subject is not None))
    )


def _is_valid_key_name(key_name: str) -> bool:
    return bool(_KEY_NAME_PATTERN.fullmatch(key_name)) and key_name != _RESERVED_NAME


def _is_valid_subject(subject: str) -> bool:
    return bool(subject.strip()) and subject.isprintable() and len(subject) <= _MAX_SUBJECT_CHARS


def hash_secret(secret_bytes: bytes) -> bytes:
    """Return the digest by which a secret is kept."""
    return hashlib.sha256(secret_bytes).digest()
