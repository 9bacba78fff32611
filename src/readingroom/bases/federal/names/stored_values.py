"""The values that filters can have: those of a column, of a search's facet, or inside records."""

from collections.abc import Sequence
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

    def count_records(self, searched_values: Sequence[str]) -> dict[str, int]:
        """Return how many records have each of some values; those that none has are left out."""
        placeholders_sql = ", ".join("?" * len(searched_values))
        return _read_counts(
            self.db,
            f"""SELECT {self.column_name} AS value, count(*) AS number FROM {self.table.name}
                WHERE {self.column_name} IN ({placeholders_sql})
                  AND {self.table.active_rows_condition} GROUP BY 1""",
            searched_values,
        )


@dataclass(frozen=True)
class FacetValues:
    """The values of a facet that searches filter by, of any source."""

    db: Database
    field_name: str
    source_names: tuple[str, ...] = ()
    """The sources whose records are counted; empty for all."""

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

    def count_records(self, searched_values: Sequence[str]) -> dict[str, int]:
        placeholders_sql = ", ".join("?" * len(searched_values))
        source_placeholders_sql = ", ".join("?" * len(self.source_names))
        sources_condition = (
            f"source IN ({source_placeholders_sql})" if self.source_names else "1 = 1"
        )
        return _read_counts(
            self.db,
            f"""SELECT value, count(*) AS number FROM facets JOIN documents USING (doc)
                WHERE field = '{self.field_name}' AND value IN ({placeholders_sql})
                  AND {sources_condition} GROUP BY value""",
            (*searched_values, *self.source_names),
        )


@dataclass(frozen=True)
class RecordFacetValues:
    """The values of a facet that is read from the records themselves."""

    db: Database
    table: RecordTable
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

    def count_records(self, searched_values: Sequence[str]) -> dict[str, int]:
        placeholders_sql = ", ".join("?" * len(searched_values))
        active_ids_sql = (
            f"SELECT id FROM {self.table.name} WHERE {self.table.active_rows_condition}"
        )
        return _read_counts(
            self.db,
            f"""SELECT value, count(DISTINCT id) AS number FROM ({self.facet.rows_sql})
                WHERE value IN ({placeholders_sql}) AND id IN ({active_ids_sql}) GROUP BY value""",
            searched_values,
        )


ValueLookup = ColumnValues | FacetValues | RecordFacetValues


def choose_value_lookup(db: Database, table: RecordTable, filter_name: str) -> ValueLookup:
    """Return where the values of a filter are stored."""
    facet = next(
        (facet for facet in table.aggregation_plan.facets if facet.name == filter_name), None
    )
    if facet is None:
        return ColumnValues(db, table, filter_name)
    if filter_name in ("agency", "topic"):
        return FacetValues(db, filter_name)
    return RecordFacetValues(db, table, facet)


def has_row(db: Database, select_sql: str, searched_value: str | int) -> bool:
    """Return whether a query with one value finds anything."""
    return db.execute(select_sql, (searched_value,)).fetchone() is not None


def _read_counts(db: Database, select_sql: str, searched_values: Sequence[str]) -> dict[str, int]:
    count_rows = db.execute(select_sql, tuple(searched_values)) if searched_values else ()
    return {count_row["value"]: count_row["number"] for count_row in count_rows}
