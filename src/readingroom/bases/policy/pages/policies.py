"""The policy base's pages: all policies over time, one policy, its changes, a quotation checked."""

import datetime as dt
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode

from readingroom.bases.policy.admin.pictures import PolicyPictures
from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import PolicyDetail, RevisionDetail
from readingroom.bases.policy.compare import passages
from readingroom.bases.policy.ids import format_section_id
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    PolicySnapshot,
    QuoteCheck,
    RevisionDiff,
    SearchPolicy,
    SectionChange,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.pages.forms import PolicyForms
from readingroom.bases.policy.pages.sections import (
    SectionHistoryPages,
    build_section_tree,
    make_history_address,
)
from readingroom.bases.policy.registry.records import PolicyCategory, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.errors import KnowledgeError, validate_model
from readingroom.ingest.errors import FileNotFound
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageLink,
    PagePicture,
    PageRequest,
    ReadingAid,
    RenderedPage,
    ToolExample,
    Unasked,
)
from readingroom.protocol.search import DeskRecord, SearchRequest, make_read_path
from readingroom.protocol.tool import ToolCall
from readingroom.storage.jobs.store import JobStore
from readingroom.web.charts import Chart, GanttRow, TimeSpan, draw_gantt
from readingroom.web.marks import show_marked_page
from readingroom.web.templates import format_day, render_template

logger = logging.getLogger(__name__)

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_PICTURE_DPI = 100
_REASON_TEXTS = {
    "date_before_first_revision": "its first revision came later",
    "date_in_gap": "no revision was in force on that day",
    "no_active_revision": "no revision of it has been read yet",
    "no_chunks": "its text is not there",
    "unknown_source": "there is no such policy",
    "other_authority": "it is another authority's policy",
    "authority_unknown": "nothing says whose policy it is",
}
"""Why a policy was not asked, in words."""
_VERDICT_TEXTS = {
    "verified": "These words stand in the revision that was in force on that day.",
    "wrong_revision": "These words stand in another revision, not in the one in force on that day.",
    "not_found": "These words stand in no revision that is held here.",
}


def make_pages(service: PolicyService, jobs: JobStore) -> BasePages:
    """Return the pages of the policy base."""
    policy_pages = PolicyPages(service)
    return BasePages(
        [
            BasePage(
                "/policies",
                policy_pages.show_policies,
                menu_label="Policies",
                summary="Every policy over time: what was in force on a day, and what was not.",
            ),
            # Before the page of one policy, whose name could otherwise be `check`.
            BasePage("/policies/check", policy_pages.check_quotation),
            *PolicyForms(
                service,
                policy_pages.show_policies,
                policy_pages.show_policy,
                policy_pages.show_revision,
            ).make_pages(),
            BasePage("/policies/{source}", policy_pages.show_policy),
            BasePage("/policies/{source}/compare", policy_pages.compare),
            BasePage("/policies/{source}/{revision_id}", policy_pages.show_revision),
            BasePage(
                "/policies/{source}/{revision_id}/history",
                SectionHistoryPages(service).show_history,
            ),
            BasePage(
                "/policies/{source}/{revision_id}/pages/{page:page_number}.webp",
                policy_pages.draw_page,
            ),
        ],
        aid_reading=policy_pages.aid_reading,
        list_unasked=policy_pages.list_unasked,
    )


