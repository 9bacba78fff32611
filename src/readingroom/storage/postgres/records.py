"""Connections for a base that keeps records: the methods of the SQLite `Database` on PostgreSQL."""

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import psycopg
from psycopg.adapt import Loader
from psycopg.types.json import set_json_loads

from readingroom.storage.database import StatementStopped
from readingroom.storage.errors import DatabaseConflict, DatabaseFailed
from readingroom.storage.postgres.background import WorkThread
from readingroom.storage.postgres.database import clean_text
from readingroom.storage.postgres.driver import PostgresConnection, open_connection
from readingroom.storage.postgres.encoding import encode_text_rows

_SECONDS_BETWEEN_CHECKS = 0.02
_ROWS_PER_STATEMENT = 500
_MAX_PARAMETERS = 60_000
"""PostgreSQL counts the values of a statement in 16 bits."""
# Filters and groupings are written before it is known which database they are for; this is what
# they have of SQLite's own.
_SQLITE_FRAGMENT_REPLACEMENTS = (
    (
        re.compile(r"json_each\(([\w.]+), '\$\.(\w+)'\) /\* objects \*/"),
        r"json_array_elements(\1 -> '\2')",
    ),
    (re.compile(r"json_each\(([\w.]+), '\$\.(\w+)'\)"), r"json_array_elements_text(\1 -> '\2')"),
    (re.compile(r" COLLATE NOCASE"), "::citext"),
    (re.compile(r"INDEXED BY \w+"), ""),
)
# An escape has an even number of backslashes before it: else the backslash itself is escaped.
_ESCAPED_NULL_PATTERN = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
_VALUES_PATTERN = re.compile(r"VALUES (\((?:\?, )*\?\))", re.ASCII)
_PLAIN_INSERT_PATTERN = re.compile(
    r"\s*INSERT INTO (\w+(?: \([\w, ]+\))?) VALUES \((?:\?, )*\?\)\s*", re.ASCII
)
_UPSERT_PATTERN = re.compile(
    r"INSERT INTO \w+ \(([\w, ]+)\)\s+VALUES .* ON CONFLICT \((\w+)\) DO UPDATE", re.DOTALL
)
_INSERT_TARGET_PATTERN = re.compile(r"\s*INSERT INTO (\w+)(?: \(([\w, ]+)\))?\s+VALUES ", re.ASCII)
_TYPES_WITHOUT_CLEANING = {str, int, float, bytes, type(None)}
_MIN_STAGED_ROWS = 50
"""Rows that are inserted from a table they are copied into first, where some may be there."""
_IN_TRANSACTION = psycopg.pq.TransactionStatus.INTRANS
_MIN_COPIED_ROWS = 8
"""Rows that are copied in rather than inserted by a statement: for fewer it takes longer."""


def connect_records(url: str, schema_name: str, *, writing: bool = False) -> "RecordsConnection":
    """Open a connection whose tables are those of a schema; only with `writing` can it write.

    Raise `DatabaseUnreachable`.
    """
    search_path = f"{schema_name},readingroom,public"
    connection = open_connection(url, search_path, is_read_only=not writing)
    # Records are answered as they are stored: nobody needs them parsed.
    set_json_loads(_keep_json, connection)
    connection.adapters.register_loader("numeric", _NumberLoader)
    return RecordsConnection(connection, url, schema_name)


