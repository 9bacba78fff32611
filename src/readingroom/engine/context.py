"""What a passage stands under: the title and the headings that are embedded before its text.

Alone a passage may not say what it is about: "One space in twenty is for cycles that do not fit a
common stand" does not name parking. Each chunk records the context that its vector was made with,
so vectors of releases that embedded the bare text are known, and made anew.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from readingroom.core.filters import Metadata
from readingroom.engine.embedding.embedder import Embedder
from readingroom.storage.chunks import Chunks

CONTEXT_FIELD_NAME = "embedded_under"
"""The name of the context in a chunk's metadata; a chunk without it was embedded bare."""
_CONTEXTS_PER_BATCH = 64  # at a time: a shutdown waits for no more
_MAX_HEADING_CONTEXT_CHARS = (
    160  # characters; the model reads about 1,000, and a chunk has 800 of its own
)


def make_heading_context(headings: Iterable[str]) -> str:
    """Return the title and headings above a passage, outermost first, each of them once."""
    unique_headings = dict.fromkeys(" ".join(heading.split()) for heading in headings)
    return ". ".join(unique_heading for unique_heading in unique_headings if unique_heading)[
        :_MAX_HEADING_CONTEXT_CHARS
    ].strip()


def prepend_context(heading_context: str, passage_text: str) -> str:
    """Return what is embedded of a passage."""
    return f"{heading_context}\n{passage_text}" if heading_context else passage_text


def list_embedded_texts(chunks: Chunks) -> list[str]:
    """Return what is embedded of each chunk."""
    return [
        prepend_context(str(metadata.get(CONTEXT_FIELD_NAME, "")), chunk_text)
        for chunk_text, metadata in zip(chunks.texts, chunks.metadatas, strict=True)
    ]


ListContexts = Callable[[Chunks], Sequence[str]]
"""Returns what each of a collection's chunks stands under."""


def batch_missing_contexts(chunks: Chunks, list_contexts: ListContexts) -> list[dict[str, str]]:
    """Return the contexts of chunks that were embedded without one, by id, some at a time."""
    ids_metadatas_contexts = zip(chunks.ids, chunks.metadatas, list_contexts(chunks), strict=True)
    ids_with_contexts = [
        (chunk_id, heading_context)
        for chunk_id, metadata, heading_context in ids_metadatas_contexts
        if CONTEXT_FIELD_NAME not in metadata
    ]
    batch_start_indexes = range(0, len(ids_with_contexts), _CONTEXTS_PER_BATCH)
    return [
        dict(ids_with_contexts[batch_start_index : batch_start_index + _CONTEXTS_PER_BATCH])
        for batch_start_index in batch_start_indexes
    ]


def embed_in_context(
    chunks: Chunks, contexts_by_id: Mapping[str, str], embedder: Embedder
) -> Chunks:
    """Return chunks with their contexts, and with the vectors that these make."""
    ids_with_texts = zip(chunks.ids, chunks.texts, strict=True)
    texts_in_context = [
        prepend_context(contexts_by_id[chunk_id], chunk_text)
        for chunk_id, chunk_text in ids_with_texts
    ]
    metadatas: list[Metadata] = [
        {**metadata, CONTEXT_FIELD_NAME: contexts_by_id[chunk_id]}
        for chunk_id, metadata in zip(chunks.ids, chunks.metadatas, strict=True)
    ]
    return Chunks(chunks.ids, chunks.texts, metadatas, embedder.embed_batch(texts_in_context))


def select_unchanged_chunks(renewed_chunks: Chunks, current_chunks: Chunks) -> Chunks:
    """Return the renewed chunks whose text is still there, with the metadata of now."""
    current_metadata_by_id = dict(zip(current_chunks.ids, current_chunks.metadatas, strict=True))
    current_text_by_id = dict(zip(current_chunks.ids, current_chunks.texts, strict=True))
    unchanged_indexes = [
        renewed_index
        for renewed_index, (chunk_id, chunk_text) in enumerate(
            zip(renewed_chunks.ids, renewed_chunks.texts, strict=True)
        )
        if current_text_by_id.get(chunk_id) == chunk_text
        and CONTEXT_FIELD_NAME not in current_metadata_by_id[chunk_id]
    ]
    return Chunks(
        [renewed_chunks.ids[renewed_index] for renewed_index in unchanged_indexes],
        [renewed_chunks.texts[renewed_index] for renewed_index in unchanged_indexes],
        [
            {
                **current_metadata_by_id[renewed_chunks.ids[renewed_index]],
                CONTEXT_FIELD_NAME: renewed_chunks.metadatas[renewed_index][CONTEXT_FIELD_NAME],
            }
            for renewed_index in unchanged_indexes
        ],
        renewed_chunks.vectors[unchanged_indexes],
    )
