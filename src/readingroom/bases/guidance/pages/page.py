"""A GOV.UK content item: its publisher, its metadata, and its text as Markdown."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from readingroom.bases.guidance.models import (
    ChangeNote,
    Identifiers,
    PageDocument,
    Translation,
    WithdrawnNotice,
)
from readingroom.bases.guidance.pages.details import (
    DetailsRenderer,
    make_heading,
    render_links,
)
from readingroom.bases.guidance.pages.links import (
    encode_parentheses,
    escape_text,
    format_markdown_link,
)
from readingroom.bases.guidance.pages.markdown import (
    Anchor,
    MarkdownConverter,
    convert_to_markdown,
    quote_lines,
)
from readingroom.bases.guidance.pages.values import (
    WEBSITE_URL,
    JsonObject,
    find_text,
    is_plain_path,
    make_website_url,
    read_html,
    read_objects,
)

COMMISSION_SLUG = "charity-commission"
_COMMISSION_PATH = f"/government/organisations/{COMMISSION_SLUG}"
# Compared by id as well as by path, because an id stays when a page moves.
_COMMISSION_ID = "489e651f-34c8-4b34-bdd7-e13c2324cde3"


@dataclass(frozen=True)
class GovukPage:
    """One item of the Content API; `content` is never changed."""

    content: Mapping[str, Any]
    requested_path: str = "/"

    @property
    def path(self) -> str:
        """The path that the item gives itself; the requested one where that is no plain path."""
        base_path = find_text(self.content.get("base_path"))
        return base_path if base_path and is_plain_path(base_path) else self.requested_path

    @property
    def url(self) -> str:
        return WEBSITE_URL + self.path

    @property
    def title(self) -> str | None:
        return find_text(self.content.get("title"))

    @property
    def locale(self) -> str | None:
        return find_text(self.content.get("locale"))

    @property
    def public_updated_at(self) -> str | None:
        return find_text(self.content.get("public_updated_at"))

    @property
    def first_published_at(self) -> str | None:
        return find_text(self.content.get("first_published_at"))

    @cached_property
    def identifiers(self) -> Identifiers:
        fields_by_name = Identifiers.model_fields
        return Identifiers(
            **{field_name: find_text(self.content.get(field_name)) for field_name in fields_by_name}
        )

    @cached_property
    def is_in_scope(self) -> bool:
        """Whether the Charity Commission published it, alone or with others, or is its subject."""
        return self.content.get("content_id") == _COMMISSION_ID or any(
            organisation_item.get("content_id") == _COMMISSION_ID
            or organisation_item.get("base_path") == _COMMISSION_PATH
            for organisation_item in self.list_linked_items("organisations")
        )

    @property
    def organisations(self) -> list[str]:
        organisation_titles = (
            find_text(organisation_item.get("title"))
            for organisation_item in self.list_linked_items("organisations")
        )
        return [
            organisation_title for organisation_title in organisation_titles if organisation_title
        ]

    @cached_property
    def translations(self) -> list[Translation]:
        """The page in languages other than its own."""
        return [
            Translation(
                locale=translation_locale,
                title=find_text(translation_item.get("title")),
                path=translation_path,
                url=translation_url,
            )
            for translation_item in self.list_linked_items("available_translations")
            if (translation_locale := find_text(translation_item.get("locale")))
            and translation_locale != self.locale
            if (translation_path := find_text(translation_item.get("base_path")))
            and (translation_url := make_website_url(translation_path))
        ]

    @cached_property
    def withdrawn_notice(self) -> WithdrawnNotice | None:
        raw_notice = self.content.get("withdrawn_notice")
        if not isinstance(raw_notice, Mapping) or not raw_notice:
            return None
        return WithdrawnNotice(
            explanation=convert_to_markdown(read_html(raw_notice.get("explanation")), WEBSITE_URL),
            withdrawn_at=find_text(raw_notice.get("withdrawn_at")),
        )

    @cached_property
    def citation(self) -> str:
        updated_note = f", updated {self.public_updated_at[:10]}" if self.public_updated_at else ""
        withdrawn_note = " (withdrawn)" if self.withdrawn_notice else ""
        publisher_name = "Charity Commission for England and Wales, GOV.UK"
        return (
            f"{self.title or self.path}{withdrawn_note}. {publisher_name}{updated_note}. {self.url}"
        )

    @cached_property
    def documents(self) -> list[PageDocument]:
        """The documents that a publication consists of: its HTML children and its files."""
        documents_by_url: dict[str, PageDocument] = {}
        for document_item in (
            *self.list_linked_items("children"),
            *read_objects(self._details.get("attachments")),
        ):
            document_target = find_text(document_item.get("base_path")) or find_text(
                document_item.get("url")
            )
            document_url = make_website_url(document_target) if document_target else None
            if document_url is None:
                continue
            document_path = document_url.removeprefix(WEBSITE_URL)
            is_govuk_page = is_plain_path(document_path)
            documents_by_url.setdefault(
                document_url,
                PageDocument(
                    title=find_text(document_item.get("title")) or document_path,
                    url=document_url,
                    path=document_path if is_govuk_page else None,
                    content_type="text/html"
                    if is_govuk_page
                    else find_text(document_item.get("content_type")),
                ),
            )
        return list(documents_by_url.values())

    @cached_property
    def change_notes(self) -> list[ChangeNote]:
        """What the publisher says of each change, the latest first."""
        moments_and_entries = (
            (
                history_entry.get("public_timestamp") or history_entry.get("published_at"),
                history_entry,
            )
            for field_name in ("change_history", "change_notes")
            for history_entry in read_objects(self._details.get(field_name))
        )
        unsorted_change_notes = [
            ChangeNote(changed_at=changed_moment, note=note_text)
            for changed_moment, history_entry in moments_and_entries
            if isinstance(changed_moment, str)
            if (
                note_text := find_text(history_entry.get("note"))
                or find_text(history_entry.get("change_note"))
            )
        ]
        return sorted(
            unsorted_change_notes, key=lambda change_note: change_note.changed_at, reverse=True
        )

    @property
    def text(self) -> str:
        """The page as a reader sees it: notice, title, summary, then all its parts."""
        return self._text_and_anchors[0]

    @property
    def anchors(self) -> list[Anchor]:
        """The headings of the text that can be linked to."""
        return self._text_and_anchors[1]

    @cached_property
    def _text_and_anchors(self) -> tuple[str, list[Anchor]]:
        markdown_converter = MarkdownConverter(WEBSITE_URL)
        text_blocks = [
            text_block
            for text_block in self._iterate_markdown_blocks(markdown_converter)
            if text_block
        ]
        text_blocks += filter(
            None, self._render_closing_blocks("\n\n".join(text_blocks), markdown_converter)
        )
        return "\n\n".join(text_blocks), markdown_converter.anchors

    @property
    def _details(self) -> JsonObject:
        raw_details = self.content.get("details")
        return raw_details if isinstance(raw_details, Mapping) else {}

    def list_linked_items(self, relation_name: str) -> list[JsonObject]:
        """Return the items that this one links to by a relation, such as `organisations`."""
        raw_links = self.content.get("links")
        return read_objects(raw_links.get(relation_name)) if isinstance(raw_links, Mapping) else []

    def _iterate_markdown_blocks(self, markdown_converter: MarkdownConverter) -> Iterator[str]:
        if self.title:
            yield f"# {escape_text(self.title)}"
        if self.withdrawn_notice:
            yield quote_lines(f"**Withdrawn.** {self.withdrawn_notice.explanation}")
        yield escape_text(find_text(self.content.get("description")) or "")
        yield self._render_speakers()
        yield self._render_html_document_links()
        yield from DetailsRenderer(markdown_converter, self._linked_items_by_id).render_details(
            self._details
        )

    def _render_speakers(self) -> str:
        speaker_names = [
            find_text(speaker_item.get("title"))
            for speaker_item in self.list_linked_items("speaker")
        ]
        return (
            f"Speaker: {escape_text(', '.join(filter(None, speaker_names)))}"
            if any(speaker_names)
            else ""
        )

    def _render_html_document_links(self) -> str:
        """Return links to the pages that hold the words of a publication, which only sums it up."""
        html_documents = [page_document for page_document in self.documents if page_document.path]
        if self.content.get("schema_name") != "publication" or not html_documents:
            return ""
        document_links = (
            format_markdown_link(escape_text(html_document.title), html_document.url)
            for html_document in html_documents
        )
        return f"**The guidance itself:** {'; '.join(document_links)}"

    def _render_closing_blocks(
        self, rendered_text: str, markdown_converter: MarkdownConverter
    ) -> Iterator[str]:
        """Yield what follows the page's own words: attachments, changes and abbreviations."""
        # HTML of the page often shows its attachments; those are not listed again.
        attachment_items = [
            attachment_item
            for attachment_item in read_objects(self._details.get("attachments"))
            if not _has_link_to_attachment(rendered_text, attachment_item)
        ]
        attachment_links_text = render_links(attachment_items)
        yield f"## Attachments\n\n{attachment_links_text}" if attachment_links_text else ""
        if self.change_notes:
            yield "## Updates to this page"
            yield "\n".join(
                f"- {change_note.changed_at[:10]}: "
                f"{escape_text(' '.join(change_note.note.split()))}"
                for change_note in self.change_notes
            )
        if markdown_converter.abbreviations:
            yield make_heading("Abbreviations")
            yield "\n".join(
                f"- {escape_text(abbreviation_text)}: {escape_text(abbreviation_meaning)}"
                for abbreviation_text, abbreviation_meaning in markdown_converter.abbreviations
            )

    @property
    def _linked_items_by_id(self) -> dict[str, JsonObject]:
        raw_links = self.content.get("links")
        linked_item_lists = raw_links.values() if isinstance(raw_links, Mapping) else ()
        return {
            str(linked_item["content_id"]): linked_item
            for linked_item_list in linked_item_lists
            for linked_item in read_objects(linked_item_list)
            if linked_item.get("content_id")
        }


def _has_link_to_attachment(page_markdown: str, attachment_item: JsonObject) -> bool:
    attachment_url = make_website_url(find_text(attachment_item.get("url")) or "")
    return (
        attachment_url is not None and f"]({encode_parentheses(attachment_url)})" in page_markdown
    )
