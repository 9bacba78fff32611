"""Tables of GOV.UK pages: cells that span several rows or columns, put into a grid."""

from collections.abc import Iterable
from dataclasses import dataclass

# An empty cell costs nothing in HTML: one short row in a wide table, or one number in an attribute.
MAX_EMPTY_CELLS = 20_000


@dataclass(frozen=True, slots=True)
class TableCell:
    """The text of a cell, and how many columns and rows it takes."""

    text: str
    columns: int = 1
    rows: int = 1


class TableWriter:
    """Writes tables as Markdown, within a number of empty cells for all tables of a page."""

    def __init__(self) -> None:
        self._empty_cells_left = MAX_EMPTY_CELLS

    def write(self, rows: list[list[TableCell]]) -> str:
        """Return the rows as one table, with the first as its head; past the limit, as lines."""
        lines = self._fill_spans(rows)
        width = max(map(len, lines), default=0)
        if not width:
            return ""
        empty_cells = width * len(lines) - sum(map(len, lines))
        if not self._take_empty_cells(empty_cells):
            return "\n\n".join(" | ".join(line) for line in lines if line)
        head, *body = [line + [""] * (width - len(line)) for line in lines]
        return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * width, *body])

    def _fill_spans(self, rows: Iterable[list[TableCell]]) -> list[list[str]]:
        """Return the text of each cell in its column; what else it spans is empty."""
        lines: list[list[str]] = []
        rows_covered: dict[int, int] = {}  # by column: how many of the next rows are taken there
        for cells in rows:
            line: list[str] = []
            next_rows_covered: dict[int, int] = {}
            for cell in cells:
                while len(line) in rows_covered:
                    line.append("")
                columns, span_rows = self._limit_span(cell)
                for column in range(len(line), len(line) + columns):
                    next_rows_covered[column] = span_rows
                line += [cell.text, *[""] * (columns - 1)]
            lines.append(line)
            rows_covered = {
                column: left - 1
                for column, left in (rows_covered | next_rows_covered).items()
                if left > 1
            }
        return lines

    def _limit_span(self, cell: TableCell) -> tuple[int, int]:
        """Return the columns and rows that a cell takes: one of each past the limit."""
        if cell.columns == cell.rows == 1:
            return 1, 1
        is_granted = self._take_empty_cells(cell.columns * cell.rows - 1)
        return (cell.columns, cell.rows) if is_granted else (1, 1)

    def _take_empty_cells(self, cell_count: int) -> bool:
        if cell_count > self._empty_cells_left:
            return False
        self._empty_cells_left -= cell_count
        return True
