"""The policy base from the command line: the seed policies in bulk, and the same with a server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from readingroom.bases.policy.admin.unfinished import UnfinishedRevisions
from readingroom.bases.policy.models import SearchPolicy
from readingroom.console import options
from tests.requirements import requirement
from tests.support.kit import invoke, run, serve_room
from tests.support.model import link_model
from tests.support.policy.base import SEEDS, make_brief_pdf, open_library, seed_pdf
from tests.support.processes import read_resident_mb

pytestmark = pytest.mark.both_engines("full")


@pytest.fixture(scope="module")
def data(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The six seed policies with their seven revisions, imported."""
    data = link_model(tmp_path_factory.mktemp("data") / "room")
    listed = []
    for source, title, category, revisions in SEEDS:
        entries = []
        for label, start in revisions:
            name = f"{source}-{start}.pdf"
            (data.parent / name).write_bytes(seed_pdf(source, label, paragraphs=40))
            entries.append({"file": name, "version_label": label, "effective_from": start})
        listed.append(
            {"source": source, "title": title, "category": category, "revisions": entries}
        )
    (data.parent / "seeds.json").write_text(json.dumps({"policies": listed}))
    answer = run_json(data, "policy", "import", str(data.parent / "seeds.json"))
    assert (len(answer["policies_added"]), len(answer["revisions_added"])) == (6, 7)
    yield data


def run_json(data: Path, *args: str) -> Any:
    ended = run(*args, "--data", str(data), "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@requirement("policy:seed", "policy:NFR-001")
@pytest.mark.anyio
async def test_every_seed_policy_answers_on_its_days(data: Path) -> None:
    async with open_library(data / "policy") as library:
        listed = await library.service.list_policies()
        assert {one.source for one in listed.policies} == {seed[0] for seed in SEEDS}
        for source, _, _, revisions in SEEDS:
            for label, start in revisions:
                asked = SearchPolicy(query=label, effective_date=start, sources=[source])
                hits = await library.service.search(asked)
                assert {hit.version_label for hit in hits.results} == {label}


@requirement("policy:rest")
def test_the_shell_reads_what_is_there(data: Path) -> None:
    section = run_json(data, "policy", "section", "NPPF", "Para 2")
    assert section["version_label"] == "December 2024"
    effective = run_json(data, "policy", "effective", "2021-01-01")
    assert effective["policies_not_yet_effective"] == ["NPPF", "OCC_LTCP"]


@requirement("policy:seed")
def test_an_import_run_again_does_nothing_again(data: Path) -> None:
    again = run_json(data, "policy", "import", str(data.parent / "seeds.json"))
    assert (again["policies_added"], again["revisions_added"]) == ([], [])
    assert len(again["already_there"]) == 13
    assert list((data / "policy" / "handover").iterdir()) == []


@requirement("policy:seed")
def test_one_bad_file_of_an_import_is_told_and_heals_when_it_is_mended(tmp_path: Path) -> None:
    data = link_model(tmp_path / "room")
    bad, good = tmp_path / "a.pdf", tmp_path / "b.pdf"
    bad.write_bytes(b"%PDF-1.4 broken")
    gone = {"file": "gone.pdf", "version_label": "Third", "effective_from": "2022-01-01"}
    good.write_bytes(make_brief_pdf("Good"))
    revisions = [
        {"file": "a.pdf", "version_label": "First", "effective_from": "2020-01-01"},
        {"file": "b.pdf", "version_label": "Second", "effective_from": "2021-01-01"},
    ]
    policy = {"source": "BULK", "title": "Bulk", "category": "local_plan", "revisions": revisions}
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"policies": [{**policy, "revisions": [gone, *revisions]}]}))
    first = run("policy", "import", str(listed), "--data", str(data), "--json", anew=True)
    answer = json.loads(first.stdout)
    assert (first.returncode, answer["revisions_added"]) == (1, ["BULK Second"])
    assert [one.partition(":")[0] for one in answer["failed"]] == ["BULK First", "BULK Third"]
    listed.write_text(json.dumps({"policies": [policy]}))
    bad.write_bytes(make_brief_pdf("Mended"))
    again = run_json(data, "policy", "import", str(listed))
    assert (again["revisions_added"], again["failed"]) == (["BULK First"], [])
    assert again["already_there"] == ["BULK", "BULK Second"]
    shown = run_json(data, "policy", "show", "BULK")
    assert [one["status"] for one in shown["revisions"]] == ["active", "superseded"]


