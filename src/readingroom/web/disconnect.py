"""Work for a REST request that ends when the caller has left."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from fastapi import Request
from starlette.exceptions import HTTPException

Result = TypeVar("Result")

CALLER_LEFT_STATUS = 499
"""The status by which logs and metrics tell it; nobody is there to receive it."""


async def run_while_connected(
    request: Request, compute_answer: Callable[[], Awaitable[Result]]
) -> Result:
    """Return the result of `compute_answer`, which is cancelled when the caller leaves.

    Raise what `compute_answer` raises, and `HTTPException` when the caller left. The request's
    body has been read before.
    """
    finished_results: list[Result] = []
    answer_error: Exception | None = None

    async def wait_for_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        task_group.cancel_scope.cancel()

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(wait_for_disconnect)
        try:
            finished_results.append(await compute_answer())
        except Exception as error:
            answer_error = error  # raised below: the task group would wrap it
        task_group.cancel_scope.cancel()
    if answer_error is not None:
        raise answer_error
    if not finished_results:
        raise HTTPException(CALLER_LEFT_STATUS, "The caller left before the answer was there")
    return finished_results[0]
