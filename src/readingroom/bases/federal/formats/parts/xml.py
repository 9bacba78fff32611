"""Parses untrusted XML and HTML: no entities, no external DTD, no network."""

import hashlib
import html
import re
from itertools import chain
from operator import attrgetter
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_BLOCK_TAGS = set(
    """
    docTitle officialTitle level p heading section subsection paragraph subparagraph clause
    item chapter title part division longTitle enactingClause resolvingClause content
    chapeau continuation quotedContent num row tr li block statement preamble recital action
    toc referenceItem note signature
    """.split()  # noqa: SIM905 a list of this length is read as words
)
_TAGS_BEFORE_INLINE = frozenset(("num", "heading"))
_TAGS_CONTINUING_LINE = frozenset(("heading", "content", "chapeau", "p"))
_PARAGRAPH_SEPARATOR = "\0"  # no XML document can hold it
_NO_SEPARATORS = ("", "")
_SEPARATORS_BY_BLOCK_TAG = {
    block_tag: (
        "" if block_tag in _TAGS_CONTINUING_LINE else _PARAGRAPH_SEPARATOR,
        " " if block_tag in _TAGS_BEFORE_INLINE else _PARAGRAPH_SEPARATOR,
    )
    for block_tag in (*_BLOCK_TAGS, *_TAGS_BEFORE_INLINE)
}
"""What comes before and after the text of a block; other elements run on."""


_get_tag = attrgetter("tag")
_chain_iterables = chain.from_iterable


_HTML_TAG_PATTERN = re.compile(r"<[^>]+>")
_HTML_BREAK_PATTERN = re.compile(r"</?(?:p|br|li|ul|h\d)[^>]*>", re.IGNORECASE)


class EntitiesRefused(ValueError):
    """The document declares entities, which no official file does."""


def parse_xml(markup_bytes: bytes) -> Element:
    """Return the root of a document, its tags without namespace prefixes.

    Expat calls the builder itself, with no Python between: half of a load is parsing.
    """
    tree_builder, expat_parser = TreeBuilder(), expat.ParserCreate()
    # Else expat calls back for every line of a text.
    expat_parser.buffer_text = True
    expat_parser.StartElementHandler = tree_builder.start
    expat_parser.EndElementHandler = tree_builder.end
    expat_parser.CharacterDataHandler = tree_builder.data
    # A few nested entities can expand to gigabytes, and an external one can read local files.
    expat_parser.EntityDeclHandler = _refuse_entities
    # A DOCTYPE may name an external DTD; expat does not load it unless told to.
    expat_parser.ExternalEntityRefHandler = _refuse_entities
    expat_parser.Parse(markup_bytes, True)
    root_element = tree_builder.close()
    # Loaders look elements up by their plain names, whatever prefix a file chose.
    for element in root_element.iter():
        if ":" in element.tag:
            element.tag = element.tag.rpartition(":")[2]
    return root_element


def hash_element(element: Element) -> str:
    """Return the hash of an element, which a change elsewhere in its file does not affect."""
    attribute_pairs = _chain_iterables(map(Element.items, element.iter()))
    hashed_texts = (
        *element.itertext(),
        *map(_get_tag, element.iter()),
        *_chain_iterables(attribute_pairs),
    )
    # A separator that no XML may contain: without one, text moved between elements hashes alike.
    return hashlib.sha256("\x1f".join(hashed_texts).encode()).hexdigest()


def _refuse_entities(*declaration_values: Any) -> int:
    raise EntitiesRefused("the document declares entities")


def find_text(element: Element | None, xml_path: str | None = None) -> str | None:
    """Return the text of an element or a child, white space collapsed, or None if it is empty."""
    if element is not None and xml_path is not None:
        element = element.find(xml_path)
    if element is None:
        return None
    element_text = "".join(element.itertext()) if len(element) else element.text or ""
    return " ".join(element_text.split()) or None


def parse_iso_date(date_text: str | None) -> str | None:
    """Return the date of `2021-03-01` or `2021-03-01T05:00:00Z`, or None."""
    return (
        date_text[:10]
        if date_text and len(date_text) >= 10 and date_text[4] == date_text[7] == "-"
        else None
    )


def extract_prose(element: Element) -> str:
    """Return the text of an element, a paragraph for each block in it."""
    text_parts: list[str] = []
    _append_element_text(element, text_parts)
    paragraph_texts = (
        " ".join(paragraph_text.split())
        for paragraph_text in "".join(text_parts).split(_PARAGRAPH_SEPARATOR)
    )
    return "\n\n".join(filter(None, paragraph_texts))


def _append_element_text(xml_node: Element, text_parts: list[str]) -> None:
    """Append the texts of an element in order, with a mark where a block ends.

    A number and the heading after it stay on the line of what they number: `(a) In general`.
    """
    separator_before, separator_after = _SEPARATORS_BY_BLOCK_TAG.get(xml_node.tag, _NO_SEPARATORS)
    text_parts.append(separator_before + (xml_node.text or ""))
    for child_node in xml_node:
        if len(child_node):
            _append_element_text(child_node, text_parts)
            if tail_text := child_node.tail:
                text_parts.append(tail_text)
        else:
            # Most elements have no children: a call for each would take half of the time.
            child_separator_before, child_separator_after = _SEPARATORS_BY_BLOCK_TAG.get(
                child_node.tag, _NO_SEPARATORS
            )
            child_text, tail_text = child_node.text or "", child_node.tail or ""
            text_parts.append(
                f"{child_separator_before}{child_text}{child_separator_after}{tail_text}"
            )
    if separator_after:
        text_parts.append(separator_after)


def strip_html(markup_text: str) -> str:
    """Return the text of HTML, a line for each of its paragraphs."""
    markup_lines = _HTML_BREAK_PATTERN.sub("\n", markup_text).split("\n")
    line_texts = (
        " ".join(html.unescape(_HTML_TAG_PATTERN.sub("", markup_line)).split())
        for markup_line in markup_lines
    )
    return "\n".join(line_text for line_text in line_texts if line_text)
