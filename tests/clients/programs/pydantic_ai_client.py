"""pydantic-ai: its toolset; an error of a tool is a `ModelRetry`, whose text the model reads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.mcp import MCPToolset

from tests.clients.programs import plan


class Session:
    def __init__(self, toolset: MCPToolset) -> None:
        self._toolset = toolset

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in await self._toolset.list_tools()]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str(await self._toolset.direct_call_tool(name, arguments))

    async def read(self, uri: str) -> str:
        return str(await self._toolset.read_resource(uri))

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._toolset.get_prompt(name, arguments)).messages[0].content.content

    async def complete(self, prompt: str, argument: str, prefix: str) -> None:
        """It has no completion."""


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Session]:
    async with MCPToolset(url) as toolset:
        yield Session(toolset)


if __name__ == "__main__":
    plan.main(connect)
