"""Transactions of a load: each file is a step that is made or taken back, many are one commit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from readingroom.bases.federal.load.search_index import LastNumbers, SearchIndex
from readingroom.storage.database import INVALID_VALUE_ERRORS, Database
from readingroom.storage.errors import StorageFailed

_MIN_COMMIT_ROWS = 2_000
"""How many rows are committed together, at least: each commit merges the full-text index."""
_MIN_COMMIT_STEPS_BY_ENGINE: Mapping[str, int] = {"sqlite": 1, "postgres": 5}
"""How many steps are committed together, at least, by engine, unless they have very many rows.

A load waits at a commit until PostgreSQL has taken all. Of hundreds of small files it would take
ever longer for each: what a transaction counts in a row again and again, it keeps until its end.
"""
_MAX_UNCOMMITTED_ROWS = 50_000


class EarlierStepRefused(Exception):
    """The database refused a row of an earlier step, so all steps after that one are taken back.

    The caller writes this step again, after the steps whose `on_undone` was called.
    """


@dataclass(slots=True, eq=False)
class FileStep:
    """What is written of a file. Its rows are given to the database, which takes them later."""

    last_numbers: LastNumbers
    """The numbers that were given last before it."""
    on_refused: Callable[[Exception], object] | None = None
    """Called if the database refuses a row of it after all of them were given to it; by then
    nothing of the step is stored, and no other has begun."""
    on_undone: Callable[[], object] | None = None
    """Called, after that, if it is a step before it of which the database refused a row."""
    is_accepted: bool = False
    """Whether the database has taken all rows, and will commit them."""


class StepWriter(ABC):
    """Writes in steps. All changes of a `file_savepoint()` are made, or none.

    Steps that follow one another are committed together, a `transaction()` by itself. PostgreSQL
    takes the rows of some steps while the caller goes on to the next ones. With a commit thread a
    commit happens there: SQLite indexes the words and writes to disk, PostgreSQL takes the last
    rows, while the caller reads on. The next step waits for it, and tells if it failed.
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
        self._step_count = 0
        """Steps of this transaction."""
        self._is_in_step = False
        self._given_steps: list[FileStep] = []
        """The steps of this transaction that the database may still refuse, in their order."""
        self.on_transaction: Callable[[], object] | None = None
        """Called when a transaction has begun: others may have written before it."""
        self._refusal_callbacks: list[Callable[[], object]] = []
        """Tell whoever wrote a refused step, and those who wrote the steps after it."""

    @abstractmethod
    def _write_batches(self) -> None:
        """Write all waiting rows, and count them."""

    @abstractmethod
    def _discard_batches(self) -> None:
        """Drop all waiting rows."""

    @abstractmethod
    def _prepare_transaction(self) -> None:
        """Prepare for the first step of a transaction, when it has begun."""

    @contextmanager
    def commit_at_end(self) -> Iterator[None]:
        """Commit the steps that are complete, whatever ends the block; raise what ended it."""
        try:
            yield
        except Exception:
            with suppress(Exception):  # where the database is gone, this fails for the same reason
                self.commit_and_report_undone()
            raise
        except BaseException:
            self.commit_and_report_undone()
            raise
        self.commit_and_report_undone()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._begin_step(is_flushed_to_disk=True):
            yield
        self.commit_and_report_undone()

    @contextmanager
    def file_savepoint(self) -> Iterator[FileStep]:
        """Yield a step. Raise `EarlierStepRefused`, on entry or exit, if an earlier one failed."""
        # A crash of the machine may undo it, unless a `transaction` or `commit` has followed: then
        # the log of loaded files does not have the file, and the next load reads it again.
        with self._begin_step(is_flushed_to_disk=False) as file_step:
            yield file_step

    @contextmanager
    def _begin_step(self, *, is_flushed_to_disk: bool) -> Iterator[FileStep]:
        self._begin_transaction()
        self._is_in_step = True  # not before: who is told of a refusal logs it in a step
        # A bad file is taken back alone: those before it stay in the transaction.
        self._db.run_in_order(partial(self._db.execute, "SAVEPOINT step"))
        file_step = FileStep(replace(self._search_index.last_numbers))
        self._given_steps.append(file_step)
        try:
            yield file_step
            self._write_batches()
            self._db.run_in_order(partial(self._release_step, file_step))
        except BaseException as error:
            self._undo_failed_step(file_step, error)
            raise
        self._is_in_step = False
        self._step_count += 1
        if self._is_worth_commit():
            self._start_commit(is_flushed_to_disk=is_flushed_to_disk)

    def _release_step(self, file_step: FileStep) -> None:
        self._db.execute("RELEASE step")
        file_step.is_accepted = True

    def _undo_failed_step(self, file_step: FileStep, error: BaseException) -> None:
        """Take back a step that has failed, or a refused one before it with all that followed.

        Raise `EarlierStepRefused` in the second case, unless `error` ends the whole load.
        """
        # What a statement of this step has raised is no longer told.
        background_error = self._db.finish_background_work() or error
        unaccepted_steps = self._list_unaccepted_steps()
        is_earlier_step_refused = bool(unaccepted_steps) and unaccepted_steps[0] is not file_step
        if is_earlier_step_refused:
            self._undo_refused_steps(background_error)
        elif unaccepted_steps:  # else an interrupt came when all of it was taken: it is kept
            self._roll_back_steps(unaccepted_steps)
        self._is_in_step = False
        if is_earlier_step_refused and isinstance(error, Exception):
            raise EarlierStepRefused from error

    def _list_unaccepted_steps(self) -> list[FileStep]:
        return [file_step for file_step in self._given_steps if not file_step.is_accepted]

    def _undo_refused_steps(self, background_error: BaseException) -> None:
        """Take back the first step that the database has not taken, with those after it.

        Raise what the database raised if no row is to blame, or nobody wants to be told.
        """
        unaccepted_steps = self._list_unaccepted_steps()
        if not unaccepted_steps:
            raise background_error
        self._roll_back_steps(unaccepted_steps)
        refused_step, *undone_steps = unaccepted_steps
        if not isinstance(background_error, INVALID_VALUE_ERRORS):
            raise background_error
        if refused_step.on_refused is None:
            raise _make_write_error(background_error) from background_error
        self._refusal_callbacks = [
            partial(refused_step.on_refused, background_error),
            *(file_step.on_undone for file_step in undone_steps if file_step.on_undone),
        ]

    def _roll_back_steps(self, undone_steps: Sequence[FileStep]) -> None:
        # To the first one's savepoint: those of the others were never set.
        self._roll_back("ROLLBACK TO step")
        self._search_index.last_numbers = undone_steps[0].last_numbers
        self._given_steps.clear()

    def _is_worth_commit(self) -> bool:
        row_count = self._count_written_rows()
        has_enough_steps = self._step_count >= _MIN_COMMIT_STEPS_BY_ENGINE[self._db.dialect.engine]
        return row_count > _MIN_COMMIT_ROWS and (
            has_enough_steps or row_count > _MAX_UNCOMMITTED_ROWS
        )

    def _count_written_rows(self) -> int:
        """Return how many rows the transaction has written, or will have when it is through."""
        return max(self._db.total_changes - self._row_changes_before, self._queued_row_count)

    def _begin_transaction(self) -> None:
        """Begin a transaction if none is open. Raise `EarlierStepRefused` if steps are undone."""
        are_steps_undone = self.wait_and_report_undone()
        if self._db.has_background_failed:
            background_error = self._db.finish_background_work()
            assert background_error is not None
            self._undo_refused_steps(background_error)
            are_steps_undone |= self.wait_and_report_undone()
        if are_steps_undone:
            raise EarlierStepRefused
        self._given_steps = self._list_unaccepted_steps()
        if not self._is_transaction_open():
            # Not deferred: a transaction that began by reading may not write after another one did.
            self._db.execute(self._db.dialect.begin_write_sql)
            self._db.execute("UPDATE generation SET value = value + 1")
            self._prepare_transaction()
            if self.on_transaction:
                self.on_transaction()
            self._row_changes_before = self._db.total_changes
            self._queued_row_count = self._step_count = 0

    def _is_transaction_open(self) -> bool:
        # While steps are on their way, without waiting for them.
        return bool(self._given_steps) or self._db.in_transaction

    def commit_and_report_undone(self) -> bool:
        """Commit the open transaction, if any; on the commit thread that may take a while.

        Return, as `wait_and_report_undone` does, whether steps before it were undone.
        """
        are_steps_undone = self.wait_and_report_undone()
        if self._is_in_step:
            self._roll_back("ROLLBACK")  # a second interrupt hit the rollback of a step
            self._given_steps.clear()
            self._is_in_step = False
        if self._db.in_transaction:
            self._start_commit(is_flushed_to_disk=True)
        return are_steps_undone

    def _start_commit(self, *, is_flushed_to_disk: bool) -> None:
        """Commit, and with `is_flushed` be sure that it is on disk, with all before it."""
        if self._commit_thread:
            self._running_commit = self._commit_thread.submit(self._commit_now, is_flushed_to_disk)
        else:
            self._commit_now(is_flushed_to_disk)

    def wait_and_report_undone(self) -> bool:
        """Wait for the last commit, and tell whoever wrote steps that were refused or undone.

        Return whether there are steps that were undone: they were told, and are to be written
        again. Raise `StorageFailed` if the commit failed: no file is to blame.
        """
        commit_error = self._running_commit.exception() if self._running_commit else None
        self._running_commit = None  # not before: after an interrupt somebody has to wait again
        if commit_error:
            raise (
                commit_error
                if isinstance(commit_error, StorageFailed)
                else _make_write_error(commit_error)
            ) from commit_error
        refusal_callbacks, self._refusal_callbacks = self._refusal_callbacks, []
        for report_refused_step in refusal_callbacks:
            report_refused_step()
        return len(refusal_callbacks) > 1

    def _commit_now(self, is_flushed_to_disk: bool) -> None:
        try:
            if background_error := self._db.finish_background_work():
                try:
                    self._undo_refused_steps(background_error)
                finally:
                    self._db.execute("COMMIT")  # of those before it
                return
            self._search_index.index_new_passages()
            if not is_flushed_to_disk and self._db.dialect.commit_unflushed_sql:
                self._db.execute(self._db.dialect.commit_unflushed_sql)
            self._db.execute("COMMIT")
            self._given_steps.clear()
        except BaseException:
            self._roll_back("ROLLBACK")
            self._given_steps.clear()
            raise

    def _roll_back(self, rollback_sql: str) -> None:
        """Drop waiting rows and roll back, unless SQLite has done so already, as on a full disk."""
        is_in_transaction = self._db.in_transaction  # nothing is on its way to the database then
        self._discard_batches()
        if is_in_transaction:
            self._db.execute(rollback_sql)


def _make_write_error(error: BaseException) -> StorageFailed:
    return StorageFailed(f"The records that were read could not be written: {error}")
