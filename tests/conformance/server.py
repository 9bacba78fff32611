"""Serves the test-only base that the official conformance suites call by name.

Our own app and dispatcher serve it: what the suites check is what users get.
"""

import argparse
import tempfile
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import mcp_types as wire
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import Field

from readingroom.protocol.errors import StatusDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Schema, Tool, ToolArguments, ToolContext, make_tool
from readingroom.server.observe.logging import configure_logging
from readingroom.server.run import bind_listener, run_server
from tests.support.kit import make_app

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJg"
    "gg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="


class Nothing(ToolArguments):
    """Takes no arguments."""


class Region(ToolArguments):
    region: str = Field(json_schema_extra={"x-mcp-header": "Region"})


class Any2020(Tool):
    """A tool whose schema uses what the 2020-12 dialect has and our questions do not need."""

    @cached_property
    def input_schema(self) -> Schema:
        address = {"street": {"type": "string"}, "city": {"type": "string"}}
        by_phone = {"properties": {"contactMethod": {"const": "phone"}}}
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {"$anchor": "addressDef", "type": "object", "properties": address}
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {**by_phone, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        }


def make_text(said: str) -> wire.TextContent:
    return wire.TextContent(text=said)


def make_image() -> wire.ImageContent:
    return wire.ImageContent(data=PNG, mime_type="image/png")


def make_resource(uri: str, said: str, kind: str = "text/plain") -> wire.EmbeddedResource:
    contents = wire.TextResourceContents(uri=uri, mime_type=kind, text=said)
    return wire.EmbeddedResource(resource=contents)


def make_saying_tool(name: str, *content: wire.ContentBlock, failed: bool = False) -> Tool:
    """A tool without arguments that always answers the same."""

    async def answer(question: Nothing, call: ToolContext) -> wire.CallToolResult:
        """Answers what the suite expects of a tool of this name."""
        return wire.CallToolResult(content=list(content), is_error=failed)

    answer.__name__ = name
    return make_tool(answer, title=name)


async def test_tool_with_progress(question: Nothing, call: ToolContext) -> wire.CallToolResult:
    """Report progress three times."""
    for done in (0, 50, 100):
        await call.report_progress(done, 100, None)
        await anyio.sleep(0.05)
    return wire.CallToolResult(content=[make_text("done")])


async def test_header(question: Region, call: ToolContext) -> wire.CallToolResult:
    """Take an argument that also travels as a header."""
    return wire.CallToolResult(content=[make_text(question.region)])


async def test_missing_capability(question: Nothing, call: ToolContext) -> wire.CallToolResult:
    """Refuse a client that lacks a capability."""
    raise MCPError(
        wire.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "Missing required client capability: sampling",
        data={"requiredCapabilities": {"sampling": {}}},
    )


def make_tools() -> tuple[Tool, ...]:
    plain = make_saying_tool("json_schema_2020_12_tool", make_text("ok"))
    mixed = make_resource("test://mixed-content-resource", '{"test":"data"}', "application/json")
    embedded = make_resource("test://embedded-resource", "This is an embedded resource content.")
    return (
        make_saying_tool(
            "test_simple_text", make_text("This is a simple text response for testing.")
        ),
        make_saying_tool("test_image_content", make_image()),
        make_saying_tool("test_audio_content", wire.AudioContent(data=WAV, mime_type="audio/wav")),
        make_saying_tool("test_embedded_resource", embedded),
        make_saying_tool("test_multiple_content_types", make_text("Several:"), make_image(), mixed),
        make_saying_tool(
            "test_error_handling",
            make_text("This tool intentionally returns an error"),
            failed=True,
        ),
        make_saying_tool("test_reconnection", make_text("ok")),
        make_saying_tool("test_streaming_elicitation", make_text("Nothing was asked.")),
        make_saying_tool("test_logging_tool", make_text("Nothing was logged.")),
        make_saying_tool("test_input_required_result_elicitation", make_text("Nothing was asked.")),
        make_tool(test_tool_with_progress, title="Progress"),
        make_tool(test_header, title="Header"),
        make_tool(test_missing_capability, title="Missing capability"),
        Any2020(**vars(plain)),
    )


async def list_resources(context: Any, params: Any) -> wire.ListResourcesResult:
    static = [
        wire.Resource(uri="test://static-text", name="text", mime_type="text/plain"),
        wire.Resource(uri="test://static-binary", name="binary", mime_type="image/png"),
    ]
    return wire.ListResourcesResult(resources=static)


async def list_templates(context: Any, params: Any) -> wire.ListResourceTemplatesResult:
    one = wire.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return wire.ListResourceTemplatesResult(resource_templates=[one])


async def read_resource(
    context: Any, params: wire.ReadResourceRequestParams
) -> wire.ReadResourceResult:
    uri = str(params.uri)
    if uri == "test://static-binary":
        blob = wire.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        return wire.ReadResourceResult(contents=[blob])
    if uri == "test://static-text" or uri.startswith("test://template/"):
        said = wire.TextResourceContents(uri=uri, mime_type="text/plain", text=f"Text of {uri}")
        return wire.ReadResourceResult(contents=[said])
    raise MCPError(wire.INVALID_PARAMS, "Resource not found", data={"uri": uri})


PROMPTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_prompts(context: Any, params: Any) -> wire.ListPromptsResult:
    return wire.ListPromptsResult(
        prompts=[
            wire.Prompt(
                name=name,
                description=name,
                arguments=[wire.PromptArgument(name=argument, required=True) for argument in takes],
            )
            for name, takes in PROMPTS.items()
        ]
    )


async def get_prompt(context: Any, params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
    given = params.arguments or {}
    content: wire.ContentBlock
    match params.name:
        case "test_prompt_with_embedded_resource":
            content = make_resource(given["resourceUri"], "Embedded")
        case "test_prompt_with_image":
            content = make_image()
        case _:
            content = make_text(f"A prompt for testing: {given}")
    return wire.GetPromptResult(messages=[wire.PromptMessage(role="user", content=content)])


async def complete(context: Any, params: wire.CompleteRequestParams) -> wire.CompleteResult:
    return wire.CompleteResult(completion=wire.Completion(values=[]))


Handler = Callable[[Any, Any], Awaitable[Any]]

HANDLERS: tuple[tuple[str, type[Any], Handler], ...] = (
    ("resources/list", wire.PaginatedRequestParams, list_resources),
    ("resources/templates/list", wire.PaginatedRequestParams, list_templates),
    ("resources/read", wire.ReadResourceRequestParams, read_resource),
    ("prompts/list", wire.PaginatedRequestParams, list_prompts),
    ("prompts/get", wire.GetPromptRequestParams, get_prompt),
    ("completion/complete", wire.CompleteRequestParams, complete),
)


def furnish(server: Server[Any]) -> None:
    for method, params, handler in HANDLERS:
        server.add_request_handler(method, params, handler)


def make_conformance_base() -> KnowledgeBase:
    return KnowledgeBase(
        name="conformance",
        server_name="conformance",
        title="Conformance",
        instructions="For the official conformance suites.",
        error_dialect=StatusDialect(),
        tools=make_tools(),
        service=None,
        keeps_sessions=True,
        add_handlers=furnish,
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    configure_logging("error")
    with tempfile.TemporaryDirectory() as data:
        app = make_app(make_conformance_base(), data=Path(data), rate_limit=0)
        run_server(lambda: (app, lambda: None), bind_listener("127.0.0.1", port), None, ())


if __name__ == "__main__":
    main()
