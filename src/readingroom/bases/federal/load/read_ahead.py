"""Reads the files of a load in their turn, or before it in a process beside this one."""

import gc
import hashlib
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import current_process
from multiprocessing.connection import Connection
from multiprocessing.context import ForkContext, SpawnContext
from queue import Queue

from readingroom.bases.federal.formats import Accompanied, Loader
from readingroom.bases.federal.formats.parts.files import BAD_FILE, RawFile, written
from readingroom.bases.federal.schema.entries import Entry, Origin
from readingroom.core import clock
from readingroom.engine.embedding.machine import cores

_AHEAD = 16
"""So many files are read before their turn, at most,"""
_SMALL = 4 * 1024 * 1024
"""and none that is larger: what was read ahead is held in memory."""
_WORTH = 8 * 1024 * 1024
"""With less to read, another process would only just have started."""

_COMPRESSED = (b"PK\x03\x04", b"\x1f\x8b")
"""How zips and gzips begin: one inside another may show the first lines of what it holds."""

_KILLED = 5.0
"""Seconds after which nobody can still be looking up what to read next."""


class Unreadable(ValueError):
    """A file that another process could not read, in that one's words."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A file that waits for its turn: who reads it, and what it was when it was found."""

    name: str
    read: Callable[[], RawFile]
    loader: Loader | None = None
    sha256: str = ""
    size: int = 0

    @property
    def may_go_ahead(self) -> bool:
        alone = self.loader is not None and not isinstance(self.loader, Accompanied)
        return alone and self.size <= _SMALL


