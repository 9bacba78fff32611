"""`python -m benchmarks`: measure, print the tables, and with `--write` keep them."""

import argparse
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import calls, startup
from benchmarks.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    """Measure what the arguments ask for."""
    asked = _arguments()
    tables = []
    for table in _tables(asked.part, asked.quick):
        print(table, end="\n\n", flush=True)
        tables.append(table)
    if asked.write:
        RESULTS.write_text(_page(tables, _kept()), "utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="a smoke run, too short to quote")
    kind.add_argument("--write", action="store_true", help="put the tables into RESULTS.md")
    parser.add_argument("--part", choices=("server", "engine"), help="measure one of the two")
    return parser.parse_args()


def _tables(part: str | None, quick: bool) -> Iterator[Table]:
    if part != "engine":
        yield _startup(quick)
        yield _calls(quick)
    if part != "server":
        # Imported here: the server's measurements do not wait for numpy.
        from benchmarks import engine

        yield from engine.tables(quick)


def _startup(quick: bool) -> Table:
    return startup.measure(rounds=2 if quick else 9)


def _calls(quick: bool) -> Table:
    return calls.measure(rounds=2, calls=40) if quick else calls.measure(rounds=15, calls=400)


def _kept() -> dict[str, str]:
    """The tables of the last run, by title: those that are not measured anew stay."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text("utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}" for part in parts}


def _page(tables: list[Table], kept: dict[str, str]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d} with `make bench ARGS=--write`, on {machine}, "
        f"mcp {version('mcp')}. Compare numbers within a table, not between machines."
    )
    measured = f"(Measured on {datetime.now(UTC):%Y-%m-%d}.)"
    sections = kept | {table.title: f"{table} {measured}" for table in tables}
    return "\n\n".join(["# What Reading Room costs", about, *sections.values()]) + "\n"


if __name__ == "__main__":
    main()
