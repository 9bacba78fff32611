"""Texts that an ingestion waits for, which workers on other machines may embed meanwhile.

They lie in a table that all processes of a room share, so that a killed room or worker loses no
more than the batch it had: vectors that were made are kept for an hour, and whoever asks for the
same text again gets them. Without workers nothing is ever written.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from readingroom.core import clock
from readingroom.core.arrays import Matrix, Vector, np
from readingroom.core.progress import ReportProgressSync, no_progress_sync
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.received import LEASE_SECONDS
from readingroom.storage.database import Database, StateTables
from readingroom.storage.errors import StorageFailed

# A worker that was not heard of for so long is not waited for.
_MAX_WORKER_SILENCE_SECONDS = 60.0
_MAX_TEXT_AGE_SECONDS = 3600.0
# Texts that the room embeds itself at a time, while workers embed the others.
_MAX_TEXTS_CLAIMED_HERE = 64
_SECONDS_BETWEEN_POLLS = 0.5
_VALUES_PER_STATEMENT = 500
_ROOM_LEASE_ID = "room"
_IS_LEASABLE_SQL = "vector IS NULL AND lease_until <= ?"

_SCHEMA_SQL = """
CREATE TABLE IF NOT EXISTS waiting_texts (
    id INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    digest TEXT NOT NULL,
    passage_text TEXT NOT NULL,
    asked_at REAL NOT NULL,
    lease_id TEXT,
    lease_until REAL NOT NULL DEFAULT 0,
    vector BLOB,
    worker TEXT,
    UNIQUE (model, digest)
);
CREATE TABLE IF NOT EXISTS embedding_workers (model TEXT PRIMARY KEY, seen_at REAL NOT NULL);
"""

log = logging.getLogger(__name__)


def create_waiting_tables(db: Database) -> None:
    """Create the tables in a file of their own."""
    db.executescript(_SCHEMA_SQL)


class WaitingTexts:
    """The table of waiting texts: ingestions ask, and the room lends the texts to workers."""

    name = "waiting"
    is_backlog = False

    def __init__(
        self,
        state_tables: StateTables,
        embedder: Embedder,
        get_now_seconds: Callable[[], float] = clock.read_unix_seconds,
        list_stored_identities: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`list_stored_identities` names the models of the vectors that ingestions have stored."""
        self._state_tables = state_tables
        self.embedder = embedder
        self._get_now_seconds = get_now_seconds
        self._list_stored_models = list_stored_identities
        self._new_vectors_condition = threading.Condition()

    # --- for ingestions ---

    def offer_to_workers(self, texts: Sequence[str]) -> bool:
        """Put texts where workers find them; return whether there are workers."""
        has_worker = self._has_active_worker()
        if has_worker:
            self._add_texts(texts)
        return has_worker

    def embed_with_workers(self, texts: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of texts: those that workers make, and the others made here."""
        vectors_by_text = self._read_finished_vectors(texts)
        while missing_texts := [text for text in texts if text not in vectors_by_text]:
            if not self._has_active_worker():
                vectors_by_text.update(
                    zip(missing_texts, self.embedder.embed_batch(missing_texts), strict=True)
                )
                break
            self._add_texts(missing_texts)
            if texts_claimed_here := self._claim_texts_for_here(missing_texts):
                vectors_made_here = self.embedder.embed_batch(texts_claimed_here)
                self._store_vectors_made_here(texts_claimed_here, vectors_made_here)
                vectors_by_text.update(zip(texts_claimed_here, vectors_made_here, strict=True))
            else:
                with self._new_vectors_condition:
                    # Not only until it is woken: another process may be the one that stores the
                    # vectors.
                    self._new_vectors_condition.wait(_SECONDS_BETWEEN_POLLS)
            vectors_by_text.update(
                self._read_finished_vectors(
                    [text for text in missing_texts if text not in vectors_by_text]
                )
            )
        return vectors_by_text

    def has_seen_worker(self) -> bool:
        """Return whether a worker was ever here: nothing is made by looking."""
        return self._state_tables.has_data()

    # --- for workers ---

    def read_stored_model(self) -> str | None:
        """Return the model of stored vectors, ours if it is one of several; None without any."""
        stored_identities = self._list_stored_models()
        if self.embedder.identity in stored_identities:
            return self.embedder.identity
        return stored_identities[0] if stored_identities else None

    def claim_passages(self, lease_id: str, max_passages: int) -> list[tuple[int, str]]:
        """Return texts with their numbers, which belong to the lease from then on."""
        now_seconds = self._get_now_seconds()
        with self._state_tables.begin_writing() as db:
            db.execute(
                "DELETE FROM waiting_texts WHERE asked_at < ?",
                (now_seconds - _MAX_TEXT_AGE_SECONDS,),
            )
            db.execute(
                "INSERT INTO embedding_workers (model, seen_at) VALUES (?, ?) "
                "ON CONFLICT (model) DO UPDATE SET seen_at = excluded.seen_at",
                (self.embedder.identity, now_seconds),
            )
            # From the end of what was asked for last: the room begins at the other one.
            text_rows = db.execute(
                "SELECT id, passage_text FROM waiting_texts "
                f"WHERE model = ? AND {_IS_LEASABLE_SQL} ORDER BY asked_at, id DESC LIMIT ?",
                (self.embedder.identity, now_seconds, max_passages),
            ).fetchall()
            self._lease_texts(db, lease_id, [text_row[0] for text_row in text_rows])
        return [(text_row[0], text_row[1]) for text_row in text_rows]

    def extend_lease(self, lease_id: str) -> int:
        """Keep a lease alive; return how many texts it still has."""
        with self._state_tables.begin_writing() as db:
            db.execute("UPDATE embedding_workers SET seen_at = ?", (self._get_now_seconds(),))
            update_cursor = db.execute(
                "UPDATE waiting_texts SET lease_until = ? WHERE lease_id = ?",
                (self._get_now_seconds() + LEASE_SECONDS, lease_id),
            )
            return int(update_cursor.rowcount)

    def release_lease(self, lease_id: str) -> None:
        """Give the texts of a lease back."""
        with self._state_tables.begin_writing() as db:
            db.execute(
                "UPDATE waiting_texts SET lease_id = NULL, lease_until = 0 WHERE lease_id = ?",
                (lease_id,),
            )

    def read_texts(self, passage_ids: Sequence[int]) -> dict[int, str]:
        """Return the texts that have no vector yet, by their numbers."""
        texts_by_id: dict[int, str] = {}
        with self._state_tables.begin_reading() as db:
            for batch_ids, placeholders_sql in _batch_sql_values(passage_ids):
                texts_by_id.update(
                    (text_row[0], text_row[1])
                    for text_row in db.execute(
                        "SELECT id, passage_text FROM waiting_texts "
                        f"WHERE vector IS NULL AND id IN ({placeholders_sql})",
                        batch_ids,
                    )
                )
        return texts_by_id

    def store_vectors(self, passage_ids: Sequence[int], matrix: Matrix, worker_name: str) -> int:
        """Store vectors in place of the texts they were made of; return how many are new."""
        with self._state_tables.begin_writing() as db:
            stored_count = sum(
                self._store_vector(db, "id = ?", (passage_row_id,), vector, worker_name)
                for passage_row_id, vector in zip(passage_ids, matrix, strict=True)
            )
        # After the commit: whoever is woken reads the vectors at once.
        with self._new_vectors_condition:
            self._new_vectors_condition.notify_all()
        return stored_count

    def delete_vectors_of_worker(self, worker_name: str) -> int:
        """Delete the vectors that a worker sent; return how many there were."""
        with self._state_tables.begin_writing() as db:
            return int(
                db.execute("DELETE FROM waiting_texts WHERE worker = ?", (worker_name,)).rowcount
            )

    def count_passages(self) -> tuple[int, int]:
        """Return how many texts have a vector, and how many wait for one."""
        with self._state_tables.begin_reading() as db:
            total_count, embedded_count = db.execute(
                "SELECT count(*), count(vector) FROM waiting_texts WHERE model = ?",
                (self.embedder.identity,),
            ).fetchone()
        return embedded_count, total_count - embedded_count

    # --- internals ---

    def _has_active_worker(self) -> bool:
        with self._state_tables.begin_reading() as db:
            worker_row = db.execute(
                "SELECT 1 FROM embedding_workers WHERE model = ? AND seen_at > ?",
                (self.embedder.identity, self._get_now_seconds() - _MAX_WORKER_SILENCE_SECONDS),
            ).fetchone()
        return worker_row is not None

    def _add_texts(self, texts: Sequence[str]) -> None:
        now_seconds = self._get_now_seconds()
        with self._state_tables.begin_writing() as db:
            for text in texts:
                db.execute(
                    "INSERT INTO waiting_texts (model, digest, passage_text, asked_at) "
                    "VALUES (?, ?, ?, ?) "
                    "ON CONFLICT (model, digest) DO UPDATE SET asked_at = excluded.asked_at",
                    (self.embedder.identity, _hash_text(text), text, now_seconds),
                )

    def _claim_texts_for_here(self, texts: Sequence[str]) -> list[str]:
        """Return some of the texts, which no worker gets while they are embedded here."""
        texts_by_digest = {_hash_text(text): text for text in texts[:_MAX_TEXTS_CLAIMED_HERE]}
        digests, placeholders_sql = next(_batch_sql_values(list(texts_by_digest)))
        with self._state_tables.begin_writing() as db:
            text_rows = db.execute(
                f"SELECT id, digest FROM waiting_texts WHERE model = ? AND {_IS_LEASABLE_SQL} "
                f"AND digest IN ({placeholders_sql})",
                (self.embedder.identity, self._get_now_seconds(), *digests),
            ).fetchall()
            self._lease_texts(db, _ROOM_LEASE_ID, [text_row[0] for text_row in text_rows])
        return [texts_by_digest[text_row[1]] for text_row in text_rows]

    def _lease_texts(self, db: Any, lease_id: str, passage_ids: Sequence[int]) -> None:
        for batch_ids, placeholders_sql in _batch_sql_values(passage_ids):
            db.execute(
                "UPDATE waiting_texts SET lease_id = ?, lease_until = ? "
                f"WHERE id IN ({placeholders_sql})",
                (lease_id, self._get_now_seconds() + LEASE_SECONDS, *batch_ids),
            )

    def _store_vectors_made_here(self, texts: Sequence[str], matrix: Matrix) -> None:
        with self._state_tables.begin_writing() as db:
            for text, vector in zip(texts, matrix, strict=True):
                model_and_digest = (self.embedder.identity, _hash_text(text))
                self._store_vector(db, "model = ? AND digest = ?", model_and_digest, vector, None)

    def _store_vector(
        self,
        db: Any,
        condition_sql: str,
        condition_values: tuple[Any, ...],
        vector: Vector,
        worker_name: str | None,
    ) -> int:
        # The text goes when it is needed no more: its document may be deleted any time.
        # The first vector counts: a lease that ran out may have gone to somebody else.
        update_cursor = db.execute(
            "UPDATE waiting_texts SET vector = ?, worker = ?, passage_text = '', lease_id = NULL "
            f"WHERE vector IS NULL AND {condition_sql}",
            (np.asarray(vector, "<f4").tobytes(), worker_name, *condition_values),
        )
        return int(update_cursor.rowcount)

    def _read_finished_vectors(self, texts: Sequence[str]) -> dict[str, Vector]:
        texts_by_digest = {_hash_text(text): text for text in texts}
        vectors_by_text: dict[str, Vector] = {}
        with self._state_tables.begin_reading() as db:
            for digests, placeholders_sql in _batch_sql_values(list(texts_by_digest)):
                vector_rows = db.execute(
                    "SELECT digest, vector FROM waiting_texts "
                    f"WHERE vector IS NOT NULL AND model = ? AND digest IN ({placeholders_sql})",
                    (self.embedder.identity, *digests),
                )
                vectors_by_text.update(
                    (texts_by_digest[digest], np.frombuffer(vector_bytes, "<f4"))
                    for digest, vector_bytes in vector_rows
                )
        return vectors_by_text


class WorkerAidedEmbedder(Embedder):
    """An embedder whose batches workers may share; questions are embedded here as ever."""

    def __init__(self, waiting_texts: WaitingTexts, reranker: Reranker | None = None) -> None:
        self.waiting_texts = waiting_texts
        self.reranker = reranker
        self._own_embedder = waiting_texts.embedder

    @property
    def identity(self) -> str:
        """What the vectors depend on."""
        return self._own_embedder.identity

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""
        return self._own_embedder.dimensions

    @property
    def texts_per_batch(self) -> int:
        """How many texts a batch of a stream should have."""
        return self._own_embedder.texts_per_batch

    def load(self) -> None:
        """Load the model now rather than with the first text."""
        self._own_embedder.load()

    def embed_each(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of a few texts."""
        return self._own_embedder.embed_each(texts)

    def embed_stream(self, keyed_batches: Any) -> Iterator[Any]:
        """Yield the key of each batch with the vectors of its texts; nobody helps."""
        return self._own_embedder.embed_stream(keyed_batches)

    def offer_to_workers(self, texts: Sequence[str]) -> bool:
        """Tell workers of texts that `embed_batch` will be asked for, some at a time.

        Return whether there are workers.
        """
        try:
            return self.waiting_texts.has_seen_worker() and self.waiting_texts.offer_to_workers(
                texts
            )
        except StorageFailed as error:
            log.warning("no worker can help: %s", error.message)
            return False

    def embed_batch(
        self,
        texts: Sequence[str],
        batch_size: int = 32,
        report_progress: ReportProgressSync = no_progress_sync,
    ) -> Matrix:
        """Return the vectors of many texts, one row each, in their order."""
        is_shareable = bool(texts) and all(text.strip() for text in texts)
        if is_shareable and self.waiting_texts.has_seen_worker():
            try:
                vectors_by_text = self.waiting_texts.embed_with_workers(list(dict.fromkeys(texts)))
                return np.stack([vectors_by_text[text] for text in texts])
            except StorageFailed as error:
                log.warning("no worker can help: %s", error.message)
        return self._own_embedder.embed_batch(texts, batch_size, report_progress)


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _batch_sql_values(sql_values: Sequence[Any]) -> Iterator[tuple[list[Any], str]]:
    """Yield some values at a time with their question marks: a statement takes no more."""
    for first_value_index in range(0, len(sql_values), _VALUES_PER_STATEMENT):
        batch_values = list(
            sql_values[first_value_index : first_value_index + _VALUES_PER_STATEMENT]
        )
        yield batch_values, ", ".join("?" * len(batch_values))
