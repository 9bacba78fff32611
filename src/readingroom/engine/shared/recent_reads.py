"""Remembers what was read of chunks until their collection changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from readingroom.core.lru import LRUCache
from readingroom.storage.postgres.chunks import PostgresCollection

ChunkReadT = TypeVar("ChunkReadT")

_MAX_RECENT_READS = 4_096  # with their vectors about 14 MB


class RecentReads(Generic[ChunkReadT]):
    """What was read of chunks at one generation of their collection, and is forgotten at the next.

    The same passages answer again and again.
    """

    def __init__(self, collection: PostgresCollection) -> None:
        self._collection = collection
        self._generation_and_cache: tuple[int, LRUCache[str, ChunkReadT]] = (
            -1,
            LRUCache(_MAX_RECENT_READS),
        )

    def read_through_cache(
        self, chunk_ids: Sequence[str], read_chunks: Callable[[list[str]], Mapping[str, ChunkReadT]]
    ) -> dict[str, ChunkReadT]:
        """Return what is known of these chunks; `read_chunks` reads what is not known yet."""
        if self._collection.database.is_in_transaction:
            return dict(read_chunks(list(chunk_ids)))
        # Before reading: what is committed meanwhile gets into no memory of a later generation.
        generation = self._collection.generation
        if self._generation_and_cache[0] != generation:
            self._generation_and_cache = (generation, LRUCache(_MAX_RECENT_READS))
        cached_generation, cache = self._generation_and_cache
        if cached_generation != generation:
            return dict(read_chunks(list(chunk_ids)))
        chunk_reads_by_id = {
            chunk_id: chunk_read
            for chunk_id in chunk_ids
            if (chunk_read := cache.get(chunk_id)) is not None
        }
        missing_ids = [chunk_id for chunk_id in chunk_ids if chunk_id not in chunk_reads_by_id]
        if missing_ids:
            for chunk_id, chunk_read in read_chunks(missing_ids).items():
                chunk_reads_by_id[chunk_id] = chunk_read
                cache.put(chunk_id, chunk_read)
        return chunk_reads_by_id
