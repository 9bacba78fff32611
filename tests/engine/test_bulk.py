"""Embedding in bulk: the same token ids from a memory of words, the same vectors in packed rows."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from readingroom.engine.embedding import graphics_card
from readingroom.engine.embedding.bulk import TokenizingPool, make_remembering_tokenizer
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.embedding.tokens import RememberingTokenizer, TokenizedTexts
from readingroom.engine.embedding.weights import get_weights_folder
from readingroom.engine.errors import ModelUnavailable
from tests.requirements import requirement

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFERENCE = json.loads((FIXTURES / "reference_vectors.json").read_text("utf-8"))
TEXTS = [entry["text"] for entry in REFERENCE]
TOKENIZER_FILE = get_weights_folder(Path("nowhere")).folder / "tokenizer.json"

_LIBRARY = Tokenizer.from_file(str(TOKENIZER_FILE))
_LIBRARY.enable_truncation(256)
_LIBRARY.no_padding()
_WORDS = make_remembering_tokenizer(TOKENIZER_FILE, 256)


def split_ids(tokenized: TokenizedTexts) -> list[list[int]]:
    ends = np.cumsum(tokenized.lengths)[:-1]
    return [ids.tolist() for ids in np.split(tokenized.ids, ends)]


@requirement("engine:embedding:bulk")
@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        "",
        " \n\t ",
        "[CLS] a tag [SEP] in the text[MASK]",
        "no tag: [cls] (d) £1,500.50 “quoted” don’t",
        "one\x0ctwo\x1cthree\x85four\x0bfive",
        "soft\xadhyphen zero\u200bwidth \ufeffmark \ufffd \x00 \x7f",
        "İstanbul ΣΊΣΥΦΟΣ straße ǅ ﬁne e\u0301tude \u0301lonely",
        "漢字 between かな 한국어 🏛️",
        "a" * 100 + " " + "b" * 101 + " unbelievably_long-word's",
        "word " * 400,
        "\u2028lines\u2029of\u00a0every\u3000kind\u1680here",
    ],
)
def test_the_ids_of_a_text_are_those_of_the_library(text: str) -> None:
    assert split_ids(_WORDS.encode_texts([text])) == [_LIBRARY.encode(text).ids]


@requirement("engine:embedding:bulk")
@given(st.lists(st.text() | st.text("abcXY019 .,-[]'\né"), max_size=4))
def test_the_ids_of_any_texts_are_those_of_the_library(texts: list[str]) -> None:
    expected = [encoding.ids for encoding in _LIBRARY.encode_batch(texts)]
    assert (split_ids(_WORDS.encode_texts(texts)) if texts else []) == expected


@requirement("engine:embedding:bulk")
def test_a_memory_of_words_that_is_full_begins_anew() -> None:
    tokenizer = RememberingTokenizer(_LIBRARY, 256, max_remembered_words=3)
    for text in TEXTS:
        assert split_ids(tokenizer.encode_texts([text])) == [_LIBRARY.encode(text).ids]


def test_a_tokenizer_that_treats_words_otherwise_is_refused() -> None:
    description = json.loads(_LIBRARY.to_str())
    description["pre_tokenizer"] = {"type": "Whitespace"}
    other = Tokenizer.from_str(json.dumps(description))
    with pytest.raises(ValueError, match="words one by one"):
        RememberingTokenizer(other, 256)


@requirement("engine:embedding:bulk")
def test_processes_make_the_tokens_of_batches_in_their_order() -> None:
    batches = [[f"{text} number {number}" for text in TEXTS[:3]] for number in range(9)]
    with TokenizingPool(TOKENIZER_FILE, 256, process_count=2) as pool:
        tokenized = [split_ids(batch) for batch in pool.tokenize_batches(batches)]
    assert tokenized == [split_ids(_WORDS.encode_texts(batch)) for batch in batches]


@requirement("engine:embedding:bulk")
def test_a_stream_on_the_processor_gives_the_vectors_of_each_batch_with_its_key(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    embedder = Embedder(tmp_path_factory.getbasetemp() / "models")
    streamed = list(embedder.embed_stream((key, [TEXTS[key]]) for key in range(3)))
    assert [key for key, _ in streamed] == [0, 1, 2]
    assert all(np.allclose(matrix[0], embedder.embed(TEXTS[key])) for key, matrix in streamed)


@requirement("engine:embedding:bulk")
def test_a_card_that_is_not_there_is_named_and_auto_does_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphics_card, "torch", None)  # as if it were not installed
    with pytest.raises(ModelUnavailable, match=r"readingroom\[gpu\]"):
        Embedder(tmp_path, device="cuda").embed_batch(["a text"])
    assert not graphics_card.should_use_graphics_card("auto")
    assert not graphics_card.should_use_graphics_card("cpu")


@requirement("engine:embedding:bulk")
@pytest.mark.full
def test_packed_rows_on_torch_give_the_vectors_of_the_processor(tmp_path: Path) -> None:
    """In an environment of its own: torch is an extra, and no part of the locks."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    packages = ["torch>=2.10,<3", "tokenizers", "numpy", "safetensors", "httpx2", "pydantic"]
    subprocess.run([python, "-m", "pip", "install", "-qq", *packages], check=True)
    script = """
import json, sys
from pathlib import Path
from readingroom.engine.embedding.graphics_card import GraphicsCardModel
from readingroom.engine.embedding.weights import WeightsFolder

if __name__ == "__main__":
    texts = json.load(sys.stdin)
    card = GraphicsCardModel(WeightsFolder(Path(sys.argv[1]), ""), 256, "cpu")
    batches = [(number, texts[number::3]) for number in range(3)]
    streamed = [(key, matrix.tolist()) for key, matrix in card.embed_stream(batches, 2)]
    print(json.dumps([card.embed_batch(texts).tolist(), streamed]))
"""
    (tmp_path / "script.py").write_text(script, "utf-8")
    source = str(Path(__file__).parents[2] / "src")
    answer = subprocess.run(
        [python, str(tmp_path / "script.py"), str(TOKENIZER_FILE.parent)],
        input=json.dumps(TEXTS),
        env={"PYTHONPATH": source, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = np.array([entry["vector"] for entry in REFERENCE], np.float32)
    batch, streamed = json.loads(answer.stdout)
    assert np.abs(np.array(batch) - expected).max() < 1e-5
    for key, matrix in streamed:
        assert np.abs(np.array(matrix) - expected[key::3]).max() < 1e-5
