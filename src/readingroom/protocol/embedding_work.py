"""Passages that workers on other machines embed: what a base offers, and what both sides send."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel, Field

if TYPE_CHECKING:  # every command reads this module, and few embed anything
    from readingroom.core.arrays import Matrix
    from readingroom.engine.embedding.embedder import Embedder

MAX_BATCH_PASSAGES = 1024
"""Whose vectors are 2.1 MB of a request's body, and a second's work for a graphics card."""
EMBEDDING_PATH_PREFIX = "/embedding"


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


class LeasablePassages(Protocol):
    """Passages without vectors that a base, or several together, offer to workers. All blocks."""

    @property
    def name(self) -> str:
        """A word that tells these passages from others; their leases begin with it."""

    @property
    def is_backlog(self) -> bool:
        """Whether nobody waits for them, so that others come first."""

    @property
    def embedder(self) -> "Embedder":
        """What makes the vectors that are wanted, and checks those of workers."""

    def read_stored_model(self) -> str | None:
        """Return the model of the vectors that are there; None where there are none."""

    def claim_passages(self, lease_id: str, max_passages: int) -> list[tuple[int, str]]:
        """Return passages, numbers and texts, that nobody else gets while the lease holds."""

    def extend_lease(self, lease_id: str) -> int:
        """Keep a lease alive; return how many passages it still has."""

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back."""

    def read_texts(self, passage_ids: Sequence[int]) -> Mapping[int, str]:
        """Return what is to be embedded of passages that are here and have no vector yet."""

    def store_vectors(
        self, passage_ids: Sequence[int], vector_matrix: "Matrix", worker_name: str
    ) -> int:
        """Store vectors, in place of none that is there; return how many are new."""

    def delete_vectors_of_worker(self, worker_name: str) -> int:
        """Delete the vectors that a worker sent; return how many there were."""

    def count_passages(self) -> tuple[int, int]:
        """Return how many passages are embedded, and how many wait."""
