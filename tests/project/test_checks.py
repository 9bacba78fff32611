"""The checks of `make test` can fail: a licence that may not come in, a part over its budget."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import requirement

ROOT = Path(__file__).parents[2]


@requirement("room:two-commands")
def test_a_part_over_its_minutes_is_stopped_and_reported() -> None:
    endless = [sys.executable, "-c", "import time; time.sleep(60)"]
    done = subprocess.run(
        [ROOT / ".ci" / "part", "endless", "0.02", *endless],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode != 0
    assert "endless" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("licence", "passes"),
    [
        ("MIT License", True),
        ("Apache-2.0", True),
        ("GNU General Public License v3 (GPLv3)", False),
        ("AGPL-3.0-only", False),
        ("GNU Lesser General Public License v2 (LGPLv2)", False),
        ("UNKNOWN", False),
        ("Mozilla Public License 2.0 (MPL 2.0)", False),
    ],
)
def test_a_licence_is_let_in_or_not(licence: str, passes: bool) -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from licences import verdict

    assert (verdict(licence) is None) is passes


def test_no_registry_is_named_in_the_locks() -> None:
    for lock in (
        "requirements.lock",
        "requirements-dev.lock",
        "tests/clients/mcp1.lock",
        "tests/clients/mcp2.lock",
        "tests/node/package-lock.json",
    ):
        text = (ROOT / lock).read_text("utf-8")
        assert "index-url" not in text
        assert '"resolved"' not in text
        assert "find-links" not in text


@requirement("room:conformance", "room:two-commands")
def test_make_test_runs_the_conformance_suites_on_both_wires() -> None:
    planned = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    from tests.conformance.run import SUITES

    assert "tests.conformance.run" in planned
    assert {suite.wire for suite in SUITES} == {"2025-11-25", "2026-07-28"}


def test_no_request_of_a_test_gives_up_before_a_busy_machine_answers() -> None:
    """The client's own five seconds are too few beside other work."""
    hurried = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if "node_modules" not in path.parts and "httpx2." in (text := path.read_text("utf-8"))
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in _HTTP_CALLS
        if not {"timeout", "transport", None} & {keyword.arg for keyword in call.keywords}
    ]
    assert hurried == []


_HTTP_CALLS = {
    f"httpx2.{name}"
    for name in ("get", "post", "put", "delete", "options", "stream", "request", "Client")
} | {"httpx2.AsyncClient"}
