"""Over all bases, records of registries are found by the words of their names."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.search.registries import find_registry_records
from readingroom.demo.corpus import write_records
from readingroom.storage.database import Database


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("registries")
    path: Path = store.get_database_path(folder)
    loading.load(path, [write_records(folder)], None)
    with closing(store.connect(path)) as database:
        yield database


@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("when was there a hearing about the school crossings bill", "hearings"),
        ("Who lobbied for the walking to school bill and for what?", "lda_filings"),
        ("How did the Senate vote on the crossings act?", "roll_call_votes"),
        ("Which committee deals with transportation?", "committees"),
        ("docket on safe crossings near schools", "regulations_dot_gov_dockets"),
        ("which party is Ada Birchwell in", "legislators"),
    ],
)
def test_a_question_finds_the_record_it_means(db: Database, question: str, source: str) -> None:
    hits = find_registry_records(db, question, 5)
    assert source in [hit.source for hit in hits[:3]]
    assert all(hit.snippet and hit.citation.citation_string for hit in hits)
    assert len({hit.id for hit in hits}) == len(hits)


@pytest.mark.parametrize(
    "question", ["", "?", '" OR folded:*', "cycle parking at Wretchwick", "a b"]
)
def test_what_shares_no_name_finds_nothing(db: Database, question: str) -> None:
    assert find_registry_records(db, question, 5) == []


def test_no_more_come_than_were_asked_for(db: Database) -> None:
    assert len(find_registry_records(db, "safe crossings for schools act vote hearing", 2)) == 2
