"""Reads XML that nobody vouches for: no entities, no external DTD, no network."""

import hashlib
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


class Refused(ValueError):
    """The document declares entities, which no official file of ours does."""


class _Local(dict[str, str]):
    """Names without their namespaces; there are few, and each is met ten thousand times."""

    def __missing__(self, name: str) -> str:
        found = self[name] = name.rpartition(" ")[2]
        return found


def parse(data: bytes) -> Element:
    """The root of a document, its tags without namespaces."""
    builder, local = TreeBuilder(), _Local()
    begin, end = builder.start, builder.end

    def start(tag: str, attributes: dict[str, str]) -> None:
        if attributes:
            attributes = {local[name]: value for name, value in attributes.items()}
        begin(local[tag], attributes)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: end(local[tag])
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse
    # A DOCTYPE may name an external DTD; expat asks nobody for it unless told to.
    parser.ExternalEntityRefHandler = _refuse
    parser.Parse(data, True)
    return builder.close()


def fingerprint(element: Element) -> str:
    """The hash of what an element says, so that a change elsewhere in its file is not its own."""
    told = [*element.itertext(), *(one.tag for one in element.iter())]
    told += (part for one in element.iter() for pair in one.items() for part in pair)
    return hashlib.sha256("\x1f".join(told).encode()).hexdigest()


def _refuse(*declared: Any) -> int:
    raise Refused("the document declares entities")


def said(element: Element | None, path: str | None = None) -> str | None:
    """The text of an element or of a child, white space tidied; None when there is none."""
    if element is not None and path is not None:
        element = element.find(path)
    if element is None:
        return None
    text = "".join(element.itertext()) if len(element) else element.text or ""
    return " ".join(text.split()) or None


def day(text: str | None) -> str | None:
    """The date of `2021-03-01` and of `2021-03-01T05:00:00Z` alike."""
    return text[:10] if text and len(text) >= 10 and text[4] == text[7] == "-" else None


def prose(element: Element) -> str:
    """Everything an element says, a paragraph for each block in it."""
    blocks = _Blocks()
    blocks.walk(element)
    lines = ("".join(part).split() for part in (*blocks.done, blocks.run))
    return "\n\n".join(" ".join(words) for words in lines if words)


class _Blocks:
    """Runs of text between the starts and ends of blocks.

    A number and the heading after it stay on the line of what they number: `(a) In general`.
    """

    def __init__(self) -> None:
        self.done: list[list[str]] = []
        self.run: list[str] = []

    def walk(self, node: Element) -> None:
        tag = node.tag
        begins = tag in _BLOCKS
        if begins and tag not in _CONTINUING:
            self._end()
        if node.text:
            self.run.append(node.text)
        for child in node:
            self.walk(child)
            if child.tail:
                self.run.append(child.tail)
        if tag in _INLINE_AFTER:
            self.run.append(" ")
        elif begins:
            self._end()

    def _end(self) -> None:
        if self.run:
            self.done.append(self.run)
            self.run = []
