"""Where the right passage comes with the log-odds of the packaged graph, and with an adapter's.

The first few candidates are ordered as `engine/second_look.py` does it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.engine.quality import compute_p_value
from readingroom.bases.guidance.offline import index as guidance_index
from readingroom.engine.confidence import DEFAULT_CALIBRATION
from readingroom.engine.second_look import (
    MAX_PASSAGES_READ_AGAIN,
    TAUGHT_WEIGHTS,
    UNTAUGHT_WEIGHTS,
    to_log_odds,
)
from readingroom.federation import ranking as desk_ranking
from readingroom.federation.evaluation import measure_auroc

_NOWHERE = 99
ASKED = ("many", "tuning")
UNANSWERED = "unanswered"
"""The kind of questions without an answer that an adapter is trained on."""


@dataclass(frozen=True)
class Readings:
    """The questions of a corpus, each with the log-odds of the candidates that were read."""

    questions: Sequence[Any]
    log_odds: Sequence[dict[int, float]]
    decline: float
    named_score: float
    """From which on a candidate is first for its name, and is not read."""
    read_count: int
    """How many of each question's candidates a search reads."""

    @classmethod
    def join(
        cls, corpus_name: str, questions: Sequence[Any], pairs: Any, rows: Any, values: Any
    ) -> "Readings":
        """Return the readings of a corpus from the rows in the form that searches read."""
        log_odds: list[dict[int, float]] = [{} for _ in questions]
        numbers, candidates = pairs["question"], pairs["candidate"]
        for row in rows:
            log_odds[int(numbers[row])][int(candidates[row])] = float(values[row])
        decline, named_score, read_count = (
            DEFAULT_CALIBRATION.decline_per_fit,
            np.inf,
            MAX_PASSAGES_READ_AGAIN,
        )
        if corpus_name == "sample":  # the desk's
            decline, named_score = (
                desk_ranking._SCORE_CALIBRATION.decline_per_fit,
                desk_ranking._NAMED_SCORE,
            )
            read_count = desk_ranking._MAX_HITS_READ_AGAIN
        elif corpus_name == "guidance":
            decline = guidance_index._CALIBRATION.decline_per_fit
        return cls(questions, log_odds, decline, named_score, read_count)

    def find_places(self, numbers: Sequence[int], weight: float) -> Any:
        """Return where the right passage of each question comes, from 0."""
        return np.array([self._find_place(number, weight) for number in numbers])

    def _find_place(self, number: int, weight: float) -> int:
        candidates = self.questions[number]["candidates"]
        fits = self.list_fits(number, weight)
        named = [place for place in range(len(candidates)) if place not in fits]
        order = [*named, *sorted(fits, key=lambda place: -fits[place])]
        are_right = [candidates[place]["is_right"] for place in order]
        return are_right.index(True) if True in are_right else _NOWHERE

    def list_fits(self, number: int, weight: float) -> dict[int, float]:
        """Return by its place before how fit each candidate is that is not first for its name."""
        candidates = self.questions[number]["candidates"]
        others = [
            place
            for place, candidate in enumerate(candidates)
            if candidate["score"] < self.named_score
        ]
        read = self.log_odds[number]
        gains = {place: read[place] for place in others[: self.read_count] if place in read}
        lowest = min(gains.values(), default=0.0)
        return {
            place: to_log_odds(candidates[place]["score"]) / self.decline
            + weight * gains.get(place, lowest)
            for place in others
        }

    def find_best(
        self, kinds: Sequence[str], is_wanted: Any, without_section: bool = False
    ) -> list[float]:
        """Return the best log-odds of what is read of each question that is wanted and was read.

        With `without_section`, of those outside of the sections that have the answer.
        """
        best = []
        for question, read, wanted in zip(self.questions, self.log_odds, is_wanted, strict=True):
            candidates = question["candidates"]
            right = {each["section"] for each in candidates if each["is_right"]}
            is_trained_on = question["kind"] in (*ASKED, UNANSWERED)
            if question["kind"] not in kinds or (is_trained_on and not wanted):
                continue
            if question["kind"] in ASKED and not right:
                continue
            places = sorted(read)[: self.read_count]
            if without_section:
                places = [place for place in places if candidates[place]["section"] not in right]
            if values := [read[place] for place in places]:
                best.append(max(values))
        return best


def compare_readings(before: Readings, after: Readings, is_wanted: Any) -> Iterator[str]:
    """Yield the figures of both over the questions that are wanted, with paired tests, in lines."""
    yield from compare_places(*list_places(before, after, is_wanted))
    for kinds, without in (
        (("unanswerable",), False),
        ((UNANSWERED,), False),
        (("nonsense",), False),
        (ASKED, True),
    ):
        aurocs = [
            _measure_auroc(readings, kinds, is_wanted, without) for readings in (before, after)
        ]
        if None not in aurocs:
            name = "own section taken out" if without else kinds[0]
            yield f"  AUROC of the best log-odds, {name}: {aurocs[0]:.3f} -> {aurocs[1]:.3f}"


def list_places(before: Readings, after: Readings, is_wanted: Any) -> tuple[Any, Any]:
    """Return where the right passage of each question that is wanted comes with both, from 0."""
    numbers = [
        number
        for number, question in enumerate(before.questions)
        if question["kind"] in ASKED and is_wanted[number] and after.log_odds[number]
    ]
    return (
        before.find_places(numbers, UNTAUGHT_WEIGHTS.fit_per_log_odds),
        after.find_places(numbers, TAUGHT_WEIGHTS.fit_per_log_odds),
    )


def compare_places(places: Any, new_places: Any) -> Iterator[str]:
    """Yield the figures of two lists of places, in lines."""
    yield f"  {len(places)} questions, as packaged {_describe(places)}"
    yield f"  with the adapter {_compare(places, new_places)}"


def _measure_auroc(
    readings: Readings, kinds: Sequence[str], is_wanted: Any, without: bool
) -> float | None:
    positive = readings.find_best(ASKED, is_wanted)
    negative = readings.find_best(kinds, is_wanted, without)
    flags = [*[True] * len(positive), *[False] * len(negative)]
    return measure_auroc([*positive, *negative], flags)


def _describe(places: Any) -> str:
    figures = ((places < 1).mean(), (places < 3).mean(), _invert(places).mean())
    return "first {:.3f}, three {:.3f}, reciprocal rank {:.3f}".format(*figures)


def _invert(places: Any) -> Any:
    return np.where(places < _NOWHERE, 1 / (places + 1), 0)


def _compare(before: Any, after: Any) -> str:
    better = int(((after < 1) & (before >= 1)).sum())
    worse = int(((before < 1) & (after >= 1)).sum())
    p_first = compute_p_value((after < 1) * 1.0, (before < 1) * 1.0)
    p_rank = compute_p_value(_invert(after), _invert(before))
    return (
        f"{_describe(after)}; first {better} better, {worse} worse, p = {p_first:.3f}; "
        f"rank p = {p_rank:.3f}"
    )
