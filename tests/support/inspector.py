"""The official MCP Inspector in a browser: a host of views that we did not write."""

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Frame, Page

from tests import node
from tests.support.kit import clean_environment
from tests.support.processes import find_free_port

_TOKEN = "inspector-token-of-a-test"
_SERVER_NAME = "deep-link"
"""What the Inspector calls the server of a link; the catalog says of it which wire it speaks."""
ERAS = ("legacy", "modern")
"""The wires, as the Inspector names them."""


@dataclass(frozen=True)
class Inspector:
    """A running Inspector, connected to one server over one wire."""

    origin: str
    server_url: str
    era: str

    async def open_view(self, page: Page, tool: str, arguments: dict[str, Any]) -> Frame:
        """Call a tool in the tab of apps, and return the frame in which its view is drawn."""
        argument_json = json.dumps(arguments).encode()
        query = {
            "serverUrl": self.server_url,
            "transport": "http",
            "autoConnect": _TOKEN,
            "openApp": tool,
            "appArgs": base64.urlsafe_b64encode(argument_json).decode().rstrip("="),
        }
        await page.goto(f"{self.origin}/?{urlencode(query)}")
        await page.get_by_test_id("open-app").click()
        view = page.frame_locator("iframe").frame_locator("iframe")
        await view.get_by_role("button", name="Ask about this").wait_for()
        frames = [frame for frame in page.frames if frame.url == "about:srcdoc"]
        assert len(frames) == 1, [frame.url for frame in page.frames]
        return frames[0]


@contextmanager
def run_inspector(server_url: str, era: str, home: Path) -> Iterator[Inspector]:
    """The Inspector's own web server on a free port, ready when this is entered."""
    catalog = home / "catalog.json"
    entry = {"type": "streamable-http", "url": server_url, "protocolEra": era}
    catalog.write_text(json.dumps({"mcpServers": {_SERVER_NAME: entry}}))
    for _ in range(5):  # another program may take the port before it does
        port = find_free_port()
        process = _start(catalog, home, port)
        try:
            assert process.stdout is not None
            if any("up and running" in line for line in process.stdout):
                yield Inspector(f"http://127.0.0.1:{port}", server_url, era)
                return
        finally:
            process.kill()
            process.communicate()
    raise AssertionError("the Inspector did not start")


def _start(catalog: Path, home: Path, port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        node.make_command(node.INSPECTOR, "--web", "--catalog", str(catalog)),
        env=clean_environment(
            {
                "HOME": str(home),
                "HOST": "127.0.0.1",
                "CLIENT_PORT": str(port),
                "MCP_SANDBOX_PORT": "0",
                "MCP_APP_ORIGIN_PORT": "0",
                "MCP_AUTO_OPEN_ENABLED": "false",
                "MCP_INSPECTOR_API_TOKEN": _TOKEN,
                "MCP_INSPECTOR_SECRET_STORE": "memory",
            }
        ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
