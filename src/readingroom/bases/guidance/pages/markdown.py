"""Converts the HTML of GOV.UK pages to Markdown, with every word in its original order."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from readingroom.bases.guidance.pages.html import Element, parse_html
from readingroom.bases.guidance.pages.links import (
    encode_parentheses,
    escape_line_starts,
    escape_text,
    fence_code,
    format_markdown_link,
    resolve_link,
)
from readingroom.bases.guidance.pages.tables import TableCell, TableWriter

MAX_HTML_CHARS = 1_000_000
MAX_MARKDOWN_CHARS = 4 * MAX_HTML_CHARS
CUT_NOTE = "[The text is cut here: the page is too long. Its whole text is at its address.]"

_HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LIST_TAGS = ("ul", "ol", "li", "dl", "dt", "dd")
_TABLE_TAGS = ("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td")
_SECTION_TAGS = ("html", "body", "header", "main", "footer", "nav", "section", "article", "aside")
_TEXT_BLOCK_TAGS = ("div", "p", "blockquote", "pre", "hr", "address", "figure", "figcaption")
_FORM_TAGS = ("form", "fieldset", "legend", "option", "details", "summary")
_BLOCK_TAGS = frozenset(
    _HEADING_TAGS + _LIST_TAGS + _TABLE_TAGS + _SECTION_TAGS + _TEXT_BLOCK_TAGS + _FORM_TAGS
)
_INVISIBLE_TAGS = frozenset({"script", "style", "template", "svg", "noscript", "head"})
_EMPHASIS_MARK_BY_TAG = {
    **dict.fromkeys(("strong", "b"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
    "ins": "++",
    "sub": "~",
}
_MARK_IN_CODE_BY_TAG = {
    "sup": "^",
    "sub": "~",
    "ins": "++",
    **dict.fromkeys(("del", "s", "strike"), "~~"),
}
_CALLOUT_TAGS = frozenset({"div", "p", "section", "aside"})
_CALLOUT_CLASSES = frozenset(
    [
        "advisory",
        "application-notice",
        "call-to-action",
        "example",
        "help-notice",
        "info-notice",
        "information",
        "govuk-inset-text",
        "govuk-warning-text",
    ]
)
# A callout is framed as a quotation. These two also have a sign on GOV.UK; a word in its place
# would stand among the page's own.
_CALLOUT_SIGN_BY_CLASS = {"warning": "⚠ ", "important": "❗ "}
_FOOTNOTE_LABEL_PATTERN = re.compile(r"[\w.*†‡§-]{1,16}")
_MAX_LIST_NUMBER = 999_999_999  # Markdown takes nine digits
_MAX_CELL_SPAN = 1000  # as in browsers


def convert_to_markdown(html_text: str, base_address: str) -> str:
    """Return one piece of HTML as Markdown; `base_address` completes relative links."""
    return MarkdownConverter(base_address).convert_html(html_text)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A heading that can be linked to: its id in the HTML, and its line of Markdown."""

    id: str
    heading_line: str


class MarkdownConverter:
    """Converts the HTML of one page, piece by piece, within limits that hold for all of it.

    The text of a page that goes over them is cut, and says so.
    """

    def __init__(self, base_address: str) -> None:
        self._writer = _MarkdownWriter(base_address)
        self._html_chars_left = MAX_HTML_CHARS
        self._markdown_chars_left = MAX_MARKDOWN_CHARS

    @property
    def anchors(self) -> list[Anchor]:
        """The headings with an id that have been converted, in order."""
        return self._writer.anchors

    @property
    def abbreviations(self) -> dict[tuple[str, str], None]:
        """The abbreviations that the HTML explains, each with its meaning, in order."""
        return self._writer.abbreviations

    def convert_html(self, html_text: str) -> str:
        """Return a piece of HTML as Markdown, cut where the page has reached its limits."""
        if self._html_chars_left < 0 or self._markdown_chars_left < 0:
            return ""
        markdown_text = "\n\n".join(
            self._writer.write_blocks(parse_html(html_text[: self._html_chars_left]))
        )
        markdown_text, dropped_markdown = (
            markdown_text[: self._markdown_chars_left],
            markdown_text[self._markdown_chars_left :],
        )
        is_cut = bool(dropped_markdown) or len(html_text) > self._html_chars_left
        self._html_chars_left -= len(html_text)
        self._markdown_chars_left -= len(markdown_text) + len(dropped_markdown)
        return f"{markdown_text}\n\n{CUT_NOTE}" if is_cut else markdown_text


