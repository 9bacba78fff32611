"""Removing asks first, where a client can ask its user; elsewhere it removes at once."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import httpx2
import mcp_types as wire
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests import node
from tests.requirements import requirement
from tests.support.kit import (
    HANG_SECONDS,
    LEGACY,
    MODERN,
    Served,
    choose_mode,
    clean_environment,
    serve_room,
)
from tests.support.model import link_model

pytestmark = [pytest.mark.anyio, requirement("room:consent")]

TOOL = "remove_document"
PASSAGES = "The survey found oaks, elms and one very old yew. " * 60


class Outcome(NamedTuple):
    """What a client showed its user, and what the tool answered."""

    questions: list[str]
    is_error: bool
    text: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The documents base alone."""
    with serve_room("documents", data=link_model(tmp_path_factory.mktemp("consent"))) as running:
        yield running


@pytest.fixture(scope="module")
def add_document(served: Served) -> Callable[[], tuple[str, int]]:
    """Adds a document that nobody has; returns its id and the number of its passages."""
    numbers = itertools.count()

    def add() -> tuple[str, int]:
        answer = httpx2.post(
            f"{served.url}/api/v1/documents",
            params={"application_ref": "26/9/FUL"},
            files={"file": (f"trees{next(numbers)}.txt", f"{next(numbers)} {PASSAGES}".encode())},
            timeout=HANG_SECONDS,
            trust_env=False,
        ).json()
        return answer["document_id"], answer["chunks_created"]

    return add


def has_document(served: Served, document_id: str) -> bool:
    url = f"{served.url}/api/v1/documents/{document_id}"
    return httpx2.get(url, timeout=HANG_SECONDS, trust_env=False).status_code == 200


@asynccontextmanager
async def connect(url: str, protocol: str, on_question: Any) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(timeout=HANG_SECONDS, trust_env=False) as web:
        transport = streamable_http_client(url, http_client=web)
        mode = choose_mode(protocol)
        async with Client(transport, mode=mode, elicitation_callback=on_question) as client:
            yield client


async def remove_by_python(url: str, protocol: str, action: str, document_id: str) -> Outcome:
    questions: list[str] = []

    async def answer(context: Any, params: wire.ElicitRequestParams) -> wire.ElicitResult:
        questions.append(params.message)
        return wire.ElicitResult.model_validate({"action": action})

    async with connect(url, protocol, None if action == "none" else answer) as client:
        result = await client.call_tool(TOOL, {"document_id": document_id})
    return Outcome(questions, result.is_error, result.content[0].text)  # type: ignore[union-attr]


def remove_by_typescript(sdk: str) -> Callable[[str, str, str, str], Awaitable[Outcome]]:
    async def remove(url: str, protocol: str, action: str, document_id: str) -> Outcome:
        era = "legacy" if protocol == LEGACY else "modern"
        arguments = json.dumps({"document_id": document_id})
        with anyio.fail_after(HANG_SECONDS):
            done = await anyio.run_process(
                [*node.make_own_command("consent.mjs"), sdk, url, era, action, TOOL, arguments],
                env=clean_environment(),
                check=False,
            )
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        return Outcome(said["asked"], said["isError"], said["text"])

    return remove


CLIENTS = {
    ("python", LEGACY): remove_by_python,
    ("python", MODERN): remove_by_python,
    ("typescript 1", LEGACY): remove_by_typescript("v1"),
    ("typescript 2", LEGACY): remove_by_typescript("v2"),
    ("typescript 2", MODERN): remove_by_typescript("v2"),
}


EVERY_CLIENT = pytest.mark.parametrize(
    ("client", "protocol"),
    [
        pytest.param(*case, marks=[pytest.mark.full] if case == ("typescript 2", LEGACY) else [])
        for case in CLIENTS
    ],
)


@EVERY_CLIENT
async def test_the_user_is_asked_and_decides(
    served: Served, add_document: Callable[[], tuple[str, int]], client: str, protocol: str
) -> None:
    remove = CLIENTS[client, protocol]
    document_id, passage_count = add_document()
    assert passage_count > 1
    for action in ("decline", "cancel"):
        outcome = await remove(f"{served.url}/mcp", protocol, action, document_id)
        (question,) = outcome.questions
        assert f"{passage_count} passages" in question
        assert document_id in question
        assert outcome.is_error
        assert "Nothing was removed" in outcome.text
        assert has_document(served, document_id)
    outcome = await remove(f"{served.url}/mcp", protocol, "accept", document_id)
    assert len(outcome.questions) == 1
    assert json.loads(outcome.text)["chunks_removed"] == passage_count
    assert not has_document(served, document_id)


@EVERY_CLIENT
async def test_a_client_that_cannot_ask_removes_at_once(
    served: Served, add_document: Callable[[], tuple[str, int]], client: str, protocol: str
) -> None:
    document_id, passage_count = add_document()
    outcome = await CLIENTS[client, protocol](f"{served.url}/mcp", protocol, "none", document_id)
    assert outcome.questions == []
    assert json.loads(outcome.text)["chunks_removed"] == passage_count
    assert not has_document(served, document_id)


@pytest.mark.parametrize("protocol", [LEGACY, MODERN])
async def test_nobody_is_asked_about_what_is_not_there(served: Served, protocol: str) -> None:
    outcome = await remove_by_python(f"{served.url}/mcp", protocol, "accept", "25_1_FUL_abcdef")
    assert outcome.questions == []
    assert outcome.is_error
    assert "25_1_FUL_abcdef" in outcome.text


async def test_a_client_that_fails_to_ask_removes_nothing(
    served: Served, add_document: Callable[[], tuple[str, int]]
) -> None:
    document_id, _ = add_document()

    async def fail(context: Any, params: wire.ElicitRequestParams) -> wire.ErrorData:
        return wire.ErrorData(code=wire.INTERNAL_ERROR, message="the window was closed")

    async with connect(f"{served.url}/mcp", LEGACY, fail) as client:
        result = await client.call_tool(TOOL, {"document_id": document_id})
    assert result.is_error
    assert has_document(served, document_id)
