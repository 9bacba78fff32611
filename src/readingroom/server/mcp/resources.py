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
from readingroom.protocol.resources import Library, Prompt, Resource, Template
from readingroom.server.faces import Face
from readingroom.server.mcp.calls import Context, call_of

logger = logging.getLogger(__name__)

_MOST = 100  # completions the protocol lets us name
_PLAIN = "text/plain"
_UNREADABLE = -32002  # what the protocol says of a resource that is not there

Params = TypeVar("Params")
Result = TypeVar("Result")
Handler = Callable[[Context, Params], Awaitable[Result]]


def stock(server: Server[Any], face: Face, is_sample: bool) -> None:
    """Give the protocol server the prompts and resources of a face's bases, where it has any."""
    prompts = {prompt.name: prompt for base in face.bases for prompt in base.prompts}
    library = next((base.library for base in face.bases if base.library), None)
    if prompts:
        shown = _Prompts(prompts)
        server.add_request_handler("prompts/list", wire.PaginatedRequestParams, shown.listed)
        server.add_request_handler("prompts/get", wire.GetPromptRequestParams, shown.rendered)
    if library:
        held = _Resources(library, is_sample)
        paged = wire.PaginatedRequestParams
        server.add_request_handler("resources/list", paged, held.listed)
        server.add_request_handler("resources/templates/list", paged, held.templates)
        server.add_request_handler("resources/read", wire.ReadResourceRequestParams, held.read)
        server.add_request_handler("completion/complete", wire.CompleteRequestParams, held.ends)


def _told(handler: Handler[Params, Result]) -> Handler[Params, Result]:
    """An error of ours as the protocol tells one; anything else is logged and not shown."""

    @wraps(handler)
    async def guarded(*args: Any) -> Result:
        try:
            return await handler(*args)
        except MCPError:
            raise
        except KnowledgeError as error:
            told = {"code": error.code, "hint": dict(error.hint)}
            code = _UNREADABLE if error.http_status == 404 else wire.INVALID_PARAMS
            raise MCPError(code, error.message, data=told) from error
        except Exception as error:
            logger.exception("unexpected failure in %s", handler.__name__)
            raise MCPError(wire.INTERNAL_ERROR, "Something went wrong on our side") from error

    return guarded


class _Prompts:
    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        self._prompts = prompts

    async def listed(self, context: Context, params: Any) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(
            prompts=[
                wire.Prompt(
                    name=prompt.name,
                    title=prompt.title,
                    description=prompt.description,
                    arguments=[
                        wire.PromptArgument(
                            name=blank.name,
                            description=blank.description,
                            required=blank.required,
                        )
                        for blank in prompt.blanks
                    ],
                )
                for _, prompt in sorted(self._prompts.items())
            ]
        )

    async def rendered(
        self, context: Context, params: wire.GetPromptRequestParams
    ) -> wire.GetPromptResult:
        prompt = self._prompts.get(params.name)
        if prompt is None:
            raise MCPError(wire.INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}")
        given = params.arguments or {}
        missing = [one.name for one in prompt.blanks if one.required and not given.get(one.name)]
        if missing:
            raise MCPError(wire.INVALID_PARAMS, f"{prompt.name} needs {', '.join(missing)}")
        said = wire.TextContent(text=prompt.render(given))
        return wire.GetPromptResult(
            description=prompt.description,
            messages=[wire.PromptMessage(role="user", content=said)],
        )


class _Resources:
    def __init__(self, library: Library, is_sample: bool) -> None:
        self._library = library
        self._is_sample = is_sample
        self.listed = _told(self._listed)
        self.read = _told(self._read)
        self.ends = _told(self._ends)

    async def templates(self, context: Context, params: Any) -> wire.ListResourceTemplatesResult:
        return wire.ListResourceTemplatesResult(
            resource_templates=[
                wire.ResourceTemplate(uri_template=one.uri, **_about(one))
                for one in self._library.templates
            ]
        )

    async def _listed(
        self, context: Context, params: wire.PaginatedRequestParams | None
    ) -> wire.ListResourcesResult:
        found, after = await self._library.resources(params.cursor if params else None)
        return wire.ListResourcesResult(
            resources=[wire.Resource(uri=one.uri, **_about(one)) for one in found],
            next_cursor=after,
        )

    async def _read(
        self, context: Context, params: wire.ReadResourceRequestParams
    ) -> wire.ReadResourceResult:
        text = await self._library.read(params.uri, call_of(context))
        said = wire.TextResourceContents(
            uri=params.uri,
            mime_type=_PLAIN,
            text=sample.MARK + text if self._is_sample else text,
            _meta=sample.META if self._is_sample else None,
        )
        return wire.ReadResourceResult(contents=[said])

    async def _ends(
        self, context: Context, params: wire.CompleteRequestParams
    ) -> wire.CompleteResult:
        filled = (params.context.arguments if params.context else None) or {}
        begun = params.argument
        found = await self._library.complete(begun.name, begun.value, filled)
        return wire.CompleteResult(
            completion=wire.Completion(
                values=found[:_MOST], total=len(found), has_more=len(found) > _MOST
            )
        )


def _about(one: Resource | Template) -> dict[str, Any]:
    """What a listing says of either."""
    words = {"name": one.name, "title": one.title, "description": one.description}
    return {**words, "mime_type": _PLAIN}
