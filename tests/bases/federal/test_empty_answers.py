"""An answer of nothing says what is loaded, whichever tool gives it; what is wrong is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.filters import make_filters_model
from readingroom.bases.federal.schema.sources import SOURCES
from tests.bases.federal.test_bill_texts import write_texts
from tests.support.federal.base import Asked, load_files, serve_in_process, write_world

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]

ODD_VALUES: tuple[Any, ...] = (
    *("Monday", "2026-13-01", "added", "", "  ", "x" * 101, "%", "'", "\x00", "ünï", "-1"),
    *(True, -1, 0, -(10**30), 2**31, "9" * 90, "hr:119:1", "agency:", "topic:", "😀"),
)


@pytest.fixture(scope="module")
def world(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Status files of a few bills, and another bill of which only texts are here."""
    data = tmp_path_factory.mktemp("empty")
    write_world(data / "files", bills=8, votes=2)
    write_texts(data / "texts")
    (data / "texts" / "legislators-current.yaml").unlink()
    load_files(data, data / "files", data / "texts", embed=False)
    return data


async def read_outcome(ask: Asked, name: str, **arguments: Any) -> str:
    """What a call answers or refuses, as text; an error of our own making fails the test."""
    told = json.dumps(await ask.rpc("tools/call", {"name": name, "arguments": arguments}))
    assert "went wrong" not in told, (name, arguments)
    return told


@pytest.mark.parametrize(
    "condition", ["since=Monday", "since=last Monday", "since=2026-13-01", "kind=added"]
)
async def test_a_wrong_filter_of_changes_is_refused_by_name(world: Path, condition: str) -> None:
    async with serve_in_process(world) as ask:
        told = await read_outcome(ask, "list_records", source="changes", filters=[condition])
        assert f"filters.{condition.partition('=')[0]}" in told
        assert "changes takes since, source, kind" in told
        told = await read_outcome(ask, "list_records", source="changes", id="HSAG",
                                  part="members", filters=["since=2020-01-01"])  # fmt: skip
        assert "leave `id` and `part` out" in told


async def test_no_odd_value_of_a_filter_breaks_a_list(world: Path) -> None:
    async with serve_in_process(world) as ask:
        for source in SOURCES:
            for filter_name in make_filters_model(source.record_table).model_fields:
                for value in ODD_VALUES:
                    await read_outcome(ask, "list_records", source=source.name, limit=1,
                                       filters={filter_name: value})  # fmt: skip
        member = (await ask.record("/legislators", limit=1))["results"][0]["id"]
        for value in ODD_VALUES:
            for source_name, record_id, part in (
                ("legislators", member, "votes"),
                ("legislators", member, "voted_alike"),
                ("committees", "HSAG", "members"),
            ):
                await read_outcome(ask, "list_records", source=source_name, id=record_id,
                                   part=part, filters={"congress": value})  # fmt: skip
            for filter_name in ("since", "source", "kind"):
                await read_outcome(ask, "list_records", source="changes",
                                   filters={filter_name: value})  # fmt: skip
        await read_outcome(ask, "list_records", source="legislators", id=member, part="links",
                           limit=200)  # fmt: skip
        bill = (await ask.record("/bills", limit=1))["results"][0]["id"]
        await ask.answer("list_records", source="bills", id=bill, part="similar", limit=200)
        for address in ("/v1/bills?limit=5&cursor=" + "x" * 600, "/v1/bills?congress=" + "9" * 20,
                        "/v1/changes?since=Monday", f"/v1/bills/{'x' * 300}/links"):  # fmt: skip
            await read_outcome(ask, "fetch", id=address)


async def test_a_period_that_ends_before_it_begins_is_refused(world: Path) -> None:
    period = {"since": "2024-01-02", "until": "2024-01-01"}
    async with serve_in_process(world) as ask:
        for name, arguments in (
            ("count", {"resource": "bills", "filters": period}),
            ("list_records", {"source": "bills", "filters": period}),
            ("list_records",
             {"source": "committees", "id": "HSAG", "part": "actions", "filters": period}),
            ("search", {"query": "canals", **period}),
        ):  # fmt: skip
            told = await read_outcome(ask, name, **arguments)
            assert "2024-01-01 is before `since`, 2024-01-02" in told, name
        for path in ("/bills", "/search"):
            refused = await ask.get(path, **period, **({"q": "canals"} if "search" in path else {}))
            assert refused.status_code == 422
            assert refused.json()["error"]["code"] == "validation_error"


