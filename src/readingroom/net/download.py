"""Downloads official files: one at a time, resumed where they broke off, complete or not at all.

A file counts once it lies complete under its name and has a row in the table: URL, validators, size
and SHA-256. Until then it is named `.part`, and the next download continues from there.
"""

import base64
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx2

from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.net.errors import DownloadFailed
from readingroom.net.http import (
    RetryPolicy,
    TransientError,
    make_client,
    parse_retry_after,
    retry_call,
)
from readingroom.storage.database import Row, connect
from readingroom.storage.files import hash_file

Result = TypeVar("Result")

MAX_LISTING_BYTES = 64 * 1024 * 1024
MAX_FILE_BYTES = 4 * 1024**3
"""No official file is nearly as long; one that never ends would fill the disk."""
# Nobody waits at a prompt for these files, so waits may be long and spare the host.
_RETRY_POLICY = RetryPolicy(max_attempts=4, first_wait_seconds=1.0, max_wait_seconds=60.0)
_FILES_TABLE_SQL = """CREATE TABLE IF NOT EXISTS files (
    url TEXT PRIMARY KEY, name TEXT NOT NULL, etag TEXT, modified TEXT,
    size INTEGER NOT NULL, sha256 TEXT NOT NULL)"""
_PARTS_TABLE_SQL = """CREATE TABLE IF NOT EXISTS parts (
    url TEXT PRIMARY KEY, etag TEXT, modified TEXT)"""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """An official file: its URL, and its path below the download folder."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A complete local file, and whether it was transferred just now."""

    path: Path
    sha256: str
    size: int
    is_new: bool


class RemoteFileMissing(Exception):
    """The host answered that it has no such file."""


