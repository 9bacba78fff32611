"""The benchmarks keep up with the code, though nobody measures at every change."""

import importlib
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def _module_name(path: Path) -> str:
    parts = path.relative_to(FOLDER.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("module", sorted(_module_name(path) for path in FOLDER.rglob("*.py")))
def test_a_benchmark_imports_what_it_measures(module: str) -> None:
    importlib.import_module(module)
