"""The nine registries: listed, fetched, refused by search; and what their files get wrong."""

import json
import sqlite3
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.formats.lobbying import parse_dollars
from readingroom.bases.federal.formats.parts.mentions import find_bills, find_laws
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import Shape, Source, list_sources_of_shape
from readingroom.bases.federal.store import get_database_path
from tests.requirements import requirement
from tests.support.federal.base import asked, loaded, write_world

pytestmark = pytest.mark.anyio

REGISTRIES = list_sources_of_shape(Shape.REGISTRY)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("registries")
    write_world(data / "files")
    summary = loaded(data, data / "files", embed=False)
    assert summary.failed == 0, summary.errors
    assert summary.ignored == 0
    return data


def rows(data: Path, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(get_database_path(data))) as db:
        return db.execute(sql, values).fetchall()


def test_there_are_nine() -> None:
    assert sorted(source.path for source in REGISTRIES) == [
        "committee-memberships",
        "committees",
        "hearings",
        "lda-filings",
        "legislators",
        "regulations-dot-gov-dockets",
        "roll-call-votes",
        "staff-directories",
        "topic-taxonomy",
    ]


@requirement("federal:B", "federal:AC-12", "federal:C")
@pytest.mark.parametrize("source", REGISTRIES, ids=lambda source: source.name)
async def test_each_is_listed_fetched_and_refused_by_search(world: Path, source: Source) -> None:
    async with asked(world) as ask:
        listed = await ask.record(f"/{source.path}", limit=3)
        assert listed["results"], "the made-up world has some of each"
        for record in listed["results"]:
            fetched = await ask.answer("fetch", id=record["id"])
            assert fetched["record"] == await ask.record(f"/{source.path}/{record['id']}")
            assert record["citation"]["citation_string"].endswith(
                f"({record['published_at'] or 'n.d.'})"
            )
            assert rows(world, "SELECT 1 FROM name_forms WHERE record_id = ?", record["id"])
        for name in (source.name, source.path, *source.aliases):
            refused = await ask.call("search", query="rail", source=name)
            assert refused["_meta"]["error_code"] == "source_not_searchable"
            assert refused["_meta"]["hint"]["use_tool"] == "resolve_entity"


@pytest.mark.parametrize(
    ("path", "filters"),
    [
        ("/lda-filings", {"year": 2025}),
        ("/staff-directories", {"type": "district_office"}),
        ("/hearings", {"chamber": "senate"}),
        ("/hearings", {"congress": 119}),
        ("/topic-taxonomy", {"vocabulary": "lda"}),
        ("/regulations-dot-gov-dockets", {"type": "Rulemaking"}),
    ],
)
async def test_filters_narrow_a_registry(world: Path, path: str, filters: dict[str, Any]) -> None:
    async with asked(world) as ask:
        some = (await ask.record(path, limit=200, **filters))["results"]
        assert some
        ((name, value),) = filters.items()
        every = (await ask.record(path, limit=200))["results"]
        assert some == [record for record in every if record[name] == value]


# --- lobbying ---


def filing(number: int, form: str, posted: str, **told: Any) -> dict[str, Any]:
    return {
        "filing_uuid": f"00000000-0000-4000-8000-{number:012}",
        "filing_type": form,
        "filing_year": 2025,
        "filing_period": "first_quarter",
        "income": "10000.00",
        "expenses": None,
        "dt_posted": posted,
        "registrant": {"id": 1, "name": "FIRM"},
        "client": {"id": 2, "name": "CLIENT"},
        "lobbying_activities": [],
        **told,
    }


def page(data: Path, name: str, *filings: dict[str, Any]) -> None:
    (data / name).write_text(json.dumps({"results": filings}), "utf-8")
    summary = loaded(data, data / name, embed=False)
    assert summary.failed == 0, summary.errors


ORIGINAL = filing(1, "Q1", "2025-04-20T10:00:00-04:00")
AMENDED = filing(2, "1A", "2025-05-01T10:00:00-04:00", income="12500.50")
AGAIN = filing(3, "1A", "2025-06-01T10:00:00-04:00", income="13000.00")


@pytest.mark.parametrize(
    "order", [(ORIGINAL, AMENDED, AGAIN), (AGAIN, AMENDED, ORIGINAL), (AMENDED, AGAIN, ORIGINAL)]
)
async def test_of_an_amended_quarter_the_newest_filing_stands_whatever_came_first(
    tmp_path: Path, order: tuple[dict[str, Any], ...]
) -> None:
    for number, one in enumerate(order):
        page(tmp_path, f"page{number}.json", one)
    async with asked(tmp_path) as ask:
        (active,) = (await ask.record("/lda-filings"))["results"]
        assert (active["income"], active["amendment"]) == ("13000.00", True)
        for old in (ORIGINAL, AMENDED):
            gone = await ask.get(f"/lda-filings/lda:{old['filing_uuid']}")
            assert gone.status_code == 410
            assert gone.json()["error"]["hint"] == {"successor_id": active["id"]}


