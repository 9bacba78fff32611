"""What `readingroom doctor` looks at besides the bases: the directory, the machine, the neighbours.

A problem keeps something from working. A note does not; it is worth knowing.
"""

import os
import re
import shutil
import socket
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import anyio

from readingroom.commands.restore import REPLACED, RESTORING
from readingroom.core.errors import KnowledgeError
from readingroom.core.settings import CONFIGURATION, Settings, revealed
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.database import connect
from readingroom.storage.keys import KEYS

_LEAST_FREE = 512 * 1024 * 1024
_OLDEST_SQLITE = (3, 37, 0)  # the first with STRICT tables
_QUICKLY_CHECKED = 1024**3  # bytes of a database that are read through in a few seconds
_LANGUAGE = "eng"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something to know, with what to do about it."""

    subject: str
    problem: str
    fix: str
    serious: bool = True


Check = Callable[[Settings], Iterator[Remark]]


def directory(settings: Settings) -> Iterator[Remark]:
    """The data directory can be used, and by its owner alone."""
    data = settings.data
    if data.exists() and not os.access(data, os.R_OK | os.W_OK | os.X_OK):
        fix = f"run this as {data.owner()}, or give the directory to the user who serves"
        yield Remark("directory", f"{data} cannot be written", fix)
    if (data / RESTORING).exists():
        yield Remark(
            "directory",
            "a restore was interrupted",
            "run `readingroom restore FILE --force` again; nothing of the backup is lost",
        )
    if (data / REPLACED).exists():
        yield Remark(
            "directory",
            f"what a restore replaced is still in {data / REPLACED}",
            "delete it when you are sure that you do not need it",
            serious=False,
        )


def secrets(settings: Settings) -> Iterator[Remark]:
    """What holds secrets is its owner's alone."""
    for name in (KEYS, CONFIGURATION):
        path = settings.data / name
        if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077:
            if name == CONFIGURATION and b"api_key" not in path.read_bytes():
                continue
            yield Remark("permissions", f"others may read {path}", f"chmod 600 {path}")


def disk(settings: Settings) -> Iterator[Remark]:
    folder = next(one for one in (settings.data, *settings.data.parents) if one.exists())
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE:
        yield Remark(
            "disk",
            f"only {free // 2**20} MB are free at {folder}",
            "make room, or choose another directory with --data",
        )


def model(settings: Settings) -> Iterator[Remark]:
    from readingroom.engine.embedding.weights import find_weights

    try:
        find_weights(settings.models, settings.embedding_model_dir)
    except ModelUnavailable as error:
        fix = "readingroom model install; until then searches go by words only"
        yield Remark("model", error.message, fix)


def tesseract(settings: Settings) -> Iterator[Remark]:
    if not settings.enable_ocr:
        return
    program = shutil.which("tesseract")
    if program is None:
        yield Remark(
            "tesseract",
            "it is not installed, so scanned pages have no text",
            "install tesseract-ocr, or set ENABLE_OCR=false",
        )
        return
    listed = subprocess.run([program, "--list-langs"], capture_output=True, text=True, timeout=30)
    if _LANGUAGE not in listed.stdout.split():
        yield Remark(
            "tesseract",
            f"it does not know the language {_LANGUAGE!r}",
            "install tesseract-ocr-eng, or set TESSDATA_PREFIX to where it is",
        )


