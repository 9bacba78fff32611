"""How soon the sample can be searched by words, beside the much smaller sample of 0.1.0."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from subprocess import STDOUT, Popen

from benchmarks.beside.rounds import ProcessorClock
from benchmarks.redesign.tables import MODELS, ROOT, Version, find_baseline
from benchmarks.table import Ratio, Table
from tests.support.model import EMBEDDER

_MAX_RATIO = 2.0
_MAX_SECONDS = 600.0
_STEP = re.compile(r"sample (\d+) of (\d+): (.*)")
_VECTORS_STEP = "federal records by meaning"
_END = "sample: everything is loaded"
_NOTE = (
    "`readingroom serve --demo` in an empty folder, {rounds} rounds of either version in turn, "
    "until every part of its sample can be searched by words. This tree makes the vectors of the "
    "federal records last, so that is when it announces them. 0.1.0 announces them before it reads "
    "its application: there it is the end of the load, less the time that these vectors took. "
    '"To the vectors" is measured up to that announcement in both, when 0.1.0 has none of its '
    "application's documents yet. 0.1.0 has 2 bills, 1 application and no policy with more than "
    "two revisions; now there are 240 bills, 2 applications and 9 policies. Ratio: now to 0.1.0 in "
    "the same round, median (lowest to highest)."
)


@dataclass(frozen=True, slots=True)
class _Cost:
    """What was spent since the start of a server."""

    wall_seconds: float
    processor_seconds: float

    def __sub__(self, other: "_Cost") -> "_Cost":
        return _Cost(
            self.wall_seconds - other.wall_seconds, self.processor_seconds - other.processor_seconds
        )


@dataclass(frozen=True, slots=True)
class _LoadCosts:
    """What a load of the sample cost up to two of its moments."""

    by_words: _Cost
    to_vectors: _Cost


def measure(quick: bool) -> Table:
    """Return the seconds until the sample can be searched by words, of 0.1.0 and now."""
    rounds = 1 if quick else 5
    EMBEDDER.embed("builds the graph of the model, once for both")
    costs: dict[str, list[_LoadCosts]] = {"0.1.0": [], "now": []}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            versions = [
                Version("0.1.0", find_baseline() / "src", Path(folder) / "old"),
                Version("now", ROOT / "src", Path(folder) / "new"),
            ]
            for version in versions if number % 2 else reversed(versions):
                costs[version.name].append(_load_by_words(version))
    rows = (
        _render_row("seconds", costs, lambda cost: cost.by_words.wall_seconds, _MAX_RATIO),
        _render_row("processor time", costs, lambda cost: cost.by_words.processor_seconds),
        _render_row("seconds to the vectors", costs, lambda cost: cost.to_vectors.wall_seconds),
        _render_row(
            "processor time to the vectors", costs, lambda cost: cost.to_vectors.processor_seconds
        ),
    )
    header = ("until it can be searched by words", "0.1.0", "now", "ratio", "wanted")
    return Table("The sample, searchable by words", header, rows, _NOTE.format(rounds=rounds))


def _render_row(
    what: str,
    costs: dict[str, list[_LoadCosts]],
    get_seconds: Callable[[_LoadCosts], float],
    max_ratio: float | None = None,
) -> tuple[str, ...]:
    old_seconds, new_seconds = (
        [get_seconds(cost) for cost in costs[version_name]] for version_name in ("0.1.0", "now")
    )
    ratio = Ratio(new_seconds, old_seconds)
    medians = (f"{median(seconds):.1f}" for seconds in (old_seconds, new_seconds))
    return (what, *medians, str(ratio), ratio.against(max_ratio) if max_ratio else "")


def _load_by_words(version: Version) -> _LoadCosts:
    """Return what it costs until everything can be searched by words, and to the vectors."""
    version.sample.mkdir()
    (version.sample / "models").symlink_to(MODELS)
    log = version.sample.with_suffix(".log")
    started = time.monotonic()
    with _serve_sample(version, log) as process:
        clock = ProcessorClock(process.pid)

        def wait_for(is_reached: Callable[[str], bool]) -> _Cost:
            while not is_reached(log.read_text("utf-8")):
                if process.poll() is not None or time.monotonic() - started > _MAX_SECONDS:
                    last_lines = log.read_text("utf-8")[-500:]
                    raise RuntimeError(f"{version.name} did not load: {last_lines}")
                time.sleep(0.05)
            return _Cost(time.monotonic() - started, clock.read_seconds())

        to_vectors = wait_for(lambda text: _VECTORS_STEP in text)
        if _is_last_step(log.read_text("utf-8"), _VECTORS_STEP):
            return _LoadCosts(to_vectors, to_vectors)
        after_vectors = wait_for(lambda text: not _is_newest_step(text, _VECTORS_STEP))
        end = wait_for(lambda text: _END in text)
        return _LoadCosts(end - (after_vectors - to_vectors), to_vectors)


def _is_last_step(log_text: str, step_title: str) -> bool:
    """Return whether the step is the last of those that the log counts."""
    return any(
        step_number == step_count and title == step_title
        for step_number, step_count, title in _STEP.findall(log_text)
    )


def _is_newest_step(log_text: str, step_title: str) -> bool:
    """Return whether no other step has been announced after this one."""
    return bool(_STEP.findall(log_text)[-1][2] == step_title)


@contextmanager
def _serve_sample(version: Version, log: Path) -> Iterator[Popen[bytes]]:
    command = version.command("serve", "--demo", "--port", "0", "--data", str(version.sample))
    with log.open("wb") as output:
        process = Popen(command, env=version.environment, stdout=output, stderr=STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
