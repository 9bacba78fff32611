"""Builds the answers of the guidance base: pages, sections and passages, with their sources."""

import inspect
from typing import Any
from urllib.parse import quote

from readingroom.bases.guidance.errors import NotFoundOrRedirected, StaleCacheServed
from readingroom.bases.guidance.models import (
    CacheState,
    ErrorKind,
    GetContentById,
    GetContentByPath,
    PageContent,
    PagePassage,
    PageSection,
    PageText,
    Warned,
    make_guidance_id,
)
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.sections import (
    SectionSpan,
    find_enclosing_section,
    find_section,
    list_sections,
    split_blocks,
)
from readingroom.core.errors import KnowledgeError
from readingroom.net.cache import ServedReply
from readingroom.net.errors import UpstreamError


def make_page_answer(
    govuk_page: GovukPage,
    govuk_reply: ServedReply,
    arguments: GetContentByPath | GetContentById,
    section_anchor: str | None = None,
) -> PageContent | PageText:
    """Return the part of a page that the question is for."""
    section_span = _choose_section(govuk_page, arguments.section, section_anchor)
    section_text = (
        govuk_page.text[section_span.start_offset : section_span.end_offset].rstrip()
        if section_span
        else govuk_page.text
    )
    end_offset = (
        len(section_text) if arguments.max_chars is None else arguments.offset + arguments.max_chars
    )
    answer_fields = {
        **make_source_fields(govuk_page, govuk_reply),
        "public_updated_at": govuk_page.public_updated_at,
        "text": section_text[arguments.offset : end_offset],
        "text_chars": len(section_text),
        "next_offset": end_offset if end_offset < len(section_text) else None,
        "section": _make_page_section(section_span),
        "documents": govuk_page.documents,
        "change_notes": govuk_page.change_notes,
    }
    if arguments.text_only:
        return PageText(**answer_fields)
    return PageContent(**answer_fields, content=dict(govuk_page.content))


def _choose_section(
    govuk_page: GovukPage, section_name: str | None, section_anchor: str | None
) -> SectionSpan | None:
    """Return the section that was asked for; an anchor that leads nowhere means the whole page."""
    if not section_name and not section_anchor:
        return None
    section_spans = list_sections(govuk_page.text, govuk_page.anchors)
    section_span = find_section(section_spans, section_name or section_anchor or "")
    if section_span is None and section_name:
        raise NotFoundOrRedirected(
            f"{govuk_page.path} has no section {section_name!r}, "
            "or several that are called like it",
            sections=[
                section_span.anchor or section_span.heading for section_span in section_spans[:100]
            ],
        )
    return section_span


def _make_page_section(section_span: SectionSpan | None) -> PageSection | None:
    return (
        PageSection(heading=section_span.heading, anchor=section_span.anchor)
        if section_span
        else None
    )


def make_passage_at(govuk_page: GovukPage, text_offset: int) -> PagePassage:
    """Return the passage that an offset in the text of a page lies in."""
    block_offset, block_text = max(
        (
            offset_and_block
            for offset_and_block in split_blocks(govuk_page.text)
            if offset_and_block[0] <= text_offset
        ),
    )
    section_spans = list_sections(govuk_page.text, govuk_page.anchors)
    return make_passage(
        govuk_page, block_text, block_offset, find_enclosing_section(section_spans, block_offset)
    )


def make_passage_of_block(govuk_page: GovukPage, block_text: str) -> PagePassage:
    return make_passage_at(govuk_page, govuk_page.text.index(block_text))


def make_passage(
    govuk_page: GovukPage, block_text: str, block_offset: int, section_span: SectionSpan | None
) -> PagePassage:
    passage_url = (
        f"{govuk_page.url}#{quote(section_span.anchor)}"
        if section_span and section_span.anchor
        else govuk_page.url
    )
    return PagePassage(
        text=block_text,
        section=_make_page_section(section_span),
        url=passage_url,
        offset=block_offset,
    )


def make_source_fields(govuk_page: GovukPage, govuk_reply: ServedReply) -> dict[str, Any]:
    """Return the fields that every answer about a page has."""
    return {
        "id": make_guidance_id(govuk_page.path),
        "url": govuk_page.url,
        "title": govuk_page.title,
        "citation": govuk_page.citation,
        "identifiers": govuk_page.identifiers,
        "locale": govuk_page.locale,
        "translations": govuk_page.translations,
        "withdrawn": govuk_page.withdrawn_notice is not None,
        "withdrawn_notice": govuk_page.withdrawn_notice,
        "cache": make_cache_state(govuk_reply),
        "warnings": make_reply_warnings(govuk_reply),
    }


def make_cache_state(govuk_reply: ServedReply) -> CacheState:
    return CacheState(
        hit=govuk_reply.is_from_cache,
        age_s=round(govuk_reply.age_seconds, 3),
        ttl_s=govuk_reply.entry.ttl_seconds,
        stale=govuk_reply.failure is not None,
    )


def make_reply_warnings(govuk_reply: ServedReply) -> list[Warned]:
    """Return the warning of a stale reply; nothing for any other."""
    return make_stale_warnings(govuk_reply.failure, govuk_reply.age_seconds)


def make_stale_warnings(upstream_error: UpstreamError | None, age_seconds: float) -> list[Warned]:
    """Return the warning of an answer that is given because GOV.UK failed."""
    if upstream_error is None:
        return []
    warning_message = f"{make_error_kind(StaleCacheServed).description}: {upstream_error.message}"
    rounded_age_seconds = round(age_seconds, 3)
    return [
        Warned(
            code=StaleCacheServed.code.upper(), message=warning_message, age_s=rounded_age_seconds
        )
    ]


def make_error_kind(error_class: type[KnowledgeError]) -> ErrorKind:
    first_docstring_line = inspect.cleandoc(error_class.__doc__ or "").partition("\n")[0]
    return ErrorKind(code=error_class.code.upper(), description=first_docstring_line)
