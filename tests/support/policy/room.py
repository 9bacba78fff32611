"""A policy base in a process of its own, asked through a pipe; it kills itself at a named step."""

import os
import signal
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from readingroom.core.errors import KnowledgeError
from tests.support import engines
from tests.support.policy.base import PLAIN, PolicyLibrary, open_library
from tests.support.victim import FORKS

Work = Callable[..., Awaitable[Any]]
"""A function of a module, so that the other process finds it; it is given the open base."""


class Killed(Exception):
    """The process is gone."""


class Room:
    """The process and this end of the pipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        engines.find_database_url(folder)  # so that the other process finds it
        self.start()

    def start(self) -> None:
        """Start it; it answers when it has finished what an earlier one began."""
        self._pipe, theirs = FORKS.Pipe()
        self._process = FORKS.Process(
            target=anyio.run, args=(_serve, self._folder, theirs), daemon=True
        )
        self._process.start()
        theirs.close()
        self._pipe.recv()

    def ask(self, work: Work, *args: Any, kill_at: str | None = None) -> Any:
        """What the work returns there; raises what it was refused with, or `Killed`."""
        self._pipe.send((work, args, kill_at))
        try:
            outcome = self._pipe.recv()
        except EOFError:
            self._process.join()
            raise Killed from None
        if isinstance(outcome, KnowledgeError):
            raise outcome
        return outcome

    def stop(self) -> None:
        """End it as an operator would."""
        self._pipe.send(None)
        self._process.join(300)
        self._pipe.close()


async def _serve(folder: Path, pipe: Connection) -> None:
    armed: str | None = None

    def at(name: str) -> None:
        if name == armed:
            os.kill(os.getpid(), signal.SIGKILL)

    async with open_library(folder, on_step=at, **PLAIN) as library:
        await library.settled()
        pipe.send(None)
        while asked := await anyio.to_thread.run_sync(pipe.recv):
            work, args, armed = asked
            pipe.send(await _outcome(library, work, args))
            armed = None


async def _outcome(library: PolicyLibrary, work: Work, args: tuple[Any, ...]) -> Any:
    try:
        return await work(library, *args)
    except KnowledgeError as error:
        return error
