"""`migrate` and `restore` look at where from and where to before they do anything else."""

from pathlib import Path

import pytest

from tests.support.federal.base import load_files, write_world
from tests.support.kit import invoke
from tests.support.postgres import PostgresServer
from tests.support.processes import find_free_port


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_world(tmp_path / "files", bills=2, votes=1)
    assert load_files(tmp_path / "data", tmp_path / "files").failed == 0
    return tmp_path / "data"


def refuse(*command: str) -> str:
    """Return what a command tells that fails, and does nothing before."""
    done = invoke(*command)
    assert done.returncode in (1, 2) and done.stdout == "", done
    assert "copying" not in done.stderr and "unpacking" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


@pytest.mark.parametrize("is_made", [True, False], ids=["empty", "mistyped"])
def test_there_is_nothing_to_migrate(url: str, tmp_path: Path, is_made: bool) -> None:
    folder = tmp_path / "romo"
    if is_made:
        folder.mkdir()
    told = refuse("migrate", "--to", url, "--data", str(folder))
    assert "There is nothing to migrate" in told and str(folder) in told
    assert folder.exists() is is_made


def test_where_to_migrate_is_looked_at_first(
    postgres: PostgresServer, data: Path, tmp_path: Path
) -> None:
    at = ("--data", str(data))
    told = refuse("migrate", "--to", "mysql://root@127.0.0.1/room", *at)
    assert "begins with mysql://" in told and "postgresql://user" in told
    nobody = f"postgresql://nobody@127.0.0.1:{find_free_port()}/room"
    assert "check the URL of the database" in refuse("migrate", "--to", nobody, *at)
    postgres.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
    try:
        assert "LATIN1" in refuse("migrate", "--to", postgres.url("latin"), *at)
    finally:
        postgres.execute("DROP DATABASE latin WITH (FORCE)")
    assert not (data / ".migrating").exists()


def test_a_role_that_may_not_make_the_extensions_is_told_which_before_a_migration(
    postgres: PostgresServer, data: Path
) -> None:
    postgres.execute("CREATE ROLE newcomer LOGIN")
    postgres.execute("CREATE DATABASE bare")
    url = postgres.url("bare").replace("postgres@", "newcomer@")
    try:
        told = refuse("migrate", "--to", url, "--data", str(data))
        assert "no extension vector, and the role newcomer may not create it" in told
        assert "CREATE EXTENSION vector SCHEMA public in this database as a superuser" in told
        for extension in ("vector", "btree_gist", "pg_trgm", "citext"):
            postgres.execute(f"CREATE EXTENSION {extension} SCHEMA public", "bare")
        told = refuse("migrate", "--to", url, "--data", str(data))
        assert "CREATE SCHEMA readingroom AUTHORIZATION newcomer" in told
    finally:
        postgres.execute("DROP DATABASE bare WITH (FORCE)")
        postgres.execute("DROP ROLE newcomer")


def test_a_filled_database_is_refused_before_anything_is_unpacked(
    data: Path, url: str, tmp_path: Path
) -> None:
    archive = str(tmp_path / "room.backup")
    assert invoke("backup", archive, "--data", str(data)).returncode == 0
    for name in ("first", "second"):  # of two machines on one database
        (tmp_path / f"{name}.database").write_text(url)
    assert invoke("restore", archive, "--data", str(tmp_path / "first")).returncode == 0
    at = ("--data", str(tmp_path / "second"))
    told = refuse("restore", archive, *at)
    assert "holds federal records already" in told and "--force" in told
    assert invoke("restore", archive, *at, "--force").returncode == 0


def test_a_database_with_policies_is_refused_before_anything_is_unpacked(
    url: str, tmp_path: Path
) -> None:
    embedded = ("--data", str(tmp_path / "embedded"))
    policy = ("policy", "add", "NPPF", "--title", "One", "--category", "national_policy")
    assert invoke(*policy, *embedded).returncode == 0
    archive = str(tmp_path / "room.backup")
    assert invoke("backup", archive, *embedded).returncode == 0
    for name in ("first", "second"):
        (tmp_path / f"{name}.database").write_text(url)
    assert invoke(*policy, "--data", str(tmp_path / "first")).returncode == 0
    told = refuse("restore", archive, "--data", str(tmp_path / "second"))
    assert "policy base in the database holds data already" in told


def test_a_filled_data_directory_is_refused_before_anything_is_unpacked(
    data: Path, tmp_path: Path
) -> None:
    archive = str(tmp_path / "room.backup")
    assert invoke("backup", archive, "--data", str(data)).returncode == 0
    told = refuse("restore", archive, "--data", str(data))
    assert f"{data} is not empty" in told
