"""How soon the sample can be searched by words, beside the much smaller sample of 0.1.0."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from subprocess import STDOUT, Popen

from benchmarks.beside.rounds import ProcessorClock
from benchmarks.redesign.tables import MODELS, ROOT, Version, find_baseline
from benchmarks.table import Ratio, Table
from tests.support.model import EMBEDDER

_MAX_RATIO = 2.0
_MAX_SECONDS = 600.0
_VECTORS_STEP = "federal records by meaning"
"""What both versions announce when everything else is loaded."""
_NOTE = (
    "`readingroom serve --demo` in an empty folder, {rounds} rounds of either version in turn, "
    "until the server announces that only the vectors of the federal records are still to be made: "
    "from then on everything can be searched by words. 0.1.0 has 2 bills, 1 application and no "
    "policy with more than two revisions; now there are 240 bills, 2 applications and 9 policies. "
    "Ratio: now to 0.1.0 in the same round, median (lowest to highest)."
)


def measure(quick: bool) -> Table:
    """Return the seconds until the sample can be searched by words, of 0.1.0 and now."""
    rounds = 1 if quick else 5
    EMBEDDER.embed("builds the graph of the model, once for both")
    seconds: dict[str, list[float]] = {"0.1.0": [], "now": []}
    processor: dict[str, list[float]] = {"0.1.0": [], "now": []}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            versions = [
                Version("0.1.0", find_baseline() / "src", Path(folder) / "old"),
                Version("now", ROOT / "src", Path(folder) / "new"),
            ]
            for version in versions if number % 2 else reversed(versions):
                wall_seconds, processor_seconds = _load_by_words(version)
                seconds[version.name].append(wall_seconds)
                processor[version.name].append(processor_seconds)
    rows = (
        _render_row("seconds", seconds, _MAX_RATIO),
        _render_row("seconds of processor time", processor, None),
    )
    header = ("until it can be searched by words", "0.1.0", "now", "ratio", "wanted")
    return Table("The sample, searchable by words", header, rows, _NOTE.format(rounds=rounds))


def _render_row(
    what: str, costs: dict[str, list[float]], max_ratio: float | None
) -> tuple[str, ...]:
    ratio = Ratio(costs["now"], costs["0.1.0"])
    medians = (f"{median(costs[version_name]):.1f}" for version_name in ("0.1.0", "now"))
    return (what, *medians, str(ratio), ratio.against(max_ratio) if max_ratio else "")


def _load_by_words(version: Version) -> tuple[float, float]:
    """Return the seconds, and those of the processor, until only vectors are missing."""
    version.sample.mkdir()
    (version.sample / "models").symlink_to(MODELS)
    log = version.sample.with_suffix(".log")
    started = time.monotonic()
    with _serve_sample(version, log) as process:
        clock = ProcessorClock(process.pid)
        while _VECTORS_STEP not in log.read_text("utf-8"):
            if process.poll() is not None or time.monotonic() - started > _MAX_SECONDS:
                raise RuntimeError(f"{version.name} did not load: {log.read_text('utf-8')[-500:]}")
            time.sleep(0.1)
        return time.monotonic() - started, clock.read_seconds()


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
