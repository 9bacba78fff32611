"""A BERT sentence encoder as an ONNX graph, built from its safetensors without torch.

Tokens go in, one vector of unit length comes out: the mean of the last layer over the real tokens.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

Precision = Literal["float32", "int8"]
Array = NDArray[Any]

_ONNX_OPERATORS = 20
_RUNTIME = "com.microsoft"
"""Operators of onnxruntime's own: attention in one step, products with int8 weights."""


def build_graph(folder: Path, precision: Precision) -> bytes:
    """Return the serialized graph of the model in a folder.

    Raise `ValueError` or `KeyError` when the folder holds another kind of model.
    """
    config = json.loads((folder / "config.json").read_text("utf-8"))
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise ValueError(f"{folder} does not hold a BERT encoder with GELU")
    weights = load_file(folder / "model.safetensors")
    arrays = {name.removeprefix("bert."): array for name, array in weights.items()}
    return _Encoder(config, arrays, precision).serialize()


class _Encoder:
    """Collects the nodes and constants of the graph, layer by layer."""

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, Array], precision: Precision
    ) -> None:
        self.config = config
        self.weights = weights
        self.precision = precision
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def serialize(self) -> bytes:
        layers = self.config["num_hidden_layers"]
        x = self._embeddings()
        self._node("Cast", ["attention_mask"], "attended", to=TensorProto.INT32)
        for number in range(layers):
            x = self._layer(x, f"encoder.layer.{number}")
        self._pool(x)
        graph = helper.make_graph(
            self.nodes,
            "sentence-encoder",
            [_tokens("input_ids"), _tokens("attention_mask")],
            [_vectors("embedding", self.config["hidden_size"])],
            self.constants,
        )
        # Fixed versions, so that a newer onnx writes a graph that the locked onnxruntime can read.
        operators = [
            helper.make_opsetid("", _ONNX_OPERATORS),
            helper.make_opsetid(_RUNTIME, 1),
        ]
        model = helper.make_model(graph, opset_imports=operators, ir_version=9)
        return bytes(model.SerializeToString())

    def _embeddings(self) -> str:
        first_type = self.weights["embeddings.token_type_embeddings.weight"][0]
        # Every text is of the first token type, so its embedding can be added to the positions'.
        positions = self.weights["embeddings.position_embeddings.weight"] + first_type
        self._constant("words", self.weights["embeddings.word_embeddings.weight"])
        self._constant("positions", positions)
        self._constant("zero", np.array([0], np.int64))
        self._node("Gather", ["words", "input_ids"], "words.found")
        self._node("Shape", ["input_ids"], "length", start=1, end=2)
        # By Slice: the optimiser breaks Range + Gather.
        self._node("Slice", ["positions", "zero", "length", "zero"], "positions.found")
        both = self._node("Add", ["words.found", "positions.found"], "embedded")
        return self._normalise(both, "embeddings.LayerNorm")

    def _layer(self, x: str, name: str) -> str:
        attention = self._attention(x, f"{name}.attention.self")
        output = self._linear(attention, f"{name}.attention.output.dense")
        x = self._add_and_normalise(output, x, f"{name}.attention.output.LayerNorm")
        wide = self._node(
            "Gelu", [self._linear(x, f"{name}.intermediate.dense")], f"{name}.activated"
        )
        narrow = self._linear(wide, f"{name}.output.dense")
        return self._add_and_normalise(narrow, x, f"{name}.output.LayerNorm")

    def _attention(self, x: str, name: str) -> str:
        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        biases = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        return self._node(
            "MultiHeadAttention",
            [
                *[self._product(x, part) for part in parts],
                self._constant(f"{name}.bias", biases),
                "attended",
            ],
            f"{name}.mixed",
            domain=_RUNTIME,
            num_heads=self.config["num_attention_heads"],
        )

    def _add_and_normalise(self, x: str, residual: str, name: str) -> str:
        return self._normalise(self._node("Add", [x, residual], f"{name}.sum"), name)

    def _normalise(self, x: str, name: str) -> str:
        scale = self._constant(f"{name}.weight", self.weights[f"{name}.weight"])
        bias = self._constant(f"{name}.bias", self.weights[f"{name}.bias"])
        epsilon = float(self.config["layer_norm_eps"])
        return self._node(
            "LayerNormalization", [x, scale, bias], f"{name}.output", axis=-1, epsilon=epsilon
        )

    def _linear(self, x: str, name: str) -> str:
        bias = self._constant(f"{name}.bias", self.weights[f"{name}.bias"])
        if self.precision == "int8":
            return self._add_quantised(x, name, bias)
        return self._node("Add", [self._product(x, name), bias], f"{name}.output")

    def _product(self, x: str, name: str) -> str:
        if self.precision == "int8":
            return self._add_quantised(x, name)
        matrix = self._constant(f"{name}.weight", self.weights[f"{name}.weight"].T)
        return self._node("MatMul", [x, matrix], f"{name}.product")

    def _add_quantised(self, x: str, name: str, *bias: str) -> str:
        """Add a product with int8 weights and return its name."""
        # A scale for each column: one for the whole matrix loses too much precision.
        matrix = self.weights[f"{name}.weight"].T
        scale = np.abs(matrix).max(axis=0) / 127
        inputs = [
            x,
            self._constant(f"{name}.weight", np.rint(matrix / scale).astype(np.int8)),
            self._constant(f"{name}.scale", scale),
            self._constant(f"{name}.zero", np.zeros(len(scale), np.int8)),
            *bias,
        ]
        return self._node("DynamicQuantizeMatMul", inputs, f"{name}.product", domain=_RUNTIME)

    def _pool(self, x: str) -> None:
        self._constant("along tokens", np.array([1], np.int64))
        self._constant("along units", np.array([2], np.int64))
        self._constant("nothing", np.array(1e-12, np.float32))
        self._node("Cast", ["attention_mask"], "weight", to=TensorProto.FLOAT)
        self._node("Unsqueeze", ["weight", "along units"], "weights")
        self._node("Mul", [x, "weights"], "weighted")
        # Dividing by the length removes the number of tokens, so the sum does instead of the mean.
        self._node("ReduceSum", ["weighted", "along tokens"], "sum", keepdims=0)
        self._node("ReduceL2", ["sum", "along tokens"], "norm", keepdims=1)
        self._node("Max", ["norm", "nothing"], "norm.safe")
        self._node("Div", ["sum", "norm.safe"], "embedding")

    def _node(
        self, operator: str, inputs: list[str], output: str, domain: str = "", **attributes: Any
    ) -> str:
        node = helper.make_node(
            operator, inputs, [output], name=output, domain=domain, **attributes
        )
        self.nodes.append(node)
        return output

    def _constant(self, name: str, array: Array) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def _tokens(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])


def _vectors(name: str, size: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", size])
