"""The policy base's pages: all policies over time, one policy, one revision with its sections."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import get_args

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.admin_models import RevisionDetail
from readingroom.bases.policy.chunks.search import list_unread_revisions
from readingroom.bases.policy.chunks.store import StoredChunk
from readingroom.bases.policy.compare import passages
from readingroom.bases.policy.models import Excluded, ListedSection, PolicySnapshot, SearchPolicy
from readingroom.bases.policy.pages.comparison import ComparisonPages
from readingroom.bases.policy.pages.forms import (
    PolicyForms,
    make_policy_form_values,
    make_revision_form_values,
)
from readingroom.bases.policy.pages.periods import (
    WORDS_BY_STATE,
    describe_last_day,
    describe_revision,
    determine_state_name,
    draw_policy_chart,
    list_eligible_revisions,
    list_revisions_by_status,
    make_gantt_row,
)
from readingroom.bases.policy.pages.quotations import QuotationPages
from readingroom.bases.policy.pages.reading import PageViews, make_revision_fields
from readingroom.bases.policy.pages.sections import SectionHistoryPages, build_section_tree
from readingroom.bases.policy.registry.records import PlanStage, PolicyCategory, RevisionStatus
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.ingest.read.formats.detect import POLICY_EXTENSIONS
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageRequest,
    RecentEvent,
    RenderedPage,
    RunningWork,
    SearchOmission,
    ToolExample,
)
from readingroom.protocol.search import CAUTION_BY_REASON, SearchRequest, describe_unread_revisions
from readingroom.protocol.tool import ToolContext
from readingroom.storage.jobs.store import JobStore
from readingroom.web.charts import draw_gantt
from readingroom.web.forms import fill_form
from readingroom.web.templates import format_day, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_MAX_HOME_PAGE_EVENTS = 8


def make_pages(policy_service: PolicyService, job_store: JobStore) -> BasePages:
    """Return the pages of the policy base."""
    policy_pages, page_views = PolicyPages(policy_service), PageViews(policy_service)
    quotation_pages = QuotationPages(policy_service, page_views)
    revision_page_path = "/policies/{source}/{revision_id}"
    return BasePages(
        [
            BasePage(
                "/policies",
                policy_pages.show_policies,
                menu_label="Policies",
                summary="Every policy over time: what was in force on a day, and what was not.",
            ),
            # Before the page of one policy, whose name could otherwise be `check`.
            BasePage(
                "/policies/check",
                quotation_pages.check_quotation,
                render_form_page=quotation_pages.check_quotation,
            ),
            *PolicyForms(
                policy_service,
                policy_pages.show_policies,
                policy_pages.show_policy,
                policy_pages.show_revision,
            ).make_pages(),
            BasePage("/policies/{source}", policy_pages.show_policy),
            BasePage("/policies/{source}/compare", ComparisonPages(policy_service).show_comparison),
            BasePage(revision_page_path, policy_pages.show_revision),
            BasePage(
                f"{revision_page_path}/history", SectionHistoryPages(policy_service).show_history
            ),
            BasePage(f"{revision_page_path}/file", page_views.send_file),
            BasePage(f"{revision_page_path}/pages/{{page:page_number}}", page_views.show_page),
            BasePage(f"{revision_page_path}/pages/{{page:page_number}}.webp", page_views.draw_page),
        ],
        build_record_page_extras=page_views.build_record_page_extras,
        list_omissions=policy_pages.list_omissions,
        list_recent_events=policy_pages.list_recent_events,
        list_running_work=policy_pages.list_running_work,
    )


class PolicyPages:
    """The pages of the policy base, over its service."""

    def __init__(self, policy_service: PolicyService) -> None:
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)

    async def show_policies(self, request: PageRequest) -> RenderedPage:
        """Return every policy as a line over time, with the day that is asked for."""
        asked_day = self._read_asked_day(request)
        policy_snapshot = await self._service.get_snapshot(
            PolicySnapshot(date=asked_day.isoformat())
        )
        policies = await self._admin.list_policy_details()
        chart_finding_text = (
            f"{policy_snapshot.in_force_count} of {policy_snapshot.policy_count} policies had a "
            "revision in "
            f"force on {format_day(asked_day)}."
        )
        period_chart = draw_gantt(
            [make_gantt_row(policy, self._service.today) for policy in policies],
            asked_day,
            chart_finding_text,
            make_day_address=lambda first_day: f"/policies?date={first_day}",
        )
        body_html = _render(
            "policies.html",
            chart=period_chart if policies else None,
            finding=chart_finding_text,
            day=asked_day,
            entries=policy_snapshot.policies,
            reasons=CAUTION_BY_REASON,
            describe_unread=describe_unread_revisions,
            unfinished=list_revisions_by_status(
                policies, RevisionStatus.FAILED, RevisionStatus.PROCESSING
            ),
            # Plans that are not adopted are read, and never in force.
            emerging=list_revisions_by_status(policies, RevisionStatus.EMERGING),
            request=request,
            categories=[policy_category.value for policy_category in PolicyCategory],
        )
        return RenderedPage(
            f"Policies in force on {format_day(asked_day)}",
            body_html,
            data=policy_snapshot,
            tool_example=ToolExample("policy_snapshot", {"date": asked_day.isoformat()}),
        )

    async def show_policy(self, request: PageRequest) -> RenderedPage:
        """Return one policy: its revisions over time, and what can be done with them."""
        policy_slug = request.get_parameter("source")
        policy = await self._admin.get_policy(policy_slug)
        asked_day = self._read_asked_day(request)
        policy_on_day = await self._service.resolver.resolve_for_policy(policy_slug, asked_day)
        body_html = _render(
            "policy.html",
            policy=policy,
            caution=describe_unread_revisions(list_unread_revisions(policy_on_day)),
            chart=draw_policy_chart(policy, asked_day, self._service.today),
            name_state=partial(determine_state_name, today=self._service.today),
            describe_end=partial(describe_last_day, today=self._service.today),
            state_words=WORDS_BY_STATE,
            day=asked_day,
            comparison=_suggest_compared_days(list_eligible_revisions(policy)),
            categories=[policy_category.value for policy_category in PolicyCategory],
            stages=get_args(PlanStage),
            extensions=POLICY_EXTENSIONS,
            request=request,
            fields=fill_form(
                request.parameters,
                make_policy_form_values(policy),
                is_form_refused=bool(request.refusal),
            ),
        )
        return RenderedPage(
            policy.title,
            body_html,
            data={
                **policy.model_dump(mode="json"),
                "revisions": [make_revision_fields(revision) for revision in policy.revisions],
            },
            tool_example=ToolExample("list_policy_revisions", {"source": policy_slug}),
        )

    async def show_revision(self, request: PageRequest) -> RenderedPage:
        """Return one revision with the tree of its sections."""
        policy_slug, revision_id = (
            request.get_parameter("source"),
            request.get_parameter("revision_id"),
        )
        policy = await self._admin.get_policy(policy_slug)
        revision = await self._admin.get_revision(policy_slug, revision_id)
        chunks = await self._service.store.get_chunks(policy_slug, revision_id)
        listed_sections = passages.list_sections(chunks)
        ingest_progress = await self._admin.get_progress(policy_slug, revision_id)
        body_html = _render(
            "revision.html",
            progress=ingest_progress.progress if revision.status == "processing" else None,
            request=request,
            policy=policy,
            revision=revision,
            sections=build_section_tree(policy_slug, revision_id, chunks, listed_sections),
            section_count=len(listed_sections),
            most_passages=max(
                (passage_count for passage_count in _count_passages_by_section(chunks).values()),
                default=1,
            ),
            validity=describe_revision(revision, self._service.today),
            state=determine_state_name(revision, self._service.today),
            state_words=WORDS_BY_STATE,
            fields=fill_form(
                request.parameters,
                make_revision_form_values(revision),
                is_form_refused=bool(request.refusal),
            ),
        )
        return RenderedPage(
            f"{policy_slug} ({revision.version_label})",
            body_html,
            data={**make_revision_fields(revision), "sections": listed_sections},
            tool_example=_make_section_example(revision, listed_sections),
            print_note=describe_revision(revision, self._service.today),
        )

    async def list_omissions(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> Sequence[SearchOmission]:
        """Return the policies that a search leaves out on its day, each with the reason."""
        asked_day_text = search_request.day or self._service.today.isoformat()
        arguments = SearchPolicy(
            query=search_request.query, effective_date=asked_day_text, n_results=1, mode="lexical"
        )
        policy_scope = await self._service.resolve_scope(arguments)
        return [
            SearchOmission(
                policy_exclusion.source,
                _explain_exclusion(policy_exclusion),
                f"/policies/{policy_exclusion.source}",
                (policy_exclusion.nearest.effective_from, policy_exclusion.nearest.effective_to)
                if policy_exclusion.nearest
                else None,
            )
            for policy_exclusion in policy_scope.exclusions
        ]

    async def list_recent_events(self) -> list[RecentEvent]:
        """Return the revisions that came into force last, and those that could not be read."""
        today = self._service.today
        policies = await self._admin.list_policy_details()
        recent_events = [
            RecentEvent(
                revision.effective_from,
                f"{policy.title}, {revision.version_label}",
                f"/policies/{policy.source}/{revision.revision_id}",
                "came into force",
            )
            for policy in policies
            for revision in list_eligible_revisions(policy)
            if revision.effective_from <= today
        ]
        recent_events += [
            RecentEvent(
                revision.created_at.date(),
                f"{revision.source}, {revision.version_label}",
                f"/policies/{revision.source}/{revision.revision_id}",
                "could not be read",
            )
            for revision in list_revisions_by_status(policies, RevisionStatus.FAILED)
        ]
        return sorted(recent_events, key=lambda recent_event: recent_event.day, reverse=True)[
            :_MAX_HOME_PAGE_EVENTS
        ]

    async def list_running_work(self) -> list[RunningWork]:
        """Return the revisions that are being read, or wait to be."""
        policies = await self._admin.list_policy_details()
        running_work = []
        for revision in list_revisions_by_status(policies, RevisionStatus.PROCESSING):
            ingest_progress = await self._admin.get_progress(revision.source, revision.revision_id)
            running_work.append(
                RunningWork(
                    f"{revision.source}, {revision.version_label}",
                    f"/policies/{revision.source}/{revision.revision_id}",
                    ingest_progress.progress.percent_complete,
                    ingest_progress.progress.phase,
                )
            )
        return running_work

    def _read_asked_day(self, request: PageRequest) -> dt.date:
        day_text = request.get_parameter("date")
        return parse_day(day_text) if day_text else self._service.today


def _count_passages_by_section(chunks: Sequence[StoredChunk]) -> Counter[str]:
    return Counter(chunk.section_ref for chunk in chunks)


def _make_section_example(
    revision: RevisionDetail, listed_sections: Sequence[ListedSection]
) -> ToolExample | None:
    """Return the call that gives an agent the first section; None where there is none."""
    if not listed_sections:
        return None
    example_arguments = {
        "source": revision.source,
        "section_ref": listed_sections[0].section_ref,
        "revision_id": revision.revision_id,
    }
    return ToolExample("get_policy_section", example_arguments)


def _suggest_compared_days(revisions: Sequence[RevisionDetail]) -> dict[str, str] | None:
    """Return the days of the two newest revisions, for the form that compares."""
    if len(revisions) < 2:
        return None
    older_revision, newer_revision = revisions[-2:]
    return {
        "from": older_revision.effective_from.isoformat(),
        "to": newer_revision.effective_from.isoformat(),
    }


def _explain_exclusion(policy_exclusion: Excluded) -> str:
    reason_text = CAUTION_BY_REASON[policy_exclusion.reason]
    if policy_exclusion.nearest is None:
        return reason_text
    return f"{reason_text} (nearest: {policy_exclusion.nearest.version_label})"
