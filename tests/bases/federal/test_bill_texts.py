"""A bill of which only texts are loaded: sponsors, committees, titles and stage from its XML."""

from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.formats.uslm import BillTextLoader
from readingroom.bases.federal.schema.entries import FileStamp
from readingroom.bases.federal.schema.records import Bill
from tests.bases.federal.test_dates_of_files import LEGISLATOR
from tests.support.federal.base import load_files, serve_in_process, write_world

pytestmark = pytest.mark.anyio

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)
USLM = 'xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/"'
INTRODUCED = """<action><date date="2024-03-01">March 1, 2024</date><actionDescription>
<sponsor senateId="S999">Ms. <inline>Sample</inline></sponsor> (for herself and
<cosponsor bioGuideId="F900001">Mr. <inline>Finch</inline> of Oregon</cosponsor>)
introduced the following bill; which was referred to the
<committee committeeId="SSFR00">Committee on Foreign Relations</committee>, and to the
<committee committeeId="HIG00">Intelligence (Permanent Select)</committee>
</actionDescription></action>"""
REPORTED = """<action><date>April 2, 2024</date><actionDescription>Additional sponsors:
<cosponsor bioGuideId="F900002">Mr. <inline>Gull</inline></cosponsor></actionDescription></action>
<action><date>April 3, 2024</date><actionDescription>Reported by
<sponsor senateId="S001">Mr. <inline>Chair</inline></sponsor> from the
<committee committeeId="SSFR00">Committee on Foreign Relations</committee>
</actionDescription></action>"""


def bill_text(version: str, stage: str, actions: str, short_title: str) -> str:
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<bill {USLM}><meta><dc:title>118 S 9001 {version.upper()}: To keep rivers.</dc:title>
<citableAs>118s9001{version}</citableAs><docStage>{stage}</docStage><congress>118</congress></meta>
<preface>{actions}</preface><main><longTitle><officialTitle>To keep rivers.</officialTitle>
</longTitle><section><content>This Act may be cited as the
“<shortTitle role="act">{short_title}</shortTitle>”.</content></section></main></bill>"""


def write_texts(folder: Path) -> list[Path]:
    """The enrolled text, which names no sponsor, is read before the introduced one."""
    texts = {
        "BILLS-118s9001enr.xml": bill_text("enr", "Enrolled Bill", "", "River Keeping Act"),
        "BILLS-118s9001is.xml": bill_text("is", "Introduced", INTRODUCED, "Rivers Act"),
        "BILLS-118s9001rs.xml": bill_text("rs", "Reported", INTRODUCED + REPORTED, "Rivers Act"),
    }
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "legislators-current.yaml").write_text(
        LEGISLATOR.replace("S999001\n", "S999001\n    lis: S999\n"), "utf-8"
    )
    return [folder / name for name in texts]


async def test_texts_say_who_sponsored_a_bill_and_how_far_it_came(tmp_path: Path) -> None:
    write_texts(tmp_path / "files")
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        bill = await ask.record("/bills/s:118:9001")
        (sponsor,) = bill["sponsors"]
        assert (sponsor["bioguide_id"], sponsor["name"]) == ("S999001", "Ann Sample")
        assert (sponsor["party"], sponsor["state"]) == ("R", "OH")
        assert bill["introduced_at"] == "2024-03-01"
        assert (bill["stage"], bill["outcome"]) == ("passed_both", None)
        assert bill["status_loaded"] is False
        assert set(bill["short_titles"]) == {"River Keeping Act", "Rivers Act"}
        referred = {each["id"]: each["dated_activities"] for each in bill["committees"]}
        assert referred.keys() == {"SSFR", "HLIG"}
        assert referred["SSFR"][0] == {"name": "Referred to", "date": "2024-03-01"}
        assert bill["cosponsor_count"] == 2
        cosponsors = await ask.record("/bills/s:118:9001/cosponsors")
        told = [(one["bioguide_id"], one["name"], one["original"]) for one in cosponsors["results"]]
        assert told == [("F900001", "Finch", True), ("F900002", "Gull", False)]
        assert cosponsors["results"][0]["state"] == "OR"
        for title in ("Rivers Act", "River Keeping Act"):
            found = await ask.answer("lexical_search", query=f'"{title}"', source="bills")
            assert [hit["id"] for hit in found["results"]] == ["s:118:9001"]
        counted = await ask.record("/bills", aggregate="count", group_by="party")
        assert [bucket["key"] for bucket in counted["buckets"]] == ["R"]
        found = await ask.record("/search", q="rivers", member="S999001")
        assert [hit["id"] for hit in found["results"]] == ["s:118:9001"]


async def test_texts_change_nothing_of_a_bill_whose_status_is_loaded(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=1)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        listed = await ask.record("/bills", limit=10)
        before = {bill["id"]: bill for bill in listed["results"] if bill["status_loaded"]}
    ((id, bill),) = before.items()
    _, congress, number = id.split(":")
    text = bill_text("rs", "Reported", INTRODUCED + REPORTED, "Rivers Act")
    replaced = text.replace("118 S 9001", f"{congress} {bill['type'].upper()} {number}").replace(
        "118s9001", f"{congress}{bill['type']}{number}"
    )
    path = tmp_path / "files" / "text.xml"
    path.write_text(replaced, "utf-8")
    cosponsors: list[Any] = []
    async with serve_in_process(tmp_path) as ask:
        cosponsors.append(await ask.record(f"/bills/{id}/cosponsors"))
    load_files(tmp_path, path, embed=False)
    async with serve_in_process(tmp_path) as ask:
        after = await ask.record(f"/bills/{id}")
        cosponsors.append(await ask.record(f"/bills/{id}/cosponsors"))
        assert (await ask.record(f"/bills/{id}/body", version="rs"))["text"]
    assert after == bill
    assert cosponsors[0] == cosponsors[1]


@pytest.mark.data
def test_every_printed_sponsor_of_official_texts_is_read(shared_data: Path) -> None:
    """Counted by another reading: the elements of the file, not our parser."""
    seen: Counter[str] = Counter()
    for path in sorted((shared_data / "federal" / "uslm" / "bills").iterdir()):
        root = ElementTree.fromstring(path.read_bytes())
        preface = next((part for part in root if part.tag.endswith("}preface")), None)
        elements = () if preface is None else preface.iter()
        printed = [part.tag.rpartition("}")[2] for part in elements]
        file = RawFile(path.name, path.read_bytes(), lambda _: None)
        *_, entry = BillTextLoader().parse(file, ORIGIN)
        bill = entry.record
        assert isinstance(bill, Bill)
        assert bill.cosponsor_count == printed.count("cosponsor"), path.name
        assert bool(bill.sponsors) == ("sponsor" in printed), path.name
        named = [part for part in root.iter() if part.tag.endswith("}shortTitle")]
        titles = {" ".join("".join(part.itertext()).split()) for part in named}
        assert set(bill.short_titles) == titles, path.name
        seen.update({"sponsors": len(bill.sponsors), "cosponsors": bill.cosponsor_count})
    assert seen["sponsors"] >= 25 and seen["cosponsors"] > 500
