"""The values that filters can have: those of a column, of a search's facet, or inside records."""

from dataclasses import dataclass
from typing import Any

from readingroom.bases.federal.schema.sources import Facet, RecordTable
from readingroom.storage.database import Database


@dataclass(frozen=True)
class ColumnValues:
    """The values of a column of a table."""

    db: Database
    table: RecordTable
    column: str

    def has_value(self, searched_value: str | int) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM {self.table.name} WHERE {self.column} = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, limit: int) -> list[Any]:
        table_name, column_name = self.table.name, self.column
        if column_name not in self.table.indexed_columns:
            rows = self.db.execute(
                f"""SELECT DISTINCT {column_name} FROM {table_name}
                    WHERE {column_name} IS NOT NULL LIMIT ?""",
                (limit,),
            )
            return [row[0] for row in rows]
        # From each value to the next by the column's index: rows with equal values are not read.
        rows = self.db.execute(
            f"""WITH RECURSIVE stored (value) AS (
                    SELECT min({column_name}) FROM {table_name}
                    UNION ALL
                    SELECT (SELECT min({column_name}) FROM {table_name} WHERE {column_name} > value)
                    FROM stored WHERE value IS NOT NULL)
                SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?""",
            (limit,),
        )
        return [row["value"] for row in rows]


@dataclass(frozen=True)
class FacetValues:
    """The values of a facet that searches filter by, of any source."""

    db: Database
    field: str

    def has_value(self, searched_value: str) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM facets WHERE field = '{self.field}' AND value = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, limit: int) -> list[str]:
        rows = self.db.execute(
            """WITH RECURSIVE stored (value) AS (
                   SELECT min(value) FROM facets WHERE field = ?
                   UNION ALL
                   SELECT (SELECT min(f.value) FROM facets f
                           WHERE f.field = ? AND f.value > stored.value)
                   FROM stored WHERE value IS NOT NULL)
               SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?""",
            (self.field, self.field, limit),
        )
        return [row["value"] for row in rows]


@dataclass(frozen=True)
class ItemValues:
    """The values of a facet that is read from the records themselves."""

    db: Database
    facet: Facet

    def has_value(self, searched_value: str) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM ({self.facet.rows_sql}) WHERE value = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, limit: int) -> list[str]:
        rows = self.db.execute(
            f"SELECT DISTINCT value FROM ({self.facet.rows_sql}) WHERE value IS NOT NULL LIMIT ?",
            (limit,),
        )
        return [row["value"] for row in rows]


ValueLookup = ColumnValues | FacetValues | ItemValues


def choose_values(
    db: Database, table: RecordTable, filter_name: str, facet: Facet | None
) -> ValueLookup:
    """Return where the values of a filter are stored."""
    if facet is None:
        return ColumnValues(db, table, filter_name)
    if filter_name in ("agency", "topic"):
        return FacetValues(db, filter_name)
    return ItemValues(db, facet)


def has_row(db: Database, sql: str, searched_value: str | int) -> bool:
    """Return whether a query with one value finds anything."""
    return db.execute(sql, (searched_value,)).fetchone() is not None
