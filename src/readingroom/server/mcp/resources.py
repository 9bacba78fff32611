"""Prompts and resources of a face over MCP: listed, read, completed."""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import mcp_types as wire
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from readingroom.core.errors import KnowledgeError, RecordNotFound
from readingroom.protocol import sample
from readingroom.protocol.quoting import QUOTED_MATTER_INSTRUCTION
from readingroom.protocol.resources import (
    ListedResource,
    Prompt,
    ReadPageImage,
    ResourceProvider,
    ResourceTemplate,
)
from readingroom.protocol.tool import ToolContext
from readingroom.server.faces import Face
from readingroom.server.http.addresses import get_server_address
from readingroom.server.mcp.calls import RequestContext, make_tool_context
from readingroom.web.views import VIEW_MEDIA_TYPE, render_view

logger = logging.getLogger(__name__)

_MAX_COMPLETIONS = 100  # the protocol's limit
_PLAIN_TEXT_MEDIA_TYPE = "text/plain"
_RESOURCE_NOT_FOUND_CODE = -32002  # the protocol's code for a resource that does not exist

Params = TypeVar("Params")
Result = TypeVar("Result")
Handler = Callable[[RequestContext, Params], Awaitable[Result]]


def add_resources(
    mcp_server: Server[Any], server_face: Face, is_sample: bool, public_url: str | None = None
) -> None:
    """Give the protocol server the prompts, resources and views of a face's bases, where it has
    any.
    """
    prompts_by_name = {
        prompt.name: prompt
        for knowledge_base in server_face.bases
        for prompt in knowledge_base.prompts
    }
    resource_provider = next(
        (
            knowledge_base.resources
            for knowledge_base in server_face.bases
            if knowledge_base.resources
        ),
        None,
    )
    paginated_params_type = wire.PaginatedRequestParams
    add_handler = mcp_server.add_request_handler
    if prompts_by_name:
        prompt_handlers = _PromptHandlers(prompts_by_name)
        add_handler("prompts/list", paginated_params_type, prompt_handlers.list_prompts)
        add_handler("prompts/get", wire.GetPromptRequestParams, prompt_handlers.get_prompt)
    has_views = any(tool.view for tool, _ in server_face.tools_and_dialects_by_name.values())
    if resource_provider or has_views:
        view_reader = _ViewReader(_collect_image_readers(server_face), public_url)
        resource_handlers = _ResourceHandlers(
            resource_provider or _NoResources(), view_reader, is_sample
        )
        add_handler("resources/list", paginated_params_type, resource_handlers.list_resources)
        add_handler(
            "resources/templates/list", paginated_params_type, resource_handlers.list_templates
        )
        add_handler("resources/read", wire.ReadResourceRequestParams, resource_handlers.read)
    if resource_provider:
        add_handler("completion/complete", wire.CompleteRequestParams, resource_handlers.complete)


def _translate_errors(resource_handler: Handler[Params, Result]) -> Handler[Params, Result]:
    """Raise our errors as MCP errors; log anything else, and hide it from the client."""

    @wraps(resource_handler)
    async def handle_translating_errors(*args: Any) -> Result:
        try:
            return await resource_handler(*args)
        except MCPError:
            raise
        except KnowledgeError as error:
            error_data = {"code": error.code, "hint": dict(error.hint)}
            mcp_error_code = (
                _RESOURCE_NOT_FOUND_CODE if error.http_status == 404 else wire.INVALID_PARAMS
            )
            raise MCPError(mcp_error_code, error.message, data=error_data) from error
        except Exception as error:
            logger.exception("unexpected failure in %s", resource_handler.__name__)
            raise MCPError(wire.INTERNAL_ERROR, "Something went wrong on our side") from error

    return handle_translating_errors


class _PromptHandlers:
    def __init__(self, prompts_by_name: Mapping[str, Prompt]) -> None:
        self._prompts_by_name = prompts_by_name

    async def list_prompts(
        self, request_context: RequestContext, params: Any
    ) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(
            prompts=[
                wire.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        wire.PromptArgument(
                            name=prompt_argument.name,
                            description=prompt_argument.description,
                            required=prompt_argument.required,
                        )
                        for prompt_argument in prompt.arguments
                    ],
                )
                for _, prompt in sorted(self._prompts_by_name.items())
            ]
        )

    async def get_prompt(
        self, request_context: RequestContext, request_params: wire.GetPromptRequestParams
    ) -> wire.GetPromptResult:
        prompt = self._prompts_by_name.get(request_params.name)
        if prompt is None:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown prompt: {request_params.name[:100]}")
        arguments = request_params.arguments or {}
        missing_argument_names = [
            prompt_argument.name
            for prompt_argument in prompt.arguments
            if prompt_argument.required and not arguments.get(prompt_argument.name)
        ]
        if missing_argument_names:
            raise MCPError(
                wire.INVALID_PARAMS, f"{prompt.name} needs {', '.join(missing_argument_names)}"
            )
        prompt_content = wire.TextContent(
            text=f"{prompt.render(arguments)}\n\n{QUOTED_MATTER_INSTRUCTION}"
        )
        return wire.GetPromptResult(
            description=prompt.description,
            messages=[wire.PromptMessage(role="user", content=prompt_content)],
        )


