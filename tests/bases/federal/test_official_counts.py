"""Records in an official file = records loaded, by counts that use none of our parsers."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest
import yaml

from readingroom.bases.federal.store import get_database_path

pytestmark = pytest.mark.data


@pytest.fixture
def federal(shared_data: Path) -> Path:
    return shared_data / "federal"


@pytest.fixture
def database(official: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(get_database_path(official))) as db:
        yield db


def read_value(db: sqlite3.Connection, sql: str, *values: Any) -> Any:
    return db.execute(sql, values).fetchone()[0]


def read_yaml(path: Path) -> Any:
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def count_lines(path: Path, pattern: bytes) -> int:
    return len(re.findall(pattern, path.read_bytes(), re.M))


def test_people_committees_seats_and_offices(federal: Path, database: sqlite3.Connection) -> None:
    folder = federal / "congress-legislators"
    people = count_lines(folder / "legislators-current.yaml", rb"^- id:$")
    assert (
        read_value(database, "SELECT count(*) FROM legislators WHERE NOT record ->> 'stub'")
        == people
    )
    # All 537 of the list of current members sit.
    assert read_value(database, "SELECT count(*) FROM legislators WHERE current") == people
    committees = set()
    for name in ("committees-current.yaml", "committees-historical.yaml"):
        for committee in read_yaml(folder / name):
            committees.add(committee["thomas_id"])
            for part in committee.get("subcommittees", ()):
                committees.add(f"{committee['thomas_id']}{part['thomas_id']}")
    assert read_value(
        database, "SELECT count(*) FROM committees WHERE NOT record ->> 'stub'"
    ) == len(committees)
    seats = count_lines(folder / "committee-membership-current.yaml", rb"^- name:")
    assert read_value(database, "SELECT count(*) FROM committee_memberships") == seats
    offices = read_yaml(folder / "legislators-district-offices.yaml")
    addresses = sum(len(member["offices"]) for member in offices)
    by_type = dict(database.execute("SELECT type, count(*) FROM staff_directories GROUP BY 1"))
    assert by_type["district_office"] == addresses
    assert by_type["social_media"] == len(read_yaml(folder / "legislators-social-media.yaml"))


def find_newest_statuses(federal: Path) -> dict[str, Element]:
    """Return the newest file of each bill, by an id made of the file's own fields."""
    newest: dict[str, Element] = {}
    for path in (federal / "billstatus").rglob("*BILLSTATUS-*.xml"):
        bill = ElementTree.parse(path).getroot().find("bill")
        assert bill is not None
        kind = bill.findtext("type") or bill.findtext("billType") or ""
        number = bill.findtext("number") or bill.findtext("billNumber")
        id = f"{kind.lower()}:{bill.findtext('congress')}:{number}"
        stored = newest.get(id)
        dates = [part.findtext("updateDate") or "" for part in (bill, stored) if part is not None]
        if stored is None or dates[0] > dates[1]:
            newest[id] = bill
    return newest


def test_every_list_in_the_status_of_a_bill(federal: Path, database: sqlite3.Connection) -> None:
    statuses = find_newest_statuses(federal)
    loaded = "SELECT count(*) FROM bills WHERE record ->> 'status_loaded'"
    assert read_value(database, loaded) == len(statuses)
    totals: Counter[str] = Counter()
    for id, bill in statuses.items():
        texts = [item.findtext("text") or item.findtext("cdata/text") for item in (
            *bill.iterfind("summaries/summary"), *bill.iterfind("summaries/billSummaries/item"),
        )]  # fmt: skip
        in_file = {
            "bill_cosponsors": len(bill.findall("cosponsors/item")),
            "bill_actions": len(bill.findall("actions/item")),
            "bill_summaries": sum(bool((text or "").strip()) for text in texts),
        }
        for table, number in in_file.items():
            stored = read_value(database, f"SELECT count(*) FROM {table} WHERE bill_id = ?", id)
            assert stored == number, (id, table)
        totals.update(in_file)
        record = json.loads(read_value(database, "SELECT record FROM bills WHERE id = ?", id))
        assert len(record["calendar_numbers"]) == len(bill.findall("calendarNumbers/item")), id
        activities = bill.findall(".//committees//activities/item")
        dated = [
            each for committee in record["committees"] for each in committee["dated_activities"]
        ]
        assert len(dated) == len(activities), id
        assert all(each["date"] for each in dated), id
        totals["activities"] += len(dated)
    assert min(totals.values()) > 50, totals


def test_every_amendment_with_its_actions_and_cosponsors(
    federal: Path, database: sqlite3.Connection
) -> None:
    amendments: dict[str, Element] = {}
    for bill in find_newest_statuses(federal).values():
        for item in bill.iterfind("amendments/amendment"):
            kind = (item.findtext("type") or "").lower()
            amendments[f"amdt:{item.findtext('congress')}:{kind}:{item.findtext('number')}"] = item
    assert len(amendments) > 1_500
    for id, item in amendments.items():
        record = json.loads(read_value(database, "SELECT record FROM amendments WHERE id = ?", id))
        assert len(record["actions"]) == len(item.findall("actions/actions/item")), id
        listed = len(item.findall("cosponsors/item"))
        assert len(record["cosponsors"]) == listed, id
        stated = item.findtext("cosponsors/currentCount") or item.findtext("cosponsors/count")
        assert record["cosponsor_count"] == int(stated or listed), id
        assert record["chamber"] == ("senate" if ":samdt:" in id else "house"), id
        assert record["published_at"], id