@dataclass
class _MarkdownWriter:
    base_address: str
    anchors: list[Anchor] = field(default_factory=list)
    abbreviations: dict[tuple[str, str], None] = field(default_factory=dict)
    _label_by_note_id: dict[str, str] = field(default_factory=dict)  # by the id of the note
    _table_writer: TableWriter = field(default_factory=TableWriter)

    def write_blocks(self, parent_element: Element) -> Iterator[str]:
        """Yield the element's paragraphs, lists, tables and headings, in order."""
        inline_texts: list[str] = []
        for child_node in parent_element.children:
            if isinstance(child_node, str) or child_node.tag not in _BLOCK_TAGS:
                inline_texts.append(self._write_inline(child_node))
            else:
                yield from _make_paragraph(inline_texts)
                inline_texts = []
                yield from self._write_block(child_node)
        yield from _make_paragraph(inline_texts)

    def _write_block(self, element: Element) -> Iterator[str]:
        if _is_callout(element):
            return self._write_callout(element)
        if _has_class(element, "footnotes") or element.attributes.get("role") == "doc-endnotes":
            return self._write_footnotes(element)
        return self._BLOCK_WRITERS.get(element.tag, _MarkdownWriter.write_blocks)(self, element)

    def _write_heading(self, heading_element: Element) -> Iterator[str]:
        heading_text = _collapse_spaces(self._write_children(heading_element)).replace("\n", " ")
        if heading_text:
            heading_line = f"{'#' * int(heading_element.tag[1])} {heading_text}"
            if heading_element.attributes.get("id"):
                self.anchors.append(Anchor(heading_element.attributes["id"], heading_line))
            yield heading_line

    def _write_list(self, list_element: Element) -> Iterator[str]:
        item_texts: list[str] = []
        for item_number, list_child in _number_items(list_element):
            item_text = (
                "\n".join(_make_paragraph([escape_text(list_child)]))
                if isinstance(list_child, str)
                else "\n".join(self.write_blocks(list_child))
            )
            if item_text:
                list_marker = "- " if item_number is None else f"{item_number}. "
                item_texts.append(
                    list_marker + item_text.replace("\n", "\n" + " " * len(list_marker))
                )
        if item_texts:
            yield "\n".join(item_texts)

    def _write_footnotes(self, notes_element: Element) -> Iterator[str]:
        """Yield each note with the mark by which the text refers to it."""
        for child_node in notes_element.children:
            if isinstance(child_node, str):
                yield from _make_paragraph([escape_text(child_node)])
            elif child_node.tag != "ol":
                yield from self._write_block(child_node)
            else:
                for note_number, note_item in _number_items(child_node):
                    if isinstance(note_item, Element):
                        note_label = self._label_by_note_id.get(note_item.attributes.get("id", ""))
                        yield f"[^{note_label or note_number}] " + "\n\n".join(
                            self.write_blocks(note_item)
                        )

    def _write_callout(self, element: Element) -> Iterator[str]:
        callout_label = element.attributes.get("aria-label", "").strip().lower()
        if _has_class(element, "help-notice") or _has_class(element, "govuk-warning-text"):
            callout_label = "warning"
        callout_text = "\n\n".join(self.write_blocks(element))
        if callout_text:
            yield quote_lines(_CALLOUT_SIGN_BY_CLASS.get(callout_label, "") + callout_text)

    def _write_quotation(self, quotation_element: Element) -> Iterator[str]:
        yield quote_lines("\n\n".join(self.write_blocks(quotation_element)))

    def _write_preformatted(self, element: Element) -> Iterator[str]:
        yield fence_code(_get_code_text(element).strip())

    def _write_horizontal_rule(self, element: Element) -> Iterator[str]:
        yield "---"

    def _write_table(self, table_element: Element) -> Iterator[str]:
        """Yield the rows as tables, and whatever else is between them."""
        table_rows: list[list[TableCell]] = []
        for row_or_text in self._split_table(table_element):
            if isinstance(row_or_text, list):
                table_rows.append(row_or_text)
            else:
                yield from filter(None, [self._table_writer.write_table(table_rows)])
                table_rows = []
                yield row_or_text
        yield from filter(None, [self._table_writer.write_table(table_rows)])

    def _split_table(self, table_element: Element) -> Iterator[list[TableCell] | str]:
        """Yield a list of cells for each row, and a text for anything else."""
        for child_node in table_element.children:
            if isinstance(child_node, str):
                yield from _make_paragraph([escape_text(child_node)])
            elif child_node.tag in ("thead", "tbody", "tfoot"):
                yield from self._split_table(child_node)
            elif child_node.tag == "tr":
                yield [
                    self._write_cell(cell_node)
                    for cell_node in child_node.children
                    if not _is_blank(cell_node)
                ]
            elif child_node.tag in ("td", "th"):
                yield [self._write_cell(child_node)]
            else:
                yield from self.write_blocks(Element("div", children=[child_node]))

    def _write_cell(self, cell_node: Element | str) -> TableCell:
        cell_text = (
            _collapse_spaces(self._write_inline(cell_node)).replace("\n", " ").replace("|", "\\|")
        )
        if isinstance(cell_node, str):
            return TableCell(cell_text)
        column_span, row_span = (
            _read_number_attribute(cell_node, attribute_name, 1, _MAX_CELL_SPAN)
            for attribute_name in ("colspan", "rowspan")
        )
        return TableCell(cell_text, column_span or 1, row_span or 1)

    def _write_inline(self, html_node: Element | str) -> str:
        if isinstance(html_node, str):
            return escape_text(re.sub(r"\s+", " ", html_node))
        if element_writer := self._INLINE_WRITERS.get(html_node.tag):
            return element_writer(self, html_node)
        inner_text = self._write_children(html_node)
        # A block inside a sentence or a cell is set apart from the words around it.
        return f" {inner_text} " if html_node.tag in _BLOCK_TAGS else inner_text

    def _write_children(self, parent_element: Element) -> str:
        return "".join(map(self._write_inline, parent_element.children))

    def _write_line_break(self, element: Element) -> str:
        return "\n"

    def _write_nothing(self, element: Element) -> str:
        return ""

    def _write_emphasis(self, element: Element) -> str:
        return _enclose_in_marks(self._write_children(element), _EMPHASIS_MARK_BY_TAG[element.tag])

    def _write_code(self, element: Element) -> str:
        code_text = re.sub(r"\s+", " ", _get_code_text(element))
        escaped_text = escape_text(code_text)
        # A backtick beside it would open the code too early, and its signs would be Markdown.
        return (
            _enclose_in_marks(code_text, "`")
            if code_text == escaped_text and "`" not in code_text
            else escaped_text
        )

    def _write_superscript(self, element: Element) -> str:
        only_child = _find_only_child(element)
        if (
            only_child
            and only_child.tag == "a"
            and only_child.attributes.get("href", "").startswith("#")
        ):
            return self._write_footnote_mark(only_child)
        return _enclose_in_marks(self._write_children(element), "^")

    def _write_footnote_mark(self, footnote_link: Element) -> str:
        """Return the mark of a footnote, so that its number joins no other number."""
        if not _has_single_text(footnote_link):
            # Marked up inside: flattened, its own numbers would join each other.
            return f"[{self._write_children(footnote_link).strip()}]"
        footnote_label = _get_raw_text(footnote_link).strip().strip("[]")
        if not _FOOTNOTE_LABEL_PATTERN.fullmatch(footnote_label):
            return f"[{escape_text(footnote_label)}]" if footnote_label else ""
        self._label_by_note_id[footnote_link.attributes["href"].removeprefix("#")] = footnote_label
        return f"[^{footnote_label}]"

    def _write_abbreviation(self, element: Element) -> str:
        abbreviation_meaning = " ".join(element.attributes.get("title", "").split())
        abbreviation_text = " ".join(_get_raw_text(element).split())
        if (
            abbreviation_meaning
            and abbreviation_text
            and abbreviation_meaning.lower() != abbreviation_text.lower()
        ):
            self.abbreviations[abbreviation_text, abbreviation_meaning] = None
        return self._write_children(element)

    def _write_inline_list(self, list_element: Element) -> str:
        """Return a list that stands in a cell or a heading, where Markdown has no lists."""
        item_texts = (
            self._write_inline(child_node).strip() for child_node in list_element.children
        )
        return f" {' '.join(f'• {item_text}' for item_text in item_texts if item_text)} "

    def _write_inline_quotation(self, element: Element) -> str:
        return f"“{self._write_children(element)}”"

    def _write_image(self, image_element: Element) -> str:
        alt_text = escape_text(image_element.attributes.get("alt", ""))
        image_address = resolve_link(image_element.attributes.get("src", ""), self.base_address)
        return f"![{alt_text}]({encode_parentheses(image_address)})" if image_address else alt_text

    def _write_link(self, link_element: Element) -> str:
        link_target = link_element.attributes.get("href", "")
        if link_target.startswith("#"):
            # A link within the page leads nowhere once it is Markdown.
            return self._write_link_within_page(link_element)
        link_text = self._write_children(link_element)
        link_address = (
            resolve_link(link_target, self.base_address)
            if link_target and link_text.strip()
            else None
        )
        if link_address is None:
            return link_text
        return format_markdown_link(_collapse_spaces(link_text), link_address) + (
            " " if link_text.endswith(" ") else ""
        )

    def _write_link_within_page(self, link_element: Element) -> str:
        link_attributes = link_element.attributes
        if (
            _has_class(link_element, "reversefootnote")
            or link_attributes.get("role") == "doc-backlink"
        ):
            return ""
        only_child = _find_only_child(link_element)
        is_footnote_link = (
            _has_class(link_element, "footnote")
            or "footnote" in (link_attributes.get("rel"), link_attributes.get("rev"))
            or link_attributes.get("role") == "doc-noteref"
            or (only_child is not None and only_child.tag == "sup")
        )
        return (
            self._write_footnote_mark(link_element)
            if is_footnote_link
            else self._write_children(link_element)
        )

    # How each tag is written; any other block is what is inside it, and so is any other element.
    _BLOCK_WRITERS: ClassVar[dict[str, Callable[["_MarkdownWriter", Element], Iterator[str]]]] = {
        **dict.fromkeys(_HEADING_TAGS, _write_heading),
        **dict.fromkeys(("ul", "ol"), _write_list),
        "blockquote": _write_quotation,
        "hr": _write_horizontal_rule,
        "pre": _write_preformatted,
        "table": _write_table,
    }
    _INLINE_WRITERS: ClassVar[dict[str, Callable[["_MarkdownWriter", Element], str]]] = {
        **dict.fromkeys(_EMPHASIS_MARK_BY_TAG, _write_emphasis),
        **dict.fromkeys(_INVISIBLE_TAGS, _write_nothing),
        **dict.fromkeys(("ul", "ol"), _write_inline_list),
        "a": _write_link,
        "abbr": _write_abbreviation,
        "br": _write_line_break,
        "code": _write_code,
        "img": _write_image,
        "q": _write_inline_quotation,
        "sup": _write_superscript,
    }


