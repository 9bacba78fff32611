"""Passages that wait for a vector: the most wanted first, each leased to one embedder at a time.

A lease is a row in the file, so that it outlives the process that gave it, and every process that
embeds from this file respects it. It ends when the vectors are stored, or when nobody extends it.
"""

import json
import math
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterable
from datetime import date

from readingroom.bases.federal.schema.sources import Shape, list_source_names, list_sources_of_shape
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS_SQL, read_records_generation
from readingroom.core import clock
from readingroom.engine.embedding.received import LEASE_SECONDS
from readingroom.storage.database import Database, Row

_DOCUMENTS_PER_SLICE = 64
_LOCAL_LEASE_PREFIX = f"local:{socket.gethostname().replace(':', '')}:"
_MAX_PRIORITIZED_DOCUMENTS = 10_000
# Twice as many links to a record are worth as much as being half a year newer.
_DAYS_PER_LINK_DOUBLING = 182

_EMBEDDED_SOURCE_NAMES = tuple(list_source_names(list_sources_of_shape(Shape.BODY, Shape.SHORT)))
_EMBEDDED_SOURCE_PLACEHOLDERS_SQL = ", ".join("?" * len(_EMBEDDED_SOURCE_NAMES))
_UNEMBEDDED_SQL = f"""FROM chunks c JOIN documents d USING (doc) JOIN passages p USING (chunk)
    LEFT JOIN vectors v USING (chunk)
    WHERE v.chunk IS NULL AND d.source IN ({_EMBEDDED_SOURCE_PLACEHOLDERS_SQL})"""
_CLAIM_LOCK_NAME = "readingroom:federal:embedding_leases"
_NOT_LEASED_SQL = "NOT EXISTS (SELECT 1 FROM embedding_leases l WHERE l.chunk = c.chunk)"


class EmbeddingQueue:
    """The order in which one process hands out passages; all processes share the leases."""

    def __init__(self, get_unix_seconds: Callable[[], float] = clock.read_unix_seconds) -> None:
        self._get_unix_seconds = get_unix_seconds
        self._lock = threading.Lock()
        self._next_document_row_ids: list[int] = []
        """Records that have passages without vectors, the most wanted last."""
        self._prioritized_document_row_ids: dict[int, None] = {}
        self._exhausted_state: tuple[int, int] | None = None
        """At this generation and with so many leases everything was embedded or leased."""

    def prioritize_documents(self, document_row_ids: Iterable[int]) -> None:
        """Remember records that a search found, so that they come before all others."""
        with self._lock:
            for document_row_id in document_row_ids:
                if len(self._prioritized_document_row_ids) < _MAX_PRIORITIZED_DOCUMENTS:
                    self._prioritized_document_row_ids[document_row_id] = None

    def claim_passages(self, db: Database, lease_id: str, max_passages: int) -> list[Row]:
        """Return up to so many passages, which belong to the lease from then on; [] for none."""
        with self._lock:
            if self._delete_expired_leases(db):
                self._forget_order()
            # Another process may have given back what it had, which leaves the generation as it is.
            queue_state = (read_records_generation(db), _count_leases(db))
            if not self._next_document_row_ids and queue_state != self._exhausted_state:
                self._next_document_row_ids = _read_ordered_document_row_ids(db)
            leased_rows = self._lease_passages(db, lease_id, max_passages)
            if not leased_rows and not self._next_document_row_ids:
                self._exhausted_state = queue_state
            return leased_rows

    def extend_lease(self, db: Database, lease_id: str) -> int:
        """Keep a lease alive; return how many passages it still has."""
        with db.transaction():
            return db.execute(
                "UPDATE embedding_leases SET expires_at = ? WHERE lease_id = ?",
                (self._get_unix_seconds() + LEASE_SECONDS, lease_id),
            ).rowcount

    def release_lease(self, db: Database, lease_id: str) -> None:
        """Give the passages of a lease back."""
        with self._lock, db.transaction():
            if db.execute("DELETE FROM embedding_leases WHERE lease_id = ?", (lease_id,)).rowcount:
                self._forget_order()

    def _forget_order(self) -> None:
        """Look again for what waits: what was given out before is there again."""
        self._next_document_row_ids = []
        self._exhausted_state = None

    def _delete_expired_leases(self, db: Database) -> bool:
        current_seconds = self._get_unix_seconds()
        expired_leases_sql = "FROM embedding_leases WHERE expires_at <= ?"
        if (
            db.execute(f"SELECT 1 {expired_leases_sql} LIMIT 1", (current_seconds,)).fetchone()
            is None
        ):
            return False
        with db.transaction():
            db.execute(f"DELETE {expired_leases_sql}", (current_seconds,))
        return True

    def _lease_passages(self, db: Database, lease_id: str, max_passages: int) -> list[Row]:
        leased_rows: list[Row] = []
        with db.transaction():
            if db.dialect.engine == "postgres":
                # Who claims waits for whoever does already, as all writers of a file do.
                db.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", (_CLAIM_LOCK_NAME,)
                )
            while len(leased_rows) < max_passages and (
                document_row_ids := self._take_next_document_row_ids()
            ):
                waiting_rows = _read_waiting_passages(db, document_row_ids)
                missing_count = max_passages - len(leased_rows)
                leased_rows += waiting_rows[:missing_count]
                # Those of which a passage is left are next again.
                untaken_document_row_ids = dict.fromkeys(
                    passage_row["doc"] for passage_row in waiting_rows[missing_count:]
                )
                self._next_document_row_ids += reversed(untaken_document_row_ids)
            expires_at = self._get_unix_seconds() + LEASE_SECONDS
            db.executemany(
                "INSERT INTO embedding_leases (chunk, lease_id, expires_at) VALUES (?, ?, ?)",
                [(passage_row["chunk"], lease_id, expires_at) for passage_row in leased_rows],
            )
        return leased_rows

    def _take_next_document_row_ids(self) -> list[int]:
        if self._prioritized_document_row_ids:
            prioritized_row_ids, self._prioritized_document_row_ids = (
                list(self._prioritized_document_row_ids)[::-1],
                {},
            )
            self._next_document_row_ids += prioritized_row_ids
        next_document_row_ids = self._next_document_row_ids[-_DOCUMENTS_PER_SLICE:][::-1]
        del self._next_document_row_ids[-_DOCUMENTS_PER_SLICE:]
        return next_document_row_ids


