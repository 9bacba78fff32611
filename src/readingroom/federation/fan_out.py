"""Calls several bases at once under a deadline: one that is late or fails becomes a note."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
import anyio.abc

from readingroom.core.errors import Internal, KnowledgeError
from readingroom.federation.errors import BaseSilent
from readingroom.federation.models import Note

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
_MOST_LATE = 8  # calls a base may leave unanswered before it is asked no more

T = TypeVar("T")
Asks = Mapping[str, Callable[[], Awaitable[T]]]


@dataclass
class Heard(Generic[T]):
    """What the bases answered by their names, and a note for each that did not."""

    answers: dict[str, T] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


@dataclass
class _Line(Generic[T]):
    """One call: what came of it, and whether somebody still waits for it."""

    base: str
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: T | None = None
    failure: KnowledgeError | None = None
    is_late: bool = False


class Switchboard:
    """Calls go on by themselves when they are late, so that an answer never waits for them."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        self._patience = patience
        self._late: Counter[str] = Counter()
        self._tasks: anyio.abc.TaskGroup

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def ask(self, asks: Asks[T]) -> Heard[T]:
        lines = [_Line[T](base) for base in asks]
        for line in lines:
            if self._late[line.base] < _MOST_LATE:
                self._tasks.start_soon(self._call, line, asks[line.base])
            else:
                line.failure = BaseSilent(f"{line.base} has not answered its last calls")
                line.done.set()
        with anyio.move_on_after(self._patience):
            for line in lines:
                await line.done.wait()
        return self._heard(lines)

    async def _call(self, line: _Line[T], ask: Callable[[], Awaitable[T]]) -> None:
        try:
            line.answer = await ask()
        except KnowledgeError as error:
            line.failure = error
        except Exception:
            logger.exception("unexpected failure of %s, asked by the desk", line.base)
            line.failure = Internal(f"{line.base} failed; the server's log has the reason")
        finally:
            line.done.set()
            self._late[line.base] -= line.is_late

    def _heard(self, lines: list[_Line[T]]) -> Heard[T]:
        heard = Heard[T]()
        for line in lines:
            if not line.done.is_set():
                line.is_late = True
                self._late[line.base] += 1
                seconds = f"{self._patience:g} seconds"
                line.failure = BaseSilent(f"{line.base} did not answer within {seconds}")
            if line.failure is not None:
                heard.notes.append(_note(line.base, line.failure))
            elif line.answer is not None:
                heard.answers[line.base] = line.answer
        return heard


def _note(base: str, error: KnowledgeError) -> Note:
    return Note(base=base, code=error.code, message=error.message)