def test_every_text_of_a_bill_and_every_law(federal: Path, database: sqlite3.Connection) -> None:
    roots: Counter[str] = Counter()
    versions = set()
    for path in (
        *(federal / "uslm").glob("bills/*"),
        *(federal / "uslm").glob("sample-files/*.xml"),
    ):
        text = path.read_text("utf-8")
        found = re.search(
            r"<(bill|resolution|engrossedAmendment|pLaw|statuteCompilation)[ >]", text
        )
        if found is None:
            continue
        roots[found[1]] += 1
        if found[1] in ("bill", "resolution", "engrossedAmendment"):
            cited = re.search(r"<citableAs>(\d+[a-z]+\d+[a-z]+\d*)</citableAs>", text, re.I)
            titled = re.search(r"<dc:title>(?:AMENDMENTS to )?(\d+ \w+ \d+ ?\w*)", text)
            versions.add(((cited or titled) or [path.name])[1 if cited or titled else 0].lower())
    texts = read_value(
        database, "SELECT count(*) FROM texts WHERE record_id IN (SELECT id FROM bills)"
    )
    assert texts == len({version.replace(" ", "") for version in versions})
    assert read_value(database, "SELECT count(*) FROM public_laws") == roots["pLaw"]
    assert (
        read_value(database, "SELECT count(*) FROM statute_compilations")
        == roots["statuteCompilation"]
    )


def test_every_document_that_an_issue_of_the_register_lists(
    federal: Path, database: sqlite3.Connection
) -> None:
    (path,) = (federal / "uslm" / "sample-files").glob("FR-*.xml")
    text = path.read_text("utf-8")
    listed = set(re.findall(r'role="fr-doc-id"[^>]*href="/us/fr/\d+/frdoc([\d-]+)"', text))
    stored = {id for (id,) in database.execute("SELECT id FROM federal_register")}
    assert stored == listed
    api = json.loads((federal / "samples" / "federal-register-document.excerpt.json").read_text())
    presidential = [id for (id,) in database.execute("SELECT id FROM presidential_documents")]
    assert presidential == [f"presdoc:{api['document_number']}"]


def test_every_section_of_the_regulations(federal: Path, database: sqlite3.Connection) -> None:
    (path,) = (federal / "uslm" / "sample-files").glob("CFR-*.xml")
    text = path.read_text("utf-8")
    # By the printed numbers: the identifiers leave out letters, as that of § 478.25a does.
    sections = set(re.findall(r"<section\b[^>]*>\s*(?:<\?[^>]*\?>\s*)*<num[^>]*>([^<]+)", text))
    stored = read_value(
        database, "SELECT count(*) FROM cfr_sections WHERE record ->> 'type' = 'section'"
    )
    assert stored == len(sections)


def test_every_page_of_the_record_and_every_statement(
    federal: Path, database: sqlite3.Connection
) -> None:
    pages = len(list((federal / "crec").rglob("CREC-*.htm")))
    assert read_value(database, "SELECT count(*) FROM congressional_record") == pages
    archives = sorted((federal / "saps" / "archive").glob("*.yaml"))
    statements = sum(count_lines(path, rb"^- bills:") for path in archives)
    assert read_value(database, "SELECT count(*) FROM saps") == statements


def test_every_vote_filing_estimate_and_meeting(
    federal: Path, database: sqlite3.Connection
) -> None:
    samples = federal / "samples"
    votes = count_lines(samples / "house-clerk-118-1-roll037.excerpt.xml", rb"<recorded-vote>")
    votes += count_lines(samples / "senate-lis-108-2-00213.excerpt.xml", rb"<member>")
    assert read_value(database, "SELECT count(*) FROM member_votes") == votes
    filings = json.loads((samples / "lda-filings-page.excerpt.json").read_text("utf-8"))
    assert read_value(database, "SELECT count(*) FROM lda_filings") == len(filings["results"])
    urls = re.findall(
        r"publication/(\d+)", (samples / "cbo-119congress-cost-estimates.xml").read_text()
    )
    for number in set(urls):
        assert read_value(
            database, "SELECT count(*) FROM cbo_cost_estimates WHERE id = ?", f"cbo:{number}"
        )
    meetings = list(federal.glob("unitedstates-congress/**/hearings/*.xml"))
    assert read_value(database, "SELECT count(*) FROM hearings") == len(meetings)


COUNTED_FORMATS = {
    *("legislators", "committees", "rosters", "district-offices", "social-media"),
    *("billstatus", "uslm-bill", "uslm-law", "comps", "cfr", "register-issue", "register-json"),
    *("crec-page", "crec-mods", "saps", "house-vote", "senate-vote", "lda", "cbo"),
    *("house-meeting", "house-witnesses"),
}
"""The formats whose records a test above counts."""


def test_every_kind_of_official_file_is_counted(
    federal: Path, database: sqlite3.Connection
) -> None:
    rows = database.execute("SELECT DISTINCT loader FROM ingestion_logs WHERE outcome = 'loaded'")
    assert {loader.partition("/")[0] for (loader,) in rows} == COUNTED_FORMATS
    # What is neither loaded nor told was not looked at.
    told = {file for (file,) in database.execute("SELECT file FROM ingestion_logs")}
    files = [path for path in federal.rglob("*") if path.is_file()]
    # PDFs are read with the YAML that names them; what is written about the data is no data.
    assert {str(path) for path in files if path.suffix not in (".pdf", ".md")} == told
