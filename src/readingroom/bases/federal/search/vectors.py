"""The vectors of the federal base: embedded in batches, stored in SQLite, searched in memory."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from readingroom.bases.federal.search.passages import build_passage_text, read_generation
from readingroom.bases.federal.search.queue import (
    EmbeddingQueue,
    count_unembedded,
    make_local_lease,
    release_dead_leases,
)
from readingroom.core.filters import And, Filter, FilterFields, In, Range
from readingroom.core.progress import ReportProgressSync
from readingroom.engine.embedding.embedder import Embedder, Matrix, Vector
from readingroom.engine.vectors import VectorIndex
from readingroom.storage.database import Database, Row

# Fields with one value per record. Those with several (agency, topic) are looked up in SQLite.
SINGLE = ("source", "congress", "chamber", "party", "state", "type")
_FIELDS = FilterFields((*SINGLE, "doc"), ("day",))
# Bounds the memory that a refresh needs besides the index itself.
_FETCH_ROWS = 8_192
# Between two looks at what others are embedding.
_WAIT_SECONDS = 2.0


class FederalVectors:
    """The index in memory, updated whenever the file has changed."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.queue = EmbeddingQueue()
        """What waits for a vector; searches tell it what is asked for."""
        self._index = VectorIndex(_FIELDS)
        self._seen = 0
        self._generation = -1
        self._updating = threading.Lock()
        self.sources: set[str] = set()
        """The sources that have vectors."""

    def __len__(self) -> int:
        return len(self._index)

    def search(self, vector: Vector, k: int, where: Filter | None) -> list[tuple[int, float]]:
        """Return the nearest chunk of each of the k nearest records, with its score."""
        hits = self._index.search_groups(vector, k, "doc", where)
        return [(int(hit.id), hit.score) for hit in hits]

    def get_vectors(self, chunks: Sequence[str]) -> dict[str, Vector]:
        """Return the vectors of chunks by their number, of those that are embedded."""
        return self._index.get_vectors(chunks)

    def ask_for_missing(self, docs_by_chunk: Mapping[str, int]) -> None:
        """Let the records be embedded first whose passages a search found without a vector."""
        embedded = self._index.get_vectors(list(docs_by_chunk))
        self.queue.ask_for(doc for chunk, doc in docs_by_chunk.items() if chunk not in embedded)

    def refresh(self, db: Database) -> None:
        """Apply what was embedded or removed since the last time; usually nothing."""
        if read_generation(db) <= self._generation:
            return
        with self._updating:
            current = read_generation(db)
            (stored,) = db.execute("SELECT count(*) FROM vectors").fetchone()
            if not self._seen and stored:
                # Reserve room for all at once: an array that grows is copied, and is there twice.
                self._index = VectorIndex(_FIELDS, self.embedder.dimensions, stored)
            # The identity of the model takes seconds to read, so it is not read without vectors.
            for rows in _read_new_rows(db, self._seen, self.embedder.identity) if stored else ():
                self._add(db, rows)
                self._seen = rows[-1]["seq"]
            # All new vectors have been added, so a difference means that some were removed.
            if len(self._index) != stored:
                current_ids = {str(row["chunk"]) for row in db.execute("SELECT chunk FROM vectors")}
                self._index.delete([id for id in self._index.find_ids() if id not in current_ids])
            self._generation = max(self._generation, current)

    def _add(self, db: Database, rows: list[Row]) -> None:
        joined = b"".join(row["embedding"] for row in rows)
        vectors = np.frombuffer(joined, np.float32).reshape(len(rows), -1)
        metadata = _read_metadata(db, {row["doc"] for row in rows})
        self.sources |= {fields["source"] for fields in metadata.values()}
        ids = [str(row["chunk"]) for row in rows]
        self._index.upsert(ids, vectors, [metadata[row["doc"]] for row in rows])


def build_filter(
    sources: list[str],
    facets: dict[str, str],
    since: str | None,
    until: str | None,
    docs: tuple[int, ...] | None,
) -> Filter:
    """Return the filters of a search as one of the engine."""
    parts: list[Filter] = [In("source", tuple(sources))]
    # In lower case, as in the metadata: the index compares exactly, SQLite's facets do not.
    parts += [In(field, (value.lower(),)) for field, value in facets.items() if field in SINGLE]
    if since or until:
        parts.append(Range("day", _to_ordinal(since), _to_ordinal(until)))
    if docs is not None:
        parts.append(In("doc", docs))
    return And(tuple(parts))


