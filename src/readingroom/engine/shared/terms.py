"""Terms of a question by words, counted in a shared database as FTS5 counts them in a file.

A term is a stem, or the stems of a phrase, which follow each other.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from readingroom.storage.postgres.encoding import format_phrase, quote_lexeme

Term = tuple[str, ...]
SqlAndValues = tuple[str, Sequence[Any]]
"""A fragment of SQL, and the values for its `?`."""
BM25_K1, BM25_B = 1.2, 0.75
"""As FTS5 has them."""


def weigh_terms(phrases: Sequence[Term], words: Sequence[Term]) -> dict[Term, int]:
    """Return the terms that rank a passage, each with how often it counts.

    As FTS5 counts them: as often as they stand in `LexicalQuery.match_expression`. Words with one
    stem each count, and phrases stand there twice beside words.
    """
    return dict(Counter(chain(phrases, phrases if words else (), words)))


def build_occurrences_sql(field_sql: str, term_stems: Term) -> SqlAndValues:
    """Return what counts how often a term stands in a `tsvector`, and the values in it."""
    phrase_tsquery = format_phrase(term_stems)
    if len(term_stems) == 1:
        # The rank of one stem tells how often it stands there; see `OCCURRENCES_SQL`.
        return (
            f"round(0.6079271::float8 / (1 - ts_rank({field_sql}, ?::tsquery)) - 0.5::float8)",
            [phrase_tsquery],
        )
    if len(set(term_stems)) == len(term_stems):
        # Ranked by its covers, of which each is 1 where nothing stands between its stems. That
        # takes several times as long as to look whether there is one.
        return (
            f"""CASE WHEN {field_sql} @@ ?::tsquery
                THEN round(ts_rank_cd({field_sql}, ?::tsquery)) ELSE 0 END""",
            [phrase_tsquery] * 2,
        )
    # Of stems that are equal, one cover may be the end of another.
    return (
        f"""CASE WHEN NOT {field_sql} @@ ?::tsquery THEN 0
            ELSE (SELECT count(*) FROM (
                SELECT FROM unnest({field_sql}) AS word, unnest(word.positions) AS place,
                    unnest(?::text[]) WITH ORDINALITY AS part (stem, number)
                WHERE word.lexeme = part.stem
                GROUP BY place - part.number HAVING count(*) = {len(term_stems)}
            ) AS occurrences) END""",
        [phrase_tsquery, list(term_stems)],
    )


def build_rarity_columns(
    terms: Sequence[Term],
    weight_by_term: Mapping[Term, int],
    total_text_count: int,
    text_count_by_stem: Mapping[str, int],
) -> list[SqlAndValues]:
    """Return the column that tells how rare each term is; a phrase must be counted for it."""
    return [
        _build_rarity_sql(
            term_index,
            weight_by_term[term_stems],
            total_text_count,
            text_count_by_stem[term_stems[0]] if len(term_stems) == 1 else None,
        )
        for term_index, term_stems in enumerate(terms)
    ]


def build_score_sql(term_count: int) -> str:
    """Return the BM25 score of a row, from its columns `rarity_0`, `count_0` … and its length."""
    return " + ".join(
        f"rarity_{term_index} * count_{term_index} * {BM25_K1 + 1}::float8"
        f" / (count_{term_index} + relative_length)"
        for term_index in range(term_count)
    )


def _build_rarity_sql(
    term_index: int, term_weight: int, total_text_count: int, text_count: int | None
) -> SqlAndValues:
    """Return what tells how rare a term is among all texts, and the values in it.

    Without `text_count`, the texts that have the term are those of `counted` with a count of it.
    """
    # As in FTS5: a term of most texts would count against a match.
    if text_count is not None:
        rarity = math.log((total_text_count - text_count + 0.5) / (text_count + 0.5))
        return "?::float8", [term_weight * max(rarity, 1e-6)]
    count_sql = f"least(count(*) FILTER (WHERE count_{term_index} > 0), ?::float8)"
    return (
        f"""?::float8 * greatest(
            ln((?::float8 - {count_sql} + 0.5::float8) / ({count_sql} + 0.5::float8)),
            1e-6::float8)""",
        [term_weight, *[total_text_count] * 3],
    )


def format_all_stems(term_stems: Term) -> str:
    """Return a tsquery for texts with each of the stems, wherever it stands."""
    return "(" + " & ".join(map(quote_lexeme, term_stems)) + ")"


def name_columns(column_prefix: str, columns: Sequence[SqlAndValues]) -> str:
    """Return columns of a SELECT with names: the prefix, and a number from 0 on."""
    return ", ".join(
        f"{column_sql} AS {column_prefix}_{column_index}"
        for column_index, (column_sql, _) in enumerate(columns)
    )
