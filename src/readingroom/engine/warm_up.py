"""Loads in advance what the first search of an index would wait for."""

import anyio.to_thread

from readingroom.engine.index import ChunkIndex


async def warm_up(index: ChunkIndex) -> None:
    """Fill both indexes and load the model, unless there is nothing to search.

    Raise `ModelUnavailable` without a model; searches by words are prepared by then.
    """
    if await anyio.to_thread.run_sync(index.collection.count) == 0:
        return
    # Step by step: each ends before the store is closed, so a shutdown waits for one at most.
    for step in (index.words, index.embedder.load, index.vectors):
        await anyio.to_thread.run_sync(step)
