"""The federal base on PostgreSQL answers what it answers from its file."""

import json
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.load.copying import copy_records, count_same_answers
from readingroom.bases.federal.schema.sources import SOURCES, TABLES_BY_NAME, Source
from readingroom.bases.federal.search.full_text import find_passages
from readingroom.bases.federal.store import (
    FederalPlace,
    SharedRecords,
    connect,
    get_database_path,
    prepare_records,
)
from readingroom.storage.errors import StorageFailed
from tests.support.federal.base import Asked, load_files_into, serve_place_in_process, write_world
from tests.support.federal.made_records import amendment, write_records
from tests.support.postgres import PostgresServer, make_database

pytestmark = pytest.mark.anyio

_MOMENTS = {"took_ms", "request_id", "retrieved_at", "at", "changed_at", "resume_cursor"}


def _sample(values: list[Any]) -> list[Any]:
    """The first two of them, and the others in `make test-all`."""
    return [*values[:2], *(pytest.param(value, marks=pytest.mark.full) for value in values[2:])]


@pytest.fixture(scope="module")
async def both(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Asked, Asked]]:
    """The made-up world in a file and in a database."""
    folder = tmp_path_factory.mktemp("both")
    write_world(folder / "files")
    with (folder / "files" / "committees-current.yaml").open("a", encoding="utf-8") as committees:
        committees.write("- type: house\n  name: House Committee on Ethics\n  thomas_id: HLET\n")
    with make_database(postgres) as url:
        places = (get_database_path(folder / "embedded"), SharedRecords(url))
        for place in places:
            assert load_files_into(place, folder / "files").failed == 0
        async with (
            serve_place_in_process(places[0], folder) as in_file,
            serve_place_in_process(places[1], folder) as shared,
        ):
            yield in_file, shared


def settle(answer: Any) -> Any:
    """An answer without what tells the moment, or where a reader goes on."""
    if isinstance(answer, dict):
        return {key: settle(value) for key, value in answer.items() if key not in _MOMENTS}
    if isinstance(answer, list):
        return [settle(value) for value in answer]
    return round(answer, 3) if isinstance(answer, float) else answer


async def compare(both: tuple[Asked, Asked], path: str, **params: Any) -> Any:
    answers = []
    for face in both:
        response = await face.get(path, **params)
        answers.append((response.status_code, settle(response.json())))
    assert answers[0] == answers[1], json.dumps({"path": path, **params})
    return answers[0][1]


async def compare_tool(both: tuple[Asked, Asked], tool: str, **arguments: Any) -> Any:
    answers = [settle(await face.call(tool, **arguments)) for face in both]
    for answer in answers:
        answer.pop("content", None)
    assert answers[0] == answers[1], json.dumps({"tool": tool, **arguments})
    return answers[0]["structuredContent"]


@pytest.mark.parametrize("source", _sample([source.slug for source in SOURCES]))
async def test_lists_and_records_of_every_source(both: tuple[Asked, Asked], source: str) -> None:
    page = await compare(both, f"/{source}", limit=5)
    for record in page["results"][:2]:
        await compare(both, f"/{source}/{record['id']}")
        await compare(both, f"/{source}/{record['id']}/links")


@pytest.mark.parametrize("mode", ["search", "lexical_search", "semantic_search"])
@pytest.mark.parametrize(
    "query",
    [
        "rural broadband",
        "airport noise near schools",
        '"passenger rail" order',
        "nothing zzz",
        "act",
        "H.R. 4, 119th Congress, expand expanded expanding (broadband's) notices",
        '"rural broadband" "canals" and other purposes',
    ],
)
async def test_searches(both: tuple[Asked, Asked], mode: str, query: str) -> None:
    answer = await compare_tool(both, mode, query=query, limit=5)
    assert "results" in answer


