"""The sample corpus: loaded while it is served, marked everywhere, never mixed with one's own."""

import json
import os
import shlex
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from readingroom.bases.federal.load.loading import load as load_files
from readingroom.bases.federal.store import connect, read_status
from readingroom.cli import main
from readingroom.commands.sample import reset_outdated_sample
from readingroom.core.progress import no_progress
from readingroom.core.settings import get_default_sample_directory
from readingroom.demo.corpus import (
    compute_corpus_digest,
    load_sample_policies,
    write_application,
    write_more_records,
    write_policy,
    write_records,
)
from readingroom.demo.paper import make_pdf
from readingroom.ingest.document import Document
from readingroom.ingest.pipeline import Pipeline
from readingroom.ingest.private_copy import AllowedFolders
from readingroom.ingest.read.sandbox import ConfinedReader
from readingroom.settings import load_settings
from scripts.contracts.changes import compare
from scripts.contracts.snapshot import CURRENT, read_snapshot
from scripts.contracts.stored import describe_data
from scripts.docs.console import SAMPLE_ADDRESS, WorkedExample, find_worked_examples
from scripts.docs.pages import ROOT
from scripts.docs.tools import read_examples
from tests.requirements import requirement
from tests.support.kit import (
    LEGACY,
    Served,
    clean_environment,
    connect_http,
    connect_stdio,
    make_command,
    read_body,
    run,
    serve_room,
)
from tests.support.model import link_model
from tests.support.processes import wait_until

pytestmark = pytest.mark.anyio

