"""Embedding by workers on other machines: passages leased to them, their vectors checked."""

import binascii
import hashlib
import json
import logging
import secrets
import time
from base64 import b64decode
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from readingroom.bases.federal import store
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS
from readingroom.bases.federal.search.queue import LEASE_SECONDS, count_unembedded
from readingroom.bases.federal.search.vectors import (
    FederalVectors,
    build_embedded_text,
    drop_other_models,
    store_vectors,
)
from readingroom.engine.embedding.received import check_sample, read_vectors
from readingroom.engine.errors import VectorsRefused
from readingroom.protocol.embedding_work import (
    EmbeddingProgress,
    LeasedBatch,
    LeaseState,
    SentVectors,
    StoredVectors,
    WaitingPassage,
)
from readingroom.storage.database import Database
from readingroom.storage.errors import EmbeddingMismatch

log = logging.getLogger(__name__)

_COST_SHARE = 20
"""Counting again waits for so many times as long as it took."""
_RATE_SECONDS = 300.0
"""Over how long the rate is measured."""


class RemoteEmbedding:
    """The federal base's passages without vectors, as workers get them."""

    def __init__(self, path: Path, vectors: FederalVectors) -> None:
        self._path = path
        self._vectors = vectors
        self._refused_workers: set[str] = set()
        self._stored_counts: deque[tuple[float, int]] = deque()
        self._has_dropped_others = False
        self._counts = (0, 0)
        """How many passages are embedded, and how many wait."""
        self._count_again_at = 0.0

    def claim(self, model_name: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed; raise `EmbeddingMismatch` for another model than ours."""
        self._check_model(model_name)
        lease_id = secrets.token_hex(16)
        with self._open() as db:
            if not self._has_dropped_others:
                drop_other_models(db, model_name)
                self._has_dropped_others = True
            claimed_rows = self._vectors.queue.claim(db, lease_id, max_passages)
            return LeasedBatch(
                lease_id=lease_id,
                model=model_name,
                dimensions=self._vectors.embedder.dimensions,
                lease_seconds=LEASE_SECONDS,
                passages=[
                    WaitingPassage(id=passage_row["chunk"], text=build_embedded_text(passage_row))
                    for passage_row in claimed_rows
                ],
                progress=self._compute_progress(db),
            )

    def extend(self, lease_id: str) -> LeaseState:
        """Keep a lease alive."""
        with self._open() as db:
            return LeaseState(passages=self._vectors.queue.extend(db, lease_id))

    def release(self, lease_id: str) -> None:
        """Give the passages of a lease back."""
        with self._open() as db:
            self._vectors.queue.release(db, lease_id)

    def store(self, worker: str, lease_id: str, sent_vectors: SentVectors) -> StoredVectors:
        """Check vectors and store them.

        A lease that ran out meanwhile does no harm: what is stored depends on the passages alone.
        Raise `EmbeddingMismatch`, or `VectorsRefused`; then all that the worker ever sent is
        deleted, and it is refused from then on.
        """
        self._check_model(sent_vectors.model)
        if worker in self._refused_workers:
            raise VectorsRefused(
                f"Vectors of {worker} were wrong before; the operator can revoke its key, and "
                "restart the server to give it another chance"
            )
        with self._open() as db:
            passage_texts = _read_texts(db, sent_vectors.ids)
            try:
                matrix = read_vectors(
                    _decode(sent_vectors.vectors),
                    len(sent_vectors.ids),
                    self._vectors.embedder.dimensions,
                )
                unchanged_indexes = _list_unchanged(sent_vectors, passage_texts)
                if unchanged_indexes:
                    kept_texts = [
                        passage_texts[sent_vectors.ids[vector_index]]
                        for vector_index in unchanged_indexes
                    ]
                    check_sample(self._vectors.embedder, kept_texts, matrix[unchanged_indexes])
            except VectorsRefused as error:
                self._refuse_worker(db, worker, lease_id, error)
                raise
            chunks = [sent_vectors.ids[vector_index] for vector_index in unchanged_indexes]
            stored_count = store_vectors(
                db, chunks, matrix[unchanged_indexes], sent_vectors.model, worker
            )
            self._vectors.queue.release(db, lease_id)
            self._stored_counts.append((time.monotonic(), stored_count))
            embedded_count, waiting_count = self._counts
            self._counts = embedded_count + stored_count, max(0, waiting_count - stored_count)
            return StoredVectors(
                stored=stored_count,
                dropped=len(sent_vectors.ids) - stored_count,
                progress=self._compute_progress(db),
            )

    def read_progress(self) -> EmbeddingProgress:
        """Return how far the base is."""
        with self._open() as db:
            return self._compute_progress(db)

    @contextmanager
    def _open(self) -> Iterator[Database]:
        with (
            store.translate_errors(self._path),
            closing(store.connect(self._path, writing=True)) as db,
        ):
            yield db

    def _check_model(self, model_name: str) -> None:
        own_model = self._vectors.embedder.identity
        if model_name != own_model:
            raise EmbeddingMismatch(
                f"This room has vectors of {own_model}; the worker makes those of "
                f"{model_name[:200]!r}. "
                "Start it with the same weights and precision."
            )

    def _refuse_worker(
        self, db: Database, worker: str, lease_id: str, refusal: VectorsRefused
    ) -> None:
        self._refused_workers.add(worker)
        with db.transaction():
            db.execute("UPDATE generation SET value = value + 1")
            sent_before = "SELECT chunk FROM embedded_elsewhere WHERE worker = ?"
            deleted_count = db.execute(
                f"DELETE FROM vectors WHERE chunk IN ({sent_before})", (worker,)
            ).rowcount
            db.execute("DELETE FROM embedded_elsewhere WHERE worker = ?", (worker,))
        self._vectors.queue.release(db, lease_id)
        log.error(
            "vectors of worker %s are refused (%s); the %d that it sent before are deleted and "
            "will be made again",
            worker,
            refusal.message,
            deleted_count,
        )

    def _count_passages(self, db: Database) -> tuple[int, int]:
        """Return how many passages are embedded, and how many wait.

        Counting a large file takes long, so it is done at times, and what is stored is added.
        """
        started_at = time.monotonic()
        if started_at >= self._count_again_at:
            (embedded_count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            self._counts = embedded_count, count_unembedded(db)
            self._count_again_at = started_at + _COST_SHARE * (time.monotonic() - started_at)
        return self._counts

    def _compute_progress(self, db: Database) -> EmbeddingProgress:
        embedded_count, waiting_count = self._count_passages(db)
        passage_count = embedded_count + waiting_count
        per_second = self._compute_rate()
        return EmbeddingProgress(
            embedded=embedded_count,
            total=passage_count,
            # Rounded down: 100 means that nothing is left.
            percent=int(1000 * embedded_count / passage_count) / 10 if passage_count else 100.0,
            per_second=per_second,
            seconds_left=round(waiting_count / per_second, 1) if per_second else None,
        )

    def _compute_rate(self) -> float | None:
        """Return the passages stored a second, or None before the second batch."""
        now = time.monotonic()
        while self._stored_counts and self._stored_counts[0][0] < now - _RATE_SECONDS:
            self._stored_counts.popleft()
        if len(self._stored_counts) < 2:
            return None
        (first_at, first_count), *_ = self._stored_counts
        stored_since = sum(stored_count for _, stored_count in self._stored_counts) - first_count
        return round(stored_since / max(now - first_at, 0.001), 1)


def _decode(vectors: str) -> bytes:
    try:
        return b64decode(vectors, validate=True)
    except (binascii.Error, ValueError) as error:
        raise VectorsRefused(f"The vectors are not base64: {error}") from error


def _read_texts(db: Database, chunk_ids: Sequence[int]) -> dict[int, str]:
    """Return what is embedded of passages, of those that are here."""
    passage_rows = db.execute(
        f"""SELECT {PASSAGE_COLUMNS} FROM chunks c JOIN passages p USING (chunk)
            WHERE c.chunk IN ({db.dialect.parameter_items})""",
        (json.dumps(list(chunk_ids)),),
    )
    return {passage_row["chunk"]: build_embedded_text(passage_row) for passage_row in passage_rows}


def _list_unchanged(sent_vectors: SentVectors, passage_texts: dict[int, str]) -> list[int]:
    """Return which of the vectors belong to a passage that still has the text it was made from."""
    if len(sent_vectors.text_digests) != len(sent_vectors.ids):
        raise VectorsRefused("Each vector needs the digest of its text")
    return [
        vector_index
        for vector_index, (chunk, text_digest) in enumerate(
            zip(sent_vectors.ids, sent_vectors.text_digests, strict=True)
        )
        if chunk in passage_texts
        and hashlib.sha256(passage_texts[chunk].encode()).hexdigest() == text_digest
    ]
