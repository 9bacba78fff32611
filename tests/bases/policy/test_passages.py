"""Passages of one section that are found together are one result of a search by both."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.policy.models import PolicyHits, SearchPolicy
from tests.requirements import requirement
from tests.support.policy.base import PolicyLibrary, make_policy_pdf, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

STANDS = " ".join(
    f"Cycle parking stand number {number} stands within {number + 3} metres of the entrance, is "
    f"covered, is lit, and keeps {number + 60} centimetres to the next stand."
    for number in range(1, 12)
)
BUSES = "Bus stops have a shelter, a seat and a timetable that can be read in the dark."


@pytest.fixture(scope="module")
async def library(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyLibrary]:
    """A policy with a section of several chunks between short ones."""
    async with open_library(tmp_path_factory.mktemp("data") / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        pdf = make_policy_pdf([("Transport", [BUSES, STANDS, BUSES.replace("Bus", "Tram")])])
        await library.revise("NPPF", "December 2024", "2024-12-12", content=pdf)
        yield library


async def search(library: PolicyLibrary, mode: Any, **asked: Any) -> PolicyHits:
    return await library.service.search(
        SearchPolicy(query="cycle parking stand", mode=mode, **asked)
    )


async def get_chunk_texts(library: PolicyLibrary) -> dict[str, str]:
    chunks = await library.service.store.get_chunks("NPPF", "rev_NPPF_2024_12")
    return {chunk.chunk_id: chunk.text for chunk in chunks}


@requirement("policy:order")
async def test_neighbours_of_one_section_are_one_result(library: PolicyLibrary) -> None:
    chunk_texts = await get_chunk_texts(library)
    section_ids = [chunk_id for chunk_id in chunk_texts if "__Para_2__" in chunk_id]
    assert len(section_ids) == 3

    first, *others = (await search(library, "hybrid")).results

    assert sorted([first.chunk_id, *first.joined_chunk_ids]) == section_ids
    assert first.joined_chunk_ids == sorted(first.joined_chunk_ids)
    # Every sentence once, in the order of the document, overlaps left out.
    assert " ".join(first.text.split()) == f"2. {STANDS}"
    assert "Para 2" not in {other.section_ref for other in others}
    assert all(not other.joined_chunk_ids for other in others)


@requirement("policy:FR-001:all")
@pytest.mark.parametrize("mode", ["semantic", "lexical"])
async def test_by_meaning_or_words_alone_each_chunk_is_a_result(
    library: PolicyLibrary, mode: str
) -> None:
    chunk_texts = await get_chunk_texts(library)

    results = (await search(library, mode)).results

    assert len([hit for hit in results if hit.section_ref == "Para 2"]) == 3
    assert all(hit.text == chunk_texts[hit.chunk_id] for hit in results)
    assert all(hit.joined_chunk_ids == [] for hit in results)


@requirement("policy:nice:stream")
async def test_pages_of_joined_results_make_up_the_whole(library: PolicyLibrary) -> None:
    whole = (await search(library, "hybrid", n_results=50)).results
    paged = []
    cursor = None
    for _ in range(len(whole) + 1):
        page = await search(library, "hybrid", n_results=1, cursor=cursor)
        paged += page.results
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [hit.chunk_id for hit in paged] == [hit.chunk_id for hit in whole]
    assert [hit.text for hit in paged] == [hit.text for hit in whole]


@requirement("policy:order")
async def test_what_is_joined_is_cited_with_all_its_pages(tmp_path: Path) -> None:
    async with open_library(tmp_path / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        pdf = make_policy_pdf([("Transport", [BUSES] * 24 + [STANDS])])
        await library.revise("NPPF", "December 2024", "2024-12-12", content=pdf)

        first = (await search(library, "hybrid")).results[0]

    assert first.joined_chunk_ids
    assert first.citation == "NPPF (December 2024), Para 25, p. 1–2"
