"""The offline copy on disk: pages as GOV.UK gave them, their passages and vectors, in one file."""

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import from_json

from readingroom.bases.guidance.offline.passages import Passage
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.core.arrays import Matrix, np
from readingroom.storage.database import ConnectionPool, Database, connect
from readingroom.storage.errors import StorageFailed

LIBRARY_FILE_NAME = "pages.db"
_SCHEMA_VERSION = "1"
_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS pages (
    path TEXT PRIMARY KEY,
    content BLOB NOT NULL,
    etag TEXT,
    listed_timestamp TEXT,
    parent TEXT,
    withdrawn INTEGER NOT NULL,
    fetched_at REAL NOT NULL,
    checked_at REAL NOT NULL,
    seen_in_sync INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS passages (
    id TEXT PRIMARY KEY,
    path TEXT NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    heading TEXT NOT NULL,
    anchor TEXT NOT NULL,
    searched_text TEXT NOT NULL,
    vector BLOB
);
CREATE INDEX IF NOT EXISTS passages_by_path ON passages (path);
CREATE TABLE IF NOT EXISTS pending (
    path TEXT PRIMARY KEY,
    listed_timestamp TEXT,
    parent TEXT
);
CREATE TABLE IF NOT EXISTS state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page of the offline copy, and when GOV.UK last said that it is current."""

    path: str
    body: bytes
    etag: str | None
    listed_timestamp: str | None
    is_withdrawn: bool
    fetched_at: float
    checked_at: float

    def parse_page(self) -> GovukPage:
        """Return the page itself."""
        return GovukPage(from_json(self.body), self.path)


@dataclass(frozen=True, slots=True)
class PendingPage:
    """A page that a sync has still to fetch."""

    path: str
    listed_timestamp: str | None
    parent_path: str | None


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """How much the offline copy holds, and how old it is."""

    pages: int
    withdrawn: int
    passages: int
    embedded: int
    pending: int
    synced_at: float | None
    """When the last complete sync ended; None before the first."""


class GuidanceLibrary:
    """The offline copy in a folder. Several processes may read it while one writes.

    Every change is one transaction, so a process that is killed leaves whole pages alone.
    """

    def __init__(self, library_folder: Path) -> None:
        self._path = library_folder / LIBRARY_FILE_NAME
        self._connections = ConnectionPool(self._open_connection)
        self._known_status = (-1, LibraryStatus(0, 0, 0, 0, 0, None))  # and its generation

    @property
    def has_database(self) -> bool:
        """Whether anything was ever synchronized; reading creates nothing."""
        return self._path.exists()

    def create_database(self) -> None:
        """Make the file where there is none."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.open_database() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(_SCHEMA_SQL)
            db.execute("INSERT OR IGNORE INTO state VALUES ('version', ?)", (_SCHEMA_VERSION,))

    def close(self) -> None:
        """Close the connections; nothing may be reading."""
        self._connections.close()

    # --- pages ---

    def read_page(self, page_path: str) -> StoredPage | None:
        """Return a page, or None where the copy has none at this path."""
        with self.open_database() as db:
            page_row = db.execute(
                "SELECT path, content, etag, listed_timestamp, withdrawn, fetched_at, checked_at "
                "FROM pages WHERE path = ?",
                (page_path,),
            ).fetchone()
        return _make_stored_page(page_row) if page_row else None

    def iterate_pages(self) -> Iterator[StoredPage]:
        """Yield every page, by path."""
        with self.open_database() as db:
            for page_row in db.execute(
                "SELECT path, content, etag, listed_timestamp, withdrawn, fetched_at, checked_at "
                "FROM pages ORDER BY path"
            ):
                yield _make_stored_page(page_row)

    def put_page(
        self,
        govuk_page: GovukPage,
        passages: Sequence[Passage],
        raw_body: bytes,
        etag: str | None,
        pending_page: PendingPage,
        now_seconds: float,
    ) -> None:
        """Store a page with its passages in place of what was there, as one change.

        Its HTML documents are pending from now on, unless they are listed by themselves.
        """
        sync_number = self.sync_number
        with self._open_transaction() as db:
            db.execute("DELETE FROM passages WHERE path = ?", (pending_page.path,))
            db.execute(
                "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    pending_page.path,
                    zlib.compress(raw_body),
                    etag,
                    pending_page.listed_timestamp,
                    pending_page.parent_path,
                    govuk_page.withdrawn_notice is not None,
                    now_seconds,
                    now_seconds,
                    sync_number,
                ),
            )
            db.executemany(
                "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
                [
                    (
                        f"{pending_page.path}#{passage_number}",
                        pending_page.path,
                        passage.start_offset,
                        passage.end_offset,
                        passage.heading,
                        passage.anchor,
                        passage.searched_text,
                    )
                    for passage_number, passage in enumerate(passages)
                ],
            )
            db.execute("DELETE FROM pending WHERE path = ?", (pending_page.path,))
            for page_document in govuk_page.documents:
                if page_document.path and page_document.path.startswith(f"{pending_page.path}/"):
                    db.execute(
                        "INSERT OR IGNORE INTO pending SELECT ?, NULL, ? WHERE NOT EXISTS "
                        "(SELECT 1 FROM pages WHERE path = ? AND seen_in_sync = ?)",
                        (page_document.path, pending_page.path, page_document.path, sync_number),
                    )

    def mark_page_unchanged(self, pending_page: PendingPage, now_seconds: float) -> None:
        """Record that a page has not changed."""
        with self._open_transaction() as db:
            db.execute(
                "UPDATE pages SET checked_at = ?, seen_in_sync = ?, "
                "listed_timestamp = COALESCE(?, listed_timestamp) WHERE path = ?",
                (now_seconds, self.sync_number, pending_page.listed_timestamp, pending_page.path),
            )
            db.execute("DELETE FROM pending WHERE path = ?", (pending_page.path,))

    def remove_page(self, page_path: str) -> None:
        """Remove a page that GOV.UK no longer has, or that is not the Commission's."""
        with self._open_transaction() as db:
            db.execute("DELETE FROM passages WHERE path = ?", (page_path,))
            db.execute("DELETE FROM pages WHERE path = ?", (page_path,))
            db.execute("DELETE FROM pending WHERE path = ?", (page_path,))

    # --- a sync's own state ---

    @property
    def generation(self) -> int:
        """A number that rises with every change of the copy."""
        return int(self.read_state_value("generation") or 0)

    @property
    def sync_number(self) -> int:
        """The number of the sync that is under way, or of the last one."""
        return int(self.read_state_value("sync") or 0)

    @property
    def listed_count(self) -> int | None:
        """How many results a sync under way has listed; None when the list is complete."""
        listed_count_text = self.read_state_value("listed")
        return int(listed_count_text) if listed_count_text else None

    def begin_or_resume_sync(self) -> bool:
        """Begin a sync, or go on with one that was interrupted. Return whether one was."""
        with self._open_transaction() as db:
            if _read_state_value(db, "under_way"):
                return True
            _write_state_value(db, "sync", int(_read_state_value(db, "sync") or 0) + 1)
            _write_state_value(db, "listed", "0")
            _write_state_value(db, "under_way", "1")
        return False

    def add_listed_pages(
        self, paths_and_timestamps: Sequence[tuple[str, str | None]], listed_count: int
    ) -> None:
        """Record a page of the list: which pages there are, and which of them have changed."""
        with self._open_transaction() as db:
            sync_number = int(_read_state_value(db, "sync") or 0)
            for page_path, listed_timestamp in paths_and_timestamps:
                update_cursor = db.execute(
                    "UPDATE pages SET seen_in_sync = ?, checked_at = checked_at "
                    "WHERE path = ? AND listed_timestamp IS ?",
                    (sync_number, page_path, listed_timestamp),
                )
                if not update_cursor.rowcount:
                    db.execute(
                        "INSERT OR REPLACE INTO pending VALUES (?, ?, NULL)",
                        (page_path, listed_timestamp),
                    )
            _write_state_value(db, "listed", str(listed_count))

    def complete_page_list(self) -> None:
        """Record that the list is complete: pages that are no longer on it are to be checked."""
        with self._open_transaction() as db:
            sync_number = int(_read_state_value(db, "sync") or 0)
            # A document of a listed publication is on no list; it is checked when that changes.
            # One that was withdrawn left the list then.
            db.execute(
                "INSERT OR IGNORE INTO pending SELECT path, listed_timestamp, parent FROM pages "
                "WHERE seen_in_sync < ? AND NOT withdrawn AND (parent IS NULL OR parent NOT IN "
                "(SELECT path FROM pages WHERE seen_in_sync = ?)) ",
                (sync_number, sync_number),
            )
            db.execute("DELETE FROM state WHERE key = 'listed'")

    def mark_all_pending(self) -> None:
        """Make every stored page pending: each is asked for, if it has changed."""
        with self._open_transaction() as db:
            db.execute(
                "INSERT OR IGNORE INTO pending SELECT path, listed_timestamp, parent FROM pages"
            )

    def list_pending_pages(self, max_pages: int, after_path: str = "") -> list[PendingPage]:
        """Return pages that have still to be fetched, by path, those after a path alone."""
        with self.open_database() as db:
            pending_rows = db.execute(
                "SELECT path, listed_timestamp, parent FROM pending WHERE path > ? "
                "ORDER BY path LIMIT ?",
                (after_path, max_pages),
            ).fetchall()
        return [PendingPage(*pending_row) for pending_row in pending_rows]

    def finish_sync(self, now_seconds: float) -> None:
        """Record that a sync is complete."""
        with self._open_transaction() as db:
            # The others were confirmed: on the list with the timestamp they had, or asked for.
            db.execute(
                "UPDATE pages SET checked_at = ? WHERE seen_in_sync > 0 AND path NOT IN "
                "(SELECT path FROM pending)",
                (now_seconds,),
            )
            db.execute("DELETE FROM state WHERE key = 'under_way'")
            _write_state_value(db, "synced_at", repr(now_seconds))

    def read_status(self) -> LibraryStatus:
        """Return what the copy holds; all zero where there is none."""
        if not self.has_database:
            return LibraryStatus(0, 0, 0, 0, 0, None)
        library_generation = self.generation
        if self._known_status[0] != library_generation:
            # Every search asks, and to count reads the whole file.
            self._known_status = (library_generation, self._read_uncached_status())
        return self._known_status[1]

    def _read_uncached_status(self) -> LibraryStatus:
        with self.open_database() as db:
            page_count, withdrawn_count = db.execute(
                "SELECT COUNT(*), COALESCE(SUM(withdrawn), 0) FROM pages"
            ).fetchone()
            passage_count, embedded_count = db.execute(
                "SELECT COUNT(*), COUNT(vector) FROM passages"
            ).fetchone()
            (pending_count,) = db.execute("SELECT COUNT(*) FROM pending").fetchone()
            synced_at = _read_state_value(db, "synced_at")
        return LibraryStatus(
            page_count,
            withdrawn_count,
            passage_count,
            embedded_count,
            pending_count,
            float(synced_at) if synced_at else None,
        )

    def count_passages_by_page(self) -> dict[str, int]:
        """Return how many passages each page has."""
        with self.open_database() as db:
            return dict(db.execute("SELECT path, COUNT(*) FROM passages GROUP BY path").fetchall())

    # --- vectors ---

    def list_unembedded_passages(self, max_passages: int) -> list[tuple[str, str]]:
        """Return ids and texts of passages that have no vector yet, the newest pages first."""
        with self.open_database() as db:
            passage_rows = db.execute(
                "SELECT id, searched_text FROM passages LEFT JOIN pages USING (path) "
                "WHERE vector IS NULL ORDER BY listed_timestamp DESC, path, start LIMIT ?",
                (max_passages,),
            )
            return [(passage_id, searched_text) for passage_id, searched_text in passage_rows]

    def put_vectors(
        self, passage_ids: Sequence[str], passage_vectors: Matrix, embedding_identity: str
    ) -> None:
        """Store vectors; those of another model go, since the two must not be mixed."""
        with self._open_transaction() as db:
            if _read_state_value(db, "embedding") != embedding_identity:
                db.execute("UPDATE passages SET vector = NULL")
                _write_state_value(db, "embedding", embedding_identity)
            db.executemany(
                "UPDATE passages SET vector = ? WHERE id = ?",
                [
                    (np.asarray(passage_vector, "<f4").tobytes(), passage_id)
                    for passage_id, passage_vector in zip(passage_ids, passage_vectors, strict=True)
                ],
            )

    def read_state_value(self, state_key: str) -> str | None:
        with self.open_database() as db:
            return _read_state_value(db, state_key)

    @contextmanager
    def open_database(self) -> Iterator[Database]:
        try:
            with self._connections.connection() as db:
                yield db
        except sqlite3.Error as error:
            raise StorageFailed(
                f"The offline copy of the guidance cannot be used: {error}"
            ) from error

    @contextmanager
    def _open_transaction(self) -> Iterator[Database]:
        """Enclose one change, which every reader sees by the number of the generation."""
        with self.open_database() as db, db.transaction():
            _write_state_value(db, "generation", int(_read_state_value(db, "generation") or 0) + 1)
            yield db

    def _open_connection(self) -> Database:
        return connect(self._path, from_any_thread=True)


def _make_stored_page(page_row: tuple[object, ...]) -> StoredPage:
    page_path, compressed_body, etag, listed_timestamp, is_withdrawn, fetched_at, checked_at = (
        page_row
    )
    return StoredPage(
        str(page_path),
        zlib.decompress(compressed_body),  # type: ignore[arg-type]
        etag,  # type: ignore[arg-type]
        listed_timestamp,  # type: ignore[arg-type]
        bool(is_withdrawn),
        fetched_at,  # type: ignore[arg-type]
        checked_at,  # type: ignore[arg-type]
    )


def _read_state_value(db: Database, state_key: str) -> str | None:
    state_row = db.execute("SELECT value FROM state WHERE key = ?", (state_key,)).fetchone()
    return state_row[0] if state_row else None


def _write_state_value(db: Database, state_key: str, state_value: object) -> None:
    db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (state_key, str(state_value)))
