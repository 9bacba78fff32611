"""Questions as people ask them, and the tool a retriever would pick from the listing alone."""

from collections import Counter
from pathlib import Path

import pytest

from tests.routing import HELD_OUT, TUNING, Routed, questions, routed, share

CLASSES = {
    "A": "get_bill get_legislator get_committee list_committee_members list_cosponsors "
    "get_bill_text list_member_votes",
    "B": "lexical_search semantic_search search",
    "C": "fetch",
    "D": "resolve_entity",
    "E": "count sum time_series",
    "F": "get_bill_dossier get_legislator_dossier get_committee_dossier get_public_law_dossier",
    "policy": "search_policy get_policy_section list_policy_documents list_policy_revisions "
    "ingest_policy_revision remove_policy_revision",
    "documents": "ingest_document search_application_docs get_document_text "
    "list_ingested_documents",
    "text": "get_kb_info get_kb_content",
    "guidance": "get_content_by_path search_guidance get_source_metadata force_refresh "
    "get_error_taxonomy",
}


# The first is the guard. Of the second 0.90 is wanted and 0.873 measured (docs/routing.md): this is
# not that guard but a floor, two questions below what there is, against descriptions to come.
FIRST, AMONG_THREE = 0.65, 0.85


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Routed]:
    return routed(tmp_path_factory.mktemp("data"), questions(HELD_OUT))


def test_there_are_enough_questions_over_every_class_and_base() -> None:
    asked = questions(TUNING)
    counted = Counter(one.tool for one in asked)
    assert len(asked) >= 90
    assert sum(one.blind for one in asked) >= 30
    for kind, tools in CLASSES.items():
        assert all(counted[tool] >= 2 for tool in tools.split()), kind


def test_no_question_is_asked_twice() -> None:
    asked = [one.question for one in (*questions(TUNING), *questions(HELD_OUT))]
    assert len(set(asked)) == len(asked)


def test_descriptions_lead_held_out_questions_to_their_tool(answers: list[Routed]) -> None:
    assert share(answers, 1) >= FIRST
    assert share(answers, 3) >= AMONG_THREE


def test_the_same_question_is_routed_the_same_way_twice(
    answers: list[Routed], tmp_path: Path
) -> None:
    assert routed(tmp_path, questions(HELD_OUT)[::10]) == answers[::10]
