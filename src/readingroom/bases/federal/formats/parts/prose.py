"""Writes what an XML element says as paragraphs: its own words, none of the page around them.

What GPO prints beside a text (side notes, page numbers, running heads) is left out. The mark of a
footnote stands in brackets (`resources[3]`), and the footnote after its paragraph.
"""

import re
from xml.etree.ElementTree import Element

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
_CELL_TAGS = ("td", "th")
_RUN_ON_TAGS = """
    term quotedText headingText amendingAction date shortTitle addedText deletedText proviso
    i b u em strong sub committee name
    """.split()  # noqa: SIM905 as above
"""Parts of a sentence, and of a word: no space stands around them that is not printed."""
_LEFT_OUT_TAGS = ("page", "sidenote", "leftRunningHead", "rightRunningHead", "ear")
_TYPESET_TAGS = ("inline", "ref", "sup", "E", "SU", "FR")

# No XML document can hold these characters.
_PARAGRAPH_SEPARATOR = "\0"
_WORD_BOUNDARY = "\1"
_FOOTNOTE_START, _FOOTNOTE_END = "\2", "\3"
_SUPERSCRIPT_START, _SUPERSCRIPT_END = "\4", "\5"
_SOFT_HYPHEN = "\u00ad"
_SEPARATORS_BY_TAG: dict[str, tuple[str, str] | None] = (
    {
        block_tag: (
            "" if block_tag in _TAGS_CONTINUING_LINE else _PARAGRAPH_SEPARATOR,
            " " if block_tag in _TAGS_BEFORE_INLINE else _PARAGRAPH_SEPARATOR,
        )
        for block_tag in (*_BLOCK_TAGS, *_TAGS_BEFORE_INLINE)
    }
    | dict.fromkeys(_CELL_TAGS, (" ", " "))
    | dict.fromkeys(_RUN_ON_TAGS, ("", ""))
    | dict.fromkeys((*_LEFT_OUT_TAGS, *_TYPESET_TAGS, "footnote"))
)
"""What comes before and after the text of an element; None where its attributes decide."""
_OTHER_SEPARATORS = (_WORD_BOUNDARY, _WORD_BOUNDARY)

_FOOTNOTE_PATTERN = re.compile(f"{_FOOTNOTE_START}([^{_FOOTNOTE_END}]*){_FOOTNOTE_END}")
_LEADING_FOOTNOTES_PATTERN = re.compile(rf"(?:[\s{_WORD_BOUNDARY}]*{_FOOTNOTE_PATTERN.pattern})+")
_EXPONENT_PATTERN = re.compile(
    rf"(?<=\w){_SUPERSCRIPT_START}([^{_SUPERSCRIPT_END}]*){_SUPERSCRIPT_END}"
)
_SUPERSCRIPT_PATTERN = re.compile(f"{_SUPERSCRIPT_START}([^{_SUPERSCRIPT_END}]*){_SUPERSCRIPT_END}")
# `lease-`, the page number, `to-build`: what was printed without a space has none.
_NEEDED_SPACE_PATTERN = re.compile(
    rf"(?<=[\w.,;:)\]\u201d\u2019%]){_WORD_BOUNDARY}+(?=[\w$\u201c\u2018])"
)
_SUPERSCRIPT_NUMBER_PATTERN = re.compile(r"[-\u2212\u2013+]?\d[\d\s,]*")


def extract_prose(element: Element) -> str:
    """Return the text of an element, a paragraph for each block in it."""
    text_parts: list[str] = []
    _append_element_text(element, text_parts)
    paragraph_texts: list[str] = []
    for marked_text in "".join(text_parts).split(_PARAGRAPH_SEPARATOR):
        if _FOOTNOTE_START in marked_text:
            paragraph_texts += _part_footnotes(marked_text)
        else:
            paragraph_texts.append(_resolve_marks(marked_text))
    return "\n\n".join(filter(None, paragraph_texts))


