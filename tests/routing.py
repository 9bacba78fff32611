"""Which tool would a retriever pick for a question: a fixed scorer over what a listing says.

It knows what an agent's retriever knows: a tool's name, its description and the names of its
arguments. A score by words (BM25, stemmed) and one by meaning (the engine's own model: the whole
description and its nearest sentence, half each), each as a share of the best, count the same. It
was chosen by cross-validation on tuning questions; it has no weight that was fitted.
"""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy

from readingroom.core.settings import load
from readingroom.engine.embedding import Embedder, Vector
from readingroom.engine.words import words_of
from readingroom.protocol.tool import Tool
from readingroom.server.catalogue import OFFERS, desk_of, embedder_of, faces_of_all, open_bases

_FIXTURES = Path(__file__).parent / "fixtures"
TUNING = _FIXTURES / "mcp_routing_eval.jsonl"
HELD_OUT = _FIXTURES / "mcp_routing_heldout.jsonl"
"""Written by somebody who saw no description; no description may be changed for one of these."""

Reason = Literal["word", "sibling", "base"]
REASONS: dict[Reason, str] = {
    "word": "no telling word of the question is in what the tool says",
    "sibling": "a tool of the same base says it better",
    "base": "its words draw a tool of another base",
}

_SENTENCE = re.compile(r"(?<=[.;:])\s+")
_EXAMPLE = re.compile(r"`([^`]*)`")
_ID = re.compile(r"\w[\w:/.-]*\w")
_MARKS = str.maketrans({":": "c", "/": "s", "_": "u", "-": "d", ".": "p"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a person asks it, and the tool that answers it."""

    question: str
    tool: str
    shape: str
    blind: bool
    """Written from the contracts alone, before any description was read."""


@dataclass(frozen=True, slots=True)
class Routed:
    """A question, and the tools in the order in which they would be picked."""

    asked: Asked
    order: tuple[str, ...]
    base: str
    """Whose tool it is that answers."""
    reason: Reason
    """Why it is missed, where it is."""

    @property
    def place(self) -> int:
        return self.order.index(self.asked.tool) + 1


def questions(file: Path) -> list[Asked]:
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [
        Asked(one["question"], one["tool"], one.get("shape", ""), one.get("blind", True))
        for one in lines
    ]


def routed(data: Path, asked: Sequence[Asked]) -> list[Routed]:
    """The questions over the listing of the face of all bases."""
    settings = load({"data": data}, {})
    bases = open_bases(sorted(OFFERS), settings)
    everything, *_ = faces_of_all(bases, desk_of(bases, settings))
    owners = {tool.name: base.name for base in everything.bases for tool in base.tools}
    tools = [tool for tool, _ in everything.shelf.values()]
    return list(route(asked, tools, owners, embedder_of(settings)))


def route(
    asked: Iterable[Asked], tools: Sequence[Tool], owners: dict[str, str], embedder: Embedder
) -> Iterator[Routed]:
    """Rank every tool for every question."""
    with closing(_Listing(tools, embedder)) as listing:
        for one in asked:
            words = listing.by_words(one.question)
            meaning = listing.by_meaning(one.question)
            score = {name: meaning[name] + words.get(name, 0.0) for name in meaning}
            order = tuple(sorted(score, key=lambda name: (-score[name], name)))
            near: Reason = "sibling" if owners[order[0]] == owners[one.tool] else "base"
            yield Routed(one, order, owners[one.tool], near if one.tool in words else "word")


def share(routed: Sequence[Routed], top: int) -> float:
    """How many of the questions find their tool among the first `top`."""
    return sum(one.place <= top for one in routed) / len(routed)


class _Listing:
    """What the tools say, ready to be compared with a question."""

    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self._embedder = embedder
        self._whole = {tool.name: embedder.embed(_text(tool)) for tool in tools}
        self._sentences = {
            tool.name: [embedder.embed(one) for one in _sentences(tool)] for tool in tools
        }
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name UNINDEXED, text, tokenize='porter')"
        )
        rows = ((tool.name, " ".join((_text(tool), *_examples(tool)))) for tool in tools)
        self._db.executemany("INSERT INTO tools VALUES (?, ?)", rows)

    def close(self) -> None:
        self._db.close()

    def by_meaning(self, question: str) -> dict[str, float]:
        """All tools: the mean of the whole text's nearness and that of its nearest sentence."""
        asked = self._embedder.embed(question)
        return _shares({name: self._nearness(name, asked) for name in self._whole})

    def _nearness(self, name: str, asked: Vector) -> float:
        nearest = max(float(numpy.dot(one, asked)) for one in self._sentences[name])
        return (float(numpy.dot(self._whole[name], asked)) + nearest) / 2

    def by_words(self, question: str) -> dict[str, float]:
        """The tools that share a word with the question, or the form of an id."""
        wanted = [*words_of(question), *_forms([question])]
        either = " OR ".join(f'"{word}"' for word in wanted)
        found = self._db.execute(
            "SELECT name, -bm25(tools) FROM tools WHERE tools MATCH ?", (either,)
        )
        return _shares(dict(found.fetchall()))


def _shares(scores: dict[str, float]) -> dict[str, float]:
    best = max(scores.values(), default=1.0)
    return {name: score / best for name, score in scores.items()}


def _text(tool: Tool) -> str:
    arguments = tool.input_schema.get("properties", {})
    return " ".join((tool.name, tool.describe(), *arguments)).replace("_", " ")


def _sentences(tool: Tool) -> list[str]:
    name = tool.name.replace("_", " ")
    return [f"{name}: {one}" for one in _SENTENCE.split(" ".join(tool.describe().split()))]


def _examples(tool: Tool) -> list[str]:
    """The forms of the ids that its description gives as examples."""
    return _forms(_EXAMPLE.findall(tool.describe()))


def _forms(texts: Iterable[str]) -> list[str]:
    """The forms of the ids in texts, as words: `hr:118:25` is written as `hr:119:1` is."""
    found = {_form(one) for text in texts for one in _ID.findall(text)}
    return sorted(f"form{one.translate(_MARKS)}" for one in found if one)


def _form(word: str) -> str:
    """How an id is written, digits and letters aside; empty for a word that is none."""
    if word.isalnum():
        is_id = re.search(r"\d", word) and re.search(r"[A-Z]", word)
        return re.sub(r"[A-Z]", "X", re.sub(r"\d", "9", word)) if is_id else ""
    is_id = re.search(r"[\d_]", word)
    return re.sub(r"[A-Z]+", "X", re.sub(r"[a-z0-9]+", "x", word)) if is_id else ""
