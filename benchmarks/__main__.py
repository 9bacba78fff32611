"""`python -m benchmarks`: measure, print the tables, and with `--write` keep them."""

import argparse
import os
import platform
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Measure what the arguments ask for."""
    asked = _arguments()
    tables = []
    for part in asked.part or PARTS:
        for table in PARTS[part](asked.quick):
            print(table, end="\n\n", flush=True)
            tables.append(table)
            if asked.write:  # at once: a part may take long
                RESULTS.write_text(_page(tables, _kept()), "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="a smoke run, too short to quote")
    kind.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--part", choices=PARTS, action="append", help="one part; may be repeated")
    return parser.parse_args()


# Each part imports what it measures when it is asked for: the server's does not wait for numpy.
def _server(quick: bool) -> Iterator[Table]:
    from benchmarks.server import calls, startup

    yield startup.measure(rounds=2 if quick else 9)
    yield calls.measure(rounds=2, calls=40) if quick else calls.measure(rounds=15, calls=400)


def _guidance(quick: bool) -> Iterator[Table]:
    from benchmarks.guidance import cost, faults, slo

    yield cost.measure(rounds=2 if quick else 9, calls=40 if quick else 200)
    yield slo.measure(bursts=2 if quick else 20, live=8 if quick else 100)
    yield faults.measure()


def _ingest(quick: bool) -> Iterator[Table]:
    from benchmarks.ingest import isolation, quality, splitter, text

    yield text.measure(rounds=1, real=False) if quick else text.measure(rounds=3)
    yield isolation.measure(rounds=2 if quick else 15)
    yield splitter.measure(rounds=1 if quick else 5)
    yield quality.measure_ocr()
    yield quality.measure_sections()


def _engine(quick: bool) -> Iterator[Table]:
    from benchmarks.engine import tables as engine

    yield from engine.tables(quick)


def _federal(quick: bool) -> Iterator[Table]:
    from benchmarks.federal import official, scale

    yield from official.measure(rounds=1 if quick else 5)
    yield scale.searches(quick)
    yield scale.lookups(quick)
    yield scale.loads(quick)


def _federal_answers(quick: bool) -> Iterator[Table]:
    from benchmarks.federal import answers as federal_answers

    yield federal_answers.names(quick)
    yield federal_answers.numbers(quick)
    yield federal_answers.whole_bill(quick)


def _policy(quick: bool) -> Iterator[Table]:
    from benchmarks.policy import crash, memory, search
    from benchmarks.policy import ingest as policy_ingest

    yield crash.measure(quick)
    yield search.measure(chunks=1_000, rounds=3 if quick else 61)
    yield search.measure(chunks=2_000 if quick else 50_000, rounds=3 if quick else 21)
    yield memory.measure(paragraphs=40 if quick else 400, searches=9 if quick else 60)
    yield (
        policy_ingest.measure(pages=5, more=10, rounds=1)
        if quick
        else policy_ingest.measure(pages=100, more=300, rounds=3)
    )


def _newcomer(quick: bool) -> Iterator[Table]:
    from benchmarks.newcomer import newcomer

    yield newcomer.measure(quick)


def _documents(quick: bool) -> Iterator[Table]:
    from benchmarks.documents import ingest as documents_ingest
    from benchmarks.documents import memory, search

    yield search.measure(applications=200 if quick else 2_000, rounds=30 if quick else 300)
    yield documents_ingest.measure(files=4 if quick else 50, pages=5 if quick else 20)
    if not quick:
        yield memory.measure()


def _routing(quick: bool) -> Iterator[Table]:
    from benchmarks.routing import routing

    yield from routing.tables()


def _load(quick: bool) -> Iterator[Table]:
    from benchmarks.load import load

    yield load.measure(minutes=0.5, clients=8) if quick else load.measure(minutes=10)


PARTS: dict[str, Callable[[bool], Iterator[Table]]] = {
    "server": _server,
    "engine": _engine,
    "ingest": _ingest,
    "policy": _policy,
    "documents": _documents,
    "guidance": _guidance,
    "federal": _federal,
    "federal-answers": _federal_answers,
    "load": _load,
    "newcomer": _newcomer,
    "routing": _routing,
}


def _kept() -> dict[str, str]:
    """The tables of earlier runs, by title: those that are not measured anew stay."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text("utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}" for part in parts}


def _page(tables: list[Table], kept: dict[str, str]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = (
        f"Measured with `make bench ARGS=--write` (one part: `ARGS='--part server --write'`), on "
        f"{machine}, mcp {version('mcp')}. Compare numbers within a table, not between machines."
    )
    measured = f"(Measured on {datetime.now(UTC):%Y-%m-%d}.)"
    sections = kept | {table.title: f"{table} {measured}" for table in tables}
    return "\n\n".join(["# What Reading Room costs", about, *sections.values()]) + "\n"


if __name__ == "__main__":
    main()
