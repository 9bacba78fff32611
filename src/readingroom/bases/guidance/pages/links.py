"""Links and plain text in Markdown: addresses completed and encoded, special characters escaped."""

import re
from urllib.parse import quote, urljoin, urlsplit

_LINK_SCHEMES = frozenset({"http", "https", "mailto", "tel"})
_NON_URL_CHARACTER_PATTERN = re.compile(r'[\s<>"\\^`{|}]')
# What Markdown would read as a tag, as emphasis, as the end of a link's text, or as a sign that
# escapes the next; at the end of the text too, because nobody knows here what follows.
_MARKDOWN_SIGNS_PATTERN = re.compile(
    r"<(?=[A-Za-z/!?]|$)|\*|\](?=[(:\[]|\s*$)|\\(?=[!-/:-@\[-`{-~]|$)"
)
# What Markdown would read as a heading, a quotation or an item of a list.
_MARKDOWN_LINE_START_PATTERN = re.compile(
    r"^(?:(#{1,6}|[-+>])(?=\s)|(\d{1,9})([.)])(?=\s|$))", re.MULTILINE
)


def resolve_link(link_target: str, base_address: str) -> str | None:
    """Return the full address of a link, or None where it is no web or mail address."""
    try:
        full_address = urljoin(base_address, link_target.strip())
        is_allowed_link = urlsplit(full_address).scheme in _LINK_SCHEMES
    except ValueError:  # such as a URL with a malformed IPv6 host
        return None
    return (
        _NON_URL_CHARACTER_PATTERN.sub(
            lambda character_match: quote(character_match[0]), full_address
        )
        if is_allowed_link
        else None
    )


def format_markdown_link(markdown_text: str, full_address: str) -> str:
    """Return a link in Markdown; its text is Markdown already, its address a full one."""
    if markdown_text.count("[") != markdown_text.count("]"):
        markdown_text = re.sub(r"(?<!\\)[\[\]]", r"\\\g<0>", markdown_text)
    return f"[{markdown_text}]({encode_parentheses(full_address)})"


def encode_parentheses(link_address: str) -> str:
    """Return the address as Markdown takes it between parentheses."""
    return link_address.replace("(", "%28").replace(")", "%29")


def escape_text(plain_text: str) -> str:
    """Return plain text so that Markdown shows it as it is, inside a line."""
    return _MARKDOWN_SIGNS_PATTERN.sub(r"\\\g<0>", plain_text)


def fence_code(code_text: str) -> str:
    """Return the text as a block of code, between rows of backticks that it does not contain."""
    longest_backtick_run = max(map(len, re.findall("`+", code_text)), default=0)
    code_fence = "`" * max(3, longest_backtick_run + 1)
    return f"{code_fence}\n{code_text}\n{code_fence}"


def escape_line_starts(markdown_text: str) -> str:
    """Return a paragraph none of whose lines begins a heading, a quotation or a list."""
    return _MARKDOWN_LINE_START_PATTERN.sub(_escape_line_start, markdown_text)


def _escape_line_start(line_start_match: re.Match[str]) -> str:
    line_sign, item_number, list_delimiter = line_start_match.groups()
    return f"\\{line_sign}" if line_sign else f"{item_number}\\{list_delimiter}"
