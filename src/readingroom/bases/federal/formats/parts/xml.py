"""Parses untrusted XML and HTML: no entities, no external DTD, no network."""

import hashlib
import html
import re
from itertools import chain
from operator import attrgetter
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_BLOCKS = set(
    """
    docTitle officialTitle level p heading section subsection paragraph subparagraph clause
    item chapter title part division longTitle enactingClause resolvingClause content
    chapeau continuation quotedContent num row tr li block statement preamble recital action
    toc referenceItem note signature
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_INLINE_AFTER = frozenset(("num", "heading"))
_CONTINUING = frozenset(("heading", "content", "chapeau", "p"))
_END = "\0"  # no XML document can hold it
_INSIDE = ("", "")
_EDGES = {
    tag: ("" if tag in _CONTINUING else _END, " " if tag in _INLINE_AFTER else _END)
    for tag in (*_BLOCKS, *_INLINE_AFTER)
}
"""What comes before and after the text of a block; other elements run on."""


_get_tag = attrgetter("tag")
_flat = chain.from_iterable


_HTML_TAG = re.compile(r"<[^>]+>")
_HTML_BREAK = re.compile(r"</?(?:p|br|li|ul|h\d)[^>]*>", re.IGNORECASE)


class EntitiesRefused(ValueError):
    """The document declares entities, which no official file does."""


def parse(data: bytes) -> Element:
    """Return the root of a document, its tags without namespace prefixes.

    Expat calls the builder itself, with no Python between: half of a load is parsing.
    """
    builder, parser = TreeBuilder(), expat.ParserCreate()
    # Else expat calls back for every line of a text.
    parser.buffer_text = True
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    # A few nested entities can expand to gigabytes, and an external one can read local files.
    parser.EntityDeclHandler = _refuse
    # A DOCTYPE may name an external DTD; expat does not load it unless told to.
    parser.ExternalEntityRefHandler = _refuse
    parser.Parse(data, True)
    root = builder.close()
    # Loaders look elements up by their plain names, whatever prefix a file chose.
    for element in root.iter():
        if ":" in element.tag:
            element.tag = element.tag.rpartition(":")[2]
    return root


def hash_element(element: Element) -> str:
    """Return the hash of an element, which a change elsewhere in its file does not affect."""
    attributes = _flat(map(Element.items, element.iter()))
    parts = (*element.itertext(), *map(_get_tag, element.iter()), *_flat(attributes))
    # A separator that no XML may contain: without one, text moved between elements hashes alike.
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def _refuse(*declared: Any) -> int:
    raise EntitiesRefused("the document declares entities")


def get_text(element: Element | None, path: str | None = None) -> str | None:
    """Return the text of an element or a child, white space collapsed, or None if it is empty."""
    if element is not None and path is not None:
        element = element.find(path)
    if element is None:
        return None
    text = "".join(element.itertext()) if len(element) else element.text or ""
    return " ".join(text.split()) or None


def parse_iso_date(text: str | None) -> str | None:
    """Return the date of `2021-03-01` or `2021-03-01T05:00:00Z`, or None."""
    return text[:10] if text and len(text) >= 10 and text[4] == text[7] == "-" else None


def extract_prose(element: Element) -> str:
    """Return the text of an element, a paragraph for each block in it."""
    parts: list[str] = []
    _collect_text(element, parts)
    tidied = (" ".join(block.split()) for block in "".join(parts).split(_END))
    return "\n\n".join(filter(None, tidied))


def _collect_text(node: Element, parts: list[str]) -> None:
    """Append the texts of an element in order, with a mark where a block ends.

    A number and the heading after it stay on the line of what they number: `(a) In general`.
    """
    before, after = _EDGES.get(node.tag, _INSIDE)
    parts.append(before + (node.text or ""))
    for child in node:
        _collect_text(child, parts)
        if tail := child.tail:
            parts.append(tail)
    if after:
        parts.append(after)


def strip_html(markup: str) -> str:
    """Return the text of HTML, a line for each of its paragraphs."""
    lines = _HTML_BREAK.sub("\n", markup).split("\n")
    texts = (" ".join(html.unescape(_HTML_TAG.sub("", line)).split()) for line in lines)
    return "\n".join(line for line in texts if line)
