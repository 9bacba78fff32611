"""Converts the HTML of GOV.UK pages to Markdown, with every word in its original order."""

import re
from collections.abc import Callable, Iterator
from typing import ClassVar
from urllib.parse import urljoin, urlsplit

from readingroom.bases.guidance.pages.html import Element, parse_html

MAX_HTML_CHARS = 1_000_000
MAX_MARKDOWN_CHARS = 4 * MAX_HTML_CHARS
# A row that is shorter than its table's widest is filled up, which costs nothing in HTML.
MAX_EMPTY_CELLS = 20_000
CUT_NOTE = "[The text is cut here: the page is too long. Its whole text is at its address.]"

_HEADING_TAGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LIST_TAGS = ("ul", "ol", "li", "dl", "dt", "dd")
_TABLE_TAGS = ("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td")
_SECTION_TAGS = ("html", "body", "header", "main", "footer", "nav", "section", "article", "aside")
_TEXT_TAGS = ("div", "p", "blockquote", "pre", "hr", "address", "figure", "figcaption")
_FORM_TAGS = ("form", "fieldset", "details", "summary")
_BLOCK_TAGS = frozenset(
    _HEADING_TAGS + _LIST_TAGS + _TABLE_TAGS + _SECTION_TAGS + _TEXT_TAGS + _FORM_TAGS
)
_INVISIBLE_TAGS = frozenset({"script", "style", "template", "svg", "noscript", "head"})
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}
_LINK_SCHEMES = frozenset({"http", "https", "mailto"})


def to_markdown(html: str, root: str) -> str:
    """Return one piece of HTML as Markdown; `root` completes relative links."""
    return MarkdownConverter(root).convert(html)


def resolve_link(target: str, root: str) -> str | None:
    """Return the full address of a link, or None where it is no web or mail address."""
    try:
        address = urljoin(root, target.strip())
        is_link = urlsplit(address).scheme in _LINK_SCHEMES
    except ValueError:  # such as a URL with a malformed IPv6 host
        return None
    return address if is_link else None


class MarkdownConverter:
    """Converts the HTML of one page, piece by piece, within limits that hold for all of it.

    The text of a page that goes over them is cut, and says so.
    """

    def __init__(self, root: str) -> None:
        self._writer = _MarkdownWriter(root)
        self._html_left = MAX_HTML_CHARS
        self._markdown_left = MAX_MARKDOWN_CHARS

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


class _MarkdownWriter:
    def __init__(self, root: str) -> None:
        self._root = root
        self._empty_cells_left = MAX_EMPTY_CELLS

    def write_blocks(self, parent: Element) -> Iterator[str]:
        """Yield the element's paragraphs, lists, tables and headings, in order."""
        sentence: list[str] = []
        for child in parent.children:
            if isinstance(child, str) or child.tag not in _BLOCK_TAGS:
                sentence.append(self._write_inline(child))
            else:
                yield from _make_paragraph(sentence)
                sentence = []
                yield from self._BLOCK_WRITERS.get(child.tag, _MarkdownWriter.write_blocks)(
                    self, child
                )
        yield from _make_paragraph(sentence)

    def _write_heading(self, heading: Element) -> Iterator[str]:
        title = _tidy(self._write_children(heading)).replace("\n", " ")
        if title:
            yield f"{'#' * int(heading.tag[1])} {title}"

    def _write_list(self, parent: Element) -> Iterator[str]:
        items: list[str] = []
        for child in parent.children:
            item = _tidy(child) if isinstance(child, str) else "\n".join(self.write_blocks(child))
            if item:
                marker = f"{len(items) + 1}. " if parent.tag == "ol" else "- "
                items.append(marker + item.replace("\n", "\n" + " " * len(marker)))
        if items:
            yield "\n".join(items)

    def _write_quotation(self, quotation: Element) -> Iterator[str]:
        lines = "\n\n".join(self.write_blocks(quotation)).split("\n")
        yield "\n".join(f"> {line}".rstrip() for line in lines)

    def _write_preformatted(self, element: Element) -> Iterator[str]:
        yield f"```\n{_raw_text(element).strip()}\n```"

    def _write_rule(self, element: Element) -> Iterator[str]:
        yield "---"

    def _write_table(self, table: Element) -> Iterator[str]:
        """Yield the rows as tables, and whatever else is between them."""
        rows: list[list[str]] = []
        for row_or_text in self._split_table(table):
            if isinstance(row_or_text, list):
                rows.append(row_or_text)
            else:
                yield from self._write_rows(rows)
                rows = []
                yield row_or_text
        yield from self._write_rows(rows)

    def _split_table(self, table: Element) -> Iterator[list[str] | str]:
        """Yield a list of cells for each row, and a text for anything else."""
        for child in table.children:
            if isinstance(child, str):
                yield from _make_paragraph([child])
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from self._split_table(child)
            elif child.tag == "tr":
                yield [self._write_cell(cell) for cell in child.children if not _is_blank(cell)]
            elif child.tag in ("td", "th"):
                yield [self._write_cell(child)]
            else:
                yield from self.write_blocks(Element("div", children=[child]))

    def _write_cell(self, cell: Element | str) -> str:
        return _tidy(self._write_inline(cell)).replace("\n", " ").replace("|", "\\|")

    def _write_rows(self, rows: list[list[str]]) -> Iterator[str]:
        """Yield the rows as one table, with the first as its head; past the limit, as lines."""
        # Rows may differ in length: cells that span several columns are written once.
        width = max(map(len, rows), default=0)
        if not width:
            return
        empty_cells = width * len(rows) - sum(map(len, rows))
        if empty_cells > self._empty_cells_left:
            yield from (" | ".join(row) for row in rows if row)
            return
        self._empty_cells_left -= empty_cells
        head, *body = [row + [""] * (width - len(row)) for row in rows]
        lines = [head, ["---"] * width, *body]
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def _write_inline(self, node: Element | str) -> str:
        if isinstance(node, str):
            return re.sub(r"\s+", " ", node)
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
        return _emphasize(self._write_children(element), _MARKS[element.tag])

    def _write_image(self, image: Element) -> str:
        description = image.attributes.get("alt", "")
        address = resolve_link(image.attributes.get("src", ""), self._root)
        return f"![{description}]({address})" if address else description

    def _write_link(self, anchor: Element) -> str:
        text = self._write_children(anchor)
        target = anchor.attributes.get("href", "")
        # A link within the page leads nowhere once it is Markdown.
        is_elsewhere = bool(target) and not target.startswith("#")
        address = resolve_link(target, self._root) if is_elsewhere and text.strip() else None
        if address is None:
            return text
        return f"[{_tidy(text)}]({address})" + (" " if text.endswith(" ") else "")

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
        "a": _write_link,
        "br": _write_line_break,
        "img": _write_image,
    }


def _make_paragraph(sentence: list[str]) -> Iterator[str]:
    text = _tidy("".join(sentence))
    if text:
        yield text


def _tidy(text: str) -> str:
    """Return the text with single spaces, and none at the ends of lines."""
    lines = [re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line)


def _emphasize(text: str, mark: str) -> str:
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


def _is_blank(node: Element | str) -> bool:
    return isinstance(node, str) and not node.strip()
