"""Which engine a base under test stands on: its folder alone, or a database beside it.

A test names folders. In the shared engine each folder that a base is opened on gets a database of
its own, and the same one again when the base is opened there again.
"""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.storage.postgres.database import PostgresDatabase, open_database

if TYPE_CHECKING:
    from tests.support.postgres import PostgresServer

EMBEDDED, SHARED = "embedded", "postgres"


class _SharedEngine:
    def __init__(self, server: "PostgresServer") -> None:
        self._server = server
        self._urls: dict[Path, str] = {}

    def find_url(self, folder: Path) -> str:
        folder = _find_data(folder)
        if folder not in self._urls:
            url = self._urls[folder] = self._server.make_room(f"{_PREFIX}{uuid.uuid4().hex}")
            # For processes that the test starts on the same folder.
            folder.parent.mkdir(parents=True, exist_ok=True)
            _get_marker_path(folder).write_text(url)
        return self._urls[folder]

    def drop_all(self) -> None:
        for url in self._urls.values():
            open_database(url).close()
        self._server.drop_rooms(_PREFIX)


_PREFIX = "engine_"
_current: _SharedEngine | None = None


@contextlib.contextmanager
def use_postgres(server: "PostgresServer") -> Iterator[None]:
    """Every base that is opened inside stands on a database."""
    global _current
    _current = _SharedEngine(server)
    try:
        yield
    finally:
        _current.drop_all()
        _current = None


def is_shared() -> bool:
    """Whether bases stand on a database now."""
    return _current is not None


def find_database_url(folder: Path) -> str | None:
    """The database that belongs to a folder; None where bases are embedded."""
    if _current is not None:
        return _current.find_url(folder)
    return _get_marker_path(folder).read_text() if _get_marker_path(folder).exists() else None


def find_database(folder: Path) -> PostgresDatabase | None:
    url = find_database_url(folder)
    return open_database(url) if url is not None else None


def name_database(args: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command, with the database of its data directory if it has one."""
    if "--data" in args and "READINGROOM_DATABASE_URL" not in env:
        url = find_database_url(Path(args[args.index("--data") + 1]))
        return {**env, "READINGROOM_DATABASE_URL": url} if url else dict(env)
    return dict(env)


def _find_data(folder: Path) -> Path:
    """The data directory that a folder of a base lies in: its bases share a database."""
    return folder.parent if folder.name in ("policy", "documents", "federal") else folder


def _get_marker_path(folder: Path) -> Path:
    data = _find_data(folder)
    return data.with_name(f"{data.name}.database")
