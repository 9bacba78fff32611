"""Names that several bear: senators by rank, seats at large, committees of today first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.federal.base import load_files, serve_in_process

pytestmark = pytest.mark.anyio


def make_person(
    bioguide: str, first: str, last: str, terms: Sequence[tuple[str, str, str, str]], **name: str
) -> dict[str, Any]:
    """A member of the official list; each term is its chamber, first day, last day and state."""
    return {
        "id": {"bioguide": bioguide},
        "name": {"first": first, "last": last, **name},
        "terms": [
            {"type": kind, "start": start, "end": end, "state": state, "party": "Independent"}
            | ({"class": 1} if kind == "sen" else {"district": 0})
            for kind, start, end, state in terms
        ],
    }


PEOPLE = [
    make_person("M000001", "Bernie", "Mora", [("sen", "2025-01-03", "2031-01-03", "OH")]),
    make_person("H000001", "Jon", "Hurst", [("sen", "2025-01-21", "2031-01-03", "OH")]),
    make_person(
        "S000001",
        "Bernard",
        "Sander",
        [
            ("rep", "1999-01-03", "2007-01-03", "VT"),
            ("sen", "2007-01-04", "2013-01-03", "VT"),
            ("sen", "2013-01-03", "2031-01-03", "VT"),
        ],
        nickname="Bernie",
    ),
    # In the Senate before the other, but with a break.
    make_person(
        "W000001",
        "Peta",
        "Welsh",
        [
            ("sen", "2001-01-03", "2005-01-03", "VT"),
            ("sen", "2023-01-03", "2031-01-03", "VT"),
        ],
    ),
    make_person("G000001", "Ada", "Gant", [("sen", "2021-01-20", "2031-01-03", "GA")]),
    make_person("G000002", "Rae", "Gill", [("sen", "2021-01-20", "2031-01-03", "GA")]),
    make_person("B000001", "Nick", "Begg", [("rep", "2025-01-03", "2031-01-03", "AK")]),
    make_person("Y000001", "Don", "Yong", [("rep", "1973-03-06", "2022-03-18", "AK")]),
]
COMMITTEES = [
    {"type": "house", "name": "House Committee on Financial Services", "thomas_id": "HSBA"},
    {
        "type": "senate",
        "name": "Senate Committee on Banking, Housing, and Urban Affairs",
        "thomas_id": "SSBK",
    },
    {
        "type": "house",
        "name": "House Committee on Natural Resources",
        "thomas_id": "HSII",
        "subcommittees": [{"name": "Water, Wildlife and Fisheries", "thomas_id": "13"}],
    },
    {
        "type": "house",
        "name": "House Committee on Transportation and Infrastructure",
        "thomas_id": "HSPW",
        "subcommittees": [{"name": "Water Resources and Environment", "thomas_id": "02"}],
    },
    {
        "type": "senate",
        "name": "Senate Committee on Environment and Public Works",
        "thomas_id": "SSEV",
        "subcommittees": [{"name": "Water Resources and Works", "thomas_id": "02"}],
    },
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("posts")
    files = {"legislators-current": PEOPLE, "committees-current": COMMITTEES}
    for name, listed in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(listed, sort_keys=False), "utf-8")
    load_files(folder, *folder.glob("*.yaml"), embed=False)
    return folder


@pytest.mark.parametrize(
    ("post", "ids"),
    [
        ("junior senator from Ohio", ["H000001"]),
        ("the senior senator from Ohio", ["M000001"]),
        ("Ohio's junior senator", ["H000001"]),
        ("senior senator from Vermont", ["S000001"]),
        ("junior senator of VT", ["W000001"]),
        ("Alaska at large", ["B000001", "Y000001"]),
        ("Alaska's at-large congressional district", ["B000001", "Y000001"]),
        ("AK-AL", ["B000001", "Y000001"]),
    ],
)
async def test_a_seat_is_known_by_its_state(data: Path, post: str, ids: list[str]) -> None:
    async with serve_in_process(data) as ask:
        found = await ask.answer("resolve_entity", query=post, entity_type="legislators")
        assert [match["id"] for match in found["results"]] == ids
        assert found["results"][0]["score"] == 1.0


async def test_of_two_who_came_on_one_day_neither_is_called_the_senior(data: Path) -> None:
    async with serve_in_process(data) as ask:
        query = "senior senator from Georgia"
        found = await ask.answer("resolve_entity", query=query, entity_type="legislators")
        assert {match["id"] for match in found["results"]} == {"G000001", "G000002"}
        assert all("do not say" in match["why"][0] for match in found["results"])


async def test_of_members_of_one_name_the_longest_serving_is_first(data: Path) -> None:
    async with serve_in_process(data) as ask:
        found = await ask.answer("resolve_entity", query="Bernie", entity_type="legislators")
        assert [match["id"] for match in found["results"]] == ["S000001", "M000001"]


async def test_who_bears_a_name_today_comes_before_who_bore_it(data: Path) -> None:
    async with serve_in_process(data) as ask:
        for query, first in (("banking committee", "SSBK"), ("House banking committee", "HSBA")):
            found = await ask.answer("resolve_entity", query=query, entity_type="committees")
            assert found["results"][0]["id"] == first, query
        found = await ask.answer(
            "resolve_entity", query="banking committee", entity_type="committees"
        )
        assert found["results"][1]["id"] == "HSBA"


async def test_a_name_of_several_committees_is_told_to_be_one(data: Path) -> None:
    async with serve_in_process(data) as ask:
        query = "Subcommittee on Water Resources"
        found = await ask.answer("resolve_entity", query=query, entity_type="committees")
        assert [match["id"] for match in found["results"][:2]] == ["HSPW02", "SSEV02"]
        for told in ("Several committees may be meant", "HSPW02", "SSEV02"):
            assert told in found["note"]
        assert "HSII13" not in found["note"]
