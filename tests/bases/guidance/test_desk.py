"""Guidance at the desk: attribution and disclaimer go with hits, pages, resources and errors."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from readingroom.bases.guidance.models import ATTRIBUTION, DISCLAIMER
from readingroom.bases.guidance.tools import open_guidance_base
from readingroom.federation.tools import open_federation
from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server
from tests.requirements import requirement
from tests.support.faults import failing
from tests.support.govuk import PLENTY, RETURN, Upstream, run_emulator
from tests.support.kit import read_body
from tests.support.model import EMBEDDER

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with run_emulator() as running:
        yield running


@asynccontextmanager
async def connect_to_desk(upstream: Upstream) -> AsyncIterator[Client]:
    base = open_guidance_base(upstream.url, requests_per_second=PLENTY)
    desk = open_federation([base], EMBEDDER, "")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(base.lifespan())
        await stack.enter_async_context(desk.lifespan())
        yield await stack.enter_async_context(Client(build_mcp_server(make_face(desk), [])))


def assert_attributed(text: str) -> None:
    assert ATTRIBUTION in text
    assert DISCLAIMER in text


@requirement("guidance:attribution", "guidance:disclaimer")
async def test_what_the_desk_gives_of_guidance_is_attributed(upstream: Upstream) -> None:
    async with connect_to_desk(upstream) as client:
        found = read_body(await client.call_tool("search", {"query": "annual return"}))
        record = read_body(await client.call_tool("fetch", {"id": f"guidance:{RETURN}"}))
        (page,) = (await client.read_resource(f"readingroom://guidance{RETURN}")).contents
    assert found["results"]
    for hit in found["results"]:
        assert_attributed(hit["attribution"])
    assert (record["record"]["attribution"], record["record"]["disclaimer"]) == (
        ATTRIBUTION,
        DISCLAIMER,
    )
    assert_attributed(page.text)


@requirement("guidance:attribution", "guidance:disclaimer")
@pytest.mark.parametrize(
    "id", ["guidance:/no-such-page", "guidance:/../x", "guidance:/guidance/a-page-taken-down"]
)
async def test_what_the_desk_tells_of_guidance_that_fails_is_attributed(
    upstream: Upstream, id: str
) -> None:
    async with connect_to_desk(upstream) as client:
        result = await client.call_tool("fetch", {"id": id})
        assert result.is_error
        assert_attributed(result.content[0].text)
        with pytest.raises(MCPError) as refused:
            await client.read_resource(f"readingroom://{id.replace(':', '', 1)}")
    assert_attributed(refused.value.error.message)


@requirement("guidance:attribution", "guidance:disclaimer")
async def test_a_note_on_guidance_that_is_down_is_attributed(upstream: Upstream) -> None:
    upstream.emulator.apply_fault = failing(403)  # refused at once, without another try
    try:
        async with connect_to_desk(upstream) as client:
            found = read_body(await client.call_tool("search", {"query": "a question never asked"}))
    finally:
        upstream.reset()
    (note,) = found["notes"]
    assert_attributed(note["message"])
