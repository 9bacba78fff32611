"""How to configure each client that reads a file: the one place that knows their formats."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Client:
    """How one client is configured."""

    title: str
    file: str
    """Its configuration file in a project's folder."""
    section: str
    """The key under which its servers are listed."""
    variable: str
    """How its file refers to a variable of the environment."""
    typed: bool
    """Whether an entry names its transport."""

    def build_entry(self, url: str, bearer_key: str | None) -> dict[str, Any]:
        """Return the entry of a server over HTTP, with the key it requires."""
        entry: dict[str, Any] = {"type": "http"} if self.typed else {}
        entry["url"] = url
        if bearer_key:
            entry["headers"] = {"Authorization": f"Bearer {bearer_key}"}
        return entry

    def build_configuration(
        self, server_name: str, url: str, bearer_key: str | None
    ) -> dict[str, Any]:
        """Return the complete content of its file."""
        return {self.section: {server_name: self.build_entry(url, bearer_key)}}


CLAUDE_CODE = Client("Claude Code", ".mcp.json", "mcpServers", "${%s}", True)
CURSOR = Client("Cursor", ".cursor/mcp.json", "mcpServers", "${env:%s}", False)
VSCODE = Client("VS Code", ".vscode/mcp.json", "servers", "${env:%s}", True)
