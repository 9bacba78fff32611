"""A room that had a key once stays closed when the last one is revoked, on both engines."""

import contextlib
from pathlib import Path

import pytest

from readingroom.settings import load_settings
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.keys import open_keys
from tests.support.kit import invoke, run, serve_room
from tests.support.postgres import PostgresServer, make_database


@pytest.mark.parametrize("engine", ["embedded", "postgres"])
def test_a_room_whose_last_key_is_revoked_stays_closed_after_a_restart(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        env = {}
        if engine == "postgres":
            url = stack.enter_context(make_database(request.getfixturevalue("postgres")))
            env = {"READINGROOM_DATABASE_URL": url}
        data = tmp_path / "data"
        at = ("--data", str(data))
        with serve_room("text", data=data, env=env) as served:
            assert served.get("/").status_code == 200  # never had a key
            assert run("keys", "add", "ann", *at, env=env).returncode == 0
            revoked = run("keys", "revoke", "ann", *at, env=env)
            assert "It was the last key, so nobody is let in" in revoked.stdout
        with serve_room("text", data=data, env=env) as served:
            refusal = served.get("/metrics")
            assert refusal.status_code == 401 and "readingroom keys reopen" in refusal.text
            assert "Every key of this room is revoked" in served.log.read_text("utf-8")
            # A process that has another folder, and the same database, is no other way in.
            assert run("keys", "reopen", *at, env=env).returncode == 0
            assert served.get("/metrics").status_code == 401  # at the next start, and not before
        with serve_room("text", data=data, env=env) as served:
            assert served.get("/metrics").status_code == 200
        assert run("keys", "add", "bob", *at, env=env).returncode == 0
        assert run("keys", "reopen", *at, env=env).returncode == 1
        with serve_room("text", data=data, env=env) as served:
            assert served.get("/metrics").status_code == 401


def test_a_backup_and_a_migration_keep_a_room_closed(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    closed = KeyRing(tmp_path / "data")
    closed.add_key("ann")
    closed.revoke_key("ann")
    archive = str(tmp_path / "room.backup")
    assert invoke("backup", archive, "--data", str(tmp_path / "data")).returncode == 0
    assert invoke("restore", archive, "--data", str(tmp_path / "other")).returncode == 0
    assert KeyRing(tmp_path / "other").is_closed()
    with make_database(postgres) as url:
        assert invoke("migrate", "--to", url, "--data", str(tmp_path / "data")).returncode == 0
        settings = load_settings({"data": tmp_path / "third"}, {"READINGROOM_DATABASE_URL": url})
        shared = open_keys(settings)
        assert shared.is_closed() and not shared.has_keys()
        shared.reopen_room()
        assert not shared.is_closed()
        shared.add_subject("agent", "subject 1")  # no secret: tokens close nothing
        assert not shared.is_closed()
