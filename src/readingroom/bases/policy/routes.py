"""The policy base over REST: create, change and list policies and revisions."""

import uuid
from typing import Annotated, Any, TypeVar, get_args

import anyio
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from readingroom.bases.policy.admin.pictures import PolicyPictures
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import (
    EffectivePolicies,
    NewPolicy,
    NewRevision,
    PolicyDeleted,
    PolicyDetail,
    PolicyIndex,
    PolicyPatch,
    ReindexAccepted,
    RevisionAccepted,
    RevisionDeleted,
    RevisionDetail,
    RevisionPageMarks,
    RevisionPatch,
    RevisionProgress,
)
from readingroom.bases.policy.errors import InvalidEffectiveDate
from readingroom.bases.policy.ingest.files import MAX_FILE_BYTES, choose_file_extension
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    ListPolicySections,
    PolicyHits,
    QuoteCheck,
    RevisionDiff,
    SearchPolicy,
    SectionList,
    SectionText,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.registry.records import PlanStage, PolicyCategory
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidDate, InvalidRequest, validate_model
from readingroom.core.modes import Mode
from readingroom.ingest.errors import UnsupportedFileType
from readingroom.ingest.read.formats.detect import POLICY_EXTENSIONS
from readingroom.protocol.resources import PageMark, Passage
from readingroom.protocol.rest import API_PATH_PREFIX, ERROR_RESPONSES_BY_STATUS
from readingroom.protocol.tool import ToolArguments
from readingroom.web.parameters import StrictQueryRoute
from readingroom.web.uploads import make_upload_form_openapi, receive_upload

_ToolArguments = TypeVar("_ToolArguments", bound=ToolArguments)
_PageNumberInPath = Annotated[int, Path(ge=1, le=100_000)]

_UPLOAD_FORM_OPENAPI = make_upload_form_openapi(
    "The PDF, or a .docx, .md or .html.",
    version_label={"type": "string", "maxLength": 120},
    effective_from={"type": "string", "format": "date"},
    effective_to={"type": "string", "format": "date"},
    notes={"type": "string", "maxLength": 4000},
    stage={"type": "string", "enum": [*get_args(PlanStage)]},
    required_fields=("version_label", "effective_from"),
)


def make_routers(policy_service: PolicyService, read_only: bool) -> tuple[APIRouter, ...]:
    """Return the REST surface of the base."""
    return (make_policy_router(policy_service, read_only),)


def make_policy_router(policy_service: PolicyService, read_only: bool) -> APIRouter:
    """Return the routes under /api/v1; a read-only server has none that write."""
    router = APIRouter(
        prefix=API_PATH_PREFIX,
        tags=["policy"],
        responses=ERROR_RESPONSES_BY_STATUS,
        route_class=StrictQueryRoute,
    )
    policy_admin = PolicyAdmin(policy_service)
    # Searches first: their addresses would be taken for the slug of a policy.
    _add_text_routes(router, policy_service)
    _add_registry_routes(router, policy_admin)
    _add_page_routes(router, policy_admin, policy_service)
    if not read_only:
        _add_policy_writing_routes(router, policy_admin)
        _add_revision_writing_routes(router, policy_admin, policy_service)
    return router


