"""Which files were loaded; those that were not, or not wholly, and what newer ones leave out.

A file that leaves out most records of the one before it was probably cut short.
"""

from collections.abc import Iterator, Sequence, Set, Sized
from pathlib import Path

from readingroom.bases.federal.formats.parts.files import split_zip_member
from readingroom.bases.federal.schema.sources import Source
from readingroom.storage.database import Database, Row

_MAX_UNSUSPECTED_REMOVALS = 20
"""How many records a newer file may leave out without being suspected."""

UNRECOGNISED_REASON = (
    "its format is not recognised: `readingroom federal load --help` lists the formats"
)
UNUSED_PDF_REASON = (
    "not read: a PDF is read only where a file of statements (`47-Trump.yaml`) names it; put that "
    "file into the folder above `statements`, and load the folder"
)

FileKey = tuple[str, str]
"""The hash of a file, and the loader that read it."""


class FileCutShort(ValueError):
    """A newer file leaves out most records of an older one."""


def is_probably_cut_short(missing_items: Sized, remaining_items: Sized) -> bool:
    """Return whether a newer file leaves out so many records that it was probably cut short."""
    return len(missing_items) > max(_MAX_UNSUSPECTED_REMOVALS, len(remaining_items))


def make_cut_short_error(
    items_noun: str, missing_items: Sized, remaining_items: Sized
) -> FileCutShort:
    """Return the error that says how many would be withdrawn, and what to do."""
    return FileCutShort(
        f"it would withdraw {len(missing_items)} {items_noun} and keep {len(remaining_items)}; "
        "if the file is complete, use `federal update --even-most`"
    )


def refuse_to_remove_most(
    record_source: Source, missing_ids: Sequence[str], remaining_ids: Sized
) -> None:
    """Raise `FileCutShort` when most records of a source would be withdrawn."""
    if is_probably_cut_short(missing_ids, remaining_ids):
        raise make_cut_short_error(f"records of {record_source.name}", missing_ids, remaining_ids)


class LoadedFiles:
    """Which files are loaded already: by this load, by those before it, or by one beside it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._last_log_number = 0
        self._keys = set[FileKey]()
        self._uncommitted_keys = set[FileKey]()
        """Of this load: the database may still refuse their rows."""
        self._keys_beside = set[FileKey]()
        self.read_new_log_rows()
        self._keys_beside.clear()  # of those before this load

    def read_new_log_rows(self) -> None:
        """Take note of what was loaded since: one load writes at a time, others between."""
        for log_row in self._db.execute(
            """SELECT log, sha256, loader FROM ingestion_logs
               WHERE outcome = 'loaded' AND log > ? ORDER BY log""",
            (self._last_log_number,),
        ):
            self._last_log_number = log_row["log"]
            file_key = (log_row["sha256"], log_row["loader"])
            if file_key not in self._keys:
                self._keys.add(file_key)
                self._keys_beside.add(file_key)

    def __contains__(self, file_key: FileKey) -> bool:
        return file_key in self._keys

    def was_loaded_concurrently(self, file_key: FileKey) -> bool:
        """Return whether another load has loaded a file since this one began."""
        return file_key in self._keys_beside

    def is_uncommitted(self, file_key: FileKey) -> bool:
        """Return whether a file of this load is not committed for certain."""
        return file_key in self._uncommitted_keys

    def add_file(self, file_key: FileKey) -> None:
        self._keys.add(file_key)
        self._uncommitted_keys.add(file_key)

    def discard_file(self, file_key: FileKey) -> None:
        """Forget a file that the database has refused."""
        self._keys.discard(file_key)
        self._uncommitted_keys.discard(file_key)

    def mark_all_committed(self) -> None:
        """Take note that all files so far are committed."""
        self._uncommitted_keys.clear()


def list_left_out_log_rows(db: Database, zip_path: str, member_names: Set[str]) -> list[Row]:
    """Return the log rows of files that were loaded from a package and are no longer in it.

    The newest package may lie in another folder, under the same name: it is the same package if
    the two share members.
    """
    loaded_log_rows = db.execute(
        """SELECT file, sha256, loader FROM ingestion_logs WHERE log IN
               (SELECT max(log) FROM ingestion_logs
                WHERE outcome = 'loaded' AND file LIKE ? GROUP BY file)""",
        # It may match more, by case or by a wildcard in the name; the paths are compared below.
        (f"%{Path(zip_path).name}!%",),
    )
    log_rows_by_zip_and_member: dict[str, dict[str, Row]] = {}
    for log_row in loaded_log_rows:
        logged_zip_path, member_name = split_zip_member(log_row["file"]) or ("", "")
        if Path(logged_zip_path).name == Path(zip_path).name:
            log_rows_by_zip_and_member.setdefault(logged_zip_path, {})[member_name] = log_row
    return [
        log_row
        for logged_zip_path, log_row_by_member in log_rows_by_zip_and_member.items()
        if logged_zip_path == zip_path or log_row_by_member.keys() & member_names
        for member_name, log_row in log_row_by_member.items()
        if member_name not in member_names
    ]


def list_failed_files(db: Database, max_files: int = 20) -> Iterator[Row]:
    """Yield the files that could not be loaded and have not been since, newest first."""
    # A zip that could not be opened counts as mended once one of its members was loaded.
    yield from db.execute(
        """SELECT at, file, error FROM ingestion_logs l WHERE outcome = 'failed'
           AND NOT EXISTS (SELECT 1 FROM ingestion_logs n
                           WHERE (n.file = l.file OR
                                  substr(n.file, 1, length(l.file) + 1) = l.file || '!')
                           AND n.outcome = 'loaded' AND n.log > l.log)
           ORDER BY log DESC LIMIT ?""",
        (max_files,),
    )


def list_incomplete_files(db: Database) -> Iterator[Row]:
    """Yield the files that were loaded with something missing, and what to do, newest first."""
    yield from db.execute(
        """SELECT at, file, error FROM ingestion_logs l WHERE outcome = 'loaded'
           AND error IS NOT NULL AND NOT EXISTS (
               SELECT 1 FROM ingestion_logs n
               WHERE n.file = l.file AND n.outcome = 'loaded' AND n.log > l.log)
           ORDER BY log DESC"""
    )


def list_ignored_files(db: Database) -> Iterator[Row]:
    """Yield the files that were not used and have not been since, and what to do, newest first."""
    yield from db.execute(
        """SELECT max(at) AS at, file, error FROM ingestion_logs l WHERE outcome = 'ignored'
           AND NOT EXISTS (SELECT 1 FROM ingestion_logs n
                           WHERE n.file = l.file AND n.outcome = 'loaded' AND n.log > l.log)
           GROUP BY file, error ORDER BY max(log) DESC"""
    )