class Downloads:
    """A folder of official files, and the table of those that are complete."""

    def __init__(
        self,
        downloads_folder: Path,
        *,
        pause_seconds: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder = downloads_folder
        self._pause_seconds = pause_seconds
        self._sleep = sleep
        self._is_first_request = True
        downloads_folder.mkdir(parents=True, exist_ok=True)
        self._db = connect(downloads_folder / "downloads.db", with_named_rows=True)
        self._db.execute(_FILES_TABLE_SQL)
        self._db.execute(_PARTS_TABLE_SQL)
        # Without compression, so that lengths and ranges count the file's own bytes.
        self._http_client = make_client(extra_headers={"Accept-Encoding": "identity"})

    def close(self) -> None:
        self._http_client.close()
        self._db.close()

    def read_listing(self, url: str, accept: str = "*/*") -> bytes:
        """Return a listing.

        Raise `RemoteFileMissing` where there is none, and `DownloadFailed` after the last attempt.
        """
        return self._run_with_retries(lambda: self._read_listing(url, accept))

    def fetch_file(
        self, remote_file: RemoteFile, report_progress: ReportProgressSync = no_progress_sync
    ) -> DownloadedFile:
        """Return the local copy of a file, which is transferred only if it is new or has changed.

        Raise `RemoteFileMissing` where there is none, and `DownloadFailed` after the last attempt.
        """
        return self._run_with_retries(lambda: self._fetch_file(remote_file, report_progress))

    # --- politeness ---

    def _run_with_retries(self, make_request: Callable[[], Result]) -> Result:
        try:
            return retry_call(
                lambda: self._make_one_attempt(make_request), _RETRY_POLICY, self._sleep
            )
        except TransientError as error:
            raise DownloadFailed(f"{error}, after {_RETRY_POLICY.max_attempts} tries") from error

    def _make_one_attempt(self, make_request: Callable[[], Result]) -> Result:
        if not self._is_first_request:
            self._sleep(self._pause_seconds)
        self._is_first_request = False
        try:
            return make_request()
        except httpx2.HTTPError as error:
            raise TransientError(str(error) or type(error).__name__) from error

    def _check_response_status(self, response: httpx2.Response, *accepted_statuses: int) -> None:
        http_status = response.status_code
        if http_status in accepted_statuses:
            return
        if http_status in (404, 410):
            raise RemoteFileMissing(f"{response.url} is not there ({http_status})")
        if http_status == 429 or http_status >= 500:
            wait_seconds = parse_retry_after(response.headers.get("retry-after"))
            raise TransientError(f"{response.url} answered with status {http_status}", wait_seconds)
        redirect_location = response.headers.get("location")
        redirect_note = f" and redirects to {redirect_location}" if redirect_location else ""
        raise DownloadFailed(f"{response.url} answered with status {http_status}{redirect_note}")

    # --- one request ---

    def _read_listing(self, url: str, accept_header: str) -> bytes:
        with self._http_client.stream("GET", url, headers={"Accept": accept_header}) as response:
            self._check_response_status(response, 200)
            body_blocks, received_byte_count = [], 0
            for body_block in response.iter_bytes():
                received_byte_count += len(body_block)
                if received_byte_count > MAX_LISTING_BYTES:
                    raise DownloadFailed(f"{url} is too long for a listing")
                body_blocks.append(body_block)
            return b"".join(body_blocks)

    def _fetch_file(
        self, remote_file: RemoteFile, report_progress: ReportProgressSync
    ) -> DownloadedFile:
        local_path = self._make_local_path(remote_file.name)
        complete_file_row = self._find_complete_file_row(remote_file, local_path)
        partial_path = local_path.with_name(local_path.name + ".part")
        partial_file = self._find_partial_file(remote_file, partial_path)
        request_headers = _make_conditional_headers(complete_file_row, partial_file)
        with self._http_client.stream("GET", remote_file.url, headers=request_headers) as response:
            # 416: the part here is longer than the file, so it belongs to another version of it.
            if response.status_code == 416:
                partial_path.unlink(missing_ok=True)
                raise TransientError(f"{remote_file.url} has changed since its download began")
            self._check_response_status(response, 200, 206, 304)
            if response.status_code == 304:
                if complete_file_row is None:
                    raise TransientError(
                        f"{remote_file.url} was reported unchanged, but is not here"
                    )
                return DownloadedFile(
                    local_path, complete_file_row["sha256"], complete_file_row["size"], is_new=False
                )
            is_resumed = response.status_code == 206
            if is_resumed and not (
                partial_file and _continues_partial_file(response, partial_file)
            ):
                partial_path.unlink(missing_ok=True)
                raise TransientError(f"{remote_file.url} sent a different range than requested")
            self._record_partial_file(remote_file, response)
            partial_byte_count = _write_response_body(
                response, partial_path, is_resumed, report_progress
            )
            _check_body_length(response, partial_path, partial_byte_count)
        return self._complete_download(remote_file, response, partial_path, local_path)

    def _make_local_path(self, file_name: str) -> Path:
        """Return a path below the folder. Names come from listings that others write."""
        local_path = (self._folder / file_name).resolve()
        if (
            not local_path.is_relative_to(self._folder.resolve())
            or local_path == self._folder.resolve()
        ):
            raise DownloadFailed(f"The file name {file_name!r} leads out of the download folder")
        local_path.parent.mkdir(parents=True, exist_ok=True)
        return local_path

    def _find_complete_file_row(self, remote_file: RemoteFile, local_path: Path) -> Row | None:
        """Return the row of a file that is here complete and undamaged, else None."""
        file_row: Row | None = self._db.execute(
            "SELECT * FROM files WHERE url = ?", (remote_file.url,)
        ).fetchone()
        # Hashed each time: a file that was damaged on this disk since is fetched again.
        if (
            file_row is None
            or not local_path.is_file()
            or hash_file(local_path) != file_row["sha256"]
        ):
            return None
        return file_row

    def _find_partial_file(
        self, remote_file: RemoteFile, partial_path: Path
    ) -> "_PartialFile | None":
        """Return what is here of a file that broke off; None where it cannot be resumed."""
        partial_file_row = self._db.execute(
            "SELECT * FROM parts WHERE url = ?", (remote_file.url,)
        ).fetchone()
        if (
            partial_file_row is None
            or not partial_path.is_file()
            or not partial_path.stat().st_size
        ):
            return None
        # Without a validator the rest of another version could be appended unnoticed.
        resume_validator = (
            partial_file_row["etag"]
            if _is_strong_etag(partial_file_row["etag"])
            else partial_file_row["modified"]
        )
        return (
            _PartialFile(partial_path.stat().st_size, resume_validator)
            if resume_validator
            else None
        )

    def _record_partial_file(self, remote_file: RemoteFile, response: httpx2.Response) -> None:
        response_headers = response.headers
        self._db.execute(
            "INSERT OR REPLACE INTO parts VALUES (?, ?, ?)",
            (remote_file.url, response_headers.get("etag"), response_headers.get("last-modified")),
        )

    def _complete_download(
        self,
        remote_file: RemoteFile,
        response: httpx2.Response,
        partial_path: Path,
        local_path: Path,
    ) -> DownloadedFile:
        """Give a complete file its own name, then its row: from here on it counts."""
        sha256, file_size = hash_file(partial_path), partial_path.stat().st_size
        _check_file_digest(response, partial_path, sha256)
        # The file before its row: after a crash in between it is only fetched again.
        partial_path.replace(local_path)
        _sync_folder(local_path.parent)
        response_headers = response.headers
        leading_column_values = (
            remote_file.url,
            remote_file.name,
            response_headers.get("etag"),
            response_headers.get("last-modified"),
        )
        with self._db.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?)",
                (*leading_column_values, file_size, sha256),
            )
            self._db.execute("DELETE FROM parts WHERE url = ?", (remote_file.url,))
        return DownloadedFile(local_path, sha256, file_size, is_new=True)