def _add_text_routes(router: APIRouter, policy_service: PolicyService) -> None:
    @router.get("/policies/search")
    async def search_policies(
        query: Annotated[str, Query(min_length=1, max_length=2000)],
        source: Annotated[list[str] | None, Query(max_length=100)] = None,
        effective_date: str | None = None,
        mode: Mode = "hybrid",
        n_results: Annotated[int, Query(ge=1, le=100)] = 10,
        local_authority: Annotated[str | None, Query(max_length=200)] = None,
        include_emerging: bool = False,
        cursor: Annotated[str | None, Query(max_length=200)] = None,
    ) -> PolicyHits:
        """Passages of policies on a topic, each with its citation."""
        arguments = _validate_arguments(
            SearchPolicy,
            query=query,
            sources=source,
            effective_date=effective_date,
            mode=mode,
            n_results=n_results,
            local_authority=local_authority,
            include_emerging=include_emerging,
            cursor=cursor,
        )
        return await policy_service.search(arguments)

    @router.get("/policies/{source}/sections")
    async def list_sections(
        source: str, revision_id: str | None = None, date: str | None = None
    ) -> SectionList:
        """The sections of a revision with their titles and pages."""
        arguments = _validate_arguments(
            ListPolicySections, source=source, revision_id=revision_id, date=date
        )
        return await policy_service.list_section_titles(arguments)

    @router.get("/policies/{source}/section")
    async def get_section(
        source: str, ref: str, revision_id: str | None = None, date: str | None = None
    ) -> SectionText:
        """The whole text of a section."""
        arguments = _validate_arguments(
            GetPolicySection, source=source, section_ref=ref, revision_id=revision_id, date=date
        )
        return await policy_service.get_section(arguments)

    @router.get("/policies/{source}/compare")
    async def compare_revisions(
        source: str,
        from_date: str,
        to_date: str,
        section_ref: str | None = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
        cursor: Annotated[str | None, Query(max_length=200)] = None,
    ) -> RevisionDiff:
        """What changed between two days."""
        arguments = _validate_arguments(
            ComparePolicyRevisions,
            source=source,
            from_date=from_date,
            to_date=to_date,
            section_ref=section_ref,
            limit=limit,
            cursor=cursor,
        )
        return await policy_service.compare_revisions(arguments)

    @router.get("/policies/{source}/verify")
    async def verify_quote(
        source: str, quote: Annotated[str, Query(max_length=4000)], date: str
    ) -> QuoteCheck:
        """Whether a policy says these words on a day."""
        return await policy_service.verify_quote(
            _validate_arguments(VerifyPolicyQuote, source=source, quote=quote, date=date)
        )


def _add_registry_routes(router: APIRouter, policy_admin: PolicyAdmin) -> None:
    @router.get("/policies")
    async def list_policies(
        category: PolicyCategory | None = None,
        source: Annotated[str | None, Query(max_length=80)] = None,
    ) -> PolicyIndex:
        """Every policy, or those of a category, or with this in their slug."""
        return await policy_admin.list_policies(category, source)

    @router.get("/policies/effective")
    async def effective_policies(date: str) -> EffectivePolicies:
        """What was in force on a day."""
        try:
            asked_day = parse_day(date)
        except InvalidDate as error:
            raise InvalidEffectiveDate(error.message) from error
        return await policy_admin.list_effective(asked_day)

    @router.get("/policies/{source}")
    async def get_policy(source: str) -> PolicyDetail:
        """A policy with its revisions, newest first."""
        return await policy_admin.get_policy(source)

    @router.get("/policies/{source}/revisions/{revision_id}")
    async def get_revision(source: str, revision_id: str) -> RevisionDetail:
        """A revision with all its fields."""
        return await policy_admin.get_revision(source, revision_id)

    @router.get("/policies/{source}/revisions/{revision_id}/status")
    async def get_revision_status(source: str, revision_id: str) -> RevisionProgress:
        """A revision's status and how much of its ingestion is done."""
        return await policy_admin.get_progress(source, revision_id)


def _add_page_routes(
    router: APIRouter, policy_admin: PolicyAdmin, policy_service: PolicyService
) -> None:
    policy_pictures = PolicyPictures(policy_service)

    @router.get(
        "/policies/{source}/revisions/{revision_id}/pages/{page}.webp",
        response_class=Response,
        responses={200: {"content": {"image/webp": {}}, "description": "The page."}},
    )
    async def get_page_picture(
        source: str,
        revision_id: str,
        page: _PageNumberInPath,
        dpi: Annotated[int, Query(ge=36, le=300)] = 110,
    ) -> Response:
        """A page of a revision as a picture without loss."""
        # The names become a path of a file, so only those of a registered revision are used.
        revision = await policy_admin.get_revision(source, revision_id)
        webp_bytes = await policy_pictures.draw_page(
            revision.source, revision.revision_id, page, dpi
        )
        return Response(webp_bytes, media_type="image/webp")

    @router.get("/policies/{source}/revisions/{revision_id}/pages/{page}/marks")
    async def get_marks(
        source: str, revision_id: str, page: _PageNumberInPath, passage: Annotated[Passage, Query()]
    ) -> RevisionPageMarks:
        """Where a passage stands on a page, as rectangles to draw over its picture."""
        revision = await policy_admin.get_revision(source, revision_id)
        passage_rectangles = await policy_pictures.locate_passage(
            revision.source, revision.revision_id, page, passage
        )
        return RevisionPageMarks(
            source=revision.source,
            revision_id=revision.revision_id,
            page=page,
            marks=[
                PageMark.model_validate(passage_rectangle, from_attributes=True)
                for passage_rectangle in passage_rectangles
            ],
        )