class PolicyPages:
    """The pages of the policy base, over its service."""

    def __init__(self, service: PolicyService) -> None:
        self._service = service
        self._admin = PolicyAdmin(service)
        self._pictures = PolicyPictures(service)

    async def show_policies(self, request: PageRequest) -> RenderedPage:
        """Return every policy as a line over time, with the day that is asked for."""
        day = self._read_day(request)
        snapshot = await self._service.get_snapshot(PolicySnapshot(date=day.isoformat()))
        policies = await self._admin.list_policy_details()
        chart_finding = (
            f"{snapshot.in_force_count} of {snapshot.policy_count} policies had a revision in "
            f"force on {format_day(day)}."
        )
        chart = draw_gantt(
            [_make_gantt_row(policy, self._service.today, policy.title) for policy in policies],
            day,
            chart_finding,
        )
        body_html = _render(
            "policies.html",
            chart=chart if policies else None,
            finding=chart_finding,
            day=day,
            entries=snapshot.policies,
            reasons=_REASON_TEXTS,
            unfinished=_list_by_status(policies, RevisionStatus.FAILED, RevisionStatus.PROCESSING),
            # Plans that are not adopted are read, and never in force.
            emerging=_list_by_status(policies, RevisionStatus.EMERGING),
            request=request,
            categories=[category.value for category in PolicyCategory],
        )
        return RenderedPage(
            f"Policies in force on {format_day(day)}",
            body_html,
            data=snapshot,
            tool_example=ToolExample("policy_snapshot", {"date": day.isoformat()}),
        )

    async def show_policy(self, request: PageRequest) -> RenderedPage:
        """Return one policy: its revisions over time, and what can be done with them."""
        policy_slug = request.get("source")
        policy = await self._admin.get_policy(policy_slug)
        day = self._read_day(request)
        chart = self._draw_policy(policy, day)
        eligible_revisions = [
            revision for revision in policy.revisions if _can_be_in_force(revision)
        ]
        body_html = _render(
            "policy.html",
            policy=policy,
            chart=chart,
            day=day,
            comparison=_suggest_comparison(eligible_revisions),
            request=request,
        )
        return RenderedPage(
            policy.title,
            body_html,
            data=policy,
            tool_example=ToolExample("list_policy_revisions", {"source": policy_slug}),
        )

    async def show_revision(self, request: PageRequest) -> RenderedPage:
        """Return one revision with the tree of its sections."""
        policy_slug, revision_id = request.get("source"), request.get("revision_id")
        policy = await self._admin.get_policy(policy_slug)
        revision = await self._admin.get_revision(policy_slug, revision_id)
        chunks = await self._service.store.get_chunks(policy_slug, revision_id)
        listed_sections = passages.list_sections(chunks)
        progress = await self._admin.get_progress(policy_slug, revision_id)
        body_html = _render(
            "revision.html",
            progress=progress.progress if revision.status == "processing" else None,
            request=request,
            policy=policy,
            revision=revision,
            sections=build_section_tree(policy_slug, revision_id, chunks, listed_sections),
            section_count=len(listed_sections),
            validity=_describe_period(revision.effective_from, revision.effective_to),
        )
        page_title = f"{policy_slug} ({revision.version_label})"
        return RenderedPage(
            page_title,
            body_html,
            data={**revision.model_dump(mode="json"), "sections": listed_sections},
        )

    async def compare(self, request: PageRequest) -> RenderedPage:
        """Return two revisions side by side, section by section."""
        policy_slug = request.get("source")
        arguments = {
            "source": policy_slug,
            "from_date": request.get("from"),
            "to_date": request.get("to"),
            "section_ref": request.get("section") or None,
            "cursor": request.get("cursor") or None,
        }
        question = validate_model(ComparePolicyRevisions, arguments)
        revision_diff = await self._service.compare(question)
        body_html = _render(
            "compare.html",
            diff=revision_diff,
            summary=_summarise_diff(revision_diff),
            shown=request.get("only"),
            changes=_select_changes(revision_diff.changes, request.get("only")),
            make_section_address=partial(_make_section_address, policy_slug),
            make_history_address=partial(make_history_address, policy_slug),
            next_address=_make_next_address(request, revision_diff.next_cursor),
            from_date=question.from_date,
            to_date=question.to_date,
        )
        old_label = revision_diff.from_revision.version_label
        page_title = f"{policy_slug}: {old_label} and {revision_diff.to_revision.version_label}"
        example_arguments = {name: value for name, value in arguments.items() if value}
        return RenderedPage(
            page_title,
            body_html,
            data=revision_diff,
            tool_example=ToolExample("compare_policy_revisions", example_arguments),
        )

    async def check_quotation(self, request: PageRequest) -> RenderedPage:
        """Return the form for a quotation, with where its words stand once it was sent."""
        policies = await self._service.list_policies()
        quotation, policy_slug = request.get("quote"), request.get("source")
        day = self._read_day(request)
        quote_check: QuoteCheck | None = None
        arguments = {"source": policy_slug, "quote": quotation, "date": day.isoformat()}
        if quotation and policy_slug:
            quote_check = await self._service.verify(validate_model(VerifyPolicyQuote, arguments))
        body_html = _render(
            "check.html",
            policies=policies.policies,
            quotation=quotation,
            source=policy_slug,
            day=day,
            check=quote_check,
            verdict=_VERDICT_TEXTS[quote_check.verdict] if quote_check else "",
            reasons=_REASON_TEXTS,
            make_section_address=partial(_make_section_address, policy_slug),
        )
        tool_example = ToolExample("verify_policy_quote", arguments) if quote_check else None
        return RenderedPage(
            "Check a quotation", body_html, data=quote_check, tool_example=tool_example
        )

    async def aid_reading(self, request: PageRequest, desk_record: DeskRecord) -> ReadingAid:
        """Return what stands before and after a section, and the other revisions that have it."""
        policy_slug, revision_id = (
            desk_record.record.get("source"),
            desk_record.record.get("revision_id"),
        )
        section_ref = desk_record.record.get("section_ref")
        if not (policy_slug and revision_id):
            return ReadingAid()
        section_refs = list(await self._service.list_sections(policy_slug, revision_id))
        make_link = partial(_make_section_link, policy_slug, revision_id)
        section_index = section_refs.index(section_ref) if section_ref in section_refs else -1
        policy = await self._admin.get_policy(policy_slug)
        related_links = [PageLink("The whole revision", f"/policies/{policy_slug}/{revision_id}")]
        if section_ref:
            history_address = make_history_address(
                str(policy_slug), str(revision_id), str(section_ref)
            )
            related_links.append(PageLink("This section in every revision", history_address))
        related_links += _link_changes(policy, str(revision_id))
        return ReadingAid(
            picture=await self._show_picture(request, desk_record),
            previous=make_link(section_refs[section_index - 1]) if section_index > 0 else None,
            next=make_link(section_refs[section_index + 1])
            if 0 <= section_index < len(section_refs) - 1
            else None,
            related=related_links,
        )

    async def draw_page(self, request: PageRequest) -> PagePicture:
        """Return a page of a revision as a picture."""
        # A revision that there is: the address may name anything.
        revision = await self._admin.get_revision(request.get("source"), request.get("revision_id"))
        page_number = int(request.parameters["page"])
        picture_bytes = await self._pictures.draw_page(
            revision.source, revision.revision_id, page_number, _PICTURE_DPI
        )
        return PagePicture(picture_bytes, "image/webp")

    async def _show_picture(self, request: PageRequest, desk_record: DeskRecord) -> str:
        """Return the first page of a passage with the passage marked; nothing without the PDF."""
        section_fields = desk_record.record
        page_numbers = section_fields.get("page_numbers") or [section_fields.get("page_number")]
        policy_slug, revision_id = str(section_fields["source"]), str(section_fields["revision_id"])
        if not page_numbers[0]:
            return ""
        passage_text = request.get("quote") or desk_record.text
        try:
            marks = await self._pictures.mark_passage(
                policy_slug, revision_id, page_numbers[0], passage_text
            )
        except FileNotFound:
            return ""  # the text can be read all the same
        except KnowledgeError as error:
            logger.warning("A passage could not be marked: %s", error.message)
            marks = ()
        picture_address = f"/policies/{policy_slug}/{revision_id}/pages/{page_numbers[0]}.webp"
        return show_marked_page(picture_address, f"Page {page_numbers[0]} of {policy_slug}", marks)

    async def list_unasked(self, request: SearchRequest, call: ToolCall) -> Sequence[Unasked]:
        """Return the policies that a search leaves out on its day, each with the reason."""
        day = request.day or self._service.today.isoformat()
        question = SearchPolicy(
            query=request.query, effective_date=day, n_results=1, mode="lexical"
        )
        _, exclusions = await self._service.describe_scope(question)
        return [
            Unasked(
                exclusion.source,
                _explain_exclusion(exclusion.reason, exclusion.nearest.version_label)
                if exclusion.nearest
                else _REASON_TEXTS[exclusion.reason],
                f"/policies/{exclusion.source}",
            )
            for exclusion in exclusions
        ]

    def _read_day(self, request: PageRequest) -> dt.date:
        day_text = request.get("date")
        return parse_day(day_text) if day_text else self._service.today

    def _draw_policy(self, policy: PolicyDetail, day: dt.date) -> Chart:
        labels_in_force = [
            revision.version_label
            for revision in policy.revisions
            if _can_be_in_force(revision)
            and revision.effective_from <= day
            and (revision.effective_to is None or day <= revision.effective_to)
        ]
        chart_finding = (
            f"On {format_day(day)} the revision in force was {labels_in_force[0]}."
            if labels_in_force
            else f"On {format_day(day)} no revision was in force."
        )
        gantt_rows = [
            GanttRow(
                revision.version_label,
                [_make_time_span(policy.source, revision, self._service.today)],
                f"/policies/{policy.source}/{revision.revision_id}",
            )
            for revision in reversed(policy.revisions)
        ]
        return draw_gantt(gantt_rows, day, chart_finding)


