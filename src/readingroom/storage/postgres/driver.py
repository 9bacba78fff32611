"""Connections to PostgreSQL through psycopg, with the methods of the SQLite `Database`.

The only module that imports psycopg, which an embedded room does not have installed.
"""

import logging
import re
import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from readingroom.core import clock
from readingroom.core.errors import InvalidSetting
from readingroom.storage.database import StatementStopped
from readingroom.storage.dialect import POSTGRES, SqlDialect
from readingroom.storage.errors import (
    DatabaseConflict,
    DatabaseFailed,
    DatabaseUnreachable,
    InvalidDatabaseValue,
)

logger = logging.getLogger(__name__)

SCHEMA_NAME = "readingroom"
"""The schema that all tables are in, so that they can share a database with others'."""

_LITERAL_OR_PLACEHOLDER_PATTERN = re.compile(r"'[^']*'|\?")

_EMPTY_LIST_PATTERN = re.compile(r"\b(?P<not>NOT )?IN \(\)")

_URL_SCHEME_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,20})://")

_CHECK_URL_ADVICE = (
    "check the URL of the database, and that its server runs, has that database and lets us in"
)
_TRY_AGAIN_ADVICE = "try again when the database answers"
_ADVICE_BY_SQL_STATE = {
    "25006": "this server only reads, as a standby does: name the one that writes in the URL, or "
    "both with target_session_attrs=read-write",
    "42501": "give the role of the URL the right to it, or name the owner of the tables there; "
    "`readingroom doctor` names each right that is missing, with the SQL that gives it",
    "53100": "make room on the disk of the database, then try again",
    "53200": "give the database more memory, or try again when it has less to do",
    "53300": "raise max_connections of the server, or run fewer processes",
}
"""What to do about errors that whoever runs the database can mend, by their codes."""
_SERVER_FULL_REASON = "it has no connection left"
# An error of connecting has no code, and names the address, the role or the database.
_REASON_BY_PHRASE = {
    "too many clients": _SERVER_FULL_REASON,
    "too many connections": _SERVER_FULL_REASON,
    "remaining connection slots": _SERVER_FULL_REASON,
    "timeout": "it did not answer in time",
    "timed out": "it did not answer in time",
    "refused": "nothing listens there",
    "No such file": "nothing listens there",
    "authentication failed": "it does not accept the password",
    "pg_hba.conf": "it does not let us in from here",
    "does not exist": "the database or the role of the URL does not exist",
    "resolve": "the name of its host is not known",
    "the database system is": "it is starting or stopping",
}
_SECONDS_BETWEEN_LOG_LINES = 60.0
_logged_at_by_text: dict[str, float] = {}
_CONNECT_SECONDS = 10
# A peer that vanished without a word is given up after about a minute.
_KEEPALIVE_OPTIONS: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
# The server does the same with us: our locks go with the connection, and others wait for them.
_SERVER_KEEPALIVE_OPTIONS = "".join(
    f" -c tcp_{option_name}={option_value}"
    for option_name, option_value in _KEEPALIVE_OPTIONS.items()
)


def connect(url: str) -> "PostgresConnection":
    """Open a connection in autocommit mode. Raise `DatabaseUnreachable`."""
    return PostgresConnection(open_connection(url, f"{SCHEMA_NAME},public"))


def open_connection(url: str, search_path: str, is_read_only: bool = False) -> Any:
    """Open a connection of psycopg's own in autocommit mode.

    Raise `DatabaseUnreachable`, `DatabaseFailed` for a database of another encoding than UTF-8, or
    `InvalidSetting` for a URL that is none.
    """
    _check_url(url)
    access_option = " -c default_transaction_read_only=on" if is_read_only else ""
    try:
        connection = psycopg.connect(
            url,
            autocommit=True,
            connect_timeout=_CONNECT_SECONDS,
            application_name="readingroom",
            # Comparisons are of bytes, days are written as ISO 8601, whatever the server's habits.
            options=f"-c search_path={search_path} -c datestyle=ISO -c timezone=UTC"
            f"{_SERVER_KEEPALIVE_OPTIONS}{access_option}",
            **_KEEPALIVE_OPTIONS,
        )
    except psycopg.Error as error:
        raise _make_connect_error(error) from error
    _check_encoding(connection)
    return connection


def _make_connect_error(error: psycopg.Error) -> DatabaseUnreachable:
    """Return an error whose message has no address: callers of a server see it."""
    driver_text = str(error)
    reason = next(
        (
            known_reason
            for phrase, known_reason in _REASON_BY_PHRASE.items()
            if phrase in driver_text
        ),
        "the connection failed",
    )
    is_server_full = reason == _SERVER_FULL_REASON
    advice = _ADVICE_BY_SQL_STATE["53300"] if is_server_full else _CHECK_URL_ADVICE
    unreachable = DatabaseUnreachable(f"The database cannot be reached: {reason}; {advice}")
    unreachable.operator_detail = _describe_database_error(error)
    _log_connect_error(unreachable.operator_detail)
    return unreachable


