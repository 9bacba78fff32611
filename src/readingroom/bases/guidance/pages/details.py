"""Renders the `details` of a content item as Markdown: every field that a reader of GOV.UK sees."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from readingroom.bases.guidance.pages.fields import (
    FIRST_FIELDS,
    HEADING_BY_FIELD,
    HIDDEN_FIELDS,
    LABEL_BY_FIELD,
    PROSE_FIELDS,
)
from readingroom.bases.guidance.pages.links import escape_text, format_markdown_link
from readingroom.bases.guidance.pages.markdown import MarkdownConverter
from readingroom.bases.guidance.pages.values import (
    JsonObject,
    find_text,
    format_moment,
    is_list_of_renderings,
    make_website_url,
    read_html,
    read_list,
    read_objects,
)

_TITLE_KEYS = ("title", "name", "label", "text", "topic_name", "facet_name")
_LINK_KEYS = ("base_path", "href", "url", "link", "path", "web_url", "transaction_start_link")
_UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_HTML_MARKUP_PATTERN = re.compile(r"</?[A-Za-z][^>]*>|&[a-z]+;|&#\d+;")
_HTML_TAG_PATTERN = re.compile(r"</?[A-Za-z][^>]*>")
_MAX_JSON_DEPTH = 40  # of fields inside fields; headings stay at the sixth level


class DetailsRenderer:
    """Renders the details of one item; `linked_items_by_id` are the items it links to."""

    def __init__(
        self, markdown_converter: MarkdownConverter, linked_items_by_id: Mapping[str, JsonObject]
    ) -> None:
        self._converter = markdown_converter
        self._linked_items_by_id = linked_items_by_id
        self._converted_html: set[str] = set()

    def render_details(self, page_details: JsonObject) -> Iterator[str]:
        """Yield the fields that readers see as blocks of Markdown; some blocks are empty."""
        later_field_names = [
            field_name for field_name in page_details if field_name not in FIRST_FIELDS
        ]
        for field_name in (*FIRST_FIELDS, *later_field_names):
            if field_name in HIDDEN_FIELDS or field_name not in page_details:
                continue
            if field_renderer := self._RENDERERS_BY_FIELD.get(field_name):
                yield from field_renderer(self, page_details[field_name], page_details)
            else:
                yield from self._render_field(field_name, page_details[field_name], heading_level=2)
        # A field that is not shown may hold prose in a schema that is new: no word of it is lost.
        for html_text in _list_html_texts(page_details):
            if html_text not in self._converted_html:
                yield self._convert_html(html_text)

    def _convert_html(self, html_text: str) -> str:
        self._converted_html.add(html_text)
        return self._converter.convert_html(html_text)

    # --- any field ---

    def _render_field(self, field_name: str, field_value: Any, heading_level: int) -> Iterator[str]:
        """Yield a field: its heading where it needs one, and what it holds."""
        is_prose = field_name in PROSE_FIELDS
        if isinstance(field_value, str) and not is_prose and field_name not in HEADING_BY_FIELD:
            yield from self._render_short_text(field_name, field_value, heading_level)
            return
        markdown_blocks = [*filter(None, self._render_value(field_value, heading_level + 1))]
        if markdown_blocks and not is_prose:
            yield make_heading(
                HEADING_BY_FIELD.get(field_name) or _humanize_field_name(field_name), heading_level
            )
        yield from markdown_blocks

    def _render_short_text(
        self, field_name: str, field_value: str, heading_level: int
    ) -> Iterator[str]:
        """Yield a text in a field that is not known to be prose: by what it looks like."""
        if _HTML_MARKUP_PATTERN.search(field_value):
            yield make_heading(_humanize_field_name(field_name), heading_level)
            yield self._convert_html(field_value)
        elif label_line := _render_labelled_text(field_name, field_value):
            yield label_line

    def _render_value(self, field_value: Any, heading_level: int) -> Iterator[str]:
        if heading_level > _MAX_JSON_DEPTH:
            return
        if isinstance(field_value, str) or is_list_of_renderings(field_value):
            yield self._render_text(read_html(field_value))
        elif isinstance(field_value, Mapping):
            yield from self._render_object(field_value, heading_level)
        else:
            yield from self._render_list(read_list(field_value), heading_level)

    def _render_text(self, prose: str) -> str:
        """Return a text as Markdown: prose may be HTML or plain."""
        if prose.strip().lower().startswith(("http://", "https://")) and " " not in prose.strip():
            return _render_link_line("", prose.strip())
        return self._convert_html(prose)

    def _render_list(self, list_entries: list[Any], heading_level: int) -> Iterator[str]:
        one_line_entries: list[str] = []
        for list_entry in list_entries:
            if isinstance(list_entry, str) and _UUID_PATTERN.fullmatch(list_entry):
                list_entry = self._linked_items_by_id.get(list_entry)
            entry_line = _render_item_line(list_entry)
            if entry_line is not None:
                one_line_entries.append(entry_line)
            else:
                yield "\n".join(filter(None, one_line_entries))
                one_line_entries = []
                yield from self._render_value(list_entry, heading_level)
        yield "\n".join(filter(None, one_line_entries))

    def _render_object(self, json_object: JsonObject, heading_level: int) -> Iterator[str]:
        """Yield an object with its title as the heading, and its other fields in their order."""
        title_key, object_title = _find_first_text_field(json_object, _TITLE_KEYS)
        link_key, link_target = _find_first_text_field(json_object, _LINK_KEYS)
        link_address = make_website_url(link_target) if link_target else None
        if object_title:
            heading_text = escape_text(" ".join(object_title.split()))
            yield make_heading(
                format_markdown_link(heading_text, link_address) if link_address else heading_text,
                heading_level,
            )
        for field_name, field_value in json_object.items():
            if (
                field_name in (title_key, link_key if object_title else None)
                or field_name in HIDDEN_FIELDS
            ):
                continue
            if field_renderer := self._RENDERERS_BY_FIELD.get(field_name):
                yield from field_renderer(self, field_value, json_object)
            else:
                yield from self._render_field(field_name, field_value, heading_level + 1)

    # --- fields of their own kind ---

    def _render_guide_parts(self, guide_parts: Any, parent_fields: JsonObject) -> Iterator[str]:
        for guide_part in read_objects(guide_parts):
            yield make_heading(
                find_text(guide_part.get("title")) or find_text(guide_part.get("slug"))
            )
            yield self._convert_html(read_html(guide_part.get("body")))

    def _render_collection(self, document_groups: Any, parent_fields: JsonObject) -> Iterator[str]:
        for document_group in read_objects(document_groups):
            yield make_heading(find_text(document_group.get("title")))
            yield self._convert_html(read_html(document_group.get("body")))
            # Groups name documents by id only; their titles and paths are in the item's links.
            yield self._render_linked_items(document_group.get("documents"))

    def _render_item_groups(self, item_groups: Any, parent_fields: JsonObject) -> Iterator[str]:
        for item_group in read_objects(item_groups):
            yield make_heading(
                find_text(item_group.get("name")) or find_text(item_group.get("title"))
            )
            yield self._convert_html(read_html(item_group.get("description")))
            yield self._render_linked_items(item_group.get("content_ids"))
            yield from self._render_list(read_list(item_group.get("contents")), 3)

    def _render_child_sections(
        self, section_groups: Any, parent_fields: JsonObject
    ) -> Iterator[str]:
        for section_group in read_objects(section_groups):
            yield make_heading(find_text(section_group.get("title")))
            yield "\n".join(
                _render_child_section(child_section)
                for child_section in read_objects(section_group.get("child_sections"))
            )

    def _render_alerts(self, alert_codes: Any, parent_fields: JsonObject) -> Iterator[str]:
        yield "\n".join(
            f"- {_humanize_field_name(alert_code)}"
            for alert_code in read_list(alert_codes)
            if isinstance(alert_code, str)
        )

    def _render_linked_items(self, content_ids: Any) -> str:
        items_or_none = [
            self._linked_items_by_id.get(content_id)
            for content_id in read_list(content_ids)
            if isinstance(content_id, str)
        ]
        return render_links([*filter(None, items_or_none)])

    def _render_start_link(self, start_link: Any, parent_fields: JsonObject) -> Iterator[str]:
        start_address = make_website_url(find_text(start_link) or "")
        if start_address:
            button_text = escape_text(
                find_text(parent_fields.get("start_button_text")) or "Start now"
            )
            yield f"**{format_markdown_link(button_text, start_address)}**"

    def _render_start_button(self, button_text: Any, parent_fields: JsonObject) -> Iterator[str]:
        # With a link it is the text of that link.
        if not find_text(parent_fields.get("transaction_start_link")) and find_text(button_text):
            yield f"**{escape_text(button_text)}**"

    def _render_applicability(
        self, nation_entries: Any, parent_fields: JsonObject
    ) -> Iterator[str]:
        nation_lines = []
        for nation_entry in nation_entries.values() if isinstance(nation_entries, Mapping) else ():
            if isinstance(nation_entry, Mapping) and find_text(nation_entry.get("label")):
                applies_text = (
                    "does not apply" if nation_entry.get("applicable") is False else "applies"
                )
                alternative_address = make_website_url(
                    find_text(nation_entry.get("alternative_url")) or ""
                )
                alternative_note = f" (see {alternative_address})" if alternative_address else ""
                nation_lines.append(
                    f"- {escape_text(nation_entry['label'])}: {applies_text}{alternative_note}"
                )
        if nation_lines:
            yield make_heading("Where it applies")
            yield "\n".join(nation_lines)

    def _render_scotland(self, availability: Any, parent_fields: JsonObject) -> Iterator[str]:
        yield _render_availability("Scotland", availability)

    def _render_wales(self, availability: Any, parent_fields: JsonObject) -> Iterator[str]:
        yield _render_availability("Wales", availability)

    def _render_northern_ireland(
        self, availability: Any, parent_fields: JsonObject
    ) -> Iterator[str]:
        yield _render_availability("Northern Ireland", availability)

    def _render_metadata(self, metadata: Any, parent_fields: JsonObject) -> Iterator[str]:
        metadata_lines = []
        for field_name, field_value in metadata.items() if isinstance(metadata, Mapping) else ():
            field_texts = [
                field_text
                for field_text in (read_list(field_value) or [field_value])
                if isinstance(field_text, str)
            ]
            shown_text = ", ".join(
                _escape_line(field_text) for field_text in field_texts if field_text
            )
            if shown_text and field_name not in HIDDEN_FIELDS:
                metadata_lines.append(f"- {_humanize_field_name(field_name)}: {shown_text}")
        yield "\n".join(metadata_lines)

    def _render_steps(self, step_navigation: Any, parent_fields: JsonObject) -> Iterator[str]:
        if not isinstance(step_navigation, Mapping):
            return
        yield self._convert_html(read_html(step_navigation.get("introduction")))
        for step_fields in read_objects(step_navigation.get("steps")):
            # Either "and" or "or": how a step goes together with the one before.
            joining_word = _humanize_field_name(find_text(step_fields.get("logic")) or "")
            yield make_heading(
                ": ".join(filter(None, [joining_word, find_text(step_fields.get("title"))]))
            )
            for step_content in read_objects(step_fields.get("contents")):
                yield escape_text(find_text(step_content.get("text")) or "")
                yield "\n".join(map(_render_task, read_objects(step_content.get("contents"))))

    def _render_answer_nodes(self, tree_nodes: Any, parent_fields: JsonObject) -> Iterator[str]:
        """Yield the questions and outcomes of a smart answer; each option says where it leads."""
        titles_by_slug = {
            node.get("slug"): find_text(node.get("title")) for node in read_objects(tree_nodes)
        }
        for node in read_objects(tree_nodes):
            node_kind = _humanize_field_name(find_text(node.get("kind")) or "")
            yield make_heading(": ".join(filter(None, [node_kind, find_text(node.get("title"))])))
            yield self._convert_html(read_html(node.get("body")))
            option_lines = []
            for answer_option in read_objects(node.get("options")):
                next_title = titles_by_slug.get(answer_option.get("next_node"))
                arrow_text = f" → {escape_text(next_title)}" if next_title else ""
                option_lines.append(
                    f"- {escape_text(find_text(answer_option.get('label')) or '')}{arrow_text}"
                )
            yield "\n".join(option_lines)

    def _render_image_texts(self, images: Any, parent_fields: JsonObject) -> Iterator[str]:
        """Yield what is said of pictures; the pictures themselves are not text."""
        for image in read_objects(images if isinstance(images, list) else [images]):
            image_texts = [
                find_text(image.get(field_name))
                for field_name in ("alt_text", "alt", "caption", "credit")
            ]
            plain_texts = [
                _escape_line(" ".join(image_text.split()))
                for image_text in image_texts
                if image_text
            ]
            if plain_texts:
                yield f"Picture: {' – '.join(dict.fromkeys(plain_texts))}"

    def _render_logo_title(self, logo_fields: Any, parent_fields: JsonObject) -> Iterator[str]:
        if isinstance(logo_fields, Mapping):
            formatted_title = find_text(logo_fields.get("formatted_title")) or ""
            self._converted_html.add(formatted_title)
            yield self._convert_html(formatted_title.replace("\n", "<br/>")).replace("\n", " ")

    def _render_counts(self, counts_by_name: Any, parent_fields: JsonObject) -> Iterator[str]:
        if isinstance(counts_by_name, Mapping):
            yield "\n".join(
                f"- {_humanize_field_name(count_name)}: {named_count}"
                for count_name, named_count in counts_by_name.items()
                if isinstance(named_count, int)
            )

    _RENDERERS_BY_FIELD: ClassVar[
        dict[str, Callable[["DetailsRenderer", Any, JsonObject], Iterator[str]]]
    ] = {
        "alert_status": _render_alerts,
        "child_section_groups": _render_child_sections,
        "collection_groups": _render_collection,
        "corporate_information_groups": _render_item_groups,
        "department_counts": _render_counts,
        "groups": _render_item_groups,
        "image": _render_image_texts,
        "images": _render_image_texts,
        "sidebar_image": _render_image_texts,
        "logo": _render_logo_title,
        "metadata": _render_metadata,
        "national_applicability": _render_applicability,
        "nodes": _render_answer_nodes,
        "northern_ireland_availability": _render_northern_ireland,
        "parts": _render_guide_parts,
        "scotland_availability": _render_scotland,
        "start_button_text": _render_start_button,
        "step_by_step_nav": _render_steps,
        "transaction_start_link": _render_start_link,
        "wales_availability": _render_wales,
    }


def make_heading(heading_text: str | None, heading_level: int = 2) -> str:
    """Return a heading, or nothing where there is no title."""
    return (
        f"{'#' * min(heading_level, 6)} {' '.join(heading_text.split())}"
        if heading_text and heading_text.strip()
        else ""
    )


def render_links(linked_items: list[JsonObject]) -> str:
    """Return a list of links; a title whose target leads nowhere is listed without a link."""
    link_lines = []
    for linked_item in linked_items:
        link_title = find_text(linked_item.get("title")) or find_text(linked_item.get("name")) or ""
        _, link_target = _find_first_text_field(linked_item, _LINK_KEYS)
        description_text = find_text(linked_item.get("description"))
        if link_target:
            description_note = f": {_escape_line(description_text)}" if description_text else ""
            link_lines.append(f"- {_render_link_line(link_title, link_target)}{description_note}")
    return "\n".join(link_lines)


def _render_item_line(list_entry: Any) -> str | None:
    """Return an entry of a list as one line, "" to leave it out, None where it takes more."""
    if list_entry is None or isinstance(list_entry, (bool, int, float)):
        return ""
    if isinstance(list_entry, str):
        return (
            None
            if _HTML_MARKUP_PATTERN.search(list_entry)
            else f"- {_escape_line(list_entry)}"
            if list_entry
            else ""
        )
    if not isinstance(list_entry, Mapping) or "details" in list_entry:  # a linked item
        return render_links([list_entry]) if isinstance(list_entry, Mapping) else None
    title_key, entry_title = _find_first_text_field(list_entry, _TITLE_KEYS)
    _, link_target = _find_first_text_field(list_entry, _LINK_KEYS)
    other_fields = {
        field_name: field_value
        for field_name, field_value in list_entry.items()
        if field_name not in (title_key, *_LINK_KEYS)
        and field_name not in HIDDEN_FIELDS
        and field_value
    }
    are_fields_plain = all(
        isinstance(field_value, (bool, int, float))
        or (
            isinstance(field_value, str)
            and (_is_machine_text(field_value) or field_name == "description")
        )
        for field_name, field_value in other_fields.items()
    )
    description_text = find_text(list_entry.get("description")) or ""
    if not entry_title or not are_fields_plain or _HTML_MARKUP_PATTERN.search(description_text):
        return None
    description_note = f": {_escape_line(description_text)}" if description_text.strip() else ""
    return f"- {_render_link_line(entry_title, link_target or '')}{description_note}"


def _render_availability(nation_name: str, availability: Any) -> str:
    """Return whether a nation's councils offer a service, and where it is offered instead."""
    availability_kind = (
        find_text(availability.get("type")) if isinstance(availability, Mapping) else None
    )
    if not availability_kind:
        return ""
    alternative_address = make_website_url(find_text(availability.get("alternative_url")) or "")
    alternative_note = f" (see {alternative_address})" if alternative_address else ""
    return f"{nation_name}: {_humanize_field_name(availability_kind).lower()}{alternative_note}"


