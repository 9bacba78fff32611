"""Lists and calls the tools of a face: validation, the one `except`, the answer twice the same."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mcp_types as wire
from mcp.server import CacheHint, Server
from mcp.shared.exceptions import MCPError
from pydantic_core import to_json

from readingroom import __version__
from readingroom.core.errors import Internal, InvalidArguments, KnowledgeError
from readingroom.protocol import sample
from readingroom.protocol.errors import Dialect, ToldError
from readingroom.protocol.tool import Call, Tool
from readingroom.server.auth.keys import may_write
from readingroom.server.faces import Face
from readingroom.server.mcp.calls import Context, call_of
from readingroom.server.mcp.resources import stock
from readingroom.server.observe.logging import CallRecord
from readingroom.server.observe.telemetry import TracedOnly

logger = logging.getLogger(__name__)

Recorder = Callable[[CallRecord], None]

# A listing changes only when a base's live values do; a minute old is fresh enough. Private: keys
# that may only read see fewer tools.
_LISTING = CacheHint(ttl_ms=60_000, scope="private")


def mcp_server(face: Face, recorders: Sequence[Recorder], is_sample: bool = False) -> Server[Any]:
    """The protocol server of a face, for any transport; what is sample says so in every answer."""
    dispatcher = _Dispatcher(face, recorders, is_sample)
    server: Server[Any] = Server(
        face.server_name,
        version=__version__,
        title=face.title,
        instructions=face.instructions,
        cache_hints={"tools/list": _LISTING},
        get_tool_input_schema=dispatcher.input_schema,
        on_list_tools=dispatcher.list_tools,
        on_call_tool=dispatcher.call_tool,
    )
    server.middleware = [TracedOnly(middleware) for middleware in server.middleware]
    for base in face.bases:
        if base.extend:
            base.extend(server)
    stock(server, face, is_sample)
    return server


class _Dispatcher:
    """Answers `tools/list` and `tools/call` for one face."""

    def __init__(self, face: Face, recorders: Sequence[Recorder], is_sample: bool) -> None:
        self._tools = face.tools
        self._is_sample = is_sample
        self._with_headers = {
            name: tool.input_schema
            for name, (tool, _) in self._tools.items()
            if "x-mcp-header" in str(tool.input_schema)
        }
        self._recorders = recorders
        self._reading = {
            name: told for name, told in self._tools.items() if told[0].hints.read_only
        }

    def _tools_of(self, context: Context) -> dict[str, tuple[Tool, Dialect]]:
        """The tools of this caller: whoever may only read has none that writes."""
        writes = context.request is None or may_write(context.request.scope)
        return self._tools if writes else self._reading

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool some of whose arguments travel as headers, which the SDK checks."""
        return self._with_headers.get(name)

    async def list_tools(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListToolsResult:
        return wire.ListToolsResult(
            tools=[_listed(tool) for tool, _ in self._tools_of(context).values()]
        )

    async def call_tool(
        self, context: Context, params: wire.CallToolRequestParams
    ) -> wire.CallToolResult:
        call = call_of(context)
        known = self._tools_of(context).get(params.name)
        tool_name = params.name if known else "unknown"
        # What never comes to an answer or an error was cancelled by its caller.
        record = CallRecord(
            tool_name, call.request_id, call.caller, error_code="cancelled", facts=call.facts
        )
        started = time.perf_counter_ns()
        try:
            if known is None:
                record.error_code = "unknown_tool"
                why = ": this key may only read" if params.name in self._tools else ""
                raise MCPError(wire.INVALID_PARAMS, f"Unknown tool: {params.name[:100]}{why}")
            if "input_responses" in params.model_fields_set and params.input_responses is None:
                record.error_code = "invalid_arguments"
                raise MCPError(wire.INVALID_PARAMS, "Invalid params: inputResponses: null")
            result = await _answer(*known, params.arguments or {}, call, record)
            if self._is_sample:
                result = _as_sample(result)
            record.answer_chars = _length(result)
            return result
        finally:
            record.duration_ms = (time.perf_counter_ns() - started) // 1000 / 1000
            record.result_status = "error" if record.error_code else "ok"
            for remember in self._recorders:
                remember(record)


async def _answer(
    tool: Tool, dialect: Dialect, arguments: dict[str, Any], call: Call, record: CallRecord
) -> wire.CallToolResult:
    """A tool's answer, or its error in the base's dialect. Nothing else leaves a tool."""
    try:
        answer = await tool.run(tool.ask(arguments), call)
        result = _rendered(tool, answer)
        record.error_code = None
        return result
    except Exception as failure:
        if isinstance(failure, MCPError):  # a tool that speaks for the protocol itself
            record.error_code = "protocol"
            raise
        error = _knowledge_error(failure, call)
        record.error_code = error.code
        if dialect.arguments_are_params and isinstance(error, InvalidArguments):
            told = f"Invalid params: {error.named}"
            raise MCPError(wire.INVALID_PARAMS, told, data={"errors": error.errors}) from error
        return _told(dialect.tell(error, call.request_id), tool.meta)


def _rendered(tool: Tool, answer: Any) -> wire.CallToolResult:
    """The answer as structured content and, the same JSON, as the one text item."""
    if tool.answer is None:
        assert isinstance(answer, wire.CallToolResult)
        return answer
    return wire.CallToolResult(
        content=[wire.TextContent(text=tool.answer.dump_json(answer).decode())],
        structured_content=tool.answer.dump_python(answer, mode="json"),
        _meta=dict(tool.meta) or None,
    )


def _as_sample(result: wire.CallToolResult) -> wire.CallToolResult:
    """The result marked as sample; text that is the body's JSON stays that."""
    body = sample.marked(result.structured_content)
    content = [wire.TextContent(text=to_json(body).decode())] if body else result.content
    meta = {**(result.meta or {}), **sample.META}
    return result.model_copy(update={"structured_content": body, "content": content, "meta": meta})


def _told(error: ToldError, meta: Mapping[str, Any]) -> wire.CallToolResult:
    return wire.CallToolResult(
        content=[wire.TextContent(text=text) for text in error.texts],
        structured_content=dict(error.body) if error.body is not None else None,
        is_error=True,
        _meta={**meta, **error.meta} or None,
    )


def _knowledge_error(failure: Exception, call: Call) -> KnowledgeError:
    if isinstance(failure, KnowledgeError):
        return failure
    logger.error(
        "unexpected failure in a tool",
        exc_info=failure,
        extra={"fields": {"request_id": call.request_id}},
    )
    return Internal(f"Something went wrong on our side. Request id: {call.request_id}")


def _listed(tool: Tool) -> wire.Tool:
    hints = tool.hints
    return wire.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.describe(),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=wire.ToolAnnotations(
            title=tool.title,
            read_only_hint=hints.read_only,
            destructive_hint=hints.destructive,
            idempotent_hint=hints.idempotent,
            open_world_hint=hints.open_world,
        ),
        _meta=dict(tool.meta) or None,
    )


def _length(result: wire.CallToolResult) -> int:
    return sum(len(item.text) for item in result.content if isinstance(item, wire.TextContent))
