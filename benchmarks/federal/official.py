"""Loading every official file at hand: beside parsing their XML alone, and its memory."""

import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

from benchmarks.table import Ratio, Table
from readingroom.bases.federal.formats import LOADERS
from readingroom.bases.federal.formats.parts.files import RawFile
from readingroom.bases.federal.formats.parts.xml import parse_xml
from readingroom.bases.federal.formats.parts.yaml_files import parse_yaml
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.store import DATABASE_FILE_NAME

OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "federal"
_TARGET_RATIO = 3.0
_TARGET_MB = 600
_PARSERS: dict[str, Callable[[bytes], object]] = {".yaml": parse_yaml, ".json": json.loads}


def measure(rounds: int) -> Iterator[Table]:
    """Nothing where the official files are not there."""
    if OFFICIAL.is_dir():
        measured = [
            {measurement: _measure_apart(measurement) for measurement in PARTS}
            for _ in range(rounds)
        ]
        yield _render_table(
            *(
                Rounds([round_seconds[measurement] for round_seconds in measured])
                for measurement in PARTS
            )
        )


class Rounds:
    """What one part told in each round."""

    def __init__(self, rounds: list[dict[str, float]]) -> None:
        self.rounds = rounds

    def __getitem__(self, name: str) -> list[float]:
        return [round_seconds[name] for round_seconds in self.rounds]


def _render_table(floor: Rounds, xml: Rounds, unread: Rounds, everything: Rounds) -> Table:
    bare, peak = floor["bare"], max(everything["peak"])
    rows = (
        _render_row("`ElementTree.fromstring` of every XML file in it (the floor)", bare, bare),
        _render_row("the same, the garbage collector off, as a load has it", floor["calm"], bare),
        _render_row("our own parser, without entities and external DTDs", floor["safe"], bare),
        _render_row(
            "the same files loaded: records, texts, links, full-text index",
            xml["wall"],
            bare,
            _TARGET_RATIO,
        ),
        _render_row("the processor time of that, of both processes", xml["cpu"], floor["cpu"]),
        _render_row(
            "every XML, YAML and JSON file but the statements parsed, no more",
            floor["formats"],
            bare,
        ),
        _render_row("all of it but the statements loaded, HTML too", unread["wall"], bare),
        _render_row("that beside parsing these formats", unread["wall"], floor["formats"]),
        (
            "`federal load data/federal`, with the words of the statements' PDFs",
            f"{median(everything['wall']):.2f} s",
            "",
            "",
        ),
        (
            "peak memory of that load, with a confined process on each core",
            f"{peak:,.0f} MB",
            "",
            f"{'met' if peak <= _TARGET_MB else '**missed**'} (at most {_TARGET_MB} MB)",
        ),
    )
    note = (
        f"By the clock where nothing else is said, each in a fresh process, {len(bare)} rounds "
        f"taking turns: {floor['files'][0]:.0f} XML files, {floor['megabytes'][0]:.0f} MB, into an "
        f"empty database; all of it is {everything['records'][0]:,.0f} records. A file that lies "
        "there twice is parsed twice by the floor and recognised by its hash in the load. A load "
        f"uses a second core ({os.cpu_count()} here): a process of its own reads ahead, and what "
        "several files say is indexed and committed on a thread beside."
    )
    return Table("Federal: every official file", ("what", "median", "ratio", "target"), rows, note)


def _render_row(
    what: str,
    seconds: Sequence[float],
    reference_seconds: Sequence[float],
    target: float | None = None,
) -> tuple[str, ...]:
    ratio = Ratio(seconds, reference_seconds)
    ratio_text = "1.000" if seconds is reference_seconds else str(ratio)
    return what, f"{median(seconds):.2f} s", ratio_text, ratio.against(target) if target else ""


def _measure_apart(measurement: str) -> dict[str, float]:
    """One measurement in a process of its own: memory is what that one took."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.federal.official", measurement],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seconds


# --- in that process ---


def _measure_parsing() -> dict[str, float]:
    files = [path.read_bytes() for path in _find_xml_files()]
    cpu, wall = _measure_seconds(lambda: _parse_each(ElementTree.fromstring, files))
    _, our_parser_seconds = _measure_seconds(lambda: _parse_each(parse_xml, files))
    paths = [path for path in _find_loadable_files(*_PARSERS) if "saps" not in path.parts]
    read = [(_PARSERS[path.suffix], path.read_bytes()) for path in paths]
    gc.disable()
    _, without_collector_seconds = _measure_seconds(
        lambda: _parse_each(ElementTree.fromstring, files)
    )
    _, other_formats_seconds = _measure_seconds(
        lambda: [reader(data) is None for reader, data in read]
    )
    size = sum(map(len, files)) / 1e6
    return {
        "bare": wall,
        "cpu": cpu,
        "calm": without_collector_seconds,
        "safe": our_parser_seconds,
        "formats": without_collector_seconds + other_formats_seconds,
        "files": len(files),
        "megabytes": size,
    }


def _parse_each(parser: Callable[[bytes], object], files: Sequence[bytes]) -> None:
    for data in files:
        parser(data)


def _measure_load(paths: Sequence[Path]) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as scratch:
        loaded: list[loading.LoadSummary] = []
        path = Path(scratch) / DATABASE_FILE_NAME
        cpu, wall = _measure_seconds(lambda: loaded.append(loading.load(path, paths, None)))
    this_process, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    # The system tells the largest of the processes beside; one may read a PDF on each core.
    peak_kilobytes = this_process.ru_maxrss + children.ru_maxrss * (os.cpu_count() or 1)
    return {
        "cpu": cpu + children.ru_utime + children.ru_stime,
        "wall": wall,
        "records": loaded[0].records,
        "peak": peak_kilobytes / 1024,
    }


def _measure_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Processor and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def _find_loadable_files(*suffixes: str) -> list[Path]:
    """The files of these kinds that some loader takes."""
    loadable = []
    for path in sorted(OFFICIAL.rglob("*")):
        if path.suffix.lower() in suffixes:
            file = RawFile(path.name, path.read_bytes(), lambda name: None)
            if any(loader.recognizes_file(file.start_reader) for loader in LOADERS):
                loadable.append(path)
    return loadable


def _find_xml_files() -> list[Path]:
    return _find_loadable_files(".xml")


def _find_all_but_statements() -> list[Path]:
    return [path for path in OFFICIAL.iterdir() if path.name != "saps"]


PARTS: dict[str, Callable[[], dict[str, float]]] = {
    "floor": _measure_parsing,
    "xml": lambda: _measure_load(_find_xml_files()),
    "unread": lambda: _measure_load(_find_all_but_statements()),
    "all": lambda: _measure_load([OFFICIAL]),
}

if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[1]]()))
