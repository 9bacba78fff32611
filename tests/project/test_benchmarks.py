"""The benchmarks keep up with the code, though nobody measures at every change."""

import importlib
from pathlib import Path

import pytest

from benchmarks.__main__ import PARTS
from benchmarks.beside.rounds import judge
from benchmarks.beside.workloads import PLACES

FOLDER = Path(__file__).parents[2] / "benchmarks"
# A program that measures as soon as it is imported; `redesign/tables.py` runs it.
PROGRAMS = ("redesign.open_bases",)
# Built on torch, which is in no lock; `adapter/__main__.py` imports it where a step needs it.
NEED_TORCH = ("adapter.network",)


def find_modules() -> list[str]:
    paths = (path.relative_to(FOLDER).with_suffix("") for path in FOLDER.rglob("*.py"))
    return sorted({".".join(path.parts) for path in paths} - {*PROGRAMS, *NEED_TORCH})


@pytest.mark.parametrize("module", find_modules())
def test_a_benchmark_finds_what_it_measures(module: str) -> None:
    importlib.import_module(f"benchmarks.{module}")


@pytest.mark.parametrize("module", PARTS.values())
def test_every_part_has_tables(module: str) -> None:
    assert callable(importlib.import_module(module).tables)


@pytest.mark.parametrize("place", [places[0] for places in PLACES.values()])
def test_what_is_measured_beside_an_earlier_version_is_still_there(place: str) -> None:
    module, _, attribute = place.partition(":")
    assert hasattr(importlib.import_module(f"readingroom.{module}"), attribute)


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        ([1.0, 2.1, 3.0], "yes"),
        ([0.1, 0.2, 0.3], "better"),
        ([3.1, 3.2, 3.3], "**no**"),
        ([2.2, 2.5, 2.9], "**no**"),  # its median is in the range of the old, not the reverse
    ],
)
def test_two_versions_are_alike_where_each_median_is_in_the_other_range(
    new: list[float], verdict: str
) -> None:
    assert judge([1.0, 2.0, 3.0], new) == verdict
