"""Lists and calls the tools of a face: validates arguments, renders answers and errors."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import anyio.to_thread
import mcp_types as wire
from mcp.server import CacheHint, Server
from mcp.server.apps import EXTENSION_ID as APPS_EXTENSION
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least
from pydantic_core import from_json, to_json

from readingroom import __version__
from readingroom.core.errors import InternalError, InvalidArguments, KnowledgeError
from readingroom.protocol import sample
from readingroom.protocol.errors import ErrorDialect, ErrorResult
from readingroom.protocol.resources import RESOURCE_SCHEME
from readingroom.protocol.tool import ResourceLink, Tool, ToolContext
from readingroom.server.auth.bearer import can_write
from readingroom.server.faces import BASES_PARAMETER_NAME, Face
from readingroom.server.mcp.calls import RequestContext, make_tool_context
from readingroom.server.mcp.consent import ConsentRequired, make_person_asker
from readingroom.server.mcp.resources import add_resources
from readingroom.server.observe.logging import CallRecord
from readingroom.server.observe.telemetry import TracedOnlyMiddleware
from readingroom.web.assets import get_asset_address, make_icon_uri
from readingroom.web.views import VIEW_MEDIA_TYPE, make_view_uri

logger = logging.getLogger(__name__)

RecordCall = Callable[[CallRecord], None]

# A listing changes only when a base's live values do; a minute old is fresh enough. Private: keys
# that may only read see fewer tools.
_FIRST_PROTOCOL_WITH_LINKS = "2025-06-18"
_LISTING_CACHE_HINT = CacheHint(ttl_ms=60_000, scope="private")


def build_mcp_server(
    server_face: Face,
    call_recorders: Sequence[RecordCall],
    is_sample: bool = False,
    public_url: str | None = None,
) -> Server[Any]:
    """Return the protocol server of a face, for any transport.

    `call_recorders` are called with the record of each tool call; with `is_sample`, every answer is
    marked as sample. Views link to `public_url`, else to the address they were asked at.
    """
    tool_handlers = _ToolHandlers(server_face, call_recorders, is_sample)
    mcp_server: Server[Any] = Server(
        server_face.server_name,
        version=__version__,
        title=server_face.title,
        website_url=f"{public_url}{server_face.path}/mcp" if public_url else None,
        icons=[_make_icon(public_url)],
        instructions=server_face.instructions,
        cache_hints={"tools/list": _LISTING_CACHE_HINT},
        get_tool_input_schema=tool_handlers.find_input_schema,
        on_list_tools=tool_handlers.list_tools,
        on_call_tool=tool_handlers.call_tool,
    )
    if any(tool.view for tool, _ in server_face.tools_and_dialects_by_name.values()):
        mcp_server.extensions[APPS_EXTENSION] = {"mimeTypes": [VIEW_MEDIA_TYPE]}
    mcp_server.middleware = [
        TracedOnlyMiddleware(server_middleware) for server_middleware in mcp_server.middleware
    ]
    for knowledge_base in server_face.bases:
        if knowledge_base.add_handlers:
            knowledge_base.add_handlers(mcp_server)
    add_resources(mcp_server, server_face, is_sample, public_url)
    return mcp_server


def _make_icon(public_url: str | None) -> wire.Icon:
    """Return our icon: by its address where it has one, for the newer wire repeats it in every
    result, else as data.
    """
    icon_url = public_url + get_asset_address("icon.svg") if public_url else make_icon_uri()
    return wire.Icon(src=icon_url, mime_type="image/svg+xml", sizes=["any"])


class _ToolHandlers:
    """Answers `tools/list` and `tools/call` for one face."""

    def __init__(
        self, server_face: Face, call_recorders: Sequence[RecordCall], is_sample: bool
    ) -> None:
        self._face = server_face
        self._tools_by_name = server_face.tools_and_dialects_by_name
        self._is_sample = is_sample
        self._schemas_by_tool_name = {
            tool_name: tool.input_schema
            for tool_name, (tool, _) in self._tools_by_name.items()
            # The annotation may be at any depth of the schema.
            if "x-mcp-header" in str(tool.input_schema)
        }
        self._recorders = call_recorders
        self._has_schemas = False
        self._has_resources = any(knowledge_base.resources for knowledge_base in server_face.bases)
        self._read_only_tools_by_name = {
            tool_name: (tool, error_dialect)
            for tool_name, (tool, error_dialect) in self._tools_by_name.items()
            if tool.hints.read_only
        }

    def _get_caller_tools(
        self, request_context: RequestContext
    ) -> dict[str, tuple[Tool, ErrorDialect]]:
        """Return the tools of this caller: a read-only key has none that writes."""
        may_use_all_tools = request_context.request is None or can_write(
            request_context.request.scope
        )
        return self._tools_by_name if may_use_all_tools else self._read_only_tools_by_name

    def _list_tool_names(self, request_context: RequestContext) -> Collection[str]:
        """Return the names of the tools that the address of this request asks for."""
        query_parameters = request_context.request.query_params if request_context.request else {}
        chosen_base_names = [
            base_name.strip()
            for base_name in query_parameters.get(BASES_PARAMETER_NAME, "").split(",")
        ]
        try:
            return self._face.list_tool_names(
                [base_name for base_name in chosen_base_names if base_name]
            )
        except InvalidArguments as error:
            raise MCPError(wire.INVALID_PARAMS, f"Invalid address: {error.summary}") from error

    def find_input_schema(self, tool_name: str) -> dict[str, Any] | None:
        """Return the schema of a tool that takes arguments as headers, which the SDK checks."""
        return self._schemas_by_tool_name.get(tool_name)

    async def list_tools(
        self, request_context: RequestContext, request_params: wire.PaginatedRequestParams | None
    ) -> wire.ListToolsResult:
        listed_tool_names = self._list_tool_names(request_context)
        listed_tools = [
            tool
            for tool_name, (tool, _) in self._get_caller_tools(request_context).items()
            if tool_name in listed_tool_names
        ]
        if not self._has_schemas:
            # Pydantic builds schemas at their first use. On the event loop every other request,
            # `/health` included, would wait for them.
            await anyio.to_thread.run_sync(_prepare_tool_schemas, self._tools_by_name)
            self._has_schemas = True
        return wire.ListToolsResult(tools=[make_wire_tool(tool) for tool in listed_tools])

    async def call_tool(
        self, request_context: RequestContext, request_params: wire.CallToolRequestParams
    ) -> wire.CallToolResult | wire.InputRequiredResult:
        tool_context = replace(
            make_tool_context(request_context),
            ask_person=make_person_asker(request_context, request_params),
        )
        tool_and_dialect = self._get_caller_tools(request_context).get(request_params.name)
        # A name that callers make up must not become a time series of its own in the metrics.
        tool_name = request_params.name if tool_and_dialect else "unknown"
        # A call that ends without an answer or an error was cancelled by its caller.
        call_record = CallRecord(
            tool_name,
            tool_context.request_id,
            tool_context.caller_id,
            error_code="cancelled",
            facts=tool_context.log_facts,
        )
        start_ns = time.perf_counter_ns()
        try:
            if tool_and_dialect is None:
                call_record.error_code = "unknown_tool"
                read_only_suffix = (
                    ": this key may only read" if request_params.name in self._tools_by_name else ""
                )
                raise MCPError(
                    wire.INVALID_PARAMS,
                    f"Unknown tool: {request_params.name[:100]}{read_only_suffix}",
                )
            if (
                "input_responses" in request_params.model_fields_set
                and request_params.input_responses is None
            ):
                call_record.error_code = "invalid_arguments"
                raise MCPError(wire.INVALID_PARAMS, "Invalid params: inputResponses: null")
            tool_result = await _run_tool(
                *tool_and_dialect,
                request_params.arguments or {},
                tool_context,
                call_record,
                self._has_resources and _can_show_links(request_context),
            )
            if self._is_sample:
                tool_result = _mark_as_sample(tool_result)
            call_record.answer_chars = _count_answer_chars(tool_result)
            return tool_result
        except ConsentRequired as consent_required:
            # To ask is no failure; the call that brings the response is counted by itself.
            call_record.error_code = None
            return consent_required.result
        finally:
            call_record.duration_ms = (time.perf_counter_ns() - start_ns) // 1000 / 1000
            call_record.result_status = "error" if call_record.error_code else "ok"
            for record_call in self._recorders:
                record_call(call_record)


async def _run_tool(
    tool: Tool,
    error_dialect: ErrorDialect,
    arguments: dict[str, Any],
    tool_context: ToolContext,
    call_record: CallRecord,
    can_show_links: bool,
) -> wire.CallToolResult:
    """Return a tool's answer, or its error in the base's dialect.

    Raise MCPError, or ConsentRequired where the client has to ask its user first.
    """
    try:
        tool_answer = await tool.run(tool.parse_arguments(arguments), tool_context)
        tool_result = _render_answer(tool, tool_answer, can_show_links)
        call_record.error_code = None
        return tool_result
    except Exception as failure:
        if isinstance(failure, ConsentRequired):
            raise
        if isinstance(failure, MCPError):  # the tool itself raised a protocol error
            call_record.error_code = "protocol"
            raise
        knowledge_error = _convert_to_knowledge_error(failure, tool_context)
        call_record.error_code = knowledge_error.code
        if error_dialect.bad_arguments_are_protocol_errors and isinstance(
            knowledge_error, InvalidArguments
        ):
            error_message = f"Invalid params: {knowledge_error.summary}"
            raise MCPError(
                wire.INVALID_PARAMS, error_message, data={"errors": knowledge_error.errors}
            ) from knowledge_error
        return _render_error(
            error_dialect.render_error(knowledge_error, tool_context.request_id), tool.meta
        )


def _render_answer(tool: Tool, tool_answer: Any, can_show_links: bool) -> wire.CallToolResult:
    """Return the answer as structured content and, as the same JSON, in the one text item; links to
    resources follow it.
    """
    if tool.answer_adapter is None:
        assert isinstance(tool_answer, wire.CallToolResult)
        return tool_answer
    return wire.CallToolResult(
        content=[
            wire.TextContent(text=tool.answer_adapter.dump_json(tool_answer).decode()),
            *(
                _make_wire_link(resource_link)
                for resource_link in (tool.list_links(tool_answer) if can_show_links else ())
            ),
        ],
        structured_content=tool.answer_adapter.dump_python(tool_answer, mode="json"),
        _meta=dict(tool.meta) or None,
    )


def _mark_as_sample(tool_result: wire.CallToolResult) -> wire.CallToolResult:
    """Return the result marked as sample, its text still equal to its structured content."""
    result_meta = {**(tool_result.meta or {}), **sample.SAMPLE_META}
    if tool_result.is_error:
        marked_content = [
            _mark_error_citations(content_block) for content_block in tool_result.content
        ]
        return tool_result.model_copy(update={"content": marked_content, "meta": result_meta})
    marked_answer = sample.mark_sample_citations(tool_result.structured_content)
    marked_content = (
        [
            wire.TextContent(text=to_json(marked_answer).decode()),
            *map(_mark_link_as_sample, tool_result.content[1:]),
        ]
        if marked_answer
        else tool_result.content
    )
    return tool_result.model_copy(
        update={"structured_content": marked_answer, "content": marked_content, "meta": result_meta}
    )


def _make_wire_link(resource_link: ResourceLink) -> wire.ResourceLink:
    resource_uri = RESOURCE_SCHEME + resource_link.path
    return wire.ResourceLink(
        uri=resource_uri, name=resource_link.path, title=resource_link.title, mime_type="text/plain"
    )


def _mark_link_as_sample(resource_link: wire.ContentBlock) -> wire.ContentBlock:
    # Its title is a citation, and those of a sample never pass for real ones.
    if not isinstance(resource_link, wire.ResourceLink):
        return resource_link
    return resource_link.model_copy(
        update={
            "title": sample.SAMPLE_CITATION_PREFIX + (resource_link.title or resource_link.name)
        }
    )


def _can_show_links(request_context: RequestContext) -> bool:
    """Whether the client's version of the protocol has links; older clients refuse the result."""
    protocol_version = request_context.session.protocol_version
    return bool(protocol_version) and is_version_at_least(
        protocol_version, _FIRST_PROTOCOL_WITH_LINKS
    )


