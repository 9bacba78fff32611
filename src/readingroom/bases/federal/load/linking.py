"""Links records of different files, at the end of a load, and registers the agencies they name."""

from contextlib import closing

from pydantic_core import from_json, to_json

from readingroom.bases.federal.load.coverage import update_source_counts
from readingroom.bases.federal.load.name_index import NameIndex
from readingroom.bases.federal.load.sponsors import fill_in_sponsors
from readingroom.bases.federal.models import ChangeKind
from readingroom.bases.federal.names.agencies import build_agencies
from readingroom.bases.federal.query import changes
from readingroom.bases.federal.schema.records import Agency
from readingroom.bases.federal.schema.tables import lacks_agencies
from readingroom.bases.federal.store import FederalPlace, connect, translate_errors
from readingroom.core.clock import format_now
from readingroom.storage.database import Database

# The dockets first: they are few, and rules are looked up by their RIN.
_SAME_RIN_SQL = """FROM regulations_dot_gov_dockets r
    {join} facets f ON f.field = 'rin' AND f.value = r.rin {join} documents d ON d.doc = f.doc
    WHERE r.status = 'active'"""


_DELEGATE_PLACES = ("AS", "DC", "GU", "MP", "PI", "PR", "VI")
_AGENCY_FORMAT_ID = "agencies/1"
_UNCOMPARED_AGENCY_FIELDS = ("retrieved_at", "as_of", "documents")
"""Fields of an agency that every load may change without making it another one."""


def link_records(db: Database, name_index: NameIndex) -> None:
    """Link the records of all files, in the transaction of the caller.

    Each part finds what is still missing, so that the next load repairs one that was killed.
    """
    fill_in_bioguide_ids(db)
    fill_in_places_of_delegates(db)
    forget_whether_stubs_sit(db)
    fill_in_sponsors(db)
    mark_enacted_bills(db)
    name_offices_after_members(db, name_index)
    link_rulemakings(db)
    register_agencies(db, name_index)


def fill_in_bioguide_ids(db: Database) -> None:
    """Fill in the Bioguide id where a vote has only the Senate's own id of a member."""
    db.execute(
        """UPDATE member_votes SET bioguide_id =
               (SELECT id FROM legislators WHERE legislators.lis = member_votes.lis)
           WHERE bioguide_id IS NULL AND lis IN (SELECT lis FROM legislators)"""
    )


def fill_in_places_of_delegates(db: Database) -> None:
    """Fill in where a delegate is from: the Clerk's votes do not say."""
    delegate_rows = db.execute(
        f"""SELECT id, state FROM legislators
            WHERE state IN ({", ".join("?" * len(_DELEGATE_PLACES))}) AND status = 'active'""",
        _DELEGATE_PLACES,
    ).fetchall()
    for delegate_row in delegate_rows:
        db.execute(
            "UPDATE member_votes SET state = ? WHERE bioguide_id = ? AND state IS NULL",
            (delegate_row["state"], delegate_row["id"]),
        )


def forget_whether_stubs_sit(db: Database) -> None:
    """Mend stubs of members that an earlier version stored as if they sat no longer."""
    stub_rows = db.execute(
        "SELECT id, record FROM legislators WHERE loader = 'partial' AND current IS NOT NULL"
    ).fetchall()
    for stub_row in stub_rows:
        stub_fields = from_json(stub_row["record"])
        if stub_fields.get("stub") and "current" in stub_fields:
            del stub_fields["current"]
            db.execute(
                "UPDATE legislators SET record = ? WHERE id = ?",
                (to_json(stub_fields).decode(), stub_row["id"]),
            )


def mark_enacted_bills(db: Database) -> None:
    """Mark bills of which only texts are loaded as law, where the law that they became is loaded.

    No text of a bill says so, and the newest one may be that which Congress passed.
    """
    enacted_bill_rows = db.execute(
        """SELECT b.id, b.record, l.id AS law_id, l.record ->> 'approved_at' AS approved_at
           FROM public_laws l JOIN bills b ON b.id = l.bill_id
           WHERE b.outcome IS NULL AND b.status = 'active' AND l.status = 'active'"""
    ).fetchall()
    for enacted_bill_row in enacted_bill_rows:
        bill_fields = from_json(enacted_bill_row["record"]) | {
            "stage": "law",
            "stage_at": enacted_bill_row["approved_at"],
            "outcome": "law",
            "laws": [enacted_bill_row["law_id"]],
        }
        db.execute(
            "UPDATE bills SET record = ? WHERE id = ?",
            (to_json(bill_fields).decode(), enacted_bill_row["id"]),
        )


def name_offices_after_members(db: Database, name_index: NameIndex) -> None:
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
    same_rin_sql = _SAME_RIN_SQL.format(join=db.dialect.join_in_order_sql)
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


def register_agencies_of_older_records(records_place: FederalPlace) -> None:
    """Register the agencies of records that were loaded before there was a registry of them.

    Raise StorageFailed when the records cannot be used.
    """
    with translate_errors(records_place), closing(connect(records_place, writing=True)) as db:
        if lacks_agencies(db):
            with db.transaction():
                db.execute("UPDATE generation SET value = value + 1")
                name_index = NameIndex(db)
                register_agencies(db, name_index)
                name_index.write_names()
                update_source_counts(db)


def register_agencies(db: Database, name_index: NameIndex) -> None:
    """Store a record of each agency that loaded documents name, with every way they write it."""
    retrieved_at = format_now()
    agency_changes: list[changes.ChangeRow] = []
    for agency in build_agencies(db, retrieved_at):
        stored_row = db.execute("SELECT record FROM agencies WHERE id = ?", (agency.id,)).fetchone()
        stored_agency = (
            Agency.model_validate(from_json(stored_row["record"])) if stored_row else None
        )
        if stored_agency and _is_same_agency(stored_agency, agency, "retrieved_at"):
            continue
        db.execute(
            """INSERT INTO agencies (id, record, loader) VALUES (?, ?, ?)
               ON CONFLICT (id) DO UPDATE SET record = excluded.record""",
            (agency.id, agency.model_dump_json(exclude={"loaded_up_to"}), _AGENCY_FORMAT_ID),
        )
        if stored_agency and _is_same_agency(stored_agency, agency, *_UNCOMPARED_AGENCY_FIELDS):
            continue
        if stored_agency:
            name_index.delete_names(agency.id)
        name_index.put_names(agency, [*agency.names, *agency.abbreviations])
        change_kind: ChangeKind = "changed" if stored_agency else "new"
        agency_changes.append((agency.source, agency.id, change_kind, retrieved_at))
    changes.add_changes(db, agency_changes)


def _is_same_agency(stored_agency: Agency, agency: Agency, *ignored_fields: str) -> bool:
    blanked_fields = dict.fromkeys(ignored_fields)
    return stored_agency.model_dump() | blanked_fields == agency.model_dump() | blanked_fields
