"""What every test may use: the shared data when it is there, and one plugin for async tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.govuk import Upstream, emulating
from tests.support.kit import Served, serving

SHARED = Path(__file__).parents[2] / "shared" / "data"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on shared data where there is none, and say so."""
    if SHARED.is_dir():
        return
    without = [item for item in items if not item.get_closest_marker("data")]
    left_out = [item for item in items if item.get_closest_marker("data")]
    if left_out:
        items[:] = without
        config.hook.pytest_deselected(items=left_out)
        config.stash[_LEFT_OUT] = len(left_out)


_LEFT_OUT = pytest.StashKey[int]()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    left_out = config.stash.get(_LEFT_OUT, 0)
    if left_out:
        terminalreporter.write_line(f"{left_out} tests on shared data left out: no {SHARED}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    return SHARED


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve`, a real process, with every base and no key."""
    with serving(data=tmp_path_factory.mktemp("data")) as served:
        yield served


@pytest.fixture(scope="module")
def emulated() -> Iterator[Upstream]:
    """A GOV.UK on loopback, for the tests of a module."""
    with emulating() as upstream:
        yield upstream


@pytest.fixture
def upstream(emulated: Upstream) -> Upstream:
    """The same, as new for each of them."""
    return emulated.reset()


@pytest.fixture(scope="module")
def locked_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with MCP_API_KEY set to `sesame`."""
    data = tmp_path_factory.mktemp("data")
    with serving(data=data, env={"MCP_API_KEY": "sesame"}) as served:
        yield served


@pytest.fixture(scope="session")
def official(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """A data directory with every official federal file loaded, and stand-in vectors."""
    from tests.support.federal.base import loaded

    data = tmp_path_factory.mktemp("official")
    summary = loaded(data, shared_data / "federal")
    assert summary.failed == 0, summary.errors
    return data