async def test_the_same_page_twice_and_the_same_filing_on_two_pages_are_one_filing(
    tmp_path: Path,
) -> None:
    page(tmp_path, "page.json", ORIGINAL)
    page(tmp_path, "again.json", ORIGINAL)
    page(tmp_path, "grown.json", ORIGINAL, ORIGINAL)
    assert rows(tmp_path, "SELECT id, status FROM lda_filings") == [
        (f"lda:{ORIGINAL['filing_uuid']}", "active")
    ]


def test_a_registration_and_the_report_of_its_quarter_stand_side_by_side(tmp_path: Path) -> None:
    registration = filing(9, "RR", "2025-01-02T10:00:00-05:00", income=None)
    other_client = filing(8, "Q1", "2025-04-21T10:00:00-04:00", client={"id": 3, "name": "C"})
    page(tmp_path, "page.json", registration, ORIGINAL, other_client)
    active = "SELECT count(*) FROM lda_filings WHERE status = 'active'"
    assert rows(tmp_path, active) == [(3,)]


def test_the_hour_that_comes_twice_is_told_apart(tmp_path: Path) -> None:
    """On the night the clocks go back, 01:30 of summer is an hour before 01:10 of winter."""
    summer = filing(1, "Q1", "2025-11-02T01:30:00-04:00")
    winter = filing(2, "1A", "2025-11-02T01:10:00-05:00")
    page(tmp_path, "page.json", winter, summer)
    active = "SELECT id FROM lda_filings WHERE status = 'active'"
    assert rows(tmp_path, active) == [(f"lda:{winter['filing_uuid']}",)]


def test_money_is_exact(tmp_path: Path) -> None:
    filings = [
        filing(n, "Q1", "2025-04-20T10:00:00-04:00", income="0.10", client={"id": n, "name": "C"})
        for n in range(1, 4)
    ]
    filings.append(
        filing(7, "Q1", "2025-04-20T10:00:00Z", income=None, expenses="9007199254740993.01",
               client={"id": 9, "name": "C"})
    )  # fmt: skip
    page(tmp_path, "page.json", *filings)
    assert rows(tmp_path, "SELECT sum(amount_cents) FROM lda_filings") == [(900719925474099331,)]
    assert parse_dollars("1.005") == Decimal("1.00")
    assert parse_dollars(None) is None
    with pytest.raises(ValueError, match="not an amount"):
        parse_dollars("a lot")


async def test_what_was_spent_is_summed_over_the_filings_that_stand(tmp_path: Path) -> None:
    other = filing(6, "Q1", "2025-04-20T10:00:00-04:00", income=None, expenses="0.10",
                   client={"id": 3, "name": "OTHER"})  # fmt: skip
    page(tmp_path, "page.json", ORIGINAL, AMENDED, other)
    async with asked(tmp_path) as ask:
        summed = await ask.record("/lda-filings", aggregate="sum", sum_field="amount", year=2025)
        assert summed["value"] == "12500.60"


def test_a_filing_that_is_no_filing_spoils_its_page_and_nothing_else(tmp_path: Path) -> None:
    page(tmp_path, "page.json", ORIGINAL)
    (tmp_path / "bad.json").write_text(json.dumps(filing(5, "Q1", "2025-04-20", income="?")))
    summary = loaded(tmp_path, tmp_path / "bad.json", embed=False)
    assert summary.failed == 1
    assert rows(tmp_path, "SELECT count(*) FROM lda_filings") == [(1,)]


async def test_a_filing_without_a_date_is_cited_as_such(tmp_path: Path) -> None:
    page(tmp_path, "page.json", filing(1, "Q1", "") | {"dt_posted": None})
    async with asked(tmp_path) as ask:
        (record,) = (await ask.record("/lda-filings"))["results"]
        assert record["published_at"] is None
        assert record["citation_string"].endswith("(n.d.)")


@pytest.mark.data
async def test_the_official_filings_are_in(official: Path) -> None:
    async with asked(official) as ask:
        lego = await ask.record("/lda-filings/lda:1b1e0584-7e23-4f4d-a41d-141aa86190b8")
        assert (lego["expenses"], lego["amount_cents"]) == ("100000.00", 10_000_000)
        assert lego["activities"][0]["government_entities"] == [
            "HOUSE OF REPRESENTATIVES",
            "SENATE",
        ]
        linked = await ask.record(f"/lda-filings/{lego['id']}/links")
        assert [one["id"] for one in linked["results"]] == ["topic:environment-superfund"]


# --- what texts name ---


