"""Brings a source up to date: fetches what is new of its official files and applies it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from readingroom.bases.federal.formats.parts.files import BAD_FILE_ERRORS
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.load.bulk import LAYOUTS, Hosts, SyncRequest
from readingroom.bases.federal.load.coverage import note_sync
from readingroom.bases.federal.load.loading import Summary
from readingroom.bases.federal.load.read_ahead import describe_error
from readingroom.bases.federal.schema.sources import Source
from readingroom.bases.federal.store import connect, translate_errors
from readingroom.core import clock
from readingroom.core.errors import UnknownSource
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.net.download import Downloads, RemoteFile, RemoteFileMissing
from readingroom.net.errors import DownloadFailed
from readingroom.storage.database import DatabaseError
from readingroom.storage.errors import StorageFailed
from readingroom.storage.lock import FolderLock

FOLDER = "downloads"


@dataclass
class SyncResult:
    """The result of a sync: files listed, files fetched, and what they changed."""

    files: int = 0
    downloaded: int = 0
    unchanged: int = 0
    missing: int = 0
    failed: int = 0
    bytes: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)
    update: Summary = field(default_factory=Summary)


def sync(
    path: Path,
    source: Source,
    since: date | None,
    hosts: Hosts,
    pause: float,
    report: ReportProgressSync = no_progress_sync,
    report_loading: ReportProgressSync = no_progress_sync,
) -> SyncResult:
    """Fetch what is new of a source into the folder beside the federal file, and apply it."""
    layout = LAYOUTS.get(source.name)
    if layout is None:
        raise UnknownSource(
            f"{source.name} cannot be fetched from its publisher", valid_sources=sorted(LAYOUTS)
        )
    folder = path.parent / FOLDER
    lock = FolderLock(folder)
    lock.acquire()  # two syncs at once would write into the same partial files
    try:
        with closing(_open_downloads(folder, pause)) as downloads:
            request = SyncRequest(hosts, downloads.read, since, clock.now().date())
            result, paths = _fetch_all(downloads, lambda: list(layout(request)), report)
    finally:
        lock.release()
    # Unchanged files too: an earlier run may have been stopped before it applied them.
    result.update = loading.update(
        path, paths, None, report_loading, file_date=request.today.isoformat()
    )
    if paths and not result.failed and not result.update.failed:
        with translate_errors(path), closing(connect(path, writing=True)) as db, db.transaction():
            note_sync(db, source, since, request.today)
    return result


def _open_downloads(folder: Path, pause: float) -> Downloads:
    try:
        return Downloads(folder, pause=pause)
    except (OSError, DatabaseError) as error:
        raise StorageFailed(f"{folder} cannot be used: {error}") from error


def _fetch_all(
    downloads: Downloads, list_files: Callable[[], list[RemoteFile]], report: ReportProgressSync
) -> tuple[SyncResult, list[Path]]:
    result, paths = SyncResult(), []
    try:
        remotes = list_files()
    except RemoteFileMissing as error:
        raise DownloadFailed(str(error)) from error
    except BAD_FILE_ERRORS as error:
        raise DownloadFailed(f"A listing cannot be read: {describe_error(error)}") from error
    result.files = len(remotes)
    for number, remote in enumerate(remotes, start=1):
        report(number, len(remotes), remote.name)
        try:
            file = downloads.fetch(remote)
        except RemoteFileMissing:
            result.missing += 1
        except DownloadFailed as error:
            result.failed += 1
            result.errors.append({"file": remote.name, "error": error.message})
        else:
            paths.append(file.path)
            result.bytes += file.size if file.is_new else 0
            result.downloaded += file.is_new
            result.unchanged += not file.is_new
    return result, paths
