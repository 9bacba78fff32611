"""Tests that run on both engines: what they share in a module is made anew for each engine."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def list_shared_fixtures(tree: ast.Module) -> dict[str, set[str]]:
    """Return the fixtures that the tests of a module share, each with what it asks for."""
    return {
        node.name: {argument.arg for argument in node.args.args}
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(
            'scope="module"' in ast.unparse(each).replace("'", '"') for each in node.decorator_list
        )
    }


def asks_for_engine(name: str, fixtures: dict[str, set[str]]) -> bool:
    """Return whether a fixture depends on the engine, by itself or by others of its module."""
    arguments = fixtures[name]
    return "engine" in arguments or any(
        asks_for_engine(argument, fixtures) for argument in arguments & fixtures.keys()
    )


MODULES = [
    path.relative_to(TESTS).as_posix()
    for path in sorted(TESTS.rglob("test_*.py"))
    if "pytest.mark.both_engines" in path.read_text("utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_what_tests_of_both_engines_share_is_of_the_engine_that_runs(module: str) -> None:
    # Otherwise pytest keeps what the first engine has, and the second is never tested.
    fixtures = list_shared_fixtures(ast.parse((TESTS / module).read_text("utf-8")))
    assert [name for name in fixtures if not asks_for_engine(name, fixtures)] == []
