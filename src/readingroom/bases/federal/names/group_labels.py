"""What the keys of groups stand for: titles of records, names of agencies and presidents."""

from collections.abc import Sequence
from typing import Any

from readingroom.bases.federal.names.agencies import read_agency_names
from readingroom.bases.federal.names.filter_values import SOURCE_BY_REFERENCE_FILTER
from readingroom.bases.federal.query.links import read_titles_and_urls
from readingroom.bases.federal.schema.sources import RecordTable
from readingroom.storage.database import Database


def read_group_labels(
    db: Database, record_table: RecordTable, group_by: str | None, group_keys: Sequence[Any]
) -> dict[Any, str]:
    """Return what the keys of a group stand for, by key; none where keys say it themselves."""
    if group_by == "president" and record_table.name == "saps":
        return _read_president_names(db)
    if group_by == "agency":
        return read_agency_names(db)
    if group_by not in (*SOURCE_BY_REFERENCE_FILTER, "parent_id"):
        return {}
    title_and_url_by_id = read_titles_and_urls(
        db, (group_key for group_key in group_keys if isinstance(group_key, str))
    )
    return {
        record_id: title_and_url["title"]
        for record_id, title_and_url in title_and_url_by_id.items()
    }


def _read_president_names(db: Database) -> dict[Any, str]:
    """Return the full names of the presidents with each surname, which two may share."""
    president_rows = db.execute(
        f"""SELECT president, {db.dialect.join_texts}(DISTINCT
               (record ->> 'president_name') || ' (' || president_number || ')') AS names
           FROM saps GROUP BY president"""
    )
    return {
        president_row["president"]: president_row["names"]
        for president_row in president_rows
        if president_row["names"]
    }
