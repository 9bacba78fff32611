"""Finds the records of a registry that a name may mean, best first, and says why."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.filters import RowFilter
from readingroom.bases.federal.names.agencies import find_agencies
from readingroom.bases.federal.names.context import NameContext, get_context_fields
from readingroom.bases.federal.names.posts import find_holders
from readingroom.bases.federal.names.query import NameQuery
from readingroom.bases.federal.names.scoring import (
    COMMITTEE_INITIALS,
    MIN_SCORE,
    CandidateName,
    EntityMatch,
    combine_scores,
    explain_words,
    is_of_other_chamber,
    is_subcommittee,
    make_candidate_name,
    make_sort_key,
    rescale_match,
    score_record,
    select_candidate_names,
)
from readingroom.bases.federal.names.similarity import (
    compare_words,
    compute_word_weight,
    find_initials,
    score_initials,
)
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.ids import parse_bill_number, parse_federal_id
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.bases.federal.search.full_text import find_names_sharing_trigrams
from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import Database, Row

# How many names that share trigrams with the query are compared with it.
_MAX_MATCHED_NAMES = 300
# How many records with those names, or belonging to those who have them, are scored.
_MAX_RECORDS = 600
# How many names are tried whose initials contain the letters of an acronym.
_MAX_NAMES_BY_INITIALS = 5_000
# A score that ends the search. Below it, the context of records is searched as well.
_SURE_SCORE = 0.8
# How many of the likeliest names of parents lead to the records that belong to them.
_MAX_PARENTS = 12
# What a subcommittee scores compared with its committee, unless the query asks for one.
_SUBCOMMITTEE_FACTOR = 0.9
# What a committee of the past scores compared with one that sits.
_PAST_COMMITTEE_FACTOR = 0.95
# What a name that a committee had scores, compared with one that another has today.
_FORMER_NAME_FACTOR = 0.85
_SURNAME_ONLY_FACTOR = 0.92  # of whom a file says no more: others have the name too

NameWords = tuple[str, ...]
"""A name as folded words."""


# --- the answer ---


def resolve_name(
    db: Database, source: Source, written_name: str, row_filter: RowFilter
) -> list[EntityMatch]:
    """Return every record of a registry that a text may mean, the likeliest first."""
    name_query = NameQuery.parse_name(written_name, source.name)
    words_by_name_row = _find_names(db, source, name_query, row_filter) if name_query.words else {}
    candidate_by_name_row = select_candidate_names(name_query, words_by_name_row)
    best_by_id: dict[str, EntityMatch] = {}
    _keep_best(
        best_by_id,
        chain(
            _match_id(db, source, written_name, row_filter),
            _match_candidate_names(db, source, name_query, candidate_by_name_row, row_filter),
            _match_popular_names(db, source, name_query, row_filter),
            _match_without_name(db, source, name_query, row_filter),
            _match_posts(db, source, written_name, row_filter),
            _match_agencies(db, source, written_name, row_filter),
        ),
    )
    context_fields = get_context_fields(source.name)
    is_unsure = all(entity_match.score < _SURE_SCORE for entity_match in best_by_id.values())
    if context_fields.registry_by_parent_field or (context_fields.text_fields and is_unsure):
        # Names that explain only some of the words, where the record may explain the others.
        candidate_by_name_row = select_candidate_names(
            name_query, words_by_name_row, unexplained_score=0.8
        )
        _keep_best(
            best_by_id,
            _match_candidate_names(db, source, name_query, candidate_by_name_row, row_filter),
        )
        _keep_best(best_by_id, _match_by_parents(db, source, name_query, row_filter))
    entity_matches = (
        entity_match for entity_match in best_by_id.values() if entity_match.score >= MIN_SCORE
    )
    return sorted(entity_matches, key=make_sort_key)


def _keep_best(best_by_id: dict[str, EntityMatch], entity_matches: Iterable[EntityMatch]) -> None:
    for entity_match in entity_matches:
        previous_match = best_by_id.get(entity_match.id)
        if previous_match is None or entity_match.score > previous_match.score:
            best_by_id[entity_match.id] = entity_match


# --- ways to match ---


def _match_id(
    db: Database, source: Source, written_id: str, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """The text may simply be an id, or the number of a bill of any Congress."""
    try:
        parsed_id = parse_federal_id(written_id)
    except UnrecognizedId:
        if source.name == "bills" and (bill := parse_bill_number(written_id)):
            is_numbered = ("id LIKE ?", f"{bill[0]}:%:{bill[1]}")
            for record_id, record in _read_records(db, source, is_numbered, row_filter):
                yield EntityMatch(record_id, 0.95, [f"{record_id} has the number"], record)
        return
    if parsed_id.source == source.name:
        for record_id, record in _read_records(db, source, ("id = ?", parsed_id.id), row_filter):
            yield EntityMatch(record_id, 1.0, [f"{record_id} is its id"], record)


def _match_candidate_names(
    db: Database,
    source: Source,
    name_query: NameQuery,
    candidate_by_name_row: Mapping[int, CandidateName],
    row_filter: RowFilter,
) -> Iterator[EntityMatch]:
    """The records that have the names of candidates."""
    name_context = NameContext(db, source.name, name_query.name_texts)
    for record_id, (name_row, name_form), record in _read_named_records(
        db, source, candidate_by_name_row, row_filter
    ):
        yield from _match_record(
            name_context, name_query, candidate_by_name_row[name_row], name_form, record_id, record
        )


def _match_record(
    name_context: NameContext,
    name_query: NameQuery,
    candidate_name: CandidateName,
    name_form: str,
    record_id: str,
    record: dict[str, Any],
) -> Iterator[EntityMatch]:
    parent_records = (parent.record for parent in name_context.find_parents(record))
    committee_records = [
        parent_record for parent_record in parent_records if "parent_id" in parent_record
    ]
    if any(
        is_of_other_chamber(name_query, candidate_name, checked_record)
        for checked_record in (record, *committee_records)
    ):
        return
    score, reasons = score_record(name_context, name_query, candidate_name, name_form, record)
    if is_subcommittee(record) and not name_query.wants_subcommittee:
        score *= _SUBCOMMITTEE_FACTOR
    if record.get("source") == "committees" and not record["current"]:
        score *= _PAST_COMMITTEE_FACTOR
    if record.get("stub") and len(candidate_name.name_words) == 1:
        score *= _SURNAME_ONLY_FACTOR
    yield EntityMatch(record_id, round(score, 4), reasons, record, len(candidate_name.name_words))


def _match_popular_names(
    db: Database, source: Source, name_query: NameQuery, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """What everybody calls a record, though no official file does."""
    name_context = NameContext(db, source.name, name_query.name_texts)
    vocabulary = load_vocabulary()
    former_names = vocabulary.former_names.get(source.name, {})
    popular_names = vocabulary.popular_names.get(source.name, {})
    for name_form, record_id in (*popular_names.items(), *former_names.items()):
        candidate_name = make_candidate_name(fold.fold_name(name_form), name_query)
        if candidate_name.best_score < _SURE_SCORE:
            continue
        for found_id, record in _read_records(db, source, ("id = ?", record_id), row_filter):
            for match in _match_record(
                name_context, name_query, candidate_name, name_form, found_id, record
            ):
                is_former_name = name_form in former_names
                yield rescale_match(match, _FORMER_NAME_FACTOR) if is_former_name else match


def _match_by_parents(
    db: Database, source: Source, name_query: NameQuery, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """The records that belong to those that some of the words name: the offices of Pelosi."""
    if not name_query.words:
        return
    name_context = NameContext(db, source.name, name_query.name_texts)
    for parent_field, registry_name in get_context_fields(
        source.name
    ).registry_by_parent_field.items():
        parent_ids = _find_likely_parent_ids(db, SOURCES_BY_NAME[registry_name], name_query)
        for record_id, record in _read_records_of_parents(
            db, source, parent_field, parent_ids, row_filter
        ):
            for record_name_words, name_form in _read_names(db, record_id):
                candidate_name = make_candidate_name(record_name_words, name_query)
                yield from _match_record(
                    name_context, name_query, candidate_name, name_form, record_id, record
                )


def _find_likely_parent_ids(db: Database, registry: Source, name_query: NameQuery) -> list[str]:
    """Return the likeliest records of a registry that some of the words name."""
    no_filter = RowFilter(registry.record_table.where, (), {})
    words_by_name_row = _find_names_by_trigrams(db, registry, name_query, no_filter)
    for word in name_query.distinctive_words:
        if registry.name == "committees" and 3 <= len(word) <= 6:
            words_by_name_row |= _find_names_by_initials(db, registry, word)
    likely_name_rows = sorted(
        words_by_name_row,
        key=lambda row: (-_score_mention(name_query, words_by_name_row[row]), row),
    )[:_MAX_PARENTS]
    if not likely_name_rows:
        return []
    rows = db.execute(
        f"""SELECT DISTINCT record_id FROM name_forms
            WHERE name_row IN ({", ".join("?" * len(likely_name_rows))})
            LIMIT {2 * _MAX_PARENTS}""",
        likely_name_rows,
    )
    return [row["record_id"] for row in rows]


def _score_mention(name_query: NameQuery, record_name_words: NameWords) -> float:
    """Return how well some of the words name this, whatever the others say."""
    similarity = compare_words(name_query.name_texts, record_name_words)
    initials_score = max(
        (
            score_initials(word, record_name_words, COMMITTEE_INITIALS)
            for word in name_query.distinctive_words
            if 3 <= len(word) <= 6
        ),
        default=0.0,
    )
    words_score = sum(
        word_match.score * compute_word_weight(word_match.query_word)
        for word_match in similarity.word_matches
        if word_match
    )
    return max(words_score, initials_score) + 0.5 * similarity.coverage


def _match_without_name(
    db: Database, source: Source, name_query: NameQuery, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """Those who are meant when there is no name at all: `senators from Mass`, `CA-11`."""
    value_by_column = _find_meanings(source, name_query)
    if "state" not in value_by_column or not all(
        query_word.meaning or query_word.may_mean_record_kind for query_word in name_query.words
    ):
        return
    for found_id, record in _read_records(
        db, source, ("status = 'active'",), _add_filters(row_filter, value_by_column)
    ):
        scores, reasons = explain_words(
            name_query, name_query.no_matches, name_query.no_matches, [record]
        )
        yield EntityMatch(
            found_id, round(combine_scores(name_query, scores, 1.0), 4), reasons, record
        )


def _match_posts(
    db: Database, source: Source, post_name: str, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """Those who hold or held a post: `Speaker of the House`, `chair of Ways and Means`."""
    if source.name != "legislators":
        return

    def find_committees(committee_name: str) -> list[str]:
        registry = SOURCES_BY_NAME["committees"]
        entity_matches = resolve_name(
            db, registry, committee_name, RowFilter(registry.record_table.where, (), {})
        )
        return [match.id for match in entity_matches if match.score == entity_matches[0].score]

    for holder_id, score, reason, record in find_holders(db, post_name, find_committees):
        if next(_read_records(db, source, ("id = ?", holder_id), row_filter), None):
            yield EntityMatch(holder_id, score, [reason], record)


def _match_agencies(
    db: Database, source: Source, written_name: str, row_filter: RowFilter
) -> Iterator[EntityMatch]:
    """Agencies by their names in any order, or by abbreviation: `Labor Department`, `FERC`."""
    if source.name != "agencies":
        return
    for agency_id, score, reason in find_agencies(db, written_name):
        for _, record in _read_records(db, source, ("id = ?", agency_id), row_filter):
            yield EntityMatch(agency_id, score, [reason], record)


def _find_meanings(source: Source, name_query: NameQuery) -> dict[str, str]:
    """Return what the query says about columns of the source."""
    column_names = {column.name for column in source.columns}
    return dict(
        query_word.meaning
        for query_word in name_query.words
        if query_word.meaning and query_word.meaning[0] in column_names
    )


def _add_filters(row_filter: RowFilter, added_filters: Mapping[str, str]) -> RowFilter:
    sql = " AND ".join([row_filter.sql, *(f"{filter_name} = ?" for filter_name in added_filters)])
    filter_values = (*row_filter.values, *added_filters.values())
    return RowFilter(sql, filter_values, {**row_filter.filters, **added_filters})


# --- names that may be meant ---


def _find_names(
    db: Database, source: Source, name_query: NameQuery, row_filter: RowFilter
) -> dict[int, NameWords]:
    words_by_name_row = _find_names_by_trigrams(db, source, name_query, row_filter)
    if len(words_by_name_row) >= _MAX_MATCHED_NAMES:
        # There are more of the name than are compared: do not miss those of the state in the query.
        stricter_filter = _add_filters(row_filter, _find_meanings(source, name_query))
        words_by_name_row |= _find_names_by_trigrams(db, source, name_query, stricter_filter)
    return {**words_by_name_row, **_find_names_by_initials(db, source, name_query.acronym)}


def _find_names_by_trigrams(
    db: Database, source: Source, name_query: NameQuery, row_filter: RowFilter
) -> dict[int, NameWords]:
    """Return the names that share most trigrams with the query, and those equal to it."""
    first_row = fold.get_first_name_row(source.name)
    trigrams = dict.fromkeys(
        trigram for word in name_query.lookup_words for trigram in fold.list_trigrams(word)
    )
    sharing_name_rows = find_names_sharing_trigrams(
        db,
        name_query.lookup_words,
        list(trigrams),
        first_row,
        first_row + fold.MAX_ROWS_PER_SOURCE,
    )
    passing_name_rows = _filter_names(db, source, iter(sharing_name_rows), row_filter)
    nearest_name_rows = list(islice(passing_name_rows, _MAX_MATCHED_NAMES))
    rows = db.execute(
        "SELECT name_row, folded FROM names WHERE source = ? AND folded = ?",
        (source.name, fold.pad_words(name_query.texts)),
    ).fetchall()
    if nearest_name_rows:
        placeholders = ", ".join("?" * len(nearest_name_rows))
        rows += db.execute(
            f"SELECT name_row, folded FROM names WHERE name_row IN ({placeholders})",
            nearest_name_rows,
        )
    return _index_words_by_row(sorted(rows, key=lambda row: row["name_row"]))


def _index_words_by_row(rows: Iterable[Row]) -> dict[int, NameWords]:
    return {row["name_row"]: tuple(row["folded"].split()) for row in rows}


def _filter_names(
    db: Database, source: Source, name_rows: Iterator[int], row_filter: RowFilter
) -> Iterator[int]:
    """Yield the names of records that pass the filters. This comes before the list is cut."""
    if not row_filter.filters:
        yield from name_rows
        return
    join_sql = db.dialect.join_in_order_sql
    has_record_sql = f"""SELECT 1 FROM name_forms f {join_sql} {source.name} r ON r.id = f.record_id
                     WHERE f.name_row = ? AND {row_filter.sql} LIMIT 1"""
    for name_row in name_rows:
        if db.execute(has_record_sql, (name_row, *row_filter.values)).fetchone():
            yield name_row


def _find_names_by_initials(
    db: Database, source: Source, acronym: str | None
) -> dict[int, NameWords]:
    """Return names whose initials are the acronym, with or without chamber and `committee`.

    Also those with more words than it has letters: `THUD` has no R for Related Agencies.
    """
    if not acronym:
        return {}
    # Sorted, as `fold.sort_initials` stores them. Every subset is tried, because some of the
    # letters may stand for weak words, which have no initial there: the H and the C of HASC.
    sorted_letters = sorted(acronym)
    initials_keys = {
        "".join(letter_subset)
        for subset_size in range(1, 7)
        for letter_subset in combinations(sorted_letters, subset_size)
    }
    rows = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials IN ({", ".join("?" * len(initials_keys))})
            LIMIT {_MAX_MATCHED_NAMES}""",
        (source.name, *initials_keys),
    )
    words_by_name_row = _index_words_by_row(rows)
    if len(acronym) < 3:
        return words_by_name_row
    rows = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials LIKE ? LIMIT {_MAX_NAMES_BY_INITIALS}""",
        (source.name, f"%{'%'.join(sorted_letters)}%"),
    )
    candidate_words_by_row = _index_words_by_row(rows)
    return words_by_name_row | {
        name_row: folded_words
        for name_row, folded_words in candidate_words_by_row.items()
        if find_initials(acronym, folded_words)
    }


# --- records ---


def _read_named_records(
    db: Database, source: Source, name_rows: Collection[int], row_filter: RowFilter
) -> Iterator[tuple[str, tuple[int, str], dict[str, Any]]]:
    """Yield the newest records with each name, and the form of the name that each has."""
    if not name_rows:
        return
    # The name first, however good the index of newest records looks.
    join_sql = db.dialect.join_in_order_sql
    rows = db.execute(
        f"""SELECT name_row, form, id, record, place FROM (
                SELECT f.name_row, f.form, r.id, r.record, row_number() OVER (
                    PARTITION BY f.name_row ORDER BY r.published_at DESC NULLS LAST, r.id
                ) AS place
                FROM name_forms f {join_sql} {source.name} r ON r.id = f.record_id
                WHERE f.name_row IN ({", ".join("?" * len(name_rows))}) AND {row_filter.sql}
            ) AS named WHERE place <= ?""",
        (*name_rows, *row_filter.values, max(1, _MAX_RECORDS // len(name_rows))),
    )
    order_by_name = {name_row: name_order for name_order, name_row in enumerate(name_rows)}
    for row in sorted(rows, key=lambda row: (order_by_name[row["name_row"]], row["place"])):
        yield row["id"], (row["name_row"], row["form"]), from_json(row["record"])


def _read_records_of_parents(
    db: Database,
    source: Source,
    parent_field: str,
    parent_ids: Sequence[str],
    row_filter: RowFilter,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the newest records that belong to any of these parents."""
    if not parent_ids:
        return iter(())
    placeholders = ", ".join("?" * len(parent_ids))
    if any(column.name == parent_field for column in source.columns):
        condition = f"{parent_field} IN ({placeholders})"
    else:
        condition = f"id IN (SELECT from_id FROM links WHERE to_id IN ({placeholders}))"
    return _read_records(db, source, (condition, *parent_ids), row_filter)


def _read_names(db: Database, record_id: str) -> Iterator[tuple[NameWords, str]]:
    rows = db.execute(
        "SELECT folded, form FROM name_forms JOIN names USING (name_row) WHERE record_id = ?",
        (record_id,),
    )
    for row in rows:
        yield tuple(row["folded"].split()), row["form"]


def _read_records(
    db: Database, source: Source, condition_and_values: tuple[Any, ...], row_filter: RowFilter
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the newest records under a condition, which is given with its values."""
    condition, *condition_values = condition_and_values
    rows = db.execute(
        f"""SELECT id, record FROM {source.name} WHERE {condition} AND {row_filter.sql}
            ORDER BY published_at DESC NULLS LAST, id LIMIT ?""",
        (*condition_values, *row_filter.values, _MAX_RECORDS),
    )
    for row in rows:
        yield row["id"], from_json(row["record"])