async def test_an_answer_of_nothing_says_what_is_loaded(world: Path) -> None:
    late = {"since": "2090-01-01"}
    async with serve_in_process(world) as ask:
        for name, arguments, slug in (
            ("count", {"resource": "roll-call-votes", "filters": late}, "roll-call-votes"),
            ("count", {"resource": "member-votes", "filters": late}, "roll-call-votes"),
            ("count", {"resource": "bills", "filters": late, "group_by": "party"}, "bills"),
            ("sum", {"resource": "lda-filings", "sum_field": "amount", "filters": late},
             "lda-filings"),
            ("time_series", {"resource": "saps", "time_field": "published_at",
                             "interval": "year", "filters": late}, "saps"),
            ("list_records", {"source": "hearings", "filters": late}, "hearings"),
            ("search", {"query": "canals", "source": "saps", **late}, "saps"),
        ):  # fmt: skip
            note = (await ask.answer(name, **arguments))["note"]
            assert f"Of {slug}, " in note and "loaded here" in note, name
        nobody = await ask.answer("resolve_entity", query="Zzyx Qwfp", entity_type="hearings")
        assert re.search(r"among the \d+ hearings loaded here", nobody["note"])
        (first, last, number) = await read_loaded_days(ask)
        note = (await ask.answer("count", resource="roll-call-votes", filters=late))["note"]
        assert note == (
            f"Of roll-call-votes, {number} are loaded here, from {first} to {last}; "
            "up to which day that is all, is not known."
        )
        whole = await ask.answer("search", query="canals", **late)
        assert "`searched` says how much of each source is" in whole["note"]


async def read_loaded_days(ask: Asked) -> tuple[str, str, int]:
    votes = (await ask.record("/roll-call-votes", limit=200))["results"]
    days = sorted(vote["published_at"] for vote in votes)
    return days[0], days[-1], len(votes)


async def test_a_dossier_says_of_empty_sections_what_is_loaded(world: Path) -> None:
    async with serve_in_process(world) as ask:
        dossier = await ask.answer("get_committee_dossier", committee_id="HSAG", congress=90)
        for section, slug in (("hearings", "hearings"), ("bills", "bills"),
                              ("reports", "committee-reports")):  # fmt: skip
            assert dossier[section]["total"] == 0
            assert "with congress 90 is loaded here" in dossier[section]["note"]
            assert f"Of {slug}, " in dossier[section]["note"]
        hearing = (await ask.record("/hearings", limit=200))["results"]
        witnesses = {one["id"]: await ask.answer("list_records", source="hearings", id=one["id"],
                                                 part="witnesses") for one in hearing}  # fmt: skip
        without = [listed for listed in witnesses.values() if not listed["total"]]
        assert without
        assert all("No list of witnesses" in listed["note"] for listed in without)
        assert all(listed["note"] is None for listed in witnesses.values() if listed["total"])


async def test_a_filter_by_what_only_status_files_tell_says_of_how_many_it_is_unknown(
    world: Path,
) -> None:
    async with serve_in_process(world) as ask:
        bills = (await ask.record("/bills", limit=200))["results"]
        texts_only = [bill["id"] for bill in bills if not bill["status_loaded"]]
        assert texts_only
        cosponsor = (await ask.answer("count", resource="bills", group_by="cosponsor"))["buckets"]
        topic = (await ask.answer("count", resource="bills", group_by="topic"))["buckets"]
        committee = (await ask.answer("count", resource="bills", group_by="committee"))["buckets"]
        for field, buckets in (("cosponsor", cosponsor), ("topic", topic),
                               ("committee", committee)):  # fmt: skip
            key = buckets[0]["key"]
            counted = await ask.answer("count", resource="bills", filters={field: key})
            listed = await ask.record("/bills", **{field: key}, limit=200)
            passing = {bill["id"] for bill in listed["results"]}
            unknown = len(set(texts_only) - passing)
            note = f"Of {unknown} more bills that pass the other filters the {field} is not known"
            assert counted["value"] == len(passing)
            assert counted["note"] == listed["note"] == (f"{note} here." if unknown else None)


async def test_filters_are_read_as_the_documentation_says(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3, votes=1)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "committees-current.yaml").write_text(
        "- type: house\n  name: House Committee on Ways and Means\n  thomas_id: HSWM\n"
        "  subcommittees:\n  - name: Trade\n    thomas_id: '04'\n",
        "utf-8",
    )
    load_files(tmp_path, tmp_path / "files", tmp_path / "more", embed=False)
    async with serve_in_process(tmp_path) as ask:
        for written in ("HSWM", "Ways and Means", "House Committee on Ways and Means"):
            listed = await ask.record("/committees", parent_id=written)
            assert [one["id"] for one in listed["results"]] == ["HSWM04"], written
        counts = [
            (await ask.answer("count", resource="member-votes",
                              filters={"standard_position": written}))["value"]
            for written in ("yea", "Aye", "yes", "for", "YEA")
        ]  # fmt: skip
        assert len(set(counts)) == 1 and counts[0] > 0
        compilation = next(
            one for one in (await ask.record("/statute-compilations"))["results"] if one["law_id"]
        )
        number = compilation["law_id"].removeprefix("pl:")
        counted = await ask.answer("count", resource="statute-compilations",
                                   filters={"law_id": number})  # fmt: skip
        assert counted["value"] == 1