_TITLES = (
    "S.Amdt. 3627 to S.Con.Res. 14, 117th Congress: To establish a deficit-neutral reserve fund",
    "H.R. 4907, 116th Congress, Time to Rescue United States Trusts: rescued time and times again",
    "H.R. 2822, 114th Congress: reduces funding; reduced funding (a reduction of $1,500.50)",
    "The United States of America: United States ships of United States States united",
    "States united in the United Kingdom: \u201cUnited States\u201d, \u00a7 12(b)(1)\u2019s rule",
    "An Act to act as if an act were an act",
    "Buffalo buffalo Buffalo buffalo in the zoo, in the in the zoo of the state of the state",
    "Caf\u00e9s of Vel\u00e1zquez, and other purposes",
    *["Airport noise abatement, 2021"] * 4,
    *[f"To reform noise rule {number}, and for other purposes" for number in range(30)],
)


@pytest.fixture(scope="module")
def worded(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[FederalPlace, FederalPlace]]:
    """Titles that repeat words and phrases, some of them alike, in a file and in a database."""
    records = [amendment(number, title) for number, title in enumerate(_TITLES, 1)]
    with make_database(postgres) as url:
        places = (
            get_database_path(tmp_path_factory.mktemp("worded")),
            SharedRecords(url),
        )
        for place in places:
            assert write_records(place, *records) == len(records)
        yield places


@pytest.mark.parametrize(
    ("query", "count"),
    [
        # Words with one stem each count; each has its own number here, and punctuation none.
        ("H.R. 4907, 116th Congress, Time to Rescue United States Trusts", 6),
        ("times rescues time", 1),
        ("reduced reduces reduction, $1,500.50", 3),
        ("\u00a7 12(b)(1)'s rule \u2014 4907/3627", 34),
        # A phrase counts as one, as often as it stands there, and twice beside words.
        ('"united states"', 3),
        ('"united states" act', 3),
        ('"states united" "united states" ships united', 3),
        ('"deficit-neutral reserve" fund', 1),
        ('"states ships of united states"', 1),
        ('\u201cact to act\u201d "an act" acting', 1),
        ('"rescued" rescue', 1),
        ('"Time \u201crescue" noise', 0),
        ('"cafes of velazquez"', 1),
        ('"united trusts" noise', 0),
        # Stems that are equal may overlap, and then count once for each beginning.
        ('"buffalo buffalo"', 1),
        ('"buffalo buffalo buffalo" "act to"', 2),
        ('"in the" noise', 2),
        ('"of the" "in the" "and for other purposes"', 32),
        # A word of most passages, words that are only common, many alike.
        ("to and for other purposes", 31),
        ("the of", 5),
        ('"other purposes" reform', 31),
        ("noise", 34),
        ("2021 airport noise", 34),
        ('" "" \u201c', 0),
    ],
)
def test_ranks_of_passages(
    worded: tuple[FederalPlace, FederalPlace], query: str, count: int
) -> None:
    in_file, shared = (_rank_passages(place, query) for place in worded)
    assert shared == pytest.approx(in_file, rel=1e-9)
    assert len(in_file) == count
    # A filter leaves passages out, and says nothing of how common a word or phrase is.
    for place in worded:
        odd = _rank_passages(place, query, "AND {chunk} % 2 = ?", 1)
        assert odd == pytest.approx({n: rank for n, rank in in_file.items() if n % 2}, rel=1e-9)


def test_a_phrase_is_found_by_the_index_and_its_passages_are_read_once(
    worded: tuple[FederalPlace, FederalPlace],
) -> None:
    scans_sql = "SELECT seq_scan, idx_scan FROM pg_stat_xact_user_tables WHERE relname = ?"
    with closing(connect(worded[1])) as db:
        with db.transaction():
            assert list(find_passages(db, '"other purposes" noise', "", ()))
            scans = db.execute(scans_sql, ("passage_words",)).fetchone()
            assert tuple(scans) == (0, 1)
        assert db.execute("SHOW enable_seqscan").fetchone()[0] == "on"


def _rank_passages(
    place: FederalPlace, query: str, condition: str = "", *values: Any
) -> dict[int, float]:
    with closing(connect(place)) as db:
        return dict(find_passages(db, query, condition, values))


