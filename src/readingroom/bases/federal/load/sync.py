"""Brings a source up to date: fetches what is new of its official files and applies it."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from readingroom.bases.federal.formats.parts.files import BAD_FILE_ERRORS
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.load.bulk import LAYOUTS, Hosts, Wanted
from readingroom.bases.federal.load.loading import Summary
from readingroom.bases.federal.load.read_ahead import describe_error
from readingroom.bases.federal.schema.sources import Source
from readingroom.core import clock
from readingroom.core.errors import UnknownSource
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.net.download import Downloads, RemoteFile, RemoteFileMissing
from readingroom.net.errors import DownloadFailed
from readingroom.storage.errors import StorageFailed
from readingroom.storage.lock import FolderLock

FOLDER = "downloads"


@dataclass
class Synced:
    """What a sync came to: files looked at, those that came, and what they changed."""

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
) -> Synced:
    """Fetch what is new of a source into the folder beside the federal file, and apply it."""
    layout = LAYOUTS.get(source.name)
    if layout is None:
        raise UnknownSource(f"{source.name} cannot be fetched", valid_sources=sorted(LAYOUTS))
    folder = path.parent / FOLDER
    lock = FolderLock(folder)
    lock.acquire()  # two at once would write into one another's parts
    try:
        with closing(_opened(folder, pause)) as downloads:
            wanted = Wanted(hosts, downloads.read, since, clock.now().date())
            synced, came = _fetched(downloads, lambda: list(layout(wanted)), report)
    finally:
        lock.release()
    # Also what came in a run that was stopped before it was applied: it is passed over if it is in.
    synced.update = loading.update(path, came, None, report_loading)
    return synced


def _opened(folder: Path, pause: float) -> Downloads:
    try:
        return Downloads(folder, pause=pause)
    except (OSError, sqlite3.Error) as error:
        raise StorageFailed(f"{folder} cannot be used: {error}") from error


def _fetched(
    downloads: Downloads, listed: Callable[[], list[RemoteFile]], report: ReportProgressSync
) -> tuple[Synced, list[Path]]:
    synced, came = Synced(), []
    try:
        remotes = listed()
    except RemoteFileMissing as error:
        raise DownloadFailed(str(error)) from error
    except BAD_FILE_ERRORS as error:
        raise DownloadFailed(f"A listing cannot be read: {describe_error(error)}") from error
    synced.files = len(remotes)
    for place, remote in enumerate(remotes, start=1):
        report(place, len(remotes), remote.name)
        try:
            file = downloads.fetch(remote)
        except RemoteFileMissing:
            synced.missing += 1
        except DownloadFailed as error:
            synced.failed += 1
            synced.errors.append({"file": remote.name, "error": error.message})
        else:
            came.append(file.path)
            synced.bytes += file.size if file.is_new else 0
            synced.downloaded += file.is_new
            synced.unchanged += not file.is_new
    return synced, came