APPLICATION = "25/01178/REM"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve --demo`, with everything loaded."""
    with serve_room("--demo", data=link_model(tmp_path_factory.mktemp("demo") / "room")) as served:
        wait_until(lambda: is_loaded(served.data))
        yield served


def is_loaded(data: Path) -> bool:
    mark = data / "sample.json"
    told = json.loads(mark.read_text()) if mark.exists() else {}
    return (told.get("corpus"), told.get("state")) == (compute_corpus_digest(), "loaded")


@requirement("room:docs")
def test_the_formats_of_stored_data_are_those_of_the_snapshot(demo: Served) -> None:
    expected = read_snapshot(CURRENT)["stored"]
    del expected["backup"], expected["sqlite"]["keys.db"]  # the sample has neither

    assert list(compare(expected, describe_data(demo.data))) == []


@requirement("room:sample")
async def test_a_date_decides_which_sample_revision_answers(demo: Served) -> None:
    question = {"query": "cycle parking spaces for each dwelling", "sources": ["NPPF"]}
    async with connect_http(f"{demo.url}/policy/mcp") as client:
        for day, spaces in (("2024-03-15", "one space"), ("2025-03-15", "two spaces")):
            asked = {**question, "effective_date": day, "mode": "hybrid"}
            hits = read_body(await client.call_tool("search_policy", asked))["results"]
            assert spaces in hits[0]["text"]


@requirement("room:sample")
async def test_no_sample_bill_of_a_congress_that_has_ended_is_pending(demo: Served) -> None:
    counts = {"resource": "bills", "group_by": "outcome", "filters": {"congress": 117}}
    async with connect_http(f"{demo.url}/federal/mcp") as client:
        ended = read_body(await client.call_tool("count", counts))
    assert {bucket["key"] for bucket in ended["buckets"]} == {"died", "law"}


@requirement("room:sample")
async def test_every_base_marks_its_answers(demo: Served) -> None:
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("policy", "get_policy_section", {"source": "NPPF", "section_ref": "Para 116"}),
        ("documents", "search_application_docs", {"query": "cycle parking"}),
        ("documents", "list_ingested_documents", {"application_ref": APPLICATION}),
        ("federal", "get_bill", {"bill_id": "hr:119:99001"}),
        ("federal", "search", {"query": "safe crossings near schools"}),
        ("guidance", "search_guidance", {"query": "annual return"}),
        ("guidance", "get_content_by_path", {"path": "/guidance/prepare-a-charity-annual-return"}),
        ("text", "get_kb_content", {}),
    ]
    for base, tool, arguments in asked:
        async with connect_http(f"{demo.url}/{base}/mcp", wire=LEGACY) as client:
            result = await client.call_tool(tool, arguments)
        assert result.meta is not None and result.meta["sample"] is True
        assert all(said.startswith("[sample] ") for said in list_citations(read_body(result))), tool
    async with connect_http(f"{demo.url}/policy/mcp") as client:
        refused = await client.call_tool(
            "get_policy_section", {"source": "NOBODY", "section_ref": "1"}
        )
    assert refused.is_error and refused.meta is not None and refused.meta["sample"] is True
    async with connect_http(f"{demo.url}/guidance/mcp") as client:
        refused = await client.call_tool("get_content_by_path", {"path": "/no-such-page"})
    assert refused.is_error and list(list_citations(read_body(refused)))
    assert all(said.startswith("[sample] ") for said in list_citations(read_body(refused)))


def list_citations(told: Any) -> Iterator[str]:
    """Every place of an answer that says what to cite or whose words it repeats."""
    if isinstance(told, list):
        for item in told:
            yield from list_citations(item)
    if isinstance(told, dict):
        for name, value in told.items():
            if name in ("citation", "citation_string", "attribution") and isinstance(value, str):
                yield value
            else:
                yield from list_citations(value)


@requirement("room:sample")
async def test_the_application_has_every_kind_of_document(demo: Served) -> None:
    async with connect_http(f"{demo.url}/documents/mcp") as client:
        asked = {"application_ref": APPLICATION}
        listed = read_body(await client.call_tool("list_ingested_documents", asked))["documents"]
        overview = read_body(await client.call_tool("application_overview", asked))
        question = {"query": "children walk to school in the morning", **asked}
        hits = read_body(await client.call_tool("search_application_docs", question))["results"]
    files = {Path(one["file_path"]).suffix for one in listed}
    assert {one["extraction_method"] for one in listed} == {"text_layer", "ocr"}
    assert {".pdf", ".tiff"} <= files
    assert len(listed) >= 11
    assert {one["source_file"] for one in overview["not_ingested"]} == {
        "Proposed_Site_Plan.pdf",
        "Street_Scene_Visualisation.png",
    }
    assert overview["application"]["validation_date"] == "2025-04-14"
    assert "Scan" in hits[0]["citation"]


@requirement("room:sample")
def test_rest_and_the_shell_mark_theirs(demo: Served) -> None:
    bill = demo.get("/v1/bills/hr:119:99001").json()
    policy = demo.get("/api/v1/policies/NPPF").json()
    missing = demo.get("/api/v1/policies/NOBODY").json()
    assert [one["_meta"] for one in (bill, policy, missing)] == [{"sample": True}] * 3
    assert bill["citation_string"].startswith("[sample] ")
    assert "_meta" not in demo.get("/openapi.json").json()
    searched = run_shell(demo, "policy", "search", "flood risk", "--json")
    assert searched["_meta"] == {"sample": True}
    assert all(hit["citation"].startswith("[sample] ") for hit in searched["results"])
    page = run_shell(demo, "guidance", "get", "/guidance/charity-accounts-and-reports", "--json")
    assert page["citation"].startswith("[sample] ")


@requirement("room:docs:worked")
async def test_the_examples_of_tools_are_answered(demo: Served) -> None:
    for base, calls in read_examples().items():
        url = f"{demo.url}/mcp" if base == "desk" else f"{demo.url}/{base}/mcp"
        async with connect_http(url) as client:
            listing = (await client.list_tools()).tools
            readers = {item.name for item in listing if item.annotations.read_only_hint}
            for name in calls.keys() & readers:
                result = await client.call_tool(name, calls[name])
                assert not result.is_error, (name, result.content)


@requirement("room:docs:worked")
@pytest.mark.parametrize("example", [*find_worked_examples(ROOT)], ids=str)
def test_the_pages_show_the_answers_that_are_given(
    demo: Served, example: WorkedExample, tmp_path: Path
) -> None:
    typed = (
        example.command.replace(".venv/bin/", "")
        .replace("--demo", f"--demo --data {shlex.quote(str(demo.data))}")
        .replace(SAMPLE_ADDRESS, demo.url)
    )
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = clean_environment({"PATH": path, "COLUMNS": "80"})
    ended = subprocess.run(
        typed,
        shell=True,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = ended.stdout.replace(demo.url, SAMPLE_ADDRESS)
    assert example.matches(said), f"{example.command}\n{said}{ended.stderr}"


def run_shell(demo: Served, *args: str) -> Any:
    ended = run(*args, "--demo", "--data", str(demo.data))
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@requirement("room:sample")
def test_the_records_cover_every_source_and_tell_one_story(tmp_path: Path) -> None:
    path = tmp_path / "federal.db"
    summary = load_files(path, [write_records(tmp_path)], None)
    assert (summary.failed, summary.ignored) == (0, 0), summary.errors
    with closing(connect(path)) as db:
        rows = {row["source"]: row["records"] for row in read_status(db)}
        linked = db.execute("SELECT * FROM links").fetchall()
        known = {id for name in rows for (id,) in db.execute(f"SELECT id FROM {name}")}
    assert [name for name in COVERED if not rows[name]] == []
    ends = {end for row in linked for end in (row[0], row[2])}
    # A rule names the part it changes; the records are the part's sections.
    assert ends - known <= {"cfr:23:9901"}
    assert {"hr:119:99001", "pl:119-9901", "R99901", "cbo:99001", "house:119:1:9901"} <= ends
    assert len(COVERED) == 21


@requirement("room:sample")
def test_a_congress_is_made_up_with_votes_that_sum_to_their_totals(tmp_path: Path) -> None:
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        write_more_records(tmp_path / turn)
    files = sorted((tmp_path / "first" / "records").iterdir())
    for file in files:
        assert (tmp_path / "second" / "records" / file.name).read_bytes() == file.read_bytes()
    path = tmp_path / "federal.db"
    summary = load_files(path, [tmp_path / "first" / "records"], None)
    assert (summary.failed, summary.ignored) == (0, 0), summary.errors
    with closing(connect(path)) as db:
        bills = [json.loads(record) for (record,) in db.execute("SELECT record FROM bills")]
        votes = [
            json.loads(record)
            for (record,) in db.execute("SELECT record FROM roll_call_votes WHERE chamber='senate'")
        ]
        positions: dict[str, Counter[str]] = defaultdict(Counter)
        for vote_id, position in db.execute("SELECT vote_id, position FROM member_votes"):
            positions[vote_id][position] += 1
        unknown = db.execute(
            "SELECT count(*) FROM member_votes "
            "WHERE bioguide_id NOT IN (SELECT id FROM legislators)"
        ).fetchone()[0]
    assert len(bills) > 200 and unknown == 0
    assert len({bill["introduced_at"][:4] for bill in bills}) >= 5
    assert {bill["stage"] for bill in bills} >= {"introduced", "reported", "passed_one", "law"}
    assert all("(sample)" in bill["title"] for bill in bills)
    made_up = [vote for vote in votes if vote["id"] != "senate:119:2:9902"]
    assert made_up and all(positions[vote["id"]].total() == 100 for vote in made_up)
    for vote in votes:
        counts = positions[vote["id"]]
        assert (counts["Yea"], counts["Nay"]) == (vote["totals"]["yea"], vote["totals"]["nay"])


@requirement("room:sample")
def test_the_policies_show_all_that_a_timeline_has_to(demo: Served) -> None:
    policies = demo.get("/policies?format=json&date=2014-12-01").json()["policies"]
    reasons = {policy["source"]: policy["reason"] for policy in policies}
    assert reasons["SAMPLE_SHOPFRONT_GUIDE"] == "date_in_gap"
    statuses: dict[str, list[str]] = {
        source: [
            revision["status"]
            for revision in demo.get(f"/api/v1/policies/{source}").json()["revisions"]
        ]
        for source in reasons
    }
    assert sum(len(found) > 1 for found in statuses.values()) >= 3
    assert "failed" in statuses["SAMPLE_TREE_STRATEGY"]
    assert statuses["SAMPLE_LOCAL_PLAN_2042"] == ["emerging"]


COVERED = (
    *("bills", "amendments", "public_laws", "federal_register", "presidential_documents"),
    *("congressional_record", "crs_reports", "cfr_sections", "statute_compilations"),
    *("cbo_cost_estimates", "committee_reports", "saps", "legislators", "committees"),
    *("committee_memberships", "roll_call_votes", "topic_taxonomy", "staff_directories"),
    *("lda_filings", "regulations_dot_gov_dockets", "hearings"),
)


@requirement("room:sample")
def test_the_sample_is_small_and_checked_like_ones_own(demo: Served) -> None:
    doctor = run("doctor", "--demo", "--data", str(demo.data), "--json")
    told = json.loads(doctor.stdout)
    assert (told["complaints"], told["notes"]) == ([], [])
    policies = [one["source"] for one in demo.get("/api/v1/policies").json()["policies"]]
    revisions = [
        one
        for source in policies
        for one in demo.get(f"/api/v1/policies/{source}").json()["revisions"]
    ]
    documents = run_shell(demo, "documents", "list", "--application", APPLICATION, "--json")
    records = run_shell(demo, "federal", "status", "--json")
    chunks = [one["chunk_count"] for one in (*revisions, *documents["documents"])]
    chunks += [one["chunks"] for one in records["sources"]]
    assert 500 < sum(chunks) <= 900


@requirement("room:sample", "room:backup")
def test_what_is_restored_from_the_sample_is_the_sample(demo: Served, tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "sample.backup", tmp_path / "room"
    for verb, data in (("backup", demo.data), ("restore", elsewhere)):
        ended = run(verb, str(file), "--data", str(data))
        assert ended.returncode == 0, ended.stderr
    assert load_settings({"data": elsewhere}, {}).is_sample


@requirement("room:sample")
@pytest.mark.slow
def test_a_kill_while_it_loads_loses_nothing(tmp_path: Path) -> None:
    data = link_model(tmp_path / "room")
    with serve_policies(data) as said:
        assert any("sample 3 of" in line for line in said)
    with serve_policies(data) as said:
        assert any("everything is loaded" in line for line in said)
        listed = run("policy", "list", "--data", str(data), "--json")
        doctor = run("doctor", "--data", str(data), "--json")
    found = json.loads(listed.stdout)["policies"]
    assert {one["source"] for one in found} == {one["source"] for one in load_sample_policies()}
    current = {one["source"]: one["current_revision"] for one in found}
    assert current.pop("SAMPLE_LOCAL_PLAN_2042") is None  # not adopted yet
    assert all(revision["status"] == "active" for revision in current.values())
    assert json.loads(doctor.stdout)["complaints"] == []


@contextmanager
def serve_policies(data: Path) -> Iterator[Iterator[str]]:
    """What `readingroom serve policy --demo` says, line by line; it is killed when this is left."""
    process = subprocess.Popen(
        make_command("serve", "policy", "--demo", "--data", str(data), "--port", "0"),
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield iter(process.stdout.readline, "")
    finally:
        process.kill()
        process.communicate()


@requirement("room:sample")
def test_the_sample_and_ones_own_data_never_share_a_directory(tmp_path: Path) -> None:
    assert get_default_sample_directory() != load_settings({}, {}).data
    (tmp_path / "policy").mkdir()
    refused = CliRunner().invoke(main, ["serve", "--demo", "--data", str(tmp_path)])
    assert (refused.exit_code, "data of your own" in refused.output) == (1, True)
    missing = CliRunner().invoke(main, ["policy", "list", "--demo", "--data", str(tmp_path / "n")])
    assert (missing.exit_code, "serve --demo" in missing.output) == (2, True)
    reset = CliRunner().invoke(main, ["serve", "--reset", "--data", str(tmp_path)])
    assert (reset.exit_code, "add --demo" in reset.output) == (2, True)


@requirement("room:sample")
def test_nothing_of_the_users_reaches_the_sample(tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text('{"corpus": null}')
    environment = {"REDIS_URL": "redis://127.0.0.1:1", "KB_FILE": "/etc/hostname"}
    settings = load_settings({"data": tmp_path}, environment)
    assert settings.is_sample
    assert (settings.redis_url, settings.kb_file) == (None, None)


@requirement("room:sample")
@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        ({"corpus": None, "state": "loading"}, True),
        ({"corpus": compute_corpus_digest(), "state": "loading"}, True),
        ({"corpus": compute_corpus_digest(), "state": "loaded"}, True),
        ({"corpus": compute_corpus_digest(), "state": "failed"}, False),
        ({"corpus": "of another version", "state": "loaded"}, False),
    ],
)
def test_what_failed_or_came_from_another_corpus_is_loaded_anew(
    tmp_path: Path, mark: dict[str, str], kept: bool
) -> None:
    (tmp_path / "sample.json").write_text(json.dumps(mark))
    (tmp_path / "policy").mkdir()
    (tmp_path / "models").mkdir()
    (tmp_path / ".replaced").mkdir()
    reset_outdated_sample(tmp_path, is_reset_wanted=False)
    assert (tmp_path / "policy").exists() == kept
    assert (tmp_path / "models").exists()
    reset_outdated_sample(tmp_path, is_reset_wanted=True)
    assert not (tmp_path / "policy").exists()
    # What a restore moved aside is somebody's data, not the sample's.
    assert (tmp_path / ".replaced").exists()


@requirement("room:sample")
async def test_over_stdio_too(tmp_path: Path) -> None:
    async with connect_stdio("guidance", "--demo", "--data", str(tmp_path / "room")) as client:
        path = "/guidance/prepare-a-charity-annual-return"
        result = await client.call_tool("get_source_metadata", {"path": path})
    assert not result.is_error
    assert result.meta is not None and result.meta["sample"] is True


@requirement("room:sample")
async def test_the_corpus_is_small_and_its_sections_are_found(tmp_path: Path) -> None:
    for policy in load_sample_policies():
        read_whole = [part for part in policy["revisions"] if not part.get("is_cut_off")]
        write_policy({**policy, "revisions": read_whole}, tmp_path)
    chunks = 0
    for file in sorted(tmp_path.glob("*.pdf")):
        document = await read(file)
        chunks += len(document.chunks)
        refs = {chunk.section_ref for chunk in document.chunks}
        assert "Chapter 1" in refs or "Chapter 2" in refs, file.name
        assert "Sample text written for Reading Room" in document.text
    assert 100 < chunks < 400


@requirement("room:sample")
def test_a_document_that_is_made_again_is_the_same(tmp_path: Path) -> None:
    for turn in ("first", "second"):
        (tmp_path / turn).mkdir()
        write_application(tmp_path / turn)
    for file in (tmp_path / "first" / "application").iterdir():
        again = tmp_path / "second" / "application" / file.name
        assert again.read_bytes() == file.read_bytes()
        assert b"CreationDate" not in file.read_bytes()


async def read(file: Path) -> Document:
    with AllowedFolders("sample", (file.parent,), 2**20).open_copy(str(file)) as private_copy:
        document = await Pipeline(ConfinedReader()).read_document(
            private_copy, no_progress, find_sections=True
        )
    assert isinstance(document, Document)
    return document


@requirement("room:sample")
async def test_a_page_of_ours_reads_back_word_for_word(tmp_path: Path) -> None:
    words = "Naïve (and quoted) \\ back – £5 “so” ‘said’ 50% of them"
    file = tmp_path / "a.pdf"
    file.write_bytes(make_pdf(f"# Title\n\n1. {words}\n\nSecond. " + "word " * 900, "foot"))
    document = await read(file)
    assert words in document.text
    assert document.text.count("word") == 900
    assert len(document.pages) == 2
