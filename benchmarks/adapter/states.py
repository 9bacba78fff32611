"""What the cross-encoder makes of candidates, kept for training: log-odds, and states in between.

The lower layers never change, so they are computed once, by the int8 graph that searches use. Of
each pair of question and text `CORPUS.rows.npy` has the numbers of both, the count of its tokens
and its log-odds; `CORPUS.after6.npy` has the states of its tokens after six layers, pair by pair.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from tokenizers import Tokenizer

from readingroom.engine.context import prepend_context

_MAX_TEXT_CHARS, _MAX_TOKENS = 1_024, 256  # as in engine/embedding/reranker.py
_DENSE_SUFFIXES = ("/MatMul_quant", "/Gemm_MatMul_quant")


def write_weights(model_folder: Path, path: Path) -> None:
    """Write the int8 weights as floats; those of dense layers as (inputs, outputs)."""
    graph = onnx.load(model_folder / "model.onnx").graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    weights = {name: tensors[name] for name in tensors if name.endswith((".weight", ".bias"))}
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1] in tensors:
            suffix = next(each for each in reversed(_DENSE_SUFFIXES) if node.name.endswith(each))
            layer = node.name[1 : -len(suffix)].replace("/", ".")
            name = node.input[1].removesuffix("_quantized")
            zero_point = tensors[f"{name}_zero_point"].astype(np.float32)
            weights[f"{layer}.weight"] = (tensors[node.input[1]] - zero_point) * tensors[
                f"{name}_scale"
            ]
    np.savez(path, **{name: array.astype(np.float32) for name, array in weights.items()})


def read_candidates(
    model_folder: Path, asked: list[Any], depth: int, kept: int, with_headings: bool
) -> tuple[Any, Any]:
    """Return the rows of the first candidates and of the first right one, and their states.

    `kept` is how many layers stay as they are; with 0, states are what the first layer is given.
    """
    session = _open_graph(model_folder, kept)
    tokenizer = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_MAX_TOKENS)
    rows, states = [], []
    for question_number, question in enumerate(asked):
        for number in _choose_candidates(question["candidates"], depth):
            candidate = question["candidates"][number]
            heading = candidate["heading"] if with_headings else ""
            text = prepend_context(heading, candidate["text"])[:_MAX_TEXT_CHARS]
            pair = tokenizer.encode(question["question"], text)
            # Alone, as in a search: an int8 graph scales all numbers of a run by its largest.
            inputs = {"input_ids": pair.ids, "token_type_ids": pair.type_ids}
            inputs |= {"attention_mask": pair.attention_mask}
            log_odds, state = session.run(
                None, {name: np.array([values]) for name, values in inputs.items()}
            )
            rows.append((question_number, number, len(pair.ids), float(log_odds[0, 0])))
            states.append(state[0].astype(np.float16))
    return np.array(rows), np.concatenate(states)


def _choose_candidates(candidates: list[Any], depth: int) -> Iterator[int]:
    yield from range(min(depth, len(candidates)))
    yield from (number for number in _find_right(candidates)[:1] if number >= depth)


def _find_right(candidates: list[Any]) -> list[int]:
    return [number for number, candidate in enumerate(candidates) if candidate["is_right"]]


def _open_graph(model_folder: Path, kept: int) -> onnxruntime.InferenceSession:
    """Return a session that also gives the states after the lower layers."""
    model = onnx.load(model_folder / "model.onnx")
    place = f"encoder/layer.{kept - 1}/output" if kept else "embeddings"
    node_name = f"/bert/{place}/LayerNorm/Add_1"
    (node,) = (node for node in model.graph.node if node.name == node_name)
    model.graph.output.append(helper.make_tensor_value_info(node.output[0], 1, None))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options)
