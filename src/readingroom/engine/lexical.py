"""Full-text search with SQLite's FTS5: safe for any user text, filtered, of bounded cost.

FTS5 ranks every row that has any of the words, about a microsecond each, so a question of common
words costs seconds on a large index. Within a budget of postings the ranking is exact; beyond it
the rarest words choose candidates, which are then ranked by BM25 over all the words.
"""

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from readingroom.core.filters import Condition, Filter, FilterFields, In, Metadata, Range, Scalar
from readingroom.engine.errors import make_search_timeout
from readingroom.engine.words import (
    IndexedTerm,
    LexicalHit,
    LexicalQuery,
    LexicalStatistics,
    WordMemory,
    make_fts5_tokenizer_option,
    parse_query,
    sort_hits,
)
from readingroom.storage.database import ConnectionPool, Database, StatementStopped, connect

# At about a microsecond for each posting, this keeps the ranking below 50 milliseconds.
MAX_RANKED_POSTINGS = 45_000
"""Postings that a search may rank."""
MIN_CANDIDATE_ROWS = 400
"""Rows that are ranked again when the budget does not suffice for an exact ranking."""
MAX_SEARCH_SECONDS = 5.0
"""How long a search may take."""

_SELECT_STATE_SQL = "SELECT documents, tokens, generation FROM facts"
_CLEAR_SCRATCH_SQL = "INSERT INTO temp.scratch(scratch) VALUES ('delete-all')"
# FTS5 returns rows with equal scores in any order. So many more are read than were requested, and
# then ordered by id, so that the same search gives the same hits.
_EXTRA_ROW_COUNT = 64
# The parameters of FTS5's own bm25(), so that both rankings are the same.
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class LexicalDocument:
    """A text to index: its columns by name, and the metadata that filters may use."""

    id: str
    texts_by_column: Mapping[str, str]
    metadata: Metadata


