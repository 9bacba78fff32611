"""Writes what can be searched of a record: facets, passages, and the full-text index."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from readingroom.bases.federal import store
from readingroom.bases.federal.load.batches import RowBatch
from readingroom.bases.federal.schema.columns import read_column_values
from readingroom.bases.federal.schema.entries import (
    AnyRecord,
    ParsedRecord,
    RecordText,
    SearchableFields,
)
from readingroom.bases.federal.schema.lengths import (
    MAX_FACET_BYTES,
    MAX_SEARCHED_CHARS,
    check_id_length,
    check_value_lengths,
    cut_facet_value,
)
from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.search.full_text import index_passages, make_passage_words_writer
from readingroom.engine.chunking import Span, split_into_spans
from readingroom.storage.database import Database, Row

PassageRow = tuple[int, str, str, str, str]
"""Where it starts; title, abstract, action, body."""


@dataclass(slots=True)
class LastNumbers:
    """The numbers that were given last; the next ones follow."""

    document_row_id: int = 0
    chunk_number: int = 0
    indexed_chunk_number: int = 0
    """The last chunk whose words are in the full-text index."""


class SearchIndex:
    """The searchable part of the database, written in the transaction of its caller."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._facet_batch = RowBatch(
            db,
            "INSERT INTO facets (field, value, doc) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        )
        self._new_facet_batch = RowBatch(
            db, "INSERT INTO facets (field, value, doc) VALUES (?, ?, ?)"
        )
        self._chunk_batch = RowBatch(
            db, "INSERT INTO chunks (chunk, doc, part, ordinal) VALUES (?, ?, ?, ?)"
        )
        self._passage_batch = RowBatch(db, "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)")
        self._document_batch = RowBatch(
            db, "INSERT INTO documents (doc, id, source, published_at) VALUES (?, ?, ?, ?)"
        )
        # In this order: a row may refer to those of the batches before it.
        self._batches = (
            *(self._document_batch, self._facet_batch, self._new_facet_batch),
            *(self._chunk_batch, self._passage_batch),
        )
        self._waiting_row_ids_by_document_id: dict[str, int] = {}
        """The documents that wait to be inserted: the number of each by the id of its record."""
        self.last_numbers = LastNumbers()
        """Set back by a rollback."""

    @property
    def waiting_row_count(self) -> int:
        """How many rows wait in memory."""
        return (
            len(self._passage_batch.rows)
            + len(self._facet_batch.rows)
            + len(self._new_facet_batch.rows)
        )

    def read_last_numbers(self) -> None:
        """Start a transaction after the newest document and the newest chunk."""
        chunk_number = self._read_newest_chunk_number()
        (document_row_id,) = self._db.execute(
            "SELECT coalesce(max(doc), 0) FROM documents"
        ).fetchone()
        self.last_numbers = LastNumbers(int(document_row_id), chunk_number, chunk_number)

    def write_batches(self) -> int:
        """Write the rows that wait; return how many there are."""
        passage_rows = self._passage_batch.rows
        row_count = sum(row_batch.write_rows() for row_batch in self._batches)
        if passage_rows and self._db.dialect.engine == "postgres":
            # Without reading them back: what is written is committed with its words.
            write_passage_words = make_passage_words_writer(
                [(chunk_number, *field_texts) for chunk_number, _, *field_texts in passage_rows]
            )
            self._db.run_in_background(partial(write_passage_words, self._db))
            self.last_numbers.indexed_chunk_number = self.last_numbers.chunk_number
        self._waiting_row_ids_by_document_id.clear()
        return row_count

    def discard_rows(self) -> None:
        """Drop the rows that wait: the transaction is rolled back."""
        for row_batch in self._batches:
            row_batch.rows.clear()
        self._waiting_row_ids_by_document_id.clear()

    def _ensure_document_row_id(self, record: AnyRecord) -> int:
        """Return the document number of a record, created when it has none."""
        return self._find_document_row_id(record) or self._add_document(record)

    def _find_document_row_id(self, record: AnyRecord) -> int | None:
        if record.id in self._waiting_row_ids_by_document_id:
            return self._waiting_row_ids_by_document_id[record.id]
        document_row = self._db.execute(
            "SELECT doc FROM documents WHERE id = ?", (record.id,)
        ).fetchone()
        return int(document_row["doc"]) if document_row else None

    def _add_document(self, record: AnyRecord) -> int:
        self.last_numbers.document_row_id = document_row_id = self.last_numbers.document_row_id + 1
        self._document_batch.rows.append(
            (document_row_id, record.id, record.source, record.published_at)
        )
        self._waiting_row_ids_by_document_id[record.id] = document_row_id
        return document_row_id

    def put_search_head(
        self,
        record: AnyRecord,
        searchable_fields: SearchableFields,
        parsed_record: ParsedRecord,
        stored_row: Row | None,
    ) -> None:
        existing_document_row_id = (
            self._find_document_row_id(record) if stored_row is not None else None
        )
        if existing_document_row_id is not None:
            self._reset_date_and_facets(existing_document_row_id, record)
        document_row_id = existing_document_row_id or self._add_document(record)
        self._put_facets(
            parsed_record.values_by_facet,
            document_row_id,
            is_new_document=existing_document_row_id is None,
        )
        # Title and action stand in the first passage only: in each, they would count several times.
        first_span, *other_spans = split_into_spans(searchable_fields.abstract) or [Span(0, 0)]
        first_abstract = first_span.cut_from(searchable_fields.abstract)
        passages = [
            (
                first_span.start_offset,
                searchable_fields.title,
                first_abstract,
                searchable_fields.action,
                "",
            ),
            *(
                (span.start_offset, "", span.cut_from(searchable_fields.abstract), "", "")
                for span in other_spans
            ),
        ]
        self._put_chunks(
            document_row_id,
            "head",
            passages,
            self._read_chunks(document_row_id, "head") if existing_document_row_id else {},
        )

    def _put_facets(
        self,
        values_by_facet: Mapping[str, Sequence[str]],
        document_row_id: int,
        *,
        is_new_document: bool,
    ) -> None:
        for facet_name, facet_values in values_by_facet.items():
            # Of several, some may be equal to a database that ignores the case of letters.
            is_surely_new = is_new_document and len(facet_values) == 1
            row_batch = self._new_facet_batch if is_surely_new else self._facet_batch
            row_batch.rows += [
                (facet_name, facet_value, document_row_id) for facet_value in facet_values
            ]

    def add_titles_and_facets(
        self, parsed_record: ParsedRecord, published_at: str | None, other_titles: Sequence[str]
    ) -> None:
        """Write the head again with more titles; facets are added, and none is dropped."""
        record = parsed_record.record
        self.write_batches()
        facet_rows = self._db.execute(
            "SELECT field, value FROM facets JOIN documents USING (doc) WHERE id = ?", (record.id,)
        ).fetchall()
        all_values_by_facet = {
            facet_name: list(facet_values)
            for facet_name, facet_values in parsed_record.values_by_facet.items()
        }
        for facet_row in facet_rows:
            all_values_by_facet.setdefault(facet_row["field"], []).append(facet_row["value"])
        assert parsed_record.searchable_fields is not None
        title_lines = dict.fromkeys(
            (*parsed_record.searchable_fields.title.split("\n"), *other_titles)
        )
        searchable_fields = replace(parsed_record.searchable_fields, title="\n".join(title_lines))
        document_row = self._db.execute(
            "SELECT doc FROM documents WHERE id = ?", (record.id,)
        ).fetchone()
        self.put_search_head(
            record,
            searchable_fields,
            replace(parsed_record, values_by_facet=all_values_by_facet),
            document_row,
        )
        self._db.execute(
            "UPDATE documents SET published_at = ? WHERE id = ?", (published_at, record.id)
        )

    def _reset_date_and_facets(self, document_row_id: int, record: AnyRecord) -> None:
        """Update a record's date, and drop its facets: both may have changed."""
        self.write_batches()
        self._db.execute(
            "UPDATE documents SET published_at = ? WHERE doc = ?",
            (record.published_at, document_row_id),
        )
        self._db.execute("DELETE FROM facets WHERE doc = ?", (document_row_id,))
        self._renumber_vectors(document_row_id)

    def _renumber_vectors(self, document_row_id: int) -> None:
        """Write the vectors of a record again, so that their index takes up its date and facets."""
        vector_rows = self._db.execute(
            """SELECT chunk, model, embedding FROM vectors JOIN chunks USING (chunk)
               WHERE doc = ? ORDER BY seq""",
            (document_row_id,),
        ).fetchall()
        self._db.executemany(
            "DELETE FROM vectors WHERE chunk = ?",
            [(vector_row["chunk"],) for vector_row in vector_rows],
        )
        self._db.executemany(
            "INSERT INTO vectors (chunk, model, embedding) VALUES (?, ?, ?)", vector_rows
        )

    def _read_chunks(self, document_row_id: int, part_name: str) -> dict[int, Row]:
        self.write_batches()
        chunk_rows = self._db.execute(
            """SELECT ordinal, chunk, start, title, abstract, action, body
               FROM chunks JOIN passages USING (chunk) WHERE doc = ? AND part = ?""",
            (document_row_id, part_name),
        )
        return {chunk_row["ordinal"]: chunk_row for chunk_row in chunk_rows}

    def _put_chunks(
        self,
        document_row_id: int,
        part_name: str,
        passages: Sequence[PassageRow],
        existing_row_by_ordinal: Mapping[int, Row],
    ) -> None:
        """Replace the passages of a document; an unchanged passage keeps its vector."""
        if not existing_row_by_ordinal:
            self._add_chunks(document_row_id, part_name, enumerate(passages))
            return
        new_passage_by_ordinal = {
            ordinal: passage_row
            for ordinal, passage_row in enumerate(passages)
            if ordinal not in existing_row_by_ordinal
            or tuple(existing_row_by_ordinal[ordinal])[2:] != passage_row
        }
        unchanged_ordinals = range(len(passages)) - new_passage_by_ordinal.keys()
        self._drop_chunks(
            [
                chunk_row["chunk"]
                for passage_ordinal, chunk_row in existing_row_by_ordinal.items()
                if passage_ordinal not in unchanged_ordinals
            ]
        )
        self._add_chunks(document_row_id, part_name, new_passage_by_ordinal.items())

    def _drop_chunks(self, chunk_numbers: Sequence[int]) -> None:
        if chunk_numbers:
            self.index_new_passages()  # what is removed from the index must be in it
            self._db.executemany(
                "DELETE FROM chunks WHERE chunk = ?",
                ((chunk_number,) for chunk_number in chunk_numbers),
            )

    def _add_chunks(
        self,
        document_row_id: int,
        part_name: str,
        ordinals_and_passages: Iterable[tuple[int, PassageRow]],
    ) -> None:
        """Add passages, each with its ordinal."""
        for passage_ordinal, passage_row in ordinals_and_passages:
            self.last_numbers.chunk_number = chunk_number = self.last_numbers.chunk_number + 1
            self._chunk_batch.rows.append(
                (chunk_number, document_row_id, part_name, passage_ordinal)
            )
            self._passage_batch.rows.append((chunk_number, *passage_row))

    def _read_newest_chunk_number(self) -> int:
        # Not max(chunk): an index in memory may still have the number of a deleted chunk.
        last_number_sql = self._db.dialect.build_last_number_sql("chunks")
        (newest_chunk_number,) = self._db.execute(last_number_sql).fetchone() or (0,)
        return int(newest_chunk_number)

    def index_new_passages(self) -> None:
        """Add new passages to the full-text index, many at once.

        Not by a trigger: FTS5 writes out what it holds before every statement that may have to be
        taken back, so that one passage between two others would cost three times as much.
        """
        self.write_batches()
        if self.last_numbers.indexed_chunk_number < self.last_numbers.chunk_number:
            index_passages(self._db, self.last_numbers.indexed_chunk_number)
        self.last_numbers.indexed_chunk_number = self.last_numbers.chunk_number

    def put_text_version(
        self, record: AnyRecord, text_version: RecordText, format_id: str, stored_row: Row | None
    ) -> bool:
        hash_and_loader_by_part = (
            self._read_stored_texts(record.id) if stored_row is not None else {}
        )
        # A loader's name has its version: a newer one may read the same bytes in another way.
        if hash_and_loader_by_part.get(text_version.part) == (text_version.raw_sha256, format_id):
            return False
        self._db.insert_in_background(
            """INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (record_id, part) DO UPDATE SET stage = excluded.stage,
                   dated = excluded.dated, title = excluded.title, url = excluded.url,
                   raw_sha256 = excluded.raw_sha256, loader = excluded.loader,
                   body = excluded.body""",
            [
                (record.id, text_version.part, text_version.stage, text_version.dated,
                 text_version.title, text_version.url, text_version.raw_sha256, format_id,
                 text_version.body)
            ],
        )  # fmt: skip
        is_only_text = hash_and_loader_by_part.keys() <= {text_version.part}
        self._index_text(
            self._ensure_document_row_id(record),
            text_version.body if is_only_text else self._read_newest_text(record.id),
            stored_row,
        )
        return True

    def _read_stored_texts(self, record_id: str) -> dict[str, tuple[str, str]]:
        """Return the hash and the loader of each text of a record, by part."""
        text_rows = self._db.execute(
            "SELECT part, raw_sha256, loader FROM texts WHERE record_id = ?", (record_id,)
        )
        return {
            text_row["part"]: (text_row["raw_sha256"], text_row["loader"]) for text_row in text_rows
        }

    def index_returned_text(self, record: AnyRecord, stored_row: Row) -> None:
        """Index the text of a record again that was withdrawn and has returned."""
        if store.list_text_parts(self._db, record.id):
            self._index_text(
                self._ensure_document_row_id(record), self._read_newest_text(record.id), stored_row
            )

    def _read_newest_text(self, record_id: str) -> str:
        """Return the newest version of a text; older drafts of a bill are not searched."""
        newest_text_row = self._db.execute(
            f"""SELECT body FROM texts WHERE record_id = ?
                ORDER BY {store.NEWEST_TEXT_FIRST_ORDER_SQL} LIMIT 1""",
            (record_id,),
        ).fetchone()
        return str(newest_text_row["body"])

    def _index_text(self, document_row_id: int, body_text: str, stored_row: Row | None) -> None:
        passages = [
            (span.start_offset, "", "", "", span.cut_from(body_text))
            for span in split_into_spans(body_text)
        ]
        existing_row_by_ordinal = (
            self._read_chunks(document_row_id, "text") if stored_row is not None else {}
        )
        self._put_chunks(document_row_id, "text", passages, existing_row_by_ordinal)