def test_a_copy_that_ranks_otherwise_is_refused(
    worded: tuple[FederalPlace, FederalPlace], postgres: PostgresServer
) -> None:
    with make_database(postgres) as url:
        copy = SharedRecords(url)
        copy_records(worded[0], copy)
        assert count_same_answers(worded[0], copy) == 5 + len(SOURCES)
        with closing(connect(copy, writing=True)) as db, db.transaction():
            db.execute("UPDATE passage_words SET tokens = tokens + 1 WHERE chunk = 1")
        with pytest.raises(StorageFailed, match=r"are searched for 'S\.Amdt\. 3627"):
            count_same_answers(worded[0], copy)


@pytest.mark.parametrize("resource", _sample(list(TABLES_BY_NAME)))
async def test_counts_and_series(both: tuple[Asked, Asked], resource: str) -> None:
    plan = TABLES_BY_NAME[resource].aggregation_plan
    await compare_tool(both, "count", resource=resource)
    for time_field, _ in plan.date_names_and_columns:
        series = {"resource": resource, "time_field": time_field}
        await compare_tool(both, "time_series", interval="month", **series)
        for group in plan.group_names:
            await compare_tool(both, "count", resource=resource, group_by=group)
            await compare_tool(both, "time_series", interval="year", group_by=group, **series)
    for measure in plan.measures:
        await compare_tool(both, "sum", resource=resource, sum_field=measure.name)


_NAMED = [source for source in SOURCES if source.has_names]


@pytest.mark.parametrize("source", _sample(_NAMED), ids=lambda source: source.name)
async def test_names_also_misspelt(both: tuple[Asked, Asked], source: Source) -> None:
    page = await compare(both, f"/{source.slug}", limit=3)
    for record in page["results"]:
        name = record["title"]
        for query in (name, name[:4] + name[5:]):
            arguments = {"entity_type": source.name, "query": query}
            await compare_tool(both, "resolve_entity", **arguments)


async def test_dossiers_votes_and_changes(both: tuple[Asked, Asked]) -> None:
    (bill, *_) = (await compare(both, "/bills", limit=1))["results"]
    await compare_tool(both, "get_bill_dossier", bill_id=bill["id"])
    await compare_tool(both, "fetch", id=bill["id"])
    await compare_tool(both, "list_cosponsors", bill_id=bill["id"])
    for member in (await compare(both, "/legislators", limit=3))["results"]:
        await compare_tool(both, "get_legislator_dossier", bioguide_id=member["id"])
        await compare_tool(both, "list_member_votes", bioguide=member["id"])
    for vote in (await compare(both, "/roll-call-votes", limit=1))["results"]:
        await compare_tool(both, "fetch", id=vote["id"])
    await compare_tool(
        both, "list_records", source="changes", filters={"since": "2000-01-01"}, limit=5
    )


async def test_a_committee_without_a_roster(both: tuple[Asked, Asked]) -> None:
    page = await compare(both, "/committees/HLET/members")
    assert (page["results"], page["total"]) == ([], 0)
    told = await compare(both, "/committees/HLET/dossier")
    assert told["members"]["total"] == 0
    sections = {name: part for name, part in told.items() if isinstance(part, dict)}
    assert {name for name, part in sections.items() if part.get("error")} == set()


def test_no_value_is_in_an_empty_list_on_either_engine(
    worded: tuple[FederalPlace, FederalPlace],
) -> None:
    for place in worded:
        with closing(connect(place)) as db:
            for column in ("id", "congress", "record ->> 'title'"):
                sql = f"SELECT count(*) FROM amendments WHERE {column}"
                assert db.execute(f"{sql} IN ()").fetchone()[0] == 0
                assert db.execute(f"{sql} IN () AND congress = ?", (119,)).fetchone()[0] == 0
                assert db.execute(f"{sql} NOT IN ()").fetchone()[0] == len(_TITLES)
                assert list(db.iterate_tuples(f"{sql} IN ()")) == [(0,)]


