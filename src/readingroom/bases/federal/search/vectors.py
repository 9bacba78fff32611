"""The vectors of the federal base: embedded in batches, stored in SQLite, searched in memory."""

import json
import threading
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np

from readingroom.bases.federal.schema.sources import Shape, list_source_names, list_sources_of_shape
from readingroom.bases.federal.search.passages import (
    PASSAGE_COLUMNS,
    build_passage_text,
    read_generation,
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


class FederalVectors:
    """The index in memory, updated whenever the file has changed."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
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


def embed(db: Database, embedder: Embedder, report: ReportProgressSync) -> int:
    """Embed what has no vector yet, in batches that each stay once done; stopping loses nothing."""
    model = embedder.identity
    # Vectors of two models cannot be compared with each other.
    db.execute("DELETE FROM vectors WHERE model != ?", (model,))
    total = count_unembedded(db)
    done = 0
    batches = (
        (rows, [build_passage_text(row)[:1000] for row in rows])
        for rows in _read_unembedded(db, embedder.batch_texts)
    )
    for rows, matrix in embedder.embed_stream(batches):
        _store(db, rows, matrix, model)
        done += len(rows)
        report(done, total, None)
    return done


def _read_unembedded(db: Database, batch_size: int) -> Iterator[list[Row]]:
    """Yield the chunks without vectors; some batches may be read before the last is stored."""
    last_chunk = -1
    while rows := db.execute(
        f"{_NEXT} {_UNEMBEDDED} AND c.chunk > ? ORDER BY c.chunk LIMIT ?",
        (*_list_embedded_sources(), last_chunk, batch_size),
    ).fetchall():
        yield rows
        last_chunk = rows[-1]["chunk"]


def count_unembedded(db: Database) -> int:
    """Return how many chunks have no vector yet and should have one."""
    (count,) = db.execute(f"SELECT count(*) {_UNEMBEDDED}", _list_embedded_sources()).fetchone()
    return int(count)


_EMBEDDED = list_sources_of_shape(Shape.BODY, Shape.SHORT)
_EMBEDDED_MARKS = ", ".join("?" * len(_EMBEDDED))
_UNEMBEDDED = f"""FROM chunks c JOIN documents d USING (doc) JOIN passages p USING (chunk)
    LEFT JOIN vectors v USING (chunk)
    WHERE v.chunk IS NULL AND d.source IN ({_EMBEDDED_MARKS})"""
_NEXT = f"SELECT {PASSAGE_COLUMNS}"


def _list_embedded_sources() -> tuple[str, ...]:
    return tuple(list_source_names(_EMBEDDED))


def _store(db: Database, rows: list[Row], matrix: Matrix, model: str) -> None:
    with db.transaction():
        db.execute("UPDATE generation SET value = value + 1")
        # A load may have replaced a chunk while it was being embedded; its vector is dropped.
        db.executemany(
            """INSERT INTO vectors (chunk, model, embedding)
               SELECT chunk, ?, ? FROM chunks WHERE chunk = ?
               ON CONFLICT (chunk) DO UPDATE
               SET model = excluded.model, embedding = excluded.embedding""",
            (
                (model, vector.astype(np.float32).tobytes(), row["chunk"])
                for row, vector in zip(rows, matrix, strict=True)
            ),
        )


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
