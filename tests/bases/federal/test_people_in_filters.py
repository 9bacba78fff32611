"""A name in a filter is one of those whose records are here, never a namesake's silent 0."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bases.federal.test_posts import make_person
from tests.support.federal.base import Asked, load_files, serve_in_process
from tests.support.federal.world import Member, World
from tests.support.federal.world_texts import record_issue

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]

TODAY = ("rep", "2023-01-03", "2031-01-03")
PEOPLE = [
    make_person("L000593", "Mike", "Levin", [(*TODAY, "CA")]),
    make_person("M001226", "Robert", "Menendez", [(*TODAY, "NJ")], nickname="Rob"),
    make_person("H001098", "Abraham", "Hamadeh", [(*TODAY, "AZ")]),
    make_person("L000577", "Mike", "Lee", [("sen", "2011-01-03", "2031-01-03", "UT")]),
    make_person("H001072", "French", "Hill", [(*TODAY, "AR")]),
    make_person("W000797", "Debbie", "Wasserman Schultz", [(*TODAY, "FL")]),
    make_person("K000401", "Kim", "Doe", [(*TODAY, "CA")]),
    *(make_person(f"S90000{n}", f"Given{n}", "Smith", [(*TODAY, "OH")]) for n in range(6)),
]
SPONSOR = ("M000639", "Sen. Menendez, Robert [D-NJ]")
COSPONSORS_BY_BILL = {
    1: [
        ("A000374", "Rep. Abraham, Ralph Lee [R-LA-5]"),
        ("H001072", "Rep. Hill, J. French [R-AR-2]"),
        ("L000551", "Rep. Lee, Barbara [D-CA-13]"),
        ("J000032", "Rep. Jackson Lee, Sheila [D-TX-18]"),
        ("M001187", "Rep. Meadows [R-NC-11]"),
        *((f"S90000{n}", f"Rep. Smith, Given{n} [R-OH-{n}]") for n in range(6)),
    ],
    2: [
        ("A000374", "Rep. Abraham, Ralph Lee [R-LA-5]"),
        ("J000032", "Rep. Jackson Lee, Sheila [D-TX-18]"),
        ("S900005", "Rep. Smith, Given5 [R-OH-5]"),
        ("L000577", "Sen. Lee, Mike [R-UT]"),
        ("H001071", "Rep. Hice, Jody B. [R-GA-10]"),
        ("H001087", "Rep. Hill [D-CA-25]"),
    ],
}
SPEAKERS = [
    Member("L000261", "S000001", "Carl", "Levin", "MI", "Democrat", True),
    Member("L000551", "S000002", "Barbara", "Lee", "CA", "Democrat", False),
    Member("J000032", "S000003", "Sheila", "Jackson-Lee", "TX", "Democrat", False),
    Member("M000639", "S000004", "Robert", "Menendez", "NJ", "Democrat", False),
]
VOTE = """<?xml version="1.0"?><rollcall-vote><vote-metadata><congress>118</congress>
<session>1st</session><rollcall-num>1</rollcall-num><legis-num>H R 1</legis-num>
<vote-question>On Passage</vote-question><vote-result>Passed</vote-result>
<action-date>11-Jan-2023</action-date></vote-metadata><vote-data>
<recorded-vote><legislator name-id="J000032" party="D" state="TX">Jackson Lee</legislator>
<vote>Yea</vote></recorded-vote></vote-data></rollcall-vote>"""


def write_bill(number: int, cosponsors: Sequence[tuple[str, str]]) -> str:
    def write_person(bioguide: str, full_name: str) -> str:
        return (
            f"<item><bioguideId>{bioguide}</bioguideId><fullName>{full_name}</fullName>"
            "<sponsorshipDate>2025-02-01</sponsorshipDate></item>"
        )

    return f"""<billStatus><version>3.0.0</version><bill><number>{number}</number>
