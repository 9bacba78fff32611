"""A differential machine over federal records: the same loads, and both engines answer alike."""

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_sql_filter
from readingroom.bases.federal.names.resolver import resolve_name
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.schema.entries import ParsedRecord
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search.full_text import find_passages
from readingroom.bases.federal.store import FederalPlace, SharedRecords, get_database_path
from readingroom.core.errors import KnowledgeError
from tests.support.differential import WORDS, choose_seeds, make_text
from tests.support.federal.made_records import amendment, person, withdraw, write_records
from tests.support.postgres import PostgresServer, make_database

_DAYS = (None, "2025-01-01", "2025-01-02", "2024-12-31")
_NAMES = ("Ada Lovelace", "ADA LOVELACE", "Zoë O’Neil", "Zoe ONeil", "Bo Bo", "John Smith Jr.")


@pytest.fixture
def places(postgres: PostgresServer, tmp_path: Path) -> Iterator[tuple[FederalPlace, ...]]:
    with make_database(postgres) as url:
        yield get_database_path(tmp_path), SharedRecords(url)


@pytest.mark.parametrize("seed", choose_seeds(2, 60))
def test_the_same_loads_give_the_same_answers(seed: int, places: tuple[FederalPlace, ...]) -> None:
    chance = random.Random(seed)
    history: list[str] = []
    for step in range(8):
        records = [_make_record(chance, step) for _ in range(chance.randrange(1, 14))]
        history.append(f"write {[record.record.id for record in records]}")
        _compare(history, [write_records(place, *records) for place in places])
        if chance.random() < 0.4:
            gone = chance.choice(records).record
            history.append(f"withdraw {gone.id}")
            for place in places:
                withdraw(place, gone.source, gone.id)
        question = random.Random(chance.random())
        state = question.getstate()
        answers = []
        for place in places:
            question.setstate(state)
            answers.append(_ask(place, question))
        _compare(history, answers)


def _compare(history: list[str], answers: list[Any]) -> None:
    assert answers[0] == answers[1], "\n".join(history)


def _make_record(chance: random.Random, step: int) -> ParsedRecord:
    number = chance.randrange(12)
    if chance.random() < 0.3:
        return person(number, chance.choice(_NAMES), is_current=chance.random() < 0.5)
    return amendment(
        number,
        make_text(chance, 6),
        chance.choice(_DAYS),
        congress=chance.choice((118, 119)),
        facets={"subject": chance.sample(WORDS, 2)},
        revision=f"2025-01-0{1 + step}",
    )


def _ask(place: FederalPlace, chance: random.Random) -> dict[str, Any]:
    amendments, people = SOURCES_BY_NAME["amendments"], SOURCES_BY_NAME["legislators"]
    with closing(store.connect(place)) as db:
        filters = chance.choice(({}, {"congress": 118}, {"congress": (118, 119)}))
        sql_filter = build_sql_filter(amendments.record_table, filters)
        name = chance.choice(_NAMES)
        misspelt = name[:2] + name[3:]
        return {
            "pages": _read_pages(db, sql_filter),
            "count": store.count_records(db, amendments, sql_filter),
            "records": [_read(db, f"samdt:119:{number}") for number in range(12)],
            "words": sorted(
                round(rank, 3) for _, rank in find_passages(db, chance.choice(WORDS), "", ())
            ),
            "names": [
                [
                    (match.id, match.score, match.reasons)
                    for match in resolve_name(
                        db, people, query, build_sql_filter(people.record_table, {})
                    )
                ]
                for query in (name, misspelt)
            ],
            "current": store.count_records(
                db, people, build_sql_filter(people.record_table, {"current": True})
            ),
            "changes": {
                source: (tally.new, tally.changed, tally.withdrawn, tally.first)
                for source, tally in changes.tally_changes(db, 0).items()
            },
            "progress": [
                (progress.source, progress.records, progress.newest_record_at)
                for progress in store.list_progress(db)
                if progress.records
            ],
        }


def _read_pages(db: Any, sql_filter: Any) -> list[list[str]]:
    """All pages of a list, each begun by the cursor of the one before."""
    pages: list[list[str]] = []
    after: Any = None
    while True:
        page = store.list_records(db, SOURCES_BY_NAME["amendments"], sql_filter, 3, after)
        pages.append([record["id"] for record in page.rows])
        after = page.after_key
        if after is None:
            return pages


def _read(db: Any, record_id: str) -> str:
    """The record's own bytes, or the code of the error."""
    try:
        return store.read_record_json(db, SOURCES_BY_NAME["amendments"], record_id)
    except KnowledgeError as error:
        return error.code
