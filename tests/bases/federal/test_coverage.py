"""How much of each source is embedded: told in percent by searches and by `federal status`."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.store import get_database_path, translate_errors
from readingroom.storage.errors import StorageFailed
from tests.support.federal.base import load_files, serve_in_process, write_world
from tests.support.kit import run

pytestmark = pytest.mark.anyio


async def test_a_source_that_is_partly_embedded_is_told_with_its_percentage(
    tmp_path: Path,
) -> None:
    write_world(tmp_path / "files", bills=8, votes=1)
    load_files(tmp_path, tmp_path / "files")
    async with serve_in_process(tmp_path) as ask:
        whole = await ask.answer("search", query="rail", source=["bills"])
        assert whole["degraded"] is None
    path = get_database_path(tmp_path)
    with closing(store.connect(path, writing=True)) as db, db.transaction():
        bills = """SELECT chunk FROM vectors JOIN chunks USING (chunk) JOIN documents USING (doc)
                   WHERE source = 'bills'"""
        (count,) = db.execute(f"SELECT count(*) FROM ({bills})").fetchone()
        db.execute(f"DELETE FROM vectors WHERE chunk IN ({bills} LIMIT {count // 2})")
        db.execute("UPDATE generation SET value = value + 1")
    percent = (count - count // 2) * 100 // count
    async with serve_in_process(tmp_path) as ask:
        for tool in ("search", "semantic_search"):
            partly = await ask.answer(tool, query="rail", source=["bills"])
            assert partly["degraded"]["embedded_percent"] == {"bills": percent}
            assert f"bills {percent} %" in partly["degraded"]["reason"]
        words = await ask.answer("lexical_search", query="rail", source=["bills"])
        assert words["degraded"] is None
    shown = run("federal", "status", "--data", str(tmp_path), "--json")
    rows = {row["source"]: row for row in json.loads(shown.stdout)["sources"]}
    assert rows["bills"]["embedded_percent"] == percent
    assert "Not embedded whole: bills." in run("federal", "status", "--data", str(tmp_path)).stdout


async def test_buckets_of_ids_say_what_they_are_called(tmp_path: Path) -> None:
    write_world(tmp_path / "files", bills=8, votes=1)
    load_files(tmp_path, tmp_path / "files", embed=False)
    async with serve_in_process(tmp_path) as ask:
        counted = await ask.answer("count", resource="bills", group_by="sponsor")
        assert counted["buckets"]
        for bucket in counted["buckets"]:
            member = await ask.record(f"/legislators/{bucket['key']}")
            assert bucket["label"] == member["title"]
        by_type = await ask.answer("count", resource="bills", group_by="type")
        assert {bucket["label"] for bucket in by_type["buckets"]} == {None}


def test_storage_that_fails_does_not_say_where_it_is(tmp_path: Path) -> None:
    place = get_database_path(tmp_path / "secret-folder")
    for error in (PermissionError(13, "Permission denied", str(place)), OSError("no space")):
        with pytest.raises(StorageFailed) as refused, translate_errors(place):
            raise error
        assert "federal.db" in refused.value.message
        assert "secret-folder" not in refused.value.message
