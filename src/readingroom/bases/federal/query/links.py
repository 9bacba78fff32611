"""Links between records, read from either end.

A link is stored once, from the record whose file mentions the other, with the words that do so as
evidence. Both records show it. When two files mention the same pair, both are its evidence.
Sponsors and cosponsors are stored with their bills: what links them is read from there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal.schema.ids import parse_federal_id
from readingroom.bases.federal.schema.records import LinkKind, SponsorKind
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.core.errors import UnrecognizedId
from readingroom.storage.database import Database


@dataclass(frozen=True, slots=True)
class FoundLink:
    """The record at the other end of a link, and all evidence for the link."""

    kind: str
    id: str
    evidence: list[dict[str, str]]
    source: str | None = None
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class _LinkDirection:
    """Links where `own_column` has the id; the `linked_column` has the linked records."""

    own_column: str
    linked_column: str
    record_id: str


def read_link_page(
    db: Database,
    record_id: str,
    kind_filter: LinkKind | None,
    max_results: int,
    after_key: Sequence[str] | None,
) -> tuple[list[FoundLink], tuple[str, str] | None, int]:
    """Return a page of a record's links by kind and id, the last key if more follow, the total."""
    link_directions = _list_directions_of_record(record_id)
    # Each direction is sorted by its index, so no more is read of each than a page can show.
    kind_id_pairs = sorted(
        {
            kind_id_pair
            for link_direction in link_directions
            for kind_id_pair in _read_kind_id_pairs(
                db, link_direction, kind_filter, max_results + 1, after_key
            )
        }
    )
    shown_kind_id_pairs = kind_id_pairs[:max_results]
    last_kind_id_pair = shown_kind_id_pairs[-1] if len(kind_id_pairs) > max_results else None
    title_and_url_by_id = read_titles_and_urls(
        db, (linked_id for _, linked_id in shown_kind_id_pairs)
    )
    found_links = [
        FoundLink(
            link_kind,
            linked_id,
            _read_evidence(db, link_directions, link_kind, linked_id),
            find_source_name(linked_id),
            **title_and_url_by_id.get(linked_id, {}),
        )
        for link_kind, linked_id in shown_kind_id_pairs
    ]
    link_count_by_kind = count_links(db, record_id)
    return (
        found_links,
        last_kind_id_pair,
        link_count_by_kind.get(kind_filter, 0) if kind_filter else sum(link_count_by_kind.values()),
    )


def count_links(db: Database, record_id: str) -> dict[str, int]:
    """Return how many records a record is linked to, by kind."""
    link_count_by_kind: Counter[str] = Counter()
    link_directions = _list_directions_of_record(record_id)
    for direction_index, link_direction in enumerate(link_directions):
        # Leave out what an earlier direction counted; the first is the one that may be long.
        earlier_directions = link_directions[:direction_index]
        uncounted_condition = "".join(
            f""" AND NOT EXISTS (SELECT 1 FROM links e WHERE e.{earlier_direction.own_column} = ?
                 AND e.kind = l.kind
                 AND e.{earlier_direction.linked_column} = l.{link_direction.linked_column})"""
            for earlier_direction in earlier_directions
        )
        count_rows = db.execute(
            f"""SELECT kind, count(*) AS linked FROM (
                    SELECT DISTINCT kind, {link_direction.linked_column} FROM links l
                    WHERE {link_direction.own_column} = ?{uncounted_condition})
                GROUP BY kind""",
            (
                link_direction.record_id,
                *(earlier_direction.record_id for earlier_direction in earlier_directions),
            ),
        )
        link_count_by_kind.update(
            {count_row["kind"]: count_row["linked"] for count_row in count_rows}
        )
    return dict(sorted(link_count_by_kind.items()))


def _list_directions_of_record(record_id: str) -> list[_LinkDirection]:
    # The links that lead here come first: a topic or a member has thousands of them.
    link_directions = [
        _LinkDirection("to_id", "from_id", record_id),
        _LinkDirection("from_id", "to_id", record_id),
    ]
    if (containing_id := get_containing_id(record_id)) != record_id:
        link_directions.append(_LinkDirection("to_id", "from_id", containing_id))
    return link_directions


def _read_kind_id_pairs(
    db: Database,
    link_direction: _LinkDirection,
    link_kind: LinkKind | None,
    max_results: int,
    after_key: Sequence[str] | None,
) -> list[tuple[str, str]]:
    where_sql, sql_values = f"{link_direction.own_column} = ?", [link_direction.record_id]
    if link_kind:
        where_sql += " AND kind = ?"
        sql_values.append(link_kind)
    if after_key:
        where_sql += f" AND (kind, {link_direction.linked_column}) > (?, ?)"
        sql_values += after_key
    pair_rows = db.execute(
        f"""SELECT DISTINCT kind, {link_direction.linked_column} FROM links WHERE {where_sql}
            ORDER BY kind, {link_direction.linked_column} LIMIT ?""",
        (*sql_values, max_results),
    )
    return [(pair_row[0], pair_row[1]) for pair_row in pair_rows]


