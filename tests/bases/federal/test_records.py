"""The federal base over MCP and REST: records, lists, texts, search, fetch, errors."""

import base64
import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import from_json

from readingroom import __version__
from readingroom.bases.federal import store
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.fold import load_vocabulary
from readingroom.bases.federal.schema.sources import (
    SOURCES,
    SOURCES_BY_NAME,
    Shape,
    Source,
    list_source_names,
    list_sources_of_shape,
)
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import get_database_path
from readingroom.core.errors import RecordNotFound
from tests.requirements import requirement
from tests.support.federal.base import (
    MADE_UP,
    HashedWords,
    NoModel,
    load_files,
    serve_in_process,
    trace_statements,
    write_world,
    write_world_files,
)
from tests.support.kit import LEGACY, connect_http, read_body, serve_room

pytestmark = pytest.mark.anyio

TYPED = (
    "get_bill",
    "get_bill_text",
    "get_committee",
    "get_legislator",
    "list_committee_members",
    "list_cosponsors",
    "list_member_votes",
)
SEARCHES = ("lexical_search", "search", "semantic_search")
OTHERS = (
    "count",
    "fetch",
    "get_bill_dossier",
    "get_committee_dossier",
    "get_legislator_dossier",
    "get_public_law_dossier",
    "list_records",
    "resolve_entity",
    "sum",
    "time_series",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world_files(tmp_path_factory.mktemp("world"))


@pytest.fixture
def a_bill(world: Path) -> str:
    with sqlite3.connect(get_database_path(world)) as db:
        return str(
            db.execute("SELECT bill_id FROM bill_cosponsors ORDER BY bill_id LIMIT 1").fetchone()[0]
        )


# --- the protocol ---


@requirement("federal:AC-01", "federal:AC-02", "federal:AC-04", "federal:AC-09", "federal:landing")
async def test_alone_it_is_josh_on_streamable_http_with_every_tool(tmp_path: Path) -> None:
    with serve_room("federal", data=tmp_path / "data") as served:
        async with connect_http(served.url + "/mcp", LEGACY) as client:
            assert client.server_info.name == "josh"
            assert client.server_info.version == __version__
            assert client.protocol_version == "2025-11-25"
            names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == sorted((*TYPED, *SEARCHES, *OTHERS))
        assert served.get("/sse").status_code == 404
        assert served.get("/mcp", Accept="text/event-stream").status_code == 405
        page = served.get("/mcp", Accept="text/html")
        assert page.headers["content-type"].startswith("text/html")
        assert served.get("/v1/bills").json()["results"] == []


@requirement("federal:AC-01")
async def test_it_is_not_served_over_stdio(tmp_path: Path) -> None:
    from tests.support.kit import run

    refused = run("stdio", "federal", "--data", str(tmp_path))
    assert refused.returncode == 2
    assert "is not one of 'guidance', 'text'" in refused.stderr


@requirement("federal:shared-process", "federal:rate-pool")
async def test_rest_and_mcp_share_a_process_a_key_and_a_limit(tmp_path: Path) -> None:
    env = {"MCP_API_KEY": "sesame", "READINGROOM_RATE_LIMIT": "3"}
    with serve_room("federal", data=tmp_path / "data", env=env) as served:
        assert served.get("/v1/bills").status_code == 401
        key = {"Authorization": "Bearer sesame", "X-Request-ID": "mine-1"}
        started = time.monotonic()
        first = served.get("/v1/bills", **key)
        assert first.headers["x-request-id"] == "mine-1"
        # The page for browsers is open to everybody; a client that wants a stream is not one.
        key["Accept"] = "text/event-stream, application/json"
        statuses = [served.get(path, **key).status_code for path in ("/mcp", "/v1/bills") * 4]
        refill_count = int((time.monotonic() - started) / 20)
    assert statuses[:2] == [405, 200]
    # Three a minute for both together, and on a busy machine one more for each 20 s.
    assert statuses.count(429) >= 6 - refill_count


# --- class A and C: records ---


@requirement("federal:A", "federal:AC-06")
async def test_the_typed_tools_answer_what_rest_answers(world: Path, a_bill: str) -> None:
    async with serve_in_process(world) as ask:
        bill = await ask.answer("get_bill", bill_id=a_bill)
        assert bill == await ask.record(f"/bills/{a_bill}")
        sponsor = bill["sponsors"][0]["bioguide_id"]
        person = await ask.answer("get_legislator", bioguide=sponsor)
        assert person == await ask.record(f"/legislators/{sponsor}")
        assert await ask.answer("list_cosponsors", bill_id=a_bill) == await ask.record(
            f"/bills/{a_bill}/cosponsors"
        )
        votes = await ask.answer("list_member_votes", bioguide=sponsor, congress=118)
        assert votes == await ask.record(f"/legislators/{sponsor}/votes", congress=118)
        assert votes["total"] == 3
        assert votes["results"][0]["position"] in ("Yea", "Nay", "Not Voting")


@pytest.mark.data
@requirement("federal:A", "federal:votes")
async def test_official_records_are_found_by_their_ids(official: Path) -> None:
    async with serve_in_process(official) as ask:
        bill = await ask.answer("get_bill", bill_id="H.R. 2471, 117th Congress")
        assert bill["title"] == "Consolidated Appropriations Act, 2022"
        assert bill["laws"] == ["pl:117-103"]
        assert bill["sponsors"][0]["bioguide_id"] == "J000294"
        committee = await ask.answer("get_committee", id="hsag00")
        assert committee["name"] == "House Committee on Agriculture"
        members = await ask.answer("list_committee_members", id="HSAG")
        assert members["results"][0]["role"] == "Chair"
        assert members["congress"] == 119
        cosponsors = await ask.answer("list_cosponsors", bill_id="hr:117:6658", limit=200)
        assert cosponsors["total"] == 111
        voted = await ask.answer("list_member_votes", bioguide="C000127")
        assert [(one["vote_id"], one["position"]) for one in voted["results"]] == [
            ("senate:108:2:213", "Nay")
        ]
        how = await ask.record("/roll-call-votes/house:118:1:37/members")
        assert {one["bioguide_id"]: one["position"] for one in how["results"]}["A000370"] == "Aye"


@pytest.mark.data
@requirement("federal:A")
async def test_a_long_bill_is_read_to_its_end_in_pieces(official: Path) -> None:
    async with serve_in_process(official) as ask:
        read, offset = "", 0
        while offset is not None:
            piece = await ask.answer("get_bill_text", bill_id="s:110:2062", offset=offset)
            assert len(piece["text"]) <= 20_000
            read, offset = read + piece["text"], piece["next_offset"]
            if offset:
                more = await ask.web.get(piece["more_url"])
                assert more.json()["offset"] == offset
        assert len(read) == piece["total_chars"] > 40_000
        assert "Native American Housing" in read


@requirement("federal:AC-22", "federal:errors", "federal:not-found", "federal:C")
async def test_an_id_without_a_record_and_a_text_that_is_no_id(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for name, arguments, code in (
            ("get_bill", {"bill_id": "hr:1:1"}, "record_not_found"),
            ("fetch", {"id": "R47892"}, "record_not_found"),
            ("fetch", {"id": "what is this"}, "unrecognized_id_format"),
        ):
            result = await ask.call(name, **arguments)
            assert result["isError"]
            meta = result["_meta"]
            assert meta["error_code"] == code
            first = result["content"][0]["text"]
            assert f"code={code}" in first
            assert f"request_id={meta['request_id']}" in first
            assert result["content"][1]["text"] == f"{code} {meta['request_id']}"
        assert any(form.startswith("hr:") for form in meta["hint"]["valid_prefixes"])
        # A number of the Register is looked for among the President's papers too.
        absent = (await ask.call("fetch", id="2026-08558"))["_meta"]
        assert absent["hint"] == {"source": "federal_register"}
        rest = await ask.get("/bills/hr:1:1")
        assert rest.status_code == 404
        assert rest.json()["error"]["code"] == "record_not_found"
        assert rest.json()["error"]["request_id"] == rest.headers["x-request-id"]


@requirement("federal:AC-23")
@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("get_bill", {}, "bill_id"),
        ("get_bill", {"bill_id": 1}, "bill_id"),
        ("search", {"query": "x", "limit": 0}, "limit"),
        ("search", {"query": "x", "since": "yesterday"}, "since"),
        ("search", {"query": "x", "filters": {"colour": "red"}}, "filters.colour"),
        ("fetch", {"id": "hr:119:1", "nonsense": 1}, "nonsense"),
        ("search", {"query": "x", "source": 5}, "source"),
        ("search", {"query": "x", "source": {"bills": 1}}, "source"),
        ("count", {"resource": "bills", "filters": {"congress": None}}, "filters.congress"),
        ("count", {"resource": "bills", "filters": {"congress": True}}, "filters.congress"),
        ("fetch", {"id": "hr:119:1", "offset": 10**30}, "offset"),
        ("time_series", {"resource": "bills", "interval": "year"}, "time_field"),
    ],
)
async def test_bad_arguments_are_invalid_params_that_name_the_field(
    world: Path, name: str, arguments: dict[str, Any], field: str
) -> None:
    async with serve_in_process(world) as ask:
        told = await ask.rpc("tools/call", {"name": name, "arguments": arguments})
        assert told["error"]["code"] == -32602
        assert told["error"]["message"].startswith(f"Invalid params: {field}: ")
        assert [one["field"] for one in told["error"]["data"]["errors"]] == [field]


