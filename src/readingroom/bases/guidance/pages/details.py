"""Renders the `details` of a content item as Markdown: every field that a reader of GOV.UK sees."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from readingroom.bases.guidance.pages.fields import (
    FIRST_FIELDS,
    HEADINGS,
    HIDDEN_FIELDS,
    LABELS,
    PROSE_FIELDS,
)
from readingroom.bases.guidance.pages.links import escape_text, format_link
from readingroom.bases.guidance.pages.markdown import MarkdownConverter
from readingroom.bases.guidance.pages.values import (
    JsonObject,
    format_moment,
    is_renderings,
    make_website_url,
    read_html,
    read_list,
    read_objects,
    read_text,
)

_TITLE_KEYS = ("title", "name", "label", "text", "topic_name", "facet_name")
_LINK_KEYS = ("base_path", "href", "url", "link", "path", "web_url", "transaction_start_link")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_MARKUP = re.compile(r"</?[A-Za-z][^>]*>|&[a-z]+;|&#\d+;")
_MAX_DEPTH = 8


class DetailsRenderer:
    """Renders the details of one item; `linked_items` are the items it links to, by content id."""

    def __init__(
        self, converter: MarkdownConverter, linked_items: Mapping[str, JsonObject]
    ) -> None:
        self._converter = converter
        self._linked_items = linked_items

    def render(self, details: JsonObject) -> Iterator[str]:
        """Yield the fields that readers see as blocks of Markdown; some blocks are empty."""
        later_fields = [name for name in details if name not in FIRST_FIELDS]
        for name in (*FIRST_FIELDS, *later_fields):
            if name in HIDDEN_FIELDS or name not in details:
                continue
            renderer = self._FIELD_RENDERERS.get(name)
            if renderer:
                yield from renderer(self, details[name], details)
            else:
                yield from self._render_field(name, details[name], level=2)

    # --- any field ---

    def _render_field(self, name: str, value: Any, level: int) -> Iterator[str]:
        """Yield a field: its heading where it needs one, and what it holds."""
        is_prose = name in PROSE_FIELDS
        if isinstance(value, str) and not is_prose and name not in HEADINGS:
            yield from self._render_short_text(name, value, level)
            return
        blocks = [block for block in self._render_value(value, level + 1) if block]
        if blocks and not is_prose:
            yield make_heading(HEADINGS.get(name) or _humanize(name), level)
        yield from blocks

    def _render_short_text(self, name: str, value: str, level: int) -> Iterator[str]:
        """Yield a text in a field that is not known to be prose: by what it looks like."""
        if _MARKUP.search(value):
            yield make_heading(_humanize(name), level)
            yield self._converter.convert(value)
        elif line := _render_label(name, value):
            yield line

    def _render_value(self, value: Any, level: int) -> Iterator[str]:
        if level > _MAX_DEPTH:
            return
        if isinstance(value, str) or is_renderings(value):
            yield self._render_text(read_html(value))
        elif isinstance(value, Mapping):
            yield from self._render_object(value, level)
        else:
            yield from self._render_list(read_list(value), level)

    def _render_text(self, text: str) -> str:
        """Return a text as Markdown: prose may be HTML or plain."""
        if text.strip().lower().startswith(("http://", "https://")) and " " not in text.strip():
            return _render_link_line("", text.strip())
        return self._converter.convert(text)

    def _render_list(self, values: list[Any], level: int) -> Iterator[str]:
        lines: list[str] = []
        for value in values:
            if isinstance(value, str) and _UUID.fullmatch(value):
                value = self._linked_items.get(value)
            line = _render_item_line(value)
            if line is not None:
                lines.append(line)
            else:
                yield "\n".join(filter(None, lines))
                lines = []
                yield from self._render_value(value, level)
        yield "\n".join(filter(None, lines))

    def _render_object(self, value: JsonObject, level: int) -> Iterator[str]:
        """Yield an object with its title as the heading, and its other fields in their order."""
        title_key, title = _find_text(value, _TITLE_KEYS)
        link_key, target = _find_text(value, _LINK_KEYS)
        address = make_website_url(target) if target else None
        if title:
            heading = escape_text(" ".join(title.split()))
            yield make_heading(format_link(heading, address) if address else heading, level)
        for name, inner in value.items():
            if name in (title_key, link_key if title else None) or name in HIDDEN_FIELDS:
                continue
            renderer = self._FIELD_RENDERERS.get(name)
            if renderer:
                yield from renderer(self, inner, value)
            else:
                yield from self._render_field(name, inner, level + 1)

    # --- fields of their own kind ---

    def _render_parts(self, parts: Any, details: JsonObject) -> Iterator[str]:
        for part in read_objects(parts):
            yield make_heading(read_text(part.get("title")) or read_text(part.get("slug")))
            yield self._converter.convert(read_html(part.get("body")))

    def _render_collection(self, groups: Any, details: JsonObject) -> Iterator[str]:
        for group in read_objects(groups):
            yield make_heading(read_text(group.get("title")))
            yield self._converter.convert(read_html(group.get("body")))
            # Groups name documents by id only; their titles and paths are in the item's links.
            yield self._render_linked_items(group.get("documents"))

    def _render_groups(self, groups: Any, details: JsonObject) -> Iterator[str]:
        for group in read_objects(groups):
            yield make_heading(read_text(group.get("name")) or read_text(group.get("title")))
            yield self._converter.convert(read_html(group.get("description")))
            yield self._render_linked_items(group.get("content_ids"))
            yield from self._render_list(read_list(group.get("contents")), 3)

    def _render_child_sections(self, groups: Any, details: JsonObject) -> Iterator[str]:
        for group in read_objects(groups):
            yield make_heading(read_text(group.get("title")))
            yield render_links(read_objects(group.get("child_sections")))

    def _render_documents(self, documents: Any, details: JsonObject) -> Iterator[str]:
        for document in read_list(documents):
            yield self._converter.convert(read_html(document))

    def _render_linked_items(self, ids: Any) -> str:
        known = [self._linked_items.get(id) for id in read_list(ids) if isinstance(id, str)]
        return render_links([item for item in known if item is not None])

    def _render_start_link(self, target: Any, details: JsonObject) -> Iterator[str]:
        address = make_website_url(read_text(target) or "")
        if address:
            button = escape_text(read_text(details.get("start_button_text")) or "Start now")
            yield f"**{format_link(button, address)}**"

    def _render_start_button(self, text: Any, details: JsonObject) -> Iterator[str]:
        # With a link it is the text of that link.
        if not read_text(details.get("transaction_start_link")) and read_text(text):
            yield f"**{escape_text(text)}**"

    def _render_applicability(self, nations: Any, details: JsonObject) -> Iterator[str]:
        lines = []
        for nation in nations.values() if isinstance(nations, Mapping) else ():
            if isinstance(nation, Mapping) and read_text(nation.get("label")):
                applies = "does not apply" if nation.get("applicable") is False else "applies"
                address = make_website_url(read_text(nation.get("alternative_url")) or "")
                see_instead = f" (see {address})" if address else ""
                lines.append(f"- {escape_text(nation['label'])}: {applies}{see_instead}")
        if lines:
            yield make_heading("Where it applies")
            yield "\n".join(lines)

    def _render_metadata(self, metadata: Any, details: JsonObject) -> Iterator[str]:
        lines = []
        for name, value in metadata.items() if isinstance(metadata, Mapping) else ():
            values = [text for text in (read_list(value) or [value]) if isinstance(text, str)]
            shown = ", ".join(_render_plain(text) for text in values if text)
            if shown and name not in HIDDEN_FIELDS:
                lines.append(f"- {_humanize(name)}: {shown}")
        yield "\n".join(lines)

    def _render_steps(self, navigation: Any, details: JsonObject) -> Iterator[str]:
        if not isinstance(navigation, Mapping):
            return
        yield self._converter.convert(read_html(navigation.get("introduction")))
        for step in read_objects(navigation.get("steps")):
            # Either "and" or "or": how a step goes together with the one before.
            logic = _humanize(read_text(step.get("logic")) or "")
            yield make_heading(": ".join(filter(None, [logic, read_text(step.get("title"))])))
            for content in read_objects(step.get("contents")):
                yield escape_text(read_text(content.get("text")) or "")
                yield "\n".join(map(_render_task, read_objects(content.get("contents"))))

    def _render_nodes(self, nodes: Any, details: JsonObject) -> Iterator[str]:
        """Yield the questions and outcomes of a smart answer; each option says where it leads."""
        titles = {node.get("slug"): read_text(node.get("title")) for node in read_objects(nodes)}
        for node in read_objects(nodes):
            kind = _humanize(read_text(node.get("kind")) or "")
            yield make_heading(": ".join(filter(None, [kind, read_text(node.get("title"))])))
            yield self._converter.convert(read_html(node.get("body")))
            lines = []
            for option in read_objects(node.get("options")):
                next_title = titles.get(option.get("next_node"))
                arrow = f" → {escape_text(next_title)}" if next_title else ""
                lines.append(f"- {escape_text(read_text(option.get('label')) or '')}{arrow}")
            yield "\n".join(lines)

    def _render_images(self, images: Any, details: JsonObject) -> Iterator[str]:
        """Yield what is said of pictures; the pictures themselves are not text."""
        for image in read_objects(images if isinstance(images, list) else [images]):
            words = [read_text(image.get(name)) for name in ("alt_text", "caption", "credit")]
            texts = [_render_plain(" ".join(word.split())) for word in words if word]
            if texts:
                yield f"Picture: {' – '.join(dict.fromkeys(texts))}"

    def _render_logo(self, logo: Any, details: JsonObject) -> Iterator[str]:
        if isinstance(logo, Mapping):
            yield self._converter.convert(
                (read_text(logo.get("formatted_title")) or "").replace("\n", "<br/>")
            ).replace("\n", " ")

    def _render_counts(self, counts: Any, details: JsonObject) -> Iterator[str]:
        if isinstance(counts, Mapping):
            yield "\n".join(
                f"- {_humanize(name)}: {count}"
                for name, count in counts.items()
                if isinstance(count, int)
            )

    _FIELD_RENDERERS: ClassVar[
        dict[str, Callable[["DetailsRenderer", Any, JsonObject], Iterator[str]]]
    ] = {
        "child_section_groups": _render_child_sections,
        "collection_groups": _render_collection,
        "corporate_information_groups": _render_groups,
        "department_counts": _render_counts,
        "groups": _render_groups,
        "image": _render_images,
        "images": _render_images,
        "logo": _render_logo,
        "metadata": _render_metadata,
        "national_applicability": _render_applicability,
        "nodes": _render_nodes,
        "parts": _render_parts,
        "start_button_text": _render_start_button,
        "step_by_step_nav": _render_steps,
        "transaction_start_link": _render_start_link,
    }


def make_heading(title: str | None, level: int = 2) -> str:
    """Return a heading, or nothing where there is no title."""
    return f"{'#' * min(level, 6)} {' '.join(title.split())}" if title and title.strip() else ""


def render_links(items: list[JsonObject]) -> str:
    """Return a list of links; a title whose target leads nowhere is listed without a link."""
    lines = []
    for item in items:
        title = read_text(item.get("title")) or read_text(item.get("name")) or ""
        _, target = _find_text(item, _LINK_KEYS)
        description = read_text(item.get("description"))
        if target:
            note = f": {_render_plain(description)}" if description else ""
            lines.append(f"- {_render_link_line(title, target)}{note}")
    return "\n".join(lines)


def _render_item_line(value: Any) -> str | None:
    """Return an entry of a list as one line, "" to leave it out, None where it takes more."""
    if value is None or isinstance(value, (bool, int, float)):
        return ""
    if isinstance(value, str):
        return None if _MARKUP.search(value) else f"- {_render_plain(value)}" if value else ""
    if not isinstance(value, Mapping) or "details" in value:  # a linked item
        return render_links([value]) if isinstance(value, Mapping) else None
    title_key, title = _find_text(value, _TITLE_KEYS)
    _, target = _find_text(value, _LINK_KEYS)
    others = {
        name: inner
        for name, inner in value.items()
        if name not in (title_key, *_LINK_KEYS) and name not in HIDDEN_FIELDS and inner
    }
    is_plain = all(
        isinstance(inner, (bool, int, float))
        or (isinstance(inner, str) and (_is_code(inner) or name == "description"))
        for name, inner in others.items()
    )
    description = read_text(value.get("description")) or ""
    if not title or not is_plain or _MARKUP.search(description):
        return None
    note = f": {_render_plain(description)}" if description.strip() else ""
    return f"- {_render_link_line(title, target or '')}{note}"


def _render_task(task: JsonObject) -> str:
    """Return a line of a step: its link, and what is said beside it."""
    link = _render_link_line(read_text(task.get("text")) or "", read_text(task.get("href")) or "")
    context = read_text(task.get("context"))
    return f"- {link} ({_render_plain(context)})" if context else f"- {link}"


def _render_label(name: str, value: str) -> str:
    """Return a short text with its label; nothing for ids, slugs and technical dates."""
    text = " ".join(value.split())
    label = LABELS.get(name) or _humanize(name)
    moment = format_moment(text)
    if moment:
        return f"{label}: {moment}" if name.endswith(("_date", "_on")) else ""
    address = make_website_url(text)
    if address and " " not in text:
        return f"{label}: {format_link(escape_text(text), address)}"
    is_shown = name in LABELS or not _is_code(text) or _has_number(text) or text[:1].isupper()
    return f"{label}: {_render_plain(text)}" if is_shown and not _UUID.fullmatch(text) else ""


def _render_link_line(title: str, target: str) -> str:
    address = make_website_url(target) if target else None
    text = escape_text(re.sub(r"\s*\n\s*", " ", title or target))
    return format_link(text, address) if address else text


def _render_plain(text: str) -> str:
    return escape_text(" ".join(text.split()))


def _find_text(value: JsonObject, keys: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return the first of these keys that holds a text, and the text."""
    for key in keys:
        if text := read_text(value.get(key)):
            return key, text
    return None, None


def _is_code(text: str) -> bool:
    """Whether a text is an id, a slug or a timestamp, which no reader sees."""
    return " " not in text.strip() and "@" not in text and not _MARKUP.search(text)


def _has_number(text: str) -> bool:
    return any(character.isdigit() for character in text) and len(text) <= 40


def _humanize(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]
