"""Named API keys: hashed, in one SQLite table, added and revoked beside a running server."""

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
from readingroom.storage.database import connect, transaction
from readingroom.storage.errors import (
    InvalidKeyName,
    InvalidSubject,
    KeyExists,
    KeyNotFound,
    StorageFailed,
)

KEYS = "keys.db"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_RESERVED = "env"  # the id under which MCP_API_KEY appears in logs and sessions

_CHANGE_COUNTER = 24  # where a database that keeps no WAL counts its transactions

Generation = tuple[int, int, bytes]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS api_keys (
    name TEXT PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    subject TEXT,
    read_only INTEGER NOT NULL DEFAULT 0
) STRICT
"""
_SINCE = {"subject": "TEXT", "read_only": "INTEGER NOT NULL DEFAULT 0"}
_SUBJECTS = "CREATE UNIQUE INDEX IF NOT EXISTS api_keys_subjects ON api_keys (subject)"

_LONGEST_SUBJECT = 255  # OpenID Connect lets no issuer give a longer one


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown: never the secret, which nobody but its holder knows."""

    name: str
    created_at: str
    subject: str | None = None
    """Whose OAuth tokens it stands for; such a key has no secret that anybody knows."""
    read_only: bool = False
    """Whether its holder sees and calls no tool that writes."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a key. A later key of the same name is another holder: sessions do not pass on."""

    name: str
    digest: str
    read_only: bool = False


class KeyRing:
    """The keys of one data directory; the file appears with the first of them."""

    def __init__(self, data: Path) -> None:
        self.path = data / KEYS
        self._file = str(self.path)  # asked at every request: os.stat is fastest with a string
        self._reader: sqlite3.Connection | None = None
        self._header = -1  # a descriptor on the same file
        self._reading: tuple[int, int] | None = None
        """Which file they have open: it may be replaced under us, by a restore say."""
        self._known: dict[bytes | str, Holder] = {}
        """By a secret's digest or by a token's subject."""
        self._known_since: Generation | None = None

    def add(self, name: str, read_only: bool = False) -> str:
        """Make a key and return its secret, this once."""
        secret = "rr_" + secrets.token_urlsafe(32)
        self._insert(name, _digest(secret.encode()), None, read_only)
        return secret

    def add_subject(self, name: str, subject: str, read_only: bool = False) -> None:
        """Let in the OAuth tokens of a subject under this name, and nobody by a secret."""
        if not subject.strip() or not subject.isprintable() or len(subject) > _LONGEST_SUBJECT:
            raise InvalidSubject(
                f"A subject is 1 to {_LONGEST_SUBJECT} printable characters, exactly as the "
                "token's `sub` has it"
            )
        self._insert(name, secrets.token_bytes(32), subject, read_only)

    def _insert(self, name: str, digest: bytes, subject: str | None, read_only: bool) -> None:
        if not _NAME.fullmatch(name) or name == _RESERVED:
            raise InvalidKeyName(
                f"{name!r} cannot name a key: use 1 to 64 letters, digits, '.', '-' or '_', "
                f"starting with a letter or digit, and not {_RESERVED!r}"
            )
        row = (name, digest, clock.stamp(), subject, int(read_only))
        with self._writing() as db:
            try:
                db.execute("INSERT INTO api_keys VALUES (?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError as error:
                taken = "for that subject" if "subject" in str(error) else f"named {name!r}"
                raise KeyExists(
                    f"There is a key {taken} already; revoke it first, or choose another"
                ) from error

    def keys(self) -> list[Key]:
        """Every key, by name."""
        rows = self._read("SELECT name, created_at, subject, read_only FROM api_keys ORDER BY name")
        return [Key(name, at, subject, bool(only)) for name, at, subject, only in rows]

    def revoke(self, name: str) -> None:
        """Forget a key: its next request is refused."""
        unknown = KeyNotFound(f"There is no key named {name!r}; `readingroom keys list` shows all")
        if not self.path.exists():
            raise unknown
        with self._writing() as db:
            if db.execute("DELETE FROM api_keys WHERE name = ?", (name,)).rowcount == 0:
                raise unknown

    def holder(self, secret: bytes) -> Holder | None:
        """Whose key this secret is.

        Looked up by hash: what the time of an index lookup tells of a SHA-256 digest is nothing
        about the secret.
        """
        return self._holder(_digest(secret), "hash")

    def holder_of_subject(self, subject: str) -> Holder | None:
        """Whose key stands for the OAuth tokens of this subject."""
        return self._holder(subject, "subject")

    def _holder(self, sought: bytes | str, column: str) -> Holder | None:
        generation = self._generation()
        if generation != self._known_since:
            self._known.clear()
            self._known_since = generation
        if sought not in self._known:
            rows = self._read(
                f"SELECT name, hash, read_only FROM api_keys WHERE {column} = ?", sought
            )
            if not rows:
                return None
            name, digest, read_only = rows[0]
            self._known[sought] = Holder(name, digest.hex(), bool(read_only))
        return self._known[sought]

    def any(self) -> bool:
        """Whether there is a key that somebody can send."""
        return bool(self._read("SELECT 1 FROM api_keys WHERE subject IS NULL LIMIT 1"))

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction on the file, which is made when it is not there."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=0o600)
            with closing(connect(self.path)) as db:
                _prepare(db)
                with transaction(db):
                    yield db
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error

    def _read(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            reader = self._open()
            return reader.execute(sql, values).fetchall() if reader else []
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error

    def _open(self) -> sqlite3.Connection | None:
        """The reader, on the file that is there now; None while there is none."""
        try:
            status = os.stat(self._file)  # noqa: PTH116 (see above)
        except FileNotFoundError:
            return None
        if self._reading != (status.st_dev, status.st_ino):
            if self._header >= 0:
                os.close(self._header)
            self._header = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self._reader = connect(self.path)
            # The first writer may be between making the file and making the table.
            _prepare(self._reader)
            self._reading = (status.st_dev, status.st_ino)
        return self._reader

    def _generation(self) -> Generation | None:
        """Another one after every write, by whatever process: SQLite counts them in the header."""
        try:
            if self._open() is None:
                return None
            assert self._reading is not None
            return (*self._reading, os.pread(self._header, 4, _CHANGE_COUNTER))
        except (OSError, sqlite3.Error) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StorageFailed:
        reason = getattr(error, "strerror", None) or error
        return StorageFailed(f"The keys in {self.path.name} cannot be used: {reason}")


def _prepare(db: sqlite3.Connection) -> None:
    """The table as it is now; one from before gets the columns that came since."""
    db.execute(_SCHEMA)
    if _missing(db):
        with transaction(db):
            for column in _missing(db):  # again: another process may have added them meanwhile
                db.execute(f"ALTER TABLE api_keys ADD COLUMN {column} {_SINCE[column]}")
    db.execute(_SUBJECTS)


def _missing(db: sqlite3.Connection) -> list[str]:
    there = {column[1] for column in db.execute("PRAGMA table_info(api_keys)")}
    return [column for column in _SINCE if column not in there]


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()
