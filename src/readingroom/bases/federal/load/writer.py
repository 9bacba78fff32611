"""Writes parsed records into the federal database: a file completely, and nothing twice."""

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial

from pydantic_core import from_json, to_json

from readingroom.bases.federal.load import coverage, linking, revisions
from readingroom.bases.federal.load.batches import (
    ChildRows,
    RecordRows,
    RowBatch,
    WriteResult,
    iterate_blocks,
)
from readingroom.bases.federal.load.completeness import refuse_to_remove_most
from readingroom.bases.federal.load.name_index import NameIndex, list_titles
from readingroom.bases.federal.load.search_index import SearchIndex, cut_searched_values
from readingroom.bases.federal.load.steps import StepWriter
from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.schema.entries import (
    AnyRecord,
    FileProblem,
    ParsedRecord,
    dump_record_json,
)
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Shape, Source
from readingroom.bases.federal.schema.tables import PARENT_COLUMN_BY_CHILD_TABLE
from readingroom.storage.database import Database, Row

_MAX_WAITING_ROWS_BY_ENGINE: Mapping[str, int] = {"sqlite": 1_000, "postgres": 4_000}
"""How many passages and facets wait in memory to be inserted together, by engine."""


class Writer(StepWriter):
    """Writes parsed records to the federal database, each file of them in a step."""

    def __init__(self, db: Database, commit_thread: Executor | None = None) -> None:
        super().__init__(db, SearchIndex(db), commit_thread)
        self._last_change_number_before = changes.read_last_change_number(db)
        insert_link_sql = "INSERT INTO links VALUES (?, ?, ?, ?, ?)"
        self._link_batch = RowBatch(db, f"{insert_link_sql} ON CONFLICT DO NOTHING")
        self._new_link_batch = RowBatch(db, insert_link_sql)
        self._name_index = NameIndex(db)
        self._record_rows = RecordRows(db)
        self._child_rows = ChildRows(db)
        self._waiting_changes: list[changes.ChangeRow] = []
        self._stored_stub_ids: set[str] = set()
        """Ids of stubs that are known to be stored, so that they need no second look-up."""
        self._max_waiting_rows = _MAX_WAITING_ROWS_BY_ENGINE[db.dialect.engine]

    def _prepare_transaction(self) -> None:
        self._search_index.read_last_numbers()
        self._record_rows.start_transaction()

    def _discard_batches(self) -> None:
        self._record_rows.discard_rows()
        self._child_rows.discard_rows()
        self._search_index.discard_rows()
        self._link_batch.rows.clear()
        self._new_link_batch.rows.clear()
        self._name_index.discard_names()
        self._waiting_changes.clear()
        self._stored_stub_ids.clear()

    def _write_batches(self) -> None:
        self._queued_row_count += (
            self._record_rows.write_rows()
            + self._child_rows.write_rows()
            + self._search_index.write_batches()
            + self._write_links()
            + self._name_index.write_names()
            + self._write_changes()
        )

    def _write_links(self) -> int:
        # The new ones first: what a file says twice of a record is known to be stored then.
        return self._new_link_batch.write_rows() + self._link_batch.write_rows()

    def log_file_outcome(
        self,
        logged_at: str,
        file_path: str,
        sha256: str,
        format_id: str | None,
        outcome_name: str,
        write_result: WriteResult,
        error_message: str | None = None,
    ) -> None:
        result_counts = (write_result.record_count, write_result.changed_count)
        self._db.insert_in_background(
            """INSERT INTO ingestion_logs
                   (at, file, sha256, loader, outcome, records, changed, error)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                (
                    logged_at,
                    file_path,
                    sha256,
                    format_id,
                    outcome_name,
                    *result_counts,
                    error_message,
                )
            ],
        )

    def put_records(
        self, parsed_records: Iterable[ParsedRecord | FileProblem], format_id: str
    ) -> WriteResult:
        write_result = WriteResult()
        for entry_block in iterate_blocks(parsed_records):
            self._record_rows.preload_rows(
                parsed_entry.record
                for parsed_entry in entry_block
                if isinstance(parsed_entry, ParsedRecord) and not self._is_known_stub(parsed_entry)
            )
            for parsed_entry in entry_block:
                self._put_parsed_entry(parsed_entry, format_id, write_result)
        self._record_rows.write_rows()
        return write_result

    def _is_known_stub(self, parsed_record: ParsedRecord) -> bool:
        return parsed_record.is_mention and parsed_record.record.id in self._stored_stub_ids

    def _put_parsed_entry(
        self, parsed_entry: ParsedRecord | FileProblem, format_id: str, write_result: WriteResult
    ) -> None:
        """Store an entry of a file, and add it to what was written."""
        if isinstance(parsed_entry, FileProblem):
            write_result.problem_messages.append(parsed_entry.message)
            return
        if self._is_known_stub(parsed_entry):
            return
        parsed_entry, cut_notes = cut_searched_values(parsed_entry)
        write_result.problem_messages += cut_notes
        stored_row = self._record_rows.find_row(parsed_entry.record)
        write_result.changed_count += self._put_parsed_record(parsed_entry, format_id, stored_row)
        waiting_row_count = (
            self._search_index.waiting_row_count + self._child_rows.waiting_row_count
        )
        if waiting_row_count > self._max_waiting_rows:
            self._write_batches()
        if not parsed_entry.is_partial:
            write_result.add_record(parsed_entry.record)
            write_result.has_older_revision |= revisions.is_stored_newer(
                stored_row, parsed_entry, format_id
            )
        elif parsed_entry.is_mention:
            self._stored_stub_ids.add(parsed_entry.record.id)

    def _put_parsed_record(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> bool:
        """Store a parsed record; return whether it says anything new."""
        has_changed = self._put_unless_current(parsed_record, format_id, stored_row)
        if parsed_record.is_fallback and stored_row is not None:
            has_changed = self._merge_fallback(parsed_record, format_id, stored_row)
        elif parsed_record.is_partial:
            self._put_additions(parsed_record, format_id, stored_row)
        if parsed_record.text and self._search_index.put_text_version(
            parsed_record.record, parsed_record.text, format_id, stored_row
        ):
            has_changed = True
        if has_changed:
            record = parsed_record.record
            change_kind: ChangeKind = "changed" if stored_row else "new"
            self._note_change(record.source, record.id, change_kind, record.retrieved_at)
        self._withdraw_older_filings(parsed_record.record)
        return has_changed

    def withdraw_record(
        self,
        record_source: Source,
        record_id: str,
        withdrawn_at: str,
        reason_text: str,
        successor_id: str | None = None,
    ) -> None:
        """Mark a record as withdrawn: its id still answers, but no list or search returns it."""
        self._record_rows.write_rows()
        self._record_rows.note_record_written(record_id)
        self._db.execute(
            f"""UPDATE {record_source.name} SET status = 'withdrawn', tombstone_at = ?,
                    tombstone_reason = ?, successor_id = ? WHERE id = ? AND status = 'active'""",
            (withdrawn_at[:10], reason_text, successor_id, record_id),
        )
        self._note_change(record_source.name, record_id, "withdrawn", withdrawn_at)
        self._write_batches()
        self._search_index.index_new_passages()
        # Passages go with it by foreign keys, and from the index by a trigger: all must be there.
        self._db.execute("DELETE FROM documents WHERE id = ?", (record_id,))
        self._name_index.delete_names(record_id)
        self._db.execute("DELETE FROM links WHERE from_id = ?", (record_id,))

    def withdraw_missing_records(
        self,
        record_source: Source,
        format_id: str,
        complete_for_columns: str,
        remaining_ids: set[str],
        withdrawn_at: str,
        *,
        may_drop_most: bool,
    ) -> int:
        """Withdraw the records that a complete file no longer holds.

        The file is complete for the values its records have in `complete_for_columns`. Only records
        of the same loader are withdrawn: another may know of more.
        """
        remaining_ids_json = json.dumps(sorted(remaining_ids))
        remaining_ids_sql = self._db.dialect.parameter_items_sql
        record_rows = self._db.execute(
            f"""SELECT id FROM {record_source.name} WHERE status = 'active' AND loader LIKE ?
                AND ({complete_for_columns}) IN (
                    SELECT {complete_for_columns} FROM {record_source.name}
                    WHERE id IN ({remaining_ids_sql}))
                AND id NOT IN ({remaining_ids_sql})""",
            # Whichever version of the loader wrote them.
            (f"{format_id.partition('/')[0]}/%", remaining_ids_json, remaining_ids_json),
        ).fetchall()
        missing_ids = [record_row["id"] for record_row in record_rows]
        if not may_drop_most:
            refuse_to_remove_most(record_source, missing_ids, remaining_ids)
        return self._withdraw_records(record_source, missing_ids, withdrawn_at)

    def retire_missing_members(
        self,
        record_source: Source,
        remaining_ids: set[str],
        retired_at: str,
        *,
        may_drop_most: bool,
    ) -> int:
        """Mark the records that a list of current members leaves out as no longer current.

        A list of mostly former members says nothing about the current ones, and is ignored.
        """
        remaining_ids_json = json.dumps(sorted(remaining_ids))
        remaining_ids_sql = self._db.dialect.parameter_items_sql
        (current_count,) = self._db.execute(
            f"""SELECT count(*) FROM {record_source.name}
                WHERE current = 1 AND id IN ({remaining_ids_sql})""",
            (remaining_ids_json,),
        ).fetchone()
        if 2 * current_count <= len(remaining_ids):
            return 0
        record_rows = self._db.execute(
            f"""SELECT id, record FROM {record_source.name} WHERE status = 'active' AND current = 1
                AND loader LIKE '{record_source.name}/%' AND id NOT IN ({remaining_ids_sql})""",
            (remaining_ids_json,),
        ).fetchall()
        missing_ids = [record_row["id"] for record_row in record_rows]
        if not may_drop_most:
            refuse_to_remove_most(record_source, missing_ids, remaining_ids)
        for record_row in record_rows:
            record_id, retired_fields = (
                record_row["id"],
                from_json(record_row["record"]) | {"current": False},
            )
            self._record_rows.note_record_written(record_id)
            # Another loader's mark, so that a member who returns is written again.
            self._db.execute(
                f"UPDATE {record_source.name} SET loader = ?, record = ? WHERE id = ?",
                (f"{record_source.name}/left", to_json(retired_fields).decode(), record_id),
            )
            self._note_change(record_source.name, record_id, "changed", retired_at)
        return len(missing_ids)

    def forget_file(self, file_path: str) -> None:
        """Forget that a file was ever loaded, so that it is read again should it return."""
        self._db.execute(
            """DELETE FROM ingestion_logs WHERE outcome = 'loaded' AND (sha256, loader) IN
                   (SELECT sha256, loader FROM ingestion_logs WHERE file = ?)""",
            (file_path,),
        )

    def withdraw_file(self, record_source: Source, sha256: str, withdrawn_at: str) -> int:
        """Withdraw the records of a file that its package no longer holds."""
        record_rows = self._db.execute(
            f"SELECT id FROM {record_source.name} WHERE status = 'active' AND raw_sha256 = ?",
            (sha256,),
        ).fetchall()
        return self._withdraw_records(
            record_source, [record_row["id"] for record_row in record_rows], withdrawn_at
        )

    def _withdraw_records(
        self, record_source: Source, missing_ids: Sequence[str], withdrawn_at: str
    ) -> int:
        self._write_changes()
        successor_id_by_old_id = changes.find_successors(
            self._db, record_source, missing_ids, self._last_change_number_before
        )
        for record_id in missing_ids:
            self.withdraw_record(
                record_source,
                record_id,
                withdrawn_at,
                "no longer in the newest official file",
                successor_id_by_old_id.get(record_id),
            )
        return len(missing_ids)

    def link_records(self) -> None:
        """Link records of different files, at the end of a load."""
        linking.link_records(self._db, self._name_index)

    def update_source_counts(self) -> None:
        """Update the counts and dates of each source, at the end of a load."""
        coverage.update_source_counts(self._db)

    def _note_change(
        self, source_name: str, record_id: str, change_kind: ChangeKind, changed_at: str
    ) -> None:
        self._waiting_changes.append((source_name, record_id, change_kind, changed_at))

    def _write_changes(self) -> int:
        waiting_changes, self._waiting_changes = self._waiting_changes, []
        if waiting_changes:
            self._db.run_in_background(partial(changes.add_changes, self._db, waiting_changes))
        return len(waiting_changes)

    # --- the record and what hangs on it ---

    def _put_unless_current(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> bool:
        record = parsed_record.record
        if stored_row is not None and (
            parsed_record.is_partial
            or revisions.is_stored_up_to_date(stored_row, parsed_record, format_id)
        ):
            if not parsed_record.is_partial:
                self._advance_date(record, stored_row)
            return False
        record_json = dump_record_json(record)
        loader_and_revision_text = revisions.format_loader_and_revision(parsed_record, format_id)
        if stored_row is None:
            self._record_rows.add_record(record, record_json, loader_and_revision_text)
        else:
            self._db.execute(
                f"""UPDATE {record.source} SET record = ?, loader = ?, status = 'active',
                        tombstone_at = NULL, tombstone_reason = NULL, successor_id = NULL
                    WHERE id = ?""",
                (record_json, loader_and_revision_text, record.id),
            )
        if not parsed_record.is_partial:
            self._put_children(parsed_record, stored_row)
        if SOURCES_BY_NAME[record.source].has_names:
            if stored_row is not None:
                self._name_index.delete_names(record.id)
            self._name_index.put_names(record, parsed_record.names or list_titles(record))
        if (
            parsed_record.searchable_fields
            and SOURCES_BY_NAME[record.source].shape is not Shape.REGISTRY
        ):
            self._search_index.put_search_head(
                record, parsed_record.searchable_fields, parsed_record, stored_row
            )
        if not parsed_record.is_partial:
            self._put_links(parsed_record, format_id, stored_row)
        if stored_row is not None and stored_row["status"] != "active":
            self._search_index.index_returned_text(record, stored_row)
        return stored_row is None or not revisions.is_same_as_stored(stored_row, record_json)

    def _advance_date(self, record: AnyRecord, stored_row: Row) -> None:
        """Give an unchanged record the date of a newer file that still says so."""
        stored_fields = from_json(stored_row["record"])
        if record.as_of and record.as_of > (stored_fields.get("as_of") or ""):
            record_json = to_json(stored_fields | {"as_of": record.as_of}).decode()
            self._db.execute(
                f"UPDATE {record.source} SET record = ? WHERE id = ?", (record_json, record.id)
            )

    def _merge_fallback(self, parsed_record: ParsedRecord, format_id: str, stored_row: Row) -> bool:
        """Add what a second text of a bill says, unless its own source is loaded."""
        if stored_row["loader"] != "partial" or stored_row["status"] != "active":
            return False
        stored_fields = from_json(stored_row["record"])
        merged_fields = revisions.merge_fields(
            stored_fields, from_json(dump_record_json(parsed_record.record))
        )
        self._record_rows.write_rows()  # its rows refer to people that the file names
        self._child_rows.write_rows()
        for child_table_name, child_rows in parsed_record.child_rows_by_table.items():
            parent_column = PARENT_COLUMN_BY_CHILD_TABLE[child_table_name]
            (stored_child_count,) = self._db.execute(
                f"SELECT count(*) FROM {child_table_name} WHERE {parent_column} = ?",
                (parsed_record.record.id,),
            ).fetchone()
            if len(child_rows) > stored_child_count:
                self._child_rows.replace_rows(child_table_name, parsed_record.record.id, child_rows)
        if parsed_record.links:
            self._put_links(parsed_record, format_id, stored_row)
        if merged_fields == stored_fields:
            return False
        self._db.execute(
            f"UPDATE {parsed_record.record.source} SET record = ? WHERE id = ?",
            (to_json(merged_fields).decode(), parsed_record.record.id),
        )
        if parsed_record.searchable_fields:
            self._search_index.add_titles_and_facets(
                parsed_record, merged_fields["published_at"], merged_fields["short_titles"]
            )
        return True

    def _put_additions(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> None:
        """Store the rows and links that a partial record adds."""
        self._put_children(parsed_record, stored_row)
        if parsed_record.links:
            self._put_links(parsed_record, format_id, stored_row)

    def _put_children(self, parsed_record: ParsedRecord, stored_row: Row | None) -> None:
        record_id = parsed_record.record.id
        if stored_row is None:
            for child_table_name, child_rows in parsed_record.child_rows_by_table.items():
                self._child_rows.add_rows(child_table_name, record_id, child_rows)
            return
        if parsed_record.child_rows_by_table:
            self._record_rows.write_rows()  # rows refer to people that the file names
        for child_table_name, child_rows in parsed_record.child_rows_by_table.items():
            self._child_rows.replace_rows(child_table_name, record_id, child_rows)

    def _withdraw_older_filings(self, record: AnyRecord) -> None:
        """Withdraw all but the newest filing of a series; the newest succeeds the others."""
        record_source = SOURCES_BY_NAME[record.source]
        series_column_name = record_source.series_column_name
        if series_column_name is None:
            return
        self._record_rows.write_rows()
        newest_filing_row, *older_filing_rows = self._db.execute(
            f"""SELECT id, status FROM {record_source.name} WHERE {series_column_name} =
                    (SELECT {series_column_name} FROM {record_source.name} WHERE id = ?)
                ORDER BY record ->> 'posted_at' DESC NULLS LAST, id DESC""",
            (record.id,),
        ).fetchall()
        for older_filing_row in older_filing_rows:
            if older_filing_row["status"] == "active":
                self.withdraw_record(
                    record_source,
                    older_filing_row["id"],
                    record.retrieved_at,
                    "filed again",
                    newest_filing_row["id"],
                )
            self._db.execute(
                f"UPDATE {record_source.name} SET successor_id = ? WHERE id = ?",
                (newest_filing_row["id"], older_filing_row["id"]),
            )

    def _put_links(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> None:
        """Replace the links that this loader stored for the record."""
        record_id = parsed_record.record.id
        link_writer_name = revisions.format_link_writer(parsed_record, format_id)
        if stored_row is not None:
            self._write_links()
            self._db.execute(
                "DELETE FROM links WHERE from_id = ? AND loader = ?", (record_id, link_writer_name)
            )
        # No loader has links of a record that is not stored.
        link_batch = self._new_link_batch if stored_row is None else self._link_batch
        evidence_by_link: dict[tuple[str, str], str] = {}
        for link in parsed_record.links:
            evidence_by_link.setdefault((link.kind, link.id), link.evidence)
        link_batch.rows += [
            (record_id, *link_kind_and_id, link_writer_name, evidence_text)
            for link_kind_and_id, evidence_text in evidence_by_link.items()
        ]
