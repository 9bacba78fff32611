"""The words by which questions want one kind of answer or another."""

import math
from importlib.resources import files

import pytest

from readingroom.bases import BASES
from readingroom.federation.question_words import (
    estimate_answer_kinds,
    list_wordings,
    load_question_words,
    parse_question_words,
)

TABLE = "rule\t\t0.5\nrule\tmust\t2\ncase\tthe site\t1.5\ncase\t^will\t1\n"


def test_wordings_are_words_pairs_and_the_beginning() -> None:
    assert list_wordings("Must homes have bikes?") == {
        "must",
        "homes",
        "have",
        "bikes",
        "must homes",
        "homes have",
        "have bikes",
        "^must",
        "^must homes",
    }


def test_numbers_and_references_are_alike() -> None:
    assert list_wordings("24/00912/FUL") == list_wordings("25/1/REM") == {"0/0", "^0/0"}
    assert "0 homes" in list_wordings("the 47 homes")


def test_a_question_without_words_has_no_wordings() -> None:
    assert list_wordings("??? !") == set()


def test_a_table_gives_the_probability_of_each_kind() -> None:
    words_by_kind = parse_question_words(TABLE)
    log_probabilities = estimate_answer_kinds("Will the site flood?", words_by_kind)
    assert math.isclose(sum(map(math.exp, log_probabilities.values())), 1.0)
    assert math.isclose(log_probabilities["case"] - log_probabilities["rule"], 2.5 - 0.5)
    assert estimate_answer_kinds("must it", words_by_kind)["rule"] > math.log(0.5)
    assert estimate_answer_kinds("anything", {}) == {}


@pytest.mark.parametrize(
    ("question", "base"),
    [
        ("must new homes in a flood zone have a safe way out", "policy"),
        ("how many bins will they have behind the flats", "documents"),
        ("which senators voted against the bill", "federal"),
        ("can a trustee be paid", "guidance"),
    ],
)
def test_the_words_of_the_bases_tell_whom_a_question_is_meant_for(question: str, base: str) -> None:
    words_by_base = {
        name: load_question_words(f"readingroom.bases.{name}")[name]
        for name, spec in BASES.items()
        if spec.adapter
    }
    log_probabilities = estimate_answer_kinds(question, words_by_base)
    assert max(log_probabilities, key=lambda name: log_probabilities[name]) == base


@pytest.mark.parametrize("name", [name for name, spec in BASES.items() if spec.adapter])
def test_a_base_has_words_for_itself_alone(name: str) -> None:
    lines = (files("readingroom.bases") / name / "question_words.tsv").read_text("utf-8")
    assert {line.split("\t")[0] for line in lines.splitlines()} == {name}
