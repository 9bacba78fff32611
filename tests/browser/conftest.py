"""One browser for the tests of the console on a worker, and the servers that they share."""

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser

from tests.demo.test_sample import is_loaded
from tests.support.browser import open_browser
from tests.support.kit import Served, serve_room
from tests.support.model import link_model
from tests.support.processes import wait_until

API_KEY = "sesame-sesame-sesame"
ENVIRONMENT = {"READINGROOM_RATE_LIMIT": "60000"}  # all tests are one caller to it


@pytest.fixture(scope="package")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def sample_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve --demo`, with everything loaded, and no key."""
    data = link_model(tmp_path_factory.mktemp("sample") / "room")
    with serve_room("--demo", data=data, env=ENVIRONMENT) as served:
        wait_until(lambda: is_loaded(served.data), seconds=300)
        yield served


@pytest.fixture(scope="package")
def own_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose data are the tests' own, with no key."""
    with serve_room(data=tmp_path_factory.mktemp("own") / "data", env=ENVIRONMENT) as served:
        yield served


@pytest.fixture(scope="package")
def keyed_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with `MCP_API_KEY`, and a text to read; tests add keys of their own."""
    folder = tmp_path_factory.mktemp("keyed")
    text = folder / "kb.txt"
    text.write_text("Bicycles are parked under cover.", "utf-8")
    env = {**ENVIRONMENT, "MCP_API_KEY": API_KEY, "KB_FILE": str(text)}
    with serve_room(data=folder / "data", env=env) as served:
        yield served
