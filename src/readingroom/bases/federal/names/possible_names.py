"""Finds the stored names that a query may mean: by shared trigrams, and by initials."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, islice

from readingroom.bases.federal.filters import SqlFilter
from readingroom.bases.federal.names.query import NameQuery
from readingroom.bases.federal.names.similarity import find_initials
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.sources import Source
from readingroom.bases.federal.search.full_text import find_names_sharing_trigrams
from readingroom.storage.database import Database, Row

# How many names that share trigrams with the query are compared with it.
_MAX_COMPARED_NAMES = 300
# How many names are tried whose initials contain the letters of an acronym.
_MAX_NAMES_BY_INITIALS = 5_000

NameWords = tuple[str, ...]
"""A name as folded words."""


def find_possible_names(
    db: Database, source: Source, name_query: NameQuery, sql_filter: SqlFilter
) -> dict[int, NameWords]:
    words_by_name_id = find_names_by_trigrams(db, source, name_query, sql_filter)
    if len(words_by_name_id) >= _MAX_COMPARED_NAMES:
        # There are more of the name than are compared: do not miss those of the state in the query.
        filter_with_meanings = combine_filters(sql_filter, find_column_values(source, name_query))
        words_by_name_id |= find_names_by_trigrams(db, source, name_query, filter_with_meanings)
    return {**words_by_name_id, **find_names_by_initials(db, source, name_query.acronym)}


def find_names_by_trigrams(
    db: Database, source: Source, name_query: NameQuery, sql_filter: SqlFilter
) -> dict[int, NameWords]:
    """Return the names that share most trigrams with the query, and those equal to it."""
    first_name_id = fold.get_first_name_id(source.name)
    trigrams = dict.fromkeys(
        trigram for word in name_query.lookup_words for trigram in fold.list_trigrams(word)
    )
    sharing_name_ids = find_names_sharing_trigrams(
        db,
        name_query.lookup_words,
        list(trigrams),
        first_name_id,
        first_name_id + fold.MAX_NAMES_PER_SOURCE,
    )
    passing_name_ids = _filter_name_ids(db, source, iter(sharing_name_ids), sql_filter)
    nearest_name_ids = list(islice(passing_name_ids, _MAX_COMPARED_NAMES))
    name_rows = db.execute(
        "SELECT name_row, folded FROM names WHERE source = ? AND folded = ?",
        (source.name, fold.pad_words(name_query.word_texts)),
    ).fetchall()
    if nearest_name_ids:
        id_placeholders_sql = ", ".join("?" * len(nearest_name_ids))
        name_rows += db.execute(
            f"SELECT name_row, folded FROM names WHERE name_row IN ({id_placeholders_sql})",
            nearest_name_ids,
        )
    return _index_words_by_name_id(sorted(name_rows, key=lambda name_row: name_row["name_row"]))


def _index_words_by_name_id(name_rows: Iterable[Row]) -> dict[int, NameWords]:
    return {name_row["name_row"]: tuple(name_row["folded"].split()) for name_row in name_rows}


def _filter_name_ids(
    db: Database, source: Source, name_ids: Iterator[int], sql_filter: SqlFilter
) -> Iterator[int]:
    """Yield the names of records that pass the filters. This comes before the list is cut."""
    if not sql_filter.filters:
        yield from name_ids
        return
    join_sql = db.dialect.join_in_order_sql
    has_record_sql = f"""SELECT 1 FROM name_forms f {join_sql} {source.name} r ON r.id = f.record_id
                     WHERE f.name_row = ? AND {sql_filter.sql} LIMIT 1"""
    for name_id in name_ids:
        if db.execute(has_record_sql, (name_id, *sql_filter.values)).fetchone():
            yield name_id


def find_names_by_initials(
    db: Database, source: Source, acronym: str | None
) -> dict[int, NameWords]:
    """Return names whose initials are the acronym, with or without chamber and `committee`.

    Also those with more words than it has letters: `THUD` has no R for Related Agencies.
    """
    if not acronym:
        return {}
    # Sorted, as `fold.join_sorted_initials` stores them. Every subset is tried, because some of the
    # letters may stand for weak words, which have no initial there: the H and the C of HASC.
    sorted_letters = sorted(acronym)
    stored_initials = {
        "".join(letter_subset)
        for subset_size in range(1, 7)
        for letter_subset in combinations(sorted_letters, subset_size)
    }
    name_rows = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials IN ({", ".join("?" * len(stored_initials))})
            LIMIT {_MAX_COMPARED_NAMES}""",
        (source.name, *stored_initials),
    )
    words_by_name_id = _index_words_by_name_id(name_rows)
    if len(acronym) < 3:
        return words_by_name_id
    name_rows = db.execute(
        f"""SELECT name_row, folded FROM names
            WHERE source = ? AND initials LIKE ? LIMIT {_MAX_NAMES_BY_INITIALS}""",
        (source.name, f"%{'%'.join(sorted_letters)}%"),
    )
    candidate_words_by_name_id = _index_words_by_name_id(name_rows)
    return words_by_name_id | {
        name_id: folded_words
        for name_id, folded_words in candidate_words_by_name_id.items()
        if find_initials(acronym, folded_words)
    }


# --- what a query says about columns ---


def find_column_values(source: Source, name_query: NameQuery) -> dict[str, str]:
    """Return what the query says about columns of the source."""
    column_names = {column.name for column in source.columns}
    return dict(
        query_word.meaning
        for query_word in name_query.words
        if query_word.meaning and query_word.meaning[0] in column_names
    )


def combine_filters(sql_filter: SqlFilter, added_filters: Mapping[str, str]) -> SqlFilter:
    combined_sql = " AND ".join(
        [sql_filter.sql, *(f"{filter_name} = ?" for filter_name in added_filters)]
    )
    sql_values = (*sql_filter.values, *added_filters.values())
    return SqlFilter(combined_sql, sql_values, {**sql_filter.filters, **added_filters})