def cut_searched_values(parsed_record: ParsedRecord) -> tuple[ParsedRecord, list[str]]:
    """Return a record as it is searched and filtered, and what that leaves out, in words.

    Raise `ValueTooLong` for a value that is looked up whole.
    """
    record, cut_notes = parsed_record.record, list[str]()
    if isinstance(record, Record):  # else it was checked before it was packed
        check_value_lengths(record.id, record.source, read_column_values(record))
    for link in parsed_record.links:
        check_id_length(link.id, record.id, "the id of a record that it names")
    if parsed_record.text:
        check_id_length(parsed_record.text.part, record.id, "the name of its text")
    searchable_fields, values_by_facet = (
        parsed_record.searchable_fields,
        parsed_record.values_by_facet,
    )
    if (
        searchable_fields
        and max(len(searchable_fields.title), len(searchable_fields.action)) > MAX_SEARCHED_CHARS
    ):
        searchable_fields = _cut_head(record.id, searchable_fields, cut_notes)
    # Letters are counted first, in passing: hardly any record has a value as long as that.
    if (
        4 * max(map(len, chain.from_iterable(values_by_facet.values())), default=0)
        > MAX_FACET_BYTES
    ):
        values_by_facet = _cut_facets(record.id, values_by_facet, cut_notes)
    if cut_notes:
        parsed_record = replace(
            parsed_record, searchable_fields=searchable_fields, values_by_facet=values_by_facet
        )
    return parsed_record, cut_notes


