"""A revision that failed never blocks: a retry takes its place, and errors name the way out."""

from collections.abc import AsyncIterator

import pytest

from readingroom.bases.policy.errors import RevisionOverlap
from readingroom.bases.policy.models import ListPolicyRevisions
from readingroom.core.errors import KnowledgeError
from tests.requirements import requirement
from tests.support.policy.base import PolicyLibrary, open_library

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def library(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PolicyLibrary]:
    async with open_library(tmp_path_factory.mktemp("data") / "policy") as library:
        yield library


@requirement("policy:FR-008:overlap")
async def test_a_revision_that_failed_blocks_nobody_and_a_retry_takes_its_place(
    library: PolicyLibrary,
) -> None:
    await library.add("RETRIED")
    await library.revise("RETRIED", "First", "2024-01-01")
    with pytest.raises(KnowledgeError):
        await library.revise("RETRIED", "Second", "2027-01-01", content=b"%PDF-1.4 cut off")

    listed = await library.service.list_revisions(ListPolicyRevisions(source="RETRIED"))
    shown = await library.admin.get_policy("RETRIED")

    assert [(one.status, one.effective_to) for one in listed.revisions] == [
        ("failed", None),
        ("active", None),
    ]
    assert [one.effective_to for one in shown.revisions] == [None, None]
    assert await library.revise("RETRIED", "Second", "2027-01-01") == "rev_RETRIED_2027_01"
    listed = await library.service.list_revisions(ListPolicyRevisions(source="RETRIED"))
    assert [(one.status, str(one.effective_to)) for one in listed.revisions] == [
        ("active", "None"),
        ("superseded", "2026-12-31"),
    ]


@requirement("policy:FR-008:overlap")
async def test_the_error_of_an_overlap_names_the_way_out(library: PolicyLibrary) -> None:
    await library.add("CROWDED")
    await library.revise("CROWDED", "First", "2024-12-12", "2025-12-31")

    with pytest.raises(RevisionOverlap, match=r"end this one by 2024-12-11 \(--to\)"):
        await library.revise("CROWDED", "Older", "2023-01-01")
    way_out = r"policy dates CROWDED rev_CROWDED_2024_12 --to 2025-05-31\).*policy delete CROWDED"
    with pytest.raises(RevisionOverlap, match=way_out):
        await library.revise("CROWDED", "Newer", "2025-06-01")