def _read_evidence(
    db: Database, link_directions: Sequence[_LinkDirection], link_kind: str, linked_id: str
) -> list[dict[str, str]]:
    evidence_items = [
        {
            "said_by": evidence_row["from_id"],
            "loader": evidence_row["loader"],
            "words": evidence_row["evidence"],
        }
        for link_direction in link_directions
        for evidence_row in db.execute(
            f"""SELECT * FROM links
                WHERE {link_direction.own_column} = ? AND kind = ?
                  AND {link_direction.linked_column} = ?""",
            (link_direction.record_id, link_kind, linked_id),
        )
    ]
    return sorted(
        evidence_items, key=lambda evidence_item: (evidence_item["loader"], evidence_item["words"])
    )


# --- sponsors ---

_SPONSOR_LINKS_SQL = """(
    SELECT id AS from_id, sponsor AS to_id, loader, record ->> 'sponsors' AS evidence
    FROM bills WHERE status = 'active' AND sponsor IS NOT NULL) AS sponsor_links"""
_COSPONSOR_LINKS_SQL = """(
    SELECT c.bill_id AS from_id, c.bioguide_id AS to_id, b.loader, c.record AS evidence
    FROM bill_cosponsors c JOIN bills b ON b.id = c.bill_id
    WHERE b.status = 'active' AND c.bioguide_id IS NOT NULL) AS cosponsor_links"""
_LINKS_SQL_BY_SPONSOR_KIND = {
    SponsorKind.SPONSOR: _SPONSOR_LINKS_SQL,
    SponsorKind.COSPONSOR: _COSPONSOR_LINKS_SQL,
}
_SPONSOR_LINK_COLUMNS_BY_SOURCE = {
    "bills": ("from_id", "to_id"),
    "legislators": ("to_id", "from_id"),
}


def list_links_and_sponsors(
    db: Database,
    record_id: str,
    kind_filter: LinkKind | SponsorKind | None,
    max_results: int,
    after_key: Sequence[str] | None,
) -> tuple[list[FoundLink], tuple[str, str] | None, int]:
    """Return a page of links, then of sponsors and cosponsors, as `read_link_page` does.

    For a member these are the bills sponsored and cosponsored.
    """
    found_links: list[FoundLink] = []
    last_key: tuple[str, str] | None = None
    sponsor_kinds = [known_kind for known_kind in SponsorKind if kind_filter in (None, known_kind)]
    if after_key and after_key[0] in sponsor_kinds:
        sponsor_kinds = sponsor_kinds[sponsor_kinds.index(SponsorKind(after_key[0])) :]
    elif not isinstance(kind_filter, SponsorKind):
        found_links, last_key, _ = read_link_page(
            db, record_id, kind_filter, max_results, after_key
        )
    for sponsor_kind in () if last_key else sponsor_kinds:
        after_id = after_key[1] if after_key and after_key[0] == sponsor_kind else ""
        max_sponsors = max_results + 1 - len(found_links)
        found_links += _list_sponsors(db, record_id, sponsor_kind, max_sponsors, after_id)
    if len(found_links) > max_results:
        found_links = found_links[:max_results]
        last_key = (found_links[-1].kind, found_links[-1].id)
    link_count_by_kind = count_links_and_sponsors(db, record_id)
    total_count = (
        link_count_by_kind.get(kind_filter, 0) if kind_filter else sum(link_count_by_kind.values())
    )
    return found_links, last_key, total_count


def _list_sponsors(
    db: Database, record_id: str, sponsor_kind: SponsorKind, max_results: int, after_id: str
) -> list[FoundLink]:
    """Return who sponsored a bill, or what a member sponsored, by id; of other records none."""
    own_and_linked_columns = _SPONSOR_LINK_COLUMNS_BY_SOURCE.get(find_source_name(record_id) or "")
    if own_and_linked_columns is None or not max_results:
        return []
    own_column, linked_column = own_and_linked_columns
    linked_id_rows = db.execute(
        f"""SELECT DISTINCT {linked_column} FROM {_LINKS_SQL_BY_SPONSOR_KIND[sponsor_kind]}
            WHERE {own_column} = ? AND {linked_column} > ? ORDER BY {linked_column} LIMIT ?""",
        (record_id, after_id, max_results),
    )
    linked_ids = [linked_id_row[0] for linked_id_row in linked_id_rows]
    title_and_url_by_id = read_titles_and_urls(db, linked_ids)
    return [
        FoundLink(
            sponsor_kind.value,
            linked_id,
            read_sponsor_evidence(
                db,
                sponsor_kind,
                *((record_id, linked_id) if own_column == "from_id" else (linked_id, record_id)),
            ),
            find_source_name(linked_id),
            **title_and_url_by_id.get(linked_id, {}),
        )
        for linked_id in linked_ids
    ]


