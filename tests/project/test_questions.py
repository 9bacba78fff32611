"""The evaluation questions are well formed, balanced, and answered where they say.

Nothing here searches, so these tests hold whatever the ranking does.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pypdfium2 import PdfiumError

from tests.support.questions import (
    COLUMNS,
    MANY_SETS,
    SAMPLE_TEST_SETS,
    SETS,
    SHARED_TEST_SETS,
    TEST_SETS,
    TUNING_SETS,
    Question,
    cut_passage_around,
    extract_sample,
    extract_sample_base,
    extract_shared,
    judge_rare_words,
    quotes_whole_words,
    read_absent_terms,
    read_header,
    read_many_questions,
    read_questions,
)

DESK_QUOTAS = {
    "answerable": 90,
    "nonsense": 30,
    "unanswerable": 30,
    "policy": 25,
    "documents": 20,
    "federal": 20,
    "guidance": 20,
    "text": 5,
}
BASES = {"policy", "documents", "federal", "guidance", "text"}

# The least number of questions each set holds, by kind, and of answerable ones by base.
QUOTAS: dict[str, dict[str, int]] = {
    "field": {
        "answerable": 130,
        "nonsense": 70,
        "unanswerable": 70,
        "policy": 20,
        "documents": 20,
        "federal": 20,
        "guidance": 20,
        "text": 10,
    },
    "desk": {"answerable": 100, "policy": 10, "documents": 10, "federal": 10, "guidance": 10},
    "guidance": {"answerable": 90, "guidance": 90},
    "plans": {"answerable": 100, "policy": 100},
    "federal": {"answerable": 80, "federal": 80},
    "desk_more": {"answerable": 80, "policy": 30, "documents": 15, "federal": 8, "guidance": 14},
    "desk_fresh": {
        "answerable": 60,
        "nonsense": 12,
        "unanswerable": 12,
        "policy": 20,
        "documents": 12,
        "federal": 10,
        "guidance": 12,
        "text": 6,
    },
    "desk_new": {
        "answerable": 60,
        "nonsense": 15,
        "unanswerable": 15,
        "policy": 17,
        "documents": 13,
        "federal": 13,
        "guidance": 12,
        "text": 5,
    },
    "federal_fresh": {"answerable": 60, "federal": 60},
    "plans_fresh": {"answerable": 60, "policy": 60},
    "desk_third": DESK_QUOTAS,
    "federal_third": {"answerable": 66, "federal": 66},
    "plans_third": {"answerable": 72, "policy": 72},
    "desk_fourth": DESK_QUOTAS,
    "plans_fourth": {"answerable": 72, "policy": 72},
    "federal_fourth": {"answerable": 66, "federal": 66},
    "desk_fifth": DESK_QUOTAS,
    "plans_fifth": {"answerable": 72, "policy": 72},
    "federal_fifth": {"answerable": 66, "federal": 66},
    "desk_sixth": DESK_QUOTAS,
    "plans_sixth": {"answerable": 72, "policy": 72},
    "federal_sixth": {"answerable": 66, "federal": 66},
    "plans_seventh": {"answerable": 80, "policy": 80},
    "federal_seventh": {"answerable": 72, "federal": 72},
}
STATEMENTS = {
    "federal_fresh": 20,
    "federal_third": 22,
    "federal_fourth": 23,
    "federal_fifth": 23,
    "federal_sixth": 23,
    "federal_seventh": 24,
}
"""The least number of questions that a statement of administration policy answers, by set."""
NAMED_REFERENCES_IN_PLANS = 25


def list_answerable(set_name: str) -> list[Question]:
    return [question for question in read_questions(set_name) if question.kind == "answerable"]


@pytest.mark.parametrize("set_name", MANY_SETS)
def test_a_large_set_points_to_passages_and_copies_none(set_name: str) -> None:
    questions = read_many_questions(set_name)
    distinct = {(question.question, question.document) for question in questions}
    assert len(distinct) == len(questions) > 400
    for question in questions:
        assert question.question and question.document, question
        assert 4 <= len(question.quote.split()) <= 10, question


@pytest.mark.parametrize("set_name", [*SETS, *TUNING_SETS, *TEST_SETS])
def test_a_set_has_its_columns_and_every_line_fits_them(set_name: str) -> None:
    assert read_header(set_name) == COLUMNS
    for question in read_questions(set_name):
        assert all(isinstance(getattr(question, column), str) for column in COLUMNS), question
        assert question.question == question.question.strip() != "", question
        assert question.split in {"tuning", "test"}, question
        assert question.base in BASES | {""}, question
        if question.kind == "answerable":
            assert question.style in {"shared_word", "no_rare_word"}, question
            assert question.corpus in {"sample", "shared"}, question
            assert question.base and question.document, question
        else:
            assert question.kind in {"nonsense", "unanswerable"}, question
            where = (question.style, question.corpus, question.document, question.quote)
            assert where == ("", "", "", ""), question
            assert not question.also, question
            assert (question.base == "") == (question.kind == "nonsense"), question


def test_ids_and_questions_are_unique_over_all_sets() -> None:
    questions = [
        question
        for set_name in (*SETS, *TUNING_SETS, *TEST_SETS)
        for question in read_questions(set_name)
    ]
    for counts in (
        Counter(question.id for question in questions),
        Counter(question.question.casefold() for question in questions),
    ):
        assert [value for value, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("set_name", SETS)
def test_half_of_each_kind_is_for_tuning_and_half_for_the_test(set_name: str) -> None:
    questions = read_questions(set_name)
    whole = Counter(question.split for question in questions)
    assert abs(whole["tuning"] - whole["test"]) <= 1
    for kind in {question.kind for question in questions}:
        splits = Counter(question.split for question in questions if question.kind == kind)
        assert abs(splits["tuning"] - splits["test"]) <= 2, kind


@pytest.mark.parametrize("set_name", TUNING_SETS)
def test_a_tuning_set_has_no_question_that_judges(set_name: str) -> None:
    assert {question.split for question in read_questions(set_name)} == {"tuning"}


@pytest.mark.parametrize("set_name", TEST_SETS)
def test_a_test_set_has_no_question_to_tune_on(set_name: str) -> None:
    assert {question.split for question in read_questions(set_name)} == {"test"}


@pytest.mark.parametrize("set_name", [*SETS, *TUNING_SETS, *TEST_SETS])
def test_a_set_holds_as_many_questions_as_it_promises(set_name: str) -> None:
    counts = Counter(question.kind for question in read_questions(set_name))
    counts.update(question.base for question in list_answerable(set_name))
    short = {name: counts[name] for name, least in QUOTAS[set_name].items() if counts[name] < least}
    assert short == {}


def test_the_desk_is_asked_about_both_corpora_and_every_base() -> None:
    questions = list_answerable("desk")
    assert {question.base for question in questions} == BASES
    assert min(Counter(question.corpus for question in questions).values()) >= 30


@pytest.mark.parametrize("set_name", STATEMENTS)
def test_a_third_of_a_federal_test_set_is_answered_by_a_statement_of_policy(set_name: str) -> None:
    documents = [question.document for question in list_answerable(set_name)]
    statements = [document for document in documents if document.startswith("federal/saps/")]
    assert len(statements) >= STATEMENTS[set_name]


def test_enough_questions_on_plans_name_a_reference() -> None:
    """A reference is a section's label up to its bracket or part, such as `GB7` or `3.5.24`."""
    naming = [
        question
        for question in list_answerable("plans")
        if (label := question.section.split("(")[0].split()[-1]) and label in question.question
    ]
    assert len(naming) >= NAMED_REFERENCES_IN_PLANS


