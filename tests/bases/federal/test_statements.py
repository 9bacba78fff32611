"""Statements of Administration Policy: their position, every bill they are on, and by whom."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.formats.parts.pdfs import PdfText
from readingroom.bases.federal.formats.parts.positions import determine_position
from readingroom.bases.federal.formats.saps import StatementLoader
from readingroom.bases.federal.schema.entries import FileProblem, FileStamp
from readingroom.bases.federal.schema.records import Sap
from readingroom.bases.federal.store import get_database_path
from tests.support.federal.base import load_files, serve_in_process

pytestmark = pytest.mark.anyio

# Written by reading 60 statements, drawn at random, before anybody looked at what the classifier
# says of them. Not for tuning: a rule is mended on other statements.
POSITIONS_FILE = Path(__file__).parents[2] / "fixtures" / "statement_positions.tsv"
ORIGIN = FileStamp("2026-01-01T00:00:00+00:00", "0" * 64)


@pytest.mark.data
def test_positions_are_what_a_reader_finds(official: Path) -> None:
    lines = POSITIONS_FILE.read_text("utf-8").splitlines()
    truth = {id: position for id, position, _ in (line.split("\t") for line in lines[1:])}
    assert len(truth) == 60
    with closing(store.connect(get_database_path(official))) as db:
        records = {
            row["id"]: row["position"] for row in db.execute("SELECT id, position FROM saps")
        }
        evidence = db.execute(
            """SELECT s.record ->> 'position_evidence' AS words, t.body FROM saps s
               JOIN texts t ON t.record_id = s.id WHERE s.position <> 'unknown'"""
        ).fetchall()
    taken = [id for id in truth if records[id] != "unknown"]
    right = [id for id in taken if records[id] == truth[id]]
    assert len(right) >= 0.95 * len(taken), [id for id in taken if id not in right]
    known = [id for id in truth if truth[id] != "unknown"]
    assert len(right) >= 0.9 * len(known)
    assert evidence
    for row in evidence:  # the statement's own words
        assert row["words"] in " ".join(row["body"].split())
    # Without a text nothing is known, and nothing is guessed from a title.
    assert Counter(records.values())["unknown"] > 5_000


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("The Administration strongly supports House passage of H.R. 1.", "supports"),
        ("The Administration supports the Sample Rivers Act.", "supports"),
        ("If this bill were presented, his advisors would recommend he sign it.", "supports"),
        ("The Administration opposes H.J. Res. 7, a joint resolution.", "opposes"),
        ("The Administration supports openness, but strongly opposes H.R. 2.", "opposes"),
        (
            "The Administration opposes H.R. 3. If presented with it, he would veto it.",
            "veto_threat",
        ),
        ("His senior advisors would recommend that he veto the bill.", "veto_threat"),
        ("The Administration opposes section 104 of the bill.", "unknown"),
        ("The Administration strongly opposes the House’s offset in H.R. 4.", "unknown"),
        ("The Administration supports efforts to repair rivers.", "unknown"),
        ("The Administration supports H.R. 5 but the Administration opposes the bill.", "unknown"),
        ("If an amendment on rivers were included, he would veto the bill.", "unknown"),
        ("Legislative vetoes are unconstitutional.", "unknown"),
        ("", "unknown"),
    ],
)
def test_words_say_the_position_or_it_is_unknown(text: str, position: str) -> None:
    stated = determine_position(text)
    assert stated.position == position
    assert (stated.evidence_text is None) == (position == "unknown")
    assert not stated.evidence_text or stated.evidence_text in text


STATEMENT = """\
- bills:
  - {bill}
  document_title: {title}
  congress: 116
  date_issued: '2019-02-25'
  url: "https://www.whitehouse.gov/sample "
  date_fetched: '2019-02-26'
