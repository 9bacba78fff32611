"""Loading every official file at hand: beside parsing their XML alone, and its memory."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

from benchmarks.table import Ratio, Table
from readingroom.bases.federal import loading
from readingroom.bases.federal.loaders import LOADERS
from readingroom.bases.federal.loaders.files import RawFile, found
from readingroom.bases.federal.loaders.xml import parse
from readingroom.bases.federal.service import FILE

OFFICIAL = Path(__file__).parents[2] / "shared" / "data" / "federal"
_TIMES = 3.0
_MEGABYTES = 600


def measure(rounds: int) -> Iterator[Table]:
    """Nothing where the official files are not there."""
    if OFFICIAL.is_dir():
        told = [_alone(part) for _ in range(rounds) for part in ("floor", "xml", "all")]
        yield _table(told[::3], told[1::3], told[2::3])


def _table(floor: list[dict[str, float]], xml: list[dict[str, float]],
           everything: list[dict[str, float]]) -> Table:  # fmt: skip
    bare = [one["bare"] for one in floor]
    loaded = Ratio([one["cpu"] for one in xml], bare)
    peak = max(one["peak"] for one in everything)
    rows = (
        _row("`ElementTree.fromstring` of every XML file in it (the floor)", bare, "1.000"),
        _row("our own parser, without entities and external DTDs", [one["safe"] for one in floor],
             str(Ratio([one["safe"] for one in floor], bare))),
        _row("the same files loaded: records, texts, links, full-text index",
             [one["cpu"] for one in xml], str(loaded), loaded.against(_TIMES)),
        _row("`federal load data/federal`: YAML, JSON and HTML too",
             [one["cpu"] for one in everything],
             str(Ratio([one["cpu"] for one in everything], bare))),
        _row("beside it, in confined processes: the statements' PDFs",
             [one["children"] for one in everything]),
        ("peak memory of that load", f"{peak:,.0f} MB", "",
         f"{'met' if peak <= _MEGABYTES else '**missed**'} (at most {_MEGABYTES} MB)"),
    )  # fmt: skip
    note = (
        f"Processor seconds, each in a fresh process, {len(floor)} rounds taking turns: "
        f"{floor[0]['files']:.0f} XML files, {floor[0]['megabytes']:.0f} MB, into an empty "
        f"database of {everything[0]['records']:,.0f} records. A file that lies there twice is "
        "parsed twice by the floor and recognised by its hash in the load."
    )
    return Table("Federal: every official file", ("what", "median", "ratio", "target"), rows, note)


def _row(what: str, seconds: Sequence[float], ratio: str = "", target: str = "") -> tuple[str, ...]:
    return what, f"{median(seconds):.2f} s", ratio, target


def _alone(part: str) -> dict[str, float]:
    """One measurement in a process of its own: memory is what that one took."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.federal_official", part],
        check=True,
        capture_output=True,
        text=True,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


# --- in that process ---


def _floor() -> dict[str, float]:
    files = [read() for path in _xml() for _, read in found([path])]
    started = time.process_time()
    for file in files:
        ElementTree.fromstring(file.data)
    bare = time.process_time() - started
    started = time.process_time()
    for file in files:
        parse(file.data)
    safe = time.process_time() - started
    size = sum(len(file.data) for file in files) / 1e6
    return {"bare": bare, "safe": safe, "files": len(files), "megabytes": size}


def _load(paths: Sequence[Path]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as scratch:
        started = time.process_time()
        summary = loading.load(Path(scratch) / FILE, paths, None)
        cpu = time.process_time() - started
    # A child begins as a copy of this process: its peak is no less, and counts by itself.
    own, children = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    spent = resource.getrusage(children)
    peak = max(resource.getrusage(who).ru_maxrss for who in (own, children)) / 1024
    return {
        "cpu": cpu,
        "children": spent.ru_utime + spent.ru_stime,
        "records": summary.records,
        "peak": peak,
    }


def _xml() -> list[Path]:
    """The XML files that some loader takes."""
    taken = []
    for path in sorted(OFFICIAL.rglob("*.xml")):
        file = RawFile(path.name, path.read_bytes(), lambda name: None)
        if any(loader.recognises(file) for loader in LOADERS):
            taken.append(path)
    return taken


if __name__ == "__main__":
    PARTS = {"floor": _floor, "xml": lambda: _load(_xml()), "all": lambda: _load([OFFICIAL])}
    print(json.dumps(PARTS[sys.argv[1]]()))
