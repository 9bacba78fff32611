"""Brings a source up to date: fetches what is new of its official files and applies it."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from readingroom.bases.federal.formats.parts.files import BAD_FILE_ERRORS
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.load.bulk import FILE_LISTERS_BY_SOURCE, Hosts, SyncRequest
from readingroom.bases.federal.load.coverage import store_sync_date
from readingroom.bases.federal.load.loading import LoadSummary
from readingroom.bases.federal.load.read_ahead import describe_error
from readingroom.bases.federal.schema.sources import Source
from readingroom.bases.federal.store import FederalPlace, connect, translate_errors
from readingroom.core import clock
from readingroom.core.errors import UnknownSource
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.net.download import Downloads, RemoteFile, RemoteFileMissing
from readingroom.net.errors import DownloadFailed
from readingroom.storage.database import DatabaseError
from readingroom.storage.errors import StorageFailed
from readingroom.storage.lock import FolderLock

DOWNLOADS_FOLDER_NAME = "downloads"


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
    update: LoadSummary = field(default_factory=LoadSummary)


def sync(
    database_path: Path,
    record_source: Source,
    since_day: date | None,
    hosts: Hosts,
    pause_seconds: float,
    report_progress: ReportProgressSync = no_progress_sync,
    report_loading: ReportProgressSync = no_progress_sync,
    shared_place: FederalPlace | None = None,
) -> SyncResult:
    """Fetch what is new of a source into the folder beside the federal file, and apply it.

    With `shared_place` it is applied there, and the folder has the downloads alone.
    """
    records_place = shared_place or database_path
    list_bulk_files = FILE_LISTERS_BY_SOURCE.get(record_source.name)
    if list_bulk_files is None:
        raise UnknownSource(
            f"{record_source.name} cannot be fetched from its publisher",
            valid_sources=sorted(FILE_LISTERS_BY_SOURCE),
        )
    download_folder = database_path.parent / DOWNLOADS_FOLDER_NAME
    folder_lock = FolderLock(download_folder)
    folder_lock.acquire()  # two syncs at once would write into the same partial files
    try:
        with closing(_open_downloads(download_folder, pause_seconds)) as downloads:
            sync_request = SyncRequest(hosts, downloads.read_listing, since_day, clock.now().date())
            sync_result, fetched_paths = _fetch_files(
                downloads, lambda: list(list_bulk_files(sync_request)), report_progress
            )
    finally:
        folder_lock.release()
    # Unchanged files too: an earlier run may have been stopped before it applied them.
    sync_result.update = loading.update(
        records_place, fetched_paths, None, report_loading, file_date=sync_request.today.isoformat()
    )
    if fetched_paths and not sync_result.failed and not sync_result.update.failed:
        with (
            translate_errors(records_place),
            closing(connect(records_place, writing=True)) as db,
            db.transaction(),
        ):
            store_sync_date(db, record_source, since_day, sync_request.today)
    return sync_result


def _open_downloads(download_folder: Path, pause_seconds: float) -> Downloads:
    try:
        return Downloads(download_folder, pause_seconds=pause_seconds)
    except (OSError, DatabaseError) as error:
        raise StorageFailed(f"{download_folder} cannot be used: {error}") from error


def _fetch_files(
    downloads: Downloads,
    list_remote_files: Callable[[], list[RemoteFile]],
    report_progress: ReportProgressSync,
) -> tuple[SyncResult, list[Path]]:
    sync_result, fetched_paths = SyncResult(), []
    try:
        remote_files = list_remote_files()
    except RemoteFileMissing as error:
        raise DownloadFailed(str(error)) from error
    except BAD_FILE_ERRORS as error:
        raise DownloadFailed(f"A listing cannot be read: {describe_error(error)}") from error
    sync_result.files = len(remote_files)
    for file_number, remote_file in enumerate(remote_files, start=1):
        report_progress(file_number, len(remote_files), remote_file.name)
        try:
            fetched_file = downloads.fetch_file(remote_file)
        except RemoteFileMissing:
            sync_result.missing += 1
        except DownloadFailed as error:
            sync_result.failed += 1
            sync_result.errors.append({"file": remote_file.name, "error": error.message})
        else:
            fetched_paths.append(fetched_file.path)
            sync_result.bytes += fetched_file.size if fetched_file.is_new else 0
            sync_result.downloaded += fetched_file.is_new
            sync_result.unchanged += not fetched_file.is_new
    return sync_result, fetched_paths