def _render_child_section(child_section: JsonObject) -> str:
    """Return a section of a manual as a line; HMRC's have an id that readers cite."""
    section_line = render_links([child_section])
    section_id = find_text(child_section.get("section_id"))
    if not section_id or not section_line:
        return section_line
    return f"- {_escape_line(section_id)}: {section_line.removeprefix('- ')}"


def _render_task(task_fields: JsonObject) -> str:
    """Return a line of a step: its link, and what is said beside it."""
    task_link = _render_link_line(
        find_text(task_fields.get("text")) or "", find_text(task_fields.get("href")) or ""
    )
    task_context = find_text(task_fields.get("context"))
    return f"- {task_link} ({_escape_line(task_context)})" if task_context else f"- {task_link}"


def _render_labelled_text(field_name: str, field_value: str) -> str:
    """Return a short text with its label; nothing for ids, slugs and technical dates."""
    trimmed_text = " ".join(field_value.split())
    field_label = LABEL_BY_FIELD.get(field_name) or _humanize_field_name(field_name)
    moment_text = format_moment(trimmed_text)
    if moment_text:
        is_shown = field_name in LABEL_BY_FIELD or field_name.endswith(("_date", "_on"))
        return f"{field_label}: {moment_text}" if is_shown else ""
    link_address = make_website_url(trimmed_text)
    if link_address and " " not in trimmed_text:
        return f"{field_label}: {format_markdown_link(escape_text(trimmed_text), link_address)}"
    is_shown = (
        field_name in LABEL_BY_FIELD
        or not _is_machine_text(trimmed_text)
        or _is_short_with_digit(trimmed_text)
        or trimmed_text[:1].isupper()
    )
    return (
        f"{field_label}: {_escape_line(trimmed_text)}"
        if is_shown and not _UUID_PATTERN.fullmatch(trimmed_text)
        else ""
    )


