"""What the product makes of an adapter's log-odds, fitted on questions it was not trained on.

That is three things: what a log-odds counts beside the cosine, how the log-odds of the best passage
tell whether it answers, and by how much scores fall behind it (`engine/second_look.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.adapter.comparison import ASKED, Readings
from benchmarks.engine.answers import regress
from readingroom.engine.confidence import MIN_CLOSE_SCORE
from readingroom.engine.second_look import to_log_odds
from readingroom.federation.evaluation import measure_auroc

_FITS_PER_LOG_ODDS = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.16, 0.24)
_DECLINES = np.arange(4.0, 40.0)
_PENALTY = 0.01
_FOLDS = 8
_KINDS = dict.fromkeys(ASKED, "answerable") | {"unanswered": "unanswerable"}
"""The kinds of questions that an adapter is trained on, unless they are held out."""
_SHARES = {"answerable": 0.5, "unanswerable": 0.25, "nonsense": 0.25}


@dataclass(frozen=True)
class _FirstRead:
    """What is known of a question when its first passages have been read."""

    kind: str
    corpus_name: str
    features: tuple[float, float]
    """The log-odds of the highest score before, and those of the best passage as it was read."""
    gaps: tuple[float, ...]
    are_right: tuple[bool, ...]
    """Of each passage that was read: how far behind the best it is, and whether it is right."""


def fit_scores(corpora: Mapping[str, tuple[Readings, Any]]) -> Iterator[str]:
    """Yield what fits best, in lines; each corpus comes with which questions are held out."""
    rank_table = [_list_reciprocal_ranks(corpora, fit) for fit in _FITS_PER_LOG_ODDS]
    for fit, ranks in zip(_FITS_PER_LOG_ODDS, rank_table, strict=True):
        by_corpus = ", ".join(f"{each.mean():.3f}" for each in ranks)
        all_ranks = np.concatenate(ranks)
        yield f"fit per log-odds {fit:g}: reciprocal rank {by_corpus}; all {all_ranks.mean():.3f}"
    yield _describe_chosen(np.array([np.concatenate(ranks) for ranks in rank_table]))
    for fit in (0.04, 0.06, 0.08, 0.1):
        yield from _fit_at(fit, corpora)


def _list_reciprocal_ranks(
    corpora: Mapping[str, tuple[Readings, Any]], fit_per_log_odds: float
) -> list[Any]:
    ranks = []
    for readings, is_held_out in corpora.values():
        numbers = [
            number
            for number, question in enumerate(readings.questions)
            if question["kind"] in ASKED and is_held_out[number] and readings.log_odds[number]
        ]
        places = readings.find_places(numbers, fit_per_log_odds)
        ranks.append(np.where(places < 99, 1 / (places + 1), 0))
    return ranks


def _describe_chosen(ranks: Any) -> str:
    """Return what is chosen without a fold of the questions, and how that does on the fold."""
    folds = np.random.default_rng(1).permutation(ranks.shape[1]) % _FOLDS
    chosen, judged = [], np.zeros(ranks.shape[1])
    for fold in range(_FOLDS):
        best = int(ranks[:, folds != fold].mean(axis=1).argmax())
        chosen.append(_FITS_PER_LOG_ODDS[best])
        judged[folds == fold] = ranks[best, folds == fold]
    return f"chosen without a fold {chosen}: {judged.mean():.3f} on the folds"


def _fit_at(fit: float, corpora: Mapping[str, tuple[Readings, Any]]) -> Iterator[str]:
    reads = [
        read
        for name, (readings, is_held_out) in corpora.items()
        for read in _list_first_reads(name, readings, is_held_out, fit)
    ]
    features = np.array([read.features for read in reads])
    labels = np.array([read.kind == "answerable" and read.are_right[0] for read in reads], float)
    weights = _weigh(reads)
    constant, own, by_reading = regress(features, labels, weights, _PENALTY)
    yield (
        f"fit {fit:g}: constant {constant:.2f}, of the score before {own:.2f}, "
        f"of the reading {by_reading:.2f}"
    )
    judged = _judge_by_folds(features, labels, weights)
    before = features[:, 0]
    for name, log_odds in (("before", before), ("after", judged)):
        yield f"  {name}: {_describe_judgement(reads, log_odds, labels, weights)}"
    yield f"  decline {_fit_decline(reads, judged):g}"


def _list_first_reads(
    name: str, readings: Readings, is_held_out: Any, fit_per_log_odds: float
) -> Iterator[_FirstRead]:
    for number, question in enumerate(readings.questions):
        kind = _KINDS.get(question["kind"], question["kind"])
        is_trained_on = question["kind"] in _KINDS and not is_held_out[number]
        fits = readings.list_fits(number, fit_per_log_odds)
        if is_trained_on or not fits:
            continue
        candidates = question["candidates"]
        order = sorted(fits, key=lambda place: -fits[place])
        highest = max(candidates[place]["score"] for place in fits)
        yield _FirstRead(
            kind,
            name,
            (to_log_odds(highest), readings.log_odds[number][order[0]]),
            tuple(fits[order[0]] - fits[place] for place in order[: readings.read_count]),
            tuple(bool(candidates[place]["is_right"]) for place in order[: readings.read_count]),
        )


def _weigh(reads: Sequence[_FirstRead]) -> Any:
    """Return the weight of each question: kinds as `_SHARES` says, and each corpus alike."""
    keys = [(read.kind, read.corpus_name) for read in reads]
    corpus_counts = {kind: len({key[1] for key in keys if key[0] == kind}) for kind in _SHARES}
    return np.array(
        [100 * _SHARES[key[0]] / corpus_counts[key[0]] / keys.count(key) for key in keys]
    )


def _judge_by_folds(features: Any, labels: Any, weights: Any) -> Any:
    """Return the log-odds of each question by a regression on the others."""
    folds = np.random.default_rng(1).permutation(len(labels)) % _FOLDS
    log_odds = np.zeros(len(labels))
    for fold in range(_FOLDS):
        others = folds != fold
        solution = regress(features[others], labels[others], weights[others], _PENALTY)
        log_odds[~others] = solution[0] + features[~others] @ solution[1:]
    return log_odds


def _describe_judgement(
    reads: Sequence[_FirstRead], log_odds: Any, labels: Any, weights: Any
) -> str:
    loss = (weights * np.logaddexp(0, np.where(labels > 0, -1, 1) * log_odds)).sum() / weights.sum()
    of_desk = [
        (read.kind, value)
        for read, value in zip(reads, log_odds, strict=True)
        if read.corpus_name == "sample"
    ]
    answerable = [value for kind, value in of_desk if kind == "answerable"]
    words = [f"loss {loss:.4f}"]
    for other in ("unanswerable", "nonsense"):
        values = [value for kind, value in of_desk if kind == other]
        flags = [*[True] * len(answerable), *[False] * len(values)]
        words.append(f"AUROC {other} {measure_auroc([*answerable, *values], flags):.3f}")
    cut = to_log_odds(MIN_CLOSE_SCORE)
    for kind in _SHARES:
        values = [v for read, v in zip(reads, log_odds, strict=True) if read.kind == kind]
        words.append(f"{kind} called none {np.mean(np.array(values) < cut):.3f}")
    return ", ".join(words)


def _fit_decline(reads: Sequence[_FirstRead], log_odds: Any) -> float:
    """Return how steeply scores should fall behind the best one's, by maximum likelihood."""
    answerable = [
        (value, read)
        for value, read in zip(log_odds, reads, strict=True)
        if read.kind == "answerable"
    ]
    bests = np.concatenate([np.full(len(read.gaps), value) for value, read in answerable])
    gaps = np.concatenate([read.gaps for _, read in answerable])
    signs = np.where(np.concatenate([read.are_right for _, read in answerable]), -1, 1)
    losses = [np.logaddexp(0, signs * (bests - decline * gaps)).sum() for decline in _DECLINES]
    return float(_DECLINES[np.argmin(losses)])
