"""Says of each source up to which day it is known to be complete, and how that is known."""

from contextlib import closing
from datetime import date

from readingroom.bases.federal.schema.sources import SOURCES, Source
from readingroom.bases.federal.schema.tables import CITATION_FIELDS
from readingroom.bases.federal.store import FederalPlace, connect, translate_errors
from readingroom.storage.database import Database

_MAX_NEWEST_RECORDS = 1_000
"""How many of the newest records are looked at for the date of a complete file."""


def update_source_counts(db: Database) -> None:
    """Store the counts and dates of each source, in the transaction of the caller."""
    for record_source in SOURCES:
        _store_counts(db, record_source)
        complete_up_to = _find_complete_date(db, record_source)
        if complete_up_to:
            _store_complete_dates(
                db,
                record_source,
                None,
                complete_up_to,
                f"files of {record_source.complete_file_loader_name}",
            )
        if record_source.issue_loader_name:
            _store_issue_coverage_description(db, record_source, record_source.issue_loader_name)
        _copy_complete_date(db, record_source)


def correct_dates_from_issues(records_place: FederalPlace) -> None:
    """Correct the dates up to which an earlier version took single issues to make a source whole.

    Raise StorageFailed when the records cannot be used.
    """
    issue_sources = [record_source for record_source in SOURCES if record_source.issue_loader_name]
    with translate_errors(records_place), closing(connect(records_place)) as db:
        if not any(_has_date_from_issues(db, record_source) for record_source in issue_sources):
            return
    with (
        translate_errors(records_place),
        closing(connect(records_place, writing=True)) as db,
        db.transaction(),
    ):
        for record_source in issue_sources:
            _store_issue_coverage_description(
                db, record_source, record_source.issue_loader_name or ""
            )
            _copy_complete_date(db, record_source)


def _has_date_from_issues(db: Database, record_source: Source) -> bool:
    coverage_row = db.execute(
        "SELECT 1 FROM coverage WHERE source = ? AND known_by = ?",
        (record_source.name, f"files of {record_source.issue_loader_name}"),
    ).fetchone()
    return coverage_row is not None


def _copy_complete_date(db: Database, record_source: Source) -> None:
    db.execute(
        """UPDATE progress SET loaded_up_to =
               (SELECT complete_up_to FROM coverage WHERE coverage.source = progress.source)
           WHERE source = ?""",
        (record_source.name,),
    )


def store_sync_date(
    db: Database, record_source: Source, since_day: date | None, sync_day: date
) -> None:
    """Store that a source was brought up to date with its publisher on a day.

    A sync of what changed since a day adds to what was complete until then, and to nothing else.
    """
    coverage_row = db.execute(
        "SELECT complete_from, complete_up_to FROM coverage WHERE source = ?", (record_source.name,)
    ).fetchone()
    first_day_text = since_day.isoformat() if since_day else None
    known_up_to = coverage_row["complete_up_to"] if coverage_row else None
    if first_day_text and known_up_to and known_up_to >= first_day_text:
        first_day_text = coverage_row["complete_from"]
    _store_complete_dates(db, record_source, first_day_text, sync_day.isoformat(), "sync")
    db.execute(
        "UPDATE progress SET loaded_up_to = ? WHERE source = ?",
        (sync_day.isoformat(), record_source.name),
    )


def _store_counts(db: Database, record_source: Source) -> None:
    # A column where there is one: an index has it, and records are long.
    has_date_column = record_source.newest_date_field in CITATION_FIELDS
    date_sql = (
        record_source.newest_date_field
        if has_date_column
        else f"record ->> '{record_source.newest_date_field}'"
    )
    count_sql = f"SELECT ?, count(*) FROM {record_source.name} WHERE status = 'active'"
    db.execute(
        f"""INSERT INTO progress (source, records) {count_sql}
            ON CONFLICT (source) DO UPDATE SET records = excluded.records""",
        (record_source.name,),
    )
    db.execute(
        f"""INSERT INTO coverage (source, newest_record_at)
            SELECT ?, max(substr({date_sql}, 1, 10)) FROM {record_source.name}
            WHERE status = 'active'
            ON CONFLICT (source) DO UPDATE SET newest_record_at = excluded.newest_record_at""",
        (record_source.name,),
    )


def _find_complete_date(db: Database, record_source: Source) -> str | None:
    """Return the newest date of the files that have every record of the source up to then."""
    if record_source.complete_file_loader_name is None:
        return None
    (complete_up_to,) = db.execute(
        f"""SELECT max(as_of) FROM (
                SELECT record ->> 'as_of' AS as_of FROM {record_source.name}
                WHERE status = 'active' AND loader LIKE ?
                ORDER BY published_at DESC NULLS LAST LIMIT ?) AS newest""",
        (f"{record_source.complete_file_loader_name}/%", _MAX_NEWEST_RECORDS),
    ).fetchone()
    return complete_up_to or None


def _store_issue_coverage_description(
    db: Database, record_source: Source, issue_loader_name: str
) -> None:
    """Store of which days all is here, where a source is known to be complete up to none.

    A day's issue says nothing of the days before it.
    """
    first_day, last_day, day_count = db.execute(
        f"""SELECT min(published_at), max(published_at), count(DISTINCT published_at)
            FROM {record_source.name} WHERE status = 'active' AND loader LIKE ?""",
        (f"{issue_loader_name}/%",),
    ).fetchone()
    issues_description = {0: None, 1: f"the issue of {first_day}"}.get(
        day_count, f"{day_count:,} issues from {first_day} to {last_day}"
    )
    db.execute(
        """UPDATE coverage SET complete_from = NULL, complete_up_to = NULL, known_by = ?
           WHERE source = ? AND (known_by IS NULL OR known_by <> 'sync')""",
        (issues_description, record_source.name),
    )


def _store_complete_dates(
    db: Database,
    record_source: Source,
    complete_from: str | None,
    complete_up_to: str,
    evidence_text: str,
) -> None:
    """Store a later date than is known; never an earlier one."""
    db.execute(
        """UPDATE coverage SET complete_from = ?, complete_up_to = ?, known_by = ?
           WHERE source = ? AND (complete_up_to IS NULL OR complete_up_to < ?)""",
        (complete_from, complete_up_to, evidence_text, record_source.name, complete_up_to),
    )
