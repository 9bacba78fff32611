"""An encoder and a cross-encoder of the operator's own, made here as small ONNX files."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from readingroom.core.filters import FilterFields
from readingroom.core.scores import ScoreParts
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.index import EmbeddedIndex
from readingroom.federation.ranking import rank_hits
from readingroom.protocol.search import Citation, DeskHit
from readingroom.storage.chunks import Chunks, ChunkStore
from readingroom.storage.errors import EmbeddingMismatch
from tests.requirements import requirement

WORDS = ["[UNK]", "cycle", "parking", "bicycle", "racks", "flood", "water", "trees"]
# Cycle and bicycle, and flood and water, are near each other.
MEANINGS = np.array(
    [
        [0.1, 0.1, 0.1, 0.1],
        [1, 0, 0, 0],
        [0.6, 0.8, 0, 0],
        [0.95, 0.3, 0, 0],
        [0.7, 0.7, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0.9, 0.4],
        [0, 0, 0, 1],
    ],
    np.float32,
)


def write_model(folder: Path, table: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]") -> Path:
    """Write a graph that looks each token up in a table; with one column, that adds them up."""
    folder.mkdir()
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["looked_up"])]
    output, shape = "looked_up", ["texts", "tokens", table.shape[1]]
    constants = [numpy_helper.from_array(table, "table")]
    if table.shape[1] == 1:
        constants.append(numpy_helper.from_array(np.array([1], np.int64), "axis"))
        nodes.append(helper.make_node("ReduceSum", ["looked_up", "axis"], ["sum"], keepdims=0))
        output, shape = "sum", ["texts", 1]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "encoder", MEANINGS)


def open_index(folder: Path, embedder: Embedder) -> EmbeddedIndex:
    collection = ChunkStore(folder / "store").open_collection("passages")
    return EmbeddedIndex(collection, FilterFields(), embedder, folder / "words.db")


@requirement("engine:own-models")
def test_an_encoder_of_ones_own_is_searched_and_recorded(tmp_path: Path, encoder: Path) -> None:
    embedder = Embedder(tmp_path, own_model_folder=encoder)
    assert embedder.dimensions == 4
    index = open_index(tmp_path / "data", embedder)
    assert index.search("cycle", 3, None, "hybrid").hits == []  # before there is any vector
    texts = ["bicycle racks", "flood water", "trees"]
    index.put_chunks(Chunks(list("abc"), texts, [{}] * 3, embedder.embed_batch(texts)))
    ranking = index.search("cycle parking", 3, None, "semantic")
    assert ranking.hits[0].chunk_id == "a"
    assert ranking.degraded_reason is None
    assert index.collection.embedding_identity == embedder.identity
    assert embedder.identity.startswith("encoder@")
    index.close()


@requirement("engine:own-models", "engine:index:identity")
def test_the_vectors_of_two_models_never_meet(tmp_path: Path, encoder: Path) -> None:
    first = Embedder(tmp_path, own_model_folder=encoder)
    other = Embedder(
        tmp_path, own_model_folder=write_model(tmp_path / "other", MEANINGS[:, ::-1].copy())
    )
    index = open_index(tmp_path / "data", first)
    index.put_chunks(Chunks(["a"], ["flood"], [{}], first.embed_batch(["flood"])))
    index.embedder = other
    with pytest.raises(EmbeddingMismatch):
        index.search("flood", 1, None, "semantic")
    with pytest.raises(EmbeddingMismatch):
        index.put_chunks(Chunks(["b"], ["water"], [{}], other.embed_batch(["water"])))
    index.close()


@requirement("engine:own-models")
def test_a_folder_without_a_model_says_what_is_missing(tmp_path: Path, encoder: Path) -> None:
    (encoder / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match=r"READINGROOM_EMBEDDER is encoder.*tokenizer\.json"):
        Embedder(tmp_path, own_model_folder=encoder).load()
    (encoder / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        Embedder(tmp_path, own_model_folder=encoder).load()
    with pytest.raises(ModelUnavailable, match="READINGROOM_RERANKER"):
        Reranker(tmp_path / "nowhere").score_texts("flood", ["water"])


def make_hit(id: str, text: str, cosine: float) -> DeskHit:
    return DeskHit(
        id=f"policy:{id}",
        title=id,
        url="",
        source=id,
        snippet=text,
        score=0.1,
        published_at=None,
        citation=Citation(citation_string=id, url=""),
        base="policy",
        parts=ScoreParts(semantic=cosine),
    )


@requirement("engine:own-models")
def test_a_cross_encoder_reads_the_first_results_again(tmp_path: Path, encoder: Path) -> None:
    # It likes trees, and nothing else.
    likings = np.array([[30.0 if word == "trees" else -9.0] for word in WORDS], np.float32)
    reranker = Reranker(write_model(tmp_path / "reranker", likings))
    embedder = Embedder(tmp_path, own_model_folder=encoder)
    hits = [make_hit("a", "bicycle racks", 0.9), make_hit("b", "trees", 0.3)]
    assert [hit.id for hit in rank_hits("cycle parking", [hits], embedder)] == [
        "policy:a",
        "policy:b",
    ]
    again = rank_hits("cycle parking", [hits], embedder, reranker)
    assert [hit.id for hit in again] == ["policy:b", "policy:a"]
    assert 1 > again[0].score > again[1].score > 0
    # Without its model the results stay as they were.
    missing = rank_hits("cycle parking", [hits], embedder, Reranker(tmp_path / "nowhere"))
    assert [hit.id for hit in missing] == ["policy:a", "policy:b"]


def write_graph(folder: Path, nodes: list[onnx.NodeProto]) -> Path:
    """Write a model whose graph makes `made` out of the tokens with these nodes."""
    write_model(folder, MEANINGS)
    graph = helper.make_graph(
        nodes,
        "odd",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])],
        [helper.make_tensor_value_info("made", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))
    return folder


@requirement("engine:own-models")
def test_a_model_that_gives_no_usable_numbers_is_refused(tmp_path: Path) -> None:
    numbers = helper.make_node("Cast", ["input_ids"], ["numbers"], to=TensorProto.FLOAT)
    # A number for each token: as many as the text is long.
    uneven = write_graph(
        tmp_path / "uneven", [helper.make_node("Cast", ["input_ids"], ["made"], to=1)]
    )
    doubled = write_graph(
        tmp_path / "doubled",
        [numbers, helper.make_node("Concat", ["numbers", "numbers"], ["made"], axis=0)],
    )
    for folder in (uneven, doubled, write_model(tmp_path / "nan", MEANINGS * np.nan)):
        with pytest.raises(ModelUnavailable):
            Embedder(tmp_path, own_model_folder=folder).embed_batch(["flood", "flood water trees"])
        with pytest.raises(ModelUnavailable):
            Reranker(folder).score_texts("flood", ["water", "trees and water"])


@requirement("engine:own-models")
@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "link"])
def test_a_model_reads_no_file_outside_of_its_folder(
    tmp_path: Path, encoder: Path, location: str
) -> None:
    (tmp_path / "secret").write_bytes(MEANINGS.tobytes())
    (encoder / "link").symlink_to(tmp_path / "secret")
    model = onnx.load(str(encoder / "model.onnx"))
    table = model.graph.initializer[0]
    table.ClearField("raw_data")
    table.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", str(MEANINGS.nbytes))):
        table.external_data.add(key=key, value=value)
    (encoder / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        Embedder(tmp_path, own_model_folder=encoder).load()


@requirement("engine:own-models")
def test_the_runtime_is_told_to_report_nothing(
    tmp_path: Path, encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(onnxruntime, "disable_telemetry_events", lambda: calls.append("disabled"))
    Embedder(tmp_path, own_model_folder=encoder).load()
    assert calls == ["disabled"]
