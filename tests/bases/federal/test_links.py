"""Links between federal records: readable from both ends, never without evidence."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.parts import bill_fields, references
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.query.links import count_links, read_link_page
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import (
    parse_estimate_id,
    parse_federal_id,
    parse_report_citation,
)
from readingroom.bases.federal.schema.records import Law, LinkKind
from readingroom.bases.federal.schema.sources import SOURCES, SOURCES_BY_NAME
from readingroom.bases.federal.store import DATABASE_FILE_NAME, get_database_path
from tests.requirements import requirement
from tests.support.federal.base import Asked, load_files, serve_in_process, write_world
from tests.support.federal.world import register_document

pytestmark = pytest.mark.anyio

ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)


def make_law(number: int, *links: RecordLink, sha256: str = "0" * 64) -> ParsedRecord:
    told = build_citation_fields(
        ORIGIN, url="https://example.org", org="us", cite="a law", published_at=None,
        raw_sha256=sha256,
    )  # fmt: skip
    record = Law(id=f"pl:119-{number}", title=f"Law {number}", congress=119, number=number, **told)
    return ParsedRecord(record, links=links)


def list_stored_links(data: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(get_database_path(data))) as db:
        return db.execute("SELECT * FROM links ORDER BY 1, 2, 3, 4").fetchall()


def put(data: Path, entry: ParsedRecord, loader: str = "laws/1") -> None:
    path = get_database_path(data)
    store.prepare_records(path)
    with closing(store.connect(path, writing=True)) as db:
        writer = Writer(db)
        with writer.transaction():
            writer.put_records([entry], loader)


@requirement("federal:links")
async def test_both_records_of_a_link_show_it_with_its_evidence(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=0)
    (tmp_path / "files" / "BILLSTATUS-119hr1.xml").write_text(BILL, "utf-8")
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        of_bill = await ask.record("/bills/hr:119:1/links", kind="statement")
        (found,) = of_bill["results"]
        assert found["id"] == "sap:119:2025-03-01:hr1"
        assert found["source"] == "saps"
        assert found["title"].startswith("H.R. 1")
        (why,) = found["evidence"]
        assert (why["said_by"], why["loader"]) == ("sap:119:2025-03-01:hr1", "saps")
        assert "hr1" in why["words"]
        back = await ask.record("/saps/sap:119:2025-03-01:hr1/links")
        assert [one["id"] for one in back["results"]] == ["hr:119:1"]
        assert back["results"][0]["evidence"] == [why]


@requirement("federal:links")
async def test_fetch_says_how_many_records_of_each_kind_are_linked(tmp_path: Path) -> None:
    (tmp_path / "BILLSTATUS-119hr1.xml").write_text(BILL, "utf-8")
    load_files(tmp_path, tmp_path / "BILLSTATUS-119hr1.xml")
    async with serve_in_process(tmp_path) as ask:
        fetched = await ask.answer("fetch", id="hr:119:1")
        assert fetched["links"] == {
            "amendment": 1,
            "committee_report": 2,
            "cost_estimate": 1,
            "law": 1,
            "related": 1,
            "topic": 1,
            "vote": 1,
        }
        listed = (await ask.web.get(fetched["links_url"])).json()
        assert listed["total"] == 8
        by_kind = {one["kind"]: one for one in listed["results"]}
        assert by_kind["vote"]["id"] == "house:119:1:7"
        assert "Roll no. 7" in by_kind["vote"]["evidence"][0]["words"]
        assert by_kind["law"]["title"] is None, "that law is not loaded, and the link says so"
        reports = [one["id"] for one in listed["results"] if one["kind"] == "committee_report"]
        assert sorted(reports) == ["crpt:119hrpt12", "crpt:119hrpt12-pt2"]
        amendment = await ask.record("/amendments/amdt:119:hamdt:3/links")
        assert {one["id"] for one in amendment["results"]} == {"hr:119:1", "house:119:1:8"}


@requirement("federal:links")
async def test_a_cursor_leads_through_every_link_once(tmp_path: Path) -> None:
    bills = [RecordLink(LinkKind.LAW, f"hr:119:{number}", "laws") for number in range(1, 24)]
    topics = [RecordLink(LinkKind.TOPIC, f"topic:t{number}", "subjects") for number in range(9)]
    put(tmp_path, make_law(1, *bills, *topics))
    async with serve_in_process(tmp_path) as ask:
        seen = await _list_all_links(ask, "/public-laws/pl:119-1/links")
        assert sorted(seen) == sorted(link.id for link in (*bills, *topics))
        narrowed = await _list_all_links(ask, "/public-laws/pl:119-1/links", kind="topic")
        assert sorted(narrowed) == sorted(link.id for link in topics)
        assert (await ask.get("/public-laws/pl:119-1/links", kind="love")).status_code == 422
        assert (await ask.get("/public-laws/pl:119-1/links", cursor="x")).status_code == 422
        assert (await ask.get("/public-laws/pl:119-2/links")).status_code == 404


async def _list_all_links(ask: Asked, path: str, **asked_for: str) -> list[str]:
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await ask.record(path, limit=5, **asked_for, **cursor)
        seen += [one["id"] for one in page["results"]]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            assert page["total"] == len(seen)
            return seen
        cursor = {"cursor": page["next_cursor"]}


@requirement("federal:links")
def test_a_link_without_evidence_cannot_be_stored(tmp_path: Path) -> None:
    for nothing in ("", "  "):
        # `OR IGNORE` passes over a repeated link, never over one that stands on nothing.
        with pytest.raises(sqlite3.IntegrityError):
            put(tmp_path, make_law(1, RecordLink(LinkKind.LAW, "hr:119:1", nothing)))
    assert list_stored_links(tmp_path) == []


def test_a_record_read_again_has_the_links_of_its_newest_reading(tmp_path: Path) -> None:
    put(
        tmp_path,
        make_law(
            1, RecordLink(LinkKind.LAW, "hr:119:1", "a"), RecordLink(LinkKind.LAW, "hr:119:2", "a")
        ),
    )
    put(tmp_path, make_law(1, RecordLink(LinkKind.LAW, "hr:119:2", "b"), sha256="1" * 64))
    assert list_stored_links(tmp_path) == [("pl:119-1", "law", "hr:119:2", "laws", "b")]


async def test_two_files_that_say_the_same_are_two_pieces_of_evidence(tmp_path: Path) -> None:
    (tmp_path / "BILLSTATUS-119hr1.xml").write_text(BILL, "utf-8")
    load_files(tmp_path, tmp_path / "BILLSTATUS-119hr1.xml")
    put(tmp_path, make_law(2, RecordLink(LinkKind.LAW, "hr:119:1", "its title")))
    async with serve_in_process(tmp_path) as ask:
        page = await ask.record("/bills/hr:119:1/links", kind="law")
        assert page["total"] == 1, "one pair, whoever speaks of it"
        (found,) = page["results"]
        assert found["title"] == "Law 2"
        assert [one["said_by"] for one in found["evidence"]] == ["hr:119:1", "pl:119-2"]


def test_what_is_withdrawn_speaks_of_nothing_any_more(tmp_path: Path) -> None:
    put(tmp_path, make_law(1, RecordLink(LinkKind.LAW, "hr:119:1", "a")))
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        writer = Writer(db)
        with writer.transaction():
            writer.withdraw_record(
                SOURCES_BY_NAME["public_laws"], "pl:119-1", "2026-01-02", "in error"
            )
    assert list_stored_links(tmp_path) == []


def test_a_file_made_before_a_source_or_a_column_gets_it(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_FILE_NAME
    store.prepare_records(path)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            """DROP TABLE saps; DROP INDEX public_laws_private; DROP INDEX public_laws_facts;
               ALTER TABLE public_laws DROP COLUMN private;"""
        )
    store.prepare_records(path)
    with closing(sqlite3.connect(path)) as db:
        for source in SOURCES:
            names = ", ".join(["id", *(column.name for column in source.columns)])
            assert db.execute(f"SELECT {names} FROM {source.name}").fetchall() == []


@pytest.mark.data
@requirement("federal:links")
def test_every_link_of_official_files_has_evidence_and_ids_that_fetch_takes(official: Path) -> None:
    stored = list_stored_links(official)
    assert len(stored) > 10_000
    for from_id, kind, to_id, loader, evidence in stored:
        assert parse_federal_id(from_id).id == from_id
        assert parse_federal_id(to_id).id == to_id
        assert evidence.strip()
        assert loader
        assert LinkKind(kind)


def test_a_list_that_knows_less_takes_no_link_away(tmp_path: Path) -> None:
    put(tmp_path, make_law(1, RecordLink(LinkKind.LAW, "hr:119:1", "a")))
    listed = replace(make_law(1, RecordLink(LinkKind.LAW, "hr:119:2", "b")), is_partial=True)
    put(tmp_path, listed)
    put(tmp_path, listed)
    assert [row[2:4] for row in list_stored_links(tmp_path)] == [
        ("hr:119:1", "laws"),
        ("hr:119:2", "laws#listed"),
    ]


@requirement("federal:links")
async def test_a_rule_leads_to_its_docket_its_regulations_its_laws_and_subjects(
    tmp_path: Path,
) -> None:
    rule = register_document(
        "2025-00001",
        "2025-02-03",
        "Airport noise",
        abstract="Carries out Public Law 115\u2013254.",
        docket_ids=[
            "Docket No. FAA\u20132025\u20130012",
            "SR-MIAX-2025-1039",
            "Docket ID: DoD-2009-OS-0160",
        ],
        cfr_references=[{"title": 14, "part": 36}],
        topics=["Noise control"],
    )
    (tmp_path / "rule.json").write_text(json.dumps(rule), "utf-8")
    docket = {"id": "FAA-2025-0012", "type": "dockets", "attributes": {"title": "Noise",
              "modifyDate": "2025-01-01T00:00:00Z"}}  # fmt: skip
    (tmp_path / "docket.json").write_text(json.dumps({"data": docket}), "utf-8")
    assert load_files(tmp_path, tmp_path / "rule.json", tmp_path / "docket.json").failed == 0
    async with serve_in_process(tmp_path) as ask:
        told = await ask.record("/federal-register/2025-00001/links")
        assert {(one["kind"], one["id"]) for one in told["results"]} == {
            ("docket", "docket:FAA-2025-0012"),
            ("docket", "docket:DOD-2009-OS-0160"),
            ("cfr", "cfr:14:36"),
            ("mention", "pl:115-254"),
            ("topic", "topic:noise-control"),
        }
        back = await ask.record("/regulations-dot-gov-dockets/docket:FAA-2025-0012/links")
        assert [one["id"] for one in back["results"]] == ["2025-00001"]
        assert (await ask.record("/topic-taxonomy/topic:noise-control"))["vocabulary"] == (
            "federal_register"
        )


def _write_rule_and_docket(
    folder: Path, rule_rin: str, docket_rin: str, modified: str
) -> tuple[Path, Path]:
    """A rule that names no docket, and a docket, each with its RIN."""
    folder.mkdir(exist_ok=True)
    rule = register_document(
        "2025-00001", "2025-02-03", "Airport noise", regulation_id_numbers=[rule_rin]
    )
    told = {"title": "Noise", "rin": docket_rin, "modifyDate": modified}
    docket = {"data": {"id": "FAA-2025-0012", "type": "dockets", "attributes": told}}
    files = folder / "rule.json", folder / "docket.json"
    for path, content in zip(files, (rule, docket), strict=True):
        path.write_text(json.dumps(content), "utf-8")
    return files


@requirement("federal:links")
@pytest.mark.parametrize("first", ["rule", "docket"])
async def test_a_rule_and_a_docket_of_the_same_rin_are_linked_whichever_came_first(
    tmp_path: Path, first: str
) -> None:
    files = _write_rule_and_docket(
        tmp_path / "files", "2120-AL12", "2120-AL12", "2025-01-01T00:00:00Z"
    )
    for path in files if first == "rule" else reversed(files):
        load_files(tmp_path, path, embed=False)
    async with serve_in_process(tmp_path) as ask:
        told = await ask.record("/regulations-dot-gov-dockets/docket:FAA-2025-0012/links")
        (linked,) = told["results"]
        assert (linked["kind"], linked["id"]) == ("docket", "2025-00001")
        assert linked["evidence"] == [
            {
                "said_by": "2025-00001",
                "loader": "rin",
                "words": "RIN 2120-AL12, of the document and of the docket",
            }
        ]


def test_a_rin_that_was_corrected_links_no_more(tmp_path: Path) -> None:
    for number, rin in enumerate(("2120-AL12", "2120-AL13", "Not Assigned", "2120-al12"), start=1):
        files = _write_rule_and_docket(
            tmp_path / "files", "2120-AL12", rin, f"2025-01-0{number}T00:00:00Z"
        )
        load_files(tmp_path, *files, embed=False)
        assert len(list_stored_links(tmp_path)) == (number in (1, 4)), rin


@pytest.mark.data
@requirement("federal:links")
def test_the_evidence_of_a_mention_is_what_the_file_says_not_our_id(official: Path) -> None:
    stored = [row for row in list_stored_links(official) if row[1] == "mention"]
    assert len(stored) > 1_000
    for _, _, to_id, _, evidence in stored:
        place, colon, words = evidence.partition(": ")
        assert place and colon
        assert to_id not in words
        # Whatever an id is made of stands in the words: `S. 1042`, `17 CFR 240.19b-4`.
        assert to_id.isupper() or re.findall("[0-9]+", to_id)[-1] in words, evidence


@pytest.mark.data
def test_the_record_names_bills_on_its_pages_as_its_mods_does(official: Path) -> None:
    """Two readings of one day, by different programs: what we find in the words GPO found too."""
    pages, mods = (
        {row[:3] for row in list_stored_links(official)
         if row[3] == by and row[1] == "mention" and parse_federal_id(row[2]).source in TEXTUAL}
        for by in ("crec-page#text", "crec-mods")
    )  # fmt: skip
    assert len(pages & mods) / len(pages) > 0.9
    assert len(pages & mods) / len(mods) > 0.9


TEXTUAL = ("bills", "public_laws")


@pytest.mark.data
@requirement("federal:links")
async def test_a_rule_rests_on_the_law_that_its_authority_cites(official: Path) -> None:
    async with serve_in_process(official) as ask:
        told = await ask.record("/federal-register/2017-21003/links", limit=200)
        kinds = {(one["kind"], one["id"]): one["evidence"][0]["words"] for one in told["results"]}
        assert "Sec. 1503, Pub. L. 108-11" in kinds["authority", "pl:108-11"]
        assert ("mention", "pl:108-11") not in kinds
        parts = [id for kind, id in kinds if kind == "cfr"]
        assert len(parts) == 23
        assert {"cfr:15:730", "cfr:15:774"} <= set(parts)


@pytest.mark.parametrize(
    ("after", "id"),
    [
        ("\u20134.", "cfr:17:240.19b-4"),
        ("\u20133(a)(12).", "cfr:17:240.19b-3"),
        ("\u20131, 6.04\u20131", "cfr:17:240.19b-1"),
        ("\u2013240.20 are", "cfr:17:240.19b"),
        (" and others", "cfr:17:240.19b"),
    ],
)
def test_the_number_of_a_section_does_not_end_at_its_dash(after: str, id: str) -> None:
    told = f'<p><ref href="/us/cfr/t17/s240.19b">17 CFR 240.19b</ref>{after}</p>'
    found = references.collect_references([ElementTree.fromstring(told)]).words_by_cfr_section_id
    assert list(found) == [id]
    assert found[id].startswith("17 CFR 240.19b")


def test_a_section_shows_the_rules_on_its_part(tmp_path: Path) -> None:
    path = tmp_path / DATABASE_FILE_NAME
    store.prepare_records(path)
    with closing(store.connect(path, writing=True)) as db:
        db.execute("INSERT INTO links VALUES ('2025-1', 'cfr', 'cfr:14:36', 'x', 'part 36')")
        found, _, total = read_link_page(db, "cfr:14:36.9", None, 10, None)
        assert ([one.id for one in found], total) == (["2025-1"], 1)
        assert count_links(db, "cfr:14:36.9") == {"cfr": 1}
        assert count_links(db, "cfr:14:361.9") == {}


# Large and small, of both chambers, in two generations of files; read by hand, kind by kind.
TEN = (
    *("117hr2471", "117hr5376", "117hr4350", "117hr1", "117s1260", "117sconres14"),
    *("114hr1314", "114hr5278", "114s2848", "114sjres8"),
)


@pytest.mark.data
@pytest.mark.parametrize("file", TEN)
@requirement("federal:links")
def test_ten_bills_are_linked_to_what_official_files_name_and_to_nothing_else(
    official: Path, shared_data: Path, file: str
) -> None:
    congress, kind, number = re.findall(r"[0-9]+|[a-z]+", file)
    bill = f"{kind}:{congress}:{number}"
    with closing(sqlite3.connect(get_database_path(official))) as db:
        stored = db.execute(
            """SELECT kind, to_id FROM links WHERE from_id = :bill UNION
               SELECT kind, from_id FROM links
               WHERE to_id = :bill AND kind IN ('amendment', 'statement')""",
            {"bill": bill},
        ).fetchall()
    folder = shared_data / "federal"
    (path,) = folder.rglob(f"BILLSTATUS-{file}.xml")
    named = set(_list_named_in_status(path.read_text("utf-8")))
    named |= {("statement", id) for id in _list_statements(folder, int(congress), kind + number)}
    assert set(stored) == named


def _list_named_in_status(text: str) -> Iterator[tuple[str, str]]:
    """What a status file names, read without any of our loaders."""
    bill = ElementTree.fromstring(text.encode()).find("bill")
    assert bill is not None
    of_amendments = set(bill.iterfind("amendments//recordedVote"))
    for vote in set(bill.iter("recordedVote")) - of_amendments:
        parts = ("chamber", "congress", "sessionNumber", "rollNumber")
        yield "vote", ":".join(vote.findtext(part, "").lower() for part in parts)
    congress = bill.findtext("congress", "")
    for action in bill.iterfind("actions/item"):
        session = 2 - int(action.findtext("actionDate", "")[:4]) % 2
        for chamber, number in re.findall(
            r"(Roll no\. |Record Vote Number: )(\d+)", action.findtext("text", "")
        ):
            house = chamber.startswith("Roll")
            yield "vote", f"{'house' if house else 'senate'}:{congress}:{session}:{number}"
    for number in bill.iterfind("laws/item/number"):
        yield "law", f"pl:{number.text}"
    for item in bill.iterfind("amendments/amendment"):
        parts = (item.findtext(part, "") for part in ("congress", "type", "number"))
        yield "amendment", f"amdt:{':'.join(parts).lower()}"
    for item in bill.iterfind("relatedBills/item"):
        of, kind, number = (item.findtext(part, "") for part in ("congress", "type", "number"))
        yield "related", f"{kind.replace('.', '').lower()}:{of}:{number}"
    for id in re.findall(r"cbo\.gov/publication/(\d+)</", text):
        yield "cost_estimate", f"cbo:{id}"
    for citation in re.findall(r"<citation>([^<]+)<", text):
        short = citation.replace("Book ", "bk").replace("Part ", "pt").replace("Errata", "errata")
        chamber, of, number, part = re.findall(r"(.)\. Rept\. (\d+)-(\d+)(.*)", short)[0]
        yield "committee_report", f"crpt:{of}{chamber.lower()}rpt{number}{part.replace(',', '-')}"
    for name in _list_subjects(bill):
        words = re.findall("[a-z0-9]+", name.lower())
        yield "topic", f"topic:{'-'.join(words)}"


def _list_subjects(bill: ElementTree.Element) -> Iterator[str]:
    for path in (
        "policyArea/name",
        "primarySubject/name",
        "subjects/legislativeSubjects/item/name",
        "subjects/billSubjects/otherSubjects/item/name",
        "subjects/billSubjects/legislativeSubjects/item/name",
        "subjects/billSubjects/policyArea/name",
    ):
        yield from (name.text for name in bill.iterfind(path) if name.text)


@pytest.mark.data
@pytest.mark.parametrize(
    ("said_by", "kind", "id", "words"),
    [
        # The file has no list of reports; an action says it.
        ("hr:114:3106", "committee_report", "crpt:114hrpt364", "H. Rept. 114-364."),
        ("sconres:117:5", "vote", "senate:117:1:13", "Record Vote Number: 13."),
        ("amdt:114:hamdt:886", "vote", "house:114:2:18", "(Roll no. 18)"),
        ("amdt:114:samdt:1327", "vote", "senate:114:1:188", "Record Vote Number: 188."),
    ],
)
def test_what_only_the_words_of_an_action_say_is_linked_too(
    official: Path, said_by: str, kind: str, id: str, words: str
) -> None:
    with closing(sqlite3.connect(get_database_path(official))) as db:
        ((evidence,),) = db.execute(
            "SELECT evidence FROM links WHERE from_id = ? AND kind = ? AND to_id = ?",
            (said_by, kind, id),
        ).fetchall()
    assert evidence.startswith("actions/item/text: ")
    assert words in evidence


@pytest.mark.data
@pytest.mark.parametrize("bill", ["hr:114:1155", "hr:115:302"])
def test_what_stands_in_a_field_is_told_before_what_words_say(official: Path, bill: str) -> None:
    with closing(sqlite3.connect(official / "federal" / DATABASE_FILE_NAME)) as db:
        told = db.execute(
            "SELECT evidence FROM links WHERE from_id = ? AND kind = 'vote'", (bill,)
        ).fetchall()
    assert len(told) == 2
    assert all(evidence.startswith("recordedVotes/") for (evidence,) in told)


@pytest.mark.data
def test_a_law_names_the_reports_on_what_it_was(official: Path) -> None:
    with closing(sqlite3.connect(official / "federal" / DATABASE_FILE_NAME)) as db:
        found = db.execute(
            """SELECT l.from_id, l.to_id, l.evidence, r.record->>'bills'
               FROM links l JOIN committee_reports r ON r.id = l.to_id
               WHERE l.kind = 'committee_report' AND l.from_id LIKE 'pl:%' ORDER BY 1, 2"""
        ).fetchall()
    assert [(law, report, bills) for law, report, _, bills in found] == [
        ("pl:113-121", "crpt:113hrpt246", '["hr:113:3080"]'),
        ("pl:113-121", "crpt:113hrpt449", '["hr:113:3080"]'),
        ("pl:113-287", "crpt:113hrpt44", '["hr:113:1068"]'),
        ("pl:114-190", "crpt:114hrpt21", '["hr:114:636"]'),
        ("pl:114-254", "crpt:114hrpt91", '["hr:114:2028"]'),
        ("pl:114-254", "crpt:114srpt54", '["hr:114:2028"]'),
    ]
    assert found[0][2].startswith("legislativeHistory: 113\u2013246, Pt. 1 (")


@pytest.mark.data
def test_actions_name_roll_calls_as_their_fields_do(shared_data: Path) -> None:
    compared = 0
    for path in (shared_data / "federal").rglob("*BILLSTATUS-*.xml"):
        for item in ElementTree.parse(path).iter("item"):
            recorded = set(item.iterfind("recordedVotes/recordedVote"))
            votes = {id for vote in recorded for id in bill_fields.parse_vote_ids(vote)}
            for vote in recorded:
                congress, date = int(vote.findtext("congress", "")), item.findtext("actionDate", "")
                told = set(
                    bill_fields._find_roll_call_ids(item.findtext("text", ""), date, congress)
                )
                assert told <= votes
                compared += len(told)
    assert compared > 100


def _list_statements(folder: Path, congress: int, bill: str) -> Iterator[str]:
    for path in folder.rglob("saps/**/*.yaml"):
        for told in path.read_text("utf-8").split("\n- bills:\n"):
            listed = re.findall(r"^  - ([a-z]+\d+)$", told, re.M)
            if bill in listed and f"congress: {congress}\n" in told:
                (day,) = re.findall(r"date_issued: '?([\d-]+)", told)
                yield f"sap:{congress}:{day}:{'-'.join(listed)}"


@pytest.mark.parametrize(
    ("citation", "id"),
    [
        ("H. Rept. 117-130,Book 2", "crpt:117hrpt130-bk2"),
        ("H. Rept. 117-118", "crpt:117hrpt118"),
        ("H. Rept. 117-118, Part 1", "crpt:117hrpt118"),
        ("H. Rept. 117-118,Part 2", "crpt:117hrpt118-pt2"),
        ("H. Rept. 117-118, Part II", "crpt:117hrpt118-pt2"),
        ("H. Rept. 114-602, Part I.", "crpt:114hrpt602"),
        ("H. Rept. 117-130,Errata", "crpt:117hrpt130-errata"),
        ("Ex. Rept. 117-5", "crpt:117erpt5"),
        ("S. Rept. 114\u2013283", "crpt:114srpt283"),
        ("Committee print 5", None),
    ],
)
def test_a_report_is_known_by_its_citation(citation: str, id: str | None) -> None:
    assert parse_report_citation(citation) == id


def test_an_estimate_is_known_by_its_page() -> None:
    assert parse_estimate_id("https://www.cbo.gov/publication/57561") == "cbo:57561"
    assert parse_estimate_id("https://www.cbo.gov/about") is None


def _roll(number: int) -> str:
    return (
        f"<recordedVotes><recordedVote><rollNumber>{number}</rollNumber><chamber>House</chamber>"
        "<congress>119</congress><sessionNumber>1</sessionNumber></recordedVote></recordedVotes>"
    )


BILL = f"""<billStatus><version>3.0.0</version><bill>
<number>1</number><type>HR</type><congress>119</congress><title>A bill on rail</title>
<updateDate>2025-05-01</updateDate><introducedDate>2025-01-03</introducedDate>
<policyArea><name>Taxation</name></policyArea>
<actions><item><actionDate>2025-02-01</actionDate><text>Passed (Roll no. 7).</text>{_roll(7)}</item>
</actions>
<laws><item><type>Public Law</type><number>119-2</number></item></laws>
<relatedBills><item><congress>119</congress><type>S</type><number>5</number>
<relationshipDetails><item><type>Identical bill</type></item></relationshipDetails></item>
</relatedBills>
<cboCostEstimates><item><title>Cost</title><url>https://www.cbo.gov/publication/61000</url></item>
</cboCostEstimates>
<committeeReports><committeeReport><citation>H. Rept. 119-12,Part 2</citation></committeeReport>
<committeeReport><citation>H. Rept. 119-12</citation></committeeReport></committeeReports>
<amendments><amendment><number>3</number><congress>119</congress><type>HAMDT</type>
<actions><actions><item><actionDate>2025-01-31</actionDate><text>Failed (Roll no. 8).</text>
{_roll(8)}</item></actions></actions></amendment></amendments>
</bill></billStatus>"""
