"""Lists the files inside another: those attached to a message, or packed in a zip archive."""

import stat
import zipfile
from collections.abc import Sequence
from pathlib import PurePath

from readingroom.core.imports import import_reference
from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.detect import DETECTION_BYTE_COUNT, detect_format
from readingroom.ingest.read.formats.mail import ContainedFile
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

MAX_CONTAINED_FILES = 500
MAX_UNPACKED_BYTES = 512 * 2**20
_MAX_PATH_PART_CHARS = 200

# Imported when they are needed: each file is read in a process of its own.
_LISTER_REFERENCE_BY_FORMAT = {
    "eml": "readingroom.ingest.read.formats.mail:list_attachments",
    "msg": "readingroom.ingest.read.formats.outlook:list_msg_attachments",
}
_SYSTEM_FILE_NAMES = frozenset(("thumbs.db", "desktop.ini"))
_SYSTEM_FOLDER_NAME = "__macosx"


def list_contained_files(file_bytes: bytes, file_name: str) -> list[ContainedFile]:
    """Return the files inside a message or an archive, in order; raise a `Refusal`.

    Their names are plain file names, whatever paths the container gives them.
    """
    file_format = detect_format(file_bytes[:DETECTION_BYTE_COUNT], file_name)
    if file_format == "zip":
        contained_files = _unpack_archive(file_bytes)
    elif file_format in _LISTER_REFERENCE_BY_FORMAT:
        contained_files = import_reference(_LISTER_REFERENCE_BY_FORMAT[file_format])(file_bytes)
    else:
        contained_files = []
    if len(contained_files) > MAX_CONTAINED_FILES:
        raise _make_file_count_refusal(len(contained_files))
    return _make_uniquely_named_files(contained_files)


def read_zip(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return a page that lists what is in an archive; raise a `Refusal`."""
    page_builder = PageBuilder()
    page_builder.add_paragraph(f"Contents of {PurePath(file_name).name}", heading_level=1)
    for archive_entry in _list_file_entries(Archive(file_bytes, MAX_UNPACKED_BYTES)):
        page_builder.add_row(
            [_clean_entry_path(archive_entry.filename), f"{archive_entry.file_size:,} bytes"]
        )
    return page_builder.finish_pages()


def _unpack_archive(file_bytes: bytes) -> list[ContainedFile]:
    zip_archive = Archive(file_bytes, MAX_UNPACKED_BYTES)
    return [
        ContainedFile(
            _clean_entry_path(archive_entry.filename), zip_archive.read_member(archive_entry)
        )
        for archive_entry in _list_file_entries(zip_archive)
    ]


def _list_file_entries(zip_archive: Archive) -> list[zipfile.ZipInfo]:
    """Return the entries that somebody packed: no folders, links or files of the system."""
    archive_entries = [
        archive_entry
        for archive_entry in zip_archive.entries
        if not archive_entry.is_dir() and not _is_system_file_or_link(archive_entry)
    ]
    if not archive_entries:
        raise Refusal("no_content", "The archive has no files in it")
    if len(archive_entries) > MAX_CONTAINED_FILES:
        raise _make_file_count_refusal(len(archive_entries))
    return archive_entries


def _is_system_file_or_link(archive_entry: zipfile.ZipInfo) -> bool:
    *folder_names, base_name = _clean_entry_path(archive_entry.filename).lower().split("/")
    is_link = stat.S_ISLNK(archive_entry.external_attr >> 16)
    return (
        is_link
        or base_name.startswith(".")
        or base_name in _SYSTEM_FILE_NAMES
        or _SYSTEM_FOLDER_NAME in folder_names
    )


def _clean_entry_path(entry_path: str) -> str:
    """Return a path that leads nowhere but down: `../../etc/x` is `etc/x`."""
    path_parts = [path_part.strip() for path_part in entry_path.replace("\\", "/").split("/")]
    printable_path_parts = [
        "".join(path_character for path_character in path_part if path_character.isprintable())
        for path_part in path_parts
        if path_part not in ("", ".", "..") and not path_part.endswith(":")
    ]
    return (
        "/".join(path_part[:_MAX_PATH_PART_CHARS] for path_part in printable_path_parts) or "file"
    )


def _make_uniquely_named_files(contained_files: Sequence[ContainedFile]) -> list[ContainedFile]:
    """Return the files under their bare names; of two with the same name, the second gets a 2."""
    used_names: set[str] = set()
    uniquely_named_files = []
    for contained_file in contained_files:
        bare_file_name = PurePath(_clean_entry_path(contained_file.name).rpartition("/")[2])
        unique_name, repetition_number = bare_file_name.name, 1
        while unique_name in used_names:
            repetition_number += 1
            unique_name = f"{bare_file_name.stem} ({repetition_number}){bare_file_name.suffix}"
        used_names.add(unique_name)
        uniquely_named_files.append(ContainedFile(unique_name, contained_file.content))
    return uniquely_named_files


def _make_file_count_refusal(file_count: int) -> Refusal:
    return Refusal(
        "extraction_failed",
        f"There are {file_count:,} files in it; at most {MAX_CONTAINED_FILES} are read. "
        "Unpack it yourself, and ingest its files",
    )
