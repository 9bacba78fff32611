"""Collects the public contracts of a version, from outside: HTTP, MCP, CLI, files.

The modules of two versions differ, so nothing of `readingroom` is imported here. What only Python
can say (commands, settings, error codes) comes from `probe.py`, run by that version's interpreter.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from scripts.contracts import stored

ROOT = Path(__file__).parents[2]
CONTRACTS = ROOT / "tests" / "contracts"
BASELINE = CONTRACTS / "0.1.0"
CURRENT = CONTRACTS / "current"
PROBE = Path(__file__).parent / "probe.py"
_LOAD_SECONDS = 600

Snapshot = dict[str, Any]


def collect_surfaces(bin_folder: Path, source: Path) -> Snapshot:
    """Return tools, REST, commands, settings and error codes of the version below `source`.

    `bin_folder` is that of an environment with what it needs; which version is installed there
    does not matter.
    """
    with tempfile.TemporaryDirectory() as folder, serve(bin_folder, source, Path(folder)) as banner:
        openapi = httpx2.get(
            f"{banner['listening']}/openapi.json", trust_env=False, timeout=120
        ).json()
        snapshot = {"openapi": openapi, **asyncio.run(list_tools(banner))}
    probed = subprocess.run(
        [bin_folder / "python", PROBE],
        capture_output=True,
        check=True,
        cwd="/",
        env=_make_environment(source),
    )
    return snapshot | json.loads(probed.stdout)


def collect_stored(bin_folder: Path, source: Path) -> Snapshot:
    """Load the sample with the version below `source`; return the formats of what it stored."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        with serve(bin_folder, source, data, "--demo"):
            wait_for_sample(data)
            backup = Path(folder) / "backup"
            for words in (["backup", backup], ["keys", "add", "reader"]):
                command = [*_make_command(bin_folder), *words, "--demo", "--data", data]
                environment = _make_environment(source)
                subprocess.run(command, check=True, capture_output=True, env=environment)
        formats = stored.describe_data(data)
        return {"stored": formats | {"backup": stored.describe_backup(backup)}}


def write_snapshot(folder: Path, snapshot: Snapshot) -> None:
    """Write one JSON file for each part."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in snapshot.items():
        text = json.dumps(part, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")


def read_snapshot(folder: Path) -> Snapshot:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}


@contextlib.contextmanager
def serve(bin_folder: Path, source: Path, data: Path, *flags: str) -> Iterator[dict[str, Any]]:
    """Run `readingroom serve` until the block ends; yield what it prints when it is ready."""
    command = [*_make_command(bin_folder), "serve", "--json", "--port", "0", "--data", data, *flags]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=_make_environment(source),
    ) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def _make_command(bin_folder: Path) -> tuple[str | Path, ...]:
    return (bin_folder / "python", "-m", "readingroom")


def _make_environment(source: Path) -> dict[str, str]:
    """Return an environment without anybody's settings, in which the code below `source` runs."""
    return {"PATH": os.defpath, "PYTHONPATH": str(source)}


async def list_tools(banner: dict[str, Any]) -> Snapshot:
    """Return for each server what `tools/list`, `prompts/list` and `resources/…` answer."""
    servers = {server["name"]: await list_server(server["mcp"]) for server in banner["servers"]}
    # All bases list the tools of each base again: what is equal is named, not repeated.
    combined, *others = servers
    for tool_name, tool in servers[combined]["tools"].items():
        for name in others:
            if servers[name]["tools"].get(tool_name) == tool:
                # The desk's own tools stand in the listing of all bases, as they always did.
                kept, left_out = (combined, name) if name.endswith("-desk") else (name, combined)
                servers[left_out]["tools"][tool_name] = f"as listed by {kept}"
    return {f"mcp-{name}": listing for name, listing in servers.items()}


async def list_server(url: str) -> dict[str, Any]:
    async with (
        httpx2.AsyncClient(timeout=60, trust_env=False) as web,
        Client(streamable_http_client(url, http_client=web)) as client,
    ):
        tools = (await client.list_tools()).tools
        listing: dict[str, Any] = {"tools": {tool.name: as_data(tool) for tool in tools}}
        listing["instructions"] = client.instructions
        if client.server_capabilities.prompts:
            prompts = (await client.list_prompts()).prompts
            listing["prompts"] = {prompt.name: as_data(prompt) for prompt in prompts}
        if client.server_capabilities.resources:
            templates = (await client.list_resource_templates()).resource_templates
            listing["resource_templates"] = {item.name: as_data(item) for item in templates}
        return listing


def as_data(model: Any) -> dict[str, Any]:
    data: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return data


def wait_for_sample(data: Path) -> None:
    """Return when the sample is loaded; raise TimeoutError when that takes too long."""
    deadline = time.monotonic() + _LOAD_SECONDS
    while json.loads((data / "sample.json").read_text("utf-8")).get("state") == "loading":
        if time.monotonic() > deadline:
            raise TimeoutError(f"the sample was not loaded within {_LOAD_SECONDS} s")
        time.sleep(1)
