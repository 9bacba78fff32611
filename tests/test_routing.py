"""Questions as people ask them, and the tool a retriever would pick from the listing alone."""

from collections import Counter

import pytest

from readingroom.core.settings import load
from readingroom.server.catalogue import OFFERS, embedder_of, faces_of_all, open_bases
from tests.routing import Routed, questions, route

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


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> list[Routed]:
    """Every question whose tool is served, over the listing of all bases."""
    settings = load({"data": tmp_path_factory.mktemp("data")}, {})
    everything, *_ = faces_of_all(open_bases(sorted(OFFERS), settings))
    tools = [tool for tool, _ in everything.shelf.values()]
    asked = [one for one in questions() if one.tool in everything.shelf]
    return route(asked, tools, embedder_of(settings))


def test_there_are_enough_questions_over_every_class_and_base() -> None:
    asked = questions()
    counted = Counter(one.tool for one in asked)
    assert len(asked) >= 90
    assert sum(one.blind for one in asked) >= 30
    assert len({one.question for one in asked}) == len(asked)
    for kind, tools in CLASSES.items():
        assert all(counted[tool] >= 2 for tool in tools.split()), kind


def test_a_hash_divides_the_questions_into_halves() -> None:
    sizes = Counter(one.half for one in questions())
    assert min(sizes.values()) >= 0.45 * sizes.total()
