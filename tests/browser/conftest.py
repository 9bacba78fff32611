"""One browser for the tests of the console on a worker, and the servers that they share."""

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

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


@contextmanager
def _open_sample_room(folder: Path) -> Iterator[Served]:
    data = link_model(folder / "room")
    with serve_room("--demo", data=data, env=ENVIRONMENT) as served:
        wait_until(lambda: is_loaded(served.data))
        yield served


@contextmanager
def _open_own_room(folder: Path) -> Iterator[Served]:
    with serve_room(data=folder / "data", env=ENVIRONMENT) as served:
        yield served


@contextmanager
def _open_keyed_room(folder: Path) -> Iterator[Served]:
    text = folder / "kb.txt"
    text.write_text("Bicycles are parked under cover.", "utf-8")
    env = {**ENVIRONMENT, "MCP_API_KEY": API_KEY, "KB_FILE": str(text)}
    with serve_room(data=folder / "data", env=env) as served:
        yield served


_OPENERS = {
    "sample_room": _open_sample_room,
    "own_room": _open_own_room,
    "keyed_room": _open_keyed_room,
}


@pytest.fixture(scope="session")
def rooms(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Served]]]:
    """The servers that the tests of this run ask for, started at the same time."""
    asked = {name for item in request.session.items for name in getattr(item, "fixturenames", ())}
    with ExitStack() as stack, ThreadPoolExecutor(len(_OPENERS)) as pool:
        started = {
            name: pool.submit(stack.enter_context, opener(tmp_path_factory.mktemp(name)))
            for name, opener in _OPENERS.items()
            if name in asked
        }
        yield started


@pytest.fixture(scope="session")
def sample_room(rooms: dict[str, Future[Served]]) -> Served:
    """`readingroom serve --demo`, with everything loaded, and no key."""
    return rooms["sample_room"].result()


@pytest.fixture(scope="session")
def own_room(rooms: dict[str, Future[Served]]) -> Served:
    """A server whose data are the tests' own, with no key."""
    return rooms["own_room"].result()


@pytest.fixture(scope="session")
def keyed_room(rooms: dict[str, Future[Served]]) -> Served:
    """A server with `MCP_API_KEY`, and a text to read; tests add keys of their own."""
    return rooms["keyed_room"].result()
