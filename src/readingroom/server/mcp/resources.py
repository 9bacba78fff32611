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
from readingroom.protocol.tool import ToolCall
from readingroom.server.faces import Face
from readingroom.server.http.addresses import resolve_address
from readingroom.server.mcp.calls import Context, make_call_from_context
from readingroom.web.views import VIEW_MEDIA_TYPE, render_view

logger = logging.getLogger(__name__)

_MAX_COMPLETIONS = 100  # the protocol's limit
_PLAIN_TEXT_MEDIA_TYPE = "text/plain"
_RESOURCE_NOT_FOUND_CODE = -32002  # the protocol's code for a resource that does not exist

Params = TypeVar("Params")
Result = TypeVar("Result")
Handler = Callable[[Context, Params], Awaitable[Result]]


def add_resources(
    server: Server[Any], face: Face, is_sample: bool, public_url: str | None = None
) -> None:
    """Give the protocol server the prompts, resources and views of a face's bases, where it has
    any.
    """
    prompts = {prompt.name: prompt for base in face.bases for prompt in base.prompts}
    resource_provider = next((base.resources for base in face.bases if base.resources), None)
    page_params = wire.PaginatedRequestParams
    add_handler = server.add_request_handler
    if prompts:
        prompt_handlers = _PromptHandlers(prompts)
        add_handler("prompts/list", page_params, prompt_handlers.list_prompts)
        add_handler("prompts/get", wire.GetPromptRequestParams, prompt_handlers.get_prompt)
    has_views = any(tool.view for tool, _ in face.tools.values())
    if resource_provider or has_views:
        view_reader = _ViewReader(_collect_page_images(face), public_url)
        resource_handlers = _ResourceHandlers(
            resource_provider or _NoResources(), view_reader, is_sample
        )
        add_handler("resources/list", page_params, resource_handlers.list_resources)
        add_handler("resources/templates/list", page_params, resource_handlers.list_templates)
        add_handler("resources/read", wire.ReadResourceRequestParams, resource_handlers.read)
    if resource_provider:
        add_handler("completion/complete", wire.CompleteRequestParams, resource_handlers.complete)


def _translate_errors(handler: Handler[Params, Result]) -> Handler[Params, Result]:
    """Raise our errors as MCP errors; log anything else, and hide it from the client."""

    @wraps(handler)
    async def handle(*args: Any) -> Result:
        try:
            return await handler(*args)
        except MCPError:
            raise
        except KnowledgeError as error:
            error_data = {"code": error.code, "hint": dict(error.hint)}
            error_code = (
                _RESOURCE_NOT_FOUND_CODE if error.http_status == 404 else wire.INVALID_PARAMS
            )
            raise MCPError(error_code, error.message, data=error_data) from error
        except Exception as error:
            logger.exception("unexpected failure in %s", handler.__name__)
            raise MCPError(wire.INTERNAL_ERROR, "Something went wrong on our side") from error

    return handle


class _PromptHandlers:
    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        self._prompts = prompts

    async def list_prompts(self, context: Context, params: Any) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(
            prompts=[
                wire.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        wire.PromptArgument(
                            name=argument.name,
                            description=argument.description,
                            required=argument.required,
                        )
                        for argument in prompt.arguments
                    ],
                )
                for _, prompt in sorted(self._prompts.items())
            ]
        )

    async def get_prompt(
        self, context: Context, params: wire.GetPromptRequestParams
    ) -> wire.GetPromptResult:
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        arguments = params.arguments or {}
        missing_names = [
            argument.name
            for argument in prompt.arguments
            if argument.required and not arguments.get(argument.name)
        ]
        if missing_names:
            raise MCPError(wire.INVALID_PARAMS, f"{prompt.name} needs {', '.join(missing_names)}")
        prompt_content = wire.TextContent(
            text=f"{prompt.render(arguments)}\n\n{QUOTED_MATTER_INSTRUCTION}"
        )
        return wire.GetPromptResult(
            description=prompt.description,
            messages=[wire.PromptMessage(role="user", content=prompt_content)],
        )


