"""What the texts of a bill print of it where no status file is loaded: passage, reports."""

from pathlib import Path

import pytest

from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.formats.uslm import BillTextLoader
from readingroom.bases.federal.load.revisions import merge_fields
from readingroom.bases.federal.schema.entries import FileStamp
from readingroom.bases.federal.schema.records import Bill
from tests.bases.federal.test_dates_of_files import LEGISLATOR
from tests.support.federal.base import load_files, serve_in_process

pytestmark = pytest.mark.anyio

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)
USLM = 'xmlns="http://schemas.gpo.gov/xml/uslm" xmlns:dc="http://purl.org/dc/elements/1.1/"'
PASSED_HOUSE = """<attestation><action><actionDescription>Passed the House of Representatives
</actionDescription><date date="2023-01-09" meta="chamber:House">January 9, 2023</date>.</action>
</attestation>"""


def action(day: str, words: str) -> str:
    return f"<action><date>{day}</date><actionDescription>{words}</actionDescription></action>"


INTRODUCED = action(
    "January 4, 2023", "<sponsor>Ms. Sample</sponsor> introduced the following bill"
)


def bill_text(name: str, preface: str, after: str = "") -> str:
    """`118hr9001rh`: a version of the text of a bill."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<bill {USLM}><meta><dc:title>{name}: To keep rivers.</dc:title><citableAs>{name}</citableAs>
<congress>118</congress></meta><preface>{preface}</preface><main><longTitle><officialTitle>To keep
rivers.</officialTitle></longTitle></main>{after}</bill>"""


def parse_bill(text: str) -> Bill:
    *_, entry = BillTextLoader().parse(RawFile("x.xml", text.encode(), lambda _: None), ORIGIN)
    assert isinstance(entry.record, Bill)
    return entry.record


ON_CALENDAR = action("January 12, 2023", "Read the second time and placed on the calendar")
RECEIVED = action("January 12, 2023", "Received; read twice and referred")
REPORTED_BY = action("May 2, 2023", "Reported by <sponsor>Mr. Chair</sponsor>, with an amendment")
ORIGINAL = action(
    "March 1, 2023", "Mr. Chair, from the Committee on Rivers, reported the following original bill"
)
VITIATED = action("March 9, 2023", "Previous reporting vitiated by unanimous consent")
DISCHARGED = action(
    "March 9, 2023", "Committee on Rules discharged; committed to the Committee of the Whole House"
)
PASSED_AT_ONCE = action("May 2, 2023", "read twice, considered, read the third time, and passed")
PASSED_SENATE = PASSED_HOUSE.replace("House of Representatives", "Senate")


@pytest.mark.parametrize(
    ("name", "preface", "after", "stage", "day"),
    [
        ("118hr1ih", INTRODUCED, "", "introduced", "2023-01-04"),
        # On the other chamber's calendar: it was passed before, on another day than it was read.
        ("118hjres1pcs", ON_CALENDAR, PASSED_HOUSE, "passed_one", "2023-01-09"),
        ("118hr1rfs", RECEIVED, PASSED_HOUSE, "passed_one", "2023-01-09"),
        # The day of receipt is not that of passage, which this text does not name.
        ("118hres1rds", RECEIVED, "", "passed_one", None),
        ("118s1pcs", INTRODUCED + ON_CALENDAR, "", "introduced", "2023-01-04"),
        # A House bill that a Senate committee reported had passed the House.
        ("118hr1rs", REPORTED_BY, "", "passed_one", None),
        ("118s1es", "", PASSED_SENATE, "passed_one", "2023-01-09"),
        ("118s1eh", "", PASSED_HOUSE, "passed_both", "2023-01-09"),
        ("118hres1eh", "<action><date>May 2, 2023</date></action>", "", "passed_one", "2023-05-02"),
        ("118s1cps", PASSED_AT_ONCE, "", "passed_one", "2023-05-02"),
        ("118sconres1enr", action("May 2, 2023", "Agreed to"), "", "passed_both", "2023-05-02"),
        ("118hr1enr", "", "", "passed_both", None),
        # The committee that reported it first, not the day of the print.
        (
            "118hr1rh",
            action("March 1, 2023", "Reported from the Committee on Rivers") + DISCHARGED,
            "",
            "reported",
            "2023-03-01",
        ),
        (
            "118hconres1rh",
            action("March 9, 2023", "Referred to the House Calendar"),
            "",
            "reported",
            "2023-03-09",
        ),
        ("118s1ris", REPORTED_BY + RECEIVED, "", "reported", "2023-05-02"),
        ("118s1rs", ORIGINAL, "", "reported", "2023-03-01"),
        ("118s1rcs", ORIGINAL + VITIATED, "", "introduced", None),
    ],
)
def test_a_text_says_how_far_its_bill_came_and_when(
    name: str, preface: str, after: str, stage: str, day: str | None
) -> None:
    bill = parse_bill(bill_text(name, preface, after))
    assert (bill.stage, bill.stage_at) == (stage, day)


