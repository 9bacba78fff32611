"""Measures how the code reads: sizes, names, imports inside functions, comments.

python -m scripts.structure                          the table, beside that of 0.1.0
python -m scripts.structure --names 50 --seed 17     names drawn at random, for a reader
"""

import argparse
import ast
import random
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "readingroom"
FORBIDDEN_NAME = "told"
VAGUE_NAMES = ("one", "found", "known", "held", "said")
MAX_FILE_LINES = 500

# Class names that several packages define for the same role, each once for its base.
HONEST_TWINS = frozenset({"Hit", "Ingestion", "StoredChunk"})

# `get_…` that may return None, by its place, with the reason.
GETTERS_OF_NONE = {
    "bases/guidance/cli.py:get": "a command: the verb that is typed",
    "cli.py:get_command": "click's interface",
    "core/lru.py:get": "as dict.get",
    "server/auth/connectors.py:get_client": "the interface of the SDK's OAuth provider",
}

# What `describe_…` may return: words, or lines of them.
WORD_TYPES = frozenset(
    {"str", "str | None", "Iterator[str]", "list[str]", "Sequence[str]", "tuple[str, ...]"}
)

# 0.1.0 (commit b0dd50c), measured by this script.
BASELINE = (
    *("7 / 22 / 89", "33 (bases/federal)", "119", "229", "633", "25", "1.3 %", "7"),
    *("18",),
)
TARGETS = ("as it was", "≤ 15", "≤ 20", "0", "≤ 60", "0 but twins", "2–4 %", "≤ 2", "≤ 3")


@dataclass(frozen=True)
class Module:
    """One source file, parsed."""

    path: Path
    tree: ast.Module
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in ast.walk(self.tree) if isinstance(node, kinds)]


