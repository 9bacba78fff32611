"""Questions as people ask them, and the tool a retriever would pick from the listing alone."""

from collections import Counter
from pathlib import Path

import pytest

from tests.routing import REASONS, Routed, questions, routed, share

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


# Measured: 0.559 and 0.796. Wanted: 0.65 and 0.90, which is missed (docs/routing.md). This floor is
# not that guard: it holds what there is, less three questions, against descriptions to come.
FLOOR_TOP_1, FLOOR_TOP_3 = 0.52, 0.76


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Routed]:
    return routed(tmp_path_factory.mktemp("data"))


def test_there_are_enough_questions_over_every_class_and_base() -> None:
    asked = questions()
    counted = Counter(one.tool for one in asked)
    assert len(asked) >= 90
    assert sum(one.blind for one in asked) >= 30
    assert len({one.question for one in asked}) == len(asked)
    assert {one.why for one in asked} <= {"", *REASONS}
    for kind, tools in CLASSES.items():
        assert all(counted[tool] >= 2 for tool in tools.split()), kind


def test_a_hash_divides_the_questions_into_halves() -> None:
    sizes = Counter(one.half for one in questions())
    assert min(sizes.values()) >= 0.45 * sizes.total()


def test_descriptions_choose_no_worse_than_they_did(answers: list[Routed]) -> None:
    held_out = [one for one in answers if one.asked.half == "held_out"]
    assert share(held_out, 1) >= FLOOR_TOP_1
    assert share(held_out, 3) >= FLOOR_TOP_3


def test_the_same_question_is_routed_the_same_way_twice(
    answers: list[Routed], tmp_path: Path
) -> None:
    some = questions()[::10]
    assert routed(tmp_path, some) == [one for one in answers if one.asked in some]
