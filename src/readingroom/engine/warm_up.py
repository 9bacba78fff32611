"""Loads in advance what the first search of an index would wait for."""

import anyio.to_thread

from readingroom.engine.index import ChunkIndex


async def warm_up_index(index: ChunkIndex) -> None:
    """Fill both indexes and load the model, unless there is nothing to search.

    Raise `ModelUnavailable` without a model; searches by words are prepared by then.
    """
    # Step by step: each ends before the store is closed, so a shutdown waits for one at most.
    for warm_up_step in await anyio.to_thread.run_sync(index.list_warm_up_steps):
        await anyio.to_thread.run_sync(warm_up_step)
