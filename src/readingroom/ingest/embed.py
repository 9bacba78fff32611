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
_CHUNKS_PER_BATCH = 64


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
    embedded_texts = [
        prepend_context(chunk_context, parsed_document.get_chunk_text(chunk))
        for chunk_context, chunk in zip(chunk_contexts, parsed_document.chunks, strict=True)
    ]
    vectors_by_text = dict(known_vectors_by_text)
    # Batches of texts of similar length waste no work on padding.
    new_texts = sorted(
        {embedded_text for embedded_text in embedded_texts if embedded_text not in vectors_by_text},
        key=lambda embedded_text: (len(embedded_text), embedded_text),
    )
    reused_count = len(embedded_texts) - len(new_texts)
    has_workers = False
    for batch_start in range(0, len(new_texts), _CHUNKS_PER_BATCH):
        if isinstance(embedder, WorkerAidedEmbedder) and not has_workers:
            # All that is left at once: workers take more at a time than is embedded here.
            has_workers = await anyio.to_thread.run_sync(
                embedder.offer_to_workers, new_texts[batch_start:]
            )
        batch_texts = new_texts[batch_start : batch_start + _CHUNKS_PER_BATCH]
        # abandon_on_cancel: a cancelled ingest ends now, and the batch's result is thrown away.
        batch_vectors = await anyio.to_thread.run_sync(
            embedder.embed_batch, batch_texts, abandon_on_cancel=True
        )
        vectors_by_text.update(zip(batch_texts, batch_vectors, strict=True))
        done_count = reused_count + batch_start + len(batch_texts)
        await report_progress(
            done_count,
            len(embedded_texts),
            f"embedded {done_count} of {len(embedded_texts)} chunks",
        )
    vector_rows = np.array(
        [vectors_by_text[embedded_text] for embedded_text in embedded_texts], np.float32
    )
    return EmbeddedChunks(chunk_contexts, vector_rows.reshape(len(embedded_texts), DIMENSIONS))


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
