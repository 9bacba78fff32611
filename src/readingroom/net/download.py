"""Fetches official files politely: one at a time, resumed where they broke off, whole or not.

A file counts when it lies complete under its name and its row is in the table: address, validators,
size and SHA-256. What is on its way has another name, `.part`, and goes on from there next time.
"""

import base64
import os
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx2

from readingroom import __version__
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.net.errors import DownloadFailed
from readingroom.storage.database import transaction
from readingroom.storage.files import digest_of

T = TypeVar("T")

TRIES = 4
LARGEST_LISTING = 64 * 1024 * 1024
LARGEST = 4 * 1024**3
"""No official file is nearly as long; one that never ends would fill the disk."""
_TIMEOUT = 30.0
_LONGEST_WAIT = 60.0
_TABLE = """CREATE TABLE IF NOT EXISTS files (
    url TEXT PRIMARY KEY, name TEXT NOT NULL, etag TEXT, modified TEXT,
    size INTEGER NOT NULL, sha256 TEXT NOT NULL)"""
_PARTS = """CREATE TABLE IF NOT EXISTS parts (
    url TEXT PRIMARY KEY, etag TEXT, modified TEXT)"""


@dataclass(frozen=True, slots=True)
class Remote:
    """An official file: where it is, and where it goes below the folder."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file that is here, and whether it came just now."""

    path: Path
    sha256: str
    size: int
    new: bool


class NotThere(Exception):
    """The host knows no such file."""


class _Again(Exception):
    """An attempt that failed in a way the next one may not."""

    def __init__(self, said: str, wait: float | None = None) -> None:
        super().__init__(said)
        self.wait = wait


class Downloads:
    """A folder of official files and the table of what is whole in it."""

    def __init__(
        self,
        folder: Path,
        *,
        pause: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = folder
        self._pause = pause
        self._sleep = sleep
        self._asked = False
        folder.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(folder / "downloads.db", isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute(_TABLE)
        self._db.execute(_PARTS)
        # As in upstream/client: redirects are told, not followed, and proxies come from settings.
        # Not compressed on the way, so that lengths and ranges mean the file's own bytes.
        self._http = httpx2.Client(
            timeout=_TIMEOUT,
            follow_redirects=False,
            trust_env=False,
            headers={"User-Agent": f"readingroom/{__version__}", "Accept-Encoding": "identity"},
        )

    def close(self) -> None:
        self._http.close()
        self._db.close()

    def read(self, url: str, accept: str = "*/*") -> bytes:
        """A listing, whole and in memory."""
        return self._patiently(lambda: self._read(url, accept))

    def fetch(self, remote: Remote, report: ReportProgressSync = no_progress_sync) -> Fetched:
        """Bring a file here; one that has not changed since the last time is left as it is."""
        return self._patiently(lambda: self._fetch(remote, report))

    # --- politeness ---

    def _patiently(self, work: Callable[[], T]) -> T:
        for attempt in range(TRIES):
            if self._asked:
                self._sleep(self._pause)
            self._asked = True
            try:
                return work()
            except (_Again, httpx2.HTTPError) as error:
                said = str(error) or type(error).__name__
                if attempt == TRIES - 1:
                    raise DownloadFailed(f"{said}, after {TRIES} tries") from error
                wait = error.wait if isinstance(error, _Again) else None
                self._sleep(min(_LONGEST_WAIT, 2.0**attempt if wait is None else wait))
        raise AssertionError("the last attempt returns or raises")

    def _check(self, response: httpx2.Response, *right: int) -> None:
        status = response.status_code
        if status in right:
            return
        if status in (404, 410):
            raise NotThere(f"{response.url} is not there ({status})")
        if status in (429, 503) or status >= 500:
            asked = response.headers.get("retry-after", "")
            wait = float(asked) if asked.isdecimal() else None
            raise _Again(f"{response.url} answered with status {status}", wait)
        told = response.headers.get("location")
        moved = f", which sends to {told}" if told else ""
        raise DownloadFailed(f"{response.url} answered with status {status}{moved}")

    # --- one request ---

    def _read(self, url: str, accept: str) -> bytes:
        with self._http.stream("GET", url, headers={"Accept": accept}) as response:
            self._check(response, 200)
            parts, size = [], 0
            for block in response.iter_bytes():
                size += len(block)
                if size > LARGEST_LISTING:
                    raise DownloadFailed(f"{url} is too long for a listing")
                parts.append(block)
            return b"".join(parts)

    def _fetch(self, remote: Remote, report: ReportProgressSync) -> Fetched:
        path = self._place(remote.name)
        known = self._whole(remote, path)
        part = path.with_name(path.name + ".part")
        begun = self._begun(remote, part)
        with self._http.stream("GET", remote.url, headers=_asking(known, begun)) as response:
            if response.status_code == 416:
                part.unlink(missing_ok=True)
                raise _Again(f"{remote.url} is not what it was when its download began")
            self._check(response, 200, 206, 304)
            if response.status_code == 304:
                if known is None:
                    raise _Again(f"{remote.url} has not changed, it says, since we never had it")
                return Fetched(path, known["sha256"], known["size"], new=False)
            going_on = response.status_code == 206
            if going_on and not (begun and _goes_on(response, begun)):
                part.unlink(missing_ok=True)
                raise _Again(f"{remote.url} sent another part than was asked for")
            self._remember_part(remote, response)
            size = _write(response, part, going_on, report)
            _check_length(response, part, size)
        return self._keep(remote, response, part, path)

    def _place(self, name: str) -> Path:
        """A path below the folder; names come from listings that others write."""
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder.resolve()) or path == self._folder.resolve():
            raise DownloadFailed(f"{name!r} does not stay in its folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _whole(self, remote: Remote, path: Path) -> sqlite3.Row | None:
        """What is known of a file that is here, complete and undamaged."""
        row = self._db.execute("SELECT * FROM files WHERE url = ?", (remote.url,)).fetchone()
        if row is None or not path.is_file() or digest_of(path) != row["sha256"]:
            return None
        found: sqlite3.Row = row
        return found

    def _begun(self, remote: Remote, part: Path) -> "_Begun | None":
        """What is here of a file that broke off; without a validator nobody could go on with it."""
        row = self._db.execute("SELECT * FROM parts WHERE url = ?", (remote.url,)).fetchone()
        if row is None or not part.is_file() or not part.stat().st_size:
            return None
        validator = row["etag"] if _is_strong(row["etag"]) else row["modified"]
        return _Begun(part.stat().st_size, validator) if validator else None

    def _remember_part(self, remote: Remote, response: httpx2.Response) -> None:
        headers = response.headers
        self._db.execute(
            "INSERT OR REPLACE INTO parts VALUES (?, ?, ?)",
            (remote.url, headers.get("etag"), headers.get("last-modified")),
        )

    def _keep(self, remote: Remote, response: httpx2.Response, part: Path, path: Path) -> Fetched:
        """The file under its own name, then its row: from here on it counts."""
        sha256, size = digest_of(part), part.stat().st_size
        _check_digest(response, part, sha256)
        part.replace(path)
        _sync_folder(path.parent)
        headers = response.headers
        row = (remote.url, remote.name, headers.get("etag"), headers.get("last-modified"))
        with transaction(self._db):
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)", (*row, size, sha256)
            )
            self._db.execute("DELETE FROM parts WHERE url = ?", (remote.url,))
        return Fetched(path, sha256, size, new=True)


