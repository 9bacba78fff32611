"""Nothing that an official file holds is lost without a word: what is missing is named."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.load.completeness import list_ignored_files, list_incomplete_files
from readingroom.bases.federal.store import get_database_path
from tests.support.federal.base import load_files, serve_in_process
from tests.support.federal.world_texts import register_issue
from tests.support.kit import invoke
from tests.support.papers import make_paper

pytestmark = pytest.mark.anyio


def read_status_rows(data: Path, query: Any) -> list[dict[str, Any]]:
    with closing(store.connect(get_database_path(data))) as db:
        return [dict(row) for row in query(db)]


async def test_what_the_president_signed_is_read_from_an_issue(tmp_path: Path) -> None:
    (tmp_path / "FR-2018-05-10.xml").write_text(register_issue(), "utf-8")
    summary = load_files(tmp_path, tmp_path / "FR-2018-05-10.xml", embed=False)
    assert (summary.records, summary.incomplete) == (4, [])
    async with serve_in_process(tmp_path) as ask:
        notice = await ask.record("/presidential-documents/presdoc:2018-90001")
        assert notice["title"] == "Continuation of the National Emergency About Sample Rivers"
        assert (notice["type"], notice["signed_at"]) == ("Notice", "2018-05-09")
        assert notice["president"] == "Donald Trump"
        assert notice["executive_order_number"] is None
        assert notice["published_at"] == "2018-05-10"
        order = await ask.answer("fetch", id="2018-90002")
        assert order["id"] == "presdoc:2018-90002"
        assert order["title"] == "Efficient Sample Operations"
        assert "lead by example" in order["text"]
        order_record = await ask.record("/presidential-documents/presdoc:2018-90002")
        assert order_record["executive_order_number"] == "13999"
        assert order_record["type"] == "Executive Order"


LISTED_SUBJECTS = """<statement role="listOfSubjects"><content>
<heading>List of Subjects in <ref href="/us/cfr/t40/p52">40 CFR Part 52</ref></heading>
<p>40 CFR Parts 52 and 60</p><p>{subjects}</p></content></statement>
<statement><content><heading>Background</heading><p>Rivers, Lakes, Ponds.</p></content></statement>
</main>"""


async def test_rules_of_an_issue_have_the_subjects_that_they_list(tmp_path: Path) -> None:
    issue = register_issue()
    for kind, subjects in (
        ("rule", "Air Pollution Control, Ozone, and waterways."),
        ("notice", "Navigation (air, water), Air pollution control, Ozone."),
    ):
        told = LISTED_SUBJECTS.format(subjects=subjects)
        issue = issue.replace(f"</main></{kind}>", f"{told}</{kind}>")
    (tmp_path / "FR-2018-05-10.xml").write_text(issue, "utf-8")
    load_files(tmp_path, tmp_path / "FR-2018-05-10.xml", embed=False)
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.record("/federal-register", aggregate="count", group_by="topic")
        assert {bucket["key"]: bucket["value"] for bucket in counted["buckets"]} == {
            # One spelling of one subject, the first of two that are equally frequent.
            "Air Pollution Control": 2,
            "Ozone": 2,
            "Waterways": 1,
            "Navigation (air, water)": 1,
        }
        found = await ask.record("/federal-register", topic="Air pollution control")
        assert len(found["results"]) == 2
        rule = await ask.record("/federal-register/2018-90003")
        assert rule["topics"] == ["Air Pollution Control", "Ozone", "Waterways"]
        links = await ask.record("/federal-register/2018-90003/links", kind="topic")
        (evidence,) = links["results"][0]["evidence"]
        assert evidence["words"] == "List of Subjects: Air Pollution Control"
        topic = await ask.answer("fetch", id="topic:ozone")
        assert topic["title"] == "Ozone"


def test_a_document_that_an_issue_lists_and_does_not_hold_is_named(tmp_path: Path) -> None:
    path = tmp_path / "FR-2018-05-10.xml"
    path.write_text(register_issue(leave_out="2018-90004"), "utf-8")
    summary = load_files(tmp_path, path, embed=False)
    assert summary.records == 3
    (missing,) = summary.incomplete
    assert missing["file"] == str(path)
    assert "2018-90004 (Sample Notice)" in missing["problem"]
    assert "download the issue of 2018-05-10 again" in missing["problem"]
    (row,) = read_status_rows(tmp_path, list_incomplete_files)
    assert row["file"] == str(path)
    assert row["error"] == missing["problem"]
    path.write_text(register_issue(), "utf-8")
    assert load_files(tmp_path, path, embed=False).incomplete == []
    assert read_status_rows(tmp_path, list_incomplete_files) == []


SAPS = """\
- bills:
  - hr1
  document_title: H.R. 1 – Sample Act
  congress: 119
  date_issued: '2025-03-01'
  file: statements/hr1.pdf
  fetched_from_url: 'https://www.whitehouse.gov/sample '
  date_fetched: '2025-03-02'
