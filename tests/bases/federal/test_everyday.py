"""What researchers ask every day, each in one call or two by MCP alone, in answers one can read."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.query import dossiers
from tests.support.federal.base import Asked, load_files, serve_in_process, write_world

pytestmark = pytest.mark.anyio

MAX_TOKENS = 4_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("everyday")
    write_world(data / "files", bills=60, votes=6)
    load_files(data, data / "files")
    return data


async def read_whole_list(ask: Asked, **arguments: Any) -> list[dict[str, Any]]:
    """A list to its end, page by page."""
    rows: list[dict[str, Any]] = []
    while True:
        page = await ask.answer("list_records", **arguments)
        rows += page["results"]
        if not page["has_more"]:
            return rows
        arguments["cursor"] = page["next_cursor"]


async def test_records_are_listed_by_filter_and_paged(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        sponsor = bills[0]["sponsors"][0]
        wanted = [bill["id"] for bill in bills
                  if bill["sponsors"][0]["bioguide_id"] == sponsor["bioguide_id"]]  # fmt: skip
        listed = await read_whole_list(
            ask, source="bills", filters={"sponsor": sponsor["bioguide_id"]}, limit=1
        )
        assert [row["id"] for row in listed] == wanted
        conditions = [f"sponsor={sponsor['bioguide_id']}", f"congress={bills[0]['congress']}"]
        same = await read_whole_list(ask, source="bills", filters=conditions, limit=1)
        assert [row["id"] for row in same] == wanted
        wrong = {"source": "bills", "filters": ["sponsor"]}
        refused = await ask.rpc("tools/call", {"name": "list_records", "arguments": wrong})
        assert "name=value" in refused["error"]["message"]
        newest = await ask.answer(
            "list_records", source="bills", filters={"since": bills[3]["published_at"]}
        )
        assert newest["results"][0]["id"] == bills[0]["id"]
        assert "latest_action" in newest["results"][0]


@pytest.mark.parametrize("part", ["actions", "cosponsors", "amendments", "links"])
async def test_all_that_belongs_to_a_bill_is_reached(world: Path, part: str) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        reached = 0
        amended = {row["bill_id"] for row in (await ask.record("/amendments"))["results"]}
        for bill in [*bills[:6], *(bill for bill in bills if bill["id"] in amended)]:
            path = f"/bills/{bill['id']}/{part}"
            all_rows = (await ask.record(path, limit=200))["results"]
            listed = await read_whole_list(ask, source="bills", id=bill["id"], part=part, limit=2)
            # Over REST the sponsors are no links, as in 0.1.0.
            cited = [row for row in listed if row.get("kind") not in ("sponsor", "cosponsor")]
            assert len(cited) == len(all_rows)
            reached += len(cited)
        assert reached > 0


async def test_sponsors_and_cosponsors_are_links_of_the_bill_and_of_the_member(
    world: Path,
) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        bill = max(bills, key=lambda bill: bill["cosponsor_count"])
        cosponsors = (await ask.record(f"/bills/{bill['id']}/cosponsors", limit=200))["results"]
        links = await read_whole_list(ask, source="bills", id=bill["id"], part="links", limit=2)
        keys = [(link["kind"], link["id"]) for link in links]
        assert len(keys) == len(set(keys)), "every link once, page by page"
        sponsor = bill["sponsors"][0]
        place = keys.index(("sponsor", sponsor["bioguide_id"]))
        assert keys[place + 1 :] == sorted(
            ("cosponsor", one["bioguide_id"]) for one in cosponsors
        ), "after all citations: first the sponsor"
        (why,) = links[place]["evidence"]
        assert why == {
            "said_by": bill["id"], "loader": why["loader"], "words": f"sponsors: {sponsor['name']}"
        }  # fmt: skip
        joined = {one["bioguide_id"]: one["sponsored_at"] for one in cosponsors}
        for link in links[place + 1 :]:
            assert f"since {joined[link['id']]}" in link["evidence"][0]["words"]
        counted = Counter(kind for kind, _ in keys)
        assert (await ask.answer("fetch", id=bill["id"]))["links"] == dict(counted)
        for kind, member in (("sponsor", sponsor), ("cosponsor", cosponsors[0])):
            back = await read_whole_list(
                ask,
                source="legislators",
                id=member["bioguide_id"],
                part="links",
                filters={"kind": kind},
                limit=200,
            )
            assert bill["id"] in {link["id"] for link in back}
            assert {link["kind"] for link in back} == {kind}
            if kind == "sponsor":
                assert {link["id"] for link in back} == {
                    one["id"]
                    for one in bills
                    if one["sponsors"][0]["bioguide_id"] == member["bioguide_id"]
                }


async def test_who_voted_no_is_one_call(world: Path) -> None:
    async with serve_in_process(world) as ask:
        vote = (await ask.record("/roll-call-votes", limit=1))["results"][0]
        members = (await ask.record(f"/roll-call-votes/{vote['id']}/members", limit=200))["results"]
        for party in ("D", "R"):
            noes = [
                member["bioguide_id"]
                for member in members
                if member["position"] in ("No", "Nay") and member["party"] == party
            ]
            answer = await ask.answer(
                "list_records",
                source="roll-call-votes",
                id=vote["id"],
                part="members",
                filters={"position": "no", "party": party},
                limit=200,
            )
            assert [row["bioguide_id"] for row in answer["results"]] == noes
            assert answer["total"] == len(noes)


async def test_a_vote_by_party_is_one_call(world: Path) -> None:
    async with serve_in_process(world) as ask:
        vote = (await ask.record("/roll-call-votes", limit=1))["results"][0]
        members = (await ask.record(f"/roll-call-votes/{vote['id']}/members", limit=200))["results"]
        text = (await ask.answer("fetch", id=vote["id"]))["text"]
        assert vote["result"] in text
        for party in {member["party"] for member in members}:
            yeas = sum(member["party"] == party and member["position"] in ("Yea", "Aye")
                       for member in members)  # fmt: skip
            line = next(line for line in text.splitlines() if line.startswith(f"{party}: "))
            assert yeas == 0 or f"yea {yeas}" in line


async def test_agreement_and_missed_votes_are_counted_over_loaded_votes(world: Path) -> None:
    """Against plain Python, with how many votes there are, and of which days."""
    async with serve_in_process(world) as ask:
        votes = (await ask.record("/roll-call-votes", limit=200))["results"]
        cast = {
            vote["id"]: (await ask.record(f"/roll-call-votes/{vote['id']}/members", limit=200))[
                "results"
            ]
            for vote in votes
        }
        sides = {"Yea": 1, "Aye": 1, "Nay": -1, "No": -1}
        member = cast[votes[0]["id"]][0]
        own = {id: row for id, rows in cast.items() for row in rows
               if row["bioguide_id"] == member["bioguide_id"]}  # fmt: skip
        compared = agreed = 0
        for id, row in own.items():
            balance = sum(sides.get(other["position"], 0) for other in cast[id]
                          if other["party"] == row["party"])  # fmt: skip
            side = sides.get(row["position"], 0)
            compared += bool(side and balance)
            agreed += side * balance > 0
        dossier = await ask.answer("get_legislator_dossier", bioguide_id=member["bioguide_id"])
        (told,) = dossier["voting"]["items"]
        assert told["votes"] == len(own) == 6
        assert told["missed"] == sum(row["position"] == "Not Voting" for row in own.values())
        assert (told["compared_with_party"], told["with_party"]) == (compared, agreed)
        days = sorted(vote["voted_at"][:10] for vote in votes)
        assert (told["from"], told["to"]) == (days[0], days[-1])
        assert "loaded" in dossier["voting"]["note"]
        alike = await ask.answer(
            "list_records", source="legislators", id=member["bioguide_id"], part="voted_alike"
        )
        first = alike["results"][0]
        together = [
            (sides[row["position"]], sides[other["position"]])
            for id, row in own.items()
            for other in cast[id]
            if other["bioguide_id"] == first["bioguide_id"]
            and row["position"] in sides
            and other["position"] in sides
        ]
        assert first["votes_together"] == len(together)
        assert first["alike"] == sum(left == right for left, right in together)


async def test_who_lobbied_on_a_bill_is_one_call(world: Path) -> None:
    async with serve_in_process(world) as ask:
        filings = (await ask.record("/lda-filings", limit=200))["results"]
        clients: dict[str, Counter[str]] = {}
        for filing in filings:
            said = " ".join(activity["description"] for activity in filing["activities"])
            for number in set(re.findall(r"H\.R\. (\d+)", said)):
                clients.setdefault(f"hr:119:{number}", Counter())[filing["client"]] += 1
        assert clients
        for bill, wanted in clients.items():
            told = await ask.answer(
                "count", resource="lda-filings", group_by="client", filters={"bill": bill}
            )
            assert {each["key"]: each["value"] for each in told["buckets"]} == dict(wanted)


REFERRALS = """<committees><item><name>Agriculture Committee</name>
<systemCode>hsag00</systemCode><chamber>House</chamber><activities>
<item><name>Reported by</name><date>2026-03-09T15:00:00Z</date></item>
<item><name>Referred to</name><date>2025-11-20T15:00:00Z</date></item></activities>
<subcommittees><item><name>Forestry Subcommittee</name><systemCode>hsag15</systemCode>
<activities><item><name>Markup by</name><date>2026-03-02T15:00:00Z</date></item></activities>
</item></subcommittees></item></committees><policyArea>"""


async def test_what_a_committee_did_in_a_month_is_one_call(tmp_path: Path) -> None:
    """By the day of each action, not by that on which the bill was introduced."""
    made = write_world(tmp_path / "files", bills=2, votes=1)
    name, text = next(made.bills(1))
    (tmp_path / "files" / name).write_text(text.replace("<policyArea>", REFERRALS, 1), "utf-8")
    committees = tmp_path / "files" / "committees-current.yaml"
    listed = committees.read_text("utf-8").replace(
        "thomas_id: HSAG\n",
        "thomas_id: HSAG\n  subcommittees:\n  - name: Forestry\n    thomas_id: '15'\n",
    )
    committees.write_text(listed, "utf-8")
    load_files(tmp_path, tmp_path / "files", embed=False)
    march = {"since": "2026-03-01", "until": "2026-03-31"}
    asking: dict[str, Any] = {"source": "committees", "id": "HSAG", "part": "actions"}
    async with serve_in_process(tmp_path) as ask:
        done = await read_whole_list(ask, **asking, filters=march, limit=1)
        ever = await read_whole_list(ask, **asking, limit=2)
        wrong = {**asking, "filters": {"since": "in spring"}}
        refused = await ask.rpc("tools/call", {"name": "list_records", "arguments": wrong})
    assert [(row["date"], row["action"], row["committee"]) for row in done] == [
        ("2026-03-09", "Reported by", "HSAG"),
        ("2026-03-02", "Markup by", "HSAG15"),
    ]
    assert len({row["id"] for row in done}) == 1
    assert ("2025-11-20", "Referred to") in {(row["date"], row["action"]) for row in ever}
    assert [row["date"] for row in ever] == sorted((row["date"] for row in ever), reverse=True)
    assert "since" in refused["error"]["message"]


async def test_what_is_new_since_a_day_is_one_call(world: Path) -> None:
    async with serve_in_process(world) as ask:
        new = await read_whole_list(
            ask, source="changes", filters={"since": "2000-01-01", "source": "bills"}, limit=50
        )
        assert {row["kind"] for row in new} == {"new"}
        assert len(new) == (await ask.answer("count", resource="bills"))["value"]


async def test_fetch_takes_every_address_that_answers_print(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dossiers, "MAX_SECTION_ITEMS", 1)
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        followed = 0
        for bill in bills[:12]:
            dossier = await ask.answer("get_bill_dossier", bill_id=bill["id"])
            for name, section in dossier.items():
                address = section.get("more_url") if isinstance(section, dict) else None
                shown = len(section["items"]) if address else 0
                while address:
                    page = await ask.answer("fetch", id=address)
                    shown += len(page["record"]["results"])
                    address = page["more_url"]
                    followed += 1
                if shown:
                    assert shown == section["total"], (bill["id"], name)
            links = await ask.answer("fetch", id=bill["id"])
            if links["links_url"]:
                page = await ask.answer("fetch", id=links["links_url"])
                assert page["record"]["total"] == sum(links["links"].values())
        assert followed > 3


async def test_a_cursor_of_another_list_is_refused(world: Path) -> None:
    async with serve_in_process(world) as ask:
        cursor = (await ask.record("/bills", limit=1))["next_cursor"]
        refused = await ask.get("/committee-memberships", cursor=cursor)
        assert refused.json()["error"]["code"] == "invalid_cursor"
        assert (await ask.get("/bills", cursor=cursor)).status_code == 200


async def test_a_cursor_is_of_the_filters_it_was_given_out_with(world: Path) -> None:
    """Over both doors, and for the addresses that answers print."""
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        congress = bills[0]["congress"]
        listed = await ask.answer(
            "list_records", source="bills", filters={"congress": congress}, limit=1
        )
        for filters in ({"congress": congress - 1}, {"congress": congress, "type": "hr"}, None):
            refused = await ask.call(
                "list_records", source="bills", filters=filters, cursor=listed["next_cursor"]
            )
            assert refused["_meta"]["error_code"] == "invalid_cursor", filters
            assert "repeat the filters" in str(refused)
        params = {"cursor": listed["next_cursor"], "limit": 1}
        for wrong in (
            {},
            {"congress": congress - 1},
            {"congress": congress, "since": "2000-01-01"},
        ):
            refused = await ask.get("/bills", **params, **wrong)
            assert refused.json()["error"]["code"] == "invalid_cursor", wrong
        assert (await ask.get("/bills", **params, congress=congress)).status_code == 200
        vote = (await ask.record("/roll-call-votes", limit=1))["results"][0]["id"]
        question = {"source": "roll_call_votes", "id": vote, "part": "members", "limit": 1}
        yeas = await ask.answer("list_records", **question, filters={"party": "D"})
        refused = await ask.call(
            "list_records", **question, filters={"party": "R"}, cursor=yeas["next_cursor"]
        )
        assert refused["_meta"]["error_code"] == "invalid_cursor"
        changes = await ask.record("/changes", since="2000-01-01", source="bills", limit=1)
        for wrong in ({}, {"source": "committees"}, {"source": "bills", "kind": "new"}):
            refused = await ask.get("/changes", cursor=changes["resume_cursor"], **wrong)
            assert refused.json()["error"]["code"] == "invalid_cursor", wrong


async def test_empty_is_told_from_not_loaded(world: Path) -> None:
    async with serve_in_process(world) as ask:
        committee = (await ask.record("/committees", limit=1))["results"][0]["id"]
        dossier = await ask.answer("get_committee_dossier", committee_id=committee, congress=90)
        assert "90th Congress is loaded" in dossier["members"]["note"]
        law = await ask.call("get_public_law_dossier", id="pl:1-1")
        assert law["isError"]


UNCOVERED = {
    "nominations": (
        "Nominations are not covered",
        "roll_call_votes",
        (
            "PN 345",
            "PN12-3, 119th Congress",
            "https://www.congress.gov/nomination/119th-congress/12",
        ),
    ),
    "treaties": (
        "Treaties are not covered",
        "committee_reports",
        (
            "Treaty Doc. 117-3",
            "https://www.congress.gov/treaty-document/117th-congress/3",
            "CDOC-117tdoc3",
        ),
    ),
    "executive-communications": (
        "Communications to Congress are not covered",
        "congressional_record",
        ("EC-1234", "https://www.congress.gov/senate-communication/119th-congress/1/12"),
    ),
    "committee prints": (
        "Committee prints are not covered",
        "committee_reports",
        ("CPRT-118HPRT50000", "https://www.congress.gov/committee-print/118th-congress/1"),
    ),
}
"""Kinds that no source has: what an answer says of them, what it points to, their citations."""


@pytest.mark.parametrize("kind", UNCOVERED)
async def test_what_no_source_covers_is_said_and_never_a_silent_nothing(
    world: Path, kind: str
) -> None:
    told, instead, citations = UNCOVERED[kind]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("list_records", {"source": kind}),
        ("search", {"query": "the ambassador", "source": kind}),
        ("count", {"resource": kind}),
        ("resolve_entity", {"query": "the ambassador", "entity_type": kind}),
        *(("fetch", {"id": citation}) for citation in citations),
        *(("get_bill", {"bill_id": citation}) for citation in citations),
    ]
    async with serve_in_process(world) as ask:
        for tool, arguments in calls:
            refused = await ask.rpc("tools/call", {"name": tool, "arguments": arguments})
            text = json.dumps(refused)
            assert told in text and instead in text, (tool, arguments, text)
            assert "error" in refused or refused["result"]["isError"], (tool, arguments)
        for words in (kind.replace("-", " "), citations[0]):
            found = await ask.answer("search", query=words)
            assert told in found["note"], words
            named = await ask.answer("resolve_entity", query=words, entity_type="legislators")
            assert told in named["note"], words
        assert (await ask.answer("search", query="rural broadband"))["note"] is None


async def test_a_roster_tells_party_and_state(world: Path) -> None:
    async with serve_in_process(world) as ask:
        roster = await ask.answer("list_committee_members", id="HSAG")
        for seat in roster["results"]:
            member = await ask.record(f"/legislators/{seat['bioguide_id']}")
            assert (seat["party"], seat["state"]) == (member["party"], member["state"])


async def test_default_answers_can_be_read(world: Path) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        longest = max(bills, key=lambda bill: bill["action_count"] + bill["amendment_count"])
        for tool, arguments in (
            ("search", {"query": "to improve rural broadband and fund school nutrition"}),
            ("get_bill_dossier", {"bill_id": longest["id"]}),
            ("list_committee_members", {"id": "HSAG"}),
            ("list_records", {"source": "bills"}),
        ):
            text = (await ask.call(tool, **arguments))["content"][0]["text"]
            assert len(text) / 4 <= MAX_TOKENS, tool
        found = await ask.answer("search", query="to improve rural broadband", source="bills")
        rest = await ask.answer(
            "search",
            query="to improve rural broadband",
            source="bills",
            offset=found["next_offset"] or 0,
        )
        if found["next_offset"]:
            ids = [hit["id"] for hit in (*found["results"], *rest["results"])]
            assert len(ids) == len(set(ids))


async def test_the_listing_is_short(world: Path) -> None:
    async with serve_in_process(world) as ask:
        listed = await ask.rpc("tools/list", {})
    tools = listed["result"]["tools"]
    assert measure(tools) <= 12_000
    chosen_by = [
        {name: tool[name] for name in ("name", "description", "inputSchema")} for tool in tools
    ]
    assert measure(chosen_by) <= 7_809


def measure(value: Any) -> float:
    """Tokens, at four bytes each."""
    return len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()) / 4