@dataclass(frozen=True, slots=True)
class _Begun:
    size: int
    validator: str


def _asking(known: sqlite3.Row | None, begun: _Begun | None) -> dict[str, str]:
    if begun:
        return {"Range": f"bytes={begun.size}-", "If-Range": begun.validator}
    if known and known["etag"]:
        return {"If-None-Match": known["etag"]}
    if known and known["modified"]:
        return {"If-Modified-Since": known["modified"]}
    return {}


def _is_strong(etag: str | None) -> bool:
    return bool(etag) and not str(etag).startswith("W/")


def _goes_on(response: httpx2.Response, begun: _Begun) -> bool:
    """Whether this is the rest of what we have, of the same file by the host's own word."""
    headers = response.headers
    told: str = headers.get("content-range", "")
    of_the_same = {headers.get("etag"), headers.get("last-modified")} - {None}
    same = not of_the_same or begun.validator in of_the_same
    return same and told.startswith(f"bytes {begun.size}-")


def _write(
    response: httpx2.Response, part: Path, going_on: bool, report: ReportProgressSync
) -> int:
    """What the host sends, to the end of the part or in its place; how long the part is then."""
    size = part.stat().st_size if going_on else 0
    length = response.headers.get("content-length", "")
    total = size + int(length) if length.isdecimal() else None
    with part.open("ab" if going_on else "wb") as file:
        for block in response.iter_bytes():
            file.write(block)
            size += len(block)
            if size > LARGEST:
                part.unlink()
                raise DownloadFailed(f"{response.url} is longer than any official file")
            report(size, total, None)
        file.flush()
        os.fsync(file.fileno())
    return size


def _check_length(response: httpx2.Response, part: Path, size: int) -> None:
    told = response.headers.get("content-range", "").rpartition("/")[2]
    length = told if told.isdecimal() else response.headers.get("content-length", "")
    if not length.isdecimal() or int(length) == size:
        return
    if size > int(length):
        part.unlink(missing_ok=True)
    raise _Again(f"{response.url} broke off at {size} of {length} bytes")


def _check_digest(response: httpx2.Response, part: Path, sha256: str) -> None:
    """Where the host says what the hash should be, it is."""
    for header in ("repr-digest", "digest"):
        for told in response.headers.get(header, "").split(","):
            name, _, value = told.strip().partition("=")
            if name.lower() == "sha-256" and _hexadecimal(value) not in (None, sha256):
                part.unlink(missing_ok=True)
                raise _Again(f"{response.url} came damaged: its SHA-256 is another")


def _hexadecimal(told: str) -> str | None:
    """A hash as headers write it, `:9f86…=:`; None when it is none."""
    try:
        return base64.b64decode(told.strip(":")).hex()
    except ValueError:
        return None


def _sync_folder(folder: Path) -> None:
    """A new name survives a crash only once its folder is written."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
