"""The desk's pages: search over everything, any record by its id, an application beside policy."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from readingroom.core import clock
from readingroom.core.errors import InvalidArguments, validate_model
from readingroom.federation.models import AssessAgainstPolicy, DeskAnswer, DeskFetch, DeskSearch
from readingroom.federation.service import DeskService
from readingroom.protocol.pages import (
    BasePage,
    BasePages,
    PageRequest,
    ReadingAid,
    RenderedPage,
    ToolExample,
    Unasked,
)
from readingroom.protocol.sample import SAMPLE_PREFIX
from readingroom.protocol.search import DeskHit, DeskRecord, SearchRequest, make_read_path
from readingroom.web.templates import format_day, format_words, reflow, render_template

_render = partial(render_template, template_folder=Path(__file__).parent / "templates")
_MAX_MARKED_CHARS = 400
"""Of a passage in an address."""

# The fields of a record that are shown, whatever its base, in this order.
_LABELS = {
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


def make_pages(service: DeskService, base_pages: Mapping[str, BasePages]) -> BasePages:
    """Return the pages over every base; `base_pages` has what each base adds to them."""
    pages = DeskPages(service, base_pages)
    desk_pages = [
        BasePage(
            "/search",
            pages.search,
            menu_label="Search",
            summary="One question to every collection, with the day it is asked for.",
        ),
        BasePage("/read", pages.read),
    ]
    if {"application", "policy"} <= {adapter.role for adapter in service.adapters}:
        desk_pages.append(BasePage("/applications/beside", pages.show_beside))
    return BasePages(tuple(desk_pages))


class DeskPages:
    """The pages over every base."""

    def __init__(self, service: DeskService, base_pages: Mapping[str, BasePages]) -> None:
        self._service = service
        self._base_pages = base_pages

    async def search(self, request: PageRequest) -> RenderedPage:
        """Return the search form, with what was found where something is asked."""
        asked = _SearchForm.read(request)
        answer: DeskAnswer | None = None
        unasked: Sequence[Unasked] = ()
        question = None
        if asked.query:
            question = validate_model(DeskSearch, asked.to_arguments())
            answer = await self._service.search(question, request.call)
            unasked = await self._list_unasked(question, answer, request)
        body = _render(
            "search.html",
            asked=asked,
            bases=[adapter.base for adapter in self._service.adapters],
            answer=answer,
            hits=[_Hit.make(hit) for hit in answer.results] if answer else [],
            unasked=unasked,
            next_address=asked.make_address(answer.next_offset) if answer else None,
            mark=SAMPLE_PREFIX if request.is_sample else "",
        )
        title = f"Search: {asked.query}" if asked.query else "Search"
        example = ToolExample("search", asked.to_arguments()) if asked.query else None
        return RenderedPage(title, body, data=answer, tool_example=example)

    async def _list_unasked(
        self, question: DeskSearch, answer: DeskAnswer, request: PageRequest
    ) -> list[Unasked]:
        """Return what each base left out; a base that did not answer is told by the notes."""
        search = SearchRequest(
            query=question.query,
            limit=question.limit,
            day=question.date,
            application_ref=question.application_ref,
        )
        return [
            unasked
            for base in answer.searched
            if base in self._base_pages
            for unasked in await self._base_pages[base].list_unasked(search, request.call)
        ]

    async def read(self, request: PageRequest) -> RenderedPage:
        """Return a record's page: its text, citation and dates, and what its base adds.

        Raise InvalidArguments, or what the desk's `fetch` raises for an id that names nothing.
        """
        question = _read_fetch_question(request)
        record = await self._service.fetch(question, request.call)
        aid = ReadingAid()
        if record.base in self._base_pages:
            aid = await self._base_pages[record.base].aid_reading(request, record)
        mark = SAMPLE_PREFIX if request.is_sample else ""
        citation = mark + (aid.citation or record.citation.citation_string)
        body = _render(
            "record.html",
            title=record.title,
            citation=citation,
            validity=_describe_validity(record.record),
            facts=list(_list_facts(record)),
            text=_mark_quotation(reflow(record.text), reflow(request.get("quote"))),
            next_part=_make_read_address(record.id, record.next_offset),
            aid=aid,
            record_id=record.id,
        )
        return RenderedPage(
            citation,
            body,
            data=record,
            tool_example=ToolExample("fetch", {"id": record.id}),
            print_note=_describe_validity(record.record),
        )

    async def show_beside(self, request: PageRequest) -> RenderedPage:
        """Return what an application says on a topic beside the policy in force on its day."""
        arguments = {
            "application_ref": request.get("ref"),
            "topic": request.get("topic"),
            "date": request.get("date") or None,
        }
        question = validate_model(AssessAgainstPolicy, arguments)
        assessment = await self._service.assess(question, request.call)
        body = _render(
            "beside.html",
            assessment=assessment,
            application_hits=[_Hit.make(hit) for hit in assessment.application],
            policy_hits=[_Hit.make(hit) for hit in assessment.policy],
        )
        title = f"{assessment.application_ref}: {assessment.topic}, beside policy"
        example = ToolExample("assess_against_policy", _drop_empty(arguments))
        return RenderedPage(title, body, data=assessment, tool_example=example)


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
    def read(cls, request: PageRequest) -> "_SearchForm":
        return cls(
            query=request.get("q"),
            day=request.get("date"),
            application_ref=request.get("application"),
            base=request.get("base"),
            offset=request.get("offset"),
        )

    def to_arguments(self) -> dict[str, Any]:
        arguments = {
            "query": self.query,
            "date": self.day,
            "application_ref": self.application_ref,
            "source": self.base,
        }
        offset = {"offset": _parse_number("offset", self.offset)} if self.offset else {}
        return {**_drop_empty(arguments), **offset}

    def make_address(self, offset: int | None) -> str | None:
        """Return the address of another page of the same search."""
        if offset is None:
            return None
        values = {
            "q": self.query,
            "date": self.day,
            "application": self.application_ref,
            "base": self.base,
            "offset": str(offset),
        }
        return "/search?" + "&".join(
            f"{name}={quote(value, safe='')}" for name, value in values.items() if value
        )


@dataclass(frozen=True, slots=True)
class _Hit:
    """A result as the page shows it."""

    hit: DeskHit
    href: str
    snippet: Markup
    validity: str

    @classmethod
    def make(cls, hit: DeskHit) -> "_Hit":
        terms = hit.parts.matched_terms if hit.parts else ()
        validity = _describe_validity(hit.in_force.model_dump()) if hit.in_force else ""
        return cls(hit, _link_hit(hit), _mark_terms(reflow(hit.snippet), terms), validity)


def _link_hit(hit: DeskHit) -> str:
    """Return the address of a hit; of a whole page, with the passage to be marked on it."""
    address = _make_read_address(hit.id) or ""
    is_page = "#page=" in hit.id
    passage = quote(hit.snippet[:_MAX_MARKED_CHARS], safe="")
    return f"{address}&quote={passage}" if is_page else address


def _mark_terms(passage: str, terms: Sequence[str]) -> Markup:
    """Return a passage with the words of the question marked; everything else is escaped."""
    wanted = {term.casefold() for term in terms}
    pieces = []
    word = ""
    for character in [*passage, ""]:
        if character and character.isalnum():
            word += character
            continue
        is_marked = bool(word) and any(
            word.casefold().startswith(term[: max(4, len(term) - 2)]) for term in wanted
        )
        pieces.append(Markup("<mark>{}</mark>").format(word) if is_marked else Markup.escape(word))
        pieces.append(Markup.escape(character))
        word = ""
    return Markup("").join(pieces)


# --- one record ---


@dataclass(frozen=True, slots=True)
class _Fact:
    """A line of the list above the text."""

    label: str
    text: str
    href: str | None = None
    is_code: bool = False


def _list_facts(answer: DeskRecord) -> Iterator[_Fact]:
    record = answer.record
    # Any other scheme, such as `javascript:`, must not become a link.
    if answer.url.startswith("https://"):
        yield _Fact("Official page", answer.url, answer.url)
    if record.get("withdrawn"):
        yield _Fact("Withdrawn", "kept for reference; it is no longer current")
    for field, label in _LABELS.items():
        value = record.get(field)
        if value is not None and value != "":
            yield _Fact(label, _format_fact(field, value))
    if answer.links:
        total = sum(answer.links.values())
        href = f"/records/links?id={quote(answer.id, safe='')}"
        yield _Fact("Linked to", f"{total} record{'s' if total != 1 else ''}", href)
    yield _Fact("Id", answer.id, is_code=True)


def _format_fact(field: str, value: Any) -> str:
    if field == "document_type":
        return format_words(str(value))
    if field in ("published_at", "public_updated_at"):
        return format_day(str(value))
    return str(value)


def _describe_validity(record: Mapping[str, Any]) -> str:
    """Return a sentence that says when a policy was in force; empty for other records."""
    start, end = record.get("effective_from"), record.get("effective_to")
    if not start:
        return ""
    today = clock.now().date().isoformat()
    if str(start) > today:
        return f"Not in force yet: it will be from {format_day(start)}."
    if not end:
        return f"In force since {format_day(start)}."
    if str(end) >= today:
        return f"In force from {format_day(start)}; its last day is {format_day(end)}."
    return f"No longer in force: it was from {format_day(start)} to {format_day(end)}."


def _mark_quotation(passage: str, quotation: str) -> Markup:
    """Return a text with a quotation marked where it stands in it, letter for letter."""
    before, found, after = passage.partition(quotation) if quotation else (passage, "", "")
    if not found:
        return Markup.escape(passage)
    return Markup("{}<mark>{}</mark>{}").format(before, found, after)


def _make_read_address(record_id: str, offset: int | None = 0) -> str | None:
    if offset is None:
        return None
    address = make_read_path(record_id)
    return f"{address}&offset={offset}" if offset else address


def _read_fetch_question(request: PageRequest) -> DeskFetch:
    offset = _parse_number("offset", request.get("offset") or "0")
    return validate_model(DeskFetch, {"id": request.get("id"), "offset": offset})


# --- questions from forms ---


def _parse_number(field: str, written: str) -> int:
    try:
        return int(written)
    except ValueError as error:
        raise InvalidArguments([{"field": field, "message": "must be a number"}]) from error


def _drop_empty(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if value}
