"""Agencies as a registry: one record for all ways in which documents write one."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.schema.ids import make_agency_id
from tests.support.federal.base import Asked, find_place, load_files, serve_in_process
from tests.support.federal.world import register_document

pytestmark = pytest.mark.anyio

BLIND_NAMES = Path(__file__).parents[2] / "fixtures" / "federal_agencies_blind.tsv"
DOCUMENTS = {
    # As the Register's API writes it, and as its printed issues do.
    "2025-00010": ("Health and Human Services Department", "health-and-human-services-department"),
    "2025-00011": ("Department of Health and Human Services", None),
    "2025-00012": ("Environmental Protection Agency", "environmental-protection-agency"),
    "2025-00013": ("Labor Department", "labor-department"),
    "2025-00014": ("Labor Statistics Bureau", "labor-statistics-bureau"),
}
HEALTH = "agency:health-and-human-services-department"


def write_documents(folder: Path) -> None:
    folder.mkdir()
    for number, (name, slug) in DOCUMENTS.items():
        agency = {"name": name} | ({"slug": slug} if slug else {})
        document = register_document(
            number, "2025-02-03", f"Rule {number} on asbestos", agencies=[agency]
        )
        (folder / f"{number}.json").write_text(json.dumps(document), "utf-8")
    docket = {
        "id": "EPA-HQ-OAR-2025-0001",
        "type": "dockets",
        "attributes": {"agencyId": "EPA", "title": "Asbestos", "docketType": "Rulemaking"},
    }
    (folder / "docket-EPA-HQ-OAR-2025-0001.json").write_text(json.dumps({"data": docket}), "utf-8")


@pytest.fixture(scope="module")
def agencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("agencies")
    write_documents(data / "files")
    load_files(data, data / "files", embed=False)
    return data


def test_an_agency_has_one_id_however_its_name_is_turned() -> None:
    same = {
        "agency:interior-department": (
            *("Department of the Interior", "Interior Department", "department-of-the-interior"),
        ),
        "agency:prisons-bureau": ("Bureau of Prisons, Department of Justice", "Prisons Bureau"),
        "agency:executive-office-of-the-president": ("Executive Office of the President",),
        "agency:u-s-department-of-labor": ("U.S. Department of Labor",),
    }
    for agency_id, names in same.items():
        assert {make_agency_id(name) for name in names} == {agency_id}


async def test_an_agency_is_one_record_that_is_listed_fetched_and_resolved(agencies: Path) -> None:
    async with serve_in_process(agencies) as ask:
        listed = await ask.answer("list_records", source="agencies")
        fetched = (await ask.answer("fetch", id=HEALTH))["record"]
        by_address = await ask.answer("fetch", id=fetched["url"])
        turned = await ask.answer("fetch", id="agency:department-of-health-and-human-services")
        counted = await ask.answer("count", resource="agencies")
        page = await ask.record("/agencies", q="HHS")
        unknown = await ask.call("fetch", id="agency:department-of-magic")
    assert {row["id"] for row in listed["results"]} == {
        HEALTH,
        "agency:environmental-protection-agency",
        "agency:labor-department",
        "agency:labor-statistics-bureau",
    }
    assert counted["value"] == 4
    assert set(fetched["names"]) == {name for name, _ in list(DOCUMENTS.values())[:2]}
    assert fetched["slugs"] == [
        "department-of-health-and-human-services",
        "health-and-human-services-department",
    ]
    assert (fetched["documents"], fetched["as_of"]) == (2, "2025-02-03")
    assert by_address["record"]["id"] == turned["record"]["id"] == HEALTH
    assert page["results"][0]["id"] == HEALTH
    assert unknown["isError"]


@pytest.mark.parametrize(
    "written", ["HHS", "Health and Human Services", HEALTH, "health-and-human-services-department"]
)
async def test_a_filter_by_an_agency_takes_every_way_it_is_written(
    agencies: Path, written: str
) -> None:
    """In lists, counts, groups, series and searches alike."""
    wanted = {"2025-00010", "2025-00011"}
    filters = {"agency": written}
    async with serve_in_process(agencies) as ask:
        cards = await ask.answer("list_records", source="federal-register", filters=filters)
        page = await ask.record("/federal-register", agency=written)
        found = await ask.answer("lexical_search", query="asbestos", filters=filters)
        counted = await ask.answer("count", resource="federal-register", filters=filters)
        grouped = await ask.answer(
            "count", resource="federal-register", group_by="type", filters=filters
        )
        series = await ask.answer(
            "time_series",
            resource="federal-register",
            time_field="published_at",
            interval="year",
            filters=filters,
        )
    for answer in (cards, page, found):
        assert {row["id"] for row in answer["results"]} == wanted
    assert counted["value"] == 2
    assert [bucket["value"] for bucket in grouped["buckets"]] == [2]
    assert [bucket["value"] for bucket in series["buckets"]] == [2]


@pytest.mark.parametrize("written", ["EPA", "Environmental Protection Agency", "E.P.A."])
async def test_a_docket_is_found_by_the_name_of_an_agency_that_it_abbreviates(
    agencies: Path, written: str
) -> None:
    async with serve_in_process(agencies) as ask:
        dockets = await ask.answer(
            "list_records", source="regulations-dot-gov-dockets", filters={"agency": written}
        )
        none = await ask.answer(
            "count", resource="regulations-dot-gov-dockets", filters={"agency": "Labor Department"}
        )
    assert [row["id"] for row in dockets["results"]] == ["docket:EPA-HQ-OAR-2025-0001"]
    # It is an agency, and there is no docket of it: that 0 is true.
    assert none["value"] == 0


async def test_a_misspelt_agency_is_read_and_told_and_an_unknown_one_is_refused(
    agencies: Path,
) -> None:
    async with serve_in_process(agencies) as ask:
        counted = await ask.answer(
            "count",
            resource="federal-register",
            filters={"agency": "Enviromental Protection Agency"},
        )
        refused = [
            await ask.get("/federal-register", agency="EPAX"),
            await ask.get("/federal-register", agency="EPAX", aggregate="count"),
            await ask.get("/search", q="asbestos", agency="EPAX"),
        ]
    assert counted["value"] == 1
    assert counted["filters_read"] == {"agency": "environmental-protection-agency"}
    for answer in refused:
        assert answer.status_code == 422
        assert "Environmental Protection Agency" in answer.json()["error"]["message"]


async def test_groups_by_agency_say_its_name(agencies: Path) -> None:
    async with serve_in_process(agencies) as ask:
        grouped = await ask.answer("count", resource="federal-register", group_by="agency")
        dockets = await ask.answer(
            "count", resource="regulations-dot-gov-dockets", group_by="agency"
        )
        series = await ask.answer(
            "time_series",
            resource="federal-register",
            time_field="published_at",
            interval="year",
            group_by="agency",
        )
    labels = {bucket["key"]: bucket["label"] for bucket in grouped["buckets"]}
    assert labels["labor-statistics-bureau"] == "Labor Statistics Bureau"
    assert dockets["buckets"][0]["label"] == "Environmental Protection Agency"
    assert {bucket["group"]: bucket["label"] for bucket in series["buckets"]} == labels


async def test_one_word_is_the_department_not_what_has_the_word_too(agencies: Path) -> None:
    async with serve_in_process(agencies) as ask:
        first, *others = (
            await ask.answer("resolve_entity", query="labor", entity_type="agencies")
        )["results"]
    assert first["id"] == "agency:labor-department"
    assert [other["id"] for other in others] == ["agency:labor-statistics-bureau"]


@pytest.fixture
def second_load(tmp_path: Path) -> Iterator[Path]:
    write_documents(tmp_path / "files")
    load_files(tmp_path, tmp_path / "files", embed=False)
    yield tmp_path


async def test_a_later_load_adds_spellings_and_leaves_the_rest_as_it_is(second_load: Path) -> None:
    document = register_document(
        "2025-00020",
        "2025-03-03",
        "Wages",
        agencies=[{"name": "Department of Labor", "slug": "department-of-labor"}],
    )
    (second_load / "later.json").write_text(json.dumps(document), "utf-8")
    summary = load_files(second_load, second_load / "later.json", embed=False)
    changed = summary.changes["agencies"]
    assert (changed.new, changed.changed) == (0, 1)
    async with serve_in_process(second_load) as ask:
        labor = (await ask.answer("fetch", id="agency:labor-department"))["record"]
        health = (await ask.answer("fetch", id=HEALTH))["record"]
    assert labor["names"] == ["Department of Labor", "Labor Department"]
    assert (labor["documents"], labor["as_of"]) == (2, "2025-03-03")
    assert health["as_of"] == "2025-02-03"


async def test_records_that_were_loaded_without_a_registry_get_one(second_load: Path) -> None:
    with closing(store.connect(find_place(second_load), writing=True)) as db, db.transaction():
        db.execute("DELETE FROM agencies")
        db.execute("DELETE FROM name_forms WHERE record_id LIKE 'agency:%'")
        db.execute("DELETE FROM names WHERE source = 'agencies'")
    async with serve_in_process(second_load) as ask:
        assert (await ask.answer("count", resource="agencies"))["value"] == 4
        assert await find_first(ask, "HHS") == "Department of Health and Human Services"


# --- names that somebody wrote down before the registry was made ---


async def find_first(ask: Asked, query: str) -> str:
    answer = await ask.answer("resolve_entity", query=query, entity_type="agencies")
    matches: list[dict[str, Any]] = answer["results"]
    return str(matches[0]["name"]) if matches else ""


@pytest.mark.data
async def test_agencies_are_found_by_names_that_people_write(official: Path) -> None:
    pairs = [line.split("\t") for line in BLIND_NAMES.read_text("utf-8").splitlines()]
    async with serve_in_process(official) as ask:
        firsts = {query: await find_first(ask, query) for query, _ in pairs}
    wrong = [(query, name, firsts[query]) for query, name in pairs
             if firsts[query].lower() != name.lower()]  # fmt: skip
    assert len(wrong) <= 0.05 * len(pairs), wrong
