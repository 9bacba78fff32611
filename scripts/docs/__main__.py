"""Writes the generated pages of docs/, and checks every page.

    python -m scripts.docs            write docs/cli.md, errors.md, settings.md, tools.md, and the
                                      tree in ARCHITECTURE.md
    python -m scripts.docs --check    compare them with the code, and check the other pages

Of the pages written by hand it checks what a machine can: links, anchors, commands and their
options, settings and files that are named, and that examples parse. A command that is shown with
its output is a worked example on the sample: `tests/demo/test_sample.py` runs it and compares.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.docs.checks import check, generate
from scripts.docs.pages import ROOT, list_pages


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Write the pages, or print what is wrong with them; return the exit code."""
    parser = argparse.ArgumentParser(description="Write or check the documentation.")
    parser.add_argument("--check", action="store_true", help="change nothing, print what is wrong")
    if not parser.parse_args(argv).check:
        write(root)
        return 0
    problems = check(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(list_pages(root))} pages, {len(problems)} problems")
    return 1 if problems else 0


def write(root: Path) -> None:
    """Write every generated page."""
    for name, text in generate(root).items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