def quote_lines(markdown_text: str) -> str:
    """Return the text as a quotation in Markdown."""
    return "\n".join(f"> {text_line}".rstrip() for text_line in markdown_text.split("\n"))


def _number_items(list_element: Element) -> Iterator[tuple[int | None, Element | str]]:
    """Yield the items of a list, each with its number, or None where it has none."""
    # Items of such a list begin with numbers of their own, and browsers show no others.
    is_numbered = list_element.tag == "ol" and not _has_class(list_element, "legislative-list")
    item_number = _read_number_attribute(list_element, "start", 0, _MAX_LIST_NUMBER)
    number_step = 1
    if "reversed" in list_element.attributes:
        number_step = -1
        item_elements = [
            list_child for list_child in list_element.children if isinstance(list_child, Element)
        ]
        item_number = len(item_elements) if item_number is None else item_number
    item_number = 1 if item_number is None else item_number
    for list_child in list_element.children:
        if _is_blank(list_child):
            continue
        if not is_numbered:
            yield None, list_child
            continue
        if isinstance(list_child, Element):
            own_number = _read_number_attribute(list_child, "value", 0, _MAX_LIST_NUMBER)
            item_number = item_number if own_number is None else own_number
        yield item_number, list_child
        item_number = min(max(0, item_number + number_step), _MAX_LIST_NUMBER)


