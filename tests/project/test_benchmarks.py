"""The benchmarks keep up with the code, though nobody measures at every change."""

import importlib
from pathlib import Path

import pytest

from benchmarks.__main__ import PARTS

FOLDER = Path(__file__).parents[2] / "benchmarks"
# A program that measures as soon as it is imported; `redesign/tables.py` runs it.
PROGRAMS = ("redesign.open_bases",)


def find_modules() -> list[str]:
    paths = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.py"))
    return sorted({".".join(path.parts) for path in paths} - {*PROGRAMS})


@pytest.mark.parametrize("module", find_modules())
def test_a_benchmark_finds_what_it_measures(module: str) -> None:
    importlib.import_module(f"benchmarks.{module}")


@pytest.mark.parametrize("module", PARTS.values())
def test_every_part_has_tables(module: str) -> None:
    assert callable(importlib.import_module(module).tables)
