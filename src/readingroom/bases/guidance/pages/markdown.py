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
    format_link,
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
_TEXT_TAGS = ("div", "p", "blockquote", "pre", "hr", "address", "figure", "figcaption")
_FORM_TAGS = ("form", "fieldset", "legend", "option", "details", "summary")
_BLOCK_TAGS = frozenset(
    _HEADING_TAGS + _LIST_TAGS + _TABLE_TAGS + _SECTION_TAGS + _TEXT_TAGS + _FORM_TAGS
)
_INVISIBLE_TAGS = frozenset({"script", "style", "template", "svg", "noscript", "head"})
_MARKS = {
    **dict.fromkeys(("strong", "b"), "**"),
    **dict.fromkeys(("em", "i"), "*"),
    **dict.fromkeys(("del", "s", "strike"), "~~"),
    "ins": "++",
    "sub": "~",
}
_CODE_MARKS = {"sup": "^", "sub": "~", "ins": "++", **dict.fromkeys(("del", "s", "strike"), "~~")}
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
_CALLOUT_SIGNS = {"warning": "⚠ ", "important": "❗ "}
_FOOTNOTE_LABEL = re.compile(r"[\w.*†‡§-]{1,16}")
_MAX_LIST_NUMBER = 999_999_999  # Markdown takes nine digits
_MAX_SPAN = 1000  # as in browsers


def to_markdown(html: str, root: str) -> str:
    """Return one piece of HTML as Markdown; `root` completes relative links."""
    return MarkdownConverter(root).convert(html)


@dataclass(frozen=True, slots=True)
class Anchor:
    """A heading that can be linked to: its id in the HTML, and its line of Markdown."""

    id: str
    heading_line: str


class MarkdownConverter:
    """Converts the HTML of one page, piece by piece, within limits that hold for all of it.

    The text of a page that goes over them is cut, and says so.
    """

    def __init__(self, root: str) -> None:
        self._writer = _MarkdownWriter(root)
        self._html_left = MAX_HTML_CHARS
        self._markdown_left = MAX_MARKDOWN_CHARS

    @property
    def anchors(self) -> list[Anchor]:
        """The headings with an id that have been converted, in order."""
        return self._writer.anchors

    @property
    def abbreviations(self) -> dict[tuple[str, str], None]:
        """The abbreviations that the HTML explains, each with its meaning, in order."""
        return self._writer.abbreviations

    def convert(self, html: str) -> str:
        """Return a piece of HTML as Markdown, cut where the page has reached its limits."""
        if self._html_left < 0 or self._markdown_left < 0:
            return ""
        markdown = "\n\n".join(self._writer.write_blocks(parse_html(html[: self._html_left])))
        markdown, rest = markdown[: self._markdown_left], markdown[self._markdown_left :]
        is_cut = bool(rest) or len(html) > self._html_left
        self._html_left -= len(html)
        self._markdown_left -= len(markdown) + len(rest)
        return f"{markdown}\n\n{CUT_NOTE}" if is_cut else markdown