@requirement("policy:seed", "policy:doctor", "policy:NFR-003")
@pytest.mark.anyio
@pytest.mark.parametrize("command", ["import", "revise"])
async def test_the_same_command_again_finishes_a_revision_that_was_cut_off(
    tmp_path: Path, command: str
) -> None:
    data, file = link_model(tmp_path / "room"), tmp_path / "plan.pdf"
    file.write_bytes(make_brief_pdf("First"))
    async with open_library(
        data / "policy"
    ) as library:  # as a kill between the two steps leaves it
        await library.add("PLAN")
        await library.register("PLAN", "First", "2020-01-01", content=file.read_bytes())
    at = ("--data", str(data))
    revise = ("policy", "revise", "PLAN", "--label", "First", "--from", "2020-01-01", *at)
    revision = {"file": "plan.pdf", "version_label": "First", "effective_from": "2020-01-01"}
    policy = {"source": "PLAN", "title": "P", "category": "local_plan", "revisions": [revision]}
    (tmp_path / "list.json").write_text(json.dumps({"policies": [policy]}))
    (tmp_path / "other.pdf").write_bytes(make_brief_pdf("Other"))

    examined = run("doctor", *at)
    refused = run(*revise, str(tmp_path / "other.pdf"))
    before = run_json(data, "policy", "show", "PLAN")["revisions"]
    again = (
        run("policy", "import", str(tmp_path / "list.json"), *at)
        if command == "import"
        else run(*revise, str(file))
    )
    after = run_json(data, "policy", "show", "PLAN")["revisions"]

    assert "rev_PLAN_2020_01" in examined.stdout
    assert "no process is reading its file" in examined.stdout
    assert refused.returncode == 1
    assert [(one["status"], one["chunk_count"]) for one in before] == [("processing", 0)]
    assert again.returncode == 0, again.stderr
    assert "taking rev_PLAN_2020_01 up again" in again.stderr
    assert ("1 taken up again; 1 were there already" in again.stdout) == (command == "import")
    assert [one["status"] for one in after] == ["active"]
    assert after[0]["chunk_count"] > 0
    assert "no process is reading its file" not in run("doctor", *at).stdout


@pytest.mark.anyio
async def test_a_revision_that_this_process_is_reading_is_waited_for(tmp_path: Path) -> None:
    content, told = make_brief_pdf("First"), list[str | None]()
    async with open_library(tmp_path / "policy") as library:
        await library.add("PLAN")
        revision_id = await library.register("PLAN", "First", "2020-01-01", content=content)
        service, spool = library.service, library.spool(content)
        revision = (await service.registry.get_revisions("PLAN"))[0]

        async def report(done: float, total: float | None, message: str | None) -> None:
            if message and message.startswith("waiting"):
                told.append(message)
                service.jobs.queue_revision(revision)
                held.set()

        held = anyio.Event()

        async def hold() -> None:
            async with service.ingestion.progress.enclose_ingestion(revision_id):
                begun.set()
                await held.wait()

        begun = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold)
            await begun.wait()
            waiting = UnfinishedRevisions(service, report)
            finished = await waiting.finish_revision("PLAN", revision_id, spool, ".pdf")

        assert told
        assert finished.chunks_created > 0
        assert (await service.registry.get_revisions("PLAN"))[0].status == "active"


@requirement("policy:rest")
def test_the_shell_lists_compares_checks_and_changes_what_is_there(data: Path) -> None:
    def say(*args: str, returncode: int = 0) -> str:
        ended = invoke(*args, "--data", str(data))
        assert ended.returncode == returncode, ended.stderr
        return ended.stdout + ended.stderr

    assert "Para 2, p. 1" in say("policy", "sections", "NPPF")
    assert "September 2023" in say("policy", "section", "NPPF", "Para 2", "--on", "2024-01-01")
    compared = say("policy", "compare", "NPPF", "2024-01-01", "2025-01-01", "-n", "2")
    assert compared.startswith("September 2023 → December 2024: ")
    quote = " ".join(say("policy", "section", "NPPF", "Para 2").split("\n\n", 1)[1].split()[3:9])
    assert say("policy", "verify", "NPPF", quote, "--on", "2025-01-01").startswith("verified\n")
    wrong = say("policy", "verify", "NPPF", "no such words", "--on", "2025-01-01", returncode=1)
    assert wrong.startswith("not_found")
    assert "date_before_first_revision" in say("policy", "snapshot", "1999-01-01")
    missing = say("policy", "section", "NPPF", "Para 999", returncode=1)
    assert "the nearest are Para" in missing


