"""The four dossiers: every section, one moment, a failing part told while the rest comes."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.query import dossiers
from readingroom.bases.federal.query.dossiers import MAX_SECTION_ITEMS
from readingroom.bases.federal.store import get_database_path
from tests.requirements import requirement
from tests.support.federal.base import (
    Asked,
    load_files,
    serve_in_process,
    trace_statements,
    write_world,
)

pytestmark = pytest.mark.anyio

KINDS = (
    ("bills", "bill", dossiers.READER_BY_BILL_SECTION),
    ("legislators", "legislator", dossiers.READER_BY_MEMBER_SECTION),
    ("committees", "committee", dossiers.READER_BY_COMMITTEE_SECTION),
    ("public-laws", "public_law", dossiers.READER_BY_LAW_SECTION),
)

WORK = """<committees><item><systemCode>hsag00</systemCode><name>Agriculture Committee</name>
<chamber>House</chamber></item></committees>
<actions><item><actionDate>2026-02-01</actionDate><text>Referred.</text></item>"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("dossiers")
    write_world(data / "files", bills=60, votes=6)
    for bill in (data / "files").glob("BILLSTATUS-*.xml"):
        bill.write_text(bill.read_text("utf-8").replace("<actions>", WORK), "utf-8")
    load_files(data, data / "files", embed=False)
    return data


async def read_whole_list(ask: Asked, path: str, **params: Any) -> list[dict[str, Any]]:
    """A list to its end."""
    found = []
    while True:
        page = await ask.record(path, limit=200, **params)
        found += page["results"]
        params["cursor"] = page["next_cursor"]
        if not page["has_more"]:
            return found


async def read_rest_of_section(ask: Asked, section: dict[str, Any]) -> list[dict[str, Any]]:
    """What a section left out, as its `more_url` gives it."""
    found, url = [], section["more_url"]
    while url:
        page = (await ask.web.get(url)).json()
        assert "results" in page, (url, page)
        found += page["results"]
        following = page["next_cursor"]
        url = f"{url.partition('&cursor=')[0]}&cursor={following}" if following else None
    return found


