"""Reads XML that nobody vouches for: no entities, no external DTD, no network."""

from collections.abc import Iterator
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


class Refused(ValueError):
    """The document declares entities, which no official file of ours does."""


def parse(data: bytes) -> Element:
    """The root of a document, its tags without namespaces."""
    builder = TreeBuilder()
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = lambda tag, attributes: builder.start(
        tag.rpartition(" ")[2], {name.rpartition(" ")[2]: v for name, v in attributes.items()}
    )
    parser.EndElementHandler = lambda tag: builder.end(tag.rpartition(" ")[2])
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = _refuse
    # A DOCTYPE may name an external DTD; expat asks nobody for it unless told to.
    parser.ExternalEntityRefHandler = _refuse
    parser.Parse(data, True)
    return builder.close()


def _refuse(*declared: Any) -> int:
    raise Refused("the document declares entities")


def said(element: Element | None, path: str | None = None) -> str | None:
    """The text of an element or of a child, white space tidied; None when there is none."""
    if element is not None and path is not None:
        element = element.find(path)
    if element is None:
        return None
    return " ".join("".join(element.itertext()).split()) or None


def day(text: str | None) -> str | None:
    """The date of `2021-03-01` and of `2021-03-01T05:00:00Z` alike."""
    return text[:10] if text and len(text) >= 10 and text[4] == text[7] == "-" else None


def prose(element: Element) -> str:
    """Everything an element says, a paragraph for each block in it."""
    lines = ("".join(part).split() for part in _blocks(element))
    return "\n\n".join(" ".join(words) for words in lines if words)


def _blocks(element: Element) -> Iterator[list[str]]:
    """Runs of text between the starts and ends of blocks.

    A number and the heading after it stay on the line of what they number: `(a) In general`.
    """
    run: list[str] = []

    def walk(node: Element) -> Iterator[list[str]]:
        nonlocal run
        begins = node.tag in _BLOCKS
        if begins and run and not _continues(node):
            yield run
            run = []
        if node.text:
            run.append(node.text)
        for child in node:
            yield from walk(child)
            if child.tail:
                run.append(child.tail)
        if begins and run and node.tag not in _INLINE_AFTER:
            yield run
            run = []
        elif node.tag in _INLINE_AFTER:
            run.append(" ")

    yield from walk(element)
    yield run


def _continues(node: Element) -> bool:
    return node.tag in ("heading", "content", "chapeau", "p")
