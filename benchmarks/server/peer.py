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

SERVER_NAME = "echo-mcp"
SERVER_TITLE = "Echo"
TOOL_NAME = "echo"
TOOL_DESCRIPTION = "Say the text again."
INPUT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def build_peer_server(version: str, lean: bool = False) -> Server[Any]:
    """A server for any transport; with `version` equal, its answers equal ours to the byte.

    As it comes, the SDK lists all tools at each call on the 2026-07-28 wire to find the schema of
    the one; a lean server tells it where to look.
    """
    return Server(
        SERVER_NAME,
        version=version,
        title=SERVER_TITLE,
        get_tool_input_schema=_find_schema if lean else None,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


def _find_schema(name: str) -> Mapping[str, Any] | None:
    return INPUT_SCHEMA if name == TOOL_NAME else None


async def _list_tools(
    context: ServerRequestContext[Any, Any], params: wire.PaginatedRequestParams | None
) -> wire.ListToolsResult:
    tool = wire.Tool(name=TOOL_NAME, description=TOOL_DESCRIPTION, input_schema=INPUT_SCHEMA)
    return wire.ListToolsResult(tools=[tool])


async def _call_tool(
    context: ServerRequestContext[Any, Any], params: wire.CallToolRequestParams
) -> wire.CallToolResult:
    body = {"text": (params.arguments or {})["text"]}
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return wire.CallToolResult(content=[wire.TextContent(text=text)], structured_content=body)


async def _serve_stdio() -> None:
    server = build_peer_server("0")
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(_serve_stdio)
