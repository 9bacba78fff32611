"""The second look: the first passages are read again, and the order and scores that this gives."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from readingroom.core.filters import FilterFields
from readingroom.core.scores import ScoreParts
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.cross_encoder.reranker import (
    Reranker,
    find_packaged_reranker,
    open_packaged_reranker,
)
from readingroom.engine.embedding.shared import find_shared_reranker
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import ScoredPassage, rerank_first_passages
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.second_look import (
    MAX_PASSAGES_READ_AGAIN,
    postpone_second_look,
    rescore_passages,
)
from readingroom.storage.chunks import Chunks, ChunkStore
from tests.requirements import requirement
from tests.support.model import MODELS, WordEmbedder

QUESTION = "how many people live in Berlin"
ANSWER = "Berlin has some three and a half million inhabitants."
OTHER = "Berlin is well known for its museums."


class ListedLikings(Reranker):
    """A cross-encoder that likes each text as much as a table says, and counts what it reads."""

    def __init__(self, **log_odds_by_text: float) -> None:
        self._log_odds_by_text = log_odds_by_text
        self.read_texts: list[str] = []

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        self.read_texts += texts
        return [self._log_odds_by_text.get(text, -10.0) for text in texts]


class NoCrossEncoder(Reranker):
    def __init__(self) -> None:
        pass

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        raise ModelUnavailable("there is none")


def list_passages(*scores: float) -> list[ScoredPassage]:
    return [ScoredPassage(f"p{number}", score, ScoreParts()) for number, score in enumerate(scores)]


def fetch_ids_as_texts(passage_ids: Sequence[str]) -> dict[str, str]:
    return {passage_id: passage_id for passage_id in passage_ids}


@requirement("engine:second-look")
def test_the_packaged_cross_encoder_tells_an_answer_from_the_same_subject() -> None:
    reranker = open_packaged_reranker(MODELS)
    assert reranker is not None
    answer, other, far = reranker.score_texts(QUESTION, [ANSWER, OTHER, "A recipe for bread."])
    assert answer > 0 > other > far


@requirement("engine:second-look")
def test_a_score_depends_on_no_other_text() -> None:
    reranker = open_packaged_reranker(MODELS)
    assert reranker is not None
    long_text = "The council keeps a register of the buildings of local interest. " * 12
    assert reranker.score_texts(QUESTION, [ANSWER, long_text, OTHER]) == [
        reranker.score_texts(QUESTION, [text])[0] for text in (ANSWER, long_text, OTHER)
    ]
    assert reranker.score_texts(QUESTION, []) == []


@requirement("engine:second-look")
def test_the_first_passages_are_put_into_the_order_of_the_cross_encoder() -> None:
    passages = list_passages(0.5, 0.4, 0.3)
    again = rerank_first_passages(
        QUESTION, passages, fetch_ids_as_texts, ListedLikings(p2=9.0, p0=-3.0)
    )
    assert [passage.passage_id for passage in again] == ["p2", "p0", "p1"]
    # How likely there is an answer at all was known before.
    assert again[0].score == pytest.approx(0.5)
    assert again[0].score > again[1].score > again[2].score > 0


@requirement("engine:second-look")
def test_what_is_not_read_again_stays_behind_what_is_in_its_order() -> None:
    passages = list_passages(*(0.6 - 0.05 * number for number in range(10)))
    reranker = ListedLikings(p4=5.0)
    again = rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, reranker)
    assert reranker.read_texts == [f"p{number}" for number in range(MAX_PASSAGES_READ_AGAIN)]
    assert [passage.passage_id for passage in again] == [
        "p4",
        *(f"p{number}" for number in range(10) if number != 4),
    ]
    scores = [passage.score for passage in again]
    assert scores == sorted(scores, reverse=True)


@requirement("engine:second-look")
def test_a_phrase_a_caller_or_a_missing_model_leaves_the_order_as_it_is() -> None:
    passages = list_passages(0.5, 0.4)
    reranker = ListedLikings(p1=9.0)
    assert rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, None) == passages
    assert (
        rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, NoCrossEncoder()) == passages
    )
    assert rerank_first_passages('"in Berlin"', passages, fetch_ids_as_texts, reranker) == passages
    with postpone_second_look():
        assert rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, reranker) == passages
    assert rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, reranker) != passages
    assert rerank_first_passages(QUESTION, [], fetch_ids_as_texts, reranker) == []


@requirement("engine:second-look")
@pytest.mark.parametrize("scores", [(1.0, 1.0, 0.0), (0.0, 0.0), (1e-6, 1e-9)])
def test_scores_stay_probabilities(scores: tuple[float, ...]) -> None:
    texts = [f"p{number}" for number in range(len(scores))]
    again = rescore_passages(QUESTION, scores, texts, ListedLikings(p1=1e6, p0=-1e6), 8.0)
    assert all(0 <= score <= 1 for score in again)
    assert max(again) == pytest.approx(max(scores), abs=1e-6)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[EmbeddedIndex]:
    embedder = WordEmbedder()
    collection = ChunkStore(tmp_path / "store").open_collection("passages")
    index = EmbeddedIndex(collection, FilterFields(), embedder, tmp_path / "words.db")  # type: ignore[arg-type]
    texts = ["Berlin people live in flats", "people of Berlin", "bread"]
    index.put_chunks(Chunks(list("abc"), texts, [{}] * 3, embedder.embed_batch(texts)))
    yield index
    index.close()


@requirement("engine:second-look")
def test_a_search_by_both_looks_again_and_one_by_meaning_or_words_does_not(
    index: EmbeddedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranker = ListedLikings(**{"people of Berlin": 12.0})
    monkeypatch.setattr(index.embedder, "reranker", reranker, raising=False)
    for mode in ("semantic", "lexical"):
        assert index.search(QUESTION, 1, None, mode).hits[0].chunk_id == "a"  # type: ignore[arg-type]
    assert reranker.read_texts == []
    # However few are asked for, the same first ones are read.
    assert index.search(QUESTION, 1, None, "hybrid").hits[0].chunk_id == "b"
    assert len(reranker.read_texts) == 3


@requirement("engine:second-look")
def test_the_settings_choose_the_cross_encoder_or_none(tmp_path: Path) -> None:
    assert find_packaged_reranker() is not None
    packaged = find_shared_reranker(RoomSettings(data=tmp_path))
    assert packaged is not None
    assert find_shared_reranker(RoomSettings(data=tmp_path)) is packaged
    assert find_shared_reranker(RoomSettings(data=tmp_path, second_look=False)) is None
    own = find_shared_reranker(RoomSettings(data=tmp_path, reranker=tmp_path / "own"))
    assert own is not None
    assert own is not packaged