@dataclass(frozen=True, slots=True)
class _PartialFile:
    size: int
    version_tag: str


def _make_conditional_headers(
    complete_file_row: Row | None, partial_file: _PartialFile | None
) -> dict[str, str]:
    # With If-Range a host whose file has changed sends all of it, instead of a rest that does not
    # fit.
    if partial_file:
        return {"Range": f"bytes={partial_file.size}-", "If-Range": partial_file.version_tag}
    if complete_file_row and complete_file_row["etag"]:
        return {"If-None-Match": complete_file_row["etag"]}
    if complete_file_row and complete_file_row["modified"]:
        return {"If-Modified-Since": complete_file_row["modified"]}
    return {}


def _is_strong_etag(etag: str | None) -> bool:
    return bool(etag) and not str(etag).startswith("W/")


def _continues_partial_file(response: httpx2.Response, partial_file: _PartialFile) -> bool:
    """Whether a 206 is the rest of what we have, and of the same file by the host's own word."""
    response_headers = response.headers
    content_range: str = response_headers.get("content-range", "")
    version_validators = {response_headers.get("etag"), response_headers.get("last-modified")} - {
        None
    }
    # A 206 without validators is believed: `If-Range` has asked for this version alone.
    is_same_file = not version_validators or partial_file.version_tag in version_validators
    return is_same_file and content_range.startswith(f"bytes {partial_file.size}-")


def _write_response_body(
    response: httpx2.Response,
    partial_path: Path,
    is_resumed: bool,
    report_progress: ReportProgressSync,
) -> int:
    """Append the body to the part, or replace it; return the part's size afterwards."""
    written_byte_count = partial_path.stat().st_size if is_resumed else 0
    content_length = response.headers.get("content-length", "")
    total_byte_count = (
        written_byte_count + int(content_length) if content_length.isdecimal() else None
    )
    with partial_path.open("ab" if is_resumed else "wb") as part_file:
        for body_block in response.iter_bytes():
            part_file.write(body_block)
            written_byte_count += len(body_block)
            if written_byte_count > MAX_FILE_BYTES:
                partial_path.unlink()
                raise DownloadFailed(f"{response.url} is longer than any official file")
            report_progress(written_byte_count, total_byte_count, None)
        part_file.flush()
        # Before it gets its name: a file under its own name must be complete after a power cut.
        os.fsync(part_file.fileno())
    return written_byte_count


def _check_body_length(
    response: httpx2.Response, partial_path: Path, partial_byte_count: int
) -> None:
    # Of a 206, Content-Length counts the rest alone; the whole length is in Content-Range.
    stated_byte_count_text = response.headers.get("content-range", "").rpartition("/")[2]
    if not stated_byte_count_text.isdecimal():
        stated_byte_count_text = response.headers.get("content-length", "")
    if not stated_byte_count_text.isdecimal() or int(stated_byte_count_text) == partial_byte_count:
        return
    # Too long cannot be mended by appending, so the next attempt starts anew.
    if partial_byte_count > int(stated_byte_count_text):
        partial_path.unlink(missing_ok=True)
    raise TransientError(
        f"{response.url} broke off at {partial_byte_count} of {stated_byte_count_text} bytes"
    )


def _check_file_digest(response: httpx2.Response, partial_path: Path, sha256: str) -> None:
    """Compare the file with the SHA-256 that the host states, where it states one."""
    for header_name in ("repr-digest", "digest"):
        for digest_field in response.headers.get(header_name, "").split(","):
            digest_algorithm, _, encoded_digest = digest_field.strip().partition("=")
            if digest_algorithm.lower() == "sha-256" and _decode_digest(encoded_digest) not in (
                None,
                sha256,
            ):
                partial_path.unlink(missing_ok=True)
                raise TransientError(f"{response.url} came damaged: its SHA-256 does not match")


def _decode_digest(encoded_digest: str) -> str | None:
    """Return the hexadecimal form of a digest written as `:n4bQ…=:`; None where it is not one."""
    try:
        return base64.b64decode(encoded_digest.strip(":")).hex()
    except ValueError:
        return None


def _sync_folder(changed_folder: Path) -> None:
    # A new name survives a crash only once its folder is written.
    file_descriptor = os.open(changed_folder, os.O_RDONLY)
    try:
        os.fsync(file_descriptor)
    finally:
        os.close(file_descriptor)
