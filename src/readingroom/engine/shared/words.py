"""Searching a collection in the shared database by words: BM25 in plain SQL, or in a copy."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from readingroom.core.filters import Filter
from readingroom.engine.errors import make_search_timeout
from readingroom.engine.shared.counts import SharedSearchParts, SqlConditions
from readingroom.engine.shared.terms import (
    BM25_B,
    BM25_K1,
    SqlAndValues,
    Term,
    build_occurrences_sql,
    build_rarity_columns,
    build_score_sql,
    format_all_stems,
    name_columns,
    weigh_terms,
)
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.words import (
    LexicalHit,
    LexicalQuery,
    LexicalStatistics,
    parse_query,
    sort_hits,
)
from readingroom.storage.database import StatementStopped
from readingroom.storage.postgres.database import Connection
from readingroom.storage.postgres.encoding import (
    OCCURRENCES_SQL,
    cut_stem,
    format_phrase,
    quote_lexeme,
)

MAX_RANKED_ROWS = 4_000
"""Chunks that a search by words may rank; of more, those with the rarest words are."""
MAX_SCANNED_ROWS = 12_000
"""Chunks that may pass a filter for all of them to be ranked, whatever their words."""
_READING_COST_SHARE = 0.6
"""What it costs to find a chunk that a filter leaves out, beside ranking one that passes."""
_MAX_CANDIDATE_CHUNKS = 400
_MAX_SEARCH_SECONDS = 5.0
"""How long a search whose cost nothing else limits may take, as in a file."""


@dataclass(frozen=True, slots=True)
class _RankedStem:
    stem: str
    chunk_count: int
    """In how many chunks it occurs."""
    rarity: float


class SharedWords(SharedSearchParts):
    """Finds chunks by words: BM25 in plain SQL, or in a copy, with the numbers of FTS5."""

    def __len__(self) -> int:
        return self._collection.count_chunks_and_tokens()[0]

    def read_statistics(self) -> LexicalStatistics:
        """Return how common words are in this index."""
        total_chunk_count, total_token_count = self._word_counts.count_chunks_and_tokens()
        return LexicalStatistics(
            total_chunk_count,
            total_token_count / max(total_chunk_count, 1),
            self._word_counts.count_chunks_by_stem,
        )

    def search(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k best chunks that pass the filter, best first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        conditions = self._filters.build_conditions(where)
        parsed_query = parse_query(query)
        total_chunk_count, total_token_count = self._word_counts.count_chunks_and_tokens()
        if not k or not total_chunk_count:
            return []
        average_token_count = total_token_count / total_chunk_count
        if parsed_query.phrases:
            return self._rank_by_phrases(
                parsed_query, total_chunk_count, average_token_count, conditions, k
            )
        ranked_stems = self._find_ranked_stems(parsed_query.words, total_chunk_count)
        if not ranked_stems:
            return []
        if self._memory_copy.is_usable:
            return self._memory_copy.open_words(
                [ranked_stem.stem for ranked_stem in ranked_stems]
            ).rank_rows(
                {ranked_stem.stem: ranked_stem.rarity for ranked_stem in ranked_stems},
                max(average_token_count, 1e-9),
                self._filter_fields.parse_filter(where),
                k,
            )
        passing_chunk_count = self._filters.count_passing_chunks(where)
        passing_share = min(1.0, passing_chunk_count / total_chunk_count)
        cost_per_row = _READING_COST_SHARE + (1 - _READING_COST_SHARE) * passing_share
        if (
            passing_chunk_count <= MAX_SCANNED_ROWS
            or sum(ranked_stem.chunk_count for ranked_stem in ranked_stems) * cost_per_row
            <= MAX_RANKED_ROWS
        ):
            return self._rank_chunks(
                _make_any_stem_tsquery(ranked_stems),
                ranked_stems,
                average_token_count,
                conditions,
                k,
            )
        return self._search_by_rarest_stems(
            ranked_stems, average_token_count, conditions, k, cost_per_row
        )

    def _search_by_rarest_stems(
        self,
        ranked_stems: Sequence[_RankedStem],
        average_token_count: float,
        conditions: SqlConditions,
        k: int,
        cost_per_row: float,
    ) -> list[LexicalHit]:
        """Rank by all stems what the rarest of them find; search the next where that is little."""
        max_candidate_count = max(_MAX_CANDIDATE_CHUNKS, 3 * k)
        hits_by_id: dict[str, LexicalHit] = {}
        stem_group: list[_RankedStem] = []
        for stem_index, ranked_stem in enumerate(ranked_stems):
            stem_group.append(ranked_stem)
            group_cost = sum(grouped_stem.chunk_count for grouped_stem in stem_group) * cost_per_row
            next_stem_cost = (
                ranked_stems[stem_index + 1].chunk_count * cost_per_row
                if stem_index + 1 < len(ranked_stems)
                else 0
            )
            if next_stem_cost and group_cost + next_stem_cost <= MAX_RANKED_ROWS:
                continue
            group_hits = self._rank_chunks(
                _make_any_stem_tsquery(stem_group),
                ranked_stems,
                average_token_count,
                conditions,
                max_candidate_count,
            )
            hits_by_id |= {hit.id: hit for hit in group_hits}
            if len(hits_by_id) >= max_candidate_count // 3:
                break
            stem_group = []
        return sort_hits(hits_by_id.values())[:k]

    def _rank_by_phrases(
        self,
        parsed_query: LexicalQuery,
        total_chunk_count: int,
        average_token_count: float,
        conditions: SqlConditions,
        max_hit_count: int,
    ) -> list[LexicalHit]:
        """Return the best chunks that have one of the phrases, ranked by the words besides too.

        A phrase counts as one, as in FTS5: as often as it stands there, and as rare as it is.
        Raise `SearchTimeout`: how rare a phrase is takes as long as it is common, with any filter.
        """
        phrases = [_list_stored_stems(phrase) for phrase in parsed_query.phrases]
        weight_by_term = weigh_terms(
            phrases, [_list_stored_stems(word) for word in parsed_query.words]
        )
        chunk_count_by_stem = self._word_counts.count_chunks_by_stem(
            list(dict.fromkeys(chain.from_iterable(weight_by_term)))
        )
        terms = [
            term_stems
            for term_stems in weight_by_term
            if all(chunk_count_by_stem.get(stem, 0) > 0 for stem in term_stems)
        ]
        matching_terms = [term_stems for term_stems in phrases if term_stems in terms]
        if not matching_terms:
            return []
        # The counts may be a moment older or younger than the number of chunks.
        total_chunk_count = max(total_chunk_count, *chunk_count_by_stem.values())
        rarity_columns = build_rarity_columns(
            terms, weight_by_term, total_chunk_count, chunk_count_by_stem
        )
        # Without phrases to count, there would be a row for each chunk.
        has_longer_term = any(len(term_stems) > 1 for term_stems in terms)
        counted_from_sql = "FROM counted" if has_longer_term else ""
        counted_sql, counted_values = self._build_counted_sql(
            terms, matching_terms, average_token_count, conditions
        )
        with (
            self._collection.lend_search_connection() as connection,
            _enforce_deadline(connection),
        ):
            hit_rows = connection.execute(
                f"""WITH {counted_sql}, rarities AS (
                        SELECT {name_columns("rarity", rarity_columns)} {counted_from_sql}
                    )
                    SELECT id, score FROM (
                        SELECT id, {build_score_sql(len(terms))} AS score
                        FROM counted, rarities WHERE is_hit
                    ) AS scored ORDER BY score::float4 DESC, id LIMIT ?""",
                (
                    *counted_values,
                    *chain.from_iterable(rarity_values for _, rarity_values in rarity_columns),
                    max_hit_count,
                ),
                plan_anew=True,
            ).fetchall()
        return [LexicalHit(hit_row[0], float(hit_row[1])) for hit_row in hit_rows]

    def _build_counted_sql(
        self,
        terms: Sequence[Term],
        matching_terms: Sequence[Term],
        average_token_count: float,
        conditions: SqlConditions,
    ) -> SqlAndValues:
        """Return the table `counted`, and the values in it: how often chunks have the terms.

        A filter must not change how rare a phrase is. So of what it leaves out too, it is looked up
        which chunks have the phrase; all else is counted only of the hits.
        """
        sql_clauses, clause_values = conditions
        first_columns: list[str] = []
        first_values: list[Any] = []
        hit_columns: list[str] = []
        hit_values: list[Any] = []
        for term_index, term_stems in enumerate(terms):
            count_sql, count_values = build_occurrences_sql("words", term_stems)
            if len(term_stems) > 1:
                first_columns.append(
                    f"""CASE WHEN passes THEN {count_sql} ELSE (words @@ ?::tsquery)::int END
                        AS count_{term_index}"""
                )
                first_values += [*count_values, format_phrase(term_stems)]
                hit_columns.append(f"count_{term_index}")
            else:
                hit_columns.append(f"CASE WHEN is_hit THEN {count_sql} END AS count_{term_index}")
                hit_values += count_values
        has_phrase_columns = [
            f"count_{terms.index(term_stems)} > 0" if len(term_stems) > 1 else "words @@ ?::tsquery"
            for term_stems in matching_terms
        ]
        has_phrase_values = [
            format_phrase(term_stems) for term_stems in matching_terms if len(term_stems) == 1
        ]
        # Each OFFSET keeps the database from computing a column again wherever it is named.
        return (
            f"""found AS NOT MATERIALIZED (
                SELECT id, words, {" AND ".join(sql_clauses) or "true"} AS passes,
                    {BM25_K1 * (1 - BM25_B)}::float8
                        + tokens * {BM25_K1 * BM25_B}::float8 / ?::float8 AS relative_length
                FROM {self._collection.chunks_table} WHERE words @@ ?::tsquery OFFSET 0
            ), phrased AS NOT MATERIALIZED (
                SELECT {", ".join(["*", *first_columns])} FROM found OFFSET 0
            ), matched AS NOT MATERIALIZED (
                SELECT *, passes AND ({" OR ".join(has_phrase_columns)}) AS is_hit
                FROM phrased OFFSET 0
            ), counted AS MATERIALIZED (
                SELECT id, relative_length, is_hit, {", ".join(hit_columns)} FROM matched
            )""",
            (
                *clause_values,
                max(average_token_count, 1e-9),
                " | ".join(map(format_all_stems, matching_terms)),
                *first_values,
                *has_phrase_values,
                *hit_values,
            ),
        )

    def _find_ranked_stems(self, words: Sequence[str], total_chunk_count: int) -> list[_RankedStem]:
        """Return the stems of words that occur at all, rarest first."""
        chunk_count_by_stem = self._word_counts.count_chunks_by_stem(
            list(dict.fromkeys(get_shared_stemmer().stem_all_words(" ".join(words))))
        )
        # The counts may be a moment older or younger than the number of chunks.
        total_chunk_count = max(total_chunk_count, *chunk_count_by_stem.values(), 0)
        ranked_stems = [
            # As in FTS5: a word of most chunks would count against a match.
            _RankedStem(
                stem,
                stem_chunk_count,
                max(
                    math.log(
                        (total_chunk_count - stem_chunk_count + 0.5) / (stem_chunk_count + 0.5)
                    ),
                    1e-6,
                ),
            )
            for stem, stem_chunk_count in chunk_count_by_stem.items()
        ]
        return sorted(
            ranked_stems, key=lambda ranked_stem: (ranked_stem.chunk_count, ranked_stem.stem)
        )

    def _rank_chunks(
        self,
        tsquery: str,
        ranked_stems: Sequence[_RankedStem],
        average_token_count: float,
        conditions: SqlConditions,
        max_hit_count: int,
    ) -> list[LexicalHit]:
        """Return the best chunks that match a tsquery, ranked by all stems."""
        sql_clauses, clause_values = conditions
        chunks_table = self._collection.chunks_table
        count_columns_sql = ", ".join(
            f"{OCCURRENCES_SQL} AS count_{stem_number}" for stem_number in range(len(ranked_stems))
        )
        score_sql = " + ".join(
            f"?::float8 * count_{stem_number} * {BM25_K1 + 1}"
            f" / (count_{stem_number} + relative_length)"
            for stem_number in range(len(ranked_stems))
        )
        with self._collection.lend_search_connection() as connection:
            hit_rows = connection.execute(
                f"SELECT id, score FROM (SELECT id, {score_sql or '0.0'} AS score FROM (SELECT id, "
                f"{BM25_K1} * ({1 - BM25_B} + {BM25_B} * tokens / ?) AS relative_length"
                f"{', ' + count_columns_sql if count_columns_sql else ''} FROM {chunks_table} "
                "WHERE words @@ ?::tsquery "
                f"{''.join(f'AND {clause} ' for clause in sql_clauses)} OFFSET 0) AS matching) "
                "AS scored ORDER BY score::float4 DESC, id LIMIT ?",
                (
                    # As values, so that the statement is the same for so many stems.
                    *(ranked_stem.rarity for ranked_stem in ranked_stems),
                    max(average_token_count, 1e-9),
                    *(quote_lexeme(ranked_stem.stem) for ranked_stem in ranked_stems),
                    tsquery,
                    *clause_values,
                    max_hit_count,
                ),
                plan_anew=bool(sql_clauses),
            ).fetchall()
        return [LexicalHit(hit_row[0], float(hit_row[1])) for hit_row in hit_rows]


@contextmanager
def _enforce_deadline(connection: Connection) -> Iterator[None]:
    """Raise `SearchTimeout` when a statement inside takes longer than a search may."""
    try:
        with connection.limit_statement_time(_MAX_SEARCH_SECONDS):
            yield
    except StatementStopped as error:
        raise make_search_timeout(_MAX_SEARCH_SECONDS) from error


def _list_stored_stems(query_text: str) -> Term:
    return tuple(map(cut_stem, get_shared_stemmer().stem_all_words(query_text)))


def _make_any_stem_tsquery(ranked_stems: Sequence[_RankedStem]) -> str:
    return " | ".join(quote_lexeme(ranked_stem.stem) for ranked_stem in ranked_stems)