# --- time ---


def _make_gantt_row(policy: PolicyDetail, today: dt.date, row_label: str) -> GanttRow:
    spans = [_make_time_span(policy.source, revision, today) for revision in policy.revisions]
    return GanttRow(row_label, spans, f"/policies/{policy.source}")


def _make_time_span(policy_slug: str, revision: RevisionDetail, today: dt.date) -> TimeSpan:
    is_emerging = _can_be_in_force(revision) and revision.effective_from > today
    return TimeSpan(
        f"{policy_slug}, {revision.version_label}",
        revision.effective_from,
        revision.effective_to,
        "emerging" if is_emerging else revision.status.value,
        f"/policies/{policy_slug}/{revision.revision_id}",
    )


def _can_be_in_force(revision: RevisionDetail) -> bool:
    """Whether a revision can be in force: it was read at least once."""
    return revision.status in (RevisionStatus.ACTIVE, RevisionStatus.SUPERSEDED)


def _list_by_status(
    policies: Sequence[PolicyDetail], *statuses: RevisionStatus
) -> list[RevisionDetail]:
    return [
        revision
        for policy in policies
        for revision in policy.revisions
        if revision.status in statuses
    ]


def _describe_period(first_day: dt.date, last_day: dt.date | None) -> str:
    if last_day is None:
        return f"In force from {format_day(first_day)} until further notice."
    return f"In force from {format_day(first_day)} to {format_day(last_day)}, both days included."


