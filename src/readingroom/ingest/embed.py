"""Embeds a document's chunks in small batches, so that searches and cancelling need not wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import anyio.to_thread

from readingroom.core.arrays import Floats, Vector, np
from readingroom.core.progress import ReportProgress
from readingroom.engine.context import make_heading_context, prepend_context
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.waiting_texts import WorkerAidedEmbedder
from readingroom.engine.vectors import DIMENSIONS
from readingroom.ingest.document import Document

# Between two progress reports, and between two chances to be cancelled.
_TEXTS_PER_BATCH = 64


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """The vectors of a document's chunks, and the context that each was embedded under."""

    contexts: list[str]
    vectors: Floats


async def embed_document(
    parsed_document: Document,
    document_title: str,
    embedder: Embedder,
    report_progress: ReportProgress,
    known_vectors_by_text: Mapping[str, Vector] = MappingProxyType({}),
) -> EmbeddedChunks:
    """Return the vectors of the document's chunks, in the order of the chunks.

    Each chunk is embedded under the document's title and the headings above it.
    `known_vectors_by_text` has, by what was embedded, those that were made before; nothing is
    embedded twice.
    """
    chunk_contexts = list_chunk_contexts(parsed_document, document_title)
    texts_to_embed = [
        prepend_context(chunk_context, parsed_document.get_chunk_text(chunk))
        for chunk_context, chunk in zip(chunk_contexts, parsed_document.chunks, strict=True)
    ]
    vectors_by_text = dict(known_vectors_by_text)
    # Batches of texts of similar length waste no work on padding.
    texts_without_vector = sorted(
        {text_to_embed for text_to_embed in texts_to_embed if text_to_embed not in vectors_by_text},
        key=lambda text_to_embed: (len(text_to_embed), text_to_embed),
    )
    reused_vector_count = len(texts_to_embed) - len(texts_without_vector)
    are_workers_helping = False
    for batch_start in range(0, len(texts_without_vector), _TEXTS_PER_BATCH):
        if isinstance(embedder, WorkerAidedEmbedder) and not are_workers_helping:
            # All that is left at once: workers take more at a time than is embedded here.
            are_workers_helping = await anyio.to_thread.run_sync(
                embedder.offer_to_workers, texts_without_vector[batch_start:]
            )
        batch_texts = texts_without_vector[batch_start : batch_start + _TEXTS_PER_BATCH]
        # abandon_on_cancel: a cancelled ingest ends now, and the batch's result is thrown away.
        batch_vectors = await anyio.to_thread.run_sync(
            embedder.embed_batch, batch_texts, abandon_on_cancel=True
        )
        vectors_by_text.update(zip(batch_texts, batch_vectors, strict=True))
        embedded_chunk_count = reused_vector_count + batch_start + len(batch_texts)
        await report_progress(
            embedded_chunk_count,
            len(texts_to_embed),
            f"embedded {embedded_chunk_count} of {len(texts_to_embed)} chunks",
        )
    chunk_vectors = np.array(
        [vectors_by_text[text_to_embed] for text_to_embed in texts_to_embed], np.float32
    )
    return EmbeddedChunks(chunk_contexts, chunk_vectors.reshape(len(texts_to_embed), DIMENSIONS))


def list_chunk_contexts(parsed_document: Document, document_title: str) -> list[str]:
    """Return the context of each chunk: the title, and the headings of the sections it lies in."""
    section_titles_by_ref = {
        document_section.ref: document_section.title
        for document_section in parsed_document.sections
    }
    return [
        make_heading_context(
            [
                document_title,
                *(section_titles_by_ref.get(section_ref, "") for section_ref in chunk.section_path),
            ]
        )
        for chunk in parsed_document.chunks
    ]
