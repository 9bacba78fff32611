"""A large federal file, made from a seed: bills, passages with vectors, votes, as a load leaves it.

Words are drawn by Zipf's law from a made-up vocabulary, so that some are everywhere and most are
rare; vectors lie around centres, as those of real texts do.
"""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.billstatus import BillStatusLoader
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.entries import FileStamp, ParsedRecord, SearchableFields
from tests.support.federal.world import World

MODEL = "synthetic/1"
_CHUNKS_PER_BILL = 5
_BATCH_SIZE = 5_000
_SYLLABLES = ("ba", "do", "fi", "gu", "ka", "lo", "mi", "nu", "pa", "re", "so", "ti", "va", "ze")


@dataclass(frozen=True)
class Size:
    bills: int
    votes: int

    @property
    def chunks(self) -> int:
        return self.bills * _CHUNKS_PER_BILL


class Vocabulary:
    """Twenty thousand words; the n-th is about n times rarer than the first."""

    def __init__(self, seed: int, words: int = 20_000) -> None:
        random_source = random.Random(1)  # whatever is drawn, it is drawn from the same words
        self.words = [
            "".join(random_source.choices(_SYLLABLES, k=2 + n % 3)) + str(n) for n in range(words)
        ]
        self._numbers = np.random.default_rng(seed)
        weights = 1 / (np.arange(words) + 10)
        self._cumulated = np.cumsum(weights / weights.sum())

    def passage(self, words: int = 110) -> str:
        drawn = np.searchsorted(self._cumulated, self._numbers.random(words))
        return " ".join(self.words[min(n, len(self.words) - 1)] for n in drawn)

    def question(self, words: int = 4) -> str:
        """Content words as a question has them: neither the commonest nor the rarest."""
        return " ".join(self.words[int(n)] for n in self._numbers.integers(100, 5_000, words))


class RandomEmbedder:
    """Stands in for the model: a vector of the same kind as the stored ones, at no cost."""

    identity = MODEL
    reranker = None

    def __init__(self, seed: int = 3) -> None:
        self._numbers = np.random.default_rng(seed)
        self.centres = _make_centres()

    def embed(self, text: str) -> NDArray[np.float32]:
        return _scatter_around(self.centres[[len(text) % len(self.centres)]], self._numbers)[0]


def build_database(path: Path, size: Size, seed: int = 1) -> None:
    """Make the file at `path`; a file that is there already is kept."""

    def fill(db: sqlite3.Connection) -> None:
        _add_people_and_votes(db, size.votes, seed)
        _add_bills(db, size.bills, seed)

    make_database(path, fill)


def make_database(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """A federal file that is there whole or not at all; one that is there already is kept."""
    if path.exists():
        return
    unfinished_path = path.with_suffix(".making")
    for suffix in ("", "-wal", "-shm"):
        unfinished_path.with_name(unfinished_path.name + suffix).unlink(missing_ok=True)
    store.prepare_records(unfinished_path)
    with closing(store.connect(unfinished_path, writing=True)) as db:
        db.execute("PRAGMA synchronous = OFF")
        fill(db)
        Writer(db).update_source_counts()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    unfinished_path.rename(path)


def _add_people_and_votes(db: sqlite3.Connection, votes: int, seed: int) -> None:
    world = World(seed, people=500)
    members = world.members
    db.execute("BEGIN")
    db.executemany(
        "INSERT INTO legislators (id, record, loader) VALUES (?, ?, 'bench')",
        (
            (member.bioguide, json.dumps({"id": member.bioguide, "title": member.last}))
            for member in members
        ),
    )
    random_source = random.Random(seed)
    for number in range(1, votes // len(members) + 1):
        id = f"house:118:1:{number}"
        record = {"id": id, "title": id, "congress": 118, "question": "On Passage", "bills": []}
        db.execute(
            "INSERT INTO roll_call_votes (id, record, loader) VALUES (?, ?, 'bench')",
            (id, json.dumps(record)),
        )
        db.executemany(
            "INSERT INTO member_votes VALUES (?, ?, ?, NULL, 118, ?, ?, 'D', 'MA', ?)",
            (
                (id, position, member.bioguide, f"2023#{number:05}", member.last,
                 random_source.choice(("Yea", "Nay")))
                for position, member in enumerate(members, start=1)
            ),
        )  # fmt: skip
    db.execute("COMMIT")


def _add_bills(db: sqlite3.Connection, count: int, seed: int) -> None:
    words, numbers = Vocabulary(seed), np.random.default_rng(seed)
    centres = _make_centres()
    entries = _parse_bills(seed)
    template = next(entries).record.model_dump_json(exclude={"loaded_up_to"})
    ids = iter(range(1, count + 1))
    while batch := list(islice(ids, _BATCH_SIZE)):
        rows = [_make_bill_row(template, number, words) for number in batch]
        db.execute("BEGIN")
        db.executemany("INSERT INTO bills (id, record, loader) VALUES (?, ?, 'bench')", rows)
        db.executemany(
            "INSERT INTO documents VALUES (?, ?, 'bills', ?)",
            ((n, row[0], "2025-06-01") for n, row in zip(batch, rows, strict=True)),
        )
        db.executemany(
            "INSERT INTO facets VALUES ('congress', ?, ?)",
            ((str(_congress_of(n)), n) for n in batch),
        )
        chunks = [(n, part) for n in batch for part in range(_CHUNKS_PER_BILL)]
        first = (batch[0] - 1) * _CHUNKS_PER_BILL + 1
        db.executemany(
            "INSERT INTO chunks VALUES (?, ?, 'text', ?)",
            ((first + position, *chunk) for position, chunk in enumerate(chunks)),
        )
        db.executemany(
            "INSERT INTO passages VALUES (?, 0, '', '', '', ?)",
            ((first + position, words.passage()) for position in range(len(chunks))),
        )
        db.execute(
            """INSERT INTO passages_fts (rowid, title, abstract, action, body)
               SELECT chunk, title, abstract, action, body FROM passages WHERE chunk >= ?""",
            (first,),
        )
        vectors = _scatter_around(centres[numbers.integers(0, len(centres), len(chunks))], numbers)
        db.executemany(
            "INSERT INTO vectors (chunk, model, embedding) VALUES (?, ?, ?)",
            ((first + position, MODEL, row.tobytes()) for position, row in enumerate(vectors)),
        )
        db.execute("COMMIT")


def _parse_bills(seed: int) -> Iterator[ParsedRecord]:
    """Real entries of the real loader, one bill each."""
    for name, text in World(seed).bills(10):
        file = RawFile(name, text.encode(), lambda other: None)
        for entry in BillStatusLoader().parse(
            file, FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)
        ):
            if isinstance(entry.searchable_fields, SearchableFields):
                yield entry


def _make_bill_row(template: str, number: int, words: Vocabulary) -> tuple[str, str]:
    record = json.loads(template)
    id = f"hr:{_congress_of(number)}:{number}"
    record |= {"id": id, "congress": _congress_of(number), "type": "hr", "number": number}
    record["title"] = record["citation_string"] = words.passage(8)
    return id, json.dumps(record)


def _congress_of(number: int) -> int:
    return 110 + number % 10


def _make_centres() -> NDArray[np.float32]:
    return np.random.default_rng(7).standard_normal((400, 384), dtype=np.float32)


def _scatter_around(
    centres: NDArray[np.float32], numbers: np.random.Generator
) -> NDArray[np.float32]:
    rows = centres + 0.6 * numbers.standard_normal(centres.shape, dtype=np.float32)
    unit_rows: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit_rows
