"""A worker on another machine: embeds passages of a serving room, or of a room's database."""

import hashlib
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Protocol, TypeVar

import httpx2
from pydantic import BaseModel

from readingroom.core.arrays import Matrix
from readingroom.core.errors import KnowledgeError
from readingroom.engine.embedding.embedder import Embedder
from readingroom.protocol.checked_embedding import EmbeddingBroker
from readingroom.protocol.embedding_work import (
    EMBEDDING_PATH_PREFIX,
    EmbeddingProgress,
    LeasablePassages,
    LeasedBatch,
    SentVectors,
    StoredVectors,
)
from readingroom.protocol.errors import RoomUnreachable, WorkRefused
from readingroom.storage.errors import DatabaseUnreachable, EmbeddingMismatch

_MAX_RETRY_PAUSE_SECONDS = 30.0
_REQUEST_TIMEOUT_SECONDS = 120.0
_RETRIED_STATUSES = (429, 500, 502, 503, 504)
ModelT = TypeVar("ModelT", bound=BaseModel)
AnswerT = TypeVar("AnswerT")


class EmbeddingWork(Protocol):
    """Where a worker gets passages, and puts their vectors. All blocks.

    What cannot be reached is asked again until the patience ends: then `RoomUnreachable`.
    """

    def claim_batch(self, sent_model_identity: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed, none when all are embedded or given out."""

    def store_vectors(self, lease_id: str, sent_vectors: SentVectors) -> StoredVectors:
        """Have vectors checked and stored."""

    def read_progress(self) -> EmbeddingProgress:
        """Return how far the embedding is."""

    def extend_lease(self, lease_id: str) -> None:
        """Keep a lease alive; a failure does no harm, and is not raised."""

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back; a failure does no harm, and is not raised."""

    def close(self) -> None:
        """Close the connections."""


class EmbeddingWorker:
    """Embeds batches of one room, one after the other, until it is stop_event.

    It can be killed at any time: what it had is given to another worker when its lease runs out.
    A room that is restarted is waited for, and then gets the vectors that were made meanwhile.
    """

    def __init__(
        self,
        embedding_work: EmbeddingWork,
        embedder: Embedder,
        report_progress: Callable[[EmbeddingProgress], None],
        passages_per_batch: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._work = embedding_work
        self._embedder = embedder
        self._report_progress = report_progress
        self._passages_per_batch = passages_per_batch
        self._wait = sleep
        self._lease_seconds_by_id: dict[str, float] = {}
        """The batches that are not sent yet, with how long their leases hold."""

    def embed_until_done(self, poll_seconds: float | None) -> int:
        """Embed what waits, and look again after so many seconds; None: return when all is done.

        Return how many vectors the room stored. Raise `RoomUnreachable` when it does not answer
        for longer than the patience lasts, and what it says against this worker: `WorkRefused`,
        or `EmbeddingMismatch` and `VectorsRefused` on a database.
        """
        stored_count = 0
        with closing(self._work), self._keep_leases_alive():
            while True:
                stored_count += self._embed_waiting_passages()
                embedding_progress = self._work.read_progress()
                if poll_seconds is None and embedding_progress.embedded >= embedding_progress.total:
                    return stored_count
                # What is left is another worker's, unless that one falls silent.
                self._wait(poll_seconds or 5.0)

    def _embed_waiting_passages(self) -> int:
        """Embed until the room has nothing to give; return how many vectors it stored."""
        stored_count = 0
        batches_with_texts = (
            (leased_batch, _list_passage_texts(leased_batch))
            for leased_batch in self._claim_batches()
        )
        for leased_batch, vector_matrix in self._embedder.embed_stream(batches_with_texts):
            stored_vectors = self._work.store_vectors(
                leased_batch.lease_id, self._pack_vectors(leased_batch, vector_matrix)
            )
            del self._lease_seconds_by_id[leased_batch.lease_id]
            stored_count += stored_vectors.stored
            self._report_progress(stored_vectors.progress)
        return stored_count

    def _claim_batches(self) -> Iterator[LeasedBatch]:
        max_passages = self._passages_per_batch or self._embedder.texts_per_batch
        while True:
            leased_batch = self._work.claim_batch(self._embedder.identity, max_passages)
            if not leased_batch.passages:
                return
            self._lease_seconds_by_id[leased_batch.lease_id] = leased_batch.lease_seconds
            yield leased_batch

    def _pack_vectors(self, leased_batch: LeasedBatch, vector_matrix: Matrix) -> SentVectors:
        return SentVectors(
            model=self._embedder.identity,
            ids=[passage.id for passage in leased_batch.passages],
            text_digests=[
                hashlib.sha256(passage_text.encode()).hexdigest()
                for passage_text in _list_passage_texts(leased_batch)
            ],
            vectors=b64encode(vector_matrix.astype("<f4").tobytes()).decode(),
        )

    @contextmanager
    def _keep_leases_alive(self) -> Iterator[None]:
        """Send signs of life from another thread; at the end give back what was not done."""
        stop_event = threading.Event()

        def send_heartbeats() -> None:
            while not stop_event.wait(min([30.0, *list(self._lease_seconds_by_id.values())]) / 3):
                for lease_id in list(self._lease_seconds_by_id):
                    self._work.extend_lease(lease_id)

        heartbeat_thread = threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True)
        heartbeat_thread.start()
        try:
            yield
        finally:
            stop_event.set()
            heartbeat_thread.join()
            for lease_id in list(self._lease_seconds_by_id):
                self._work.release_lease(lease_id)


class HttpEmbeddingWork:
    """The work of a room that is served elsewhere, over HTTP with a worker's key."""

    def __init__(
        self,
        room_url: str,
        worker_key: str,
        patience_seconds: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx2.Client(
            base_url=room_url.rstrip("/") + EMBEDDING_PATH_PREFIX,
            headers={"Authorization": f"Bearer {worker_key}"},
            timeout=_REQUEST_TIMEOUT_SECONDS,
        )
        self._patience_seconds = patience_seconds
        self._wait = sleep

    def claim_batch(self, sent_model_identity: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed. Raise `WorkRefused`, or `RoomUnreachable`."""
        request_body = {"model": sent_model_identity, "max_passages": max_passages}
        return self._send_until_answered("POST", "/batches", LeasedBatch, request_body)

    def store_vectors(self, lease_id: str, sent_vectors: SentVectors) -> StoredVectors:
        """Send vectors. Raise `WorkRefused`, or `RoomUnreachable`."""
        vectors_path = f"/batches/{lease_id}/vectors"
        return self._send_until_answered(
            "POST", vectors_path, StoredVectors, sent_vectors.model_dump()
        )

    def read_progress(self) -> EmbeddingProgress:
        """Return how far the room is. Raise `WorkRefused`, or `RoomUnreachable`."""
        return self._send_until_answered("GET", "/progress", EmbeddingProgress)

    def extend_lease(self, lease_id: str) -> None:
        """Keep a lease alive, if the room answers."""
        self._send_request_once("POST", f"/batches/{lease_id}/heartbeat")

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back, if the room answers."""
        self._send_request_once("DELETE", f"/batches/{lease_id}")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _send_until_answered(
        self,
        http_method: str,
        request_path: str,
        answer_class: type[ModelT],
        request_body: Any = None,
    ) -> ModelT:
        def send_request() -> ModelT:
            try:
                response = self._http.request(http_method, request_path, json=request_body)
            except httpx2.TransportError as error:
                raise _NoAnswerYet(f"{type(error).__name__}: {error}") from error
            if response.status_code in _RETRIED_STATUSES:
                raise _NoAnswerYet(
                    f"it answers {response.status_code}", _read_retry_after(response)
                )
            return answer_class.model_validate_json(_read_answer_body(response))

        server_host = self._http.base_url.host
        return _ask_until_answered(send_request, server_host, self._patience_seconds, self._wait)

    def _send_request_once(self, http_method: str, request_path: str) -> None:
        """Send a request whose failure does no harm: the lease runs out, and is given again."""
        with suppress(httpx2.HTTPError):
            self._http.request(http_method, request_path, timeout=10.0)


class DatabaseEmbeddingWork:
    """The work of a room whose data is in a database, taken and stored there without a server.

    Who may is the database's own affair: its role. Leases, checks and stores are those of a server.
    """

    def __init__(
        self,
        offered_passages: Sequence[LeasablePassages],
        patience_seconds: float = 600.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`offered_passages` are in the order in which they are embedded."""
        self._offered_passages = offered_passages
        self._embedding = EmbeddingBroker(offered_passages)
        # A key's name has no colon.
        self._worker_name = f"database:{socket.gethostname()}"
        self._patience_seconds = patience_seconds
        self._wait = sleep

    def claim_batch(self, sent_model_identity: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed. Raise `EmbeddingMismatch`, or `RoomUnreachable`."""
        return self._ask_database_until_answered(
            lambda: self._check_model_and_claim(sent_model_identity, max_passages)
        )

    def store_vectors(self, lease_id: str, sent_vectors: SentVectors) -> StoredVectors:
        """Check and store vectors. Raise `VectorsRefused`, or `RoomUnreachable`."""
        return self._ask_database_until_answered(
            lambda: self._embedding.store_vectors(self._worker_name, lease_id, sent_vectors)
        )

    def read_progress(self) -> EmbeddingProgress:
        """Return how far all bases together are. Raise `RoomUnreachable`."""
        return self._ask_database_until_answered(self._embedding.read_progress)

    def extend_lease(self, lease_id: str) -> None:
        """Keep a lease alive, if the database answers."""
        with suppress(KnowledgeError):
            self._embedding.extend_lease(lease_id)

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back, if the database answers."""
        with suppress(KnowledgeError):
            self._embedding.release_lease(lease_id)

    def close(self) -> None:
        """Do nothing: the connections belong to the process."""

    def _check_model_and_claim(self, sent_model_identity: str, max_passages: int) -> LeasedBatch:
        # No server says which model the room has; the vectors that are there do.
        for leasable_passages in self._offered_passages:
            stored_model_identity = leasable_passages.read_stored_model()
            if stored_model_identity not in (None, sent_model_identity):
                raise EmbeddingMismatch(
                    f"This room has vectors of {stored_model_identity}; the worker makes those "
                    f"of {sent_model_identity}. Start it with the same weights and precision."
                )
        return self._embedding.claim_batch(sent_model_identity, max_passages)

    def _ask_database_until_answered(self, ask_database: Callable[[], AnswerT]) -> AnswerT:
        def ask_database_once() -> AnswerT:
            try:
                return ask_database()
            except KnowledgeError as error:
                for database_error in (error, error.__cause__):
                    if isinstance(database_error, DatabaseUnreachable):
                        raise _NoAnswerYet(database_error.message) from error
                raise

        return _ask_until_answered(
            ask_database_once, "The database", self._patience_seconds, self._wait
        )


class _NoAnswerYet(Exception):
    """Nothing was answered; asking again may help, after so many seconds."""

    def __init__(self, failure_reason: str, pause_seconds: float = 0.0) -> None:
        super().__init__(failure_reason)
        self.pause_seconds = pause_seconds


def _ask_until_answered(
    make_attempt: Callable[[], AnswerT],
    server_label: str,
    patience_seconds: float,
    sleep: Callable[[float], None],
) -> AnswerT:
    """Ask until there is an answer, waiting longer each time; return it."""
    give_up_at = time.monotonic() + patience_seconds
    pause_seconds = 0.5
    while True:
        try:
            return make_attempt()
        except _NoAnswerYet as failure:
            pause_seconds = max(pause_seconds, failure.pause_seconds)
            if time.monotonic() + pause_seconds > give_up_at:
                raise RoomUnreachable(
                    f"{server_label} could not be reached for {patience_seconds:.0f} seconds "
                    f"({failure}); start the worker again when it is back, nothing is lost"
                ) from failure
        sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, _MAX_RETRY_PAUSE_SECONDS)


def _list_passage_texts(leased_batch: LeasedBatch) -> Sequence[str]:
    return [passage.text for passage in leased_batch.passages]


def _read_answer_body(response: httpx2.Response) -> bytes:
    """Return the body of an answer; raise `WorkRefused` with what the room says against it."""
    if response.is_success:
        return response.content
    try:
        refusal_message = str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        refusal_message = (
            f"it answers {response.status_code}; is there a Reading Room at this address?"
        )
    raise WorkRefused(f"The room refuses: {refusal_message[:500]}")


def _read_retry_after(response: httpx2.Response) -> float:
    retry_after_text = response.headers.get("retry-after", "")
    return (
        min(float(retry_after_text), _MAX_RETRY_PAUSE_SECONDS)
        if retry_after_text.isdecimal()
        else 0.0
    )
