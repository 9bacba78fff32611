"""The words of an official file, read by lxml and none of our code: what a text of ours may say."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from lxml import etree, html

_RUN_ON = frozenset(
    """
    inline ref term quotedText headingText amendingAction date shortTitle addedText deletedText
    proviso i b u em strong sub sup committee name E
    """.split()  # noqa: SIM905 a list of this length is read as words
)
"""Elements within a sentence; between all others one word ends and the next begins."""
_BESIDE_THE_TEXT = frozenset(("page", "sidenote", "leftRunningHead", "rightRunningHead", "ear"))
_SOFT_HYPHEN = "\u00ad"


def list_words(text: str) -> list[str]:
    """The words of a text in its order; a run of letters and digits is one."""
    return re.findall(r"\w+", text)


def find_untrue_words(ours: Iterable[str], raw: str) -> tuple[Counter[str], Counter[str]]:
    """The words that our texts have and the file has not, and those that they lost."""
    told, printed = Counter(list_words("\n".join(ours))), Counter(list_words(raw))
    return told - printed, printed - told


def parse_strictly(data: bytes) -> etree._Element:
    return etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))


def read_raw_words(element: etree._Element) -> str:
    """What an element of a file says, without what is printed beside the text."""
    return "".join(_walk(element)).replace(_SOFT_HYPHEN, "")


def read_raw_page(data: bytes) -> str:
    """What the `<pre>` of a page of HTML says; a raised number is no part of the one before."""
    root = html.document_fromstring(data.replace(b"\0", b"").decode("utf-8", "replace"))
    (pre,) = root.xpath("//pre")
    for raised in pre.iter("sup"):
        raised.text = f" {raised.text}"
    return "".join(pre.itertext())


def _walk(element: etree._Element) -> Iterator[str]:
    name = _name(element)
    if name in _BESIDE_THE_TEXT:
        yield " "
        return
    if apart := name not in _RUN_ON or _stands_apart(element):
        yield " "
    yield element.text or ""
    for child in element:
        if isinstance(child.tag, str):
            yield from _walk(child)
        yield child.tail or ""
    if apart:
        yield " "


def _stands_apart(element: etree._Element) -> bool:
    """The mark of a footnote, a fraction after a whole number, a power of ten."""
    raised = _name(element) == "sup" or (element.get("class") or "").endswith("-5-1")
    return (
        element.get("role") == "fraction"
        or (raised and "".join(element.itertext()).strip("-\u2212 ").isdigit())
        or (_name(element) == "ref" and "href" not in element.attrib)
    )


def _name(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]