def test_the_day_of_one_stage_is_never_given_to_another() -> None:
    introduced = {"stage": "introduced", "stage_at": "2023-01-04"}
    passed = {"stage": "passed_both", "stage_at": None}
    for one, other in ((introduced, passed), (passed, introduced)):
        merged = merge_fields(one, other)
        assert (merged["stage"], merged["stage_at"]) == ("passed_both", None)
    later = {"stage": "passed_both", "stage_at": "2023-05-02"}
    earlier = {"stage": "passed_both", "stage_at": "2023-04-01"}
    for one, other in ((later, earlier), (earlier, later)):
        assert merge_fields(one, other)["stage_at"] == "2023-04-01"


OFFICIAL = {
    "HJ1_PCS.XML": ("passed_one", "2019-01-03"),
    "S1029_RFH.XML": ("passed_one", "2019-12-19"),
    "H3401_RDS.XML": ("passed_one", "2019-06-25"),
    "HC32_RFS.XML": ("passed_one", "2019-10-22"),
    "HJ37_RFS.XML": ("passed_one", "2019-02-13"),
    "BILLS-116hres755rds.xml": ("passed_one", None),
    "BILLS-110s2062ris.xml": ("reported", "2007-12-07"),
    "BILLS-114s32cds.xml": ("introduced", "2015-01-06"),
    "BILLS-114hres99eh.xml": ("passed_one", "2015-02-10"),
    "H1010_RH.XML": ("reported", "2019-04-29"),
    "HC16_RH.XML": ("reported", "2019-04-02"),
    "S2731_RCS.XML": ("introduced", "2019-10-29"),
    "SC14_enr.XML": ("passed_both", "2019-05-22"),
}
REPORT_IDS = {
    "BILLS-116hr3rh.xml": ["crpt:116hrpt324", "crpt:116hrpt324-pt2", "crpt:116hrpt324-pt3"],
    "H1_RH.XML": ["crpt:116hrpt15"],
    "H1010_RH.XML": ["crpt:116hrpt43", "crpt:116hrpt43-pt2"],
    "HC16_RH.XML": ["crpt:116hrpt30"],
    "HR1017_RH.XML": ["crpt:116hrpt436"],
    "BILLS-110s2062ris.xml": ["crpt:110srpt238"],
}
COMMITTEES = {
    "S1900_RS.xml": [("SSAP", "Reported by", "2019-06-19")],
    "S1029_RFH.XML": [("HSJU", "Referred to", "2019-12-23")],
    "SJ65_RFH.XML": [("HSHA", "Referred to", "2020-01-13")],
}


@pytest.mark.data
def test_official_texts_say_what_a_reader_finds_in_them(shared_data: Path) -> None:
    folder = shared_data / "federal" / "uslm" / "bills"
    bills = {path.name: parse_bill(path.read_text("utf-8")) for path in folder.iterdir()}
    assert {name: (bills[name].stage, bills[name].stage_at) for name in OFFICIAL} == OFFICIAL
    assert {name: bill.report_ids for name, bill in bills.items() if bill.report_ids} == REPORT_IDS
    told = {
        name: [
            (committee.id, activity.name, activity.date)
            for committee in bills[name].committees
            for activity in committee.dated_activities
        ]
        for name in COMMITTEES
    }
    assert told == COMMITTEES


