"""Links that add a server to a client by one click: each decodes to the entry it stands for."""

import base64
import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from mcp import Client

from readingroom.server.faces import make_face
from readingroom.server.mcp.handlers import build_mcp_server
from tests.requirements import requirement
from tests.support.kit import make_app, open_app_client
from tests.support.specimen import make_specimen

pytestmark = [pytest.mark.anyio, requirement("room:install-links")]

URL = "https://room.example.org"


async def read_links(data: Path, **settings: Any) -> dict[str, str]:
    """The links of the first face, by client."""
    app = make_app(make_specimen(), data=data, public_url=URL, **settings)
    async with open_app_client(app, URL) as web:
        headers = {"Accept": "text/html", "Authorization": "Bearer sesame"}
        page = (await web.get("/connect", headers=headers)).text
    found = re.findall(r'<a href="([^"]+)" aria-label="Add [^"]+ to ([^"]+)">', page)
    return {client: unescape(link) for link, client in found}


def decode(link: str) -> tuple[str, str, dict[str, Any]]:
    """The address of a link, the server's name, and the entry that the client would add."""
    if link.startswith("vscode:"):
        address, _, coded = link.partition("?")
        entry = json.loads(unquote(coded))
        return address, entry.pop("name"), entry
    parts = urlsplit(link)
    query = parse_qs(parts.query, strict_parsing=True)
    (name,), (coded,) = query["name"], query["config"]
    entry = json.loads(base64.b64decode(coded, validate=True))
    return f"{parts.scheme}://{parts.netloc}{parts.path}", name, entry


async def test_each_link_decodes_to_the_entry_of_its_client(tmp_path: Path) -> None:
    links = await read_links(tmp_path)
    name = make_specimen().server_name
    url = f"{URL}/mcp"
    assert {client: decode(link) for client, link in links.items()} == {
        "Cursor": ("cursor://anysphere.cursor-deeplink/mcp/install", name, {"url": url}),
        "VS Code": ("vscode:mcp/install", name, {"type": "http", "url": url}),
        "LM Studio": ("lmstudio://add_mcp", name, {"url": url}),
    }


async def test_where_only_a_key_opens_the_link_leaves_room_for_it_and_holds_none(
    tmp_path: Path,
) -> None:
    links = await read_links(tmp_path, api_key="sesame")
    assert len(links) == 3
    for link in links.values():
        _, _, entry = decode(link)
        assert entry["headers"] == {"Authorization": "Bearer YOUR_KEY"}
        assert "sesame" not in json.dumps(entry)


@requirement("room:host-extras")
async def test_a_public_server_gives_hosts_its_address_and_that_of_its_icon(tmp_path: Path) -> None:
    app = make_app(make_specimen(), data=tmp_path, public_url=URL, api_key="sesame")
    async with Client(build_mcp_server(make_face(make_specimen()), [], public_url=URL)) as client:
        told = client.server_info
    (icon,) = told.icons or []
    assert told.website_url == f"{URL}/mcp"
    assert icon.src.startswith(f"{URL}/assets/")
    async with open_app_client(app, URL) as web:
        shown = await web.get(icon.src.removeprefix(URL))  # without the key
    assert (shown.status_code, shown.headers["content-type"]) == (200, "image/svg+xml")
