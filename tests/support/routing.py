"""Which tool would a retriever pick for a question: a fixed scorer over what a listing says.

It knows what an agent's retriever knows: a tool's name, its description and the names of its
arguments. Three scores, each as a share of the best, count the same:

- by words: BM25 with k1 = 0 (a word is said, or it is not), where a word of the question counts as
  far as the nearest word of the description means the same;
- by meaning, with the engine's own model: the whole description and its nearest clause, half each;
- by ids: which of those in the question look like an example of the description.

It has no weight that was fitted and knows no tool by name. Some things it reads as a person would:

- "For the wording use `get_bill_text`" sends the reader away: a sentence that names another tool
  says nothing of its own.
- A quotation in a question is what to look for, not what to do: its meaning is left out.
- An id or a path is known by its form: `hr:118:25` is written as `hr:119:1` is, `K000367` as
  `S000033`, `/in/flood.pdf` as `/inbox/noise.pdf`. A number alone tells nothing.
- H.R. is HR. Small words count: who, how many, each and between tell tools apart.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy
from numpy.typing import NDArray

from readingroom.bases import BASES, open_bases
from readingroom.core.arrays import Matrix
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.federation.room import make_federated_base
from readingroom.protocol.tool import Tool
from readingroom.server.faces import Face, make_faces
from readingroom.settings import load_settings

_FIXTURES = Path(__file__).parents[1] / "fixtures"
TUNING = _FIXTURES / "mcp_routing_eval.jsonl"
HELD_OUT = _FIXTURES / "mcp_routing_heldout.jsonl"
"""Written by somebody who saw no description; no description may be changed for one of these.

Questions that were looked at move to the tuning ones; until there are new ones this is empty.
"""

FRESH = _FIXTURES / "mcp_routing_fresh.jsonl"
"""Held out too, for the federal tools only; their writer had read the descriptions."""

FIRST, AMONG_THREE = 0.65, 0.90
"""How many of the held-out questions should find their tool first, and among three."""

Scores = NDArray[numpy.floating]

Reason = Literal["sibling", "base"]
REASONS: dict[Reason, str] = {
    "sibling": "a tool of the same base says it better",
    "base": "its words draw a tool of another base",
}

_SENTENCE = re.compile(r"(?<=[.?])\s+(?=[A-Z`])")
_CLAUSE = re.compile(r"(?<=[.?;:,])\s+")
_NAMED = re.compile(r"`(\w+)`")
_QUOTED = re.compile(r'"[^"]+"|“[^”]+”')
_INITIALS = re.compile(r"\b(?:[A-Za-z]\.){2,}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_ID = re.compile(r"(?:(?<![\w:/])/)?\w[\w:/.-]*\w")


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


def read_questions(file: Path) -> list[Asked]:
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [
        Asked(one["question"], one["tool"], one.get("shape", ""), one.get("blind", True))
        for one in lines
    ]


def route_questions(data: Path, asked: Sequence[Asked]) -> list[Routed]:
    """The questions over the listing of the face of all bases."""
    settings = load_settings({"data": data}, {})
    bases = open_bases(sorted(BASES), settings)
    everything, *_ = make_faces(bases, make_federated_base(bases, settings))
    owners = {tool.name: base.name for base in everything.bases for tool in base.tools}
    tools = [tool for tool, _ in everything.tools_and_dialects_by_name.values()]
    return list(route(asked, tools, owners, get_shared_embedder(settings)))


@dataclass(frozen=True)
class Listing:
    """A choice of tools, and how questions fare with it."""

    tool_count: int
    input_tokens: int
    all_tokens: int
    covered: float
    """The share of the questions whose tool is listed."""
    routed: Sequence[Routed]
    """Those questions."""


def compare_listings(data: Path, asked: Sequence[Asked]) -> dict[str, Listing]:
    """The listings of the face of all bases: everything, the desk, the desk and the right base."""
    settings = load_settings({"data": data}, {})
    bases = open_bases(sorted(BASES), settings)
    everything, *_ = make_faces(bases, make_federated_base(bases, settings))
    owners = {tool.name: base.name for base in everything.bases for tool in base.tools}
    embedder = get_shared_embedder(settings)
    by_base = {name: [q for q in asked if owners[q.tool] == name] for name in set(owners.values())}
    return {
        "all": _measure([((), list(asked))], everything, owners, embedder),
        "desk": _measure([(("desk",), list(asked))], everything, owners, embedder),
        "own base": _measure(
            [((name,), group) for name, group in by_base.items() if group],
            everything,
            owners,
            embedder,
        ),
    }


def _measure(
    groups: Sequence[tuple[tuple[str, ...], list[Asked]]],
    face: Face,
    owners: dict[str, str],
    embedder: Embedder,
) -> Listing:
    """Each group of questions with its own listing; sizes are means over the questions."""
    results: list[Routed] = []
    sizes: list[tuple[int, int, int, int]] = []
    for chosen, group in groups:
        names = face.list_tool_names(chosen)
        tools = [
            tool for name, (tool, _) in face.tools_and_dialects_by_name.items() if name in names
        ]
        results += route([q for q in group if q.tool in names], tools, owners, embedder)
        inputs = [(tool.name, tool.describe(), tool.input_schema) for tool in tools]
        whole = [(*said, tool.output_schema) for said, tool in zip(inputs, tools, strict=True)]
        tokens = (len(json.dumps(inputs)) // 4, len(json.dumps(whole)) // 4)
        sizes.append((len(group), len(tools), *tokens))
    total = sum(count for count, *_ in sizes)
    means = [round(sum(size[0] * size[i] for size in sizes) / total) for i in (1, 2, 3)]
    return Listing(means[0], means[1], means[2], len(results) / total, results)


def route(
    asked: Iterable[Asked], tools: Sequence[Tool], owners: dict[str, str], embedder: Embedder
) -> Iterator[Routed]:
    """Rank every tool for every question."""
    listing = _Listing(tools, embedder)
    for one in asked:
        score = listing.scores(one.question)
        order = tuple(sorted(score, key=lambda name: (-score[name], name)))
        reason: Reason = "sibling" if owners[order[0]] == owners[one.tool] else "base"
        yield Routed(one, order, owners[one.tool], reason)


def share(routed: Sequence[Routed], top: int) -> float:
    """How many of the questions find their tool among the first `top`: all, where none is asked."""
    return sum(one.place <= top for one in routed) / len(routed) if routed else 1.0


class _Listing:
    """What the tools say, ready to be compared with a question."""

    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self._embedder = embedder
        self._names = [tool.name for tool in tools]
        said = [_said(tool, set(self._names)) for tool in tools]
        texts = [_text(tool, own) for tool, own in zip(tools, said, strict=True)]
        self._whole = embedder.embed_batch(texts)
        clauses = [_clauses(tool, own) for tool, own in zip(tools, said, strict=True)]
        ends = numpy.cumsum([len(one) for one in clauses])[:-1]
        every = [clause for one in clauses for clause in one]
        self._clauses = numpy.split(embedder.embed_batch(every), ends)
        self._lexicon = _Lexicon(texts, embedder)
        self._forms = [_forms(own) for own in said]

    def scores(self, question: str) -> dict[str, float]:
        by_words = self._lexicon.scores(question)
        by_meaning = self._nearness(_QUOTED.sub('"…"', question))
        scores = _share(by_words) + _share(by_meaning) + self._likeness(question)
        return dict(zip(self._names, scores.tolist(), strict=True))

    def _nearness(self, question: str) -> Scores:
        """The mean of the whole text's nearness and that of its nearest clause."""
        asked = self._embedder.embed(question)
        nearest = numpy.array([(clauses @ asked).max() for clauses in self._clauses])
        return (self._whole @ asked + nearest) / 2

    def _likeness(self, question: str) -> Scores:
        """How many of the ids that any tool would know look like one of its own."""
        known = _forms(question) & set().union(*self._forms)
        return numpy.array([len(known & own) / max(len(known), 1) for own in self._forms])


