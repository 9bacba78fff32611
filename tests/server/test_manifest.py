"""How people and registries find the federal server: `/server.json`, and the page at `/mcp`."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from readingroom import __version__
from readingroom.core.errors import InvalidSetting
from readingroom.server.app import build_app
from readingroom.server.auth.bearer import KeyAuth
from readingroom.server.auth.policies import AuthPolicies
from readingroom.server.faces import make_face
from readingroom.settings import load_settings
from readingroom.storage.grants import GrantStore
from readingroom.storage.keys import KeyRing
from tests.requirements import requirement
from tests.support.federal.base import make_base
from tests.support.kit import POST, make_app, make_rpc, open_app_client

pytestmark = pytest.mark.anyio

PUBLIC = "https://room.example.org"
OAUTH = {
    "josh_auth": "oauth",
    "josh_oauth_issuer": "https://id.example.org",
    "josh_oauth_audience": (f"{PUBLIC}/mcp",),
}
POSTURES: dict[str, dict[str, Any]] = {
    "open": {"josh_auth": "disabled"},
    "key": {"api_key": "sesame"},
    "oauth": OAUTH,
}


async def get(data: Path, path: str, url: str = PUBLIC, **settings: Any) -> Any:
    if url == PUBLIC:
        settings["public_url"] = PUBLIC
    async with open_app_client(make_app(make_base(data), data=data, **settings), url) as web:
        return await web.get(path, headers={"Accept": "text/html, application/json"})


def list_objections(manifest: dict[str, Any], folder: Path) -> str:
    """What the registry's schema and rules have against a manifest."""
    (folder / "server.json").write_text(json.dumps(manifest), "utf-8")
    command = [sys.executable, "-m", "skillsaw", "lint", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "Repo type: mcp-registry" in done.stdout, done.stdout + done.stderr
    return "" if done.returncode == 0 else done.stdout


@requirement("federal:AC-27", "federal:manifest")
@pytest.mark.parametrize("posture", POSTURES)
async def test_the_registry_takes_the_manifest_in_every_posture(
    tmp_path: Path, posture: str
) -> None:
    found = await get(tmp_path, "/server.json", registry_org="acme", **POSTURES[posture])
    manifest = found.json()
    folder = tmp_path / "published"
    folder.mkdir()
    assert list_objections(manifest, folder) == ""
    assert manifest["name"] == "io.github.acme/josh"
    assert manifest["version"] == __version__
    assert 0 < len(manifest["description"]) <= 100 and "\n" not in manifest["description"]
    (remote,) = manifest["remotes"]
    assert (remote["type"], remote["url"]) == ("streamable-http", f"{PUBLIC}/mcp")
    assert ("headers" in remote) is (posture == "key")
    (icon,) = manifest["icons"]
    assert icon["src"].startswith(f"{PUBLIC}/assets/")


@requirement("federal:manifest")
async def test_a_key_is_not_required_where_apps_can_sign_in(tmp_path: Path) -> None:
    faces = (make_face(make_base(tmp_path)),)
    settings = load_settings({"data": tmp_path, "public_url": PUBLIC, "api_key": "sesame"}, {})
    key_auth = KeyAuth("sesame", KeyRing(tmp_path), GrantStore(tmp_path))
    app = build_app(faces, settings, AuthPolicies(faces, settings, key_auth))
    async with open_app_client(app, PUBLIC) as web:
        manifest = (await web.get("/server.json")).json()
    folder = tmp_path / "published"
    folder.mkdir()
    assert list_objections(manifest, folder) == ""
    (header,) = manifest["remotes"][0]["headers"]
    assert (header["name"], header["isRequired"]) == ("Authorization", False)


@requirement("federal:manifest")
async def test_a_server_that_only_this_machine_reaches_has_no_remote_to_list(
    tmp_path: Path,
) -> None:
    manifest = (await get(tmp_path, "/server.json", "http://127.0.0.1")).json()
    folder = tmp_path / "published"
    folder.mkdir()
    assert "remotes" not in manifest
    assert list_objections(manifest, folder) == ""
    manifest["name"] = "josh"
    assert "name" in list_objections(manifest, folder)  # the check does see a fault


@requirement("federal:AC-27", "federal:manifest")
async def test_the_manifest_lists_the_tools_and_links_the_install_page(tmp_path: Path) -> None:
    app = make_app(make_base(tmp_path), data=tmp_path)
    async with open_app_client(app) as web:
        manifest = (await web.get("/server.json")).json()
        listing = await web.post("/mcp", json=make_rpc("tools/list"), headers=POST)
        page = await web.get(manifest["websiteUrl"], headers={"Accept": "text/html"})
    provided = manifest["_meta"]["io.modelcontextprotocol.registry/publisher-provided"]
    listed = [(tool["name"], tool["title"]) for tool in listing.json()["result"]["tools"]]
    assert [(tool["name"], tool["title"]) for tool in provided["tools"]] == listed
    assert len(json.dumps(provided)) <= 4096  # the registry keeps no more
    assert provided["documentation"] == manifest["websiteUrl"]
    assert "<h2>Connect</h2>" in page.text


@requirement("federal:manifest")
@pytest.mark.parametrize("org", ["", "two words", "a/b", "-dash", "dash-", "x" * 40, "ö"])
def test_what_can_be_no_organisation_is_refused(org: str) -> None:
    with pytest.raises(InvalidSetting, match="registry-org"):
        load_settings({"registry_org": org}, {})


@requirement("federal:install", "federal:landing")
@pytest.mark.parametrize("posture", POSTURES)
async def test_the_page_has_what_each_client_needs(tmp_path: Path, posture: str) -> None:
    page = (await get(tmp_path, "/mcp", registry_org="acme", **POSTURES[posture])).text
    for name in ("Claude", "Cowork", "ChatGPT", "Cursor", "VS Code", "Claude Code"):
        assert f"<b>{name}</b>" in page
    shell, *files = [unescape(text) for text in re.findall("<pre[^>]*>(.*?)</pre>", page, re.S)]
    assert shell.startswith(f"claude mcp add --transport http josh {PUBLIC}/mcp")
    entries = [json.loads(file) for file in files]
    assert [list(entry) for entry in entries] == [["mcpServers"], ["mcpServers"], ["servers"]]
    for entry in entries:
        (server,) = next(iter(entry.values())).values()
        assert server["url"] == f"{PUBLIC}/mcp"
        assert ("headers" in server) is (posture == "key")
    assert ("--header" in shell) is (posture == "key")


@requirement("federal:install")
async def test_the_page_links_the_listing_and_the_manifest(tmp_path: Path) -> None:
    page = (await get(tmp_path, "/mcp", registry_org="acme")).text
    links = [unquote(link) for link in re.findall('href="(.*?)"', page)]
    search = "https://registry.modelcontextprotocol.io/v0.1/servers?search=io.github.acme/josh"
    assert search in links
    assert "/server.json" in links


@requirement("federal:install")
async def test_the_page_of_rest_leads_to_the_install_page(tmp_path: Path) -> None:
    document = (await get(tmp_path, "/openapi.json")).json()
    assert "(/mcp)" in document["info"]["description"]