@pytest.mark.parametrize(
    ("text", "bills"),
    [
        ("H.R. 1, the One Act", ["hr:119:1"]),
        ("HR 25 and S. 30; S.J.Res. 7/H.Con.Res.14", ["hr:119:25", "s:119:30", "sjres:119:7",
         "hconres:119:14"]),
        ("H.R. 4435\u2014National Defense", ["hr:119:4435"]),
        ("H.R. 3684 (117th Congress)", ["hr:117:3684"]),
        ("S. 1260 of the 117th Congress", ["s:117:1260"]),
        ("H.RES.5 and H. Res. 6", ["hres:119:5", "hres:119:6"]),
        ("410 U.S. 113; U. S. 5; 12 S. 4th Street; 300 S. 400 West", []),
        ("Form S 1, section S. 1.2, S. 3-4, H.R. 12,000", []),
        ("THR 5, chr 7, 24 hr 1", []),
    ],
)  # fmt: skip
def test_bills_are_known_in_a_text_and_what_looks_like_one_is_not(
    text: str, bills: list[str]
) -> None:
    links = list(find_bills(text, 119, LinkKind.FILING, "description"))
    assert [link.id for link in links] == bills
    assert all(link.evidence.startswith("description: ") for link in links)


def test_laws_are_known_in_a_text() -> None:
    text = "P.L. 117\u201358, Public Law 94-329, Pub. L. No. 111-148; PL 5-; XP.L. 1-2"
    named = [link.id for link in find_laws(text, LinkKind.MENTION, "text")]
    assert named == ["pl:117-58", "pl:94-329", "pl:111-148"]


# --- hearings ---


@pytest.mark.data
@requirement("federal:links")
async def test_an_official_meeting_is_linked_to_the_bills_on_its_table(official: Path) -> None:
    async with asked(official) as ask:
        meeting = await ask.record("/hearings/hearing:house-102252")
        assert meeting["committees"] == ["HSRU"]
        assert meeting["bills"] == ["hr:113:4435", "hr:113:4660"]
        linked = await ask.record("/hearings/hearing:house-102252/links", kind="hearing")
        why = {one["id"]: one["evidence"][0]["words"] for one in linked["results"]}
        assert why["hr:113:4435"].startswith("legis-num: H.R. 4435")
        assert why["hr:113:4660"].startswith("meeting-title:")
        spoke = await ask.record("/hearings/hearing:house-102266/witnesses")
        assert spoke["results"][0]["organization"] == "U.S. Postal Service"


async def test_witnesses_and_meeting_meet_whichever_file_came_first(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=0)
    meeting = tmp_path / "files" / "HMTG-119-00001.xml"
    spoke = tmp_path / "files" / "witnesses-900001.xml"
    for name, order in (("one", (meeting, spoke)), ("two", (spoke, meeting))):
        for file in order:
            loaded(tmp_path / name, file, embed=False)
        async with asked(tmp_path / name) as ask:
            told = await ask.record("/hearings/hearing:house-900001")
            assert told["held_at"] == "2025-03-02"
            heard = await ask.record("/hearings/hearing:house-900001/witnesses")
            assert heard["total"] == 2


async def test_a_printed_hearing_leads_to_its_meeting_and_the_meeting_to_its_bill(
    world: Path,
) -> None:
    async with asked(world) as ask:
        printed = await ask.record("/hearings/hearing:CHRG-119shrg60001/links")
        assert ("related", "hearing:senate-335000") in [
            (one["kind"], one["id"]) for one in printed["results"]
        ]
        meeting = await ask.record("/hearings/hearing:senate-335000/links", kind="hearing")
        assert [one["id"] for one in meeting["results"]] == ["s:119:3"]


