"""Full-text search of passages and names: by FTS5 in a file, by tsvector in a database.

Both rank by BM25 with the same weights of fields, and cut words in the same way.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from readingroom.engine.stems import shared_stemmer
from readingroom.engine.words import LexicalQuery, parse_query
from readingroom.storage.database import Database
from readingroom.storage.postgres.encoding import cut_stem, encode_words_rows, format_phrase

FIELD_WEIGHTS: Mapping[str, float] = {"title": 10.0, "abstract": 4.0, "action": 2.0, "body": 1.0}
_ALL_WORDS = " || ".join(FIELD_WEIGHTS)
_K1, _B = 1.2, 0.75
_ROWS_PER_BATCH = 2_000


# --- passages ---


def index_passages(db: Database, after_chunk: int) -> None:
    """Add the words of all passages after this one to the index."""
    fields = ", ".join(FIELD_WEIGHTS)
    if db.dialect.engine == "sqlite":
        db.execute(
            f"""INSERT INTO passages_fts (rowid, {fields})
                SELECT chunk, {fields} FROM passages WHERE chunk > ?""",
            (after_chunk,),
        )
        return
    split_stems = shared_stemmer().split_all
    cursor = db.execute(f"SELECT chunk, {fields} FROM passages WHERE chunk > ?", (after_chunk,))
    while passages := cursor.fetchmany(_ROWS_PER_BATCH):
        rows = [(chunk, [split_stems(text) for text in texts]) for chunk, *texts in passages]
        _copy_in(db, f"passage_words (chunk, {fields}, tokens)", encode_words_rows(rows))


def find_passages(
    db: Database, query_text: str, condition: str, values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    """Return every passage with one of the words, and its rank: the lower, the better.

    `condition` is SQL that begins with AND, and calls the number of a passage `{chunk}`.
    """
    query = parse_query(query_text)
    if query.match_expression is None:
        return iter(())
    if db.dialect.engine == "sqlite":
        weights = ", ".join(map(str, FIELD_WEIGHTS.values()))
        # Tuples, because a common word has very many matches.
        return db.iterate_tuples(
            f"""SELECT rowid, bm25(passages_fts, {weights}) FROM passages_fts
                WHERE passages_fts MATCH ? {condition.replace("{chunk}", "passages_fts.rowid")}""",
            (query.match_expression, *values),
        )
    return _rank_passages(db, query, condition.replace("{chunk}", "w.chunk"), values)


def count_passages(db: Database, word: str) -> int:
    """Return how many passages have a word."""
    if db.dialect.engine == "sqlite":
        (count,) = db.execute(
            "SELECT count(*) FROM passages_fts WHERE passages_fts MATCH ?", (f'"{word}"',)
        ).fetchone()
        return int(count)
    stems = [cut_stem(stem) for stem in shared_stemmer().split_all(word)]
    return min(_count_stems(db, stems).values(), default=0) if stems else 0


def _rank_passages(
    db: Database, query: LexicalQuery, condition: str, values: Sequence[Any]
) -> Iterator[tuple[Any, ...]]:
    passage_count, token_count = db.execute(
        "SELECT passages, tokens FROM passage_totals"
    ).fetchone()
    split_stems = shared_stemmer().split_all
    words = " ".join((*query.words, *query.phrases))
    stems = list(dict.fromkeys(cut_stem(stem) for stem in split_stems(words)))
    counts = _count_stems(db, stems)
    rarities = {
        # As in FTS5: a word of most passages would count against a match.
        stem: max(math.log((passage_count - count + 0.5) / (count + 0.5)), 1e-6)
        for stem, count in counts.items()
        if count <= passage_count
    }
    if not rarities:
        return iter(())
    phrases = [format_phrase(split_stems(phrase)) for phrase in query.phrases]
    match = " | ".join(phrases or [format_phrase([stem]) for stem in rarities])
    in_one_field = " OR ".join(f"w.{field} @@ ?::tsquery" for field in FIELD_WEIGHTS)
    count_columns = ", ".join(
        " + ".join(
            # The rank of one stem tells how often it stands there; see engine/shared_words.py.
            f"{field_weight} * round(0.6079271 / (1 - ts_rank(w.{field}, ?::tsquery)) - 0.5)"
            for field, field_weight in FIELD_WEIGHTS.items()
        )
        + f" AS count_{number}"
        for number in range(len(rarities))
    )
    score = " + ".join(
        f"?::float8 * count_{number} * {_K1 + 1} / (count_{number} + relative_length)"
        for number in range(len(rarities))
    )
    average = max(token_count / max(passage_count, 1), 1e-9)
    lexemes = [format_phrase([stem]) for stem in rarities]
    return db.iterate_tuples(
        f"""SELECT chunk, -({score}) FROM (
                SELECT w.chunk, {_K1} * ({1 - _B} + {_B} * w.tokens / ?::float8) AS relative_length,
                    {count_columns}
                FROM passage_words w WHERE ({_ALL_WORDS}) @@ ?::tsquery
                    {f"AND ({in_one_field})" if phrases else ""} {condition} OFFSET 0
            ) AS matching""",
        (
            *rarities.values(),
            average,
            *chain.from_iterable([lexeme] * len(FIELD_WEIGHTS) for lexeme in lexemes),
            match,
            *([match] * len(FIELD_WEIGHTS) if phrases else []),
            *values,
        ),
    )


def _count_stems(db: Database, stems: Sequence[str]) -> dict[str, int]:
    rows = db.execute(
        "SELECT stem, passages FROM passage_stems WHERE stem = ANY(?) AND passages > 0",
        (list(stems),),
    )
    return {row["stem"]: row["passages"] for row in rows}


def _copy_in(db: Any, table_and_columns: str, blocks: Iterator[bytes]) -> None:
    db.copy_in(table_and_columns, blocks)


# --- names ---


def list_name_index_statements(db: Database) -> str | None:
    """Return the statement that adds a name to its index; None where the table has its own."""
    if db.dialect.engine == "sqlite":
        return "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)"
    return None


def index_stored_names(db: Database) -> None:
    """Add all names to their index, in a table that was filled at once."""
    if db.dialect.engine == "sqlite":
        db.execute("INSERT INTO names_fts (names_fts) VALUES ('rebuild')")


def count_shared_trigrams(db: Database, trigrams: Sequence[str], first: int, last: int) -> Any:
    """Return a cursor on the names in a range with any of the trigrams, most of them first."""
    if db.dialect.engine == "sqlite":
        with_trigram = "SELECT rowid AS name_row FROM names_fts WHERE names_fts MATCH ?"
        marks = [f'"{trigram}"' for trigram in trigrams]
        within = "rowid BETWEEN ? AND ?"
    else:
        # Folded names have letters and digits only: nothing in a trigram is a pattern.
        with_trigram = "SELECT name_row FROM names WHERE folded LIKE ?"
        marks = [f"%{trigram}%" for trigram in trigrams]
        within = "name_row BETWEEN ? AND ?"
    sharing = " UNION ALL ".join([f"{with_trigram} AND {within}"] * len(trigrams))
    return db.execute(
        f"""SELECT name_row, count(*) AS shared FROM ({sharing}) AS sharing
            GROUP BY name_row ORDER BY shared DESC, name_row""",
        [value for mark in marks for value in (mark, first, last)],
    )


def find_names_with_word(db: Database, word_start: str, limit: int) -> list[Any]:
    """Return the rows and sources of names that have a word beginning like this."""
    if db.dialect.engine == "sqlite":
        return db.execute(
            """SELECT n.name_row, n.source FROM names_fts f JOIN names n ON n.name_row = f.rowid
               WHERE f.folded MATCH ? LIMIT ?""",
            (f'" {word_start}"', limit),
        ).fetchall()
    return db.execute(
        "SELECT name_row, source FROM names WHERE folded LIKE ? ORDER BY name_row LIMIT ?",
        (f"% {word_start}%", limit),
    ).fetchall()