- bills:
  - hr2
  document_title: H.R. 2 – Other Act
  congress: 119
  date_issued: '2025-03-02'
  file: statements/hr2.pdf
  fetched_from_url: https://www.whitehouse.gov/other
  date_fetched: '2025-03-02'
- bills:
  - hr3
  document_title: H.R. 3 – Third Act
  congress: 119
  date_issued: '2025-03-03'
  file: statements/hr3.pdf
  fetched_from_url: https://www.whitehouse.gov/third
  date_fetched: '2025-03-03'
"""


async def test_a_pdf_that_cannot_be_read_or_is_not_used_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    (folder / "statements").mkdir(parents=True)
    (folder / "47-Trump.yaml").write_text(SAPS, "utf-8")
    (folder / "statements" / "hr1.pdf").write_bytes(
        make_paper("The Administration supports H.R. 1.")
    )
    (folder / "statements" / "hr2.pdf").write_text("<html>Not found</html>", "utf-8")
    (folder / "statements" / "stray.pdf").write_bytes(make_paper("Nobody names this."))
    data = ("--data", str(tmp_path / "data"))
    done = invoke("federal", "load", str(folder), *data)
    assert done.returncode == 0
    assert "statements/hr2.pdf was not read: The file is named .pdf" in done.stdout
    assert "1 of the 3 PDFs it names are not there, such as statements/hr3.pdf" in done.stdout
    assert f"{folder}/statements/stray.pdf: not read: a PDF is read only where" in done.stdout
    told = json.loads(invoke("federal", "status", *data, "--json").stdout)
    assert "hr2.pdf" in told["incomplete"][0]["error"]
    assert [row["file"] for row in told["ignored"]] == [str(folder / "statements" / "stray.pdf")]
    shown = invoke("federal", "status", *data).stdout
    assert "incomplete: " in shown
    assert "stray.pdf: not read" in shown
    async with serve_in_process(tmp_path / "data") as ask:
        statement = await ask.record("/saps/sap:119:2025-03-02:hr2")
        assert statement["text_problem"].startswith("The file is named .pdf")
        assert statement["characters"] == 0
        statement = await ask.record("/saps/sap:119:2025-03-01:hr1")
        assert statement["text_problem"] is None
        assert statement["url"] == "https://www.whitehouse.gov/sample"


def test_pdfs_alone_are_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "pdfs").mkdir()
    (tmp_path / "pdfs" / "hr1.pdf").write_bytes(make_paper("The Administration supports H.R. 1."))
    done = invoke("federal", "load", str(tmp_path / "pdfs"), "--data", str(tmp_path / "data"))
    assert done.returncode == 1
    assert "hr1.pdf: not read: a PDF is read only where a file of statements" in done.stdout


def test_an_ignored_file_is_in_the_status_once_until_it_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "files" / "FR.xml"
    path.parent.mkdir()
    path.write_text("<unknown/>", "utf-8")
    for _ in range(2):
        load_files(tmp_path, path.parent, embed=False)
    (row,) = read_status_rows(tmp_path, list_ignored_files)
    assert row["file"] == str(path)
    assert "its format is not recognised" in row["error"]
    path.write_text(register_issue(), "utf-8")
    load_files(tmp_path, path.parent, embed=False)
    assert read_status_rows(tmp_path, list_ignored_files) == []


def test_the_name_of_a_source_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saps").mkdir()
    (tmp_path / "saps" / "FR.xml").write_text(register_issue(), "utf-8")
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "47-Trump.yaml").write_text(SAPS, "utf-8")
    monkeypatch.chdir(tmp_path)
    done = invoke("federal", "load", "saps", "archive", "--data", str(tmp_path / "data"), "--json")
    assert json.loads(done.stdout)["by_loader"] == {"saps": 1}
