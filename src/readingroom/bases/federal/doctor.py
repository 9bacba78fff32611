"""Checks whether the federal database is sound, of a version we know, and embedded."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from readingroom.bases.federal.schema.shared_tables import KEY_AND_CHILD_TABLES_BY_PARENT
from readingroom.bases.federal.schema.tables import SCHEMA_VERSION
from readingroom.bases.federal.search.queue import count_unembedded
from readingroom.bases.federal.store import locate_records, prepare_records
from readingroom.core.settings import RoomSettings
from readingroom.protocol.command import RunCommand
from readingroom.protocol.doctor import Complaint
from readingroom.storage.database import Database, DatabaseError, connect

_MAX_QUICK_CHECK_BYTES = 1024**3  # bytes of a database that are read through in a few seconds


def check(
    settings: RoomSettings, is_repairing: bool, run_command: RunCommand
) -> Iterator[Complaint]:
    """Yield what is wrong with the federal database; nothing of it can be repaired here."""
    records_place = locate_records(settings)
    if not isinstance(records_place, Path):
        prepare_records(records_place)
        with closing(records_place.connect(writing=False)) as shared_db:
            yield from _check_orphans(shared_db)
            yield from _check_vectors(shared_db)
        return
    if not records_place.exists():
        return
    try:
        with closing(connect(records_place, timeout=10)) as db:
            (schema_version,) = db.execute("PRAGMA user_version").fetchone()
            if schema_version > SCHEMA_VERSION:
                fix_hint = (
                    "install the newer Reading Room that wrote it, or restore an older backup"
                )
                yield _make_complaint(f"{records_place} has tables of a newer version", fix_hint)
                return
            if records_place.stat().st_size < _MAX_QUICK_CHECK_BYTES:
                yield from _check_integrity(db, records_place)
            yield from _check_vectors(db)
    except DatabaseError as error:
        yield _make_complaint(
            f"{records_place} cannot be read: {error}", "restore it from a backup"
        )


def _check_integrity(db: Database, database_path: Path) -> Iterator[Complaint]:
    (integrity_result,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if integrity_result != "ok":
        yield _make_complaint(
            f"{database_path} is damaged: {integrity_result}", "restore it from a backup"
        )


def _check_orphans(shared_db: Database) -> Iterator[Complaint]:
    """Yield the tables of a shared database whose rows belong to nothing.

    It has no foreign keys there: a load writes both rows in one transaction, and triggers remove
    the one with the other.
    """
    for parent_table_name, (
        key_column,
        child_table_names,
    ) in KEY_AND_CHILD_TABLES_BY_PARENT.items():
        for child_table_name in child_table_names:
            (orphan_count,) = shared_db.execute(
                f"""SELECT count(*) FROM {child_table_name} c WHERE NOT EXISTS
                    (SELECT 1 FROM {parent_table_name} p WHERE p.{key_column} = c.{key_column})"""
            ).fetchone()
            if orphan_count:
                yield _make_complaint(
                    f"{orphan_count} rows of {child_table_name} belong to no row of "
                    f"{parent_table_name}",
                    "restore it from a backup, or load the official files into an empty database",
                )


def _check_vectors(db: Database) -> Iterator[Complaint]:
    if unembedded_count := count_unembedded(db):
        yield _make_complaint(
            f"{unembedded_count} chunks are found by words only",
            "readingroom federal embed",
            is_note=True,
        )


def _make_complaint(problem_text: str, fix_hint: str, is_note: bool = False) -> Complaint:
    return Complaint(subject="federal", problem=problem_text, fix=fix_hint, is_note=is_note)
