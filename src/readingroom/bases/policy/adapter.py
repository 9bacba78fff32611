"""The policy base in searches, fetches and resources over all bases."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import unquote

from readingroom.bases.policy.ids import (
    format_passage_id,
    format_section_id,
    make_resource_path,
    parse_section_id,
)
from readingroom.bases.policy.models import (
    GetPolicySection,
    ListedRevision,
    ListPolicyRevisions,
    ListPolicySections,
    PolicyHit,
    SearchPolicy,
)
from readingroom.bases.policy.registry.records import (
    IN_FORCE_STATUSES,
    format_revision,
    format_section_name,
)
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import find_past_day
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.resources import ListedResource, ResourceTemplate
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    InForce,
    PageLinks,
    SearchAdapter,
    SearchRequest,
    SearchScope,
    UnreadRevision,
    is_heading_only,
    make_desk_record,
)
from readingroom.protocol.tool import ToolContext

_SPARE_HIT_COUNT = 10  # hits asked for beyond the limit, to replace headings that are skipped
_REVISION_PATH_PATTERN = re.compile(r"policy/([^/]+)/([^/]+)")
_SECTION_PATH_PATTERN = re.compile(r"policy/([^/]+)/([^/]+)/([^/]+)")


def _make_search_arguments(
    search_request: SearchRequest, asked_day_text: str, result_count: int = 1
) -> SearchPolicy:
    return SearchPolicy(
        query=search_request.query,
        effective_date=asked_day_text,
        sources=list(search_request.sources) or None,
        local_authority=search_request.local_authority,
        n_results=result_count,
        mode="hybrid",
    )


class PolicyAdapter(SearchAdapter):
    """Policies as they were in force on a day."""

    base_name: ClassVar[str] = "policy"
    question_words_package: ClassVar[str] = __package__
    role = "policy"
    id_forms = ("policy: (policy:NPPF@rev_NPPF_2024_12#Para 116)",)
    templates = (
        ResourceTemplate(
            "policy/{source}/{revision_id}",
            "policy_revision",
            "A revision of a policy",
            "When it was in force, and its sections.",
        ),
        ResourceTemplate(
            "policy/{source}/{revision_id}/{section_ref}",
            "policy_section",
            "A section of a policy",
            "The whole text of one section, such as Para 116.",
        ),
    )

    def __init__(self, policy_service: PolicyService, page_links: PageLinks) -> None:
        self._service = policy_service
        self._page_links = page_links

    async def search(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> list[DeskHit]:
        hits_by_id: dict[str, PolicyHit] = {}
        for asked_day_text in self._choose_days(search_request):
            arguments = _make_search_arguments(
                search_request, asked_day_text, search_request.limit + _SPARE_HIT_COUNT
            )
            hits_page = await self._service.search(arguments, search_request.address)
            hits_with_text = [
                hit
                for hit in hits_page.results
                if hit.exact_reference or not is_heading_only(hit.text)
            ]
            hits_by_id |= {hit.id: hit for hit in hits_with_text[: search_request.limit]}
        return [self._to_desk_hit(hit) for hit in hits_by_id.values()]

    def _choose_days(self, search_request: SearchRequest) -> list[str]:
        """Return the day that was asked for; else today, and a past day that the query names."""
        if search_request.day is not None:
            return [search_request.day]
        today = self._service.today
        past_day = find_past_day(search_request.query, today)
        return [asked_day.isoformat() for asked_day in (past_day, today) if asked_day is not None]

    async def list_sources(self) -> Sequence[str]:
        return [policy.source for policy in (await self._service.list_policies()).policies]

    async def find_source(self, source_name: str) -> str | None:
        slug_by_folded_slug = {
            policy_slug.casefold(): policy_slug for policy_slug in await self.list_sources()
        }
        return slug_by_folded_slug.get(source_name.casefold())

    async def build_search_scope(self, search_request: SearchRequest) -> SearchScope:
        asked_days = self._choose_days(search_request)
        arguments = _make_search_arguments(search_request, asked_days[-1])
        policy_scope = await self._service.resolve_scope(arguments, search_request.address)
        return SearchScope(
            tuple(format_revision(revision) for revision in policy_scope.revisions),
            tuple(
                (policy_exclusion.source, policy_exclusion.reason)
                for policy_exclusion in policy_scope.exclusions
            ),
        )

    async def list_unread_revisions(self, search_request: SearchRequest) -> list[UnreadRevision]:
        policy_scopes = [
            await self._service.resolve_scope(
                _make_search_arguments(search_request, asked_day_text), search_request.address
            )
            for asked_day_text in self._choose_days(search_request)
        ]
        unread_revisions_by_key = {
            (unread_revision.source, unread_revision.revision_id): unread_revision
            for policy_scope in policy_scopes
            for unread_revision in policy_scope.unread_revisions
        }
        return [*unread_revisions_by_key.values()]

    async def fetch(self, id: str, offset: int, tool_context: ToolContext) -> DeskRecord:
        section_id_parts = parse_section_id(id)
        if section_id_parts is None:
            passage = await self._service.get_passage(id.removeprefix("policy:"))
            section_fields = passage.model_dump(
                mode="json", exclude={"text", "relevance_score", "id"}
            )
            unread_revisions = await self._service.list_unread_successors(
                passage.source, passage.revision_id
            )
            section_fields["unread_revisions"] = [
                unread_revision.model_dump(mode="json") for unread_revision in unread_revisions
            ]
            return self._make_section_record(
                passage.id, passage.citation, passage.text, section_fields, offset
            )
        policy_slug, revision_id, section_ref = section_id_parts
        section_answer = await self._service.get_section(
            GetPolicySection(source=policy_slug, section_ref=section_ref, revision_id=revision_id)
        )
        section_fields = section_answer.model_dump(mode="json", exclude={"text", "status", "id"})
        return self._make_section_record(
            section_answer.id, section_answer.citation, section_answer.text, section_fields, offset
        )

    async def list_resources(self) -> list[ListedResource]:
        return [
            ListedResource(
                make_resource_path(policy.source, revision.revision_id),
                revision.revision_id,
                f"{policy.title} ({revision.version_label})",
                f"In force from {revision.effective_from}.",
            )
            for policy in (await self._service.list_policies()).policies
            for revision in await self._get_revisions(policy.source)
            if revision.status in IN_FORCE_STATUSES
        ]

    def parse_resource_path(self, resource_path: str) -> str | None:
        path_match = _SECTION_PATH_PATTERN.fullmatch(resource_path)
        return format_section_id(*map(unquote, path_match.groups())) if path_match else None

    async def read_resource(self, resource_path: str) -> str | None:
        path_match = _REVISION_PATH_PATTERN.fullmatch(resource_path)
        return (
            await self._render_outline(unquote(path_match[1]), unquote(path_match[2]))
            if path_match
            else None
        )

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> Sequence[str]:
        match argument_name, dict(earlier_arguments):
            case "source", _:
                return [policy.source for policy in (await self._service.list_policies()).policies]
            case "revision_id", {"source": source}:
                return [revision.revision_id for revision in await self._get_revisions(source)]
            case "section_ref", {"source": source, "revision_id": revision_id}:
                return [*await self._service.find_section_first_pages(source, revision_id)]
        return ()

    async def _get_revisions(self, policy_slug: str) -> list[ListedRevision]:
        return (
            await self._service.list_revisions(ListPolicyRevisions(source=policy_slug))
        ).revisions

    async def _render_outline(self, policy_slug: str, revision_id: str) -> str:
        """Return the days a revision was in force and its sections with their pages."""
        revisions_by_id = {
            revision.revision_id: revision for revision in await self._get_revisions(policy_slug)
        }
        if revision_id not in revisions_by_id:
            raise RecordNotFound(
                f"{policy_slug} has no revision {revision_id!r}", revisions=[*revisions_by_id]
            )
        revision = revisions_by_id[revision_id]
        until_text = f"to {revision.effective_to}" if revision.effective_to else "and still"
        arguments = ListPolicySections(source=policy_slug, revision_id=revision_id)
        listed_sections = (await self._service.list_section_titles(arguments)).sections
        outline_lines = (
            f"{format_section_name(listed_section.section_ref, listed_section.section_title)}, "
            f"p. {listed_section.page_number}"
            for listed_section in listed_sections
        )
        outline_heading = (
            f"{policy_slug} ({revision.version_label}), in force from {revision.effective_from}"
        )
        return "\n".join([f"{outline_heading} {until_text}", "", *outline_lines])

    def _make_section_record(
        self,
        section_id: str,
        citation: str,
        section_text: str,
        section_fields: dict[str, Any],
        text_offset: int,
    ) -> DeskRecord:
        return make_desk_record(
            self.base_name,
            section_id,
            title=citation,
            text=section_text,
            url=self._page_links.make_record_url(section_id),
            citation=citation,
            source=section_fields["source"],
            details=section_fields,
            offset=text_offset,
        )

    def _to_desk_hit(self, hit: PolicyHit) -> DeskHit:
        url = self._page_links.make_record_url(hit.id)
        return DeskHit(
            id=hit.id,
            title=f"{hit.source} ({hit.version_label}), "
            + (format_section_name(hit.section_ref, hit.section_title) or "front matter"),
            url=url,
            source=hit.source,
            snippet=hit.text,
            score=hit.score,
            published_at=hit.effective_from.isoformat(),
            citation=Citation(citation_string=hit.citation, url=url),
            base=self.base_name,
            parts=hit.parts,
            exact_reference=hit.exact_reference,
            in_force=InForce.model_validate(hit, from_attributes=True),
            joined_ids=[format_passage_id(chunk_id) for chunk_id in hit.joined_chunk_ids],
        )
