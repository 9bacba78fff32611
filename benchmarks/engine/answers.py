"""How well the desk answers the project's own questions over the sample, and what fits its scores.

`python -m benchmarks.engine.answers --data FOLDER` asks the tuning half and prints the constants
of `engine/confidence.py` that fit it; FOLDER is a data directory with the sample in it. `--split
test` asks the other half, `--files NAME` the questions of another file: do that once, at the end,
and change nothing by what you see.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from readingroom.bases import BASES
from readingroom.console.sample import open_sample_settings
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.core.settings import RoomSettings
from readingroom.engine.confidence import (
    DEFAULT_CALIBRATION,
    MIN_CLOSE_SCORE,
    Calibration,
    measure_passage_features,
)
from readingroom.engine.ranking import ComparedPassage
from readingroom.federation import ranking
from readingroom.federation.evaluation import measure_auroc
from readingroom.federation.models import DeskAnswer, DeskFetch, DeskSearch
from readingroom.federation.room import open_all_bases
from readingroom.federation.service import FederationService
from readingroom.protocol.search import DeskHit
from readingroom.protocol.tool import ToolContext
from readingroom.settings import load_settings

QUESTIONS = Path(__file__).parents[2] / "tests" / "fixtures" / "questions"
Row = Mapping[str, str]
_FEATURES = ("cosine", "neighbours", "missing", "coverage", "gap")
_PENALTY = 5.0
"""Keeps the coefficients small: with so few questions large ones would fit them alone."""
_FOLDS = 8
_FILES = ("desk", "field", "desk_more")
_DECLINES = np.arange(4.0, 61.0)
_NAMED_SCORE = 0.95  # from which on a result is first for its name
_CALLED_NONE = 0.03  # of the answerable questions, at most


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question, what the desk answered, and which of the first results are right."""

    row: Row
    answer: DeskAnswer
    is_base_first: bool
    is_right: tuple[bool, ...]
    features: tuple[float, ...]


def read_questions(split: str, file_names: Sequence[str] = _FILES) -> list[Row]:
    """Return the questions of a half that can be asked over the sample."""
    return [
        row
        for file_name in file_names
        for row in _read_rows(QUESTIONS / f"{file_name}.tsv")
        if row["split"] == split and row["corpus"] in ("sample", "")
    ]


