"""Lists the files inside another: those attached to a message, or packed in a zip archive."""

import stat
import zipfile
from collections.abc import Sequence
from pathlib import PurePath

from readingroom.core.imports import import_reference
from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.detect import HEAD_BYTES, detect_format
from readingroom.ingest.read.formats.mail import ContainedFile
from readingroom.ingest.read.formats.office.archive import Archive
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

MAX_CONTAINED_FILES = 500
MAX_UNPACKED_BYTES = 512 * 2**20
_MAX_NAME_CHARS = 200

# Imported when they are needed: each file is read in a process of its own.
_ATTACHMENT_READERS = {
    "eml": "readingroom.ingest.read.formats.mail:list_attachments",
    "msg": "readingroom.ingest.read.formats.outlook:list_msg_attachments",
}
_SYSTEM_NAMES = frozenset(("thumbs.db", "desktop.ini"))
_SYSTEM_FOLDER = "__macosx"


def list_contained_files(content: bytes, file_name: str) -> list[ContainedFile]:
    """Return the files inside a message or an archive, in order; raise a `Refusal`.

    Their names are plain file names, whatever paths the container gives them.
    """
    file_format = detect_format(content[:HEAD_BYTES], file_name)
    if file_format == "zip":
        contained_files = _unpack_archive(content)
    elif file_format in _ATTACHMENT_READERS:
        contained_files = import_reference(_ATTACHMENT_READERS[file_format])(content)
    else:
        contained_files = []
    if len(contained_files) > MAX_CONTAINED_FILES:
        raise _make_count_refusal(len(contained_files))
    return _name_apart(contained_files)


def read_zip(content: bytes, file_name: str, options: ReadOptions) -> list[RawPage]:
    """Return a page that lists what is in an archive; raise a `Refusal`."""
    pages = PageBuilder()
    pages.add_paragraph(f"Contents of {PurePath(file_name).name}", heading_level=1)
    for entry in _list_entries(Archive(content, MAX_UNPACKED_BYTES)):
        pages.add_row([_clean_path(entry.filename), f"{entry.file_size:,} bytes"])
    return pages.finish()


def _unpack_archive(content: bytes) -> list[ContainedFile]:
    archive = Archive(content, MAX_UNPACKED_BYTES)
    return [
        ContainedFile(_clean_path(entry.filename), archive.read(entry))
        for entry in _list_entries(archive)
    ]


def _list_entries(archive: Archive) -> list[zipfile.ZipInfo]:
    """Return the entries that somebody packed: no folders, links or files of the system."""
    entries = [
        entry for entry in archive.entries if not entry.is_dir() and not _is_system_file(entry)
    ]
    if not entries:
        raise Refusal("no_content", "The archive has no files in it")
    if len(entries) > MAX_CONTAINED_FILES:
        raise _make_count_refusal(len(entries))
    return entries


def _is_system_file(entry: zipfile.ZipInfo) -> bool:
    *folders, name = _clean_path(entry.filename).lower().split("/")
    is_link = stat.S_ISLNK(entry.external_attr >> 16)
    return is_link or name.startswith(".") or name in _SYSTEM_NAMES or _SYSTEM_FOLDER in folders


def _clean_path(path: str) -> str:
    """Return a path that leads nowhere but down: `../../etc/x` is `etc/x`."""
    path_parts = [part.strip() for part in path.replace("\\", "/").split("/")]
    kept_parts = [
        "".join(character for character in part if character.isprintable())
        for part in path_parts
        if part not in ("", ".", "..") and not part.endswith(":")
    ]
    return "/".join(part[:_MAX_NAME_CHARS] for part in kept_parts) or "file"


def _name_apart(contained_files: Sequence[ContainedFile]) -> list[ContainedFile]:
    """Return the files under their bare names; of two with the same name, the second gets a 2."""
    used_names: set[str] = set()
    named_files = []
    for contained_file in contained_files:
        bare_name = PurePath(_clean_path(contained_file.name).rpartition("/")[2])
        name, repetition = bare_name.name, 1
        while name in used_names:
            repetition += 1
            name = f"{bare_name.stem} ({repetition}){bare_name.suffix}"
        used_names.add(name)
        named_files.append(ContainedFile(name, contained_file.content))
    return named_files


def _make_count_refusal(file_count: int) -> Refusal:
    return Refusal(
        "extraction_failed",
        f"There are {file_count:,} files in it; at most {MAX_CONTAINED_FILES} are read. "
        "Unpack it yourself, and ingest its files",
    )
