"""Pages for people: what a face is and how to connect to it, and the index of all faces."""

import json
from html import escape

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from readingroom import __version__
from readingroom.bases import BASES
from readingroom.server.auth.keys import Posture
from readingroom.server.auth.policies import MANIFEST, Guards
from readingroom.server.faces import Face
from readingroom.server.http.addresses import address_of
from readingroom.server.pages.clients import CLAUDE_CODE, CURSOR, VSCODE, Client
from readingroom.server.pages.layout import HEADERS, asks_for_html, html_page, table
from readingroom.server.pages.manifest import registry_listing, registry_name
from readingroom.server.settings import ServerSettings


def client_configuration(
    face: Face, address: str, locked: bool, client: Client = CLAUDE_CODE
) -> str:
    """What a client's configuration file needs, ready to paste."""
    url = f"{address}{face.path}/mcp"
    key = "YOUR_KEY" if locked else None
    return json.dumps(client.configuration(face.server_name, url, key), indent=2)


class Pages:
    """The pages of one process, with its addresses as the visitor sees them."""

    def __init__(self, faces: tuple[Face, ...], settings: ServerSettings, guards: Guards) -> None:
        self._faces = faces
        self._guards = guards
        self._settings = settings

    def face(self, face: Face, request: Request) -> Response:
        """`GET /mcp` by a browser."""
        address = address_of(request, self._settings.public_url)
        posture = self._guards.of_face(face).posture
        tools = table(
            (f"<code>{name}</code>", escape(tool.title)) for name, (tool, _) in face.tools.items()
        )
        body = f"""
<p>This is an MCP endpoint: the address an AI client connects to, not a page to read.</p>
<p>Its address is <code>{escape(address + face.path)}/mcp</code>. {_ASKED[posture]}</p>
<h2>Connect</h2>
{_connectors(posture)}
{_shell(face, address, posture)}
{_files(face, address, posture)}
{self._listing(face)}
<h2>Tools</h2>
{tools}
<p><a href="/">All knowledge bases of this server</a></p>
"""
        return html_page(face.title, body)

    def _listing(self, face: Face) -> str:
        if not any(base.josh_auth for base in face.bases):
            return ""
        name, listing = registry_name(self._settings), registry_listing(self._settings)
        return (
            f'<p>In the MCP Registry: <a href="{escape(listing)}">{escape(name)}</a>; '
            f'the manifest is <a href="{MANIFEST}">{MANIFEST}</a>.</p>'
        )

    async def index(self, request: Request) -> Response:
        """`GET /`: what is served here, for people or as JSON."""
        address = address_of(request, self._settings.public_url)
        if not asks_for_html(request.scope):
            return JSONResponse(self.addresses(address), headers=HEADERS)
        faces = table(
            (
                f'<a href="{face.path}/mcp">{escape(face.title)}</a>',
                f"<code>{escape(address + face.path)}/mcp</code>",
            )
            for face in self._faces
        )
        has_rest = any(base.routers for face in self._faces for base in face.bases)
        rest = '<a href="/docs">REST</a> · ' if has_rest else ""
        body = f"""
<p>Official knowledge that AI agents can cite.</p>
{faces}
<p>{rest}<a href="/health">health</a> · <a href="/metrics">metrics</a></p>
"""
        return html_page("Reading Room", body)

    def addresses(self, address: str) -> dict[str, object]:
        return {
            "name": "reading-room",
            "version": __version__,
            "health": f"{address}/health",
            "metrics": f"{address}/metrics",
            "servers": [self._server(face, address) for face in self._faces],
        }

    def _server(self, face: Face, address: str) -> dict[str, object]:
        urls = {"mcp": f"{address}{face.path}/mcp"}
        if face.sse:
            urls["sse"] = f"{address}{face.path}/sse"
        return {
            "name": face.server_name,
            "title": face.title,
            "bases": [base.name for base in face.bases if base.name in BASES],  # not the desk
            "access": self._guards.of_face(face).posture,
            **urls,
        }


_ASKED: dict[Posture, str] = {
    "open": "It is open: no key, no sign-in.",
    "key": "It asks for a key: put yours in place of <code>YOUR_KEY</code>.",
    "oauth": "It asks you to sign in; clients that know OAuth open your browser for that.",
}


def _connectors(posture: Posture) -> str:
    """Clients that call from their own cloud: an address typed into a form."""
    keyed = "These forms take no key, so they cannot connect while one is asked for."
    return f"""
<p><b>Claude</b> (web, desktop, mobile) and <b>Cowork</b>: ServerSettings, Connectors, Add custom
connector, with the address above. In a team the owner adds it once, under the organisation's
connectors, for everybody.</p>
<p><b>ChatGPT</b>: Settings, Connectors, Advanced, switch on developer mode; then create a connector
with the address above.</p>
<p>They call from outside: the address must be public and served over https.
{keyed if posture == "key" else ""}</p>
"""


def _shell(face: Face, address: str, posture: Posture) -> str:
    header = ' --header "Authorization: Bearer YOUR_KEY"' if posture == "key" else ""
    line = f"claude mcp add --transport http {face.server_name} {address}{face.path}/mcp{header}"
    return f"<p><b>Claude Code</b>, from the shell</p><pre>{escape(line)}</pre>"


def _files(face: Face, address: str, posture: Posture) -> str:
    """Clients that read a file: what to paste into it."""
    return "".join(
        f"<p><b>{client.title}</b>, in <code>{client.file}</code></p>"
        f"<pre>{escape(client_configuration(face, address, posture == 'key', client))}</pre>"
        for client in (CLAUDE_CODE, CURSOR, VSCODE)
    )
