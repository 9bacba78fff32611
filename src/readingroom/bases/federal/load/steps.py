"""Transactions of a load: each file is a step that is made or taken back, many are one commit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from readingroom.bases.federal.load.search_index import SearchIndex
from readingroom.storage.database import INVALID_VALUE_ERRORS, Database
from readingroom.storage.errors import StorageFailed

_MIN_COMMIT_ROWS = 2_000
"""How many rows are committed together, at least: each commit merges the full-text index."""


@dataclass(slots=True)
class Step:
    """What is written of a file."""

    on_refused: Callable[[Exception], object] | None = None
    """Called if the database refuses a row of it after all of them were given to it; by then
    nothing of the step is stored, and the next one has not begun."""


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
        self._complete_step: Step | None = None
        """A step all of which was given to the database, which may still refuse it."""
        self._report_refusal: Callable[[], object] | None = None
        """Reports a refused step to whoever wrote it."""

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
    def file_savepoint(self) -> Iterator[Step]:
        # A crash of the machine may undo it, unless a `transaction` or `commit` has followed: then
        # the log of loaded files does not have the file, and the next load reads it again.
        with self._begin_step(is_flushed=False) as step:
            yield step

    @contextmanager
    def _begin_step(self, *, is_flushed: bool) -> Iterator[Step]:
        self._begin_transaction()
        self._is_in_step = True  # not before: who is told of a refusal logs it in a step
        step = Step()
        last_numbers = replace(self._search_index.last_numbers)
        # A bad file is taken back alone: those before it stay in the transaction.
        self._db.execute("SAVEPOINT step")
        try:
            yield step
            self._write_batches()
            is_worth_commit = self._count_written_rows() > _MIN_COMMIT_ROWS
            if not is_worth_commit:
                self._db.execute("RELEASE step")
        except BaseException:
            self._roll_back("ROLLBACK TO step")
            self._search_index.last_numbers = last_numbers
            self._is_in_step = False
            raise
        self._is_in_step = False
        if is_worth_commit:
            self._complete_step = step
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
        """Wait for the last commit, and tell whoever wrote the last step if it was refused.

        Raise `StorageFailed` if the commit failed: no file is to blame.
        """
        commit_error = self._running_commit.exception() if self._running_commit else None
        self._running_commit = None  # not before: after an interrupt somebody has to wait again
        if commit_error:
            raise StorageFailed(
                f"The records that were read could not be written: {commit_error}"
            ) from commit_error
        report_refusal, self._report_refusal = self._report_refusal, None
        if report_refusal:
            report_refusal()

    def _commit_now(self, is_flushed: bool) -> None:
        try:
            if not self._release_step():
                return
            self._search_index.index_new_passages()
            if not is_flushed and self._db.dialect.commit_unflushed:
                self._db.execute(self._db.dialect.commit_unflushed)
            self._db.execute("COMMIT")
        except BaseException:
            self._roll_back("ROLLBACK")
            raise

    def _release_step(self) -> bool:
        """End a step whose rows the database has taken by now; return whether it took them all.

        If not, the files before it are committed, and nothing is left to commit. Raise what the
        database raised if nobody wants to be told.
        """
        step, self._complete_step = self._complete_step, None
        if step is None:
            return True
        try:
            self._db.execute("RELEASE step")
        except BaseException as error:
            self._roll_back("ROLLBACK TO step")
            self._db.execute("COMMIT")
            if step.on_refused is None or not isinstance(error, INVALID_VALUE_ERRORS):
                raise
            self._report_refusal = partial(step.on_refused, error)
            return False
        return True

    def _roll_back(self, rollback_sql: str) -> None:
        """Drop waiting rows and roll back, unless SQLite has done so already, as on a full disk."""
        is_in_transaction = self._db.in_transaction  # nothing is on its way to the database then
        self._discard_batches()
        if is_in_transaction:
            self._db.execute(rollback_sql)
