"""`readingroom eval`: figures that can be checked by hand, and questions read from a file."""

from pathlib import Path
from typing import ClassVar

import click
import pytest

from readingroom.commands.eval import read_evaluation_questions
from readingroom.federation.evaluation import EvaluationQuestion, evaluate_searches, measure_auroc
from readingroom.federation.models import DeskAnswer, DeskSearch
from readingroom.protocol.search import Citation, DeskHit
from readingroom.protocol.tool import ToolContext
from tests.requirements import requirement


def make_hit(id: str, score: float) -> DeskHit:
    return DeskHit(
        id=id,
        title=id,
        url=id,
        source="policy",
        snippet=id,
        score=score,
        published_at=None,
        citation=Citation(citation_string=id, url=id),
        base="policy",
    )


class Desk:
    """Answers from a table; what is not in it has no results."""

    answers: ClassVar = {
        "first": [make_hit("policy:A#1", 0.9), make_hit("policy:B#1", 0.1)],
        "third": [
            make_hit("policy:B#1", 0.5),
            make_hit("policy:B#2", 0.4),
            make_hit("policy:A#2", 0.3),
        ],
        "nonsense": [make_hit("policy:B#1", 0.05)],
    }

    async def search(self, question: DeskSearch, call: ToolContext) -> DeskAnswer:
        results = self.answers.get(question.query, [])
        return DeskAnswer(
            results=results,
            total=len(results),
            took_ms=1.0,
            searched=["policy"],
            notes=[],
            confidence="strong" if results and results[0].score > 0.2 else "none",
            confidence_reason="",
        )


async def ignore_progress(done: float, total: float | None, message: str | None) -> None:
    pass


@requirement("room:eval")
@pytest.mark.anyio
async def test_the_figures_are_those_of_the_answers() -> None:
    questions = [
        EvaluationQuestion(question="first", right_ids=["policy:A"]),
        EvaluationQuestion(question="third", right_ids=["policy:A#2", "policy:C"]),
        EvaluationQuestion(question="lost", right_ids=["policy:A"]),
        EvaluationQuestion(question="nonsense", right_ids=[]),
    ]
    desk = Desk()
    result = await evaluate_searches(
        desk, questions, None, ToolContext("1", "operator", ignore_progress)
    )  # type: ignore[arg-type]
    assert (result.questions, result.unanswerable) == (4, 1)
    assert (result.hit_at_1, result.hit_at_3, result.hit_at_10) == (0.3333, 0.6667, 0.6667)
    assert (result.mrr, result.ndcg_at_10) == (0.4444, 0.5)
    assert (result.confidence_auroc, result.called_none) == (0.6667, 0.3333)
    assert [(miss.question, miss.rank, miss.first_id) for miss in result.misses] == [
        ("third", 3, "policy:B#1"),
        ("lost", None, None),
    ]


@requirement("room:eval")
def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    assert measure_auroc([0.9, 0.5, 0.5, 0.1], [True, True, False, False]) == 0.875
    assert measure_auroc([0.9], [True]) is None


@requirement("room:eval")
def test_questions_are_read(tmp_path: Path) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text('question\tright_id\nIs "A" right?\tpolicy:A;;policy:B\n\nHm?\tnone\n', "utf-8")
    assert [(read.question, read.right_ids) for read in read_evaluation_questions(file)] == [
        ('Is "A" right?', ["policy:A", "policy:B"]),
        ("Hm?", []),
    ]


@requirement("room:eval")
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"only a question\n", r"Line 1 of questions\.tsv needs a question, a tab"),
        (b"a question\t;;\n", "Line 1"),
        (b"a question\tpolicy:A\tmore\n", "Line 1"),
        (b"q\tpolicy:A\n" + b"a" * 2_000 + b"\tpolicy:A\n", r"Line 2 .* at most 1000 characters"),
        (b"caf\xe9\tpolicy:A\n", "not UTF-8"),
        (b"\n", "no questions"),
    ],
)
def test_a_line_that_is_no_question_is_named(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    file = tmp_path / "questions.tsv"
    file.write_bytes(content)
    with pytest.raises(click.UsageError, match=complaint):
        read_evaluation_questions(file)
