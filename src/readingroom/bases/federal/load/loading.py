"""Loads official files into the federal base: a file is loaded completely or not at all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from readingroom.bases.federal.formats import (
    LOADERS,
    ListsAllCurrentMembers,
    Loader,
    list_source_names_of_format,
)
from readingroom.bases.federal.formats.parts.files import (
    BAD_FILE_ERRORS,
    FileRef,
    find_files,
    find_pdf_paths,
    split_zip_member,
)
from readingroom.bases.federal.load.batches import WriteResult
from readingroom.bases.federal.load.completeness import (
    UNRECOGNISED_REASON,
    UNUSED_PDF_REASON,
    FileKey,
    LoadedFiles,
    is_probably_cut_short,
    list_ignored_files,
    list_left_out_log_rows,
    make_cut_short_error,
)
from readingroom.bases.federal.load.read_ahead import (
    ContentsReader,
    FileContents,
    PendingFile,
    describe_error,
    make_pending_file,
    pause_garbage_collection,
    read_in_order,
    read_in_this_process,
    start_parsing,
)
from readingroom.bases.federal.load.steps import EarlierStepRefused
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.query.changes import ChangeTally
from readingroom.bases.federal.schema.entries import FileProblem, ParsedRecord
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.bases.federal.store import FederalPlace, connect, prepare_records, translate_errors
from readingroom.core import clock
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.storage.database import Database

_MIN_CHANGES_TO_COUNT_VALUES = 1_000
"""Changed records after which the database counts anew which values they have."""


@dataclass
class LoadSummary:
    """The result of a load, in counts of files and records."""

    files: int = 0
    loaded: int = 0
    unchanged: int = 0
    loaded_beside: int = 0
    """How many of the unchanged ones another load has loaded since this one began."""
    ignored: int = 0
    failed: int = 0
    records: int = 0
    changed: int = 0
    withdrawn: int = 0
    changes: dict[str, ChangeTally] = field(default_factory=dict)
    by_loader: Counter[str] = field(default_factory=Counter)
    errors: list[dict[str, str]] = field(default_factory=list)
    unrecognised: list[str] = field(default_factory=list)
    """The files that were ignored, because no loader recognises them."""
    incomplete: list[dict[str, str]] = field(default_factory=list)
    """What loaded files name and do not hold, or what could not be read of them."""
    unused_pdfs: list[str] = field(default_factory=list)
    """The PDFs that no loaded file names, so that nobody read them."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Whether files add to what is stored, or replace it."""

    is_update: bool = False
    """A record that a newer complete file leaves out is withdrawn."""
    may_drop_most: bool = False
    """A newer file may leave out most records of an older one."""
    file_date: str | None = None
    """The day the files were found to be the newest at their publisher."""


def load(
    records_place: FederalPlace,
    file_paths: Sequence[Path],
    only_source: Source | None,
    report_progress: ReportProgressSync = no_progress_sync,
) -> LoadSummary:
    """Load files and folders into the federal database at a place."""
    return _load_or_update(records_place, file_paths, only_source, report_progress, LoadOptions())


def update(
    records_place: FederalPlace,
    file_paths: Sequence[Path],
    only_source: Source | None,
    report_progress: ReportProgressSync = no_progress_sync,
    *,
    may_drop_most: bool = False,
    file_date: str | None = None,
) -> LoadSummary:
    """Load newer versions of files; records that a complete file leaves out are withdrawn.

    `file_date` is the day the files were found to be the newest at their publisher.
    """
    load_options = LoadOptions(is_update=True, may_drop_most=may_drop_most, file_date=file_date)
    return _load_or_update(records_place, file_paths, only_source, report_progress, load_options)


