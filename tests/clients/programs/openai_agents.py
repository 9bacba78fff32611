"""openai-agents: its server object, as its agents use it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStreamableHttp

from tests.clients.programs import plan


class Session:
    def __init__(self, server: MCPServerStreamableHttp) -> None:
        self._server = server

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in await self._server.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return "\n".join(
            item.text for item in (await self._server.call_tool(name, arguments)).content
        )

    async def read(self, uri: str) -> str:
        return (await self._server.read_resource(uri)).contents[0].text

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._server.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt: str, argument: str, prefix: str) -> None:
        """It has no completion."""


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Session]:
    async with MCPServerStreamableHttp(
        {"url": url}, client_session_timeout_seconds=300, cache_tools_list=True
    ) as server:
        yield Session(server)


if __name__ == "__main__":
    plan.main(connect)