@dataclass
class _MarkdownWriter:
    root: str
    anchors: list[Anchor] = field(default_factory=list)
    abbreviations: dict[tuple[str, str], None] = field(default_factory=dict)
    _footnote_labels: dict[str, str] = field(default_factory=dict)  # by the id of the note
    _tables: TableWriter = field(default_factory=TableWriter)

    def write_blocks(self, parent: Element) -> Iterator[str]:
        """Yield the element's paragraphs, lists, tables and headings, in order."""
        sentence: list[str] = []
        for child in parent.children:
            if isinstance(child, str) or child.tag not in _BLOCK_TAGS:
                sentence.append(self._write_inline(child))
            else:
                yield from _make_paragraph(sentence)
                sentence = []
                yield from self._write_block(child)
        yield from _make_paragraph(sentence)

    def _write_block(self, element: Element) -> Iterator[str]:
        if _is_callout(element):
            return self._write_callout(element)
        if _has_class(element, "footnotes") or element.attributes.get("role") == "doc-endnotes":
            return self._write_footnotes(element)
        return self._BLOCK_WRITERS.get(element.tag, _MarkdownWriter.write_blocks)(self, element)

    def _write_heading(self, heading: Element) -> Iterator[str]:
        title = _tidy(self._write_children(heading)).replace("\n", " ")
        if title:
            line = f"{'#' * int(heading.tag[1])} {title}"
            if heading.attributes.get("id"):
                self.anchors.append(Anchor(heading.attributes["id"], line))
            yield line

    def _write_list(self, parent: Element) -> Iterator[str]:
        items: list[str] = []
        for number, child in _number_items(parent):
            item = (
                "\n".join(_make_paragraph([escape_text(child)]))
                if isinstance(child, str)
                else "\n".join(self.write_blocks(child))
            )
            if item:
                marker = "- " if number is None else f"{number}. "
                items.append(marker + item.replace("\n", "\n" + " " * len(marker)))
        if items:
            yield "\n".join(items)

    def _write_footnotes(self, parent: Element) -> Iterator[str]:
        """Yield each note with the mark by which the text refers to it."""
        for child in parent.children:
            if isinstance(child, str):
                yield from _make_paragraph([escape_text(child)])
            elif child.tag != "ol":
                yield from self._write_block(child)
            else:
                for number, item in _number_items(child):
                    if isinstance(item, Element):
                        label = self._footnote_labels.get(item.attributes.get("id", ""))
                        yield f"[^{label or number}] " + "\n\n".join(self.write_blocks(item))

    def _write_callout(self, element: Element) -> Iterator[str]:
        label = element.attributes.get("aria-label", "").strip().lower()
        if _has_class(element, "help-notice") or _has_class(element, "govuk-warning-text"):
            label = "warning"
        blocks = "\n\n".join(self.write_blocks(element))
        if blocks:
            yield quote_lines(_CALLOUT_SIGNS.get(label, "") + blocks)

    def _write_quotation(self, quotation: Element) -> Iterator[str]:
        yield quote_lines("\n\n".join(self.write_blocks(quotation)))

    def _write_preformatted(self, element: Element) -> Iterator[str]:
        yield fence_code(_code_text(element).strip())

    def _write_rule(self, element: Element) -> Iterator[str]:
        yield "---"

    def _write_table(self, table: Element) -> Iterator[str]:
        """Yield the rows as tables, and whatever else is between them."""
        rows: list[list[TableCell]] = []
        for row_or_text in self._split_table(table):
            if isinstance(row_or_text, list):
                rows.append(row_or_text)
            else:
                yield from filter(None, [self._tables.write(rows)])
                rows = []
                yield row_or_text
        yield from filter(None, [self._tables.write(rows)])

    def _split_table(self, table: Element) -> Iterator[list[TableCell] | str]:
        """Yield a list of cells for each row, and a text for anything else."""
        for child in table.children:
            if isinstance(child, str):
                yield from _make_paragraph([escape_text(child)])
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from self._split_table(child)
            elif child.tag == "tr":
                yield [self._write_cell(cell) for cell in child.children if not _is_blank(cell)]
            elif child.tag in ("td", "th"):
                yield [self._write_cell(child)]
            else:
                yield from self.write_blocks(Element("div", children=[child]))

    def _write_cell(self, cell: Element | str) -> TableCell:
        text = _tidy(self._write_inline(cell)).replace("\n", " ").replace("|", "\\|")
        if isinstance(cell, str):
            return TableCell(text)
        columns, rows = (_read_number(cell, name, 1, _MAX_SPAN) for name in ("colspan", "rowspan"))
        return TableCell(text, columns or 1, rows or 1)

    def _write_inline(self, node: Element | str) -> str:
        if isinstance(node, str):
            return escape_text(re.sub(r"\s+", " ", node))
        if writer := self._INLINE_WRITERS.get(node.tag):
            return writer(self, node)
        text = self._write_children(node)
        # A block inside a sentence or a cell is set apart from the words around it.
        return f" {text} " if node.tag in _BLOCK_TAGS else text

    def _write_children(self, parent: Element) -> str:
        return "".join(map(self._write_inline, parent.children))

    def _write_line_break(self, element: Element) -> str:
        return "\n"

    def _write_nothing(self, element: Element) -> str:
        return ""

    def _write_emphasis(self, element: Element) -> str:
        return _enclose(self._write_children(element), _MARKS[element.tag])

    def _write_code(self, element: Element) -> str:
        text = re.sub(r"\s+", " ", _code_text(element))
        escaped_text = escape_text(text)
        # A backtick beside it would open the code too early, and its signs would be Markdown.
        return _enclose(text, "`") if text == escaped_text and "`" not in text else escaped_text

    def _write_superscript(self, element: Element) -> str:
        link = _find_only_child(element)
        if link and link.tag == "a" and link.attributes.get("href", "").startswith("#"):
            return self._write_footnote_mark(link)
        return _enclose(self._write_children(element), "^")

    def _write_footnote_mark(self, link: Element) -> str:
        """Return the mark of a footnote, so that its number joins no other number."""
        label = _raw_text(link).strip().strip("[]")
        if not _FOOTNOTE_LABEL.fullmatch(label):
            return f"[{escape_text(label)}]" if label else ""
        self._footnote_labels[link.attributes["href"].removeprefix("#")] = label
        return f"[^{label}]"

    def _write_abbreviation(self, element: Element) -> str:
        meaning = " ".join(element.attributes.get("title", "").split())
        abbreviation = " ".join(_raw_text(element).split())
        if meaning and abbreviation and meaning.lower() != abbreviation.lower():
            self.abbreviations[abbreviation, meaning] = None
        return self._write_children(element)

    def _write_inline_list(self, parent: Element) -> str:
        """Return a list that stands in a cell or a heading, where Markdown has no lists."""
        items = (self._write_inline(child).strip() for child in parent.children)
        return f" {' '.join(f'• {item}' for item in items if item)} "

    def _write_quoted(self, element: Element) -> str:
        return f"“{self._write_children(element)}”"

    def _write_image(self, image: Element) -> str:
        description = escape_text(image.attributes.get("alt", ""))
        address = resolve_link(image.attributes.get("src", ""), self.root)
        return f"![{description}]({encode_parentheses(address)})" if address else description

    def _write_link(self, anchor: Element) -> str:
        target = anchor.attributes.get("href", "")
        if target.startswith("#"):
            # A link within the page leads nowhere once it is Markdown.
            return self._write_link_within_page(anchor)
        text = self._write_children(anchor)
        address = resolve_link(target, self.root) if target and text.strip() else None
        if address is None:
            return text
        return format_link(_tidy(text), address) + (" " if text.endswith(" ") else "")

    def _write_link_within_page(self, anchor: Element) -> str:
        attributes = anchor.attributes
        if _has_class(anchor, "reversefootnote") or attributes.get("role") == "doc-backlink":
            return ""
        only_child = _find_only_child(anchor)
        is_footnote = (
            _has_class(anchor, "footnote")
            or "footnote" in (attributes.get("rel"), attributes.get("rev"))
            or attributes.get("role") == "doc-noteref"
            or (only_child is not None and only_child.tag == "sup")
        )
        return self._write_footnote_mark(anchor) if is_footnote else self._write_children(anchor)

    # How each tag is written; any other block is what is inside it, and so is any other element.
    _BLOCK_WRITERS: ClassVar[dict[str, Callable[["_MarkdownWriter", Element], Iterator[str]]]] = {
        **dict.fromkeys(_HEADING_TAGS, _write_heading),
        **dict.fromkeys(("ul", "ol"), _write_list),
        "blockquote": _write_quotation,
        "hr": _write_rule,
        "pre": _write_preformatted,
        "table": _write_table,
    }
    _INLINE_WRITERS: ClassVar[dict[str, Callable[["_MarkdownWriter", Element], str]]] = {
        **dict.fromkeys(_MARKS, _write_emphasis),
        **dict.fromkeys(_INVISIBLE_TAGS, _write_nothing),
        **dict.fromkeys(("ul", "ol"), _write_inline_list),
        "a": _write_link,
        "abbr": _write_abbreviation,
        "br": _write_line_break,
        "code": _write_code,
        "img": _write_image,
        "q": _write_quoted,
        "sup": _write_superscript,
    }


