"""A revision that failed never blocks: a retry takes its place, and errors name the way out."""

from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path

import pytest

from readingroom.bases.policy.admin_models import RevisionPatch
from readingroom.bases.policy.errors import RevisionOverlap
from readingroom.bases.policy.models import ListPolicyRevisions
from readingroom.core.errors import KnowledgeError
from tests.requirements import requirement
from tests.support.policy.base import PolicyLibrary, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines]


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[PolicyLibrary]:
    async with open_library(tmp_path / "policy") as library:
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


class Interrupted(Exception):
    """What ends a change at a step, as a kill would."""


@requirement("policy:FR-008:overlap", "policy:NFR-003")
@pytest.mark.parametrize("step", ["create:begin", "amend:begin"])
async def test_what_failed_stays_until_the_change_that_takes_its_place_is_made(
    tmp_path: Path, step: str
) -> None:
    interrupted_steps: list[str] = []

    def interrupt(passed: str) -> None:
        if passed in interrupted_steps:
            raise Interrupted

    async with open_library(tmp_path / "policy", on_step=interrupt) as library:
        await library.add("KEPT")
        first_id = await library.revise("KEPT", "First", "2024-01-01", "2024-01-31")
        with pytest.raises(KnowledgeError):
            await library.revise("KEPT", "Second", "2024-02-01", content=b"%PDF-1.4 cut off")
        before = await library.service.registry.get_revisions("KEPT")

        interrupted_steps.append(step)
        with pytest.raises(Interrupted):
            if step == "create:begin":
                await library.revise("KEPT", "Third", "2024-02-01")
            else:
                patch = RevisionPatch(effective_from=date(2024, 1, 1), effective_to=None)
                await library.admin.amend_revision("KEPT", first_id, patch)

        assert await library.service.registry.get_revisions("KEPT") == before
        failed_path = library.service.ingestion.files.locate_file("KEPT", "rev_KEPT_2024_02")
        assert failed_path.read_bytes() == b"%PDF-1.4 cut off"
