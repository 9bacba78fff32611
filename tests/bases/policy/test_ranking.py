"""The order of a plan's passages: headings, neighbours and kinds count beside the words."""

from collections.abc import Mapping, Sequence

import numpy as np

from readingroom.bases.policy.chunks.ranking import PlanRanker
from readingroom.core.filters import Metadata
from readingroom.engine.context import CONTEXT_FIELD_NAME
from readingroom.engine.ranking import ProposedPassage
from readingroom.storage.chunks import Chunks
from tests.requirements import requirement


class CommonWords:
    """A collection in which every word is as common as any other."""

    document_count = 1000
    average_length = 10.0

    def read_document_frequencies(self, stems: Sequence[str]) -> Mapping[str, int]:
        return dict.fromkeys(stems, 10)


def rank(question: str, *passages: tuple[str, dict[str, str | int]]) -> list[str]:
    """Return the ids of the passages, best first; they are named by their place, from 0."""
    ids = [str(place) for place in range(len(passages))]
    metadatas: list[Metadata] = [
        {"revision_id": "rev", "chunk_index": 10 * place, "passage_kind": "supporting", **metadata}
        for place, (_, metadata) in enumerate(passages)
    ]
    texts = [text for text, _ in passages]

    def fetch(chunk_ids: Sequence[str]) -> Chunks:
        assert list(chunk_ids) == ids
        return Chunks(ids, texts, metadatas, np.empty((len(ids), 0), np.float32))

    proposed = [ProposedPassage(id, text, None) for id, text in zip(ids, texts, strict=True)]
    compared_passages = PlanRanker(fetch)(question, None, proposed, CommonWords())
    fits = [compared_passage.fit for compared_passage in compared_passages]
    assert fits == sorted(fits, reverse=True)
    return [compared_passage.passage_id for compared_passage in compared_passages]


@requirement("policy:order")
def test_a_policy_stands_before_what_explains_it_and_before_appendices() -> None:
    text = "Cycle parking is provided with every new dwelling."
    kinds = ("appendix", "supporting", "policy", "table")

    order = rank("cycle parking", *((text, {"passage_kind": kind}) for kind in kinds))

    assert order == ["2", "1", "0", "3"]


@requirement("policy:order")
def test_a_table_of_contents_and_a_bare_heading_stand_behind_the_text() -> None:
    contents = (
        "Policy T1 Cycle parking ............ 14\nPolicy T2 Cycle parking in towns ........... 15"
    )
    order = rank(
        "cycle parking in towns",
        (contents, {}),
        ("Cycle parking in towns", {"passage_kind": "policy"}),
        ("Stands for cycles are placed in towns near the entrance of shops.", {}),
    )

    assert order[0] == "2"


@requirement("policy:order")
def test_the_headings_above_a_passage_count_as_its_words() -> None:
    order = rank(
        "parking for cycles",
        ("One space in twenty is larger than the others.", {CONTEXT_FIELD_NAME: "Plan. Drainage"}),
        (
            "One space in twenty is larger than the others.",
            {CONTEXT_FIELD_NAME: "Plan. Cycle parking"},
        ),
    )

    assert order == ["1", "0"]


@requirement("policy:order")
def test_a_passage_gains_by_its_neighbours_of_the_same_revision() -> None:
    text = "Stands are covered and well lit."
    order = rank(
        "stands for cycles beside shops",
        (text, {"chunk_index": 4, "revision_id": "other"}),
        (text, {"chunk_index": 6}),
        ("Cycles are parked beside shops.", {"chunk_index": 5}),
        (text, {"chunk_index": 40}),
    )

    assert order.index("1") < order.index("0")
    assert order.index("1") < order.index("3")


@requirement("policy:order")
def test_nothing_proposed_is_nothing_ranked() -> None:
    assert rank("cycle parking") == []