def _mark_error_citations(content_block: wire.ContentBlock) -> wire.ContentBlock:
    """Return the item with its citations marked if it holds a JSON object, else as it is."""
    if not isinstance(content_block, wire.TextContent) or not content_block.text.startswith("{"):
        return content_block
    return wire.TextContent(
        text=to_json(sample.mark_sample_citations(from_json(content_block.text))).decode()
    )


def _render_error(error_result: ErrorResult, tool_meta: Mapping[str, Any]) -> wire.CallToolResult:
    return wire.CallToolResult(
        content=[wire.TextContent(text=error_text) for error_text in error_result.texts],
        is_error=True,
        _meta={**tool_meta, **error_result.meta} or None,
    )


def _convert_to_knowledge_error(
    raised_error: Exception, tool_context: ToolContext
) -> KnowledgeError:
    if isinstance(raised_error, KnowledgeError):
        return raised_error
    logger.error(
        "unexpected failure in a tool",
        exc_info=raised_error,
        extra={"fields": {"request_id": tool_context.request_id}},
    )
    return InternalError(f"Something went wrong on our side. Request id: {tool_context.request_id}")


def _prepare_tool_schemas(
    tools_and_dialects_by_name: Mapping[str, tuple[Tool, ErrorDialect]],
) -> None:
    for tool, _ in tools_and_dialects_by_name.values():
        tool.prepare_schemas()


def make_wire_tool(tool: Tool) -> wire.Tool:
    """Return a tool as `tools/list` shows it."""
    tool_hints = tool.hints
    return wire.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.describe(),
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=wire.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool_hints.read_only,
            destructive_hint=tool_hints.destructive,
            idempotent_hint=tool_hints.idempotent,
            open_world_hint=tool_hints.open_world,
        ),
        _meta={**tool.meta, **_make_view_meta(tool)} or None,
    )


def _make_view_meta(tool: Tool) -> dict[str, Any]:
    """Return how a host finds the view of a tool: as the extension says, and as it once did."""
    if not tool.view:
        return {}
    resource_uri = make_view_uri(tool.view)
    return {"ui": {"resourceUri": resource_uri}, "ui/resourceUri": resource_uri}


def _count_answer_chars(tool_result: wire.CallToolResult) -> int:
    return sum(
        len(content_block.text)
        for content_block in tool_result.content
        if isinstance(content_block, wire.TextContent)
    )
