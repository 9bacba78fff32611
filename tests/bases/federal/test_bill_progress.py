"""How far a bill came and what became of it: read from its actions, stored, filtered, grouped."""

from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.formats.billstatus import BillStatusLoader
from readingroom.bases.federal.formats.parts.bill_stage import (
    BillProgress,
    determine_progress,
    get_stage_of_version,
)
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.schema.entries import FileProblem, FileStamp, ParsedRecord
from readingroom.bases.federal.schema.records import BillAction
from tests.support.federal.base import load_files as load_files
from tests.support.federal.base import serve_in_process, write_world

pytestmark = pytest.mark.anyio

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)

# Checked by hand against the latest actions in each file, as of the day of the file.
OFFICIAL = {
    "actions-committees/BILLSTATUS-115s2979": ("introduced", "2018-05-24", "died"),
    "actions-committees/BILLSTATUS-116s832": ("passed_one", "2019-06-27", "pending"),
    "actions-committees/BILLSTATUS-116s790": ("introduced", "2019-03-13", "pending"),
    "formatChange/future/BILLSTATUS-114hr5278": ("passed_one", "2016-06-09", "died"),
    "formatChange/future/BILLSTATUS-117hr1": ("passed_one", "2021-03-03", "pending"),
    "formatChange/future/BILLSTATUS-117hr2471": ("law", "2022-03-15", "law"),
    "formatChange/future/BILLSTATUS-117hr4350": ("passed_one", "2021-09-23", "pending"),
    "formatChange/future/BILLSTATUS-117hr5376": ("law", "2022-08-16", "law"),
    "formatChange/future/BILLSTATUS-117s35": ("passed_one", "2021-02-12", "pending"),
    "formatChange/future/BILLSTATUS-117sconres5": ("passed_both", "2021-02-05", "adopted"),
    "formatChange/future/BILLSTATUS-117sconres14": ("passed_both", "2021-08-24", "adopted"),
    "formatChange/current/BILLSTATUS-117sconres7": ("introduced", "2021-03-01", "pending"),
    "legacy/BILLSTATUS-114hconres70": ("passed_both", "2015-09-16", "adopted"),
    "legacy/BILLSTATUS-114hr1314": ("law", "2015-11-02", "law"),
    "legacy/BILLSTATUS-114hr2822": ("reported", "2015-06-18", "pending"),
    "legacy/BILLSTATUS-114hr2566": ("introduced", "2015-05-21", "pending"),
    "legacy/BILLSTATUS-114hr3106": ("reported", "2015-12-03", "pending"),
    "legacy/BILLSTATUS-114hres348": ("passed_one", "2015-10-20", "adopted"),
    "legacy/BILLSTATUS-114s1300": ("law", "2015-10-16", "law"),
    "legacy/BILLSTATUS-114s2848": ("passed_one", "2016-09-15", "died"),
    "legacy/BILLSTATUS-114sjres8": ("vetoed", "2015-03-31", "vetoed"),
    "legacy/BILLSTATUS-114sres105": ("passed_one", "2015-03-27", "adopted"),
    "textVersions/DEV-BILLSTATUS-115hr302": ("passed_both", "2018-09-06", "pending"),
}


def read_status(path: Path) -> list[ParsedRecord | FileProblem]:
    file = RawFile(path.name, path.read_bytes(), lambda _: None)
    return list(BillStatusLoader().parse(file, ORIGIN))


@pytest.mark.data
def test_the_stage_of_official_bills_is_what_a_reader_finds(shared_data: Path) -> None:
    folder = shared_data / "federal" / "billstatus" / "samples"
    read = {}
    for name in OFFICIAL:
        (bill,) = [
            entry.record
            for entry in read_status(folder / f"{name}.xml")
            if isinstance(entry, ParsedRecord) and entry.record.source == "bills"
        ]
        told: Any = bill
        read[name] = (told.stage, told.stage_at, told.outcome)
    assert read == OFFICIAL


def read_progress(kind: str, *texts: str, as_of: str = "2025-06-01", **facts: Any) -> BillProgress:
    actions = [BillAction(date=f"2025-02-{day:02}", text=text) for day, text in enumerate(texts, 1)]
    given = {"introduced_at": "2025-01-03", "has_law": False} | facts
    return determine_progress(119, kind, actions, as_of=as_of, **given)


@pytest.mark.parametrize(
    ("kind", "texts", "stage", "outcome"),
    [
        ("hr", [], "introduced", "pending"),
        ("hr", ["Ordered to be Reported by Voice Vote."], "introduced", "pending"),
        ("hr", ["Reported by the Committee on Rules. H. Rept. 119-1."], "reported", "pending"),
        ("s", ["Committee on the Budget. Reported by Senator X."], "reported", "pending"),
        ("hr", ["Rule H. Res. 5 passed House."], "introduced", "pending"),
        ("hr", ["Passed House by voice vote.", "Failed in Senate."], "passed_one", "pending"),
        ("s", ["Passed Senate.", "Passed/agreed to in House: x"], "passed_both", "pending"),
        ("hr", ["Vetoed by President."], "vetoed", "vetoed"),
        ("hr", ["Vetoed by President.", "Became Public Law No: 119-9."], "law", "law"),
        ("hres", ["Passed/agreed to in House: On agreeing"], "passed_one", "adopted"),
        ("sres", ["Passed/agreed to in House: by mistake"], "passed_one", "pending"),
        ("hconres", ["Passed/agreed to in House: x"], "passed_one", "pending"),
    ],
)  # fmt: skip
def test_words_of_actions_say_the_stage(
    kind: str, texts: list[str], stage: str, outcome: str
) -> None:
    progress = read_progress(kind, *texts)
    assert (progress.stage, progress.outcome) == (stage, outcome)


def test_a_bill_dies_with_its_congress_if_its_file_is_of_later() -> None:
    assert read_progress("hr", as_of="2027-01-02").outcome == "pending"
    assert read_progress("hr", as_of="2027-01-03").outcome == "died"
    assert (
        read_progress("hres", "Passed/agreed to in House: x", as_of="2028-01-01").outcome
        == "adopted"
    )
    assert read_progress("hr", has_law=True).stage == "law"


def test_a_version_of_a_text_says_how_far_a_bill_had_come() -> None:
    stages = {
        version: get_stage_of_version(version) for version in ("ih", "rs", "eh", "eas2", "enr")
    }
    assert stages == {
        "ih": "introduced",
        "rs": "reported",
        "eh": "passed_one",
        "eas2": "passed_both",
        "enr": "passed_both",
    }


async def test_bills_are_listed_and_counted_by_stage_and_outcome(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=12)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.record("/bills", aggregate="count", group_by="stage")
        by_stage = {bucket["key"]: bucket["value"] for bucket in counted["buckets"]}
        total = (await ask.record("/bills", aggregate="count"))["value"]
        assert sum(by_stage.values()) == total
        for stage, number in by_stage.items():
            if not stage:  # a bill of which only the text is here
                continue
            listed = await ask.record("/bills", stage=stage, limit=100)
            assert len(listed["results"]) == number
            assert {bill["stage"] for bill in listed["results"]} == {stage}
        outcomes = await ask.record("/bills", aggregate="count", group_by="outcome")
        assert sum(bucket["value"] for bucket in outcomes["buckets"]) == total
