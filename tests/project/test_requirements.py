"""The requirements and the tests agree: what is built has a test, and what a test names exists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.requirements import REQUIREMENTS

TESTS = Path(__file__).parents[1]
SHARED_REQUIREMENTS = TESTS.parent.parent / "shared" / "REQUIREMENTS.md"
MARKS = {"requirement", "pytest.mark.requirement"}


def test_what_is_built_has_a_test_and_what_a_test_names_exists_and_is_not_deferred() -> None:
    marks = list(find_marks_under(TESTS))

    disagreements = [
        *list_without_test(marks),
        *list_unknown(marks),
        *list_built_but_deferred(marks),
    ]

    assert not disagreements, "\n" + "\n".join(disagreements)


@pytest.mark.data
def test_every_id_that_the_shared_requirements_name_is_in_the_manifest() -> None:
    ids = set(list_ids_in_tables(SHARED_REQUIREMENTS.read_text(encoding="utf-8")))

    assert ids, f"no id in {SHARED_REQUIREMENTS}"
    assert ids <= REQUIREMENTS.keys(), sorted(ids - REQUIREMENTS.keys())


@dataclass(frozen=True)
class Mark:
    """An id that a test names."""

    id: str
    where: str


def list_without_test(marks: list[Mark]) -> Iterator[str]:
    ids = {mark.id for mark in marks}
    for requirement in REQUIREMENTS.values():
        if requirement.deferred is None and requirement.id not in ids:
            yield f"{requirement.id}: no test names it"


def list_unknown(marks: list[Mark]) -> Iterator[str]:
    for mark in marks:
        if mark.id not in REQUIREMENTS:
            yield f"{mark.where}: {mark.id} is not in tests/requirements/"


def list_built_but_deferred(marks: list[Mark]) -> Iterator[str]:
    for mark in marks:
        if mark.id in REQUIREMENTS and REQUIREMENTS[mark.id].deferred is not None:
            yield f"{mark.where}: {mark.id} is built: take `deferred` away"


# Read from the source, not from what pytest collected, so that it holds whatever is deselected.


def find_marks_under(folder: Path) -> Iterator[Mark]:
    for path in sorted(folder.rglob("*.py")):
        # The manifest defines the mark, and npm packages bring Python of their own.
        if path.parent != folder / "requirements" and "node_modules" not in path.parts:
            yield from find_marks(path, str(path.relative_to(folder.parent)))


def find_marks(path: Path, name: str) -> Iterator[Mark]:
    tree = ast.parse(path.read_bytes(), filename=name)
    on_tests = [call for node in ast.walk(tree) for call in list_decorators(node)]
    for call in filter(is_mark, ast.walk(tree)):
        where = f"{name}:{call.lineno}"
        if call not in on_tests:
            pytest.fail(f"{where}: a requirement decorates a test or stands in pytestmark")
        for argument in [*call.args, *call.keywords]:
            yield Mark(read_literal(argument, where), where)


def list_decorators(node: ast.AST) -> Iterator[ast.expr]:
    """What a test function, a test class or a `pytestmark` is marked with."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name.startswith("test"):
                yield from node.decorator_list
        case ast.ClassDef(name=name) if name.startswith("Test"):
            yield from node.decorator_list
        case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
            yield from value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def is_mark(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in MARKS


def read_literal(argument: ast.AST, where: str) -> str:
    match argument:
        case ast.Constant(value=str(id)):
            return id
    pytest.fail(f"{where}: a requirement is named by string literals only")


def list_ids_in_tables(markdown: str) -> Iterator[str]:
    for line in markdown.splitlines():
        if line.startswith("| ") and (cell := line.split("|")[1].strip()) != "id":
            yield from list_ids_in_cell(cell)


def list_ids_in_cell(cell: str) -> Iterator[str]:
    """The ids of one cell: `a:b, :c` continues the prefix, `a:X-1 … a:X-3` is a range."""
    prefix = ""
    for part in cell.split(", "):
        first, _, last = part.partition(" … ")
        id = prefix + first if first.startswith(":") else first
        prefix = id.rpartition(":")[0]
        yield from list_ids_between(id, last) if last else [id]


def list_ids_between(first: str, last: str) -> Iterator[str]:
    stem, _, low = first.rpartition("-")
    for number in range(int(low), int(last.rpartition("-")[2]) + 1):
        yield f"{stem}-{number:0{len(low)}}"
