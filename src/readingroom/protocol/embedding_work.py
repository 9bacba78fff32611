"""Passages that workers on other machines embed: what a base offers, and what both sides send."""

from typing import Protocol

from pydantic import BaseModel, Field

MAX_BATCH_PASSAGES = 1024
"""Whose vectors are 2.1 MB of a request's body, and a second's work for a graphics card."""
EMBEDDING_PREFIX = "/embedding"


class EmbeddingProgress(BaseModel):
    """How far the embedding of a base has come."""

    embedded: int
    total: int
    percent: float
    per_second: float | None = Field(
        None, description="Passages stored a second, over the last minutes."
    )
    seconds_left: float | None = None


class WaitingPassage(BaseModel):
    """A passage without a vector."""

    id: int
    text: str


class LeasedBatch(BaseModel):
    """Passages that belong to one worker until they are sent back, or it falls silent."""

    lease_id: str
    model: str = Field(description="The embedding model whose vectors are wanted.")
    dimensions: int
    lease_seconds: float = Field(description="How long the lease holds without a sign of life.")
    passages: list[WaitingPassage]
    progress: EmbeddingProgress


class LeaseState(BaseModel):
    """How many passages a lease still has."""

    passages: int


class SentVectors(BaseModel):
    """The vectors of some passages, as a worker sends them."""

    model: str = Field(max_length=200)
    ids: list[int] = Field(min_length=1, max_length=MAX_BATCH_PASSAGES)
    text_digests: list[str] = Field(
        max_length=MAX_BATCH_PASSAGES,
        description="SHA-256 of each text that was embedded, in hexadecimal.",
    )
    vectors: str = Field(
        max_length=4 * 2**20, description="float32, little-endian, one after the other, in base64."
    )


class StoredVectors(BaseModel):
    """What became of the vectors that a worker sent."""

    stored: int
    dropped: int = Field(description="Their passages have a vector by now, or another text.")
    progress: EmbeddingProgress


class EmbeddingWork(Protocol):
    """A base's passages without vectors, for workers. Everything blocks."""

    def claim(self, model: str, max_passages: int) -> LeasedBatch:
        """Return passages to embed; raise `EmbeddingMismatch` for another model than ours."""

    def extend(self, lease_id: str) -> LeaseState:
        """Keep a lease alive."""

    def release(self, lease_id: str) -> None:
        """Give the passages of a lease back."""

    def store(self, worker: str, lease_id: str, sent: SentVectors) -> StoredVectors:
        """Check vectors and store them.

        Raise `EmbeddingMismatch`, or `VectorsRefused`; then all that the worker ever sent is
        deleted, and it is refused from then on.
        """

    def read_progress(self) -> EmbeddingProgress:
        """Return how far the base is."""
