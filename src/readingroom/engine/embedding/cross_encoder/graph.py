"""The packaged cross-encoder as a graph of fewer steps.

The package's graph does attention, GELU and norms in dozens of small steps; here each is one. Its
numbers are int8 as in the package: a weight that is not changed is taken over as it is, a changed
one is rounded anew, with a scale for each column.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from readingroom.engine.embedding.graph import Array, EncoderGraph

_MODEL_CONFIG: Mapping[str, Any] = {
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "hidden_size": 384,
    "layer_norm_eps": 1e-12,
}
_PRODUCT_NODE_SUFFIXES = ("/Gemm_MatMul_quant", "/MatMul_quant")


@dataclass(frozen=True)
class QuantisedWeight:
    """A weight as the package has it: 8-bit numbers, from which a number is taken, and a factor."""

    numbers: Array
    zero_point: int
    scale: float

    def to_floats(self) -> NDArray[np.float32]:
        """Return what the numbers stand for."""
        floats = (self.numbers.astype(np.float32) - self.zero_point) * np.float32(self.scale)
        return floats.astype(np.float32)


@dataclass(frozen=True)
class PackagedWeights:
    """The weights in a package's graph by their names in the network, without the prefix `bert`."""

    float_weights: Mapping[str, Array]
    """Biases and norms."""
    quantised_weights: Mapping[str, QuantisedWeight]
    """Embeddings, a row for each, and dense layers, (inputs, outputs)."""


def build_cross_encoder(
    model_file: Path, weight_change_by_name: Mapping[str, NDArray[np.float32]]
) -> bytes:
    """Return the serialized graph of a package's model with changes added to its weights.

    Raise `ValueError` or `KeyError` when the file holds another kind of model.
    """
    weights = read_packaged_weights(model_file)
    return _CrossEncoderGraph(weights, weight_change_by_name).serialize()


def read_packaged_weights(model_file: Path) -> PackagedWeights:
    """Return the weights in a package's graph.

    Raise `ValueError` or `KeyError` when the file holds another kind of model.
    """
    try:
        graph = onnx.load(model_file).graph
    except Exception as error:  # protobuf has its own kinds for a damaged file
        raise ValueError(f"{model_file.name} is no graph: {error}") from error
    arrays_by_name = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    stored_name_by_weight_name = {
        _shorten_weight_name(array_name.removesuffix("_quantized")): array_name.removesuffix(
            "_quantized"
        )
        for array_name in arrays_by_name
        if array_name.endswith("_embeddings.weight_quantized")
    }
    # The weights of most dense layers have no names of their own; the nodes that use them have.
    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1] in arrays_by_name:
            layer_name = node.name[1:]
            for node_name_suffix in _PRODUCT_NODE_SUFFIXES:
                layer_name = layer_name.removesuffix(node_name_suffix)
            weight_name = _shorten_weight_name(f"{layer_name.replace('/', '.')}.weight")
            stored_name_by_weight_name[weight_name] = node.input[1].removesuffix("_quantized")
    return PackagedWeights(
        {
            _shorten_weight_name(array_name): array
            for array_name, array in arrays_by_name.items()
            if array_name.endswith((".weight", ".bias"))
        },
        {
            weight_name: QuantisedWeight(
                arrays_by_name[f"{stored_name}_quantized"],
                int(arrays_by_name[f"{stored_name}_zero_point"]),
                float(arrays_by_name[f"{stored_name}_scale"]),
            )
            for weight_name, stored_name in stored_name_by_weight_name.items()
        },
    )


def _shorten_weight_name(weight_name: str) -> str:
    return weight_name.removeprefix("bert.")


