"""A role with exactly the rights of docs/scale.md does everything; one that lacks one is told."""

import json
import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from tests.support.federal.base import write_world
from tests.support.kit import run, serve_room
from tests.support.model import link_model
from tests.support.postgres import PostgresServer
from tests.support.processes import HANG_SECONDS

DOCS = Path(__file__).parents[2] / "docs" / "scale.md"
NEW_DATABASE = "-- from here on connected to the new database"


@pytest.fixture
def room(postgres: PostgresServer) -> Iterator[tuple[str, str]]:
    """The URL of a role that has what docs/scale.md gives it, and its name."""
    role = f"role_{uuid.uuid4().hex}"
    block = re.search(r"```sql\n(CREATE ROLE.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert block is not None
    # The schemas keep their names; role and database get one that no other test has.
    statements = re.sub(
        r"\b(ROLE|DATABASE|TO|AUTHORIZATION) readingroom\b", rf"\1 {role}", block[1]
    )
    before, _, after = statements.partition(NEW_DATABASE)
    try:
        for part, database in ((before, "postgres"), (after, role)):
            for statement in part.split(";"):
                if statement.strip():
                    postgres.execute(statement, database)
        yield postgres.url(role).replace("postgres@", f"{role}@"), role
    finally:
        postgres.execute(f"DROP DATABASE IF EXISTS {role} WITH (FORCE)")
        postgres.execute(f"DROP ROLE IF EXISTS {role}")


def test_the_least_role_loads_searches_and_serves(room: tuple[str, str], tmp_path: Path) -> None:
    url, _ = room
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, "
            "has_database_privilege(current_database(), 'CREATE') "
            "FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert row == (False, False, False, False)
    data, env = link_model(tmp_path / "data"), {"READINGROOM_DATABASE_URL": url}
    (tmp_path / "plan.md").write_text("# Plan\n\n## Cycle parking\n\nHomes need cycle parking.\n")
    (tmp_path / "bats.md").write_text("# Bats\n\nBats roost in the old barn.\n")
    write_world(tmp_path / "files", bills=3, votes=1)
    for arguments in (
        ("policy", "add", "PLAN", "--title", "Plan", "--category", "local_plan"),
        (
            "policy",
            "revise",
            "PLAN",
            str(tmp_path / "plan.md"),
            "--label",
            "1",
            "--from",
            "2020-01-01",
        ),
        ("documents", "ingest", str(tmp_path / "bats.md"), "--application", "25/0001/FUL"),
        ("federal", "load", str(tmp_path / "files")),
        ("federal", "load", str(tmp_path / "files")),
        ("keys", "add", "desk"),
        ("backup", str(tmp_path / "room.backup")),
        ("restore", str(tmp_path / "room.backup"), "--force", "--data", str(tmp_path / "other")),
    ):
        at = () if "--data" in arguments else ("--data", str(data))
        done = run(*arguments, *at, env=env)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    found = run("policy", "search", "cycle parking", "--json", "--data", str(data), env=env)
    assert json.loads(found.stdout)["results"][0]["source"] == "PLAN"
    doctor = run("doctor", "--json", "--data", str(data), env=env)
    assert [
        found for found in json.loads(doctor.stdout)["complaints"] if "role" in str(found)
    ] == []
    # A start beside what is there asks for no more than the first one.
    with serve_room(data=data, env={**env, "MCP_API_KEY": "k" * 32}) as served:
        assert served.get("/ready").json() == {"status": "ready"}


LACKING = [
    (
        "REVOKE INSERT, UPDATE ON readingroom.policies FROM {role}",
        ("policy", "add", "PLAN", "--title", "Plan", "--category", "local_plan"),
        "lacks the rights SELECT, INSERT, UPDATE, DELETE on policies",
    ),
    (
        "REVOKE TEMPORARY ON DATABASE {role} FROM {role}",
        (),  # a load of a few records does without
        "lacks the right TEMPORARY on the database",
    ),
    (
        "ALTER SCHEMA readingroom OWNER TO postgres; REVOKE ALL ON SCHEMA readingroom FROM {role}",
        ("policy", "list"),
        "lacks the rights USAGE and CREATE on the schema readingroom",
    ),
]


@pytest.mark.parametrize(("revoking", "arguments", "finding"), LACKING)
def test_a_right_that_is_missing_is_named_with_what_gives_it(
    postgres: PostgresServer,
    room: tuple[str, str],
    tmp_path: Path,
    revoking: str,
    arguments: tuple[str, ...],
    finding: str,
) -> None:
    url, role = room
    env, at = {"READINGROOM_DATABASE_URL": url}, ("--data", str(tmp_path / "data"))
    assert run("policy", "list", *at, env=env).returncode == 0
    assert run("federal", "status", *at, env=env).returncode == 0
    for statement in revoking.format(role=role).split(";"):
        postgres.execute(statement, role)
    if arguments:
        told = run(*arguments, *at, env=env)
        assert told.returncode == 1 and "Traceback" not in told.stderr
        assert "`readingroom doctor` names each right that is missing" in told.stderr, told.stderr
        assert "permission denied" in told.stderr
    doctor = run("doctor", "--json", *at, env=env)
    findings: list[dict[str, Any]] = json.loads(doctor.stdout)["complaints"]
    [named] = [found for found in findings if finding in str(found)]
    assert "GRANT" in str(named) or "name the owner" in str(named)


def test_a_caller_whose_server_lacks_a_right_is_told_and_gets_no_internal_error(
    postgres: PostgresServer, room: tuple[str, str], tmp_path: Path
) -> None:
    url, role = room
    with serve_room(
        "policy", data=tmp_path / "data", env={"READINGROOM_DATABASE_URL": url}
    ) as served:
        postgres.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA readingroom FROM {role}", role)
        policy = {"source": "PLAN", "title": "Plan", "category": "local_plan"}
        answer = httpx2.post(
            f"{served.url}/api/v1/policies", json=policy, timeout=HANG_SECONDS, trust_env=False
        )
        assert answer.status_code == 503, answer.text
        assert "permission denied for table" in answer.text and "readingroom doctor" in answer.text
