"""What an answer leaves out is said: sources not loaded, fields not stated, filters not taken."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bases.federal.test_bill_texts import INTRODUCED, bill_text, write_texts
from tests.bases.federal.test_party_votes import HOUSE
from tests.support.federal.base import Asked, load_files, serve_in_process, write_world
from tests.support.federal.world import World
from tests.support.federal.world_texts import law

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Status files of a few bills, and another bill of which only texts are here."""
    data = tmp_path_factory.mktemp("gaps")
    write_world(data / "files", bills=8, votes=2)
    texts = data / "texts"
    write_texts(texts)
    (texts / "legislators-current.yaml").unlink()
    load_files(data, data / "files", texts, embed=False)
    return data


async def read_refusal(ask: Asked, **arguments: Any) -> str:
    answered = await ask.rpc("tools/call", {"name": "list_records", "arguments": arguments})
    return str(answered["error"]["message"])


async def test_no_filter_of_what_belongs_to_a_record_is_passed_over(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bill = (await ask.record("/bills", limit=1))["results"][0]["id"]
        member = (await ask.record("/legislators", limit=1))["results"][0]["id"]
        for record_id, source, part, condition in (
            (bill, "bills", "actions", "congress=113"),
            (bill, "bills", "amendments", "congress=113"),
            (bill, "bills", "cosponsors", "congress=113"),
            (bill, "bills", "links", "congress=113"),
            (bill, "bills", "similar", "congress=113"),
            ("HSAG", "committees", "actions", "congress=113"),
            (member, "legislators", "voted_alike", "party=R"),
        ):
            told = await read_refusal(
                ask, source=source, id=record_id, part=part, filters=[condition]
            )
            assert f"{part} take no such filter" in told
        told = await read_refusal(
            ask, source="committees", id="HSAG", part="members", filters=["congress=118th"]
        )
        assert "'118th' is no number of a Congress" in told


async def test_what_is_not_loaded_is_no_zero_in_rosters_votes_and_parts_of_bills(
    world: Path,
) -> None:
    async with serve_in_process(world) as ask:
        roster = await ask.answer("list_committee_members", id="HSAG", congress=90)
        assert roster["note"] == "No roster of the 90th Congress is loaded here."
        same = await ask.answer("list_records", source="committees", id="HSAG", part="members",
                                filters={"congress": 90})  # fmt: skip
        assert (same["total"], same["note"]) == (0, roster["note"])
        assert (await ask.answer("list_committee_members", id="HSAG"))["note"] is None
        member = (await ask.record("/legislators", limit=1))["results"][0]["id"]
        votes = await ask.answer("list_member_votes", bioguide=member, congress=90)
        assert "No roll call of the 90th Congress" in votes["note"]
        for part in ("actions", "amendments", "cosponsors"):
            listed = await ask.answer("list_records", source="bills", id="s:118:9001", part=part)
            assert "Only texts of this bill are loaded" in listed["note"], part
            rest = await ask.record(f"/bills/s:118:9001/{part}")
            assert "Only texts of this bill are loaded" in rest["note"], part
        dossier = await ask.answer("get_bill_dossier", bill_id="s:118:9001")
        for section in ("cosponsors", "actions", "amendments", "votes"):
            assert "Only texts of this bill are loaded" in dossier[section]["note"]
        whole = next(bill for bill in (await ask.record("/bills"))["results"]
                     if bill["status_loaded"])  # fmt: skip
        assert (await ask.answer("list_cosponsors", bill_id=whole["id"]))["note"] is None


async def test_a_number_says_what_it_could_not_count(tmp_path: Path) -> None:
    write_texts(tmp_path / "files")
    (tmp_path / "roll037.xml").write_text(HOUSE, "utf-8")
    load_files(tmp_path, tmp_path / "files", tmp_path / "roll037.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        empty = await ask.answer("count", resource="crs-reports")
        assert (empty["value"], empty["note"]) == (0, "No record of crs_reports is loaded here.")
        unstated = await ask.answer("count", resource="bills", filters={"outcome": "law"})
        assert unstated["value"] == 0
        assert unstated["note"].startswith(
            "Of 1 more bills that pass the other filters the outcome"
        )
        listed = await ask.answer("list_records", source="bills", filters=["outcome=law"])
        assert listed["note"] == unstated["note"]
        split = await ask.answer("count", resource="member-votes", group_by="party",
                                 filters={"vote_id": "house:118:1:37"})  # fmt: skip
        assert split["note"] == "How 2 of 440 members voted is loaded here."


async def test_a_count_since_a_day_says_how_many_bear_no_date(tmp_path: Path) -> None:
    (tmp_path / "BILLS-118s9001enr.xml").write_text(
        bill_text("enr", "Enrolled Bill", "", "River Keeping Act"), "utf-8"
    )
    (tmp_path / "BILLS-118s9002is.xml").write_text(
        bill_text("is", "Introduced", INTRODUCED, "Rivers Act").replace("9001", "9002"), "utf-8"
    )
    load_files(tmp_path, *tmp_path.glob("BILLS-*.xml"), embed=False)
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.answer("count", resource="bills", filters={"since": "2020-01-01"})
        assert counted["value"] == 1
        assert counted["note"] == "1 more bills that pass the other filters bear no date here."


async def test_a_search_that_no_record_can_pass_says_by_which_filter(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for filters, told in (
            ({"congress": 90}, "No record of bills with congress 90 is here."),
            ({"party": "R", "congress": 90}, "congress 90"),
        ):
            found = await ask.answer("lexical_search", query="rural", source="bills",
                                     filters=filters)  # fmt: skip
            assert found["results"] == []
            assert told in found["note"]


async def test_a_bill_of_which_only_a_text_is_here_is_law_once_its_law_is_loaded(
    tmp_path: Path,
) -> None:
    text = bill_text("enr", "Enrolled Bill", "", "Upkeep Act")
    text = text.replace("118 S 9001", "117 HR 1").replace("118s9001", "117hr1")
    (tmp_path / "BILLS-117hr1enr.xml").write_text(
        text.replace("<congress>118<", "<congress>117<"), "utf-8"
    )
    (tmp_path / "117publ103-uslm.xml").write_text(law(World(1, people=40)), "utf-8")
    load_files(tmp_path, tmp_path / "BILLS-117hr1enr.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        assert (await ask.record("/bills/hr:117:1"))["stage"] == "passed_both"
    load_files(tmp_path, tmp_path / "117publ103-uslm.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        enacted = await ask.record("/bills/hr:117:1")
        assert (enacted["stage"], enacted["outcome"]) == ("law", "law")
        assert (enacted["stage_at"], enacted["laws"]) == ("2022-03-15", ["pl:117-103"])
        counted = await ask.answer("count", resource="bills", filters={"outcome": "law"})
        assert counted["value"] == 1
    # The text of the bill is loaded again, and says no less for that.
    load_files(tmp_path, tmp_path / "BILLS-117hr1enr.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        assert (await ask.record("/bills/hr:117:1"))["stage"] == "law"


async def test_a_cursor_is_of_the_record_and_of_the_name_it_was_given_out_for(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = [bill["id"] for bill in (await ask.record("/bills"))["results"]
                 if bill["cosponsor_count"] > 1]  # fmt: skip
        first, second = bills[:2]
        for part in ("cosponsors", "links"):
            page = await ask.record(f"/bills/{first}/{part}", limit=1)
            cursor = page["next_cursor"]
            refused = await ask.get(f"/bills/{second}/{part}", cursor=cursor)
            assert refused.json()["error"]["code"] == "invalid_cursor", part
            assert (await ask.get(f"/bills/{first}/{part}", cursor=cursor)).status_code == 200
        named = await ask.record("/legislators", q="senators from Ohio", limit=1)
        other = named["next_cursor"] or (
            await ask.record("/committees", q="committee", limit=1)
        )["next_cursor"]  # fmt: skip
        assert other
        refused = await ask.get("/legislators", q="Smith", cursor=other)
        assert refused.json()["error"]["code"] == "invalid_cursor"


async def test_a_filter_of_digits_may_be_a_text(world: Path) -> None:
    async with serve_in_process(world) as ask:
        section = (await ask.record("/cfr-sections", limit=1))["results"][0]
        part = section["part"]
        listed = await ask.answer("list_records", source="cfr_sections", filters=[f"part={part}"])
        assert section["id"] in {row["id"] for row in listed["results"]}
        counted = await ask.answer("count", resource="cfr-sections", filters={"part": int(part)})
        assert counted["value"] == len(listed["results"])


async def test_names_of_bills_are_answered_below_4000_tokens(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        longest = max(bills, key=lambda bill: len(json.dumps(bill)))
        named = await ask.call("resolve_entity", entity_type="bills", query=longest["title"])
        assert len(named["content"][0]["text"]) / 4 <= 4_000
        (found, *_) = named["structuredContent"]["results"]
        assert found["id"] == longest["id"]
        cut = found["shortened"] or {}
        for field in cut:
            assert len(found[field]) < len(longest[field])
        assert {field for field in found if found[field] != longest.get(field)} <= {
            *cut, "shortened", "score", "why", "loaded_up_to",
        }  # fmt: skip


async def test_a_bill_is_resolved_by_its_number_without_a_congress(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        for bill in bills[:4]:
            written = f"{bill['type'].upper()} {bill['number']}"
            named = await ask.answer("resolve_entity", entity_type="bills", query=written)
            number = f":{bill['number']}"
            wanted = [one["id"] for one in bills
                      if one["type"] == bill["type"] and one["id"].endswith(number)]  # fmt: skip
            first = [match["id"] for match in named["results"][: len(wanted)]]
            assert sorted(first) == sorted(wanted)
