"""Which plan applies: authorities, their successors, and plans that are not adopted yet."""

from collections.abc import AsyncIterator
from datetime import date
from typing import Any

import pytest

from readingroom.bases.policy.admin_models import NewPolicy, NewRevision, PolicyPatch
from readingroom.bases.policy.errors import RevisionNotFound
from readingroom.bases.policy.models import (
    GetPolicySection,
    ListPolicyRevisions,
    PolicySnapshot,
    SearchPolicy,
)
from readingroom.bases.policy.registry.records import PolicyCategory, fold_authority_name
from readingroom.core.progress import no_progress
from tests.requirements import requirement
from tests.support.policy.base import PolicyLibrary, make_brief_pdf, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

DAY = "2025-06-01"


@pytest.fixture(scope="module")
async def library(
    engine: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PolicyLibrary]:
    """The nation's policy, and the plans of two authorities, one with an emerging plan."""
    async with open_library(tmp_path_factory.mktemp("data") / "policy") as library:
        await library.add("NPPF", "National Planning Policy Framework")
        await library.revise("NPPF", "December 2024", "2024-12-12")
        for source, authority, successors in [
            ("FENTON_PLAN", "Fenton District Council", None),
            ("MERTON_PLAN", "Merton Borough Council; Norton City Council", "Westland Council"),
        ]:
            new = NewPolicy(
                source=source,
                title=source,
                category=PolicyCategory.LOCAL_PLAN,
                local_authority=authority,
                successor_authorities=successors,
            )
            await library.admin.create_policy(new)
            await library.revise(source, "Adopted", "2014-05-08")
        draft = NewRevision(
            version_label="Draft 2025", effective_from=date(2025, 1, 1), stage="regulation_19"
        )
        spool = library.spool(make_brief_pdf("emerging"))
        await library.admin.revise_policy("FENTON_PLAN", draft, spool, no_progress)
        yield library


async def search(library: PolicyLibrary, **asked: Any) -> Any:
    question = SearchPolicy(query="cycle parking", effective_date=DAY, n_results=50, **asked)
    return await library.service.search(question)


@requirement("policy:applies")
async def test_an_emerging_plan_replaces_nothing_and_is_in_no_answer_by_default(
    library: PolicyLibrary,
) -> None:
    answer = await search(library)
    snapshot = await library.service.get_snapshot(PolicySnapshot(date="2030-01-01"))
    listed = await library.service.list_revisions(ListPolicyRevisions(source="FENTON_PLAN"))

    assert {hit.version_label for hit in answer.results} == {"December 2024", "Adopted"}
    in_force = {entry.source: entry.revision.version_label for entry in snapshot.policies}
    assert in_force["FENTON_PLAN"] == "Adopted"
    assert [(one.status, one.effective_to) for one in listed.revisions] == [
        ("emerging", None),
        ("active", None),
    ]


@requirement("policy:applies")
async def test_an_emerging_plan_is_found_when_it_is_asked_for_and_says_what_it_is(
    library: PolicyLibrary,
) -> None:
    answer = await search(library, include_emerging=True)

    emerging = [hit for hit in answer.results if hit.stage]
    assert {(hit.source, hit.stage, hit.in_force_today) for hit in emerging} == {
        ("FENTON_PLAN", "regulation_19", False)
    }
    assert "(Draft 2025, emerging: regulation 19)" in emerging[0].citation
    assert {hit.version_label for hit in answer.results} >= {"December 2024", "Adopted"}


@requirement("policy:applies")
async def test_where_nothing_is_in_force_the_error_names_the_emerging_plan(
    library: PolicyLibrary,
) -> None:
    question = GetPolicySection(source="FENTON_PLAN", section_ref="Para 1", date="2010-01-01")
    with pytest.raises(RevisionNotFound, match="not adopted, but here: rev_FENTON_PLAN_") as told:
        await library.service.get_section(question)

    revision_id = told.value.message.rpartition(" ")[2]
    named = question.model_copy(update={"revision_id": revision_id, "date": None})
    assert "emerging: regulation 19" in (await library.service.get_section(named)).citation


@pytest.mark.parametrize(
    ("authority", "plans"),
    [
        ("Fenton", {"FENTON_PLAN"}),
        ("Norton City Council", {"MERTON_PLAN"}),
        ("Westland", {"MERTON_PLAN"}),
        ("Elsewhere", set()),
    ],
)
@requirement("policy:applies")
async def test_only_the_plans_of_an_authority_apply_there_and_the_nations_everywhere(
    library: PolicyLibrary, authority: str, plans: set[str]
) -> None:
    answer = await search(library, local_authority=authority)

    assert {hit.source for hit in answer.results} == {"NPPF", *plans}
    others = {one.source for one in answer.excluded if one.reason == "other_authority"}
    assert others == {"FENTON_PLAN", "MERTON_PLAN"} - plans


@requirement("policy:applies")
async def test_chunks_of_an_emerging_plan_are_in_force_on_no_day(library: PolicyLibrary) -> None:
    chunks = await library.service.store.group_metadata_by_revision()

    for (_, revision_id), metadatas in chunks.items():
        is_emerging = revision_id == "rev_FENTON_PLAN_2025_01"
        for metadata in metadatas:
            on_the_day = metadata["effective_from"] <= 20250601 <= metadata["effective_to"]  # type: ignore[operator]
            assert on_the_day != is_emerging


@requirement("policy:applies")
async def test_names_of_authorities_compare_without_what_they_all_have() -> None:
    assert fold_authority_name("The Royal Borough of Kingston") == fold_authority_name(
        "Kingston Council"
    )
    assert fold_authority_name("Bath & North East Somerset") != fold_authority_name(
        "Somerset Council"
    )


@requirement("policy:applies")
async def test_an_authority_can_be_set_and_cleared(library: PolicyLibrary) -> None:
    await library.add("CHANGING", category="local_plan")
    patch = PolicyPatch(local_authority="Norton", area="The hills")
    changed = await library.admin.update_policy_details("CHANGING", patch)
    assert (changed.local_authority, changed.area) == ("Norton", "The hills")

    cleared = await library.admin.update_policy_details("CHANGING", PolicyPatch(area=None))

    assert (cleared.local_authority, cleared.area) == ("Norton", None)
