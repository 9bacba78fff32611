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
from readingroom.net.cache import CachedReply
from readingroom.net.errors import UpstreamError


def make_page_answer(
    page: GovukPage,
    cached_reply: CachedReply,
    arguments: GetContentByPath | GetContentById,
    anchor: str | None = None,
) -> PageContent | PageText:
    """Return the part of a page that the question is for."""
    section = _choose_section(page, arguments.section, anchor)
    section_text = page.text[section.start : section.end].rstrip() if section else page.text
    end_offset = (
        len(section_text) if arguments.max_chars is None else arguments.offset + arguments.max_chars
    )
    answer_fields = {
        **make_source_fields(page, cached_reply),
        "public_updated_at": page.public_updated_at,
        "text": section_text[arguments.offset : end_offset],
        "text_chars": len(section_text),
        "next_offset": end_offset if end_offset < len(section_text) else None,
        "section": _make_page_section(section),
        "documents": page.documents,
        "change_notes": page.change_notes,
    }
    if arguments.text_only:
        return PageText(**answer_fields)
    return PageContent(**answer_fields, content=dict(page.content))


def _choose_section(
    page: GovukPage, section_name: str | None, anchor: str | None
) -> SectionSpan | None:
    """Return the section that was asked for; an anchor that leads nowhere means the whole page."""
    if not section_name and not anchor:
        return None
    sections = list_sections(page.text, page.anchors)
    section = find_section(sections, section_name or anchor or "")
    if section is None and section_name:
        raise NotFoundOrRedirected(
            f"{page.path} has no section {section_name!r}, or several that are called like it",
            sections=[section.anchor or section.heading for section in sections[:100]],
        )
    return section


def _make_page_section(section: SectionSpan | None) -> PageSection | None:
    return PageSection(heading=section.heading, anchor=section.anchor) if section else None


def make_passage_at(page: GovukPage, text_offset: int) -> PagePassage:
    """Return the passage that an offset in the text of a page lies in."""
    block_start, block_text = max(
        (
            offset_and_block
            for offset_and_block in split_blocks(page.text)
            if offset_and_block[0] <= text_offset
        ),
    )
    sections = list_sections(page.text, page.anchors)
    return make_passage(
        page, block_text, block_start, find_enclosing_section(sections, block_start)
    )


def make_passage_of_block(page: GovukPage, block_text: str) -> PagePassage:
    return make_passage_at(page, page.text.index(block_text))


def make_passage(
    page: GovukPage, block_text: str, block_start: int, section: SectionSpan | None
) -> PagePassage:
    url = f"{page.url}#{quote(section.anchor)}" if section and section.anchor else page.url
    return PagePassage(
        text=block_text, section=_make_page_section(section), url=url, offset=block_start
    )


def make_source_fields(page: GovukPage, cached_reply: CachedReply) -> dict[str, Any]:
    """Return the fields that every answer about a page has."""
    return {
        "id": make_guidance_id(page.path),
        "url": page.url,
        "title": page.title,
        "citation": page.citation,
        "identifiers": page.identifiers,
        "locale": page.locale,
        "translations": page.translations,
        "withdrawn": page.withdrawn_notice is not None,
        "withdrawn_notice": page.withdrawn_notice,
        "cache": make_cache_state(cached_reply),
        "warnings": make_warnings(cached_reply),
    }


def make_cache_state(cached_reply: CachedReply) -> CacheState:
    return CacheState(
        hit=cached_reply.is_hit,
        age_s=round(cached_reply.age_seconds, 3),
        ttl_s=cached_reply.entry.ttl,
        stale=cached_reply.failure is not None,
    )


def make_warnings(cached_reply: CachedReply) -> list[Warned]:
    """Return the warning of a stale reply; nothing for any other."""
    return make_stale_warnings(cached_reply.failure, cached_reply.age_seconds)


def make_stale_warnings(failure: UpstreamError | None, age_seconds: float) -> list[Warned]:
    """Return the warning of an answer that is given because GOV.UK failed."""
    if failure is None:
        return []
    warning_message = f"{make_error_kind(StaleCacheServed).description}: {failure.message}"
    rounded_age = round(age_seconds, 3)
    return [Warned(code=StaleCacheServed.code.upper(), message=warning_message, age_s=rounded_age)]


def make_error_kind(error_class: type[KnowledgeError]) -> ErrorKind:
    docstring_line = inspect.cleandoc(error_class.__doc__ or "").partition("\n")[0]
    return ErrorKind(code=error_class.code.upper(), description=docstring_line)
