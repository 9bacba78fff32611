"""What every test may use: the shared data where it is there, servers, and the size of the run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import engines
from tests.support.govuk import Upstream, run_emulator
from tests.support.kit import Served, serve_room
from tests.support.prepared import prepare_once
from tests.support.processes import heed_interrupts
from tests.support.scheduling import LongestFilesFirst, rank_of

SHARED = Path(__file__).parents[2] / "shared" / "data"

# No deadline and no complaint about slow data: how fast a machine is proves nothing about the code.
for _profile in ("quick", "full"):
    settings.register_profile(_profile, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="run what takes minutes too: tests marked `full`, and every example of a property",
    )

    parser.addoption(
        "--pictures", action="store_true", help="take the pictures in docs/pictures anew"
    )


def pytest_configure(config: pytest.Config) -> None:
    heed_interrupts()
    settings.load_profile("full" if config.getoption("--full") else "quick")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module marked `both_engines` on each; `full` where that takes long."""
    marker = next(metafunc.definition.iter_markers("both_engines"), None)
    if marker is None:
        return
    marks = [pytest.mark.full] if "full" in marker.args else []
    shared = pytest.param(engines.SHARED, marks=marks)
    only = next(metafunc.definition.iter_markers("embedded_only"), None)
    values = [engines.EMBEDDED] if only else [engines.EMBEDDED, shared]
    metafunc.fixturenames.insert(0, "engine")
    metafunc.parametrize("engine", values, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests on shared data where there is none, and the long ones unless `--full`."""
    if not SHARED.is_dir():
        config.stash[_WITHOUT_DATA] = _deselect(config, items, "data")
    if not config.getoption("--full"):
        _deselect(config, items, "full")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFilesFirst:
    return LongestFilesFirst(config, log)


_WITHOUT_DATA = pytest.StashKey[int]()


def _deselect(config: pytest.Config, items: list[pytest.Item], marker: str) -> int:
    """Take the tests with this marker out of `items`; return how many there were."""
    marked = [item for item in items if item.get_closest_marker(marker)]
    if marked:
        items[:] = [item for item in items if not item.get_closest_marker(marker)]
        config.hook.pytest_deselected(items=marked)
    return len(marked)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    deselected = config.stash.get(_WITHOUT_DATA, 0)
    if deselected:
        terminalreporter.write_line(f"{deselected} tests on shared data deselected: no {SHARED}")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server, with a template of an empty room."""
    from tests.support.postgres import make_template, run_server

    with run_server() as server:
        make_template(server)
        yield server


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The engine that the bases of a module stand on; see `both_engines`."""
    if request.param == engines.EMBEDDED:
        yield engines.EMBEDDED
        return
    with engines.use_postgres(request.getfixturevalue("postgres")):
        yield engines.SHARED


@pytest.fixture(scope="session")
def shared_data() -> Path:
    return SHARED


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`readingroom serve`, a real process, with every base and no key, shared by tests."""
    env = {"READINGROOM_RATE_LIMIT": "60000"}  # all of them are one caller to it
    with serve_room(data=tmp_path_factory.mktemp("data"), env=env, anew=True) as served:
        yield served


@pytest.fixture(scope="module")
def emulated() -> Iterator[Upstream]:
    """A GOV.UK on loopback, for the tests of a module."""
    with run_emulator() as upstream:
        yield upstream


@pytest.fixture
def upstream(emulated: Upstream) -> Upstream:
    """The same, as new for each of them."""
    return emulated.reset()


@pytest.fixture(scope="session")
def locked_room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same with MCP_API_KEY set to `sesame`."""
    data = tmp_path_factory.mktemp("data")
    env = {"MCP_API_KEY": "sesame", "READINGROOM_RATE_LIMIT": "60000"}
    with serve_room(data=data, env=env) as served:
        yield served


@pytest.fixture(scope="session")
def official(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """A data directory with every official federal file loaded, and stand-in vectors."""
    from tests.support.federal.base import load_files

    def load(data: Path) -> None:
        summary = load_files(data, shared_data / "federal")
        assert summary.failed == 0, summary.errors

    return prepare_once(tmp_path_factory, "official", load)
