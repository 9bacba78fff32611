"""Pairs of a question and a candidate's text as the cross-encoder is given them.

`CORPUS.pairs.npz` has the tokens of all pairs and what training has to know of each, so that a
machine without the texts can train. A question is held out of training by its own words.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from readingroom.engine.context import prepend_context
from readingroom.engine.embedding.cross_encoder.graph import read_packaged_weights

FOLDS = 5
_MAX_TEXT_CHARS, _MAX_TOKENS = 1_024, 256  # as in engine/embedding/cross_encoder/reranker.py
_HELD_OUT_SHARE = 6  # one question in so many


def is_held_out(question: str) -> bool:
    """Return whether a question is kept from training."""
    return int(hashlib.sha256(question.encode()).hexdigest()[:8], 16) % _HELD_OUT_SHARE == 0


def make_pairs(model_folder: Path, asked: Sequence[Any], depth: int) -> dict[str, Any]:
    """Return columns: one row for each of the first candidates and for the first right one.

    A candidate that stands under headings has two rows, below them as searches read it, and bare.
    """
    tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    columns: dict[str, list[Any]] = {
        name: []
        for name in ("question", "candidate", "is_bare", "is_right", "length", "second", "ids")
    }
    for question_number, question in enumerate(asked):
        for number in _choose_candidates(question["candidates"], depth):
            candidate = question["candidates"][number]
            for is_bare in (False, True) if candidate["heading"] else (False,):
                text = prepend_context("" if is_bare else candidate["heading"], candidate["text"])
                pair = tokenizer.encode(question["question"], text[:_MAX_TEXT_CHARS])
                columns["question"].append(question_number)
                columns["candidate"].append(number)
                columns["is_bare"].append(is_bare)
                columns["is_right"].append(candidate["is_right"])
                columns["length"].append(len(pair.ids))
                columns["second"].append(pair.type_ids.index(1))
                columns["ids"].extend(pair.ids)
    pairs = {name: np.array(values) for name, values in columns.items() if name != "ids"}
    pairs["ids"] = np.array(columns["ids"], np.uint16)
    for name in ("kind", "document"):
        pairs[name] = np.array([question[name] for question in asked])
    pairs["fold"] = _assign_folds([question["document"] for question in asked])
    pairs["is_held_out"] = np.array([is_held_out(question["question"]) for question in asked])
    return pairs


def find_read_rows(pairs: Any, corpus_name: str) -> Any:
    """Return the rows in the form that searches read: below headings, but pages' passages bare."""
    if not pairs["is_bare"].any():
        return np.arange(len(pairs["is_bare"]))
    return np.flatnonzero(pairs["is_bare"] == (corpus_name == "guidance"))


def write_weights(model_file: Path, path: Path) -> None:
    """Write the weights as the package has them, for `network.load_weights`."""
    weights = read_packaged_weights(model_file)
    arrays = dict(weights.float_weights)
    for name, weight in weights.quantised_weights.items():
        arrays[f"{name}|ints"] = weight.numbers
        arrays[f"{name}|scale"] = np.array(weight.scale, np.float32)
        arrays[f"{name}|zero"] = np.array(weight.zero_point)
    # By their names in the network, all of which but the last layer's begin so.
    np.savez_compressed(
        path,
        **{
            name if name.startswith("classifier.") else f"bert.{name}": array
            for name, array in arrays.items()
        },
    )


def _assign_folds(documents: Sequence[str]) -> Any:
    """Return the fold of each question: those about one document are in one."""
    counts = Counter(documents)
    sizes = [0] * FOLDS
    folds = {}
    for document in sorted(counts, key=lambda name: (-counts[name], name)):
        folds[document] = sizes.index(min(sizes)) if document else 0
        sizes[folds[document]] += counts[document] if document else 0
    return np.array([folds[document] for document in documents])


def _choose_candidates(candidates: Sequence[Any], depth: int) -> Iterator[int]:
    yield from range(min(depth, len(candidates)))
    right = [number for number, candidate in enumerate(candidates) if candidate["is_right"]]
    yield from (number for number in right[:1] if number >= depth)
