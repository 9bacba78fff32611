"""Turns the HTML of GOV.UK pages into readable Markdown: every word kept, in its order."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

_BLOCKS = frozenset(
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
_VOID = frozenset(
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
_UNSEEN = frozenset({"script", "style", "template", "svg", "noscript", "head"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}
_DEEPEST = 60  # what lies deeper is read as if it lay here: a page is no reason to run out of stack


@dataclass(slots=True)
class _Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["_Node | str"] = field(default_factory=list)


def to_markdown(html: str, root: str) -> str:
    """The HTML as Markdown; relative links are completed with `root`."""
    builder = _TreeBuilder()
    builder.feed(html)
    builder.close()
    return "\n\n".join(_Writer(root).blocks(builder.top))


class _TreeBuilder(HTMLParser):
    """A tree from tags that need not be well nested."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top = _Node("div")
        self._open = [self.top]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "li" and self._open[-1].tag == "li":
            self._open.pop()
        if tag in _BLOCKS and self._open[-1].tag == "p":
            self._open.pop()
        node = _Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append(node)

    def handle_endtag(self, tag: str) -> None:
        for depth in range(len(self._open) - 1, 0, -1):
            if self._open[depth].tag == tag:
                del self._open[depth:]
                return

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


class _Writer:
    def __init__(self, root: str) -> None:
        self._root = root

    def blocks(self, node: _Node) -> Iterator[str]:
        """The node's paragraphs, lists, tables and headings, in order."""
        run: list[str] = []
        for child in node.children:
            if isinstance(child, str) or child.tag not in _BLOCKS:
                run.append(self._inline(child))
            else:
                yield from _paragraph(run)
                run = []
                yield from self._block(child)
        yield from _paragraph(run)

    def _block(self, node: _Node) -> Iterator[str]:
        match node.tag:
            case tag if tag in _HEADINGS:
                title = _tidy(self._inside(node)).replace("\n", " ")
                yield from [f"{_HEADINGS[tag]} {title}"] if title else []
            case "ul" | "ol":
                yield from self._list(node)
            case "blockquote":
                quoted = "\n\n".join(self.blocks(node))
                yield "\n".join(f"> {line}".rstrip() for line in quoted.split("\n"))
            case "table":
                yield from self._table(node)
            case "pre":
                yield f"```\n{_raw(node).strip()}\n```"
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
        """Rows, with whatever else stands between them in its place."""
        rows: list[list[str]] = []
        for part in self._table_parts(node):
            if isinstance(part, list):
                rows.append(part)
            else:
                yield from _rows(rows)
                rows = []
                yield part
        yield from _rows(rows)

    def _table_parts(self, node: _Node) -> Iterator[list[str] | str]:
        """A list of cells for each row, a text for what is no row."""
        for child in node.children:
            if isinstance(child, str):
                yield from _paragraph([child])
            elif child.tag in ("thead", "tbody", "tfoot"):
                yield from self._table_parts(child)
            elif child.tag == "tr":
                yield [self._cell(one) for one in child.children if not _is_blank(one)]
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
                return _marked(self._inside(node), _MARKS[tag])
            case tag if tag in _UNSEEN:
                return ""
            case tag if tag in _BLOCKS:  # a block inside a sentence or a cell
                return f" {self._inside(node)} "
        return self._inside(node)

    def _inside(self, node: _Node) -> str:
        return "".join(map(self._inline, node.children))

    def _anchor(self, node: _Node) -> str:
        text = self._inside(node)
        target = node.attributes.get("href", "")
        if not text.strip() or not target or target.startswith("#"):
            return text
        return f"[{_tidy(text)}]({self._link(node, 'href')})" + (" " if text.endswith(" ") else "")

    def _link(self, node: _Node, attribute: str) -> str:
        target = node.attributes.get(attribute, "").strip()
        try:
            return urljoin(self._root, target)
        except ValueError:  # such as an address with a broken IPv6 host
            return target


def _paragraph(run: list[str]) -> Iterator[str]:
    text = _tidy("".join(run))
    if text:
        yield text


def _tidy(text: str) -> str:
    """One space where there were several; none at the ends of lines."""
    lines = [re.sub(r"[^\S\n]+", " ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line)


def _marked(text: str, mark: str) -> str:
    """Marks stand at the words, spaces outside of them."""
    words = text.strip()
    if not words:
        return text
    before, _, after = text.partition(words)
    return f"{before}{mark}{words}{mark}{after}"


def _raw(node: _Node) -> str:
    return "".join(child if isinstance(child, str) else _raw(child) for child in node.children)


def _is_blank(node: "_Node | str") -> bool:
    return isinstance(node, str) and not node.strip()


def _rows(rows: list[list[str]]) -> Iterator[str]:
    """Rows of cells as a table whose first row is its head."""
    width = max(map(len, rows), default=0)
    if not width:
        return
    head, *rest = [row + [""] * (width - len(row)) for row in rows]
    lines = [head, ["---"] * width, *rest]
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