class _Lexicon:
    """The words of some texts, and what they mean."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self._embedder = embedder
        words = [set(_words(text)) for text in texts]
        vocabulary = sorted(set().union(*words))
        self._meanings = embedder.embed_batch(vocabulary)
        self._known = dict(zip(vocabulary, self._meanings, strict=True))
        self._rows = [[vocabulary.index(word) for word in sorted(one)] for one in words]

    def scores(self, question: str) -> Scores:
        """The sum over the words of the question: how far each text says it, times how rare."""
        words = list(dict.fromkeys(_words(question)))
        if not words:
            return numpy.zeros(len(self._rows))
        said = self._said(self._meanings_of(words))
        texts_with = said.sum(axis=1, keepdims=True)
        rarity = numpy.log(1 + (len(self._rows) - texts_with + 0.5) / (texts_with + 0.5))
        return (rarity * said).sum(axis=0)

    def _meanings_of(self, words: Sequence[str]) -> Matrix:
        new = [word for word in words if word not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed_each(new), strict=True))
        return numpy.stack([self._known[word] for word in words])

    def _said(self, words: Matrix) -> Scores:
        """A row for each word: how far each text says it, from none (half alike) to all (1)."""
        alike = numpy.clip((words @ self._meanings.T - 0.5) / 0.5, 0, 1)
        return numpy.stack([alike[:, rows].max(axis=1) for rows in self._rows], axis=1)


def _share(scores: Scores) -> Scores:
    """As shares of the best."""
    return scores / max(scores.max(), 1e-9)


def _said(tool: Tool, names: set[str]) -> str:
    """What a description says of its own tool: without the sentences that name another."""
    others = names - {tool.name}
    sentences = _SENTENCE.split(" ".join(tool.describe().split()))
    return " ".join(one for one in sentences if others.isdisjoint(_NAMED.findall(one)))


def _text(tool: Tool, said: str) -> str:
    arguments = tool.input_schema.get("properties", {})
    return " ".join((tool.name, said, *arguments)).replace("_", " ")


def _clauses(tool: Tool, said: str) -> list[str]:
    return [f"{tool.name.replace('_', ' ')}: {one}" for one in _CLAUSE.split(said)]


def _words(text: str) -> list[str]:
    joined = _INITIALS.sub(lambda found: found.group().replace(".", ""), text)
    return _WORD.findall(joined.lower())


def _forms(text: str) -> set[str]:
    """The forms of the ids that are written in a text."""
    return {_form(one) for one in _ID.findall(text)} - {""}


def _form(word: str) -> str:
    """How an id or a path is written, digits and letters aside; empty for a word that is none."""
    if word.startswith("/"):
        return "/x.x" if "." in word else "/x"
    if word.isalnum():
        is_id = re.search(r"\d", word) and not re.fullmatch(r"\d+(?:st|nd|rd|th)?", word)
        return re.sub(r"[^\W\d]", "X", re.sub(r"\d", "9", word)) if is_id else ""
    is_id = re.search(r"[\d_]", word)
    return re.sub(r"[^\W_]+", _part, word) if is_id else ""


def _part(found: re.Match[str]) -> str:
    """A part between marks: `FUL` and `PPG13` are alike, and so are `hr`, `118` and `3c9a01`."""
    return "X" if found.group().upper() == found.group() != found.group().lower() else "x"