@requirement("federal:errors", "room:bounds")
async def test_a_parameter_that_does_not_fit_is_named_as_rest_calls_it(
    world: Path, a_bill: str
) -> None:
    async with serve_in_process(world) as ask:
        for path, field in (
            ("/bills?aggregate=sum", "sum_field"),
            ("/bills?group_by=party", "aggregate"),
            ("/bills?time_interval=year", "bucket_by_time"),
            ("/bills?bucket_by_time=colour", "bucket_by_time"),
            ("/bills?aggregate=count&group_by=colour", "group_by"),
            ("/legislators?q=Smith&aggregate=count", "q"),
            ("/member-votes", "aggregate"),
            ("/changes", "since"),
            (f"/search?q=x&source={'x' * 101}", "source.0"),
            (f"/search?q=x&source={'bills,' * 31}", "source"),
            (f"/bills/{a_bill}?colour=red", "colour"),
            (f"/bills/{'1' * 201}", "id"),
            (f"/bills/{a_bill}/dossier?colour=red", "colour"),
            (f"/bills/{a_bill}/cosponsors?colour=red", "colour"),
            (f"/bills/{a_bill}/links?colour=red", "colour"),
            (f"/fetch?id={a_bill}&colour=red", "colour"),
        ):
            refused = await ask.web.get(f"/v1{path}")
            told = refused.json()["error"]
            assert (refused.status_code, told["code"]) == (422, "validation_error"), path
            assert [one["field"] for one in told["hint"]["errors"]] == [field], path


