"""langchain-mcp-adapters, on the Python SDK's version 1: its tools as an agent calls them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools

from tests.clients.programs import plan


class Session:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def list_tools(self) -> list[str]:
        self._tools = {tool.name: tool for tool in await load_mcp_tools(self._client)}
        return list(self._tools)

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return str(await self._tools[name].ainvoke(arguments))

    async def read(self, uri: str) -> str:
        (blob,) = await load_mcp_resources(self._client, uris=uri)
        return blob.as_string()

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        (message,) = await load_mcp_prompt(self._client, name, arguments=arguments)
        return message.content

    async def complete(self, prompt: str, argument: str, prefix: str) -> None:
        """It has no completion."""


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Session]:
    servers = MultiServerMCPClient({"room": {"transport": "streamable_http", "url": url}})
    async with servers.session("room") as client:
        yield Session(client)


if __name__ == "__main__":
    plan.main(connect)
