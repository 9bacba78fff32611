"""How to configure each client that reads a file: the one place that knows their formats."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True, slots=True)
class ClientFormat:
    """How one client is configured."""

    title: str
    configuration_path: str
    """Its configuration file in a project's folder."""
    servers_key: str
    """The key under which its servers are listed."""
    variable_template: str
    """How its file refers to a variable of the environment."""
    names_transport_type: bool
    """Whether an entry names its transport."""

    def build_entry(self, url: str, bearer_key: str | None) -> dict[str, Any]:
        """Return the entry of a server over HTTP, with the key it requires."""
        configuration_entry: dict[str, Any] = {"type": "http"} if self.names_transport_type else {}
        configuration_entry["url"] = url
        if bearer_key:
            configuration_entry["headers"] = {"Authorization": f"Bearer {bearer_key}"}
        return configuration_entry

    def build_configuration(
        self, server_name: str, url: str, bearer_key: str | None
    ) -> dict[str, Any]:
        """Return the complete content of its file."""
        return {self.servers_key: {server_name: self.build_entry(url, bearer_key)}}


CLAUDE_CODE = ClientFormat("Claude Code", ".mcp.json", "mcpServers", "${%s}", True)
CURSOR = ClientFormat("Cursor", ".cursor/mcp.json", "mcpServers", "${env:%s}", False)
VSCODE = ClientFormat("VS Code", ".vscode/mcp.json", "servers", "${env:%s}", True)
LM_STUDIO = ClientFormat("LM Studio", "mcp.json", "mcpServers", "${%s}", False)


def _make_base64_link(
    link_prefix: str, server_name: str, configuration_entry: dict[str, Any]
) -> str:
    """Return a link with the entry in base64, as Cursor and LM Studio read it."""
    # The ordinary alphabet, which both decode; its `+` and `=` are escaped in the address.
    base64_entry = base64.b64encode(json.dumps(configuration_entry).encode()).decode()
    return f"{link_prefix}?{urlencode({'name': server_name, 'config': base64_entry})}"


def _make_cursor_link(server_name: str, configuration_entry: dict[str, Any]) -> str:
    return _make_base64_link(
        "cursor://anysphere.cursor-deeplink/mcp/install", server_name, configuration_entry
    )


def _make_vscode_link(server_name: str, configuration_entry: dict[str, Any]) -> str:
    # VS Code reads the whole query as JSON, and not as parameters.
    entry_with_name = {"name": server_name, **configuration_entry}
    return f"vscode:mcp/install?{quote(json.dumps(entry_with_name), safe='')}"


def _make_lm_studio_link(server_name: str, configuration_entry: dict[str, Any]) -> str:
    return _make_base64_link("lmstudio://add_mcp", server_name, configuration_entry)


_FORMATS_AND_LINK_MAKERS: tuple[tuple[ClientFormat, Callable[[str, dict[str, Any]], str]], ...] = (
    (CURSOR, _make_cursor_link),
    (VSCODE, _make_vscode_link),
    (LM_STUDIO, _make_lm_studio_link),
)


def make_install_links(server_name: str, url: str, bearer_key: str | None) -> list[tuple[str, str]]:
    """Return the clients that add a server by one click on a link, each with its link."""
    return [
        (client_format.title, make_link(server_name, client_format.build_entry(url, bearer_key)))
        for client_format, make_link in _FORMATS_AND_LINK_MAKERS
    ]
