"""The cross-encoder in torch, with low-rank changes that can be trained.

Its numbers are rounded as those of the int8 graph that searches run: for each pair alone.

Needs torch and numpy, and nothing else of the project's, so it runs where these alone are.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYERS, WIDTH, HEADS = 12, 384, 12
_TOKENS_PER_RUN = 2_560
_ROWS_PER_BATCH = 512
_WARM_UP_SHARE, _MIN_RATE_SHARE = 0.1, 0.02
_DENSE = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "joined": "attention.output.dense",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
}
_TRAINED_KINDS = ("many", "tuning", "unanswered")
Pair = tuple["Corpus", int]


@dataclass(frozen=True)
class Group:
    """Pairs of one question, all in one form."""

    pairs: Sequence[Pair]
    is_answered: bool
    """Whether the first pair is right; else none is."""


class Corpus:
    """The pairs of the questions of a corpus and their candidates."""

    def __init__(self, folder: Path, name: str) -> None:
        with np.load(folder / f"{name}.pairs.npz") as pairs:
            self.columns = {column: pairs[column] for column in pairs.files}
        self.starts = np.concatenate([[0], np.cumsum(self.columns["length"])])
        if self.starts[-1] != len(self.columns["ids"]):
            raise ValueError(f"{name}: columns and tokens are of two runs of `read`")

    def get_ids(self, row: int) -> Any:
        """Return the tokens of a pair."""
        return self.columns["ids"][self.starts[row] : self.starts[row + 1]].astype(np.int64)

    def list_questions(self, left_out_fold: int | None) -> list[int]:
        """Return the questions to train on: not held out, nor about a fold's documents."""
        is_wanted = np.isin(self.columns["kind"], _TRAINED_KINDS) & ~self.columns["is_held_out"]
        if left_out_fold is not None:
            is_wanted &= self.columns["fold"] != left_out_fold
        return [int(number) for number in np.flatnonzero(is_wanted)]

    def list_groups(self, questions: Sequence[int], wrong_count: int) -> Iterator[list[Group]]:
        """Yield a right pair and the first wrong ones of each question, in each form they have.

        Of a question that nothing answers, all are wrong.
        """
        for number in questions:
            of_question = np.flatnonzero(self.columns["question"] == number)
            forms = []
            for is_bare in (False, True):
                rows = of_question[self.columns["is_bare"][of_question] == is_bare]
                are_right = self.columns["is_right"][rows]
                is_answered = self.columns["kind"][number] != "unanswered"
                if are_right.any() == is_answered and not are_right.all():
                    chosen = [*rows[are_right][:1], *rows[~are_right][:wrong_count]]
                    forms.append(Group([(self, int(row)) for row in chosen], is_answered))
            if forms:
                yield forms


def _count_tokens(pair: Pair) -> int:
    corpus, row = pair
    return int(corpus.columns["length"][row])


def _locate(pair: Pair) -> tuple[int, int]:
    corpus, row = pair
    return id(corpus), row


# Compiled, what goes over all numbers takes a tenth of the time.
torch._dynamo.config.recompile_limit = 64  # by kinds of numbers, and with gradients or without
_compile = torch.compile(dynamic=True)


@_compile
def _round_states(states: Tensor, wanted: torch.dtype) -> Tensor:
    flat = states.flatten(1)
    low, high = (each[:, None, None].float() for each in (flat.amin(1), flat.amax(1)))
    scale = ((high - low) / 255).clamp_min(1e-12)
    zero = torch.round(-low / scale)
    return (torch.clamp(torch.round(states / scale), -zero, 255 - zero) * scale).to(wanted)


