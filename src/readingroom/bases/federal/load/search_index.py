"""Writes what can be searched of a record: facets, passages, and the full-text index."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from readingroom.bases.federal import store
from readingroom.bases.federal.load.batches import RowBatch
from readingroom.bases.federal.schema.entries import ParsedRecord, SearchHead, Text
from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.search.full_text import index_passages
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
        newest_chunk = self._read_newest_chunk()
        self.position = (newest_chunk, newest_chunk)

    def _ensure_doc(self, record: Record) -> int:
        """Return the document number of a record, created when it has none."""
        return self._find_doc(record) or self._add_doc(record)

    def _find_doc(self, record: Record) -> int | None:
        row = self._db.execute("SELECT doc FROM documents WHERE id = ?", (record.id,)).fetchone()
        return int(row["doc"]) if row else None

    def _add_doc(self, record: Record) -> int:
        (document_number,) = self._db.execute(
            "INSERT INTO documents (id, source, published_at) VALUES (?, ?, ?) RETURNING doc",
            (record.id, record.source, record.published_at),
        ).fetchone()
        return int(document_number)

    def put_head(
        self,
        record: Record,
        search_head: SearchHead,
        parsed_record: ParsedRecord,
        stored_row: Row | None,
    ) -> None:
        existing = self._find_doc(record) if stored_row is not None else None
        if existing is not None:
            self._refresh(existing, record)
        document_number = existing or self._add_doc(record)
        self._facets.rows += [
            (facet_name, facet_value, document_number)
            for facet_name, facet_values in parsed_record.facets.items()
            for facet_value in facet_values
        ]
        # Title and action stand in the first passage only: in each, they would count several times.
        first_span, *other_spans = split(search_head.abstract) or [Span(0, 0)]
        abstract = first_span.of(search_head.abstract)
        passages = [
            (first_span.start, search_head.title, abstract, search_head.action, ""),
            *((span.start, "", span.of(search_head.abstract), "", "") for span in other_spans),
        ]
        self._put_chunks(
            document_number,
            "head",
            passages,
            self._read_chunks(document_number, "head") if existing else {},
        )

    def add_to_head(
        self, record: Record, parsed_record: ParsedRecord, titles: Sequence[str]
    ) -> None:
        """Write the head again with more titles; facets are added, and none is dropped."""
        self._facets.write()
        stored_rows = self._db.execute(
            "SELECT field, value FROM facets JOIN documents USING (doc) WHERE id = ?", (record.id,)
        ).fetchall()
        facets = {
            facet_name: list(facet_values)
            for facet_name, facet_values in parsed_record.facets.items()
        }
        for stored_row in stored_rows:
            facets.setdefault(stored_row["field"], []).append(stored_row["value"])
        assert parsed_record.head is not None
        title_lines = dict.fromkeys((*parsed_record.head.title.split("\n"), *titles))
        search_head = replace(parsed_record.head, title="\n".join(title_lines))
        stored_row = self._db.execute(
            "SELECT doc FROM documents WHERE id = ?", (record.id,)
        ).fetchone()
        self.put_head(record, search_head, replace(parsed_record, facets=facets), stored_row)

    def _refresh(self, document_number: int, record: Record) -> None:
        """Update a record's date, and drop its facets: both may have changed."""
        self._db.execute(
            "UPDATE documents SET published_at = ? WHERE doc = ?",
            (record.published_at, document_number),
        )
        self._facets.write()
        self._db.execute("DELETE FROM facets WHERE doc = ?", (document_number,))
        self._renumber_vectors(document_number)

    def _renumber_vectors(self, document_number: int) -> None:
        """Write the vectors of a record again, so that their index takes up its date and facets."""
        stored_rows = self._db.execute(
            """SELECT chunk, model, embedding FROM vectors JOIN chunks USING (chunk)
               WHERE doc = ? ORDER BY seq""",
            (document_number,),
        ).fetchall()
        self._db.executemany(
            "DELETE FROM vectors WHERE chunk = ?", [(row["chunk"],) for row in stored_rows]
        )
        self._db.executemany(
            "INSERT INTO vectors (chunk, model, embedding) VALUES (?, ?, ?)", stored_rows
        )

    def _read_chunks(self, document_number: int, part_name: str) -> dict[int, Row]:
        self._write_chunks()
        stored_rows = self._db.execute(
            """SELECT ordinal, chunk, start, title, abstract, action, body
               FROM chunks JOIN passages USING (chunk) WHERE doc = ? AND part = ?""",
            (document_number, part_name),
        )
        return {chunk_row["ordinal"]: chunk_row for chunk_row in stored_rows}

    def _put_chunks(
        self,
        document_number: int,
        part_name: str,
        passages: Sequence[Passage],
        existing: Mapping[int, Row],
    ) -> None:
        """Replace the passages of a document; an unchanged passage keeps its vector."""
        new_passages = {
            ordinal: passage
            for ordinal, passage in enumerate(passages)
            if ordinal not in existing or tuple(existing[ordinal])[2:] != passage
        }
        unchanged = range(len(passages)) - new_passages.keys()
        self._drop_chunks(
            [chunk_row["chunk"] for n, chunk_row in existing.items() if n not in unchanged]
        )
        self._add_chunks(document_number, part_name, new_passages)

    def _drop_chunks(self, chunks: Sequence[int]) -> None:
        if chunks:
            self.index()  # what is removed from the index must be in it
            self._db.executemany(
                "DELETE FROM chunks WHERE chunk = ?", ((chunk_number,) for chunk_number in chunks)
            )

    def _add_chunks(
        self, document_number: int, part_name: str, new_passages: Mapping[int, Passage]
    ) -> None:
        for ordinal, passage in new_passages.items():
            chunk = self.position[0] + 1
            self.position = (chunk, self.position[1])
            self._chunks.rows.append((chunk, document_number, part_name, ordinal))
            self._passages.rows.append((chunk, *passage))

    def _write_chunks(self) -> None:
        self._chunks.write()
        self._passages.write()

    def _read_newest_chunk(self) -> int:
        # Not max(chunk): an index in memory may still have the number of a deleted chunk.
        last_number = self._db.dialect.read_last_number("chunks")
        (newest_chunk,) = self._db.execute(last_number).fetchone() or (0,)
        return int(newest_chunk)

    def index(self) -> None:
        """Add new passages to the full-text index, many at once.

        Not by a trigger: FTS5 writes out what it holds before every statement that may have to be
        taken back, so that one passage between two others would cost three times as much.
        """
        self._write_chunks()
        index_passages(self._db, self.position[1])
        self.position = (self.position[0], self.position[0])

    def put_text(
        self, record: Record, record_text: Text, format_id: str, stored_row: Row | None
    ) -> bool:
        stored_parts = self._read_parts(record.id) if stored_row is not None else {}
        # A loader's name has its version: a newer one may read the same bytes in another way.
        if stored_parts.get(record_text.part) == (record_text.raw_sha256, format_id):
            return False
        self._db.execute(
            """INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (record_id, part) DO UPDATE SET stage = excluded.stage,
                   dated = excluded.dated, title = excluded.title, url = excluded.url,
                   raw_sha256 = excluded.raw_sha256, loader = excluded.loader,
                   body = excluded.body""",
            (record.id, record_text.part, record_text.stage, record_text.dated, record_text.title,
             record_text.url, record_text.raw_sha256, format_id, record_text.body),
        )  # fmt: skip
        is_only_part = stored_parts.keys() <= {record_text.part}
        self._put_body(
            self._ensure_doc(record),
            record_text.body if is_only_part else self._read_newest_text(record.id),
            stored_row,
        )
        return True

    def _read_parts(self, record_id: str) -> dict[str, tuple[str, str]]:
        """Return the hash and the loader of each text of a record, by part."""
        stored_rows = self._db.execute(
            "SELECT part, raw_sha256, loader FROM texts WHERE record_id = ?", (record_id,)
        )
        return {
            part_row["part"]: (part_row["raw_sha256"], part_row["loader"])
            for part_row in stored_rows
        }

    def restore_body(self, record: Record, stored_row: Row) -> None:
        """Index the text of a record again that was withdrawn and has returned."""
        if store.list_texts(self._db, record.id):
            self._put_body(self._ensure_doc(record), self._read_newest_text(record.id), stored_row)

    def _read_newest_text(self, record_id: str) -> str:
        """Return the newest version of a text; older drafts of a bill are not searched."""
        newest_text = self._db.execute(
            f"SELECT body FROM texts WHERE record_id = ? ORDER BY {store.NEWEST_TEXT} LIMIT 1",
            (record_id,),
        ).fetchone()
        return str(newest_text["body"])

    def _put_body(self, document_number: int, body_text: str, stored_row: Row | None) -> None:
        passages = [(span.start, "", "", "", span.of(body_text)) for span in split(body_text)]
        existing = self._read_chunks(document_number, "text") if stored_row is not None else {}
        self._put_chunks(document_number, "text", passages, existing)
