"""Embedding by workers on other machines: passages of any base leased to them, vectors checked."""

import binascii
import hashlib
import logging
import secrets
import time
from base64 import b64decode
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from readingroom.core.lru import LRUCache
from readingroom.engine.embedding.received import (
    LEASE_SECONDS,
    check_sampled_vectors,
    unpack_vectors,
)
from readingroom.engine.errors import VectorsRefused
from readingroom.protocol.embedding_work import (
    EmbeddingProgress,
    LeasablePassages,
    LeasedBatch,
    LeaseState,
    SentVectors,
    StoredVectors,
    WaitingPassage,
)
from readingroom.storage.errors import EmbeddingMismatch

log = logging.getLogger(__name__)

# Counting again waits for so many times as long as it took.
_RECOUNT_PAUSE_FACTOR = 20
# Over how long the rate is measured.
_RATE_WINDOW_SECONDS = 300.0
# How long signs of life keep a lease: a worker that hangs must not hold up an ingestion for ever.
_MAX_LEASE_SECONDS = 900.0
_MAX_KNOWN_LEASES = 10_000


@dataclass(slots=True)
class _PassageCounts:
    """How many passages of a kind are embedded and how many wait, as counted last."""

    embedded_count: int = 0
    waiting_count: int = 0
    next_recount_at: float = 0.0


