"""Takes a file in: from an allowed folder or one of ours, copied once, hashed as it is copied.

What was hashed is what is parsed: both come from one private, unlinked copy, so nobody can
exchange the file in between.
"""

import hashlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

import anyio.to_thread

from readingroom.ingest.errors import ExtractionFailed, FileNotFound

_BLOCK = 1 << 20

MOST_FILES = 5_000
"""In one folder that is taken in as a whole."""

# A folder may be passable without being readable, so a bare handle is enough where there is one.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Without O_NONBLOCK, opening a named pipe would wait for a writer that may never come.
_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class Intake:
    """A file's bytes, held privately, and their identity."""

    name: str
    size_bytes: int
    sha256: str
    file: FileIO

    def head(self, count: int) -> bytes:
        """The first bytes."""
        self.file.seek(0)
        return self.file.read(count)


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders that files may come from, and how large a file may be."""

    setting: str
    """What an operator sets to allow more: it is named in the refusal."""
    folders: tuple[Path, ...]
    largest: int

    @contextmanager
    def open(self, path: str) -> Iterator[Intake]:
        """The file at this path, if it lies inside a root; links may not lead out."""
        folder, real = self._inside(path)
        try:
            descriptor = _open_below(folder, real.relative_to(folder).parts)
        except OSError as error:
            raise FileNotFound(f"The file {path!r} cannot be opened: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise FileNotFound(f"{path!r} is not a regular file")
            with _copied(_blocks(descriptor), real.name, self.largest) as intake:
                yield intake
        finally:
            os.close(descriptor)

    def files(self, path: str) -> dict[str, str]:
        """The files below a folder that is a root or lies inside one, hidden ones left out: their
        paths by their names there.

        What is listed is not yet allowed: `open` judges each, links and pipes among them.
        """
        _, real = self._inside(path, or_root=True)
        if not real.is_dir():
            raise FileNotFound(f"{path!r} is not a folder")
        found: dict[str, str] = {}
        for folder, below, names in os.walk(real):
            below[:] = sorted(name for name in below if not name.startswith("."))
            paths = [Path(folder, name) for name in sorted(names) if name[0] != "."]
            found |= {str(one.relative_to(real)): str(one) for one in paths}
            if len(found) > MOST_FILES:
                raise FileNotFound(
                    f"{path!r} holds more than {MOST_FILES:,} files; name a folder in it"
                )
        return found

    def _inside(self, path: str, or_root: bool = False) -> tuple[Path, Path]:
        """The root and the real path below it; outside, nothing is said of what exists."""
        try:
            real = Path(path).resolve()
            for folder in (root.resolve() for root in self.folders):
                below = real.is_relative_to(folder) and (or_root or real != folder)
                if Path(path).is_absolute() and below:
                    return folder, real
        except (OSError, ValueError, RuntimeError) as error:
            raise FileNotFound(f"{path!r} is not a path to a file") from error
        raise FileNotFound(
            f"{path!r} is outside {self.setting}; move it inside, and give its whole path"
        )


@contextmanager
def take(path: Path, name: str, largest: int) -> Iterator[Intake]:
    """A file of our own, under the name that whoever sent it gave it."""
    with (
        path.open("rb", buffering=0) as file,
        _copied(_blocks(file.fileno()), Path(name).name, largest) as intake,
    ):
        yield intake


@asynccontextmanager
async def in_thread(taking: AbstractContextManager[Intake]) -> AsyncIterator[Intake]:
    """What `Roots.open` or `take` gives, while the event loop goes on: a large file takes time."""
    intake = await anyio.to_thread.run_sync(taking.__enter__)
    with ExitStack() as stack:
        stack.push(taking)
        yield intake


def _open_below(folder: Path, parts: Sequence[str]) -> int:
    """Open step by step without following links: a folder swapped for a link leads nowhere."""
    if os.open not in os.supports_dir_fd:  # Windows
        return os.open(folder.joinpath(*parts), _FILE)
    here = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            below = os.open(part, _FOLDER | _NO_LINK, dir_fd=here)
            os.close(here)
            here = below
        return os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)


def _blocks(descriptor: int) -> Iterator[bytes]:
    while block := os.read(descriptor, _BLOCK):
        yield block


@contextmanager
def _copied(blocks: Iterable[bytes], name: str, largest: int) -> Iterator[Intake]:
    digest = hashlib.sha256()
    size = 0
    # Without a buffer, which would lose its place when another process reads the same descriptor.
    with tempfile.TemporaryFile(buffering=0) as copy:
        for block in blocks:
            size += len(block)
            if size > largest:
                raise ExtractionFailed(
                    f"The file {name!r} is larger than {largest // 2**20} MB",
                    largest_bytes=largest,
                )
            digest.update(block)
            left = memoryview(block)
            while left:
                left = left[copy.write(left) :]
        # A name that is no Unicode can be opened, but neither stored nor told.
        told = name.encode("utf-8", "replace").decode("utf-8")
        yield Intake(told, size, digest.hexdigest(), copy)
