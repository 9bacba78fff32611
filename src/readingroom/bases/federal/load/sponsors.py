"""Names the sponsors of bills of which only the text is loaded: it has a last name and an id."""

from typing import Any

from pydantic_core import from_json, to_json

from readingroom.bases.federal.schema.fold import fold_all_words
from readingroom.storage.database import Database

MemberFields = dict[str, Any]
_OTHER_MEMBER_MARK = " (as printed; "
"""Begins what is added to a printed name whose id is of somebody else."""


def fill_in_sponsors(db: Database) -> None:
    """Fill in who sponsored such bills, from the members that are loaded by now."""
    member_fields_by_id: dict[str, MemberFields | None] = {}
    # Only these have no outcome, unless their law is loaded; an index has that column.
    bills_without_party = db.execute(
        "SELECT id FROM bills WHERE party IS NULL AND (outcome IS NULL OR outcome = 'law')"
    ).fetchall()
    for bill_row in bills_without_party:
        _name_sponsors_of_bill(db, bill_row["id"], member_fields_by_id)


def _name_sponsors_of_bill(
    db: Database, bill_id: str, member_fields_by_id: dict[str, MemberFields | None]
) -> None:
    (record_json,) = db.execute("SELECT record FROM bills WHERE id = ?", (bill_id,)).fetchone()
    bill_fields = from_json(record_json)
    if bill_fields["status_loaded"]:
        return
    introduced_on = bill_fields.get("introduced_at") or bill_fields.get("published_at") or ""
    named_sponsors = [
        _name_person(db, person_fields, introduced_on, member_fields_by_id)
        for person_fields in bill_fields.get("sponsors") or ()
    ]
    if named_sponsors and named_sponsors != bill_fields["sponsors"]:
        bill_fields["sponsors"] = named_sponsors
        db.execute(
            "UPDATE bills SET record = ? WHERE id = ?", (to_json(bill_fields).decode(), bill_id)
        )
        _add_sponsor_facets(db, bill_id, named_sponsors)
    for cosponsor_row in db.execute(
        "SELECT ordinal, record FROM bill_cosponsors WHERE bill_id = ?", (bill_id,)
    ).fetchall():
        cosponsor_fields = from_json(cosponsor_row["record"])
        named_person_fields = _name_person(db, cosponsor_fields, introduced_on, member_fields_by_id)
        if named_person_fields != cosponsor_fields:
            db.execute(
                """UPDATE bill_cosponsors SET bioguide_id = ?, record = ?
                   WHERE bill_id = ? AND ordinal = ?""",
                (
                    named_person_fields["bioguide_id"],
                    to_json(named_person_fields).decode(),
                    bill_id,
                    cosponsor_row["ordinal"],
                ),
            )


def _name_person(
    db: Database,
    person_fields: dict[str, Any],
    introduced_on: str,
    member_fields_by_id: dict[str, MemberFields | None],
) -> dict[str, Any]:
    """Return a person with the name, party and state of the member on that day, if loaded."""
    person_id = person_fields.get("bioguide_id") or person_fields.get("lis_id")
    if not person_id or person_fields.get("party"):
        return person_fields
    if person_id not in member_fields_by_id:
        member_fields_by_id[person_id] = _find_member_fields(db, person_id)
    member_fields = member_fields_by_id[person_id]
    if member_fields is None:
        return person_fields
    printed_name = person_fields["name"].partition(_OTHER_MEMBER_MARK)[0]
    if not _is_named_like(member_fields, printed_name):
        # Which of the two is meant the file does not say, so neither has a party here.
        return person_fields | {
            "name": f"{printed_name}{_OTHER_MEMBER_MARK}the file's id {person_id} is that of "
            f"{member_fields['name']})"
        }
    terms_on_day = [
        term_fields
        for term_fields in member_fields["terms"]
        if term_fields["start"] <= introduced_on <= term_fields["end"]
    ]
    last_term = terms_on_day[-1] if terms_on_day else {}
    return person_fields | {
        "bioguide_id": member_fields["id"],
        "name": member_fields["name"],
        "party": last_term.get("party") or member_fields.get("party"),
        "state": last_term.get("state") or member_fields.get("state"),
    }


def _is_named_like(member_fields: MemberFields, printed_name: str) -> bool:
    """Return whether a member's names share a word with a printed one, or none is printed."""
    printed_words = set(fold_all_words(printed_name))
    member_names = (member_fields["name"], member_fields.get("last_name"), member_fields["title"])
    member_words = set(fold_all_words(" ".join(filter(None, member_names))))
    return not printed_words or not printed_words.isdisjoint(member_words)


def _find_member_fields(db: Database, person_id: str) -> MemberFields | None:
    member_row = db.execute(
        "SELECT record FROM legislators WHERE (id = ? OR lis = ?) AND status = 'active'",
        (person_id, person_id),
    ).fetchone()
    member_fields = from_json(member_row["record"]) if member_row else None
    return None if member_fields is None or member_fields.get("stub") else member_fields


def _add_sponsor_facets(db: Database, bill_id: str, sponsors: list[dict[str, Any]]) -> None:
    for facet_name, person_field_name in (
        ("party", "party"),
        ("state", "state"),
        ("member", "bioguide_id"),
    ):
        for sponsor_fields in sponsors:
            if sponsor_fields.get(person_field_name):
                db.execute(
                    """INSERT INTO facets (field, value, doc)
                       SELECT ?, ?, doc FROM documents WHERE id = ? ON CONFLICT DO NOTHING""",
                    (facet_name, sponsor_fields[person_field_name], bill_id),
                )
