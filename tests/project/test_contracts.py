"""The public contracts are those of the snapshot; to those of 0.1.0 things were added, no more."""

import sys
from pathlib import Path

from scripts.contracts.changes import changes_page, compare, find_shape_differences
from scripts.contracts.snapshot import BASELINE, CURRENT, ROOT, collect_surfaces, read_snapshot
from tests.requirements import requirement


@requirement("room:docs")
def test_the_snapshot_is_what_this_version_offers() -> None:
    expected = read_snapshot(CURRENT)
    del expected["stored"]  # tests/demo/test_sample.py compares it: it has the sample loaded

    differences = list(compare(expected, collect_surfaces(Path(sys.executable).parent)))

    assert differences == [], "mended on purpose? python -m scripts.contracts, and read its diff"


@requirement("room:docs")
def test_nothing_that_the_first_version_offered_has_changed() -> None:
    assert find_shape_differences(read_snapshot(BASELINE), read_snapshot(CURRENT)) == []


@requirement("room:docs")
def test_the_page_of_changes_is_current() -> None:
    page = (ROOT / "docs" / "contract-changes.md").read_text("utf-8")

    assert page == changes_page(read_snapshot(BASELINE), read_snapshot(CURRENT))
