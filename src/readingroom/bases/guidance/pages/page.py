"""A GOV.UK content item: its publisher, its metadata, and its text as Markdown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from readingroom.bases.guidance.models import Identifiers, Translation, WithdrawnNotice
from readingroom.bases.guidance.pages.markdown import MarkdownConverter, resolve_link, to_markdown

WEBSITE = "https://www.gov.uk"
ORGANISATION = "charity-commission"

# The form of GOV.UK's own paths. No scheme, host, escape, query or empty segment matches, and no
# segment can be `.` or `..`, because each begins with a letter or a digit.
_PLAIN_PATH = re.compile(r"/|(?:/[A-Za-z0-9][A-Za-z0-9._~-]*)+", re.ASCII)
_WEB_ADDRESS = re.compile(r"https?://", re.ASCII)
_COMMISSION_PATH = f"/government/organisations/{ORGANISATION}"
# Compared by id as well as by path, because an id stays when a page moves.
_COMMISSION_ID = "489e651f-34c8-4b34-bdd7-e13c2324cde3"

# Fields of `details` that hold text of the page, besides its parts, in the order of the page.
_TEXT_FIELDS = (
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
class GovukPage:
    """One item of the Content API; `content` is never changed."""

    content: Mapping[str, Any]
    requested_path: str = "/"

    @property
    def path(self) -> str:
        """The path that the item gives itself; the requested one where that is no plain path."""
        base_path = _read_text(self.content.get("base_path"))
        return base_path if base_path and is_plain_path(base_path) else self.requested_path

    @property
    def url(self) -> str:
        return WEBSITE + self.path

    @property
    def title(self) -> str | None:
        return _read_text(self.content.get("title"))

    @property
    def locale(self) -> str | None:
        return _read_text(self.content.get("locale"))

    @property
    def public_updated_at(self) -> str | None:
        return _read_text(self.content.get("public_updated_at"))

    @property
    def first_published_at(self) -> str | None:
        return _read_text(self.content.get("first_published_at"))

    @cached_property
    def identifiers(self) -> Identifiers:
        names = Identifiers.model_fields
        return Identifiers(**{name: _read_text(self.content.get(name)) for name in names})

    @cached_property
    def is_in_scope(self) -> bool:
        """Whether the Charity Commission published it, alone or with others, or is its subject."""
        return self.content.get("content_id") == _COMMISSION_ID or any(
            organisation.get("content_id") == _COMMISSION_ID
            or organisation.get("base_path") == _COMMISSION_PATH
            for organisation in self.list_linked_items("organisations")
        )

    @property
    def organisations(self) -> list[str]:
        titles = (_read_text(item.get("title")) for item in self.list_linked_items("organisations"))
        return [title for title in titles if title]

    @cached_property
    def translations(self) -> list[Translation]:
        """The page in languages other than its own."""
        return [
            Translation(locale=locale, title=_read_text(item.get("title")), path=path, url=url)
            for item in self.list_linked_items("available_translations")
            if (locale := _read_text(item.get("locale"))) and locale != self.locale
            if (path := _read_text(item.get("base_path"))) and (url := make_website_url(path))
        ]

    @cached_property
    def withdrawn_notice(self) -> WithdrawnNotice | None:
        notice = self.content.get("withdrawn_notice")
        if not isinstance(notice, Mapping) or not notice:
            return None
        return WithdrawnNotice(
            explanation=to_markdown(_read_html(notice.get("explanation")), WEBSITE),
            withdrawn_at=_read_text(notice.get("withdrawn_at")),
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
        return "\n\n".join(part for part in self._render_parts(MarkdownConverter(WEBSITE)) if part)

    def list_linked_items(self, relation: str) -> list[Mapping[str, Any]]:
        """Return the items that this one links to as `kind`."""
        links = self.content.get("links")
        return _read_objects(links.get(relation)) if isinstance(links, Mapping) else []

    def _render_parts(self, converter: MarkdownConverter) -> Iterator[str]:
        if self.title:
            yield f"# {self.title}"
        if self.withdrawn_notice:
            yield _quote_lines(f"**Withdrawn.** {self.withdrawn_notice.explanation}")
        yield _read_text(self.content.get("description")) or ""
        details = self.content.get("details")
        if isinstance(details, Mapping):
            yield from self._render_details(details, converter)

    def _render_details(
        self, details: Mapping[str, Any], converter: MarkdownConverter
    ) -> Iterator[str]:
        # By field, not by schema: GOV.UK has dozens of schemas and adds others.
        for name in _TEXT_FIELDS:
            yield converter.convert(_read_html(details.get(name)))
        for part in _read_objects(details.get("parts")):
            yield _render_heading(part.get("title") or part.get("slug"))
            yield converter.convert(_read_html(part.get("body")))
        for group in _read_objects(details.get("collection_groups")):
            yield from self._render_collection(group, converter)
        for group in _read_objects(details.get("child_section_groups")):
            yield _render_heading(group.get("title"))
            yield _render_links(_read_objects(group.get("child_sections")))
        for document in _read_list(details.get("documents")):
            yield converter.convert(_read_html(document))
        yield _render_attachments(details)

    def _render_collection(
        self, group: Mapping[str, Any], converter: MarkdownConverter
    ) -> Iterator[str]:
        yield _render_heading(group.get("title"))
        yield converter.convert(_read_html(group.get("body")))
        # Groups name documents by id only; their titles and paths are in the item's links.
        documents = {item.get("content_id"): item for item in self.list_linked_items("documents")}
        document_ids = [
            value for value in _read_list(group.get("documents")) if isinstance(value, str)
        ]
        yield _render_links([documents[id] for id in document_ids if id in documents])


def is_plain_path(text: str) -> bool:
    """Whether a text is the plain path of a GOV.UK page, such as `/guidance/charity-reporting`."""
    return _PLAIN_PATH.fullmatch(text) is not None


def make_website_url(target: str) -> str | None:
    """Return the address at which people read a page, or None where the target leads to none.

    `target` is a path on GOV.UK or the full address of another site. It comes from upstream: joined
    to the website by mere concatenation, `@evil.example` would be another host.
    """
    is_path = target.startswith("/")
    return resolve_link(target, WEBSITE) if is_path or _WEB_ADDRESS.match(target) else None


def _render_attachments(details: Mapping[str, Any]) -> str:
    """Return links to the attachments, which are never fetched."""
    links = _render_links(_read_objects(details.get("attachments")))
    return f"## Attachments\n\n{links}" if links else ""


def _render_heading(title: Any) -> str:
    return f"## {title}" if _read_text(title) else ""


def _render_links(items: list[Mapping[str, Any]]) -> str:
    """Return a list of links; a title whose target leads nowhere is listed without a link."""
    lines = []
    for item in items:
        target = _read_text(item.get("base_path")) or _read_text(item.get("url"))
        if target:
            title, address = _read_text(item.get("title")), make_website_url(target)
            lines.append(f"- [{title or target}]({address})" if address else f"- {title or target}")
    return "\n".join(lines)


def _read_html(value: Any) -> str:
    """Return a text itself, or the HTML among several renderings of it."""
    if isinstance(value, str):
        return value
    renderings = [item for item in _read_objects(value) if item.get("content_type") == "text/html"]
    return _read_text(renderings[0].get("content")) or "" if renderings else ""


def _read_objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _read_list(value) if isinstance(item, Mapping)]


def _read_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _quote_lines(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))
