"""Markdown for the generated pages: tables, blocks, wrapped paragraphs, anchors."""

import json
import re
import textwrap
from collections.abc import Sequence

WIDTH = 100
MARK = "<!-- Written by `make docs` from the code; changes made here by hand are lost. -->"


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MARK, *(part for part in parts if part)]) + "\n"


def wrapped(text: str, indent: str = "") -> str:
    """Wrap a paragraph to the project's width, without breaking code or links."""
    unbroken = re.sub(r"\[`[^`]*`\]|`[^`]*`", lambda match: match[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        unbroken, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return lines.replace("\0", " ")


def table(*rows: Sequence[str]) -> str:
    """Return a table whose first row is its head; empty when there are no other rows."""
    if len(rows) < 2:
        return ""
    head, *body = (" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows)
    rule = " | ".join("---" for _ in rows[0])
    return "\n".join(f"| {row} |" for row in (head, rule, *body))


def block(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def as_json(value: object) -> str:
    return block("json", json.dumps(value, indent=2, ensure_ascii=False))


def code(text: object) -> str:
    return f"`{text}`"


def slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
