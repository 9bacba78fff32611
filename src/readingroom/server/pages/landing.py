"""Pages for people: what a face is and how to connect to it, and the index of all faces."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from readingroom import __version__
from readingroom.bases import BASES
from readingroom.protocol.pages import RecentEvent, list_no_recent_events
from readingroom.server.auth.bearer import AccessKind
from readingroom.server.auth.policies import MANIFEST_PATH, AuthPolicies, is_josh_base
from readingroom.server.faces import Face
from readingroom.server.http.addresses import get_server_address
from readingroom.server.pages.clients import (
    CLAUDE_CODE,
    CURSOR,
    VSCODE,
    ClientFormat,
    make_install_links,
)
from readingroom.server.pages.frame import MenuEntry, accepts_html, get_frame, render_page
from readingroom.server.pages.manifest import make_registry_name, make_registry_url
from readingroom.server.settings import ServerSettings


def format_client_configuration(
    server_face: Face,
    server_address: str,
    needs_key: bool,
    client_format: ClientFormat = CLAUDE_CODE,
) -> str:
    """Return the text to paste into a client's configuration file."""
    mcp_url = f"{server_address}{server_face.path}/mcp"
    key_placeholder = "YOUR_KEY" if needs_key else None
    return json.dumps(
        client_format.build_configuration(server_face.server_name, mcp_url, key_placeholder),
        indent=2,
    )