@requirement("policy:rest")
def test_the_shell_changes_reads_again_and_deletes_a_revision(tmp_path: Path) -> None:
    data = link_model(tmp_path / "room")
    at = ("--data", str(data))
    source = ("policy", "revise", "PLAN", str(tmp_path / "a.pdf"))
    (tmp_path / "a.pdf").write_bytes(make_brief_pdf("First"))
    assert invoke("policy", "add", "PLAN", "--title", "P", "--category", "local_plan", *at)
    assert invoke(*source, "--label", "One", "--from", "2020-01-01", *at).returncode == 0
    named = invoke("policy", "change", "PLAN", "--authority", "Norton", "--title", "A plan", *at)
    assert {"PLAN", "  title: A plan", "  local authority: Norton"} <= {*named.stdout.splitlines()}
    cleared = invoke("policy", "change", "PLAN", "--authority", "", *at)
    assert "Norton" not in cleared.stdout and "A plan" in cleared.stdout
    overlap = invoke(*source, "--label", "Zero", "--from", "2019-01-01", *at)
    assert "end this one by 2019-12-31 (--to)" in overlap.stderr
    changed = invoke("policy", "dates", "PLAN", "rev_PLAN_2020_01", "--from", "2020-02-01", *at)
    assert changed.stdout.startswith("rev_PLAN_2020_01: 2020-02-01 – ")
    again = invoke("policy", "reindex", "PLAN", "rev_PLAN_2020_01", *at)
    assert "chunks" in again.stdout and again.returncode == 0
    assert invoke(*source, "--label", "Two", "--from", "2021-01-01", *at).returncode == 0
    deleted = invoke("policy", "delete", "PLAN", "rev_PLAN_2020_01", *at)
    assert deleted.stdout.startswith("Deleted rev_PLAN_2020_01")


@requirement("policy:rest")
def test_ctrl_c_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def interrupt(*args: object) -> None:
        async with anyio.create_task_group():
            raise KeyboardInterrupt

    monkeypatch.setattr(options, "dispatch_command", interrupt)
    ended = invoke("policy", "list", "--data", str(tmp_path))

    told = "Stopped. Nothing was changed: run the same command again.\n"
    assert (ended.returncode, ended.stderr) == (130, told)


@requirement("policy:NFR-002", "policy:doctor")
def test_commands_reach_the_server_that_owns_the_folder_and_it_stays_small(data: Path) -> None:
    with serve_room("policy", data=data, anew=True) as served:  # a fork has more in memory
        pdf = data.parent / "new.pdf"
        pdf.write_bytes(make_brief_pdf("August 2026"))
        added = run_json(
            data,
            *("policy", "revise", "NPPF", str(pdf), "--label", "August 2026"),
            *("--from", "2026-08-01"),
        )
        shown = run_json(data, "policy", "show", "NPPF")
        doctor = run("doctor", "--data", str(data), "--json")
        resident = read_resident_mb(served.process.pid)
    assert added["revision_id"] == "rev_NPPF_2026_08"
    assert [one["status"] for one in shown["revisions"]] == ["active", "superseded", "superseded"]
    assert "rev_" not in doctor.stdout
    assert resident < 500


@requirement("policy:rest")
def test_mistakes_are_told_in_a_sentence(data: Path, tmp_path: Path) -> None:
    for args, exit_code, message in [
        (("policy", "show", "NOBODY"), 1, "no policy 'NOBODY'"),
        (("policy", "show", "nobody"), 2, "UPPER_SNAKE_CASE"),
        (("policy", "section", "NOBODY", "Para 1"), 1, "no policy 'NOBODY'"),
    ]:
        ended = invoke(*args, "--data", str(data))
        assert (ended.returncode, "Traceback" in ended.stderr) == (exit_code, False)
        assert message in ended.stderr
    listed = tmp_path / "list.json"
    for text in ("[]", "[" * 100_000, '{"policies": [1]}', '{"policies": [{"revisions": 1}]}', "é"):
        listed.write_text(text, "latin-1")
        ended = invoke("policy", "import", str(listed), "--data", str(data))
        assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
        assert 'list.json: is not a list {"policies": [...]}' in ended.stderr
