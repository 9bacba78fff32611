"""A GOV.UK content item: whose it is, what it says of itself, and its words as Markdown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from readingroom.bases.guidance.markdown import to_markdown
from readingroom.bases.guidance.models import Identifiers, Translation, WithdrawnNotice

WEBSITE = "https://www.gov.uk"
ORGANISATION = "charity-commission"

# What GOV.UK's own paths are made of: no scheme, host, escape, query or empty segment fits it, and
# no segment can be `.` or `..`, because each begins with a letter or a digit.
_PATH = re.compile(r"/|(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)+", re.ASCII)
_OUR_PATH = f"/government/organisations/{ORGANISATION}"
_OUR_ID = "489e651f-34c8-4b34-bdd7-e13c2324cde3"

# Fields of `details` that hold a piece of the page's text besides body and parts, in page order.
_PROSE = (
    "introductory_paragraph",
    "introduction",
    "body",
    "more_information",
    "need_to_know",
    "licence_overview",
    "final_outcome_detail",
    "public_feedback_detail",
    "outcome_detail",
)


@dataclass(frozen=True)
class Page:
    """One item as the Content API gave it; `content` is never changed."""

    content: Mapping[str, Any]

    @property
    def path(self) -> str:
        return _text(self.content.get("base_path")) or "/"

    @property
    def url(self) -> str:
        return website_url(self.path)

    @property
    def title(self) -> str | None:
        return _text(self.content.get("title"))

    @property
    def locale(self) -> str | None:
        return _text(self.content.get("locale"))

    @property
    def public_updated_at(self) -> str | None:
        return _text(self.content.get("public_updated_at"))

    @property
    def first_published_at(self) -> str | None:
        return _text(self.content.get("first_published_at"))

    @cached_property
    def identifiers(self) -> Identifiers:
        names = Identifiers.model_fields
        return Identifiers(**{name: _text(self.content.get(name)) for name in names})

    @cached_property
    def in_scope(self) -> bool:
        """Whether the Charity Commission published it, alone or with others, or is its subject."""
        return self.content.get("content_id") == _OUR_ID or any(
            one.get("content_id") == _OUR_ID or one.get("base_path") == _OUR_PATH
            for one in self.linked("organisations")
        )

    @property
    def organisations(self) -> list[str]:
        return [title for one in self.linked("organisations") if (title := _text(one.get("title")))]

    @cached_property
    def translations(self) -> list[Translation]:
        """The page in other languages than its own."""
        return [
            Translation(locale=locale, title=_text(one.get("title")), path=path, url=url)
            for one in self.linked("available_translations")
            if (locale := _text(one.get("locale"))) and locale != self.locale
            if (path := _text(one.get("base_path"))) and (url := website_url(path))
        ]

    @cached_property
    def withdrawn_notice(self) -> WithdrawnNotice | None:
        notice = self.content.get("withdrawn_notice")
        if not isinstance(notice, Mapping) or not notice:
            return None
        return WithdrawnNotice(
            explanation=to_markdown(_html(notice.get("explanation")), WEBSITE),
            withdrawn_at=_text(notice.get("withdrawn_at")),
        )

    @cached_property
    def citation(self) -> str:
        updated = f", updated {self.public_updated_at[:10]}" if self.public_updated_at else ""
        withdrawn = " (withdrawn)" if self.withdrawn_notice else ""
        publisher = "Charity Commission for England and Wales, GOV.UK"
        return f"{self.title or self.path}{withdrawn}. {publisher}{updated}. {self.url}"

    @cached_property
    def text(self) -> str:
        """The page as a reader sees it: notice, title, summary, then all its parts."""
        return "\n\n".join(part for part in self._parts() if part)

    def linked(self, kind: str) -> list[Mapping[str, Any]]:
        links = self.content.get("links")
        found = links.get(kind) if isinstance(links, Mapping) else None
        return _objects(found)

    def _parts(self) -> Iterator[str]:
        if self.title:
            yield f"# {self.title}"
        if self.withdrawn_notice:
            yield _quoted(f"**Withdrawn.** {self.withdrawn_notice.explanation}")
        yield _text(self.content.get("description")) or ""
        details = self.content.get("details")
        if isinstance(details, Mapping):
            yield from self._details(details)

    def _details(self, details: Mapping[str, Any]) -> Iterator[str]:
        for name in _PROSE:
            yield to_markdown(_html(details.get(name)), WEBSITE)
        for part in _objects(details.get("parts")):
            yield _heading(part.get("title") or part.get("slug"))
            yield to_markdown(_html(part.get("body")), WEBSITE)
        for group in _objects(details.get("collection_groups")):
            yield from self._collection(group)
        for group in _objects(details.get("child_section_groups")):
            yield _heading(group.get("title"))
            yield _references(_objects(group.get("child_sections")))
        for document in _list(details.get("documents")):
            yield to_markdown(_html(document), WEBSITE)
        yield self._attachments(details)

    def _collection(self, group: Mapping[str, Any]) -> Iterator[str]:
        yield _heading(group.get("title"))
        yield to_markdown(_html(group.get("body")), WEBSITE)
        known = {one.get("content_id"): one for one in self.linked("documents")}
        members = [one for one in _list(group.get("documents")) if isinstance(one, str)]
        yield _references([known[member] for member in members if member in known])

    def _attachments(self, details: Mapping[str, Any]) -> str:
        """Where the attachments are; they are referenced, never fetched."""
        listed = _references(_objects(details.get("attachments")))
        return f"## Attachments\n\n{listed}" if listed else ""


def is_plain_path(text: str) -> bool:
    """Whether a text is the path of a GOV.UK page and no more: `/guidance/charity-reporting`."""
    return _PATH.fullmatch(text) is not None


def website_url(path: str) -> str:
    """Where people read a page."""
    return path if path.startswith(("https://", "http://")) else WEBSITE + path


def _heading(title: Any) -> str:
    return f"## {title}" if _text(title) else ""


def _references(items: list[Mapping[str, Any]]) -> str:
    lines = [
        f"- [{_text(item.get('title')) or address}]({website_url(address)})"
        for item in items
        if (address := _text(item.get("base_path")) or _text(item.get("url")))
    ]
    return "\n".join(lines)


def _html(value: Any) -> str:
    """A text, or the HTML among several renderings of it."""
    if isinstance(value, str):
        return value
    rendered = [one for one in _objects(value) if one.get("content_type") == "text/html"]
    return _text(rendered[0].get("content")) or "" if rendered else ""


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in _list(value) if isinstance(one, Mapping)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
