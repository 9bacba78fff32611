"""`/server.json`: the federal server as the MCP Registry lists it."""

from functools import partial
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom import __version__
from readingroom.server.auth.policies import MANIFEST, Guards
from readingroom.server.faces import Face
from readingroom.server.http.addresses import address_of, is_loopback
from readingroom.server.settings import ServerSettings

_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_REGISTRY = "https://registry.modelcontextprotocol.io/v0.1/servers?search="
_DESCRIPTION = "U.S. bills, laws, rules, votes, members and committees of Congress, with citations."
_PUBLISHER = "io.modelcontextprotocol.registry/publisher-provided"  # the registry keeps 4 KB of it


def registry_name(settings: ServerSettings) -> str:
    """The name under which the registry knows the server."""
    return f"io.github.{settings.registry_org}/josh"


def registry_listing(settings: ServerSettings) -> str:
    """Where the registry lists it, once it is published."""
    return _REGISTRY + quote(registry_name(settings), safe="")


def manifest_routes(
    faces: tuple[Face, ...], settings: ServerSettings, guards: Guards
) -> list[BaseRoute]:
    """The manifest's route, where the federal base has a face of its own."""
    federal = [face for face in faces if all(base.josh_auth for base in face.bases)]
    return [Route(MANIFEST, partial(_manifest, face, settings, guards)) for face in federal]


async def _manifest(
    face: Face, settings: ServerSettings, guards: Guards, request: Request
) -> Response:
    address = address_of(request, settings.public_url)
    endpoint = f"{address}{face.path}/mcp"
    tools = [{"name": name, "title": tool.title} for name, (tool, _) in face.tools.items()]
    told: dict[str, object] = {
        "$schema": _SCHEMA,
        "name": registry_name(settings),
        "title": face.title,
        "description": _DESCRIPTION,
        "version": __version__,
        "websiteUrl": endpoint,  # for browsers it is the page on how to install
        "_meta": {_PUBLISHER: {"tools": tools, "documentation": endpoint}},
    }
    if _is_public(address):
        told["remotes"] = [_remote(endpoint, guards.of_face(face).posture == "key")]
    return JSONResponse(told)


def _is_public(address: str) -> bool:
    """Whether a client elsewhere can call: the registry lists no other address."""
    parts = urlsplit(address)
    return parts.scheme == "https" and not is_loopback(parts.hostname or "localhost")


def _remote(endpoint: str, locked: bool) -> dict[str, object]:
    remote: dict[str, object] = {"type": "streamable-http", "url": endpoint}
    if locked:
        header = {
            "name": "Authorization",
            "description": "The word Bearer and a key of this server",
            "isRequired": True,
            "isSecret": True,
        }
        remote["headers"] = [header]
    return remote
