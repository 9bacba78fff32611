"""Collections of chunks in the shared database: the methods of `storage.chunks`, and their words.

A write is one transaction, or a part of the one that is open. Its last statements raise the
generation of the collection, count its stems and name the chunks it touched, under the lock of one
row; so generations become visible in their order, and whoever has applied the changes up to one of
them has missed none.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from readingroom.core.arrays import np
from readingroom.core.filters import Filter, FilterFields, Metadata, flatten_filter
from readingroom.storage.chunks import Chunks
from readingroom.storage.errors import (
    DatabaseFailed,
    EmbeddingMismatch,
    InvalidDatabaseValue,
    StoreUnusable,
)
from readingroom.storage.postgres.database import (
    Connection,
    PostgresDatabase,
    SharedTransaction,
    clean_text,
)
from readingroom.storage.postgres.encoding import (
    Stems,
    build_clauses,
    cut_stem,
    decode_vectors,
    encode_chunk_rows,
    encode_json,
    encode_vectors,
    format_vector,
)
from readingroom.storage.postgres.schema import list_collection_statements

SplitStems = Callable[[str], Stems]
"""Returns the stems that a text is found by."""

_MAX_KEPT_GENERATIONS = 2_000
"""Writes that a copy of the vectors may be behind before it is read anew."""


@dataclass
class _PendingChange:
    """What a transaction has done to a collection, until it commits."""

    touched_ids: set[str] = field(default_factory=set)
    chunk_count_change_by_stem: Counter[str] = field(default_factory=Counter)
    chunk_count_change: int = 0
    token_count_change: int = 0


class PostgresChunkStore:
    """The collections of one base in the shared database."""

    def __init__(self, postgres_database: PostgresDatabase) -> None:
        self._database = postgres_database

    def open_collection(
        self, collection_name: str, filter_fields: FilterFields, lookup_fields: Sequence[str] = ()
    ) -> "PostgresCollection":
        """Return the collection of that name, which is created when it does not exist.

        `lookup_fields` are those that no search is limited to, but that chunks are read by.
        """
        with _translate_errors():
            self._database.prepare()
            column_field_names = tuple(
                dict.fromkeys(
                    (
                        *filter_fields.exact_match_fields,
                        *filter_fields.numeric_range_fields,
                        *lookup_fields,
                    )
                )
            )
            with self._database.transaction() as shared_transaction:
                connection = shared_transaction.connection
                # Processes that start at once take turns.
                connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (collection_name,)
                )
                for sql_statement in list_collection_statements(
                    collection_name, column_field_names
                ):
                    connection.execute(sql_statement)
                connection.execute(
                    "INSERT INTO collections (name) VALUES (?) ON CONFLICT DO NOTHING",
                    (collection_name,),
                )
        return PostgresCollection(self._database, collection_name, column_field_names)

    def close(self) -> None:
        """Close the idle connections of the database."""
        self._database.close()


class PostgresCollection:
    """One collection; a write is durable when its transaction has ended."""

    def __init__(
        self,
        postgres_database: PostgresDatabase,
        collection_name: str,
        column_field_names: tuple[str, ...],
    ) -> None:
        self.database = postgres_database
        self.name = collection_name
        self.column_field_names = column_field_names
        self.split_stems: SplitStems = _return_no_stems
        self.chunks_table = f"{collection_name}_chunks"
        self.vectors_table = f"{collection_name}_vectors"

    def read_chunks(
        self,
        chunk_ids: Sequence[str] | None = None,
        where: Filter | None = None,
        with_vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """Return the chunks with these ids, or those that pass the filter, or all.

        Unknown ids are left out. `limit` and `offset` are for reading everything page by page.
        """
        sql_clauses, statement_values = build_clauses(
            flatten_filter(where), self.column_field_names
        )
        if chunk_ids is not None:
            sql_clauses.append("id = ANY(?)")
            statement_values.append(list(chunk_ids))
        where_sql = " AND ".join(sql_clauses) or "true"
        page_clause = f"LIMIT {int(limit)} OFFSET {int(offset)}" if limit is not None else ""
        embedding_sql = ", embedding" if with_vectors else ""
        join_sql = f"JOIN {self.vectors_table} USING (id)" if with_vectors else ""
        # The filter is on the chunks alone, whose columns the vectors repeat.
        sql = (
            f"SELECT id, body, metadata{embedding_sql} FROM "
            f"(SELECT * FROM {self.chunks_table} WHERE {where_sql} "
            f"ORDER BY chunk_number {page_clause}) AS chosen {join_sql} ORDER BY chunk_number"
        )
        with _translate_errors(), self.database.connection() as connection:
            chunk_rows = list(connection.iterate_tuples(sql, statement_values))
        return Chunks(
            [chunk_row[0] for chunk_row in chunk_rows],
            [chunk_row[1] for chunk_row in chunk_rows],
            [chunk_row[2] for chunk_row in chunk_rows],
            decode_vectors([chunk_row[3] for chunk_row in chunk_rows])
            if with_vectors
            else np.empty((0, 0), np.float32),
        )

    def upsert_chunks(self, chunks: Chunks) -> None:
        """Add chunks, replacing those with the same ids and all of their metadata."""
        if len(set(chunks.ids)) != len(chunks):
            raise ValueError("an id comes twice in one batch")
        if not np.isfinite(chunks.vectors).all():
            raise ValueError("a vector contains a number that is not finite")
        stem_lists = [self.split_stems(clean_text(chunk_text)) for chunk_text in chunks.texts]
        with self._begin_write() as (connection, pending_change):
            self._remove_chunks(connection, pending_change, chunks.ids)
            connection.copy_in(
                f"{self.chunks_table} (id, body, metadata, words, tokens)",
                encode_chunk_rows(chunks, stem_lists),
            )
            field_columns_sql = "".join(
                f", field_{field_name}" for field_name in self.column_field_names
            )
            connection.copy_in(
                f"{self.vectors_table} (id{field_columns_sql}, embedding)",
                encode_vectors(chunks, self.column_field_names),
            )
            pending_change.touched_ids.update(chunks.ids)
            pending_change.chunk_count_change += len(chunks)
            for chunk_stems in stem_lists:
                pending_change.token_count_change += len(chunk_stems)
                pending_change.chunk_count_change_by_stem.update(set(map(cut_stem, chunk_stems)))

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        with self._begin_write() as (connection, pending_change):
            connection.executemany(
                f"UPDATE {self.chunks_table} SET metadata = metadata || ?::jsonb WHERE id = ?",
                [
                    (encode_json(chunk_metadata), chunk_id)
                    for chunk_id, chunk_metadata in zip(chunk_ids, metadatas, strict=True)
                ],
            )
            assignments_sql = ", ".join(
                f"field_{field_name} = {self.chunks_table}.field_{field_name}"
                for field_name in self.column_field_names
            )
            if assignments_sql:
                differs_sql = " OR ".join(
                    f"{self.vectors_table}.field_{field_name} IS DISTINCT FROM "
                    f"{self.chunks_table}.field_{field_name}"
                    for field_name in self.column_field_names
                )
                connection.execute(
                    f"UPDATE {self.vectors_table} SET {assignments_sql} "
                    f"FROM {self.chunks_table} WHERE "
                    f"{self.chunks_table}.id = {self.vectors_table}.id AND "
                    f"{self.vectors_table}.id = ANY(?) AND ({differs_sql})",
                    (list(chunk_ids),),
                )
            pending_change.touched_ids.update(chunk_ids)

    def get_chunks_without_field(self, field_name: str) -> Chunks:
        """Return the chunks whose metadata has no such field, without vectors."""
        with _translate_errors(), self.database.connection() as connection:
            chunk_rows = connection.execute(
                f"SELECT id, body, metadata FROM {self.chunks_table} "
                "WHERE metadata -> ? IS NULL ORDER BY chunk_number",
                (field_name,),
            ).fetchall()
        return Chunks(
            [chunk_row[0] for chunk_row in chunk_rows],
            [chunk_row[1] for chunk_row in chunk_rows],
            [chunk_row[2] for chunk_row in chunk_rows],
        )

    def replace_vectors(self, chunks: Chunks, field_names: Sequence[str]) -> None:
        """Give chunks other vectors, and these fields of their metadata; they stay in order."""
        with self._begin_write() as (connection, _):
            connection.executemany(
                f"UPDATE {self.vectors_table} SET embedding = ?::vector WHERE id = ?",
                [
                    (format_vector(chunk_vector), chunk_id)
                    for chunk_id, chunk_vector in zip(chunks.ids, chunks.vectors, strict=True)
                ],
            )
            self.update_metadata(
                chunks.ids,
                [
                    {field_name: chunk_metadata[field_name] for field_name in field_names}
                    for chunk_metadata in chunks.metadatas
                ],
            )

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        with self._begin_write() as (connection, pending_change):
            self._remove_chunks(connection, pending_change, chunk_ids)
            pending_change.touched_ids.update(chunk_ids)

    def count_chunks(self) -> int:
        return int(self._read_value(f"SELECT count(*) FROM {self.chunks_table}"))

    @property
    def generation(self) -> int:
        """A number that every write increases; what was read at another one is out of date."""
        return int(self._read_value("SELECT generation FROM collections WHERE name = ?", self.name))

    @property
    def embedding_identity(self) -> str | None:
        """Identity of the model that made the vectors; None before the first vector."""
        model_identity: str | None = self._read_value(
            "SELECT embedding FROM collections WHERE name = ?", self.name
        )
        return model_identity

    def claim_embedding(self, model_identity: str) -> None:
        """Record which model makes the vectors; raise `EmbeddingMismatch` when another one did."""
        if self.embedding_identity is None:
            # The first of several processes wins.
            with _translate_errors(), self.database.connection() as connection:
                connection.execute(
                    "UPDATE collections SET embedding = coalesce(embedding, ?) WHERE name = ?",
                    (model_identity, self.name),
                )
        stored_identity = self.embedding_identity
        if stored_identity != model_identity:
            raise EmbeddingMismatch(
                f"The vectors of {self.name} were made by {stored_identity}, and "
                f"{model_identity} is "
                "what runs now; the two must not be mixed. Set the model and the precision back, "
                "or ingest everything anew.",
                held=stored_identity,
                running=model_identity,
            )

    def list_changes_since(self, generation: int) -> tuple[int, list[str] | None]:
        """Return today's generation, and the ids of the chunks touched since another one.

        None in place of the ids when nobody knows any more: everything must be read anew.
        """
        with _translate_errors(), self.database.connection() as connection:
            changes_row = connection.execute(
                "SELECT generation, (SELECT min(generation) FROM chunk_changes WHERE "
                "collection = name), (SELECT array_agg(DISTINCT chunk_id) FROM chunk_changes, "
                "unnest(chunk_ids) AS chunk_id WHERE collection = name AND "
                "chunk_changes.generation > ?) FROM collections WHERE name = ?",
                (generation, self.name),
            ).fetchone()
        current_generation, oldest_generation, touched_ids = changes_row
        if current_generation > generation and (
            oldest_generation is None or oldest_generation > generation + 1
        ):
            return current_generation, None
        return current_generation, touched_ids or []

    def recount(self) -> None:
        """Count chunks, words and stems anew."""
        with self._begin_write() as (connection, _):
            # The row that every writer ends with: no other transaction counts meanwhile.
            connection.execute(
                f"UPDATE collections SET (chunks, tokens) = (SELECT count(*), "
                f"coalesce(sum(tokens), 0) FROM {self.chunks_table}) WHERE name = ?",
                (self.name,),
            )
            connection.execute("DELETE FROM stems WHERE collection = ?", (self.name,))
            connection.execute(
                "INSERT INTO stems SELECT ?, word, ndoc FROM "
                f"ts_stat('SELECT words FROM {self.chunks_table}')",
                (self.name,),
            )

    def count_chunks_and_tokens(self) -> tuple[int, int]:
        """Return how many chunks there are, and how many words all of them have."""
        with _translate_errors(), self.database.connection() as connection:
            totals_row = connection.execute(
                "SELECT chunks, tokens FROM collections WHERE name = ?", (self.name,)
            ).fetchone()
        return totals_row[0], totals_row[1]

    def count_chunks_by_stem(self, stems: Sequence[str]) -> dict[str, int]:
        """Return in how many chunks each stem occurs, without those that occur in none."""
        with _translate_errors(), self.database.connection() as connection:
            stem_rows = connection.execute(
                "SELECT stem, chunks FROM stems WHERE collection = ? AND stem = ANY(?) "
                "AND chunks > 0",
                (self.name, [cut_stem(stem) for stem in stems]),
            ).fetchall()
        return {stem_row[0]: stem_row[1] for stem_row in stem_rows}

    def list_common_stems(self, max_stems: int) -> dict[str, int]:
        """Return in how many chunks each of the commonest stems occurs, rarest first."""
        with _translate_errors(), self.database.connection() as connection:
            stem_rows = connection.execute(
                "SELECT stem, chunks FROM stems WHERE collection = ? AND chunks > 0 "
                "ORDER BY chunks DESC, stem LIMIT ?",
                (self.name, max_stems),
            ).fetchall()
        return {stem_row[0]: stem_row[1] for stem_row in reversed(stem_rows)}

    @contextmanager
    def lend_search_connection(self) -> Iterator[Connection]:
        """Lend a connection for a search; raise `StoreUnusable` when that fails."""
        with _translate_errors(), self.database.connection() as connection:
            yield connection

    def _read_value(self, sql: str, *sql_values: Any) -> Any:
        with _translate_errors(), self.database.connection() as connection:
            return connection.execute(sql, sql_values).fetchone()[0]

    @contextmanager
    def _begin_write(self) -> Iterator[tuple[Connection, _PendingChange]]:
        with _translate_errors(), self.database.transaction() as shared_transaction:
            yield shared_transaction.connection, self._get_pending_change(shared_transaction)

    def _get_pending_change(self, shared_transaction: SharedTransaction) -> _PendingChange:
        """Return what this transaction has done so far; it is told to everybody as it commits."""
        callback_key = f"collection {self.name}"
        finish_change = shared_transaction.commit_callbacks_by_key.get(callback_key)
        if finish_change is None:
            pending_change = _PendingChange()
            shared_transaction.commit_callbacks_by_key[callback_key] = _WritePendingChange(
                self.name, pending_change
            )
            return pending_change
        assert isinstance(finish_change, _WritePendingChange)
        return finish_change.pending_change

    def _remove_chunks(
        self, connection: Connection, pending_change: _PendingChange, chunk_ids: Sequence[str]
    ) -> None:
        removed_stem_rows = connection.execute(
            f"WITH removed AS (DELETE FROM {self.chunks_table} WHERE id = ANY(?) "
            "RETURNING words, tokens), totals AS (SELECT count(*) AS chunks, "
            "coalesce(sum(tokens), 0) AS tokens FROM removed) "
            "SELECT stem, count(*), (SELECT chunks FROM totals), (SELECT tokens FROM totals) "
            "FROM removed LEFT JOIN LATERAL unnest(tsvector_to_array(words)) AS stem ON true "
            "GROUP BY stem",
            (list(chunk_ids),),
        ).fetchall()
        for stem, chunk_count, _, _ in removed_stem_rows:
            if stem is not None:
                pending_change.chunk_count_change_by_stem[stem] -= chunk_count
        if removed_stem_rows:
            pending_change.chunk_count_change -= removed_stem_rows[0][2]
            pending_change.token_count_change -= int(removed_stem_rows[0][3])


@dataclass
class _WritePendingChange:
    """The last statements of a transaction that wrote to a collection."""

    collection_name: str
    pending_change: _PendingChange

    def __call__(self, connection: Connection) -> None:
        pending_change = self.pending_change
        # First: whoever holds this row is the only one to count, so nobody waits crosswise.
        (new_generation,) = connection.execute(
            "UPDATE collections SET generation = generation + 1, chunks = chunks + ?, "
            "tokens = tokens + ? WHERE name = ? RETURNING generation",
            (
                pending_change.chunk_count_change,
                pending_change.token_count_change,
                self.collection_name,
            ),
        ).fetchone()
        count_change_by_stem = {
            stem: count_change
            for stem, count_change in sorted(pending_change.chunk_count_change_by_stem.items())
            if count_change
        }
        if count_change_by_stem:
            connection.execute(
                "INSERT INTO stems SELECT ?, stem, chunks FROM unnest(?::text[], ?::int[]) "
                "AS added (stem, chunks) ON CONFLICT (collection, stem) "
                "DO UPDATE SET chunks = stems.chunks + excluded.chunks",
                (
                    self.collection_name,
                    list(count_change_by_stem),
                    list(count_change_by_stem.values()),
                ),
            )
        connection.execute(
            "INSERT INTO chunk_changes VALUES (?, ?, ?)",
            (self.collection_name, new_generation, sorted(pending_change.touched_ids)),
        )
        if new_generation % 100 == 0:
            connection.execute(
                "DELETE FROM chunk_changes WHERE collection = ? AND generation <= ?",
                (self.collection_name, new_generation - _MAX_KEPT_GENERATIONS),
            )
        connection.execute("SELECT pg_notify('readingroom', ?)", (self.collection_name,))


def _return_no_stems(text: str) -> Stems:
    """Return nothing: for a collection that nobody searches by words."""
    return ()


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except InvalidDatabaseValue as error:
        raise ValueError(error.message) from error
    except DatabaseFailed as error:
        raise StoreUnusable(f"The chunk store failed: {error.message}") from error
