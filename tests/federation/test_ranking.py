"""The order of the desk: what is named first, then probability, and every text once."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pytest

from readingroom.core.arrays import Vector
from readingroom.core.progress import no_progress
from readingroom.core.scores import ScoreParts
from readingroom.engine.errors import ModelUnavailable
from readingroom.federation.fan_out import FanOut
from readingroom.federation.models import DeskSearch
from readingroom.federation.ranking import rank_hits
from readingroom.federation.service import FederationService
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    SearchAdapter,
    SearchRequest,
)
from readingroom.protocol.tool import ToolContext
from tests.requirements import requirement

QUESTION = "How many cycle parking spaces does a house need?"
ANSWER = "Each house has two covered spaces for cycle parking."


def make_hit(
    base: str, id: str, text: str, cosine: float | None = None, title: str = "", score: float = 0.1
) -> DeskHit:
    return DeskHit(
        id=f"{base}:{id}",
        title=title or id,
        url="",
        source=id,
        snippet=text,
        score=score,
        published_at=None,
        citation=Citation(citation_string=title or id, url=""),
        base=base,
        parts=None if cosine is None else ScoreParts(semantic=cosine),
    )


class Meanings:
    """Embeds a text as near to the question as a table says, by a word of it."""

    def __init__(self, **cosines: float) -> None:
        self._cosines = cosines
        self.embedded: list[str] = []

    def embed_each(self, texts: Sequence[str]) -> list[Vector]:
        self.embedded += texts[1:]
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> Vector:
        cosine = next((c for word, c in self._cosines.items() if word in text), 0.0)
        cosine = 1.0 if text == QUESTION else cosine
        return np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)


class NoModel:
    def embed_each(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelUnavailable("none is installed")


def order(
    rankings: Sequence[Sequence[DeskHit]], embedder: object, query: str = QUESTION
) -> list[str]:
    return [hit.id for hit in rank_hits(query, rankings, embedder)]  # type: ignore[arg-type]


@requirement("room:desk-order")
def test_the_base_that_answers_comes_first_whatever_its_place_in_its_own_order() -> None:
    policy = [
        make_hit("policy", "a", "Streets are lit.", 0.3),
        make_hit("policy", "b", ANSWER, 0.8),
    ]
    guidance = [make_hit("guidance", "c", "Trustees meet twice a year.")]
    assert order([guidance, policy], Meanings(Trustees=0.1))[0] == "policy:b"


@requirement("room:desk-order")
def test_only_hits_without_a_vector_are_embedded_and_those_far_down_count_no_more() -> None:
    guidance = [
        make_hit("guidance", f"page{n}", f"Page {n} on housing {'cycle ' * n}") for n in range(30)
    ]
    embedder = Meanings(Page=0.2)
    ranked = order([guidance, [make_hit("policy", "b", ANSWER, 0.6)]], embedder)
    assert ranked[0] == "policy:b"
    assert len(embedder.embedded) == 20
    assert not any("two covered" in text for text in embedder.embedded)


@requirement("room:desk-order")
def test_what_is_called_by_its_title_comes_first() -> None:
    policy = [make_hit("policy", "b", ANSWER, 0.9)]
    federal = [
        make_hit("federal", "act", "Grants for crossings.", 0.2, "H.R. 1, Safe Crossings Act")
    ]
    hits = rank_hits("safe crossings act", [policy, federal], Meanings())  # type: ignore[arg-type]
    assert hits[0].id == "federal:act"
    assert hits[0].score >= 0.95


@requirement("room:desk-order")
def test_the_section_that_a_reference_names_comes_first() -> None:
    named = make_hit("policy", "116", "Refusal on highway grounds.", 0.1).model_copy(
        update={"exact_reference": True}
    )
    hits = [make_hit("policy", "b", ANSWER, 0.9), named]
    assert order([hits], Meanings())[0] == "policy:116"


@requirement("room:desk-order")
def test_a_text_that_two_revisions_have_comes_once() -> None:
    policy = [
        make_hit("policy", "new", ANSWER, 0.8),
        make_hit("policy", "old", ANSWER.replace("covered", "covered,"), 0.8),
        make_hit("policy", "other", "Cycle routes join the centre.", 0.5),
    ]
    assert order([policy], Meanings()) == ["policy:new", "policy:other"]
    # Another number is another text.
    policy.append(make_hit("policy", "older", ANSWER.replace("two", "three"), 0.7))
    assert order([policy], Meanings()) == ["policy:new", "policy:older", "policy:other"]


@requirement("room:desk-order")
def test_a_passage_that_goes_on_where_a_better_one_ends_is_joined_to_it() -> None:
    section = (
        "1. Each house has two covered spaces for cycle parking, within 20 metres of its door. "
        "2. Flats share a store on the ground floor, with one space for each bedroom in it. "
        "3. Shops provide a stand for every hundred square metres that the public may enter."
    )
    first_end, last_start = section.index(" 3."), section.index("2. ")
    first = make_hit("policy", "T4#1", section[:first_end], 0.7, "Policy T4")
    last = make_hit("policy", "T4#2", section[last_start:], 0.5, "Policy T4")
    other_section = make_hit("policy", "T5#1", section[last_start:] + " Also here.", 0.4, "T5")
    empty = make_hit("policy", "T4#3", "", 0.3, "Policy T4")
    hits = rank_hits(QUESTION, [[first, other_section, last, empty]], Meanings())  # type: ignore[arg-type]
    assert [(hit.id, hit.snippet, hit.joined_ids) for hit in hits[:1]] == [
        ("policy:T4#1", section, ["policy:T4#2"])
    ]
    assert {hit.id for hit in hits[1:]} == {"policy:T5#1", "policy:T4#3"}
    # What stands before the better one stays apart: a result begins with what was found.
    last_first = [first.model_copy(update={"parts": ScoreParts(semantic=0.2)}), last]
    hits = rank_hits(QUESTION, [last_first], Meanings())  # type: ignore[arg-type]
    assert {hit.snippet for hit in hits} == {first.snippet, last.snippet}


@requirement("room:desk-order")
def test_the_first_hit_of_each_base_is_among_the_first_five_if_it_is_close() -> None:
    policy = [
        make_hit("policy", f"p{n}", f"{ANSWER} Case {n}, word{n} {n}{n}", 0.8) for n in range(8)
    ]
    federal = [make_hit("federal", "near", "Cycle parking at stations is counted.", 0.62)]
    text = [make_hit("text", "far", "A panel shows metrics.", 0.0)]
    ranked = order([policy, federal, text], Meanings())
    assert "federal:near" in ranked[:5]
    assert ranked[-1] == "text:far"


@requirement("room:desk-order")
def test_no_other_base_displaces_the_first_two() -> None:
    policy = [
        make_hit("policy", f"p{n}", f"{ANSWER} Case {n}, word{n} {n}{n}", 0.6) for n in range(2)
    ]
    other_bases = ("federal", "guidance", "text", "documents")
    others = [[make_hit(base, "near", f"Cycle parking, {base}.", 0.55)] for base in other_bases]
    ranked = order([policy, *others], Meanings())
    assert ranked[:2] == ["policy:p0", "policy:p1"]
    assert {hit_id.partition(":")[0] for hit_id in ranked[2:5]} < set(other_bases)


@requirement("room:desk-order")
def test_a_hit_that_is_a_tenth_behind_another_bases_is_hardly_ever_right() -> None:
    rankings = [
        [make_hit("policy", "a", ANSWER, 0.6)],
        [make_hit("federal", "b", ANSWER + " 7", 0.5)],
    ]
    first, second = rank_hits(QUESTION, rankings, Meanings())  # type: ignore[arg-type]
    odds = [found.score / (1 - found.score) for found in (first, second)]
    assert 10 < odds[0] / odds[1] < 60  # with the decline of a single base it is 2


@requirement("room:desk-order")
def test_without_a_model_words_decide() -> None:
    guidance = [make_hit("guidance", "c", "Trustees meet twice a year.")]
    text = [make_hit("text", "kb", ANSWER)]
    assert order([guidance, text], NoModel())[0] == "text:kb"
    assert rank_hits(QUESTION, [], NoModel()) == []  # type: ignore[arg-type]


@requirement("room:desk-order")
@pytest.mark.parametrize("cosines", [(0.9, 0.5, 0.1), (0.2, 0.1, 0.0)])
def test_scores_are_probabilities_that_fall(cosines: tuple[float, ...]) -> None:
    policy = [make_hit("policy", f"p{c}", f"Passage {c}", c) for c in cosines]
    scores = [hit.score for hit in rank_hits(QUESTION, [policy], Meanings())]  # type: ignore[arg-type]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


class Counted:
    """An embedder with a memory, as the real one has, that counts what it had to embed."""

    identity = "another/float32"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, text: str) -> Vector:
        if text not in self.embedded:
            self.embedded.append(text)
        return np.array([1.0, 0.0], np.float32)

    def embed_each(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed(text) for text in texts]


class AskingBase(SearchAdapter):
    """Notes whether the question had been embedded when it was asked."""

    base_name: ClassVar[str] = "policy"

    def __init__(self, embedder: Counted) -> None:
        self._embedder = embedder
        self.embedded_before: list[str] = []

    async def search(self, request: SearchRequest, call: ToolContext) -> list[DeskHit]:
        self.embedded_before = list(self._embedder.embedded)
        return []

    async def fetch(self, id: str, offset: int, call: ToolContext) -> DeskRecord:
        raise NotImplementedError


@requirement("room:desk-order")
@pytest.mark.anyio
async def test_the_question_is_embedded_once_before_the_bases_are_asked() -> None:
    embedder = Counted()
    base = AskingBase(embedder)
    service = FederationService({"policy": base}, {}, embedder, FanOut())  # type: ignore[arg-type]
    async with service.run_inside():
        answer = await service.search(
            DeskSearch(query=QUESTION), ToolContext("1", "test", no_progress)
        )
    assert base.embedded_before == [QUESTION]
    assert answer.confidence == "none"


@requirement("room:desk-order")
def test_sections_that_are_named_by_their_number_come_first_in_the_order_of_their_base() -> None:
    def name(id: str, score: float) -> DeskHit:
        return make_hit("policy", id, f"Nothing but {id} things", score=score).model_copy(
            update={"exact_reference": True}
        )

    likely, unlikely = name("likely", score=0.0), name("unlikely", score=0.0)
    sure = make_hit("policy", "sure", ANSWER, 0.9, score=0.99)

    assert order([[likely, sure, unlikely]], Meanings())[:3] == [
        *("policy:likely", "policy:unlikely", "policy:sure")
    ]


def test_of_passages_that_fit_alike_the_likelier_bases_come_first() -> None:
    policy = [make_hit("policy", "rule", ANSWER, 0.5)]
    documents = [make_hit("documents", "form", "The form names two cycle parking spaces.", 0.48)]

    def rank(log_probabilities: dict[str, float]) -> list[str]:
        hits = rank_hits(
            QUESTION,
            [policy, documents],
            Meanings(),  # type: ignore[arg-type]
            log_probability_by_base=log_probabilities,
        )
        return [hit.base for hit in hits]

    assert rank({}) == rank({"policy": -0.1, "documents": -2.4}) == ["policy", "documents"]
    assert rank({"policy": -4.0, "documents": -0.02}) == ["documents", "policy"]
    # Of a base without words nothing is known: it stands between the others.
    assert rank({"policy": -4.0, "guidance": -0.02}) == ["documents", "policy"]


def test_doubt_lowers_every_score_but_that_of_what_is_named() -> None:
    rankings = [[make_hit("policy", "rule", ANSWER, 0.5)]]
    named = [[make_hit("policy", "rule", ANSWER, 0.5, title=QUESTION)]]

    def score(given: Sequence[Sequence[DeskHit]], doubt: float) -> float:
        (hit,) = rank_hits(QUESTION, given, Meanings(), doubt_log_odds=doubt)  # type: ignore[arg-type]
        return hit.score

    assert score(rankings, 1.5) < score(rankings, 0.0)
    assert score(named, 1.5) == score(named, 0.0)
