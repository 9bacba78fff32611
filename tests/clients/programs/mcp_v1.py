"""The Python SDK, version 1."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import PromptReference

from tests.clients.programs import plan


class Session:
    def __init__(self, client: ClientSession) -> None:
        self._client = client

    async def list_tools(self) -> list[str]:
        return [tool.name for tool in (await self._client.list_tools()).tools]

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        return "\n".join(
            item.text for item in (await self._client.call_tool(name, arguments)).content
        )

    async def read(self, uri: str) -> str:
        return (await self._client.read_resource(uri)).contents[0].text

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        return (await self._client.get_prompt(name, arguments)).messages[0].content.text

    async def complete(self, prompt: str, argument: str, prefix: str) -> list[str]:
        reference = PromptReference(type="ref/prompt", name=prompt)
        result = await self._client.complete(reference, {"name": argument, "value": prefix})
        return result.completion.values


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Session]:
    async with (
        streamable_http_client(url) as (receive, send, _),
        ClientSession(receive, send) as client,
    ):
        await client.initialize()
        yield Session(client)


if __name__ == "__main__":
    plan.main(connect)
