"""The searchable index of a collection in the shared database: nothing to keep in step.

Words are ranked by BM25 in plain SQL. Vectors are compared exactly in SQL where few chunks pass a
filter; where many do, in a copy that this process keeps of all vectors. The generation of the
collection decides whether that copy is up to date, at every search.
"""

import json
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readingroom.core.filters import Filter, FilterFields, Metadata
from readingroom.core.lru import LRUCache
from readingroom.engine.context import ListContexts
from readingroom.engine.embedding.embedder import Embedder, Vector
from readingroom.engine.embedding.machine import return_memory
from readingroom.engine.index import ChunkIndex, CollectionIndex, EmbeddedIndex
from readingroom.engine.lexical import LexicalHit, LexicalStatistics
from readingroom.engine.stems import shared_stemmer
from readingroom.engine.vectors import DIMENSIONS, VectorHit, VectorIndex
from readingroom.engine.words import LexicalQuery, parse_query
from readingroom.storage.archive import fill_chunks
from readingroom.storage.chunks import ChunkCollection, Chunks
from readingroom.storage.postgres.chunks import PostgresCollection
from readingroom.storage.postgres.encoding import build_clauses, decode_vectors, format_vector

EXACT_ROWS = 8_000
"""Chunks that may pass a filter for their vectors to be compared in SQL."""
RANKED_ROWS = 12_000
"""Chunks that a search by words may rank; of more, those with the rarest words are."""
_CANDIDATES = 400
_K1, _B = 1.2, 0.75
_BELIEVED_SECONDS = 1.0
_COUNT_SECONDS = 5.0
"""How long it is believed how many chunks pass a filter: it only chooses how to search."""
_ROWS_PER_PAGE = 20_000


def open_index(
    collection: ChunkCollection | PostgresCollection,
    filter_fields: FilterFields,
    embedder: Embedder,
    words_path: Path,
    list_contexts: ListContexts | None = None,
) -> ChunkIndex:
    """Return the searchable index of a collection.

    `words_path` is where the word index of an embedded one lies; the shared database has its
    own. With `list_contexts`, chunks that an older release embedded without their
    context are embedded anew.
    """
    if isinstance(collection, PostgresCollection):
        return SharedIndex(collection, filter_fields, embedder)
    return EmbeddedIndex(collection, filter_fields, embedder, words_path, list_contexts)


