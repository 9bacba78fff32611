"""The benchmarks keep up with the code, though nobody measures at every change."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("module", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_finds_what_it_measures(module: str) -> None:
    importlib.import_module(f"benchmarks.{module}")
