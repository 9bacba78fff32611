"""The fragments of SQL that databases write differently; all other SQL is the same for each."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """How one kind of database writes what the others write differently.

    Full-text search has no fragment here: each kind has statements of its own for it.
    """

    engine: Literal["sqlite", "postgres"]
    """Which kind it is, where whole statements differ: in full-text search."""
    begin_write: str
    """Begins a transaction that will write."""
    any_case: str
    """Follows a text that is to be compared whatever the case of its letters."""
    join_in_order: str
    """Joins a table to those before it, which are to be read first."""
    index_hint: str
    """Follows a table that is to be read by a certain index."""
    parameter_items: str
    """Selects `value`, the texts of a JSON list that is given as one parameter."""
    parameter_numbers: str
    """The same of whole numbers."""
    field_items: str
    """A table of `value`, the texts of a list in a column of JSON; follows a comma after FROM."""
    field_objects: str
    """The same of a list of objects."""
    join_texts: str
    """The function that joins the texts of a group by commas."""
    table_names: str
    """Selects `name`, the names of all tables."""
    last_number: str
    """Selects the highest number that a table has ever given to a row, or no row."""
    commit_unflushed: str
    """Lets this transaction be on disk with one that follows; empty if all of them may be so."""
    count_values_sql: str
    """Counts which values columns have, so that queries are planned well; empty if not needed."""

    def build_index_hint(self, index_name: str) -> str:
        """Return what follows a table that is to be read by this index."""
        return self.index_hint.format(index=index_name)

    def build_field_items_sql(self, column_name: str, list_field: str) -> str:
        """Return a table of the items in a list field of a column of JSON."""
        return self.field_items.format(column=column_name, field=list_field)

    def build_field_objects_sql(self, column_name: str, list_field: str) -> str:
        """Return a table of the objects in a list field of a column of JSON."""
        return self.field_objects.format(column=column_name, field=list_field)

    def read_last_number(self, table_name: str) -> str:
        """Return a query for the highest number that a table has ever given to a row."""
        return self.last_number.format(table=table_name)


SQLITE = SqlDialect(
    engine="sqlite",
    begin_write="BEGIN IMMEDIATE",
    any_case="COLLATE NOCASE",
    join_in_order="CROSS JOIN",
    index_hint="INDEXED BY {index}",
    # One parameter, however many items: SQLite allows a limited number of placeholders.
    parameter_items="SELECT value FROM json_each(?)",
    parameter_numbers="SELECT value FROM json_each(?)",
    field_items="json_each({column}, '$.{field}')",
    field_objects="json_each({column}, '$.{field}') /* objects */",
    join_texts="group_concat",
    table_names="SELECT name FROM sqlite_master WHERE type = 'table'",
    last_number="SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
    commit_unflushed="",
    count_values_sql="",
)

POSTGRES = SqlDialect(
    engine="postgres",
    begin_write="BEGIN",
    any_case="",
    join_in_order="JOIN",
    index_hint="",
    parameter_items="SELECT value FROM json_array_elements_text(?::json)",
    parameter_numbers="SELECT value::bigint FROM json_array_elements_text(?::json)",
    field_items="json_array_elements_text({column} -> '{field}')",
    field_objects="json_array_elements({column} -> '{field}')",
    join_texts="readingroom_federal.join_by_comma",
    table_names="SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
    last_number="SELECT last_value AS seq FROM {table}_seq",
    commit_unflushed="SET LOCAL synchronous_commit = off",
    count_values_sql="ANALYZE",
)