def _part_footnotes(marked_text: str) -> list[str]:
    """Return a paragraph and its footnotes; those before its first word are of the one above."""
    leading_match = _LEADING_FOOTNOTES_PATTERN.match(marked_text)
    own_text = marked_text[leading_match.end() :] if leading_match else marked_text
    return [
        *(_FOOTNOTE_PATTERN.findall(leading_match[0]) if leading_match else ()),
        _resolve_marks(_FOOTNOTE_PATTERN.sub("", own_text)),
        *_FOOTNOTE_PATTERN.findall(own_text),
    ]


def _append_element_text(xml_node: Element, text_parts: list[str]) -> None:
    """Append the texts of an element in order, with a mark where a block ends.

    A number and the heading after it stay on the line of what they number: `(a) In general`.
    """
    separator_before, separator_after = (
        _SEPARATORS_BY_TAG.get(xml_node.tag, _OTHER_SEPARATORS) or _OTHER_SEPARATORS
    )
    text_parts.append(separator_before + (xml_node.text or ""))
    for child_node in xml_node:
        separators = _SEPARATORS_BY_TAG.get(child_node.tag, _OTHER_SEPARATORS)
        if separators is None:
            text_parts.append(_render_typeset_text(child_node) + (child_node.tail or ""))
        elif len(child_node):
            _append_element_text(child_node, text_parts)
            if tail_text := child_node.tail:
                text_parts.append(tail_text)
        else:
            # Most elements have no children: a call for each would take half of the time.
            child_text, tail_text = child_node.text or "", child_node.tail or ""
            text_parts.append(f"{separators[0]}{child_text}{separators[1]}{tail_text}")
    if separator_after:
        text_parts.append(separator_after)


def _render_typeset_text(xml_node: Element) -> str:
    """Return the text of an element whose look has a meaning, with the marks for it."""
    if xml_node.tag in _LEFT_OUT_TAGS:
        return _WORD_BOUNDARY
    if xml_node.tag == "footnote":
        footnote_text = " ".join(extract_prose(xml_node).split())
        return f"{_FOOTNOTE_START}{footnote_text}{_FOOTNOTE_END}{_WORD_BOUNDARY}"
    node_text = xml_node.text or ""
    if len(xml_node):
        text_parts: list[str] = []
        _append_element_text(xml_node, text_parts)
        node_text = "".join(text_parts).strip(_WORD_BOUNDARY)
    if _is_footnote_mark(xml_node):
        return f"{_WORD_BOUNDARY}[{node_text.strip()}]{_WORD_BOUNDARY}"
    if xml_node.tag == "FR" or xml_node.get("role") == "fraction":
        return f"{_WORD_BOUNDARY}{node_text}{_WORD_BOUNDARY}"
    if _is_superscript(xml_node) and _SUPERSCRIPT_NUMBER_PATTERN.fullmatch(node_text.strip()):
        return f"{_SUPERSCRIPT_START}{node_text.strip()}{_SUPERSCRIPT_END}"
    return node_text


def _is_footnote_mark(xml_node: Element) -> bool:
    if xml_node.tag == "inline":
        return False
    if xml_node.tag == "ref":
        return xml_node.get("class") == "footnoteRef" or (
            "idref" in xml_node.attrib and "href" not in xml_node.attrib
        )
    return xml_node.tag == "SU" or (
        xml_node.tag == "sup" and (xml_node.get("style") or "").endswith(":SU")
    )


def _is_superscript(xml_node: Element) -> bool:
    """Whether it is raised, as in 10<sup>-4</sup>; GPO writes `E T="51"` for it."""
    return (
        xml_node.tag == "sup"
        or (xml_node.get("class") or "").endswith("-5-1")
        or (xml_node.tag == "E" and xml_node.get("T") == "51")
    )


def _resolve_marks(marked_text: str) -> str:
    if _SUPERSCRIPT_START in marked_text:
        # A raised number is a power after a number or a unit, else the mark of a footnote.
        marked_text = _EXPONENT_PATTERN.sub(r"^\1", marked_text)
        marked_text = _SUPERSCRIPT_PATTERN.sub(rf"[\1]{_WORD_BOUNDARY}", marked_text)
    if _WORD_BOUNDARY in marked_text:
        marked_text = _NEEDED_SPACE_PATTERN.sub(" ", marked_text).replace(_WORD_BOUNDARY, "")
    return " ".join(marked_text.replace(_SOFT_HYPHEN, "").split())
