"""Reads a plan from standard input, carries it out with one client, and prints a report."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol


class Session(Protocol):
    """A connected client, reduced to what the plan asks of it; each answer is a text."""

    async def list_tools(self) -> list[str]:
        """Return the names of all tools."""

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Return what the client makes of a tool's result; it may raise what it makes of errors."""

    async def read(self, uri: str) -> str:
        """Return the text of a resource."""

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> str:
        """Return the text of a prompt."""

    async def complete(self, prompt: str, argument: str, prefix: str) -> list[str] | None:
        """Return completions of a prompt's argument, or None when the client has no such call."""


def main(connect: Callable[[str], AbstractAsyncContextManager[Session]]) -> None:
    """Carry out the plan on standard input with a client that `connect` connects to its URL."""
    plan = json.load(sys.stdin)
    print(json.dumps(asyncio.run(_carry_out(connect, plan))))


async def _carry_out(
    connect: Callable[[str], AbstractAsyncContextManager[Session]], plan: dict[str, Any]
) -> dict[str, Any]:
    async with connect(plan["url"]) as session:
        return {
            "tools": await session.list_tools(),
            "answers": [await session.call(*call) for call in plan["calls"]],
            "resource": await session.read(plan["resource"]),
            "prompt": await session.get_prompt(*plan["prompt"]),
            "completions": await session.complete(*plan["completion"]),
            "errors": [await call_for_text(session.call(*call)) for call in plan["errors"]],
        }


async def call_for_text(call: Awaitable[str]) -> str:
    """Return what the caller is told, as a result or as an exception."""
    try:
        return await call
    except Exception as error:
        return f"{type(error).__name__}: {error}"