class LandingPages:
    """The landing pages of one process, with its addresses as the visitor sees them."""

    def __init__(
        self,
        server_faces: tuple[Face, ...],
        settings: ServerSettings,
        auth_policies: AuthPolicies,
        menu_entries: Sequence[MenuEntry] = (),
        list_recent_events: Callable[[], Awaitable[Sequence[RecentEvent]]] = list_no_recent_events,
    ) -> None:
        """`menu_entries`: pages that the home page leads to; `list_recent_events`: its news."""
        self._list_recent_events = list_recent_events
        self._faces = server_faces
        self._menu_entries = menu_entries
        self._policies = auth_policies
        self._settings = settings

    def show_face(self, server_face: Face, request: Request) -> Response:
        """`GET /mcp` by a browser: what this endpoint is, and how clients connect to it."""
        server_address = get_server_address(request, self._settings.public_url)
        face_access = self._policies.get_face_policy(server_face).access
        needs_key = face_access == "key"
        mcp_url = f"{server_address}{server_face.path}/mcp"
        key_header_option = ' --header "Authorization: Bearer YOUR_KEY"' if needs_key else ""
        return render_page(
            request.scope,
            "face.html",
            server_face.title,
            url=mcp_url,
            access=face_access,
            has_connectors=self._policies.can_connect_apps(request),
            shell_command=f"claude mcp add --transport http {server_face.server_name} "
            f"{mcp_url}{key_header_option}",
            clients=[
                {
                    "title": client_format.title,
                    "file": client_format.configuration_path,
                    "configuration": format_client_configuration(
                        server_face, server_address, needs_key, client_format
                    ),
                }
                for client_format in (CLAUDE_CODE, CURSOR, VSCODE)
            ],
            registry=self._make_registry_entry(server_face),
            tools=self._list_tools(server_face, face_access),
        )

    def _list_tools(self, server_face: Face, face_access: AccessKind) -> list[tuple[str, str]]:
        """Return the names and titles of a face's tools that whoever opens its page may know.

        Where the federal base is served the page is open to strangers, who need a key for the rest.
        """
        josh_bases = filter(is_josh_base, server_face.bases)
        open_tool_names = {
            base_tool.name for knowledge_base in josh_bases for base_tool in knowledge_base.tools
        }
        is_page_public = face_access != "open" and bool(open_tool_names)
        return [
            (tool_name, base_tool.title)
            for tool_name, (base_tool, _) in server_face.tools_and_dialects_by_name.items()
            if tool_name in open_tool_names or not is_page_public
        ]

    def _make_registry_entry(self, server_face: Face) -> dict[str, str] | None:
        if not any(map(is_josh_base, server_face.bases)):
            return None
        return {
            "name": make_registry_name(self._settings),
            "listing": make_registry_url(self._settings),
            "manifest": MANIFEST_PATH,
        }

    async def show_index(self, request: Request) -> Response:
        """`GET /`: what is served here, for people or as JSON."""
        server_address = get_server_address(request, self._settings.public_url)
        if not accepts_html(request.scope):
            return JSONResponse(self.build_server_index(server_address), headers={"Vary": "Accept"})
        menu_paths = {menu_entry.path for menu_entry in self._menu_entries}
        visitor = get_frame(request.scope).browser_auth.identify_visitor(request.scope)
        visible_menu_entries = [
            menu_entry
            for menu_entry in self._menu_entries
            if menu_entry.summary and visitor and visitor.has_role(menu_entry.role)
        ]
        return render_page(
            request.scope,
            "index.html",
            "Reading Room",
            address=server_address,
            faces=self._faces,
            has_rest=self._has_rest_routes,
            can_search=visitor is not None and "/search" in menu_paths,
            entries=visible_menu_entries,
            is_open=_can_browser_open(request),
            # Strangers may see the addresses, and nothing of what is kept here.
            events=await self._list_recent_events() if visitor else (),
        )

    async def show_connect(self, request: Request) -> Response:
        """`GET /connect`: every address that an AI client can be given."""
        return render_page(
            request.scope,
            "connect.html",
            "Connect an AI client",
            address=get_server_address(request, self._settings.public_url),
            faces=[
                (
                    server_face,
                    self._policies.get_face_policy(server_face).access,
                    self._make_install_links(server_face, request),
                )
                for server_face in self._faces
            ],
            has_rest=self._has_rest_routes,
            is_open=_can_browser_open(request),
        )

    def _make_install_links(self, server_face: Face, request: Request) -> list[tuple[str, str]]:
        """Return the links that add a face to a client; with a sign-in they need no key."""
        # No real key: whoever the page is sent on to must not get it.
        needs_key = self._policies.get_face_policy(server_face).access == "key"
        bearer_key = (
            "YOUR_KEY" if needs_key and not self._policies.can_connect_apps(request) else None
        )
        mcp_url = f"{get_server_address(request, self._settings.public_url)}{server_face.path}/mcp"
        return make_install_links(server_face.server_name, mcp_url, bearer_key)

    async def show_llms_txt(self, request: Request) -> Response:
        """`GET /llms.txt`: what is served here, for a model that was given the address."""
        server_address = get_server_address(request, self._settings.public_url)
        text_lines = ["# Reading Room", "", "> Official knowledge that AI agents can cite.", ""]
        text_lines += ["## MCP", ""]
        text_lines += [
            f"- [{server_face.title}]({server_address}{server_face.path}/mcp)"
            for server_face in self._faces
        ]
        text_lines += ["", "## Pages", ""]
        text_lines += [
            f"- [{menu_entry.label}]({server_address}{menu_entry.path}): {menu_entry.summary}"
            for menu_entry in self._menu_entries
            if menu_entry.summary
        ]
        if self._has_rest_routes:
            text_lines += ["", "## REST", "", f"- [OpenAPI]({server_address}/openapi.json)"]
        return PlainTextResponse("\n".join([*text_lines, ""]))

    @property
    def _has_rest_routes(self) -> bool:
        return any(
            knowledge_base.get_routers()
            for server_face in self._faces
            for knowledge_base in server_face.bases
        )

    def build_server_index(self, server_address: str) -> dict[str, Any]:
        """Return the index as JSON: the address and the access of every face."""
        return {
            "name": "reading-room",
            "version": __version__,
            "health": f"{server_address}/health",
            "metrics": f"{server_address}/metrics",
            "servers": [
                self._build_server_entry(server_face, server_address) for server_face in self._faces
            ],
        }

    def _build_server_entry(self, server_face: Face, server_address: str) -> dict[str, Any]:
        url_by_transport = {"mcp": f"{server_address}{server_face.path}/mcp"}
        if server_face.serves_sse:
            url_by_transport["sse"] = f"{server_address}{server_face.path}/sse"
        return {
            "name": server_face.server_name,
            "title": server_face.title,
            "bases": [
                knowledge_base.name
                for knowledge_base in server_face.bases
                if knowledge_base.name in BASES
            ],  # not the desk
            "access": self._policies.get_face_policy(server_face).access,
            **url_by_transport,
        }


def _can_browser_open(request: Request) -> bool:
    """Whether a browser can open what programs use: a session opens pages only."""
    visitor = get_frame(request.scope).browser_auth.identify_visitor(request.scope)
    return visitor is not None and "user" not in request.scope