def quote_lines(text: str) -> str:
    """Return the text as a quotation in Markdown."""
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _number_items(parent: Element) -> Iterator[tuple[int | None, Element | str]]:
    """Yield the items of a list, each with its number, or None where it has none."""
    # Items of such a list begin with numbers of their own, and browsers show no others.
    is_numbered = parent.tag == "ol" and not _has_class(parent, "legislative-list")
    number = _read_number(parent, "start", 0, _MAX_LIST_NUMBER)
    step = 1
    if "reversed" in parent.attributes:
        step = -1
        items = [child for child in parent.children if isinstance(child, Element)]
        number = len(items) if number is None else number
    number = 1 if number is None else number
    for child in parent.children:
        if _is_blank(child):
            continue
        if not is_numbered:
            yield None, child
            continue
        if isinstance(child, Element):
            own_number = _read_number(child, "value", 0, _MAX_LIST_NUMBER)
            number = number if own_number is None else own_number
        yield number, child
        number = min(max(0, number + step), _MAX_LIST_NUMBER)


def _read_number(element: Element, name: str, lowest: int, highest: int) -> int | None:
    """Return the number in an attribute, or None where it is none or out of its range."""
    text = element.attributes.get(name, "").strip()
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
    return number if lowest <= number <= highest else None


def _is_callout(element: Element) -> bool:
    classes = element.attributes.get("class", "").split()
    return element.tag in _CALLOUT_TAGS and (
        element.attributes.get("role") == "note" or not _CALLOUT_CLASSES.isdisjoint(classes)
    )


