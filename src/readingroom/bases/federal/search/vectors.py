"""The vectors of the federal base: embedded in batches, stored in SQLite, searched in memory."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from readingroom.bases.federal.search.passages import build_passage_text, read_records_generation
from readingroom.bases.federal.search.queue import (
    EmbeddingQueue,
    count_unembedded,
    make_local_lease_id,
    release_dead_leases,
)
from readingroom.core.arrays import Matrix, Vector, np
from readingroom.core.filters import And, Filter, FilterFields, In, Range
from readingroom.core.progress import ReportProgressSync
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.vectors import VectorIndex
from readingroom.storage.database import Database, Row

# Fields with one value per record. Those with several (agency, topic) are looked up in SQLite.
SINGLE_VALUE_FIELDS = ("source", "congress", "chamber", "party", "state", "type")
_FILTER_FIELDS = FilterFields((*SINGLE_VALUE_FIELDS, "doc"), ("day",))
# Bounds the memory that a refresh needs besides the index itself.
_ROWS_PER_FETCH = 8_192
# Between two looks at what others are embedding.
_SECONDS_BETWEEN_CHECKS = 2.0


class FederalVectors:
    """The index in memory, updated whenever the file has changed."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.queue = EmbeddingQueue()
        """What waits for a vector; searches tell it what is asked for."""
        self._filled_index: VectorIndex | None = None
        self._last_seq = 0
        self._generation = -1
        self._update_lock = threading.Lock()
        self.embedded_sources: set[str] = set()
        """The sources that have vectors."""

    @property
    def _vector_index(self) -> VectorIndex:
        """What is filled since vectors were first looked for; until then an empty index."""
        return VectorIndex(_FILTER_FIELDS) if self._filled_index is None else self._filled_index

    def __len__(self) -> int:
        return len(self._filled_index or ())

    def find_nearest(
        self, query_vector: Vector, max_records: int, record_filter: Filter | None
    ) -> list[tuple[int, float]]:
        """Return the nearest chunk of each of the k nearest records, with its score."""
        chunk_hits = self._vector_index.search_groups(
            query_vector, max_records, "doc", record_filter
        )
        return [(int(chunk_hit.id), chunk_hit.score) for chunk_hit in chunk_hits]

    def get_vectors(self, chunk_ids: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of chunks by their number, of those that are embedded."""
        return self._vector_index.get_vectors(chunk_ids)

    def prioritize_missing_vectors(self, document_row_id_by_chunk_id: Mapping[str, int]) -> None:
        """Let the records be embedded first whose passages a search found without a vector."""
        vector_index = self._vector_index
        self.queue.prioritize_documents(
            document_row_id
            for chunk_id, document_row_id in document_row_id_by_chunk_id.items()
            if chunk_id not in vector_index
        )

    def apply_vector_changes(self, db: Database) -> None:
        """Apply what was embedded or removed since the last time; usually nothing."""
        if read_records_generation(db) <= self._generation:
            return
        with self._update_lock:
            current_generation = read_records_generation(db)
            (vector_count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            if not self._last_seq and vector_count:
                # Reserve room for all at once: an array that grows is copied, and is there twice.
                self._filled_index = VectorIndex(
                    _FILTER_FIELDS, self.embedder.dimensions, vector_count
                )
            # The identity of the model takes seconds to read, so it is not read without vectors.
            for new_vector_rows in (
                _read_new_rows(db, self._last_seq, self.embedder.identity) if vector_count else ()
            ):
                self._add_vectors(db, new_vector_rows)
                self._last_seq = new_vector_rows[-1]["seq"]
            # All new vectors have been added, so a difference means that some were removed.
            if len(self._vector_index) != vector_count:
                stored_chunk_ids = {
                    str(chunk_number) for (chunk_number,) in db.execute("SELECT chunk FROM vectors")
                }
                self._vector_index.delete_rows(
                    [
                        chunk_id
                        for chunk_id in self._vector_index.list_row_ids()
                        if chunk_id not in stored_chunk_ids
                    ]
                )
            self._generation = max(self._generation, current_generation)

    def _add_vectors(self, db: Database, vector_rows: list[Row]) -> None:
        joined_vector_bytes = b"".join(vector_row["embedding"] for vector_row in vector_rows)
        vector_matrix = np.frombuffer(joined_vector_bytes, np.float32).reshape(len(vector_rows), -1)
        metadata_by_document_row_id = _read_metadata(
            db, {vector_row["doc"] for vector_row in vector_rows}
        )
        self.embedded_sources |= {
            document_metadata["source"]
            for document_metadata in metadata_by_document_row_id.values()
        }
        chunk_ids = [str(vector_row["chunk"]) for vector_row in vector_rows]
        self._vector_index.upsert_rows(
            chunk_ids,
            vector_matrix,
            [metadata_by_document_row_id[vector_row["doc"]] for vector_row in vector_rows],
        )


def build_vector_filter(
    source_names: list[str],
    facet_filters: dict[str, tuple[str, ...]],
    since_day_text: str | None,
    until_day_text: str | None,
    document_row_ids: tuple[int, ...] | None,
) -> Filter:
    """Return the filters of a search as one of the engine."""
    combined_filters: list[Filter] = [In("source", tuple(source_names))]
    # In lower case, as in the metadata: the index compares exactly, SQLite's facets do not.
    combined_filters += [
        In(facet_name, tuple(allowed_value.lower() for allowed_value in allowed_values))
        for facet_name, allowed_values in facet_filters.items()
        if facet_name in SINGLE_VALUE_FIELDS
    ]
    if since_day_text or until_day_text:
        combined_filters.append(
            Range(
                "day",
                _convert_to_day_ordinal(since_day_text),
                _convert_to_day_ordinal(until_day_text),
            )
        )
    if document_row_ids is not None:
        combined_filters.append(In("doc", document_row_ids))
    return And(tuple(combined_filters))


def embed_passages(
    db: Database,
    embedder: Embedder,
    report_progress: ReportProgressSync,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Embed what has no vector yet, in batches that each stay once done; stopping loses nothing.

    What another process or a worker is embedding is left to it, and waited for: when it falls
    silent, its passages are embedded here.
    """
    delete_vectors_of_other_models(db, embedder.identity)
    waiting_count = count_unembedded(db)
    embedding_queue, lease_id = EmbeddingQueue(), make_local_lease_id()
    release_dead_leases(db)
    embedded_count, started_at = 0, time.monotonic()
    try:
        while True:
            rows_and_texts_batches = (
                (passage_rows, [build_embedded_text(passage_row) for passage_row in passage_rows])
                for passage_rows in _claim_batches(
                    db, embedding_queue, lease_id, embedder.texts_per_batch
                )
            )
            for passage_rows, vector_matrix in embedder.embed_stream(rows_and_texts_batches):
                store_vectors(
                    db,
                    [passage_row["chunk"] for passage_row in passage_rows],
                    vector_matrix,
                    embedder.identity,
                )
                embedding_queue.extend_lease(db, lease_id)
                embedded_count += len(passage_rows)
                passages_per_second = embedded_count / max(time.monotonic() - started_at, 0.001)
                report_progress(
                    embedded_count, waiting_count, f"{passages_per_second:,.1f} a second"
                )
            if not count_unembedded(db):
                return embedded_count
            report_progress(embedded_count, waiting_count, "the rest is being embedded elsewhere")
            sleep(_SECONDS_BETWEEN_CHECKS)
    finally:
        embedding_queue.release_lease(db, lease_id)


def build_embedded_text(passage_row: Row) -> str:
    """Return what is embedded of a passage."""
    return build_passage_text(passage_row)[:1000]


def delete_vectors_of_other_models(db: Database, model_identity: str) -> None:
    """Delete the vectors of other models: they cannot be compared with those of this one."""
    db.execute("DELETE FROM vectors WHERE model != ?", (model_identity,))


def _claim_batches(
    db: Database, embedding_queue: EmbeddingQueue, lease_id: str, batch_size: int
) -> Iterator[list[Row]]:
    """Yield passages to embed; some batches may be claimed before the last is stored."""
    while passage_rows := embedding_queue.claim_passages(db, lease_id, batch_size):
        yield passage_rows


def store_vectors(
    db: Database,
    chunk_numbers: Sequence[int],
    vector_matrix: Matrix,
    model_identity: str,
    worker_name: str | None = None,
) -> int:
    """Store the vectors of passages, end their leases, and return how many are new.

    Those of a `worker_name` replace none that is there. A load may have replaced a passage while it
    was being embedded; its vector is dropped.
    """
    stored_count = 0
    with db.transaction():
        db.execute("UPDATE generation SET value = value + 1")
        for chunk_number, passage_vector in zip(chunk_numbers, vector_matrix, strict=True):
            new_row_count = db.execute(
                """INSERT INTO vectors (chunk, model, embedding)
                   SELECT chunk, ?, ? FROM chunks WHERE chunk = ?
                   ON CONFLICT (chunk) DO NOTHING""",
                (model_identity, passage_vector.astype(np.float32).tobytes(), chunk_number),
            ).rowcount
            stored_count += new_row_count
            if new_row_count and worker_name is not None:
                db.execute(
                    """INSERT INTO embedded_elsewhere (chunk, worker) VALUES (?, ?)
                       ON CONFLICT (chunk) DO UPDATE SET worker = excluded.worker""",
                    (chunk_number, worker_name),
                )
        db.executemany(
            "DELETE FROM embedding_leases WHERE chunk = ?",
            [(chunk_number,) for chunk_number in chunk_numbers],
        )
    return stored_count


def _read_new_rows(db: Database, newest_seen_seq: int, model_identity: str) -> Iterator[list[Row]]:
    vector_rows_cursor = db.execute(
        """SELECT v.seq, v.chunk, v.embedding, c.doc FROM vectors v JOIN chunks c USING (chunk)
           WHERE v.seq > ? AND v.model = ? ORDER BY v.seq""",
        (newest_seen_seq, model_identity),
    )
    while vector_rows := vector_rows_cursor.fetchmany(_ROWS_PER_FETCH):
        yield vector_rows


def _read_metadata(db: Database, document_row_ids: set[int]) -> dict[int, dict[str, Any]]:
    """Return the fields of these records that filters use."""
    document_row_ids_json = json.dumps(sorted(document_row_ids))
    metadata_by_document_row_id: dict[int, dict[str, Any]] = {}
    numbers_sql = db.dialect.parameter_numbers_sql
    for document_row in db.execute(
        f"SELECT doc, source, published_at FROM documents WHERE doc IN ({numbers_sql})",
        (document_row_ids_json,),
    ):
        published_ordinal = _convert_to_day_ordinal(document_row["published_at"])
        document_metadata = {"doc": document_row["doc"], "source": document_row["source"]}
        metadata_by_document_row_id[document_row["doc"]] = (
            document_metadata
            if published_ordinal is None
            else document_metadata | {"day": published_ordinal}
        )
    for document_row in db.execute(
        f"SELECT doc, field, value FROM facets WHERE doc IN ({numbers_sql})",
        (document_row_ids_json,),
    ):
        if document_row["field"] in SINGLE_VALUE_FIELDS:
            metadata_by_document_row_id[document_row["doc"]].setdefault(
                document_row["field"], document_row["value"].lower()
            )
    return metadata_by_document_row_id


def _convert_to_day_ordinal(iso_date: str | None) -> int | None:
    return date.fromisoformat(iso_date).toordinal() if iso_date else None