def make_local_lease_id() -> str:
    """Return a lease id that says which process of which machine has it."""
    return f"{_LOCAL_LEASE_PREFIX}{os.getpid()}:{secrets.token_hex(8)}"


def release_dead_leases(db: Database) -> None:
    """Give back what processes of this machine had when they ended without doing so."""
    lease_rows = db.execute("SELECT DISTINCT lease_id FROM embedding_leases").fetchall()
    for (lease_id,) in lease_rows:
        if lease_id.startswith(_LOCAL_LEASE_PREFIX) and not _is_lease_holder_running(lease_id):
            with db.transaction():
                db.execute("DELETE FROM embedding_leases WHERE lease_id = ?", (lease_id,))


def _is_lease_holder_running(lease_id: str) -> bool:
    process_id = int(lease_id.removeprefix(_LOCAL_LEASE_PREFIX).partition(":")[0])
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # there is one, of another user
        return True
    return True


def count_unembedded(db: Database) -> int:
    """Return how many chunks have no vector yet and should have one."""
    (unembedded_count,) = db.execute(
        f"SELECT count(*) {_UNEMBEDDED_SQL}", _EMBEDDED_SOURCE_NAMES
    ).fetchone()
    return int(unembedded_count)


def _count_leases(db: Database) -> int:
    (lease_count,) = db.execute("SELECT count(*) FROM embedding_leases").fetchone()
    return int(lease_count)


def _read_ordered_document_row_ids(db: Database) -> list[int]:
    """Return the records with passages that nobody embeds, the newest and most linked last."""
    document_rows = db.iterate_tuples(
        f"""SELECT d.doc, d.published_at,
               (SELECT count(*) FROM links WHERE links.to_id = d.id) AS link_count
           FROM documents d
           WHERE d.doc IN (SELECT c.doc {_UNEMBEDDED_SQL} AND {_NOT_LEASED_SQL})""",
        _EMBEDDED_SOURCE_NAMES,
    )
    scores_and_row_ids = [
        (_compute_priority(published_at, link_count), document_row_id)
        for document_row_id, published_at, link_count in document_rows
    ]
    return [
        document_row_id
        for _, document_row_id in sorted(
            scores_and_row_ids,
            key=lambda score_and_row_id: (score_and_row_id[0], -score_and_row_id[1]),
        )
    ]


def _compute_priority(published_at: str | None, link_count: int) -> float:
    """Return how much a record is wanted: its day, later for what others link to."""
    published_ordinal = date.fromisoformat(published_at[:10]).toordinal() if published_at else 0
    return published_ordinal + _DAYS_PER_LINK_DOUBLING * math.log2(1 + link_count)


def _read_waiting_passages(db: Database, document_row_ids: list[int]) -> list[Row]:
    """Return the passages of records that have neither a vector nor a lease, in their order."""
    # What was asked for stands in the list a second time; its first place counts.
    position_by_document_row_id = {
        document_row_id: document_position
        for document_position, document_row_id in enumerate(dict.fromkeys(document_row_ids))
    }
    waiting_rows = db.execute(
        f"""SELECT c.doc, {PASSAGE_COLUMNS_SQL} {_UNEMBEDDED_SQL}
           AND c.doc IN ({db.dialect.parameter_numbers_sql}) AND {_NOT_LEASED_SQL}""",
        (*_EMBEDDED_SOURCE_NAMES, json.dumps(document_row_ids)),
    ).fetchall()
    return sorted(
        waiting_rows,
        key=lambda passage_row: (
            position_by_document_row_id[passage_row["doc"]],
            passage_row["chunk"],
        ),
    )
