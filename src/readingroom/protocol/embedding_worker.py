"""A worker on another machine: takes passages from a serving room, and sends back their vectors."""

import hashlib
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import httpx2
from pydantic import BaseModel

from readingroom.engine.embedding.embedder import Embedder, Matrix
from readingroom.protocol.embedding_work import (
    EMBEDDING_PREFIX,
    EmbeddingProgress,
    LeasedBatch,
    StoredVectors,
)
from readingroom.protocol.errors import RoomUnreachable, WorkRefused

_LONGEST_PAUSE = 30.0
_REQUEST_SECONDS = 120.0
_TRY_AGAIN = (429, 500, 502, 503, 504)
Model = TypeVar("Model", bound=BaseModel)


class EmbeddingWorker:
    """Embeds batches of one room, one after the other, until it is stopped.

    It can be killed at any time: what it had is given to another worker when its lease runs out.
    A room that is restarted is waited for, and then gets the vectors that were made meanwhile.
    """

    def __init__(
        self,
        room_url: str,
        worker_key: str,
        embedder: Embedder,
        report_progress: Callable[[EmbeddingProgress], None],
        patience_seconds: float = 600.0,
        batch_passages: int | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx2.Client(
            base_url=room_url.rstrip("/") + EMBEDDING_PREFIX,
            headers={"Authorization": f"Bearer {worker_key}"},
            timeout=_REQUEST_SECONDS,
        )
        self._embedder = embedder
        self._report_progress = report_progress
        self._patience_seconds = patience_seconds
        self._batch_passages = batch_passages
        self._wait = wait
        self._open_leases: dict[str, float] = {}
        """The batches that are not sent yet, with how long their leases hold."""

    def run(self, poll_seconds: float | None) -> int:
        """Embed what waits, and look again after so many seconds; None: return when all is done.

        Return how many vectors the room stored. Raise `RoomUnreachable` when it does not answer
        for longer than the patience lasts, `WorkRefused` when it wants nothing of this worker.
        """
        stored_count = 0
        with self._http, self._keep_leases():
            while True:
                stored_count += self._embed_waiting()
                progress = self._send_until_answered("GET", "/progress", EmbeddingProgress)
                if poll_seconds is None and progress.embedded >= progress.total:
                    return stored_count
                # What is left is another worker's, unless that one falls silent.
                self._wait(poll_seconds or 5.0)

    def _embed_waiting(self) -> int:
        """Embed until the room has nothing to give; return how many vectors it stored."""
        stored_count = 0
        batches = ((batch, _list_texts(batch)) for batch in self._claim_batches())
        for batch, matrix in self._embedder.embed_stream(batches):
            stored_vectors = self._send_vectors(batch, matrix)
            del self._open_leases[batch.lease_id]
            stored_count += stored_vectors.stored
            self._report_progress(stored_vectors.progress)
        return stored_count

    def _claim_batches(self) -> Iterator[LeasedBatch]:
        while True:
            batch = self._send_until_answered(
                "POST",
                "/batches",
                LeasedBatch,
                {
                    "model": self._embedder.identity,
                    "max_passages": self._batch_passages or self._embedder.batch_texts,
                },
            )
            if not batch.passages:
                return
            self._open_leases[batch.lease_id] = batch.lease_seconds
            yield batch

    def _send_vectors(self, batch: LeasedBatch, matrix: Matrix) -> StoredVectors:
        text_digests = [
            hashlib.sha256(passage_text.encode()).hexdigest() for passage_text in _list_texts(batch)
        ]
        return self._send_until_answered(
            "POST",
            f"/batches/{batch.lease_id}/vectors",
            StoredVectors,
            {
                "model": self._embedder.identity,
                "ids": [passage.id for passage in batch.passages],
                "text_digests": text_digests,
                "vectors": b64encode(matrix.astype("<f4").tobytes()).decode(),
            },
        )

    def _send_until_answered(
        self, method: str, request_path: str, answer_model: type[Model], request_body: Any = None
    ) -> Model:
        """Send a request until it is answered, waiting longer each time; return the answer."""
        give_up_at = time.monotonic() + self._patience_seconds
        pause_seconds = 0.5
        while True:
            try:
                response = self._http.request(method, request_path, json=request_body)
            except httpx2.TransportError as error:
                failure_reason = f"{type(error).__name__}: {error}"
            else:
                if response.status_code not in _TRY_AGAIN:
                    return answer_model.model_validate_json(_check_answer(response))
                failure_reason = f"it answers {response.status_code}"
                pause_seconds = max(pause_seconds, _read_retry_after(response))
            if time.monotonic() + pause_seconds > give_up_at:
                raise RoomUnreachable(
                    f"{self._http.base_url.host} could not be reached for "
                    f"{self._patience_seconds:.0f} seconds ({failure_reason}); start the worker "
                    "again when it is back, nothing is lost"
                )
            self._wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE)

    @contextmanager
    def _keep_leases(self) -> Iterator[None]:
        """Send signs of life from another thread; at the end give back what was not done."""
        stop_event = threading.Event()

        def send_heartbeats() -> None:
            while not stop_event.wait(min([30.0, *list(self._open_leases.values())]) / 3):
                for lease_id in list(self._open_leases):
                    self._try_request("POST", f"/batches/{lease_id}/heartbeat")

        heartbeat_thread = threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True)
        heartbeat_thread.start()
        try:
            yield
        finally:
            stop_event.set()
            heartbeat_thread.join()
            for lease_id in list(self._open_leases):
                self._try_request("DELETE", f"/batches/{lease_id}")

    def _try_request(self, method: str, request_path: str) -> None:
        """Send a request whose failure does no harm: the lease runs out, and is given again."""
        with suppress(httpx2.HTTPError):
            self._http.request(method, request_path, timeout=10.0)


def _list_texts(batch: LeasedBatch) -> Sequence[str]:
    return [passage.text for passage in batch.passages]


def _check_answer(response: httpx2.Response) -> bytes:
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
    seconds = response.headers.get("retry-after", "")
    return min(float(seconds), _LONGEST_PAUSE) if seconds.isdecimal() else 0.0