def _read_number_attribute(
    element: Element, attribute_name: str, min_value: int, max_value: int
) -> int | None:
    """Return the number in an attribute, or None where it is none or out of its range."""
    attribute_text = element.attributes.get(attribute_name, "").strip()
    attribute_number = (
        int(attribute_text)
        if attribute_text.isascii() and attribute_text.isdigit() and len(attribute_text) < 12
        else -1
    )
    return attribute_number if min_value <= attribute_number <= max_value else None


def _is_callout(element: Element) -> bool:
    class_names = element.attributes.get("class", "").split()
    return element.tag in _CALLOUT_TAGS and (
        element.attributes.get("role") == "note" or not _CALLOUT_CLASSES.isdisjoint(class_names)
    )


def _has_class(element: Element, class_name: str) -> bool:
    return class_name in element.attributes.get("class", "").split()


def _find_only_child(element: Element) -> Element | None:
    """Return the element that is alone inside another, but for blanks."""
    child_nodes = [child_node for child_node in element.children if not _is_blank(child_node)]
    return child_nodes[0] if len(child_nodes) == 1 and isinstance(child_nodes[0], Element) else None


def _has_single_text(element: Element) -> bool:
    """Whether an element holds one text, inside however many others."""
    only_child = _find_only_child(element)
    if only_child is not None:
        return _has_single_text(only_child)
    return all(isinstance(child_node, str) for child_node in element.children)


