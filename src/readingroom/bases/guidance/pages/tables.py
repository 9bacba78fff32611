"""Tables of GOV.UK pages: cells that span several rows or columns, put into a grid."""

from collections.abc import Iterable
from dataclasses import dataclass

# An empty cell costs nothing in HTML: one short row in a wide table, or one number in an attribute.
MAX_EMPTY_CELLS = 20_000


@dataclass(frozen=True, slots=True)
class TableCell:
    """The text of a cell, and how many columns and rows it takes."""

    text: str
    column_span: int = 1
    row_span: int = 1


class TableWriter:
    """Writes tables as Markdown, within a number of empty cells for all tables of a page."""

    def __init__(self) -> None:
        self._empty_cells_left = MAX_EMPTY_CELLS

    def write_table(self, cell_rows: list[list[TableCell]]) -> str:
        """Return the rows as one table, with the first as its head; past the limit, as lines."""
        text_rows = self._fill_grid(cell_rows)
        column_count = max(map(len, text_rows), default=0)
        if not column_count:
            return ""
        empty_cell_count = column_count * len(text_rows) - sum(map(len, text_rows))
        if not self._spend_empty_cells(empty_cell_count):
            return "\n\n".join(" | ".join(text_row) for text_row in text_rows if text_row)
        head_row, *body_rows = [
            text_row + [""] * (column_count - len(text_row)) for text_row in text_rows
        ]
        return "\n".join(
            f"| {' | '.join(text_row)} |"
            for text_row in [head_row, ["---"] * column_count, *body_rows]
        )

    def _fill_grid(self, cell_rows: Iterable[list[TableCell]]) -> list[list[str]]:
        """Return the text of each cell in its column; what else it spans is empty."""
        text_rows: list[list[str]] = []
        rows_left_by_column: dict[
            int, int
        ] = {}  # by column: how many of the next rows are taken there
        for row_cells in cell_rows:
            text_row: list[str] = []
            next_rows_left_by_column: dict[int, int] = {}
            for table_cell in row_cells:
                while len(text_row) in rows_left_by_column:
                    text_row.append("")
                column_span, row_span = self._limit_cell_span(table_cell)
                for column_index in range(len(text_row), len(text_row) + column_span):
                    next_rows_left_by_column[column_index] = row_span
                text_row += [table_cell.text, *[""] * (column_span - 1)]
            text_rows.append(text_row)
            rows_left_by_column = {
                column_index: rows_left - 1
                for column_index, rows_left in (
                    rows_left_by_column | next_rows_left_by_column
                ).items()
                if rows_left > 1
            }
        return text_rows

    def _limit_cell_span(self, table_cell: TableCell) -> tuple[int, int]:
        """Return the columns and rows that a cell takes: one of each past the limit."""
        if table_cell.column_span == table_cell.row_span == 1:
            return 1, 1
        is_span_granted = self._spend_empty_cells(table_cell.column_span * table_cell.row_span - 1)
        return (table_cell.column_span, table_cell.row_span) if is_span_granted else (1, 1)

    def _spend_empty_cells(self, empty_cell_count: int) -> bool:
        if empty_cell_count > self._empty_cells_left:
            return False
        self._empty_cells_left -= empty_cell_count
        return True
