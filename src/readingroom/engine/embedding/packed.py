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

    def __call__(self, input_tensor: Tensor) -> Tensor:
        return F.linear(input_tensor, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class _Normalisation:
    weight: Tensor
    bias: Tensor
    epsilon: float

    def __call__(self, input_tensor: Tensor) -> Tensor:
        return F.layer_norm(input_tensor, self.weight.shape, self.weight, self.bias, self.epsilon)


@dataclass(frozen=True, slots=True)
class _Layer:
    query_key_value: _Linear
    attention_output: _Linear
    attention_normalisation: _Normalisation
    widen: _Linear
    narrow: _Linear
    output_normalisation: _Normalisation


@dataclass(frozen=True, slots=True)
class _TextBounds:
    """Where each text begins and ends in the row of tokens."""

    text_lengths: Tensor
    text_ends: Tensor
    """Of every text, with a zero before them."""
    token_positions: Tensor
    max_text_length: int


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
        self, model_config: Mapping[str, Any], weights: Mapping[str, NDArray[Any]], device: str
    ) -> None:
        """Half precision on a graphics card, where it costs nothing; float32 on a processor."""
        self.device = torch.device(device)
        self._is_cuda = self.device.type == "cuda"
        self._dtype = torch.float16 if self._is_cuda else torch.float32
        self._weights = {
            weight_name.removeprefix("bert."): array for weight_name, array in weights.items()
        }
        self._epsilon = float(model_config["layer_norm_eps"])
        self._head_count = int(model_config["num_attention_heads"])
        self.dimensions = int(model_config["hidden_size"])
        self._word_embeddings = self._make_weight_tensor("embeddings.word_embeddings.weight")
        # Every text is of the first token type, so its embedding can be added to the positions'.
        first_type_embedding = self._make_weight_tensor("embeddings.token_type_embeddings.weight")[
            0
        ]
        self._position_embeddings = (
            self._make_weight_tensor("embeddings.position_embeddings.weight") + first_type_embedding
        )
        self._normalise_embeddings = self._build_normalisation("embeddings.LayerNorm")
        self._layers = [
            self._build_layer(f"encoder.layer.{layer_number}")
            for layer_number in range(model_config["num_hidden_layers"])
        ]
        self._weights = {}

    def start_encoding(self, tokenized_texts: TokenizedTexts) -> "PendingVectors":
        """Begin to encode texts, and return at once where the device works by itself."""
        vectors = self.encode_texts(tokenized_texts)
        if not self._is_cuda:
            return PendingVectors(vectors, None)
        received_tensor = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
        received_tensor.copy_(vectors, non_blocking=True)
        copy_done_event = torch.cuda.Event()
        copy_done_event.record()
        return PendingVectors(received_tensor, copy_done_event)

    def encode_texts(self, tokenized_texts: TokenizedTexts) -> Tensor:
        """Return the vectors of the texts, on the device; the work may not have ended yet."""
        with torch.inference_mode():
            return self._compute_vectors(tokenized_texts)

    def _compute_vectors(self, tokenized_texts: TokenizedTexts) -> Tensor:
        token_ids = (
            self._copy_to_device(tokenized_texts.ids.view(np.int16)).to(torch.int32) & 0xFFFF
        )
        text_bounds = self._find_text_bounds(tokenized_texts.lengths)
        token_vectors = self._normalise_embeddings(
            self._word_embeddings[token_ids]
            + self._position_embeddings[text_bounds.token_positions]
        )
        for layer in self._layers:
            attention_vectors = layer.attention_output(
                self._compute_attention(layer, token_vectors, text_bounds)
            )
            token_vectors = layer.attention_normalisation(token_vectors + attention_vectors)
            widened_vectors = F.gelu(layer.widen(token_vectors))
            token_vectors = layer.output_normalisation(
                token_vectors + layer.narrow(widened_vectors)
            )
        # Unsafe means that the lengths are not checked, which would wait for the device.
        mean_vectors = torch.segment_reduce(
            token_vectors.float(), "mean", lengths=text_bounds.text_lengths, axis=0, unsafe=True
        )
        return F.normalize(mean_vectors, dim=1)

    def _find_text_bounds(self, text_lengths: NDArray[np.int32]) -> _TextBounds:
        length_tensor = self._copy_to_device(text_lengths)
        text_ends = F.pad(length_tensor.cumsum(0, dtype=torch.int32), (1, 0))
        token_count = int(text_lengths.sum())
        text_start_of_tokens = torch.repeat_interleave(
            text_ends[:-1], length_tensor, output_size=token_count
        )
        token_positions = (
            torch.arange(token_count, dtype=torch.int32, device=self.device) - text_start_of_tokens
        )
        return _TextBounds(length_tensor, text_ends, token_positions, int(text_lengths.max()))

    def _compute_attention(
        self, layer: _Layer, token_vectors: Tensor, text_bounds: _TextBounds
    ) -> Tensor:
        query, key, value = (
            layer.query_key_value(token_vectors)
            .view(len(token_vectors), 3, self._head_count, -1)
            .unbind(1)
        )
        if self._is_cuda and varlen_attn is not None:
            text_ends, max_text_length = text_bounds.text_ends, text_bounds.max_text_length
            attended_vectors = varlen_attn(
                query, key, value, text_ends, text_ends, max_text_length, max_text_length
            )
        else:
            attended_vectors = _compute_padded_attention(query, key, value, text_bounds)
        return attended_vectors.reshape(len(token_vectors), -1)

    def _copy_to_device(self, array: NDArray[Any]) -> Tensor:
        """Copy an array to the device, without waiting where the device allows it."""
        host_tensor = torch.from_numpy(array)
        if not self._is_cuda:
            return host_tensor
        return host_tensor.pin_memory().to(self.device, non_blocking=True)

    def _make_weight_tensor(self, *weight_names: str) -> Tensor:
        joined_weights = np.concatenate(
            [self._weights[weight_name] for weight_name in weight_names]
        )
        return torch.from_numpy(joined_weights).to(self.device, self._dtype)

    def _build_linear(self, *weight_prefixes: str) -> _Linear:
        weight = self._make_weight_tensor(
            *(f"{weight_prefix}.weight" for weight_prefix in weight_prefixes)
        )
        return _Linear(
            weight,
            self._make_weight_tensor(
                *(f"{weight_prefix}.bias" for weight_prefix in weight_prefixes)
            ),
        )

    def _build_normalisation(self, weight_prefix: str) -> _Normalisation:
        weight, bias = (
            self._make_weight_tensor(f"{weight_prefix}.weight"),
            self._make_weight_tensor(f"{weight_prefix}.bias"),
        )
        return _Normalisation(weight, bias, self._epsilon)

    def _build_layer(self, layer_prefix: str) -> _Layer:
        attention_prefixes = (
            f"{layer_prefix}.attention.self.{attention_role}"
            for attention_role in ("query", "key", "value")
        )
        return _Layer(
            self._build_linear(*attention_prefixes),
            self._build_linear(f"{layer_prefix}.attention.output.dense"),
            self._build_normalisation(f"{layer_prefix}.attention.output.LayerNorm"),
            self._build_linear(f"{layer_prefix}.intermediate.dense"),
            self._build_linear(f"{layer_prefix}.output.dense"),
            self._build_normalisation(f"{layer_prefix}.output.LayerNorm"),
        )


def _compute_padded_attention(
    query: Tensor, key: Tensor, value: Tensor, text_bounds: _TextBounds
) -> Tensor:
    """Attend within each text by filling all up to the longest; for devices without the other."""
    token_mask = (
        torch.arange(text_bounds.max_text_length, device=query.device)
        < text_bounds.text_lengths[:, None]
    )

    def pad_to_longest(packed_tensor: Tensor) -> Tensor:
        padded_tensor = packed_tensor.new_zeros(*token_mask.shape, *packed_tensor.shape[1:])
        padded_tensor[token_mask] = packed_tensor
        return padded_tensor.transpose(1, 2)

    attended_vectors = F.scaled_dot_product_attention(
        pad_to_longest(query),
        pad_to_longest(key),
        pad_to_longest(value),
        attn_mask=token_mask[:, None, None, :],
    )
    return attended_vectors.transpose(1, 2)[token_mask]
