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

from readingroom.engine.embedding.cross_encoder.graph import build_cross_encoder
from readingroom.engine.errors import ModelUnavailable
from readingroom.storage.files import hash_file

ADAPTER_FILE = Path(__file__).with_name("adapter.safetensors")

Floats = NDArray[np.float32]


def build_taught_graph(model_file: Path, adapter_digest: str) -> bytes:
    """Return the serialized graph of the packaged model with the adapter.

    Raise `ModelUnavailable` when the adapter is missing, or not the one with the digest.
    """
    return build_cross_encoder(model_file, read_weight_changes(adapter_digest))


def read_weight_changes(adapter_digest: str) -> Mapping[str, Floats]:
    """Return by the name of each changed layer what is added to its weight, (outputs, inputs).

    Raise `ModelUnavailable` when the adapter is missing, or not the one with the digest.
    """
    try:
        if hash_file(ADAPTER_FILE) != adapter_digest:
            raise ModelUnavailable(f"{ADAPTER_FILE.name} is damaged; install this release again")
        matrices_by_name = load(ADAPTER_FILE.read_bytes())
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"{ADAPTER_FILE.name} cannot be read: {error}") from error
    layer_names = [name.removesuffix(".up") for name in matrices_by_name if name.endswith(".up")]
    return {
        layer_name: matrices_by_name[f"{layer_name}.up"].astype(np.float32)
        @ matrices_by_name[f"{layer_name}.down"].astype(np.float32)
        for layer_name in layer_names
    }
