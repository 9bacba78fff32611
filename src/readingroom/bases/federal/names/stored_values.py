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
    column_name: str

    def has_value(self, searched_value: str | int) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM {self.table.name} WHERE {self.column_name} = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, max_values: int) -> list[Any]:
        table_name, column_name = self.table.name, self.column_name
        if column_name not in self.table.indexed_column_names:
            value_rows = self.db.execute(
                f"""SELECT DISTINCT {column_name} FROM {table_name}
                    WHERE {column_name} IS NOT NULL LIMIT ?""",
                (max_values,),
            )
            return [value_row[0] for value_row in value_rows]
        # From each value to the next by the column's index: rows with equal values are not read.
        value_rows = self.db.execute(
            f"""WITH RECURSIVE stored (value) AS (
                    SELECT min({column_name}) FROM {table_name}
                    UNION ALL
                    SELECT (SELECT min({column_name}) FROM {table_name} WHERE {column_name} > value)
                    FROM stored WHERE value IS NOT NULL)
                SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?""",
            (max_values,),
        )
        return [value_row["value"] for value_row in value_rows]


@dataclass(frozen=True)
class FacetValues:
    """The values of a facet that searches filter by, of any source."""

    db: Database
    field_name: str

    def has_value(self, searched_value: str) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM facets WHERE field = '{self.field_name}' AND value = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, max_values: int) -> list[str]:
        value_rows = self.db.execute(
            """WITH RECURSIVE stored (value) AS (
                   SELECT min(value) FROM facets WHERE field = ?
                   UNION ALL
                   SELECT (SELECT min(f.value) FROM facets f
                           WHERE f.field = ? AND f.value > stored.value)
                   FROM stored WHERE value IS NOT NULL)
               SELECT value FROM stored WHERE value IS NOT NULL LIMIT ?""",
            (self.field_name, self.field_name, max_values),
        )
        return [value_row["value"] for value_row in value_rows]


@dataclass(frozen=True)
class RecordFacetValues:
    """The values of a facet that is read from the records themselves."""

    db: Database
    facet: Facet

    def has_value(self, searched_value: str) -> bool:
        return has_row(
            self.db,
            f"SELECT 1 FROM ({self.facet.rows_sql}) WHERE value = ? LIMIT 1",
            searched_value,
        )

    def list_values(self, max_values: int) -> list[str]:
        value_rows = self.db.execute(
            f"SELECT DISTINCT value FROM ({self.facet.rows_sql}) WHERE value IS NOT NULL LIMIT ?",
            (max_values,),
        )
        return [value_row["value"] for value_row in value_rows]


ValueLookup = ColumnValues | FacetValues | RecordFacetValues


def choose_value_lookup(
    db: Database, table: RecordTable, filter_name: str, facet: Facet | None
) -> ValueLookup:
    """Return where the values of a filter are stored."""
    if facet is None:
        return ColumnValues(db, table, filter_name)
    if filter_name in ("agency", "topic"):
        return FacetValues(db, filter_name)
    return RecordFacetValues(db, facet)


def has_row(db: Database, select_sql: str, searched_value: str | int) -> bool:
    """Return whether a query with one value finds anything."""
    return db.execute(select_sql, (searched_value,)).fetchone() is not None