@pytest.mark.parametrize("set_name", [*SETS, *TUNING_SETS, *TEST_SETS])
def test_quotes_are_four_to_ten_words(set_name: str) -> None:
    for question in list_answerable(set_name):
        for _, quote in question.answers:
            assert 4 <= len(quote.split()) <= 10, question


@pytest.mark.parametrize("set_name", [*SETS, *TEST_SETS])
def test_at_least_half_of_the_questions_share_no_rare_word(set_name: str) -> None:
    styles = Counter(question.style for question in list_answerable(set_name))
    assert styles["no_rare_word"] >= styles["shared_word"]


@pytest.mark.parametrize("set_name", ["field", "desk", "desk_more", *SAMPLE_TEST_SETS])
def test_quotes_on_the_sample_are_in_its_documents(set_name: str) -> None:
    asked = [question for question in list_answerable(set_name) if question.corpus == "sample"]
    assert asked
    for question in asked:
        for document, quote in question.answers:
            assert quotes_whole_words(extract_sample(document), quote), (question.id, quote)


@pytest.mark.data
@pytest.mark.parametrize("set_name", [*SETS, *SHARED_TEST_SETS])
def test_quotes_on_shared_data_are_in_its_documents(set_name: str, shared_data: Path) -> None:
    asked = [question for question in list_answerable(set_name) if question.corpus == "shared"]
    assert asked
    for question in asked:
        for document, quote in question.answers:
            text = extract_shared(shared_data / document)
            assert quotes_whole_words(text, quote), (question.id, document, quote)


