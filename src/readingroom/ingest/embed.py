"""A document's chunks as vectors, made in small steps: searches and cancelling come in between."""

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from readingroom.core.progress import ReportProgress
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.vectors import DIMENSIONS
from readingroom.ingest.document import Document

Vectors = NDArray[np.float32]

_SLICE = 64  # chunks embedded between two reports, and between two chances to be cancelled


async def embedded(document: Document, embedder: Embedder, report: ReportProgress) -> Vectors:
    """The vectors of the chunks, in their order."""
    texts = [document.text_of(chunk) for chunk in document.chunks]
    # Texts of one length side by side waste no work on padding.
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    vectors = np.empty((len(texts), DIMENSIONS), np.float32)
    for first in range(0, len(order), _SLICE):
        rows = order[first : first + _SLICE]
        vectors[rows] = await anyio.to_thread.run_sync(
            embedder.embed_batch, [texts[row] for row in rows], abandon_on_cancel=True
        )
        done = first + len(rows)
        await report(done, len(order), f"embedded {done} of {len(order)} chunks")
    return vectors
