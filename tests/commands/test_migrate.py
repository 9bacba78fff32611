"""A room moves from one engine to the other and back, and answers alike."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.documents.base import PLAIN as PLAIN_DOCUMENTS
from tests.support.documents.base import open_documents_base
from tests.support.federal.base import load_files, write_world
from tests.support.kit import run
from tests.support.model import link_model
from tests.support.policy.base import PLAIN, open_library, plain

pytestmark = [pytest.mark.slow, pytest.mark.full]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An embedded room with policies, documents, federal records and a key."""
    data = link_model(tmp_path / "embedded")

    async def fill() -> None:
        async with open_library(data / "policy", pipeline=PLAIN["pipeline"]) as library:
            await library.add("NPPF", "The \u2018framework\u2019")
            for label, day in (("One", "2020-01-01"), ("Two", "2022-01-01")):
                content = plain(f"Cycle parking of {label}.", "Homes need light.")
                await library.revise("NPPF", label, day, content=content)
        async with open_documents_base(
            data / "documents", pipeline=PLAIN_DOCUMENTS["pipeline"]
        ) as documents:
            await documents.ingest("bats.pdf", plain("Bats roost in the old barn.", "Page two."))

    anyio.run(fill)
    write_world(tmp_path / "files", bills=5, votes=1)
    assert load_files(data, tmp_path / "files").failed == 0
    assert run_json(data, "keys", "add", "desk")["name"] == "desk"
    return data


def test_a_room_moves_to_a_database_and_its_backup_back_into_a_directory(
    data: Path, url: str, tmp_path: Path
) -> None:
    shared = {"READINGROOM_DATABASE_URL": url}
    moved = run_json(data, "migrate", "--to", url)
    assert moved["keys"] == 1
    assert moved["bases"]["policy"]["counts"] == {"policies": 1, "revisions": 2, "chunks": 4}
    assert moved["bases"]["policy"]["compared_answers"] == 4
    assert moved["bases"]["documents"]["counts"] == {"documents": 1, "chunks": 2}
    federal = moved["bases"]["federal"]
    assert federal["counts"]["records"] > 50 and federal["compared_answers"] > 5
    again = run_json(data, "migrate", "--to", url)
    assert [outcome["was_there"] for outcome in again["bases"].values()] == [True] * 3
    assert again["keys"] == 0

    elsewhere = link_model(tmp_path / "elsewhere")
    question = ("policy", "search", "cycle parking", "--on", "2021-06-01")
    answers = run_json(data, *question)
    assert answers["results"][0]["version_label"] == "One"
    assert run_json(elsewhere, *question, env=shared) == answers
    sources = run_json(data, "federal", "status")
    assert run_json(elsewhere, "federal", "status", env=shared) == sources

    archive = str(tmp_path / "room.backup")
    run_json(elsewhere, "backup", archive, env=shared)
    back = link_model(tmp_path / "back")
    restored = run_json(back, "restore", archive)
    assert restored["bases"]["policy"] == moved["bases"]["policy"]["counts"]
    assert [key["name"] for key in restored["keys"]] == ["desk"]
    assert run_json(back, *question) == answers
    assert run_json(back, "federal", "status") == sources

    # And an archive of a directory into a database that is not empty.
    run_json(back, "backup", str(tmp_path / "second.backup"))
    refused = run("restore", str(tmp_path / "second.backup"), "--data", str(elsewhere), env=shared)
    assert refused.returncode != 0
    run_json(elsewhere, "restore", str(tmp_path / "second.backup"), "--force", env=shared)
    assert run_json(elsewhere, *question, env=shared) == answers
    assert run_json(elsewhere, "federal", "status", env=shared) == sources
    assert run_json(elsewhere, "doctor", env=shared)["complaints"] == []


def test_a_room_whose_folder_was_moved_migrates(data: Path, url: str, tmp_path: Path) -> None:
    moved_data = data.rename(tmp_path / "moved")
    for was_there in (False, True):
        outcome = run_json(moved_data, "migrate", "--to", url)
        assert {base["was_there"] for base in outcome["bases"].values()} == {was_there}


@pytest.mark.data
def test_official_federal_records_move_and_answer_alike(
    shared_data: Path, url: str, tmp_path: Path
) -> None:
    data = link_model(tmp_path / "embedded")
    folders = [shared_data / "federal" / name for name in ("billstatus", "congress-legislators")]
    assert load_files(data, *folders, embed=False).failed == 0
    (moved,) = run_json(data, "migrate", "--to", url)["bases"].values()
    assert moved["counts"]["records"] > 10_000
    assert not moved["was_there"] and moved["compared_answers"] > 20
    (again,) = run_json(data, "migrate", "--to", url)["bases"].values()
    assert again["was_there"] and again["counts"] == moved["counts"]


def run_json(data: Path, *args: str, env: Mapping[str, str] = {}) -> Any:
    anew = args[0] in ("migrate", "restore")
    ended = run(*args, "--data", str(data), "--json", env=env, anew=anew)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return json.loads(ended.stdout)