@pytest.mark.data
@pytest.mark.parametrize("set_name", [*SETS, *SHARED_TEST_SETS])
def test_the_style_is_what_a_count_of_words_says(set_name: str, shared_data: Path) -> None:
    texts = {
        question.document: (
            extract_sample(question.document)
            if question.corpus == "sample"
            else extract_shared(shared_data / question.document)
        )
        for question in list_answerable(set_name)
    }
    judge = judge_rare_words(texts.values())
    for question in list_answerable(set_name):
        passage = cut_passage_around(texts[question.document], question.quote)
        shared = judge.shared_by(question.question, passage)
        assert question.style == ("shared_word" if shared else "no_rare_word"), (question, shared)


@pytest.mark.parametrize("set_name", SAMPLE_TEST_SETS)
def test_the_style_on_the_sample_is_what_a_count_of_words_says(set_name: str) -> None:
    texts = {q.document: extract_sample(q.document) for q in list_answerable(set_name)}
    judge = judge_rare_words(texts.values())
    for question in list_answerable(set_name):
        passage = cut_passage_around(texts[question.document], question.quote)
        shared = judge.shared_by(question.question, passage)
        assert question.style == ("shared_word" if shared else "no_rare_word"), (question, shared)


@pytest.mark.data
@pytest.mark.full
@pytest.mark.parametrize("base", sorted(BASES))
def test_what_an_unanswerable_question_needs_is_in_no_document(
    base: str, shared_data: Path
) -> None:
    text = " ".join([extract_sample_base(base), *_read_texts(shared_data / base)]).casefold()
    absent = read_absent_terms()
    unanswerable = [
        question
        for question in read_questions("field")
        if question.kind == "unanswerable" and question.base == base
    ]
    assert unanswerable
    for question in unanswerable:
        found = [term for term in absent[question.id] if term in text]
        assert found == [], question


def test_every_unanswerable_question_says_what_was_looked_for() -> None:
    unanswerable = {
        question.id
        for set_name in ("field", *TEST_SETS)
        for question in read_questions(set_name)
        if question.kind == "unanswerable"
    }
    assert set(read_absent_terms()) == unanswerable


@pytest.mark.parametrize("set_name", SAMPLE_TEST_SETS)
def test_what_an_unanswerable_question_needs_is_nowhere_in_the_sample(set_name: str) -> None:
    text = " ".join(extract_sample_base(base) for base in sorted(BASES)).casefold()
    absent = read_absent_terms()
    for question in read_questions(set_name):
        if question.kind == "unanswerable":
            assert [term for term in absent[question.id] if term in text] == [], question


def _read_texts(folder: Path) -> Iterator[str]:
    """Yield the texts of a base's files; a PDF that is locked or broken has none for anybody."""
    readable = {".pdf", ".xml", ".htm", ".html", ".json", ".md", ".txt", ".yaml", ".rst"}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix.lower() in readable and "schemas" not in path.parts:
            try:
                yield extract_shared(path)
            except PdfiumError:
                continue
