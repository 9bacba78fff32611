"""The public contracts are those of the snapshot; to those of 0.1.0 things were added, no more."""

import sys
from pathlib import Path

from scripts.contracts.changes import (
    compare,
    find_shape_differences,
    is_widened,
    render_changes,
)
from scripts.contracts.snapshot import BASELINE, CURRENT, ROOT, collect_surfaces, read_snapshot
from tests.requirements import requirement


@requirement("room:docs")
def test_the_snapshot_is_what_this_version_offers() -> None:
    expected = read_snapshot(CURRENT)
    del expected["stored"]  # tests/demo/test_sample.py compares it: it has the sample loaded

    # The code beside this file, whatever is installed: it may be another worktree's.
    offered = collect_surfaces(Path(sys.executable).parent, ROOT / "src")
    differences = list(compare(expected, offered))

    assert differences == [], "mended on purpose? python -m scripts.contracts, and read its diff"


@requirement("room:docs")
def test_nothing_that_the_first_version_offered_has_changed() -> None:
    assert find_shape_differences(read_snapshot(BASELINE), read_snapshot(CURRENT)) == []


@requirement("room:docs")
def test_the_page_of_changes_is_current() -> None:
    page = (ROOT / "docs" / "contract-changes.md").read_text("utf-8")

    assert page == render_changes(read_snapshot(BASELINE), read_snapshot(CURRENT))


def test_an_optional_parameter_a_value_and_a_column_are_additions() -> None:
    old_table = "CREATE TABLE t ( id TEXT, a TEXT GENERATED ALWAYS AS (json(r, '$.a')) STORED )"
    new_table = old_table.replace(" )", ", b TEXT )")
    parameters = [{"name": "a", "required": False, "description": "One."}]
    optional = [{"name": "b", "required": False}, {"name": "a", "required": False}]
    required = [*parameters, {"name": "b", "required": True}]
    enum = "mcp / tools / count / inputSchema / properties / x / enum"

    assert is_widened("stored / t", old_table, new_table)
    assert not is_widened("stored / t", new_table, old_table)
    assert not is_widened("stored / t", old_table, new_table.replace("id TEXT", "id INTEGER"))
    assert is_widened("stored / chroma / policy / policy_docs", ["a"], ["a", "b"])
    assert not is_widened("stored / chroma / policy / policy_docs", ["a", "b"], ["a", "c"])
    assert is_widened("openapi / parameters", parameters, optional)
    assert not is_widened("openapi / parameters", parameters, required)
    assert not is_widened("openapi / parameters", required, optional)
    assert is_widened(enum, ["a"], ["a", "b"])
    assert not is_widened(enum, ["a", "b"], ["a"])
    assert not is_widened(enum.replace("input", "output"), ["a"], ["a", "b"])
