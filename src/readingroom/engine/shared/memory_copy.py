"""What a process keeps in memory of a collection in the shared database, to search it there."""

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.core.arrays import np
from readingroom.core.filters import FilterFields, Metadata
from readingroom.core.lru import LRUCache
from readingroom.engine.embedding.machine import return_free_memory
from readingroom.engine.rows import RowView
from readingroom.engine.shared.common_words import BackgroundReader, CommonWords
from readingroom.engine.shared.postings import Posting, RowsByChunk, StemPostings, WordView
from readingroom.engine.vectors import VectorIndex
from readingroom.storage.errors import StoreUnusable
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
_MAX_COMMON_STEMS = 10_000
"""Stems whose postings are read in advance: of 60,000 chunks, all in ten of them or more."""
_CHUNKS_PER_TURN = 500
"""Chunks whose words are read in advance before searches have their turn: some milliseconds."""
_STEMS_PER_TURN = 500
_MAX_CHUNKS_UPDATED_AT_ONCE = 2_000
"""Chunks whose words are added after a write; after a larger one all are read anew."""


@dataclass(slots=True)
class _CopiedWords:
    """The postings of the stems that were asked for, complete for the rows of this view."""

    row_view: RowView
    postings_by_stem: LRUCache[str, StemPostings] = field(
        default_factory=lambda: LRUCache(_MAX_COPIED_STEMS)
    )
    rows_by_chunk: RowsByChunk | None = None
    """Read when postings are first read: numbers of chunks cost a fraction of their ids."""
    common_words: CommonWords | None = None
    """What is read in advance; it has everything that was written up to this view."""


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
        self._common_words_reader: BackgroundReader | None = None
        self._reads_vectors_in_advance = False
        self.vectors: VectorIndex | None = None
        """The vectors as they were last looked at; None until they are needed."""

    @property
    def is_usable(self) -> bool:
        """Whether it is there, and knows all that the caller may see: it has what is committed."""
        return self.vectors is not None and not self._collection.database.is_in_transaction

    def open_vectors(self) -> VectorIndex:
        """Return the vectors with everything that was committed before this call."""
        if self._collection.generation == self._copied_generation:
            # Read after the generation, which is set last: another thread may just have put a
            # newer copy in place of the one that was here.
            vector_index = self.vectors
            if vector_index is not None:
                return vector_index
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
                stem: stem_postings
                for stem in stems
                if (stem_postings := copied_words.postings_by_stem.get(stem)) is not None
            }
            missing_stems = [stem for stem in stems if stem not in postings_by_stem]
            if not missing_stems:
                return WordView(copied_words.row_view, postings_by_stem)
            self._cache_postings(missing_stems)

    def keep_ready(self, *, with_vectors: bool) -> None:
        """Read in the background what questions have in common, and again when it was dropped.

        Without `with_vectors` that waits until a search has read the vectors.
        """
        with self._lock:
            self._reads_vectors_in_advance = with_vectors
            if self._common_words_reader is None:
                self._common_words_reader = BackgroundReader(self._read_common_words)

    def close(self) -> None:
        """Drop everything, and read nothing in the background any more."""
        if self._common_words_reader is not None:
            self._common_words_reader.stop()
            self._common_words_reader = None
        self.drop_copy()

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

    def _update_vectors(self, stop_event: threading.Event | None = None) -> VectorIndex:
        """Apply what was written since the last time, or read everything; the lock is held."""
        # An empty copy does not know yet how long vectors are.
        if self.vectors is not None and len(self.vectors) and self._copied_words is not None:
            generation, touched_chunk_ids = self._collection.list_changes_since(
                self._copied_generation
            )
            if touched_chunk_ids is not None:
                if touched_chunk_ids:
                    self._update_changed_vectors(self.vectors, touched_chunk_ids)
                    self._copied_words = self._update_changed_words(
                        self.vectors, self._copied_words, touched_chunk_ids
                    )
                self._copied_generation = generation
                return self.vectors
        # Read first: what is written while the copy is made is then applied afterwards.
        generation = self._collection.generation
        vector_index = self._read_vectors(stop_event)
        # The generation last: until then nobody takes what is there for up to date.
        self._copied_words, self.vectors = self._make_empty_copied_words(vector_index), vector_index
        self._copied_generation = generation
        self._collection.database.notices.subscribe(self._collection.name, self.apply_new_changes)
        return vector_index

    def _make_empty_copied_words(self, vector_index: VectorIndex) -> _CopiedWords:
        """Return no postings yet; the common ones are read in the background."""
        if self._common_words_reader is not None:
            self._common_words_reader.read_again()
        return _CopiedWords(vector_index.view)

    def _read_vectors(self, stop_event: threading.Event | None) -> VectorIndex:
        vector_index: VectorIndex | None = None
        for chunk_ids, page_vectors, metadatas in self._read_vector_pages():
            if stop_event is not None and stop_event.is_set():
                raise StoreUnusable("the copy of the vectors was given up")
            if vector_index is None:
                vector_index = VectorIndex(
                    self._filter_fields,
                    page_vectors.shape[1],
                    self._collection.count_chunks_and_tokens()[0],
                )
            vector_index.upsert_rows(chunk_ids, page_vectors, metadatas)
        return_free_memory()
        return vector_index or VectorIndex(self._filter_fields)

    def _update_changed_vectors(
        self, vector_index: VectorIndex, touched_chunk_ids: Sequence[str]
    ) -> None:
        present_ids = set()
        for chunk_ids, page_vectors, metadatas in self._read_vector_pages(touched_chunk_ids):
            vector_index.upsert_rows(chunk_ids, page_vectors, metadatas)
            present_ids.update(chunk_ids)
        vector_index.delete_rows(
            [chunk_id for chunk_id in touched_chunk_ids if chunk_id not in present_ids]
        )

    def _update_changed_words(
        self,
        vector_index: VectorIndex,
        copied_words: _CopiedWords,
        touched_chunk_ids: Sequence[str],
    ) -> _CopiedWords:
        """Return the postings with the new rows of these chunks; a view hides the old ones."""
        if len(
            touched_chunk_ids
        ) > _MAX_CHUNKS_UPDATED_AT_ONCE or not vector_index.view.keeps_row_numbers_of(
            copied_words.row_view
        ):
            return self._make_empty_copied_words(vector_index)
        new_postings_by_stem: dict[str, list[Posting]] = defaultdict(list)
        new_common_postings_by_stem: dict[str, list[Posting]] = defaultdict(list)
        row_number_by_chunk_id = vector_index.find_row_numbers(touched_chunk_ids)
        new_row_by_chunk: dict[int, int] = {}
        common_words = copied_words.common_words
        has_copied_words = bool(len(copied_words.postings_by_stem)) or common_words is not None
        if has_copied_words:
            for chunk_id, chunk_number, word_bytes, token_count in self._read_words(
                list(row_number_by_chunk_id)
            ):
                new_row_by_chunk[chunk_number] = row_number_by_chunk_id[chunk_id]
                for stem, occurrence_count in decode_words(word_bytes):
                    posting = (row_number_by_chunk_id[chunk_id], occurrence_count, token_count)
                    new_postings_by_stem[stem].append(posting)
                    # Of a chunk that comes later by number, this row is read then.
                    if common_words and chunk_number <= common_words.last_chunk_number:
                        new_common_postings_by_stem[stem].append(posting)
        for stem, postings in new_postings_by_stem.items():
            stem_postings = copied_words.postings_by_stem.get(stem)
            if stem_postings is not None:
                stem_postings.append_postings(postings)
        if common_words is not None:
            for stem, postings in new_common_postings_by_stem.items():
                common_words.append_postings(stem, postings)
        rows_by_chunk = copied_words.rows_by_chunk
        return _CopiedWords(
            vector_index.view,
            copied_words.postings_by_stem,
            # Without postings the numbers of these chunks were not read.
            rows_by_chunk.replace_rows(new_row_by_chunk)
            if rows_by_chunk and has_copied_words
            else None,
            common_words,
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
        # Under the lock: a change that is applied later adds its rows to these postings, and
        # one that was applied before is in what is read.
        with self._lock:
            if self.vectors is None or self._copied_words is None:
                return
            copied_words = self._copied_words
            missing_stems = [
                stem for stem in stems if copied_words.postings_by_stem.get(stem) is None
            ]
            rows_by_chunk = self._get_rows_by_chunk(self.vectors, copied_words)
            for stem, stem_postings in self._read_postings(rows_by_chunk, missing_stems):
                copied_words.postings_by_stem.put(stem, stem_postings)

    def _read_common_words(self, stop_event: threading.Event) -> None:
        """Read the postings of the commonest stems, in turns with searches."""
        common_words = self._start_common_words(stop_event)
        while common_words is not None and not (common_words.is_complete or stop_event.is_set()):
            start_time = time.monotonic()
            with self._lock:
                if self.vectors is None or self._copied_words is None:
                    return
                if self._copied_words.common_words is not common_words:
                    return  # dropped, and wanted again
                self._read_some_common_words(self.vectors, self._copied_words, common_words)
            # As long a pause as the turn took, so that at least half of the time is left to
            # searches.
            stop_event.wait(time.monotonic() - start_time)
        return_free_memory()

    def _start_common_words(self, stop_event: threading.Event) -> CommonWords | None:
        chunk_count_by_stem = self._collection.list_common_stems(_MAX_COMMON_STEMS)
        with self._lock:
            if self.vectors is None and not self._reads_vectors_in_advance:
                return None
            vector_index = self._update_vectors(stop_event)
            if (
                self._copied_words is None
                or self._copied_words.common_words is not None
                or not chunk_count_by_stem
            ):
                return None
            self._get_rows_by_chunk(vector_index, self._copied_words)
            self._copied_words.common_words = CommonWords(chunk_count_by_stem)
            return self._copied_words.common_words

    def _read_some_common_words(
        self, vector_index: VectorIndex, copied_words: _CopiedWords, common_words: CommonWords
    ) -> None:
        if common_words.has_all_chunks:
            for stem, stem_postings in common_words.pop_stems_with_postings(_STEMS_PER_TURN):
                if copied_words.postings_by_stem.get(stem) is None:
                    copied_words.postings_by_stem.put(stem, stem_postings)
            return
        try:
            with self._collection.lend_search_connection() as connection:
                word_rows = list(
                    connection.iterate_tuples(
                        f"SELECT chunk_number, tokens, words FROM {self._collection.chunks_table} "
                        "WHERE chunk_number > ? ORDER BY chunk_number LIMIT ?",
                        (common_words.last_chunk_number, _CHUNKS_PER_TURN),
                    )
                )
            if word_rows:
                common_words.add_chunks(
                    word_rows, self._get_rows_by_chunk(vector_index, copied_words)
                )
            else:
                common_words.mark_all_chunks_added()
        except BaseException:
            copied_words.common_words = None
            raise

    def _get_rows_by_chunk(
        self, vector_index: VectorIndex, copied_words: _CopiedWords
    ) -> RowsByChunk:
        if copied_words.rows_by_chunk is None:
            copied_words.rows_by_chunk = self._read_rows_by_chunk(vector_index)
        return copied_words.rows_by_chunk

    def _read_rows_by_chunk(self, vector_index: VectorIndex) -> RowsByChunk:
        with self._collection.lend_search_connection() as connection:
            ((chunk_ids, chunk_number_bytes),) = connection.iterate_tuples(
                "SELECT array_agg(id), string_agg(int8send(chunk_number), '') "
                f"FROM {self._collection.chunks_table}"
            )
        return RowsByChunk(
            np.frombuffer(chunk_number_bytes or b"", ">i8").astype(np.int64),
            vector_index.list_row_numbers(chunk_ids or []),
        )

    def _read_postings(
        self, rows_by_chunk: RowsByChunk, stems: Sequence[str]
    ) -> Iterator[tuple[str, StemPostings]]:
        if not stems:
            return
        with self._collection.lend_search_connection() as connection:
            # A stem is one row: of a common word, hundreds of thousands would cost more than
            # finding them. The three are in the same order, which is that of the rows inside.
            posting_rows = list(
                connection.iterate_tuples(
                    "SELECT place, number_bytes, occurrence_bytes, token_bytes FROM "
                    "unnest(?::text[]::tsquery[]) WITH ORDINALITY AS asked (query, place), "
                    "LATERAL (SELECT string_agg(int8send(chunk_number), '') AS number_bytes, "
                    "string_agg(int4send(occurrences), '') AS occurrence_bytes, "
                    "string_agg(int4send(tokens), '') AS token_bytes FROM (SELECT chunk_number, "
                    f"({OCCURRENCES_SQL.replace('?::tsquery', 'query')})::integer AS occurrences, "
                    f"tokens FROM {self._collection.chunks_table} WHERE words @@ query) "
                    "AS matching) AS found",
                    (list(map(quote_lexeme, stems)),),
                )
            )
        for (
            stem_number,
            chunk_number_bytes,
            occurrence_count_bytes,
            token_count_bytes,
        ) in posting_rows:
            yield (
                stems[stem_number - 1],
                StemPostings.make_from_columns(
                    # As in `CommonWords`, a chunk may have no row yet.
                    rows_by_chunk.find_row_numbers(
                        np.frombuffer(chunk_number_bytes or b"", ">i8").astype(np.int64)
                    ),
                    np.frombuffer(occurrence_count_bytes or b"", ">i4"),
                    np.frombuffer(token_count_bytes or b"", ">i4"),
                ),
            )

    def _read_vector_pages(
        self, chunk_ids: Sequence[str] | None = None
    ) -> Iterator[tuple[list[str], Any, list[Metadata]]]:
        column_field_names = self._collection.column_field_names
        field_columns_sql = "".join(f", field_{field_name}" for field_name in column_field_names)
        last_chunk_id = ""
        while True:
            with self._collection.lend_search_connection() as connection:
                vector_rows = list(
                    connection.iterate_tuples(
                        f"SELECT id, embedding{field_columns_sql} "
                        f"FROM {self._collection.vectors_table} "
                        f"WHERE id > ? {'AND id = ANY(?)' if chunk_ids is not None else ''} "
                        "ORDER BY id LIMIT ?",
                        (
                            last_chunk_id,
                            *([list(chunk_ids)] if chunk_ids is not None else []),
                            _ROWS_PER_PAGE,
                        ),
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
            last_chunk_id = vector_rows[-1][0]
