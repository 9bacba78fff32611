"""What an answer by filters cannot know: sources and numbers not loaded, fields not stated."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.names.code_citations import describe_cited_record
from readingroom.bases.federal.names.people import PERSON_FILTERS
from readingroom.bases.federal.names.posts import describe_unloaded_time
from readingroom.bases.federal.names.resolver import find_committee_ids
from readingroom.bases.federal.names.scoring import EntityMatch
from readingroom.bases.federal.names.stored_values import ColumnValues, choose_value_lookup
from readingroom.bases.federal.query.votes import describe_missing_voters
from readingroom.bases.federal.schema.loaded import (
    describe_loaded_records,
    describe_loaded_sources,
)
from readingroom.bases.federal.schema.sources import MEMBER_VOTES, RecordTable, Source
from readingroom.bases.federal.schema.uncovered import describe_uncovered_kinds
from readingroom.storage.database import Database

STUB_NOTE = (
    "people are known only as other records name them, without their terms and posts, and whether "
    "they sit now is not known."
)
_MAX_READ_VALUES, _MAX_NEAREST_VALUES = 50_000, 6
_ADVICE_BY_SOURCE = {
    "agencies": (
        "Only agencies that loaded documents name are: `list_records` lists them all. Try the "
        "department's name, or `search` for what it does."
    ),
    "bills": (
        "Bills are found by title, short title and number (`H.R. 22`). Try words of the official "
        "title, or `search`: as a law it may be among public_laws or statute_compilations."
    ),
    "committees": "Try a word of the official name, or an id such as `HSAG`.",
    "legislators": (
        "These are members of Congress, by name, state, district or post; presidents, vice "
        "presidents and officials are none. Try the surname alone, or a bioguide id (`S000033`)."
    ),
}
"""By registry, what to try for a name that is nobody's there."""
_MAX_SCORE_GAP = 0.01  # of names that may be meant alike
# Fields that many loaded records do not state, each as SQL that such records pass.
_UNSTATED_SQL_BY_FIELD = {
    ("bills", "outcome"): "outcome IS NULL",
    ("bills", "party"): "party IS NULL",
    ("bills", "policy_area"): "policy_area IS NULL",
    ("bills", "sponsor"): "sponsor IS NULL",
    ("bills", "state"): "state IS NULL",
    ("legislators", "current"): "current IS NULL",
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
        or _describe_absent_person(db, table, filters)
        or _describe_summed_presidents(db, table, filters)
        or " ".join(_describe_unstated_fields(db, table, filters))
        or _describe_undated_records(db, table, filters)
        or (None if is_empty else _describe_complete_days(db, table)),
        describe_loaded_records(db, table.name) if is_empty else None,
    ]
    return " ".join(filter(None, found_gaps)) or None


def describe_name_gaps(
    db: Database, source: Source, query_text: str, entity_matches: Sequence[EntityMatch]
) -> str | None:
    """Return what to tell of a name: a citation, a post of a time not loaded, one of several.

    Of one that is nobody's here, what is loaded and what to try; of a member, that no list of
    members is loaded.
    """
    return (
        describe_uncovered_kinds(query_text)
        or describe_cited_record(db, query_text)
        or _describe_ambiguity(entity_matches)
        or (_describe_member_gaps(db, query_text) if source.name == "legislators" else None)
        or (None if entity_matches else _describe_names_loaded(db, source))
    )


def _describe_member_gaps(db: Database, query_text: str) -> str | None:
    """Return that no list of members is loaded, or none of the time of the post asked for."""
    return _describe_missing_members(db) or describe_unloaded_time(
        db, query_text, partial(find_committee_ids, db)
    )


def _describe_names_loaded(db: Database, source: Source) -> str:
    """Return how many records of a registry have names here, of which Congresses, what to try."""
    (record_count,) = db.execute(source.record_table.row_count_sql).fetchone() or (0,)
    if not record_count:
        return f"No record of {source.slug} is loaded here."
    congresses: list[int] = []
    if any(column.name == "congress" for column in source.columns):
        congress_values = ColumnValues(db, source.record_table, "congress")
        congresses = sorted(congress_values.list_values(_MAX_READ_VALUES))
    congresses_text = f", of the Congresses {', '.join(map(str, congresses))}" if congresses else ""
    advice_text = _ADVICE_BY_SOURCE.get(
        source.name, "Try fewer words or another spelling; `list_records` lists what there is."
    )
    return (
        f"Nothing of this name is among the {record_count:,} {source.slug} loaded here"
        f"{congresses_text}. {advice_text}"
    )


def _describe_missing_members(db: Database) -> str | None:
    described_member_row = db.execute(
        "SELECT 1 FROM legislators WHERE status = 'active' AND current IS NOT NULL LIMIT 1"
    ).fetchone()
    return None if described_member_row else f"No list of members is loaded here: {STUB_NOTE}"


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
            if field_name in PERSON_FILTERS and (person_title := _find_title(db, values_text)):
                values_text += f" ({person_title})"
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


def _describe_absent_person(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> str | None:
    """Return who is meant by a filter for a person of whom nothing of the table is loaded."""
    for filter_name in sorted(PERSON_FILTERS & filters.keys()):
        person_id = filters[filter_name]
        value_lookup = choose_value_lookup(db, table, filter_name)
        if isinstance(person_id, str) and not value_lookup.count_records([person_id]):
            person_title = _find_title(db, person_id) or "of whom no name is known here"
            return (
                f"{filter_name} is taken as {person_id} ({person_title}), and no record of "
                f"{table.slug} with that {filter_name} is loaded here. If somebody else is meant, "
                "say an id: `resolve_entity` finds it."
            )
    return None


def _find_title(db: Database, person_id: str) -> str | None:
    person_row = db.execute(
        "SELECT record ->> 'title' AS title FROM legislators WHERE id = ?", (person_id,)
    ).fetchone()
    return str(person_row["title"]) if person_row else None


def _describe_summed_presidents(
    db: Database, table: RecordTable, filters: Mapping[str, Any]
) -> str | None:
    """Return the presidents of one name whose statements an answer has together."""
    if table.name != "saps" or "president" not in filters or "president_number" in filters:
        return None
    sql_filter = build_sql_filter(table, filters)
    president_rows = db.execute(
        f"""SELECT president_number AS number, max(record ->> 'president_name') AS name,
                   count(*) AS statements FROM saps
            WHERE {sql_filter.sql} AND president_number IS NOT NULL
            GROUP BY president_number ORDER BY president_number""",
        sql_filter.values,
    ).fetchall()
    if len(president_rows) < 2:
        return None
    presidents_text = "; ".join(
        f"{president_row['number']} ({president_row['name']}, {president_row['statements']:,})"
        for president_row in president_rows
    )
    return (
        f"{len(president_rows)} presidencies together: {presidents_text}. Filter by "
        "`president_number` for one of them, or group by it."
    )


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
