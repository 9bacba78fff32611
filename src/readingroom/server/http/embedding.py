"""Routes for workers on other machines: they get passages, and send back vectors."""

from typing import Annotated

import anyio.to_thread
from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, Field

from readingroom.protocol.checked_embedding import EmbeddingBroker
from readingroom.protocol.embedding_work import (
    EMBEDDING_PATH_PREFIX,
    MAX_BATCH_PASSAGES,
    EmbeddingProgress,
    LeasedBatch,
    LeaseState,
    SentVectors,
    StoredVectors,
)
from readingroom.protocol.rest import make_problem_responses

_PROBLEM_RESPONSES_BY_STATUS = make_problem_responses(
    {
        401: "A worker's key is asked for",
        409: "The worker has another model",
        422: "An argument does not fit, or vectors are not those of their texts",
        503: "The storage or the model cannot be used",
    }
)
LeaseId = Annotated[str, Path(min_length=1, max_length=64, description="`lease_id` of the batch.")]


class BatchRequest(BaseModel):
    """What a worker can embed."""

    model: str = Field(max_length=200, description="The identity of the worker's model.")
    max_passages: int = Field(256, ge=1, le=MAX_BATCH_PASSAGES)


def make_embedding_router(embedding_broker: EmbeddingBroker) -> APIRouter:
    """Return the routes that a worker's key opens; `WorkerAuth` lets nobody else in."""
    embedding_router = APIRouter(
        prefix=EMBEDDING_PATH_PREFIX, responses=_PROBLEM_RESPONSES_BY_STATUS, tags=["embedding"]
    )

    @embedding_router.get("/progress")
    async def progress() -> EmbeddingProgress:
        """How far the embedding is, how fast it goes, and how long it will take."""
        return await anyio.to_thread.run_sync(embedding_broker.read_progress)

    @embedding_router.post("/batches")
    async def claim_batch(batch_request: BatchRequest, request: Request) -> LeasedBatch:
        """Passages to embed, the most wanted first; none when all are embedded or given out."""
        embedding_broker.check_worker(request.scope["user"].username)
        return await anyio.to_thread.run_sync(
            embedding_broker.claim_batch, batch_request.model, batch_request.max_passages
        )

    @embedding_router.post("/batches/{lease_id}/heartbeat")
    async def extend_lease(lease_id: LeaseId, request: Request) -> LeaseState:
        """Say that the worker is alive, so that nobody else gets its passages."""
        embedding_broker.check_worker(request.scope["user"].username)
        return await anyio.to_thread.run_sync(embedding_broker.extend_lease, lease_id)

    @embedding_router.delete("/batches/{lease_id}", status_code=204)
    async def release_lease(lease_id: LeaseId) -> None:
        """Give a batch back that will not be embedded, so that another worker gets it now."""
        await anyio.to_thread.run_sync(embedding_broker.release_lease, lease_id)

    @embedding_router.post("/batches/{lease_id}/vectors")
    async def store_vectors(
        lease_id: LeaseId, sent_vectors: SentVectors, request: Request
    ) -> StoredVectors:
        """The vectors of a batch, which are checked before they are stored."""
        worker_name = request.scope["user"].username
        return await anyio.to_thread.run_sync(
            embedding_broker.store_vectors, worker_name, lease_id, sent_vectors
        )

    return embedding_router
