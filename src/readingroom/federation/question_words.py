"""What kind of answer a question wants, by the words it is asked in.

"May a council limit parking?" asks for a rule, and "how many spaces will there be?" for the papers
of one application. Both are about the same matter, so neither vectors nor the words of the matter
tell them apart; "may a" and "will there" do. Who knows such words keeps them in a table, with what
each adds to the log-odds. `scripts/question_words.py` makes the tables from questions.
"""

import math
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from itertools import pairwise

_WORD_PATTERN = re.compile(r"[a-z0-9]+(?:['./-][a-z0-9]+)*")
_DIGITS_PATTERN = re.compile(r"[0-9]+")
_FOLDED_REFERENCE_BEGINNING = "0/0"
_BEGINNING_MARK = "^"
QUESTION_WORDS_FILE_NAME = "question_words.tsv"


def list_wordings(question: str) -> set[str]:
    """Return the words and pairs of words of a question, and `^` with those it begins with.

    Numbers are all alike here, and so are references of the form `24/00912/FUL`.
    """
    folded_words = [
        _fold_numbers(word)
        for word in _WORD_PATTERN.findall(
            question.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
        )
    ]
    wordings = {*folded_words, *map(" ".join, pairwise(folded_words))}
    wordings.update(
        _BEGINNING_MARK + " ".join(folded_words[:word_count])
        for word_count in (1, 2)
        if len(folded_words) >= word_count
    )
    return wordings


def _fold_numbers(word: str) -> str:
    folded_word = _DIGITS_PATTERN.sub("0", word)
    return (
        _FOLDED_REFERENCE_BEGINNING
        if folded_word.startswith(_FOLDED_REFERENCE_BEGINNING)
        else folded_word
    )


class QuestionWords:
    """The wordings by which questions want one kind of answer, each with its weight."""

    def __init__(self, constant_weight: float, weight_by_wording: Mapping[str, float]) -> None:
        self._constant = constant_weight
        self._weights = weight_by_wording

    def measure_strength(self, wordings: Iterable[str]) -> float:
        """Return how strongly a question with these wordings asks for that kind of answer."""
        return self._constant + sum(self._weights.get(wording, 0.0) for wording in wordings)


def parse_question_words(table_text: str) -> dict[str, QuestionWords]:
    """Return the words for each kind of answer in a table.

    A line has the kind, a wording and its weight, with tabs between them. The wording of a
    constant is empty.
    """
    weights_by_answer_kind: dict[str, dict[str, float]] = {}
    for table_line in table_text.splitlines():
        answer_kind, wording, weight_text = table_line.split("\t")
        weights_by_answer_kind.setdefault(answer_kind, {})[wording] = float(weight_text)
    return {
        answer_kind: QuestionWords(weight_by_wording.pop("", 0.0), weight_by_wording)
        for answer_kind, weight_by_wording in weights_by_answer_kind.items()
    }


@cache
def load_question_words(package_name: str) -> dict[str, QuestionWords]:
    """Return the words of the table that lies in a package."""
    return parse_question_words(
        files(package_name).joinpath(QUESTION_WORDS_FILE_NAME).read_text("utf-8")
    )


def estimate_answer_kinds(
    question: str, words_by_answer_kind: Mapping[str, QuestionWords]
) -> dict[str, float]:
    """Return the logarithm of the probability that a question wants each kind of answer."""
    wordings = list_wordings(question)
    strength_by_answer_kind = {
        answer_kind: question_words.measure_strength(wordings)
        for answer_kind, question_words in words_by_answer_kind.items()
    }
    if not strength_by_answer_kind:
        return {}
    highest_strength = max(strength_by_answer_kind.values())
    log_total_strength = highest_strength + math.log(
        sum(math.exp(strength - highest_strength) for strength in strength_by_answer_kind.values())
    )
    return {
        answer_kind: strength - log_total_strength
        for answer_kind, strength in strength_by_answer_kind.items()
    }
