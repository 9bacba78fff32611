"""Databases: how connections are opened, shared between threads, and used in transactions."""

import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from readingroom.storage.dialect import SQLITE, SqlDialect
from readingroom.storage.errors import (
    DatabaseConflict,
    InvalidDatabaseValue,
    StorageFailed,
    describe_cause,
)

logger = logging.getLogger(__name__)

_MAX_IDLE_CONNECTIONS = (
    8  # each with a cache of its own; more are opened for a rush, and closed after it
)
# SQLite itself allows a billion bytes, and a foreign file could hold a value as long as that.
_MAX_UNTRUSTED_VALUE_BYTES = 16 * 2**20
_EMPTY_PRAGMAS: Mapping[str, str | int] = {}
_locks_by_path: dict[str, threading.Lock] = {}
"""Of the small databases of this process, by path."""
_lock_for_path_locks = threading.Lock()


Row = sqlite3.Row
"""A row whose values are read by the name of their column, or by position."""

DatabaseError = sqlite3.Error
"""Whatever a database raises: a statement it does not take, a value that does not fit, a lock."""

INVALID_VALUE_ERRORS = (
    *(sqlite3.IntegrityError, sqlite3.ProgrammingError),
    *(DatabaseConflict, InvalidDatabaseValue),
)
"""Raised for a value that no column accepts, or that breaks a rule of the table."""


class StatementStopped(Exception):
    """A statement was stopped because it had used up what it may cost."""


