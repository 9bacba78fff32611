"""Finds the records of a registry that a name may mean, best first, and says why."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.filters import SqlFilter
from readingroom.bases.federal.names.agencies import find_agencies, shares_distinctive_word
from readingroom.bases.federal.names.context import NameContext, get_context_fields
from readingroom.bases.federal.names.possible_names import (
    NameWords,
    combine_filters,
    find_column_values,
    find_names_by_initials,
    find_names_by_trigrams,
    find_possible_names,
)
from readingroom.bases.federal.names.posts import (
    find_post_holders,
    find_post_time,
    is_post_of_a_time,
)
from readingroom.bases.federal.names.query import NameQuery
from readingroom.bases.federal.names.scoring import (
    COMMITTEE_INITIAL_LETTERS,
    MIN_SCORE,
    CandidateName,
    EntityMatch,
    combine_scores,
    explain_words,
    is_of_other_chamber,
    is_subcommittee,
    make_candidate_name,
    make_match_sort_key,
    rescale_match,
    score_record,
    select_candidate_names,
)
from readingroom.bases.federal.names.similarity import (
    compare_words,
    compute_word_weight,
    score_initials,
)
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.ids import parse_bill_number, parse_federal_id
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import Database

# How many records with those names, or belonging to those who have them, are scored.
_MAX_SCORED_RECORDS = 600
# A score that ends the search. Below it, the context of records is searched as well.
_SURE_SCORE = 0.8
# How many of the likeliest names of parents lead to the records that belong to them.
_MAX_LIKELY_PARENT_NAMES = 12
# What a subcommittee scores compared with its committee, unless the query asks for one.
_SUBCOMMITTEE_FACTOR = 0.9
# What a committee of the past scores compared with one that sits.
_PAST_COMMITTEE_FACTOR = 0.95
# What a name that a committee had scores, compared with one that another has today.
_FORMER_NAME_FACTOR = 0.85
_SURNAME_ONLY_FACTOR = 0.92  # of whom a file says no more: others have the name too

# --- the answer ---


def resolve_name(
    db: Database, source: Source, written_name: str, sql_filter: SqlFilter
) -> list[EntityMatch]:
    """Return every record of a registry that a text may mean, the likeliest first."""
    if source.name == "legislators" and is_post_of_a_time(
        db, written_name, partial(find_committee_ids, db)
    ):
        holder_by_id: dict[str, EntityMatch] = {}
        _keep_best_matches(holder_by_id, _match_posts(db, source, written_name, sql_filter))
        return sorted(holder_by_id.values(), key=make_match_sort_key)
    name_query = NameQuery.parse_name(written_name, source.name)
    words_by_name_id = (
        find_possible_names(db, source, name_query, sql_filter) if name_query.words else {}
    )
    candidate_by_name_id = select_candidate_names(name_query, words_by_name_id)
    best_match_by_id: dict[str, EntityMatch] = {}
    _keep_best_matches(
        best_match_by_id,
        chain(
            _match_written_id(db, source, written_name, sql_filter),
            _match_candidate_names(db, source, name_query, candidate_by_name_id, sql_filter),
            _match_popular_names(db, source, name_query, sql_filter),
            _match_without_name(db, source, written_name, name_query, sql_filter),
            _match_posts(db, source, written_name, sql_filter),
            _match_agencies(db, source, written_name, sql_filter),
        ),
    )
    context_fields = get_context_fields(source.name)
    is_no_match_sure = all(
        entity_match.score < _SURE_SCORE for entity_match in best_match_by_id.values()
    )
    if context_fields.registry_name_by_parent_field or (
        context_fields.text_field_names and is_no_match_sure
    ):
        # Names that explain only some of the words, where the record may explain the others.
        candidate_by_name_id = select_candidate_names(
            name_query, words_by_name_id, unexplained_word_score=0.8
        )
        _keep_best_matches(
            best_match_by_id,
            _match_candidate_names(db, source, name_query, candidate_by_name_id, sql_filter),
        )
        _keep_best_matches(best_match_by_id, _match_by_parents(db, source, name_query, sql_filter))
    entity_matches = (
        entity_match
        for entity_match in best_match_by_id.values()
        if entity_match.score >= MIN_SCORE
    )
    if source.name == "agencies":
        entity_matches = (
            entity_match
            for entity_match in entity_matches
            if entity_match.score >= _SURE_SCORE
            or shares_distinctive_word(written_name, entity_match.record["names"])
        )
    return sorted(entity_matches, key=make_match_sort_key)


def _keep_best_matches(
    best_match_by_id: dict[str, EntityMatch], entity_matches: Iterable[EntityMatch]
) -> None:
    for entity_match in entity_matches:
        previous_match = best_match_by_id.get(entity_match.id)
        if previous_match is None or entity_match.score > previous_match.score:
            best_match_by_id[entity_match.id] = entity_match


# --- ways to match ---


def _match_written_id(
    db: Database, source: Source, written_id: str, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """The text may simply be an id, or the number of a bill of any Congress."""
    try:
        parsed_id = parse_federal_id(written_id)
    except UnrecognizedId:
        if source.name == "bills" and (bill_type_and_number := parse_bill_number(written_id)):
            number_condition_and_value = (
                "id LIKE ?",
                f"{bill_type_and_number[0]}:%:{bill_type_and_number[1]}",
            )
            for record_id, record_fields in _read_records(
                db, source, number_condition_and_value, sql_filter
            ):
                yield EntityMatch(record_id, 0.95, [f"{record_id} has the number"], record_fields)
        return
    if parsed_id.source == source.name:
        for record_id, record_fields in _read_records(
            db, source, ("id = ?", parsed_id.id), sql_filter
        ):
            yield EntityMatch(record_id, 1.0, [f"{record_id} is its id"], record_fields)


def _match_candidate_names(
    db: Database,
    source: Source,
    name_query: NameQuery,
    candidate_by_name_id: Mapping[int, CandidateName],
    sql_filter: SqlFilter,
) -> Iterator[EntityMatch]:
    """The records that have the names of candidates."""
    name_context = NameContext(db, source.name, name_query.name_word_texts)
    for record_id, (name_id, printed_name), record_fields in _read_named_records(
        db, source, candidate_by_name_id, sql_filter
    ):
        yield from _match_record(
            name_context,
            name_query,
            candidate_by_name_id[name_id],
            printed_name,
            record_id,
            record_fields,
        )


def _match_record(
    name_context: NameContext,
    name_query: NameQuery,
    name_candidate: CandidateName,
    printed_name: str,
    record_id: str,
    record_fields: dict[str, Any],
) -> Iterator[EntityMatch]:
    parent_records = (parent.record_fields for parent in name_context.find_parents(record_fields))
    committee_parents = [
        parent_fields for parent_fields in parent_records if "parent_id" in parent_fields
    ]
    if any(
        is_of_other_chamber(name_query, name_candidate, chamber_record)
        for chamber_record in (record_fields, *committee_parents)
    ):
        return
    record_score, reasons = score_record(
        name_context, name_query, name_candidate, printed_name, record_fields
    )
    if is_subcommittee(record_fields) and not name_query.wants_subcommittee:
        record_score *= _SUBCOMMITTEE_FACTOR
    if record_fields.get("source") == "committees" and not record_fields["current"]:
        record_score *= _PAST_COMMITTEE_FACTOR
    if record_fields.get("stub") and len(name_candidate.name_words) == 1:
        record_score *= _SURNAME_ONLY_FACTOR
    yield EntityMatch(
        record_id, round(record_score, 4), reasons, record_fields, len(name_candidate.name_words)
    )


def _match_popular_names(
    db: Database, source: Source, name_query: NameQuery, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """What everybody calls a record, though no official file does."""
    name_context = NameContext(db, source.name, name_query.name_word_texts)
    vocabulary = load_vocabulary()
    ids_by_former_name = vocabulary.former_names_by_registry.get(source.name, {})
    ids_by_popular_name = vocabulary.popular_names_by_registry.get(source.name, {})
    for printed_name, named_record_id in (
        *ids_by_popular_name.items(),
        *ids_by_former_name.items(),
    ):
        name_candidate = make_candidate_name(fold.fold_name(printed_name), name_query)
        if name_candidate.best_possible_score < _SURE_SCORE:
            continue
        for record_id, record_fields in _read_records(
            db, source, ("id = ?", named_record_id), sql_filter
        ):
            for entity_match in _match_record(
                name_context, name_query, name_candidate, printed_name, record_id, record_fields
            ):
                is_former_name = printed_name in ids_by_former_name
                yield (
                    rescale_match(entity_match, _FORMER_NAME_FACTOR)
                    if is_former_name
                    else entity_match
                )


def _match_by_parents(
    db: Database, source: Source, name_query: NameQuery, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """The records that belong to those that some of the words name: the offices of Pelosi."""
    if not name_query.words:
        return
    name_context = NameContext(db, source.name, name_query.name_word_texts)
    for parent_field_name, registry_name in get_context_fields(
        source.name
    ).registry_name_by_parent_field.items():
        parent_ids = _find_likely_parent_ids(db, SOURCES_BY_NAME[registry_name], name_query)
        for record_id, record_fields in _read_records_of_parents(
            db, source, parent_field_name, parent_ids, sql_filter
        ):
            for record_name_words, printed_name in _read_names_of_record(db, record_id):
                name_candidate = make_candidate_name(record_name_words, name_query)
                yield from _match_record(
                    name_context, name_query, name_candidate, printed_name, record_id, record_fields
                )


def _find_likely_parent_ids(
    db: Database, registry_source: Source, name_query: NameQuery
) -> list[str]:
    """Return the likeliest records of a registry that some of the words name."""
    registry_filter = SqlFilter(registry_source.record_table.active_rows_condition, (), {})
    words_by_name_id = find_names_by_trigrams(db, registry_source, name_query, registry_filter)
    for word in name_query.distinctive_words:
        if registry_source.name == "committees" and 3 <= len(word) <= 6:
            words_by_name_id |= find_names_by_initials(db, registry_source, word)
    likely_name_ids = sorted(
        words_by_name_id,
        key=lambda name_id: (-_score_parent_name(name_query, words_by_name_id[name_id]), name_id),
    )[:_MAX_LIKELY_PARENT_NAMES]
    if not likely_name_ids:
        return []
    record_id_rows = db.execute(
        f"""SELECT DISTINCT record_id FROM name_forms
            WHERE name_row IN ({", ".join("?" * len(likely_name_ids))})
            LIMIT {2 * _MAX_LIKELY_PARENT_NAMES}""",
        likely_name_ids,
    )
    return [record_id_row["record_id"] for record_id_row in record_id_rows]


def _score_parent_name(name_query: NameQuery, record_name_words: NameWords) -> float:
    """Return how well some of the words name this, whatever the others say."""
    similarity = compare_words(name_query.name_word_texts, record_name_words)
    initials_score = max(
        (
            score_initials(word, record_name_words, COMMITTEE_INITIAL_LETTERS)
            for word in name_query.distinctive_words
            if 3 <= len(word) <= 6
        ),
        default=0.0,
    )
    word_score_sum = sum(
        word_match.score * compute_word_weight(word_match.query_word_text)
        for word_match in similarity.word_matches
        if word_match
    )
    return max(word_score_sum, initials_score) + 0.5 * similarity.coverage


def _match_without_name(
    db: Database, source: Source, written_name: str, name_query: NameQuery, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """Those who are meant when there is no name at all: `senators from Mass`, `CA-11`."""
    value_by_column = find_column_values(source, name_query)
    if "state" not in value_by_column or not all(
        query_word.meaning or query_word.may_mean_record_kind for query_word in name_query.words
    ):
        return
    post_time = find_post_time(written_name) if source.name == "legislators" else None
    for record_id, record_fields in _read_records(
        db, source, ("status = 'active'",), combine_filters(sql_filter, value_by_column)
    ):
        if post_time and not any(
            post_time.has_days_of(office_term["start"], office_term["end"])
            for office_term in record_fields["terms"]
        ):
            continue
        word_scores, reasons = explain_words(
            name_query, name_query.no_word_matches, name_query.no_word_matches, [record_fields]
        )
        yield EntityMatch(
            record_id,
            round(combine_scores(name_query, word_scores, 1.0), 4),
            reasons,
            record_fields,
        )


def _match_posts(
    db: Database, source: Source, post_name: str, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """Those who hold or held a post: `Speaker of the House`, `chair of Ways and Means`."""
    if source.name != "legislators":
        return
    for holder_id, score, reason, record_fields in find_post_holders(
        db, post_name, partial(find_committee_ids, db)
    ):
        if next(_read_records(db, source, ("id = ?", holder_id), sql_filter), None):
            yield EntityMatch(holder_id, score, [reason], record_fields)


def find_committee_ids(db: Database, committee_name: str) -> list[str]:
    """Return the committees that a name means best: `Appropriations` is one of each chamber."""
    registry_source = SOURCES_BY_NAME["committees"]
    every_committee = SqlFilter(registry_source.record_table.active_rows_condition, (), {})
    entity_matches = resolve_name(db, registry_source, committee_name, every_committee)
    return [
        entity_match.id
        for entity_match in entity_matches
        if entity_match.score == entity_matches[0].score
    ]


def _match_agencies(
    db: Database, source: Source, written_name: str, sql_filter: SqlFilter
) -> Iterator[EntityMatch]:
    """Agencies by their names in any order, or by abbreviation: `Labor Department`, `FERC`."""
    if source.name != "agencies":
        return
    for agency_id, score, reason in find_agencies(db, written_name):
        for _, record_fields in _read_records(db, source, ("id = ?", agency_id), sql_filter):
            yield EntityMatch(agency_id, score, [reason], record_fields)


# --- records ---


def _read_named_records(
    db: Database, source: Source, name_ids: Collection[int], sql_filter: SqlFilter
) -> Iterator[tuple[str, tuple[int, str], dict[str, Any]]]:
    """Yield the newest records with each name, and the form of the name that each has."""
    if not name_ids:
        return
    # The name first, however good the index of newest records looks.
    join_sql = db.dialect.join_in_order_sql
    record_rows = db.execute(
        f"""SELECT name_row, form, id, record, place FROM (
                SELECT f.name_row, f.form, r.id, r.record, row_number() OVER (
                    PARTITION BY f.name_row ORDER BY r.published_at DESC NULLS LAST, r.id
                ) AS place
                FROM name_forms f {join_sql} {source.name} r ON r.id = f.record_id
                WHERE f.name_row IN ({", ".join("?" * len(name_ids))}) AND {sql_filter.sql}
            ) AS named WHERE place <= ?""",
        (*name_ids, *sql_filter.values, max(1, _MAX_SCORED_RECORDS // len(name_ids))),
    )
    position_by_name_id = {name_id: name_position for name_position, name_id in enumerate(name_ids)}
    for record_row in sorted(
        record_rows,
        key=lambda record_row: (position_by_name_id[record_row["name_row"]], record_row["place"]),
    ):
        yield (
            record_row["id"],
            (record_row["name_row"], record_row["form"]),
            from_json(record_row["record"]),
        )


def _read_records_of_parents(
    db: Database,
    source: Source,
    parent_field_name: str,
    parent_ids: Sequence[str],
    sql_filter: SqlFilter,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the newest records that belong to any of these parents."""
    if not parent_ids:
        return iter(())
    id_placeholders_sql = ", ".join("?" * len(parent_ids))
    if any(column.name == parent_field_name for column in source.columns):
        condition_sql = f"{parent_field_name} IN ({id_placeholders_sql})"
    else:
        condition_sql = f"id IN (SELECT from_id FROM links WHERE to_id IN ({id_placeholders_sql}))"
    return _read_records(db, source, (condition_sql, *parent_ids), sql_filter)


def _read_names_of_record(db: Database, record_id: str) -> Iterator[tuple[NameWords, str]]:
    name_rows = db.execute(
        "SELECT folded, form FROM name_forms JOIN names USING (name_row) WHERE record_id = ?",
        (record_id,),
    )
    for name_row in name_rows:
        yield tuple(name_row["folded"].split()), name_row["form"]


def _read_records(
    db: Database, source: Source, condition_and_values: tuple[Any, ...], sql_filter: SqlFilter
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the newest records under a condition, which is given with its values."""
    condition_sql, *condition_values = condition_and_values
    record_rows = db.execute(
        f"""SELECT id, record FROM {source.name} WHERE {condition_sql} AND {sql_filter.sql}
            ORDER BY published_at DESC NULLS LAST, id LIMIT ?""",
        (*condition_values, *sql_filter.values, _MAX_SCORED_RECORDS),
    )
    for record_row in record_rows:
        yield record_row["id"], from_json(record_row["record"])