def _has_class(element: Element, name: str) -> bool:
    return name in element.attributes.get("class", "").split()


def _find_only_child(element: Element) -> Element | None:
    """Return the element that is alone inside another, but for blanks."""
    children = [child for child in element.children if not _is_blank(child)]
    return children[0] if len(children) == 1 and isinstance(children[0], Element) else None


def _make_paragraph(sentence: list[str]) -> Iterator[str]:
    text = _tidy("".join(sentence))
    if text:
        yield escape_line_starts(text)


def _tidy(text: str) -> str:
    """Return the text with single spaces, and none at the ends of lines."""
    lines = [re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line)


def _enclose(text: str, mark: str) -> str:
    """Return the text between two marks, with its surrounding spaces outside of them."""
    words = text.strip()
    if not words:
        return text
    before, _, after = text.partition(words)
    return f"{before}{mark}{words}{mark}{after}"


def _raw_text(element: Element) -> str:
    return "".join(
        child if isinstance(child, str) else _raw_text(child) for child in element.children
    )


def _code_text(element: Element) -> str:
    """Return what code says, where no Markdown is read: marks keep numbers apart all the same."""
    pieces = []
    for child in element.children:
        if isinstance(child, str):
            pieces.append(child)
        elif child.tag not in _INVISIBLE_TAGS:
            mark = _CODE_MARKS.get(child.tag, "\n" if child.tag in _BLOCK_TAGS else "")
            pieces.append("\n" if child.tag == "br" else f"{mark}{_code_text(child)}{mark}")
    return "".join(pieces)


def _is_blank(node: Element | str) -> bool:
    return isinstance(node, str) and not node.strip()
