"""Which tool would a retriever pick for a question: a fixed scorer over what a listing says.

It knows what an agent's retriever knows: a tool's name, its description and the names of its
arguments. A score by words (BM25, stemmed) and one by meaning (the engine's own model: the whole
description and its nearest sentence, half each), each as a share of the best, count the same. It
has no weight that was fitted and knows no tool by name. Four things it reads as a person would:

- "For the wording use `get_bill_text`" sends the reader away: a sentence that names another tool
  says nothing of its own.
- A quotation in a question is what to look for, not what to do: its meaning is left out.
- An id is known by its form: `hr:118:25` is written as `hr:119:1` is, `118th` as `119th`.
- H.R. is HR. Small words count: who, how many, each and between tell tools apart.
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
from readingroom.protocol.tool import Tool
from readingroom.server.catalogue import OFFERS, desk_of, embedder_of, faces_of_all, open_bases

_FIXTURES = Path(__file__).parent / "fixtures"
TUNING = _FIXTURES / "mcp_routing_eval.jsonl"
HELD_OUT = _FIXTURES / "mcp_routing_heldout.jsonl"
"""Written by somebody who saw no description; no description may be changed for one of these.

Questions that were looked at move to the tuning ones; until there are new ones this is empty.
"""

FIRST, AMONG_THREE = 0.65, 0.90
"""How many of the held-out questions should find their tool first, and among three."""

Reason = Literal["word", "sibling", "base"]
REASONS: dict[Reason, str] = {
    "word": "no telling word of the question is in what the tool says",
    "sibling": "a tool of the same base says it better",
    "base": "its words draw a tool of another base",
}

_SENTENCE = re.compile(r"(?<=[.?])\s+(?=[A-Z`])")
_CLAUSE = re.compile(r"(?<=[.?;:])\s+")
_NAMED = re.compile(r"`(\w+)`")
_QUOTED = re.compile(r'"[^"]+"|“[^”]+”')
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_WORD = re.compile(r"[^\W_]+")
_ID = re.compile(r"\w[\w:/.-]*\w")
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
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
    """How many of the questions find their tool among the first `top`: all, where none is asked."""
    return sum(one.place <= top for one in routed) / len(routed) if routed else 1.0


class _Listing:
    """What the tools say, ready to be compared with a question."""

    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self._embedder = embedder
        names = {tool.name for tool in tools}
        said = {tool.name: _said(tool, names) for tool in tools}
        texts = {tool.name: _text(tool, said[tool.name]) for tool in tools}
        self._whole = {name: embedder.embed(text) for name, text in texts.items()}
        self._clauses = {
            name: [embedder.embed(one) for one in _clauses(name, said[name])] for name in texts
        }
        self._db = sqlite3.connect(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name UNINDEXED, text, tokenize='porter')"
        )
        rows = ((name, " ".join(_words(text, said[name]))) for name, text in texts.items())
        self._db.executemany("INSERT INTO tools VALUES (?, ?)", rows)

    def close(self) -> None:
        self._db.close()

    def by_meaning(self, question: str) -> dict[str, float]:
        """All tools: the mean of the whole text's nearness and that of its nearest clause."""
        asked = self._embedder.embed(_QUOTED.sub('"…"', question))
        return _shares({name: self._nearness(name, asked) for name in self._whole})

    def _nearness(self, name: str, asked: Vector) -> float:
        nearest = max(float(numpy.dot(one, asked)) for one in self._clauses[name])
        return (float(numpy.dot(self._whole[name], asked)) + nearest) / 2

    def by_words(self, question: str) -> dict[str, float]:
        """The tools that share a word with the question, or the form of an id."""
        either = " OR ".join(f'"{word}"' for word in dict.fromkeys(_words(question, question)))
        found = self._db.execute(
            "SELECT name, -bm25(tools) FROM tools WHERE tools MATCH ?", (either,)
        )
        return _shares(dict(found.fetchall()))


def _shares(scores: dict[str, float]) -> dict[str, float]:
    best = max(scores.values(), default=1.0)
    return {name: score / best for name, score in scores.items()}


def _said(tool: Tool, names: set[str]) -> str:
    """What a description says of its own tool: without the sentences that name another."""
    others = names - {tool.name}
    sentences = _SENTENCE.split(" ".join(tool.describe().split()))
    return " ".join(one for one in sentences if others.isdisjoint(_NAMED.findall(one)))


def _text(tool: Tool, said: str) -> str:
    arguments = tool.input_schema.get("properties", {})
    return " ".join((tool.name, said, *arguments)).replace("_", " ")


def _clauses(name: str, said: str) -> list[str]:
    return [f"{name.replace('_', ' ')}: {one}" for one in _CLAUSE.split(said)]


def _words(text: str, written: str) -> list[str]:
    """The words of a text, and the forms of the ids that are written in it."""
    joined = _INITIALS.sub(lambda found: found.group().replace(".", ""), text)
    forms = {_form(one) for one in _ID.findall(written)} - {""}
    return [*_WORD.findall(joined.lower()), *(f"form{_told(one)}" for one in sorted(forms))]


def _told(form: str) -> str:
    """A form as one word of the index."""
    return form.translate(_MARKS)


def _form(word: str) -> str:
    """How an id is written, digits and letters aside; empty for a word that is none."""
    if _ORDINAL.fullmatch(word):
        return "9th"
    if word.isalnum():
        is_id = re.search(r"\d", word) and re.search(r"[^\W\d]", word)
        return re.sub(r"[^\W\d]", "X", re.sub(r"\d", "9", word)) if is_id else ""
    is_id = re.search(r"[\d_]", word)
    return re.sub(r"[A-Z]+", "X", re.sub(r"[a-z0-9]+", "x", word)) if is_id else ""