def _cut_head(
    record_id: str, searchable_fields: SearchableFields, cut_notes: list[str]
) -> SearchableFields:
    for part_noun, part_text in (
        ("title", searchable_fields.title),
        ("latest action", searchable_fields.action),
    ):
        if len(part_text) > MAX_SEARCHED_CHARS:
            cut_notes.append(
                f"{record_id}: its {part_noun} has {len(part_text):,} characters; it is stored "
                f"whole and searched by its first {MAX_SEARCHED_CHARS:,}"
            )
    return replace(
        searchable_fields,
        title=searchable_fields.title[:MAX_SEARCHED_CHARS],
        action=searchable_fields.action[:MAX_SEARCHED_CHARS],
    )


def _cut_facets(
    record_id: str, values_by_facet: Mapping[str, Sequence[str]], cut_notes: list[str]
) -> dict[str, Sequence[str]]:
    searched_values_by_facet: dict[str, Sequence[str]] = {}
    for facet_name, facet_values in values_by_facet.items():
        searched_values_by_facet[facet_name] = [
            cut_facet_value(facet_value) for facet_value in facet_values
        ]
        longest_value = max(facet_values, key=len, default="")
        if searched_values_by_facet[facet_name] != list(facet_values):
            cut_notes.append(
                f"{record_id}: its {facet_name} has a value of {len(longest_value):,} characters; "
                f"it is stored whole and filtered by its first {MAX_FACET_BYTES:,} bytes"
            )
    return searched_values_by_facet
