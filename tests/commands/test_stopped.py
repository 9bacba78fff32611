"""Commands that take long say, when they are stopped or lose their database, what to do next."""

from pathlib import Path

import pytest

from readingroom.bases.federal.backup import FederalBackup
from readingroom.bases.federal.store import SharedRecords, prepare_records
from readingroom.storage.errors import DatabaseUnreachable
from tests.support.federal.base import load_files, write_world
from tests.support.kit import invoke

AGAIN = "run the same command again"
NO_ANSWER = "the connection is closed; try again when the database answers"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_world(tmp_path / "files", bills=2, votes=1)
    assert load_files(tmp_path / "data", tmp_path / "files").failed == 0
    return tmp_path / "data"


@pytest.mark.parametrize("is_pressed", [True, False], ids=["ctrl-c", "database"])
def test_a_backup_that_is_broken_off(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_pressed: bool
) -> None:
    break_off(monkeypatch, "write_backup", is_pressed)
    archive = tmp_path / "room.backup"
    told = run_broken_off(is_pressed, "backup", str(archive), "--data", str(data))
    assert told.endswith(f"Nothing was written to {archive}: {AGAIN}{'.' if is_pressed else ''}")
    assert ("Stopped. " in told) is is_pressed
    assert (NO_ANSWER in told) is not is_pressed
    assert not archive.exists()


@pytest.mark.parametrize("is_pressed", [True, False], ids=["ctrl-c", "database"])
def test_a_restore_that_is_broken_off(
    data: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_pressed: bool
) -> None:
    archive = str(tmp_path / "room.backup")
    assert invoke("backup", archive, "--data", str(data)).returncode == 0
    break_off(monkeypatch, "restore_backup", is_pressed)
    told = run_broken_off(is_pressed, "restore", archive, "--data", str(tmp_path / "embedded"))
    assert f"The data directory is as it was: {AGAIN}" in told
    (tmp_path / "shared.database").write_text(url)
    told = run_broken_off(is_pressed, "restore", archive, "--data", str(tmp_path / "shared"))
    assert "run it again with --force, which replaces those that are" in told


@pytest.mark.parametrize("is_pressed", [True, False], ids=["ctrl-c", "database"])
def test_a_migration_that_is_broken_off(
    data: Path, url: str, monkeypatch: pytest.MonkeyPatch, is_pressed: bool
) -> None:
    break_off(monkeypatch, "migrate_base", is_pressed)
    told = run_broken_off(is_pressed, "migrate", "--to", url, "--data", str(data))
    assert f"{AGAIN}, which leaves out what is there" in told


def test_a_backup_of_a_database_needs_no_data_directory(url: str, tmp_path: Path) -> None:
    """No command has made one on this machine: all data are elsewhere."""
    prepare_records(SharedRecords(url))
    (tmp_path / "none.database").write_text(url)
    done = invoke("backup", str(tmp_path / "room.backup"), "--data", str(tmp_path / "none"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "room.backup").exists()
    refused = invoke("backup", str(tmp_path / "other.backup"), "--data", str(tmp_path / "nothing"))
    assert refused.returncode == 1 and "There is no data directory" in refused.stderr


def break_off(monkeypatch: pytest.MonkeyPatch, step: str, is_pressed: bool) -> None:
    def fail(*arguments: object) -> None:
        if is_pressed:
            raise KeyboardInterrupt
        raise DatabaseUnreachable(NO_ANSWER) from OSError()

    monkeypatch.setattr(FederalBackup, step, fail)


def run_broken_off(is_pressed: bool, *command: str) -> str:
    """Return the last line that a command prints, which exits with 130 after an interrupt."""
    done = invoke(*command)
    assert done.returncode == (130 if is_pressed else 1)
    assert "Aborted" not in done.stderr
    return done.stderr.splitlines()[-1]
