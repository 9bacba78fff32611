"""Writes what loaders hand over into the federal file: each file whole, nothing twice."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.schema import fold
from readingroom.bases.federal.schema.entries import ParsedRecord, SearchHead, Text
from readingroom.bases.federal.schema.records import Record
from readingroom.bases.federal.schema.sources import BY_NAME, SOURCES, Shape, Source
from readingroom.bases.federal.schema.tables import CITATION, PARENTS
from readingroom.engine.chunking import Span, split
from readingroom.storage.errors import StorageFailed

Passage = tuple[int, str, str, str, str]
"""Where it starts; title, abstract, action, body."""

_WAITING = 4_000
"""So many passages and facets wait in memory to be written together; of the rest there are few."""

_TOGETHER = 2_000
"""Rows that are committed at once, at least: the index of words is merged each time."""

_FEW = 20
"""So many records a file may leave out without any question."""


_SAME_RIN = """FROM regulations_dot_gov_dockets r
    CROSS JOIN facets f ON f.field = 'rin' AND f.value = r.rin CROSS JOIN documents d USING (doc)
    WHERE r.status = 'active'"""


class CutShort(ValueError):
    """A newer file leaves out most of what an older one had."""


@dataclass
class Written:
    """What a file came to."""

    records: int = 0
    changed: int = 0
    ids: dict[str, set[str]] = field(default_factory=dict)
    """What it told of in full, by source."""
    withdrawn: int = 0
    older: bool = False
    """Whether any of it was there already in a newer revision."""


class _Waiting:
    """Rows of a table that are written together, which costs less than one by one."""

    def __init__(self, db: sqlite3.Connection, insert: str) -> None:
        self._db = db
        self._insert = insert
        self.rows: list[tuple[Any, ...]] = []

    def write(self) -> None:
        if self.rows:
            self._db.executemany(self._insert, self.rows)
            self.rows.clear()


class Writer:
    """The one who writes. Everything inside a `step()` happens, or nothing of it.

    Steps that follow one another are committed together, a `transaction()` by itself. With a
    thread beside it a commit happens there: SQLite indexes the words and writes to disk while the
    caller reads on. The next step waits for it, and tells if it failed.
    """

    def __init__(self, db: sqlite3.Connection, beside: Executor | None = None) -> None:
        self._db = db
        self._beside = beside
        self._ending: Future[None] | None = None
        self._began = changes.last(db)
        self._last_chunk = self._indexed = self._changes_before = 0
        self._stepping = False
        self._facets = _Waiting(
            db, "INSERT OR IGNORE INTO facets (field, value, doc) VALUES (?, ?, ?)"
        )
        self._links = _Waiting(
            db, "INSERT INTO links VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        )
        self._chunks = _Waiting(
            db, "INSERT INTO chunks (chunk, doc, part, ordinal) VALUES (?, ?, ?, ?)"
        )
        self._passages = _Waiting(db, "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)")
        # Apart from the table of names, for the reason that `_index` gives.
        self._names = _Waiting(db, "INSERT INTO names_fts (rowid, folded) VALUES (?, ?)")
        self._waiting = (self._facets, self._links, self._chunks, self._passages, self._names)
        self._notes: list[changes.Note] = []
        self._mentioned: set[str] = set()
        """Who and what was only named, in this load, and is there: need not be looked for again."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self.step():
            yield
        self.commit()

    @contextmanager
    def step(self) -> Iterator[None]:
        self._stepping = True
        self._begin()
        chunks = self._last_chunk, self._indexed
        self._db.execute("SAVEPOINT step")
        try:
            yield
            self._write()
        except BaseException:
            self._undo("ROLLBACK TO step")
            self._last_chunk, self._indexed = chunks
            self._stepping = False
            raise
        self._db.execute("RELEASE step")
        self._stepping = False
        if self._db.total_changes - self._changes_before > _TOGETHER:
            self.commit()

    def _begin(self) -> None:
        self.settle()
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("UPDATE generation SET value = value + 1")
            self._last_chunk = self._indexed = self._newest_chunk()
            self._changes_before = self._db.total_changes

    def commit(self) -> None:
        """End what was begun, if anything was; beside this thread it may still be going on."""
        self.settle()
        if self._stepping:
            self._undo("ROLLBACK")  # interrupted again, while what was half done was being undone
            self._stepping = False
        if self._db.in_transaction:
            if self._beside:
                self._ending = self._beside.submit(self._end)
            else:
                self._end()

    def settle(self) -> None:
        """Wait for the end of the last transaction; that it failed is no fault of any file."""
        error = self._ending.exception() if self._ending else None
        self._ending = None  # not before: who is interrupted as he waits has to wait again
        if error:
            raise StorageFailed(f"What was read could not be written: {error}") from error

    def _end(self) -> None:
        try:
            self._index()
            self._db.execute("COMMIT")
        except BaseException:
            self._undo("ROLLBACK")
            raise

    def _undo(self, rollback: str) -> None:
        """Forget what waits; SQLite may have undone everything already, as on a full disk."""
        for batch in self._waiting:
            batch.rows.clear()
        self._notes.clear()
        self._mentioned.clear()
        if self._db.in_transaction:
            self._db.execute(rollback)

    def _write(self) -> None:
        """Everything that waits."""
        for batch in self._waiting:
            batch.write()
        self._note_changes()

    def seen(self) -> set[tuple[str, str]]:
        """The files that were loaded before: the hash of each, and the loader that read it."""
        rows = self._db.execute(
            "SELECT DISTINCT sha256, loader FROM ingestion_logs WHERE outcome = 'loaded'"
        )
        return {(row["sha256"], row["loader"]) for row in rows}

    def log(self, at: str, file: str, sha256: str, loader: str | None, outcome: str,
            written: Written, error: str | None = None) -> None:  # fmt: skip
        self._db.execute(
            """INSERT INTO ingestion_logs
                   (at, file, sha256, loader, outcome, records, changed, error)
               VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            (at, file, sha256, loader, outcome, written.records, written.changed, error),
        )

    def put_all(self, entries: Iterable[ParsedRecord], loader: str) -> Written:
        written = Written()
        for entry in entries:
            if entry.is_mention and entry.record.id in self._mentioned:
                continue
            known = self._known(entry.record)
            written.changed += self._put(entry, loader, known)
            if len(self._passages.rows) + len(self._facets.rows) > _WAITING:
                self._write()
            if not entry.partial:
                written.records += 1
                written.ids.setdefault(entry.record.source, set()).add(entry.record.id)
                written.older = written.older or _is_newer(known, entry, loader)
            elif entry.is_mention:
                self._mentioned.add(entry.record.id)
        return written

    def _put(self, entry: ParsedRecord, loader: str, known: sqlite3.Row | None) -> bool:
        """Store an entry; False when everything it says was there already."""
        changed = self._put_record(entry, loader, known)
        if entry.partial:
            self._add(entry, loader, known)
        if entry.text and self._put_text(entry.record, entry.text, loader, known):
            changed = True
        if changed:
            record = entry.record
            kind: ChangeKind = "changed" if known else "new"
            self._note(record.source, record.id, kind, record.retrieved_at)
        self._keep_newest(entry.record)
        return changed

    def withdraw(
        self, source: Source, id: str, at: str, reason: str, successor: str | None = None
    ) -> None:
        """Keep a record's place but say that it is gone; it is no longer listed or found."""
        self._db.execute(
            f"""UPDATE {source.name} SET status = 'withdrawn', tombstone_at = ?,
                    tombstone_reason = ?, successor_id = ? WHERE id = ? AND status = 'active'""",
            (at[:10], reason, successor, id),
        )
        self._note(source.name, id, "withdrawn", at)
        self._write()
        self._index()
        self._db.execute("DELETE FROM documents WHERE id = ?", (id,))
        self._forget_names(id)
        self._db.execute("DELETE FROM links WHERE from_id = ?", (id,))

    def withdraw_missing(
        self, source: Source, loader: str, whole: str, kept: set[str], at: str, *, even_most: bool
    ) -> int:
        """A file that holds all records of some values of the fields `whole` no longer has these.

        Only what the same loader wrote is taken back: another may know of more.
        """
        value_data = json.dumps(sorted(kept))
        listed = "SELECT value FROM json_each(?)"
        stored = self._db.execute(
            f"""SELECT id FROM {source.name} WHERE status = 'active' AND loader LIKE ?
                AND ({whole}) IN (SELECT {whole} FROM {source.name} WHERE id IN ({listed}))
                AND id NOT IN ({listed})""",
            (f"{loader.partition('/')[0]}/%", value_data, value_data),
        ).fetchall()
        gone = [row["id"] for row in stored]
        if not even_most:
            _check_whole(source, gone, kept)
        return self._withdraw_all(source, gone, at)

    def retire_missing(self, source: Source, kept: set[str], at: str, *, even_most: bool) -> int:
        """A list of who sits now leaves these out: they stay, but are not current any more.

        A list of mostly former ones is none of who sits now, and says nothing of the others.
        """
        value_data = json.dumps(sorted(kept))
        listed = "SELECT value FROM json_each(?)"
        (sitting,) = self._db.execute(
            f"SELECT count(*) FROM {source.name} WHERE current AND id IN ({listed})", (value_data,)
        ).fetchone()
        if 2 * sitting <= len(kept):
            return 0
        stored = self._db.execute(
            f"""SELECT id FROM {source.name} WHERE status = 'active' AND current
                AND loader LIKE '{source.name}/%' AND id NOT IN ({listed})""",
            (value_data,),
        ).fetchall()
        gone = [row["id"] for row in stored]
        if not even_most:
            _check_whole(source, gone, kept)
        for id in gone:
            # Another writer's mark: who comes back is written again, though nothing else is new.
            self._db.execute(
                f"""UPDATE {source.name} SET loader = '{source.name}/left',
                        record = json_set(record, '$.current', json('false')) WHERE id = ?""",
                (id,),
            )
            self._note(source.name, id, "changed", at)
        return len(gone)

    def forget_file(self, file: str) -> None:
        """What a file was loaded from, whenever it was: should it come back it is read again."""
        self._db.execute(
            """DELETE FROM ingestion_logs WHERE outcome = 'loaded' AND (sha256, loader) IN
                   (SELECT sha256, loader FROM ingestion_logs WHERE file = ?)""",
            (file,),
        )

    def withdraw_file(self, source: Source, sha256: str, at: str) -> int:
        """A file of a package that was there before is there no more, nor are its records."""
        stored = self._db.execute(
            f"SELECT id FROM {source.name} WHERE status = 'active' AND raw_sha256 = ?", (sha256,)
        ).fetchall()
        return self._withdraw_all(source, [row["id"] for row in stored], at)

    def _withdraw_all(self, source: Source, gone: Sequence[str], at: str) -> int:
        self._note_changes()
        heirs = changes.successors(self._db, source, gone, self._began)
        for id in gone:
            self.withdraw(source, id, at, "no longer in the newest official file", heirs.get(id))
        return len(gone)

    def link(self) -> None:
        """What no file says alone, at the end of a load: each part finds what is still to be done,
        so that a load that was killed leaves nothing undone for good.
        """
        self._link_senators()
        self._link_offices()
        self._link_rulemakings()

    def _link_senators(self) -> None:
        """Say who is meant where a file had only the Senate's own number of a member."""
        self._db.execute(
            """UPDATE member_votes SET bioguide_id =
                   (SELECT id FROM legislators WHERE legislators.lis = member_votes.lis)
               WHERE bioguide_id IS NULL AND lis IN (SELECT lis FROM legislators)"""
        )

    def _link_offices(self) -> None:
        """The files of offices know members by number alone; people ask for them by name."""
        unnamed = self._db.execute(
            """SELECT o.id, json_extract(l.record, '$.name') || coalesce(' ' || o.city, '') AS form
               FROM staff_directories o JOIN legislators l ON l.id = o.bioguide_id
               WHERE o.status = 'active' AND NOT EXISTS (
                   SELECT 1 FROM name_forms f WHERE f.record_id = o.id AND f.form =
                       json_extract(l.record, '$.name') || coalesce(' ' || o.city, ''))"""
        ).fetchall()
        for row in unnamed:
            self._put_name("staff_directories", row["id"], row["form"])

    def _link_rulemakings(self) -> None:
        """A rule and a docket that bear the same RIN are of one rulemaking, named or not."""
        self._db.execute(
            f"""DELETE FROM links WHERE to_id IN (SELECT id FROM regulations_dot_gov_dockets)
                AND kind = 'docket' AND loader = 'rin'
                AND NOT EXISTS (SELECT 1 {_SAME_RIN} AND d.id = from_id AND r.id = to_id)"""
        )
        self._db.execute(
            f"""INSERT INTO links SELECT d.id, 'docket', r.id, 'rin',
                    'RIN ' || r.rin || ', of the document and of the docket'
                {_SAME_RIN} ON CONFLICT DO NOTHING"""
        )

    def count(self) -> None:
        """Bring the table of progress up to date, at the end of a load."""
        for source in SOURCES:
            # A column where there is one: an index has it, and records are long.
            kept = source.as_of in CITATION
            dated = source.as_of if kept else f"json_extract(record, '$.{source.as_of}')"
            self._db.execute(
                f"""INSERT OR REPLACE INTO progress
                    SELECT ?, count(*), max(substr({dated}, 1, 10))
                    FROM {source.name} WHERE status = 'active'""",
                (source.name,),
            )

    def _note(self, source: str, id: str, kind: ChangeKind, at: str) -> None:
        self._notes.append((source, id, kind, at))

    def _note_changes(self) -> None:
        changes.note(self._db, self._notes)
        self._notes.clear()

    # --- the record and what hangs on it ---

    def _put_record(self, entry: ParsedRecord, loader: str, known: sqlite3.Row | None) -> bool:
        record = entry.record
        if known is not None and (entry.partial or _is_older(known, entry, loader)):
            return False
        value = record.model_dump_json(exclude={"loaded_up_to"})
        self._db.execute(
            f"""INSERT INTO {record.source} (id, record, loader) VALUES (?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET record = excluded.record, loader = excluded.loader,
                    status = 'active', tombstone_at = NULL, tombstone_reason = NULL,
                    successor_id = NULL""",
            (record.id, value, _mark(entry, loader)),
        )
        if not entry.partial:
            self._put_children(entry)
        if BY_NAME[record.source].shape is Shape.REGISTRY:
            if known is not None:
                self._forget_names(record.id)
            self._put_names(record, entry.names)
        elif entry.head:
            self._put_head(record, entry.head, entry, known)
        if not entry.partial:
            self._put_links(entry, loader, known)
        if known is not None and known["status"] != "active":
            self._put_body_again(record, known)
        return known is None or not _says_the_same(known, value)

    def _add(self, entry: ParsedRecord, loader: str, known: sqlite3.Row | None) -> None:
        """What a file that knows little of the record itself knows beside it."""
        self._put_children(entry)
        if entry.links:
            self._put_links(entry, loader, known)

    def _put_children(self, entry: ParsedRecord) -> None:
        for table, rows in entry.children.items():
            self._replace(table, entry.record.id, rows)

    def _keep_newest(self, record: Record) -> None:
        """Of what was filed again only the last stands; it is the successor of all before it."""
        source = BY_NAME[record.source]
        if source.newest_of is None:
            return
        newest, *older = self._db.execute(
            f"""SELECT id, status FROM {source.name} WHERE {source.newest_of} =
                    (SELECT {source.newest_of} FROM {source.name} WHERE id = ?)
                ORDER BY json_extract(record, '$.posted_at') DESC, id DESC""",
            (record.id,),
        ).fetchall()
        for row in older:
            if row["status"] == "active":
                self.withdraw(source, row["id"], record.retrieved_at, "filed again", newest["id"])
            self._db.execute(
                f"UPDATE {source.name} SET successor_id = ? WHERE id = ?", (newest["id"], row["id"])
            )

    def _known(self, record: Record) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._db.execute(
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

    def _put_names(self, record: Record, names: Sequence[str]) -> None:
        for name in dict.fromkeys(names):
            self._put_name(record.source, record.id, name)

    def _put_name(self, source: str, id: str, name: str) -> None:
        if folded := fold.words(name):
            self._db.execute(
                "INSERT OR IGNORE INTO name_forms (name_row, record_id, form) VALUES (?, ?, ?)",
                (self._name_row(source, folded), id, name),
            )

    def _name_row(self, source: str, folded: Sequence[str]) -> int:
        """The row of a name, made when there is none; those of one source lie together."""
        known = self._db.execute(
            "SELECT name_row FROM names WHERE source = ? AND folded = ?",
            (source, fold.pad(folded)),
        ).fetchone()
        if known:
            return int(known["name_row"])
        first = fold.first_row(source)
        added = self._db.execute(
            """INSERT INTO names (name_row, source, folded, initials)
               SELECT coalesce(max(name_row), ?) + 1, ?, ?, ? FROM names
               WHERE name_row BETWEEN ? AND ?""",
            (first, source, fold.pad(folded), fold.initials(folded), first,
             first + fold.ROWS),
        )  # fmt: skip
        row = int(added.lastrowid or 0)
        self._names.rows.append((row, fold.pad(folded)))
        return row

    def _forget_names(self, id: str) -> None:
        """A record's names, and those that no other record goes by."""
        self._names.write()  # what is taken out of the index must be in it
        rows = self._db.execute(
            "SELECT name_row FROM name_forms WHERE record_id = ?", (id,)
        ).fetchall()
        self._db.execute("DELETE FROM name_forms WHERE record_id = ?", (id,))
        self._db.executemany(
            """DELETE FROM names WHERE name_row = ?1
               AND NOT EXISTS (SELECT 1 FROM name_forms WHERE name_row = ?1)""",
            rows,
        )

    def _put_links(self, entry: ParsedRecord, loader: str, known: sqlite3.Row | None) -> None:
        """What this loader says of the record's links, in place of what it said before."""
        id, family = entry.record.id, loader.partition("/")[0]
        # A file that knows only a part, such as one version of a text, speaks for that part alone.
        part = entry.text.part if entry.text else "listed"
        who = f"{family}#{part}" if entry.partial else family
        if known is not None:
            self._links.write()
            self._db.execute("DELETE FROM links WHERE from_id = ? AND loader = ?", (id, who))
        self._links.rows += [(id, link.kind, link.id, who, link.evidence) for link in entry.links]

    # --- what is searched ---

    def _doc(self, record: Record) -> int:
        """The number of a record in search, made when it has none."""
        return self._known_doc(record) or self._new_doc(record)

    def _known_doc(self, record: Record) -> int | None:
        found = self._db.execute("SELECT doc FROM documents WHERE id = ?", (record.id,)).fetchone()
        return int(found["doc"]) if found else None

    def _new_doc(self, record: Record) -> int:
        added = self._db.execute(
            "INSERT INTO documents (id, source, published_at) VALUES (?, ?, ?)",
            (record.id, record.source, record.published_at),
        )
        return int(added.lastrowid or 0)

    def _put_head(
        self, record: Record, head: SearchHead, entry: ParsedRecord, known: sqlite3.Row | None
    ) -> None:
        there = self._known_doc(record) if known is not None else None
        if there is not None:
            self._refresh(there, record)
        doc = there or self._new_doc(record)
        self._facets.rows += [
            (name, value, doc) for name, values in entry.facets.items() for value in values
        ]
        first, *rest = split(head.abstract) or [Span(0, 0)]
        said = first.of(head.abstract)
        passages = [
            (first.start, head.title, said, head.action, ""),
            *((span.start, "", span.of(head.abstract), "", "") for span in rest),
        ]
        self._put_chunks(doc, "head", passages, self._stored_chunks(doc, "head") if there else {})

    def _refresh(self, doc: int, record: Record) -> None:
        """A record that is value anew: its date, and what filters ask of it, may have changed."""
        self._db.execute(
            "UPDATE documents SET published_at = ? WHERE doc = ?", (record.published_at, doc)
        )
        self._facets.write()
        self._db.execute("DELETE FROM facets WHERE doc = ?", (doc,))
        # For its vectors too: they are new.
        self._db.execute(
            """INSERT OR REPLACE INTO vectors (chunk, model, embedding)
               SELECT chunk, model, embedding FROM vectors JOIN chunks USING (chunk)
               WHERE doc = ?""",
            (doc,),
        )

    def _stored_chunks(self, doc: int, part: str) -> dict[int, sqlite3.Row]:
        self._write_chunks()
        stored = self._db.execute(
            """SELECT ordinal, chunk, start, title, abstract, action, body
               FROM chunks JOIN passages USING (chunk) WHERE doc = ? AND part = ?""",
            (doc, part),
        )
        return {row["ordinal"]: row for row in stored}

    def _put_chunks(
        self, doc: int, part: str, passages: Sequence[Passage], there: Mapping[int, sqlite3.Row]
    ) -> None:
        """These passages in place of those that were; one that is the same keeps its vector."""
        new = {
            ordinal: passage
            for ordinal, passage in enumerate(passages)
            if ordinal not in there or tuple(there[ordinal])[2:] != passage
        }
        kept = range(len(passages)) - new.keys()
        self._drop_chunks([row["chunk"] for n, row in there.items() if n not in kept])
        self._add_chunks(doc, part, new)

    def _drop_chunks(self, chunks: Sequence[int]) -> None:
        if chunks:
            self._index()  # what is taken out of the index must be in it
            self._db.executemany("DELETE FROM chunks WHERE chunk = ?", ((n,) for n in chunks))

    def _add_chunks(self, doc: int, part: str, new: Mapping[int, Passage]) -> None:
        for ordinal, passage in new.items():
            self._last_chunk += 1
            self._chunks.rows.append((self._last_chunk, doc, part, ordinal))
            self._passages.rows.append((self._last_chunk, *passage))

    def _write_chunks(self) -> None:
        self._chunks.write()
        self._passages.write()

    def _newest_chunk(self) -> int:
        given = "SELECT seq FROM sqlite_sequence WHERE name = 'chunks'"
        (last,) = self._db.execute(given).fetchone() or (0,)
        return int(last)

    def _index(self) -> None:
        """Bring the words of new passages into the index, many at once.

        Not by a trigger: FTS5 writes out what it holds before every statement that may have to be
        taken back, so that one passage between two others would cost three times as much.
        """
        self._write_chunks()
        self._db.execute(
            """INSERT INTO passages_fts (rowid, title, abstract, action, body)
               SELECT chunk, title, abstract, action, body FROM passages WHERE chunk > ?""",
            (self._indexed,),
        )
        self._indexed = self._last_chunk

    def _put_text(self, record: Record, text: Text, loader: str, known: sqlite3.Row | None) -> bool:
        parts = self._parts(record.id) if known is not None else {}
        if parts.get(text.part) == (text.raw_sha256, loader):
            return False
        self._db.execute(
            "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (record.id, text.part, text.stage, text.dated, text.title, text.url,
             text.raw_sha256, loader, text.body),
        )  # fmt: skip
        alone = parts.keys() <= {text.part}
        self._put_body(
            self._doc(record), text.body if alone else self._newest_text(record.id), known
        )
        return True

    def _parts(self, id: str) -> dict[str, tuple[str, str]]:
        """The texts of a record: of each, which file it is from and who read it."""
        stored = self._db.execute(
            "SELECT part, raw_sha256, loader FROM texts WHERE record_id = ?", (id,)
        )
        return {row["part"]: (row["raw_sha256"], row["loader"]) for row in stored}

    def _put_body_again(self, record: Record, known: sqlite3.Row) -> None:
        """A record that is back is searched by its text again."""
        if store.texts(self._db, record.id):
            self._put_body(self._doc(record), self._newest_text(record.id), known)

    def _newest_text(self, id: str) -> str:
        """Only the newest version of a text is searched: ten drafts of one bill are one bill."""
        newest = self._db.execute(
            f"SELECT body FROM texts WHERE record_id = ? ORDER BY {store.NEWEST_TEXT} LIMIT 1",
            (id,),
        ).fetchone()
        return str(newest["body"])

    def _put_body(self, doc: int, body: str, known: sqlite3.Row | None) -> None:
        passages = [(span.start, "", "", "", span.of(body)) for span in split(body)]
        there = self._stored_chunks(doc, "text") if known is not None else {}
        self._put_chunks(doc, "text", passages, there)


def too_many(gone: Sized, kept: Sized) -> bool:
    """Whether a newer file leaves out so much that it is more likely to be cut short."""
    return len(gone) > max(_FEW, len(kept))


def cut_short(what: str, gone: Sized, kept: Sized) -> CutShort:
    return CutShort(
        f"it would withdraw {len(gone)} {what} and keep {len(kept)}; "
        "if it is whole, use `federal update --even-most`"
    )


def _check_whole(source: Source, gone: Sequence[str], kept: set[str]) -> None:
    if too_many(gone, kept):
        raise cut_short(f"records of {source.name}", gone, kept)


def _says_the_same(known: sqlite3.Row, value: str) -> bool:
    """Whether a record is what it was, but for the moment it was read."""
    before, after = from_json(known["record"]), from_json(value)
    same = {"retrieved_at": None}
    return known["status"] == "active" and bool(before | same == after | same)


def _mark(entry: ParsedRecord, loader: str) -> str:
    """Who wrote a record: the loader and its version, and the revision its source gave it."""
    return "partial" if entry.partial else f"{loader}@{entry.revision or ''}"


def _is_older(known: sqlite3.Row, entry: ParsedRecord, loader: str) -> bool:
    """Whether what is stored is the same, or newer by its own source's word."""
    if known["loader"] == "partial" or known["status"] != "active":
        return False
    if known["loader"] == _mark(entry, loader) and known["raw_sha256"] == entry.record.raw_sha256:
        return True
    return _is_newer(known, entry, loader)


def _is_newer(known: sqlite3.Row | None, entry: ParsedRecord, loader: str) -> bool:
    """Whether the source itself has said something newer already."""
    writer, _, revision = (known["loader"] if known else "").partition("@")
    return writer == loader and revision > (entry.revision or "")
