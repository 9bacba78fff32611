"""Connected apps: clients that registered, and what holders of keys have allowed them.

Codes and tokens are kept as digests. The secret of a client is kept as it is: anybody can register
a client, so its secret alone opens nothing.
"""

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from readingroom.core import clock
from readingroom.storage.database import StateFile, StateTables

GRANTS_FILE_NAME = "grants.db"
ACCESS_TOKEN_PREFIX = "rra_"
"""Tells an access token from a key, which begins with `rr_`."""
CONSENT_REQUEST_SECONDS = 600
AUTHORIZATION_CODE_SECONDS = 120
ACCESS_TOKEN_SECONDS = 3600
REFRESH_TOKEN_SECONDS = 30 * 24 * 3600
MAX_CLIENTS = 1000
MAX_CONSENT_REQUESTS = 1000
MAX_REQUESTS_PER_CLIENT = 20
"""So that one client cannot drive out the requests of the others."""
MAX_OLD_TOKENS = 100
"""Of one grant: an app that refreshes without end fills no disk."""

TokenKind = Literal["code", "access", "refresh"]
_LIFETIME_SECONDS_BY_TOKEN_KIND: dict[TokenKind, int] = {
    "code": AUTHORIZATION_CODE_SECONDS,
    "access": ACCESS_TOKEN_SECONDS,
    "refresh": REFRESH_TOKEN_SECONDS,
}
_PREFIX_BY_TOKEN_KIND: dict[TokenKind, str] = {
    "code": "rrc_",
    "access": ACCESS_TOKEN_PREFIX,
    "refresh": "rrf_",
}

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS clients (
    client_id TEXT PRIMARY KEY,
    metadata TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS consent_requests (
    digest TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    parameters TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS grants (
    grant_id TEXT PRIMARY KEY,
    client_id TEXT NOT NULL,
    key_digest TEXT NOT NULL,
    may_write INTEGER NOT NULL,
    face_path TEXT,
    parameters TEXT NOT NULL,
    created_at REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS tokens (
    digest TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    grant_id TEXT NOT NULL REFERENCES grants (grant_id) ON DELETE CASCADE,
    expires_at REAL NOT NULL,
    is_spent INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS tokens_by_grant ON tokens (grant_id);
"""
_GRANT_COLUMNS_SQL = ", ".join(
    f"grants.{column}"
    for column in (
        *("grant_id", "client_id", "key_digest", "may_write", "face_path", "parameters"),
        "created_at",
    )
)


@dataclass(frozen=True, slots=True)
class Grant:
    """What the holder of a key has allowed a client."""

    grant_id: str
    client_id: str
    key_digest: str
    may_write: bool
    face_path: str | None
    """The face whose tools it may call, such as `/policy`; None for all of them."""
    parameters_json: str
    """The request that it answers, as JSON."""
    created_at: float


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A code or a token with the grant that it stands for."""

    grant: Grant
    expires_at: float
    is_spent: bool


@dataclass(frozen=True, slots=True)
class ConsentRequest:
    """A client's request that nobody has answered yet."""

    client_id: str
    parameters_json: str


class GrantStore:
    """The clients and grants of one data directory, or of all processes on one database."""

    def __init__(
        self,
        data_directory: Path,
        read_clock: Callable[[], float] = clock.read_unix_seconds,
        state_tables: StateTables | None = None,
    ) -> None:
        """Without `state_tables` they are in a file, which is created with the first client."""
        self._state_tables = state_tables or StateFile(
            data_directory / GRANTS_FILE_NAME,
            "The connected apps",
            lambda db: db.executescript(_SCHEMA_SQL),
        )
        self._get_now_seconds = read_clock

    def add_client(self, client_id: str, metadata_json: str) -> None:
        """Keep a client. Beyond MAX_CLIENTS the oldest without a grant makes room."""
        with self._state_tables.begin_writing() as db:
            # SQLite takes no OFFSET without a LIMIT, so here is one that no table reaches.
            db.execute(
                "DELETE FROM clients WHERE client_id IN (SELECT client_id FROM clients "
                "WHERE client_id NOT IN (SELECT client_id FROM grants) "
                "ORDER BY created_at DESC LIMIT 1000000 OFFSET ?)",
                (MAX_CLIENTS - 1,),
            )
            db.execute(
                "INSERT INTO clients (client_id, metadata, created_at) VALUES (?, ?, ?)",
                (client_id, metadata_json, self._get_now_seconds()),
            )

    def find_client_metadata(self, client_id: str) -> str | None:
        """Return the metadata of a client as JSON; None for one that is not known."""
        if not self._state_tables.has_data():
            return None
        with self._state_tables.begin_reading() as db:
            client_row = db.execute(
                "SELECT metadata FROM clients WHERE client_id = ?", (client_id,)
            ).fetchone()
        return client_row[0] if client_row else None

    def add_request(self, client_id: str, parameters_json: str) -> str:
        """Keep what a client asks for until somebody answers, and return its id."""
        request_id = secrets.token_urlsafe(32)
        with self._state_tables.begin_writing() as db:
            db.execute(
                "DELETE FROM consent_requests WHERE created_at < ? OR digest IN ("
                "SELECT digest FROM consent_requests "
                "ORDER BY created_at DESC LIMIT 1000000 OFFSET ?)",
                (self._get_now_seconds() - CONSENT_REQUEST_SECONDS, MAX_CONSENT_REQUESTS - 1),
            )
            db.execute(
                # The newest stay: a person who begins again answers the last one.
                "DELETE FROM consent_requests WHERE digest IN ("
                "SELECT digest FROM consent_requests WHERE client_id = ? "
                "ORDER BY created_at DESC LIMIT 1000000 OFFSET ?)",
                (client_id, MAX_REQUESTS_PER_CLIENT - 1),
            )
            db.execute(
                "INSERT INTO consent_requests (digest, client_id, parameters, created_at) "
                "VALUES (?, ?, ?, ?)",
                (_hash_token(request_id), client_id, parameters_json, self._get_now_seconds()),
            )
        return request_id

    def find_request(self, request_id: str) -> ConsentRequest | None:
        """Return a request that waits for an answer; None for one that was answered or is old."""
        if not self._state_tables.has_data():
            return None
        with self._state_tables.begin_reading() as db:
            request_row = db.execute(
                "SELECT client_id, parameters FROM consent_requests "
                "WHERE digest = ? AND created_at >= ?",
                (_hash_token(request_id), self._get_now_seconds() - CONSENT_REQUEST_SECONDS),
            ).fetchone()
        return ConsentRequest(*request_row) if request_row else None

    def remove_request(self, request_id: str) -> bool:
        """Take a request away; return whether it was still there, so that one answer counts."""
        with self._state_tables.begin_writing() as db:
            delete_cursor = db.execute(
                "DELETE FROM consent_requests WHERE digest = ?", (_hash_token(request_id),)
            )
            return bool(delete_cursor.rowcount == 1)

    def add_grant(
        self,
        request: ConsentRequest,
        key_digest: str,
        may_write: bool,
        face_path: str | None,
    ) -> str:
        """Keep what the holder of a key allows, and return the code that the client is sent."""
        grant_id, now_seconds = secrets.token_hex(16), self._get_now_seconds()
        with self._state_tables.begin_writing() as db:
            db.execute(
                "DELETE FROM grants WHERE grant_id NOT IN "
                "(SELECT grant_id FROM tokens WHERE expires_at >= ?)",
                (now_seconds,),
            )
            db.execute(
                "INSERT INTO grants (grant_id, client_id, key_digest, may_write, face_path, "
                "parameters, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    grant_id,
                    request.client_id,
                    key_digest,
                    int(may_write),
                    face_path,
                    request.parameters_json,
                    now_seconds,
                ),
            )
            return self._issue_token(db, "code", grant_id)

    def find_token(self, token_kind: TokenKind, secret_token: str) -> IssuedToken | None:
        """Return a code or a token that has not expired; one that is spent says so."""
        if not self._state_tables.has_data():
            return None
        with self._state_tables.begin_reading() as db:
            token_row = db.execute(
                f"SELECT {_GRANT_COLUMNS_SQL}, expires_at, is_spent FROM tokens "
                "JOIN grants USING (grant_id) WHERE digest = ? AND kind = ? AND expires_at >= ?",
                (_hash_token(secret_token), token_kind, self._get_now_seconds()),
            ).fetchone()
        return (
            IssuedToken(_parse_grant_row(token_row), token_row[-2], bool(token_row[-1]))
            if token_row
            else None
        )

    def exchange_token(self, token_kind: TokenKind, secret_token: str) -> tuple[str, str] | None:
        """Spend a code or a refresh token, and return a new access and a new refresh token.

        Return None for one that was spent before: somebody else has it, so its grant ends.
        """
        with self._state_tables.begin_writing() as db:
            token_digest = _hash_token(secret_token)
            token_row = db.execute(
                "SELECT grant_id, is_spent FROM tokens WHERE digest = ? AND kind = ?",
                (token_digest, token_kind),
            ).fetchone()
            if token_row is None:
                return None
            grant_id, is_spent = token_row
            if is_spent:
                # Its tokens go with it, those of the app too: nobody can tell which of the two was
                # the thief.
                db.execute("DELETE FROM grants WHERE grant_id = ?", (grant_id,))
                return None
            db.execute("UPDATE tokens SET is_spent = 1 WHERE digest = ?", (token_digest,))
            self._delete_expired_tokens(db, grant_id)
            return self._issue_token(db, "access", grant_id), self._issue_token(
                db, "refresh", grant_id
            )

    def _delete_expired_tokens(self, db: Any, grant_id: str) -> None:
        """Remove what has expired; what is spent stays, to be recognised when it comes again."""
        db.execute(
            "DELETE FROM tokens WHERE grant_id = ? AND expires_at < ?",
            (grant_id, self._get_now_seconds()),
        )
        # By kind: a spent refresh token outlives every access token, and would drive them out.
        for kind_condition in ("kind = 'access'", "kind <> 'access' AND is_spent = 1"):
            db.execute(
                "DELETE FROM tokens WHERE digest IN ("
                f"SELECT digest FROM tokens WHERE grant_id = ? AND {kind_condition} "
                "ORDER BY expires_at DESC LIMIT 1000000 OFFSET ?)",
                (grant_id, MAX_OLD_TOKENS),
            )

    def end_grant(self, grant_id: str) -> None:
        """End a grant with its tokens; it does not matter whether there was one."""
        with self._state_tables.begin_writing() as db:
            db.execute("DELETE FROM grants WHERE grant_id = ?", (grant_id,))

    def list_grants(self) -> list[tuple[Grant, str]]:
        """Return the grants that can still be used, each with its client's metadata."""
        if not self._state_tables.has_data():
            return []
        with self._state_tables.begin_reading() as db:
            grant_rows = db.execute(
                f"SELECT {_GRANT_COLUMNS_SQL}, metadata "
                "FROM grants JOIN clients USING (client_id) WHERE grant_id IN "
                "(SELECT grant_id FROM tokens WHERE expires_at >= ? AND is_spent = 0) "
                "ORDER BY grants.created_at",
                (self._get_now_seconds(),),
            ).fetchall()
        return [(_parse_grant_row(grant_row), grant_row[-1]) for grant_row in grant_rows]

    def _issue_token(self, db: Any, token_kind: TokenKind, grant_id: str) -> str:
        secret_token = _PREFIX_BY_TOKEN_KIND[token_kind] + secrets.token_urlsafe(32)
        db.execute(
            "INSERT INTO tokens (digest, kind, grant_id, expires_at) VALUES (?, ?, ?, ?)",
            (
                _hash_token(secret_token),
                token_kind,
                grant_id,
                self._get_now_seconds() + _LIFETIME_SECONDS_BY_TOKEN_KIND[token_kind],
            ),
        )
        return secret_token


def _parse_grant_row(grant_row: tuple[Any, ...]) -> Grant:
    grant_id, client_id, key_digest, may_write, face_path, parameters_json, created_at = grant_row[
        :7
    ]
    return Grant(
        grant_id, client_id, key_digest, bool(may_write), face_path, parameters_json, created_at
    )


def _hash_token(secret_token: str) -> str:
    # No salt: the tokens are random, so nobody can have a list of their digests.
    return hashlib.sha256(secret_token.encode()).hexdigest()
