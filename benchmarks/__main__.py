"""`python -m benchmarks`: measure, print the tables, and with `--write` store them."""

import argparse
import importlib
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.table import Table

RESULTS = Path(__file__).with_name("RESULTS.md")

# A part is imported when it is measured, so that the server's does not wait for numpy.
PARTS = {
    **{
        part: f"benchmarks.{part}.tables"
        for part in (
            *("server", "engine", "ingest", "policy", "documents", "guidance", "federal"),
            *(
                "load",
                "attacks",
                "newcomer",
                "routing",
                "redesign",
                "sandbox",
                "planning",
                "console",
            ),
        )
    },
    "federal-answers": "benchmarks.federal.answers",
    "findings": "benchmarks.attacks.findings",
    **{
        f"beside-{part}": f"benchmarks.beside.{part}"
        for part in ("startup", "calls", "desk", "engine", "ingest", "federal", "quality")
    },
}


def main() -> None:
    """Measure the parts that the arguments name."""
    options = _parse_arguments()
    if options.baseline:
        os.environ["BENCHMARK_BASELINE"] = options.baseline
    tables = []
    for part in options.part or PARTS:
        for table in importlib.import_module(PARTS[part]).tables(options.quick):
            print(table, end="\n\n", flush=True)
            tables.append(table)
            if options.write:  # after each table, because a part may take long
                RESULTS.write_text(_render_page(tables, _read_results()), "utf-8")


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--quick", action="store_true", help="a smoke run, too short to quote")
    kind.add_argument("--write", action="store_true", help="write the tables to RESULTS.md")
    parser.add_argument("--part", choices=PARTS, action="append", help="one part; may be repeated")
    parser.add_argument(
        "--baseline", help="a worktree of 0.1.0, for redesign and beside [made in build/]"
    )
    return parser.parse_args()


def _read_results() -> dict[str, str]:
    """Return the tables of earlier runs by title, so that what is not measured again stays."""
    if not RESULTS.exists():
        return {}
    parts = RESULTS.read_text("utf-8").split("\n## ")[1:]
    return {part.partition("\n")[0]: f"## {part.rstrip()}" for part in parts}


def _render_page(tables: list[Table], earlier: dict[str, str]) -> str:
    machine = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    about = (
        f"Measured with `make bench ARGS=--write` (one part: `ARGS='--part server --write'`), on "
        f"{machine}, mcp {version('mcp')}. Compare numbers within a table, not between machines."
    )
    measured = f"(Measured on {datetime.now(UTC):%Y-%m-%d}.)"
    sections = earlier | {table.title: f"{table} {measured}" for table in tables}
    return "\n\n".join(["# What Reading Room costs", about, *sections.values()]) + "\n"


if __name__ == "__main__":
    main()
