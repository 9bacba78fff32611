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
    counts_steps: bool
    """Whether the work of a statement is counted while it runs; else only its time is known."""
    begin_write_sql: str
    """Begins a transaction that will write."""
    any_case_sql: str
    """Follows a text that is to be compared whatever the case of its letters."""
    join_in_order_sql: str
    """Joins a table to those before it, which are to be read first."""
    index_hint_sql: str
    """Follows a table that is to be read by a certain index."""
    parameter_items_sql: str
    """Selects `value`, the texts of a JSON list that is given as one parameter."""
    parameter_numbers_sql: str
    """The same of whole numbers."""
    field_items_sql: str
    """A table of `value`, the texts of a list in a column of JSON; follows a comma after FROM."""
    field_objects_sql: str
    """The same of a list of objects."""
    join_texts_function: str
    """The function that joins the texts of a group by commas."""
    table_names_sql: str
    """Selects `name`, the names of all tables."""
    last_number_sql: str
    """Selects the highest number that a table has ever given to a row, or no row."""
    commit_unflushed_sql: str
    """Lets this transaction be on disk with one that follows; empty if all of them may be so."""
    count_values_sql: str
    """Counts which values columns have, so that queries are planned well; empty if not needed."""

    def build_index_hint_sql(self, index_name: str) -> str:
        """Return what follows a table that is to be read by this index."""
        return self.index_hint_sql.format(index=index_name)

    def build_field_items_sql(self, column_name: str, list_field_name: str) -> str:
        """Return a table of the items in a list field of a column of JSON."""
        return self.field_items_sql.format(column=column_name, field=list_field_name)

    def build_field_objects_sql(self, column_name: str, list_field_name: str) -> str:
        """Return a table of the objects in a list field of a column of JSON."""
        return self.field_objects_sql.format(column=column_name, field=list_field_name)

    def build_last_number_sql(self, table_name: str) -> str:
        """Return a query for the highest number that a table has ever given to a row."""
        return self.last_number_sql.format(table=table_name)


SQLITE = SqlDialect(
    engine="sqlite",
    counts_steps=True,
    begin_write_sql="BEGIN IMMEDIATE",
    any_case_sql="COLLATE NOCASE",
    join_in_order_sql="CROSS JOIN",
    index_hint_sql="INDEXED BY {index}",
    # One parameter, however many items: SQLite allows a limited number of placeholders.
    parameter_items_sql="SELECT value FROM json_each(?)",
    parameter_numbers_sql="SELECT value FROM json_each(?)",
    field_items_sql="json_each({column}, '$.{field}')",
    field_objects_sql="json_each({column}, '$.{field}') /* objects */",
    join_texts_function="group_concat",
    table_names_sql="SELECT name FROM sqlite_master WHERE type = 'table'",
    last_number_sql="SELECT seq FROM sqlite_sequence WHERE name = '{table}'",
    commit_unflushed_sql="",
    count_values_sql="",
)

POSTGRES = SqlDialect(
    engine="postgres",
    counts_steps=False,
    begin_write_sql="BEGIN",
    any_case_sql="",
    join_in_order_sql="JOIN",
    index_hint_sql="",
    parameter_items_sql="SELECT value FROM json_array_elements_text(?::json)",
    parameter_numbers_sql="SELECT value::bigint FROM json_array_elements_text(?::json)",
    field_items_sql="json_array_elements_text({column} -> '{field}')",
    field_objects_sql="json_array_elements({column} -> '{field}')",
    join_texts_function="readingroom_federal.join_by_comma",
    table_names_sql="SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
    last_number_sql="SELECT last_value AS seq FROM {table}_seq",
    commit_unflushed_sql="SET LOCAL synchronous_commit = off",
    count_values_sql="ANALYZE",
)