def _log_connect_error(driver_text: str) -> None:
    """Log why no connection could be opened, at most once a minute: many may be tried."""
    now_seconds = clock.read_unix_seconds()
    if now_seconds - _logged_at_by_text.get(driver_text, 0.0) > _SECONDS_BETWEEN_LOG_LINES:
        _logged_at_by_text.clear()  # one of the last minute is enough to know
        _logged_at_by_text[driver_text] = now_seconds
        # Without handlers this is the shell, whose user is told by the error itself.
        if logging.getLogger().handlers:
            logger.warning("No connection to the database: %s", driver_text)


def _check_encoding(connection: Any) -> None:
    # The server has said it when the connection was opened, so asking costs nothing.
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        database_name = connection.info.dbname
        connection.close()
        raise DatabaseFailed(
            f"The database {database_name} keeps texts as {encoding}, which cannot hold all of "
            "them: make another one with CREATE DATABASE room TEMPLATE template0 ENCODING 'UTF8' "
            "LOCALE_PROVIDER builtin LOCALE 'C.UTF-8', and name it in READINGROOM_DATABASE_URL"
        )


def _check_url(url: str) -> None:
    # psycopg would quote in its error what it cannot read: the password, or a part of it.
    try:
        conninfo_to_dict(url)
        # libpq ends the password at the first `@`, and takes the rest of it for the host.
        is_readable = urlsplit(url).netloc.count("@") <= 1
    except (psycopg.ProgrammingError, ValueError):
        is_readable = False
    url_scheme_match = _URL_SCHEME_PATTERN.match(url)
    if url_scheme_match and url_scheme_match[1] not in ("postgresql", "postgres"):
        raise InvalidSetting(
            f"The URL of the database begins with {url_scheme_match[0]}, and only PostgreSQL is "
            "known here: write postgresql://user:password@host/name"
        )
    if not is_readable:
        raise InvalidSetting(
            "The URL of the database cannot be read: write postgresql://user:password@host/name, "
            "with the special characters of the password as %40 and so on"
        )