class _ResourceHandlers:
    def __init__(
        self, resource_provider: ResourceProvider, view_reader: "_ViewReader", is_sample: bool
    ) -> None:
        self._provider = resource_provider
        self._view_reader = view_reader
        self._is_sample = is_sample
        self.list_resources = _translate_errors(self._list_resources)
        self.read = _translate_errors(self._read_resource)
        self.complete = _translate_errors(self._complete_argument)

    async def list_templates(
        self, request_context: RequestContext, params: Any
    ) -> wire.ListResourceTemplatesResult:
        return wire.ListResourceTemplatesResult(
            resource_templates=[
                wire.ResourceTemplate(
                    uri_template=resource_template.uri,
                    **_make_common_listing_fields(resource_template),
                )
                for resource_template in self._provider.templates
            ]
        )

    async def _list_resources(
        self, request_context: RequestContext, request_params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        listed_resources, next_cursor = await self._provider.list_resources(
            request_params.cursor if request_params else None
        )
        return wire.ListResourcesResult(
            resources=[
                wire.Resource(
                    uri=listed_resource.uri, **_make_common_listing_fields(listed_resource)
                )
                for listed_resource in listed_resources
            ],
            next_cursor=next_cursor,
        )

    async def _read_resource(
        self, request_context: RequestContext, request_params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        if view_contents := await self._view_reader.read_view_or_picture(
            request_params.uri, request_context
        ):
            return wire.ReadResourceResult(contents=[view_contents])
        resource_text = await self._provider.read_resource(
            request_params.uri, make_tool_context(request_context)
        )
        resource_contents = wire.TextResourceContents(
            uri=request_params.uri,
            mime_type=_PLAIN_TEXT_MEDIA_TYPE,
            text=sample.SAMPLE_CITATION_PREFIX + resource_text
            if self._is_sample
            else resource_text,
            _meta=sample.SAMPLE_META if self._is_sample else None,
        )
        return wire.ReadResourceResult(contents=[resource_contents])

    async def _complete_argument(
        self, request_context: RequestContext, request_params: wire.CompleteRequestParams
    ) -> wire.CompleteResult:
        arguments = (request_params.context.arguments if request_params.context else None) or {}
        completion_values = await self._provider.complete_argument(
            request_params.argument.name, request_params.argument.value, arguments
        )
        return wire.CompleteResult(
            completion=wire.Completion(
                values=completion_values[:_MAX_COMPLETIONS],
                total=len(completion_values),
                has_more=len(completion_values) > _MAX_COMPLETIONS,
            )
        )


class _ViewReader:
    """Reads what a view needs: itself, and pictures of pages.

    Neither is listed: a host finds the view by its tool, and the view its pictures.
    """

    def __init__(
        self, image_readers_by_uri_prefix: Mapping[str, ReadPageImage], public_url: str | None
    ) -> None:
        self._image_readers_by_prefix = image_readers_by_uri_prefix
        self._public_url = public_url

    async def read_view_or_picture(
        self, resource_uri: str, request_context: RequestContext
    ) -> wire.TextResourceContents | wire.BlobResourceContents | None:
        """Return a view or a picture; None for what is neither. Raise RecordNotFound."""
        for uri_prefix, read_page_image in self._image_readers_by_prefix.items():
            if not resource_uri.startswith(uri_prefix):
                continue
            page_image = await read_page_image(resource_uri)
            return wire.BlobResourceContents(
                uri=resource_uri,
                mime_type=page_image.media_type,
                blob=base64.b64encode(page_image.content).decode(),
                _meta={
                    "marks": [list(mark_rectangle) for mark_rectangle in page_image.mark_rectangles]
                },
            )
        request = request_context.request
        room_url = get_server_address(request, self._public_url) if request else ""
        view_html = render_view(resource_uri, room_url)
        if view_html is None:
            return None
        # It loads nothing, so it asks for no leave to.
        content_meta = {"ui": {"csp": {}, "prefersBorder": True}}
        return wire.TextResourceContents(
            uri=resource_uri, mime_type=VIEW_MEDIA_TYPE, text=view_html, _meta=content_meta
        )


def _collect_image_readers(server_face: Face) -> dict[str, ReadPageImage]:
    """Return who reads the pictures of a face's views. Raise ValueError where two bases would."""
    image_readers_by_uri_prefix: dict[str, ReadPageImage] = {}
    for knowledge_base in server_face.bases:
        for uri_prefix, read_page_image in knowledge_base.page_image_readers.items():
            # Also where one begins with the other: the order of the bases must not decide.
            if any(
                uri_prefix.startswith(taken_uri_prefix) or taken_uri_prefix.startswith(uri_prefix)
                for taken_uri_prefix in image_readers_by_uri_prefix
            ):
                raise ValueError(
                    f"{knowledge_base.name} has pictures at {uri_prefix}, as another base has"
                )
            image_readers_by_uri_prefix[uri_prefix] = read_page_image
    return image_readers_by_uri_prefix


class _NoResources:
    """Of a face whose bases have none."""

    templates: tuple[ResourceTemplate, ...] = ()

    async def list_resources(
        self, page_cursor: str | None
    ) -> tuple[Sequence[ListedResource], None]:
        return (), None

    async def read_resource(self, resource_uri: str, tool_context: ToolContext) -> str:
        raise RecordNotFound(f"There is no resource at {resource_uri[:200]}")

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> list[str]:
        return []


def _make_common_listing_fields(
    listed_resource: ListedResource | ResourceTemplate,
) -> dict[str, Any]:
    """Return the fields that the listings of resources and of templates have in common."""
    return {
        "name": listed_resource.name,
        "title": listed_resource.title,
        "description": listed_resource.description,
        "mime_type": _PLAIN_TEXT_MEDIA_TYPE,
    }
