"""Roll calls by party, and one vocabulary of positions beside the printed words."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.store import get_database_path
from tests.bases.federal.test_dates_of_files import LEGISLATOR
from tests.bases.federal.test_schema import write_first_release
from tests.support.federal.base import load_files, serve_in_process

pytestmark = pytest.mark.anyio

HOUSE = """<?xml version="1.0"?><rollcall-vote><vote-metadata><congress>118</congress>
<session>1st</session><rollcall-num>37</rollcall-num><legis-num>H R 21</legis-num>
<vote-question>On Passage</vote-question><vote-result>Failed</vote-result>
<action-date>27-Jan-2023</action-date><vote-totals>
<totals-by-party><party>Republican</party><yea-total>1</yea-total><nay-total>215</nay-total>
<present-total>0</present-total><not-voting-total>9</not-voting-total></totals-by-party>
<totals-by-party><party>Democratic</party><yea-total>204</yea-total><nay-total>5</nay-total>
<present-total>0</present-total><not-voting-total>6</not-voting-total></totals-by-party>
<totals-by-vote><yea-total>205</yea-total><nay-total>220</nay-total><present-total>0</present-total>
<not-voting-total>15</not-voting-total></totals-by-vote></vote-totals></vote-metadata><vote-data>
<recorded-vote><legislator name-id="A000370" party="D" state="NC">Adams</legislator>
<vote>Aye</vote></recorded-vote>
<recorded-vote><legislator name-id="A000055" party="R" state="AL">Aderholt</legislator>
<vote>No</vote></recorded-vote></vote-data></rollcall-vote>"""
SENATE = """<?xml version="1.0"?><roll_call_vote><congress>108</congress><session>2</session>
<vote_number>213</vote_number><vote_date>November 17, 2004,  05:48 PM</vote_date>
<question>On Passage</question>
<count><yeas>2</yeas><nays>1</nays><present/><absent>1</absent></count>
<members>{members}</members></roll_call_vote>"""
MEMBER = """<member><last_name>{name}</last_name><party>{party}</party><state>OH</state>
<vote_cast>{cast}</vote_cast><lis_member_id>{lis}</lis_member_id></member>"""


async def test_a_roll_call_has_its_totals_by_party(tmp_path: Path) -> None:
    (tmp_path / "roll037.xml").write_text(HOUSE, "utf-8")
    casts = [
        ("R", "Yea"),
        ("R", "Nay"),
        ("D", "Yea"),
        ("D", "Not Voting"),
        ("I", "Present, Giving Live Pair"),
    ]
    members = "".join(
        MEMBER.format(name=f"Member{number}", party=party, cast=cast, lis=f"S9{number:02}")
        for number, (party, cast) in enumerate(casts)
    )
    (tmp_path / "vote.xml").write_text(SENATE.format(members=members), "utf-8")
    load_files(tmp_path, tmp_path / "roll037.xml", tmp_path / "vote.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        house = await ask.record("/roll-call-votes/house:118:1:37")
        assert house["party_totals"] == [
            {"party": "R", "yea": 1, "nay": 215, "present": 0, "not_voting": 9},
            {"party": "D", "yea": 204, "nay": 5, "present": 0, "not_voting": 6},
        ]
        senate = await ask.record("/roll-call-votes/senate:108:2:213")
        assert senate["party_totals_of"] is None  # of all
        assert {each["party"]: (each["yea"], each["nay"], each["present"], each["not_voting"])
                for each in senate["party_totals"]} == {
            "R": (1, 1, 0, 0), "D": (1, 0, 0, 1), "I": (0, 0, 1, 0),
        }  # fmt: skip
        voted = await ask.record("/roll-call-votes/house:118:1:37/members")
        told = [(one["position"], one["standard_position"]) for one in voted["results"]]
        assert told == [("Aye", "yea"), ("No", "nay")]
        counted = await ask.record("/member-votes", aggregate="count", group_by="standard_position")
        buckets = {each["key"]: each["value"] for each in counted["buckets"]}
        assert buckets == {"yea": 3, "nay": 2, "present": 1, "not_voting": 1}


async def test_parties_are_told_as_printed_where_few_members_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "roll037.xml").write_text(HOUSE, "utf-8")
    members = MEMBER.format(name="Gull", party="R", cast="Yea", lis="S901")
    (tmp_path / "vote.xml").write_text(SENATE.format(members=members), "utf-8")
    load_files(tmp_path, tmp_path / "roll037.xml", tmp_path / "vote.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        text = (await ask.answer("fetch", id="house:118:1:37"))["text"]
        assert "R: yea 1, not voting 9, nay 215" in text
        assert "D: yea 204, not voting 6, nay 5" in text
        # The totals are of all members: what is loaded of few is said as such.
        assert "By party, as printed (How 2 of 440 members voted is loaded here):" in text
        listed = await ask.answer(
            "list_records", source="roll_call_votes", id="house:118:1:37", part="members"
        )
        assert listed["vote"]["by_party"]["D"] == {"yea": 204, "not_voting": 6, "nay": 5}
        assert listed["note"] == "How 2 of 440 members voted is loaded here."
        assert (await ask.record("/roll-call-votes/house:118:1:37"))["party_totals_of"] is None
        # The Senate prints none: those of one member are told as such.
        senate_record = await ask.record("/roll-call-votes/senate:108:2:213")
        assert senate_record["party_totals_of"] == 1
        senate = (await ask.answer("fetch", id="senate:108:2:213"))["text"]
        assert "of the 1 members whose votes are loaded here" in senate


async def test_a_delegate_has_the_state_of_the_roster(tmp_path: Path) -> None:
    (tmp_path / "roll037.xml").write_text(HOUSE.replace('state="NC"', 'state="XX"'), "utf-8")
    roster = LEGISLATOR.replace("S999001", "A000370").replace("OH", "DC")
    (tmp_path / "legislators-current.yaml").write_text(roster, "utf-8")
    states = []
    for file_name in ("roll037.xml", "legislators-current.yaml"):
        load_files(tmp_path, tmp_path / file_name, embed=False)
        async with serve_in_process(tmp_path) as ask:
            voted = await ask.record("/roll-call-votes/house:118:1:37/members")
            states.append([member["state"] for member in voted["results"]])
    assert states == [[None, "AL"], ["DC", "AL"]]


def test_votes_of_a_first_release_have_the_standard_position_too(tmp_path: Path) -> None:
    path = write_first_release(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO roll_call_votes (id, record, loader) VALUES ('v', '{}', 'x')")
        db.execute(
            "INSERT INTO member_votes VALUES ('v', 1, NULL, NULL, 118, '', 'Ann', 'D', 'OH', 'Aye')"
        )
        db.commit()
    store.prepare_records(path)
    with closing(store.connect(get_database_path(tmp_path))) as db:
        (row,) = db.execute("SELECT position, standard_position FROM member_votes").fetchall()
        assert tuple(row) == ("Aye", "yea")
