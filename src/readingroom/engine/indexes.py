"""Opens the index of a collection, wherever its chunks are kept."""

from pathlib import Path

from readingroom.core.filters import FilterFields
from readingroom.engine.context import ListContexts
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex, EmbeddedIndex
from readingroom.engine.shared_index import SharedIndex
from readingroom.storage.chunks import ChunkCollection
from readingroom.storage.postgres.chunks import PostgresCollection


def open_index(
    collection: ChunkCollection | PostgresCollection,
    fields: FilterFields,
    embedder: Embedder,
    words: Path,
    list_contexts: ListContexts | None = None,
) -> ChunkIndex:
    """Return the searchable index of a collection.

    `words` is where the word index of an embedded one lies; the shared database has its own. With
    `list_contexts`, chunks that an older release embedded without their context are embedded anew.
    """
    if isinstance(collection, PostgresCollection):
        return SharedIndex(collection, fields, embedder)
    return EmbeddedIndex(collection, fields, embedder, words, list_contexts)
