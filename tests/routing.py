"""Which tool would a retriever pick for a question: a fixed scorer over what a listing says.

It knows what an agent's retriever knows: a tool's name, its description and the names of its
arguments. A score by words (BM25, stemmed) and one by meaning (the engine's own model), each as a
share of the best, count the same. It was chosen among a dozen usual ones on the tuning half, with
the descriptions as they were before any was improved; it has no weight that was fitted.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from readingroom.core.settings import load
from readingroom.engine.embedding import Embedder
from readingroom.engine.words import words_of
from readingroom.protocol.tool import Tool
from readingroom.server.catalogue import OFFERS, desk_of, embedder_of, faces_of_all, open_bases

FIXTURE = Path(__file__).parent / "fixtures" / "mcp_routing_eval.jsonl"

Half = Literal["tuning", "held_out"]

REASONS = {
    "sibling": "a tool for the same things, one step narrower or wider, says nearly the same",
    "word": "the word that decides is not in the description",
    "id": "the form of the id says which tool it is, and a retriever does not read forms",
    "base": "its words draw a tool of another base",
    "topic": "all its words are the subject, none is what to do",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a person asks it, and the tool that answers it."""

    question: str
    tool: str
    shape: str
    blind: bool
    """Written from the contracts alone, before any description was read."""
    why: str = ""
    """Why the scorer missed it, by a word of `REASONS`, where it did in the held-out half."""

    @property
    def half(self) -> Half:
        """Its hash decides, so that nobody can: descriptions are improved on one half only."""
        return "held_out" if hashlib.sha256(self.question.encode()).digest()[0] % 2 else "tuning"


@dataclass(frozen=True, slots=True)
class Routed:
    """A question, and the tools in the order in which they would be picked."""

    asked: Asked
    order: tuple[str, ...]

    @property
    def place(self) -> int:
        return self.order.index(self.asked.tool) + 1


def questions() -> list[Asked]:
    return [Asked(**json.loads(line)) for line in FIXTURE.read_text("utf-8").splitlines()]


def routed(data: Path, asked: Sequence[Asked] | None = None) -> list[Routed]:
    """The questions, all unless some are given, over the listing of the face of all bases."""
    settings = load({"data": data}, {})
    bases = open_bases(sorted(OFFERS), settings)
    everything, *_ = faces_of_all(bases, desk_of(bases, settings))
    tools = [tool for tool, _ in everything.shelf.values()]
    return route(asked or questions(), tools, embedder_of(settings))


def route(asked: Iterable[Asked], tools: Sequence[Tool], embedder: Embedder) -> list[Routed]:
    """Rank every tool for every question."""
    texts = {tool.name: _text(tool) for tool in tools}
    names = list(texts)
    vectors = embedder.embed_batch(list(texts.values()))
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE tools USING fts5(name UNINDEXED, text, tokenize='porter')")
        db.executemany("INSERT INTO tools VALUES (?, ?)", texts.items())
        routed = []
        for one in asked:
            nearness = vectors @ embedder.embed(one.question)
            meaning = dict(zip(names, nearness / nearness.max(), strict=True))
            words = _by_words(db, one.question)
            score = {name: meaning[name] + words.get(name, 0.0) for name in names}
            routed.append(Routed(one, tuple(sorted(names, key=lambda name: (-score[name], name)))))
        return routed


def share(routed: Sequence[Routed], top: int) -> float:
    """How many of the questions find their tool among the first `top`."""
    return sum(one.place <= top for one in routed) / len(routed)


def _text(tool: Tool) -> str:
    arguments = tool.input_schema.get("properties", {})
    return " ".join((tool.name, tool.describe(), *arguments)).replace("_", " ")


def _by_words(db: sqlite3.Connection, question: str) -> dict[str, float]:
    """The tools that share a word with the question, each by its share of the best score."""
    either = " OR ".join(f'"{word}"' for word in words_of(question))
    found = db.execute("SELECT name, -bm25(tools) FROM tools WHERE tools MATCH ?", (either,))
    scores = dict(found.fetchall())
    best = max(scores.values(), default=1.0)
    return {name: score / best for name, score in scores.items()}