def _make_paragraph(inline_texts: list[str]) -> Iterator[str]:
    paragraph_text = _collapse_spaces("".join(inline_texts))
    if paragraph_text:
        yield escape_line_starts(paragraph_text)


def _collapse_spaces(loose_text: str) -> str:
    """Return the text with single spaces, and none at the ends of lines."""
    tidy_lines = [
        re.sub(r"[^\S\n]+", " ", text_line).strip() for text_line in loose_text.split("\n")
    ]
    return "\n".join(text_line for text_line in tidy_lines if text_line)


def _enclose_in_marks(enclosed_text: str, markdown_mark: str) -> str:
    """Return the text between two marks, with its surrounding spaces outside of them."""
    stripped_text = enclosed_text.strip()
    if not stripped_text:
        return enclosed_text
    leading_blanks, _, trailing_blanks = enclosed_text.partition(stripped_text)
    return f"{leading_blanks}{markdown_mark}{stripped_text}{markdown_mark}{trailing_blanks}"


def _get_raw_text(element: Element) -> str:
    return "".join(
        child_node if isinstance(child_node, str) else _get_raw_text(child_node)
        for child_node in element.children
    )


def _get_code_text(element: Element) -> str:
    """Return what code says, where no Markdown is read: marks keep numbers apart all the same."""
    code_pieces = []
    for child_node in element.children:
        if isinstance(child_node, str):
            code_pieces.append(child_node)
        elif child_node.tag not in _INVISIBLE_TAGS:
            markdown_mark = _MARK_IN_CODE_BY_TAG.get(
                child_node.tag, "\n" if child_node.tag in _BLOCK_TAGS else ""
            )
            code_pieces.append(
                "\n"
                if child_node.tag == "br"
                else f"{markdown_mark}{_get_code_text(child_node)}{markdown_mark}"
            )
    return "".join(code_pieces)


def _is_blank(html_node: Element | str) -> bool:
    return isinstance(html_node, str) and not html_node.strip()