<type>HR</type><congress>119</congress><updateDate>2025-03-01T05:00:00Z</updateDate>
<originChamber>House</originChamber><introducedDate>2025-02-01</introducedDate>
<title>Canals Act {number}</title><sponsors>{write_person(*SPONSOR)}</sponsors>
<cosponsors>{"".join(write_person(*person) for person in cosponsors)}</cosponsors>
</bill></billStatus>"""


@pytest.fixture(scope="module")
def data(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("people")
    files = folder / "files"
    files.mkdir()
    (files / "legislators-current.yaml").write_text(yaml.safe_dump(PEOPLE, sort_keys=False))
    (files / "roll001.xml").write_text(VOTE)
    for number, cosponsors in COSPONSORS_BY_BILL.items():
        (files / f"BILLSTATUS-119hr{number}.xml").write_text(write_bill(number, cosponsors))
    world = World(1)
    world.__dict__["members"] = SPEAKERS
    for name, text in record_issue(world, date(2025, 3, 4)):
        (files / name).write_text(text, "utf-8")
    for number, president, congress, year in (
        (41, "Bush", 101, 1989),
        (43, "Bush", 107, 2001),
        (44, "Obama", 111, 2009),
    ):
        (files / f"{number}-{president}.yaml").write_text(
            f"- bills:\n  - hr1\n  document_title: H.R. 1 – Statement {number}\n"
            f"  congress: {congress}\n  date_issued: '{year}-03-01'\n  date_fetched: '2025-03-09'\n"
            f"  url: https://www.whitehouse.gov/{number}\n"
        )
    load_files(folder, files, embed=False)
    return folder


async def count(ask: Asked, resource: str, **filters: Any) -> Any:
    return await ask.answer("count", resource=resource, filters=filters)


@pytest.mark.parametrize(
    ("resource", "filters", "person", "records"),
    [
        ("congressional-record", {"speaker": "Levin"}, "L000261", 1),
        ("congressional-record", {"speaker": "Sen. Levin of Michigan"}, "L000261", 1),
        ("congressional-record", {"speaker": "Robert Menendez"}, "M000639", 1),
        ("congressional-record", {"speaker": "Lee"}, "L000551", 1),
        ("congressional-record", {"speaker": "Jackson Lee"}, "J000032", 1),
        ("bills", {"sponsor": "Menendez"}, "M000639", 2),
        ("bills", {"sponsor": "Bob Menendez"}, "M000639", 2),
        ("bills", {"cosponsor": "Abraham"}, "A000374", 2),
        ("bills", {"cosponsor": "Hice"}, "H001071", 1),
        ("bills", {"cosponsor": "French Hill"}, "H001072", 1),
        ("bills", {"cosponsor": "Barbara Lee"}, "L000551", 1),
        ("bills", {"cosponsor": "Mark Meadows"}, "M001187", 1),
        ("congressional-record", {"speaker": "Carl Levinn"}, "L000261", 1),
    ],
)
async def test_a_name_is_taken_for_the_one_who_occurs(
    data: Path, resource: str, filters: dict[str, str], person: str, records: int
) -> None:
    async with serve_in_process(data) as ask:
        counted = await count(ask, resource, **filters)
        assert counted["filters_read"] == dict.fromkeys(filters, person)
        assert counted["value"] == records
        listed = await ask.record(f"/{resource}", **filters)
        assert len(listed["results"]) == records


async def test_a_search_takes_a_name_for_the_one_who_occurs_in_its_sources(data: Path) -> None:
    async with serve_in_process(data) as ask:
        in_record = {"source": "congressional_record", "query": "praise"}
        found = await ask.answer("lexical_search", **in_record, filters={"member": "Levin"})
        assert found["filters_read"] == {"member": "L000261"}
        assert len(found["results"]) == 1
        nowhere = await ask.answer("lexical_search", query="praise", filters={"member": "Doe"})
        assert "K000401 (Kim Doe" in nowhere["note"]


@pytest.mark.parametrize(
    ("cosponsor", "people"),
    [
        ("Lee", ["L000551", "L000577"]),
        ("Hill", ["H001072", "H001087"]),
        ("Smith", ["S900005", *(f"S90000{n}" for n in range(5))]),
    ],
)
async def test_several_who_occur_are_all_listed_by_how_often(
    data: Path, cosponsor: str, people: list[str]
) -> None:
    async with serve_in_process(data) as ask:
        refused = await ask.get("/bills", aggregate="count", cosponsor=cosponsor)
        message = refused.json()["error"]["message"]
    assert refused.status_code == 422
    assert "may be several" in message
    places = [message.find(person) for person in people]
    assert -1 not in places
    assert places == sorted(places)
    assert "J000032" not in message  # Jackson Lee is another surname


@pytest.mark.parametrize(
    ("cosponsor", "person"),
    [("Kim", "K000401"), ("Schultz", "W000797"), ("Wasserman", "W000797"), ("French", "H001072")],
)
async def test_a_part_of_a_name_is_no_surname(data: Path, cosponsor: str, person: str) -> None:
    async with serve_in_process(data) as ask:
        refused = await ask.get("/bills", aggregate="count", cosponsor=cosponsor)
    assert refused.status_code == 422
    assert "is nobody's surname here" in refused.json()["error"]["message"]
    assert person in refused.json()["error"]["message"]


async def test_of_whom_nothing_is_loaded_the_note_says_so(data: Path) -> None:
    async with serve_in_process(data) as ask:
        for cosponsor in ("Hamadeh", "Mike Levin", "L000593"):
            counted = await count(ask, "bills", cosponsor=cosponsor)
            person = "H001098" if cosponsor == "Hamadeh" else "L000593"
            assert counted["value"] == 0
            assert f"cosponsor is taken as {person}" in counted["note"]
            assert "no record of bills" in counted["note"]


async def test_statements_of_two_presidents_together_are_told_to_be(data: Path) -> None:
    async with serve_in_process(data) as ask:
        both = await count(ask, "saps", president="Bush")
        assert both["value"] == 2
        for told in ("2 presidencies", "41 (", "43 (", "president_number"):
            assert told in both["note"]
        assert (await count(ask, "saps", president="Obama"))["note"] is None
        one = await count(ask, "saps", president="Bush", president_number=43)
        assert (one["value"], one["note"]) == (1, None)
