"""A BERT sentence encoder on torch, for many texts at once on a graphics card.

The tokens of all texts lie in one row without padding, so no work is wasted on short texts. Torch
is an extra (`readingroom[gpu]`); this module imports nothing else but numpy.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from readingroom.engine.embedding.tokens import TokenizedTexts

try:
    from torch.nn.attention.varlen import varlen_attn
except ImportError:  # torch before 2.10
    varlen_attn = None


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: Tensor
    bias: Tensor

    def __call__(self, inputs: Tensor) -> Tensor:
        return F.linear(inputs, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class _Normalisation:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, inputs: Tensor) -> Tensor:
        return F.layer_norm(inputs, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, slots=True)
class _Layer:
    query_key_value: _Linear
    attention_output: _Linear
    attention_normalisation: _Normalisation
    widen: _Linear
    narrow: _Linear
    output_normalisation: _Normalisation


@dataclass(frozen=True, slots=True)
class _Packing:
    """Where each text begins and ends in the row of tokens."""

    lengths: Tensor
    ends: Tensor
    """Of every text, with a zero before them."""
    positions: Tensor
    max_length: int


@dataclass(frozen=True, slots=True)
class PendingVectors:
    """Vectors that a device is computing."""

    _received_tensor: Tensor
    _copy_done_event: "torch.cuda.Event | None"

    def wait_for_vectors(self) -> NDArray[np.float32]:
        """Return the vectors as soon as they are there."""
        if self._copy_done_event is not None:
            self._copy_done_event.synchronize()
        vectors: NDArray[np.float32] = self._received_tensor.numpy()
        return vectors


class PackedEncoder:
    """The model's weights on a device, and the way from token ids to vectors."""

    def __init__(
        self, config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], device: str
    ) -> None:
        """Half precision on a graphics card, where it costs nothing; float32 on a processor."""
        self.device = torch.device(device)
        self._is_cuda = self.device.type == "cuda"
        self._dtype = torch.float16 if self._is_cuda else torch.float32
        self._weights = {
            weight_name.removeprefix("bert."): array for weight_name, array in weights.items()
        }
        self._epsilon = float(config["layer_norm_eps"])
        self._head_count = int(config["num_attention_heads"])
        self.dimensions = int(config["hidden_size"])
        self._word_embeddings = self._load_weights("embeddings.word_embeddings.weight")
        # Every text is of the first token type, so its embedding can be added to the positions'.
        first_type_embedding = self._load_weights("embeddings.token_type_embeddings.weight")[0]
        self._position_embeddings = (
            self._load_weights("embeddings.position_embeddings.weight") + first_type_embedding
        )
        self._normalise_embeddings = self._build_normalisation("embeddings.LayerNorm")
        self._layers = [
            self._build_layer(f"encoder.layer.{layer_number}")
            for layer_number in range(config["num_hidden_layers"])
        ]
        self._weights = {}

    def start_encoding(self, texts: TokenizedTexts) -> "PendingVectors":
        """Begin to encode texts, and return at once where the device works by itself."""
        vectors = self.encode_texts(texts)
        if not self._is_cuda:
            return PendingVectors(vectors, None)
        received_tensor = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
        received_tensor.copy_(vectors, non_blocking=True)
        copy_done_event = torch.cuda.Event()
        copy_done_event.record()
        return PendingVectors(received_tensor, copy_done_event)

    def encode_texts(self, texts: TokenizedTexts) -> Tensor:
        """Return the vectors of the texts, on the device; the work may not have ended yet."""
        with torch.inference_mode():
            return self._compute_vectors(texts)

    def _compute_vectors(self, texts: TokenizedTexts) -> Tensor:
        token_ids = self._copy_to_device(texts.ids.view(np.int16)).to(torch.int32) & 0xFFFF
        packing = self._pack_texts(texts.lengths)
        token_vectors = self._normalise_embeddings(
            self._word_embeddings[token_ids] + self._position_embeddings[packing.positions]
        )
        for layer in self._layers:
            attention = layer.attention_output(
                self._compute_attention(layer, token_vectors, packing)
            )
            token_vectors = layer.attention_normalisation(token_vectors + attention)
            wide = F.gelu(layer.widen(token_vectors))
            token_vectors = layer.output_normalisation(token_vectors + layer.narrow(wide))
        # Unsafe means that the lengths are not checked, which would wait for the device.
        means = torch.segment_reduce(
            token_vectors.float(), "mean", lengths=packing.lengths, axis=0, unsafe=True
        )
        return F.normalize(means, dim=1)

    def _pack_texts(self, text_lengths: NDArray[np.int32]) -> _Packing:
        lengths = self._copy_to_device(text_lengths)
        ends = F.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
        token_count = int(text_lengths.sum())
        starts = torch.repeat_interleave(ends[:-1], lengths, output_size=token_count)
        positions = torch.arange(token_count, dtype=torch.int32, device=self.device) - starts
        return _Packing(lengths, ends, positions, int(text_lengths.max()))

    def _compute_attention(self, layer: _Layer, token_vectors: Tensor, packing: _Packing) -> Tensor:
        query, key, value = (
            layer.query_key_value(token_vectors)
            .view(len(token_vectors), 3, self._head_count, -1)
            .unbind(1)
        )
        if self._is_cuda and varlen_attn is not None:
            ends, max_length = packing.ends, packing.max_length
            attended = varlen_attn(query, key, value, ends, ends, max_length, max_length)
        else:
            attended = _compute_padded_attention(query, key, value, packing)
        return attended.reshape(len(token_vectors), -1)

    def _copy_to_device(self, array: NDArray[Any]) -> Tensor:
        """Copy an array to the device, without waiting where the device allows it."""
        host_tensor = torch.from_numpy(array)
        if not self._is_cuda:
            return host_tensor
        return host_tensor.pin_memory().to(self.device, non_blocking=True)

    def _load_weights(self, *weight_names: str) -> Tensor:
        joined_weights = np.concatenate(
            [self._weights[weight_name] for weight_name in weight_names]
        )
        return torch.from_numpy(joined_weights).to(self.device, self._dtype)

    def _build_linear(self, *weight_prefixes: str) -> _Linear:
        weight = self._load_weights(
            *(f"{weight_prefix}.weight" for weight_prefix in weight_prefixes)
        )
        return _Linear(
            weight,
            self._load_weights(*(f"{weight_prefix}.bias" for weight_prefix in weight_prefixes)),
        )

    def _build_normalisation(self, weight_prefix: str) -> _Normalisation:
        weight, bias = (
            self._load_weights(f"{weight_prefix}.weight"),
            self._load_weights(f"{weight_prefix}.bias"),
        )
        return _Normalisation(weight, bias, self._epsilon)

    def _build_layer(self, layer_prefix: str) -> _Layer:
        roles = (f"{layer_prefix}.attention.self.{role}" for role in ("query", "key", "value"))
        return _Layer(
            self._build_linear(*roles),
            self._build_linear(f"{layer_prefix}.attention.output.dense"),
            self._build_normalisation(f"{layer_prefix}.attention.output.LayerNorm"),
            self._build_linear(f"{layer_prefix}.intermediate.dense"),
            self._build_linear(f"{layer_prefix}.output.dense"),
            self._build_normalisation(f"{layer_prefix}.output.LayerNorm"),
        )


def _compute_padded_attention(
    query: Tensor, key: Tensor, value: Tensor, packing: _Packing
) -> Tensor:
    """Attend within each text by filling all up to the longest; for devices without the other."""
    token_mask = torch.arange(packing.max_length, device=query.device) < packing.lengths[:, None]

    def pad_rows(packed_rows: Tensor) -> Tensor:
        padded = packed_rows.new_zeros(*token_mask.shape, *packed_rows.shape[1:])
        padded[token_mask] = packed_rows
        return padded.transpose(1, 2)

    attended = F.scaled_dot_product_attention(
        pad_rows(query), pad_rows(key), pad_rows(value), attn_mask=token_mask[:, None, None, :]
    )
    return attended.transpose(1, 2)[token_mask]
