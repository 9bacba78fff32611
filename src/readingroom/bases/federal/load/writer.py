"""Writes parsed records into the federal database: a file completely, and nothing twice."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from pydantic_core import from_json, to_json

from readingroom.bases.federal.load import coverage, linking
from readingroom.bases.federal.load.batches import RowBatch, Written
from readingroom.bases.federal.load.completeness import check_removals
from readingroom.bases.federal.load.merging import merge_fields
from readingroom.bases.federal.load.name_index import NameIndex, list_titles
from readingroom.bases.federal.load.revisions import (
    format_writer_mark,
    is_newer,
    is_older,
    is_same,
)
from readingroom.bases.federal.load.search_index import SearchIndex
from readingroom.bases.federal.load.sponsors import format_sponsor_lines
from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.schema.entries import FileProblem, ParsedRecord
from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.schema.sources import BY_NAME, Shape, Source
from readingroom.bases.federal.schema.tables import PARENTS
from readingroom.storage.database import Database, Row
from readingroom.storage.errors import StorageFailed

_MAX_WAITING_ROWS = 4_000
"""How many passages and facets wait in memory to be inserted together."""

_MIN_COMMIT_ROWS = 2_000
"""How many rows are committed together, at least: each commit merges the full-text index."""


class Writer:
    """Writes to the federal database. All changes of a `step()` are made, or none.

    Steps that follow one another are committed together, a `transaction()` by itself. With a
    commit thread a commit happens there: SQLite indexes the words and writes to disk while the
    caller reads on. The next step waits for it, and tells if it failed.
    """

    def __init__(self, db: Database, commit_thread: Executor | None = None) -> None:
        self._db = db
        self._commit_thread = commit_thread
        self._committing: Future[None] | None = None
        self._began = changes.read_last_change(db)
        self._changes_before = 0
        self._stepping = False
        self._links = RowBatch(
            db, "INSERT INTO links VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        self._search = SearchIndex(db)
        self._names = NameIndex(db)
        self._batches = (*self._search.batches, self._links, *self._names.batches)
        self._notes: list[changes.ChangeRow] = []
        self._mentioned: set[str] = set()
        """Ids of stubs that are known to be stored, so that they need no second look-up."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.step():
            yield
        self.commit()

    @contextmanager
    def step(self) -> Iterator[None]:
        self._stepping = True
        self._begin()
        index_position = self._search.position
        # A bad file is taken back alone: those before it stay in the transaction.
        self._db.execute("SAVEPOINT step")
        try:
            yield
            self._write()
        except BaseException:
            self._undo("ROLLBACK TO step")
            self._search.position = index_position
            self._stepping = False
            raise
        self._db.execute("RELEASE step")
        self._stepping = False
        if self._db.total_changes - self._changes_before > _MIN_COMMIT_ROWS:
            self.commit()

    def _begin(self) -> None:
        self.settle()
        if not self._db.in_transaction:
            # Not deferred: a transaction that began by reading may not write after another one did.
            self._db.execute(self._db.dialect.begin_write)
            self._db.execute("UPDATE generation SET value = value + 1")
            self._search.begin()
            self._names.begin()
            self._changes_before = self._db.total_changes

    def commit(self) -> None:
        """Commit the open transaction, if any; on the commit thread that may take a while."""
        self.settle()
        if self._stepping:
            self._undo("ROLLBACK")  # a second interrupt hit the rollback of a step
            self._stepping = False
        if self._db.in_transaction:
            if self._commit_thread:
                self._committing = self._commit_thread.submit(self._end)
            else:
                self._end()

    def settle(self) -> None:
        """Wait for the last commit. Raise `StorageFailed` if it failed: no file is to blame."""
        commit_error = self._committing.exception() if self._committing else None
        self._committing = None  # not before: after an interrupt somebody has to wait again
        if commit_error:
            raise StorageFailed(
                f"The records that were read could not be written: {commit_error}"
            ) from commit_error

    def _end(self) -> None:
        try:
            self._search.index()
            self._db.execute("COMMIT")
        except BaseException:
            self._undo("ROLLBACK")
            raise

    def _undo(self, rollback: str) -> None:
        """Drop waiting rows and roll back, unless SQLite has done so already, as on a full disk."""
        for batch in self._batches:
            batch.rows.clear()
        self._names.begin()
        self._notes.clear()
        self._mentioned.clear()
        if self._db.in_transaction:
            self._db.execute(rollback)

    def _write(self) -> None:
        """Write all waiting rows."""
        for batch in self._batches:
            batch.write()
        self._note_changes()

    def list_loaded_files(self) -> set[tuple[str, str]]:
        """Return the hash and the loader of every file that was loaded before."""
        log_rows = self._db.execute(
            "SELECT DISTINCT sha256, loader FROM ingestion_logs WHERE outcome = 'loaded'"
        )
        return {(log_row["sha256"], log_row["loader"]) for log_row in log_rows}

    def log(
        self,
        moment: str,
        file_name: str,
        sha256: str,
        format_id: str | None,
        file_outcome: str,
        write_result: Written,
        error_message: str | None = None,
    ) -> None:
        self._db.execute(
            """INSERT INTO ingestion_logs
                   (at, file, sha256, loader, outcome, records, changed, error)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (
                moment,
                file_name,
                sha256,
                format_id,
                file_outcome,
                write_result.records,
                write_result.changed,
                error_message,
            ),
        )

    def put_all(
        self, parsed_records: Iterable[ParsedRecord | FileProblem], format_id: str
    ) -> Written:
        write_result = Written()
        for parsed_record in parsed_records:
            if isinstance(parsed_record, FileProblem):
                write_result.problems.append(parsed_record.message)
                continue
            if parsed_record.is_mention and parsed_record.record.id in self._mentioned:
                continue
            stored_row = self._find(parsed_record.record)
            write_result.changed += self._put(parsed_record, format_id, stored_row)
            if self._search.waiting > _MAX_WAITING_ROWS:
                self._write()
            if not parsed_record.partial:
                write_result.records += 1
                write_result.ids.setdefault(parsed_record.record.source, set()).add(
                    parsed_record.record.id
                )
                write_result.older = write_result.older or is_newer(
                    stored_row, parsed_record, format_id
                )
            elif parsed_record.is_mention:
                self._mentioned.add(parsed_record.record.id)
        return write_result

    def _put(self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None) -> bool:
        """Store a parsed record; return whether it says anything new."""
        changed = self._put_record(parsed_record, format_id, stored_row)
        if parsed_record.is_fallback and stored_row is not None:
            changed = self._merge_fallback(parsed_record, stored_row)
        elif parsed_record.partial:
            self._put_additions(parsed_record, format_id, stored_row)
        if parsed_record.text and self._search.put_text(
            parsed_record.record, parsed_record.text, format_id, stored_row
        ):
            changed = True
        if changed:
            record = parsed_record.record
            change_kind: ChangeKind = "changed" if stored_row else "new"
            self._note(record.source, record.id, change_kind, record.retrieved_at)
        self._keep_newest(parsed_record.record)
        return changed

    def withdraw(
        self,
        record_source: Source,
        record_id: str,
        moment: str,
        reason_code: str,
        successor: str | None = None,
    ) -> None:
        """Mark a record as withdrawn: its id still answers, but no list or search returns it."""
        self._db.execute(
            f"""UPDATE {record_source.name} SET status = 'withdrawn', tombstone_at = ?,
                    tombstone_reason = ?, successor_id = ? WHERE id = ? AND status = 'active'""",
            (moment[:10], reason_code, successor, record_id),
        )
        self._note(record_source.name, record_id, "withdrawn", moment)
        self._write()
        self._search.index()
        # Passages go with it by foreign keys, and from the index by a trigger: all must be there.
        self._db.execute("DELETE FROM documents WHERE id = ?", (record_id,))
        self._names.forget(record_id)
        self._db.execute("DELETE FROM links WHERE from_id = ?", (record_id,))

    def withdraw_missing(
        self,
        record_source: Source,
        format_id: str,
        complete_for_columns: str,
        remaining_ids: set[str],
        moment: str,
        *,
        even_most: bool,
    ) -> int:
        """Withdraw the records that a complete file no longer holds.

        The file is complete for the values its records have in `complete_for_columns`. Only records
        of the same loader are withdrawn: another may know of more.
        """
        ids_json = json.dumps(sorted(remaining_ids))
        in_file = self._db.dialect.parameter_items
        stored_rows = self._db.execute(
            f"""SELECT id FROM {record_source.name} WHERE status = 'active' AND loader LIKE ?
                AND ({complete_for_columns}) IN (
                    SELECT {complete_for_columns} FROM {record_source.name} WHERE id IN ({in_file}))
                AND id NOT IN ({in_file})""",
            # Whichever version of the loader wrote them.
            (f"{format_id.partition('/')[0]}/%", ids_json, ids_json),
        ).fetchall()
        gone = [row["id"] for row in stored_rows]
        if not even_most:
            check_removals(record_source, gone, remaining_ids)
        return self._withdraw_all(record_source, gone, moment)

    def retire_missing(
        self, record_source: Source, remaining_ids: set[str], moment: str, *, even_most: bool
    ) -> int:
        """Mark the records that a list of current members leaves out as no longer current.

        A list of mostly former members says nothing about the current ones, and is ignored.
        """
        ids_json = json.dumps(sorted(remaining_ids))
        in_file = self._db.dialect.parameter_items
        (sitting,) = self._db.execute(
            f"SELECT count(*) FROM {record_source.name} WHERE current = 1 AND id IN ({in_file})",
            (ids_json,),
        ).fetchone()
        if 2 * sitting <= len(remaining_ids):
            return 0
        stored_rows = self._db.execute(
            f"""SELECT id, record FROM {record_source.name} WHERE status = 'active' AND current = 1
                AND loader LIKE '{record_source.name}/%' AND id NOT IN ({in_file})""",
            (ids_json,),
        ).fetchall()
        gone = [row["id"] for row in stored_rows]
        if not even_most:
            check_removals(record_source, gone, remaining_ids)
        for row in stored_rows:
            record_id, retired_fields = row["id"], from_json(row["record"]) | {"current": False}
            # Another loader's mark, so that a member who returns is written again.
            self._db.execute(
                f"UPDATE {record_source.name} SET loader = ?, record = ? WHERE id = ?",
                (f"{record_source.name}/left", to_json(retired_fields).decode(), record_id),
            )
            self._note(record_source.name, record_id, "changed", moment)
        return len(gone)

    def forget_file(self, file_name: str) -> None:
        """Forget that a file was ever loaded, so that it is read again should it return."""
        self._db.execute(
            """DELETE FROM ingestion_logs WHERE outcome = 'loaded' AND (sha256, loader) IN
                   (SELECT sha256, loader FROM ingestion_logs WHERE file = ?)""",
            (file_name,),
        )

    def withdraw_file(self, record_source: Source, sha256: str, moment: str) -> int:
        """Withdraw the records of a file that its package no longer holds."""
        stored_rows = self._db.execute(
            f"SELECT id FROM {record_source.name} WHERE status = 'active' AND raw_sha256 = ?",
            (sha256,),
        ).fetchall()
        return self._withdraw_all(record_source, [row["id"] for row in stored_rows], moment)

    def _withdraw_all(self, record_source: Source, gone: Sequence[str], moment: str) -> int:
        self._note_changes()
        successors = changes.find_successors(self._db, record_source, gone, self._began)
        for record_id in gone:
            self.withdraw(
                record_source,
                record_id,
                moment,
                "no longer in the newest official file",
                successors.get(record_id),
            )
        return len(gone)

    def link_records(self) -> None:
        """Link records of different files, at the end of a load.

        Each part finds what is still missing, so that the next load repairs one that was killed.
        """
        linking.link_senators(self._db)
        format_sponsor_lines(self._db)
        linking.link_offices(self._db, self._names)
        linking.link_rulemakings(self._db)

    def count_sources(self) -> None:
        """Update the counts and dates of each source, at the end of a load."""
        coverage.count_sources(self._db)

    def _note(self, source_name: str, record_id: str, change_kind: ChangeKind, moment: str) -> None:
        self._notes.append((source_name, record_id, change_kind, moment))

    def _note_changes(self) -> None:
        changes.add_changes(self._db, self._notes)
        self._notes.clear()

    # --- the record and what hangs on it ---

    def _put_record(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> bool:
        record = parsed_record.record
        if stored_row is not None and (
            parsed_record.partial or is_older(stored_row, parsed_record, format_id)
        ):
            if not parsed_record.partial:
                self._advance_date(record, stored_row)
            return False
        # That date is the source's, not the record's: it is added when the record is read.
        record_json = record.model_dump_json(exclude={"loaded_up_to"})
        self._db.execute(
            f"""INSERT INTO {record.source} (id, record, loader) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET record = excluded.record, loader = excluded.loader,
                    status = 'active', tombstone_at = NULL, tombstone_reason = NULL,
                    successor_id = NULL""",
            (record.id, record_json, format_writer_mark(parsed_record, format_id)),
        )
        if not parsed_record.partial:
            self._put_children(parsed_record)
        if BY_NAME[record.source].has_names:
            if stored_row is not None:
                self._names.forget(record.id)
            self._names.put_all(record, parsed_record.names or list_titles(record))
        if parsed_record.head and BY_NAME[record.source].shape is not Shape.REGISTRY:
            self._search.put_head(record, parsed_record.head, parsed_record, stored_row)
        if not parsed_record.partial:
            self._put_links(parsed_record, format_id, stored_row)
        if stored_row is not None and stored_row["status"] != "active":
            self._search.restore_body(record, stored_row)
        return stored_row is None or not is_same(stored_row, record_json)

    def _advance_date(self, record: Record, stored_row: Row) -> None:
        """Give an unchanged record the date of a newer file that still says so."""
        stored_fields = from_json(stored_row["record"])
        if record.as_of and record.as_of > (stored_fields.get("as_of") or ""):
            record_json = to_json(stored_fields | {"as_of": record.as_of}).decode()
            self._db.execute(
                f"UPDATE {record.source} SET record = ? WHERE id = ?", (record_json, record.id)
            )

    def _merge_fallback(self, parsed_record: ParsedRecord, stored_row: Row) -> bool:
        """Add what a second text of a bill says, unless its own source is loaded."""
        if stored_row["loader"] != "partial" or stored_row["status"] != "active":
            return False
        stored_fields = from_json(stored_row["record"])
        merged_fields = merge_fields(
            stored_fields, from_json(parsed_record.record.model_dump_json())
        )
        for child_table, child_rows in parsed_record.children.items():
            (child_count,) = self._db.execute(
                f"SELECT count(*) FROM {child_table} WHERE {PARENTS[child_table]} = ?",
                (parsed_record.record.id,),
            ).fetchone()
            if len(child_rows) > child_count:
                self._replace(child_table, parsed_record.record.id, child_rows)
        if merged_fields == stored_fields:
            return False
        self._db.execute(
            f"UPDATE {parsed_record.record.source} SET record = ? WHERE id = ?",
            (to_json(merged_fields).decode(), parsed_record.record.id),
        )
        if parsed_record.head:
            dated = parsed_record.record.model_copy(
                update={"published_at": merged_fields["published_at"]}
            )
            self._search.add_to_head(dated, parsed_record, merged_fields["short_titles"])
        return True

    def _put_additions(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> None:
        """Store the rows and links that a partial record adds."""
        self._put_children(parsed_record)
        if parsed_record.links:
            self._put_links(parsed_record, format_id, stored_row)

    def _put_children(self, parsed_record: ParsedRecord) -> None:
        for child_table, child_rows in parsed_record.children.items():
            self._replace(child_table, parsed_record.record.id, child_rows)

    def _keep_newest(self, record: Record) -> None:
        """Withdraw all but the newest filing of a series; the newest succeeds the others."""
        record_source = BY_NAME[record.source]
        if record_source.newest_of is None:
            return
        newest_row, *older = self._db.execute(
            f"""SELECT id, status FROM {record_source.name} WHERE {record_source.newest_of} =
                    (SELECT {record_source.newest_of} FROM {record_source.name} WHERE id = ?)
                ORDER BY record ->> 'posted_at' DESC NULLS LAST, id DESC""",
            (record.id,),
        ).fetchall()
        for older_row in older:
            if older_row["status"] == "active":
                self.withdraw(
                    record_source,
                    older_row["id"],
                    record.retrieved_at,
                    "filed again",
                    newest_row["id"],
                )
            self._db.execute(
                f"UPDATE {record_source.name} SET successor_id = ? WHERE id = ?",
                (newest_row["id"], older_row["id"]),
            )

    def _find(self, record: Record) -> Row | None:
        stored_row: Row | None = self._db.execute(
            f"SELECT loader, raw_sha256, status, record FROM {record.source} WHERE id = ?",
            (record.id,),
        ).fetchone()
        return stored_row

    def _replace(
        self, table_name: str, record_id: str, child_rows: Sequence[tuple[Any, ...]]
    ) -> None:
        self._db.execute(f"DELETE FROM {table_name} WHERE {PARENTS[table_name]} = ?", (record_id,))
        if child_rows:
            marks = ", ".join("?" * (len(child_rows[0]) + 1))
            self._db.executemany(
                f"INSERT INTO {table_name} VALUES ({marks})",
                ((record_id, *child_row) for child_row in child_rows),
            )

    def _put_links(
        self, parsed_record: ParsedRecord, format_id: str, stored_row: Row | None
    ) -> None:
        """Replace the links that this loader stored for the record."""
        record_id, family = parsed_record.record.id, format_id.partition("/")[0]
        # A file that knows only a part, such as one version of a text, speaks for that part alone.
        part_name = parsed_record.text.part if parsed_record.text else "listed"
        who = f"{family}#{part_name}" if parsed_record.partial else family
        if stored_row is not None:
            self._links.write()
            self._db.execute("DELETE FROM links WHERE from_id = ? AND loader = ?", (record_id, who))
        self._links.rows += [
            (record_id, link.kind, link.id, who, link.evidence) for link in parsed_record.links
        ]
