"""Prompts and resources of a face over MCP: listed, read, completed."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import mcp_types as wire
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from readingroom.core.errors import KnowledgeError
from readingroom.protocol import sample
from readingroom.protocol.quoting import QUOTED_MATTER
from readingroom.protocol.resources import (
    ListedResource,
    Prompt,
    ResourceProvider,
    ResourceTemplate,
)
from readingroom.server.faces import Face
from readingroom.server.mcp.calls import Context, make_call_from_context

logger = logging.getLogger(__name__)

_MAX_COMPLETIONS = 100  # the protocol's limit
_PLAIN_TEXT = "text/plain"
_RESOURCE_NOT_FOUND = -32002  # the protocol's code for a resource that does not exist

Params = TypeVar("Params")
Result = TypeVar("Result")
Handler = Callable[[Context, Params], Awaitable[Result]]


def add_resources(server: Server[Any], face: Face, is_sample: bool) -> None:
    """Give the protocol server the prompts and resources of a face's bases, where it has any."""
    prompts = {prompt.name: prompt for base in face.bases for prompt in base.prompts}
    resource_provider = next((base.resources for base in face.bases if base.resources), None)
    page_params = wire.PaginatedRequestParams
    add_handler = server.add_request_handler
    if prompts:
        prompt_handlers = _PromptHandlers(prompts)
        add_handler("prompts/list", page_params, prompt_handlers.list_prompts)
        add_handler("prompts/get", wire.GetPromptRequestParams, prompt_handlers.get_prompt)
    if resource_provider:
        resource_handlers = _ResourceHandlers(resource_provider, is_sample)
        add_handler("resources/list", page_params, resource_handlers.list_resources)
        add_handler("resources/templates/list", page_params, resource_handlers.list_templates)
        add_handler("resources/read", wire.ReadResourceRequestParams, resource_handlers.read)
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
            data = {"code": error.code, "hint": dict(error.hint)}
            code = _RESOURCE_NOT_FOUND if error.http_status == 404 else wire.INVALID_PARAMS
            raise MCPError(code, error.message, data=data) from error
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
        content = wire.TextContent(text=f"{prompt.render(arguments)}\n\n{QUOTED_MATTER}")
        return wire.GetPromptResult(
            description=prompt.description,
            messages=[wire.PromptMessage(role="user", content=content)],
        )


class _ResourceHandlers:
    def __init__(self, resources: ResourceProvider, is_sample: bool) -> None:
        self._provider = resources
        self._is_sample = is_sample
        self.list_resources = _translate_errors(self._list_resources)
        self.read = _translate_errors(self._read)
        self.complete = _translate_errors(self._complete)

    async def list_templates(
        self, context: Context, params: Any
    ) -> wire.ListResourceTemplatesResult:
        return wire.ListResourceTemplatesResult(
            resource_templates=[
                wire.ResourceTemplate(uri_template=template.uri, **_describe_fields(template))
                for template in self._provider.templates
            ]
        )

    async def _list_resources(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        resources, cursor = await self._provider.resources(params.cursor if params else None)
        return wire.ListResourcesResult(
            resources=[
                wire.Resource(uri=resource.uri, **_describe_fields(resource))
                for resource in resources
            ],
            next_cursor=cursor,
        )

    async def _read(
        self, context: Context, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        text = await self._provider.read(params.uri, make_call_from_context(context))
        contents = wire.TextResourceContents(
            uri=params.uri,
            mime_type=_PLAIN_TEXT,
            text=sample.SAMPLE_PREFIX + text if self._is_sample else text,
            _meta=sample.SAMPLE_META if self._is_sample else None,
        )
        return wire.ReadResourceResult(contents=[contents])

    async def _complete(
        self, context: Context, params: wire.CompleteRequestParams
    ) -> wire.CompleteResult:
        arguments = (params.context.arguments if params.context else None) or {}
        values = await self._provider.complete(
            params.argument.name, params.argument.value, arguments
        )
        return wire.CompleteResult(
            completion=wire.Completion(
                values=values[:_MAX_COMPLETIONS],
                total=len(values),
                has_more=len(values) > _MAX_COMPLETIONS,
            )
        )


def _describe_fields(resource: ListedResource | ResourceTemplate) -> dict[str, Any]:
    """Return the fields that the listings of resources and of templates have in common."""
    return {
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": _PLAIN_TEXT,
    }
