"""The packaged cross-encoder with the project's adapter: its graph, and what if there is none."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.cross_encoder import adapter
from readingroom.engine.embedding.cross_encoder.graph import build_cross_encoder
from readingroom.engine.embedding.cross_encoder.reranker import (
    ADAPTER_DIGEST,
    Reranker,
    find_or_build_taught_graph,
    find_packaged_reranker,
)
from readingroom.engine.embedding.own_model import GRAPH_FILE_NAME, load_reranker
from readingroom.engine.embedding.shared import find_shared_reranker
from readingroom.engine.hybrid import rerank_first_passages
from readingroom.engine.second_look import TAUGHT_WEIGHTS, rescore_passages
from readingroom.storage.files import hash_file
from tests.engine.test_own_models import WORDS, write_model
from tests.engine.test_second_look import ListedLikings, fetch_ids_as_texts, list_passages
from tests.requirements import requirement
from tests.support.model import MODELS

QUESTION = "How wide should a cycle path be?"
TEXTS = [
    "A route for cycles should be at least three metres wide.",
    "Cycle paths are popular with visitors in summer.",
    "Where people walk too, one and a half metres are added.",
    "Trustees keep accounts for six years.",
]
# By `benchmarks/adapter/network.py` in torch, whose numbers are rounded where int8 rounds them.
LOG_ODDS_IN_TORCH = [8.33, -3.0, -1.47, -8.05]
# By how much log-odds differ at most that are rounded in other places.
ROUNDING = 0.6


def get_packaged_folder() -> Path:
    model_folder = find_packaged_reranker()
    assert model_folder is not None
    return model_folder


@pytest.fixture(scope="module")
def packaged_log_odds() -> list[float]:
    return Reranker(get_packaged_folder()).score_texts(QUESTION, TEXTS)


def is_near(log_odds: Sequence[float], others: Sequence[float]) -> bool:
    return list(log_odds) == [pytest.approx(other, abs=ROUNDING) for other in others]


@requirement("engine:second-look")
def test_without_changes_the_graph_judges_as_the_packaged_one(
    tmp_path: Path, packaged_log_odds: list[float]
) -> None:
    graph_path = tmp_path / "plain.onnx"
    graph_path.write_bytes(build_cross_encoder(get_packaged_folder() / GRAPH_FILE_NAME, {}))
    model = load_reranker(get_packaged_folder(), 1, 256, graph_path)
    assert is_near(model.compute_log_odds(QUESTION, TEXTS), packaged_log_odds)


@requirement("engine:second-look")
def test_with_the_adapter_it_judges_as_the_network_that_was_trained(
    packaged_log_odds: list[float],
) -> None:
    reranker = Reranker(get_packaged_folder(), graphs_folder=MODELS)
    log_odds = reranker.score_texts(QUESTION, TEXTS)
    assert is_near(log_odds, LOG_ODDS_IN_TORCH)
    assert not is_near(log_odds, packaged_log_odds)
    assert reranker.is_taught


@requirement("engine:second-look")
def test_the_adapter_is_small_and_changes_the_upper_half_alone() -> None:
    changes = adapter.read_weight_changes(ADAPTER_DIGEST)
    layer_numbers = {int(name.split(".")[2]) for name in changes if name != "pooler.dense"}
    assert layer_numbers == set(range(6, 12))
    assert all(np.isfinite(change).all() and change.any() for change in changes.values())
    assert adapter.ADAPTER_FILE.stat().st_size < 1_000_000


@requirement("engine:second-look")
def test_its_graph_is_kept_under_the_name_of_the_adapter_and_made_again_if_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model_file = get_packaged_folder() / GRAPH_FILE_NAME
    graph_path = find_or_build_taught_graph(model_file, tmp_path)
    assert hash_file(adapter.ADAPTER_FILE)[:8] in graph_path.name
    assert find_or_build_taught_graph(tmp_path / "no longer read", tmp_path) == graph_path
    older_path = tmp_path / graph_path.name.replace(ADAPTER_DIGEST[:8], "0" * 8)
    graph_path.rename(older_path)
    graph_path.write_bytes(b"half a graph")
    assert find_or_build_taught_graph(model_file, tmp_path) == graph_path
    assert graph_path.stat().st_size > 10_000_000
    assert not older_path.exists()
    assert "is damaged and is built again" in caplog.text


@requirement("engine:second-look")
@pytest.mark.parametrize("fault", ["damaged", "exchanged", "missing", "folder"])
def test_without_a_sound_adapter_texts_are_read_as_the_package_reads_them(
    fault: str,
    tmp_path: Path,
    packaged_log_odds: list[float],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    graphs_folder = tmp_path / "graphs"
    content = bytearray(adapter.ADAPTER_FILE.read_bytes())
    if fault == "folder":
        graphs_folder.write_text("a file is where the folder should be", "utf-8")
    else:
        adapter_file = tmp_path / "adapter.safetensors"
        monkeypatch.setattr(adapter, "ADAPTER_FILE", adapter_file)
    if fault == "damaged":
        adapter_file.write_bytes(content[:-100])
    elif fault == "exchanged":  # it can be read, but its numbers are others
        content[-1] ^= 1
        adapter_file.write_bytes(content)
    reranker = Reranker(get_packaged_folder(), graphs_folder=graphs_folder)
    with caplog.at_level(logging.WARNING):
        assert reranker.score_texts(QUESTION, TEXTS) == packaged_log_odds
    assert not reranker.is_taught
    assert caplog.text.count("are read again without the adapter") == 1


@requirement("engine:second-look")
def test_the_adapter_is_not_applied_to_another_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    likings = [[float(number)] for number in range(len(WORDS))]
    other_folder = write_model(tmp_path / "other", np.array(likings, np.float32))
    reranker = Reranker(other_folder, graphs_folder=tmp_path / "graphs")
    with caplog.at_level(logging.WARNING):
        assert reranker.score_texts("flood", ["water"]) == [11.0]
    assert not reranker.is_taught
    assert "is not the model that the adapter is for" in caplog.text
    own = find_shared_reranker(RoomSettings(data=tmp_path, reranker=other_folder))
    assert own is not None
    caplog.clear()
    assert own.score_texts("flood", ["water"]) == [11.0]
    assert not own.is_taught
    assert not caplog.text
    # Nothing is known of how its log-odds tell whether anything answers, so the score stays.
    (score,) = rescore_passages("flood", [0.3], ["water"], own, 8.0)
    assert score == pytest.approx(0.3)
    assert not [*tmp_path.glob("**/*cross-encoder*")]


@requirement("engine:second-look")
def test_a_cross_encoder_that_was_taught_says_how_likely_the_best_answers() -> None:
    sure, doubtful = ListedLikings(p1=6.0, p0=-8.0), ListedLikings(p1=-6.0, p0=-8.0)
    sure.is_taught = doubtful.is_taught = True
    scores = [0.3, 0.3, 0.2]
    texts = ["p0", "p1", "p2"]
    high, low = (
        rescore_passages(QUESTION, scores, texts, reranker, 8.0) for reranker in (sure, doubtful)
    )
    assert high[1] == max(high) > 0.8
    assert low[1] == max(low) < 0.05
    # Alone, too: there is nothing to order, but something to judge.
    (alone,) = rescore_passages(QUESTION, [0.3], ["p1"], sure, 8.0)
    assert alone == high[1]
    assert TAUGHT_WEIGHTS.judge_best(2.0, 1.0) > TAUGHT_WEIGHTS.judge_best(1.0, 1.0)


@requirement("engine:second-look")
def test_without_a_second_look_nothing_of_the_adapter_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(adapter, "ADAPTER_FILE", tmp_path / "missing")
    assert find_shared_reranker(RoomSettings(data=tmp_path, second_look=False)) is None
    passages = list_passages(0.5, 0.4)
    assert rerank_first_passages(QUESTION, passages, fetch_ids_as_texts, None) == passages
    assert not caplog.text
