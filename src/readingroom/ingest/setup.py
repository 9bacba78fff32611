"""The reader of files as the settings want it, shared by all bases of a process."""

import logging
from functools import lru_cache
from pathlib import Path

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.ingest.confine.process import describe_confinement_gaps
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import ReadOptions
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits
from readingroom.storage.postgres.database import find_database

TEMPORARY_FOLDER_NAME = "tmp"
"""Folder in the data directory for copies and scratch folders: the system's own folder for
temporary files is often in memory, and too small for large documents.
"""

_log = logging.getLogger("readingroom.ingest")


def make_ingest_context(
    settings: RoomSettings,
    base_name: str,
    roots_setting_name: str,
    root_folders: tuple[Path, ...] | None,
) -> IngestContext:
    """Return what a base made of files works with.

    `root_folders` are the folders it may take files from, by default its inbox and its uploads;
    `roots_variable` is the setting that an error about them names.
    """
    base_folder = settings.data / base_name
    default_root_folders = (base_folder / "inbox", base_folder / "uploads")
    allowed_root_folders = default_root_folders if root_folders is None else root_folders
    return IngestContext(
        make_pipeline(settings),
        get_shared_embedder(settings),
        AllowedFolders(
            roots_setting_name,
            allowed_root_folders,
            settings.max_document_bytes,
            settings.data / TEMPORARY_FOLDER_NAME,
        ),
        database=find_database(settings),
    )


@lru_cache
def make_pipeline(settings: RoomSettings) -> Pipeline:
    """Return one pipeline for all bases: it allows as many readers at once as there are cores."""
    read_options = ReadOptions(
        enable_ocr=settings.enable_ocr,
        image_ratio_threshold=settings.image_ratio_threshold,
        image_skip_rule=settings.image_skip,
    )
    if gaps_description := describe_confinement_gaps():
        _log.warning(gaps_description)
    job_limits = ReadingLimits(wall_seconds=settings.ingest_seconds)
    return Pipeline(
        ConfinedReader(job_limits, scratch_parent=settings.data / TEMPORARY_FOLDER_NAME),
        read_options,
    )
