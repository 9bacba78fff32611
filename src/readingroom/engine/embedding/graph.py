"""A BERT encoder as an ONNX graph, built from its weights without torch.

Of a sentence encoder the tokens of texts of one length go in, and one vector of unit length each
comes out: the mean of the last layer. There is no mask, because attention without one takes less
time.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

Precision = Literal["float32", "int8"]
Array = NDArray[Any]

_ONNX_OPSET_VERSION = 20
# Operators of onnxruntime's own: attention in one step, products with int8 weights.
_RUNTIME_DOMAIN = "com.microsoft"


def build_graph(model_folder: Path, precision: Precision) -> bytes:
    """Return the serialized graph of the model in a folder.

    Raise `ValueError` or `KeyError` when the folder holds another kind of model.
    """
    model_config = json.loads((model_folder / "config.json").read_text("utf-8"))
    if model_config.get("model_type") != "bert" or model_config.get("hidden_act") != "gelu":
        raise ValueError(f"{model_folder} does not hold a BERT encoder with GELU")
    arrays_by_stored_name = load_file(model_folder / "model.safetensors")
    arrays_by_weight_name = {
        weight_name.removeprefix("bert."): array
        for weight_name, array in arrays_by_stored_name.items()
    }
    return EncoderGraph(model_config, arrays_by_weight_name, precision).serialize()


class EncoderGraph:
    """Collects the nodes and constants of a sentence encoder's graph, layer by layer."""

    name = "sentence-encoder"
    input_names: Sequence[str] = ("input_ids",)
    output_name = "embedding"

    def __init__(
        self, model_config: Mapping[str, Any], weights: Mapping[str, Array], precision: Precision
    ) -> None:
        self.config = model_config
        self.weights = weights
        self.precision = precision
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def serialize(self) -> bytes:
        """Return the whole graph as the bytes of an ONNX file."""
        output_width = self._add_all_nodes()
        graph = helper.make_graph(
            self.nodes,
            self.name,
            [_make_input_info(input_name) for input_name in self.input_names],
            [_make_output_info(self.output_name, output_width)],
            self.constants,
        )
        # Fixed versions, so that a newer onnx writes a graph that the locked onnxruntime can read.
        operator_sets = [
            helper.make_opsetid("", _ONNX_OPSET_VERSION),
            helper.make_opsetid(_RUNTIME_DOMAIN, 1),
        ]
        model = helper.make_model(graph, opset_imports=operator_sets, ir_version=9)
        return bytes(model.SerializeToString())

    def _add_all_nodes(self) -> int:
        """Add all nodes from the tokens to the output, and return how many numbers that has."""
        hidden_tensor_name = self._add_embeddings()
        for layer_number in range(self.config["num_hidden_layers"]):
            hidden_tensor_name = self._add_layer(
                hidden_tensor_name, hidden_tensor_name, f"encoder.layer.{layer_number}"
            )
        self._add_pooling(hidden_tensor_name)
        return int(self.config["hidden_size"])

    def _add_embeddings(self) -> str:
        first_type_embedding = self.weights["embeddings.token_type_embeddings.weight"][0]
        # Every text is of the first token type, so its embedding can be added to the positions'.
        position_embeddings = (
            self.weights["embeddings.position_embeddings.weight"] + first_type_embedding
        )
        self._add_constant("words", self.weights["embeddings.word_embeddings.weight"])
        self._add_constant("positions", position_embeddings)
        self._add_constant("zero", np.array([0], np.int64))
        self._add_node("Gather", ["words", "input_ids"], "words.found")
        self._add_node("Shape", ["input_ids"], "length", start=1, end=2)
        # By Slice: the optimiser breaks Range + Gather.
        self._add_node("Slice", ["positions", "zero", "length", "zero"], "positions.found")
        embedded_tensor_name = self._add_node("Add", ["words.found", "positions.found"], "embedded")
        return self._add_normalisation(embedded_tensor_name, "embeddings.LayerNorm")

    def _add_layer(self, input_tensor_name: str, wanted_tokens_name: str, layer_prefix: str) -> str:
        """Add a layer that sees all tokens of the input, for those that are wanted of it."""
        attention_tensor_name = self._add_attention(
            input_tensor_name, wanted_tokens_name, f"{layer_prefix}.attention.self"
        )
        projected_tensor_name = self._add_linear(
            attention_tensor_name, f"{layer_prefix}.attention.output.dense"
        )
        attended_tensor_name = self._add_residual(
            projected_tensor_name, wanted_tokens_name, f"{layer_prefix}.attention.output.LayerNorm"
        )
        widened_tensor_name = self._add_node(
            "Gelu",
            [self._add_linear(attended_tensor_name, f"{layer_prefix}.intermediate.dense")],
            f"{layer_prefix}.activated",
        )
        narrowed_tensor_name = self._add_linear(widened_tensor_name, f"{layer_prefix}.output.dense")
        return self._add_residual(
            narrowed_tensor_name, attended_tensor_name, f"{layer_prefix}.output.LayerNorm"
        )

    def _add_attention(
        self, input_tensor_name: str, wanted_tokens_name: str, attention_prefix: str
    ) -> str:
        weight_prefixes = [
            f"{attention_prefix}.{attention_role}" for attention_role in ("query", "key", "value")
        ]
        operand_tensor_names = (wanted_tokens_name, input_tensor_name, input_tensor_name)
        biases = np.concatenate(
            [self.weights[f"{weight_prefix}.bias"] for weight_prefix in weight_prefixes]
        )
        return self._add_node(
            "MultiHeadAttention",
            [
                *map(self._add_product, operand_tensor_names, weight_prefixes),
                self._add_constant(f"{attention_prefix}.bias", biases),
            ],
            f"{attention_prefix}.mixed",
            domain=_RUNTIME_DOMAIN,
            num_heads=self.config["num_attention_heads"],
        )

    def _add_residual(
        self, sublayer_output_name: str, sublayer_input_name: str, weight_prefix: str
    ) -> str:
        return self._add_normalisation(
            self._add_node(
                "Add", [sublayer_output_name, sublayer_input_name], f"{weight_prefix}.sum"
            ),
            weight_prefix,
        )

    def _add_normalisation(self, input_tensor_name: str, weight_prefix: str) -> str:
        scale_name = self._add_constant(
            f"{weight_prefix}.weight", self.weights[f"{weight_prefix}.weight"]
        )
        bias_name = self._add_constant(
            f"{weight_prefix}.bias", self.weights[f"{weight_prefix}.bias"]
        )
        epsilon = float(self.config["layer_norm_eps"])
        return self._add_node(
            "LayerNormalization",
            [input_tensor_name, scale_name, bias_name],
            f"{weight_prefix}.output",
            axis=-1,
            epsilon=epsilon,
        )

    def _add_linear(self, left_operand_name: str, weight_prefix: str) -> str:
        bias_name = self._add_constant(
            f"{weight_prefix}.bias", self.weights[f"{weight_prefix}.bias"]
        )
        if self.precision == "int8":
            return self._add_quantised_product(left_operand_name, weight_prefix, bias_name)
        return self._add_node(
            "Add",
            [self._add_product(left_operand_name, weight_prefix), bias_name],
            f"{weight_prefix}.output",
        )

    def _add_product(self, left_operand_name: str, weight_prefix: str) -> str:
        if self.precision == "int8":
            return self._add_quantised_product(left_operand_name, weight_prefix)
        matrix_name = self._add_constant(
            f"{weight_prefix}.weight", self.weights[f"{weight_prefix}.weight"].T
        )
        return self._add_node(
            "MatMul", [left_operand_name, matrix_name], f"{weight_prefix}.product"
        )

    def _add_quantised_product(
        self, left_operand_name: str, weight_prefix: str, *bias_names: str
    ) -> str:
        """Add a product with int8 weights and return its name."""
        int8_matrix, column_scales = self._quantise_weight(weight_prefix)
        operand_names = [
            left_operand_name,
            self._add_constant(f"{weight_prefix}.weight", int8_matrix),
            self._add_constant(f"{weight_prefix}.scale", column_scales),
            self._add_constant(f"{weight_prefix}.zero", np.zeros(len(column_scales), np.int8)),
            *bias_names,
        ]
        return self._add_node(
            "DynamicQuantizeMatMul",
            operand_names,
            f"{weight_prefix}.product",
            domain=_RUNTIME_DOMAIN,
        )

    def _quantise_weight(self, weight_prefix: str) -> tuple[Array, Array]:
        """Return a weight as int8, (inputs, outputs), and the scale of each of its columns."""
        # A scale for each column: one for the whole matrix loses too much precision.
        matrix = self.weights[f"{weight_prefix}.weight"].T
        column_scales = np.abs(matrix).max(axis=0) / 127
        return np.rint(matrix / column_scales).astype(np.int8), column_scales

    def _add_pooling(self, input_tensor_name: str) -> None:
        self._add_constant("along tokens", np.array([1], np.int64))
        self._add_constant("nothing", np.array(1e-12, np.float32))
        # Dividing by the length removes the number of tokens, so the sum does instead of the mean.
        self._add_node("ReduceSum", [input_tensor_name, "along tokens"], "sum", keepdims=0)
        self._add_node("ReduceL2", ["sum", "along tokens"], "norm", keepdims=1)
        self._add_node("Max", ["norm", "nothing"], "norm.safe")
        self._add_node("Div", ["sum", "norm.safe"], "embedding")

    def _add_node(
        self,
        operator_name: str,
        operand_names: list[str],
        output_tensor_name: str,
        domain: str = "",
        **attributes: Any,
    ) -> str:
        node = helper.make_node(
            operator_name,
            operand_names,
            [output_tensor_name],
            name=output_tensor_name,
            domain=domain,
            **attributes,
        )
        self.nodes.append(node)
        return output_tensor_name

    def _add_constant(self, constant_name: str, array: Array) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), constant_name))
        return constant_name


def _make_input_info(input_name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(input_name, TensorProto.INT64, ["texts", "tokens"])


def _make_output_info(output_name: str, dimensions: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(output_name, TensorProto.FLOAT, ["texts", dimensions])
