"""Calls several bases at once under a deadline: one that is late or fails becomes a note."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio
import anyio.abc

from readingroom.core.errors import InternalError, KnowledgeError
from readingroom.federation.errors import BaseSilent
from readingroom.federation.models import Note

logger = logging.getLogger(__name__)

# Clients and people give up soon after, and four bases in time are better than five too late.
DEADLINE_SECONDS = 5.0
_MAX_LATE = 8  # calls that a base may leave unanswered before it is not called any more

T = TypeVar("T")
Calls = Mapping[str, Callable[[], Awaitable[T]]]


@dataclass
class Gathered(Generic[T]):
    """The answers by base, and a note for each base that gave none."""

    answers: dict[str, T] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


@dataclass
class _Call(Generic[T]):
    """One call of one base: its outcome, and whether somebody still waits for it."""

    base: str
    finished: anyio.Event = field(default_factory=anyio.Event)
    answer: T | None = None
    error: KnowledgeError | None = None
    is_late: bool = False


class FanOut:
    """Calls go on in the background when they are late, so that an answer never waits for them."""

    def __init__(self, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline = deadline_seconds
        self._late: Counter[str] = Counter()
        self._tasks: anyio.abc.TaskGroup

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Enter this for as long as calls are made; leaving it cancels those that are late."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    async def call_all(self, functions: Calls[T]) -> Gathered[T]:
        """Call every function at once and return what came in time."""
        calls = [_Call[T](base) for base in functions]
        for call in calls:
            if self._late[call.base] < _MAX_LATE:
                self._tasks.start_soon(self._run, call, functions[call.base])
            else:
                call.error = BaseSilent(f"{call.base} has not answered its last calls")
                call.finished.set()
        with anyio.move_on_after(self._deadline):
            for call in calls:
                await call.finished.wait()
        return self._gather(calls)

    async def _run(self, call: _Call[T], function: Callable[[], Awaitable[T]]) -> None:
        try:
            call.answer = await function()
        except KnowledgeError as error:
            call.error = error
        # One base with a bug must not take the answers of the others with it.
        except Exception:
            logger.exception("unexpected failure of the base %s", call.base)
            call.error = InternalError(f"{call.base} failed; the server's log has the reason")
        finally:
            call.finished.set()
            # A late call that ends frees its place, so a base that recovers is called again.
            self._late[call.base] -= call.is_late

    def _gather(self, calls: list[_Call[T]]) -> Gathered[T]:
        gathered = Gathered[T]()
        for call in calls:
            if not call.finished.is_set():
                call.is_late = True
                self._late[call.base] += 1
                seconds = f"{self._deadline:g} seconds"
                call.error = BaseSilent(f"{call.base} did not answer within {seconds}")
            if call.error is not None:
                note = Note(base=call.base, code=call.error.code, message=call.error.message)
                gathered.notes.append(note)
            elif call.answer is not None:
                gathered.answers[call.base] = call.answer
        return gathered
