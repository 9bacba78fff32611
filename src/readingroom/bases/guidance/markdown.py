"""Converts the HTML of GOV.UK pages to Markdown, with every word in its original order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

_BLOCK_TAGS = frozenset(
    {
        "address",
        "article",
        "aside",
        "blockquote",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
    }
)
_VOID_TAGS = frozenset(
    {
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    }
)
_INVISIBLE = frozenset({"script", "style", "template", "svg", "noscript", "head"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}
_MAX_DEPTH = 60  # deeper elements are read as if they were here, so that recursion stays bounded


@dataclass(slots=True)
class _Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["_Node | str"] = field(default_factory=list)


def to_markdown(html: str, root: str) -> str:
    """Return the HTML as Markdown; `root` completes relative links."""
    builder = _TreeBuilder()
    builder.feed(html)
    builder.close()
    return "\n\n".join(_MarkdownWriter(root).blocks(builder.top))


class _TreeBuilder(HTMLParser):
    """Builds a tree from tags that need not be well nested."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top = _Node("div")
        self._open = [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # HTML lets authors leave out </li> and </p>, and old pages do.
        if tag == "li" and self._open[-1].tag == "li":
            self._open.pop()
        if tag in _BLOCK_TAGS and self._open[-1].tag == "p":
            self._open.pop()
        node = _Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        # Void elements never close, so they must not stay open.
        if tag not in _VOID_TAGS and len(self._open) < _MAX_DEPTH:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        # An end tag without its start is ignored, as browsers do.
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


class _MarkdownWriter:
    def __init__(self, root: str) -> None:
        self._root = root

    def blocks(self, node: _Node) -> Iterator[str]:
        """Yield the node's paragraphs, lists, tables and headings, in order."""
        run: list[str] = []
        for child in node.children:
            if isinstance(child, str) or child.tag not in _BLOCK_TAGS:
                run.append(self._inline(child))
            else:
                yield from _make_paragraph(run)
                run = []
                yield from self._block(child)
        yield from _make_paragraph(run)

    def _block(self, node: _Node) -> Iterator[str]:
        match node.tag:
            case tag if tag in _HEADINGS:
                title = _tidy(self._inline_children(node)).replace("\n", " ")
                yield from [f"{_HEADINGS[tag]} {title}"] if title else []
            case "ul" | "ol":
                yield from self._list(node)
            case "blockquote":
                quoted = "\n\n".join(self.blocks(node))
                yield "\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))
            case "table":
                yield from self._table(node)
            case "pre":
                yield f"```\n{_raw_text(node).strip()}\n```"
            case "hr":
                yield "---"
            case _:
                yield from self.blocks(node)

    def _list(self, node: _Node) -> Iterator[str]:
        items = []
        number = 0
        for child in node.children:
            body = "\n".join(self.blocks(child)) if isinstance(child, _Node) else _tidy(child)
            if not body:
                continue
            number += 1
            marker = f"{number}. " if node.tag == "ol" else "- "
            items.append(marker + body.replace("\n", "\n" + " " * len(marker)))
        if items:
            yield "\n".join(items)

    def _table(self, node: _Node) -> Iterator[str]:
        """Yield the rows as tables, and whatever else is between them."""
        rows: list[list[str]] = []
        for part in self._table_parts(node):
            if isinstance(part, list):
                rows.append(part)
            else:
                yield from _render_table(rows)
                rows = []
                yield part
        yield from _render_table(rows)

    def _table_parts(self, node: _Node) -> Iterator[list[str] | str]:
        """Yield a list of cells for each row, and a text for anything else."""
        for child in node.children:
            if isinstance(child, str):
                yield from _make_paragraph([child])
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from self._table_parts(child)
            elif child.tag == "tr":
                yield [self._cell(cell) for cell in child.children if not _is_blank(cell)]
            elif child.tag in ("td", "th"):
                yield [self._cell(child)]
            else:
                yield from self.blocks(_Node("div", children=[child]))

    def _cell(self, node: "_Node | str") -> str:
        return _tidy(self._inline(node)).replace("\n", " ").replace("|", "\\|")

    def _inline(self, node: "_Node | str") -> str:
        if isinstance(node, str):
            return re.sub(r"\s+", " ", node)
        match node.tag:
            case "br":
                return "\n"
            case "img":
                return f"![{node.attributes.get('alt', '')}]({self._link(node, 'src')})"
            case "a":
                return self._anchor(node)
            case tag if tag in _MARKS:
                return _emphasize(self._inline_children(node), _MARKS[tag])
            case tag if tag in _INVISIBLE:
                return ""
            case tag if tag in _BLOCK_TAGS:  # a block inside a sentence or a cell
                return f" {self._inline_children(node)} "
        return self._inline_children(node)

    def _inline_children(self, node: _Node) -> str:
        return "".join(map(self._inline, node.children))

    def _anchor(self, node: _Node) -> str:
        text = self._inline_children(node)
        target = node.attributes.get("href", "")
        # A link within the page leads nowhere once it is Markdown.
        if not text.strip() or not target or target.startswith("#"):
            return text
        return f"[{_tidy(text)}]({self._link(node, 'href')})" + (" " if text.endswith(" ") else "")

    def _link(self, node: _Node, attribute: str) -> str:
        target = node.attributes.get(attribute, "").strip()
        try:
            return urljoin(self._root, target)
        except ValueError:  # such as a URL with a malformed IPv6 host
            return target


def _make_paragraph(run: list[str]) -> Iterator[str]:
    text = _tidy("".join(run))
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


def _raw_text(node: _Node) -> str:
    return "".join(child if isinstance(child, str) else _raw_text(child) for child in node.children)


def _is_blank(node: "_Node | str") -> bool:
    return isinstance(node, str) and not node.strip()


def _render_table(rows: list[list[str]]) -> Iterator[str]:
    """Yield the rows as one table, with the first row as its head."""
    # Rows may differ in length: cells that span several columns are written once.
    width = max(map(len, rows), default=0)
    if not width:
        return
    head, *rest = [row + [""] * (width - len(row)) for row in rows]
    lines = [head, ["---"] * width, *rest]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