class NamedRow(tuple[Any, ...]):
    """A row whose values are read by the name of their column, or by position."""

    column_names: tuple[str, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return tuple.__getitem__(self, self.column_names.index(key))
        return tuple.__getitem__(self, key)

    def keys(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.column_names)


class PostgresConnection:
    """A connection, used by one thread at a time. Every method raises `DatabaseFailed`."""

    dialect: SqlDialect = POSTGRES

    def __init__(self, connection: Any) -> None:
        self._psycopg_connection = connection

    def execute(
        self, sql: str, values: Sequence[Any] = (), binary: bool = False, plan_anew: bool = False
    ) -> Any:
        """Run a statement, with `?` for each value, and return its cursor.

        With `binary` the values of types that psycopg does not know are bytes: a vector is. With
        `plan_anew` the statement is never prepared: its best plan depends on the values.
        """
        with _translate_errors():
            cursor = self._psycopg_connection.cursor(binary=binary, row_factory=_make_named_rows)
            return cursor.execute(
                _translate_sql(sql, has_values=bool(values)),
                tuple(values) or None,
                prepare=False if plan_anew else None,
            )

    def executemany(self, sql: str, value_rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows."""
        with _translate_errors():
            self._psycopg_connection.cursor().executemany(
                _translate_sql(sql, has_values=True), list(value_rows)
            )

    def iterate_tuples(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Return plain tuples, in binary form."""
        with _translate_errors():
            cursor = self._psycopg_connection.cursor(binary=True)
            return iter(
                cursor.execute(_translate_sql(sql, has_values=bool(values)), tuple(values) or None)
            )

    def copy_in(self, table_and_columns_sql: str, blocks: Iterable[bytes]) -> None:
        """Write rows in PostgreSQL's binary COPY format into `table (columns)`."""
        with self._open_copy(f"COPY {table_and_columns_sql} FROM STDIN (FORMAT binary)") as (
            copy_stream
        ):
            for block in blocks:
                copy_stream.write(block)

    def copy_rows(self, table_and_columns_sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Write rows of values into `table (columns)`, which takes a fraction of inserting them."""
        with self._open_copy(f"COPY {table_and_columns_sql} FROM STDIN") as copy_stream:
            for values in rows:
                copy_stream.write_row(values)

    @contextmanager
    def _open_copy(self, copy_sql: str) -> Iterator[Any]:
        """Yield the stream that a COPY statement reads from."""
        with _translate_errors(), self._psycopg_connection.cursor().copy(copy_sql) as copy_stream:
            yield copy_stream

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is written inside, or nothing of it when an exception leaves."""
        self.execute(self.dialect.begin_write_sql)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    @contextmanager
    def limit_statement_time(self, max_seconds: float) -> Iterator[None]:
        """Raise `StatementStopped` when a statement inside takes longer than this.

        They are in one transaction, which begins here unless there is one.
        """
        idle_status = psycopg.pq.TransactionStatus.IDLE
        is_own_transaction = self._psycopg_connection.info.transaction_status == idle_status
        limit_sql = f"SET LOCAL statement_timeout = {max(1, round(max_seconds * 1_000))}"
        # Both at once: each statement by itself waits for the network.
        self.execute(f"BEGIN; {limit_sql}" if is_own_transaction else limit_sql, plan_anew=True)
        try:
            yield
            self.execute(
                "COMMIT" if is_own_transaction else "SET LOCAL statement_timeout TO DEFAULT"
            )
        except BaseException as error:
            if is_own_transaction:
                self.roll_back()
            if isinstance(error.__cause__, errors.QueryCanceled):
                raise StatementStopped from error
            raise

    def roll_back(self) -> None:
        """End a transaction, if there is one, as if it had never been."""
        if self._psycopg_connection.closed or self._psycopg_connection.broken:
            return  # the server has rolled it back when it lost the connection
        with _translate_errors():
            self._psycopg_connection.rollback()

    @property
    def is_usable(self) -> bool:
        """Whether nothing speaks against it: an idle one is silent, unless its server has ended."""
        if self._psycopg_connection.closed or self._psycopg_connection.broken:
            return False
        if self._psycopg_connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            return False
        readable_descriptors, _, _ = select.select([self._psycopg_connection.fileno()], [], [], 0)
        if not readable_descriptors:
            return True
        try:
            self.execute("SELECT 1")
        except DatabaseFailed:
            return False
        return True

    def wait_for_notices(self, seconds: float) -> list[str]:
        """Return what was notified on the channels that this listens to; nothing comes late."""
        with _translate_errors():
            # It ends with the first notice; without the number it would wait for all of the time.
            notices = self._psycopg_connection.notifies(timeout=seconds, stop_after=1)
            return [notice.payload for notice in notices]

    def close(self) -> None:
        self._psycopg_connection.close()


@lru_cache(maxsize=2_000)
def _translate_sql(sql: str, *, has_values: bool) -> str:
    """Return a statement with what PostgreSQL takes for an empty list, and psycopg for `?`."""
    # SQLite takes `IN ()`, the condition for values of which there are none; PostgreSQL does not.
    sql = _EMPTY_LIST_PATTERN.sub(
        lambda empty_list_match: "<> ALL ('{}')" if empty_list_match["not"] else "= ANY ('{}')", sql
    )
    # Without values psycopg sends a statement as it is, `%%` too.
    return _translate_placeholders(sql) if has_values else sql


def _translate_placeholders(sql: str) -> str:
    """Return a statement with psycopg's `%s` for each `?` that stands outside quotation marks."""
    return _LITERAL_OR_PLACEHOLDER_PATTERN.sub(
        lambda literal_or_placeholder: (
            "%s" if literal_or_placeholder[0] == "?" else literal_or_placeholder[0]
        ),
        # psycopg would take any other `%` for a placeholder.
        sql.replace("%", "%%"),
    )


def _make_named_rows(cursor: Any) -> Callable[[Sequence[Any]], NamedRow]:
    return _make_row_class(
        tuple(column_description.name for column_description in cursor.description or ())
    )


@lru_cache(maxsize=500)
def _make_row_class(column_names: tuple[str, ...]) -> type[NamedRow]:
    return type("Row", (NamedRow,), {"column_names": column_names})


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except errors.ExclusionViolation as error:
        raise DatabaseConflict(_describe_database_error(error)) from error
    except errors.UniqueViolation as error:
        raise DatabaseConflict(_describe_database_error(error)) from error
    # The last is a value too long for an index; psycopg counts it among failures of the server.
    except (errors.DataError, errors.IntegrityError, errors.ProgramLimitExceeded) as error:
        raise InvalidDatabaseValue(_describe_database_error(error)) from error
    except errors.InternalError_ as error:
        # Of words that are copied in, too many are told as if the server were to blame.
        is_value_refused = "invalid tsvector" in str(error)
        error_class = InvalidDatabaseValue if is_value_refused else DatabaseFailed
        raise error_class(_describe_database_error(error)) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise DatabaseUnreachable(_describe_with_advice(error)) from error
    except psycopg.Error as error:
        raise DatabaseFailed(_describe_with_advice(error)) from error


def _describe_with_advice(error: psycopg.Error) -> str:
    """Return the first line of an error, and what to do about it where that is known."""
    # A lost connection, and a server that was shut down; an error of the network has no code.
    is_connection_lost = error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))
    advice = _ADVICE_BY_SQL_STATE.get(
        error.sqlstate or "", _TRY_AGAIN_ADVICE if is_connection_lost else ""
    )
    return (
        f"{_describe_database_error(error)}; {advice}"
        if advice
        else _describe_database_error(error)
    )


def _describe_database_error(error: Exception) -> str:
    """Return the first line of an error, without the values that follow it."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
