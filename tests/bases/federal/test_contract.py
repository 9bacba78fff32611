"""The numbered criteria of the federal contract, each through the SDK's own client on both wires.

What the criteria mean in depth is tested beside each capability; here each is shown once as a
client sees it. Criteria 24 to 27 (who may call, the log, the manifest) are in `test_oauth.py`,
`test_federal.py` and `test_manifest.py`.
"""

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from readingroom import __version__
from readingroom.bases.federal.query import aggregates, dossiers
from readingroom.bases.federal.query.aggregates import Budget
from readingroom.bases.federal.schema.sources import (
    TABLES_BY_NAME,
    Shape,
    list_source_names,
    list_sources_of_shape,
)
from readingroom.storage.postgres import records
from tests.requirements import requirement
from tests.support.federal.base import (
    Asked,
    HashedWords,
    connect_client,
    trace_statements,
    write_world_files,
)
from tests.support.kit import LEGACY, MODERN, read_body
from tests.support.processes import HANG_SECONDS

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.both_engines("full"),
    pytest.mark.parametrize("wire", [LEGACY, MODERN]),
]

CLASSES = {
    "A": {
        "get_bill",
        "get_bill_text",
        "get_committee",
        "get_legislator",
        "list_committee_members",
        "list_cosponsors",
        "list_member_votes",
        "list_records",
    },
    "B": {"lexical_search", "search", "semantic_search"},
    "C": {"fetch"},
    "D": {"resolve_entity"},
    "E": {"count", "sum", "time_series"},
    "F": {
        "get_bill_dossier",
        "get_committee_dossier",
        "get_legislator_dossier",
        "get_public_law_dossier",
    },
}


