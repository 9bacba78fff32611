"""Writes what can be searched of a record: facets, passages, and the full-text index."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from readingroom.bases.federal import store
from readingroom.bases.federal.load.batches import RowBatch
from readingroom.bases.federal.schema.entries import ParsedRecord, SearchHead, Text
from readingroom.bases.federal.schema.records import Record
from readingroom.engine.chunking import Span, split
from readingroom.storage.database import Database, Row

Passage = tuple[int, str, str, str, str]
"""Where it starts; title, abstract, action, body."""


class SearchIndex:
    """The searchable part of the database, written in the transaction of its caller."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._facets = RowBatch(
            db,
            "INSERT INTO facets (field, value, doc) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )
        self._chunks = RowBatch(
            db, "INSERT INTO chunks (chunk, doc, part, ordinal) VALUES (?, ?, ?, ?)"
        )
        self._passages = RowBatch(db, "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)")
        self.batches = (self._facets, self._chunks, self._passages)
        self.position = (0, 0)
        """The last chunk, and the last chunk whose words are indexed; set back by a rollback."""

    @property
    def waiting(self) -> int:
        """How many rows wait in memory."""
        return len(self._passages.rows) + len(self._facets.rows)

    def begin(self) -> None:
        """Start a transaction after the newest chunk."""
        newest = self._read_newest_chunk()
        self.position = (newest, newest)

    def _ensure_doc(self, record: Record) -> int:
        """Return the document number of a record, created when it has none."""
        return self._find_doc(record) or self._add_doc(record)

    def _find_doc(self, record: Record) -> int | None:
        row = self._db.execute("SELECT doc FROM documents WHERE id = ?", (record.id,)).fetchone()
        return int(row["doc"]) if row else None

    def _add_doc(self, record: Record) -> int:
        (doc,) = self._db.execute(
            "INSERT INTO documents (id, source, published_at) VALUES (?, ?, ?) RETURNING doc",
            (record.id, record.source, record.published_at),
        ).fetchone()
        return int(doc)

    def put_head(
        self, record: Record, head: SearchHead, entry: ParsedRecord, stored: Row | None
    ) -> None:
        existing = self._find_doc(record) if stored is not None else None
        if existing is not None:
            self._refresh(existing, record)
        doc = existing or self._add_doc(record)
        self._facets.rows += [
            (name, value, doc) for name, values in entry.facets.items() for value in values
        ]
        # Title and action stand in the first passage only: in each, they would count several times.
        first, *rest = split(head.abstract) or [Span(0, 0)]
        abstract = first.of(head.abstract)
        passages = [
            (first.start, head.title, abstract, head.action, ""),
            *((span.start, "", span.of(head.abstract), "", "") for span in rest),
        ]
        self._put_chunks(doc, "head", passages, self._read_chunks(doc, "head") if existing else {})

    def add_to_head(self, record: Record, entry: ParsedRecord, titles: Sequence[str]) -> None:
        """Write the head again with more titles; facets are added, and none is dropped."""
        self._facets.write()
        stored = self._db.execute(
            "SELECT field, value FROM facets JOIN documents USING (doc) WHERE id = ?", (record.id,)
        ).fetchall()
        facets = {name: list(values) for name, values in entry.facets.items()}
        for row in stored:
            facets.setdefault(row["field"], []).append(row["value"])
        assert entry.head is not None
        lines = dict.fromkeys((*entry.head.title.split("\n"), *titles))
        head = replace(entry.head, title="\n".join(lines))
        row = self._db.execute("SELECT doc FROM documents WHERE id = ?", (record.id,)).fetchone()
        self.put_head(record, head, replace(entry, facets=facets), row)

    def _refresh(self, doc: int, record: Record) -> None:
        """Update a record's date, and drop its facets: both may have changed."""
        self._db.execute(
            "UPDATE documents SET published_at = ? WHERE doc = ?", (record.published_at, doc)
        )
        self._facets.write()
        self._db.execute("DELETE FROM facets WHERE doc = ?", (doc,))
        self._renumber_vectors(doc)

    def _renumber_vectors(self, doc: int) -> None:
        """Write the vectors of a record again, so that their index takes up its date and facets."""
        stored = self._db.execute(
            """SELECT chunk, model, embedding FROM vectors JOIN chunks USING (chunk)
               WHERE doc = ? ORDER BY seq""",
            (doc,),
        ).fetchall()
        self._db.executemany(
            "DELETE FROM vectors WHERE chunk = ?", [(row["chunk"],) for row in stored]
        )
        self._db.executemany(
            "INSERT INTO vectors (chunk, model, embedding) VALUES (?, ?, ?)", stored
        )

    def _read_chunks(self, doc: int, part: str) -> dict[int, Row]:
        self._write_chunks()
        stored = self._db.execute(
            """SELECT ordinal, chunk, start, title, abstract, action, body
               FROM chunks JOIN passages USING (chunk) WHERE doc = ? AND part = ?""",
            (doc, part),
        )
        return {row["ordinal"]: row for row in stored}

    def _put_chunks(
        self, doc: int, part: str, passages: Sequence[Passage], existing: Mapping[int, Row]
    ) -> None:
        """Replace the passages of a document; an unchanged passage keeps its vector."""
        new = {
            ordinal: passage
            for ordinal, passage in enumerate(passages)
            if ordinal not in existing or tuple(existing[ordinal])[2:] != passage
        }
        unchanged = range(len(passages)) - new.keys()
        self._drop_chunks([row["chunk"] for n, row in existing.items() if n not in unchanged])
        self._add_chunks(doc, part, new)

    def _drop_chunks(self, chunks: Sequence[int]) -> None:
        if chunks:
            self.index()  # what is removed from the index must be in it
            self._db.executemany("DELETE FROM chunks WHERE chunk = ?", ((n,) for n in chunks))

    def _add_chunks(self, doc: int, part: str, new: Mapping[int, Passage]) -> None:
        for ordinal, passage in new.items():
            chunk = self.position[0] + 1
            self.position = (chunk, self.position[1])
            self._chunks.rows.append((chunk, doc, part, ordinal))
            self._passages.rows.append((chunk, *passage))

    def _write_chunks(self) -> None:
        self._chunks.write()
        self._passages.write()

    def _read_newest_chunk(self) -> int:
        # Not max(chunk): an index in memory may still have the number of a deleted chunk.
        last_number = self._db.dialect.read_last_number("chunks")
        (last,) = self._db.execute(last_number).fetchone() or (0,)
        return int(last)

    def index(self) -> None:
        """Add new passages to the full-text index, many at once.

        Not by a trigger: FTS5 writes out what it holds before every statement that may have to be
        taken back, so that one passage between two others would cost three times as much.
        """
        self._write_chunks()
        self._db.execute(
            """INSERT INTO passages_fts (rowid, title, abstract, action, body)
               SELECT chunk, title, abstract, action, body FROM passages WHERE chunk > ?""",
            (self.position[1],),
        )
        self.position = (self.position[0], self.position[0])

    def put_text(self, record: Record, text: Text, format_id: str, stored: Row | None) -> bool:
        parts = self._read_parts(record.id) if stored is not None else {}
        # A loader's name has its version: a newer one may read the same bytes in another way.
        if parts.get(text.part) == (text.raw_sha256, format_id):
            return False
        self._db.execute(
            """INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (record_id, part) DO UPDATE SET stage = excluded.stage,
                   dated = excluded.dated, title = excluded.title, url = excluded.url,
                   raw_sha256 = excluded.raw_sha256, loader = excluded.loader,
                   body = excluded.body""",
            (record.id, text.part, text.stage, text.dated, text.title, text.url,
             text.raw_sha256, format_id, text.body),
        )  # fmt: skip
        is_only_part = parts.keys() <= {text.part}
        self._put_body(
            self._ensure_doc(record),
            text.body if is_only_part else self._read_newest_text(record.id),
            stored,
        )
        return True

    def _read_parts(self, id: str) -> dict[str, tuple[str, str]]:
        """Return the hash and the loader of each text of a record, by part."""
        stored = self._db.execute(
            "SELECT part, raw_sha256, loader FROM texts WHERE record_id = ?", (id,)
        )
        return {row["part"]: (row["raw_sha256"], row["loader"]) for row in stored}

    def restore_body(self, record: Record, stored: Row) -> None:
        """Index the text of a record again that was withdrawn and has returned."""
        if store.list_texts(self._db, record.id):
            self._put_body(self._ensure_doc(record), self._read_newest_text(record.id), stored)

    def _read_newest_text(self, id: str) -> str:
        """Return the newest version of a text; older drafts of a bill are not searched."""
        newest = self._db.execute(
            f"SELECT body FROM texts WHERE record_id = ? ORDER BY {store.NEWEST_TEXT} LIMIT 1",
            (id,),
        ).fetchone()
        return str(newest["body"])

    def _put_body(self, doc: int, body: str, stored: Row | None) -> None:
        passages = [(span.start, "", "", "", span.of(body)) for span in split(body)]
        existing = self._read_chunks(doc, "text") if stored is not None else {}
        self._put_chunks(doc, "text", passages, existing)
