"""Links and plain text in Markdown: addresses completed and encoded, special characters escaped."""

import re
from urllib.parse import quote, urljoin, urlsplit

_LINK_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_NOT_IN_A_URL = re.compile(r'[\s<>"\\^`{|}]')
# What Markdown would read as a tag, as emphasis, as the end of a link's text, or as a sign that
# escapes the next; at the end of the text too, because nobody knows here what follows.
_SPECIAL = re.compile(r"<(?=[A-Za-z/!?]|$)|\*|\](?=[(:\[]|\s*$)|\\(?=[!-/:-@\[-`{-~]|$)")
# What Markdown would read as a heading, a quotation or an item of a list.
_LINE_START = re.compile(r"^(?:(#{1,6}|[-+>])(?=\s)|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE)


def resolve_link(target: str, root: str) -> str | None:
    """Return the full address of a link, or None where it is no web or mail address."""
    try:
        address = urljoin(root, target.strip())
        is_link = urlsplit(address).scheme in _LINK_SCHEMES
    except ValueError:  # such as a URL with a malformed IPv6 host
        return None
    return _NOT_IN_A_URL.sub(lambda match: quote(match[0]), address) if is_link else None


def format_link(text: str, address: str) -> str:
    """Return a link in Markdown; `text` is Markdown already, `address` is a full address."""
    if text.count("[") != text.count("]"):
        text = re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", text)
    return f"[{text}]({encode_parentheses(address)})"


def encode_parentheses(address: str) -> str:
    """Return the address as Markdown takes it between parentheses."""
    return address.replace("(", "%28").replace(")", "%29")


def escape_text(text: str) -> str:
    """Return plain text so that Markdown shows it as it is, inside a line."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def fence_code(text: str) -> str:
    """Return the text as a block of code, between rows of backticks that it does not contain."""
    longest_row = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest_row + 1)
    return f"{fence}\n{text}\n{fence}"


def escape_line_starts(markdown: str) -> str:
    """Return a paragraph none of whose lines begins a heading, a quotation or a list."""
    return _LINE_START.sub(_escape_line_start, markdown)


def _escape_line_start(match: re.Match[str]) -> str:
    sign, number, delimiter = match.groups()
    return f"\\{sign}" if sign else f"{number}\\{delimiter}"
