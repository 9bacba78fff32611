"""The body-bearing sources: each in its native format, found, fetched, listed and cited."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.entries import Entry, Origin
from readingroom.bases.federal.loaders import Loader
from readingroom.bases.federal.loaders.files import RawFile
from readingroom.bases.federal.service import FILE
from readingroom.bases.federal.sources import BY_NAME, Shape, names_of, of_shape
from readingroom.core.ids import federal_id
from tests.federal import MADE_UP, asked, loaded, write_world
from tests.requirements import requirement

ORIGIN = Origin("2026-01-01T00:00:00+00:00", "0" * 64)
BODIES = names_of(of_shape(Shape.BODY))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("bodies")
    write_world(data / "files", bills=5)
    loaded(data, data / "files")
    return data


def rows(data: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(data / "federal" / FILE)) as db:
        return db.execute(sql, values).fetchall()


def read(loader: Loader, name: str, data: str | bytes) -> list[Entry]:
    raw = data.encode() if isinstance(data, str) else data
    return list(loader.read(RawFile(name, raw, lambda other: None), ORIGIN))


# --- every source, every way ---


@requirement("federal:bodies")
def test_there_are_eleven_sources_with_a_body() -> None:
    assert sorted(BODIES) == [
        "amendments",
        "bills",
        "cbo_cost_estimates",
        "cfr_sections",
        "committee_reports",
        "congressional_record",
        "crs_reports",
        "federal_register",
        "presidential_documents",
        "public_laws",
        "statute_compilations",
    ]


@pytest.mark.anyio
@requirement("federal:bodies")
@pytest.mark.parametrize("source", BODIES)
async def test_a_body_source_answers_by_search_fetch_and_rest(world: Path, source: str) -> None:
    path = f"/{BY_NAME[source].path}"
    async with asked(world) as ask:
        (listed, *_) = (await ask.record(path))["results"]
        assert federal_id(listed["id"]).source == source
        assert await ask.record(f"{path}/{listed['id']}") == listed
        for tool in ("search", "lexical_search", "semantic_search"):
            found = await ask.answer(tool, query=listed["title"], source=source)
            assert listed["id"] in [one["id"] for one in found["results"]], tool
            assert {one["source"] for one in found["results"]} == {source}
        hit = next(one for one in found["results"] if one["id"] == listed["id"])
        assert hit["citation"]["citation_string"] == listed["citation_string"]
        fetched = await ask.answer("fetch", id=listed["id"])
        assert fetched["record"] == listed
        assert fetched["text"]
        assert fetched["citation"]["url"].startswith("https://")


@pytest.mark.anyio
@pytest.mark.data
@requirement("federal:bodies")
@pytest.mark.parametrize("source", sorted(set(BODIES) - MADE_UP))
async def test_official_bodies_are_found_by_words_of_theirs(official: Path, source: str) -> None:
    async with asked(official) as ask:
        (listed, *_) = (await ask.record(f"/{BY_NAME[source].path}", limit=1))["results"]
        found = await ask.answer("lexical_search", query=listed["title"], source=source, limit=200)
        assert listed["id"] in [one["id"] for one in found["results"]]
        assert (await ask.answer("fetch", id=listed["id"]))["record"]["id"] == listed["id"]
