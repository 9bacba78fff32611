"""Embeds a document's chunks in small batches, so that searches and cancelling need not wait."""

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from readingroom.core.progress import ReportProgress
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.vectors import DIMENSIONS
from readingroom.ingest.document import Document

Vectors = NDArray[np.float32]

_BATCH_CHUNKS = 64  # chunks between two progress reports, and between two chances to be cancelled


async def embed_document(document: Document, embedder: Embedder, report: ReportProgress) -> Vectors:
    """Return the vectors of the document's chunks, in the rows_by_length of the chunks."""
    texts = [document.get_chunk_text(chunk) for chunk in document.chunks]
    # Batches of texts of similar length waste no work on padding.
    rows_by_length = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    vectors = np.empty((len(texts), DIMENSIONS), np.float32)
    for batch_start in range(0, len(rows_by_length), _BATCH_CHUNKS):
        batch_rows = rows_by_length[batch_start : batch_start + _BATCH_CHUNKS]
        # abandon_on_cancel: a cancelled ingest ends now, and the batch's result is thrown away.
        vectors[batch_rows] = await anyio.to_thread.run_sync(
            embedder.embed_batch, [texts[row] for row in batch_rows], abandon_on_cancel=True
        )
        done_count = batch_start + len(batch_rows)
        await report(
            done_count,
            len(rows_by_length),
            f"embedded {done_count} of {len(rows_by_length)} chunks",
        )
    return vectors
