"""The desk's pages: search over everything, any record by its id, an application beside policy."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from readingroom.core import clock
from readingroom.core.dates import parse_day
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.engine.confidence import judge_confidence
from readingroom.federation.models import AssessAgainstPolicy, DeskAnswer, DeskFetch, DeskSearch
from readingroom.federation.service import FederationService
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageRequest,
    RecordPageExtras,
    RenderedPage,
    SearchOmission,
    ToolExample,
)
from readingroom.protocol.search import (
    CAUTION_BY_REASON,
    DeskHit,
    DeskRecord,
    SearchRequest,
    make_record_page_path,
    make_unread_cautions,
)
from readingroom.web.charts import draw_period_bar
from readingroom.web.templates import (
    format_count,
    format_day,
    format_identifier,
    join_broken_lines,
    render_template,
)

_render_federation_template = partial(
    render_template, template_folder=Path(__file__).parent / "templates"
)
_MAX_MARKED_CHARS = 400
"""Of a passage in an address."""

# The fields of a record that are shown, whatever its base, in this order.
_LABEL_BY_FIELD_NAME = {
    "version_label": "Revision",
    "section_ref": "Section",
    "page_number": "Page",
    "document_type": "Kind of document",
    "source_org": "Published by",
    "published_at": "Published",
    "public_updated_at": "Updated",
    "retrieved_at": "Retrieved",
    "raw_sha256": "SHA-256",
    "attribution": "Attribution",
    "disclaimer": "Note",
}


def make_pages(
    federation_service: FederationService, pages_by_base: Mapping[str, BasePages]
) -> BasePages:
    """Return the pages over every base; `pages_by_base` has what each base adds to them."""
    desk_pages = FederationPages(federation_service, pages_by_base)
    federation_pages = [
        BasePage(
            "/search",
            desk_pages.show_search,
            menu_label="Search",
            summary="One question to every collection, with the day it is asked for.",
            render_form_page=desk_pages.show_search,
        ),
        BasePage("/read", desk_pages.show_record),
    ]
    if {"application", "policy"} <= {
        search_adapter.role for search_adapter in federation_service.adapters
    }:
        federation_pages.append(
            BasePage(
                "/applications/beside",
                desk_pages.show_assessment,
                render_form_page=desk_pages.show_assessment_form,
            )
        )
    return BasePages(tuple(federation_pages))


class FederationPages:
    """The pages over every base."""

    def __init__(
        self, federation_service: FederationService, pages_by_base: Mapping[str, BasePages]
    ) -> None:
        self._service = federation_service
        self._pages_by_base = pages_by_base

    async def show_search(self, request: PageRequest) -> RenderedPage:
        """Return the search form, with what was found where something is asked."""
        search_form = _SearchForm.read_from_request(request)
        search_answer: DeskAnswer | None = None
        search_omissions: Sequence[SearchOmission] = ()
        arguments = None
        if search_form.query and not request.refusal:
            arguments = validate_model(DeskSearch, search_form.to_arguments())
            search_answer = await self._service.search(arguments, request.tool_context)
            search_omissions = await self._list_omissions(arguments, search_answer, request)
        page_body = _render_federation_template(
            "search.html",
            request=request,
            asked=search_form,
            bases=[search_adapter.base_name for search_adapter in self._service.adapters],
            answer=search_answer,
            hits=_make_shown_hits(search_answer.results, search_form.day) if search_answer else [],
            unread_cautions=make_unread_cautions(search_answer.unread_revisions)
            if search_answer
            else {},
            omissions=_make_omissions_with_bars(search_omissions, search_form.day),
            next_address=search_form.make_page_address(search_answer.next_offset)
            if search_answer
            else None,
            mark=request.sample_citation_prefix,
        )
        page_title = f"Search: {search_form.query}" if arguments else "Search"
        tool_example = ToolExample("search", search_form.to_arguments()) if arguments else None
        # What the page says was not asked is in its data too, beside the tool's own answer.
        page_data = (
            {**search_answer.model_dump(), "not_asked": search_omissions} if search_answer else None
        )
        return RenderedPage(page_title, page_body, data=page_data, tool_example=tool_example)

    async def _list_omissions(
        self, arguments: DeskSearch, search_answer: DeskAnswer, request: PageRequest
    ) -> list[SearchOmission]:
        """Return what each base left out; a base that did not answer is told by the notes."""
        search_request = SearchRequest(
            query=arguments.query,
            limit=arguments.limit,
            day=arguments.date,
            application_ref=arguments.application_ref,
        )
        return [
            search_omission
            for base_name in search_answer.searched
            if base_name in self._pages_by_base
            for search_omission in await self._pages_by_base[base_name].list_omissions(
                search_request, request.tool_context
            )
        ]

    async def show_record(self, request: PageRequest) -> RenderedPage:
        """Return a record's page: its text, citation and dates, and what its base adds.

        Raise InvalidArguments, or what the desk's `fetch` raises for an id that names nothing.
        """
        arguments = _read_fetch_arguments(request)
        fetched_record = await self._service.fetch(arguments, request.tool_context)
        record_page_extras = RecordPageExtras()
        if fetched_record.base in self._pages_by_base:
            record_page_extras = await self._pages_by_base[
                fetched_record.base
            ].build_record_page_extras(request, fetched_record)
        citation = request.sample_citation_prefix + (
            record_page_extras.citation or fetched_record.citation.citation_string
        )
        page_body = _render_federation_template(
            "record.html",
            title=fetched_record.title,
            citation=citation,
            validity=_describe_validity(fetched_record.record),
            facts=list(_list_shown_facts(fetched_record, record_page_extras)),
            text=_mark_quotation(
                join_broken_lines(fetched_record.text),
                join_broken_lines(request.get_parameter("quote")),
            ),
            next_part=_make_record_page_address(fetched_record.id, fetched_record.next_offset),
            aid=record_page_extras,
            record_id=fetched_record.id,
        )
        return RenderedPage(
            citation,
            page_body,
            data=fetched_record,
            tool_example=ToolExample("fetch", {"id": fetched_record.id}),
            print_note=_describe_validity(fetched_record.record),
        )

    async def show_assessment(self, request: PageRequest) -> RenderedPage:
        """Return what an application says on a topic beside the policy in force on its day."""
        arguments = {
            "application_ref": request.get_parameter("ref"),
            "topic": request.get_parameter("topic"),
            "date": request.get_parameter("date") or None,
        }
        valid_arguments = validate_model(AssessAgainstPolicy, arguments)
        policy_assessment = await self._service.assess_against_policy(
            valid_arguments, request.tool_context
        )
        page_body = _render_federation_template(
            "assessment.html",
            assessment=policy_assessment,
            unread_cautions=make_unread_cautions(policy_assessment.unread_revisions),
            mark=request.sample_citation_prefix,
            application_hits=_make_shown_hits(
                policy_assessment.application, policy_assessment.date
            ),
            policy_hits=_make_shown_hits(policy_assessment.policy, policy_assessment.date),
            is_application_far=_are_all_hits_far(policy_assessment.application),
            is_policy_far=_are_all_hits_far(policy_assessment.policy),
            reasons=CAUTION_BY_REASON,
        )
        page_title = (
            f"{policy_assessment.application_ref}: {policy_assessment.topic}, beside policy"
        )
        tool_example = ToolExample("assess_against_policy", _remove_empty_arguments(arguments))
        return RenderedPage(
            page_title, page_body, data=policy_assessment, tool_example=tool_example
        )

    async def show_assessment_form(self, request: PageRequest) -> RenderedPage:
        """Return the form that asks for a topic and a day, with why it was refused."""
        application_ref = request.get_parameter("ref")
        page_body = _render_federation_template(
            "assessment_form.html", reference=application_ref, request=request
        )
        return RenderedPage(f"{application_ref}: beside policy", page_body)


# --- search ---


@dataclass(frozen=True, slots=True)
class _SearchForm:
    """What the search form was sent with."""

    query: str
    day: str
    application_ref: str
    base: str
    offset: str

    @classmethod
    def read_from_request(cls, request: PageRequest) -> "_SearchForm":
        return cls(
            query=request.get_parameter("q"),
            day=request.get_parameter("date"),
            application_ref=request.get_parameter("application"),
            base=request.get_parameter("base"),
            offset=request.get_parameter("offset"),
        )

    def to_arguments(self) -> dict[str, Any]:
        arguments = {
            "query": self.query,
            "date": self.day,
            "application_ref": self.application_ref,
            "source": self.base,
        }
        offset_argument = {"offset": _parse_number("offset", self.offset)} if self.offset else {}
        return {**_remove_empty_arguments(arguments), **offset_argument}

    def make_page_address(self, result_offset: int | None) -> str | None:
        """Return the address of another page of the same search."""
        if result_offset is None:
            return None
        form_values = {
            "q": self.query,
            "date": self.day,
            "application": self.application_ref,
            "base": self.base,
            "offset": str(result_offset),
        }
        return "/search?" + "&".join(
            f"{field_name}={quote(field_value, safe='')}"
            for field_name, field_value in form_values.items()
            if field_value
        )


@dataclass(frozen=True, slots=True)
class _ShownHit:
    """A result as the page shows it."""

    hit: DeskHit
    href: str
    snippet: Markup
    validity: str
    period_bar: Markup
    """When it was in force, beside the others; empty for what is no policy."""


def _make_shown_hits(hits: Sequence[DeskHit], day_text: str | None) -> list[_ShownHit]:
    """Return results as the page shows them, their times in force on one scale."""
    in_force_periods = [
        (hit.in_force.effective_from, hit.in_force.effective_to) if hit.in_force else None
        for hit in hits
    ]
    period_bars = _draw_period_bars(in_force_periods, day_text)
    return [
        _ShownHit(
            hit,
            _link_hit(hit),
            _mark_matched_terms(
                join_broken_lines(hit.snippet), hit.parts.matched_terms if hit.parts else ()
            ),
            _describe_validity(hit.in_force.model_dump()) if hit.in_force else "",
            period_bar,
        )
        for hit, period_bar in zip(hits, period_bars, strict=True)
    ]


def _make_omissions_with_bars(
    search_omissions: Sequence[SearchOmission], day_text: str | None
) -> list[tuple[SearchOmission, Markup]]:
    """Return what was left out, each with a bar for when its nearest revision was in force."""
    period_bars = _draw_period_bars(
        [search_omission.period for search_omission in search_omissions], day_text
    )
    return list(zip(search_omissions, period_bars, strict=True))


def _draw_period_bars(
    in_force_periods: Sequence[tuple[dt.date, dt.date | None] | None], day_text: str | None
) -> list[Markup]:
    """Return a bar for each time, all on the scale from the earliest to the day or today."""
    if not any(in_force_periods):
        return [Markup("")] * len(in_force_periods)
    today = clock.now().date()
    marked_day = parse_day(day_text) if day_text else today
    days_on_scale = [
        today,
        marked_day,
        *(
            period_start
            for in_force_period in in_force_periods
            if in_force_period
            for period_start in in_force_period[:1]
        ),
    ]
    first_day, last_day = min(days_on_scale), max(days_on_scale)
    return [
        draw_period_bar(in_force_period[0], in_force_period[1], first_day, last_day, marked_day)
        if in_force_period
        else Markup("")
        for in_force_period in in_force_periods
    ]


def _link_hit(hit: DeskHit) -> str:
    """Return the address of a hit; of a whole page, with the passage to be marked on it."""
    record_page_address = _make_record_page_address(hit.id) or ""
    is_document_page = "#page=" in hit.id
    passage_text = quote(hit.snippet[:_MAX_MARKED_CHARS], safe="")
    return (
        f"{record_page_address}&quote={passage_text}" if is_document_page else record_page_address
    )


def _mark_matched_terms(passage_text: str, matched_terms: Sequence[str]) -> Markup:
    """Return a passage with the words of the question marked; everything else is escaped."""
    folded_terms = {term_text.casefold() for term_text in matched_terms}
    escaped_pieces = []
    current_word = ""
    for passage_character in [*passage_text, ""]:
        if passage_character and passage_character.isalnum():
            current_word += passage_character
            continue
        is_marked = bool(current_word) and any(
            current_word.casefold().startswith(term_text[: max(4, len(term_text) - 2)])
            for term_text in folded_terms
        )
        escaped_pieces.append(
            Markup("<mark>{}</mark>").format(current_word)
            if is_marked
            else Markup.escape(current_word)
        )
        escaped_pieces.append(Markup.escape(passage_character))
        current_word = ""
    return Markup("").join(escaped_pieces)


def _are_all_hits_far(hits: Sequence[DeskHit]) -> bool:
    """Whether there are passages, and none of them is close to what was asked."""
    return bool(hits) and judge_confidence([hit.score for hit in hits], "").level == "none"


# --- one record ---


@dataclass(frozen=True, slots=True)
class _ShownFact:
    """A line of the list above the text."""

    label: str
    text: str
    href: str | None = None
    is_code: bool = False


def _list_shown_facts(
    fetched_record: DeskRecord, record_page_extras: RecordPageExtras
) -> Iterator[_ShownFact]:
    record_fields = fetched_record.record
    # Any other scheme, such as `javascript:`, must not become a link.
    if fetched_record.url.startswith("https://"):
        yield _ShownFact("Official page", fetched_record.url, fetched_record.url)
    if record_fields.get("withdrawn"):
        yield _ShownFact("Withdrawn", "kept for reference; it is no longer current")
    for field_name, fact_label in _LABEL_BY_FIELD_NAME.items():
        field_value = record_fields.get(field_name)
        if field_value is not None and field_value != "":
            yield _ShownFact(fact_label, _format_fact(field_name, field_value))
    for fact_label, fact_text in record_page_extras.facts:
        yield _ShownFact(fact_label, fact_text)
    if fetched_record.links:
        link_count = sum(fetched_record.links.values())
        links_href = f"/records/links?id={quote(fetched_record.id, safe='')}"
        yield _ShownFact("Linked to", format_count(link_count, "record"), links_href)
    yield _ShownFact("Id", fetched_record.id, is_code=True)


def _format_fact(field_name: str, field_value: Any) -> str:
    if field_name == "document_type":
        return format_identifier(str(field_value))
    if field_name in ("published_at", "public_updated_at"):
        return format_day(str(field_value))
    return str(field_value)


def _describe_validity(record_fields: Mapping[str, Any]) -> str:
    """Return a sentence that says when a policy was in force; empty for other records."""
    first_day, last_day = record_fields.get("effective_from"), record_fields.get("effective_to")
    if not first_day:
        return ""
    if adoption_stage := record_fields.get("stage"):
        stage_text = format_identifier(adoption_stage).lower()
        return f"Not adopted yet ({stage_text}): it is in force on no day."
    today_text = clock.now().date().isoformat()
    if str(first_day) > today_text:
        return f"Not in force yet: it will be from {format_day(first_day)}."
    if not last_day:
        return f"In force since {format_day(first_day)}."
    if str(last_day) >= today_text:
        return f"In force from {format_day(first_day)}; its last day is {format_day(last_day)}."
    return f"No longer in force: it was from {format_day(first_day)} to {format_day(last_day)}."


def _mark_quotation(passage_text: str, quoted_text: str) -> Markup:
    """Return a text with a quotation marked where it stands in it, letter for letter."""
    text_before, marked_text, text_after = (
        passage_text.partition(quoted_text) if quoted_text else (passage_text, "", "")
    )
    if not marked_text:
        return Markup.escape(passage_text)
    return Markup("{}<mark>{}</mark>{}").format(text_before, marked_text, text_after)


def _make_record_page_address(record_id: str, text_offset: int | None = 0) -> str | None:
    if text_offset is None:
        return None
    record_page_address = make_record_page_path(record_id)
    return f"{record_page_address}&offset={text_offset}" if text_offset else record_page_address


def _read_fetch_arguments(request: PageRequest) -> DeskFetch:
    text_offset = _parse_number("offset", request.get_parameter("offset") or "0")
    return validate_model(DeskFetch, {"id": request.get_parameter("id"), "offset": text_offset})


# --- questions from forms ---


def _parse_number(field_name: str, number_text: str) -> int:
    try:
        return int(number_text)
    except ValueError as error:
        raise InvalidArguments([{"field": field_name, "message": "must be a number"}]) from error


def _remove_empty_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        argument_name: argument_value
        for argument_name, argument_value in arguments.items()
        if argument_value
    }