def _render_link_line(link_title: str, link_target: str) -> str:
    link_address = make_website_url(link_target) if link_target else None
    link_text = escape_text(re.sub(r"\s*\n\s*", " ", link_title or link_target))
    return format_markdown_link(link_text, link_address) if link_address else link_text


def _escape_line(plain_text: str) -> str:
    return escape_text(" ".join(plain_text.split()))


def _find_first_text_field(
    json_object: JsonObject, field_names: tuple[str, ...]
) -> tuple[str | None, str | None]:
    """Return the first of these keys that holds a text, and the text."""
    for field_name in field_names:
        if field_text := find_text(json_object.get(field_name)):
            return field_name, field_text
    return None, None


def _is_machine_text(field_text: str) -> bool:
    """Whether a text is an id, a slug or a timestamp, which no reader sees."""
    return (
        " " not in field_text.strip()
        and "@" not in field_text
        and not _HTML_MARKUP_PATTERN.search(field_text)
    )


def _is_short_with_digit(field_text: str) -> bool:
    return any(text_character.isdigit() for text_character in field_text) and len(field_text) <= 40


def _humanize_field_name(field_name: str) -> str:
    spaced_name = field_name.replace("_", " ").replace("-", " ").strip()
    return spaced_name[:1].upper() + spaced_name[1:]


def _list_html_texts(field_value: Any, nesting_depth: int = 0) -> Iterator[str]:
    """Yield every text with tags in a field, in order; of several renderings, the HTML."""
    if isinstance(field_value, str) or is_list_of_renderings(field_value):
        html_text = read_html(field_value)
        if _HTML_TAG_PATTERN.search(html_text):
            yield html_text
    elif nesting_depth < _MAX_JSON_DEPTH:
        is_object = isinstance(field_value, Mapping)
        for inner_value in field_value.values() if is_object else read_list(field_value):
            yield from _list_html_texts(inner_value, nesting_depth + 1)