def count_links_and_sponsors(db: Database, record_id: str) -> dict[str, int]:
    """Return how many records a record is linked to, sponsors and cosponsors too, by kind."""
    return dict(sorted((count_links(db, record_id) | _count_sponsors(db, record_id)).items()))


def _count_sponsors(db: Database, record_id: str) -> dict[str, int]:
    own_and_linked_columns = _SPONSOR_LINK_COLUMNS_BY_SOURCE.get(find_source_name(record_id) or "")
    if own_and_linked_columns is None:
        return {}
    own_column, linked_column = own_and_linked_columns
    link_count_by_kind: dict[str, int] = {}
    for sponsor_kind, sponsors_sql in _LINKS_SQL_BY_SPONSOR_KIND.items():
        (sponsor_count,) = db.execute(
            f"SELECT count(DISTINCT {linked_column}) FROM {sponsors_sql} WHERE {own_column} = ?",
            (record_id,),
        ).fetchone()
        if sponsor_count:
            link_count_by_kind[sponsor_kind.value] = sponsor_count
    return link_count_by_kind


def read_sponsor_evidence(
    db: Database, sponsor_kind: SponsorKind, bill_id: str, bioguide_id: str
) -> list[dict[str, str]]:
    """Return what the file of a bill says of its sponsor, or of a cosponsor."""
    evidence_rows = db.execute(
        f"""SELECT loader, evidence FROM {_LINKS_SQL_BY_SPONSOR_KIND[sponsor_kind]}
            WHERE from_id = ? AND to_id = ?""",
        (bill_id, bioguide_id),
    )
    return [
        {
            "said_by": bill_id,
            "loader": evidence_row["loader"],
            "words": _describe_sponsor(bioguide_id, from_json(evidence_row["evidence"])),
        }
        for evidence_row in evidence_rows
    ]


def _describe_sponsor(bioguide_id: str, stored_sponsors: Any) -> str:
    if isinstance(stored_sponsors, list):
        sponsor_names = [
            stored_sponsor["name"]
            for stored_sponsor in stored_sponsors
            if stored_sponsor["bioguide_id"] == bioguide_id
        ]
        return f"sponsors: {', '.join(sponsor_names)}"
    cosponsor_fields: Mapping[str, Any] = stored_sponsors
    cosponsor_facts = [
        str(cosponsor_fields["name"]),
        f"since {cosponsor_fields['sponsored_at']}"
        if cosponsor_fields.get("sponsored_at")
        else None,
        "original cosponsor" if cosponsor_fields.get("original") else None,
        f"withdrawn {cosponsor_fields['withdrawn_at']}"
        if cosponsor_fields.get("withdrawn_at")
        else None,
    ]
    return f"cosponsors: {', '.join(filter(None, cosponsor_facts))}"


# --- the records at the other end ---


def read_titles_and_urls(db: Database, record_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return title and URL of those of these records that are loaded and not withdrawn."""
    ids_by_source: dict[str, list[str]] = defaultdict(list)
    for record_id in record_ids:
        if source_name := find_source_name(record_id):
            ids_by_source[source_name].append(record_id)
    title_and_url_by_id: dict[str, dict[str, Any]] = {}
    for source_name, ids_of_source in ids_by_source.items():
        id_placeholders_sql = ", ".join("?" * len(ids_of_source))
        for title_row in db.execute(
            f"""SELECT id, record ->> 'title' AS title, source_url AS url
                FROM {source_name} WHERE id IN ({id_placeholders_sql}) AND status = 'active'""",
            ids_of_source,
        ):
            title_and_url_by_id[title_row["id"]] = {
                "title": title_row["title"],
                "url": title_row["url"],
            }
    return title_and_url_by_id


def get_containing_id(record_id: str) -> str:
    """Return the id whose links a record shows too: for a section of the CFR, that of its part."""
    return record_id.partition(".")[0] if record_id.startswith("cfr:") else record_id


def find_source_name(record_id: str) -> str | None:
    """Return the source that an id belongs to, or None."""
    try:
        source_name = parse_federal_id(record_id).source
    except UnrecognizedId:
        return None
    return source_name if source_name in SOURCES_BY_NAME else None
