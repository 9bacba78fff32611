"""Pages for people: what a face is and how to connect to it, and the index of all faces."""

import json
from collections.abc import Iterable
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from readingroom import __version__
from readingroom.core.settings import Settings
from readingroom.server.addresses import address_of
from readingroom.server.catalogue import Face
from readingroom.server.guards import Guards

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Vary": "Accept",
}

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
pre, code {{ background: #f4f4f2; border-radius: 4px; font-size: .9em }}
pre {{ padding: .8rem; overflow: auto }}
code {{ padding: .1em .3em }}
td {{ padding: .2rem 1rem .2rem 0; vertical-align: top }}
@media (prefers-color-scheme: dark) {{
  body {{ background: #1b1b1a; color: #e8e6e1 }}
  a {{ color: #9cc4ff }}
  pre, code {{ background: #2a2a28 }}
}}
</style>
<h1>{title}</h1>
{body}
<p><small>Reading Room {version}</small></p>
</html>
"""


def client_configuration(face: Face, address: str, locked: bool) -> str:
    """What a client's configuration file needs, ready to paste."""
    server: dict[str, object] = {"type": "http", "url": f"{address}{face.path}/mcp"}
    if locked:
        server["headers"] = {"Authorization": "Bearer YOUR_KEY"}
    return json.dumps({"mcpServers": {face.server_name: server}}, indent=2)


class Pages:
    """The pages of one process, with its addresses as the visitor sees them."""

    def __init__(self, faces: tuple[Face, ...], settings: Settings, guards: Guards) -> None:
        self._faces = faces
        self._guards = guards
        self._public_url = settings.public_url

    def face(self, face: Face, request: Request) -> Response:
        """`GET /mcp` by a browser."""
        address = address_of(request, self._public_url)
        locked = self._guards.of_face(face).posture == "key"
        tools = _rows((name, tool.title) for name, (tool, _) in face.shelf.items())
        body = f"""
<p>This is an MCP endpoint: the address an AI client connects to, not a page to read.</p>
<p>Its address is <code>{escape(address + face.path)}/mcp</code>.</p>
<h2>Connect</h2>
<p><b>Claude Code, Cursor and others that read <code>.mcp.json</code></b></p>
<pre>{escape(client_configuration(face, address, locked))}</pre>
<p><b>Claude Code</b>, from the shell</p>
<pre>claude mcp add --transport http {face.server_name} {escape(address + face.path)}/mcp</pre>
<p><b>VS Code</b> uses <code>servers</code> in place of <code>mcpServers</code>, in
<code>.vscode/mcp.json</code>.</p>
<p><b>Claude and ChatGPT on the web</b>: Settings, Connectors, add a custom connector with the
address above. They call from outside, so the address must be public and served over https.</p>
<h2>Tools</h2>
{tools}
<p><a href="/">All knowledge bases of this server</a></p>
"""
        return _html(face.title, body)

    async def index(self, request: Request) -> Response:
        """`GET /`: what is served here, for people or as JSON."""
        address = address_of(request, self._public_url)
        if "text/html" not in request.headers.get("accept", ""):
            return JSONResponse(self.addresses(address), headers=_HEADERS)
        faces = _rows(
            (f'<a href="{face.path}/mcp">{escape(face.title)}</a>', f"{address}{face.path}/mcp")
            for face in self._faces
        )
        body = f"""
<p>Official knowledge that AI agents can cite.</p>
{faces}
<p><a href="/health">health</a> · <a href="/metrics">metrics</a></p>
"""
        return _html("Reading Room", body)

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
            "bases": [base.name for base in face.bases],
            "access": self._guards.of_face(face).posture,
            **urls,
        }


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td>{left}</td><td><code>{right}</code></td></tr>" for left, right in rows
    )
    return f"<table>{cells}</table>"


def _html(title: str, body: str) -> Response:
    page = _PAGE.format(title=escape(title), body=body, version=__version__)
    return HTMLResponse(page, headers=_HEADERS)
