"""Links records of different files, at the end of a load: senators, offices, rulemakings."""

from readingroom.bases.federal.load.name_index import NameIndex
from readingroom.storage.database import Database

# The dockets first: they are few, and rules are looked up by their RIN.
_SAME_RIN_SQL = """FROM regulations_dot_gov_dockets r
    {join} facets f ON f.field = 'rin' AND f.value = r.rin {join} documents d ON d.doc = f.doc
    WHERE r.status = 'active'"""


def link_senators(db: Database) -> None:
    """Fill in the Bioguide id where a vote has only the Senate's own id of a member."""
    db.execute(
        """UPDATE member_votes SET bioguide_id =
               (SELECT id FROM legislators WHERE legislators.lis = member_votes.lis)
           WHERE bioguide_id IS NULL AND lis IN (SELECT lis FROM legislators)"""
    )


def link_offices(db: Database, name_index: NameIndex) -> None:
    """Add members' names to their offices: the files of offices have only Bioguide ids."""
    unnamed_office_rows = db.execute(
        """SELECT o.id, l.record ->> 'name' || coalesce(' ' || o.city, '') AS form
           FROM staff_directories o JOIN legislators l ON l.id = o.bioguide_id
           WHERE o.status = 'active' AND NOT EXISTS (
               SELECT 1 FROM name_forms f WHERE f.record_id = o.id AND f.form =
                   l.record ->> 'name' || coalesce(' ' || o.city, ''))"""
    ).fetchall()
    for office_row in unnamed_office_rows:
        name_index.put_name("staff_directories", office_row["id"], office_row["form"])


def link_rulemakings(db: Database) -> None:
    """Link rules to the dockets that have the same RIN: both belong to one rulemaking."""
    same_rin_sql = _SAME_RIN_SQL.format(join=db.dialect.join_in_order)
    db.execute(
        f"""DELETE FROM links WHERE to_id IN (SELECT id FROM regulations_dot_gov_dockets)
            AND kind = 'docket' AND loader = 'rin'
            AND NOT EXISTS (SELECT 1 {same_rin_sql} AND d.id = from_id AND r.id = to_id)"""
    )
    db.execute(
        f"""INSERT INTO links SELECT d.id, 'docket', r.id, 'rin',
                'RIN ' || r.rin || ', of the document and of the docket'
            {same_rin_sql} ON CONFLICT DO NOTHING"""
    )
