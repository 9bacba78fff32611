"""The same commands to both engines: a base in a folder alone, and one with a database beside it.

What a command answers is told without what may differ: ids that each side made up, and its folder.
"""

import json
import math
import random
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from readingroom.core.errors import KnowledgeError

S = TypeVar("S")

WORDS = ("cycle", "parking", "homes", "Roads", "bats", "light", "ÉCOLE", "10%", "a_b", "the")


def choose_seeds(quick: int, full: int) -> list[Any]:
    """The first of them in `make test`, the others in `make test-all`."""
    return [
        seed if seed < quick else pytest.param(seed, marks=pytest.mark.full) for seed in range(full)
    ]


def make_folders(tmp_path: Path, url: str) -> tuple[Path, Path]:
    """A folder of each engine; what is opened on the second stands on the database."""
    embedded, shared = tmp_path / "embedded", tmp_path / "shared"
    # Where `engines.database_of` looks for it.
    shared.with_name(f"{shared.name}.database").write_text(url)
    return embedded, shared


def make_text(chance: random.Random, words: int = 8) -> str:
    return " ".join(chance.choices(WORDS, k=words)) + "."


class Sides(Generic[S]):
    """Two bases that get the same commands; `made` are the ids that each made up, in order."""

    def __init__(self, embedded: S, shared: S, *hidden: str) -> None:
        self.both = (embedded, shared)
        self.made: tuple[list[str], list[str]] = ([], [])
        self._hidden = hidden
        self.history: list[str] = []

    async def run_on_both(
        self, name: str, command: Callable[[S, Callable[[int], str]], Awaitable[Any]]
    ) -> Any:
        """Give both a command; their answers, or the codes of their errors, are equal."""
        self.history.append(name)
        answers = []
        for side, base in enumerate(self.both):
            made = self.made[side]
            try:
                answer = await command(base, made.__getitem__)
            except KnowledgeError as error:
                answer = {"error": error.code}
            answers.append(self._settle(answer, side))
        assert _agree(*answers), "\n".join((*self.history, *map(str, answers)))
        return answers[0]

    async def make(self, name: str, command: Callable[[S], Awaitable[str]]) -> None:
        """Let both make something, and remember the id that each gave it."""
        self.history.append(name)
        outcomes: list[str | None] = []
        for base in self.both:
            try:
                outcomes.append(await command(base))
            except KnowledgeError as error:
                self.history.append(error.code)
                outcomes.append(None)
        assert (outcomes[0] is None) == (outcomes[1] is None), "\n".join(self.history)
        for made, outcome in zip(self.made, outcomes, strict=True):
            if outcome is not None:
                made.append(outcome)

    def _settle(self, answer: Any, side: int) -> Any:
        if isinstance(answer, BaseModel):
            answer = answer.model_dump(mode="json")
        told = json.dumps(answer, default=str, sort_keys=True)
        for hidden in self._hidden:
            told = told.replace(hidden, "")
        for number, made in enumerate(self.made[side]):
            told = re.sub(rf"{re.escape(made)}(?![0-9a-z])", f"made {number}", told)
        return json.loads(told)


def _agree(one: Any, other: Any) -> bool:
    """Whether two answers are equal, scores within 1e-4."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_agree(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=0, abs_tol=1e-4)
    return bool(one == other)