async def test_sources_come_with_commas_or_one_by_one(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for written in ("source=bills,saps", "source=bills&source=saps", "source=bills,,saps,"):
            found = (await ask.web.get(f"/v1/search?q=x&{written}")).json()
            assert [one["source"] for one in found["searched"]] == ["bills", "saps"], written
        everything = (await ask.web.get("/v1/search?q=x&source=,")).json()
        assert len(everything["searched"]) > 2


async def test_a_withdrawn_record_is_gone_and_names_its_successor(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=2)
    load_files(tmp_path, tmp_path / "files")
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        (old,), (new,) = db.execute("SELECT id FROM bills ORDER BY id").fetchall()
        writer = Writer(db)
        with writer.transaction():
            writer.withdraw_record(
                SOURCES_BY_NAME["bills"], old, "2025-05-05", "entered in error", new
            )
            writer.update_source_counts()
    async with serve_in_process(tmp_path) as ask:
        gone = await ask.get(f"/bills/{old}")
        assert gone.status_code == 410
        assert gone.json()["error"]["hint"] == {"successor_id": new}
        listed = await ask.record("/bills")
        assert [one["id"] for one in listed["results"]] == [new]
        found = await ask.answer("search", query="purposes", source="bills")
        assert [one["id"] for one in found["results"]] == [new]


@requirement("federal:paging")
async def test_cursors_lead_through_every_record_once(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for source in SOURCES:
            whole = await ask.record(f"/{source.slug}", limit=200)
            assert not whole["has_more"]
            seen, cursor = [], None
            while True:
                page = await ask.record(
                    f"/{source.slug}", limit=7, **({"cursor": cursor} if cursor else {})
                )
                seen += [one["id"] for one in page["results"]]
                cursor = page["next_cursor"]
                assert page["has_more"] == (cursor is not None)
                if cursor is None:
                    break
            assert seen == [one["id"] for one in whole["results"]]
            assert len(set(seen)) == len(seen)
        refused = await ask.get("/bills", cursor="nonsense")
        assert refused.json()["error"]["code"] == "invalid_cursor"


async def test_lists_are_narrowed_by_their_filters(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        senate = (await ask.record("/bills", chamber="senate", limit=200))["results"]
        assert senate == [one for one in bills if one["origin_chamber"] == "senate"] != []
        day = bills[10]["published_at"]
        since = (await ask.record("/bills", since=day, limit=200))["results"]
        assert since == [one for one in bills if one["published_at"] >= day]
        sponsored = bills[0]["sponsors"][0]["bioguide_id"]
        theirs = (await ask.record("/bills", sponsor=sponsored, limit=200))["results"]
        assert bills[0] in theirs
        assert (await ask.get("/bills", colour="red")).status_code == 422


@requirement("federal:AC-08")
async def test_typed_lookups_read_neither_words_nor_vectors(world: Path, a_bill: str) -> None:
    async with serve_in_process(world) as ask:
        statements = trace_statements(ask.base)
        bill = await ask.answer("get_bill", bill_id=a_bill)
        sponsor = bill["sponsors"][0]["bioguide_id"]
        await ask.answer("get_legislator", bioguide=sponsor)
        await ask.answer("list_cosponsors", bill_id=a_bill)
        await ask.answer("list_member_votes", bioguide=sponsor)
        await ask.answer("get_committee", id="HSAG")
        assert (await ask.answer("list_committee_members", id="HSAG"))["total"] == 3
        assert (await ask.answer("get_bill_text", bill_id=_find_record_with_text(world)))["text"]
        await ask.answer("fetch", id=a_bill)
        assert statements
        for statement in statements:
            assert "_fts" not in statement
            assert "vectors" not in statement
            assert "passages" not in statement


@requirement("federal:AC-11")
async def test_lexical_search_reads_no_vectors(world: Path) -> None:
    class NeverAsked(HashedWords):
        def embed(self, text: str) -> Any:
            raise AssertionError("lexical search asked for a vector")

    async with serve_in_process(world, NeverAsked()) as ask:
        statements = trace_statements(ask.base)
        assert (await ask.answer("lexical_search", query="rural broadband"))["results"]
        assert any("passages_fts" in one for one in statements)
        assert not any("vectors" in one for one in statements)


def _find_record_with_text(world: Path) -> str:
    with closing(sqlite3.connect(get_database_path(world))) as db:
        of_bills = "SELECT record_id FROM texts JOIN bills ON bills.id = record_id ORDER BY 1"
        return str(db.execute(of_bills).fetchone()[0])


# --- class B: search ---


@requirement("federal:AC-05")
@pytest.mark.parametrize(
    ("tool", "mode"),
    [("search", "hybrid"), ("lexical_search", "lexical"), ("semantic_search", "semantic")],
)
async def test_rest_search_and_the_tool_give_the_same_answer(
    world: Path, tool: str, mode: str
) -> None:
    async with serve_in_process(world) as ask:
        asked_for = {"since": "2025-01-01", "until": "2026-12-31", "limit": 5, "offset": 2}
        told = await ask.answer(
            tool,
            query="rural broadband",
            source=["bills", "fr"],
            filters={"congress": 119},
            **asked_for,
        )
        rest = await ask.record(
            "/search", q="rural broadband", source="bills,fr", mode=mode, congress=119, **asked_for
        )
        assert told["results"]
        assert told.pop("took_ms") >= 0
        assert rest.pop("took_ms") >= 0
        assert told == rest


@requirement("federal:AC-07", "federal:chatgpt", "federal:loaded-up-to")
async def test_what_search_finds_fetch_gives(world: Path) -> None:
    async with serve_in_process(world) as ask:
        query = "passenger rail statement order noise broadband"
        found = await ask.answer("search", query=query, limit=50)
        assert {one["source"] for one in found["results"]} >= {
            "bills",
            "federal_register",
            "presidential_documents",
            "saps",
        }
        complete = {one["source"]: one["loaded_up_to"] for one in found["searched"]}
        assert complete["saps"] == "2025-03-02"  # the day the archive was fetched
        assert complete["bills"] is None  # files of single bills say nothing about the others
        for one in found["results"]:
            assert one["id"] and one["title"] and one["url"] and one["snippet"]
            fetched = await ask.answer("fetch", id=one["id"])
            assert (fetched["id"], fetched["title"], fetched["url"]) == (
                one["id"],
                one["title"],
                one["url"],
            )
            assert fetched["text"]
            assert fetched["metadata"]["loaded_up_to"] == complete[one["source"]]
            assert fetched["metadata"]["as_of"]
            assert fetched["citation"] == one["citation"]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("count", [100, pytest.param(500, marks=pytest.mark.full)])
@requirement("federal:AC-07")
async def test_all_that_searches_over_every_source_find_fetches(official: Path, count: int) -> None:
    async with serve_in_process(official) as ask:
        service = ask.base.service
        queries = list(_draw_queries(official, count))
        fetched: set[str] = set()
        for number, (query, source) in enumerate(queries):
            tool = "lexical_search" if source == "saps" or number % 2 else "search"
            found = await ask.answer(tool, query=query, source=source, limit=5)
            assert found["results"], (query, source)
            for one in found["results"]:
                if one["id"] not in fetched:
                    assert (await service.fetch_record(one["id"])).id == one["id"]
                    fetched.add(one["id"])
        assert len(queries) == count
        searchable = set(list_source_names(list_sources_of_shape(Shape.BODY, Shape.SHORT)))
        assert {source for _, source in queries} == searchable - MADE_UP


def _draw_queries(data: Path, count: int) -> Iterator[tuple[str, str]]:
    """Words of real titles, of every source in turn."""
    with sqlite3.connect(get_database_path(data)) as db:
        titles = {
            source.name: [
                row[0]
                for row in db.execute(
                    f"SELECT json_extract(record, '$.title') FROM {source.name} ORDER BY id"
                )
            ]
            for source in list_sources_of_shape(Shape.BODY, Shape.SHORT)
            if source.name not in MADE_UP
        }
    for number in range(count):
        source = list(titles)[number % len(titles)]
        title = titles[source][(number * 37) % len(titles[source])]
        yield " ".join(title.split()[-8:]), source


@pytest.mark.data
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.full)])
@requirement("federal:C")
async def test_every_id_in_the_database_resolves_through_exactly_one_endpoint(
    official: Path, step: int
) -> None:
    async with serve_in_process(official) as ask:
        for source in SOURCES:
            ids = ask.base.service.store.query_now(
                lambda db, name=source.name: [
                    row["id"] for row in db.execute(f"SELECT id FROM {name} ORDER BY id")
                ]
            )
            assert bool(ids) == (source.name not in MADE_UP), source.name
            for id in ids[::step]:
                assert await _list_endpoints(ask.base.service, id) == [source.name]
            for id in ids[:: max(1, len(ids) // 5)]:
                assert (await ask.record(f"/{source.slug}/{id}"))["id"] == id
                assert (
                    await ask.get(f"/{_pick_another_source(source).slug}/{id}")
                ).status_code == 404


async def _list_endpoints(service: FederalService, id: str) -> list[str]:
    """The sources whose record endpoint answers this id, asked of the handler behind each."""
    answering = []
    for source in SOURCES:
        with contextlib.suppress(RecordNotFound):
            told = from_json(await service.read_record_json(source, id))
            assert told["id"] == id
            answering.append(source.name)
    return answering


def _pick_another_source(source: Source) -> Source:
    return SOURCES[SOURCES.index(source) - 1]


@requirement("federal:AC-10")
async def test_filters_narrow_before_anything_is_scored(tmp_path: Path) -> None:
    """The one bill that passes is the worst of all matches: filtered after, it would be lost."""
    world = write_world(tmp_path / "files", bills=0, votes=0)
    for number, (name, text) in enumerate(world.bills(120)):
        title = "Quantum gravity" if number != 60 else "Quantum"
        text = text.replace("<title>To ", f"<title>{title} ")
        if number == 60:
            text = text.replace("<congress>119", "<congress>116")
        (tmp_path / "files" / name).write_text(text, "utf-8")
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        for tool in SEARCHES:
            found = await ask.answer(
                tool, query="quantum gravity", source="bills", filters={"congress": 116}, limit=1
            )
            assert [one["id"].split(":")[1] for one in found["results"]] == ["116"], tool
            assert found["total"] == 1


@requirement("federal:AC-12", "federal:B")
@pytest.mark.parametrize("tool", SEARCHES)
@pytest.mark.parametrize("source", ["legislators", "roll-call-votes", ["bills", "committees"]])
async def test_registries_are_refused_with_the_tool_to_use(
    world: Path, tool: str, source: Any
) -> None:
    async with serve_in_process(world) as ask:
        result = await ask.call(tool, query="Markey", source=source)
        assert result["isError"]
        assert "source_not_searchable" in result["content"][0]["text"]
        assert result["_meta"]["hint"]["use_tool"] == "resolve_entity"


@requirement("federal:AC-13", "federal:B")
async def test_a_source_without_vectors_is_refused_by_meaning(world: Path) -> None:
    async with serve_in_process(world) as ask:
        result = await ask.call("semantic_search", query="x", source="saps")
        assert result["_meta"]["error_code"] == "source_not_searchable_semantically"
        assert result["_meta"]["hint"]["valid_sources"] == list_source_names(
            list_sources_of_shape(Shape.BODY)
        )


@requirement("federal:degraded", "federal:B")
async def test_a_hybrid_search_of_short_texts_uses_their_vectors(world: Path) -> None:
    async with serve_in_process(world) as ask:
        found = await ask.answer("search", query="rural broadband", source="saps")
        assert [one["id"] for one in found["results"]] == ["sap:119:2025-03-01:hr1"]
        assert found["degraded"] is None
        both = await ask.answer("search", query="rural", source=["bills", "saps"])
        assert both["degraded"] is None
        status = {
            row["source"]: row for row in await ask.base.service.store.query(store.read_status)
        }
        assert status["saps"]["embedded"] == status["saps"]["chunks"] > 0


@requirement("federal:degraded")
@pytest.mark.parametrize("source", [{}, {"source": ","}])
async def test_a_search_of_everything_is_not_degraded(world: Path, source: Any) -> None:
    """Short texts are found among the rest, but not by meaning alone."""
    async with serve_in_process(world) as ask:
        found = await ask.answer("search", query="rural broadband", **source)
        assert found["degraded"] is None
        assert "sap:119:2025-03-01:hr1" in [one["id"] for one in found["results"]]
        assert found == await ask.record("/search", q="rural broadband") | {
            "took_ms": found["took_ms"]
        }
        by_meaning = await ask.answer("semantic_search", query="rural broadband", **source)
        assert by_meaning["results"]
        assert "saps" not in [one["source"] for one in by_meaning["searched"]]


@requirement("federal:degraded")
@pytest.mark.parametrize("tool", ["search", "semantic_search"])
async def test_without_a_model_words_are_used_and_it_is_said(world: Path, tool: str) -> None:
    async with serve_in_process(world, NoModel()) as ask:
        found = await ask.answer(tool, query="rural broadband", source="bills")
        assert found["results"]
        assert found["degraded"]["used_mode"] == "lexical"
        assert "model" in found["degraded"]["reason"]


@requirement("federal:degraded")
async def test_while_nothing_is_embedded_the_model_is_not_asked_for(tmp_path: Path) -> None:
    """Reading it takes seconds, which the first search of a fresh server would wait for."""
    async with serve_in_process(tmp_path, NoModel()) as ask:
        found = await ask.answer("search", query="rural broadband", source="bills")
        assert found["degraded"]["reason"].startswith("nothing has been embedded")


@requirement("federal:degraded")
async def test_a_source_that_is_not_embedded_yet_is_searched_by_words(tmp_path: Path) -> None:
    """Though others are: it is new here, and `federal embed` comes after a load."""
    write_world(tmp_path / "files")
    statuses = list((tmp_path / "files").glob("BILLSTATUS*"))
    load_files(tmp_path, *statuses)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        for tool in ("search", "semantic_search"):
            found = await ask.answer(tool, query="airport noise", source="fr,bills")
            told = found["degraded"]
            assert told["sources"] == ["federal_register", "presidential_documents"]
            assert (told["requested_mode"], told["used_mode"]) == (found["mode"], "lexical")
            assert "federal embed" in told["reason"]
            assert "2025-00001" in [one["id"] for one in found["results"]]
        named = await ask.answer("search", query="airport noise", source="fr,saps")
        assert "saps" in named["degraded"]["sources"]
        # One text of a bill was loaded after the others were embedded.
        partly = (await ask.answer("search", query="noise", source="bills"))["degraded"]
        assert partly["used_mode"] == "hybrid"
        assert 0 < partly["embedded_percent"]["bills"] < 100


@requirement("federal:AC-14", "federal:registry-words")
async def test_the_search_tools_name_their_sources_from_the_live_schema(world: Path) -> None:
    async with serve_in_process(world) as ask:
        listed = (await ask.rpc("tools/list", {}))["result"]["tools"]
        said = {tool["name"]: tool["description"] for tool in listed}
        for name in list_source_names(list_sources_of_shape(Shape.BODY)):
            assert name in said["semantic_search"]
        assert "saps" not in said["semantic_search"]
        assert "saps" in said["search"] and "saps" in said["lexical_search"]
        for tool in SEARCHES:
            assert "resolve_entity" in said[tool]
            assert "egistries" in said[tool]
        live = ask.base.service.store.query_now(store.list_stored_sources)
        assert set(live) == set(SOURCES)


@requirement("federal:paging")
async def test_offset_goes_on_where_the_last_page_ended(world: Path) -> None:
    async with serve_in_process(world) as ask:
        whole = await ask.answer("search", query="rural broadband", source="bills", limit=20)
        seen, offset = [], 0
        while offset is not None and len(seen) < 20:
            page = await ask.answer(
                "search", query="rural broadband", source="bills", limit=5, offset=offset
            )
            seen += [one["id"] for one in page["results"]]
            offset = page["next_offset"]
        assert len(seen) == len(set(seen))
        assert set(seen[:5]) == {one["id"] for one in whole["results"][:5]}


async def test_chunks_of_one_record_are_one_result(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=0, votes=0)
    ((name, text),) = world.bills(1)
    long = "Lighthouse keepers and their lighthouse. " * 200
    start, end = text.index("<text>", text.index("<summary>")), text.index("</text></summary>")
    (tmp_path / "files" / name).write_text(f"{text[:start]}<text>{long}{text[end:]}", "utf-8")
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        found = await ask.answer("search", query="lighthouse", source="bills")
        assert len(found["results"]) == found["total"] == 1
        assert "ighthouse" in found["results"][0]["snippet"]


async def test_filters_are_read_in_whatever_spelling(world: Path) -> None:
    """The same reading for lists, counts, searches and names; what is no value is refused."""
    async with serve_in_process(world) as ask:
        (one,) = (await ask.record("/bills", limit=1))["results"]
        state, sponsor = one["sponsors"][0]["state"], one["sponsors"][0]["bioguide_id"]
        party = {"D": "Democrat", "R": "republicans"}
        codes = load_vocabulary().code_by_state_words
        name = next(" ".join(words) for words, code in codes.items()
                    if code == state and len("".join(words)) > 2)  # fmt: skip
        for field, kept, written in (
            ("type", one["type"], {"hr": "H.R.", "s": "S"}[one["type"]]),
            ("chamber", one["origin_chamber"], one["origin_chamber"].title()),
            ("party", one["sponsors"][0]["party"], party[one["sponsors"][0]["party"]]),
            ("state", state, state.lower()),
            ("state", state, name.title()),
            ("sponsor", sponsor, sponsor.lower()),
            ("policy_area", one["policy_area"], one["policy_area"].upper()),
        ):
            listed = await ask.record("/bills", **{field: written})
            assert listed == await ask.record("/bills", **{field: kept}), field
            filters = [{"resource": "bills", "filters": {field: how}} for how in (kept, written)]
            counts = [(await ask.answer("count", **told))["value"] for told in filters]
            assert counts[0] == counts[1] > 0, field
            if field in ("type", "chamber", "party", "state"):
                for tool in SEARCHES:
                    told = [
                        await ask.answer(tool, query="to", source="bills", filters={field: how})
                        for how in (kept, written)
                    ]
                    assert told[0]["results"] == told[1]["results"] != [], (tool, field)
        for resource, filters in (
            ("committee-memberships", {"committee_id": "hsag"}),
            ("federal-register", {"agency": "SAMPLE-agency"}),
            ("lda-filings", {"type": "q1"}),
            ("member-votes", {"position": "yea", "party": "democratic"}),
        ):
            assert (await ask.answer("count", resource=resource, filters=filters))["value"] > 0
        for field, wrong, valid in (
            ("type", "bill", "hjres"),
            ("chamber", "lords", "senate"),
            ("state", "Bavaria", "Oregon"),
            ("sponsor", "Smith", "id"),
        ):
            refused = await ask.get("/bills", **{field: wrong})
            assert refused.status_code == 422
            assert valid in refused.text
            told = {"resource": "bills", "filters": {field: wrong}}
            told = await ask.rpc("tools/call", {"name": "count", "arguments": told})
            assert told["error"]["code"] == -32602
            assert f"filters.{field}" in told["error"]["message"]


async def test_member_and_bill_are_filters_of_the_tools_and_parameters_of_rest(
    world: Path, a_bill: str
) -> None:
    async with serve_in_process(world) as ask:
        sponsor = (await ask.record(f"/bills/{a_bill}"))["sponsors"][0]["bioguide_id"]
        for told in ({"member": sponsor}, {"bill": a_bill}):
            rest = await ask.record("/search", q="to", **told)
            assert rest["results"]
            tool = await ask.answer("search", query="to", filters=told)
            assert tool["results"] == rest["results"]


async def test_a_blank_question_is_refused_by_name(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for path in ("/search", "/legislators"):
            refused = await ask.get(path, q="  \t ")
            assert refused.status_code == 422
            assert "q" in refused.json()["error"]["message"]
        for tool in SEARCHES:
            told = await ask.rpc("tools/call", {"name": tool, "arguments": {"query": "   "}})
            assert told["error"]["code"] == -32602
            assert told["error"]["data"]["errors"][0]["field"] == "query"
        arguments = {"query": " ", "entity_type": "legislators"}
        told = await ask.rpc("tools/call", {"name": "resolve_entity", "arguments": arguments})
        assert told["error"]["code"] == -32602


async def test_a_result_found_by_its_title_shows_what_its_text_says(tmp_path: Path) -> None:
    """The title stands beside the snippet already."""
    world = write_world(tmp_path / "files", bills=0, votes=0)
    name, text = world.text(119, "hr", 7)
    text = re.sub("<officialTitle>.*?<", "<officialTitle>Lighthouse keepers<", text)
    (tmp_path / "files" / name).write_text(text, "utf-8")
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        answer = await ask.answer("lexical_search", query="lighthouse keepers", source="bills")
        (found,) = answer["results"]
        assert found["title"] == "Lighthouse keepers"
        assert len(found["snippet"]) > 200
        whole = await ask.answer("fetch", id=found["id"])
        assert found["snippet"].strip("…")[:40] in " ".join(whole["text"].split())


async def test_a_word_is_found_though_a_newer_symbol_clings_to_it(tmp_path: Path) -> None:
    """And in a file whose words were cut by SQLite's older Unicode alone."""
    world = write_world(tmp_path / "files", bills=0, votes=0)
    name, text = world.text(119, "hr", 7)
    title = "Lighthouses\N{MANUAL WHEELCHAIR}: keepers\uf0b7"
    text = re.sub("<officialTitle>.*?<", f"<officialTitle>{title}<", text)
    (tmp_path / "files" / name).write_text(text, "utf-8")
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        for word in ("lighthouses", "keepers"):
            found = await ask.answer("lexical_search", query=word, source="bills")
            assert [one["title"] for one in found["results"]] == [title]


async def test_what_stands_in_quotation_marks_is_found_as_it_stands(tmp_path: Path) -> None:
    world = write_world(tmp_path / "files", bills=0, votes=0)
    titles = {
        101: "To amend the Walrus Harbor Act",
        102: "Harbors for the walrus, and an act of kindness",
        103: "Enforcement of the walrus harbor act",
    }
    for number, title in titles.items():
        name, text = world.text(119, "hr", number)
        text = re.sub("<officialTitle>.*?<", f"<officialTitle>{title}<", text)
        (tmp_path / "files" / name).write_text(text, "utf-8")
    load_files(tmp_path, tmp_path / "files")

    async with serve_in_process(tmp_path) as ask:

        async def numbers(query: str, tool: str = "lexical_search") -> list[int]:
            found = await ask.answer(tool, query=query, source="bills")
            assert tool == "search" or found["total"] == len(found["results"])
            return [int(one["id"].split(":")[2]) for one in found["results"]]

        assert sorted(await numbers("walrus harbor act")) == [101, 102, 103]
        assert sorted(await numbers('"walrus harbor act"')) == [101, 103]
        assert await numbers('enforcement of the "walrus harbor act"') == [103, 101]
        assert await numbers('"act walrus"') == []
        assert sorted(await numbers('"walrus harbor act')) == [101, 102, 103]
        # By both, words that are apart still come, after those that stand together.
        assert set((await numbers('"walrus harbor act"', "search"))[:2]) == {101, 103}
        rest = await ask.record("/search", q='"walrus harbor act"', mode="lexical")
        assert rest["total"] == 2


async def test_user_text_is_never_query_syntax(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for query in (
            '"',
            "a AND",
            "NOT",
            "title:x",
            "*",
            "NEAR(a b)",
            "(((",
            "rural^2",
            '"rural" AND NOT "x',
            '"a" "b" OR *"',
            '" OR "rural',
            "'; --",
            "-",
        ):
            found = await ask.answer("search", query=query)
            assert isinstance(found["results"], list)


async def test_a_load_beside_a_running_server_shows_at_once(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=2)
    async with serve_in_process(tmp_path) as ask:
        assert (await ask.answer("search", query="rural", source="bills"))["total"] == 0
        load_files(tmp_path, tmp_path / "files")
        found = await ask.answer("semantic_search", query="purposes", source="bills")
        assert found["degraded"] is None
        assert len(found["results"]) == 2


async def test_what_a_load_removed_or_changed_is_no_longer_found_by_meaning(
    tmp_path: Path,
) -> None:
    world = write_world(tmp_path / "files", bills=2)
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        (first, *_) = (await ask.record("/bills"))["results"]
        before = await ask.answer("semantic_search", query="other purposes", source="bills")
        name, text = next(
            one for one in world.bills(2) if f"{first['type']}{first['number']}." in one[0]
        )
        newer = text.replace("T05:00:00Z", "T06:00:00Z").replace("<congress>119", "<congress>119")
        newer = newer.replace("and for other purposes", "about walruses")
        (tmp_path / "files" / name).write_text(newer, "utf-8")
        load_files(tmp_path, tmp_path / "files")
        after = await ask.answer("semantic_search", query="walruses", source="bills", limit=1)
        assert len(before["results"]) == 2
        assert after["results"][0]["id"] == first["id"]
        assert "walruses" in after["results"][0]["title"]


async def test_an_empty_answer_says_what_was_searched(world: Path) -> None:
    async with serve_in_process(world) as ask:
        found = await ask.answer("lexical_search", query="xylophone", source="bills,fr")
        assert found["results"] == []
        assert [(one["source"], one["records"]) for one in found["searched"]] == [
            ("bills", 30),
            ("federal_register", 1),
            ("presidential_documents", 1),
        ]


async def test_sources_go_by_other_names_too(world: Path) -> None:
    async with serve_in_process(world) as ask:
        one = await ask.answer("search", query="noise", source="fr")
        two = await ask.answer("search", query="noise", source="federal-register")
        assert one["results"] == two["results"] != []
        refused = await ask.call("search", query="noise", source="nonsense")
        assert refused["_meta"]["error_code"] == "unknown_source"
        assert "bills" in refused["_meta"]["hint"]["valid_sources"]


async def test_a_presidents_document_is_found_by_its_bare_number(world: Path) -> None:
    async with serve_in_process(world) as ask:
        fetched = await ask.answer("fetch", id="2025-00002")
        assert fetched["id"] == "presdoc:2025-00002"
        assert fetched["record"]["source"] == "presidential_documents"


@requirement("federal:AC-26")
async def test_every_call_leaves_a_line_in_the_log(tmp_path: Path) -> None:
    with serve_room("federal", data=tmp_path / "data") as served:
        async with connect_http(served.url + "/mcp") as client:
            read_body(await client.call_tool("search", {"query": "x"}))
            assert (await client.call_tool("get_bill", {"bill_id": "hr:1:1"})).is_error
        lines = served.calls()
    assert [(one["tool_name"], one["result_status"]) for one in lines] == [
        ("search", "ok"),
        ("get_bill", "error"),
    ]
    for line in lines:
        assert line["request_id"] and line["duration_ms"] >= 0
        assert line["caller_kind"] == "anonymous"


@pytest.mark.parametrize(
    "after",
    [
        {"sort_key": [], "id": 2**70},
        {"sort_key": ["2025-01-01"], "id": "\ud800"},
        {"sort_key": [1], "id": "hr:119:1"},
        {"sort_key": "x", "id": True},
        ["x"],
    ],
)
async def test_a_cursor_of_ones_own_making_is_refused(
    world: Path, a_bill: str, after: object
) -> None:
    cursor = base64.urlsafe_b64encode(json.dumps(after).encode()).decode()
    async with serve_in_process(world) as ask:
        for path in ("/bills", f"/bills/{a_bill}/cosponsors", f"/bills/{a_bill}/actions"):
            refused = await ask.get(path, cursor=cursor)
            assert refused.status_code == 422
            assert refused.json()["error"]["code"] == "invalid_cursor"
