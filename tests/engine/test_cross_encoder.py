"""The packaged cross-encoder as a graph of fewer steps, and what if that cannot be made."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.cross_encoder.graph import build_cross_encoder
from readingroom.engine.embedding.cross_encoder.reranker import (
    Reranker,
    find_packaged_reranker,
    find_shorter_graph,
)
from readingroom.engine.embedding.own_model import GRAPH_FILE_NAME, load_reranker
from readingroom.engine.embedding.shared import find_shared_reranker
from tests.engine.test_own_models import WORDS, write_model
from tests.requirements import requirement

QUESTION = "How wide should a cycle path be?"
TEXTS = [
    "A route for cycles should be at least three metres wide.",
    "Cycle paths are popular with visitors in summer.",
    "Where people walk too, one and a half metres are added.",
    "Trustees keep accounts for six years.",
]
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
    assert is_near(model.compute_scores(QUESTION, TEXTS), packaged_log_odds)


@requirement("engine:second-look")
def test_its_graph_is_kept_and_made_again_if_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model_file = get_packaged_folder() / GRAPH_FILE_NAME
    graph_path = find_shorter_graph(model_file, tmp_path)
    assert find_shorter_graph(tmp_path / "no longer read", tmp_path) == graph_path
    graph_path.write_bytes(b"half a graph")
    assert find_shorter_graph(model_file, tmp_path) == graph_path
    assert graph_path.stat().st_size > 10_000_000
    assert "is damaged and is built again" in caplog.text


@requirement("engine:second-look")
def test_where_no_graph_can_be_kept_the_packaged_one_is_run(
    tmp_path: Path, packaged_log_odds: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    graphs_folder = tmp_path / "graphs"
    graphs_folder.write_text("a file is where the folder should be", "utf-8")
    reranker = Reranker(get_packaged_folder(), graphs_folder=graphs_folder)
    with caplog.at_level(logging.WARNING):
        assert reranker.score_texts(QUESTION, TEXTS) == packaged_log_odds
    assert caplog.text.count("runs as it is packaged") == 1


@requirement("engine:second-look")
def test_another_model_is_run_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    likings = [[float(number)] for number in range(len(WORDS))]
    other_folder = write_model(tmp_path / "other", np.array(likings, np.float32))
    reranker = Reranker(other_folder, graphs_folder=tmp_path / "graphs")
    with caplog.at_level(logging.WARNING):
        assert reranker.score_texts("flood", ["water"]) == [11.0]
    assert "is not the model that is known" in caplog.text
    own = find_shared_reranker(RoomSettings(data=tmp_path, reranker=other_folder))
    assert own is not None
    caplog.clear()
    assert own.score_texts("flood", ["water"]) == [11.0]
    assert not caplog.text
    assert not [*tmp_path.glob("**/*cross-encoder*")]
