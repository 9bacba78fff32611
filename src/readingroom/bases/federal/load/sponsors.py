"""Names the sponsors of bills of which only the text is loaded: it has a last name and an id."""

from typing import Any

from pydantic_core import from_json, to_json

from readingroom.storage.database import Database

Member = dict[str, Any]


def name_sponsors(db: Database) -> None:
    """Fill in who sponsored such bills, from the members that are loaded by now."""
    members: dict[str, Member | None] = {}
    # Only these have no outcome, and an index has that column.
    unnamed = db.execute("SELECT id FROM bills WHERE outcome IS NULL AND party IS NULL").fetchall()
    for row in unnamed:
        _name_sponsors_of(db, row["id"], members)


def _name_sponsors_of(db: Database, bill_id: str, members: dict[str, Member | None]) -> None:
    (record_json,) = db.execute("SELECT record FROM bills WHERE id = ?", (bill_id,)).fetchone()
    record = from_json(record_json)
    day = record.get("introduced_at") or record.get("published_at") or ""
    named = [_name_person(db, person, day, members) for person in record.get("sponsors") or ()]
    if named and named != record["sponsors"]:
        record["sponsors"] = named
        db.execute("UPDATE bills SET record = ? WHERE id = ?", (to_json(record).decode(), bill_id))
        _add_facets(db, bill_id, named)
    for row in db.execute(
        "SELECT ordinal, record FROM bill_cosponsors WHERE bill_id = ?", (bill_id,)
    ).fetchall():
        cosponsor = from_json(row["record"])
        known = _name_person(db, cosponsor, day, members)
        if known != cosponsor:
            db.execute(
                """UPDATE bill_cosponsors SET bioguide_id = ?, record = ?
                   WHERE bill_id = ? AND ordinal = ?""",
                (known["bioguide_id"], to_json(known).decode(), bill_id, row["ordinal"]),
            )


def _name_person(
    db: Database, person: dict[str, Any], day: str, members: dict[str, Member | None]
) -> dict[str, Any]:
    """Return a person with the name, party and state of the member on that day, if loaded."""
    key = person.get("bioguide_id") or person.get("lis_id")
    if not key or person.get("party"):
        return person
    if key not in members:
        members[key] = _find_member(db, key)
    member = members[key]
    if member is None:
        return person
    terms = [term for term in member["terms"] if term["start"] <= day <= term["end"]]
    term = terms[-1] if terms else {}
    return person | {
        "bioguide_id": member["id"],
        "name": member["name"],
        "party": term.get("party") or member.get("party"),
        "state": term.get("state") or member.get("state"),
    }


def _find_member(db: Database, key: str) -> Member | None:
    row = db.execute(
        "SELECT record FROM legislators WHERE (id = ? OR lis = ?) AND status = 'active'", (key, key)
    ).fetchone()
    member = from_json(row["record"]) if row else None
    return None if member is None or member.get("stub") else member


def _add_facets(db: Database, bill_id: str, sponsors: list[dict[str, Any]]) -> None:
    for field, name in (("party", "party"), ("state", "state"), ("member", "bioguide_id")):
        for sponsor in sponsors:
            if sponsor.get(name):
                db.execute(
                    """INSERT INTO facets (field, value, doc)
                       SELECT ?, ?, doc FROM documents WHERE id = ? ON CONFLICT DO NOTHING""",
                    (field, sponsor[name], bill_id),
                )
