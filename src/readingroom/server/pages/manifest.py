"""`/server.json`: the federal server as the MCP Registry lists it."""

from functools import partial
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom import __version__
from readingroom.server.auth.policies import MANIFEST_PATH, AuthPolicies, is_josh_base
from readingroom.server.faces import Face
from readingroom.server.http.addresses import get_server_address, is_loopback
from readingroom.server.settings import ServerSettings
from readingroom.web.assets import get_asset_address

_MANIFEST_SCHEMA_URL = (
    "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
)
_REGISTRY_SEARCH_URL = "https://registry.modelcontextprotocol.io/v0.1/servers?search="
_SERVER_DESCRIPTION = (
    "U.S. bills, laws, rules, votes, members and committees of Congress, with citations."
)
_PUBLISHER_META_KEY = (
    "io.modelcontextprotocol.registry/publisher-provided"  # the registry keeps 4 KB of it
)


def make_registry_name(settings: ServerSettings) -> str:
    """Return the name under which the registry lists the server."""
    return f"io.github.{settings.registry_org}/josh"


def make_registry_url(settings: ServerSettings) -> str:
    """Return the address of its entry in the registry, once it is published."""
    return _REGISTRY_SEARCH_URL + quote(make_registry_name(settings), safe="")


def build_manifest_routes(
    server_faces: tuple[Face, ...], settings: ServerSettings, auth_policies: AuthPolicies
) -> list[BaseRoute]:
    """Return the manifest's route, where the federal base has a face of its own."""
    federal_faces = [
        server_face for server_face in server_faces if all(map(is_josh_base, server_face.bases))
    ]
    return [
        Route(MANIFEST_PATH, partial(_show_manifest, server_face, settings, auth_policies))
        for server_face in federal_faces
    ]


async def _show_manifest(
    server_face: Face, settings: ServerSettings, auth_policies: AuthPolicies, request: Request
) -> Response:
    server_address = get_server_address(request, settings.public_url)
    mcp_url = f"{server_address}{server_face.path}/mcp"
    tool_entries = [
        {"name": tool_name, "title": tool.title}
        for tool_name, (tool, _) in server_face.tools_and_dialects_by_name.items()
    ]
    server_manifest: dict[str, object] = {
        "$schema": _MANIFEST_SCHEMA_URL,
        "name": make_registry_name(settings),
        "title": server_face.title,
        "description": _SERVER_DESCRIPTION,
        "version": __version__,
        "websiteUrl": mcp_url,  # browsers get the page on how to connect
        "_meta": {_PUBLISHER_META_KEY: {"tools": tool_entries, "documentation": mcp_url}},
    }
    if _is_public_address(server_address):
        needs_key = auth_policies.get_face_policy(server_face).access == "key"
        can_sign_in = auth_policies.can_connect_apps(request)
        server_manifest["remotes"] = [_make_remote_entry(mcp_url, needs_key, can_sign_in)]
        # The registry takes icons by an https address only.
        icon_url = server_address + get_asset_address("icon.svg")
        server_manifest["icons"] = [
            {"src": icon_url, "mimeType": "image/svg+xml", "sizes": ["any"]}
        ]
    return JSONResponse(server_manifest)


def _is_public_address(server_address: str) -> bool:
    """Whether clients elsewhere can reach it: the registry lists no other address."""
    url_parts = urlsplit(server_address)
    return url_parts.scheme == "https" and not is_loopback(url_parts.hostname or "localhost")


def _make_remote_entry(mcp_url: str, needs_key: bool, can_sign_in: bool) -> dict[str, object]:
    remote_entry: dict[str, object] = {"type": "streamable-http", "url": mcp_url}
    if needs_key:
        authorization_header = {
            "name": "Authorization",
            "description": "The word Bearer and a key of this server",
            "isRequired": not can_sign_in,
            "isSecret": True,
        }
        remote_entry["headers"] = [authorization_header]
    return remote_entry