class Structure:
    """The measures of a package."""

    def __init__(self, package: Path = PACKAGE) -> None:
        self.package = package
        self.modules = [parse(path) for path in sorted(package.rglob("*.py"))]

    @cached_property
    def function_lines(self) -> tuple[int, int, int]:
        """Median, 95th percentile and maximum of the lines of a function."""
        lengths = sorted(
            (node.end_lineno or 0) - node.lineno + 1
            for module in self.modules
            for node in module.functions
        )
        percentile = statistics.quantiles(lengths, n=20)[-1]
        return round(statistics.median(lengths)), round(percentile), lengths[-1]

    @cached_property
    def largest_package(self) -> tuple[int, str]:
        """The most modules in one folder, and which; commands/ has one per verb and is left out."""
        sizes = Counter(
            module.path.parent.relative_to(self.package).as_posix()
            for module in self.modules
            if module.path.stem != "__init__"
        )
        del sizes["commands"]
        name, size = sizes.most_common(1)[0]
        return size, name

    @cached_property
    def inner_imports(self) -> list[str]:
        """Where a function imports something."""
        places = set()
        for module in self.modules:
            for function in module.functions:
                for node in ast.walk(function):
                    if isinstance(node, ast.Import | ast.ImportFrom):
                        places.add(f"{module.path.relative_to(self.package)}:{node.lineno}")
        return sorted(places)

    @cached_property
    def bindings(self) -> Counter[str]:
        """How often each name is bound: assigned, a parameter, a function, a class, a field."""
        return Counter(name for module in self.modules for name in bound_names(module.tree))

    @cached_property
    def repeated_classes(self) -> dict[str, int]:
        """Public class names that more than one class has, with how many do."""
        names = Counter(
            node.name
            for module in self.modules
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        return {name: count for name, count in sorted(names.items()) if count > 1}

    @cached_property
    def getters_of_none(self) -> list[str]:
        """Where a function is called `get_…` and may return None: such a one is `find_…`."""
        return [
            place
            for place, answer in self._list_answers("get")
            if "None" in (part.strip() for part in answer.split("|"))
        ]

    @cached_property
    def wordless_descriptions(self) -> list[str]:
        """Where a function is called `describe_…` and returns no words: such a one is `build_…`."""
        return [
            place for place, answer in self._list_answers("describe") if answer not in WORD_TYPES
        ]

    def _list_answers(self, verb: str) -> Iterator[tuple[str, str]]:
        """Yield each function whose name begins with a verb: its place, and what it returns."""
        for module in self.modules:
            for function in module.functions:
                if function.name.lstrip("_").partition("_")[0] == verb and function.returns:
                    place = f"{module.path.relative_to(self.package).as_posix()}:{function.name}"
                    yield place, ast.unparse(function.returns).strip("'")

    @cached_property
    def comment_share(self) -> float:
        """The share of lines that hold a comment, in per cent."""
        comments = sum(count_comments(module.path) for module in self.modules)
        return 100 * comments / sum(len(module.lines) for module in self.modules)

    @cached_property
    def long_files(self) -> list[str]:
        return [
            f"{module.path.relative_to(self.package)} ({len(module.lines)})"
            for module in self.modules
            if len(module.lines) > MAX_FILE_LINES
        ]


def parse(path: Path) -> Module:
    text = path.read_text("utf-8")
    return Module(path, ast.parse(text), text)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield every name that is bound, once for each place that binds it."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name
            case ast.alias(asname=str(name)):
                yield name


def count_comments(path: Path) -> int:
    with path.open("rb") as file:
        return sum(token.type == tokenize.COMMENT for token in tokenize.tokenize(file.readline))


def measure(structure: Structure) -> list[tuple[str, str]]:
    """Return the rows of the table: what is measured, and its value."""
    size, name = structure.largest_package
    vague = {name: structure.bindings[name] for name in VAGUE_NAMES}
    repeated = structure.repeated_classes
    return [
        ("function lines, median / p95 / max", " / ".join(map(str, structure.function_lines))),
        ("modules in the largest package (not commands/)", f"{size} ({name})"),
        ("imports inside functions", str(len(structure.inner_imports))),
        ("the name `told` bound", str(structure.bindings[FORBIDDEN_NAME])),
        ("`one`, `found`, `known`, `held`, `said` bound", str(sum(vague.values()))),
        ("public class names defined twice", str(len(repeated.keys() - HONEST_TWINS))),
        ("comments, share of lines", f"{structure.comment_share:.1f} %"),
        (f"files over {MAX_FILE_LINES} lines", str(len(structure.long_files))),
        ("places to touch for a sixth base (counted by hand)", "see ARCHITECTURE.md"),
    ]


def print_table(structure: Structure) -> None:
    print("| | 0.1.0 | now | wanted |\n|---|---|---|---|")
    rows = zip(measure(structure), BASELINE, TARGETS, strict=True)
    for (label, value), before, target in rows:
        print(f"| {label} | {before} | {value} | {target} |")
    print()
    print("Names defined twice:", ", ".join(structure.repeated_classes) or "none")
    print("Long files:", ", ".join(structure.long_files) or "none")


def draw_names(structure: Structure, count: int, seed: int, part: str = "") -> list[str]:
    """Draw names, each with what it is and where: "value in load_files, bases/federal/cli.py".

    A reader of code sees as much of a name wherever it is bound; more, he is to say himself.
    """
    places = sorted(
        {
            (name, f"{kind}{scope}, {path}")
            for module in structure.modules
            if (path := module.path.relative_to(structure.package).as_posix()).startswith(part)
            for name, kind, scope in list_bindings(module.tree)
            if name not in ("self", "cls", "_") and not name.startswith("__")
        }
    )
    chosen = random.Random(seed).sample(places, min(count, len(places)))
    return [f"{name:32} {place}" for name, place in chosen]


def list_bindings(
    tree: ast.AST, scope: str = "", in_class: bool = False
) -> Iterator[tuple[str, str, str]]:
    """Yield each name that is bound, what kind of thing it is, and in what."""
    inside = f" in {scope}" if scope else ""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.ClassDef(name=name):
                yield name, "class", inside
                yield from list_bindings(node, f"{scope}.{name}" if scope else name, True)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, "method" if in_class else "function", inside
                yield from list_bindings(node, f"{scope}.{name}" if scope else name)
            case ast.arg(arg=name):
                yield name, "parameter", inside.replace(" in ", " of ")
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, "field" if in_class else "value", inside
            case _:
                yield from list_bindings(node, scope, in_class)


def bound_names_of(node: ast.AST) -> list[str]:
    """Return the name that this node itself binds, if any."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
    return []


def main(argv: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description="Measure how the code reads.")
    parser.add_argument("--names", type=int, help="draw this many names instead")
    parser.add_argument("--seed", type=int, default=17, help="of the draw [17]")
    parser.add_argument("--part", default="", help="draw below this folder only")
    parser.add_argument("--package", type=Path, default=PACKAGE, help="another tree's readingroom/")
    parser.add_argument("--verbose", action="store_true", help="list the imports inside functions")
    options = parser.parse_args(argv)
    structure = Structure(options.package)
    if options.names:
        print("\n".join(draw_names(structure, options.names, options.seed, options.part)))
        return
    print_table(structure)
    if options.verbose:
        print("\n".join(["Imports inside functions:", *structure.inner_imports]))


if __name__ == "__main__":
    main(sys.argv[1:])