def versions(settings: Settings) -> Iterator[Remark]:
    """Python's SQLite and the packages we stand on."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        needed = ".".join(map(str, _OLDEST_SQLITE))
        yield Remark(
            "versions",
            f"SQLite {sqlite3.sqlite_version} is too old, {needed} is needed",
            "use a newer Python, or one built with a newer SQLite",
        )
    with closing(connect(":memory:")) as db:
        try:
            db.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
        except sqlite3.OperationalError:
            fix = "use a Python whose SQLite was built with FTS5"
            yield Remark("versions", "SQLite has no full-text search (FTS5)", fix)
    for name in _needed():
        try:
            metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Remark("versions", f"the package {name} is missing", "install readingroom anew")


def _needed() -> Iterator[str]:
    for line in metadata.requires("readingroom") or ():
        requirement, _, marker = line.partition(";")
        if not marker:
            yield _NAME.match(requirement)[0]  # type: ignore[index]  # it begins with a name


def redis(settings: Settings) -> Iterator[Remark]:
    """The server at REDIS_URL answers and does not forget."""
    url = revealed(settings.redis_url)
    if url is None:
        return
    from readingroom.storage.keyvalue import check_durable, open_key_values

    async def ask() -> bool:
        async with open_key_values(url, settings.data) as client:
            await client.ping()
            await check_durable(client)
            return bool((await client.info("persistence")).get("aof_enabled"))

    fix = "start it, or correct REDIS_URL; set maxmemory-policy to noeviction"
    try:
        keeps = anyio.run(ask)
    except KnowledgeError as error:
        yield Remark("Redis", error.message, fix)
    except Exception as error:  # whatever its client raises, it does not answer
        yield Remark("Redis", f"the server at REDIS_URL does not answer: {error}", fix)
    else:
        if not keeps:
            told = "the server at REDIS_URL keeps no append-only file: a crash loses writes"
            yield Remark("Redis", told, "set appendonly to yes there", serious=False)


def federal(settings: Settings) -> Iterator[Remark]:
    """The federal file is sound, of a version we know, and everything in it was embedded."""
    from readingroom.bases.federal.schema.tables import SCHEMA_VERSION
    from readingroom.bases.federal.store import file_in

    path = file_in(settings.data)
    if not path.exists():
        return
    try:
        with closing(connect(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version > SCHEMA_VERSION:
                fix = "install the newer Reading Room that wrote it, or restore an older backup"
                yield Remark("federal", f"{path} has tables of a newer version", fix)
                return
            if path.stat().st_size < _QUICKLY_CHECKED:
                yield from _sound(db, path)
            yield from _embedded(db)
    except sqlite3.Error as error:
        yield Remark("federal", f"{path} cannot be read: {error}", "restore it from a backup")


def _sound(db: sqlite3.Connection, path: Path) -> Iterator[Remark]:
    (said,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if said != "ok":
        yield Remark("federal", f"{path} is damaged: {said}", "restore it from a backup")


def _embedded(db: sqlite3.Connection) -> Iterator[Remark]:
    from readingroom.bases.federal.search.vectors import waiting

    if count := waiting(db):
        yield Remark(
            "federal",
            f"{count} chunks are found by words only",
            "readingroom federal embed",
            serious=False,
        )


def text(settings: Settings) -> Iterator[Remark]:
    if settings.kb_file is not None and not os.access(settings.kb_file, os.R_OK):
        told = f"KB_FILE is {settings.kb_file}, which cannot be read"
        yield Remark("text", told, "correct KB_FILE, or unset it for the packaged sample")


def port(settings: Settings) -> Iterator[Remark]:
    """Where we would listen nobody else does; a server of ours is nobody else."""
    from readingroom.server.catalogue import ALL_PORT

    wanted = ALL_PORT if settings.port is None else settings.port
    with socket.socket() as taken:
        taken.settimeout(2)
        if wanted == 0 or taken.connect_ex(("127.0.0.1", wanted)) != 0:
            return
    if not _is_ours("https" if settings.tls_cert else "http", wanted):
        yield Remark(
            "port",
            f"another program listens on {wanted}",
            "stop it, or choose another port with --port or READINGROOM_PORT",
            serious=False,
        )


def _is_ours(scheme: str, port: int) -> bool:
    import httpx2

    from readingroom.net.http import make_client

    try:
        with make_client(timeout=5, verify=False) as client:
            answer = client.get(f"{scheme}://127.0.0.1:{port}/health")
        return bool(answer.json() == {"status": "ok"})
    except (httpx2.HTTPError, ValueError):
        return False


CHECKS: dict[str, Check] = {
    "directory": directory,
    "permissions": secrets,
    "disk": disk,
    "federal": federal,
    "text": text,
    "model": model,
    "tesseract": tesseract,
    "versions": versions,
    "Redis": redis,
    "port": port,
}