class LexicalIndex:
    """One SQLite file with any number of readers and one writer at a time.

    `column_weights` has a document's texts with their weights. The file is derived from a store,
    so it may be deleted and filled again at any time.
    """

    def __init__(
        self,
        index_path: Path,
        column_weights: Mapping[str, float],
        filter_fields: FilterFields,
        max_postings: int = MAX_RANKED_POSTINGS,
        max_seconds: float = MAX_SEARCH_SECONDS,
    ) -> None:
        self.column_weights = dict(column_weights)
        self._columns_sql = ", ".join(map(_quote_identifier, self.column_weights))
        self.filter_fields = filter_fields
        self._path = index_path
        self._max_postings = max_postings
        self._max_seconds = max_seconds
        self._field_names = filter_fields.field_names
        self._write_lock = threading.Lock()
        self._connections = ConnectionPool(self._open_connection)
        self._word_memory = WordMemory(None)
        _prepare_index_file(index_path, self._list_schema_statements())

    def close(self) -> None:
        """Close its connections; nothing may be searching."""
        self._connections.close()

    # --- writing ---

    def upsert_documents(
        self, documents: Iterable[LexicalDocument], generation: int | None = None
    ) -> None:
        """Add documents, replacing those with the same ids; all of them or none."""
        batch_by_id = {document.id: document for document in documents}
        with self._begin_write_transaction(generation) as db:
            self._remove_documents(db, list(batch_by_id))
            row_numbers = [self._insert_document(db, document) for document in batch_by_id.values()]
            self._add_to_stem_counts(db, row_numbers, 1)

    def delete_documents(self, document_ids: Sequence[str], generation: int | None = None) -> None:
        """Remove documents; ids that are not there are ignored."""
        with self._begin_write_transaction(generation) as db:
            self._remove_documents(db, document_ids)

    def update_metadata(
        self,
        document_ids: Sequence[str],
        metadatas: Sequence[Metadata],
        generation: int | None = None,
    ) -> None:
        """Merge new values into the metadata that filters use; unknown ids are ignored."""
        with self._begin_write_transaction(generation) as db:
            for document_id, metadata in zip(document_ids, metadatas, strict=True):
                for field_name, field_value in self.filter_fields.select_values(metadata).items():
                    db.execute(
                        f"UPDATE documents SET {_quote_identifier(field_name)} = ? WHERE id = ?",
                        (_encode_filter_value(field_value), document_id),
                    )

    def replace_documents(self, documents: Iterable[LexicalDocument], generation: int) -> None:
        """Replace everything, for example after the store has changed without this index."""
        with self._begin_write_transaction(generation) as db:
            for table_name in ("documents", "words", "terms"):
                db.execute(f"DELETE FROM {table_name}")
            db.execute("UPDATE facts SET tokens = 0, documents = 0")
            document_count = 0
            for document in documents:
                self._insert_document(db, document)
                document_count += 1
            # In one statement at the end, instead of row by row as for single writes.
            db.execute("INSERT INTO terms SELECT term, doc FROM vocabulary")
            size_records = db.execute("SELECT sz FROM words_docsize")
            total_token_count = sum(_count_tokens(size_record) for (size_record,) in size_records)
            token_and_document_counts = (total_token_count, document_count)
            db.execute("UPDATE facts SET tokens = ?, documents = ?", token_and_document_counts)

    @property
    def generation(self) -> int | None:
        """The generation of the store that this index was filled from; None for a new file."""
        with self._connections.connection() as db:
            (generation,) = db.execute("SELECT generation FROM facts").fetchone()
        return None if generation is None else int(generation)

    def __len__(self) -> int:
        with self._connections.connection() as db:
            (document_count,) = db.execute("SELECT documents FROM facts").fetchone()
        return int(document_count)

    # --- searching ---

    def read_statistics(self) -> LexicalStatistics:
        """Return how common words are in this index."""
        with self._connections.connection() as db:
            index_state = db.execute(_SELECT_STATE_SQL).fetchone()
            look_up_words = self._get_word_memory(index_state).document_frequencies.look_up_words
        look_up = partial(look_up_words, read_values=self.read_document_frequencies)
        document_count, token_count, _ = index_state
        return LexicalStatistics(document_count, token_count / max(document_count, 1), look_up)

    def read_document_frequencies(self, stems: Sequence[str]) -> dict[str, int]:
        """Return in how many documents each stem occurs."""
        with self._connections.connection() as db:
            placeholders_sql = _make_placeholders(len(stems))
            frequency_rows = db.execute(
                f"SELECT term, documents FROM terms WHERE term IN ({placeholders_sql})", list(stems)
            )
            return dict.fromkeys(stems, 0) | dict(frequency_rows.fetchall())

    def _get_word_memory(self, index_state: tuple[Any, ...]) -> WordMemory:
        """Return what is remembered of the index in this state."""
        if self._word_memory.index_state != index_state:
            self._word_memory = WordMemory(index_state)
        return self._word_memory

    def search(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k best documents that pass the filter, best first, equal ones by id.

        Raise `SearchTimeout` when the search takes too long.
        """
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        conditions = self.filter_fields.parse_filter(where)
        with self._connections.connection() as db, enforce_deadline(db, self._max_seconds):
            score_by_row = self._score_rows(db, parse_query(query), k, conditions) if k else {}
            return self._make_hits(db, score_by_row, k)

    def _score_rows(
        self, db: Database, parsed_query: LexicalQuery, k: int, conditions: Sequence[Condition]
    ) -> dict[int, float]:
        """Return the scores of the best rows: at least `k` of them where so many match."""
        max_rows = k + _EXTRA_ROW_COUNT
        # A phrase is rare enough to be ranked within the budget, and the words only rank its hits.
        if parsed_query.phrases and parsed_query.match_expression:
            return self._score_matches(db, parsed_query.match_expression, max_rows, conditions)
        query_terms = self._find_terms(db, parsed_query.words)
        if not query_terms:
            return {}
        if sum(term.document_count for term in query_terms) <= self._max_postings:
            any_term_expression = _build_match_expression(query_terms)
            return self._score_matches(db, any_term_expression, max_rows, conditions)
        return self._score_candidates(db, query_terms, max(MIN_CANDIDATE_ROWS, 3 * k), conditions)

    def _find_terms(self, db: Database, query_words: Sequence[str]) -> list[IndexedTerm]:
        """Return the words that are in the index with stem and frequency, rarest first."""
        remembered_terms = self._get_word_memory(db.execute(_SELECT_STATE_SQL).fetchone()).terms
        terms_by_word = remembered_terms.look_up_words(query_words, partial(self._read_terms, db))
        terms_by_stem = {term.stem: term for term in terms_by_word.values() if term}
        return sorted(terms_by_stem.values(), key=lambda term: (term.document_count, term.stem))

    def _read_terms(self, db: Database, words: Sequence[str]) -> dict[str, IndexedTerm | None]:
        """Return the term that each word is in the index; None for one that is not there."""
        # FTS5 does not expose its tokenizer to SQL, so the words pass through a table of its own.
        db.execute(_CLEAR_SCRATCH_SQL)
        column_name = next(iter(self.column_weights))
        db.executemany(
            f"INSERT INTO temp.scratch(rowid, {_quote_identifier(column_name)}) VALUES (?, ?)",
            list(enumerate(words)),
        )
        # A word that the tokenizer splits further is as rare as its rarest part.
        frequency_rows = db.execute(
            """SELECT seen.doc, seen.term, MIN(terms.documents) FROM temp.seen
               JOIN terms USING (term) WHERE terms.documents > 0 GROUP BY seen.doc"""
        )
        return dict.fromkeys(words) | {
            words[word_number]: IndexedTerm(words[word_number], stem, document_count)
            for word_number, stem, document_count in frequency_rows
        }

    def _score_matches(
        self, db: Database, match_expression: str, max_rows: int, conditions: Sequence[Condition]
    ) -> dict[int, float]:
        """Return the scores of the best rows that match, by FTS5's own ranking."""
        weights_sql = ", ".join(str(float(weight)) for weight in self.column_weights.values())
        if not conditions:
            # Sorted inside FTS5, which is quicker than a sort of its rows.
            score_rows = db.execute(
                "SELECT rowid, -rank FROM words WHERE words MATCH ? AND rank MATCH ? "
                "ORDER BY rank LIMIT ?",
                (match_expression, f"bm25({weights_sql})", max_rows),
            )
            return dict(score_rows.fetchall())
        clauses_sql, bound_values = _build_filter_sql(conditions)
        score_rows = db.execute(
            f"""SELECT words.rowid, -bm25(words, {weights_sql}) AS score
                FROM words JOIN documents ON documents.row = words.rowid
                WHERE words MATCH ? AND {clauses_sql} ORDER BY score DESC LIMIT ?""",
            (match_expression, *bound_values, max_rows),
        )
        return dict(score_rows.fetchall())

    def _score_candidates(
        self,
        db: Database,
        query_terms: Sequence[IndexedTerm],
        max_rows: int,
        conditions: Sequence[Condition],
    ) -> dict[int, float]:
        """Choose candidates by the rarest terms that fit the budget; rank them by all terms.

        Where a filter leaves too few of them, the next terms are searched too.
        """
        score_by_row: dict[int, float] = {}
        for term_group in self._group_by_budget(query_terms):
            any_term_expression = _build_match_expression(term_group)
            score_by_row |= self._score_matches(db, any_term_expression, max_rows, conditions)
            if len(score_by_row) >= max_rows // 3:
                break
        return self._compute_bm25(db, query_terms, list(score_by_row))

    def _group_by_budget(self, query_terms: Sequence[IndexedTerm]) -> Iterator[list[IndexedTerm]]:
        """Yield the terms, rarest first, in groups within the budget; a term above it is alone."""
        term_group: list[IndexedTerm] = []
        for term in query_terms:
            posting_count = sum(grouped_term.document_count for grouped_term in (*term_group, term))
            if term_group and posting_count > self._max_postings:
                yield term_group
                term_group = []
            term_group.append(term)
        if term_group:
            yield term_group

    def _compute_bm25(
        self, db: Database, query_terms: Sequence[IndexedTerm], row_numbers: list[int]
    ) -> dict[int, float]:
        """Return the scores that FTS5's bm25() would give, computed for these rows alone."""
        document_count, total_token_count, _ = db.execute(_SELECT_STATE_SQL).fetchone()
        average_token_count = total_token_count / document_count
        rows_sql = ",".join(map(str, row_numbers))
        size_rows = db.execute(f"SELECT id, sz FROM words_docsize WHERE id IN ({rows_sql})")
        relative_length_by_row = {
            row_number: _count_tokens(size_record) / average_token_count
            for row_number, size_record in size_rows
        }
        db.execute(_CLEAR_SCRATCH_SQL)
        db.execute(
            f"INSERT INTO temp.scratch(rowid, {self._columns_sql}) "
            f"SELECT rowid, {self._columns_sql} FROM words WHERE rowid IN ({rows_sql})"
        )
        score_by_row = dict.fromkeys(row_numbers, 0.0)
        for term in query_terms:
            count_with_term = term.document_count
            rarity = math.log((document_count - count_with_term + 0.5) / (count_with_term + 0.5))
            for row_number, weighted_count in self._weigh_occurrences(db, term):
                divisor = weighted_count + _K1 * (1 - _B + _B * relative_length_by_row[row_number])
                # FTS5 does the same: a word of most documents would count against a match.
                score_by_row[row_number] += max(rarity, 1e-6) * weighted_count * (_K1 + 1) / divisor
        return score_by_row

    def _weigh_occurrences(self, db: Database, term: IndexedTerm) -> Iterable[tuple[int, float]]:
        """Return how often a term occurs in each candidate, by the weights of the columns."""
        weight_cases_sql = " ".join(
            f"WHEN '{name}' THEN {float(weight)}" for name, weight in self.column_weights.items()
        )
        return db.execute(
            f"SELECT doc, SUM(CASE col {weight_cases_sql} END) FROM temp.seen "
            "WHERE term = ? GROUP BY doc",
            (term.stem,),
        ).fetchall()

    def _make_hits(self, db: Database, scores: Mapping[int, float], k: int) -> list[LexicalHit]:
        """Return the k best rows as hits, equal scores in the order of their ids."""
        rows_sql = ",".join(map(str, scores))
        id_by_row = dict(db.execute(f"SELECT row, id FROM documents WHERE row IN ({rows_sql})"))
        hits = [LexicalHit(id_by_row[row_number], score) for row_number, score in scores.items()]
        return sort_hits(hits)[:k]

    # --- the file ---

    def _list_schema_statements(self) -> list[str]:
        fields_sql = "".join(f", {_quote_identifier(field)}" for field in self._field_names)
        return [
            f"CREATE TABLE documents(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE{fields_sql})",
            f"CREATE VIRTUAL TABLE words USING fts5({self._columns_sql}, "
            f'tokenize = "{make_fts5_tokenizer_option()}")',
            "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)",
            # The document frequency of each stem, which `vocabulary` would count anew each time.
            "CREATE TABLE terms(term TEXT PRIMARY KEY, documents INTEGER) WITHOUT ROWID",
            "CREATE TABLE facts(generation INTEGER, documents INTEGER, tokens INTEGER)",
            "INSERT INTO facts VALUES (NULL, 0, 0)",
        ]

    def _open_connection(self) -> Database:
        """Open a connection, with a temporary table that splits texts into stems."""
        db = _connect(self._path)
        db.execute(
            f"CREATE VIRTUAL TABLE temp.scratch USING fts5({self._columns_sql}, content = '', "
            f'tokenize = "{make_fts5_tokenizer_option()}")'
        )
        db.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab(temp, scratch, instance)")
        db.execute("CREATE VIRTUAL TABLE temp.counted USING fts5vocab(temp, scratch, row)")
        return db

    @contextlib.contextmanager
    def _begin_write_transaction(self, generation: int | None) -> Iterator[Database]:
        with self._write_lock, self._connections.connection() as db, db.transaction():
            yield db
            if generation is not None:
                db.execute("UPDATE facts SET generation = ?", (generation,))
        self._word_memory = WordMemory(None)

    def _insert_document(self, db: Database, document: LexicalDocument) -> int:
        values_by_field = self.filter_fields.select_values(document.metadata)
        filter_columns_sql = "".join(f", {_quote_identifier(field)}" for field in values_by_field)
        row_number = db.execute(
            f"INSERT INTO documents(id{filter_columns_sql}) "
            f"VALUES ({_make_placeholders(1 + len(values_by_field))})",
            (document.id, *map(_encode_filter_value, values_by_field.values())),
        ).lastrowid
        assert row_number is not None
        column_texts = [document.texts_by_column.get(name, "") for name in self.column_weights]
        db.execute(
            f"INSERT INTO words(rowid, {self._columns_sql}) "
            f"VALUES ({_make_placeholders(1 + len(column_texts))})",
            (row_number, *column_texts),
        )
        return row_number

    def _remove_documents(self, db: Database, document_ids: Sequence[str]) -> None:
        row_numbers = [
            row_number
            for document_id in set(document_ids)
            for (row_number,) in db.execute("SELECT row FROM documents WHERE id = ?", [document_id])
        ]
        # Before they go: their words are counted from the rows themselves.
        self._add_to_stem_counts(db, row_numbers, -1)
        for table_name, row_column in (("words", "rowid"), ("documents", "row")):
            sql_parameter_rows = [(row_number,) for row_number in row_numbers]
            db.executemany(f"DELETE FROM {table_name} WHERE {row_column} = ?", sql_parameter_rows)

    def _add_to_stem_counts(self, db: Database, row_numbers: Sequence[int], sign: int) -> None:
        """Add these rows to the frequencies of stems (`sign` 1), or subtract them (-1)."""
        db.execute(_CLEAR_SCRATCH_SQL)
        changed_token_count = 0
        for row_number in row_numbers:
            db.execute(
                f"INSERT INTO temp.scratch(rowid, {self._columns_sql}) "
                f"SELECT rowid, {self._columns_sql} FROM words WHERE rowid = ?",
                (row_number,),
            )
            size_rows = db.execute("SELECT sz FROM words_docsize WHERE id = ?", (row_number,))
            (size_record,) = size_rows.fetchone()
            changed_token_count += _count_tokens(size_record)
        db.execute(
            """INSERT INTO terms SELECT term, ? * doc FROM temp.counted WHERE true
               ON CONFLICT DO UPDATE SET documents = documents + excluded.documents""",
            (sign,),
        )
        db.execute(
            "UPDATE facts SET tokens = tokens + ?, documents = documents + ?",
            (sign * changed_token_count, sign * len(row_numbers)),
        )


def _prepare_index_file(index_path: Path, schema_statements: list[str]) -> None:
    """Create the tables, after deleting a file that is damaged or has another schema."""
    index_path.parent.mkdir(parents=True, exist_ok=True)
    schema_text = "\n".join(schema_statements)
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_connect(index_path)) as db:
        if db.execute("SELECT made FROM made_by").fetchone() == (schema_text,):
            return
    for file_suffix in ("", "-wal", "-shm"):
        index_path.with_name(index_path.name + file_suffix).unlink(missing_ok=True)
    with contextlib.closing(_connect(index_path)) as db:
        db.execute("BEGIN")
        for schema_statement in schema_statements:
            db.execute(schema_statement)
        db.execute("CREATE TABLE made_by(made TEXT)")
        db.execute("INSERT INTO made_by VALUES (?)", (schema_text,))
        db.execute("COMMIT")