def embed(
    db: Database,
    embedder: Embedder,
    report: ReportProgressSync,
    wait: Callable[[float], None] = time.sleep,
) -> int:
    """Embed what has no vector yet, in batches that each stay once done; stopping loses nothing.

    What another process or a worker is embedding is left to it, and waited for: when it falls
    silent, its passages are embedded here.
    """
    drop_other_models(db, embedder.identity)
    total = count_unembedded(db)
    queue, lease_id = EmbeddingQueue(), make_local_lease()
    release_dead_leases(db)
    done, started = 0, time.monotonic()
    try:
        while True:
            batches = (
                (rows, [build_embedded_text(row) for row in rows])
                for rows in _claim_batches(db, queue, lease_id, embedder.batch_texts)
            )
            for rows, matrix in embedder.embed_stream(batches):
                store_vectors(db, [row["chunk"] for row in rows], matrix, embedder.identity)
                queue.extend(db, lease_id)
                done += len(rows)
                rate = done / max(time.monotonic() - started, 0.001)
                report(done, total, f"{rate:,.1f} a second")
            if not count_unembedded(db):
                return done
            report(done, total, "the rest is being embedded elsewhere")
            wait(_WAIT_SECONDS)
    finally:
        queue.release(db, lease_id)


def build_embedded_text(row: Row) -> str:
    """Return what is embedded of a passage."""
    return build_passage_text(row)[:1000]


def drop_other_models(db: Database, model: str) -> None:
    """Delete the vectors of other models: they cannot be compared with those of this one."""
    db.execute("DELETE FROM vectors WHERE model != ?", (model,))


def _claim_batches(
    db: Database, queue: EmbeddingQueue, lease_id: str, batch_size: int
) -> Iterator[list[Row]]:
    """Yield passages to embed; some batches may be claimed before the last is stored."""
    while rows := queue.claim(db, lease_id, batch_size):
        yield rows


def store_vectors(
    db: Database, chunks: Sequence[int], matrix: Matrix, model: str, worker: str | None = None
) -> int:
    """Store the vectors of passages, end their leases, and return how many are new.

    Those of a `worker` replace none that is there. A load may have replaced a passage while it was
    being embedded; its vector is dropped.
    """
    stored_count = 0
    with db.transaction():
        db.execute("UPDATE generation SET value = value + 1")
        for chunk, vector in zip(chunks, matrix, strict=True):
            was_stored = db.execute(
                """INSERT INTO vectors (chunk, model, embedding)
                   SELECT chunk, ?, ? FROM chunks WHERE chunk = ?
                   ON CONFLICT (chunk) DO NOTHING""",
                (model, vector.astype(np.float32).tobytes(), chunk),
            ).rowcount
            stored_count += was_stored
            if was_stored and worker is not None:
                db.execute(
                    """INSERT INTO embedded_elsewhere (chunk, worker) VALUES (?, ?)
                       ON CONFLICT (chunk) DO UPDATE SET worker = excluded.worker""",
                    (chunk, worker),
                )
        db.executemany(
            "DELETE FROM embedding_leases WHERE chunk = ?", [(chunk,) for chunk in chunks]
        )
    return stored_count


def _read_new_rows(db: Database, seen: int, model: str) -> Iterator[list[Row]]:
    cursor = db.execute(
        """SELECT v.seq, v.chunk, v.embedding, c.doc FROM vectors v JOIN chunks c USING (chunk)
           WHERE v.seq > ? AND v.model = ? ORDER BY v.seq""",
        (seen, model),
    )
    while rows := cursor.fetchmany(_FETCH_ROWS):
        yield rows


def _read_metadata(db: Database, docs: set[int]) -> dict[int, dict[str, Any]]:
    """Return the fields of these records that filters use."""
    ids = json.dumps(sorted(docs))
    metadata: dict[int, dict[str, Any]] = {}
    in_ids = db.dialect.parameter_items
    for row in db.execute(
        f"SELECT doc, source, published_at FROM documents WHERE doc IN ({in_ids})", (ids,)
    ):
        day = _to_ordinal(row["published_at"])
        fields = {"doc": row["doc"], "source": row["source"]}
        metadata[row["doc"]] = fields if day is None else fields | {"day": day}
    for row in db.execute(f"SELECT doc, field, value FROM facets WHERE doc IN ({in_ids})", (ids,)):
        if row["field"] in SINGLE:
            metadata[row["doc"]].setdefault(row["field"], row["value"].lower())
    return metadata


def _to_ordinal(text: str | None) -> int | None:
    return date.fromisoformat(text).toordinal() if text else None
