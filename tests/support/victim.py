"""Processes that kill themselves at a named step of a change, as a power cut would end them."""

import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from tests.support import engines
from tests.support.processes import HANG_SECONDS

# Processes are forked from one that has imported everything and started nothing.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "tests.support.documents.victim",
        "tests.support.policy.victim",
        "tests.support.policy.room",
        "chromadb",
    ]
)


class KillAtStep:
    """A step hook that kills this process at one step, once it is set."""

    def __init__(self, step: str, is_set: bool = False) -> None:
        self._step = step
        self.is_set = is_set

    def __call__(self, step: str) -> None:
        if self.is_set and step == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def do_and_be_killed(work: Callable[..., Awaitable[None]], *args: object) -> None:
    """Do work in a process that must not survive it; the last argument is the step of its end."""
    for folder in args:
        if isinstance(folder, Path):
            engines.find_database_url(folder)  # so that the other process finds it
    victim = FORKS.Process(target=anyio.run, args=(work, *args))
    victim.start()
    victim.join(HANG_SECONDS)
    assert victim.exitcode == -signal.SIGKILL, f"never came to {args[-1]}"
