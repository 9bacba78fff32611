"""Names of whom or what is not loaded: nothing is answered in their place, and the note says so."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bases.federal.test_posts import make_person
from tests.support.federal.base import load_files, serve_in_process
from tests.support.federal.world import register_document

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]

HOUSE_TERM = ("rep", "2019-01-03", "2031-01-03")
PEOPLE: list[dict[str, Any]] = [
    make_person("P000197", "Nancy", "Peloso", [(*HOUSE_TERM, "CA")]),
    make_person("J000299", "Mike", "Johnsen", [(*HOUSE_TERM, "LA")]),
    make_person("F000454", "Bill", "Foster", [(*HOUSE_TERM, "IL")]),
    make_person("N000147", "Eleanor", "Northam", [(*HOUSE_TERM, "DC")]),
]
LEADERSHIP_BY_ID = {
    "P000197": [("2019-01-03", "2021-01-03"), ("2021-01-03", "2023-01-03")],
    "J000299": [("2023-10-25", "2025-01-03"), ("2025-01-03", None)],
}
COMMITTEES = [{"type": "house", "name": "House Committee on Ways and Means", "thomas_id": "HSWM"}]
ROSTERS = {
    "HSWM": [
        {"name": "Mike Johnsen", "party": "majority", "rank": 1, "title": "Chair"}
        | {"bioguide": "J000299"}
    ]
}
AGENCIES = {
    "Defense Department": ("Pentagon", "the Pentagon", "DoD", "Department of Defense"),
    "State Department": ("State Dept", "Dept. of State", "State"),
    "Treasury Department": ("Treasury", "US Treasury"),
    "Internal Revenue Service": ("IRS",),
    "National Aeronautics and Space Administration": ("NASA",),
    "Management and Budget Office": ("OMB",),
    "Geological Survey": ("USGS",),
    "Federal Reserve System": ("the Fed", "Federal Reserve"),
}


def write_agencies(folder: Path, *agency_names: str) -> None:
    for number, agency_name in enumerate(agency_names, start=10):
        document = register_document(f"2025-000{number}", "2025-02-03", f"Rule {number}")
        slug = "-".join(agency_name.lower().split())
        document["agencies"] = [{"name": agency_name, "slug": slug}]
        (folder / f"2025-000{number}.json").write_text(json.dumps(document), "utf-8")


@pytest.fixture(scope="module")
def data(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("unloaded")
    (folder / "files").mkdir()
    for person in PEOPLE:
        person["leadership_roles"] = [
            {"title": "Speaker of the House", "chamber": "house", "start": start}
            | ({"end": end} if end else {})
            for start, end in LEADERSHIP_BY_ID.get(person["id"]["bioguide"], ())
        ]
    files = {
        "legislators-current": PEOPLE,
        "committees-current": COMMITTEES,
        "committee-membership-current": ROSTERS,
    }
    for name, listed in files.items():
        text = yaml.safe_dump(listed, sort_keys=False)
        (folder / "files" / f"{name}.yaml").write_text(text, "utf-8")
    title = (
        "Providing for consideration of the bill (H.R. 51) to provide for the admission of the "
        "State of Washington, D.C. into the Union; of the bill (H.R. 1425) to amend the Patient "
        "Protection and Affordable Care Act to reduce premiums in the individual market; and of "
        "the bill (H.R. 7301) to prevent evictions, foreclosures, and unsafe housing conditions"
    )
    (folder / "files" / "BILLSTATUS-116hres1017.xml").write_text(
        "<billStatus><version>3.0.0</version><bill><number>1017</number><type>HRES</type>"
        "<congress>116</congress><introducedDate>2020-06-24</introducedDate>"
        f"<originChamber>House</originChamber><title>{title}</title></bill></billStatus>"
    )
    write_agencies(folder / "files", "Judicial Conference of the United States")
    load_files(folder, folder / "files", embed=False)
    return folder


async def resolve(folder: Path, query: str, entity_type: str = "legislators") -> Any:
    async with serve_in_process(folder) as ask:
        return await ask.answer("resolve_entity", query=query, entity_type=entity_type)


@pytest.mark.parametrize(
    ("post", "ids", "told"),
    [
        ("Speaker of the House", ["J000299", "P000197"], None),
        ("former Speaker of the House", ["P000197"], "Posts are known of the members"),
        ("Speaker of the House in the 117th Congress", ["P000197"], None),
        ("Speaker of the House in 2019", ["P000197"], None),
        ("Speaker of the House in 2023", ["J000299"], "in 2023 is not loaded"),
        ("Speaker of the House in 2015", [], "in 2015 is not loaded"),
        ("chair of Ways and Means", ["J000299"], None),
        ("chair of Ways and Means in 2015", [], "Who held this post in 2015 is not loaded"),
        ("chair of Ways and Means in the 114th Congress", [], "in the 114th Congress"),
        ("former chair of Ways and Means", [], "Who held this post before is not loaded"),
        ("Representative of the District of Columbia", ["N000147"], None),
        ("representatives from Illinois in 2015", [], "Nothing of this name"),
    ],
)
async def test_a_post_with_a_time_is_answered_of_that_time(
    data: Path, post: str, ids: list[str], told: str | None
) -> None:
    found = await resolve(data, post)
    assert [match["id"] for match in found["results"]] == ids
    assert (told or "") in (found["note"] or "")
    assert (found["note"] is None) == (told is None)


@pytest.mark.parametrize(
    ("query", "entity_type", "told"),
    [
        ("Vice President", "legislators", ("4 legislators", "presidents", "surname")),
        ("FAST Act", "bills", ("1 bills", "Congresses 116", "`search`")),
        ("Treasury", "agencies", ("1 agencies", "`list_records`")),
        ("State Dept", "agencies", ("1 agencies", "`list_records`")),
        ("Zzyzx", "committees", ("1 committees", "HSAG")),
    ],
)
async def test_an_empty_answer_says_what_is_loaded_and_what_to_try(
    data: Path, query: str, entity_type: str, told: tuple[str, ...]
) -> None:
    found = await resolve(data, query, entity_type)
    assert found["results"] == []
    for words in told:
        assert words in found["note"]


async def test_a_bill_that_mentions_a_name_scores_less_than_one_of_that_name(data: Path) -> None:
    (found,) = (await resolve(data, "Affordable Care Act", "bills"))["results"]
    assert found["id"] == "hres:116:1017"
    assert found["score"] < 0.7


async def test_agencies_are_found_by_what_everybody_calls_them(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    write_agencies(tmp_path / "files", *AGENCIES)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        for agency_name, everyday_names in AGENCIES.items():
            for query in everyday_names:
                found = await ask.answer("resolve_entity", query=query, entity_type="agencies")
                assert [match["name"] for match in found["results"][:1]] == [agency_name], query
                counted = await ask.answer(
                    "count", resource="federal-register", filters={"agency": query}
                )
                assert counted["value"] == 1, query
