"""Questions about other matters than those of the bases."""

from types import SimpleNamespace

import numpy as np
import pytest

from readingroom.engine.errors import ModelUnavailable
from readingroom.federation.off_topic import measure_doubt
from tests.support.model import EMBEDDER


@pytest.mark.parametrize(
    "question",
    [
        "recipe for sourdough without a scale",
        "who scored most goals in the cup final",
        "hey how are you today",
        "why does my python loop never stop",
    ],
)
def test_answers_to_questions_of_other_matters_are_doubted(question: str) -> None:
    assert measure_doubt(question, EMBEDDER) > 0.5


@pytest.mark.parametrize(
    "question",
    [
        "how far may a gate stand from the road",
        "which committee has the farm bill now",
        "may our charity pay a trustee for decorating the hall",
        "what did the ecologist find in the hedge",
        "is the reading room open on Sundays",
    ],
)
def test_answers_to_questions_of_the_bases_are_not(question: str) -> None:
    assert measure_doubt(question, EMBEDDER) == 0.0


def test_another_model_or_none_doubts_nothing() -> None:
    other_model = SimpleNamespace(
        identity="another@1/float32", embed=lambda text: np.ones(3, np.float32)
    )
    assert measure_doubt("banana bread", other_model) == 0.0  # type: ignore[arg-type]

    class NoModel:
        @property
        def identity(self) -> str:
            raise ModelUnavailable("none is installed")

    assert measure_doubt("banana bread", NoModel()) == 0.0  # type: ignore[arg-type]
