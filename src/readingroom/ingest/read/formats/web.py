"""Reads HTML pages: what a reader sees of them, as paragraphs, headings, lists and rows."""

from typing import Any

from lxml import etree

from readingroom.ingest.document import ReadOptions, Refusal
from readingroom.ingest.read.formats.plain import decode_text
from readingroom.ingest.read.page import RawPage
from readingroom.ingest.read.reflow import PageBuilder

_SKIPPED_ELEMENT_TAGS = frozenset(
    ("script", "style", "head", "noscript", "template", "svg", "iframe", "object", "select")
)
_LEVEL_BY_HEADING_TAG = {f"h{heading_level}": heading_level for heading_level in range(1, 7)}
_BLOCK_TAGS = frozenset(
    """
    address article aside blockquote body caption dd details div dl dt fieldset figcaption figure
    footer form header hr html legend li main nav ol p pre section summary table tbody tfoot thead
    tr ul
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_CELL_TAGS = frozenset(("td", "th"))
_KEPT_ATTRIBUTE_NAMES = ("hidden", "style")
_CHARSET_SEARCH_BYTES = 2048


def read_html(file_bytes: bytes, file_name: str, read_options: ReadOptions) -> list[RawPage]:
    """Return the text of a page; raise a `Refusal`."""
    page_builder = PageBuilder()
    add_html(file_bytes, page_builder)
    return page_builder.finish_pages()


def add_html(html_source: bytes | str, page_builder: PageBuilder) -> None:
    """Add what a reader sees of HTML to a page; raise a `Refusal`."""
    html_root = _parse_html(html_source)
    if html_root is not None:
        _HtmlWriter(page_builder).write_element(html_root)


def _parse_html(html_source: bytes | str) -> Any:
    # A page that names its encoding is decoded by the parser, any other as texts are.
    if (
        isinstance(html_source, bytes)
        and b"charset" not in html_source[:_CHARSET_SEARCH_BYTES].lower()
    ):
        html_source = decode_text(html_source)
    if isinstance(html_source, str):
        html_source = html_source.encode("utf-8", "replace")
        html_parser = etree.HTMLParser(
            encoding="utf-8", no_network=True, target=_ElementTreeMaker()
        )
    else:
        html_parser = etree.HTMLParser(no_network=True, target=_ElementTreeMaker())
    try:
        return etree.fromstring(html_source, html_parser) if html_source.strip() else None
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise Refusal("extraction_failed", "The HTML cannot be parsed") from error


class _ElementTreeMaker:
    """Makes the elements of a page, with no attribute but those that hide them.

    Given all attributes of a tag, lxml takes time by the square of their number.
    """

    def __init__(self) -> None:
        self._tree_builder = etree.TreeBuilder()
        self._is_empty = True

    def start(self, tag: str, attributes: Any) -> None:
        kept_attributes = {
            attribute_name: attributes[attribute_name]
            for attribute_name in _KEPT_ATTRIBUTE_NAMES
            if attribute_name in attributes
        }
        self._tree_builder.start(tag, kept_attributes)
        self._is_empty = False

    def end(self, tag: str) -> None:
        self._tree_builder.end(tag)

    def data(self, text: str) -> None:
        self._tree_builder.data(text)

    def close(self) -> Any:
        return None if self._is_empty else self._tree_builder.close()


class _HtmlWriter:
    """Writes the blocks of a page as paragraphs."""

    def __init__(self, page_builder: PageBuilder) -> None:
        self._page_builder = page_builder
        self._text_pieces: list[str] = []
        self._cell_texts: list[str] | None = None
        """Cells of the row that is being read."""
        self._heading_level = 0
        self._list_numbers: list[int | None] = []
        """The last number of each list around; None for one with bullets."""

    def write_element(self, html_root: Any) -> None:
        tree_walker = etree.iterwalk(html_root, events=("start", "end"))  # without recursion
        for walk_event_name, walked_element in tree_walker:
            is_hidden = _is_hidden(walked_element)
            if walk_event_name == "end":
                if not is_hidden:
                    self._end_element(walked_element)
                # What follows a hidden element is seen.
                self._text_pieces.append(
                    _replace_line_breaks(walked_element.getparent(), walked_element.tail)
                )
            elif is_hidden:
                tree_walker.skip_subtree()
            else:
                self._start_element(walked_element)
                self._text_pieces.append(_replace_line_breaks(walked_element, walked_element.text))
        self._end_block()

    def _start_element(self, element: Any) -> None:
        if element.tag == "br":
            self._text_pieces.append("\n")
        elif element.tag in _LEVEL_BY_HEADING_TAG or element.tag in _BLOCK_TAGS:
            self._end_block()
        if element.tag in _LEVEL_BY_HEADING_TAG:
            self._heading_level = _LEVEL_BY_HEADING_TAG[element.tag]
        elif element.tag == "tr":
            self._cell_texts = []
        elif element.tag in ("ol", "ul"):
            self._list_numbers.append(0 if element.tag == "ol" else None)
        elif element.tag == "li" and self._list_numbers and self._list_numbers[-1] is not None:
            self._list_numbers[-1] += 1
            self._text_pieces.append(f"{self._list_numbers[-1]}. ")

    def _end_element(self, element: Any) -> None:
        if element.tag in _CELL_TAGS and self._cell_texts is not None:
            self._cell_texts.append("".join(self._text_pieces))
            self._text_pieces.clear()
        elif element.tag == "tr" and self._cell_texts is not None:
            self._page_builder.add_row(self._cell_texts)
            self._cell_texts = None
            self._text_pieces.clear()
        elif element.tag in _LEVEL_BY_HEADING_TAG or element.tag in _BLOCK_TAGS:
            self._end_block()
            self._heading_level = 0
        if element.tag in ("ol", "ul") and self._list_numbers:
            self._list_numbers.pop()

    def _end_block(self) -> None:
        if self._cell_texts is not None:  # inside a row, where paragraphs are parts of a cell
            self._text_pieces.append(" ")
            return
        self._page_builder.add_paragraph("".join(self._text_pieces), self._heading_level)
        self._text_pieces.clear()


def _is_hidden(element: Any) -> bool:
    style_text = (element.get("style") or "").replace(" ", "").lower()
    return (
        element.tag in _SKIPPED_ELEMENT_TAGS
        or "hidden" in element.attrib
        or "display:none" in style_text
    )


def _replace_line_breaks(parent_element: Any, raw_text: str | None) -> str:
    """Return text as HTML shows it: line breaks are blanks, but for preformatted text."""
    if not raw_text:
        return ""
    if parent_element is not None and parent_element.tag == "pre":
        return raw_text
    return raw_text.replace("\r", " ").replace("\n", " ")
