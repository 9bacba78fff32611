"""What this project has taught the packaged cross-encoder: low-rank changes of its weights.

For each changed dense layer the file has two thin matrices, `up` and `down`; their product is added
to the layer's weight. `benchmarks/adapter` trains them and writes the file.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from readingroom.engine.embedding.processor import find_or_build_graph
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

ADAPTER_FILE = Path(__file__).with_name("adapter.safetensors")
# The changes are of these weights and of no others, so both files are known by their digests.
ADAPTER_DIGEST = "6f0fd555a9be547b085e55b4c408cdec8454e7bae05faa565893cc7d49b022d7"
MODEL_DIGEST = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"

# To be raised whenever the same weights and changes give another graph.
_GRAPH_VERSION = 1

Floats = NDArray[np.float32]


def find_taught_graph(model_file: Path, graphs_folder: Path) -> Path:
    """Return the path of the model's graph with the adapter, which is made if it is missing.

    Raise `ModelUnavailable` when the adapter cannot be applied to the model, and `OSError` when
    the graph cannot be kept.
    """

    def build() -> bytes:
        # Imports onnx, which only building a graph needs.
        from readingroom.engine.embedding.cross_encoder.graph import build_cross_encoder

        try:
            return build_cross_encoder(model_file, read_weight_changes(model_file))
        except (ValueError, KeyError) as error:
            raise ModelUnavailable(
                f"the adapter does not fit {model_file.name}: {error}"
            ) from error

    return find_or_build_graph(
        graphs_folder,
        f"{MODEL_DIGEST[:16]}-cross-encoder",
        f"{_GRAPH_VERSION}-{ADAPTER_DIGEST[:8]}",
        build,
    )


def read_weight_changes(model_file: Path) -> Mapping[str, Floats]:
    """Return by the name of each changed layer what is added to its weight, (outputs, inputs).

    Raise `ModelUnavailable` when the adapter is missing or damaged, or the model another than it
    was made for.
    """
    if hash_file(model_file) != MODEL_DIGEST:
        raise ModelUnavailable(f"{model_file.name} is not the model that the adapter was made for")
    try:
        if hash_file(ADAPTER_FILE) != ADAPTER_DIGEST:
            raise ModelUnavailable(f"{ADAPTER_FILE.name} is damaged; install this release again")
        matrices = load(ADAPTER_FILE.read_bytes())
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"{ADAPTER_FILE.name} cannot be read: {error}") from error
    layer_names = [name.removesuffix(".up") for name in matrices if name.endswith(".up")]
    return {
        layer_name: matrices[f"{layer_name}.up"].astype(np.float32)
        @ matrices[f"{layer_name}.down"].astype(np.float32)
        for layer_name in layer_names
    }
