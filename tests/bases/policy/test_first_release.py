"""A data directory that 0.1.0 wrote, with policies and an application, answers as it did there."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement
from tests.support.first_release import ANSWERS, QUESTIONS, unpack_fixture
from tests.support.kit import invoke

# Scores mean something else now, and paths name the folder in which the fixture was made.
_NOT_COMPARED = frozenset(("file_path", "relevance_score", "score", "parts", "citation"))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_fixture(tmp_path_factory.mktemp("first") / "data")


def list_differences(old: Any, new: Any, place: str = "answer") -> list[str]:
    """Say where what 0.1.0 answered is missing or different; what was added does not count."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            difference
            for name, value in old.items()
            if name not in _NOT_COMPARED
            for difference in list_differences(value, new.get(name, "missing"), f"{place}.{name}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [
            difference
            for index, (old_item, new_item) in enumerate(zip(old, new, strict=True))
            for difference in list_differences(old_item, new_item, f"{place}[{index}]")
        ]
    return [] if old == new else [f"{place}: {old!r} became {new!r}"]


@pytest.mark.parametrize("index", range(len(QUESTIONS)))
@requirement("policy:first-release")
def test_a_directory_of_the_first_release_answers_the_same(data: Path, index: int) -> None:
    expected = json.loads(ANSWERS.read_text("utf-8"))[index]

    ended = invoke(*QUESTIONS[index], "--data", str(data), "--json")

    assert ended.returncode == 0, ended.stderr
    assert list_differences(expected, json.loads(ended.stdout)) == []
