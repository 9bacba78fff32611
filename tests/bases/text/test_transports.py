"""The text base through real clients over every transport, on both wires."""

import pytest

from readingroom import __version__
from tests.requirements import requirement
from tests.support.kit import (
    LEGACY,
    MODERN,
    Served,
    connect_http,
    connect_sse,
    connect_stdio,
    read_body,
)

pytestmark = pytest.mark.anyio

WIRES = pytest.mark.parametrize("wire", [LEGACY, MODERN])


@requirement("room:clients", "room:handshake")
@WIRES
@pytest.mark.parametrize("path", ["/mcp", "/text/mcp"])
async def test_a_client_lists_and_calls_over_streamable_http(
    room: Served, path: str, wire: str
) -> None:
    async with connect_http(room.url + path, wire) as client:
        assert client.protocol_version == wire
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == sorted(names)
        assert {"get_kb_content", "get_kb_info"} <= set(names)
        assert (len(names) == 2) is (path == "/text/mcp")
        info = read_body(await client.call_tool("get_kb_info"))
        content = read_body(await client.call_tool("get_kb_content"))
    assert info["status"] == "available"
    assert content["status"] == "ok"
    assert content["contentLength"] == len(content["content"]) == info["contentLength"]


@requirement("room:handshake")
@WIRES
@pytest.mark.parametrize(("path", "name"), [("/mcp", "reading-room"), ("/text/mcp", "kb-mcp")])
async def test_a_face_gives_its_own_name_and_the_package_version(
    room: Served, path: str, name: str, wire: str
) -> None:
    async with connect_http(room.url + path, wire) as client:
        await client.list_tools()
        info = client.server_info
    assert (info.name, info.version) == (name, __version__)


@requirement("room:clients")
async def test_a_client_lists_and_calls_over_sse(room: Served) -> None:
    async with connect_sse(room.url + "/text/sse") as client:
        assert len((await client.list_tools()).tools) == 2
        assert read_body(await client.call_tool("get_kb_info"))["status"] == "available"


@requirement("room:clients", "text:FR-4")
@WIRES
async def test_a_client_lists_and_calls_over_stdio(wire: str) -> None:
    async with connect_stdio("text", wire=wire) as client:
        assert client.protocol_version == wire
        assert client.server_info.name == "kb-mcp"
        assert len((await client.list_tools()).tools) == 2
        assert read_body(await client.call_tool("get_kb_content"))["status"] == "ok"
