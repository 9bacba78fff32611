"""How often a search of the federal base finds the record that answers a question.

    python -m benchmarks.federal.questions DATA [--split tuning|test] [--misses]

`DATA` is a data directory with the shared federal files loaded and embedded. Searches are run on
copies of its database in which only a share of the passages is embedded: the first ones, as
`federal embed` would have left them. The test half is for the record; never look at its misses.
"""

import argparse
import asyncio
import hashlib
import re
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.federal.official import OFFICIAL
from benchmarks.table import Table
from readingroom.bases.federal.models import Search
from readingroom.bases.federal.schema.sources import SOURCES, Shape
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import get_database_path
from readingroom.core.modes import Mode
from readingroom.engine.embedding.cross_encoder.reranker import Reranker, open_packaged_reranker
from readingroom.engine.embedding.embedder import Embedder
from tests.support.questions import Question, read_questions

SHARES = (0, 10, 30, 60, 100)
_DATA = OFFICIAL.parent
_NOT_WORDS = re.compile(r"\W+")
_TEXT_SOURCES = [source.name for source in SOURCES if source.shape is not Shape.REGISTRY]


def find_answers(db: sqlite3.Connection, question: Question) -> set[str]:
    """Return the ids of the searchable records that answer a question: they have its quote."""
    ids: set[str] = set()
    for document, quote in question.answers:
        ids |= _find_records(db, _DATA / document, quote)
    return ids


def _find_records(db: sqlite3.Connection, path: Path, quote: str) -> set[str]:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    if path.suffix == ".pdf":  # a statement; its record has the hash of the YAML that names it
        date_and_bill = path.stem.replace("_", ":", 1).replace(",", "-")
        return {
            id
            for (id,) in db.execute("SELECT id FROM saps")
            if id.split(":", 2)[2] == date_and_bill
        }
    quoted = _find_quoted(db, quote, sha256)
    # The records of an issue or a volume have the hash of their own part of the file.
    return quoted or _find_quoted(db, quote, None)


def _find_quoted(db: sqlite3.Connection, quote: str, sha256: str | None) -> set[str]:
    """Return the ids of the records with the quote in their fields or texts, in one file or any."""
    condition, values = ("WHERE raw_sha256 = ?", (sha256,)) if sha256 else ("", ())
    contents: dict[str, str] = {}
    for source in _TEXT_SOURCES:
        contents |= dict(db.execute(f"SELECT id, record FROM {source} {condition}", values))
    for id, text in db.execute(
        f"SELECT record_id, title || ' ' || body FROM texts {condition}", values
    ):
        contents[id] = contents.get(id, "") + text
    words = _NOT_WORDS.sub(" ", quote).lower()
    quoted = {id for id, text in contents.items() if words in _NOT_WORDS.sub(" ", text).lower()}
    return quoted or (set(contents) if sha256 and len(contents) == 1 else set())


async def measure(
    data: Path, file_name: str, split: str, shows_misses: bool, reranker: Reranker | None
) -> Table:
    """Return the hit rates of each mode at each share of embedded passages."""
    questions = [question for question in read_questions(file_name) if question.split == split]
    path = get_database_path(data)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        answers = {question: find_answers(db, question) for question in questions}
    asked = [question for question in questions if answers[question]]
    embedder = Embedder(data / "models")
    embedder.reranker = reranker
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for share in SHARES:
            copy = Path(folder) / f"{share}.db"
            _copy_embedded_in_part(path, copy, share)
            service = FederalService(copy, embedder)
            mode: Mode = "hybrid" if share else "lexical"
            places = [
                await _find_place(service, question, answers[question], mode) for question in asked
            ]
            rows.append((f"{share} %" if share else "words alone", *_describe(asked, places)))
            if shows_misses and share == SHARES[-1]:
                _print_misses(asked, places)
            service.store.close()
    header = (
        "embedded",
        "hit@1",
        "hit@3",
        "hit@10",
        "statements, hit@1",
        "hit@3",
        "no rare word, hit@1",
        "hit@3",
    )
    left_out = len(questions) - len(asked)
    note = (
        f"The {len(asked)} {split} questions of `{file_name}.tsv` that a text answers; "
        f"{left_out} are answered by people, committees, votes or filings, which have none."
    )
    return Table(f"Federal questions, {split}", header, tuple(rows), note)


def _copy_embedded_in_part(path: Path, copy: Path, share: int) -> None:
    """Copy a database, and leave the first passages of it embedded, as `federal embed` would."""
    with (
        closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(copy)) as db,
    ):
        original.backup(db)
        (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
        kept = "SELECT chunk FROM vectors ORDER BY chunk LIMIT ?"
        db.execute(f"DELETE FROM vectors WHERE chunk NOT IN ({kept})", (count * share // 100,))
        db.commit()


async def _find_place(
    service: FederalService, question: Question, answers: set[str], mode: Mode
) -> int:
    """Return the place of the first right record among the first ten hits, else 99."""
    answer = await service.search(Search(query=question.question, limit=10), mode)
    ids = [hit.id for hit in answer.results]
    return min((ids.index(id) + 1 for id in answers if id in ids), default=99)


def _describe(asked: Sequence[Question], places: Sequence[int]) -> tuple[str, ...]:
    statements = [
        place
        for question, place in zip(asked, places, strict=True)
        if "/saps/" in question.document
    ]
    lay = [
        place
        for question, place in zip(asked, places, strict=True)
        if question.style == "no_rare_word"
    ]
    return (
        *(_compute_share(places, k) for k in (1, 3, 10)),
        *(_compute_share(statements, k) for k in (1, 3)),
        *(_compute_share(lay, k) for k in (1, 3)),
    )


def _compute_share(places: Sequence[int], k: int) -> str:
    return f"{sum(place <= k for place in places) / len(places):.3f}"


def _print_misses(asked: Sequence[Question], places: Sequence[int]) -> None:
    for question, place in zip(asked, places, strict=True):
        if place > 1:
            print(place, question.id, question.question, question.document, sep="\t")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--file", default="federal", help="in tests/fixtures/questions [federal]")
    parser.add_argument("--split", default="tuning", choices=("tuning", "test"))
    parser.add_argument("--misses", action="store_true", help="print what is not found first")
    parser.add_argument("--no-second-look", action="store_true")
    options = parser.parse_args()
    if options.misses and options.split == "test":
        parser.error("the misses of the test half are not looked at")
    reranker = None if options.no_second_look else open_packaged_reranker(options.data / "models")
    table = measure(options.data, options.file, options.split, options.misses, reranker)
    print(asyncio.run(table))


if __name__ == "__main__":
    main()
