"""Says what is loaded of a source: a list of nothing is true of that and of nothing else."""

from collections.abc import Sequence

from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, RecordTable
from readingroom.storage.database import Database

_MAX_DESCRIBED_SOURCES = 3


def describe_loaded_records(db: Database, source_name: str) -> str:
    """Return how many records of a source are here, of which days, and up to when all are.

    How members voted is no source of its own: it is loaded with the roll calls.
    """
    table = SOURCES_BY_NAME.get(source_name, SOURCES_BY_NAME["roll_call_votes"]).record_table
    # Two questions, each of which an index answers at its end.
    first_day, last_day = (
        db.execute(
            f"""SELECT substr({bound}({table.date_sql}), 1, 10) FROM {table.name}
                WHERE {table.active_rows_condition}"""
        ).fetchone()[0]
        for bound in ("min", "max")
    )
    (record_count,) = db.execute(
        f"SELECT count(*) FROM {table.name} WHERE {table.active_rows_condition}"
    ).fetchone()
    if not record_count:
        return f"No record of {table.name} is loaded here."
    days_phrase = _describe_days(first_day, last_day)
    return (
        f"Of {table.slug}, {record_count:,} {'is' if record_count == 1 else 'are'} loaded here"
        f"{days_phrase}; {_describe_completeness(db, table)}."
    )


def describe_loaded_sources(db: Database, source_names: Sequence[str]) -> str:
    """Return what is loaded of a few sources; of many, that the answer has it."""
    if len(source_names) > _MAX_DESCRIBED_SOURCES:
        return "Nothing that is loaded here passes; `searched` says how much of each source is."
    return " ".join(describe_loaded_records(db, source_name) for source_name in source_names)


def _describe_days(first_day: str | None, last_day: str | None) -> str:
    if not first_day:
        return ""
    return f", of {first_day}" if first_day == last_day else f", from {first_day} to {last_day}"


def _describe_completeness(db: Database, table: RecordTable) -> str:
    coverage_row = db.execute(
        "SELECT complete_from, complete_up_to, known_by FROM coverage WHERE source = ?",
        (table.name,),
    ).fetchone()
    if coverage_row is None:
        return "up to which day that is all, is not known"
    if complete_up_to := coverage_row["complete_up_to"]:
        if complete_from := coverage_row["complete_from"]:
            return f"all from {complete_from} to {complete_up_to} are"
        return f"all up to {complete_up_to} are"
    if known_by := coverage_row["known_by"]:
        return f"all of {known_by}, and of other days nothing is known to be complete"
    return "up to which day that is all, is not known"
