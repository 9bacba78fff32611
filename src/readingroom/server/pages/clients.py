"""How each client that reads a file is told of a server: the one place that knows their forms."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Client:
    """How one client is configured."""

    title: str
    file: str
    """Its file in a project's folder."""
    section: str
    """Under which name its servers stand."""
    variable: str
    """How its file refers to a variable of the environment."""
    typed: bool
    """Whether an entry says of which kind it is."""

    def entry(self, url: str, key: str | None) -> dict[str, Any]:
        """A server over HTTP, with the key it asks for."""
        entry: dict[str, Any] = {"type": "http"} if self.typed else {}
        entry["url"] = url
        if key:
            entry["headers"] = {"Authorization": f"Bearer {key}"}
        return entry

    def configuration(self, name: str, url: str, key: str | None) -> dict[str, Any]:
        """All that its file needs."""
        return {self.section: {name: self.entry(url, key)}}


CLAUDE_CODE = Client("Claude Code", ".mcp.json", "mcpServers", "${%s}", True)
CURSOR = Client("Cursor", ".cursor/mcp.json", "mcpServers", "${env:%s}", False)
VSCODE = Client("VS Code", ".vscode/mcp.json", "servers", "${env:%s}", True)
