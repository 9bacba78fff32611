"""The plan that applies to an application: chosen by its authority and its day."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.documents.adapter import DocumentsAdapter
from readingroom.bases.documents.models import SetApplication
from readingroom.bases.policy.adapter import PolicyAdapter
from readingroom.bases.policy.admin_models import NewPolicy
from readingroom.core.errors import UnknownSource
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.federation.errors import ValidationDateUnknown
from readingroom.federation.fan_out import FanOut
from readingroom.federation.models import AssessAgainstPolicy, Assessment, DeskSearch
from readingroom.federation.service import FederationService
from readingroom.protocol.search import PageLinks
from readingroom.protocol.tool import ToolContext
from tests.requirements import requirement
from tests.support.documents import base as documents
from tests.support.documents.base import open_documents_base
from tests.support.model import WordEmbedder
from tests.support.policy.base import PLAIN, open_library, plain

pytestmark = pytest.mark.anyio

FENTON, NORTON, BARE = "24/1/FUL", "24/2/FUL", "24/3/FUL"
PLANS: list[dict[str, str]] = [
    {"source": "NPPF", "category": "national_policy"},
    {"source": "FENTON_PLAN", "local_authority": "Fenton District Council"},
    {
        "source": "MERTON_PLAN",
        "local_authority": "Merton",
        "successor_authorities": "Norton City Council",
    },
    {"source": "STRAY_PLAN"},
]
APPLICATIONS = {
    FENTON: {"local_authority": "Fenton"},
    NORTON: {"local_authority": "Norton"},
    BARE: {"local_authority": ""},
}
CALL = ToolContext(make_request_id(), "test", no_progress)


@asynccontextmanager
async def open_desk(
    folder: Path, plans: list[dict[str, str]], applications: dict[str, dict[str, str]]
) -> AsyncIterator[FederationService]:
    """Open a desk over these plans, each with a sentence on cycle parking, and applications."""
    async with AsyncExitStack() as stack:
        policies = await stack.enter_async_context(open_library(folder / "policy", **PLAIN))
        for plan in plans:
            fields: dict[str, Any] = {"title": plan["source"], "category": "local_plan", **plan}
            await policies.admin.create_policy(NewPolicy(**fields))
            text = plain(f"Cycle parking follows the rules of the {plan['source']}.")
            await policies.revise(plan["source"], "2020", "2020-01-01", content=text)
        library = await stack.enter_async_context(
            open_documents_base(folder / "documents", **documents.PLAIN)
        )
        for reference, details in applications.items():
            await library.service.set_application(
                SetApplication(reference=reference, validation_date="2024-05-01", **details)
            )
        if FENTON in applications:
            await library.ingest("Statement.pdf", plain("Cycle parking is beside it."), FENTON)
        adapters: dict[str, Any] = {
            "documents": DocumentsAdapter(library.service, PageLinks("")),
            "policy": PolicyAdapter(policies.service, PageLinks("")),
        }
        # Long enough for a machine that does much else: a late base would be a note.
        service = FederationService(adapters, {}, WordEmbedder(), FanOut(deadline_seconds=120))  # type: ignore[arg-type]
        await stack.enter_async_context(service.run_inside())
        yield service


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[FederationService]:
    """National policy, the plans of two authorities, one that says nothing, and applications."""
    async with open_desk(tmp_path, PLANS, APPLICATIONS) as service:
        yield service


async def assess(service: FederationService, reference: str, **asked: Any) -> Assessment:
    question = AssessAgainstPolicy(application_ref=reference, topic="cycle parking", **asked)
    return await service.assess_against_policy(question, CALL)


def list_sources(assessment: Assessment) -> set[str]:
    return {hit.source for hit in assessment.policy}


@requirement("room:assess")
async def test_the_authority_of_an_application_chooses_its_plan(service: FederationService) -> None:
    in_fenton = await assess(service, FENTON)
    in_norton = await assess(service, NORTON)
    anywhere = await assess(service, BARE)

    assert list_sources(in_fenton) == {"NPPF", "FENTON_PLAN"}
    assert (in_fenton.local_authority, in_fenton.authority_from) == ("Fenton", "application")
    assert in_fenton.policy_side is not None and in_fenton.application_side is not None
    assert in_fenton.policy_side.searched == ["FENTON_PLAN (2020)", "NPPF (2020)"]
    assert {one.source: one.reason for one in in_fenton.policy_side.excluded} == {
        "MERTON_PLAN": "other_authority",
        "STRAY_PLAN": "authority_unknown",
    }
    assert in_fenton.application_side.searched == ["Statement.pdf"]
    assert in_fenton.application_side.empty_reason is None
    assert list_sources(in_norton) == {"NPPF", "MERTON_PLAN"}
    assert list_sources(anywhere) == {"NPPF", "FENTON_PLAN", "MERTON_PLAN", "STRAY_PLAN"}
    assert (anywhere.local_authority, anywhere.authority_from) == (None, None)


@requirement("room:assess")
async def test_whoever_asks_may_name_the_policies_or_the_authority(
    service: FederationService,
) -> None:
    named = await assess(service, FENTON, sources=["stray_plan", "NPPF"])
    elsewhere = await assess(service, FENTON, local_authority="Merton Council")
    nowhere = await assess(service, FENTON, sources=["NONE"])

    assert list_sources(named) == {"NPPF", "STRAY_PLAN"}
    assert list_sources(elsewhere) == {"NPPF", "MERTON_PLAN"}
    assert elsewhere.authority_from == "asked"
    assert nowhere.policy == [] and nowhere.policy_side is not None
    assert nowhere.policy_side.empty_reason == (
        "No policy here applies on 2024-05-01: of 1, 1 are not here"
    )


@requirement("room:assess")
async def test_an_empty_side_says_why_and_an_unknown_application_that_it_is(
    service: FederationService,
) -> None:
    early = await assess(service, FENTON, date="1999-01-01")
    without_documents = await assess(service, NORTON)
    unknown = await assess(service, "99/1/X", date="2024-05-01")

    assert early.policy_side is not None
    assert early.policy_side.empty_reason == (
        "No policy here applies on 1999-01-01: of 4, 2 came into force later, "
        "1 are another authority's, 1 do not say whose they are (policy `local_authority`)"
    )
    assert without_documents.application_side is not None
    assert "no documents" in (without_documents.application_side.empty_reason or "")
    assert not unknown.application_known and unknown.application_side is not None
    assert (unknown.application_side.empty_reason or "").startswith("Nothing is known of this")
    with pytest.raises(ValidationDateUnknown, match="Nothing is known of an application 99/1/X"):
        await assess(service, "99/1/X")


@requirement("room:assess")
async def test_the_desk_is_limited_to_policies_by_their_slugs(service: FederationService) -> None:
    async def search(source: str) -> set[str]:
        answer = await service.search(DeskSearch(query="cycle parking", source=source), CALL)
        return {hit.source for hit in answer.results if hit.base == "policy"}

    assert await search("fenton_plan") == {"FENTON_PLAN"}
    assert await search("policy,fenton_plan") >= {"NPPF", "STRAY_PLAN"}
    with pytest.raises(UnknownSource) as refused:
        await search("nothing")
    assert "FENTON_PLAN" in refused.value.hint["valid_sources"]


@requirement("room:assess")
async def test_the_address_chooses_among_the_plans_that_an_authority_inherited(
    tmp_path: Path,
) -> None:
    inherited = {"successor_authorities": "Westland Council"}
    plans = [
        {"source": "NPPF", "category": "national_policy"},
        {"source": "WEST_STRATEGY", "local_authority": "Westland", "area": "Westland"},
        {"source": "MERTON_PLAN", "local_authority": "Merton", "area": "Merton; Ashby"} | inherited,
        {"source": "HILL_PLAN", "local_authority": "Hill", "area": "Hillford"} | inherited,
    ]
    in_ashby, in_no_area = "24/1/HOU", "24/2/HOU"
    applications = {
        in_ashby: {"local_authority": "Westland Council", "address": "3 Mill Lane, Ashby AB1 2CD"},
        in_no_area: {"local_authority": "Westland Council", "address": "Ashbyfield, Mertonbury"},
    }
    async with open_desk(tmp_path, plans, applications) as service:
        ashby = await assess(service, in_ashby)
        no_area = await assess(service, in_no_area)
        by_old_name = await assess(service, in_no_area, local_authority="former Merton district")

    assert list_sources(ashby) == {"NPPF", "MERTON_PLAN", "WEST_STRATEGY"}
    assert ashby.policy_side is not None
    reasons = {one.source: one.reason for one in ashby.policy_side.excluded}
    assert reasons == {"HILL_PLAN": "other_area"}
    assert list_sources(no_area) == {"NPPF", "MERTON_PLAN", "HILL_PLAN", "WEST_STRATEGY"}
    assert list_sources(by_old_name) == {"NPPF", "MERTON_PLAN"}