def _explain_exclusion(exclusion_reason: str, nearest_label: str) -> str:
    return f"{_REASON_TEXTS[exclusion_reason]} (nearest: {nearest_label})"


# --- changes ---


def _suggest_comparison(revisions: Sequence[RevisionDetail]) -> dict[str, str] | None:
    """Return the days of the two newest revisions, for the form that compares."""
    if len(revisions) < 2:
        return None
    newer_revision, older_revision = revisions[0], revisions[1]
    return {
        "from": older_revision.effective_from.isoformat(),
        "to": newer_revision.effective_from.isoformat(),
        "label": f"{older_revision.version_label} and {newer_revision.version_label}",
    }


def _link_changes(policy: PolicyDetail, revision_id: str) -> list[PageLink]:
    """Return a link to what the next revision changed, and to what this one did."""
    oldest_first = [
        revision for revision in reversed(policy.revisions) if _can_be_in_force(revision)
    ]
    revision_ids = [revision.revision_id for revision in oldest_first]
    if revision_id not in revision_ids:
        return []
    revision_index = revision_ids.index(revision_id)
    labelled_pairs = []
    if revision_index > 0:
        labelled_pairs.append(
            (
                "What this revision changed",
                oldest_first[revision_index - 1],
                oldest_first[revision_index],
            )
        )
    if revision_index < len(revision_ids) - 1:
        labelled_pairs.append(
            (
                "What the next one changed",
                oldest_first[revision_index],
                oldest_first[revision_index + 1],
            )
        )
    return [
        PageLink(link_label, _make_compare_address(policy.source, older_revision, newer_revision))
        for link_label, older_revision, newer_revision in labelled_pairs
    ]


def _make_compare_address(policy_slug: str, older: RevisionDetail, newer: RevisionDetail) -> str:
    days_query = f"from={older.effective_from}&to={newer.effective_from}"
    return f"/policies/{policy_slug}/compare?{days_query}"


def _make_next_address(request: PageRequest, cursor: str | None) -> str | None:
    """Return the address of the next page of changes."""
    if cursor is None:
        return None
    argument_names = ("from", "to", "section", "only")
    argument_values = {name: request.get(name) for name in argument_names} | {"cursor": cursor}
    given_values = {name: value for name, value in argument_values.items() if value}
    return f"/policies/{quote(request.get('source'), safe='')}/compare?{urlencode(given_values)}"


def _summarise_diff(revision_diff: RevisionDiff) -> str:
    change_summary = revision_diff.summary
    # A section that moved may be reworded too: it counts once, as what a reader has to read.
    count_by_label = {
        "with another number only": change_summary.moved_unchanged,
        "reworded": change_summary.reworded + change_summary.moved - change_summary.moved_unchanged,
        "new": change_summary.added,
        "gone": change_summary.removed,
    }
    summary_parts = [f"{revision_diff.sections_unchanged} unchanged"]
    summary_parts += [f"{count} {label}" for label, count in count_by_label.items() if count]
    return f"{revision_diff.sections_compared} sections: {', '.join(summary_parts)}."


def _select_changes(changes: Sequence[SectionChange], change_kind: str) -> list[SectionChange]:
    return [change for change in changes if change_kind in ("", change.change)]


# --- addresses and questions ---


def _make_section_link(policy_slug: str, revision_id: str, section_ref: str) -> PageLink:
    return PageLink(section_ref, _make_section_address(policy_slug, revision_id, section_ref))


def _make_section_address(policy_slug: str, revision_id: str, section_ref: str) -> str:
    return make_read_path(format_section_id(policy_slug, revision_id, section_ref))
