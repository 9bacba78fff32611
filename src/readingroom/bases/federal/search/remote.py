"""The federal base's passages without vectors, as workers on other machines get them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from readingroom.bases.federal import store
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS_SQL
from readingroom.bases.federal.search.queue import count_unembedded
from readingroom.bases.federal.search.vectors import (
    FederalVectors,
    build_embedded_text,
    delete_vectors_of_other_models,
    store_vectors,
)
from readingroom.core.arrays import Matrix
from readingroom.engine.embedding.embedder import Embedder
from readingroom.storage.database import Database


class FederalPassages:
    """Leases passages of the federal file to workers, and stores what they make of them."""

    name = "federal"
    is_backlog = True

    def __init__(self, federal_place: store.FederalPlace, federal_vectors: FederalVectors) -> None:
        self._place = federal_place
        self._vectors = federal_vectors
        self._has_deleted_other_vectors = False

    @property
    def embedder(self) -> Embedder:
        """What makes the vectors of this base."""
        return self._vectors.embedder

    def read_stored_model(self) -> str | None:
        """Return the model of the newest vector, if there is one."""
        with self._open_records() as db:
            model_row = db.execute("SELECT model FROM vectors ORDER BY seq DESC LIMIT 1").fetchone()
        return str(model_row[0]) if model_row else None

    def claim_passages(self, lease_id: str, max_passages: int) -> list[tuple[int, str]]:
        """Return passages with their numbers, the most wanted first."""
        with self._open_records() as db:
            if not self._has_deleted_other_vectors:
                delete_vectors_of_other_models(db, self.embedder.identity)
                self._has_deleted_other_vectors = True
            passage_rows = self._vectors.queue.claim_passages(db, lease_id, max_passages)
        return [
            (passage_row["chunk"], build_embedded_text(passage_row)) for passage_row in passage_rows
        ]

    def extend_lease(self, lease_id: str) -> int:
        """Keep a lease alive; return how many passages it still has."""
        with self._open_records() as db:
            return self._vectors.queue.extend_lease(db, lease_id)

    def release_lease(self, lease_id: str) -> None:
        """Give the passages of a lease back."""
        with self._open_records() as db:
            self._vectors.queue.release_lease(db, lease_id)

    def read_texts(self, passage_ids: Sequence[int]) -> dict[int, str]:
        """Return what is embedded of passages, of those that are here and have no vector yet."""
        with self._open_records() as db:
            passage_rows = db.execute(
                f"""SELECT {PASSAGE_COLUMNS_SQL} FROM chunks c JOIN passages p USING (chunk)
                    WHERE c.chunk IN ({db.dialect.parameter_numbers_sql})
                        AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.chunk = c.chunk)""",
                (json.dumps(list(passage_ids)),),
            )
            return {
                passage_row["chunk"]: build_embedded_text(passage_row)
                for passage_row in passage_rows
            }

    def store_vectors(
        self, passage_ids: Sequence[int], vector_matrix: Matrix, worker_name: str
    ) -> int:
        """Store the vectors of passages; return how many are new."""
        with self._open_records() as db:
            return store_vectors(
                db, passage_ids, vector_matrix, self.embedder.identity, worker_name
            )

    def delete_vectors_of_worker(self, worker_name: str) -> int:
        """Delete the vectors that a worker sent; return how many there were."""
        with self._open_records() as db, db.transaction():
            db.execute("UPDATE generation SET value = value + 1")
            deleted_vector_count = db.execute(
                "DELETE FROM vectors WHERE chunk IN "
                "(SELECT chunk FROM embedded_elsewhere WHERE worker = ?)",
                (worker_name,),
            ).rowcount
            db.execute("DELETE FROM embedded_elsewhere WHERE worker = ?", (worker_name,))
        return deleted_vector_count

    def count_passages(self) -> tuple[int, int]:
        """Return how many passages are embedded, and how many wait."""
        with self._open_records() as db:
            (embedded_count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            return embedded_count, count_unembedded(db)

    @contextmanager
    def _open_records(self) -> Iterator[Database]:
        with (
            store.translate_errors(self._place),
            closing(store.connect(self._place, writing=True)) as db,
        ):
            yield db
