"""What a passage stands under: the title and the headings that are embedded before its text.

Alone a passage may not say what it is about: "One space in twenty is for cycles that do not fit a
common stand" does not name parking. Each chunk records the context that its vector was made with,
so vectors of releases that embedded the bare text are known, and made anew.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from readingroom.core.filters import Metadata
from readingroom.engine.embedding.embedder import Embedder
from readingroom.storage.chunks import Chunks

CONTEXT_FIELD = "embedded_under"
"""The name of the context in a chunk's metadata; a chunk without it was embedded bare."""
_CHUNKS_EMBEDDED_ANEW = 64  # at a time: a shutdown waits for no more
_MAX_CONTEXT = 160  # characters; the model reads about 1,000, and a chunk has 800 of its own


def make_context(headings: Iterable[str]) -> str:
    """Return the title and headings above a passage, outermost first, each of them once."""
    names = dict.fromkeys(" ".join(heading.split()) for heading in headings)
    return ". ".join(name for name in names if name)[:_MAX_CONTEXT].strip()


def put_in_context(context: str, text: str) -> str:
    """Return what is embedded of a passage."""
    return f"{context}\n{text}" if context else text


ListContexts = Callable[[Chunks], Sequence[str]]
"""Returns what each of a collection's chunks stands under."""


def list_bare_chunks(chunks: Chunks, list_contexts: ListContexts) -> list[dict[str, str]]:
    """Return the contexts of chunks that were embedded without one, by id, some at a time."""
    contexts = zip(chunks.ids, chunks.metadatas, list_contexts(chunks), strict=True)
    bare = [(id, context) for id, metadata, context in contexts if CONTEXT_FIELD not in metadata]
    starts = range(0, len(bare), _CHUNKS_EMBEDDED_ANEW)
    return [dict(bare[start : start + _CHUNKS_EMBEDDED_ANEW]) for start in starts]


def embed_anew(chunks: Chunks, contexts: Mapping[str, str], embedder: Embedder) -> Chunks:
    """Return chunks with their contexts, and with the vectors that these make."""
    pairs = zip(chunks.ids, chunks.texts, strict=True)
    texts = [put_in_context(contexts[id], text) for id, text in pairs]
    metadatas: list[Metadata] = [
        {**metadata, CONTEXT_FIELD: contexts[id]}
        for id, metadata in zip(chunks.ids, chunks.metadatas, strict=True)
    ]
    return Chunks(chunks.ids, chunks.texts, metadatas, embedder.embed_batch(texts))


def select_unchanged(renewed: Chunks, current: Chunks) -> Chunks:
    """Return the renewed chunks whose text is still there, with the metadata of now."""
    metadatas = dict(zip(current.ids, current.metadatas, strict=True))
    texts = dict(zip(current.ids, current.texts, strict=True))
    rows = [
        row
        for row, (id, text) in enumerate(zip(renewed.ids, renewed.texts, strict=True))
        if texts.get(id) == text and CONTEXT_FIELD not in metadatas[id]
    ]
    return Chunks(
        [renewed.ids[row] for row in rows],
        [renewed.texts[row] for row in rows],
        [
            {
                **metadatas[renewed.ids[row]],
                CONTEXT_FIELD: renewed.metadatas[row][CONTEXT_FIELD],
            }
            for row in rows
        ],
        renewed.vectors[rows],
    )