@_compile
def _add_and_normalise(states: Tensor, added: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(states + added, (WIDTH,), weight, bias, 1e-12)


@_compile
def _share_out(likings: Tensor, mask: Tensor) -> Tensor:
    likings = likings.masked_fill(~mask[:, None, None], -math.inf)
    return F.softmax(likings, -1, dtype=torch.float32).to(likings.dtype)


_bend = _compile(F.gelu)


class _RoundedStates(torch.autograd.Function):
    """States in the 256 steps that an int8 graph has for all numbers of a pair.

    Gradients pass as if nothing were rounded. Places that are filled up hold what the first one
    does, so they change no pair's steps.
    """

    @staticmethod
    def forward(_: Any, states: Tensor, wanted: torch.dtype) -> Tensor:
        return _round_states(states, wanted)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


class _Product(torch.autograd.Function):
    """States times a weight that low-rank matrices have changed, which alone have gradients.

    The gradient of the whole weight, which nobody wants, would cost as much as the product.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, up: Tensor, down: Tensor
    ) -> Tensor:
        ctx.save_for_backward(states, weight, up, down)
        return F.linear(states, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        states, weight, up, down = ctx.saved_tensors
        flat, flat_states = gradient.flatten(0, 1), states.flatten(0, 1)
        thin = flat_states @ down.T.to(flat.dtype)
        up_gradient = (flat.T @ thin).float()
        down_gradient = ((flat @ up.to(flat.dtype)).T @ flat_states).float()
        of_states = gradient @ weight if ctx.needs_input_grad[0] else None
        return of_states, None, None, up_gradient, down_gradient


def _round_weight(weight: Tensor) -> Tensor:
    """Return weights in the 255 steps that an int8 graph has for what makes one number."""
    scale = weight.abs().amax(1, keepdim=True) / 127
    return torch.round(weight / scale) * scale


class Dense(nn.Module):
    """A dense layer that stays as it is, plus a low-rank change that is learnt."""

    def __init__(self, weights: dict[str, Any], name: str, rank: int) -> None:
        super().__init__()
        weight = torch.from_numpy(weights[f"{name}.weight"].T.copy())
        self.register_buffer("weight", weight, persistent=False)
        self.register_buffer("bias", torch.from_numpy(weights[f"{name}.bias"]), persistent=False)
        self.name = name.removeprefix("bert.")
        self.rank = rank
        if rank:
            self.down = nn.Parameter(
                torch.randn(rank, weight.shape[1]) / math.sqrt(weight.shape[1])
            )
            self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))
        self.used: tuple[Tensor, Tensor] | None = None

    def forward(self, states: Tensor) -> Tensor:
        if self.used is None or self.used[0].dtype != states.dtype:
            self.change_weight(states.dtype)
        weight, bias = self.used
        if self.rank and torch.is_grad_enabled():
            return _Product.apply(states, weight, bias, self.up, self.down)
        return F.linear(states, weight, bias)

    @torch.no_grad()
    def change_weight(self, wanted: torch.dtype) -> None:
        """Add the change as it is now to the weight, for what is computed from here on."""
        weight = _round_weight(self.weight + self.up @ self.down) if self.rank else self.weight
        self.used = weight.to(wanted), self.bias.to(wanted)


class Norm(nn.Module):
    """A layer norm that stays as it is."""

    def __init__(self, weights: dict[str, Any], name: str) -> None:
        super().__init__()
        for part in ("weight", "bias"):
            array = torch.from_numpy(weights[f"{name}.{part}"])
            self.register_buffer(part, array, persistent=False)

    def forward(self, states: Tensor, added: Tensor) -> Tensor:
        return _add_and_normalise(states, added, self.weight, self.bias)


class Layer(nn.Module):
    """One layer of the encoder."""

    def __init__(self, weights: dict[str, Any], number: int, rank: int) -> None:
        super().__init__()
        prefix = f"bert.encoder.layer.{number}"
        self.is_last = number == LAYERS - 1
        self.dense = nn.ModuleDict(
            {short: Dense(weights, f"{prefix}.{name}", rank) for short, name in _DENSE.items()}
        )
        self.attention_norm = Norm(weights, f"{prefix}.attention.output.LayerNorm")
        self.output_norm = Norm(weights, f"{prefix}.output.LayerNorm")

    def forward(self, states: Tensor, mask: Tensor, wanted: torch.dtype) -> Tensor:
        rounded = _RoundedStates.apply(states, wanted)
        key, value = (self._part_heads(name, rounded) for name in ("key", "value"))
        if self.is_last:  # only the first token is used after it
            states = states[:, :1]
            rounded = _RoundedStates.apply(states, wanted)
        query = self._part_heads("query", rounded)
        # On processors this takes half of what the fused attention does.
        likings = (query / math.sqrt(query.shape[3])) @ key.transpose(2, 3)
        seen = (_share_out(likings, mask) @ value).transpose(1, 2).flatten(2)
        joined = self.dense["joined"](_RoundedStates.apply(seen, wanted))
        states = self.attention_norm(states, joined)
        wide = _bend(self.dense["wide"](_RoundedStates.apply(states, wanted)))
        narrow = self.dense["narrow"](_RoundedStates.apply(wide, wanted))
        return self.output_norm(states, narrow)

    def _part_heads(self, name: str, states: Tensor) -> Tensor:
        return self.dense[name](states).unflatten(2, (HEADS, -1)).transpose(1, 2)


class CrossEncoder(nn.Module):
    """The packaged cross-encoder with low-rank changes above the layers that are kept."""

    def __init__(self, weights: dict[str, Any], kept: int, rank: int) -> None:
        super().__init__()
        for part in ("word", "position", "token_type"):
            array = torch.from_numpy(weights[f"bert.embeddings.{part}_embeddings.weight"])
            self.register_buffer(part, array, persistent=False)
        self.kept = kept
        self.embedding_norm = Norm(weights, "bert.embeddings.LayerNorm")
        self.layers = nn.ModuleList(
            Layer(weights, number, rank if number >= kept else 0) for number in range(LAYERS)
        )
        self.pooler = Dense(weights, "bert.pooler.dense", rank)
        self.classifier = Dense(weights, "classifier", 0)

    @torch.no_grad()
    def encode(self, ids: Tensor, second: Tensor, mask: Tensor) -> Tensor:
        """Return the states of pairs above the layers that are kept, which training never moves."""
        places = torch.arange(ids.shape[1], device=ids.device) * mask
        types = (places >= second[:, None]).long()
        states = self.word[ids] + self.position[places]
        states = self.embedding_norm(states, self.token_type[types])
        for layer in self.layers[: self.kept]:
            states = layer(states, mask, self._choose_precision())
        return states

    def judge(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the log-odds of pairs from their states above the kept layers."""
        for layer in self.layers[self.kept :]:
            states = layer(states, mask, self._choose_precision())
        first = _RoundedStates.apply(states[:, :1], torch.float32)
        pooled = _RoundedStates.apply(torch.tanh(self.pooler(first)), torch.float32)
        return self.classifier(pooled)[:, 0, 0]

    def _choose_precision(self) -> torch.dtype:
        return torch.bfloat16 if self.training else torch.float32

    def change_weights(self) -> None:
        """Add the changes as they are now to the weights, for what is computed from here on."""
        for layer in self.modules():
            if isinstance(layer, Dense) and layer.rank:
                precision = torch.float32 if layer is self.pooler else self._choose_precision()
                layer.change_weight(precision)

    def encode_pairs(self, pairs: Sequence[Pair]) -> "KeptStates":
        """Return what `encode` gives for each pair, half as precise: training reads it again."""
        starts = np.concatenate([[0], np.cumsum(list(map(_count_tokens, pairs)))])
        first_rows = dict(zip(pairs, starts.tolist(), strict=False))
        kept = torch.empty(int(starts[-1]), WIDTH, dtype=torch.bfloat16)
        for run in _split_into_runs(pairs):
            ids, second, mask = self._fill_up(run)
            for pair, states in zip(run, self.encode(ids, second, mask), strict=True):
                first, length = first_rows[pair], _count_tokens(pair)
                kept[first : first + length] = states[:length]
        return KeptStates(kept, first_rows)

    def score_pairs(self, pairs: Sequence[Pair], kept: "KeptStates | None" = None) -> Tensor:
        """Return the log-odds of each pair, computed in runs of like length.

        With `kept`, from what `encode_pairs` returned for them.
        """
        self.change_weights()
        values = {}
        for run in _split_into_runs(pairs):
            if kept:
                states, mask = kept.fill_up(run)
            else:
                ids, second, mask = self._fill_up(run)
                states = self.encode(ids, second, mask)
            values.update(zip(run, self.judge(states, mask), strict=True))
        return torch.stack([values[pair] for pair in pairs])

    def _fill_up(self, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
        """Return the tokens of pairs in one block, where second texts begin, and what is real.

        A block is filled up with the first tokens of its pairs.
        """
        mask = _make_mask(pairs)
        second = torch.tensor([int(corpus.columns["second"][row]) for corpus, row in pairs])
        rows = [torch.from_numpy(corpus.get_ids(row)) for corpus, row in pairs]
        first_token = int(rows[0][0])  # the same one begins each pair
        return nn.utils.rnn.pad_sequence(rows, True, first_token), second, mask


@dataclass(frozen=True)
class KeptStates:
    """The states of many pairs above the kept layers, one below the other."""

    states: Tensor
    first_rows: Mapping[Pair, int]

    def fill_up(self, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor]:
        """Return the states of pairs in one block, filled up with their first, and what is real."""
        mask = _make_mask(pairs)
        places = torch.arange(mask.shape[1]) * mask
        rows = places + torch.tensor([self.first_rows[pair] for pair in pairs])[:, None]
        return self.states[rows].float(), mask


def _make_mask(pairs: Sequence[Pair]) -> Tensor:
    """Return which places of a block are real: (pairs, places)."""
    lengths = torch.tensor(list(map(_count_tokens, pairs)))
    return torch.arange(int(lengths.max())) < lengths[:, None]


def _split_into_runs(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    run: list[Pair] = []
    for pair in sorted(pairs, key=_count_tokens):
        if run and (len(run) + 1) * _count_tokens(pair) > _TOKENS_PER_RUN:
            yield run
            run = []
        run.append(pair)
    yield run


@dataclass(frozen=True)
class Recipe:
    """How an adapter is trained; the defaults are those of the one that is shipped."""

    kept: int = 6
    """How many lower layers stay as they are."""
    rank: int = 8
    learning_rate: float = 1e-3
    epochs: float = 2.0
    wrong_count: int = 7
    binary_weight: float = 1.0
    """What it counts that each pair is judged rightly alone, beside which one is chosen."""
    own_share: float = 0.0
    """The share that the unchanged network's choice has in what is to be chosen."""
    questions_per_step: int = 8
    seed: int = 1


def load_weights(folder: Path) -> dict[str, Any]:
    """Return the weights as floats; those of dense layers as (inputs, outputs)."""
    with np.load(folder / "weights.npz") as file:
        arrays = {name: file[name] for name in file.files}
    weights = {name: array for name, array in arrays.items() if "|" not in name}
    for name in [name.removesuffix("|ints") for name in arrays if name.endswith("|ints")]:
        steps = arrays[f"{name}|ints"].astype(np.float32) - arrays[f"{name}|zero"]
        weights[name] = (steps * arrays[f"{name}|scale"]).astype(np.float32)
    return weights


def save_changes(network: CrossEncoder, path: Path) -> None:
    """Write the learnt changes to a file, as half-precision numbers by the names of the layers."""
    np.savez(
        path,
        **{
            f"{layer.name}.{part}": getattr(layer, part).detach().cpu().numpy().astype(np.float16)
            for layer in network.modules()
            if isinstance(layer, Dense) and layer.rank
            for part in ("up", "down")
        },
    )


def load_changed(weights: dict[str, Any], path: Path | None) -> CrossEncoder:
    """Return the network with the changes in a file, or as it is."""
    if path is None:
        return CrossEncoder(weights, LAYERS, 0).eval()
    with np.load(path) as file:
        changes = {name: torch.from_numpy(file[name].astype(np.float32)) for name in file.files}
    layer_numbers = [int(name.split(".")[2]) for name in changes if name.startswith("encoder.")]
    network = CrossEncoder(weights, min(layer_numbers), len(changes["pooler.dense.down"]))
    with torch.no_grad():
        for layer in network.modules():
            if isinstance(layer, Dense) and layer.rank:
                layer.up.copy_(changes[f"{layer.name}.up"])
                layer.down.copy_(changes[f"{layer.name}.down"])
    return network.eval()


def train(
    weights: dict[str, Any],
    groups: Sequence[Sequence[Group]],
    recipe: Recipe,
) -> CrossEncoder:
    """Return a network trained on the groups of each question, one for each form."""
    torch.manual_seed(recipe.seed)
    generator = np.random.default_rng(recipe.seed)
    network = CrossEncoder(weights, recipe.kept, recipe.rank)
    own = _score_own(CrossEncoder(weights, LAYERS, 0), groups, recipe)
    step_count = int(len(groups) * recipe.epochs / recipe.questions_per_step)
    order = [n for _ in range(math.ceil(recipe.epochs)) for n in generator.permutation(len(groups))]
    chosen = [
        forms[generator.integers(len(forms))]
        for forms in (groups[n] for n in order[: step_count * recipe.questions_per_step])
    ]
    kept = network.encode_pairs(
        sorted({pair for group in chosen for pair in group.pairs}, key=_locate)
    )
    parameters = list(network.parameters())
    print(f"{sum(map(torch.numel, parameters)):,} numbers, {len(groups)} questions", flush=True)
    optimizer = torch.optim.AdamW(parameters, recipe.learning_rate, weight_decay=0.01)
    for step in range(step_count):
        warmth = min(1.0, (step + 1) / (_WARM_UP_SHARE * step_count + 1))
        share = warmth * max(_MIN_RATE_SHARE, 1 - step / step_count)
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * share
        first = step * recipe.questions_per_step
        optimizer.zero_grad()
        of_step = chosen[first : first + recipe.questions_per_step]
        loss = _compute_loss(network, of_step, kept, own, recipe)
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1} of {step_count}, loss {loss.item():.3f}", flush=True)
    return network.eval()


def _score_own(
    network: CrossEncoder, groups: Sequence[Sequence[Group]], recipe: Recipe
) -> dict[Pair, float]:
    """Return what the unchanged network makes of each pair, where that is wanted."""
    if not recipe.own_share:
        return {}
    pairs = [pair for forms in groups for group in forms for pair in group.pairs]
    return dict(zip(pairs, score_all(network.eval(), pairs).tolist(), strict=True))


def _compute_loss(
    network: CrossEncoder,
    groups: Sequence[Group],
    kept: KeptStates,
    own: Mapping[Pair, float],
    recipe: Recipe,
) -> Tensor:
    """Return how surely the right pair is not chosen of its group, and each is misjudged alone."""
    log_odds = network.score_pairs([pair for group in groups for pair in group.pairs], kept)
    sizes = [len(group.pairs) for group in groups]
    losses = []
    for group, values in zip(groups, log_odds.split(sizes), strict=True):
        if not group.is_answered:
            losses.append(recipe.binary_weight * F.softplus(values).mean())
            continue
        binary = (F.softplus(-values[0]) + F.softplus(values[1:]).mean()) / 2
        wanted = torch.zeros_like(values)
        wanted[0] = 1 - recipe.own_share
        if recipe.own_share:
            own_values = torch.tensor([own[pair] for pair in group.pairs], device=values.device)
            wanted = wanted + recipe.own_share * F.softmax(own_values, 0)
        losses.append(recipe.binary_weight * binary - (wanted * F.log_softmax(values, 0)).sum())
    return torch.stack(losses).mean()


def score_all(network: CrossEncoder, pairs: Sequence[Pair]) -> Any:
    """Return the log-odds of many pairs."""
    with torch.no_grad():
        batches = [
            network.score_pairs(pairs[start : start + _ROWS_PER_BATCH]).cpu()
            for start in range(0, len(pairs), _ROWS_PER_BATCH)
        ]
    return torch.cat(batches).numpy()
