"""Values of filters: read as people write them, or refused with the nearest; never a silent 0."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.federal.base import Asked, load_files, serve_in_process, write_world
from tests.support.federal.world import register_document

pytestmark = pytest.mark.anyio

AGENCIES = ("Environmental Protection Agency", "Health and Human Services Department")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("values")
    write_world(data / "files", bills=30, votes=2)
    for number, agency in enumerate(AGENCIES, start=10):
        document = register_document(f"2025-000{number}", "2025-02-03", f"Rule {number}")
        slug = "-".join(agency.lower().split())
        document["agencies"] = [{"name": agency, "slug": slug}]
        document["type"] = "Proposed Rule"
        (data / "files" / f"2025-000{number}.json").write_text(json.dumps(document), "utf-8")
    load_files(data, data / "files", embed=False)
    return data


async def count(ask: Asked, resource: str, **filters: Any) -> int:
    answer = await ask.answer("count", resource=resource, filters=filters)
    return int(answer["value"])


@pytest.mark.parametrize(
    "written",
    ["EPA", "epa", "E.P.A.", "Environmental Protection Agency", "environmental-protection-agency"],
)
async def test_an_agency_is_its_name_its_slug_or_its_abbreviation(
    world: Path, written: str
) -> None:
    async with serve_in_process(world) as ask:
        assert await count(ask, "federal-register", agency=written) == 1
        listed = await ask.record("/federal-register", agency=written)
        assert [record["id"] for record in listed["results"]] == ["2025-00010"]
        found = await ask.answer("lexical_search", query="Rule", filters={"agency": written})
        assert [hit["id"] for hit in found["results"]] == ["2025-00010"]
        series = await ask.answer(
            "time_series",
            resource="federal-register",
            time_field="published_at",
            interval="year",
            filters={"agency": written},
        )
        assert [bucket["value"] for bucket in series["buckets"]] == [1]


@pytest.mark.parametrize(
    ("resource", "filters"),
    [
        ("federal-register", {"agency": "HHS"}),
        ("federal-register", {"agency": "Department of Health and Human Services"}),
        ("federal-register", {"type": "proposed_rule"}),
        ("federal-register", {"type": "PRORULE"}),
        ("bills", {"topic": "topic:taxation"}),
        ("bills", {"topic": "TAXATION"}),
        ("committee-memberships", {"committee_id": "Ways and Means"}),
        ("member-votes", {"position": "yea"}),
        ("member-votes", {"position": "against"}),
        ("saps", {"president": "President Sample"}),
    ],
)
async def test_the_words_people_write_count_what_they_mean(
    world: Path, resource: str, filters: dict[str, Any]
) -> None:
    async with serve_in_process(world) as ask:
        assert await count(ask, resource, **filters) > 0


async def test_a_member_is_named_in_a_filter(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = await ask.record("/bills", limit=200)
        sponsor = bills["results"][0]["sponsors"][0]
        member = await ask.record(f"/legislators/{sponsor['bioguide_id']}")
        named = f"{member['first_name']} {member['last_name']} of {member['state']}"
        by_name = await ask.answer("count", resource="bills", filters={"sponsor": named})
        assert by_name["filters_read"] == {"sponsor": sponsor["bioguide_id"]}
        assert by_name["value"] == await count(ask, "bills", sponsor=sponsor["bioguide_id"])


@pytest.mark.parametrize(
    ("path", "filters", "nearest"),
    [
        ("federal-register", {"agency": "EPAX"}, "Environmental Protection Agency"),
        ("bills", {"policy_area": "Healthcare"}, "Health"),
        ("bills", {"party": "X"}, "D"),
        ("bills", {"congress": 300}, "120"),
        ("bills", {"sponsor": "Z999999"}, "resolve_entity"),
        ("bills", {"sponsor": "Gandalf the Grey"}, "S000033"),
        ("bills", {"sponsor": "hr:119:1"}, "S000033"),
        ("bills", {"committee": "HSZZ"}, "resolve_entity"),
        ("bills", {"cosponsor": "Z999999"}, "resolve_entity"),
        ("amendments", {"bill_id": "hr:119:987654"}, "hr:119:"),
        ("committee-memberships", {"bioguide_id": "Z999999"}, "resolve_entity"),
        ("member-votes", {"vote_id": "house:119:1:98765"}, "house:119:"),
        ("lda-filings", {"issue": "ZZZ"}, "TAX"),
        ("member-votes", {"position": "perhaps"}, "Yea"),
    ],
)
async def test_a_value_that_means_nothing_is_refused_with_the_nearest(
    world: Path, path: str, filters: dict[str, Any], nearest: str
) -> None:
    (name,) = filters
    async with serve_in_process(world) as ask:
        counted = await ask.get(f"/{path}", aggregate="count", **filters)
        over_mcp = await ask.rpc(
            "tools/call", {"name": "count", "arguments": {"resource": path, "filters": filters}}
        )
        listed = await ask.get(f"/{path}", **filters)
    answers = [counted, *([] if path == "member-votes" else [listed])]
    for answer in answers:
        error = answer.json()["error"]
        assert answer.status_code == 422
        assert error["code"] == "validation_error"
        assert error["hint"]["errors"][0]["field"] == name
        assert nearest in error["message"]
    assert over_mcp["error"]["code"] == -32602
    assert name in over_mcp["error"]["message"]
    assert nearest in over_mcp["error"]["message"]


@pytest.mark.parametrize(
    ("path", "filters"),
    [("bills", {"congress": 117}), ("saps", {"congress": 90}), ("lda-filings", {"year": 1999})],
)
async def test_a_number_that_no_loaded_record_has_is_told(
    world: Path, path: str, filters: dict[str, int]
) -> None:
    """A Congress of which nothing is loaded is no mistake, but its 0 says nothing about it."""
    ((name, number),) = filters.items()
    expected = f"No record of {path} with {name} {number} is loaded here; the nearest that are: "
    async with serve_in_process(world) as ask:
        counted = await ask.answer("count", resource=path, filters=filters)
        grouped = await ask.answer("count", resource=path, filters=filters, group_by=name)
        cards = await ask.answer("list_records", source=path, filters=filters)
        page = await ask.record(f"/{path}", **filters)
        whole = await ask.answer("count", resource=path)
    assert (counted["value"], grouped["buckets"], page["results"]) == (0, [], [])
    for answer in (counted, grouped, cards, page):
        assert answer["note"].startswith(expected)
    assert whole["note"] is None


async def test_a_bill_that_is_only_named_is_counted_by(world: Path) -> None:
    """Of a bill that is loaded, or that a loaded record names, 0 and more are true answers."""
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        unamended = next(bill["id"] for bill in bills if not bill["amendment_count"])
        assert await count(ask, "amendments", bill_id=unamended) == 0


async def test_a_search_refuses_it_as_well(world: Path) -> None:
    async with serve_in_process(world) as ask:
        refused = await ask.get("/search", q="rule", agency="EPAX")
        assert refused.status_code == 422
        assert "Environmental Protection Agency" in refused.json()["error"]["message"]


async def test_a_source_without_records_refuses_no_value(tmp_path: Path) -> None:
    """Nothing is loaded that could tell a wrong value from a right one."""
    async with serve_in_process(tmp_path) as ask:
        answer = await ask.answer("count", resource="federal-register", filters={"agency": "EPA"})
        assert (answer["value"], answer["loaded_up_to"]) == (0, None)


@pytest.mark.data
async def test_presidents_who_share_a_surname_are_told_apart(official: Path) -> None:
    async with serve_in_process(official) as ask:
        both = await count(ask, "saps", president="Bush")
        father = await count(ask, "saps", president="George H. W. Bush")
        son = await count(ask, "saps", president="George W. Bush")
        assert father + son == both
        assert 0 < father != son > 0
        grouped = await ask.answer("count", resource="saps", group_by="president")
        bush = next(bucket for bucket in grouped["buckets"] if bucket["key"] == "Bush")
        assert "George H. W. Bush (41)" in bush["label"]
        assert "George W. Bush (43)" in bush["label"]
