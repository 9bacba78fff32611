"""Every client lists, calls, reads and completes, and shows every error code to its caller."""

import itertools
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from readingroom.bases import BASES, open_bases
from readingroom.core.errors import InvalidArguments, KnowledgeError
from readingroom.protocol.errors import FederalDialect
from readingroom.settings import load_settings
from scripts.docs.errors import list_all_errors
from tests import node
from tests.clients.server import DIALECTS, make_message
from tests.requirements import requirement
from tests.support.govuk import RETURN, run_emulator
from tests.support.kit import HANG_SECONDS, Served, clean_environment, serve_room

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "scripts" / "docs" / "examples.toml"

PYTHON_CLIENTS = {
    "python-sdk-2": (None, "mcp_v2"),
    "python-sdk-1": ("mcp1", "mcp_v1"),
    "langchain": ("mcp1", "langchain"),
    "fastmcp": ("mcp2", "fastmcp_client"),
    "openai-agents": ("mcp2", "openai_agents"),
    "pydantic-ai": ("mcp2", "pydantic_ai_client"),
}
NODE_CLIENTS = ("typescript-v1", "typescript-v2", "ai-sdk", "inspector")
WITHOUT_COMPLETION = {"langchain", "openai-agents", "pydantic-ai", "inspector"}

CALLS = (
    ("get_kb_info", {}),
    ("policy_snapshot", {"date": "2024-12-12"}),
    ("list_ingested_documents", {"application_ref": "25/01178/REM"}),
    ("get_content_by_path", {"path": RETURN}),
    ("search", {"query": "charity annual return"}),
)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with every base, a policy, a GOV.UK of our own, and a tool that raises any error."""
    with run_emulator() as upstream:
        env = {
            "GOVUK_BASE_URL": upstream.url,
            "RATE_LIMIT_PER_SECOND": "1000",
            "READINGROOM_RATE_LIMIT": "60000",
            # The inspector opens a session for each request, and all clients are one caller.
            "READINGROOM_MAX_SESSIONS_PER_CALLER": "1000",
        }
        data = tmp_path_factory.mktemp("clients")
        with serve_room(data=data, env=env, program="tests.clients.server") as served:
            new = {"source": "NPPF", "title": "The Framework", "category": "national_policy"}
            policies = f"{served.url}/api/v1/policies"
            made = httpx2.post(policies, json=new, timeout=HANG_SECONDS, trust_env=False)
            assert made.status_code == 201
            yield served


@requirement("room:clients", "room:error-shape", "guidance:clients")
@pytest.mark.parametrize("client", [*PYTHON_CLIENTS, *NODE_CLIENTS])
def test_a_client_lists_calls_reads_completes_and_shows_every_error(
    room: Served, client: str, tmp_path: Path
) -> None:
    raised, refused = list(list_errors_to_raise()), list(list_arguments_to_refuse(tmp_path))
    plan = {
        "url": f"{room.url}/mcp",
        "calls": CALLS,
        "resource": "readingroom://text",
        "prompt": ("check_charity_duty", {"question": "Who may sign?"}),
        "completion": ("what_changed_in_policy", "source", "np"),
        "errors": [call for call, _ in (*raised, *refused)],
    }

    report = run_client(client, plan, tmp_path)

    assert {tool for tool, _ in plan["errors"]} | {tool for tool, _ in CALLS} <= {*report["tools"]}
    for answer, word in zip(
        report["answers"], ("available", "NPPF", "25/01178/REM", RETURN, RETURN), strict=True
    ):
        assert word in answer
    assert "Grafana" in report["resource"]
    assert "Who may sign?" in report["prompt"]
    assert report["completions"] == (None if client in WITHOUT_COMPLETION else ["NPPF"])
    missing = [
        (call, told)
        for (call, words), told in zip((*raised, *refused), report["errors"], strict=True)
        if not all(word.lower() in told.lower() for word in words)
    ]
    assert missing == []


Expected = tuple[tuple[str, dict[str, Any]], tuple[str, ...]]
"""A call that must fail, and the words that its caller must be shown."""


def list_errors_to_raise() -> Iterator[Expected]:
    """Every error code, in its base's dialect; those of no base in one dialect after another."""
    turns = itertools.cycle(DIALECTS)
    for error in list_all_errors():
        dialect = find_dialect(error) or next(turns)
        # The text base's contract has no room for a code, and a bad argument is a protocol error
        # in the federal dialect: there the message tells.
        is_message_alone = dialect == "text" or (
            dialect == "federal" and issubclass(error, InvalidArguments)
        )
        words = (make_message(error.code), *(() if is_message_alone else (error.code,)))
        yield (f"raise_{dialect}_error", {"code": error.code}), words


def find_dialect(error: type[KnowledgeError]) -> str | None:
    """The dialect of the base that an error belongs to, or None for an error of any base."""
    owners = {
        "bases.policy": "status",
        "bases.documents": "status",
        "bases.text": "text",
        "bases.federal": "federal",
        "federation": "federal",
        "bases.guidance": "guidance",
        "net": "guidance",
    }
    for package, dialect in owners.items():
        if error.__module__.startswith(f"readingroom.{package}."):
            return dialect
    return None


def list_arguments_to_refuse(data: Path) -> Iterator[Expected]:
    """An argument that no tool takes, for every tool that is served: each has its own schema.

    The other arguments are those of the tool's documentation: some clients check them themselves.
    """
    examples = tomllib.loads(EXAMPLES.read_text("utf-8"))
    for base in open_bases(BASES, load_settings({"data": data}, {})):
        refusal = (
            "Invalid params" if isinstance(base.error_dialect, FederalDialect) else "Invalid arg"
        )
        for tool in base.tools:
            arguments = examples[base.name].get(tool.name, {}) | {"unheard_of": 1}
            yield (tool.name, arguments), (refusal, "unheard_of")


def run_client(client: str, plan: dict[str, Any], home: Path) -> Any:
    """Return the report of a client that carried out the plan."""
    done = subprocess.run(
        make_command(client),
        input=json.dumps(plan),
        env=clean_environment({"HOME": str(home), "PYTHONPATH": str(ROOT)}),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def make_command(client: str) -> list[str]:
    if client in NODE_CLIENTS:
        return [str(node.find_node()), str(ROOT / "tests" / "node" / "clients" / f"{client}.mjs")]
    environment, program = PYTHON_CLIENTS[client]
    python = ROOT / "build" / "clients" / environment / "bin" / "python" if environment else None
    if python and not python.exists():
        raise FileNotFoundError(f"{python} is not there: run `make setup`")
    return [str(python or sys.executable), "-m", f"tests.clients.programs.{program}"]
