"""Files in the shared database: cut into pieces, and read into a folder of copies when needed."""

import hashlib
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from readingroom.storage.files import (
    LocalFiles,
    OwnFiles,
    resolve_inside,
    translate_os_errors,
)
from readingroom.storage.postgres.database import Connection, PostgresDatabase

COPIES_FOLDER_NAME = "copies"
_PIECE_BYTES = 1024 * 1024


class PostgresFiles(OwnFiles):
    """The files of one base, by their paths relative to its folder. Every method blocks."""

    def __init__(
        self, postgres_database: PostgresDatabase, base_name: str, base_folder: Path
    ) -> None:
        """Copies of files that somebody reads are put into the folder; they may be deleted."""
        self._database = postgres_database
        self._base_name = base_name
        self._folder = base_folder

    def locate_file(self, path_segments: Sequence[str]) -> Path:
        """Return where a copy of a file lies now; nothing is there when we do not have it."""
        with self._database.connection() as connection:
            file_row = connection.execute(
                "SELECT file_id, sha256 FROM files WHERE base = ? AND path = ?",
                (self._base_name, _join_path(path_segments)),
            ).fetchone()
            if file_row is None:
                return resolve_inside(self._folder, *path_segments)
            # By its content: a file that is replaced gets a copy of its own.
            copy_path = resolve_inside(
                self._folder, COPIES_FOLDER_NAME, str(file_row["sha256"]), path_segments[-1]
            )
            if not copy_path.exists():
                self._write_copy(connection, file_row["file_id"], copy_path)
        return copy_path

    def has_file(self, path_segments: Sequence[str]) -> bool:
        """Return whether we have a file."""
        with self._database.connection() as connection:
            file_row = connection.execute(
                "SELECT 1 FROM files WHERE base = ? AND path = ?",
                (self._base_name, _join_path(path_segments)),
            ).fetchone()
        return file_row is not None

    def list_paths(self, files_folder: str) -> list[tuple[str, ...]]:
        """Return the paths of all files below a folder."""
        with self._database.connection() as connection:
            path_rows = connection.execute(
                "SELECT path FROM files WHERE base = ? AND starts_with(path, ?) ORDER BY path",
                (self._base_name, f"{files_folder}/" if files_folder else ""),
            ).fetchall()
        return [tuple(file_path.split("/")) for (file_path,) in path_rows]

    def move_in(self, path_segments: Sequence[str], spool_path: Path) -> None:
        """Keep a file in place of one of the same path; `spool_path` is gone afterwards."""
        with translate_os_errors("The file cannot be kept"), spool_path.open("rb") as open_file:
            self.write_file(path_segments, open_file)
        spool_path.unlink(missing_ok=True)

    def write_file(self, path_segments: Sequence[str], content_file: IO[bytes]) -> None:
        """Keep what an open file holds in place of a file of the same path."""
        content_file.seek(0)
        with self._database.transaction() as transaction:
            connection = transaction.connection
            self._delete_matching_files(connection, "path = ?", _join_path(path_segments))
            (file_id,) = connection.execute(
                "INSERT INTO files (base, path, sha256, size) VALUES (?, ?, '', 0) "
                "RETURNING file_id",
                (self._base_name, _join_path(path_segments)),
            ).fetchone()
            file_digest, file_size = hashlib.sha256(), 0
            for piece_number, file_piece in enumerate(_read_pieces(content_file)):
                connection.execute(
                    "INSERT INTO file_pieces VALUES (?, ?, ?)", (file_id, piece_number, file_piece)
                )
                file_digest.update(file_piece)
                file_size += len(file_piece)
            connection.execute(
                "UPDATE files SET sha256 = ?, size = ? WHERE file_id = ?",
                (file_digest.hexdigest(), file_size, file_id),
            )

    def delete_file(self, path_segments: Sequence[str]) -> None:
        """Delete a file; one that does not exist is fine."""
        with self._database.transaction() as transaction:
            self._delete_matching_files(
                transaction.connection, "path = ?", _join_path(path_segments)
            )

    def delete_folder(self, path_segments: Sequence[str]) -> None:
        """Delete every file below a folder; one that does not exist is fine."""
        with self._database.transaction() as transaction:
            self._delete_matching_files(
                transaction.connection,
                "starts_with(path, ?)",
                f"{_join_path(path_segments)}/",
            )

    def _write_copy(self, connection: Connection, file_id: int, copy_path: Path) -> None:
        copy_path.parent.mkdir(parents=True, exist_ok=True)
        partial_copy_path = copy_path.with_name(f".{uuid.uuid4().hex}")
        try:
            file_descriptor = os.open(
                partial_copy_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
            )
            with os.fdopen(file_descriptor, "wb") as copy_file:
                for (file_piece,) in connection.iterate_tuples(
                    "SELECT content FROM file_pieces WHERE file_id = ? ORDER BY piece_number",
                    (file_id,),
                ):
                    copy_file.write(file_piece)
            partial_copy_path.replace(copy_path)
        finally:
            with suppress(OSError):
                partial_copy_path.unlink(missing_ok=True)

    def _delete_matching_files(
        self, connection: Connection, where_sql: str, path_value: str
    ) -> None:
        connection.execute(
            f"DELETE FROM files WHERE base = ? AND {where_sql}", (self._base_name, path_value)
        )


def open_files(
    base_name: str, base_folder: Path, postgres_database: PostgresDatabase | None
) -> OwnFiles:
    """Return the files of a base: those in its folder, or in the database where there is one."""
    if postgres_database is None:
        return LocalFiles(base_folder)
    return PostgresFiles(postgres_database, base_name, base_folder)


def _read_pieces(open_file: IO[bytes]) -> Iterator[bytes]:
    while file_piece := open_file.read(_PIECE_BYTES):
        yield file_piece


def _join_path(path_names: Sequence[str]) -> str:
    return "/".join(path_names).replace("\0", "\N{REPLACEMENT CHARACTER}")
