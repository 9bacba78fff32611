"""Writes the tables of words by which questions are meant for one base or another.

`python -m scripts.question_words` fits a softmax regression to questions whose base is known and
writes `question_words.tsv` into the folder of each base. It learns from
`tests/fixtures/questions/intents.tsv`, whose questions are about no document, and from the tuning
questions over the sample and the shared files. With `--check` it writes nothing: it learns from all
but the questions over the sample, and prints how many of those it tells.
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readingroom.federation.question_words import QUESTION_WORDS_FILE_NAME, list_wordings

_ROOT = Path(__file__).parents[1]
_QUESTIONS = _ROOT / "tests" / "fixtures" / "questions"
_BASES = _ROOT / "src" / "readingroom" / "bases"
_OTHER = "other"  # questions for none of the bases
_BASE_BY_FOLDER = {
    "policies": "policy",
    "application": "documents",
    "shop_application": "documents",
    "records": "federal",
    "subjects.py": "federal",
    "govuk.toml#": "guidance",
    "..": "text",
}
"""The base of a document of the sample, by the first part of its path."""
_BASE_BY_SHARED_FILE = {"plans": "policy", "federal": "federal", "guidance": "guidance"}
_SHARED_WEIGHT = 0.1
"""What a question over the shared files counts: there are many, about few kinds of documents."""
_MIN_QUESTIONS = 6
"""A wording of fewer questions says little about the next one."""
_PENALTY = 6.0
_STEPS = 600
_MIN_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, the base it is meant for, and how much it counts."""

    question: str
    base: str
    weight: float = 1.0


def read_intents() -> list[LabelledQuestion]:
    """Return the questions that are about no document."""
    return [
        LabelledQuestion(row["question"], row["base"])
        for row in _read_rows("intents")
        if row["base"] != _OTHER
    ]


def read_shared() -> list[LabelledQuestion]:
    """Return the tuning questions over the shared files."""
    return [
        LabelledQuestion(row["question"], base, _SHARED_WEIGHT)
        for file_name, base in _BASE_BY_SHARED_FILE.items()
        for row in _read_rows(f"many/{file_name}")
    ]


def read_sample() -> list[LabelledQuestion]:
    """Return the tuning questions over the sample."""
    tuning_questions = [
        LabelledQuestion(row["question"], row["base"])
        for file_name in ("desk", "desk_more", "field")
        for row in _read_rows(file_name)
        if (row["split"], row["kind"], row["corpus"]) == ("tuning", "answerable", "sample")
    ]
    many_questions = [
        LabelledQuestion(row["question"], _BASE_BY_FOLDER[row["document"].partition("/")[0]])
        for row in _read_rows("many/sample")
    ]
    return [*tuning_questions, *many_questions]


def _read_rows(file_name: str) -> Iterator[dict[str, str]]:
    with (_QUESTIONS / f"{file_name}.tsv").open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


@dataclass(frozen=True, slots=True)
class WordModel:
    """A softmax regression: for each wording a weight for each base; the last row is constant."""

    bases: tuple[str, ...]
    wordings: tuple[str, ...]
    weights: Any

    def predict(self, questions: Iterable[str]) -> list[str]:
        """Return the likeliest base of each question."""
        strengths = _count_wordings(questions, self.wordings) @ self.weights
        return [self.bases[place] for place in strengths.argmax(axis=1)]


def fit_model(labelled_questions: Sequence[LabelledQuestion]) -> WordModel:
    """Return the model that tells the bases of these questions, every base counting the same."""
    questions = [labelled.question for labelled in labelled_questions]
    bases = tuple(sorted({labelled.base for labelled in labelled_questions}))
    wording_counts = Counter(wording for text in questions for wording in list_wordings(text))
    wordings = tuple(
        sorted(wording for wording, count in wording_counts.items() if count >= _MIN_QUESTIONS)
    )
    labels = np.array([bases.index(labelled.base) for labelled in labelled_questions])
    question_weights = np.array([labelled.weight for labelled in labelled_questions])
    base_weights = np.bincount(labels, question_weights)
    question_weights *= (question_weights.sum() / len(bases) / base_weights)[labels]
    columns = _count_wordings(questions, wordings)
    weights = _minimise_loss(columns, np.eye(len(bases))[labels], question_weights)
    return WordModel(bases, wordings, weights)


def _count_wordings(questions: Iterable[str], wordings: Sequence[str]) -> Any:
    """Return a row for each question: 1 for each wording that it has, and 1 for the constant."""
    places = {wording: place for place, wording in enumerate(wordings)}
    question_list = list(questions)
    columns = np.zeros((len(question_list), len(wordings) + 1), np.float32)
    columns[:, -1] = 1.0
    for row, question in enumerate(question_list):
        columns[row, [places[text] for text in list_wordings(question) if text in places]] = 1.0
    return columns


def _minimise_loss(columns: Any, labels: Any, question_weights: Any) -> Any:
    """Return the weights with the least cross-entropy and penalty, by accelerated descent."""
    penalties = np.full((columns.shape[1], 1), _PENALTY)
    penalties[-1] = 0.0
    # Half the largest curvature that the loss can have, by the norm of the matrix.
    curvature = 0.5 * _find_largest_eigenvalue(columns, question_weights) + _PENALTY
    weights = momentum_weights = np.zeros((columns.shape[1], labels.shape[1]))
    for step in range(_STEPS):
        strengths = columns @ momentum_weights
        probabilities = np.exp(strengths - strengths.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        errors = question_weights[:, np.newaxis] * (probabilities - labels)
        gradient = columns.T @ errors + penalties * momentum_weights
        next_weights = momentum_weights - gradient / curvature
        momentum_weights = next_weights + step / (step + 3) * (next_weights - weights)
        weights = next_weights
    return weights


def _find_largest_eigenvalue(columns: Any, question_weights: Any) -> float:
    """Return that of the weighted product of the matrix with itself, by power iteration."""
    direction = np.ones(columns.shape[1])
    eigenvalue = 0.0
    for _ in range(30):
        direction = columns.T @ (question_weights * (columns @ direction))
        eigenvalue = float(np.linalg.norm(direction))
        direction /= eigenvalue
    return eigenvalue


def write_tables(model: WordModel) -> None:
    """Write the words of each base into its folder."""
    for place, base in enumerate(model.bases):
        weights = model.weights[:, place]
        lines = [f"{base}\t\t{weights[-1]:.2f}"] + [
            f"{base}\t{wording}\t{weight:.2f}"
            for wording, weight in zip(model.wordings, weights, strict=False)
            if abs(weight) >= _MIN_WEIGHT
        ]
        (_BASES / base / QUESTION_WORDS_FILE_NAME).write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Write the tables, or say how well they would do."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say how well it does")
    sample_questions = read_sample()
    if not parser.parse_args().check:
        write_tables(fit_model([*read_intents(), *read_shared(), *sample_questions]))
        return
    model = fit_model([*read_intents(), *read_shared()])
    predicted_bases = model.predict(labelled.question for labelled in sample_questions)
    asked_counts = Counter(labelled.base for labelled in sample_questions)
    right_counts = Counter(
        labelled.base
        for labelled, predicted_base in zip(sample_questions, predicted_bases, strict=True)
        if labelled.base == predicted_base
    )
    print(f"{right_counts.total() / len(sample_questions):.3f} of {len(sample_questions)}")
    for base, asked_count in sorted(asked_counts.items()):
        print(f"{base:10} {right_counts[base]} of {asked_count}")


if __name__ == "__main__":
    main()