class _ResourceHandlers:
    def __init__(
        self, resources: ResourceProvider, view_reader: "_ViewReader", is_sample: bool
    ) -> None:
        self._provider = resources
        self._view_reader = view_reader
        self._is_sample = is_sample
        self.list_resources = _translate_errors(self._list_resources)
        self.read = _translate_errors(self._read_resource)
        self.complete = _translate_errors(self._complete_argument)

    async def list_templates(
        self, context: Context, params: Any
    ) -> wire.ListResourceTemplatesResult:
        return wire.ListResourceTemplatesResult(
            resource_templates=[
                wire.ResourceTemplate(uri_template=template.uri, **_make_common_fields(template))
                for template in self._provider.templates
            ]
        )

    async def _list_resources(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        resources, cursor = await self._provider.list_resources(params.cursor if params else None)
        return wire.ListResourcesResult(
            resources=[
                wire.Resource(uri=resource.uri, **_make_common_fields(resource))
                for resource in resources
            ],
            next_cursor=cursor,
        )

    async def _read_resource(
        self, context: Context, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        if view := await self._view_reader.read_view_or_picture(params.uri, context):
            return wire.ReadResourceResult(contents=[view])
        resource_text = await self._provider.read_resource(
            params.uri, make_call_from_context(context)
        )
        contents = wire.TextResourceContents(
            uri=params.uri,
            mime_type=_PLAIN_TEXT_MEDIA_TYPE,
            text=sample.SAMPLE_CITATION_PREFIX + resource_text
            if self._is_sample
            else resource_text,
            _meta=sample.SAMPLE_META if self._is_sample else None,
        )
        return wire.ReadResourceResult(contents=[contents])

    async def _complete_argument(
        self, context: Context, params: wire.CompleteRequestParams
    ) -> wire.CompleteResult:
        arguments = (params.context.arguments if params.context else None) or {}
        completions = await self._provider.complete_argument(
            params.argument.name, params.argument.value, arguments
        )
        return wire.CompleteResult(
            completion=wire.Completion(
                values=completions[:_MAX_COMPLETIONS],
                total=len(completions),
                has_more=len(completions) > _MAX_COMPLETIONS,
            )
        )


class _ViewReader:
    """Reads what a view needs: itself, and pictures of pages.

    Neither is listed: a host finds the view by its tool, and the view its pictures.
    """

    def __init__(self, page_images: Mapping[str, ReadPageImage], public_url: str | None) -> None:
        self._image_readers_by_prefix = page_images
        self._public_url = public_url

    async def read_view_or_picture(
        self, resource_uri: str, context: Context
    ) -> wire.TextResourceContents | wire.BlobResourceContents | None:
        """Return a view or a picture; None for what is neither. Raise RecordNotFound."""
        for prefix, read_page_image in self._image_readers_by_prefix.items():
            if not resource_uri.startswith(prefix):
                continue
            image = await read_page_image(resource_uri)
            return wire.BlobResourceContents(
                uri=resource_uri,
                mime_type=image.media_type,
                blob=base64.b64encode(image.content).decode(),
                _meta={"marks": [list(mark) for mark in image.marks]},
            )
        request = context.request
        room_url = resolve_address(request, self._public_url) if request else ""
        html = render_view(resource_uri, room_url)
        if html is None:
            return None
        # It loads nothing, so it asks for no leave to.
        content_meta = {"ui": {"csp": {}, "prefersBorder": True}}
        return wire.TextResourceContents(
            uri=resource_uri, mime_type=VIEW_MEDIA_TYPE, text=html, _meta=content_meta
        )


def _collect_page_images(face: Face) -> dict[str, ReadPageImage]:
    """Return who reads the pictures of a face's views. Raise ValueError where two bases would."""
    page_images: dict[str, ReadPageImage] = {}
    for base in face.bases:
        for prefix, read_page_image in base.page_images.items():
            # Also where one begins with the other: the order of the bases must not decide.
            if any(
                prefix.startswith(taken_prefix) or taken_prefix.startswith(prefix)
                for taken_prefix in page_images
            ):
                raise ValueError(f"{base.name} has pictures at {prefix}, as another base has")
            page_images[prefix] = read_page_image
    return page_images


class _NoResources:
    """Of a face whose bases have none."""

    templates: tuple[ResourceTemplate, ...] = ()

    async def list_resources(self, after: str | None) -> tuple[Sequence[ListedResource], None]:
        return (), None

    async def read_resource(self, uri: str, call: ToolCall) -> str:
        raise RecordNotFound(f"There is no resource at {uri[:200]}")

    async def complete_argument(
        self, argument_name: str, prefix: str, earlier_arguments: Mapping[str, str]
    ) -> list[str]:
        return []


def _make_common_fields(resource: ListedResource | ResourceTemplate) -> dict[str, Any]:
    """Return the fields that the listings of resources and of templates have in common."""
    return {
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": _PLAIN_TEXT_MEDIA_TYPE,
    }
