"""Forms that change policies: a new one, a revision with its file, its days, reading, removal."""

import contextlib
import filecmp
import uuid
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from readingroom.bases.policy.admin.pictures import PolicyPictures
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import (
    NewPolicy,
    NewRevision,
    PolicyDetail,
    PolicyPatch,
    RevisionDetail,
    RevisionPatch,
)
from readingroom.bases.policy.errors import RevisionOverlap
from readingroom.bases.policy.ingest.files import check_revision_file_name, choose_file_extension
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.pages import BasePage, PageAnswer, PageRequest, RenderedPage, SeeOther
from readingroom.web.forms import read_changed_values
from readingroom.web.templates import render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")
_MAX_UPLOAD_BYTES = 256 * 2**20
_POLICY_FORM_FIELDS = (
    "title",
    "description",
    "category",
    "local_authority",
    "area",
    "successor_authorities",
)
_REVISION_FORM_FIELDS = ("version_label", "effective_from", "effective_to", "notes")


ShowPage = Callable[[PageRequest], Awaitable[PageAnswer]]


class PolicyForms:
    """What editors do with policies in the console."""

    def __init__(
        self,
        policy_service: PolicyService,
        show_policies: ShowPage,
        show_policy: ShowPage,
        show_revision: ShowPage,
    ) -> None:
        """The pages that are given have the forms, and show them again when they are refused."""
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)
        self._pictures = PolicyPictures(policy_service)
        self._show_policies = show_policies
        self._show_policy = show_policy
        self._show_revision = show_revision

    def make_pages(self) -> list[BasePage]:
        """Return the pages that the forms are sent to."""
        revision_page_path = "/policies/{source}/{revision_id}"
        return [
            BasePage(
                "/policies/add",
                self.add_policy,
                "POST",
                "editor",
                render_form_page=self._show_policies,
            ),
            BasePage(
                "/policies/{source}/add",
                self.add_revision,
                "POST",
                "editor",
                render_form_page=self._show_policy,
                max_upload_bytes=_MAX_UPLOAD_BYTES,
            ),
            BasePage(
                "/policies/{source}/change",
                self.change_policy,
                "POST",
                "editor",
                render_form_page=self._show_policy,
            ),
            BasePage("/policies/{source}/remove", self.ask_policy_removal, "GET", "editor"),
            BasePage("/policies/{source}/remove", self.remove_policy, "POST", "editor"),
            BasePage(
                f"{revision_page_path}/change",
                self.change_revision,
                "POST",
                "editor",
                render_form_page=self._show_revision,
            ),
            BasePage(f"{revision_page_path}/reindex", self.reindex_revision, "POST", "editor"),
            BasePage(f"{revision_page_path}/remove", self.ask_revision_removal, "GET", "editor"),
            BasePage(f"{revision_page_path}/remove", self.remove_revision, "POST", "editor"),
        ]

    async def add_policy(self, request: PageRequest) -> SeeOther:
        """Register a policy."""
        new_policy = validate_model(
            NewPolicy, _read_filled_fields(request, ("source", *_POLICY_FORM_FIELDS))
        )
        policy = await self._admin.create_policy(new_policy)
        return SeeOther(f"/policies/{policy.source}")

    async def change_policy(self, request: PageRequest) -> SeeOther:
        """Change what a policy is called, what it is, or whose it is.

        Raise `RecordChanged` where somebody else changed the same meanwhile.
        """
        policy_slug = request.get_parameter("source")
        policy = await self._admin.get_policy(policy_slug)
        entered_fields = read_changed_values(request.parameters, make_policy_form_values(policy))
        if not entered_fields.get("title", policy.title):
            raise InvalidArguments([{"field": "title", "message": "a policy needs a title"}])
        # An empty field is a value: no description, and no authority.
        changed_values = {
            field_name: entered_text or None for field_name, entered_text in entered_fields.items()
        }
        if changed_values:
            await self._admin.update_policy_details(
                policy_slug, validate_model(PolicyPatch, changed_values)
            )
        return SeeOther(f"/policies/{policy_slug}")

    async def ask_policy_removal(self, request: PageRequest) -> RenderedPage:
        """Return the page that asks once more before a policy is removed."""
        policy = await self._admin.get_policy(request.get_parameter("source"))
        body_html = _render(
            "remove_policy.html",
            policy=policy,
            passage_count=sum(revision.chunk_count for revision in policy.revisions),
            request=request,
        )
        return RenderedPage(f"Remove {policy.title}?", body_html)

    async def remove_policy(self, request: PageRequest) -> SeeOther:
        """Remove a policy with all its revisions. Raise PolicyNotFound and RevisionBusy."""
        await self._admin.delete_policy(request.get_parameter("source"))
        return SeeOther("/policies")

    async def add_revision(self, request: PageRequest) -> SeeOther:
        """Register a revision and have its file read in the background.

        A file that is there already for these days leads to its revision, and changes nothing.
        """
        field_names = ("version_label", "effective_from", "effective_to", "notes", "stage")
        new_revision = validate_model(NewRevision, _read_filled_fields(request, field_names))
        if not request.files:
            raise InvalidArguments([{"field": "file", "message": "choose a file"}])
        policy_slug, sent_file = request.get_parameter("source"), request.files[0]
        check_revision_file_name(sent_file.file_name)
        file_extension = choose_file_extension(sent_file.file_name)
        spool_path = (
            self._service.ingestion.files.uploads_folder / f"{uuid.uuid4().hex}{file_extension}"
        )
        await anyio.to_thread.run_sync(_move_file, sent_file.path, spool_path)
        try:
            accepted_revision = await self._admin.add_revision(
                policy_slug, new_revision, spool_path, file_extension
            )
        except RevisionOverlap:
            revision_of_file = await self._find_revision_of_file(policy_slug, spool_path)
            if revision_of_file is None:
                raise
            return SeeOther(f"/policies/{policy_slug}/{revision_of_file.revision_id}?already=there")
        finally:
            await anyio.Path(spool_path).unlink(missing_ok=True)
        return SeeOther(f"/policies/{policy_slug}/{accepted_revision.revision_id}")

    async def _find_revision_of_file(
        self, policy_slug: str, spool_path: Path
    ) -> RevisionDetail | None:
        """Return the revision whose file is the same, byte for byte; None if no file is."""
        policy = await self._admin.get_policy(policy_slug)
        sent_file_size = (await anyio.Path(spool_path).stat()).st_size
        for revision in policy.revisions:
            if (
                revision.file_size_bytes != sent_file_size
                or revision.status == RevisionStatus.FAILED
            ):
                continue
            with contextlib.suppress(FileNotFound):
                kept_file_path = await self._pictures.get_file_path(
                    policy_slug, revision.revision_id
                )
                if await anyio.to_thread.run_sync(filecmp.cmp, kept_file_path, spool_path, False):
                    return revision
        return None

    async def change_revision(self, request: PageRequest) -> SeeOther:
        """Change the name, the days or the notes of a revision.

        Raise RevisionOverlap, and RecordChanged where somebody else changed the same meanwhile.
        """
        policy_slug, revision_id = (
            request.get_parameter("source"),
            request.get_parameter("revision_id"),
        )
        revision = await self._admin.get_revision(policy_slug, revision_id)
        entered_fields = read_changed_values(
            request.parameters, make_revision_form_values(revision)
        )
        # An empty field is a value: no last day, and no notes.
        changed_values = {
            field_name: entered_text or None for field_name, entered_text in entered_fields.items()
        }
        if changed_values:
            await self._admin.amend_revision(
                policy_slug, revision_id, validate_model(RevisionPatch, changed_values)
            )
        return SeeOther(f"/policies/{policy_slug}/{revision_id}")

    async def reindex_revision(self, request: PageRequest) -> SeeOther:
        """Have a revision's file read again."""
        policy_slug, revision_id = (
            request.get_parameter("source"),
            request.get_parameter("revision_id"),
        )
        await self._admin.reindex_revision(policy_slug, revision_id)
        return SeeOther(f"/policies/{policy_slug}/{revision_id}")

    async def ask_revision_removal(self, request: PageRequest) -> RenderedPage:
        """Return the page that asks once more before a revision is removed."""
        revision = await self._admin.get_revision(
            request.get_parameter("source"), request.get_parameter("revision_id")
        )
        body_html = _render("remove_revision.html", revision=revision, request=request)
        return RenderedPage(f"Remove {revision.source}, {revision.version_label}?", body_html)

    async def remove_revision(self, request: PageRequest) -> SeeOther:
        """Remove a revision."""
        policy_slug = request.get_parameter("source")
        await self._admin.delete_revision(policy_slug, request.get_parameter("revision_id"))
        return SeeOther(f"/policies/{policy_slug}")


def make_policy_form_values(policy: PolicyDetail) -> dict[str, Any]:
    """Return the fields of a policy that its form changes."""
    return policy.model_dump(mode="json", include=set(_POLICY_FORM_FIELDS))


def make_revision_form_values(revision: RevisionDetail) -> dict[str, Any]:
    """Return the fields of a revision that its form changes."""
    return revision.model_dump(mode="json", include=set(_REVISION_FORM_FIELDS))


def _move_file(sent_file_path: Path, spool_path: Path) -> None:
    spool_path.parent.mkdir(parents=True, exist_ok=True)
    sent_file_path.rename(spool_path)


def _read_filled_fields(request: PageRequest, field_names: tuple[str, ...]) -> dict[str, str]:
    """Return the fields that were filled in."""
    return {
        field_name: field_value
        for field_name in field_names
        if (field_value := request.get_parameter(field_name))
    }
