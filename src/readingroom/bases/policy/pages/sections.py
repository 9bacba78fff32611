"""Sections of a policy as pages show them: as a tree, and followed from revision to revision."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import RevisionDetail
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.errors import SectionNotFound
from readingroom.bases.policy.ids import format_section_id
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    DiffPart,
    ListedSection,
    SectionChange,
)
from readingroom.bases.policy.registry.records import RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.errors import InvalidArguments
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.protocol.search import make_record_page_path
from readingroom.web.templates import format_day, quote_for_url, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")


# --- the tree ---


@dataclass(slots=True)
class SectionNode:
    """A section, with those inside it."""

    ref: str
    title: str
    page: int
    href: str
    passage_count: int = 0
    children: "list[SectionNode]" = field(default_factory=list)


def build_section_tree(
    policy_slug: str,
    revision_id: str,
    chunks: Sequence[StoredChunk],
    listed_sections: Sequence[ListedSection],
) -> list[SectionNode]:
    """Return the sections in reading order, each inside the one that its passages name."""
    listed_sections_by_ref = {
        listed_section.section_ref: listed_section for listed_section in listed_sections
    }
    nodes_by_ref: dict[str, SectionNode] = {}
    root_nodes: list[SectionNode] = []
    for chunk in chunks:
        sibling_nodes = root_nodes
        # Of a broken path a section could be inside itself.
        refs_in_path = dict.fromkeys(filter(None, (*chunk.section_path, chunk.section_ref)))
        for section_ref in refs_in_path:
            if section_ref not in nodes_by_ref:
                listed_section = listed_sections_by_ref[section_ref]
                section_address = make_section_address(policy_slug, revision_id, section_ref)
                nodes_by_ref[section_ref] = SectionNode(
                    section_ref,
                    listed_section.section_title,
                    listed_section.page_number,
                    section_address,
                )
                sibling_nodes.append(nodes_by_ref[section_ref])
            sibling_nodes = nodes_by_ref[section_ref].children
        if chunk.section_ref in nodes_by_ref:
            nodes_by_ref[chunk.section_ref].passage_count += 1
    return root_nodes


# --- a section through its revisions ---


@dataclass(frozen=True, slots=True)
class SectionInRevision:
    """Where a section stands in one revision, and what became of it since the one before."""

    version_label: str
    period: str
    ref: str | None
    """Its reference there; None where the revision does not have it."""
    href: str | None
    change: str
    diff: Sequence[DiffPart] = ()


class SectionHistoryPages:
    """The page that follows one section through every revision of its policy."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)

    async def show_history(self, request: PageRequest) -> RenderedPage:
        """Return where a section stands in each revision, however it was renumbered.

        Raise InvalidArguments, PolicyNotFound, RevisionNotFound and SectionNotFound.
        """
        policy_slug, revision_id = (
            request.get_parameter("source"),
            request.get_parameter("revision_id"),
        )
        section_ref = request.get_parameter("section")
        if not section_ref:
            raise InvalidArguments([{"field": "section", "message": "name a section"}])
        policy = await self._admin.get_policy(policy_slug)
        start_revision = await self._admin.get_revision(policy_slug, revision_id)
        first_page_by_section = await self._service.find_section_first_pages(
            policy_slug, revision_id
        )
        if section_ref not in first_page_by_section:
            raise SectionNotFound(
                f"{policy_slug} ({start_revision.version_label}) has no {section_ref}"
            )
        eligible_revisions = [
            revision
            for revision in reversed(policy.revisions)
            if revision.status in (RevisionStatus.ACTIVE, RevisionStatus.SUPERSEDED)
        ]
        sections_oldest_first = await self._trace_section(
            eligible_revisions, revision_id, section_ref
        )
        page_title = (
            f"{policy_slug}, {section_ref} ({start_revision.version_label}) through its revisions"
        )
        body_html = _render(
            "history.html",
            policy=policy,
            start=start_revision,
            section_ref=section_ref,
            title=page_title,
            stands=list(reversed(sections_oldest_first)),
        )
        tool_example = None
        if len(eligible_revisions) > 1:
            day_arguments = {
                "from_date": eligible_revisions[0].effective_from.isoformat(),
                "to_date": eligible_revisions[-1].effective_from.isoformat(),
            }
            tool_example = ToolExample(
                "compare_policy_revisions",
                {"source": policy_slug, **day_arguments, "section_ref": section_ref},
            )
        return RenderedPage(
            page_title, body_html, data=sections_oldest_first, tool_example=tool_example
        )

    async def _trace_section(
        self, revisions: Sequence[RevisionDetail], revision_id: str, section_ref: str
    ) -> list[SectionInRevision]:
        """Return the stands in all revisions, the oldest first; the search goes both ways."""
        revision_ids = [revision.revision_id for revision in revisions]
        start_index = revision_ids.index(revision_id) if revision_id in revision_ids else -1
        if start_index < 0:
            return []
        ref_by_revision_id: dict[str, str | None] = {revision_id: section_ref}
        changes_by_revision_id: dict[str, SectionChange | None] = {}
        comparison_steps = [
            *(
                (True, adjacent_revisions)
                for adjacent_revisions in pairwise(reversed(revisions[: start_index + 1]))
            ),
            *(
                (False, adjacent_revisions)
                for adjacent_revisions in pairwise(revisions[start_index:])
            ),
        ]
        for is_backwards, (known_revision, next_revision) in comparison_steps:
            known_ref = ref_by_revision_id[known_revision.revision_id]
            older_revision, newer_revision = (
                (next_revision, known_revision) if is_backwards else (known_revision, next_revision)
            )
            section_change = await self._find_section_change(
                older_revision, newer_revision, known_ref, is_ref_of_newer=is_backwards
            )
            changes_by_revision_id[newer_revision.revision_id] = section_change
            if section_change is None:
                next_ref = known_ref
            else:
                next_ref = (
                    section_change.from_section_ref
                    if is_backwards
                    else section_change.to_section_ref
                )
            ref_by_revision_id[next_revision.revision_id] = next_ref
        return [
            _make_section_in_revision(
                revision,
                ref_by_revision_id[revision.revision_id],
                changes_by_revision_id.get(revision.revision_id),
                is_first_revision=revision_index == 0,
            )
            for revision_index, revision in enumerate(revisions)
        ]

    async def _find_section_change(
        self,
        older_revision: RevisionDetail,
        newer_revision: RevisionDetail,
        section_ref: str | None,
        is_ref_of_newer: bool,
    ) -> SectionChange | None:
        """Return what became of a section between two revisions; None if nothing did.

        The reference is that in the newer one, or that in the older one.
        """
        if section_ref is None:
            return None
        arguments = ComparePolicyRevisions(
            source=older_revision.source,
            from_date=older_revision.effective_from.isoformat(),
            to_date=newer_revision.effective_from.isoformat(),
            section_ref=section_ref,
        )
        revision_diff = await self._service.compare_revisions(arguments)
        for section_change in revision_diff.changes:
            if section_ref == (
                section_change.to_section_ref
                if is_ref_of_newer
                else section_change.from_section_ref
            ):
                return section_change
        return None