def test_a_meeting_without_a_date_is_kept(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(
        '<committee-meeting congress-num="119" meeting-id="HHRG5" meeting-type="HHRG">'
        "<meeting-details><meeting-title>To be announced</meeting-title></meeting-details>"
        "</committee-meeting>",
        "utf-8",
    )
    assert loaded(tmp_path / "data", tmp_path / "m.xml", embed=False).failed == 0
    assert rows(tmp_path / "data", "SELECT id, published_at, type FROM hearings") == [
        ("hearing:house-5", None, "hearing")
    ]


# --- offices and topics ---


@pytest.mark.data
async def test_every_official_office_is_in_and_leads_to_its_member(official: Path) -> None:
    counted = dict(rows(official, "SELECT type, count(*) FROM staff_directories GROUP BY type"))
    assert (counted["district_office"], counted["social_media"]) == (1_312, 519)
    # Who sits changes with the day; who does not has no office in Washington.
    former = """SELECT count(*) FROM staff_directories o JOIN legislators l ON l.id = o.bioguide_id
                WHERE o.type = 'washington_office' AND NOT l.current"""
    assert rows(official, former) == [(0,)]
    async with asked(official) as ask:
        office = await ask.record("/staff-directories/staff:P000620-canon_city")
        assert office["city"] == "Cañon City"
        (member,) = (await ask.record(f"/staff-directories/{office['id']}/links"))["results"]
        assert (member["kind"], member["id"]) == ("office", "P000620")
    named = "SELECT form FROM name_forms WHERE record_id = 'staff:A000055-cullman'"
    assert ("Robert B. Aderholt Cullman",) in rows(official, named)


def test_an_office_that_closed_is_withdrawn(tmp_path: Path) -> None:
    office = "  - id: A900001-{0}\n    city: {0}\n    state: AL\n"
    start = "- id:\n    bioguide: A900001\n  offices:\n"
    file = tmp_path / "legislators-district-offices.yaml"
    for cities in (("Nowhere", "Elsewhere"), ("Nowhere",)):
        file.write_text(start + "".join(office.format(city) for city in cities), "utf-8")
        loaded(tmp_path / "data", file, embed=False)
    assert rows(tmp_path / "data", "SELECT id, status FROM staff_directories ORDER BY 1") == [
        ("staff:A900001-Elsewhere", "withdrawn"),
        ("staff:A900001-Nowhere", "active"),
    ]


@pytest.mark.data
async def test_topics_know_the_wider_subject_and_are_areas_by_name(official: Path) -> None:
    async with asked(official) as ask:
        topic = await ask.record("/topic-taxonomy/topic:adoption-and-foster-care")
        assert topic["parent_id"] == "topic:families"
        assert (await ask.record("/topic-taxonomy/topic:families"))["policy_area"]
        narrower = await ask.record("/topic-taxonomy", parent_id="topic:families", limit=200)
        assert topic["id"] in [one["id"] for one in narrower["results"]]
    # Two subjects bear the name of an area; whichever a file names first, it is one.
    areas = "SELECT count(*) FROM topic_taxonomy WHERE policy_area AND id IN (?, ?)"
    assert rows(official, areas, "topic:native-americans", "topic:taxation") == [(2,)]


# --- votes ---


def test_a_senate_vote_on_forty_eight_papers_is_linked_to_each_bill_once(tmp_path: Path) -> None:
    papers = "".join(
        f"<document><document_congress>118</document_congress><document_type>{kind}"
        f"</document_type><document_number>{number}</document_number>"
        f"<document_name>{kind} {number}</document_name></document>"
        for number in range(1, 25)
        for kind in ("PN", "S.Res.")
    )
    vote = (
        "<roll_call_vote><congress>118</congress><session>1</session><vote_number>9</vote_number>"
        f"<vote_date>March 1, 2023,  11:00 AM</vote_date>{papers}"
        "<amendment><amendment_number>S.Amdt. 77</amendment_number></amendment>"
        "<members><member><first_name>Ada</first_name><last_name>Ashgrove</last_name>"
        "<vote_cast>Yea</vote_cast><lis_member_id>S999</lis_member_id></member></members>"
        "</roll_call_vote>"
    )
    (tmp_path / "vote.xml").write_text(vote, "utf-8")
    assert loaded(tmp_path, tmp_path / "vote.xml", embed=False).failed == 0
    linked = [id for (id,) in rows(tmp_path, "SELECT to_id FROM links WHERE kind = 'vote'")]
    resolutions = {f"sres:118:{number}" for number in range(1, 25)}
    # Nominations are no bills: they are in the vote's title, not among its links.
    assert set(linked) == resolutions | {"amdt:118:samdt:77"}
    assert len(linked) == 25


async def test_a_vote_without_bioguide_ids_keeps_its_names(tmp_path: Path) -> None:
    """House files before 2003 name members and no numbers; an election names candidates."""
    vote = (
        "<rollcall-vote><vote-metadata><congress>107</congress><session>1st</session>"
        "<rollcall-num>2</rollcall-num><legis-num>QUORUM</legis-num>"
        "<vote-question>Election of the Speaker</vote-question></vote-metadata><vote-data>"
        '<recorded-vote><legislator party="R" state="AL">Aderholt</legislator>'
        "<vote>Hastert</vote></recorded-vote></vote-data></rollcall-vote>"
    )
    (tmp_path / "roll002.xml").write_text(vote, "utf-8")
    assert loaded(tmp_path, tmp_path / "roll002.xml", embed=False).failed == 0
    async with asked(tmp_path) as ask:
        (one,) = (await ask.record("/roll-call-votes/house:107:1:2/members"))["results"]
        assert (one["bioguide_id"], one["name"], one["position"]) == (None, "Aderholt", "Hastert")
        record = await ask.record("/roll-call-votes/house:107:1:2")
        assert record["published_at"] is None, "the file bears no date, and none is made up"
        assert (await ask.record("/roll-call-votes/house:107:1:2/links"))["results"] == []