def _connect(index_path: Path) -> Database:
    # WAL, so that searches go on during a write. NORMAL may lose the last writes in a power cut;
    # the generation shows that, and the index is filled again.
    pragmas = {"journal_mode": "WAL", "synchronous": "NORMAL", "temp_store": "MEMORY"}
    return connect(index_path, from_any_thread=True, pragmas=pragmas)


@contextlib.contextmanager
def enforce_deadline(db: Database, max_seconds: float) -> Iterator[None]:
    """Raise `SearchTimeout` when the statements inside take longer than this in all."""
    stop_time = time.monotonic() + max_seconds
    try:
        # Every 5,000 instructions: often enough to end in time, too rarely to be noticed.
        with db.stop_when(lambda: time.monotonic() > stop_time, 5_000):
            yield
    except StatementStopped as error:
        raise make_search_timeout(max_seconds) from error


def _build_match_expression(terms: Iterable[IndexedTerm]) -> str:
    # Quoted, so that no word is ever an operator.
    return " OR ".join(f'"{term.word}"' for term in terms)


def _build_filter_sql(conditions: Sequence[Condition]) -> tuple[str, list[Any]]:
    sql_clauses: list[str] = []
    bound_values: list[Any] = []
    for condition in conditions:
        column_sql = f"documents.{_quote_identifier(condition.field_name)}"
        match condition:
            case In(values=allowed_values):
                sql_clauses.append(f"{column_sql} IN ({_make_placeholders(len(allowed_values))})")
                bound_values.extend(map(_encode_filter_value, allowed_values))
            case Range(low=lowest_value, high=highest_value):
                # To SQLite any text is greater than any number.
                sql_clauses.append(f"typeof({column_sql}) IN ('integer', 'real')")
                for sql_operator, bound_value in ((">=", lowest_value), ("<=", highest_value)):
                    if bound_value is not None:
                        sql_clauses.append(f"{column_sql} {sql_operator} ?")
                        bound_values.append(bound_value)
    return " AND ".join(sql_clauses), bound_values


def _encode_filter_value(filter_value: Scalar) -> Scalar | bytes:
    """Return a value as the table stores it."""
    # SQLite has no booleans, and True must not be equal to 1: a blob is equal to no number.
    return bytes([filter_value]) if isinstance(filter_value, bool) else filter_value


def _count_tokens(size_record: bytes) -> int:
    """Return the tokens of a document; FTS5 stores a variable-length integer for each column."""
    token_count = column_token_count = 0
    for size_byte in size_record:
        column_token_count = column_token_count << 7 | size_byte & 0x7F
        if size_byte < 0x80:
            token_count, column_token_count = token_count + column_token_count, 0
    return token_count


def _quote_identifier(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def _make_placeholders(value_count: int) -> str:
    return ", ".join("?" * value_count)