class SharedIndex(CollectionIndex):
    """The index of a collection that several processes read and write."""

    collection: PostgresCollection

    def __init__(
        self, collection: PostgresCollection, filter_fields: FilterFields, embedder: Embedder
    ) -> None:
        collection.split_stems = shared_stemmer().split_all
        self.collection = collection
        self.embedder = embedder
        self._counts = _WordCounts(collection)
        passing = _PassingCounts(collection, filter_fields)
        self._vectors = _SharedVectors(collection, filter_fields, passing, self._counts)
        self._words = _SharedWords(collection, filter_fields, passing, self._counts)
        self._is_claimed = False

    def put(self, chunks: Chunks) -> None:
        """Add chunks with their vectors, in place of those with the same ids.

        Raise `EmbeddingMismatch` when another model made the vectors of this collection.
        """
        if len(chunks):
            self.collection.claim_embedding(self.embedder.identity)
            self.collection.upsert(chunks)

    def update_metadata(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        self.collection.update_metadata(ids, metadatas)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        if ids:
            self.collection.delete(ids)

    def fetch(self, ids: Sequence[str]) -> Chunks:
        """Return the chunks with these ids, without vectors; unknown ids are left out."""
        chunks = self.collection.get(ids)
        places = {chunk_id: chunk_place for chunk_place, chunk_id in enumerate(chunks.ids)}
        order = [places[chunk_id] for chunk_id in ids if chunk_id in places]
        return Chunks(
            [chunks.ids[chunk_place] for chunk_place in order],
            [chunks.texts[chunk_place] for chunk_place in order],
            [chunks.metadatas[chunk_place] for chunk_place in order],
        )

    def vectors(self) -> "_SharedVectors":
        """Return what finds chunks by meaning."""
        return self._vectors

    def words(self) -> "_SharedWords":
        """Return what finds chunks by words."""
        return self._words

    def rebuild(self) -> None:
        """Count the words anew, and drop this process's copy of the vectors."""
        self.collection.recount()
        self._counts.forget()
        self._vectors.forget()

    def list_warm_up_steps(self) -> Sequence[Callable[[], object]]:
        """Return what loads the model; the database needs no warming up."""
        return (self.embedder.load,) if self.count() else ()

    def fill(self, dump_path: Path, validate: Callable[[Chunks], object]) -> int:
        """Add the chunks that `dump` wrote, and return how many there are."""
        return fill_chunks(dump_path, self.collection, validate, DIMENSIONS)

    def close(self) -> None:
        """Drop the copy of the vectors."""
        self._vectors.forget()

    def _embed(self, query: str) -> Vector:
        vector = self.embedder.embed(query)
        # Once claimed, a collection keeps its model; asked again only until then.
        if not self._is_claimed and self.collection.embedding is not None:
            self.collection.claim_embedding(self.embedder.identity)
            self._is_claimed = True
        return vector


class _WordCounts:
    """How common words are: believed for a second, since it only weighs them.

    That there is none is never believed: what was just written must be found.
    """

    def __init__(self, collection: PostgresCollection) -> None:
        self._collection = collection
        self._totals = (0.0, 0, 0)
        self._stems: LRUCache[str, tuple[float, int]] = LRUCache(10_000)

    def read_totals(self) -> tuple[int, int]:
        """Return how many chunks there are, and how many words all of them have."""
        read_at, chunks, tokens = self._totals
        if not chunks or time.monotonic() - read_at > _BELIEVED_SECONDS:
            chunks, tokens = self._collection.read_totals()
            self._totals = (time.monotonic(), chunks, tokens)
        return chunks, tokens

    def count_stems(self, stems: Sequence[str]) -> dict[str, int]:
        """Return in how many chunks each stem occurs, without those that occur in none."""
        now = time.monotonic()
        cached_counts = {
            stem: cached_count
            for stem in stems
            if (cached_count := self._stems.get(stem)) is not None
        }
        chunk_counts = {
            stem: count
            for stem, (read_at, count) in cached_counts.items()
            if now - read_at <= _BELIEVED_SECONDS
        }
        missing = [stem for stem in stems if stem not in chunk_counts]
        if missing:
            for stem, count in self._collection.count_stems(missing).items():
                chunk_counts[stem] = count
                self._stems.put(stem, (now, count))
        return chunk_counts

    def forget(self) -> None:
        self._totals = (0.0, 0, 0)
        self._stems = LRUCache(10_000)


class _PassingCounts:
    """How many chunks pass a filter, as far as that matters."""

    def __init__(self, collection: PostgresCollection, filter_fields: FilterFields) -> None:
        self._collection = collection
        self._fields = filter_fields
        self._known: LRUCache[Filter, tuple[float, int]] = LRUCache(256)

    def count(self, where: Filter | None) -> int:
        """Return how many chunks pass; a number above `EXACT_ROWS` may be too low."""
        if where is None:
            return self._collection.read_totals()[0]
        cached_count = self._known.get(where)
        if cached_count is not None and time.monotonic() - cached_count[0] < _COUNT_SECONDS:
            return cached_count[1]
        clauses, clause_values = build_clauses(
            self._fields.parse(where), self._collection.field_names
        )
        with self._collection.read() as connection:
            count_row = connection.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM {self._collection.vectors_table} "
                f"WHERE {' AND '.join(clauses) or 'true'} LIMIT ?) AS passing",
                (*clause_values, 4 * EXACT_ROWS),
            ).fetchone()
        self._known.put(where, (time.monotonic(), count_row[0]))
        return int(count_row[0])


@dataclass(eq=False)
class _SharedSearch:
    """What searching by meaning and by words have in common: a collection and its counts."""

    _collection: PostgresCollection
    _fields: FilterFields
    _passing: _PassingCounts
    _counts: _WordCounts


