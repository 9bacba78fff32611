"""Runs a coroutine of a command, which Ctrl-C cancels."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from readingroom.interrupts import cancel_on_interrupt, was_interrupted

ResultT = TypeVar("ResultT")


def run_async(async_function: Callable[..., Awaitable[ResultT]], *arguments: Any) -> ResultT:
    """Run a coroutine to its end and return its result.

    Ctrl-C cancels it where it waits, and what is shielded is done; `KeyboardInterrupt` is raised
    then, whatever the cancellation made of it.
    """

    async def run_until_cancelled() -> ResultT:
        with anyio.CancelScope() as command_scope:
            event_loop = asyncio.get_running_loop()
            with cancel_on_interrupt(
                # The handler runs wherever the loop is, also while that waits for something.
                lambda: event_loop.call_soon_threadsafe(command_scope.cancel)
            ):
                return await async_function(*arguments)
        raise KeyboardInterrupt

    try:
        return anyio.run(run_until_cancelled)
    except BaseExceptionGroup as task_group:
        if was_interrupted() or task_group.subgroup(KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise
