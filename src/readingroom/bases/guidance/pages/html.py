"""Parses the HTML of GOV.UK pages into a small tree, in time proportional to its length."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from readingroom.core.imports import LazyModule

if TYPE_CHECKING:
    from lxml import etree
else:
    etree = LazyModule("lxml.etree")

_MAX_ELEMENT_DEPTH = (
    32  # deeper elements are read as if they were here, so that recursion stays bounded
)


@dataclass(slots=True)
class Element:
    """An element with its attributes, and with the texts and elements inside it, in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Element | str"] = field(default_factory=list)


def parse_html(html_text: str) -> Element:
    """Return a page, or a part of one, as a well nested tree; tags that do not fit are ignored."""
    if not html_text.strip():
        return Element("html")
    # libxml2 by its events, for hostile pages: html.parser and html5lib need quadratic time for
    # some, and parsers that repair formatting as browsers do build quadratic trees.
    html_parser = etree.HTMLParser(target=_TreeBuilder(), encoding="utf-8", huge_tree=True)
    html_parser.feed(html_text.encode("utf-8", "replace"))
    html_root: Element = html_parser.close()
    return html_root


class _TreeBuilder:
    """Receives the parser's events, which are always well nested."""

    def __init__(self) -> None:
        self._root = Element("html")
        self._open_elements = [self._root]
        self._too_deep_count = 0  # elements that are open below the deepest one that is kept

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        new_element = Element(tag, dict(attributes))
        self._open_elements[-1].children.append(new_element)
        if len(self._open_elements) < _MAX_ELEMENT_DEPTH:
            self._open_elements.append(new_element)
        else:
            self._too_deep_count += 1

    def end(self, tag: str) -> None:
        if self._too_deep_count:
            self._too_deep_count -= 1
        else:
            self._open_elements.pop()

    def data(self, text_node: str) -> None:
        self._open_elements[-1].children.append(text_node)

    def close(self) -> Element:
        return self._root