@dataclass(eq=False)
class _SharedVectors(_SharedSearch):
    """Finds chunks by meaning: in the database, or in a copy of its vectors."""

    _copy: VectorIndex | None = None
    _copy_generation: int = -1
    _copying: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return self._counts.read_totals()[0]

    def search(self, vector: Vector, k: int, where: Filter | None = None) -> list[VectorHit]:
        """Return the k nearest chunks that pass the filter, nearest first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        if not k:
            return []
        if self._passing.count(where) > EXACT_ROWS:
            return self._open_copy().search(vector, k, where)
        clauses, clause_values = build_clauses(
            self._fields.parse(where), self._collection.field_names
        )
        with self._collection.read() as connection:
            hit_rows = connection.execute(
                f"SELECT id, embedding <-> ?::vector AS distance FROM "
                f"{self._collection.vectors_table} WHERE {' AND '.join(clauses) or 'true'} "
                "ORDER BY distance, id LIMIT ?",
                (format_vector(vector), *clause_values, k),
            ).fetchall()
        return [VectorHit(hit_row[0], hit_row[1] * hit_row[1]) for hit_row in hit_rows]

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of these chunks, without those that do not exist."""
        with self._collection.read() as connection:
            vector_rows = list(
                connection.iterate_tuples(
                    f"SELECT id, embedding FROM {self._collection.vectors_table} WHERE id = ANY(?)",
                    (list(ids),),
                )
            )
        return dict(
            zip(
                (vector_row[0] for vector_row in vector_rows),
                decode_vectors([vector_row[1] for vector_row in vector_rows]),
                strict=True,
            )
        )

    def forget(self) -> None:
        """Drop the copy; it is read again when it is needed."""
        self._collection.database.notices.unsubscribe(self._collection.name, self.follow_changes)
        with self._copying:
            self._copy = None
            self._copy_generation = -1

    def follow_changes(self) -> None:
        """Apply what other processes have written to the copy, so that no search has to."""
        if self._copy is not None:
            self._open_copy()

    def _open_copy(self) -> VectorIndex:
        """Return the copy with everything that was committed before this call."""
        vector_copy = self._copy
        if vector_copy is not None and self._collection.generation == self._copy_generation:
            return vector_copy
        with self._copying:
            if self._copy is not None:
                generation, touched_ids = self._collection.list_changes(self._copy_generation)
                if touched_ids is not None:
                    self._apply_changes(self._copy, touched_ids)
                    self._copy_generation = generation
                    return self._copy
            # Read first: what is written while the copy is made is then applied afterwards.
            self._copy_generation = self._collection.generation
            self._copy = self._make_copy()
        self._collection.database.notices.subscribe(self._collection.name, self.follow_changes)
        return self._copy

    def _make_copy(self) -> VectorIndex:
        vector_copy: VectorIndex | None = None
        for chunk_ids, vectors, metadatas in self._read_pages():
            if vector_copy is None:
                vector_copy = VectorIndex(
                    self._fields, vectors.shape[1], self._collection.read_totals()[0]
                )
            vector_copy.upsert(chunk_ids, vectors, metadatas)
        return_memory()
        return vector_copy or VectorIndex(self._fields)

    def _apply_changes(self, vector_copy: VectorIndex, touched_ids: Sequence[str]) -> None:
        present = set()
        for chunk_ids, vectors, metadatas in self._read_pages(touched_ids):
            vector_copy.upsert(chunk_ids, vectors, metadatas)
            present.update(chunk_ids)
        vector_copy.delete([chunk_id for chunk_id in touched_ids if chunk_id not in present])

    def _read_pages(
        self, ids: Sequence[str] | None = None
    ) -> Iterator[tuple[list[str], Any, list[Metadata]]]:
        field_names = self._collection.field_names
        field_columns = "".join(f", field_{field_name}" for field_name in field_names)
        last_id = ""
        while True:
            with self._collection.read() as connection:
                vector_rows = list(
                    connection.iterate_tuples(
                        f"SELECT id, embedding{field_columns} "
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
                        for field_name, field_value in zip(field_names, vector_row[2:], strict=True)
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


@dataclass(frozen=True, slots=True)
class _RankedStem:
    stem: str
    chunks: int
    """In how many chunks it occurs."""
    rarity: float


class _SharedWords(_SharedSearch):
    """Finds chunks by words: BM25 in plain SQL, with the numbers that FTS5 ranks by.

    `ts_rank` of one stem is a function of how often it occurs: the sum of the first squares'
    reciprocals, over that of all. So SQL gets back the count, which it has no function for.
    """

    def __len__(self) -> int:
        return self._collection.read_totals()[0]

    def statistics(self) -> LexicalStatistics:
        """Return how common words are in this index."""
        chunks, tokens = self._counts.read_totals()
        return LexicalStatistics(chunks, tokens / max(chunks, 1), self._counts.count_stems)

    def search(self, query: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """Return the k best chunks that pass the filter, best first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k must be at least 0, not {k}")
        conditions = build_clauses(self._fields.parse(where), self._collection.field_names)
        parsed_query = parse_query(query)
        chunks, tokens = self._counts.read_totals()
        if not k or not chunks:
            return []
        stems = self._find_stems(parsed_query, chunks)
        average = tokens / chunks
        if parsed_query.phrases:
            phrases = [_format_phrase(phrase) for phrase in parsed_query.phrases]
            return self._rank(" | ".join(phrases), stems, average, conditions, k)
        if not stems:
            return []
        share = min(1.0, self._passing.count(where) / chunks)
        if sum(stem.chunks for stem in stems) * share <= RANKED_ROWS:
            return self._rank(_join_stems(stems), stems, average, conditions, k)
        return self._rank_candidates(stems, average, conditions, k, share)

    def _rank_candidates(
        self,
        stems: Sequence[_RankedStem],
        average: float,
        conditions: tuple[list[str], list[Any]],
        k: int,
        share: float,
    ) -> list[LexicalHit]:
        """Rank by all stems what the rarest of them find; search the next where that is little."""
        candidate_limit = max(_CANDIDATES, 3 * k)
        hits: dict[str, LexicalHit] = {}
        stem_group: list[_RankedStem] = []
        for stem_place, stem in enumerate(stems):
            stem_group.append(stem)
            row_estimate = sum(member.chunks for member in stem_group) * share
            next_rows = stems[stem_place + 1].chunks * share if stem_place + 1 < len(stems) else 0
            if next_rows and row_estimate + next_rows <= RANKED_ROWS:
                continue
            group_hits = self._rank(
                _join_stems(stem_group), stems, average, conditions, candidate_limit
            )
            hits |= {hit.id: hit for hit in group_hits}
            if len(hits) >= candidate_limit // 3:
                break
            stem_group = []
        return sorted(hits.values(), key=lambda hit: (-hit.score, hit.id))[:k]

    def _find_stems(self, query: LexicalQuery, chunks: int) -> list[_RankedStem]:
        """Return the stems of a query that occur at all, rarest first."""
        query_text = " ".join((*query.words, *query.phrases))
        chunk_counts = self._counts.count_stems(
            list(dict.fromkeys(shared_stemmer().split_all(query_text)))
        )
        # The counts may be a moment older or younger than the number of chunks.
        chunks = max(chunks, *chunk_counts.values(), 0)
        ranked = [
            # As in FTS5: a word of most chunks would count against a match.
            _RankedStem(stem, count, max(math.log((chunks - count + 0.5) / (count + 0.5)), 1e-6))
            for stem, count in chunk_counts.items()
        ]
        return sorted(ranked, key=lambda stem: (stem.chunks, stem.stem))

    def _rank(
        self,
        tsquery: str,
        stems: Sequence[_RankedStem],
        average: float,
        conditions: tuple[list[str], list[Any]],
        limit: int,
    ) -> list[LexicalHit]:
        """Return the best chunks that match a tsquery, ranked by all stems."""
        clauses, clause_values = conditions
        chunks_table = self._collection.chunks_table
        count_columns = ", ".join(
            f"round(0.6079271 / (1 - ts_rank(words, ?::tsquery)) - 0.5) AS count_{stem_number}"
            for stem_number in range(len(stems))
        )
        score_sql = " + ".join(
            f"?::float8 * count_{stem_number} * {_K1 + 1} / (count_{stem_number} + relative_length)"
            for stem_number in range(len(stems))
        )
        with self._collection.read() as connection:
            hit_rows = connection.execute(
                f"SELECT id, {score_sql or '0.0'} AS score FROM (SELECT id, "
                f"{_K1} * ({1 - _B} + {_B} * tokens / ?) AS relative_length"
                f"{', ' + count_columns if count_columns else ''} FROM {chunks_table} "
                "WHERE words @@ ?::tsquery "
                f"{''.join(f'AND {clause} ' for clause in clauses)} OFFSET 0) AS matching "
                "ORDER BY score DESC, id LIMIT ?",
                (
                    # As values, so that the statement is the same for so many stems.
                    *(stem.rarity for stem in stems),
                    max(average, 1e-9),
                    *(_quote_lexeme(stem.stem) for stem in stems),
                    tsquery,
                    *clause_values,
                    limit,
                ),
            ).fetchall()
        return [LexicalHit(hit_row[0], float(hit_row[1])) for hit_row in hit_rows]


def _join_stems(stems: Sequence[_RankedStem]) -> str:
    return " | ".join(_quote_lexeme(stem.stem) for stem in stems)


def _format_phrase(phrase: str) -> str:
    """Return a tsquery for words that follow each other."""
    stems = shared_stemmer().split_all(phrase)
    return "(" + " <-> ".join(map(_quote_lexeme, stems)) + ")"


def _quote_lexeme(stem: str) -> str:
    """Return a stem so that no character of it is taken for an operator."""
    return "'" + stem.replace("\\", "\\\\").replace("'", "''") + "'"