class RecordsConnection(PostgresConnection):
    """A connection, used by one thread at a time. Every method raises `DatabaseFailed`."""

    def __init__(self, connection: Any, database_url: str, schema_name: str) -> None:
        super().__init__(connection)
        self.database_url = database_url
        """The URL of the database, for what a process knows of it; it may hold a password."""
        self._schema_name = schema_name
        self._connection_beside: RecordsConnection | None = None
        self.total_changes = 0
        """How many rows were written, as SQLite counts them."""
        self._trace_statement: Callable[[str], None] | None = None
        self._stop_event = threading.Event()
        self._background_work = WorkThread("federal-rows")
        self._conflicting_insert_starts: set[str] = set()
        """Beginnings of statements some of whose rows were in their table already."""

    @property
    def in_transaction(self) -> bool:
        self._background_work.finish()
        status = self._psycopg_connection.info.transaction_status
        return bool(status != psycopg.pq.TransactionStatus.IDLE)

    def execute(
        self, sql: str, values: Sequence[Any] = (), binary: bool = False, plan_anew: bool = False
    ) -> Any:
        self._wait_for_background_work(is_failure_told=not sql.startswith("ROLLBACK"))
        self._announce_statement(sql)
        cursor = super().execute(
            _translate_fragments(sql), [_clean_value(value) for value in values], binary, plan_anew
        )
        if (cursor.statusmessage or "").startswith(("INSERT", "UPDATE", "DELETE")):
            self.total_changes += max(cursor.rowcount, 0)
        return cursor

    def execute_beside(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a query that sees what is committed, without waiting for the work in the background.

        If there is any, it has a connection of its own.
        """
        if self._background_work.is_idle:
            return self.execute(sql, values, plan_anew=True)
        if self._connection_beside is None:
            self._connection_beside = connect_records(self.database_url, self._schema_name)
            # A plan is kept that was made when a table was nearly empty.
            self._connection_beside.execute("SET enable_seqscan = off")
        return self._connection_beside.execute(sql, values)

    def set_trace_callback(self, trace_statement: Callable[[str], None] | None) -> None:
        """Call `trace_statement` with every statement from here on."""
        self._trace_statement = trace_statement

    def executemany(self, sql: str, value_rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of the rows; rows that are inserted go many at once."""
        self._wait_for_background_work()
        rows: Sequence[Sequence[Any]] = list(value_rows)
        copy_target = _find_copy_target(sql, rows)
        encoded_rows = encode_text_rows(rows) if copy_target else None
        if copy_target and encoded_rows is not None:
            self._copy_encoded_rows(copy_target, encoded_rows, len(rows))
            return
        values_match = _VALUES_PATTERN.search(sql)
        target_match = _INSERT_TARGET_PATTERN.match(sql)
        fits_in_one_statement = bool(values_match and rows and not _has_same_key_twice(sql, rows))
        should_stage = bool(
            target_match and fits_in_one_statement and len(rows) >= _MIN_STAGED_ROWS
        )
        if values_match and should_stage and self._copy_if_new(sql[: values_match.start()], rows):
            return
        rows = _clean_rows(rows)
        if copy_target:
            self.copy_rows(copy_target, rows)
            self.total_changes += len(rows)
            return
        if values_match is None or not fits_in_one_statement:
            super().executemany(sql, rows)
            self.total_changes += len(rows)
            return
        if target_match and should_stage:
            self._stage_and_insert(
                target_match[1], target_match[2] or "*", sql[values_match.end(1) :], rows
            )
            return
        batch_size = min(_ROWS_PER_STATEMENT, _MAX_PARAMETERS // max(1, len(rows[0])))
        for first_row_number in range(0, len(rows), batch_size):
            row_batch = rows[first_row_number : first_row_number + batch_size]
            placeholders_sql = ", ".join([values_match[1]] * len(row_batch))
            self.execute(
                sql[: values_match.start(1)] + placeholders_sql + sql[values_match.end(1) :],
                [column_value for row_values in row_batch for column_value in row_values],
            )

    def insert_in_background(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows on a thread, before the next statement, as `run_in_background` does work.

        A text that is none, with half a character, is refused at once: whoever has it is here.
        """
        copy_target = _find_copy_target(sql, rows)
        encoded_rows = encode_text_rows(rows)  # of a few rows, too, to see whether they are texts
        if copy_target and encoded_rows is not None:
            self.run_in_background(
                partial(self._copy_encoded_rows, copy_target, encoded_rows, len(rows))
            )
        else:
            self.run_in_background(partial(self.executemany, sql, rows))

    def _copy_encoded_rows(self, copy_target: str, encoded_rows: bytes, row_count: int) -> None:
        self.copy_text(copy_target, encoded_rows)
        self.total_changes += row_count

    def copy_text(self, table_and_columns_sql: str, encoded_rows: bytes) -> None:
        """Write rows in COPY's text format into `table (columns)`."""
        self._wait_for_background_work()
        with self._open_copy(f"COPY {table_and_columns_sql} FROM STDIN") as copy_stream:
            copy_stream.write(encoded_rows)

    def _copy_if_new(self, insert_start_sql: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Copy rows straight into their table; return False, with nothing written, if any is there.

        Most rows of a first load are new. Where one was not, the next ones are not tried.
        """
        is_in_transaction = self._psycopg_connection.info.transaction_status == _IN_TRANSACTION
        if insert_start_sql in self._conflicting_insert_starts or not is_in_transaction:
            return False
        encoded_rows = encode_text_rows(rows)
        if encoded_rows is None:
            return False
        self.execute("SAVEPOINT new_rows")
        try:
            self._copy_encoded_rows(insert_start_sql.split("INTO", 1)[1], encoded_rows, len(rows))
        except DatabaseConflict:
            self._conflicting_insert_starts.add(insert_start_sql)
            self.execute("ROLLBACK TO new_rows")
        self.execute("RELEASE new_rows")
        return insert_start_sql not in self._conflicting_insert_starts

    def _stage_and_insert(
        self, table_name: str, columns_sql: str, conflict_sql: str, rows: Sequence[Sequence[Any]]
    ) -> None:
        """Copy rows into a table of this session, and insert them from there."""
        staging_name = f"staged_{table_name}"
        self.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS {staging_name} ON COMMIT DELETE ROWS "
            f"AS SELECT {columns_sql} FROM {table_name} WITH NO DATA"
        )
        encoded_rows = encode_text_rows(rows)
        if encoded_rows is None:
            self.copy_rows(staging_name, rows)
        else:
            self.copy_text(staging_name, encoded_rows)
        insert_columns_sql = "" if columns_sql == "*" else f" ({columns_sql})"
        self.execute(
            f"INSERT INTO {table_name}{insert_columns_sql} "
            f"SELECT * FROM {staging_name} {conflict_sql}"
        )
        self.execute(f"TRUNCATE {staging_name}")

    def iterate_tuples(self, sql: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        self._wait_for_background_work()
        self._announce_statement(sql)
        return super().iterate_tuples(_translate_fragments(sql), values)

    def copy_in(self, table_and_columns_sql: str, blocks: Iterable[bytes]) -> None:
        self._wait_for_background_work()
        super().copy_in(table_and_columns_sql, blocks)

    def run_in_background(self, do_work: Callable[[], object]) -> None:
        """Do some work with this connection on a thread, before its next statement.

        The database is busy then while the caller goes on. The next statement raises what the work
        raised, unless it rolls back; work that was to follow is left out.
        """
        self._background_work.add(do_work)

    def run_in_order(self, do_work: Callable[[], object]) -> None:
        """Do a small piece of work now, or behind the work in the background if there is any."""
        if self._background_work.is_idle:
            do_work()
        else:
            self._background_work.add(do_work)

    @property
    def has_background_failed(self) -> bool:
        """Whether some work has raised what nobody was told yet; others may be on their way."""
        return self._background_work.error is not None

    def finish_background_work(self) -> BaseException | None:
        """Wait until all work is done; return what the next statement will raise."""
        return self._background_work.finish()

    def _wait_for_background_work(self, *, is_failure_told: bool = True) -> None:
        """Wait until the work of `run_in_background` is done; raise the first of what it raised."""
        if self._background_work.is_called_by_worker:
            return
        background_error = self._background_work.finish()
        self._background_work.error = None
        if background_error and is_failure_told:
            raise background_error

    def roll_back(self) -> None:
        self._wait_for_background_work(is_failure_told=False)
        super().roll_back()

    def close(self) -> None:
        self._background_work.close()
        if self._connection_beside is not None:
            self._connection_beside.close()
        super().close()

    def _announce_statement(self, sql: str) -> None:
        """Tell the tracer; raise `StatementStopped` when nothing may run any more."""
        # A setting goes back all the same: the connection is used again.
        if self._stop_event.is_set() and not sql.startswith("RESET "):
            raise StatementStopped
        if self._trace_statement:
            self._trace_statement(sql)

    @contextmanager
    def begin_consistent_read(self) -> Iterator[None]:
        """Let every read inside see the database as it is at the first of them."""
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
        finally:
            self.roll_back()

    @contextmanager
    def contain_failed_read(self) -> Iterator[None]:
        """Let a statement inside fail without ending the transaction that it is read in."""
        self.execute("SAVEPOINT contained_read")
        try:
            yield
        except BaseException:
            self.execute("ROLLBACK TO contained_read")
            raise
        finally:
            self.execute("RELEASE contained_read")

    @contextmanager
    def stop_when(
        self, check_is_exhausted: Callable[[], bool], steps_between_checks: int
    ) -> Iterator[None]:
        """Ask `check_is_exhausted` from time to time; stop the statement that runs, or comes next.

        Raise `StatementStopped` then. A step is nothing that PostgreSQL could count.
        """
        end_event = threading.Event()

        def watch() -> None:
            while not end_event.wait(_SECONDS_BETWEEN_CHECKS):
                if check_is_exhausted():
                    self._stop_event.set()
                    self._psycopg_connection.cancel_safe(timeout=5)
                    return

        watcher = threading.Thread(target=watch, name="statement watch", daemon=True)
        watcher.start()
        try:
            yield
        except DatabaseFailed as error:
            if not self._stop_event.is_set():
                raise
            raise StatementStopped from error
        finally:
            end_event.set()
            watcher.join()
            self._stop_event.clear()


def _find_copy_target(sql: str, rows: Sequence[Sequence[Any]]) -> str | None:
    """Return the table and the columns that rows are copied into; None if they are few."""
    plain_insert_match = (
        _PLAIN_INSERT_PATTERN.fullmatch(sql) if len(rows) >= _MIN_COPIED_ROWS else None
    )
    return plain_insert_match[1] if plain_insert_match else None


@lru_cache(maxsize=2_000)
def _translate_fragments(sql: str) -> str:
    for fragment_pattern, replacement in _SQLITE_FRAGMENT_REPLACEMENTS:
        sql = fragment_pattern.sub(replacement, sql)
    return sql


def _has_same_key_twice(sql: str, rows: Sequence[Sequence[Any]]) -> bool:
    """Whether a statement that updates what is there would have to change a row twice."""
    if "DO UPDATE" not in sql:
        return False
    upsert_match = _UPSERT_PATTERN.search(sql)
    if upsert_match is None:
        return True  # nothing is known about its key
    key_column_index = upsert_match[1].replace(" ", "").split(",").index(upsert_match[2])
    return len({row_values[key_column_index] for row_values in rows}) < len(rows)


class _NumberLoader(Loader):
    """Sums of whole numbers are whole numbers, as they are in SQLite."""

    def load(self, encoded_number: Any) -> int | float:
        number_text = bytes(encoded_number).decode()
        return (
            float(number_text)
            if "." in number_text or "E" in number_text.upper()
            else int(number_text)
        )


def _keep_json(json_data: str | bytes) -> str:
    return json_data if isinstance(json_data, str) else bytes(json_data).decode()


def _clean_rows(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """Return rows with values that PostgreSQL takes: most often they are all fit to be sent."""
    all_values = [value for row_values in rows for value in row_values]
    text_values = [value for value in all_values if type(value) is str]
    has_null = any("\0" in text_value or "\\u0000" in text_value for text_value in text_values)
    if not has_null and set(map(type, all_values)) <= _TYPES_WITHOUT_CLEANING:
        return rows
    return [[_clean_value(value) for value in row_values] for row_values in rows]


def _clean_value(column_value: Any) -> Any:
    if isinstance(column_value, bool):
        return int(column_value)  # as SQLite stores it
    if not isinstance(column_value, str):
        return column_value
    if "\0" in column_value:
        return clean_text(column_value)
    # JSON spells it out; PostgreSQL takes that, but no column could be made of it.
    if "\\u0000" in column_value and column_value.startswith("{"):
        return _ESCAPED_NULL_PATTERN.sub(r"\1\\ufffd", column_value)
    return column_value