class Database(sqlite3.Connection):
    """A connection to a database, used by one thread at a time.

    A base that keeps records uses `execute`, `executemany` and what is defined here, with SQL that
    SQLite and PostgreSQL both take; `dialect` has the few fragments that differ. So another engine
    can stand behind the same names.
    """

    dialect: SqlDialect = SQLITE
    is_usable = True
    """Whether it can be lent again; a connection to a server may have ended meanwhile."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is written inside, or nothing of it when an exception leaves."""
        # The write lock at once: a transaction that begins by reading may fail when it first
        # writes.
        self.execute(self.dialect.begin_write_sql)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:  # a full disk has rolled everything back already
                self.execute("ROLLBACK")
            raise

    @contextmanager
    def begin_consistent_read(self) -> Iterator[None]:
        """Let every read inside see the database as it is at the first of them."""
        self.execute("BEGIN")
        try:
            yield
        finally:
            # Also after an exception: nothing was written, so there is nothing that a rollback
            # would undo.
            self.execute("COMMIT")

    @contextmanager
    def contain_failed_read(self) -> Iterator[None]:
        """Let a statement inside fail without ending the transaction that it is read in.

        Here it never does; another engine refuses every later statement of the transaction.
        """
        yield

    def run_in_background(self, do_work: Callable[[], object]) -> None:
        """Do some work with this connection before its next statement: here, at once.

        Another engine does it meanwhile; the next statement raises what it raised.
        """
        do_work()

    def insert_in_background(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows before the next statement, as `run_in_background` does work."""
        self.executemany(sql, rows)

    def run_in_order(self, do_work: Callable[[], object]) -> None:
        """Do a small piece of work, behind that of `run_in_background` if there is any."""
        do_work()

    @property
    def has_background_failed(self) -> bool:
        """Whether work of `run_in_background` has raised something that nobody was told yet."""
        return False

    def finish_background_work(self) -> BaseException | None:
        """Wait until the work of `run_in_background` is done; return what it raised."""
        return None

    def execute_beside(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a query; another engine runs it beside the work in the background.

        There it sees only what is committed.
        """
        return self.execute(sql, values)

    def iterate_tuples(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield plain tuples: of very many rows, a `Row` for each takes longer."""
        cursor = self.cursor()
        cursor.row_factory = None
        return iter(cursor.execute(sql, values))

    @contextmanager
    def stop_when(
        self, check_is_exhausted: Callable[[], bool], steps_between_checks: int
    ) -> Iterator[None]:
        """Ask `check_is_exhausted` every so many steps of a statement; stop the statement if it is.

        Raise `StatementStopped` then.
        """
        self.set_progress_handler(check_is_exhausted, steps_between_checks)
        try:
            yield
        except sqlite3.OperationalError as error:
            # sqlite3 has no error class for a statement that the handler stopped.
            if "interrupted" not in str(error):
                raise
            raise StatementStopped from error
        finally:
            self.set_progress_handler(None, 0)


def connect(
    database_path: Path | str,
    *,
    timeout: float = 10.0,
    from_any_thread: bool = False,
    with_named_rows: bool = False,
    pragmas: Mapping[str, str | int] = _EMPTY_PRAGMAS,
) -> Database:
    """Open a SQLite file in autocommit mode: `transaction` begins and ends every transaction.

    `timeout` is how many seconds a statement waits for another connection's lock. With
    `from_any_thread` the connection may pass from thread to thread, as long as one at a time uses
    it. With `with_named_rows` rows are of the class `Row`, else plain tuples.
    """
    db = sqlite3.connect(
        database_path,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=not from_any_thread,
        factory=Database,
    )
    if with_named_rows:
        db.row_factory = Row
    for pragma_sql, pragma_value in pragmas.items():
        db.execute(f"PRAGMA {pragma_sql} = {pragma_value}")
    return db


def open_untrusted(database_path: Path, known_statements: Container[str] = ()) -> Database:
    """Open a file that anybody may have made, such as one of a backup, for reading its rows.

    Raise `DatabaseError` for one that computes: with a view, a trigger, a virtual table or a
    generated column, whose author decides how long reading or writing takes and what it does.
    `known_statements` are the triggers that the file may have, by `normalise_sql`; with them it
    may also have full-text indexes and generated columns.
    """
    db = connect(database_path, pragmas={"query_only": "ON"})
    try:
        if not known_statements:  # generated columns use functions that it forbids
            db.execute("PRAGMA trusted_schema = OFF")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_UNTRUSTED_VALUE_BYTES)
        # The schema alone is read before it is judged: a row of a view would be computed already.
        for object_kind, object_name, sql in db.execute(
            "SELECT type, name, sql FROM sqlite_master"
        ).fetchall():
            if not _is_harmless_object(
                db, object_kind, object_name, normalise_sql(sql or ""), known_statements
            ):
                raise DatabaseError(
                    f"it has a {object_kind} {str(object_name)[:60]!r} that computes"
                )
    except BaseException:
        db.close()
        raise
    return db


def normalise_sql(sql_statement: str) -> str:
    """Return a statement with single spaces between its words."""
    return " ".join(sql_statement.split())


def _is_harmless_object(
    db: Database, object_kind: str, object_name: str, sql: str, known_statements: Container[str]
) -> bool:
    if object_kind == "index":
        return True
    if object_kind != "table":
        return sql in known_statements
    # FTS5 is what our own tables use. What another module does when it is read is its author's
    # choice.
    if sql.upper().startswith("CREATE VIRTUAL TABLE"):
        return bool(known_statements) and " using fts5 " in sql.lower()
    generated_columns_sql = "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden != 0"
    return (
        bool(known_statements)
        or db.execute(generated_columns_sql, (object_name,)).fetchone() is None
    )


@contextmanager
def open_small_database(database_path: Path, schema_sql: str) -> Iterator[Database]:
    """Open a small file for one transaction that is synced to disk when it ends.

    `schema_sql` creates the tables that are missing. Threads of this process wait for each other
    here: in SQLite they would poll, and on a busy machine some of them in vain, until they fail.
    Raise `StorageFailed` when the file cannot be used.
    """
    with _lock_for_path_locks:
        path_lock = _locks_by_path.setdefault(str(database_path), threading.Lock())
    try:
        database_path.parent.mkdir(parents=True, exist_ok=True)
        with path_lock, closing(connect(database_path, pragmas={"synchronous": "FULL"})) as db:
            # Before the transaction begins: `executescript` commits whichever is open.
            db.executescript(schema_sql)
            with db.transaction():
                yield db
    except (OSError, sqlite3.Error) as error:
        logger.error("%s cannot be used: %s", database_path, error)
        raise StorageFailed(
            f"{database_path.name} cannot be used: {describe_cause(error)}"
        ) from error


class ConnectionPool:
    """Connections to one file or database that any number of threads share.

    They belong to no thread: threads come and go with the load, and the connection of a thread that
    has ended would stay open.
    """

    def __init__(self, open_connection: Callable[[], Database]) -> None:
        """`open_connection` opens a connection that any thread may use."""
        self._open_connection = open_connection
        self._idle_connections: list[Database] = []
        # It is given the list and not `self`: a finalizer that refers to its object keeps it alive.
        weakref.finalize(self, close_all, self._idle_connections)

    @contextmanager
    def connection(self) -> Iterator[Database]:
        """Lend a connection that nobody else uses meanwhile."""
        db = self._take_idle_connection() or self._open_connection()
        try:
            yield db
        finally:
            if db.is_usable and len(self._idle_connections) < _MAX_IDLE_CONNECTIONS:
                self._idle_connections.append(db)
            else:
                db.close()

    def _take_idle_connection(self) -> Database | None:
        # Without a lock: `pop` is one step, so two threads never get the same connection.
        while True:
            try:
                db = self._idle_connections.pop()  # the one used last: its cache is warm
            except IndexError:
                return None
            if db.is_usable:
                return db
            db.close()

    def close(self) -> None:
        """Close the idle connections; nothing may be lent. They are opened again when needed."""
        close_all(self._idle_connections)


def close_all(connections: list[Any]) -> None:
    """Close connections and take them off their list, which other threads may do meanwhile."""
    with suppress(IndexError):
        while True:
            connections.pop().close()


class StateTables(Protocol):
    """A few small tables that the server itself keeps: its sessions, jobs or connected apps.

    Both contexts yield a connection with `execute`, whose rows are read by name or position, and
    raise `StorageFailed`.
    """

    def has_data(self) -> bool:
        """Return whether anything can have been written: nothing is made by looking."""
        ...

    def begin_reading(self) -> AbstractContextManager[Any]:
        """Lend a connection for reading."""
        ...

    def begin_writing(self) -> AbstractContextManager[Any]:
        """Lend a connection for one transaction; one at a time has it."""
        ...


class StateFile(StateTables):
    """Tables in a file of their own, which is made when it is first written to."""

    def __init__(
        self, path: Path, tables_label: str, create_tables: Callable[[Database], object]
    ) -> None:
        """`tables_label` is what the tables hold, for errors: "The jobs"."""
        self._path = path
        self._tables_label = tables_label
        self._create_tables = create_tables
        self._pool = ConnectionPool(self._connect)

    def has_data(self) -> bool:
        return self._path.exists()

    @contextmanager
    def begin_reading(self) -> Iterator[Database]:
        try:
            with self._pool.connection() as db:
                yield db
        except (OSError, DatabaseError) as error:
            raise StorageFailed(
                f"{self._tables_label} in {self._path.name} cannot be used: {describe_cause(error)}"
            ) from error

    @contextmanager
    def begin_writing(self) -> Iterator[Database]:
        with self.begin_reading() as db, db.transaction():
            yield db

    def _connect(self) -> Database:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Before SQLite creates it, readable for everybody.
        self._path.touch(mode=0o600)
        # SQLite heeds foreign keys, and deletes what hangs on a row, only where a connection asks
        # for it.
        db = connect(
            self._path, from_any_thread=True, with_named_rows=True, pragmas={"foreign_keys": "ON"}
        )
        self._create_tables(db)
        return db
