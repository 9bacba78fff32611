"""Parses untrusted XML and HTML: no entities, no external DTD, no network."""

import hashlib
import html
import re
from itertools import chain
from operator import attrgetter
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

_get_tag = attrgetter("tag")
_chain_iterables = chain.from_iterable


_HTML_TAG_PATTERN = re.compile(r"<[^>]+>")
_HTML_BREAK_PATTERN = re.compile(
    r"</?(?:p|br|li|ul|ol|h\d|div|table|tr|t[dh]|blockquote)\b[^>]*>", re.IGNORECASE
)

# Links of the Record may be broken over lines; a lone < before a letter is not the start of one.
_PAGE_TAG_PATTERN = re.compile(r"<a\s[^<>]*>|</?[A-Za-z][^>\n]*>", re.I)
_RUN_ON_TAG_PATTERN = re.compile(r"</?(?:inf|sub|sup|b|i|u|em|strong|a(?:\s[^<>]*)?)>", re.I)
_SUPERSCRIPT_TAG_PATTERN = re.compile(r"(?<=\w)<sup>(?=[-+]?\d)", re.I)
_WORD_DIVIDING_TAG_PATTERN = re.compile(r"(?<=\w)<[A-Za-z/][^>\n]*>(?=\w)")


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


def strip_page_markup(page_markup: str) -> str:
    """Return the text of a page of GPO as it is printed, line by line.

    Of its marks, `CO<INF>2</INF>` is part of a word; `10<SUP>6</SUP>` is a power of ten.
    """
    plain_markup = _SUPERSCRIPT_TAG_PATTERN.sub("^", page_markup)
    plain_markup = _RUN_ON_TAG_PATTERN.sub("", plain_markup)
    plain_markup = _WORD_DIVIDING_TAG_PATTERN.sub(" ", plain_markup)
    return html.unescape(_PAGE_TAG_PATTERN.sub("", plain_markup))


def strip_html(markup_text: str) -> str:
    """Return the text of HTML, a line for each of its paragraphs."""
    markup_lines = _HTML_BREAK_PATTERN.sub("\n", markup_text).split("\n")
    line_texts = (
        " ".join(html.unescape(_HTML_TAG_PATTERN.sub("", markup_line)).split())
        for markup_line in markup_lines
    )
    return "\n".join(line_text for line_text in line_texts if line_text)