def turn_of(loaders: Sequence[Loader], name: str, read: Callable[[], RawFile]) -> Turn:
    """The turn of a file; one that cannot be read will say so when it comes."""
    with suppress(*BAD_FILE):
        file = read()
        mine = () if file.head.startswith(_COMPRESSED) else loaders
        loader = next((one for one in mine if one.recognises(file)), None)
        return Turn(name, read, loader, file.sha256, len(file.data))
    return Turn(name, read)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file says, when it was read, and the hash of all that was read for it."""

    at: str
    identity: str
    entries: Iterable[Entry]


@dataclass(frozen=True, slots=True)
class Reading:
    """A file whose turn has come."""

    turn: Turn
    contents: Callable[[], Contents]
    """What it says: read ahead, or here as its entries are asked for."""


def in_turn(turns: Sequence[Turn], is_new: Callable[[Turn], bool]) -> Iterator[Reading]:
    """Each file when its turn comes; of those that are new, the next ones are read meanwhile."""
    ahead = {place: one for place, one in enumerate(turns) if one.may_go_ahead and is_new(one)}
    reader = _reader(ahead)
    if reader is None:
        yield from (Reading(turn, partial(_tell, turn)) for turn in turns)
        return
    with closing(reader):
        for place, turn in enumerate(turns):
            yield Reading(turn, partial(reader.tell, place, turn))


def _reader(turns: Mapping[int, Turn]) -> "_Ahead | None":
    """Somebody to read these beside us, where that is worth it and there can be another process."""
    much = sum(one.size for one in turns.values()) >= _WORTH
    if not much or cores() < 2 or current_process().daemon:
        return None
    try:
        return _Ahead(turns)
    except OSError:  # as many processes as there may be, or no memory that two could share
        return None


class _Ahead:
    """Reads files before their turn, in a process of its own, and here where that one lags."""

    def __init__(self, turns: Mapping[int, Turn]) -> None:
        context = _context()
        self._turns = turns
        self._told: dict[int, Contents | str] = {}
        self._queue = _Places(context)
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_read_ahead, args=(self._ours, theirs, self._queue), daemon=True
        )
        self._process.start()
        theirs.close()
        self._queue.places = list(turns)
        try:
            # Not as an argument: one that died as it started would be waited for, were it long.
            self._ours.send(turns)
        except OSError:
            self.close()
            raise

    def tell(self, place: int, turn: Turn) -> Contents:
        while place in self._turns and place not in self._told:
            self._come_further()
        told = self._told.pop(place, None)
        if isinstance(told, str):
            raise Unreadable(told)
        return told or _tell(turn)

    def _come_further(self) -> None:
        """Take what is there; else read something; with nothing left to read, or enough read
        already for one that is long in coming, wait.
        """
        try:
            full = len(self._told) >= _AHEAD
            if full or self._ours.poll() or (mine := self._queue.next()) is None:
                place, told = self._ours.recv()
                self._told[place] = told
            else:
                self._told[mine] = _tell_all(self._turns[mine])
        except (EOFError, OSError):
            self._turns = {}  # it is not there any more; what it had is read here

    def close(self) -> None:
        self._ours.close()
        self._process.kill()  # it may have our handlers for anything milder
        self._process.join()


class _Places:
    """What is still to be read, by either side: each file goes to who asks first."""

    def __init__(self, context: ForkContext | SpawnContext) -> None:
        self.places: list[int] = []
        """The same on both sides; only how many are taken is shared."""
        self._taken = context.RawValue("q", 0)
        self._lock = context.Lock()

    def next(self) -> int | None:
        if not self._lock.acquire(timeout=_KILLED):
            raise TimeoutError("the other side was killed while it asked")
        try:
            taken = int(self._taken.value)
            self._taken.value = taken + 1
        finally:
            self._lock.release()
        return self.places[taken] if taken < len(self.places) else None


def _context() -> ForkContext | SpawnContext:
    """A process is started anew, but where this thread is alone: a copy of it runs at once."""
    alone = sys.platform == "linux" and threading.active_count() == 1
    return ForkContext() if alone else SpawnContext()


def _tell(turn: Turn) -> Contents:
    at = clock.stamp()
    file = turn.read()
    if turn.loader is None:
        return Contents(at, file.sha256, ())
    entries = turn.loader.read(file, Origin(at, file.sha256))
    return Contents(at, _identity(turn.loader, file), entries)


def _identity(loader: Loader, file: RawFile) -> str:
    """The hash of what a loader reads: the file, and whatever lies beside it that it names."""
    if not isinstance(loader, Accompanied):
        return file.sha256
    hashed = hashlib.sha256(file.data)
    for name in loader.companions(file):
        beside = file.beside(name)
        hashed.update(f"{name}\0{hashlib.sha256(beside).hexdigest() if beside else ''}".encode())
    return hashed.hexdigest()


def complaint(error: BaseException) -> str:
    """What is told of a file that could not be read."""
    if isinstance(error, Unreadable):
        return str(error)
    missing = "it has no " if isinstance(error, KeyError) else ""
    return written(f"{type(error).__name__}: {missing}{error}"[:500])


# --- in the process beside ---


def _read_ahead(ours: Connection, theirs: Connection, queue: _Places) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked is told, and ends this one
    gc.disable()
    ours.close()
    waiting: Queue[bytes] = Queue(_AHEAD)
    with suppress(Exception):  # what is no file's fault is met again, and told, where we came from
        turns: Mapping[int, Turn] = theirs.recv()
        queue.places = list(turns)
        threading.Thread(target=_hand_over, args=(waiting, theirs), daemon=True).start()
        while (place := queue.next()) is not None:
            told = _tell_all(turns[place])
            waiting.put(pickle.dumps((place, told), pickle.HIGHEST_PROTOCOL))
        waiting.join()


def _hand_over(waiting: "Queue[bytes]", theirs: Connection) -> None:
    while True:
        try:
            theirs.send_bytes(waiting.get())
        except OSError:
            os._exit(1)  # nobody is there to be told
        waiting.task_done()


def _tell_all(turn: Turn) -> Contents | str:
    try:
        told = _tell(turn)
        return replace(told, entries=list(told.entries))
    except BAD_FILE as error:
        return complaint(error)  # not every error can be handed over as it is
