"""What a process keeps in memory of a collection in the shared database, to search it there."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.core.arrays import np
from readingroom.core.filters import FilterFields, Metadata
from readingroom.core.lru import LRUCache
from readingroom.engine.embedding.machine import return_free_memory
from readingroom.engine.rows import RowView
from readingroom.engine.shared.postings import ChunkRows, Posting, StemPostings, WordView
from readingroom.engine.vectors import VectorIndex
from readingroom.storage.postgres.chunks import PostgresCollection
from readingroom.storage.postgres.encoding import (
    OCCURRENCES_SQL,
    decode_vectors,
    decode_words,
    quote_lexeme,
)

_ROWS_PER_PAGE = 20_000
_MAX_COPIED_STEMS = 20_000
"""Stems whose postings are kept: most are rare, and those of all chunks take 0.6 kB a chunk."""
_MAX_CHUNKS_UPDATED_AT_ONCE = 2_000
"""Chunks whose words are added after a write; after a larger one all are read anew."""


@dataclass(slots=True)
class _CopiedWords:
    """The postings of the stems that were asked for, complete for the rows of this view."""

    row_view: RowView
    postings_by_stem: LRUCache[str, StemPostings] = field(
        default_factory=lambda: LRUCache(_MAX_COPIED_STEMS)
    )
    chunk_rows: ChunkRows | None = None
    """Read when postings are first read: numbers of chunks cost a fraction of their ids."""


class MemoryCopy:
    """Every vector of a collection, and the words that questions had.

    The vectors are read when they are first needed, the postings of a stem when it is first asked
    for. What other processes have written is applied before each search: the generation of the
    collection tells whether there is anything.
    """

    def __init__(self, collection: PostgresCollection, filter_fields: FilterFields) -> None:
        self._collection = collection
        self._filter_fields = filter_fields
        self._lock = threading.Lock()
        self._copied_generation = -1
        self._copied_words: _CopiedWords | None = None
        self.vectors: VectorIndex | None = None
        """The vectors as they were last looked at; None until they are needed."""

    @property
    def is_usable(self) -> bool:
        """Whether it is there, and knows all that the caller may see: it has what is committed."""
        return self.vectors is not None and not self._collection.database.is_in_transaction

    def open_vectors(self) -> VectorIndex:
        """Return the vectors with everything that was committed before this call."""
        vectors = self.vectors
        if vectors is not None and self._collection.generation == self._copied_generation:
            return vectors
        with self._lock:
            return self._update_vectors()

    def open_words(self, stems: Sequence[str]) -> WordView:
        """Return the postings of stems with everything that was committed before this call."""
        while True:
            self.open_vectors()
            copied_words = self._copied_words
            if copied_words is None:
                continue  # dropped at this very moment
            postings_by_stem = {
                stem: postings
                for stem in stems
                if (postings := copied_words.postings_by_stem.get(stem)) is not None
            }
            missing_stems = [stem for stem in stems if stem not in postings_by_stem]
            if not missing_stems:
                return WordView(copied_words.row_view, postings_by_stem)
            self._cache_postings(missing_stems)

    def drop_copy(self) -> None:
        """Drop everything; it is read again when it is needed."""
        self._collection.database.notices.unsubscribe(self._collection.name, self.apply_new_changes)
        with self._lock:
            self.vectors = self._copied_words = None
            self._copied_generation = -1

    def apply_new_changes(self) -> None:
        """Apply what other processes have written, so that no search has to."""
        if self.vectors is not None:
            self.open_vectors()

    def _update_vectors(self) -> VectorIndex:
        """Apply what was written since the last time, or read everything; the lock is held."""
        # An empty copy does not know yet how long vectors are.
        if self.vectors is not None and len(self.vectors) and self._copied_words is not None:
            generation, touched_ids = self._collection.list_changes_since(self._copied_generation)
            if touched_ids is not None:
                if touched_ids:
                    self._update_changed_vectors(self.vectors, touched_ids)
                    self._copied_words = self._update_changed_words(
                        self.vectors, self._copied_words, touched_ids
                    )
                self._copied_generation = generation
                return self.vectors
        # Read first: what is written while the copy is made is then applied afterwards.
        generation = self._collection.generation
        vectors = self._read_vectors()
        # The generation last: until then nobody takes what is there for up to date.
        self._copied_words, self.vectors = _CopiedWords(vectors.view), vectors
        self._copied_generation = generation
        self._collection.database.notices.subscribe(self._collection.name, self.apply_new_changes)
        return vectors

    def _read_vectors(self) -> VectorIndex:
        vectors: VectorIndex | None = None
        for chunk_ids, page_vectors, metadatas in self._read_vector_pages():
            if vectors is None:
                vectors = VectorIndex(
                    self._filter_fields,
                    page_vectors.shape[1],
                    self._collection.count_chunks_and_tokens()[0],
                )
            vectors.upsert_rows(chunk_ids, page_vectors, metadatas)
        return_free_memory()
        return vectors or VectorIndex(self._filter_fields)

    def _update_changed_vectors(self, vectors: VectorIndex, touched_ids: Sequence[str]) -> None:
        present_ids = set()
        for chunk_ids, page_vectors, metadatas in self._read_vector_pages(touched_ids):
            vectors.upsert_rows(chunk_ids, page_vectors, metadatas)
            present_ids.update(chunk_ids)
        vectors.delete_rows([chunk_id for chunk_id in touched_ids if chunk_id not in present_ids])

    def _update_changed_words(
        self, vectors: VectorIndex, copied_words: _CopiedWords, touched_ids: Sequence[str]
    ) -> _CopiedWords:
        """Return the postings with the new rows of these chunks; a view hides the old ones."""
        if len(touched_ids) > _MAX_CHUNKS_UPDATED_AT_ONCE or not vectors.view.is_continuation_of(
            copied_words.row_view
        ):
            return _CopiedWords(vectors.view)
        new_postings: dict[str, list[Posting]] = defaultdict(list)
        row_numbers = vectors.find_row_numbers(touched_ids)
        row_by_chunk: dict[int, int] = {}
        if len(copied_words.postings_by_stem):
            for chunk_id, chunk_number, encoded_words, token_count in self._read_words(
                list(row_numbers)
            ):
                row_by_chunk[chunk_number] = row_numbers[chunk_id]
                for stem, occurrence_count in decode_words(encoded_words):
                    new_postings[stem].append(
                        (row_numbers[chunk_id], occurrence_count, token_count)
                    )
        for stem, postings in new_postings.items():
            stem_postings = copied_words.postings_by_stem.get(stem)
            if stem_postings is not None:
                stem_postings.append_postings(postings)
        chunk_rows = copied_words.chunk_rows
        return _CopiedWords(
            vectors.view,
            copied_words.postings_by_stem,
            # Without postings the numbers of these chunks were not read.
            chunk_rows.replace_rows(row_by_chunk)
            if chunk_rows and len(copied_words.postings_by_stem)
            else None,
        )

    def _read_words(self, chunk_ids: Sequence[str]) -> list[tuple[str, int, bytes, int]]:
        with self._collection.lend_search_connection() as connection:
            return list(
                connection.iterate_tuples(
                    "SELECT id, chunk_number, words, tokens "
                    f"FROM {self._collection.chunks_table} WHERE id = ANY(?)",
                    (list(chunk_ids),),
                )
            )

    def _cache_postings(self, stems: Sequence[str]) -> None:
        for stem in stems:
            # Under the lock: a change that is applied later adds its rows to these postings, and
            # one that was applied before is in what is read.
            with self._lock:
                if self.vectors is None or self._copied_words is None:
                    return
                if self._copied_words.postings_by_stem.get(stem) is None:
                    if self._copied_words.chunk_rows is None:
                        self._copied_words.chunk_rows = self._read_chunk_rows(self.vectors)
                    self._copied_words.postings_by_stem.put(
                        stem, self._read_postings(self._copied_words.chunk_rows, stem)
                    )

    def _read_chunk_rows(self, vectors: VectorIndex) -> ChunkRows:
        with self._collection.lend_search_connection() as connection:
            ((chunk_ids, number_bytes),) = connection.iterate_tuples(
                "SELECT array_agg(id), string_agg(int8send(chunk_number), '') "
                f"FROM {self._collection.chunks_table}"
            )
        return ChunkRows(
            np.frombuffer(number_bytes or b"", ">i8").astype(np.int64),
            vectors.list_row_numbers(chunk_ids or []),
        )

    def _read_postings(self, chunk_rows: ChunkRows, stem: str) -> StemPostings:
        lexeme = quote_lexeme(stem)
        with self._collection.lend_search_connection() as connection:
            # All in one row: of a common word, hundreds of thousands would cost more than finding
            # them. The three are in the same order, which is that of the rows inside.
            ((number_bytes, occurrence_count_bytes, token_count_bytes),) = (
                connection.iterate_tuples(
                    "SELECT string_agg(int8send(chunk_number), ''), "
                    "string_agg(int4send(occurrences), ''), string_agg(int4send(tokens), '') FROM ("
                    f"SELECT chunk_number, ({OCCURRENCES_SQL})::integer AS occurrences, tokens "
                    f"FROM {self._collection.chunks_table} WHERE words @@ ?::tsquery) AS matching",
                    (lexeme, lexeme),
                )
            )
        if number_bytes is None:
            return StemPostings([])
        return StemPostings.make_from_columns(
            # A chunk that has no row yet was written a moment ago: its row brings its words then.
            chunk_rows.find_rows(np.frombuffer(number_bytes, ">i8").astype(np.int64)),
            np.frombuffer(occurrence_count_bytes, ">i4"),
            np.frombuffer(token_count_bytes, ">i4"),
        )

    def _read_vector_pages(
        self, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[list[str], Any, list[Metadata]]]:
        column_field_names = self._collection.column_field_names
        field_columns_sql = "".join(f", field_{field_name}" for field_name in column_field_names)
        last_id = ""
        while True:
            with self._collection.lend_search_connection() as connection:
                vector_rows = list(
                    connection.iterate_tuples(
                        f"SELECT id, embedding{field_columns_sql} "
                        f"FROM {self._collection.vectors_table} "
                        f"WHERE id > ? {'AND id = ANY(?)' if ids is not None else ''} "
                        "ORDER BY id LIMIT ?",
                        (last_id, *([list(ids)] if ids is not None else []), _ROWS_PER_PAGE),
                    )
                )
            if vector_rows:
                metadatas: list[Metadata] = [
                    {
                        field_name: json.loads(field_value)
                        for field_name, field_value in zip(
                            column_field_names, vector_row[2:], strict=True
                        )
                        if field_value is not None
                    }
                    for vector_row in vector_rows
                ]
                yield (
                    [vector_row[0] for vector_row in vector_rows],
                    decode_vectors([vector_row[1] for vector_row in vector_rows]),
                    metadatas,
                )
            if len(vector_rows) < _ROWS_PER_PAGE:
                return
            last_id = vector_rows[-1][0]
