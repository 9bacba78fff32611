"""What a face lists: everything, the desk alone, or the bases that an address names."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.requirements import requirement
from tests.support.kit import LEGACY, MODERN, Served, connect_http, read_body, run, serve_room
from tests.support.processes import HANG_SECONDS

pytestmark = [pytest.mark.anyio, requirement("room:listings")]

DESK = {"search", "fetch", "assess_against_policy"}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_room(data=tmp_path_factory.mktemp("listings") / "data") as served:
        yield served


async def list_names(url: str, wire: str = MODERN) -> set[str]:
    async with connect_http(url, wire) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("wire", [LEGACY, MODERN])
async def test_an_address_chooses_whose_tools_are_listed(room: Served, wire: str) -> None:
    everything = await list_names(f"{room.url}/mcp", wire)
    assert await list_names(f"{room.url}/mcp?bases=all", wire) == everything
    assert await list_names(f"{room.url}/mcp?bases=desk", wire) == DESK
    assert await list_names(f"{room.url}/desk/mcp", wire) == DESK
    two = await list_names(f"{room.url}/mcp?bases=policy,%20text", wire)
    policy = await list_names(f"{room.url}/policy/mcp", wire)
    text = await list_names(f"{room.url}/text/mcp", wire)
    assert two == DESK | ((policy | text) & everything)
    assert len(two) < len(everything)


async def test_a_tool_that_is_not_listed_can_still_be_called(room: Served) -> None:
    async with connect_http(f"{room.url}/mcp?bases=desk") as client:
        answer = read_body(await client.call_tool("list_policy_documents", {}))
    assert answer["policies"] == []


async def test_the_face_of_one_base_lists_its_whole_contract(room: Served) -> None:
    whole = await list_names(f"{room.url}/policy/mcp")
    assert await list_names(f"{room.url}/policy/mcp?bases=desk") == whole


async def test_a_base_that_is_not_there_is_named_with_the_choices(room: Served) -> None:
    async with connect_http(f"{room.url}/mcp?bases=polcy") as client:
        with pytest.raises(MCPError, match="no base 'polcy'; choose from all, desk, documents"):
            await client.list_tools()


async def test_the_setting_says_what_is_listed_by_default(tmp_path: Path) -> None:
    env = {"READINGROOM_FACE_TOOLS": "text"}
    with serve_room(data=tmp_path / "data", env=env) as served:
        assert "policy_snapshot" not in await list_names(f"{served.url}/mcp")
        assert "get_kb_content" in await list_names(f"{served.url}/mcp")
        assert "policy_snapshot" in await list_names(f"{served.url}/mcp?bases=all")
        page = httpx2.get(
            f"{served.url}/desk/mcp",
            headers={"Accept": "text/html"},
            timeout=HANG_SECONDS,
            trust_env=False,
        )
        assert "search, fetch and assess" in page.text
    env = {"READINGROOM_FACE_TOOLS": "nothing", "READINGROOM_DATA": str(tmp_path / "data")}
    failed = run("serve", "--port", "0", env=env)
    assert failed.returncode != 0
    assert "READINGROOM_FACE_TOOLS" in failed.stderr
    assert "choose from" in failed.stderr
