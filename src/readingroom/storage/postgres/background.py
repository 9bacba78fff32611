"""Work that a connection does on a thread of its own, while whoever gave it goes on."""

import sys
import threading
from collections import deque
from collections.abc import Callable

_MAX_UNFINISHED_WORK = 40
"""Pieces of work that wait for the database: what they are to write is in memory."""
_SHORT_TURN_SECONDS = 0.0005


class WorkThread:
    """Pieces of work that are done one after the other; the first that fails is the last."""

    def __init__(self, thread_name: str) -> None:
        self._thread_name = thread_name
        self._thread: threading.Thread | None = None
        self._change_condition = threading.Condition()
        self._waiting_work: deque[Callable[[], object]] = deque()
        self._unfinished_count = 0
        """How many pieces wait or are being done."""
        self._is_closed = False
        self.error: BaseException | None = None
        """What a piece of work raised; until it is cleared, no other is done."""

    @property
    def is_called_by_worker(self) -> bool:
        """Whether this is asked by a piece of the work itself."""
        return threading.current_thread() is self._thread

    @property
    def is_idle(self) -> bool:
        """Whether all is done, and nothing has failed."""
        return not self._unfinished_count and self.error is None

    def add(self, do_work: Callable[[], object]) -> None:
        """Do a piece of work when those before it are done; wait while very many are not."""
        if self._thread is None:
            self._start_thread()
        with self._change_condition:
            if self._unfinished_count >= _MAX_UNFINISHED_WORK:
                # Not for each of them: the two threads would wake each other all the time.
                self._wait_until_at_most(_MAX_UNFINISHED_WORK // 2)
            self._waiting_work.append(do_work)
            self._unfinished_count += 1
            self._change_condition.notify_all()

    def finish(self) -> BaseException | None:
        """Wait until all is done; return what it raised."""
        if not self.is_called_by_worker:
            with self._change_condition:
                self._wait_until_at_most(0)
        return self.error

    def _wait_until_at_most(self, piece_count: int) -> None:
        self._change_condition.wait_for(lambda: self._unfinished_count <= piece_count)

    def close(self) -> None:
        """Do what waits, and end the thread."""
        if self._thread is not None:
            with self._change_condition:
                self._is_closed = True
                self._change_condition.notify_all()
            self._thread.join()
            self._thread = None
            _short_turns.end()

    def _start_thread(self) -> None:
        self._is_closed = False
        self._thread = threading.Thread(target=self._run_work, name=self._thread_name, daemon=True)
        self._thread.start()
        _short_turns.begin()

    def _run_work(self) -> None:
        while do_work := self._wait_for_next_work():
            if self.error is None:
                try:
                    do_work()
                # Whatever it is: were the thread to end here, `finish` would wait for ever.
                except BaseException as error:
                    self.error = error
            with self._change_condition:
                self._unfinished_count -= 1
                # Only where somebody may be waiting for it, since waking costs both threads a turn.
                if self._unfinished_count in (0, _MAX_UNFINISHED_WORK // 2):
                    self._change_condition.notify_all()

    def _wait_for_next_work(self) -> Callable[[], object] | None:
        with self._change_condition:
            self._change_condition.wait_for(lambda: self._waiting_work or self._is_closed)
            return self._waiting_work.popleft() if self._waiting_work else None


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
