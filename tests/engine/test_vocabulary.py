"""The vocabulary: its file, what it finds in a question, and what that does to an order."""

from importlib.resources import files

import pytest

from readingroom.engine.ranking import ProposedPassage, rank_passages
from readingroom.engine.stems import get_shared_stemmer
from readingroom.engine.vocabulary import (
    _FILLER_WORDS,
    Vocabulary,
    _get_first_letters,
    get_vocabulary,
)
from readingroom.engine.words import split_significant_words, split_words
from tests.engine.test_ranking import Corpus

LINES = """knock down\tdemolition
cheap\tlow cost
cheap home\taffordable housing; social rent
go up\tincrease
go down\tdecrease"""


def find_terms_by_wording(question: str) -> dict[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    wordings = Vocabulary(LINES).find_wordings(question)
    return {wording.stems: wording.official_term_stems for wording in wordings}


@pytest.mark.parametrize(
    ("question", "stems", "first_term"),
    [
        ("May they knock at the door?", None, None),
        ("May we knock down the barn?", ("knock", "down"), ("demolit",)),
        ("Who gets a cheap home here?", ("cheap", "home"), ("afford", "hous")),
        ("Is any of it cheap?", ("cheap",), ("low", "cost")),
        ("Will the rents go up?", ("go", "up"), ("increas",)),
        ("Will the rents go down?", ("go", "down"), ("decreas",)),
    ],
)
def test_the_longest_wording_of_a_question_is_found(
    question: str, stems: tuple[str, ...] | None, first_term: tuple[str, ...] | None
) -> None:
    terms_by_wording = find_terms_by_wording(question)
    if stems is None or first_term is None:
        assert terms_by_wording == {}
    else:
        ((found_stems, terms),) = terms_by_wording.items()
        assert (found_stems, terms[0]) == (stems, first_term)


@pytest.mark.parametrize("question", ["", "?", "the of", "é 注 🐦", "word " * 300])
def test_a_question_without_a_wording_has_none(question: str) -> None:
    assert find_terms_by_wording(question) == {}


def test_every_line_of_the_file_is_a_wording_and_its_terms() -> None:
    text = files("readingroom.engine").joinpath("vocabulary.tsv").read_text("utf-8")
    rows = [line.split("\t") for line in text.splitlines()]
    wordings = [wording for wording, _ in rows]
    assert len(rows) > 10_000
    assert len(set(wordings)) == len(wordings)
    assert wordings == sorted(wordings)
    for wording, terms in rows:
        assert wording == wording.lower().strip() != ""
        assert split_significant_words(wording), f"{wording!r} would apply to any question"
        assert all(term == term.strip() != "" for term in terms.split("; "))
    vocabulary = get_vocabulary()
    for wording in wordings[::97]:
        found = vocabulary.find_wordings(wording)
        assert found and all(term for term in found[0].official_term_stems), wording


def test_every_wording_is_looked_up_by_the_beginning_of_its_first_stem() -> None:
    """Only wordings that begin like a stem of the question are stemmed, so no other may match."""
    text = files("readingroom.engine").joinpath("vocabulary.tsv").read_text("utf-8")
    wordings = [line.split("\t")[0] for line in text.splitlines()]
    get_shared_stemmer().stem_all_words(" ".join(wordings))
    for wording in wordings:
        stems = [
            stem
            for word, stem in zip(
                split_words(wording), get_shared_stemmer().stem_all_words(wording), strict=True
            )
            if word not in _FILLER_WORDS
        ]
        assert stems[0][:2] == _get_first_letters(wording), wording


def test_a_question_finds_the_same_whatever_was_asked_before() -> None:
    used_vocabulary = Vocabulary(LINES)
    used_vocabulary.find_wordings("May we knock down the cheap barn?")
    for question in ("Will a cheap home go up?", "Will they go down or be knocked down?"):
        wordings = Vocabulary(LINES).find_wordings(question)
        assert wordings == used_vocabulary.find_wordings(question) != []


def test_a_passage_with_the_official_term_comes_first() -> None:
    texts = {
        "pub": "The public house was built of brick.",
        "barn": "Demolition of the barn needs prior approval.",
        "view": "The view from the hill is protected.",
    }
    passages = [ProposedPassage(name, text, None) for name, text in texts.items()]
    compared_passages = rank_passages(
        "May I knock it down?", None, passages, Corpus(list(texts.values()))
    )
    assert compared_passages[0].passage_id == "barn"
    assert compared_passages[0].word_score == 1.0
    # What is told of the question's own words stays theirs.
    assert (compared_passages[0].coverage, compared_passages[0].matched_terms) == (0.0, ())


def test_a_question_in_the_words_of_the_text_needs_no_others() -> None:
    texts = {
        "own": "Knocking down chimneys, knocking down walls: no knocking down without a permit.",
        "official": "Demolition demolition demolition of chimneys.",
        **{f"other {number}": f"Paragraph {number} about parking." for number in range(40)},
    }
    passages = [ProposedPassage(name, text, None) for name, text in texts.items()]
    compared_passages = rank_passages(
        "knocking down walls and chimneys without permit",
        None,
        passages,
        Corpus(list(texts.values())),
    )
    word_scores = {
        compared_passage.passage_id: compared_passage.word_score
        for compared_passage in compared_passages
    }
    assert compared_passages[0].passage_id == "own"
    assert word_scores["official"] < 0.3
