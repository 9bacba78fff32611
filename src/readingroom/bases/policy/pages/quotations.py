"""A quotation checked: in which revisions its words stand, and where on the page."""

import datetime as dt
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from readingroom.bases.policy.admin.service import PolicyAdmin
from readingroom.bases.policy.models import QuoteCheck, QuotePlace, VerifyPolicyQuote
from readingroom.bases.policy.pages.periods import (
    list_readable_revisions,
    make_gantt_span,
)
from readingroom.bases.policy.pages.reading import PageViews
from readingroom.bases.policy.pages.sections import make_section_address
from readingroom.bases.policy.service import PolicyService
from readingroom.core.dates import parse_day
from readingroom.core.errors import validate_model
from readingroom.protocol.pages import PageRequest, RenderedPage, ToolExample
from readingroom.protocol.search import CAUTION_BY_REASON, describe_unread_revisions
from readingroom.web.charts import Chart, GanttRow, draw_gantt
from readingroom.web.templates import format_count, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")

_TEXT_BY_VERDICT = {
    "verified": "These words stand in the revision that was in force on that day.",
    "wrong_revision": "These words stand in another revision, not in the one in force on that day.",
    "not_found": "These words stand in no revision that is held here.",
}
_NOT_ADOPTED_TEXT = (
    "These words stand in a plan that is not adopted, so they are in force on no day."
)


class QuotationPages:
    """The page that checks a quotation."""

    def __init__(self, policy_service: PolicyService, page_views: PageViews) -> None:
        self._service = policy_service
        self._admin = PolicyAdmin(policy_service)
        self._page_views = page_views

    async def check_quotation(self, request: PageRequest) -> RenderedPage:
        """Return the form for a quotation, with where its words stand once it was sent."""
        policy_list = await self._service.list_policies()
        quoted_text, policy_slug = request.get_parameter("quote"), request.get_parameter("source")
        day_text = request.get_parameter("date")
        is_quotation_sent = bool(quoted_text and policy_slug and not request.refusal)
        asked_day = parse_day(day_text) if day_text and not request.refusal else self._service.today
        arguments = {"source": policy_slug, "quote": quoted_text, "date": asked_day.isoformat()}
        quote_check: QuoteCheck | None = None
        period_chart: Chart | None = None
        picture_html = ""
        if is_quotation_sent:
            quote_check = await self._service.verify_quote(
                validate_model(VerifyPolicyQuote, arguments)
            )
            if quote_check.found:
                # The tool ends where it finds them in force; a person sees all revisions at once.
                quote_places = await self._service.find_quote_in_all_revisions(
                    policy_slug, quoted_text
                )
                quote_check = quote_check.model_copy(update={"found": quote_places})
                period_chart = await self._draw_chart(policy_slug, quote_places, asked_day)
                picture_html = await self._page_views.render_passage_picture(
                    policy_slug, *_choose_shown_page(quote_check, quote_places), quoted_text
                )
        body_html = _render(
            "check.html",
            request=request,
            policies=policy_list.policies,
            quotation=quoted_text,
            source=policy_slug,
            day=asked_day,
            check=quote_check,
            mark=request.sample_citation_prefix,
            chart=period_chart,
            picture=picture_html,
            verdict=_describe_verdict(quote_check) if quote_check else "",
            today=self._service.today,
            reasons=CAUTION_BY_REASON,
            caution=describe_unread_revisions(quote_check.unread_revisions) if quote_check else "",
            make_section_address=partial(make_section_address, policy_slug),
        )
        tool_example = ToolExample("verify_policy_quote", arguments) if quote_check else None
        page_title = (
            f"{quote_check.verdict.replace('_', ' ').capitalize()} in {policy_slug} on {asked_day}"
            if quote_check
            else "Check a quotation"
        )
        return RenderedPage(page_title, body_html, data=quote_check, tool_example=tool_example)

    async def _draw_chart(
        self, policy_slug: str, quote_places: Sequence[QuotePlace], asked_day: dt.date
    ) -> Chart:
        """Return the revisions over time, dark where the words stand."""
        policy = await self._admin.get_policy(policy_slug)
        revisions = list_readable_revisions(policy)
        found_revision_ids = {quote_place.revision_id for quote_place in quote_places}
        gantt_rows = []
        for revision in revisions:
            has_quotation = revision.revision_id in found_revision_ids
            gantt_span = make_gantt_span(
                policy_slug,
                revision,
                self._service.today,
                "active" if has_quotation else "superseded",
                "the words stand here" if has_quotation else "not there",
            )
            gantt_rows.append(GanttRow(revision.version_label, [gantt_span], gantt_span.href))
        chart_finding_text = (
            f"The words stand in {len(found_revision_ids)} of "
            f"{format_count(len(revisions), 'revision')} (the dark bars)."
        )
        return draw_gantt(gantt_rows, asked_day, chart_finding_text, ("Revision", "Bar"))


def _describe_verdict(quote_check: QuoteCheck) -> str:
    is_only_emerging = bool(quote_check.found) and all(
        quote_place.stage for quote_place in quote_check.found
    )
    return _NOT_ADOPTED_TEXT if is_only_emerging else _TEXT_BY_VERDICT[quote_check.verdict]


def _choose_shown_page(
    quote_check: QuoteCheck, quote_places: Sequence[QuotePlace]
) -> tuple[str, int]:
    """Return the revision and the page to show: of the one in force, if the words stand there."""
    preferred_places = [
        quote_place
        for quote_place in quote_places
        if quote_place.revision_id == quote_check.revision_in_force
    ] or quote_places
    return preferred_places[0].revision_id, preferred_places[0].page_number