"""


def read_statement(
    title: str, bill: str = "hr8", name: str = "45-Trump.yaml", url_end: str = "sample"
) -> Sap:
    text = STATEMENT.format(title=title, bill=bill)
    data = text.replace("gov/sample", f"gov/{url_end}").encode()
    entries = StatementLoader(lambda files: [PdfText("")] * len(files)).parse(
        RawFile(name, data, lambda _: None), ORIGIN
    )
    (entry,) = [entry for entry in entries if not isinstance(entry, FileProblem)]
    assert isinstance(entry.record, Sap)
    assert {link.id for link in entry.links} == set(entry.record.bills)
    return entry.record


@pytest.mark.parametrize(
    ("title", "bills"),
    [
        ("H.R. 8 – First Act and H.R. 1112 – Second Act", ["hr:116:8", "hr:116:1112"]),
        ("H.R. 8 – First Act, H.J. Res. 7 – Second", ["hr:116:8", "hjres:116:7"]),
        ("H.R. 8 (Previously H.R. 515) – Labor", ["hr:116:8", "hr:116:515"]),
        ("H.R. 8, and Substitute Amendment to H.R. 5788 – Traffic", ["hr:116:8", "hr:116:5788"]),
        ("Senate Amendment to H.R. 8 – Rivers", ["hr:116:8"]),
        ("S. 467 (As Amended by H.R. 4314)", ["hr:116:8", "s:116:467", "hr:116:4314"]),
        (
            "H.R. 8 (House Amendment to Senate Amendment to H.R. 550) – Repeal",
            ["hr:116:8", "hr:116:550"],
        ),
    ],
)
def test_every_bill_that_a_title_names_is_one_of_the_statement(
    title: str, bills: list[str]
) -> None:
    assert read_statement(title).bills == bills


@pytest.mark.parametrize(
    ("code", "url_end", "bills"),
    [
        ("hjres7576", "saphjr75-76h_20131004.pdf", ["hjres:116:75", "hjres:116:76"]),
        ("hr123456", "saphr123-456_20131004.pdf", ["hr:116:123", "hr:116:456"]),
        # Another address, or none that spells them: which they were is not for us to guess.
        ("hjres757677", "saphjr75-78h_20131004.pdf", []),
        ("hjres757677", "sample.pdf", []),
    ],
)
def test_bills_that_a_file_runs_together_are_those_that_its_address_spells(
    code: str, url_end: str, bills: list[str]
) -> None:
    assert read_statement("Appropriations Resolutions", code, url_end=url_end).bills == bills


def test_the_address_of_a_statement_has_no_blank_at_its_end() -> None:
    assert read_statement("H.R. 8").url == "https://www.whitehouse.gov/sample"


def test_two_presidents_of_one_name_are_two() -> None:
    first, second = (
        read_statement("H.R. 8 – Act", name=name) for name in ("41-Bush.yaml", "43-Bush.yaml")
    )
    assert (first.president, second.president) == ("Bush", "Bush")
    assert (first.president_number, first.president_name) == (41, "George H. W. Bush")
    assert (second.president_number, second.president_name) == (43, "George W. Bush")


async def test_statements_have_vectors_and_are_counted_by_position(tmp_path: Path) -> None:
    (tmp_path / "45-Trump.yaml").write_text(
        STATEMENT.format(bill="hr8", title="H.R. 8 – Bipartisan Background Checks Act"), "utf-8"
    )
    load_files(tmp_path, tmp_path / "45-Trump.yaml")
    async with serve_in_process(tmp_path) as ask:
        found = await ask.answer("search", query="background checks", source=["saps"])
        assert [hit["id"] for hit in found["results"]] == ["sap:116:2019-02-25:hr8"]
        assert found["degraded"] is None
        counted = await ask.record("/saps", aggregate="count", group_by="position")
        assert [(each["key"], each["value"]) for each in counted["buckets"]] == [("unknown", 1)]
        listed = await ask.record("/saps", president_number=45)
        assert len(listed["results"]) == 1