class EmbeddingBroker:
    """The passages without vectors of all bases of a room, as workers get them. All blocks.

    A lease is named after the passages it is of, so that it can be found again by any process.
    """

    def __init__(self, offered_passages: Sequence[LeasablePassages]) -> None:
        """`offered_passages` are in the order in which workers get them."""
        self._passages_by_name = {
            leasable_passages.name: leasable_passages for leasable_passages in offered_passages
        }
        self._counts_by_name = {
            leasable_passages_name: _PassageCounts()
            for leasable_passages_name in self._passages_by_name
        }
        self._refused_workers: set[str] = set()
        self._timed_stored_counts: deque[tuple[float, int]] = deque()
        self._first_extended_at = LRUCache[str, float](_MAX_KNOWN_LEASES)

    def check_worker(self, worker_name: str) -> None:
        """Raise `VectorsRefused` for a worker whose vectors were wrong before."""
        if worker_name in self._refused_workers:
            raise VectorsRefused(
                f"Vectors of {worker_name} were wrong before; the operator can revoke its key, and "
                "restart the server to give it another chance"
            )

    def claim_batch(self, sent_model_identity: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed; raise `EmbeddingMismatch` for another model than ours."""
        lease_id, claimed_passages = "", list[tuple[int, str]]()
        for leasable_passages in self._passages_by_name.values():
            _check_worker_model(leasable_passages, sent_model_identity)
            lease_id = f"{leasable_passages.name}.{secrets.token_hex(16)}"
            if claimed_passages := leasable_passages.claim_passages(lease_id, max_passages):
                break
        return LeasedBatch(
            lease_id=lease_id,
            model=sent_model_identity,
            dimensions=leasable_passages.embedder.dimensions,
            lease_seconds=LEASE_SECONDS,
            passages=[
                WaitingPassage(id=passage_id, text=passage_text)
                for passage_id, passage_text in claimed_passages
            ],
            progress=self.read_progress(),
        )

    def extend_lease(self, lease_id: str) -> LeaseState:
        """Keep a lease alive, but not for longer than any batch takes."""
        leasable_passages = self._find_passages_of_lease(lease_id)
        if leasable_passages is None:
            return LeaseState(passages=0)
        now_seconds = time.monotonic()
        first_extended_at = self._first_extended_at.get(lease_id)
        if first_extended_at is None:
            self._first_extended_at.put(lease_id, now_seconds)
        elif now_seconds - first_extended_at > _MAX_LEASE_SECONDS:
            leasable_passages.release_lease(lease_id)
            return LeaseState(passages=0)
        return LeaseState(passages=leasable_passages.extend_lease(lease_id))

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back."""
        if leasable_passages := self._find_passages_of_lease(lease_id):
            leasable_passages.release_lease(lease_id)

    def store_vectors(
        self, worker_name: str, lease_id: str, sent_vectors: SentVectors
    ) -> StoredVectors:
        """Check vectors and store them.

        A lease that ran out meanwhile does no harm: what is stored depends on the passages alone.
        Raise `EmbeddingMismatch`, or `VectorsRefused`; then all that the worker sent is deleted
        where it is still known, and it is refused from then on.
        """
        leasable_passages = self._find_passages_of_lease(lease_id)
        if leasable_passages is None:
            return StoredVectors(
                stored=0, dropped=len(sent_vectors.ids), progress=self.read_progress()
            )
        _check_worker_model(leasable_passages, sent_vectors.model)
        self.check_worker(worker_name)
        texts_by_passage_id = leasable_passages.read_texts(sent_vectors.ids)
        try:
            vector_matrix = unpack_vectors(
                _decode_base64(sent_vectors.vectors),
                len(sent_vectors.ids),
                leasable_passages.embedder.dimensions,
            )
            unchanged_text_positions = _list_unchanged_text_positions(
                sent_vectors, texts_by_passage_id
            )
            if unchanged_text_positions:
                unchanged_texts = [
                    texts_by_passage_id[sent_vectors.ids[vector_position]]
                    for vector_position in unchanged_text_positions
                ]
                check_sampled_vectors(
                    leasable_passages.embedder,
                    unchanged_texts,
                    vector_matrix[unchanged_text_positions],
                )
        except VectorsRefused as error:
            leasable_passages.release_lease(lease_id)
            self._block_worker(worker_name, error)
            raise
        unchanged_passage_ids = [
            sent_vectors.ids[vector_position] for vector_position in unchanged_text_positions
        ]
        stored_count = leasable_passages.store_vectors(
            unchanged_passage_ids, vector_matrix[unchanged_text_positions], worker_name
        )
        leasable_passages.release_lease(lease_id)
        self._add_stored_count(leasable_passages.name, stored_count)
        return StoredVectors(
            stored=stored_count,
            dropped=len(sent_vectors.ids) - stored_count,
            progress=self.read_progress(),
        )

    def read_progress(self) -> EmbeddingProgress:
        """Return how far all bases together are."""
        for leasable_passages in self._passages_by_name.values():
            self._refresh_counts(leasable_passages)
        embedded_count = sum(
            passage_counts.embedded_count for passage_counts in self._counts_by_name.values()
        )
        waiting_count = sum(
            passage_counts.waiting_count for passage_counts in self._counts_by_name.values()
        )
        passage_count = embedded_count + waiting_count
        passages_per_second = self._compute_passages_per_second()
        return EmbeddingProgress(
            embedded=embedded_count,
            total=passage_count,
            # Rounded down: 100 means that nothing is left.
            percent=int(1000 * embedded_count / passage_count) / 10 if passage_count else 100.0,
            per_second=passages_per_second,
            seconds_left=round(waiting_count / passages_per_second, 1)
            if passages_per_second
            else None,
        )

    def _find_passages_of_lease(self, lease_id: str) -> LeasablePassages | None:
        return self._passages_by_name.get(lease_id.partition(".")[0])

    def _block_worker(self, worker_name: str, error: VectorsRefused) -> None:
        self._refused_workers.add(worker_name)
        deleted_vector_count = sum(
            leasable_passages.delete_vectors_of_worker(worker_name)
            for leasable_passages in self._passages_by_name.values()
        )
        for passage_counts in self._counts_by_name.values():
            passage_counts.next_recount_at = 0.0
        log.error(
            "vectors of worker %s are refused (%s); the %d that it sent before are deleted and "
            "will be made again",
            worker_name,
            error.message,
            deleted_vector_count,
        )

    def _refresh_counts(self, leasable_passages: LeasablePassages) -> None:
        """Count what is embedded and what waits.

        Counting a large file takes long, so it is done at times, and what is stored is added.
        """
        passage_counts = self._counts_by_name[leasable_passages.name]
        started_at = time.monotonic()
        if started_at >= passage_counts.next_recount_at:
            passage_counts.embedded_count, passage_counts.waiting_count = (
                leasable_passages.count_passages()
            )
            passage_counts.next_recount_at = started_at + _RECOUNT_PAUSE_FACTOR * (
                time.monotonic() - started_at
            )

    def _add_stored_count(self, leasable_passages_name: str, stored_count: int) -> None:
        self._timed_stored_counts.append((time.monotonic(), stored_count))
        passage_counts = self._counts_by_name[leasable_passages_name]
        passage_counts.embedded_count += stored_count
        passage_counts.waiting_count = max(0, passage_counts.waiting_count - stored_count)

    def _compute_passages_per_second(self) -> float | None:
        """Return the passages stored a second, or None before the second batch."""
        now_seconds = time.monotonic()
        while (
            self._timed_stored_counts
            and self._timed_stored_counts[0][0] < now_seconds - _RATE_WINDOW_SECONDS
        ):
            self._timed_stored_counts.popleft()
        if len(self._timed_stored_counts) < 2:
            return None
        (first_stored_at, first_stored_count), *_ = self._timed_stored_counts
        stored_count_after_first = (
            sum(stored_count for _, stored_count in self._timed_stored_counts) - first_stored_count
        )
        return round(stored_count_after_first / max(now_seconds - first_stored_at, 0.001), 1)


def _check_worker_model(leasable_passages: LeasablePassages, sent_model_identity: str) -> None:
    own_model_identity = leasable_passages.embedder.identity
    if sent_model_identity != own_model_identity:
        raise EmbeddingMismatch(
            f"This room has vectors of {own_model_identity}; the worker makes those "
            f"of {sent_model_identity[:200]!r}. Start it with the same weights and precision."
        )


def _decode_base64(vectors_base64: str) -> bytes:
    try:
        return b64decode(vectors_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise VectorsRefused(f"The vectors are not base64: {error}") from error


def _list_unchanged_text_positions(
    sent_vectors: SentVectors, texts_by_passage_id: Mapping[int, str]
) -> list[int]:
    """Return which of the vectors belong to a passage that still has the text it was made from."""
    if len(sent_vectors.text_digests) != len(sent_vectors.ids):
        raise VectorsRefused("Each vector needs the digest of its text")
    # Right vectors sent many times would hide a wrong one from the sample.
    if len(set(sent_vectors.ids)) < len(sent_vectors.ids):
        raise VectorsRefused("A passage is named twice")
    return [
        vector_position
        for vector_position, (passage_id, text_digest) in enumerate(
            zip(sent_vectors.ids, sent_vectors.text_digests, strict=True)
        )
        if passage_id in texts_by_passage_id
        and hashlib.sha256(texts_by_passage_id[passage_id].encode()).hexdigest() == text_digest
    ]
