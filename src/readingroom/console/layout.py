"""Text for people: tables that fit the terminal, and emphasis where somebody is looking."""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

from readingroom.core.settings import read_shell_variable

# Noncharacters of Unicode, which no text has, stand for a style until the text is printed.
_BOLD, _FAINT, _RED, _END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
_MARKS = dict.fromkeys(map(ord, (_BOLD, _FAINT, _RED, _END)))
_CODES = {_BOLD: "\x1b[1m", _FAINT: "\x1b[2m", _RED: "\x1b[31m", _END: "\x1b[0m"}
_GAP = "  "


def make_bold(text: str) -> str:
    """Return a text that is bold in a terminal."""
    return f"{_BOLD}{text.translate(_MARKS)}{_END}"


def make_faint(text: str) -> str:
    """Return a text that is less bright in a terminal."""
    return f"{_FAINT}{text.translate(_MARKS)}{_END}"


def make_red(text: str) -> str:
    """Return a text that is red in a terminal."""
    return f"{_RED}{text.translate(_MARKS)}{_END}"


def render_styles(text: str, stream: TextIO) -> str:
    """Return a text as a stream takes it: styled for a terminal, plain for anything else."""
    if not _takes_colour(stream):
        return text.translate(_MARKS)
    for mark, code in _CODES.items():
        text = text.replace(mark, code)
    return text


def get_width() -> int | None:
    """Return the columns that a line may take; None where nobody looks at it in a terminal."""
    return max(20, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def wrap_text(text: str, indent: str = "") -> str:
    """Return a text in lines that fit the terminal; a longer word, such as an address, stays."""
    width = get_width()
    if width is None:
        return indent + text
    return textwrap.fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_table(
    rows: Sequence[Sequence[str]],
    headings: Sequence[str] | None = None,
    right_aligned: Sequence[int] = (),
) -> str:
    """Return the rows as a table; in a terminal too narrow for one, each as a few short lines.

    The first cell names the row. `right_aligned` are the numbers of columns with numbers.
    """
    if not rows:
        return ""
    width = get_width()
    table = _align([headings, *rows] if headings else rows, right_aligned)
    if width is None or max(map(_measure, table)) <= width:
        return "\n".join(table)
    return "\n".join(_stack(row, headings, width) for row in rows)


def _align(rows: Sequence[Sequence[str]], right_aligned: Sequence[int]) -> list[str]:
    widths = [max(map(_measure, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - _measure(cell))
            cells.append(padding + cell if number in right_aligned else cell + padding)
        lines.append(_GAP.join(cells).rstrip())
    return lines


def _stack(row: Sequence[str], headings: Sequence[str] | None, width: int) -> str:
    """Return a row as its name, and below it the other cells."""
    name, *cells = row
    labels = headings[1:] if headings else [""] * len(cells)
    details = [
        f"{label} {cell}".strip() for label, cell in zip(labels, cells, strict=True) if cell.strip()
    ]
    lines = [_break(name, width)]
    lines += [_break(detail, width, "  ") for detail in _join_short(details, width - 2)]
    return "\n".join(lines)


def _join_short(details: Sequence[str], width: int) -> list[str]:
    """Return details joined into lines, as many in each as fit."""
    lines: list[str] = []
    for detail in details:
        joined = f"{lines[-1]}{_GAP}{detail}" if lines else detail
        if lines and _measure(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(detail)
    return lines


def _break(text: str, width: int, indent: str = "") -> str:
    """Return a text in lines of at most this width, a long word cut where it must be."""
    if _measure(text) + len(indent) <= width:
        return indent + text
    return textwrap.fill(
        text.translate(_MARKS),
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def _measure(text: str) -> int:
    """Return how many columns a text takes, its styles left out."""
    return len(text.translate(_MARKS))


def _takes_colour(stream: TextIO) -> bool:
    is_wanted = not read_shell_variable("NO_COLOR") and read_shell_variable("TERM") != "dumb"
    return is_wanted and stream.isatty()