def _load_or_update(
    records_place: FederalPlace,
    file_paths: Sequence[Path],
    only_source: Source | None,
    report_progress: ReportProgressSync,
    load_options: LoadOptions,
) -> LoadSummary:
    prepare_records(records_place)
    only_name = only_source.name if only_source else None
    loaders = [
        loader for loader in LOADERS if not only_name or only_name in loader.record_source_names
    ]
    file_refs = list(find_files(file_paths, load_options.file_date))
    reads_statements = only_source is None or only_source.name == "saps"
    pdf_paths = list(find_pdf_paths(file_paths)) if reads_statements else []
    with (
        translate_errors(records_place),
        closing(connect(records_place, writing=True)) as db,
        # One thread, so that commits stay in their order.
        ThreadPoolExecutor(1, "federal-load") as commit_thread,
    ):
        return _LoadRun(
            db, Writer(db, commit_thread), loaders, report_progress, load_options
        ).load_files(file_refs, pdf_paths)


class _LoadRun:
    """One load, from the files found to the summary."""

    def __init__(
        self,
        db: Database,
        writer: Writer,
        loaders: Sequence[Loader],
        report_progress: ReportProgressSync,
        load_options: LoadOptions,
    ) -> None:
        self._db = db
        self._load_options = load_options
        self._writer = writer
        self._loaded_files = LoadedFiles(db)
        writer.on_transaction = self._loaded_files.read_new_log_rows
        self._concurrently_loaded_paths: set[str] = set()
        self._loaders = loaders
        self._report_progress = report_progress
        self._is_every_format_read = len(loaders) == len(LOADERS)
        self._companion_paths: set[Path] = set()
        self._undone_files: list[PendingFile] = []  # the database refused one before them
        self._files_to_repeat: list[PendingFile] = []
        self.summary = LoadSummary()

    def load_files(self, file_refs: Sequence[FileRef], pdf_paths: Sequence[str]) -> LoadSummary:
        started_at = clock.format_now()
        last_change_number = changes.read_last_change_number(self._db)
        pending_files = self._sort_files_by_loader(file_refs)
        with self._writer.commit_at_end(), pause_garbage_collection():
            self._load_all_files(pending_files)
        with self._writer.transaction():
            self._log_ignored_files(pdf_paths)
            if self._load_options.is_update:
                self._withdraw_gone_files(pending_files, started_at)
            # After all files: what is linked may have come in either order.
            self._writer.link_records()
            self._writer.update_source_counts()
        self._writer.wait_and_report_undone()
        if (
            self._db.dialect.count_values_sql
            and self.summary.changed > _MIN_CHANGES_TO_COUNT_VALUES
        ):
            # Not left to the database: until it gets round to it, lists may be slow for minutes.
            self._db.execute(self._db.dialect.count_values_sql)
        self.summary.changes = changes.tally_changes(self._db, last_change_number)
        self.summary.withdrawn = sum(tally.withdrawn for tally in self.summary.changes.values())
        return self.summary

    def _sort_files_by_loader(self, file_refs: Sequence[FileRef]) -> list[PendingFile]:
        """Return the files in the order of their loaders, people before what they did."""
        rank_by_loader: dict[Loader | None, int] = {
            loader: loader_rank for loader_rank, loader in enumerate(self._loaders)
        }
        pending_files = [make_pending_file(file_ref, self._loaders) for file_ref in file_refs]
        return sorted(
            pending_files,
            key=lambda pending_file: rank_by_loader.get(pending_file.loader, len(rank_by_loader)),
        )

    def _load_all_files(self, pending_files: Sequence[PendingFile]) -> None:
        self.summary.files = len(pending_files)
        for file_number, (pending_file, read_contents) in enumerate(
            read_in_order(
                pending_files,
                self._needs_contents,
                includes_column_values=self._db.dialect.engine == "postgres",
            ),
            start=1,
        ):
            self._report_progress(
                file_number, len(pending_files), Path(pending_file.file_ref.path).name
            )
            self._load_file(pending_file, read_contents)
            self._reload_queued_files()
        while True:
            self._writer.commit_and_report_undone()
            self._writer.wait_and_report_undone()
            if not self._undone_files:
                return
            self._queue_files_again()
            self._reload_queued_files()

    def _queue_files_again(self, *interrupted_files: PendingFile) -> None:
        """Have files loaded again, in their order, before any other."""
        self._files_to_repeat[:0] = [*self._undone_files, *interrupted_files]
        self._undone_files.clear()

    def _reload_queued_files(self) -> None:
        while self._files_to_repeat:
            pending_file = self._files_to_repeat.pop(0)
            self._load_file(pending_file, partial(read_in_this_process, pending_file))

    def _needs_contents(self, pending_file: PendingFile) -> bool:
        """Whether the contents of a file will be written: it is new, or may say what is gone."""
        if pending_file.loader is None:
            return False
        file_key = (pending_file.sha256, pending_file.loader.format_id)
        return file_key not in self._loaded_files or self._reapplies_format(pending_file.loader)

    def _reapplies_format(self, loader: Loader) -> bool:
        """Whether an update applies files of this format even if they were loaded before.

        A complete file may return to what it said before the last one.
        """
        is_complete_format = bool(loader.complete_for_columns) or isinstance(
            loader, ListsAllCurrentMembers
        )
        return self._load_options.is_update and is_complete_format

    def _load_file(self, pending_file: PendingFile, read_contents: ContentsReader) -> None:
        try:
            outcome_name = self._read_or_log_failure(pending_file, read_contents)
        except EarlierStepRefused:
            self._writer.wait_and_report_undone()
            self._queue_files_again(pending_file)
            return
        if outcome_name != "failed":
            self._count_outcome(pending_file, outcome_name, 1)

    def _read_or_log_failure(self, pending_file: PendingFile, read_contents: ContentsReader) -> str:
        try:
            return self._read_and_write_file(pending_file, read_contents)
        except BAD_FILE_ERRORS as error:
            self._log_failure(pending_file, describe_error(error))
            return "failed"

    def _commit_earlier_steps(self) -> None:
        if self._writer.commit_and_report_undone():
            raise EarlierStepRefused

    def _read_and_write_file(self, pending_file: PendingFile, read_contents: ContentsReader) -> str:
        """Write what a file says; return the count of the summary that it belongs to."""
        if not pending_file.may_be_read_ahead:
            self._commit_earlier_steps()  # others may write while this is read, which can take long
        file_contents = read_contents()
        file_folder = Path(pending_file.file_ref.path).parent
        self._companion_paths.update(
            (file_folder / companion_name).resolve()
            for companion_name in file_contents.companion_names
        )
        if pending_file.loader is None:
            self.summary.unrecognised.append(pending_file.file_ref.path)
            return "ignored"
        file_key = (file_contents.combined_sha256, pending_file.loader.format_id)
        was_loaded_before = file_key in self._loaded_files
        if was_loaded_before and not self._reapplies_format(pending_file.loader):
            self._ensure_copy_is_loaded(file_key)
            return self._note_unchanged(pending_file, file_key)
        parsed_records = start_parsing(file_contents.parsed_entries)
        with self._writer.file_savepoint() as file_step:
            # Another load may have loaded it while this one waited for its turn.
            if not was_loaded_before and file_key in self._loaded_files:
                file_step.on_undone = partial(self._uncount_outcome, pending_file, "unchanged")
                return self._note_unchanged(pending_file, file_key)
            write_result = self._write_records(
                pending_file.loader, parsed_records, file_contents.read_at
            )
            if was_loaded_before and not (
                write_result.changed_count or write_result.withdrawn_count
            ):
                file_step.on_undone = partial(self._uncount_outcome, pending_file, "unchanged")
                return "unchanged"
            self._log_loaded(pending_file, pending_file.loader, file_contents, write_result)
            undo_arguments = (pending_file, None if was_loaded_before else file_key, write_result)
            file_step.on_refused = partial(self._count_as_failed, *undo_arguments)
            file_step.on_undone = partial(self._uncount_loaded_file, *undo_arguments)
        self._loaded_files.add_file(file_key)
        self.summary.incomplete += [
            {"file": pending_file.file_ref.path, "problem": problem_message}
            for problem_message in write_result.problem_messages
        ]
        self.summary.records += write_result.record_count
        self.summary.changed += write_result.changed_count
        return "loaded"

    def _ensure_copy_is_loaded(self, file_key: FileKey) -> None:
        """Be sure that a file like this one is loaded: one of this load may yet be refused."""
        self._commit_earlier_steps()  # others may write while files are passed over
        if self._loaded_files.is_uncommitted(file_key):
            if self._writer.wait_and_report_undone() or file_key not in self._loaded_files:
                raise EarlierStepRefused
            self._loaded_files.mark_all_committed()

    def _note_unchanged(self, pending_file: PendingFile, file_key: FileKey) -> str:
        if self._loaded_files.was_loaded_concurrently(file_key):
            self._concurrently_loaded_paths.add(pending_file.file_ref.path)
            self.summary.loaded_beside = len(self._concurrently_loaded_paths)
        return "unchanged"

    def _uncount_loaded_file(
        self,
        pending_file: PendingFile,
        new_file_key: tuple[str, str] | None,
        write_result: WriteResult,
    ) -> None:
        """Take a file out of the summary, which is to be loaded again."""
        if new_file_key:
            self._loaded_files.discard_file(new_file_key)
        self.summary.incomplete = [
            incomplete_file_problem
            for incomplete_file_problem in self.summary.incomplete
            if incomplete_file_problem["file"] != pending_file.file_ref.path
        ]
        self.summary.records -= write_result.record_count
        self.summary.changed -= write_result.changed_count
        self._uncount_outcome(pending_file, "loaded")

    def _uncount_outcome(self, pending_file: PendingFile, outcome_name: str) -> None:
        self._count_outcome(pending_file, outcome_name, -1)
        self._undone_files.append(pending_file)

    def _count_outcome(self, pending_file: PendingFile, outcome_name: str, delta: int) -> None:
        setattr(self.summary, outcome_name, getattr(self.summary, outcome_name) + delta)
        if pending_file.loader and outcome_name in ("loaded", "unchanged"):
            self.summary.by_loader[pending_file.loader.format_id.partition("/")[0]] += delta
            self.summary.by_loader += Counter()  # without a loader that has none left

    def _count_as_failed(
        self,
        pending_file: PendingFile,
        new_file_key: tuple[str, str] | None,
        write_result: WriteResult,
        error: Exception,
    ) -> None:
        """Count a file as failed that was counted as loaded, before the database refused it."""
        self._uncount_loaded_file(pending_file, new_file_key, write_result)
        self._undone_files.remove(pending_file)
        self._log_failure(pending_file, describe_error(error))

    def _write_records(
        self, loader: Loader, parsed_records: Iterable[ParsedRecord | FileProblem], read_at: str
    ) -> WriteResult:
        write_result = self._writer.put_records(parsed_records, loader.format_id)
        may_drop_most = self._load_options.may_drop_most
        # An older edition of a file says nothing about what is gone from the newest.
        if loader.complete_for_columns and not write_result.has_older_revision:
            for source_name, current_ids in write_result.ids_by_source.items():
                write_result.withdrawn_count += self._writer.withdraw_missing_records(
                    SOURCES_BY_NAME[source_name],
                    loader.format_id,
                    loader.complete_for_columns,
                    current_ids,
                    read_at,
                    may_drop_most=may_drop_most,
                )
        if self._load_options.is_update and isinstance(loader, ListsAllCurrentMembers):
            record_source = SOURCES_BY_NAME[loader.current_source_name]
            current_ids = write_result.ids_by_source.get(record_source.name, set())
            write_result.changed_count += self._writer.retire_missing_members(
                record_source, current_ids, read_at, may_drop_most=may_drop_most
            )
        return write_result

    def _log_loaded(
        self,
        pending_file: PendingFile,
        loader: Loader,
        file_contents: FileContents,
        write_result: WriteResult,
    ) -> None:
        self._writer.log_file_outcome(
            file_contents.read_at,
            pending_file.file_ref.path,
            file_contents.combined_sha256,
            loader.format_id,
            "loaded",
            write_result,
            "; ".join(write_result.problem_messages) or None,
        )

    def _log_ignored_files(self, pdf_paths: Sequence[str]) -> None:
        """Log the files that were not used, each once, with what to do about it."""
        self.summary.unused_pdfs = [
            ignored_path
            for ignored_path in pdf_paths
            if Path(ignored_path).resolve() not in self._companion_paths
        ]
        reason_by_path = dict.fromkeys(self.summary.unused_pdfs, UNUSED_PDF_REASON)
        if self._is_every_format_read:  # else another load may be the one to read them
            reason_by_path |= dict.fromkeys(self.summary.unrecognised, UNRECOGNISED_REASON)
        logged_file_reasons = {(row["file"], row["error"]) for row in list_ignored_files(self._db)}
        for ignored_path, ignore_reason in reason_by_path.items():
            if (ignored_path, ignore_reason) not in logged_file_reasons:
                self._writer.log_file_outcome(
                    clock.format_now(),
                    ignored_path,
                    "",
                    None,
                    "ignored",
                    WriteResult(),
                    ignore_reason,
                )

    def _log_failure(self, pending_file: PendingFile, failure_message: str) -> None:
        format_id = pending_file.loader.format_id if pending_file.loader else None
        with self._writer.file_savepoint() as file_step:
            file_step.on_undone = partial(self._uncount_failure, pending_file)
            self._writer.log_file_outcome(
                clock.format_now(),
                pending_file.file_ref.path,
                pending_file.sha256,
                format_id,
                "failed",
                WriteResult(),
                failure_message,
            )
        self._add_failed_file(pending_file.file_ref.path, failure_message)

    def _uncount_failure(self, pending_file: PendingFile) -> None:
        """Take a failure out of the summary, whose file is to be read again."""
        self.summary.errors = [
            failure
            for failure in self.summary.errors
            if failure["file"] != pending_file.file_ref.path
        ]
        self._uncount_outcome(pending_file, "failed")

    def _add_failed_file(self, file_path: str, error_message: str) -> None:
        self.summary.failed += 1
        self.summary.errors.append({"file": file_path, "error": error_message})

    def _withdraw_gone_files(self, pending_files: Sequence[PendingFile], started_at: str) -> None:
        """Withdraw the records of files that an official zip held before and no longer holds."""
        member_names_by_zip: dict[str, set[str]] = {}
        pending_hashes = {pending_file.sha256 for pending_file in pending_files}
        for pending_file in pending_files:
            if zip_and_member := split_zip_member(pending_file.file_ref.path):
                member_names_by_zip.setdefault(zip_and_member[0], set()).add(zip_and_member[1])
        for zip_path, member_names in member_names_by_zip.items():
            # A file that is here under another name has only moved.
            left_out_log_rows = [
                log_row
                for log_row in list_left_out_log_rows(self._db, zip_path, member_names)
                if log_row["sha256"] not in pending_hashes
            ]
            if (
                is_probably_cut_short(left_out_log_rows, member_names)
                and not self._load_options.may_drop_most
            ):
                self._add_failed_file(
                    zip_path,
                    describe_error(make_cut_short_error("files", left_out_log_rows, member_names)),
                )
                continue
            for log_row in left_out_log_rows:
                for source_name in list_source_names_of_format(log_row["loader"]):
                    record_source = SOURCES_BY_NAME[source_name]
                    self._writer.withdraw_file(record_source, log_row["sha256"], started_at)
                self._writer.forget_file(log_row["file"])
