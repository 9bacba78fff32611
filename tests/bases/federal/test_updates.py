"""Newer files over older ones: what came, changed and went, told by command, REST and tombstone."""

import json
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.load.loading import LoadSummary, update
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.store import get_database_path
from readingroom.core.progress import no_progress_sync
from tests.requirements import requirement
from tests.support.federal.base import Asked, HashedWords, load_files, serve_in_process, write_world
from tests.support.federal.world import World
from tests.support.kit import run

pytestmark = pytest.mark.anyio

STATEMENT = (
    "- bills:\n  - {bill}\n  document_title: {title}\n  congress: 119\n"
    "  date_issued: '{day}'\n  url: https://example.org/{bill}\n"
)


def load_update(data: Path, *files: Path, even_most: bool = False) -> LoadSummary:
    return update(get_database_path(data), list(files), None, may_drop_most=even_most)


def write_statements(folder: Path, *told: tuple[str, str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "47-Sample.yaml"
    lines = (STATEMENT.format(bill=bill, title=title, day=day) for bill, title, day in told)
    path.write_text("".join(lines), "utf-8")
    return path


def write_zip(path: Path, files: dict[str, str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def count_active(data: Path) -> int:
    with closing(store.connect(get_database_path(data))) as db:
        counted = db.execute("SELECT count(*) FROM bills WHERE status = 'active'")
        return int(counted.fetchone()[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("my-bills.zip", "my_bills.zip"),
        ("bills.zip", "BILLS.ZIP"),
        ("hr/bulk.zip", "s/bulk.zip"),
        ("bulk.zip", "my bulk.zip"),
    ],
)
def test_a_zip_takes_nothing_from_another_with_a_name_like_it(
    tmp_path: Path, one: str, other: str
) -> None:
    files = list(World(1, people=40).bills(4))
    load_update(tmp_path, write_zip(tmp_path / other, dict(files[:2])))
    done = load_update(tmp_path, write_zip(tmp_path / one, dict(files[2:])))
    assert (done.withdrawn, count_active(tmp_path)) == (0, 4)


def test_a_folder_named_like_the_inside_of_a_zip_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "new!"
    folder.mkdir()
    for name, text in World(1, people=40).bills(3):
        (folder / name).write_text(text, "utf-8")
    load_update(tmp_path, folder)
    assert load_update(tmp_path, min(folder.iterdir())).withdrawn == 0
    assert count_active(tmp_path) == 3


def test_a_zip_cut_short_withdraws_nothing_unless_it_is_believed(tmp_path: Path) -> None:
    files = list(World(1, people=40).bills(24))
    whole = write_zip(tmp_path / "old/hr.zip", dict(files))
    cut = write_zip(tmp_path / "new/hr.zip", dict(files[:2]))
    load_files(tmp_path, whole, embed=False)
    refused = load_update(tmp_path, cut)
    assert (refused.failed, refused.withdrawn, count_active(tmp_path)) == (1, 0, 24)
    assert "--even-most" in refused.errors[0]["error"]
    assert load_update(tmp_path, cut, even_most=True).withdrawn == 22
    assert count_active(tmp_path) == 2


@requirement("federal:changes")
async def test_an_update_says_what_came_changed_and_went(tmp_path: Path) -> None:
    files = dict(World(1, people=40).bills(4))
    first, second, third, fourth = files
    load_files(
        tmp_path, write_zip(tmp_path / "old/BILLSTATUS-119-hr.zip", dict(list(files.items())[:3]))
    )
    newer = {
        second: files[second],
        third: files[third].replace("T05:00:00Z", "T06:00:00Z").replace("<title>To", "<title>Not"),
        fourth: files[fourth],
    }
    async with serve_in_process(tmp_path) as ask:
        before = await ask.record("/changes", since="2025-01-01", limit=200)
    done = load_update(tmp_path, write_zip(tmp_path / "new/BILLSTATUS-119-hr.zip", newer))
    bills = done.changes["bills"]
    assert (bills.new, bills.changed, bills.withdrawn) == (1, 1, 1)
    async with serve_in_process(tmp_path) as ask:
        today = (await ask.record("/bills"))["results"][0]["retrieved_at"][:10]
        kinds = {
            one["id"]: one["kind"] for one in await _list_all_changes(ask, today, source="bills")
        }
        # All came today, so whoever asks from today on has seen none of them.
        assert sorted(kinds.values()) == ["new", "new", "new", "withdrawn"]
        (gone,) = [id for id, kind in kinds.items() if kind == "withdrawn"]
        refused = await ask.get(f"/bills/{gone}")
        assert refused.status_code == 410
        assert first.endswith(f"{gone.replace(':119:', '')}.xml")
        assert await _list_all_changes(ask, "2999-01-01") == []
        later = await ask.record(
            "/changes", since="2025-01-01", source="bills", cursor=before["resume_cursor"]
        )
        assert len(later["results"]) == 3
        resumed = await ask.record("/changes", source="bills", cursor=before["resume_cursor"])
        assert [one["id"] for one in resumed["results"]] == [one["id"] for one in later["results"]]
        assert resumed["since"] is None
        kinds_since = sorted(one["kind"] for one in resumed["results"])
        assert kinds_since == ["changed", "new", "withdrawn"]
        refused = await ask.get("/changes")
        assert refused.status_code == 422
        assert "resume_cursor" in refused.text


async def test_who_is_left_out_of_a_current_list_sits_no_more(tmp_path: Path) -> None:
    """And does again when a later list has them back."""
    world = World(1, people=40)
    people, committees = world.legislators(), world.committees()
    files = tmp_path / "legislators-current.yaml", tmp_path / "committees-current.yaml"

    def written(*texts: str) -> tuple[Path, ...]:
        for path, text in zip(files, texts, strict=True):
            path.write_text(text, "utf-8")
        return files

    def without_last(text: str, begin: str) -> str:
        return text[: text.rindex(begin) + 1]

    fewer = without_last(people, "\n- id:"), without_last(committees, "\n- type:")
    load_files(tmp_path, *written(people, committees), embed=False)
    for texts, left in ((fewer, 1), ((people, committees), 0)):
        tally = load_update(tmp_path, *written(*texts)).changes
        assert (tally["legislators"].changed, tally["committees"].changed) == (1, 1)
        async with serve_in_process(tmp_path) as ask:
            for source in ("legislators", "committees"):
                former = {"resource": source, "filters": {"current": False}}
                assert (await ask.answer("count", **former))["value"] == left
    assert load_update(tmp_path, *files).changes == {}


async def _list_all_changes(ask: Asked, since: str, **filters: str) -> list[dict[str, Any]]:
    """Every change, page by page."""
    found, cursor = [], {}
    while True:
        page = await ask.record("/changes", since=since, limit=2, **filters, **cursor)
        found += page["results"]
        if not page["has_more"]:
            return found
        cursor = {"cursor": page["next_cursor"]}


@requirement("federal:changes")
async def test_a_statement_whose_date_was_corrected_names_its_successor(tmp_path: Path) -> None:
    old = [("hr1", "On One", "2025-03-01"), ("hr2", "On Two", "2025-03-02")]
    load_files(tmp_path, write_statements(tmp_path / "old", *old))
    new = [("hr1", "On One", "2025-03-05"), ("hr2", "On Two", "2025-03-02")]
    done = load_update(tmp_path, write_statements(tmp_path / "new", *new))
    assert (done.changes["saps"].new, done.changes["saps"].withdrawn) == (1, 1)
    async with serve_in_process(tmp_path) as ask:
        gone = await ask.get("/saps/sap:119:2025-03-01:hr1")
        assert gone.status_code == 410
        assert gone.json()["error"]["hint"] == {"successor_id": "sap:119:2025-03-05:hr1"}
        told = await ask.record("/changes", since="2025-01-01", kind="withdrawn")
        assert [(one["id"], one["successor_id"]) for one in told["results"]] == [
            ("sap:119:2025-03-01:hr1", "sap:119:2025-03-05:hr1")
        ]


async def test_what_comes_back_is_there_and_found_again(tmp_path: Path) -> None:
    both = [("hr1", "On walruses", "2025-03-01"), ("hr2", "On Two", "2025-03-02")]
    load_files(tmp_path, write_statements(tmp_path / "a", *both))
    assert load_update(tmp_path, write_statements(tmp_path / "b", both[1])).withdrawn == 1
    async with serve_in_process(tmp_path) as ask:
        found = await ask.answer("search", query="walruses", source="saps")
        assert "sap:119:2025-03-01:hr1" not in [one["id"] for one in found["results"]]
    again = load_update(tmp_path, write_statements(tmp_path / "a", *both))
    assert (again.withdrawn, again.changes["saps"].changed) == (0, 1)
    async with serve_in_process(tmp_path) as ask:
        found = await ask.answer("search", query="walruses", source="saps")
        # By meaning the other one matches a little, and comes after it.
        assert [one["id"] for one in found["results"]] == [
            "sap:119:2025-03-01:hr1",
            "sap:119:2025-03-02:hr2",
        ]
        found = await ask.answer("lexical_search", query="walruses", source="saps")
        assert [one["id"] for one in found["results"]] == ["sap:119:2025-03-01:hr1"]
    assert load_update(tmp_path, tmp_path / "a").changes == {}


async def test_a_file_cut_short_withdraws_nothing_unless_it_is_believed(tmp_path: Path) -> None:
    many = [(f"hr{number}", f"On {number}", "2025-03-01") for number in range(1, 61)]
    load_files(tmp_path, write_statements(tmp_path / "old", *many))
    short = write_statements(tmp_path / "new", *many[:5])
    refused = load_update(tmp_path, short)
    assert (refused.failed, refused.withdrawn) == (1, 0)
    assert "--even-most" in refused.errors[0]["error"]
    assert load_update(tmp_path, short, even_most=True).withdrawn == 55


async def test_an_older_file_withdraws_nothing(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=3)
    load_files(tmp_path, tmp_path / "files")
    assert load_update(tmp_path, tmp_path / "files").changes == {}


async def test_what_hangs_on_a_withdrawn_record_counts_no_more(tmp_path: Path) -> None:
    """Not a member's vote in a roll call that is gone, nor a signature under a bill.

    And all of it does again when the files are back.
    """
    world = World(1, people=40)
    people = tmp_path / "legislators-current.yaml"
    people.write_text(world.legislators(), "utf-8")
    files = dict((*world.bills(20), *world.votes(3)))
    load_files(tmp_path, people, write_zip(tmp_path / "old/sample.zip", files), embed=False)
    async with serve_in_process(tmp_path) as ask:
        before = await _count_related_rows(ask)
        (gone, *_) = (await ask.record("/roll-call-votes"))["results"]
        (bill, *_) = (await ask.record("/bills", limit=200))["results"]
    left_out = (f"{bill['type']}{bill['number']}.xml", f"{gone['number']:03}.xml")
    fewer = {name: text for name, text in files.items() if not name.endswith(left_out)}
    assert len(files) - len(fewer) == 2
    load_update(tmp_path, write_zip(tmp_path / "new/sample.zip", fewer))
    async with serve_in_process(tmp_path) as ask:
        after = await _count_related_rows(ask)
        assert before["votes"] - after["votes"] == gone["recorded"] > 0
        assert before["series"] - after["series"] == gone["recorded"]
        assert after["by_vote"] == before["by_vote"] - {gone["id"]}
        assert before["listed"] - after["listed"] == 1
        assert before["signed"] - after["signed"] == bill["cosponsor_count"]
        assert before["signatures"] - after["signatures"] == bill["cosponsor_count"]
    load_update(tmp_path, write_zip(tmp_path / "new/sample.zip", files))
    async with serve_in_process(tmp_path) as ask:
        assert await _count_related_rows(ask) == before


async def test_seats_that_were_withdrawn_make_no_roster(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=0, votes=0)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        seats = (await ask.answer("list_committee_members", id="HSAG"))["results"]
        assert len(seats) == 3
        with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
            writer = Writer(db)
            with writer.transaction():
                for seat in seats:
                    writer.withdraw_record(
                        SOURCES_BY_NAME["committee_memberships"], seat["id"], "2026-05-05", ""
                    )
        told = await ask.answer("list_committee_members", id="HSAG")
        assert (told["results"], told["total"], told["congress"]) == ([], 0, None)


async def test_a_file_that_a_package_holds_by_another_name_is_not_gone(tmp_path: Path) -> None:
    files = dict(World(1, people=40).bills(3))
    load_files(tmp_path, write_zip(tmp_path / "old/sample.zip", files), embed=False)
    moved = {f"hr/{name}": text for name, text in files.items()}
    assert load_update(tmp_path, write_zip(tmp_path / "new/sample.zip", moved)).withdrawn == 0
    async with serve_in_process(tmp_path) as ask:
        assert len((await ask.record("/bills"))["results"]) == 3


async def _count_related_rows(ask: Asked) -> dict[str, Any]:
    """Every number that what hangs on records makes up."""
    votes = await ask.answer("count", resource="member-votes")
    series = await ask.answer(
        "time_series", resource="member-votes", time_field="voted_at", interval="year"
    )
    by_vote = await ask.answer("count", resource="member-votes", group_by="vote_id")
    signed = await ask.answer("count", resource="bills", group_by="cosponsor", top=100)
    signatures = await ask.answer("sum", resource="bills", sum_field="cosponsor_count")
    (who, *_) = sorted(one["id"] for one in (await ask.record("/legislators"))["results"])
    listed = await ask.answer("list_member_votes", bioguide=who)
    assert listed["total"] == len(listed["results"])
    return {
        "votes": votes["value"],
        "series": sum(one["value"] for one in series["buckets"]),
        "by_vote": {one["key"] for one in by_vote["buckets"]},
        "listed": listed["total"],
        "signed": sum(one["value"] for one in signed["buckets"]),
        "signatures": signatures["value"],
    }


@requirement("federal:changes")
def test_the_commands_update_and_tell_what_changed(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data"))
    old = [("hr1", "On One", "2025-03-01"), ("hr2", "On Two", "2025-03-02")]
    run("federal", "load", str(write_statements(tmp_path / "old", *old)), *data)
    newer = write_statements(tmp_path / "new", old[1], ("hr3", "On Three", "2025-03-03"))
    done = json.loads(run("federal", "update", str(newer), *data, "--json").stdout)
    assert done["changes"]["saps"] | {"first": []} == {
        "new": 1, "changed": 0, "withdrawn": 1, "first": [],
    }  # fmt: skip
    told = run("federal", "changes", "--since", "2025-01-01", *data)
    assert "withdrawn  sap:119:2025-03-01:hr1" in told.stdout
    assert "new        sap:119:2025-03-03:hr3" in told.stdout
    refused = run("federal", "changes", "--since", "yesterday", *data)
    assert refused.returncode == 2
    assert "YYYY-MM-DD" in refused.stderr


def test_a_passage_that_stays_the_same_is_not_embedded_again(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=1)
    load_files(tmp_path, tmp_path / "files")
    (name,) = (one.name for one in (tmp_path / "files").glob("BILLSTATUS*"))
    path = tmp_path / "files" / name
    text = path.read_text("utf-8").replace("T05:00:00Z", "T06:00:00Z")
    path.write_text(text.replace("Referred to committee.", "Passed."), "utf-8")
    assert load_update(tmp_path, path).changes["bills"].changed == 1
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        (passages,) = db.execute("SELECT count(*) FROM chunks").fetchone()
        waiting = vectors.embed_passages(db, HashedWords(), no_progress_sync)  # type: ignore[arg-type]
    assert waiting == 1 < passages


def test_a_load_of_the_same_record_by_a_newer_loader_is_no_change(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=2)
    load_files(tmp_path, tmp_path / "files", embed=False)
    with closing(store.connect(get_database_path(tmp_path), writing=True)) as db:
        db.execute("UPDATE ingestion_logs SET loader = replace(loader, '/1', '/0')")
        db.execute("UPDATE bills SET loader = replace(loader, '/1', '/0')")
        before = db.execute("SELECT * FROM changes WHERE source = 'bills'").fetchall()
        again = load_files(tmp_path, tmp_path / "files", embed=False)
        assert again.loaded > 2
        assert "bills" not in again.changes
        assert db.execute("SELECT * FROM changes WHERE source = 'bills'").fetchall() == before