@requirement("federal:F", "federal:AC-20")
async def test_each_dossier_has_its_record_and_every_section(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for path, name, sections in KINDS:
            for record in (await read_whole_list(ask, f"/{path}"))[:10]:
                told = await ask.record(f"/{path}/{record['id']}/dossier")
                assert told[name] == record
                assert set(told) - {name, "congress", "shortened"} == set(sections)
                for section in sections:
                    part = told[section]
                    assert part["error"] is None
                    assert part["truncated"] == (part["more_url"] is not None)
                    assert part["total"] >= len(part["items"])
                    assert part["truncated"] == (part["total"] > len(part["items"]))


@requirement("federal:F", "federal:AC-20")
async def test_the_sections_of_a_bill_are_what_the_single_calls_give(world: Path) -> None:
    async with serve_in_process(world) as ask:
        filled: set[str] = set()
        for bill in await read_whole_list(ask, "/bills"):
            id = bill["id"]
            told = await ask.answer("get_bill_dossier", bill_id=id)
            filled |= {name for name in dossiers.READER_BY_BILL_SECTION if told[name]["items"]}
            cosponsors = await read_whole_list(ask, f"/bills/{id}/cosponsors")
            assert told["cosponsors"]["total"] == len(cosponsors) == bill["cosponsor_count"]
            for section, kind in (("sponsors", "sponsor"), ("cosponsors", "cosponsor")):
                linked = await ask.answer(
                    "list_records", source="bills", id=id, part="links", filters={"kind": kind},
                    limit=200,
                )  # fmt: skip
                assert told[section]["total"] == linked["total"] == len(linked["results"])
                evidence_by_id = {link["id"]: link["evidence"] for link in linked["results"]}
                for item in told[section]["items"]:
                    assert item["evidence"] == evidence_by_id[item["id"]]
            actions = await read_whole_list(ask, f"/bills/{id}/actions")
            assert told["actions"]["items"] == actions[:MAX_SECTION_ITEMS]
            amendments = await read_whole_list(ask, f"/bills/{id}/amendments")
            shown = [item["id"] for item in told["amendments"]["items"]]
            assert shown == [amendment["id"] for amendment in amendments[:MAX_SECTION_ITEMS]]
            for section, kind in (
                ("crs_reports", "crs_report"),
                ("cost_estimates", "cost_estimate"),
                ("saps", "statement"),
                ("committee_reports", "committee_report"),
                ("hearings", "hearing"),
                ("votes", "vote"),
            ):
                linked = await read_whole_list(ask, f"/bills/{id}/links", kind=kind)
                assert told[section]["total"] == len(linked)
                for item, link in zip(told[section]["items"], linked, strict=False):
                    assert (item["id"], item["evidence"]) == (link["id"], link["evidence"])
                    if item["loaded"]:
                        assert item["title"] == link["title"]
                        assert (await ask.answer("fetch", id=item["id"]))["id"] == item["id"]
        # This world's laws and votes are of other Congresses; the real bill below has both.
        assert {*dossiers.READER_BY_BILL_SECTION} - filled == {"laws", "votes"}


@requirement("federal:F", "federal:AC-20")
async def test_a_members_dossier_counts_bills_and_lists_seats_offices_speeches(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = await read_whole_list(ask, "/bills")
        filled: set[str] = set()
        for member in await read_whole_list(ask, "/legislators"):
            id = member["id"]
            told = await ask.answer("get_legislator_dossier", bioguide_id=id, congress=119)
            assert told["congress"] == 119
            filled |= {name for name in dossiers.READER_BY_MEMBER_SECTION if told[name]["items"]}
            sponsored = sum(one["sponsors"][0]["bioguide_id"] == id for one in bills)
            counts = {one["congress"]: one for one in told["bill_counts"]["items"]}
            assert counts.get(119, {"sponsored": 0})["sponsored"] == sponsored
            for one in told["bill_counts"]["items"]:
                listed = (await ask.web.get(one["sponsored_url"])).json()["results"]
                assert len(listed) == one["sponsored"]
            assert told["sponsored_bills"]["total"] == sponsored
            for one in told["sponsored_bills"]["items"]:
                assert [why["said_by"] for why in one["evidence"]] == [one["id"]]
            for seat in told["committees"]["items"]:
                assert (seat["bioguide_id"], seat["congress"]) == (id, 119)
                assert seat["committee"]
            for term in told["terms"]["items"]:
                assert term["start"] < "2027-01-03" and term["end"] > "2025-01-03"
            for office in told["offices"]["items"]:
                assert office["bioguide_id"] == id
            for speech in told["speeches"]["items"]:
                assert any(speaker.endswith(id) for speaker in speech["speakers"])
            then = await ask.answer("get_legislator_dossier", bioguide_id=id, congress=1)
            assert not then["terms"]["items"] and not then["bill_counts"]["items"]
        assert filled >= {"terms", "committees", "bill_counts", "offices", "speeches"}


@requirement("federal:F", "federal:AC-20")
async def test_a_committees_dossier_lists_its_people_and_its_work(world: Path) -> None:
    async with serve_in_process(world) as ask:
        filled: set[str] = set()
        for committee in await read_whole_list(ask, "/committees"):
            id = committee["id"]
            told = await ask.answer("get_committee_dossier", committee_id=id)
            filled |= {name for name in dossiers.READER_BY_COMMITTEE_SECTION if told[name]["items"]}
            assert {one["id"] for one in told["subcommittees"]["items"]} == set(
                committee["subcommittees"]
            )
            roster = await ask.record(f"/committees/{id}/members", limit=MAX_SECTION_ITEMS)
            assert [one["id"] for one in told["members"]["items"]] == [
                one["id"] for one in roster["results"]
            ]
            for bill in told["bills"]["items"]:
                assert id in bill["committees"]
            for hearing in told["hearings"]["items"]:
                assert id in hearing["committees"]
            for report in told["reports"]["items"]:
                assert id in report["committees"]
        assert filled >= {"members", "hearings", "bills", "reports"}


@requirement("federal:F", "federal:AC-20")
async def test_a_laws_dossier_has_its_bill_and_the_regulations_that_cite_it(world: Path) -> None:
    async with serve_in_process(world) as ask:
        filled: set[str] = set()
        for law in await read_whole_list(ask, "/public-laws"):
            told = await ask.answer("get_public_law_dossier", id=law["id"])
            filled |= {name for name in dossiers.READER_BY_LAW_SECTION if told[name]["items"]}
            for section in ("cfr_sections", "implementing_rules"):
                for item in told[section]["items"]:
                    linked = await read_whole_list(ask, f"/public-laws/{law['id']}/links")
                    assert item["id"] in [one["id"] for one in linked]
        assert "originating_bill" in filled


@requirement("federal:AC-21", "federal:F")
async def test_what_is_cut_goes_on_at_more_url(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_in_process(world) as ask:
        subjects = [
            (path, one["id"], sections)
            for path, _, sections in KINDS
            for one in (await read_whole_list(ask, f"/{path}"))[:15]
        ]
        whole = {id: await ask.record(f"/{path}/{id}/dossier") for path, id, _ in subjects}
        monkeypatch.setattr(dossiers, "MAX_SECTION_ITEMS", 1)
        followed: set[str] = set()
        for path, id, sections in subjects:
            told = await ask.record(f"/{path}/{id}/dossier")
            for name in sections:
                part = told[name]
                assert part["total"] == whole[id][name]["total"]
                if part["truncated"] and name not in ("terms", "leadership"):
                    more = await read_rest_of_section(ask, part)
                    assert len(part["items"]) + len(more) == part["total"], (id, name)
                    followed.add(name)
        assert followed >= {"cosponsors", "actions", "members", "bills"}, followed


@requirement("federal:F")
async def test_a_section_that_fails_says_so_and_the_rest_still_comes(
    world: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(world / "federal", tmp_path / "federal")
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        (bill,) = db.execute("SELECT bill_id FROM bill_cosponsors LIMIT 1").fetchone()
        db.execute("DROP TABLE bill_actions")
    async with serve_in_process(tmp_path) as ask:
        told = await ask.answer("get_bill_dossier", bill_id=bill)
        assert told["actions"] == {
            "items": [],
            "note": None,
            "total": None,
            "truncated": False,
            "more_url": None,
            "error": {"code": "section_failed", "message": "actions could not be read"},
        }
        assert told["cosponsors"]["items"]
        assert told["bill"]["id"] == bill
    assert "no such table" in caplog.text


@requirement("federal:F", "federal:not-found")
async def test_a_dossier_of_nothing_is_not_found(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for path, id in (
            ("bills", "hr:1:1"),
            ("bills", "S000033"),
            ("legislators", "Z999999"),
            ("committees", "HSZZ"),
            ("public-laws", "pl:1-1"),
        ):
            missing = await ask.get(f"/{path}/{id}/dossier")
            assert missing.status_code == 404
            assert missing.json()["error"]["code"] == "record_not_found"


@requirement("federal:F")
async def test_a_dossier_is_read_at_one_moment(world: Path) -> None:
    async with serve_in_process(world) as ask:
        statements = trace_statements(ask.base)
        bill = (await read_whole_list(ask, "/bills"))[0]["id"]
        statements.clear()
        await ask.answer("get_bill_dossier", bill_id=bill)
    assert statements[0] == "BEGIN"
    assert statements[-1] == "COMMIT"
    assert sum(one in ("BEGIN", "COMMIT") for one in statements) == 2


@pytest.mark.data
@requirement("federal:F")
async def test_the_dossier_of_the_largest_real_bill(official: Path) -> None:
    async with serve_in_process(official) as ask:
        told = await ask.answer("get_bill_dossier", bill_id="hr:117:5376")
        assert told["bill"]["title"] == "Inflation Reduction Act of 2022"
        assert told["amendments"]["total"] == 250
        assert len(told["amendments"]["items"]) == MAX_SECTION_ITEMS
        assert {one["id"] for one in told["saps"]["items"]} >= {"sap:117:2021-11-03:hr5376"}
        assert told["cost_estimates"]["total"] > MAX_SECTION_ITEMS
        assert told["votes"]["total"] == 16
        assert [one["id"] for one in told["laws"]["items"]] == ["pl:117-169"]
        assert len(json.dumps(told)) < 200_000
        more = await read_rest_of_section(ask, told["amendments"])
        ids = [one["id"] for one in (*told["amendments"]["items"], *more)]
        assert len(ids) == len(set(ids)) == 250


COMMITTEES = """\
- type: house
  name: House Committee on Canals
  thomas_id: HSCN
  subcommittees:
  - name: Locks
    thomas_id: '29'
"""
PAST_COMMITTEES = """\
- type: house
  name: House Committee on Canals
  thomas_id: HSCN
  congresses:
  - 110
  - 111
  subcommittees:
""" + "".join(
    f"  - name: Towpaths {number}\n    thomas_id: '{number:02}'\n"
    f"    congresses:\n    - {congress}\n"
    for number, congress in enumerate([110] * 24 + [111], 1)
)


async def test_subcommittees_that_sit_come_before_those_of_the_past(tmp_path: Path) -> None:
    (tmp_path / "committees-current.yaml").write_text(COMMITTEES, "utf-8")
    (tmp_path / "committees-historical.yaml").write_text(PAST_COMMITTEES, "utf-8")
    load_files(tmp_path, *tmp_path.glob("committees-*.yaml"), embed=False)
    async with serve_in_process(tmp_path) as ask:
        now = await ask.answer("get_committee_dossier", committee_id="HSCN")
        then = await ask.answer("get_committee_dossier", committee_id="HSCN", congress=111)
    first, *past = now["subcommittees"]["items"]
    assert (first["id"], first["current"]) == ("HSCN29", True)
    assert len(past) == 25 and not any(each["current"] for each in past)
    # Those of another Congress are left out; since when one sits that sits now, no file says.
    assert [each["id"] for each in then["subcommittees"]["items"]] == ["HSCN29", "HSCN25"]
    assert "since when" in then["subcommittees"]["note"]
    assert now["subcommittees"]["note"] is None
