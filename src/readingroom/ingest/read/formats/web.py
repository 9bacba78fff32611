"""Reads HTML pages: what a reader sees of them, as paragraphs, headings, lists and rows."""

from typing import Any

from lxml import etree

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.plain import decode_text
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_SKIPPED_ELEMENTS = frozenset(
    ("script", "style", "head", "noscript", "template", "svg", "iframe", "object", "select")
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """
    address article aside blockquote body caption dd details div dl dt fieldset figcaption figure
    footer form header hr html legend li main nav ol p pre section summary table tbody tfoot thead
    tr ul
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_CELLS = frozenset(("td", "th"))
_READ_ATTRIBUTES = ("hidden", "style")
_CHARSET_WITHIN_BYTES = 2048


def read_html(content: bytes, file_name: str, options: ReadOptions) -> list[RawPage]:
    """Return the text of a page; raise a `Refusal`."""
    pages = PageBuilder()
    add_html(content, pages)
    return pages.finish()


def add_html(content: bytes | str, pages: PageBuilder) -> None:
    """Add what a reader sees of HTML to a page; raise a `Refusal`."""
    root = _parse_html(content)
    if root is not None:
        _HtmlWriter(pages).write(root)


def _parse_html(content: bytes | str) -> Any:
    # A page that names its encoding is decoded by the parser, any other as texts are.
    if isinstance(content, bytes) and b"charset" not in content[:_CHARSET_WITHIN_BYTES].lower():
        content = decode_text(content)
    if isinstance(content, str):
        content = content.encode("utf-8", "replace")
        parser = etree.HTMLParser(encoding="utf-8", no_network=True, target=_TreeMaker())
    else:
        parser = etree.HTMLParser(no_network=True, target=_TreeMaker())
    try:
        return etree.fromstring(content, parser) if content.strip() else None
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise Refusal("extraction_failed", "The HTML cannot be parsed") from error


class _TreeMaker:
    """Makes the elements of a page, with no attribute but those that hide them.

    Given all attributes of a tag, lxml takes time by the square of their number.
    """

    def __init__(self) -> None:
        self._builder = etree.TreeBuilder()
        self._is_empty = True

    def start(self, tag: str, attributes: Any) -> None:
        kept = {name: attributes[name] for name in _READ_ATTRIBUTES if name in attributes}
        self._builder.start(tag, kept)
        self._is_empty = False

    def end(self, tag: str) -> None:
        self._builder.end(tag)

    def data(self, text: str) -> None:
        self._builder.data(text)

    def close(self) -> Any:
        return None if self._is_empty else self._builder.close()


class _HtmlWriter:
    """Writes the blocks of a page as paragraphs."""

    def __init__(self, pages: PageBuilder) -> None:
        self._pages = pages
        self._text_pieces: list[str] = []
        self._cells: list[str] | None = None
        """Cells of the row that is being read."""
        self._heading_level = 0
        self._list_numbers: list[int | None] = []
        """The last number of each list around; None for one with bullets."""

    def write(self, root: Any) -> None:
        walker = etree.iterwalk(root, events=("start", "end"))  # without recursion
        for event, element in walker:
            is_hidden = _is_hidden(element)
            if event == "end":
                if not is_hidden:
                    self._end_element(element)
                # What follows a hidden element is seen.
                self._text_pieces.append(_collapse(element.getparent(), element.tail))
            elif is_hidden:
                walker.skip_subtree()
            else:
                self._start_element(element)
                self._text_pieces.append(_collapse(element, element.text))
        self._end_block()

    def _start_element(self, element: Any) -> None:
        if element.tag == "br":
            self._text_pieces.append("\n")
        elif element.tag in _HEADINGS or element.tag in _BLOCKS:
            self._end_block()
        if element.tag in _HEADINGS:
            self._heading_level = _HEADINGS[element.tag]
        elif element.tag == "tr":
            self._cells = []
        elif element.tag in ("ol", "ul"):
            self._list_numbers.append(0 if element.tag == "ol" else None)
        elif element.tag == "li" and self._list_numbers and self._list_numbers[-1] is not None:
            self._list_numbers[-1] += 1
            self._text_pieces.append(f"{self._list_numbers[-1]}. ")

    def _end_element(self, element: Any) -> None:
        if element.tag in _CELLS and self._cells is not None:
            self._cells.append("".join(self._text_pieces))
            self._text_pieces.clear()
        elif element.tag == "tr" and self._cells is not None:
            self._pages.add_row(self._cells)
            self._cells = None
            self._text_pieces.clear()
        elif element.tag in _HEADINGS or element.tag in _BLOCKS:
            self._end_block()
            self._heading_level = 0
        if element.tag in ("ol", "ul") and self._list_numbers:
            self._list_numbers.pop()

    def _end_block(self) -> None:
        if self._cells is not None:  # inside a row, where paragraphs are parts of a cell
            self._text_pieces.append(" ")
            return
        self._pages.add_paragraph("".join(self._text_pieces), self._heading_level)
        self._text_pieces.clear()


def _is_hidden(element: Any) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    return element.tag in _SKIPPED_ELEMENTS or "hidden" in element.attrib or "display:none" in style


def _collapse(parent: Any, text: str | None) -> str:
    """Return text as HTML shows it: line breaks are blanks, but for preformatted text."""
    if not text:
        return ""
    if parent is not None and parent.tag == "pre":
        return text
    return text.replace("\r", " ").replace("\n", " ")
