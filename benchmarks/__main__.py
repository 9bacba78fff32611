"""`python -m benchmarks`: measure, print the tables, and with `--write` keep them."""

import argparse
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import calls, policy_ingest, policy_search, startup
from benchmarks.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Measure what the arguments ask for."""
    asked = _arguments()
    tables = []
    for measure in (_startup, _calls, _policy_few, _policy_many, _policy_ingest):
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


def _policy_few(quick: bool) -> Table:
    return policy_search.measure(chunks=1_000, rounds=3 if quick else 41)


def _policy_many(quick: bool) -> Table:
    return policy_search.measure(chunks=2_000 if quick else 50_000, rounds=3 if quick else 21)


def _policy_ingest(quick: bool) -> Table:
    return policy_ingest.measure(paragraphs=60 if quick else 1400)


def _calls(quick: bool) -> Table:
    return calls.measure(rounds=2, calls=40) if quick else calls.measure(rounds=15, calls=400)


def _page(tables: list[Table]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `make bench ARGS=--write`, on {machine}, "
        f"mcp {version('mcp')}. Compare numbers within a table, not between machines."
    )
    return "\n\n".join(["# What Reading Room costs", about, *map(str, tables)]) + "\n"


if __name__ == "__main__":
    main()
