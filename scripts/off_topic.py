"""Writes the direction in which questions lie that none of the bases is about.

`python -m scripts.off_topic MODELS` embeds the questions of `tests/fixtures/questions/intents.tsv`
with the model that lies in a data directory's `models`, fits a logistic regression that tells those
of other matters from the rest, and writes it to `federation/off_topic.txt`: the model's name, the
constant and a weight for each number of a vector.
"""

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from readingroom.engine.embedding.embedder import Embedder
from readingroom.federation.off_topic import OFF_TOPIC_FILE_NAME

_ROOT = Path(__file__).parents[1]
_INTENTS = _ROOT / "tests" / "fixtures" / "questions" / "intents.tsv"
_OTHER = "other"
_PENALTY = 0.1
_STEPS = 30


def fit_direction(vectors: Any, is_other: Any) -> Any:
    """Return the constant and weights of a regression in which both sides count the same."""
    columns = np.column_stack([np.ones(len(vectors)), vectors])
    weights = np.where(is_other, 0.5 / is_other.sum(), 0.5 / (~is_other).sum()) * len(vectors)
    penalties = np.diag([0.0, *[_PENALTY] * vectors.shape[1]])
    direction = np.zeros(columns.shape[1])
    for _ in range(_STEPS):  # Newton's method
        predicted = 1 / (1 + np.exp(-columns @ direction))
        gradient = columns.T @ (weights * (predicted - is_other)) + penalties @ direction
        curvature = (columns * (weights * predicted * (1 - predicted))[:, np.newaxis]).T @ columns
        direction -= np.linalg.solve(curvature + penalties, gradient)
    return direction


def main() -> None:
    """Fit the regression and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, help="the folder with the embedding model")
    embedder = Embedder(parser.parse_args().models)
    with _INTENTS.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    vectors = np.array(embedder.embed_batch([row["question"] for row in rows]), float)
    direction = fit_direction(vectors, np.array([row["base"] == _OTHER for row in rows]))
    lines_out = [embedder.identity.partition("/")[0], *(f"{number:.4f}" for number in direction)]
    path = _ROOT / "src" / "readingroom" / "federation" / OFF_TOPIC_FILE_NAME
    path.write_text("\n".join(lines_out) + "\n", "utf-8")


if __name__ == "__main__":
    main()
