"""Every address and citation that an answer prints leads somewhere when `fetch` is given it."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.sources import SOURCES
from tests.bases.federal.test_bill_texts import write_texts
from tests.support.federal.base import Asked, load_files, serve_in_process, write_world
from tests.support.federal.world import register_document
from tests.support.kit import invoke

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]


@pytest.fixture(scope="module")
def world(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("addresses")
    write_world(data / "files", bills=40, votes=3)
    (data / "files" / "committees-current.yaml").write_text(
        "- type: house\n  name: House Committee on Agriculture\n  thomas_id: HSAG\n"
        "  url: https://agriculture.house.gov/\n"
        "  subcommittees:\n"
        "  - name: Forestry\n    thomas_id: '15'\n"
        "  - name: General Farm Commodities\n    thomas_id: '16'\n",
        "utf-8",
    )
    with (data / "files" / "legislators-current.yaml").open("a", encoding="utf-8") as people:
        people.write(
            "- id:\n    bioguide: W900099\n  name:\n    first: Ida\n    last: Waters\n"
            "  terms:\n  - type: sen\n    start: '2025-01-03'\n    end: '2031-01-03'\n"
            "    state: OR\n    class: 2\n    party: Independent\n"
            "    address: 1 Senate Office Building\n    url: https://www.waters.senate.gov\n"
        )
    members = [line.split(": ")[1] for line in
               (data / "files" / "committee-membership-current.yaml").read_text("utf-8").split("\n")
               if line.startswith("  bioguide")]  # fmt: skip
    (data / "files" / "committee-membership-current.yaml").write_text(
        "HSAG:\n" + "".join(
            f"- name: Somebody {rank}\n  party: majority\n  rank: {rank}\n  bioguide: {one}\n"
            for rank, one in enumerate(members, start=1)
        ),
        "utf-8",
    )  # fmt: skip
    write_texts(data / "texts")
    (data / "texts" / "legislators-current.yaml").unlink()
    for number, title in (("2017-21155", "Advisory Board; Notice"),
                          ("2017-21197", "Notice of Rights")):  # fmt: skip
        document = register_document(number, "2017-10-03", title, citation="82 FR 46120")
        (data / "files" / f"{number}.json").write_text(json.dumps(document), "utf-8")
    load_files(data, data / "files", data / "texts", embed=False)
    return data


def list_more_urls(answer: Any) -> Iterator[str]:
    """Every `more_url` and `links_url` in an answer, at any depth."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            if name in ("more_url", "links_url", "sponsored_url") and value:
                yield value
            else:
                yield from list_more_urls(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from list_more_urls(value)


async def test_every_address_of_the_tools_default_answers_is_followed(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bill_ids = [bill["id"] for bill in (await ask.record("/bills", limit=20))["results"]]
        member_ids = [one["id"] for one in (await ask.record("/legislators", limit=5))["results"]]
        law_ids = [law["id"] for law in (await ask.record("/public-laws", limit=5))["results"]]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("get_committee_dossier", {"committee_id": "HSAG"}),
            ("get_committee_dossier", {"committee_id": "HSAG", "congress": 119}),
            ("get_bill_text", {"bill_id": "s:118:9001"}),
            *(("get_bill_dossier", {"bill_id": bill_id}) for bill_id in bill_ids),
            *(("get_legislator_dossier", {"bioguide_id": one}) for one in member_ids),
            *(("get_public_law_dossier", {"id": law_id}) for law_id in law_ids),
            *(("fetch", {"id": some_id}) for some_id in (*bill_ids, *member_ids, *law_ids)),
        ]
        addresses = [
            address
            for name, arguments in calls
            for address in list_more_urls(await ask.answer(name, **arguments))
        ]
        assert any(len(address) > 200 and "/members?" in address for address in addresses)
        for address in addresses:
            fetched = await ask.answer("fetch", id=address)
            assert fetched["text"], address
            if "cursor=" in address:
                assert "Nothing here" not in fetched["text"], address
            assert await follow_over_rest(ask, address) == 200, address


async def follow_over_rest(ask: Asked, address: str) -> int:
    return (await ask.web.get(address)).status_code


async def test_a_citation_of_any_length_is_fetched(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for source in SOURCES:
            listed = (await ask.record(f"/{source.slug}", limit=200))["results"]
            citations = Counter(record["citation_string"] for record in listed)
            for record in listed[:20]:
                told = await ask.call("fetch", id=record["citation_string"])
                if citations[record["citation_string"]] > 1:
                    assert record["id"] in told["content"][0]["text"]
                else:
                    assert told.get("structuredContent", {}).get("id") == record["id"], told
        bill = (await ask.record("/bills", limit=1))["results"][0]
        named = f"{bill['citation_string'].partition(',')[0]}, {bill['congress']}th Congress, "
        fetched = await ask.answer("fetch", id=f"{named}{'a very long title ' * 20}(2020-01-01)")
        assert fetched["id"] == bill["id"]
        refused = await ask.rpc("tools/call", {"name": "fetch", "arguments": {"id": "x" * 2001}})
        assert "id" in refused["error"]["message"]


async def test_the_page_of_a_committee_and_of_an_office_is_fetched(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for address in ("https://agriculture.house.gov/", "http://www.agriculture.house.gov"):
            assert (await ask.answer("fetch", id=address))["id"] == "HSAG"
        for address in ("https://www.waters.senate.gov", "https://waters.senate.gov/"):
            fetched = await ask.answer("fetch", id=address)
            assert fetched["id"] == "staff:W900099-washington"


async def test_a_title_decides_between_documents_of_one_page(world: Path) -> None:
    async with serve_in_process(world) as ask:
        fetched = await ask.answer("fetch", id="Notice of Rights, 82 FR 46120 (2017-10-03)")
        assert fetched["id"] == "2017-21197"
        several = await ask.call("fetch", id="82 FR 46120")
        assert "may be several" in several["content"][0]["text"]


@pytest.mark.parametrize(
    ("spelling", "canonical_id"),
    [
        ("S. J. Res. 8, 114th Cong. (2015)", "sjres:114:8"),
        ("Pvt. L. 112-1", "pvtl:112-1"),
        ("House roll call 37 (2023)", "house:118:1:37"),
        ("Senate vote 213 (2004)", "senate:108:2:213"),
        ("CBO 58366", "cbo:58366"),
        ("119-hr-22", "hr:119:22"),
        ("HSAG 15", "HSAG15"),
        ("\u00a7 478.39a of title 27", "cfr:27:478.39a"),
        ("sec. 478.11(a) of title 27 of the Code of Federal Regulations", "cfr:27:478.11"),
    ],
)
def test_more_spellings_are_read(spelling: str, canonical_id: str) -> None:
    assert parse_federal_id(spelling).id == canonical_id


async def test_what_may_be_several_names_them(world: Path) -> None:
    async with serve_in_process(world) as ask:
        law = next(one for one in (await ask.record("/public-laws"))["results"]
                   if one["statutes_at_large"])  # fmt: skip
        assert (await ask.answer("fetch", id=law["statutes_at_large"]))["id"] == law["id"]
        vote = (await ask.record("/roll-call-votes"))["results"][0]
        _, congress, session, number = vote["id"].split(":")
        ordinal = "1st" if session == "1" else "2nd"
        for citation, told in (
            ("1 Stat. 9999", "No law that begins at 1 Stat. 9999 is loaded"),
            (f"Roll Call {number}, {congress}th Congress, {ordinal} session", vote["id"]),
            ("SA 99999", "SA 99999 of which Congress?"),
            ("HRES 12", "H.Res. 12 of which Congress?"),
            ("FR-2017-10-03", "since=2017-10-03 and until=2017-10-03"),
        ):
            refused = await ask.call("fetch", id=citation)
            assert refused["isError"] and told in refused["content"][0]["text"], citation


async def test_an_offset_behind_the_end_is_refused(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for name, arguments in (("fetch", {"id": "s:118:9001"}),
                                ("get_bill_text", {"bill_id": "s:118:9001"})):  # fmt: skip
            late = {"name": name, "arguments": {**arguments, "offset": 999_999}}
            told = await ask.rpc("tools/call", late)
            assert "offset: 999999 is behind the end" in told["error"]["message"]
        refused = await ask.get("/fetch", id="s:118:9001", offset=999_999)
        assert refused.status_code == 422


def test_a_source_that_does_not_exist_is_answered_with_those_that_do(tmp_path: Path) -> None:
    (tmp_path / "file.xml").write_text("<x/>", "utf-8")
    for arguments in (("nosuchsource",), ("nosuchsource", str(tmp_path / "file.xml"))):
        ended = invoke("federal", "load", *arguments, "--data", str(tmp_path / "data"))
        assert ended.returncode != 0
        assert "federal_register" in ended.stderr or "federal-register" in ended.stderr