def _make_section_in_revision(
    revision: RevisionDetail,
    section_ref: str | None,
    section_change: SectionChange | None,
    is_first_revision: bool,
) -> SectionInRevision:
    section_address = None
    if section_ref:
        section_address = make_section_address(revision.source, revision.revision_id, section_ref)
    return SectionInRevision(
        revision.version_label,
        _format_period(revision.effective_from, revision.effective_to),
        section_ref,
        section_address,
        _describe_change(section_ref, section_change, is_first_revision),
        section_change.diff if section_change else (),
    )


def _describe_change(
    section_ref: str | None, section_change: SectionChange | None, is_first_revision: bool
) -> str:
    if section_change is None:
        if section_ref is None:
            return "not there"
        return "the first that is held here" if is_first_revision else "unchanged"
    if section_change.change == "removed":
        return "taken out"
    if section_change.change == "added":
        return "new"
    is_renumbered = section_change.from_section_ref != section_change.to_section_ref
    former_ref_text = (
        f"before: {section_change.from_section_ref}" if is_renumbered else "the same reference"
    )
    return f"{'reworded' if section_change.diff else 'the same words'}, {former_ref_text}"


def _format_period(first_day: dt.date, last_day: dt.date | None) -> str:
    return f"{format_day(first_day)} to {format_day(last_day) or 'now'}"


def make_history_address(policy_slug: str, revision_id: str, section_ref: str) -> str:
    """Return the address of the page that follows a section."""
    return f"/policies/{policy_slug}/{revision_id}/history?section={quote_for_url(section_ref)}"


def make_section_address(policy_slug: str, revision_id: str, section_ref: str) -> str:
    """Return the address of the page that shows a section."""
    return make_record_page_path(format_section_id(policy_slug, revision_id, section_ref))
