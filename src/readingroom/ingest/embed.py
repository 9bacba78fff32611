"""Embeds a document's chunks in small batches, so that searches and cancelling need not wait."""

from collections.abc import Mapping
from types import MappingProxyType

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from readingroom.core.progress import ReportProgress
from readingroom.engine.embedding.embedder import Embedder, Vector
from readingroom.engine.vectors import DIMENSIONS
from readingroom.ingest.document import Document

Vectors = NDArray[np.float32]

_BATCH_CHUNKS = 64  # chunks between two progress reports, and between two chances to be cancelled


async def embed_document(
    document: Document,
    embedder: Embedder,
    report: ReportProgress,
    known_vectors: Mapping[str, Vector] = MappingProxyType({}),
) -> Vectors:
    """Return the vectors of the document's chunks, in the order of the chunks.

    `known_vectors` has, by text, those that were made before; no text is embedded twice.
    """
    texts = [document.get_chunk_text(chunk) for chunk in document.chunks]
    vectors = dict(known_vectors)
    # Batches of texts of similar length waste no work on padding.
    new_texts = sorted(
        {text for text in texts if text not in vectors}, key=lambda text: (len(text), text)
    )
    reused_count = len(texts) - len(new_texts)
    for batch_start in range(0, len(new_texts), _BATCH_CHUNKS):
        batch_texts = new_texts[batch_start : batch_start + _BATCH_CHUNKS]
        # abandon_on_cancel: a cancelled ingest ends now, and the batch's result is thrown away.
        batch_vectors = await anyio.to_thread.run_sync(
            embedder.embed_batch, batch_texts, abandon_on_cancel=True
        )
        vectors.update(zip(batch_texts, batch_vectors, strict=True))
        done_count = reused_count + batch_start + len(batch_texts)
        await report(done_count, len(texts), f"embedded {done_count} of {len(texts)} chunks")
    return np.array([vectors[text] for text in texts], np.float32).reshape(len(texts), DIMENSIONS)
