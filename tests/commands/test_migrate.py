"""A room moves from one engine to the other and back, and answers alike."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.documents.base import PLAIN as PLAIN_DOCUMENTS
from tests.support.documents.base import desk
from tests.support.federal.base import loaded, write_world
from tests.support.kit import run
from tests.support.model import with_model
from tests.support.policy.base import PLAIN, open_library, plain
from tests.support.postgres import PostgresServer, new_database

pytestmark = [pytest.mark.slow, pytest.mark.full]


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An embedded room with policies, documents, federal records and a key."""
    data = with_model(tmp_path / "embedded")

    async def fill() -> None:
        async with open_library(data / "policy", pipeline=PLAIN["pipeline"]) as library:
            await library.add("NPPF", "The \u2018framework\u2019")
            for label, day in (("One", "2020-01-01"), ("Two", "2022-01-01")):
                content = plain(f"Cycle parking of {label}.", "Homes need light.")
                await library.revise("NPPF", label, day, content=content)
        async with desk(data / "documents", pipeline=PLAIN_DOCUMENTS["pipeline"]) as documents:
            await documents.ingest("bats.pdf", plain("Bats roost in the old barn.", "Page two."))

    anyio.run(fill)
    write_world(tmp_path / "files", bills=5, votes=1)
    assert loaded(data, tmp_path / "files").failed == 0
    assert tell(data, "keys", "add", "desk")["name"] == "desk"
    return data


def test_a_room_moves_to_a_database_and_its_backup_back_into_a_directory(
    data: Path, url: str, tmp_path: Path
) -> None:
    shared = {"READINGROOM_DATABASE_URL": url}
    moved = tell(data, "migrate", "--to", url)
    assert moved["keys"] == 1
    assert moved["bases"]["policy"]["counts"] == {"policies": 1, "revisions": 2, "chunks": 4}
    assert moved["bases"]["policy"]["compared_answers"] == 4
    assert moved["bases"]["documents"]["counts"] == {"documents": 1, "chunks": 2}
    federal = moved["bases"]["federal"]
    assert federal["counts"]["records"] > 50 and federal["compared_answers"] > 5
    again = tell(data, "migrate", "--to", url)
    assert [outcome["was_there"] for outcome in again["bases"].values()] == [True] * 3
    assert again["keys"] == 0

    elsewhere = with_model(tmp_path / "elsewhere")
    question = ("policy", "search", "cycle parking", "--on", "2021-06-01")
    answers = tell(data, *question)
    assert answers["results"][0]["version_label"] == "One"
    assert tell(elsewhere, *question, env=shared) == answers
    sources = tell(data, "federal", "status")
    assert tell(elsewhere, "federal", "status", env=shared) == sources

    archive = str(tmp_path / "room.backup")
    tell(elsewhere, "backup", archive, env=shared)
    back = with_model(tmp_path / "back")
    restored = tell(back, "restore", archive)
    assert restored["bases"]["policy"] == moved["bases"]["policy"]["counts"]
    assert [key["name"] for key in restored["keys"]] == ["desk"]
    assert tell(back, *question) == answers
    assert tell(back, "federal", "status") == sources

    # And an archive of a directory into a database that is not empty.
    tell(back, "backup", str(tmp_path / "second.backup"))
    refused = run("restore", str(tmp_path / "second.backup"), "--data", str(elsewhere), env=shared)
    assert refused.returncode != 0
    tell(elsewhere, "restore", str(tmp_path / "second.backup"), "--force", env=shared)
    assert tell(elsewhere, *question, env=shared) == answers
    assert tell(elsewhere, "federal", "status", env=shared) == sources
    assert tell(elsewhere, "doctor", env=shared)["complaints"] == []


def tell(data: Path, *args: str, env: Mapping[str, str] = {}) -> Any:
    ended = run(*args, "--data", str(data), "--json", env=env)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return json.loads(ended.stdout)
