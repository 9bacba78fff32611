"""Full-text search with SQLite's FTS5: any user text is safe, filters count, the cost is bounded.

FTS5 ranks every row that has any of the words, about a microsecond each, so a question of common
words costs seconds on a large index. Within a budget of postings the ranking is exact; beyond it
the rarest words choose candidates, which are then ranked by BM25 over all the words.
"""

import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readingroom.core.filters import Condition, Fields, Filter, In, Metadata, Range, Value
from readingroom.engine.errors import SearchTimeout
from readingroom.engine.words import Sought, sought, tokenizer
from readingroom.storage.database import ConnectionPool, connect, transaction

BUDGET = 45_000
"""Postings that a search may rank."""
CANDIDATES = 400
SECONDS = 5.0
"""How long a search may take."""

_CLEAN = "INSERT INTO temp.scratch(scratch) VALUES ('delete-all')"
# Scores that are equal come in the order of ids, if they come within so many of the end.
_MARGIN = 64
# The parameters of FTS5's own bm25(), so that both rankings are the same.
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Document:
    """A text to be found by its words: the columns of the index, and what filters may ask."""

    id: str
    texts: Mapping[str, str]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """A matching document; a higher score is a better match."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class _Term:
    word: str
    stem: str
    documents: int


class LexicalIndex:
    """One SQLite file. Any number of readers, one writer at a time; it can always be made anew.

    `columns` are the texts of a document with their weights, the first is the most telling.
    """

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, float],
        fields: Fields,
        budget: int = BUDGET,
        seconds: float = SECONDS,
    ) -> None:
        self.columns = dict(columns)
        self.fields = fields
        self._path = path
        self._budget = budget
        self._seconds = seconds
        self._names = list(dict.fromkeys((*fields.equality, *fields.ranges)))
        self._writing = threading.Lock()
        self._connections = ConnectionPool(self._opened)
        _prepare(path, self._schema())

    def close(self) -> None:
        """Close its connections; nothing may be searching."""
        self._connections.close()

    # --- writing ---

    def upsert(self, documents: Iterable[Document], generation: int | None = None) -> None:
        """Put documents in place of those with the same ids, all or none."""
        batch = {document.id: document for document in documents}
        with self._write(generation) as db:
            self._forget(db, list(batch))
            rows = [self._insert(db, document) for document in batch.values()]
            self._count(db, rows, 1)

    def delete(self, ids: Sequence[str], generation: int | None = None) -> None:
        """Remove documents; ids that are not there are ignored."""
        with self._write(generation) as db:
            self._forget(db, ids)

    def update_metadata(
        self, ids: Sequence[str], metadatas: Sequence[Metadata], generation: int | None = None
    ) -> None:
        """Lay new values over the old ones that filters ask for; other ids are ignored."""
        with self._write(generation) as db:
            for id, metadata in zip(ids, metadatas, strict=True):
                for name, value in self.fields.of(metadata).items():
                    db.execute(
                        f"UPDATE documents SET {_quoted(name)} = ? WHERE id = ?",
                        (_stored(value), id),
                    )

    def fill(self, documents: Iterable[Document], generation: int) -> None:
        """Replace everything, as when the store has changed while nobody kept step."""
        with self._write(generation) as db:
            for table in ("documents", "words", "terms"):
                db.execute(f"DELETE FROM {table}")
            db.execute("UPDATE facts SET tokens = 0, documents = 0")
            rows = 0
            for document in documents:
                self._insert(db, document)
                rows += 1
            db.execute("INSERT INTO terms SELECT term, doc FROM vocabulary")
            tokens = sum(_tokens(size) for (size,) in db.execute("SELECT sz FROM words_docsize"))
            db.execute("UPDATE facts SET tokens = ?, documents = ?", (tokens, rows))

    @property
    def generation(self) -> int | None:
        """The state of the store that this index was made from; None for a new file."""
        with self._connections.connection() as db:
            (found,) = db.execute("SELECT generation FROM facts").fetchone()
        return None if found is None else int(found)

    def __len__(self) -> int:
        with self._connections.connection() as db:
            (found,) = db.execute("SELECT documents FROM facts").fetchone()
        return int(found)

    # --- searching ---

    def search(self, question: str, k: int, where: Filter | None = None) -> list[LexicalHit]:
        """The k best documents that pass the filter, best first, equal ones by id."""
        if k < 0:
            raise ValueError(f"k is a number of documents, not {k}")
        wanted = self.fields.conditions(where)
        with self._connections.connection() as db, deadline(db, self._seconds):
            scores = self._best(db, sought(question), k, wanted) if k else {}
            return self._hits(db, scores, k)

    def _best(
        self, db: sqlite3.Connection, asked: Sought, k: int, wanted: Sequence[Condition]
    ) -> dict[int, float]:
        """Return the scores of the best rows: at least `k` of them where so many match."""
        if asked.phrases and asked.match:
            return self._ranked(db, asked.match, k + _MARGIN, wanted)
        terms = self._terms(db, asked.words)
        if not terms:
            return {}
        if sum(term.documents for term in terms) <= self._budget:
            return self._ranked(db, _any_of(terms), k + _MARGIN, wanted)
        return self._rescored(db, terms, max(CANDIDATES, 3 * k), wanted)

    def _terms(self, db: sqlite3.Connection, words: Sequence[str]) -> list[_Term]:
        """The words with their stems and frequencies, rarest first; unknown words are left out."""
        db.execute(_CLEAN)
        first = next(iter(self.columns))
        db.executemany(
            f"INSERT INTO temp.scratch(rowid, {_quoted(first)}) VALUES (?, ?)",
            list(enumerate(words)),
        )
        # A word that the tokenizer cuts further is as rare as its rarest piece.
        found = db.execute(
            """SELECT seen.doc, seen.term, MIN(terms.documents) FROM temp.seen
               JOIN terms USING (term) WHERE terms.documents > 0
               GROUP BY seen.doc ORDER BY 3, 2"""
        )
        terms = [_Term(words[row], stem, documents) for row, stem, documents in found]
        return list({term.stem: term for term in terms}.values())

    def _ranked(
        self, db: sqlite3.Connection, match: str, limit: int, wanted: Sequence[Condition]
    ) -> dict[int, float]:
        """The best rows that match, by FTS5's own ranking."""
        weights = ", ".join(str(float(weight)) for weight in self.columns.values())
        if not wanted:
            # Sorted inside FTS5, which is quicker than a sort of its rows.
            found = db.execute(
                "SELECT rowid, -rank FROM words WHERE words MATCH ? AND rank MATCH ? "
                "ORDER BY rank LIMIT ?",
                (match, f"bm25({weights})", limit),
            )
            return dict(found.fetchall())
        clauses, values = _clauses(wanted)
        found = db.execute(
            f"""SELECT words.rowid, -bm25(words, {weights}) AS score
                FROM words JOIN documents ON documents.row = words.rowid
                WHERE words MATCH ? AND {clauses} ORDER BY score DESC LIMIT ?""",
            (match, *values, limit),
        )
        return dict(found.fetchall())

    def _rescored(
        self,
        db: sqlite3.Connection,
        terms: Sequence[_Term],
        limit: int,
        wanted: Sequence[Condition],
    ) -> dict[int, float]:
        """Candidates by the rarest terms that fit the budget, ranked by BM25 over all of them.

        A filter may leave too few; then the next terms are asked too.
        """
        candidates: dict[int, float] = {}
        for group in self._affordable(terms):
            candidates |= self._ranked(db, _any_of(group), limit, wanted)
            if len(candidates) >= limit // 3:
                break
        return self._bm25(db, terms, list(candidates))

    def _affordable(self, terms: Sequence[_Term]) -> Iterator[list[_Term]]:
        """The terms, rarest first, in groups within the budget; one over it stands alone."""
        group: list[_Term] = []
        for term in terms:
            if group and sum(one.documents for one in (*group, term)) > self._budget:
                yield group
                group = []
            group.append(term)
        if group:
            yield group

    def _bm25(
        self, db: sqlite3.Connection, terms: Sequence[_Term], rows: list[int]
    ) -> dict[int, float]:
        """What FTS5's bm25() would give, counted on these rows alone."""
        documents, tokens = db.execute("SELECT documents, tokens FROM facts").fetchone()
        average = tokens / documents
        listed = ",".join(map(str, rows))
        sizes = db.execute(f"SELECT id, sz FROM words_docsize WHERE id IN ({listed})")
        length = {row: _tokens(size) / average for row, size in sizes}
        names = ", ".join(map(_quoted, self.columns))
        db.execute(_CLEAN)
        db.execute(
            f"INSERT INTO temp.scratch(rowid, {names}) "
            f"SELECT rowid, {names} FROM words WHERE rowid IN ({listed})"
        )
        scores = dict.fromkeys(rows, 0.0)
        for term in terms:
            rarity = math.log((documents - term.documents + 0.5) / (term.documents + 0.5))
            for row, seen in self._seen(db, term):
                grown = seen + _K1 * (1 - _B + _B * length[row])
                scores[row] += max(rarity, 1e-6) * seen * (_K1 + 1) / grown
        return scores

    def _seen(self, db: sqlite3.Connection, term: _Term) -> Iterable[tuple[int, float]]:
        weight = " ".join(
            f"WHEN '{name}' THEN {float(weight)}" for name, weight in self.columns.items()
        )
        return db.execute(
            f"SELECT doc, SUM(CASE col {weight} END) FROM temp.seen WHERE term = ? GROUP BY doc",
            (term.stem,),
        ).fetchall()

    def _hits(
        self, db: sqlite3.Connection, scores: Mapping[int, float], k: int
    ) -> list[LexicalHit]:
        """Return the k best rows as hits, equal scores in the order of their ids."""
        rows = ",".join(map(str, scores))
        ids = dict(db.execute(f"SELECT row, id FROM documents WHERE row IN ({rows})"))
        best = sorted(scores, key=lambda row: (-scores[row], ids[row]))[:k]
        return [LexicalHit(ids[row], scores[row]) for row in best]

    # --- the file ---

    def _schema(self) -> list[str]:
        fields = "".join(f", {_quoted(name)}" for name in self._names)
        columns = ", ".join(map(_quoted, self.columns))
        return [
            f"CREATE TABLE documents(row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE{fields})",
            f'CREATE VIRTUAL TABLE words USING fts5({columns}, tokenize = "{tokenizer()}")',
            "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row)",
            # In how many documents a stem stands: `vocabulary` would walk them all to say so.
            "CREATE TABLE terms(term TEXT PRIMARY KEY, documents INTEGER) WITHOUT ROWID",
            "CREATE TABLE facts(generation INTEGER, documents INTEGER, tokens INTEGER)",
            "INSERT INTO facts VALUES (NULL, 0, 0)",
        ]

    def _opened(self) -> sqlite3.Connection:
        """A connection, with a small table of its own to cut texts into stems."""
        db = _connect(self._path)
        columns = ", ".join(map(_quoted, self.columns))
        db.execute(
            f"CREATE VIRTUAL TABLE temp.scratch USING fts5({columns}, content = '', "
            f'tokenize = "{tokenizer()}")'
        )
        db.execute("CREATE VIRTUAL TABLE temp.seen USING fts5vocab(temp, scratch, instance)")
        db.execute("CREATE VIRTUAL TABLE temp.counted USING fts5vocab(temp, scratch, row)")
        return db

    @contextlib.contextmanager
    def _write(self, generation: int | None) -> Iterator[sqlite3.Connection]:
        with self._writing, self._connections.connection() as db, transaction(db):
            yield db
            if generation is not None:
                db.execute("UPDATE facts SET generation = ?", (generation,))

    def _insert(self, db: sqlite3.Connection, document: Document) -> int:
        known = self.fields.of(document.metadata)
        names = "".join(f", {_quoted(name)}" for name in known)
        row = db.execute(
            f"INSERT INTO documents(id{names}) VALUES ({_places(1 + len(known))})",
            (document.id, *map(_stored, known.values())),
        ).lastrowid
        assert row is not None
        texts = [document.texts.get(name, "") for name in self.columns]
        columns = ", ".join(map(_quoted, self.columns))
        db.execute(
            f"INSERT INTO words(rowid, {columns}) VALUES ({_places(1 + len(texts))})",
            (row, *texts),
        )
        return row

    def _forget(self, db: sqlite3.Connection, ids: Sequence[str]) -> None:
        found = [db.execute("SELECT row FROM documents WHERE id = ?", (id,)) for id in set(ids)]
        rows = [row for one in found for (row,) in one]
        self._count(db, rows, -1)
        for table, key in (("words", "rowid"), ("documents", "row")):
            db.executemany(f"DELETE FROM {table} WHERE {key} = ?", [(row,) for row in rows])

    def _count(self, db: sqlite3.Connection, rows: Sequence[int], sign: int) -> None:
        """Add to the frequencies of stems what these rows hold, or take it away."""
        columns = ", ".join(map(_quoted, self.columns))
        db.execute(_CLEAN)
        tokens = 0
        for row in rows:
            db.execute(
                f"INSERT INTO temp.scratch(rowid, {columns}) "
                f"SELECT rowid, {columns} FROM words WHERE rowid = ?",
                (row,),
            )
            (size,) = db.execute("SELECT sz FROM words_docsize WHERE id = ?", (row,)).fetchone()
            tokens += _tokens(size)
        db.execute(
            """INSERT INTO terms SELECT term, ? * doc FROM temp.counted WHERE true
               ON CONFLICT DO UPDATE SET documents = documents + excluded.documents""",
            (sign,),
        )
        db.execute(
            "UPDATE facts SET tokens = tokens + ?, documents = documents + ?",
            (sign * tokens, sign * len(rows)),
        )


