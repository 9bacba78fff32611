"""One browser and one server with the sample for all tests of the console on a worker."""

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser

from tests.demo.test_sample import is_loaded
from tests.support.browser import open_browser
from tests.support.kit import Served, serving
from tests.support.model import with_model
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


@pytest.fixture(scope="session")
def sample_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve --demo`, with everything loaded, and no key."""
    data = with_model(tmp_path_factory.mktemp("sample") / "room")
    env = {"READINGROOM_RATE_LIMIT": "60000"}  # all tests are one caller to it
    with serving("--demo", data=data, env=env) as served:
        wait_until(lambda: is_loaded(served.data), seconds=300)
        yield served