NAMED_REPORTS = """<relatedDocuments role="report">[Report No. 118–7, Parts
<relatedDocument role="report" href="/us/hrpt/118/7/pt1">I</relatedDocument> and
<relatedDocument role="report" href="/us/hrpt/118/7/pt2">II</relatedDocument>]</relatedDocuments>"""
LISTED_IN_STATUS = {
    "cosponsors", "actions", "cost_estimates", "committee_reports", "hearings", "votes",
    "amendments", "laws",
}  # fmt: skip


async def test_a_dossier_names_the_reports_that_a_text_prints_and_what_it_cannot_know(
    tmp_path: Path,
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "is.xml").write_text(bill_text("118hr9001ih", INTRODUCED), "utf-8")
    (files / "rh.xml").write_text(bill_text("118hr9001rh", NAMED_REPORTS + INTRODUCED), "utf-8")
    load_files(tmp_path, files, embed=False)
    async with serve_in_process(tmp_path) as ask:
        dossier = await ask.record("/bills/hr:118:9001/dossier")
        reports = dossier["committee_reports"]
        assert [(item["id"], item["loaded"]) for item in reports["items"]] == [
            ("crpt:118hrpt7", False),
            ("crpt:118hrpt7-pt2", False),
        ]
        (evidence,) = reports["items"][1]["evidence"]
        assert evidence["said_by"] == "hr:118:9001"
        assert evidence["words"] == "preface: [Report No. 118–7, Parts I and II]"
        assert reports["total"] == 2
        bill = await ask.record("/bills/hr:118:9001")
        assert bill["committee_reports"] == ["H. Rept. 118-7, Part 1", "H. Rept. 118-7, Part 2"]
        noted = {
            name
            for name, section in dossier.items()
            if isinstance(section, dict)
            and "Only texts of this bill are loaded" in (section.get("note") or "")
        }
        assert noted == LISTED_IN_STATUS
        counted = await ask.record("/committee-reports", aggregate="count")
        assert counted["value"] == 0


async def test_who_is_only_named_is_not_said_to_sit_no_longer(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    named = INTRODUCED.replace("<sponsor>", '<sponsor bioGuideId="S999001">')
    (files / "ih.xml").write_text(bill_text("118hr9001ih", named), "utf-8")
    load_files(tmp_path, files, embed=False)
    async with serve_in_process(tmp_path) as ask:
        (member,) = (await ask.record("/legislators"))["results"]
        assert member["stub"] and "current" not in member
        asked = await ask.answer(
            "resolve_entity", entity_type="legislators", query="Speaker of the House"
        )
        assert asked["results"] == []
        assert "No list of members is loaded here" in asked["note"]
        for current in ("true", "false"):
            listed = await ask.record("/legislators", current=current)
            assert listed["results"] == []
            assert "the current is not known here" in listed["note"]
        dossier = await ask.record("/legislators/S999001/dossier")
        assert dossier["legislator"]["stub"]
        assert "Only other records name this person" in dossier["leadership"]["note"]
    (files / "legislators-current.yaml").write_text(LEGISLATOR, "utf-8")
    load_files(tmp_path, files, embed=False)
    async with serve_in_process(tmp_path) as ask:
        member = await ask.record("/legislators/S999001")
        assert (member["stub"], member["current"]) == (False, True)


async def test_a_printed_name_with_the_id_of_another_member_is_told_as_both(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "legislators-current.yaml").write_text(LEGISLATOR, "utf-8")
    named = INTRODUCED.replace("<sponsor>Ms. Sample", '<sponsor bioGuideId="S999001">Mr. Heron')
    (files / "ih.xml").write_text(bill_text("118hr9001ih", named), "utf-8")
    for _ in range(2):  # nor is it said twice
        load_files(tmp_path, files, embed=False)
        (files / "more.xml").write_text(bill_text("118hr9002ih", INTRODUCED), "utf-8")
    async with serve_in_process(tmp_path) as ask:
        (sponsor,) = (await ask.record("/bills/hr:118:9001"))["sponsors"]
        told = "Heron (as printed; the file's id S999001 is that of Ann Sample)"
        assert (sponsor["name"], sponsor["party"]) == (told, None)
        dossier = await ask.record("/bills/hr:118:9001/dossier")
        (evidence,) = dossier["sponsors"]["items"][0]["evidence"]
        assert evidence["words"] == f"sponsors: {told}"
