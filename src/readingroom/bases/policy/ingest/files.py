"""The files of revisions: kept as `<source>/<revision>/document.pdf`, or as what else they are."""

import shutil
import uuid
from collections.abc import Collection
from pathlib import Path, PurePath

from readingroom.core.errors import FileTooLarge
from readingroom.ingest.document import Refusal
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.ingest.private_copy import PrivateCopy, Roots
from readingroom.ingest.read.formats.detect import (
    HEAD_BYTES,
    POLICY_EXTENSIONS,
    check_file_name,
    detect_format,
    get_named_format,
)
from readingroom.storage.files import copy_stream, resolve_inside, translate_os_errors

MAX_FILE_BYTES = 50 * 1024 * 1024

_PDF_EXTENSION = ".pdf"
_SCAN_EXTENSIONS = (".png", ".jpg", ".jpeg", ".tiff", ".tif", ".bmp")
"""What the contract's tool reads too; they are kept under the name of a PDF."""


def choose_extension(file_name: str) -> str:
    """Return the extension under which a file is kept.

    A name without one of ours is that of a PDF or of a picture, which their first bytes tell.
    """
    extension = PurePath(file_name).suffix.lower()
    return extension if extension in POLICY_EXTENSIONS else _PDF_EXTENSION


def check_revision_name(file_name: str) -> None:
    """Raise `UnsupportedFileType` for a file that cannot be a revision's by its name."""
    try:
        check_file_name(file_name, (*POLICY_EXTENSIONS, *_SCAN_EXTENSIONS))
    except Refusal as refusal:
        raise UnsupportedFileType(refusal.message) from refusal


def check_revision_file(path: Path, extension: str) -> None:
    """Raise `UnsupportedFileType` or `FileTooLarge` for a file that cannot be a revision's."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    try:
        # PDF readers accept the mark anywhere in the first kilobyte.
        is_named_right = (
            b"%PDF-" in head
            if extension == _PDF_EXTENSION
            else detect_format(head, f"document{extension}") == get_named_format(extension)
        )
    except Refusal:
        is_named_right = False
    if not is_named_right:
        format_name = extension.removeprefix(".")
        message = "a PDF" if extension == _PDF_EXTENSION else f"a .{format_name} file"
        raise UnsupportedFileType(
            f"The file is not {message}; a revision may be one of {', '.join(POLICY_EXTENSIONS)}"
        )
    if path.stat().st_size > MAX_FILE_BYTES:
        raise FileTooLarge(f"The file is larger than {MAX_FILE_BYTES // 2**20} MB")


class RevisionFiles:
    """The files of one policy base, and those that are being received or ingested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def uploads_folder(self) -> Path:
        """The folder for files that are being received or ingested."""
        return self._folder / "uploads"

    def make_roots(self) -> Roots:
        """Return the roots from which our own copies may be opened."""
        return Roots("the policy folder", (self._folder,), MAX_FILE_BYTES, self.uploads_folder)

    def get_path(self, source: str, revision_id: str) -> Path:
        """Return the path of our copy of a revision's file; that of a PDF when there is none."""
        paths = [
            self._build_path(source, revision_id, extension) for extension in POLICY_EXTENSIONS
        ]
        return next((path for path in paths if path.exists()), paths[0])

    def copy_to_spool(self, private_copy: PrivateCopy) -> Path:
        """Copy what is being ingested, for the recovery after a crash; return the copy."""
        extension = choose_extension(private_copy.file_name)
        spool = self.uploads_folder / f"{uuid.uuid4().hex}{extension}"
        copy_stream(private_copy.file, spool)
        return spool

    def move_into_place(self, spool: Path, source: str, revision_id: str, extension: str) -> None:
        """Make a file the one of a revision."""
        final_path = self._build_path(source, revision_id, extension)
        with translate_os_errors("The file cannot be kept"):
            final_path.parent.mkdir(parents=True, exist_ok=True)
            # Those in other formats before the new one, or a crash could leave two. Nothing is
            # lost by it: until the rename, the intent names the spool.
            for other_path in final_path.parent.glob("document.*"):
                if other_path != final_path:
                    other_path.unlink(missing_ok=True)
            # A rename in one file system is atomic: a reader sees the old file or the new one.
            spool.replace(final_path)

    def delete(self, source: str, revision_id: str) -> None:
        """Delete the file of a revision, and the folder that it alone was in."""
        shutil.rmtree(self._build_path(source, revision_id).parent, ignore_errors=True)

    def delete_policy_folder(self, source: str) -> None:
        """Delete the folder of a policy with every file in it."""
        shutil.rmtree(resolve_inside(self._folder, source), ignore_errors=True)

    def sweep_uploads(self, needed_files: Collection[str]) -> None:
        """Delete what interrupted uploads left, but for the files that are still needed."""
        for path in self.uploads_folder.glob("*"):
            if path.suffix in POLICY_EXTENSIONS and str(path) not in needed_files:
                path.unlink(missing_ok=True)

    def _build_path(self, source: str, revision_id: str, extension: str = _PDF_EXTENSION) -> Path:
        return resolve_inside(self._folder, source, revision_id, f"document{extension}")
