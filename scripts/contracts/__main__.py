"""Writes what the public may rely on to tests/contracts/, and what has changed since 0.1.0.

    python -m scripts.contracts             write tests/contracts/current/ and
                                            docs/contract-changes.md
    python -m scripts.contracts --stored    the same, and the stored formats: loads the sample,
                                            which takes minutes
    python -m scripts.contracts --baseline WORKTREE
                                            write tests/contracts/0.1.0/ from the worktree of
                                            that version, with its own .venv

Run it after a text that users see was mended on purpose, and read the diff before committing it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.contracts.changes import render_changes
from scripts.contracts.snapshot import (
    BASELINE,
    CURRENT,
    ROOT,
    collect_stored,
    collect_surfaces,
    read_snapshot,
    write_snapshot,
)


def main(argv: Sequence[str]) -> None:
    """Write one snapshot, and the page that compares both."""
    parser = argparse.ArgumentParser(description="Write the snapshot of the public contracts.")
    parser.add_argument("--stored", action="store_true", help="also load the sample and look at it")
    parser.add_argument("--baseline", type=Path, help="a worktree of 0.1.0 with its .venv")
    options = parser.parse_args(argv)

    worktree = (options.baseline or ROOT).absolute()
    bin_folder, source = worktree / ".venv" / "bin", worktree / "src"
    folder = BASELINE if options.baseline else CURRENT
    snapshot = collect_surfaces(bin_folder, source)
    if options.stored or options.baseline:
        snapshot |= collect_stored(bin_folder, source)
    write_snapshot(folder, snapshot)
    page = render_changes(read_snapshot(BASELINE), read_snapshot(CURRENT))
    (ROOT / "docs" / "contract-changes.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
