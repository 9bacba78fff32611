"""The policy base over REST: what creates and changes what the tools read."""

import uuid
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request
from pydantic import ValidationError

from readingroom.bases.policy.admin.service import Registrar
from readingroom.bases.policy.admin_models import (
    EffectivePolicies,
    NewPolicy,
    NewRevision,
    PolicyDetail,
    PolicyIndex,
    PolicyPatch,
    ReindexAccepted,
    RevisionAccepted,
    RevisionDeleted,
    RevisionDetail,
    RevisionPatch,
    RevisionProgress,
)
from readingroom.bases.policy.errors import InvalidEffectiveDate
from readingroom.bases.policy.ingest.ingestion import LARGEST
from readingroom.bases.policy.registry.records import PolicyCategory
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidDate, InvalidRequest
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.protocol.rest import API, REFUSALS
from readingroom.web.parameters import StrictQueryRoute
from readingroom.web.uploads import describe_upload_form, receive_upload

_UPLOAD = describe_upload_form(
    "The PDF.",
    version_label={"type": "string", "maxLength": 120},
    effective_from={"type": "string", "format": "date"},
    effective_to={"type": "string", "format": "date"},
    notes={"type": "string", "maxLength": 4000},
    required=("version_label", "effective_from"),
)


def make_routers(service: PolicyService, read_only: bool) -> tuple[APIRouter, ...]:
    """Return the REST surface of the base."""
    return (policy_router(service, read_only),)


def policy_router(service: PolicyService, read_only: bool) -> APIRouter:
    """The routes under /api/v1; without those that write, where nothing may be written."""
    router = APIRouter(
        prefix=API, tags=["policy"], responses=REFUSALS, route_class=StrictQueryRoute
    )
    registrar = Registrar(service)
    _add_reading(router, registrar)
    if not read_only:
        _add_policy_writing(router, registrar)
        _add_revision_writing(router, registrar, service)
    return router


def _add_reading(router: APIRouter, registrar: Registrar) -> None:
    @router.get("/policies")
    async def list_policies(
        category: PolicyCategory | None = None,
        source: Annotated[str | None, Query(max_length=80)] = None,
    ) -> PolicyIndex:
        """Every policy, or those of a category, or with this in their slug."""
        return await registrar.policies(category, source)

    @router.get("/policies/effective")
    async def effective_policies(date: str) -> EffectivePolicies:
        """What was in force on a day."""
        try:
            day = parse_day(date)
        except InvalidDate as error:
            raise InvalidEffectiveDate(error.message) from error
        return await registrar.effective(day)

    @router.get("/policies/{source}")
    async def get_policy(source: str) -> PolicyDetail:
        """A policy with its revisions, newest first."""
        return await registrar.policy(source)

    @router.get("/policies/{source}/revisions/{revision_id}")
    async def get_revision(source: str, revision_id: str) -> RevisionDetail:
        """All that is known of a revision."""
        return await registrar.revision(source, revision_id)

    @router.get("/policies/{source}/revisions/{revision_id}/status")
    async def get_revision_status(source: str, revision_id: str) -> RevisionProgress:
        """How far a revision's ingestion has come."""
        return await registrar.status(source, revision_id)


def _add_policy_writing(router: APIRouter, registrar: Registrar) -> None:
    @router.post("/policies", status_code=201)
    async def create_policy(new: NewPolicy) -> PolicyDetail:
        """Register a policy; revisions are added to it afterwards."""
        return await registrar.create_policy(new)

    @router.patch("/policies/{source}")
    async def change_policy(source: str, patch: PolicyPatch) -> PolicyDetail:
        """Change a policy's title, description or category."""
        return await registrar.amend_policy(source, patch)


def _add_revision_writing(router: APIRouter, registrar: Registrar, service: PolicyService) -> None:
    @router.post("/policies/{source}/revisions", status_code=202, openapi_extra=_UPLOAD)
    async def add_revision(source: str, request: Request) -> RevisionAccepted:
        """Add a revision with its PDF; it is ingested in the background."""
        await service.registry.policy(source)  # before a large file is read for nothing
        spool = service.ingestion.uploads / f"{uuid.uuid4().hex}.pdf"
        try:
            sent = await receive_upload(request, spool, LARGEST)
            if not sent.name.lower().endswith(".pdf"):
                raise UnsupportedFileType("The file's name does not end in .pdf")
            return await registrar.add_revision(source, _new_revision(sent.fields), spool)
        finally:
            await anyio.Path(spool).unlink(missing_ok=True)

    @router.patch("/policies/{source}/revisions/{revision_id}")
    async def change_revision(
        source: str, revision_id: str, patch: RevisionPatch
    ) -> RevisionDetail:
        """Change a revision's dates, label or notes; its neighbours stay as they are."""
        return await registrar.amend_revision(source, revision_id, patch)

    @router.delete("/policies/{source}/revisions/{revision_id}")
    async def delete_revision(source: str, revision_id: str) -> RevisionDeleted:
        """Delete a revision, its chunks and its file."""
        return await registrar.delete_revision(source, revision_id)

    @router.post("/policies/{source}/revisions/{revision_id}/reindex", status_code=202)
    async def reindex_revision(source: str, revision_id: str) -> ReindexAccepted:
        """Ingest a revision's file anew; a failed or stuck one gets another chance."""
        return await registrar.reindex(source, revision_id)


def _new_revision(fields: dict[str, str]) -> NewRevision:
    """Form fields are text: an empty one was left out, and a day is what JSON would hold."""
    try:
        given = {name: value for name, value in fields.items() if value}
        return NewRevision.model_validate_strings(given)
    except ValidationError as error:
        raise InvalidRequest.of(error) from error
