"""The files of revisions: kept as `<source>/<revision>/document.pdf`, or as what else they are."""

import uuid
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path, PurePath

from readingroom.core import clock
from readingroom.core.errors import FileTooLarge
from readingroom.ingest.document import Refusal
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.ingest.private_copy import AllowedFolders, PrivateCopy
from readingroom.ingest.read.formats.detect import (
    DETECTION_BYTE_COUNT,
    POLICY_EXTENSIONS,
    check_file_name,
    detect_format,
    find_format_by_extension,
)
from readingroom.storage.files import copy_stream, delete_old_files, resolve_inside
from readingroom.storage.postgres.database import PostgresDatabase
from readingroom.storage.postgres.files import open_files

MAX_FILE_BYTES = 50 * 1024 * 1024

_PDF_EXTENSION = ".pdf"
_SCAN_EXTENSIONS = (".png", ".jpg", ".jpeg", ".tiff", ".tif", ".bmp")
"""What the contract's tool reads too; they are kept under the name of a PDF."""


def choose_file_extension(file_name: str) -> str:
    """Return the extension under which a file is kept.

    A name without one of ours is that of a PDF or of a picture, which their first bytes tell.
    """
    file_extension = PurePath(file_name).suffix.lower()
    return file_extension if file_extension in POLICY_EXTENSIONS else _PDF_EXTENSION


def check_revision_file_name(file_name: str) -> None:
    """Raise `UnsupportedFileType` for a file that cannot be a revision's by its name."""
    try:
        check_file_name(file_name, (*POLICY_EXTENSIONS, *_SCAN_EXTENSIONS))
    except Refusal as refusal:
        raise UnsupportedFileType(refusal.message) from refusal


def check_revision_file(file_path: Path, file_extension: str) -> None:
    """Raise `UnsupportedFileType` or `FileTooLarge` for a file that cannot be a revision's."""
    with file_path.open("rb") as open_file:
        first_bytes = open_file.read(DETECTION_BYTE_COUNT)
    try:
        # PDF readers accept the mark anywhere in the first kilobyte.
        has_right_extension = (
            b"%PDF-" in first_bytes
            if file_extension == _PDF_EXTENSION
            else detect_format(first_bytes, f"document{file_extension}")
            == find_format_by_extension(file_extension)
        )
    except Refusal:
        has_right_extension = False
    if not has_right_extension:
        format_name = file_extension.removeprefix(".")
        expected_format_text = (
            "a PDF" if file_extension == _PDF_EXTENSION else f"a .{format_name} file"
        )
        raise UnsupportedFileType(
            f"The file is not {expected_format_text}; a revision may be one of "
            f"{', '.join(POLICY_EXTENSIONS)}"
        )
    if file_path.stat().st_size > MAX_FILE_BYTES:
        raise FileTooLarge(f"The file is larger than {MAX_FILE_BYTES // 2**20} MB")


class RevisionFiles:
    """The files of one policy base, and those that are being received or ingested."""

    def __init__(self, files_folder: Path, postgres_database: PostgresDatabase | None) -> None:
        self._files_folder = files_folder
        self._file_store = open_files("policy", files_folder, postgres_database)
        self._is_shared = postgres_database is not None
        # Where processes share the folder each has its own: none sweeps what another receives.
        self.uploads_folder = (
            files_folder / "uploads" / (uuid.uuid4().hex if postgres_database else "")
        )
        """The folder for files that are being received or ingested."""

    def open_copy_in_thread(self, file_path: Path) -> AbstractAsyncContextManager[PrivateCopy]:
        """Open one of our own files in a thread: copying a large file takes time."""
        allowed_folders = AllowedFolders(
            "the policy folder", (self._files_folder,), MAX_FILE_BYTES, self.uploads_folder
        )
        return allowed_folders.open_copy_in_thread(str(file_path))

    def build_path(self, policy_slug: str, revision_id: str, file_extension: str) -> Path:
        """Return the path that a revision's file of this kind has, whether there is one or not."""
        return resolve_inside(
            self._files_folder, *_build_path_segments(policy_slug, revision_id, file_extension)
        )

    def get_file_path(self, policy_slug: str, revision_id: str) -> Path:
        """Return the path of our copy of a revision's file; that of a PDF when there is none."""
        return resolve_inside(
            self._files_folder, *self._choose_path_segments(policy_slug, revision_id)
        )

    def locate_file(self, policy_slug: str, revision_id: str) -> Path:
        """Return where our copy can be read, which may be another place than its path."""
        return self._file_store.locate_file(self._choose_path_segments(policy_slug, revision_id))

    def copy_to_spool(self, private_copy: PrivateCopy) -> Path:
        """Copy what is being ingested, for the recovery after a crash; return the copy."""
        file_extension = choose_file_extension(private_copy.file_name)
        spool_path = self.uploads_folder / f"{uuid.uuid4().hex}{file_extension}"
        copy_stream(private_copy.file, spool_path)
        return spool_path

    def move_into_place(
        self, spool_path: Path, policy_slug: str, revision_id: str, file_extension: str
    ) -> None:
        """Make a file the one of a revision."""
        # Those in other formats before the new one, or a crash could leave two. Nothing is lost by
        # it: until the new one is there, the intent names the spool.
        for other_extension in POLICY_EXTENSIONS:
            if other_extension != file_extension:
                self._file_store.delete_file(
                    _build_path_segments(policy_slug, revision_id, other_extension)
                )
        self._file_store.move_in(
            _build_path_segments(policy_slug, revision_id, file_extension), spool_path
        )

    def delete_file(self, policy_slug: str, revision_id: str) -> None:
        """Delete the file of a revision, and the folder that it alone was in."""
        self._file_store.delete_folder((policy_slug, revision_id))

    def delete_policy_folder(self, policy_slug: str) -> None:
        """Delete the folder of a policy with every file in it."""
        self._file_store.delete_folder((policy_slug,))

    def delete_all(self) -> None:
        """Delete the files of all policies."""
        for policy_slug in {path_segments[0] for path_segments in self._file_store.list_paths("")}:
            self.delete_policy_folder(policy_slug)

    def delete_unneeded_uploads(self, needed_paths: Collection[str]) -> None:
        """Delete what interrupted uploads left, but for the files that are still needed."""
        if self._is_shared:
            # Another process that lives may be receiving a file.
            delete_old_files(self.uploads_folder.parent, clock.now())
            return
        for upload_path in self.uploads_folder.glob("*"):
            if upload_path.suffix in POLICY_EXTENSIONS and str(upload_path) not in needed_paths:
                upload_path.unlink(missing_ok=True)

    def _choose_path_segments(self, policy_slug: str, revision_id: str) -> tuple[str, ...]:
        """Return the path of a revision's file in the folder; that of a PDF when there is none."""
        candidate_segment_tuples = [
            _build_path_segments(policy_slug, revision_id, file_extension)
            for file_extension in POLICY_EXTENSIONS
        ]
        return next(
            (
                path_segments
                for path_segments in candidate_segment_tuples
                if self._file_store.has_file(path_segments)
            ),
            candidate_segment_tuples[0],
        )


def _build_path_segments(
    policy_slug: str, revision_id: str, file_extension: str
) -> tuple[str, ...]:
    return policy_slug, revision_id, f"document{file_extension}"
