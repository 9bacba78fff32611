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
_MAX_LATE_CALLS = 8  # calls that a base may leave unanswered before it is not called any more

AnswerT = TypeVar("AnswerT")
CallFunctionsByBase = Mapping[str, Callable[[], Awaitable[AnswerT]]]


@dataclass
class GatheredAnswers(Generic[AnswerT]):
    """The answers by base, and a note for each base that gave none."""

    answers_by_base: dict[str, AnswerT] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


@dataclass
class _BaseCall(Generic[AnswerT]):
    """One call of one base: its outcome, and whether somebody still waits for it."""

    base_name: str
    finished_event: anyio.Event = field(default_factory=anyio.Event)
    answer: AnswerT | None = None
    error: KnowledgeError | None = None
    is_late: bool = False


class FanOut:
    """Calls go on in the background when they are late, so that an answer never waits for them."""

    def __init__(self, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._late_count_by_base: Counter[str] = Counter()
        self._task_group: anyio.abc.TaskGroup

    @asynccontextmanager
    async def run_calls_inside(self) -> AsyncIterator[None]:
        """Enter this for as long as calls are made; leaving it cancels those that are late."""
        async with anyio.create_task_group() as self._task_group:
            yield
            self._task_group.cancel_scope.cancel()

    async def call_all_bases(
        self, call_functions_by_base: CallFunctionsByBase[AnswerT]
    ) -> GatheredAnswers[AnswerT]:
        """Call every function at once and return what came in time."""
        base_calls = [_BaseCall[AnswerT](base_name) for base_name in call_functions_by_base]
        for base_call in base_calls:
            if self._late_count_by_base[base_call.base_name] < _MAX_LATE_CALLS:
                self._task_group.start_soon(
                    self._run_call, base_call, call_functions_by_base[base_call.base_name]
                )
            else:
                base_call.error = BaseSilent(
                    f"{base_call.base_name} has not answered its last calls"
                )
                base_call.finished_event.set()
        # One deadline for all: the calls go on at the same time, whichever is waited for first.
        with anyio.move_on_after(self._deadline_seconds):
            for base_call in base_calls:
                await base_call.finished_event.wait()
        return self._gather_answers(base_calls)

    async def _run_call(
        self, base_call: _BaseCall[AnswerT], call_base: Callable[[], Awaitable[AnswerT]]
    ) -> None:
        try:
            base_call.answer = await call_base()
        except KnowledgeError as error:
            base_call.error = error
        # One base with a bug must not take the answers of the others with it.
        except Exception:
            logger.exception("unexpected failure of the base %s", base_call.base_name)
            base_call.error = InternalError(
                f"{base_call.base_name} failed; the server's log has the reason"
            )
        finally:
            base_call.finished_event.set()
            # A late call that ends frees its place, so a base that recovers is called again.
            self._late_count_by_base[base_call.base_name] -= base_call.is_late

    def _gather_answers(self, base_calls: list[_BaseCall[AnswerT]]) -> GatheredAnswers[AnswerT]:
        gathered_answers = GatheredAnswers[AnswerT]()
        for base_call in base_calls:
            if not base_call.finished_event.is_set():
                base_call.is_late = True
                self._late_count_by_base[base_call.base_name] += 1
                deadline_text = f"{self._deadline_seconds:g} seconds"
                base_call.error = BaseSilent(
                    f"{base_call.base_name} did not answer within {deadline_text}"
                )
            if base_call.error is not None:
                failure_note = Note(
                    base=base_call.base_name,
                    code=base_call.error.code,
                    message=base_call.error.message,
                )
                gathered_answers.notes.append(failure_note)
            elif base_call.answer is not None:
                gathered_answers.answers_by_base[base_call.base_name] = base_call.answer
        return gathered_answers
