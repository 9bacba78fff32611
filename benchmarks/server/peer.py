"""The bare SDK server with one trivial tool: what ours is measured against.

Run as a script it serves standard input and output, so it imports nothing but the SDK.
"""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as wire
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

NAME = "echo-mcp"
TITLE = "Echo"
TOOL = "echo"
DESCRIPTION = "Say the text again."
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def peer_server(version: str, lean: bool = False) -> Server[Any]:
    """A server for any transport; with `version` equal, its answers equal ours to the byte.

    As it comes, the SDK lists all tools at each call on the 2026-07-28 wire to find the schema of
    the one; a lean server tells it where to look.
    """
    return Server(
        NAME,
        version=version,
        title=TITLE,
        get_tool_input_schema=_schema if lean else None,
        on_list_tools=_list,
        on_call_tool=_call,
    )


def _schema(name: str) -> Mapping[str, Any] | None:
    return SCHEMA if name == TOOL else None


async def _list(
    context: ServerRequestContext[Any, Any], params: wire.PaginatedRequestParams | None
) -> wire.ListToolsResult:
    tool = wire.Tool(name=TOOL, description=DESCRIPTION, input_schema=SCHEMA)
    return wire.ListToolsResult(tools=[tool])


async def _call(
    context: ServerRequestContext[Any, Any], params: wire.CallToolRequestParams
) -> wire.CallToolResult:
    body = {"text": (params.arguments or {})["text"]}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return wire.CallToolResult(content=[wire.TextContent(text=text)], structured_content=body)


async def _serve() -> None:
    server = peer_server("0")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve)
