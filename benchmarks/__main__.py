"""`python -m benchmarks`: measure, print the tables, and with `--write` keep them."""

import argparse
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    calls,
    federal,
    guidance_cost,
    guidance_faults,
    guidance_slo,
    ingest_isolation,
    ingest_quality,
    ingest_splitter,
    ingest_text,
    startup,
)
from benchmarks.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Measure what the arguments ask for."""
    asked = _arguments()
    tables = []
    for measure in (
        *(_startup, _calls, _guidance_cost, _guidance_slo, _guidance_faults),
        *(_text, _isolation, _splitter, _ocr, _sections),
        *(federal.searches, federal.lookups, federal.loads),
    ):
        table = measure(asked.quick)
        print(table, end="\n\n", flush=True)
        tables.append(table)
    if asked.write:
        RESULTS.write_text(_page(tables), "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="a smoke run, too short to quote")
    kind.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    return parser.parse_args()


def _startup(quick: bool) -> Table:
    return startup.measure(rounds=2 if quick else 9)


def _calls(quick: bool) -> Table:
    return calls.measure(rounds=2, calls=40) if quick else calls.measure(rounds=15, calls=400)


def _guidance_cost(quick: bool) -> Table:
    return guidance_cost.measure(rounds=2 if quick else 9, calls=40 if quick else 200)


def _guidance_slo(quick: bool) -> Table:
    return guidance_slo.measure(bursts=2 if quick else 20, live=8 if quick else 100)


def _guidance_faults(quick: bool) -> Table:
    return guidance_faults.measure()


def _text(quick: bool) -> Table:
    return ingest_text.measure(rounds=1, real=False) if quick else ingest_text.measure(rounds=3)


def _isolation(quick: bool) -> Table:
    return ingest_isolation.measure(rounds=2 if quick else 15)


def _splitter(quick: bool) -> Table:
    return ingest_splitter.measure(rounds=1 if quick else 5)


def _ocr(quick: bool) -> Table:
    return ingest_quality.measure_ocr()


def _sections(quick: bool) -> Table:
    return ingest_quality.measure_sections()


def _page(tables: list[Table]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `make bench ARGS=--write`, on {machine}, "
        f"mcp {version('mcp')}. Compare numbers within a table, not between machines."
    )
    return "\n\n".join(["# What Reading Room costs", about, *map(str, tables)]) + "\n"


if __name__ == "__main__":
    main()
