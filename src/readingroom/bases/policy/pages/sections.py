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
from readingroom.protocol.search import make_read_path
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
    source: str,
    revision_id: str,
    chunks: Sequence[StoredChunk],
    listed_sections: Sequence[ListedSection],
) -> list[SectionNode]:
    """Return the sections in reading order, each inside the one that its passages name."""
    listed = {section.section_ref: section for section in listed_sections}
    nodes: dict[str, SectionNode] = {}
    roots: list[SectionNode] = []
    for chunk in chunks:
        siblings = roots
        # Of a broken path a section could be inside itself.
        path = dict.fromkeys(filter(None, (*chunk.section_path, chunk.section_ref)))
        for ref in path:
            if ref not in nodes:
                section = listed[ref]
                address = make_read_path(format_section_id(source, revision_id, ref))
                nodes[ref] = SectionNode(ref, section.section_title, section.page_number, address)
                siblings.append(nodes[ref])
            siblings = nodes[ref].children
        if chunk.section_ref in nodes:
            nodes[chunk.section_ref].passage_count += 1
    return roots


# --- a section through its revisions ---


@dataclass(frozen=True, slots=True)
class SectionStand:
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

    def __init__(self, service: PolicyService) -> None:
        self._service = service
        self._admin = PolicyAdmin(service)

    async def show_history(self, request: PageRequest) -> RenderedPage:
        """Return where a section stands in each revision, however it was renumbered.

        Raise InvalidArguments, PolicyNotFound, RevisionNotFound and SectionNotFound.
        """
        source, revision_id = request.get("source"), request.get("revision_id")
        section_ref = request.get("section")
        if not section_ref:
            raise InvalidArguments([{"field": "section", "message": "name a section"}])
        policy = await self._admin.get_policy(source)
        start = await self._admin.get_revision(source, revision_id)
        sections = await self._service.list_sections(source, revision_id)
        if section_ref not in sections:
            raise SectionNotFound(f"{source} ({start.version_label}) has no {section_ref}")
        counting = [
            revision
            for revision in reversed(policy.revisions)
            if revision.status in (RevisionStatus.ACTIVE, RevisionStatus.SUPERSEDED)
        ]
        stands = await self._follow(counting, revision_id, section_ref)
        title = f"{source}, {section_ref} ({start.version_label}) through its revisions"
        body = _render(
            "history.html",
            policy=policy,
            start=start,
            section_ref=section_ref,
            title=title,
            stands=list(reversed(stands)),
        )
        example = None
        if len(counting) > 1:
            days = {
                "from_date": counting[0].effective_from.isoformat(),
                "to_date": counting[-1].effective_from.isoformat(),
            }
            example = ToolExample(
                "compare_policy_revisions",
                {"source": source, **days, "section_ref": section_ref},
            )
        return RenderedPage(title, body, data=stands, tool_example=example)

    async def _follow(
        self, revisions: Sequence[RevisionDetail], revision_id: str, section_ref: str
    ) -> list[SectionStand]:
        """Return the stands in all revisions, the oldest first; the search goes both ways."""
        ids = [revision.revision_id for revision in revisions]
        place = ids.index(revision_id) if revision_id in ids else -1
        if place < 0:
            return []
        refs: dict[str, str | None] = {revision_id: section_ref}
        changes: dict[str, SectionChange | None] = {}
        for newer, older in pairwise(reversed(revisions[: place + 1])):
            change = await self._compare(older, newer, refs[newer.revision_id], is_newer=True)
            changes[newer.revision_id] = change
            known_ref = refs[newer.revision_id]
            refs[older.revision_id] = change.from_section_ref if change else known_ref
        for older, newer in pairwise(revisions[place:]):
            change = await self._compare(older, newer, refs[older.revision_id], is_newer=False)
            changes[newer.revision_id] = change
            known_ref = refs[older.revision_id]
            refs[newer.revision_id] = change.to_section_ref if change else known_ref
        return [
            _make_stand(
                revision,
                refs[revision.revision_id],
                changes.get(revision.revision_id),
                is_first=number == 0,
            )
            for number, revision in enumerate(revisions)
        ]

    async def _compare(
        self, older: RevisionDetail, newer: RevisionDetail, ref: str | None, is_newer: bool
    ) -> SectionChange | None:
        """Return what became of a section between two revisions; None if nothing did.

        The reference is that in the newer one, or that in the older one.
        """
        if ref is None:
            return None
        question = ComparePolicyRevisions(
            source=older.source,
            from_date=older.effective_from.isoformat(),
            to_date=newer.effective_from.isoformat(),
            section_ref=ref,
        )
        diff = await self._service.compare(question)
        for change in diff.changes:
            if ref == (change.to_section_ref if is_newer else change.from_section_ref):
                return change
        return None


def _make_stand(
    revision: RevisionDetail, ref: str | None, change: SectionChange | None, is_first: bool
) -> SectionStand:
    address = None
    if ref:
        address = make_read_path(format_section_id(revision.source, revision.revision_id, ref))
    return SectionStand(
        revision.version_label,
        _format_period(revision.effective_from, revision.effective_to),
        ref,
        address,
        _describe_change(ref, change, is_first),
        change.diff if change else (),
    )


def _describe_change(ref: str | None, change: SectionChange | None, is_first: bool) -> str:
    if change is None:
        if ref is None:
            return "not there"
        return "the first that is held here" if is_first else "unchanged"
    if change.change == "removed":
        return "taken out"
    if change.change == "added":
        return "new"
    renumbered = change.from_section_ref != change.to_section_ref
    was = f"before: {change.from_section_ref}" if renumbered else "the same reference"
    return f"{'reworded' if change.diff else 'the same words'}, {was}"


def _format_period(start: dt.date, end: dt.date | None) -> str:
    return f"{format_day(start)} to {format_day(end) or 'now'}"


def make_history_address(source: str, revision_id: str, section_ref: str) -> str:
    """Return the address of the page that follows a section."""
    return f"/policies/{source}/{revision_id}/history?section={quote_for_url(section_ref)}"
