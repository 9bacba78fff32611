"""Writes parsed records into the federal database: a file completely, and nothing twice."""

import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

from readingroom.bases.federal.load import coverage
from readingroom.bases.federal.load.batches import RowBatch
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
from readingroom.bases.federal.load.sponsors import name_sponsors
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


# The dockets first: they are few, and rules are looked up by their RIN.
_SAME_RIN = """FROM regulations_dot_gov_dockets r
    {join} facets f ON f.field = 'rin' AND f.value = r.rin {join} documents d ON d.doc = f.doc
    WHERE r.status = 'active'"""


@dataclass
class Written:
    """What was written of a file, in counts and ids."""

    records: int = 0
    changed: int = 0
    ids: dict[str, set[str]] = field(default_factory=dict)
    """The ids of the complete records in the file, by source."""
    withdrawn: int = 0
    older: bool = False
    """Whether a newer revision of any record was stored already."""
    problems: list[str] = field(default_factory=list)
    """What the file names and does not hold, or what could not be read of it."""


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
        self._batches = (*self._search.batches, self._links, self._names.batch)
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
        position = self._search.position
        # A bad file is taken back alone: those before it stay in the transaction.
        self._db.execute("SAVEPOINT step")
        try:
            yield
            self._write()
        except BaseException:
            self._undo("ROLLBACK TO step")
            self._search.position = position
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
        error = self._committing.exception() if self._committing else None
        self._committing = None  # not before: after an interrupt somebody has to wait again
        if error:
            raise StorageFailed(
                f"The records that were read could not be written: {error}"
            ) from error

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
        rows = self._db.execute(
            "SELECT DISTINCT sha256, loader FROM ingestion_logs WHERE outcome = 'loaded'"
        )
        return {(row["sha256"], row["loader"]) for row in rows}

    def log(self, moment: str, file: str, sha256: str, format_id: str | None, outcome: str,
            written: Written, error: str | None = None) -> None:  # fmt: skip
        self._db.execute(
            """INSERT INTO ingestion_logs
                   (at, file, sha256, loader, outcome, records, changed, error)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (moment, file, sha256, format_id, outcome, written.records, written.changed, error),
        )

    def put_all(self, entries: Iterable[ParsedRecord | FileProblem], format_id: str) -> Written:
        written = Written()
        for entry in entries:
            if isinstance(entry, FileProblem):
                written.problems.append(entry.message)
                continue
            if entry.is_mention and entry.record.id in self._mentioned:
                continue
            stored = self._find(entry.record)
            written.changed += self._put(entry, format_id, stored)
            if self._search.waiting > _MAX_WAITING_ROWS:
                self._write()
            if not entry.partial:
                written.records += 1
                written.ids.setdefault(entry.record.source, set()).add(entry.record.id)
                written.older = written.older or is_newer(stored, entry, format_id)
            elif entry.is_mention:
                self._mentioned.add(entry.record.id)
        return written

    def _put(self, entry: ParsedRecord, format_id: str, stored: Row | None) -> bool:
        """Store a parsed record; return whether it says anything new."""
        changed = self._put_record(entry, format_id, stored)
        if entry.is_fallback and stored is not None:
            changed = self._merge_fallback(entry, stored)
        elif entry.partial:
            self._put_additions(entry, format_id, stored)
        if entry.text and self._search.put_text(entry.record, entry.text, format_id, stored):
            changed = True
        if changed:
            record = entry.record
            kind: ChangeKind = "changed" if stored else "new"
            self._note(record.source, record.id, kind, record.retrieved_at)
        self._keep_newest(entry.record)
        return changed

    def withdraw(
        self, source: Source, id: str, moment: str, reason: str, successor: str | None = None
    ) -> None:
        """Mark a record as withdrawn: its id still answers, but no list or search returns it."""
        self._db.execute(
            f"""UPDATE {source.name} SET status = 'withdrawn', tombstone_at = ?,
                    tombstone_reason = ?, successor_id = ? WHERE id = ? AND status = 'active'""",
            (moment[:10], reason, successor, id),
        )
        self._note(source.name, id, "withdrawn", moment)
        self._write()
        self._search.index()
        # Passages go with it by foreign keys, and from the index by a trigger: all must be there.
        self._db.execute("DELETE FROM documents WHERE id = ?", (id,))
        self._names.forget(id)
        self._db.execute("DELETE FROM links WHERE from_id = ?", (id,))

    def withdraw_missing(
        self,
        source: Source,
        format_id: str,
        complete_for_columns: str,
        remaining: set[str],
        moment: str,
        *,
        even_most: bool,
    ) -> int:
        """Withdraw the records that a complete file no longer holds.

        The file is complete for the values its records have in `complete_for_columns`. Only records
        of the same loader are withdrawn: another may know of more.
        """
        ids_json = json.dumps(sorted(remaining))
        in_file = self._db.dialect.parameter_items
        stored = self._db.execute(
            f"""SELECT id FROM {source.name} WHERE status = 'active' AND loader LIKE ?
                AND ({complete_for_columns}) IN (
                    SELECT {complete_for_columns} FROM {source.name} WHERE id IN ({in_file}))
                AND id NOT IN ({in_file})""",
            # Whichever version of the loader wrote them.
            (f"{format_id.partition('/')[0]}/%", ids_json, ids_json),
        ).fetchall()
        gone = [row["id"] for row in stored]
        if not even_most:
            check_removals(source, gone, remaining)
        return self._withdraw_all(source, gone, moment)

    def retire_missing(
        self, source: Source, remaining: set[str], moment: str, *, even_most: bool
    ) -> int:
        """Mark the records that a list of current members leaves out as no longer current.

        A list of mostly former members says nothing about the current ones, and is ignored.
        """
        ids_json = json.dumps(sorted(remaining))
        in_file = self._db.dialect.parameter_items
        (sitting,) = self._db.execute(
            f"SELECT count(*) FROM {source.name} WHERE current AND id IN ({in_file})", (ids_json,)
        ).fetchone()
        if 2 * sitting <= len(remaining):
            return 0
        stored = self._db.execute(
            f"""SELECT id, record FROM {source.name} WHERE status = 'active' AND current
                AND loader LIKE '{source.name}/%' AND id NOT IN ({in_file})""",
            (ids_json,),
        ).fetchall()
        gone = [row["id"] for row in stored]
        if not even_most:
            check_removals(source, gone, remaining)
        for row in stored:
            id, record = row["id"], from_json(row["record"]) | {"current": False}
            # Another loader's mark, so that a member who returns is written again.
            self._db.execute(
                f"UPDATE {source.name} SET loader = ?, record = ? WHERE id = ?",
                (f"{source.name}/left", to_json(record).decode(), id),
            )
            self._note(source.name, id, "changed", moment)
        return len(gone)

    def forget_file(self, file: str) -> None:
        """Forget that a file was ever loaded, so that it is read again should it return."""
        self._db.execute(
            """DELETE FROM ingestion_logs WHERE outcome = 'loaded' AND (sha256, loader) IN
                   (SELECT sha256, loader FROM ingestion_logs WHERE file = ?)""",
            (file,),
        )

    def withdraw_file(self, source: Source, sha256: str, moment: str) -> int:
        """Withdraw the records of a file that its package no longer holds."""
        stored = self._db.execute(
            f"SELECT id FROM {source.name} WHERE status = 'active' AND raw_sha256 = ?", (sha256,)
        ).fetchall()
        return self._withdraw_all(source, [row["id"] for row in stored], moment)

    def _withdraw_all(self, source: Source, gone: Sequence[str], moment: str) -> int:
        self._note_changes()
        successors = changes.find_successors(self._db, source, gone, self._began)
        for id in gone:
            self.withdraw(
                source, id, moment, "no longer in the newest official file", successors.get(id)
            )
        return len(gone)

    def link(self) -> None:
        """Link records of different files, at the end of a load.

        Each part finds what is still missing, so that the next load repairs one that was killed.
        """
        self._link_senators()
        name_sponsors(self._db)
        self._link_offices()
        self._link_rulemakings()

    def _link_senators(self) -> None:
        """Fill in the Bioguide id where a vote has only the Senate's own id of a member."""
        self._db.execute(
            """UPDATE member_votes SET bioguide_id =
                   (SELECT id FROM legislators WHERE legislators.lis = member_votes.lis)
               WHERE bioguide_id IS NULL AND lis IN (SELECT lis FROM legislators)"""
        )

    def _link_offices(self) -> None:
        """Add members' names to their offices: the files of offices have only Bioguide ids."""
        unnamed = self._db.execute(
            """SELECT o.id, l.record ->> 'name' || coalesce(' ' || o.city, '') AS form
               FROM staff_directories o JOIN legislators l ON l.id = o.bioguide_id
               WHERE o.status = 'active' AND NOT EXISTS (
                   SELECT 1 FROM name_forms f WHERE f.record_id = o.id AND f.form =
                       l.record ->> 'name' || coalesce(' ' || o.city, ''))"""
        ).fetchall()
        for row in unnamed:
            self._names.put("staff_directories", row["id"], row["form"])

    def _link_rulemakings(self) -> None:
        """Link rules to the dockets that have the same RIN: both belong to one rulemaking."""
        same_rin = _SAME_RIN.format(join=self._db.dialect.join_in_order)
        self._db.execute(
            f"""DELETE FROM links WHERE to_id IN (SELECT id FROM regulations_dot_gov_dockets)
                AND kind = 'docket' AND loader = 'rin'
                AND NOT EXISTS (SELECT 1 {same_rin} AND d.id = from_id AND r.id = to_id)"""
        )
        self._db.execute(
            f"""INSERT INTO links SELECT d.id, 'docket', r.id, 'rin',
                    'RIN ' || r.rin || ', of the document and of the docket'
                {same_rin} ON CONFLICT DO NOTHING"""
        )

    def count(self) -> None:
        """Update the counts and dates of each source, at the end of a load."""
        coverage.count_sources(self._db)

    def _note(self, source: str, id: str, kind: ChangeKind, moment: str) -> None:
        self._notes.append((source, id, kind, moment))

    def _note_changes(self) -> None:
        changes.add_changes(self._db, self._notes)
        self._notes.clear()

    # --- the record and what hangs on it ---

    def _put_record(self, entry: ParsedRecord, format_id: str, stored: Row | None) -> bool:
        record = entry.record
        if stored is not None and (entry.partial or is_older(stored, entry, format_id)):
            if not entry.partial:
                self._advance_date(record, stored)
            return False
        # That date is the source's, not the record's: it is added when the record is read.
        record_json = record.model_dump_json(exclude={"loaded_up_to"})
        self._db.execute(
            f"""INSERT INTO {record.source} (id, record, loader) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET record = excluded.record, loader = excluded.loader,
                    status = 'active', tombstone_at = NULL, tombstone_reason = NULL,
                    successor_id = NULL""",
            (record.id, record_json, format_writer_mark(entry, format_id)),
        )
        if not entry.partial:
            self._put_children(entry)
        if BY_NAME[record.source].has_names:
            if stored is not None:
                self._names.forget(record.id)
            self._names.put_all(record, entry.names or list_titles(record))
        if entry.head and BY_NAME[record.source].shape is not Shape.REGISTRY:
            self._search.put_head(record, entry.head, entry, stored)
        if not entry.partial:
            self._put_links(entry, format_id, stored)
        if stored is not None and stored["status"] != "active":
            self._search.restore_body(record, stored)
        return stored is None or not is_same(stored, record_json)

    def _advance_date(self, record: Record, stored: Row) -> None:
        """Give an unchanged record the date of a newer file that still says so."""
        fields = from_json(stored["record"])
        if record.as_of and record.as_of > (fields.get("as_of") or ""):
            record_json = to_json(fields | {"as_of": record.as_of}).decode()
            self._db.execute(
                f"UPDATE {record.source} SET record = ? WHERE id = ?", (record_json, record.id)
            )

    def _merge_fallback(self, entry: ParsedRecord, stored: Row) -> bool:
        """Add what a second text of a bill says, unless its own source is loaded."""
        if stored["loader"] != "partial" or stored["status"] != "active":
            return False
        before = from_json(stored["record"])
        after = merge_fields(before, from_json(entry.record.model_dump_json()))
        for table, rows in entry.children.items():
            (count,) = self._db.execute(
                f"SELECT count(*) FROM {table} WHERE {PARENTS[table]} = ?", (entry.record.id,)
            ).fetchone()
            if len(rows) > count:
                self._replace(table, entry.record.id, rows)
        if after == before:
            return False
        self._db.execute(
            f"UPDATE {entry.record.source} SET record = ? WHERE id = ?",
            (to_json(after).decode(), entry.record.id),
        )
        if entry.head:
            dated = entry.record.model_copy(update={"published_at": after["published_at"]})
            self._search.add_to_head(dated, entry, after["short_titles"])
        return True

    def _put_additions(self, entry: ParsedRecord, format_id: str, stored: Row | None) -> None:
        """Store the rows and links that a partial record adds."""
        self._put_children(entry)
        if entry.links:
            self._put_links(entry, format_id, stored)

    def _put_children(self, entry: ParsedRecord) -> None:
        for table, rows in entry.children.items():
            self._replace(table, entry.record.id, rows)

    def _keep_newest(self, record: Record) -> None:
        """Withdraw all but the newest filing of a series; the newest succeeds the others."""
        source = BY_NAME[record.source]
        if source.newest_of is None:
            return
        newest, *older = self._db.execute(
            f"""SELECT id, status FROM {source.name} WHERE {source.newest_of} =
                    (SELECT {source.newest_of} FROM {source.name} WHERE id = ?)
                ORDER BY record ->> 'posted_at' DESC NULLS LAST, id DESC""",
            (record.id,),
        ).fetchall()
        for row in older:
            if row["status"] == "active":
                self.withdraw(source, row["id"], record.retrieved_at, "filed again", newest["id"])
            self._db.execute(
                f"UPDATE {source.name} SET successor_id = ? WHERE id = ?", (newest["id"], row["id"])
            )

    def _find(self, record: Record) -> Row | None:
        row: Row | None = self._db.execute(
            f"SELECT loader, raw_sha256, status, record FROM {record.source} WHERE id = ?",
            (record.id,),
        ).fetchone()
        return row

    def _replace(self, table: str, id: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._db.execute(f"DELETE FROM {table} WHERE {PARENTS[table]} = ?", (id,))
        if rows:
            marks = ", ".join("?" * (len(rows[0]) + 1))
            self._db.executemany(
                f"INSERT INTO {table} VALUES ({marks})", ((id, *row) for row in rows)
            )

    def _put_links(self, entry: ParsedRecord, format_id: str, stored: Row | None) -> None:
        """Replace the links that this loader stored for the record."""
        id, family = entry.record.id, format_id.partition("/")[0]
        # A file that knows only a part, such as one version of a text, speaks for that part alone.
        part = entry.text.part if entry.text else "listed"
        who = f"{family}#{part}" if entry.partial else family
        if stored is not None:
            self._links.write()
            self._db.execute("DELETE FROM links WHERE from_id = ? AND loader = ?", (id, who))
        self._links.rows += [(id, link.kind, link.id, who, link.evidence) for link in entry.links]
