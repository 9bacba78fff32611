"""Work that a connection does on a thread of its own, while whoever gave it goes on."""

import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_MAX_UNFINISHED_WORK = 40
"""Pieces of work that wait for the database: what they are to write is in memory."""
_SHORT_TURN_SECONDS = 0.0003


class BackgroundWork:
    """Pieces of work that are done one after the other; the first that fails is the last."""

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._thread: ThreadPoolExecutor | None = None
        self._thread_id = 0
        self._unfinished: deque[Future[None]] = deque()
        self.error: BaseException | None = None
        """What a piece of work raised; until it is cleared, no other is done."""

    @property
    def is_caller(self) -> bool:
        """Whether this is asked by a piece of the work itself."""
        return threading.get_ident() == self._thread_id

    @property
    def is_idle(self) -> bool:
        """Whether all is done, and nothing has failed."""
        self._forget_finished()
        return not self._unfinished and self.error is None

    def _forget_finished(self) -> None:
        while self._unfinished and self._unfinished[0].done():
            self._unfinished.popleft()

    def add(self, work: Callable[[], object]) -> None:
        """Do a piece of work when those before it are done; wait while very many are not."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, self._thread_name)
            _short_turns.begin()
        self._forget_finished()
        while len(self._unfinished) >= _MAX_UNFINISHED_WORK:
            self._wait_for_oldest()
        self._unfinished.append(self._thread.submit(self._do, work))

    def _do(self, work: Callable[[], object]) -> None:
        self._thread_id = threading.get_ident()
        if self.error is None:
            try:
                work()
            except BaseException as error:
                self.error = error

    def finish(self) -> BaseException | None:
        """Wait until all is done; return what it raised."""
        while self._unfinished and not self.is_caller:
            self._wait_for_oldest()
        return self.error

    def _wait_for_oldest(self) -> None:
        self._unfinished[0].result()
        self._unfinished.popleft()  # not before: who is interrupted there must wait again

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
            _short_turns.end()


class _ShortTurns:
    """Lets threads take turns often, as long as one of them works for a database.

    It waits for every answer without Python's lock, and then for that: at Python's own interval
    (5 ms) the database would stand still meanwhile for longer than it works.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._user_count = 0
        self._usual_seconds = sys.getswitchinterval()

    def begin(self) -> None:
        with self._lock:
            if self._user_count == 0:
                self._usual_seconds = sys.getswitchinterval()
                sys.setswitchinterval(min(_SHORT_TURN_SECONDS, self._usual_seconds))
            self._user_count += 1

    def end(self) -> None:
        with self._lock:
            self._user_count -= 1
            if self._user_count == 0:
                sys.setswitchinterval(self._usual_seconds)


_short_turns = _ShortTurns()
