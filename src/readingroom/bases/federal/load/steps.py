"""Transactions of a load: each file is a step that is made or taken back, many are one commit."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from readingroom.bases.federal.load.search_index import SearchIndex
from readingroom.storage.database import Database
from readingroom.storage.errors import StorageFailed

_MIN_COMMIT_ROWS = 2_000
"""How many rows are committed together, at least: each commit merges the full-text index."""


class StepWriter(ABC):
    """Writes in steps. All changes of a `file_savepoint()` are made, or none.

    Steps that follow one another are committed together, a `transaction()` by itself. With a
    commit thread a commit happens there: SQLite indexes the words and writes to disk, PostgreSQL
    takes the last rows, while the caller reads on. The next step waits for it, and tells if it
    failed.
    """

    def __init__(
        self, db: Database, search_index: SearchIndex, commit_thread: Executor | None
    ) -> None:
        self._db = db
        self._search_index = search_index
        self._commit_thread = commit_thread
        self._running_commit: Future[None] | None = None
        self._row_changes_before = 0
        self._queued_row_count = 0
        """Rows that this transaction has given to the database, which may not be through yet."""
        self._is_in_step = False
        self._is_step_complete = False
        """Whether all of a step was given to the database, which may still refuse it."""

    @abstractmethod
    def _write_batches(self) -> None:
        """Write all waiting rows, and count them."""

    @abstractmethod
    def _discard_batches(self) -> None:
        """Drop all waiting rows."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._begin_step(is_flushed=True):
            yield
        self.commit()

    @contextmanager
    def file_savepoint(self) -> Iterator[None]:
        # A crash of the machine may undo it, unless a `transaction` or `commit` has followed: then
        # the log of loaded files does not have the file, and the next load reads it again.
        with self._begin_step(is_flushed=False):
            yield

    @contextmanager
    def _begin_step(self, *, is_flushed: bool) -> Iterator[None]:
        self._is_in_step = True
        self._begin_transaction()
        last_numbers = self._search_index.last_numbers
        # A bad file is taken back alone: those before it stay in the transaction.
        self._db.execute("SAVEPOINT step")
        try:
            yield
            self._write_batches()
            is_worth_commit = self._count_written_rows() > _MIN_COMMIT_ROWS
            if not is_worth_commit:
                self._db.execute("RELEASE step")
        except BaseException:
            self._roll_back("ROLLBACK TO step")
            self._search_index.last_numbers = last_numbers
            self._is_in_step = False
            raise
        self._is_step_complete, self._is_in_step = is_worth_commit, False
        if is_worth_commit:
            self._start_commit(is_flushed=is_flushed)

    def _count_written_rows(self) -> int:
        """Return how many rows the transaction has written, or will have when it is through."""
        return max(self._db.total_changes - self._row_changes_before, self._queued_row_count)

    def _begin_transaction(self) -> None:
        self.wait_for_commit()
        if not self._db.in_transaction:
            # Not deferred: a transaction that began by reading may not write after another one did.
            self._db.execute(self._db.dialect.begin_write)
            self._db.execute("UPDATE generation SET value = value + 1")
            self._search_index.start_after_newest()
            self._row_changes_before, self._queued_row_count = self._db.total_changes, 0

    def commit(self) -> None:
        """Commit the open transaction, if any; on the commit thread that may take a while."""
        self.wait_for_commit()
        if self._is_in_step:
            self._roll_back("ROLLBACK")  # a second interrupt hit the rollback of a step
            self._is_in_step = False
        if self._db.in_transaction:
            self._start_commit(is_flushed=True)

    def _start_commit(self, *, is_flushed: bool) -> None:
        """Commit, and with `is_flushed` be sure that it is on disk, with all before it."""
        if self._commit_thread:
            self._running_commit = self._commit_thread.submit(self._commit_now, is_flushed)
        else:
            self._commit_now(is_flushed)

    def wait_for_commit(self) -> None:
        """Wait for the last commit. Raise `StorageFailed` if it failed: no file is to blame."""
        commit_error = self._running_commit.exception() if self._running_commit else None
        self._running_commit = None  # not before: after an interrupt somebody has to wait again
        if commit_error:
            raise StorageFailed(
                f"The records that were read could not be written: {commit_error}"
            ) from commit_error

    def _commit_now(self, is_flushed: bool) -> None:
        try:
            self._release_step()
            self._search_index.index_new_passages()
            if not is_flushed and self._db.dialect.commit_unflushed:
                self._db.execute(self._db.dialect.commit_unflushed)
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back("ROLLBACK")
            raise

    def _release_step(self) -> None:
        """End a step whose rows the database has taken by now; if it refuses them, raise."""
        if not self._is_step_complete:
            return
        self._is_step_complete = False
        try:
            self._db.execute("RELEASE step")
        except BaseException:
            self._roll_back("ROLLBACK TO step")
            self._db.execute("COMMIT")  # of the files before it
            raise

    def _roll_back(self, rollback_sql: str) -> None:
        """Drop waiting rows and roll back, unless SQLite has done so already, as on a full disk."""
        is_in_transaction = self._db.in_transaction  # nothing is on its way to the database then
        self._discard_batches()
        if is_in_transaction:
            self._db.execute(rollback_sql)