class _CrossEncoderGraph(EncoderGraph):
    """Collects the nodes and constants of a cross-encoder's graph."""

    name = "cross-encoder"
    input_names = ("input_ids", "token_type_ids")
    output_name = "log_odds"

    def __init__(
        self,
        packaged_weights: PackagedWeights,
        weight_change_by_name: Mapping[str, NDArray[np.float32]],
    ) -> None:
        super().__init__(_MODEL_CONFIG, packaged_weights.float_weights, "int8")
        self.quantised_weights = packaged_weights.quantised_weights
        self.weight_changes = weight_change_by_name
        if unknown_weight_names := {
            f"{layer_name}.weight" for layer_name in weight_change_by_name
        } - {*self.quantised_weights}:
            raise KeyError(f"there are no weights named {', '.join(sorted(unknown_weight_names))}")

    def _add_all_nodes(self) -> int:
        hidden_tensor_name = self._add_embeddings()
        *lower_layer_prefixes, last_layer_prefix = (
            f"encoder.layer.{layer_number}"
            for layer_number in range(_MODEL_CONFIG["num_hidden_layers"])
        )
        for layer_prefix in lower_layer_prefixes:
            hidden_tensor_name = self._add_layer(
                hidden_tensor_name, hidden_tensor_name, layer_prefix
            )
        # Whether the text answers is read off the first token alone.
        self._add_constant("one", np.array([1], np.int64))
        first_token_tensor_name = self._add_node(
            "Slice", [hidden_tensor_name, "zero", "one", "one"], "first"
        )
        first_token_tensor_name = self._add_layer(
            hidden_tensor_name, first_token_tensor_name, last_layer_prefix
        )
        pooled_tensor_name = self._add_node(
            "Tanh", [self._add_linear(first_token_tensor_name, "pooler.dense")], "pooled"
        )
        log_odds_tensor_name = self._add_linear(pooled_tensor_name, "classifier")
        self._add_node("Squeeze", [log_odds_tensor_name, "one"], self.output_name)
        return 1

    def _add_embeddings(self) -> str:
        word_embeddings, position_embeddings, type_embeddings = (
            self.quantised_weights[f"embeddings.{embedding_kind}_embeddings.weight"]
            for embedding_kind in ("word", "position", "token_type")
        )
        # Those of the words stay bytes, of which a few rows are looked up: floats take 47 MB.
        self._add_constant("words", word_embeddings.numbers)
        self._add_constant("words.scale", np.array(word_embeddings.scale, np.float32))
        self._add_constant(
            "words.zero", np.array(word_embeddings.zero_point, word_embeddings.numbers.dtype)
        )
        self._add_constant("positions", position_embeddings.to_floats())
        self._add_constant("types", type_embeddings.to_floats())
        self._add_constant("zero", np.array([0], np.int64))
        self._add_node("Gather", ["words", "input_ids"], "words.bytes")
        self._add_node(
            "DequantizeLinear", ["words.bytes", "words.scale", "words.zero"], "words.found"
        )
        self._add_node("Gather", ["types", "token_type_ids"], "types.found")
        self._add_node("Shape", ["input_ids"], "length", start=1, end=2)
        self._add_node("Slice", ["positions", "zero", "length", "zero"], "positions.found")
        self._add_node("Add", ["words.found", "types.found"], "words.typed")
        embedded_tensor_name = self._add_node("Add", ["words.typed", "positions.found"], "embedded")
        return self._add_normalisation(embedded_tensor_name, "embeddings.LayerNorm")

    def _quantise_weight(self, weight_prefix: str) -> tuple[Array, Array]:
        quantised_weight = self.quantised_weights[f"{weight_prefix}.weight"]
        if quantised_weight.zero_point:
            raise ValueError(f"the int8 weight of {weight_prefix} has a zero point of its own")
        if weight_prefix not in self.weight_changes:
            column_scales = np.full(
                quantised_weight.numbers.shape[1], quantised_weight.scale, np.float32
            )
            return quantised_weight.numbers, column_scales
        changed_matrix = quantised_weight.to_floats() + self.weight_changes[weight_prefix].T
        column_scales = (np.abs(changed_matrix).max(axis=0) / 127).astype(np.float32)
        return np.rint(changed_matrix / column_scales).astype(np.int8), column_scales