async def test_a_section_that_fails_leaves_the_others_on_either_engine(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    write_world(tmp_path / "files", bills=2, votes=1)
    with make_database(postgres) as url:
        for place in (get_database_path(tmp_path / "embedded"), SharedRecords(url)):
            assert load_files_into(place, tmp_path / "files").failed == 0
            with closing(connect(place, writing=True)) as db:
                (bill,) = db.execute("SELECT bill_id FROM bill_cosponsors LIMIT 1").fetchone()
                db.execute("DROP TABLE bill_actions")
            async with serve_place_in_process(place, tmp_path) as ask:
                told = await ask.answer("get_bill_dossier", bill_id=bill)
            sections = {name: part for name, part in told.items() if isinstance(part, dict)}
            failed = [name for name, part in sections.items() if part.get("error")]
            assert failed == ["actions"]
            assert told["cosponsors"]["items"]


async def test_filters_that_fit_no_record(both: tuple[Asked, Asked]) -> None:
    found = await compare_tool(both, "search", query="noise", filters={"agency": "Sampel Agency"})
    assert found["filters_read"] == {"agency": "sample-agency"}
    call = {"name": "search", "arguments": {"query": "noise", "filters": {"topic": "Nois"}}}
    refusals = [(await face.rpc("tools/call", call))["error"] for face in both]
    assert refusals[0] == refusals[1]
    assert "the nearest: Airport Noise" in refusals[0]["message"]


@pytest.mark.full
async def test_copied_there_and_back_the_records_are_the_same(
    both: tuple[Asked, Asked], postgres: PostgresServer, tmp_path: Path
) -> None:
    in_file, _ = both
    with make_database(postgres) as url:
        shared, back = SharedRecords(url), get_database_path(tmp_path / "back")
        count = copy_records(in_file.base.service.place, shared)
        assert count == copy_records(shared, back) > 100
        async with (
            serve_place_in_process(shared, tmp_path) as there,
            serve_place_in_process(back, tmp_path) as here,
        ):
            for pair in ((in_file, there), (in_file, here)):
                await compare_tool(pair, "search", query="rural broadband", limit=5)
                await compare_tool(pair, "resolve_entity", entity_type="legislators", query="Pia")
                await compare(pair, "/bills", limit=3)
        # What is loaded next goes on with the numbers.
        write_world(tmp_path / "more", bills=3, votes=1, seed=5)
        assert load_files_into(shared, tmp_path / "more").failed == 0


def test_two_loads_at_once_both_come_in(postgres: PostgresServer, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders, 1):
        write_world(folder, bills=4, votes=1, seed=seed)
    with make_database(postgres) as url:
        place = SharedRecords(url)
        prepare_records(place)
        with ThreadPoolExecutor() as threads:
            summaries = list(threads.map(lambda folder: load_files_into(place, folder), folders))
        assert [summary.failed for summary in summaries] == [0, 0]
        with closing(place.connect(writing=False)) as db:
            rows = db.execute("SELECT count(*), count(DISTINCT seq) FROM changes").fetchone()
            assert rows[0] == rows[1] > 0
            (unworded,) = db.execute(
                "SELECT count(*) FROM passages WHERE chunk NOT IN (SELECT chunk FROM passage_words)"
            ).fetchone()
            assert unworded == 0


async def test_seats_and_citations_of_parts_and_orders(both: tuple[Asked, Asked]) -> None:
    members = await compare(both, "/legislators", limit=200)
    states = sorted({member["state"] for member in members["results"] if member["state"]})
    for state in states[:3]:
        for post in (f"junior senator from {state}", f"{state}'s at-large district"):
            await compare_tool(both, "resolve_entity", query=post, entity_type="legislators")
    for citation in ("7 CFR part 990", "7 CFR part 7", "Executive Order 13771", "7 U.S.C. 601"):
        answer = await compare(both, "/fetch", id=citation)
        assert "Ids look like" not in answer["error"]["message"], citation
