"""What the keys of groups stand for: titles of records, names of agencies and presidents."""

from collections.abc import Sequence
from typing import Any

from readingroom.bases.federal.names.agencies import read_agency_names_by_code
from readingroom.bases.federal.names.filter_values import SOURCE_NAME_BY_REFERENCE_FILTER
from readingroom.bases.federal.query.links import read_titles_and_urls
from readingroom.bases.federal.schema.sources import RecordTable
from readingroom.storage.database import Database


def read_group_labels(
    db: Database, record_table: RecordTable, group_by: str | None, group_keys: Sequence[Any]
) -> dict[Any, str]:
    """Return what the keys of a group stand for, by key; none where keys say it themselves."""
    if record_table.name == "saps" and group_by in ("president", "president_number"):
        return _read_president_names(db, group_by)
    if group_by == "issue":
        return _read_issue_names(db)
    if group_by == "agency":
        return read_agency_names_by_code(db)
    if group_by not in (*SOURCE_NAME_BY_REFERENCE_FILTER, "parent_id"):
        return {}
    title_and_url_by_id = read_titles_and_urls(
        db, (group_key for group_key in group_keys if isinstance(group_key, str))
    )
    return {
        record_id: title_and_url["title"]
        for record_id, title_and_url in title_and_url_by_id.items()
    }


def _read_issue_names(db: Database) -> dict[Any, str]:
    """Return the names of the issues that filings are about, by their codes."""
    issue_rows = db.execute(
        f"""SELECT item.value ->> 'issue_code' AS code, max(item.value ->> 'issue') AS name
            FROM lda_filings r, {db.dialect.build_field_objects_sql("r.record", "activities")} item
            GROUP BY 1"""
    )
    return {issue_row["code"]: issue_row["name"] for issue_row in issue_rows if issue_row["name"]}


def _read_president_names(db: Database, group_by: str) -> dict[Any, str]:
    """Return the full names of presidents by surname, which two may share, or by number."""
    president_rows = db.execute(
        f"""SELECT DISTINCT {group_by} AS key, president_number AS number,
                   record ->> 'president_name' AS name
            FROM saps WHERE president_number IS NOT NULL ORDER BY president_number"""
    )
    names_by_group_key: dict[Any, list[str]] = {}
    for president_row in president_rows:
        if president_row["name"]:
            names_by_group_key.setdefault(president_row["key"], []).append(
                f"{president_row['name']} ({president_row['number']})"
            )
    return {
        group_key: ", ".join(numbered_names)
        for group_key, numbered_names in names_by_group_key.items()
    }
