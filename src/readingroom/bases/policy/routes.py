"""The policy base over REST: create, change and list policies and revisions."""

import uuid
from typing import Annotated

import anyio
from fastapi import APIRouter, Query, Request
from pydantic import ValidationError

from readingroom.bases.policy.admin.service import PolicyAdmin
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
from readingroom.bases.policy.ingest.ingestion import MAX_FILE_BYTES
from readingroom.bases.policy.registry.records import PolicyCategory
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidDate, InvalidRequest
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.protocol.rest import API_PREFIX, ERROR_RESPONSES
from readingroom.web.parameters import StrictQueryRoute
from readingroom.web.uploads import describe_upload_form, receive_upload

_UPLOAD_FORM = describe_upload_form(
    "The PDF.",
    version_label={"type": "string", "maxLength": 120},
    effective_from={"type": "string", "format": "date"},
    effective_to={"type": "string", "format": "date"},
    notes={"type": "string", "maxLength": 4000},
    required=("version_label", "effective_from"),
)


def make_routers(service: PolicyService, read_only: bool) -> tuple[APIRouter, ...]:
    """Return the REST surface of the base."""
    return (make_policy_router(service, read_only),)


def make_policy_router(service: PolicyService, read_only: bool) -> APIRouter:
    """Return the routes under /api/v1; a read-only server has none that write."""
    router = APIRouter(
        prefix=API_PREFIX, tags=["policy"], responses=ERROR_RESPONSES, route_class=StrictQueryRoute
    )
    admin = PolicyAdmin(service)
    _add_reading_routes(router, admin)
    if not read_only:
        _add_policy_writing_routes(router, admin)
        _add_revision_writing_routes(router, admin, service)
    return router


def _add_reading_routes(router: APIRouter, admin: PolicyAdmin) -> None:
    @router.get("/policies")
    async def list_policies(
        category: PolicyCategory | None = None,
        source: Annotated[str | None, Query(max_length=80)] = None,
    ) -> PolicyIndex:
        """Every policy, or those of a category, or with this in their slug."""
        return await admin.list_policies(category, source)

    @router.get("/policies/effective")
    async def effective_policies(date: str) -> EffectivePolicies:
        """What was in force on a day."""
        try:
            day = parse_day(date)
        except InvalidDate as error:
            raise InvalidEffectiveDate(error.message) from error
        return await admin.list_effective(day)

    @router.get("/policies/{source}")
    async def get_policy(source: str) -> PolicyDetail:
        """A policy with its revisions, newest first."""
        return await admin.get_policy(source)

    @router.get("/policies/{source}/revisions/{revision_id}")
    async def get_revision(source: str, revision_id: str) -> RevisionDetail:
        """A revision with all its fields."""
        return await admin.get_revision(source, revision_id)

    @router.get("/policies/{source}/revisions/{revision_id}/status")
    async def get_revision_status(source: str, revision_id: str) -> RevisionProgress:
        """A revision's status and how much of its ingestion is done."""
        return await admin.get_progress(source, revision_id)


def _add_policy_writing_routes(router: APIRouter, admin: PolicyAdmin) -> None:
    @router.post("/policies", status_code=201)
    async def create_policy(new: NewPolicy) -> PolicyDetail:
        """Register a policy; revisions are added to it afterwards."""
        return await admin.create_policy(new)

    @router.patch("/policies/{source}")
    async def change_policy(source: str, patch: PolicyPatch) -> PolicyDetail:
        """Change a policy's title, description or category."""
        return await admin.update_policy_details(source, patch)


def _add_revision_writing_routes(
    router: APIRouter, admin: PolicyAdmin, service: PolicyService
) -> None:
    @router.post("/policies/{source}/revisions", status_code=202, openapi_extra=_UPLOAD_FORM)
    async def add_revision(source: str, request: Request) -> RevisionAccepted:
        """Add a revision with its PDF; it is ingested in the background."""
        # An unknown policy is refused before a large file is received.
        await service.registry.get_policy(source)
        spool = service.ingestion.uploads_folder / f"{uuid.uuid4().hex}.pdf"
        try:
            upload = await receive_upload(request, spool, MAX_FILE_BYTES)
            if not upload.file_name.lower().endswith(".pdf"):
                raise UnsupportedFileType(
                    "The file's name does not end in .pdf; only PDF files are accepted"
                )
            return await admin.add_revision(source, _parse_revision(upload.fields), spool)
        finally:
            await anyio.Path(spool).unlink(missing_ok=True)

    @router.patch("/policies/{source}/revisions/{revision_id}")
    async def change_revision(
        source: str, revision_id: str, patch: RevisionPatch
    ) -> RevisionDetail:
        """Change a revision's dates, label or notes; its neighbours stay as they are."""
        return await admin.amend_revision(source, revision_id, patch)

    @router.delete("/policies/{source}/revisions/{revision_id}")
    async def delete_revision(source: str, revision_id: str) -> RevisionDeleted:
        """Delete a revision, its chunks and its file."""
        return await admin.delete_revision(source, revision_id)

    @router.post("/policies/{source}/revisions/{revision_id}/reindex", status_code=202)
    async def reindex_revision(source: str, revision_id: str) -> ReindexAccepted:
        """Ingest a revision's file again, also when it had failed or is stuck."""
        return await admin.reindex(source, revision_id)


def _parse_revision(fields: dict[str, str]) -> NewRevision:
    """Parse form fields; an empty one counts as left out, as browsers send every field.

    Raises:
        InvalidRequest: a field is missing or malformed.
    """
    try:
        non_empty = {name: value for name, value in fields.items() if value}
        return NewRevision.model_validate_strings(non_empty)
    except ValidationError as error:
        raise InvalidRequest.from_validation_error(error) from error