def _prepare(path: Path, schema: list[str]) -> None:
    """Make the tables, anew when the file is damaged or was made for other columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wanted = "\n".join(schema)
    with contextlib.suppress(sqlite3.DatabaseError), contextlib.closing(_connect(path)) as db:
        if db.execute("SELECT made FROM made_by").fetchone() == (wanted,):
            return
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    with contextlib.closing(_connect(path)) as db:
        db.execute("BEGIN")
        for statement in schema:
            db.execute(statement)
        db.execute("CREATE TABLE made_by(made TEXT)")
        db.execute("INSERT INTO made_by VALUES (?)", (wanted,))
        db.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
    pragmas = {"journal_mode": "WAL", "synchronous": "NORMAL", "temp_store": "MEMORY"}
    return connect(path, any_thread=True, pragmas=pragmas)


@contextlib.contextmanager
def deadline(db: sqlite3.Connection, seconds: float) -> Iterator[None]:
    end = time.monotonic() + seconds
    db.set_progress_handler(lambda: time.monotonic() > end, 5_000)
    try:
        yield
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise SearchTimeout(
                f"The search took longer than {seconds:g} s; ask with fewer or rarer words"
            ) from error
        raise
    finally:
        db.set_progress_handler(None, 0)


def _any_of(terms: Iterable[_Term]) -> str:
    # Quoted, so that no word is ever an operator.
    return " OR ".join(f'"{term.word}"' for term in terms)


def _clauses(wanted: Sequence[Condition]) -> tuple[str, list[Any]]:
    clauses: list[str] = []
    values: list[Any] = []
    for part in wanted:
        name = f"documents.{_quoted(part.field)}"
        match part:
            case In(values=allowed):
                clauses.append(f"{name} IN ({_places(len(allowed))})")
                values.extend(map(_stored, allowed))
            case Range(low=low, high=high):
                # Any text is greater than any number to SQLite.
                clauses.append(f"typeof({name}) IN ('integer', 'real')")
                for operator, end in ((">=", low), ("<=", high)):
                    if end is not None:
                        clauses.append(f"{name} {operator} ?")
                        values.append(end)
    return " AND ".join(clauses), values


def _stored(value: Value) -> Value | bytes:
    """SQLite has no truth values, and 1 must not pass for one of them."""
    return bytes([value]) if isinstance(value, bool) else value


def _tokens(size: bytes) -> int:
    """The length of a document in tokens, as FTS5 writes it: a variable-length number a column."""
    total = number = 0
    for byte in size:
        number = number << 7 | byte & 0x7F
        if byte < 0x80:
            total, number = total + number, 0
    return total


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _places(count: int) -> str:
    return ", ".join("?" * count)
