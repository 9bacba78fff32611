"""Full-text search of passages and names: by FTS5 in a file, by tsvector in a database.

Both rank by BM25 with the same weights of fields, and cut words in the same way.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from typing import Any

from readingroom.bases.federal.schema.lengths import MAX_SEARCHED_CHARS
from readingroom.bases.federal.search.name_copy import name_copies
from readingroom.engine.shared.terms import (
    BM25_B,
    BM25_K1,
    build_occurrences_sql,
    build_rarity_columns,
    build_score_sql,
    format_all_stems,
    name_columns,
    weigh_terms,
)
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.words import LexicalQuery, parse_query
from readingroom.storage.database import Database
from readingroom.storage.errors import DatabaseFailed
from readingroom.storage.postgres.encoding import (
    cut_stem,
    encode_words_rows,
    format_words_rows,
)

WEIGHT_BY_FIELD: Mapping[str, float] = {"title": 10.0, "abstract": 4.0, "action": 2.0, "body": 1.0}
_ALL_FIELDS_SQL = " || ".join(WEIGHT_BY_FIELD)
_ROWS_PER_BATCH = 2_000


# --- passages ---


def index_passages(db: Database, after_chunk_number: int) -> None:
    """Add the words of all passages after this one to the index."""
    field_columns_sql = ", ".join(WEIGHT_BY_FIELD)
    if db.dialect.engine == "sqlite":
        db.execute(
            f"""INSERT INTO passages_fts (rowid, {field_columns_sql})
                SELECT chunk, {field_columns_sql} FROM passages WHERE chunk > ?""",
            (after_chunk_number,),
        )
        return
    # A file of before they were cut may have longer ones.
    shortened_columns_sql = ", ".join(
        f"left({field_name}, {MAX_SEARCHED_CHARS})" for field_name in WEIGHT_BY_FIELD
    )
    passage_cursor = db.execute(
        f"SELECT chunk, {shortened_columns_sql} FROM passages WHERE chunk > ?",
        (after_chunk_number,),
    )
    while passage_rows := passage_cursor.fetchmany(_ROWS_PER_BATCH):
        make_passage_words_writer(passage_rows)(db)


def make_passage_words_writer(passage_rows: Sequence[Sequence[Any]]) -> Callable[[Database], None]:
    """Return what adds the words of passages to the index of a shared database.

    Each passage begins with its number. Only the database is left to do something then.
    """
    stems_of_each_text = get_shared_stemmer().stem_all_words_of_texts(
        chain.from_iterable(passage_row[1:] for passage_row in passage_rows)
    )
    field_count = len(WEIGHT_BY_FIELD)
    stemmed_rows = [
        (
            passage_row[0],
            stems_of_each_text[field_count * row_index : field_count * (row_index + 1)],
        )
        for row_index, passage_row in enumerate(passage_rows)
    ]
    table_and_columns_sql = f"passage_words (chunk, {', '.join(WEIGHT_BY_FIELD)}, tokens)"
    words_as_copy_text = format_words_rows(stemmed_rows)
    if words_as_copy_text is None:
        encoded_blocks = list(encode_words_rows(stemmed_rows))
        return lambda db: _copy_rows(db, table_and_columns_sql, encoded_blocks)
    return lambda db: _copy_text(db, table_and_columns_sql, words_as_copy_text)


def find_passages(
    db: Database, query_text: str, condition_sql: str, condition_values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """Return every passage with one of the words, and its rank: the lower, the better.

    `condition_sql` is SQL that begins with AND, and calls the number of a passage `{chunk}`.
    """
    lexical_query = parse_query(query_text)
    if lexical_query.match_expression is None:
        return iter(())
    if db.dialect.engine == "sqlite":
        weights_sql = ", ".join(map(str, WEIGHT_BY_FIELD.values()))
        # Tuples, because a common word has very many matches.
        return db.iterate_tuples(
            f"""SELECT rowid, bm25(passages_fts, {weights_sql}) FROM passages_fts
                WHERE passages_fts MATCH ?
                    {condition_sql.replace("{chunk}", "passages_fts.rowid")}""",
            (lexical_query.match_expression, *condition_values),
        )
    return _rank_passages(
        db, lexical_query, condition_sql.replace("{chunk}", "w.chunk"), condition_values
    )


def count_passages_with_word(db: Database, counted_word: str) -> int:
    """Return how many passages have a word."""
    if db.dialect.engine == "sqlite":
        (passage_count,) = db.execute(
            "SELECT count(*) FROM passages_fts WHERE passages_fts MATCH ?", (f'"{counted_word}"',)
        ).fetchone()
        return int(passage_count)
    word_stems = [
        cut_stem(word_stem) for word_stem in get_shared_stemmer().stem_all_words(counted_word)
    ]
    return min(_count_passages_by_stem(db, word_stems).values(), default=0) if word_stems else 0


def _rank_passages(
    db: Database, lexical_query: LexicalQuery, condition_sql: str, condition_values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    total_passage_count, total_token_count = db.execute(
        "SELECT passages, tokens FROM passage_totals"
    ).fetchone()
    phrases = [_list_stored_stems(query_phrase) for query_phrase in lexical_query.phrases]
    weight_by_term = weigh_terms(
        phrases, [_list_stored_stems(query_word_text) for query_word_text in lexical_query.words]
    )
    passage_count_by_stem = _count_passages_by_stem(
        db, list(dict.fromkeys(chain.from_iterable(weight_by_term)))
    )
    # The counts may be a moment older or younger than the number of passages.
    terms = [
        term_stems
        for term_stems in weight_by_term
        if all(
            passage_count_by_stem.get(term_stem, math.inf) <= total_passage_count
            for term_stem in term_stems
        )
    ]
    matching_terms = [term_stems for term_stems in phrases or terms if term_stems in terms]
    if not matching_terms:
        return iter(())
    count_columns = [_build_count_sql(term_stems) for term_stems in terms]
    rarity_columns = build_rarity_columns(
        terms, weight_by_term, total_passage_count, passage_count_by_stem
    )
    has_longer_term = any(len(term_stems) > 1 for term_stems in terms)
    # What the index finds has all stems of a phrase, anywhere.
    has_match_sql = (
        " OR ".join(f"count_{terms.index(term_stems)} > 0" for term_stems in matching_terms)
        if has_longer_term
        else "true"
    )
    average_token_count = max(total_token_count / max(total_passage_count, 1), 1e-9)
    # A filter must not change how rare a phrase is, which is counted while passages are ranked.
    early_condition_sql = "" if has_longer_term else condition_sql
    early_condition_values = () if has_longer_term else condition_values
    with _prefer_indexes(db):
        return db.iterate_tuples(
            f"""WITH counted AS (
                    SELECT w.chunk,
                        {BM25_K1 * (1 - BM25_B)}::float8
                            + w.tokens * {BM25_K1 * BM25_B}::float8 / ?::float8
                            AS relative_length,
                        {name_columns("count", count_columns)}
                    FROM passage_words w
                    WHERE ({_ALL_FIELDS_SQL}) @@ ?::tsquery {early_condition_sql} OFFSET 0
                ), rarities AS (
                    SELECT {name_columns("rarity", rarity_columns)}
                    {"FROM counted" if has_longer_term else ""}
                )
                SELECT w.chunk, -({build_score_sql(len(terms))}) FROM counted w, rarities
                WHERE ({has_match_sql}) {condition_sql if has_longer_term else ""}""",
            (
                average_token_count,
                *chain.from_iterable(count_values for _, count_values in count_columns),
                " | ".join(map(format_all_stems, matching_terms)),
                *early_condition_values,
                *chain.from_iterable(rarity_values for _, rarity_values in rarity_columns),
                *(condition_values if has_longer_term else ()),
            ),
        )


@contextmanager
def _prefer_indexes(db: Database) -> Iterator[None]:
    """Let the words of a passage be read only where the index finds one.

    The database takes putting the fields of a passage together for nearly free, and would do it for
    all of them rather than ask the index for a common word.
    """
    db.execute("SET enable_seqscan = off")
    try:
        yield
    finally:
        # After an error in a transaction, it goes back with that.
        with suppress(DatabaseFailed):
            db.execute("RESET enable_seqscan")


def _list_stored_stems(query_text: str) -> tuple[str, ...]:
    return tuple(map(cut_stem, get_shared_stemmer().stem_all_words(query_text)))


def _build_count_sql(term_stems: tuple[str, ...]) -> tuple[str, list[Any]]:
    """Return what counts a term in a passage by the weights of fields, and the values in it."""
    field_counts = [
        build_occurrences_sql(f"w.{field_name}", term_stems) for field_name in WEIGHT_BY_FIELD
    ]
    count_sql = " + ".join(
        f"{field_weight}::float8 * {field_count_sql}"
        for field_weight, (field_count_sql, _) in zip(
            WEIGHT_BY_FIELD.values(), field_counts, strict=True
        )
    )
    return count_sql, [
        count_value for _, field_values in field_counts for count_value in field_values
    ]


def _count_passages_by_stem(db: Database, word_stems: Sequence[str]) -> dict[str, int]:
    stem_rows = db.execute(
        "SELECT stem, passages FROM passage_stems WHERE stem = ANY(?) AND passages > 0",
        (list(word_stems),),
    )
    return {stem_row["stem"]: stem_row["passages"] for stem_row in stem_rows}


def _copy_rows(db: Any, table_and_columns_sql: str, encoded_blocks: Iterable[bytes]) -> None:
    db.copy_in(table_and_columns_sql, encoded_blocks)


def _copy_text(db: Any, table_and_columns_sql: str, words_as_copy_text: bytes) -> None:
    db.copy_text(table_and_columns_sql, words_as_copy_text)


# --- names ---


def find_name_index_insert_sql(db: Database) -> str | None:
    """Return the statement that adds a name to its index; None where the table has its own."""
    if db.dialect.engine == "sqlite":
        return "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)"
    return None


def index_stored_names(db: Database) -> None:
    """Add all names to their index, in a table that was filled at once."""
    if db.dialect.engine == "sqlite":
        db.execute("INSERT INTO names_fts (names_fts) VALUES ('rebuild')")


def find_names_sharing_trigrams(
    db: Database,
    name_words: Sequence[str],
    name_trigrams: Sequence[str],
    first_name_id: int,
    last_name_id: int,
) -> list[int]:
    """Return the rows of names in a range that share trigrams with words, most of them first.

    Those that share fewer than half as many as the first are left out.
    """
    if not name_trigrams:
        return []
    name_id_range = (first_name_id, last_name_id)
    if db.dialect.engine == "sqlite":
        matching_names_sql = "SELECT rowid AS name_row FROM names_fts WHERE names_fts MATCH ?"
        match_patterns = [f'"{name_trigram}"' for name_trigram in name_trigrams]
        return _find_names_by_patterns(
            db, f"{matching_names_sql} AND rowid BETWEEN ? AND ?", match_patterns, name_id_range
        )
    trigram_copy = name_copies.find_copy(db, first_name_id, last_name_id)
    if trigram_copy is not None:
        return trigram_copy.find_name_ids(name_trigrams)
    # The index tells at once which names share many; only of these it is counted how many.
    shared_count_sql = " + ".join(["(strpos(folded, ?) > 0)::int"] * len(name_trigrams))
    shared_counts_sql = f"""SELECT name_row, {shared_count_sql} AS shared FROM names
                      WHERE folded %> ? AND name_row + 0 BETWEEN ? AND ?"""
    nearest_name_rows = _read_names_sharing_most(
        db, shared_counts_sql, [*name_trigrams, " ".join(name_words), *name_id_range]
    )
    # Where even the best shares few, others that share as many may have them far apart.
    if nearest_name_rows and 4 * nearest_name_rows[0]["shared"] >= 3 * len(name_trigrams):
        return [name_row["name_row"] for name_row in nearest_name_rows]
    # Folded names have letters and digits only: nothing in a trigram is a pattern.
    matching_names_sql = (
        "SELECT name_row FROM names WHERE folded LIKE ? AND name_row + 0 BETWEEN ? AND ?"
    )
    return _find_names_by_patterns(
        db,
        matching_names_sql,
        [f"%{name_trigram}%" for name_trigram in name_trigrams],
        name_id_range,
    )


def _find_names_by_patterns(
    db: Database,
    matching_names_sql: str,
    match_patterns: Sequence[str],
    name_id_range: tuple[int, int],
) -> list[int]:
    all_matching_names_sql = " UNION ALL ".join([matching_names_sql] * len(match_patterns))
    nearest_name_rows = _read_names_sharing_most(
        db,
        f"SELECT name_row, count(*) AS shared FROM ({all_matching_names_sql}) AS sharing "
        "GROUP BY name_row",
        [
            sql_value
            for match_pattern in match_patterns
            for sql_value in (match_pattern, *name_id_range)
        ],
    )
    return [name_row["name_row"] for name_row in nearest_name_rows]


def _read_names_sharing_most(
    db: Database, shared_counts_sql: str, sql_values: Sequence[Any]
) -> list[Any]:
    return db.execute(
        f"""WITH counted AS MATERIALIZED ({shared_counts_sql})
            SELECT name_row, shared FROM counted
            WHERE 2 * shared >= (SELECT max(shared) FROM counted)
            ORDER BY shared DESC, name_row""",
        sql_values,
    ).fetchall()


def find_names_with_word(db: Database, word_prefix: str, max_names: int) -> list[Any]:
    """Return the rows and sources of names that have a word beginning like this."""
    if db.dialect.engine == "sqlite":
        return db.execute(
            """SELECT n.name_row, n.source FROM names_fts f JOIN names n ON n.name_row = f.rowid
               WHERE f.folded MATCH ? LIMIT ?""",
            (f'" {word_prefix}"', max_names),
        ).fetchall()
    return db.execute(
        "SELECT name_row, source FROM names WHERE folded LIKE ? ORDER BY name_row LIMIT ?",
        (f"% {word_prefix}%", max_names),
    ).fetchall()
