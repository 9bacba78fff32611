"""The cross-encoder's upper layers in torch, with low-rank changes that can be trained.

Needs torch and numpy, and nothing else of the project's, so it runs where these alone are.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYERS, WIDTH, HEADS = 12, 384, 12
_TOKENS_PER_RUN = 6_400
_ROWS_PER_BATCH = 64
_WARM_UP_SHARE, _MIN_RATE_SHARE = 0.1, 0.02
_DENSE = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
Pair = tuple["Corpus", int]


class Corpus:
    """The questions of a corpus, and the states of their pairs after the kept layers."""

    def __init__(self, folder: Path, name: str, kept: int) -> None:
        self.questions = json.loads((folder / f"{name}.json").read_text("utf-8"))
        self.rows = np.load(folder / f"{name}.rows.npy")
        self._states = np.load(folder / f"{name}.after{kept}.npy", mmap_mode="r")
        self._ends = np.cumsum(self.rows[:, 2].astype(int))
        if self._ends[-1] != len(self._states):
            raise ValueError(f"{name}: rows and states are of two runs of `read`")

    def get_states(self, row: int) -> Any:
        """Return the states of the tokens of a pair."""
        end = self._ends[row]
        return self._states[end - int(self.rows[row, 2]) : end]

    def get_document(self, row: int) -> str:
        """Return the name of the document that the question of a row is about."""
        return str(self.questions[int(self.rows[row, 0])]["document"])

    def list_groups(self, wrong_count: int, documents: Sequence[str]) -> Iterator[list[Pair]]:
        """Yield a right pair and the first wrong ones, question by question.

        With `documents`, only of questions about a document whose name has one of these words.
        """
        for number, question in enumerate(self.questions):
            if question["kind"] not in ("many", "tuning"):
                continue
            if documents and not any(word in question["document"] for word in documents):
                continue
            right: list[Pair] = []
            wrong: list[Pair] = []
            for row in np.flatnonzero(self.rows[:, 0] == number):
                candidate = question["candidates"][int(self.rows[row, 1])]
                (right if candidate["is_right"] else wrong).append((self, int(row)))
            if right and wrong:
                yield [right[0], *wrong[:wrong_count]]


class Dense(nn.Module):
    """A dense layer that stays as it is, plus a low-rank change that is learnt."""

    def __init__(self, weights: Any, name: str, rank: int) -> None:
        super().__init__()
        weight = torch.from_numpy(weights[f"{name}.weight"].T.copy())
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("bias", torch.from_numpy(weights[f"{name}.bias"]), persistent=False)
        self.rank = rank
        if rank:
            self.down = nn.Parameter(
                torch.randn(rank, weight.shape[1]) / math.sqrt(weight.shape[1])
            )
            self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, states: Tensor) -> Tensor:
        # Added to the weight: one product of wide matrices is cheaper than two more of thin ones.
        weight = self.weight + self.up @ self.down if self.rank else self.weight
        return F.linear(states, weight, self.bias)


class Norm(nn.Module):
    """A layer norm that stays as it is."""

    def __init__(self, weights: Any, name: str) -> None:
        super().__init__()
        for part in ("weight", "bias"):
            array = torch.from_numpy(weights[f"{name}.{part}"])
            self.register_buffer(part, array, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        return F.layer_norm(states, (WIDTH,), self.weight, self.bias, 1e-12)


class Layer(nn.Module):
    """One layer of the encoder."""

    def __init__(self, weights: Any, number: int, rank: int) -> None:
        super().__init__()
        prefix = f"bert.encoder.layer.{number}"
        self.is_last = number == LAYERS - 1
        self.dense = nn.ModuleDict(
            {short: Dense(weights, f"{prefix}.{name}", rank) for short, name in _DENSE.items()}
        )
        self.attention_norm = Norm(weights, f"{prefix}.attention.output.LayerNorm")
        self.output_norm = Norm(weights, f"{prefix}.output.LayerNorm")

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        key, value = self._part_heads("key", states), self._part_heads("value", states)
        if self.is_last:  # only the first token is used after it
            states = states[:, :1]
        query = self._part_heads("query", states)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        joined = self.dense["joined"](seen.transpose(1, 2).flatten(2))
        states = self.attention_norm(states + joined)
        wide = F.gelu(self.dense["wide"](states))
        return self.output_norm(states + self.dense["narrow"](wide))

    def _part_heads(self, name: str, states: Tensor) -> Tensor:
        return self.dense[name](states).unflatten(2, (HEADS, -1)).transpose(1, 2)


class UpperLayers(nn.Module):
    """All layers above the kept ones, and what makes log-odds of the last; rank 0 changes none."""

    def __init__(self, weights: Any, kept: int, rank: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(weights, n, rank) for n in range(kept, LAYERS))
        self.pooler = Dense(weights, "bert.pooler.dense", rank)
        self.classifier = Dense(weights, "classifier", 0)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        with torch.autocast(states.device.type, torch.bfloat16):
            for layer in self.layers:
                states = layer(states, mask[:, None, None, :])
        return self.classifier(torch.tanh(self.pooler(states[:, 0].float())))[:, 0]

    def score_pairs(self, pairs: Sequence[Pair]) -> Tensor:
        """Return the log-odds of each pair, computed in runs of like length."""
        lengths = [int(corpus.rows[row, 2]) for corpus, row in pairs]
        log_odds: dict[int, Tensor] = {}
        run: list[int] = []
        for number in sorted(range(len(pairs)), key=lengths.__getitem__):
            if run and (len(run) + 1) * lengths[number] > _TOKENS_PER_RUN:
                log_odds |= zip(run, self._score_run([pairs[each] for each in run]), strict=True)
                run = []
            run.append(number)
        log_odds |= zip(run, self._score_run([pairs[each] for each in run]), strict=True)
        return torch.stack([log_odds[number] for number in range(len(pairs))])

    def _score_run(self, pairs: Sequence[Pair]) -> Tensor:
        device = self.classifier.weight.device
        rows = [torch.tensor(corpus.get_states(row)) for corpus, row in pairs]
        lengths = torch.tensor([len(row) for row in rows])
        states = nn.utils.rnn.pad_sequence(rows, batch_first=True).float()
        mask = torch.arange(states.shape[1]) < lengths[:, None]
        return self(states.to(device), mask.to(device))


@dataclass(frozen=True)
class Recipe:
    """How an adapter is trained; the defaults are those of `docs/engine.md`, never searched for."""

    rank: int = 8
    learning_rate: float = 1e-3
    epochs: float = 1.0
    wrong_count: int = 4
    binary_weight: float = 0.2
    questions_per_step: int = 8
    seed: int = 1


def train(
    folder: Path, kept: int, groups: Sequence[Sequence[Pair]], recipe: Recipe, device: str
) -> dict[str, Any]:
    """Return an adapter trained on groups whose first pair is the right one."""
    torch.manual_seed(recipe.seed)
    generator = np.random.default_rng(recipe.seed)
    network = UpperLayers(np.load(folder / "weights.npz"), kept, recipe.rank).to(device)
    parameters = list(network.parameters())
    step_count = int(len(groups) * recipe.epochs / recipe.questions_per_step)
    order = [n for _ in range(math.ceil(recipe.epochs)) for n in generator.permutation(len(groups))]
    print(f"{sum(map(torch.numel, parameters)):,} numbers, {len(groups)} questions", flush=True)
    optimizer = torch.optim.AdamW(parameters, recipe.learning_rate, weight_decay=0.01)
    for step in range(step_count):
        warmth = min(1.0, (step + 1) / (_WARM_UP_SHARE * step_count + 1))
        share = warmth * max(_MIN_RATE_SHARE, 1 - step / step_count)
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * share
        first = step * recipe.questions_per_step
        chosen = [groups[n] for n in order[first : first + recipe.questions_per_step]]
        optimizer.zero_grad()
        loss = _compute_loss(network, chosen, recipe.binary_weight)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        print(f"step {step + 1} of {step_count}, loss {loss.item():.3f}", flush=True)
    documents = {corpus.get_document(row) for (corpus, row), *_ in groups}
    return {"kept": kept, "rank": recipe.rank, "documents": sorted(documents)} | {
        "changes": network.state_dict()
    }


def _compute_loss(
    network: UpperLayers, groups: Sequence[Sequence[Pair]], binary_weight: float
) -> Tensor:
    """Return how surely the right pair is not chosen of its group, and each is misjudged alone."""
    log_odds = network.score_pairs([pair for group in groups for pair in group])
    losses = []
    for group in log_odds.split([len(group) for group in groups]):
        binary = (F.softplus(-group[0]) + F.softplus(group[1:]).mean()) / 2
        losses.append(binary_weight * binary - F.log_softmax(group, 0)[0])
    return torch.stack(losses).mean()


def save(path: Path, adapter: dict[str, Any]) -> None:
    """Write an adapter to a file."""
    torch.save(adapter, path)


def score(folder: Path, corpus: Corpus, kept: int, path: Path | None, device: str) -> Any:
    """Return the log-odds of all rows, with the adapter in a file or as the layers are.

    A row about a document that the adapter was trained on is not a number.
    """
    adapter = (
        torch.load(path) if path else {"kept": kept, "rank": 0, "documents": [], "changes": {}}
    )
    if adapter["kept"] != kept:
        raise ValueError(f"the adapter was trained above {adapter['kept']} layers, not {kept}")
    network = UpperLayers(np.load(folder / "weights.npz"), kept, adapter["rank"])
    network.load_state_dict(adapter["changes"])
    network.to(device)
    values = np.full(len(corpus.rows), np.nan)
    unseen = [
        row
        for row in range(len(corpus.rows))
        if corpus.get_document(row) not in adapter["documents"]
    ]
    with torch.no_grad():
        for start in range(0, len(unseen), _ROWS_PER_BATCH):
            rows = unseen[start : start + _ROWS_PER_BATCH]
            values[rows] = network.score_pairs([(corpus, row) for row in rows]).cpu().numpy()
    return values
