"""Text for people: tables that fit the terminal, and emphasis where somebody is looking."""

import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

from readingroom.core.settings import read_shell_variable

# Noncharacters of Unicode, which no text has, stand for a style until the text is printed.
_BOLD_MARK, _FAINT_MARK, _RED_MARK, _END_MARK = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
_STYLE_REMOVAL_TABLE = dict.fromkeys(map(ord, (_BOLD_MARK, _FAINT_MARK, _RED_MARK, _END_MARK)))
_ANSI_CODE_BY_MARK = {
    _BOLD_MARK: "\x1b[1m",
    _FAINT_MARK: "\x1b[2m",
    _RED_MARK: "\x1b[31m",
    _END_MARK: "\x1b[0m",
}
_COLUMN_SEPARATOR = "  "


def make_bold(plain_text: str) -> str:
    """Return a text that is bold in a terminal."""
    return f"{_BOLD_MARK}{plain_text.translate(_STYLE_REMOVAL_TABLE)}{_END_MARK}"


def make_faint(plain_text: str) -> str:
    """Return a text that is less bright in a terminal."""
    return f"{_FAINT_MARK}{plain_text.translate(_STYLE_REMOVAL_TABLE)}{_END_MARK}"


def make_red(plain_text: str) -> str:
    """Return a text that is red in a terminal."""
    return f"{_RED_MARK}{plain_text.translate(_STYLE_REMOVAL_TABLE)}{_END_MARK}"


def render_styles(styled_text: str, output_stream: TextIO) -> str:
    """Return a text as a stream takes it: styled for a terminal, plain for anything else."""
    if not _is_colour_terminal(output_stream):
        return styled_text.translate(_STYLE_REMOVAL_TABLE)
    for style_mark, ansi_code in _ANSI_CODE_BY_MARK.items():
        styled_text = styled_text.replace(style_mark, ansi_code)
    return styled_text


def measure_terminal_width() -> int | None:
    """Return the columns that a line may take; None where nobody looks at it in a terminal."""
    return max(20, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def wrap_text(long_text: str, indent_text: str = "") -> str:
    """Return a text in lines that fit the terminal; a longer word, such as an address, stays."""
    terminal_width = measure_terminal_width()
    if terminal_width is None:
        return indent_text + long_text
    return textwrap.fill(
        long_text,
        terminal_width,
        initial_indent=indent_text,
        subsequent_indent=indent_text,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_table(
    table_rows: Sequence[Sequence[str]],
    column_headings: Sequence[str] | None = None,
    right_aligned_columns: Sequence[int] = (),
) -> str:
    """Return the rows as a table; in a terminal too narrow for one, each as a few short lines.

    The first cell names the row. `right_aligned_columns` are the numbers of columns with numbers.
    """
    if not table_rows:
        return ""
    terminal_width = measure_terminal_width()
    aligned_lines = _align_columns(
        [column_headings, *table_rows] if column_headings else table_rows, right_aligned_columns
    )
    if terminal_width is None or max(map(_measure_width, aligned_lines)) <= terminal_width:
        return "\n".join(aligned_lines)
    return "\n".join(
        _format_stacked_row(table_row, column_headings, terminal_width) for table_row in table_rows
    )


def _align_columns(
    table_rows: Sequence[Sequence[str]], right_aligned_columns: Sequence[int]
) -> list[str]:
    column_widths = [
        max(map(_measure_width, column_cells)) for column_cells in zip(*table_rows, strict=True)
    ]
    aligned_lines = []
    for table_row in table_rows:
        padded_cells = []
        for column_index, (cell_text, column_width) in enumerate(
            zip(table_row, column_widths, strict=True)
        ):
            padding_text = " " * (column_width - _measure_width(cell_text))
            padded_cells.append(
                padding_text + cell_text
                if column_index in right_aligned_columns
                else cell_text + padding_text
            )
        aligned_lines.append(_COLUMN_SEPARATOR.join(padded_cells).rstrip())
    return aligned_lines


def _format_stacked_row(
    table_row: Sequence[str], column_headings: Sequence[str] | None, terminal_width: int
) -> str:
    """Return a row as its name, and below it the other cells."""
    first_cell, *other_cells = table_row
    cell_labels = column_headings[1:] if column_headings else [""] * len(other_cells)
    labelled_cells = [
        f"{cell_label} {cell_text}".strip()
        for cell_label, cell_text in zip(cell_labels, other_cells, strict=True)
        if cell_text.strip()
    ]
    stacked_lines = [_wrap_styled_text(first_cell, terminal_width)]
    stacked_lines += [
        _wrap_styled_text(joined_line, terminal_width, "  ")
        for joined_line in _join_cells_into_lines(labelled_cells, terminal_width - 2)
    ]
    return "\n".join(stacked_lines)


def _join_cells_into_lines(labelled_cells: Sequence[str], terminal_width: int) -> list[str]:
    """Return details joined into lines, as many in each as fit."""
    joined_lines: list[str] = []
    for labelled_cell in labelled_cells:
        joined_line = (
            f"{joined_lines[-1]}{_COLUMN_SEPARATOR}{labelled_cell}"
            if joined_lines
            else labelled_cell
        )
        if joined_lines and _measure_width(joined_line) <= terminal_width:
            joined_lines[-1] = joined_line
        else:
            joined_lines.append(labelled_cell)
    return joined_lines


def _wrap_styled_text(long_text: str, terminal_width: int, indent_text: str = "") -> str:
    """Return a text in lines of at most this width, a long word cut where it must be."""
    if _measure_width(long_text) + len(indent_text) <= terminal_width:
        return indent_text + long_text
    return textwrap.fill(
        long_text.translate(_STYLE_REMOVAL_TABLE),
        terminal_width,
        initial_indent=indent_text,
        subsequent_indent=indent_text,
        break_on_hyphens=False,
    )


def _measure_width(styled_text: str) -> int:
    """Return how many columns a text takes, its styles left out."""
    return len(styled_text.translate(_STYLE_REMOVAL_TABLE))


def _is_colour_terminal(output_stream: TextIO) -> bool:
    is_colour_wanted = not read_shell_variable("NO_COLOR") and read_shell_variable("TERM") != "dumb"
    return is_colour_wanted and output_stream.isatty()
