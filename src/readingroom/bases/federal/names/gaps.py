"""What an answer by filters cannot know: sources and numbers not loaded, fields not stated."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.names.code_citations import describe_cited_record
from readingroom.bases.federal.names.loaded import (
    describe_loaded_records,
    describe_loaded_sources,
)
from readingroom.bases.federal.names.scoring import EntityMatch
from readingroom.bases.federal.names.stored_values import ColumnValues
from readingroom.bases.federal.query.votes import describe_missing_voters
from readingroom.bases.federal.schema.sources import MEMBER_VOTES, RecordTable
from readingroom.bases.federal.schema.uncovered import describe_uncovered_kinds
from readingroom.storage.database import Database

_MAX_READ_VALUES, _MAX_NEAREST_VALUES = 50_000, 6
_MAX_SCORE_GAP = 0.01  # of names that may be meant alike
# Fields that many loaded records do not state, each as SQL that such records pass.
_UNSTATED_SQL_BY_FIELD = {
    ("bills", "outcome"): "outcome IS NULL",
    ("bills", "party"): "party IS NULL",
    ("bills", "policy_area"): "policy_area IS NULL",
    ("bills", "sponsor"): "sponsor IS NULL",
    ("bills", "state"): "state IS NULL",
    # Only the status file of a bill has all of these; it has actions too, and a text has none.
    ("bills", "committee"): "action_count = 0",
    ("bills", "cosponsor"): "action_count = 0",
    ("bills", "topic"): "action_count = 0",
    ("saps", "position"): "position = 'unknown'",
}


def describe_gaps(
    db: Database, table: RecordTable, filters: Mapping[str, Any], *, is_empty: bool
) -> str | None:
    """Return what is not loaded or not known that the filters ask for; None if nothing is missing.

    A Congress or a year of which nothing is loaded means something, so it is told and not refused.
    With an answer of nothing (`is_empty`) it is told what is loaded at all.
    """
    any_row = db.execute(
        f"SELECT 1 FROM {table.name} WHERE {table.active_rows_condition} LIMIT 1"
    ).fetchone()
    if any_row is None:
        return f"No record of {table.name} is loaded here."
    vote_id = filters.get("vote_id") if table is MEMBER_VOTES else None
    if isinstance(vote_id, str) and (missing_voters_note := _describe_missing_voters(db, vote_id)):
        return missing_voters_note
    found_gaps = [
        _describe_missing_number(db, table, filters)
        or " ".join(_describe_unstated_fields(db, table, filters))
        or _describe_undated_records(db, table, filters)
        or (None if is_empty else _describe_complete_days(db, table)),
        describe_loaded_records(db, table.name) if is_empty else None,
    ]
    return " ".join(filter(None, found_gaps)) or None


def describe_name_gaps(
    db: Database, source_name: str, query_text: str, entity_matches: Sequence[EntityMatch]
) -> str | None:
    """Return what to tell of a name that is a citation, names several committees, or nobody."""
    return (
        describe_uncovered_kinds(query_text)
        or describe_cited_record(db, query_text)
        or _describe_ambiguity(entity_matches)
        or (None if entity_matches else describe_loaded_records(db, source_name))
    )


def _describe_ambiguity(entity_matches: Sequence[EntityMatch]) -> str | None:
    likeliest_matches = [
        entity_match
        for entity_match in entity_matches
        if entity_match.score > entity_matches[0].score - _MAX_SCORE_GAP
        and entity_match.record.get("source") == "committees"
    ]
    if len(likeliest_matches) < 2:
        return None
    committees_text = "; ".join(
        f"{entity_match.id} ({entity_match.record['title']}"
        f"{'' if entity_match.record['current'] else ', of the past'})"
        for entity_match in likeliest_matches[:_MAX_NEAREST_VALUES]
    )
    return f"Several committees may be meant: {committees_text}. Say the chamber or the whole name."


def describe_search_gaps(
    db: Database, source_names: Sequence[str], allowed_values_by_field: Mapping[str, Sequence[str]]
) -> str:
    """Return why a search found nothing: a filter that no record can pass, and what is loaded.

    Each field is given with the values of which a record must have one.
    """
    filter_gap = _describe_impassable_filter(db, source_names, allowed_values_by_field)
    return " ".join(filter(None, (filter_gap, describe_loaded_sources(db, source_names))))


def _describe_impassable_filter(
    db: Database, source_names: Sequence[str], allowed_values_by_field: Mapping[str, Sequence[str]]
) -> str | None:
    source_placeholders_sql = ", ".join("?" * len(source_names))
    for field_name, allowed_values in allowed_values_by_field.items():
        passing_row = db.execute(
            f"""SELECT 1 FROM facets f JOIN documents d ON d.doc = f.doc
                WHERE f.field = ? AND f.value IN ({", ".join("?" * len(allowed_values))})
                  AND d.source IN ({source_placeholders_sql}) LIMIT 1""",
            (field_name, *allowed_values, *source_names),
        ).fetchone()
        if passing_row is None:
            values_text = " or ".join(allowed_values)
            return (
                f"No record of {', '.join(source_names)} with {field_name} {values_text} is here."
            )
    return None


def _describe_missing_voters(db: Database, vote_id: str) -> str | None:
    vote_row = db.execute("SELECT record FROM roll_call_votes WHERE id = ?", (vote_id,)).fetchone()
    return describe_missing_voters(from_json(vote_row["record"])) if vote_row else None


def _describe_missing_number(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> str | None:
    """Return which number of a filter no loaded record has, and which there are."""
    numeric_columns = {
        column.name for column in table.filter_columns if column.sql_type == "INTEGER"
    }
    for filter_name, filter_value in filters.items():
        column_values = ColumnValues(db, table, filter_name)
        if filter_name not in numeric_columns or column_values.has_value(filter_value):
            continue
        nearest_numbers = sorted(
            column_values.list_values(_MAX_READ_VALUES),
            key=lambda stored_number: abs(stored_number - filter_value),
        )
        nearest_numbers_text = ", ".join(
            str(number) for number in sorted(nearest_numbers[:_MAX_NEAREST_VALUES])
        )
        nearest_numbers_note = (
            f"the nearest that are: {nearest_numbers_text}"
            if nearest_numbers_text
            else "none has any"
        )
        return (
            f"No record of {table.slug} with {filter_name} {filter_value} is loaded here; "
            f"{nearest_numbers_note}."
        )
    return None


def _describe_unstated_fields(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> Iterator[str]:
    """Tell of how many records that pass the other filters a filter's field is not known."""
    for filter_name, filter_value in filters.items():
        unstated_sql = _UNSTATED_SQL_BY_FIELD.get((table.name, filter_name))
        if unstated_sql is None or filter_value == "unknown":
            continue
        other_filters = {
            other_name: filters[other_name] for other_name in filters if other_name != filter_name
        }
        sql_filter = build_sql_filter(table, other_filters)
        own_filter = build_sql_filter(table, {filter_name: filter_value})
        (unstated_count,) = db.execute(
            f"""SELECT count(*) FROM {table.name} WHERE {sql_filter.sql} AND {unstated_sql}
                AND NOT coalesce({own_filter.sql}, false)""",
            (*sql_filter.values, *own_filter.values),
        ).fetchone()
        if unstated_count:
            yield (
                f"Of {unstated_count:,} more {table.slug} that pass the other filters the "
                f"{filter_name} is not known here."
            )


def _describe_undated_records(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> str | None:
    """Return how many records that pass the other filters have no day, which no `since` lets in."""
    other_filters = {
        filter_name: filters[filter_name]
        for filter_name in filters
        if filter_name not in ("since", "until")
    }
    if len(other_filters) == len(filters):
        return None
    sql_filter = build_sql_filter(table, other_filters)
    (undated_count,) = db.execute(
        f"SELECT count(*) FROM {table.name} WHERE {sql_filter.sql} AND {table.date_sql} IS NULL",
        sql_filter.values,
    ).fetchone()
    if not undated_count:
        return None
    return f"{undated_count:,} more {table.slug} that pass the other filters bear no date here."


def _describe_complete_days(db: Database, table: RecordTable) -> str | None:
    """Return of which days a source of issues is complete, where it is not up to a day."""
    coverage_row = db.execute(
        "SELECT known_by FROM coverage WHERE source = ? AND complete_up_to IS NULL", (table.name,)
    ).fetchone()
    if coverage_row is None or coverage_row["known_by"] is None:
        return None
    return (
        f"Of {table.slug}, all of {coverage_row['known_by']} is loaded; of other days, nothing "
        "is known to be complete here."
    )