def _read_rows(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


async def ask_all(settings: RoomSettings, rows: Sequence[Row]) -> list[AskedQuestion]:
    """Ask the desk over all bases every question."""
    call = ToolContext(make_request_id(), "benchmark", no_progress)
    room = open_all_bases(settings)
    async with room.lifespan():
        return [await _ask(room.service, row, call) for row in rows]


async def _ask(service: FederationService, row: Row, call: ToolContext) -> AskedQuestion:
    pools: list[list[ComparedPassage]] = []

    def record_pool(
        compared_passages: Sequence[ComparedPassage], calibration: Calibration = DEFAULT_CALIBRATION
    ) -> list[float]:
        pools.append(list(compared_passages))
        return original(compared_passages, calibration)

    original = ranking.score_compared_passages
    ranking.score_compared_passages = record_pool
    try:
        answer = await service.search(DeskSearch(query=row["question"]), call)
    finally:
        ranking.score_compared_passages = original
    right = [await _is_right(service, row, hit, call) for hit in answer.results]
    is_base_first = bool(answer.results) and answer.results[0].base == row["base"]
    return AskedQuestion(
        row, answer, is_base_first, tuple(right), measure_passage_features(pools[0])
    )


async def _is_right(service: FederationService, row: Row, hit: DeskHit, call: ToolContext) -> bool:
    """Return whether a hit is the passage, page or record that a question's quote stands in."""
    if row["kind"] != "answerable" or hit.base != row["base"]:
        return False
    if hit.base == "guidance":
        return hit.id == f"guidance:{row['document']}"
    others = filter(None, row["also"].split(" ;; "))
    quotes = [row["quote"], *(other.partition("|")[2] for other in others)]
    texts = [f"{hit.title} {hit.snippet}"]
    if hit.base != "policy":  # a policy's hit is a passage, the others' are pages and records
        record = await service.fetch(DeskFetch(id=hit.id), call)
        texts.append(f"{record.title} {record.text} {record.record}")
    return any(_normalise(quote) in _normalise(text) for quote in quotes for text in texts)


def _normalise(text: str) -> str:
    return re.sub(r"\W+", " ", text.lower()).strip()


def list_figures(asked: Sequence[AskedQuestion]) -> list[tuple[str, str]]:
    """Return the figures of a half, each with its name."""
    by_kind = {
        kind: [question for question in asked if question.row["kind"] == kind]
        for kind in ("answerable", "nonsense", "unanswerable")
    }
    answerable = by_kind["answerable"]
    figures = [
        ("questions", ", ".join(f"{len(found)} {kind}" for kind, found in by_kind.items())),
        ("right base first", _share(question.is_base_first for question in answerable)),
        (
            "right passage first",
            _share(question.is_right[:1] == (True,) for question in answerable),
        ),
        ("right passage among 3", _share(any(question.is_right[:3]) for question in answerable)),
    ]
    for kind in ("nonsense", "unanswerable"):
        compared = [*answerable, *by_kind[kind]]
        scores = [max((hit.score for hit in one.answer.results), default=0.0) for one in compared]
        auroc = measure_auroc(scores, [one.row["kind"] == "answerable" for one in compared])
        figures.append((f"AUROC against {kind}", f"{auroc:.3f}"))
    figures += [
        (f"{kind}, called none", _share(one.answer.confidence == "none" for one in found))
        for kind, found in by_kind.items()
    ]
    return figures


def _share(values: Iterable[bool]) -> str:
    counted = list(values)
    return f"{sum(counted) / len(counted):.3f}"


def fit_calibration(asked: Sequence[AskedQuestion]) -> str:
    """Return the constants of `Calibration` that tell answerable questions apart best.

    Two steps: a logistic regression of answerable against the rest, nonsense and unanswerable
    questions counting the same; then its result is scaled to be the share of questions whose first
    result is right.
    """
    features = np.array([question.features for question in asked])
    kinds = np.array([question.row["kind"] for question in asked])
    shares = {"answerable": 0.5, "nonsense": 0.25, "unanswerable": 0.25}
    weights = np.array([100 * shares[kind] / (kinds == kind).sum() for kind in kinds])
    direction = regress(features, (kinds == "answerable").astype(float), weights, _PENALTY)
    strengths = direction[0] + features @ direction[1:]
    is_first_right = np.array([question.is_right[:1] == (True,) for question in asked], float)
    constant, scale = regress(strengths[:, np.newaxis], is_first_right, weights, 0.01)
    values = [constant + scale * direction[0], *(scale * direction[1:])]
    names = ("constant", *_FEATURES)
    fitted = ", ".join(f"{name} {value:.2f}" for name, value in zip(names, values, strict=True))
    return f"{fitted}; {_choose_cut(features, kinds, weights, constant, scale)}"


def fit_decline(asked: Sequence[AskedQuestion], decline_in_use: float) -> float:
    """Return how steeply scores should fall behind the best one's, by maximum likelihood."""
    results = [
        (_to_log_odds(question.answer.results[0].score), _to_log_odds(hit.score), is_right)
        for question in asked
        for hit, is_right in zip(question.answer.results, question.is_right, strict=True)
        if question.answer.results[0].score < _NAMED_SCORE
    ]
    bests, log_odds, labels = np.array(results).T
    gaps = (bests - log_odds) / decline_in_use
    likelihoods = [
        -np.logaddexp(0, np.where(labels, -1, 1) * (bests - decline * gaps)).sum()
        for decline in _DECLINES
    ]
    return float(_DECLINES[np.argmax(likelihoods)])


def _to_log_odds(score: float) -> float:
    bounded = min(max(score, 1e-6), 1 - 1e-6)  # scores are rounded to six places
    return float(np.log(bounded / (1 - bounded)))


def _choose_cut(features: Any, kinds: Any, weights: Any, constant: float, scale: float) -> str:
    """Return the cut below which so many answerable questions are called `none` as wanted.

    Each question is scored by a regression on the others, and half of what is allowed is used up:
    the questions of other people are not ours.
    """
    labels = (kinds == "answerable").astype(float)
    scores = np.zeros(len(kinds))
    folds = np.random.default_rng(1).permutation(len(kinds)) % _FOLDS
    for fold in range(_FOLDS):
        others = folds != fold
        direction = regress(features[others], labels[others], weights[others], _PENALTY)
        strengths = direction[0] + features[~others] @ direction[1:]
        scores[~others] = 1 / (1 + np.exp(-(constant + scale * strengths)))
    cut = float(np.quantile(scores[labels > 0], _CALLED_NONE / 2))
    shares = {kind: float((scores[kinds == kind] < cut).mean()) for kind in np.unique(kinds)}
    aurocs = {
        kind: measure_auroc(
            [*scores[labels > 0], *scores[kinds == kind]],
            [*[True] * int(labels.sum()), *[False] * int((kinds == kind).sum())],
        )
        for kind in ("nonsense", "unanswerable")
    }
    called = ", ".join(f"{kind} {share:.2f}" for kind, share in shares.items())
    return f"cut {cut:.3f} (called none: {called}); by cross-validation AUROC {aurocs}"


def regress(features: Any, labels: Any, weights: Any, penalty: float) -> Any:
    """Return the constant and the coefficients of a logistic regression, by Newton's method."""
    means, deviations = features.mean(axis=0), features.std(axis=0) + 1e-9
    columns = np.column_stack([np.ones(len(features)), (features - means) / deviations])
    penalties = np.diag([0.0, *[penalty] * features.shape[1]])
    solution = np.zeros(columns.shape[1])
    for _ in range(100):
        predicted = 1 / (1 + np.exp(-columns @ solution))
        gradient = columns.T @ (weights * (predicted - labels)) + penalties @ solution
        curvature = (columns * (weights * predicted * (1 - predicted))[:, np.newaxis]).T @ columns
        solution -= np.linalg.solve(curvature + penalties, gradient)
    coefficients = solution[1:] / deviations
    return np.array([solution[0] - coefficients @ means, *coefficients])


def main() -> None:
    """Ask a half of the questions and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="where the sample lies")
    parser.add_argument("--split", choices=("tuning", "test"), default="tuning")
    parser.add_argument("--files", nargs="+", default=_FILES, help="in tests/fixtures/questions")
    options = parser.parse_args()
    settings = load_settings({"data": options.data})
    with open_sample_settings(settings, BASES.values()) as sample_settings:
        asked = anyio.run(ask_all, sample_settings, read_questions(options.split, options.files))
    for name, figure in list_figures(asked):
        print(f"{name:28} {figure}")
    if options.split == "tuning":
        print(f"fits best: {fit_calibration(asked)}")
        decline_in_use = ranking._SCORE_CALIBRATION.decline_per_fit
        decline = fit_decline(asked, decline_in_use)
        print(f"decline at the desk: {decline:g}, in use {decline_in_use:g}")
        print(f"in use: {DEFAULT_CALIBRATION}, none below {MIN_CLOSE_SCORE}")


if __name__ == "__main__":
    main()