def _add_policy_writing_routes(router: APIRouter, policy_admin: PolicyAdmin) -> None:
    @router.post("/policies", status_code=201)
    async def create_policy(new_policy: NewPolicy) -> PolicyDetail:
        """Register a policy; revisions are added to it afterwards."""
        return await policy_admin.create_policy(new_policy)

    @router.patch("/policies/{source}")
    async def change_policy(source: str, patch: PolicyPatch) -> PolicyDetail:
        """Change a policy's title, description or category."""
        return await policy_admin.update_policy_details(source, patch)

    @router.delete("/policies/{source}")
    async def delete_policy(
        source: str,
        confirm: Annotated[str, Query(max_length=80, description="The slug once more.")],
    ) -> PolicyDeleted:
        """Delete a policy with all its revisions, their chunks and their files."""
        if confirm != source:
            raise InvalidRequest(
                [{"field": "confirm", "message": "must be the slug of the policy to delete"}]
            )
        return await policy_admin.delete_policy(source)


def _add_revision_writing_routes(
    router: APIRouter, policy_admin: PolicyAdmin, policy_service: PolicyService
) -> None:
    @router.post(
        "/policies/{source}/revisions", status_code=202, openapi_extra=_UPLOAD_FORM_OPENAPI
    )
    async def add_revision(source: str, request: Request) -> RevisionAccepted:
        """Add a revision with its file; it is ingested in the background."""
        # An unknown policy is refused before a large file is received.
        await policy_service.registry.get_policy(source)
        spool_path = policy_service.ingestion.files.uploads_folder / f"{uuid.uuid4().hex}.pdf"
        try:
            received_upload = await receive_upload(request, spool_path, MAX_FILE_BYTES)
            if not received_upload.file_name.lower().endswith(POLICY_EXTENSIONS):
                raise UnsupportedFileType(
                    "The file's name does not end in .pdf; only PDF files are accepted, and texts "
                    f"with headings: {', '.join(POLICY_EXTENSIONS)}"
                )
            new_revision = _parse_new_revision(received_upload.fields)
            file_extension = choose_file_extension(received_upload.file_name)
            return await policy_admin.add_revision(source, new_revision, spool_path, file_extension)
        finally:
            await anyio.Path(spool_path).unlink(missing_ok=True)

    @router.patch("/policies/{source}/revisions/{revision_id}")
    async def change_revision(
        source: str, revision_id: str, patch: RevisionPatch
    ) -> RevisionDetail:
        """Change a revision's dates, label or notes; its neighbours stay as they are."""
        return await policy_admin.amend_revision(source, revision_id, patch)

    @router.delete("/policies/{source}/revisions/{revision_id}")
    async def delete_revision(source: str, revision_id: str) -> RevisionDeleted:
        """Delete a revision, its chunks and its file."""
        return await policy_admin.delete_revision(source, revision_id)

    @router.post("/policies/{source}/revisions/{revision_id}/reindex", status_code=202)
    async def reindex_revision(source: str, revision_id: str) -> ReindexAccepted:
        """Ingest a revision's file again, also when it had failed or is stuck."""
        return await policy_admin.reindex_revision(source, revision_id)


def _validate_arguments(
    question_class: type[_ToolArguments], **argument_values: Any
) -> _ToolArguments:
    """Return the question that a request asks; raise `InvalidRequest`."""
    return validate_model(question_class, argument_values, InvalidRequest)


def _parse_new_revision(form_fields: dict[str, str]) -> NewRevision:
    """Parse form fields; an empty one counts as left out, as browsers send every field.

    Raises:
        InvalidRequest: a field is missing or malformed.
    """
    try:
        non_empty_fields = {
            field_name: field_value
            for field_name, field_value in form_fields.items()
            if field_value
        }
        return NewRevision.model_validate_strings(non_empty_fields)
    except ValidationError as error:
        raise InvalidRequest.from_validation_error(error) from error
