"""The tree of modules in ARCHITECTURE.md, made from the first lines of the modules' docstrings."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from scripts.docs.markdown import block
from scripts.docs.pages import PACKAGE

BEGIN = "<!-- tree: written by `make docs` from the modules' docstrings -->"
END = "<!-- end of tree -->"
_REGION = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)

# What stands beside the package.
OTHER_FOLDERS = {
    "tests/": "Mirrors src; support/ has the test doubles, requirements what must hold",
    "benchmarks/": "One folder per part; RESULTS.md has what was measured",
    "scripts/": "docs/ (pages generated and checked), contracts, structure, licences, bundle",
    "deploy/": "What runs it elsewhere: systemd, Prometheus, Claude Desktop",
    ".ci/": "run (what CI calls) and part (a time budget per part)",
}


def replace_tree(text: str) -> str:
    """Return ARCHITECTURE.md with the present tree between the two markers."""
    tree = "\n".join([*render_folder(PACKAGE, "src/readingroom/"), *render_rows(OTHER_FOLDERS)])
    region = f"{BEGIN}\n{block('text', tree)}\n{END}"
    return _REGION.sub(lambda _: region, text)


def render_folder(folder: Path, name: str, indent: str = "") -> Iterator[str]:
    """Yield the line of a package, then those of its modules, then those of its packages."""
    yield f"{indent}{name}  {read_summary(folder / '__init__.py')}"
    inner = indent + "  "
    modules = {
        path.name: read_summary(path)
        for path in sorted(folder.glob("*.py"))
        if path.stem != "__init__"
    }
    yield from render_rows(modules, inner)
    for package in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from render_folder(package, f"{package.name}/", inner)


def render_rows(rows: dict[str, str], indent: str = "") -> Iterator[str]:
    """Yield names and summaries in two columns."""
    width = max(map(len, rows), default=0)
    for name, summary in rows.items():
        yield f"{indent}{name:<{width}}  {summary}"


def read_summary(path: Path) -> str:
    """Return the first line of a module's docstring, without the full stop."""
    return summarise(path.read_text("utf-8"))


@cache  # the checks are tested many times over, and parsing is half of them
def summarise(source: str) -> str:
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n")[0].removesuffix(".")