@pytest.fixture(scope="module")
def world(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_world_files(tmp_path_factory.mktemp("contract"))


class Talk:
    """A session: the client, and REST on the same server."""

    def __init__(self, client: Client, rest: Asked) -> None:
        self.client = client
        self.rest = rest

    async def answer(self, name: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(name, arguments)
        assert not result.is_error, result.content
        return read_body(result)

    async def refused(self, name: str, **arguments: Any) -> tuple[dict[str, Any], str]:
        """The `_meta` of an error, and its first text."""
        result = await self.client.call_tool(name, arguments)
        assert result.is_error
        assert result.meta is not None
        return dict(result.meta), result.content[0].text  # type: ignore[union-attr]

    async def tools(self) -> dict[str, Any]:
        return {tool.name: tool for tool in (await self.client.list_tools()).tools}


@contextlib.asynccontextmanager
async def talk(data: Path, wire: str, **ways: Any) -> AsyncIterator[Talk]:
    async with connect_client(data, wire, **ways) as (client, rest):
        yield Talk(client, rest)


def remove_field(answer: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != name}


@requirement("federal:AC-01", "federal:AC-02")
async def test_01_02_streamable_http_as_josh(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        assert say.client.protocol_version == wire
        assert say.client.server_info.name == "josh"
        assert say.client.server_info.version == __version__
        stream = await say.rest.web.get("/mcp", headers={"Accept": "text/event-stream"})
        assert stream.status_code == 405


@requirement("federal:AC-03")
async def test_03_mcp_and_rest_are_one_process_with_one_request_id(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        say.rest.web.headers["X-Request-ID"] = "one-id"
        meta, _ = await say.refused("get_bill", bill_id="hr:1:1")
        rest = await say.rest.get("/bills/hr:1:1")
        assert meta["request_id"] == rest.json()["error"]["request_id"] == "one-id"


@requirement("federal:AC-04", "federal:AC-09")
async def test_04_09_every_class_of_tool_is_listed(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        assert set(await say.tools()) == set().union(*CLASSES.values())


@requirement("federal:AC-05")
async def test_05_search_answers_as_rest_does(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        told = await say.answer("search", query="rural broadband", since="2025-01-01", limit=3)
        rest = await say.rest.record("/search", q="rural broadband", since="2025-01-01", limit=3)
        assert told["results"] and told["total"] and "took_ms" in told
        assert remove_field(told, "took_ms") == remove_field(rest, "took_ms")


@requirement("federal:AC-06", "federal:AC-07", "federal:chatgpt")
async def test_06_07_what_search_gives_fetch_takes(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        found = await say.answer("search", query="rural broadband statement noise rail order")
        assert len({one["source"] for one in found["results"]}) >= 4
        for one in found["results"]:
            fetched = await say.answer("fetch", id=one["id"])
            assert fetched["id"] == one["id"]
            assert fetched["record"]["source"] == one["source"]
        # One of each source's ids, through the one tool.
        for source in list_sources_of_shape(*Shape):
            for record in (await say.rest.record(f"/{source.slug}", limit=1))["results"]:
                assert (await say.answer("fetch", id=record["id"]))["record"] == record


@requirement("federal:AC-08")
async def test_08_a_typed_lookup_reads_neither_words_nor_vectors(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        bill = (await say.rest.record("/bills", limit=1))["results"][0]
        statements = trace_statements(say.rest.base)
        await say.answer("get_bill", bill_id=bill["id"])
        await say.answer("get_legislator", bioguide=bill["sponsors"][0]["bioguide_id"])
        await say.answer("get_bill_dossier", bill_id=bill["id"])
        assert statements
        for name in ("_fts", "vectors", "passage"):
            assert not any(name in one for one in statements)


@requirement("federal:AC-10")
async def test_10_filters_come_before_scoring(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        bills = (await say.rest.record("/bills", limit=200))["results"]
        for party in ("D", "R"):
            theirs = {one["id"] for one in bills if one["sponsors"][0]["party"] == party}
            found = await say.answer(
                "semantic_search",
                query="purposes",
                source="bills",
                filters={"party": party},
                limit=len(theirs),
            )
            assert {one["id"] for one in found["results"]} == theirs != set()


@requirement("federal:AC-11")
async def test_11_lexical_search_asks_for_no_vector(world: Path, wire: str) -> None:
    class NeverAsked(HashedWords):
        def embed(self, text: str) -> Any:
            raise AssertionError("a vector was asked for")

    async with talk(world, wire, embedder=NeverAsked()) as say:
        statements = trace_statements(say.rest.base)
        assert (await say.answer("lexical_search", query="rural broadband"))["results"]
        assert any("passages_fts" in one or "passage_words" in one for one in statements)
        assert not any("vectors" in one for one in statements)


@requirement("federal:AC-12")
async def test_12_registries_are_not_searched(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        for tool in CLASSES["B"]:
            for source in list_source_names(list_sources_of_shape(Shape.REGISTRY)):
                meta, text = await say.refused(tool, query="x", source=source)
                assert "source_not_searchable" in text
                assert meta["hint"]["use_tool"] == "resolve_entity"


@requirement("federal:AC-13")
async def test_13_short_texts_have_no_meaning_to_search(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        meta, text = await say.refused("semantic_search", query="x", source="saps")
        assert "source_not_searchable_semantically" in text
        assert meta["hint"]["valid_sources"] == list_source_names(list_sources_of_shape(Shape.BODY))


@requirement("federal:AC-14")
async def test_14_semantic_search_lists_its_live_sources(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        said = (await say.tools())["semantic_search"].description
        assert all(name in said for name in list_source_names(list_sources_of_shape(Shape.BODY)))
        assert "saps" not in said


@requirement("federal:AC-15")
async def test_15_resolve_entity_answers_as_rest_does(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        member = (await say.rest.record("/legislators", limit=1))["results"][0]
        name = f"{member['last_name']}, {member['first_name']} ({member['state']})"
        told = await say.answer(
            "resolve_entity",
            query=name,
            entity_type="legislators",
            filters={"party": member["party"]},
        )
        rest = await say.rest.record("/legislators", q=name, party=member["party"])
        assert told == rest
        assert told["results"][0]["id"] == member["id"]
        many = await say.rest.record("/committee-memberships", q="house")
        assert many == await say.answer(
            "resolve_entity", query="house", entity_type="committee-memberships"
        )


@requirement("federal:AC-16")
async def test_16_entity_types_are_the_live_registries(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        schema = (await say.tools())["resolve_entity"].input_schema
        registries = [one.slug for one in list_sources_of_shape(Shape.REGISTRY)]
        # Bills have names too, though they are texts.
        named = [*registries, "bills"]
        assert schema["properties"]["entity_type"]["enum"] == named


@requirement("federal:AC-17")
async def test_17_aggregates_answer_as_rest_does(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        for tool, arguments, params in (
            ("count", {}, {"aggregate": "count"}),
            ("count", {"group_by": "party"}, {"aggregate": "count", "group_by": "party"}),
            (
                "sum",
                {"sum_field": "cosponsor_count"},
                {"aggregate": "sum", "sum_field": "cosponsor_count"},
            ),
            (
                "time_series",
                {"time_field": "introduced_at", "interval": "month"},
                {"bucket_by_time": "introduced_at", "time_interval": "month"},
            ),
        ):
            told = await say.answer(tool, resource="bills", **arguments)
            rest = await say.rest.record("/bills", **params)
            assert told["query_cost"]["rows"] == rest["query_cost"]["rows"]
            assert remove_field(told, "query_cost") == remove_field(rest, "query_cost")
            assert "value" in told or told["total_buckets"] == len(told["buckets"])


@requirement("federal:AC-18")
async def test_18_the_enums_are_those_of_the_plans(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        tools = await say.tools()
        for one in TABLES_BY_NAME.values():
            assert set(one.aggregation_plan.group_names) <= _list_enum_values(
                tools["count"], "group_by"
            )
            assert {each.name for each in one.aggregation_plan.measures} <= _list_enum_values(
                tools["sum"], "sum_field"
            )
            assert {
                name for name, _ in one.aggregation_plan.date_names_and_columns
            } <= _list_enum_values(tools["time_series"], "time_field")


def _list_enum_values(tool: Any, argument: str) -> set[str]:
    schema = tool.input_schema["properties"][argument]
    return set(schema.get("anyOf", [schema])[0]["enum"])


@requirement("federal:AC-19")
async def test_19_a_broad_aggregate_is_told_how_to_be_narrower(world: Path, wire: str) -> None:
    budget = Budget(max_rows=20, max_seconds=HANG_SECONDS)
    async with talk(world, wire, budget=budget) as say:
        for grouping in ({}, {"group_by": "party"}, {"group_by": "cosponsor"}):
            for filters in ({}, {"until": "2026-06-01"}):
                asked = {"resource": "bills", "filters": filters, **grouping}
                # However often it is looked at: small budgets leave the search its time.
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(aggregates, "_STEPS_BETWEEN_CHECKS", 10)
                    patch.setattr(records, "_SECONDS_BETWEEN_CHECKS", 0.000_1)
                    meta, text = await say.refused("count", **asked)
                assert "aggregate_too_broad" in text
                suggested = meta["hint"]["suggest_narrowing"]
                assert suggested
                for one in suggested:
                    narrower = {**asked, "filters": filters | one["filters"]}
                    assert "query_cost" in await say.answer("count", **narrower)
                    total = await say.answer("count", resource="bills", filters=narrower["filters"])
                    assert 0 < total["value"] <= one["rows"] <= 20


@pytest.mark.embedded_only("there a query that ends within 20 ms is answered; see test_postgres.py")
@requirement("federal:AC-19")
async def test_19_an_aggregate_that_takes_too_long_is_told_so(world: Path, wire: str) -> None:
    async with talk(world, wire, budget=Budget(max_seconds=-1)) as say:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("readingroom.bases.federal.query.aggregates._STEPS_BETWEEN_CHECKS", 1)
            meta, text = await say.refused("count", resource="bills", group_by="party")
        assert "aggregate_timeout" in text
        assert "suggest_narrowing" in meta["hint"]


@requirement("federal:AC-20", "federal:AC-21", "federal:F")
async def test_20_21_dossiers_are_whole_and_lead_on(
    world: Path, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dossiers, "MAX_SECTION_ITEMS", 2)
    async with talk(world, wire) as say:
        bills = (await say.rest.record("/bills", limit=200))["results"]
        bill = max(bills, key=lambda one: one["cosponsor_count"])
        member = bill["sponsors"][0]["bioguide_id"]
        for tool, arguments, path, sections in (
            (
                "get_bill_dossier",
                {"bill_id": bill["id"]},
                f"/bills/{bill['id']}",
                dossiers.READER_BY_BILL_SECTION,
            ),
            (
                "get_legislator_dossier",
                {"bioguide_id": member, "congress": 119},
                f"/legislators/{member}",
                dossiers.READER_BY_MEMBER_SECTION,
            ),
        ):
            told = await say.answer(tool, **arguments)
            params = {"congress": 119} if "congress" in arguments else {}
            assert told == await say.rest.record(f"{path}/dossier", **params)
            assert set(sections) <= set(told)
        told = await say.answer("get_bill_dossier", bill_id=bill["id"])
        cosponsors = told["cosponsors"]
        assert cosponsors["truncated"]
        rest = (await say.rest.web.get(cosponsors["more_url"])).json()["results"]
        listed = (await say.rest.record(f"/bills/{bill['id']}/cosponsors"))["results"]
        assert [one["id"] for one in cosponsors["items"]] == [
            one["bioguide_id"] for one in listed[:2]
        ]
        assert rest == listed[2:4]


@requirement("federal:AC-22", "federal:errors")
async def test_22_an_error_of_rest_is_an_error_of_the_tool(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        for name, arguments, path in (
            ("get_bill", {"bill_id": "hr:1:1"}, "/bills/hr:1:1"),
            ("get_committee", {"id": "what is this"}, "/committees/what is this"),
            ("get_bill_dossier", {"bill_id": "hr:1:1"}, "/bills/hr:1:1/dossier"),
            ("get_public_law_dossier", {"id": "pl:1-1"}, "/public-laws/pl:1-1/dossier"),
        ):
            meta, text = await say.refused(name, **arguments)
            error = (await say.rest.get(path)).json()["error"]
            assert text.startswith(error["message"])
            assert f"code={error['code']}" in text
            assert f"request_id={meta['request_id']}" in text
            assert (meta["error_code"], meta["error_type"]) == (error["code"], error["type"])
            assert meta.get("hint") == error.get("hint")


@requirement("federal:AC-23")
async def test_23_a_bad_argument_is_invalid_params(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        for name, arguments, field in (
            ("get_bill", {}, "bill_id"),
            ("search", {"query": "x", "limit": 0}, "limit"),
            ("resolve_entity", {"query": "x", "entity_type": "saps"}, "entity_type"),
            ("count", {"resource": "bills", "group_by": "title"}, "group_by"),
            ("sum", {"resource": "bills", "sum_field": "x"}, "sum_field"),
            ("get_legislator_dossier", {"bioguide_id": "S000033", "congress": "x"}, "congress"),
        ):
            with pytest.raises(MCPError) as refused:
                await say.client.call_tool(name, arguments)
            assert refused.value.code == -32602
            assert field in refused.value.message


@requirement("federal:paging")
async def test_paging_passes_through_every_tool_that_has_more(world: Path, wire: str) -> None:
    async with talk(world, wire) as say:
        bills = (await say.rest.record("/bills", limit=200))["results"]
        bill = max(bills, key=lambda one: one["cosponsor_count"])
        member = bill["sponsors"][0]["bioguide_id"]

        async def through(tool: str, key: Callable[[Any], Any], **arguments: Any) -> list[Any]:
            seen, cursor = [], None
            while True:
                more = {"cursor": cursor} if cursor else {}
                page = await say.answer(tool, **arguments, limit=2, **more)
                seen += [key(one) for one in page["results"]]
                cursor = page["next_cursor"]
                if cursor is None:
                    assert len(seen) == page["total"]
                    return seen

        for seen in (
            await through("list_cosponsors", lambda one: one["bioguide_id"], bill_id=bill["id"]),
            await through("list_member_votes", lambda one: one["vote_id"], bioguide=member),
            await through(
                "resolve_entity", lambda one: one["id"], query=member, entity_type="legislators"
            ),
        ):
            assert len(seen) == len(set(seen)) > 0
        first = await say.answer("search", query="purposes", limit=2)
        following = await say.answer(
            "search", query="purposes", limit=2, offset=first["next_offset"]
        )
        assert not {json.dumps(one) for one in first["results"]} & {
            json.dumps(one) for one in following["results"]
        }
