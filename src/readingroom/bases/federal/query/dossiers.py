"""Everything about one bill, member, committee or law, in sections, read in one snapshot."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_row_filter
from readingroom.bases.federal.query import cursors
from readingroom.bases.federal.query.cards import make_card
from readingroom.bases.federal.query.dossier_models import Section, SectionError
from readingroom.bases.federal.query.links import LinkRow, list_links, read_titles
from readingroom.bases.federal.query.lists import add_party_and_state
from readingroom.bases.federal.query.votes import summarize_member_votes
from readingroom.bases.federal.schema.congress import format_ordinal, get_first_day
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.core.errors import KnowledgeError
from readingroom.storage.database import Database, DatabaseError

logger = logging.getLogger(__name__)

MAX_ITEMS = 5
"""How many items a section has at most; `more_url` leads to the rest."""


@dataclass(frozen=True)
class Subject:
    """The record that a dossier is about, and the connection it is read from."""

    db: Database
    source: Source
    record: Mapping[str, Any]
    congress: int | None = None

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def rest_path(self) -> str:
        return f"/v1/{self.source.path}/{self.id}"


SectionReader = Callable[[Subject], Section]


def read_sections(subject: Subject, readers: Mapping[str, SectionReader]) -> dict[str, Section]:
    """Read every section. One that fails has an error, and does not affect the others."""
    return {name: _read_section(name, reader, subject) for name, reader in readers.items()}


def _read_section(name: str, reader: SectionReader, subject: Subject) -> Section:
    try:
        return reader(subject)
    except KnowledgeError as error:
        problem = SectionError(code=error.code, message=error.message)
    except (DatabaseError, ValueError, KeyError, TypeError) as error:
        logger.error("a section of a dossier failed", exc_info=error)
        problem = SectionError(code="section_failed", message=f"{name} could not be read")
    return Section(items=[], total=None, truncated=False, error=problem)


# --- kinds of sections ---


def make_child_reader(table: str, name: str, key: str | None = None) -> SectionReader:
    """Return a reader of what belongs to a bill, in its own order; `key` is the id field."""

    def read(subject: Subject) -> Section:
        page, total = store.list_children(subject.db, table, "bill_id", subject.id, MAX_ITEMS, 0)
        items = [from_json(row["record"]) for row in page.rows]
        if key:
            items = [{"id": item[key], **item} for item in items]
        return _build_section(table, items, total, f"{subject.rest_path}/{name}", page.after)

    return read


_SOURCES_BY_KIND = {
    LinkKind.CRS_REPORT: "crs_reports",
    LinkKind.COST_ESTIMATE: "cbo_cost_estimates",
    LinkKind.STATEMENT: "saps",
    LinkKind.COMMITTEE_REPORT: "committee_reports",
    LinkKind.HEARING: "hearings",
    LinkKind.VOTE: "roll_call_votes",
    LinkKind.COMPILATION: "statute_compilations",
}


def make_link_reader(kind: LinkKind) -> SectionReader:
    """Return a reader of linked records; of one that is not loaded, only the id."""

    def read(subject: Subject) -> Section:
        links, after, total = list_links(subject.db, subject.id, kind, MAX_ITEMS, None)
        records = _read_linked(subject.db, links)
        section = _build_section(
            "links",
            [make_card(records[link.id] | {"evidence": link.evidence}) for link in links],
            total,
            f"{subject.rest_path}/links",
            after,
            kind=kind.value,
        )
        return _note_missing_source(subject.db, section, _SOURCES_BY_KIND.get(kind))

    return read


def _note_missing_source(db: Database, section: Section, source: str | None) -> Section:
    """Tell a section that is empty because nothing of its source is loaded."""
    if section.total or source is None or store.read_progress(db, BY_NAME[source]).records:
        return section
    return section.model_copy(update={"note": f"No record of {source} is loaded here."})


def _read_linked(db: Database, links: Sequence[LinkRow]) -> dict[str, dict[str, Any]]:
    records = {link.id: {"id": link.id, "source": link.source, "loaded": False} for link in links}
    for name in {link.source for link in links if link.source and link.title is not None}:
        ids = [link.id for link in links if link.source == name]
        rows = db.execute(
            f"""SELECT id, record FROM {name}
                WHERE id IN ({", ".join("?" * len(ids))}) AND status = 'active'""",
            ids,
        )
        for row in rows:
            records[row["id"]] = from_json(row["record"]) | {"loaded": True}
    return records


def make_list_reader(name: str, field: str, *, by_congress: bool = False) -> SectionReader:
    """Return a reader of the records of a source whose field has this id, newest first."""
    source = BY_NAME[name]

    def read(subject: Subject) -> Section:
        filters: dict[str, Any] = {field: subject.id}
        if by_congress and subject.congress is not None:
            filters["congress"] = subject.congress
        row_filter = build_row_filter(source.table, filters)
        page = store.list_records(subject.db, source, row_filter, MAX_ITEMS, None)
        total = (
            store.count_records(subject.db, source, row_filter) if page.after else len(page.rows)
        )
        section = _build_section(
            source.name,
            [make_card(record) for record in page.rows],
            total,
            f"/v1/{source.path}",
            page.after,
            **filters,
        )
        return _note_missing_source(subject.db, section, source.name)

    return read


def make_field_reader(name: str, *, by_congress: bool = False) -> SectionReader:
    """Return a reader of a list in the record itself: terms, leadership posts."""

    def read(subject: Subject) -> Section:
        items = list(subject.record.get(name) or ())
        if by_congress and subject.congress is not None:
            items = [item for item in items if _overlaps(item, subject.congress)]
        # The record lists them from the first to the last.
        newest = list(reversed(items))[:MAX_ITEMS]
        return Section(
            items=newest,
            total=len(items),
            truncated=len(items) > len(newest),
            more_url=subject.rest_path if len(items) > len(newest) else None,
        )

    return read


def _overlaps(period: Mapping[str, Any], congress: int) -> bool:
    """Return whether a period has a day in common with a Congress."""
    first, following = get_first_day(congress).isoformat(), get_first_day(congress + 1).isoformat()
    # ISO dates compare as text; whoever still serves has no end.
    start, end = period.get("start") or "", period.get("end") or "9999"
    return bool(start < following and end > first)


# --- sections of a single dossier ---


def count_bills(subject: Subject) -> Section:
    """Count the bills that a member sponsored and cosponsored, by Congress."""
    of_congress = "" if subject.congress is None else "WHERE congress = ?"
    rows = subject.db.execute(
        f"""SELECT congress, sum(sponsored) AS sponsored, sum(cosponsored) AS cosponsored FROM (
               SELECT congress, 1 AS sponsored, 0 AS cosponsored FROM bills
               WHERE sponsor = ? AND status = 'active'
               UNION ALL
               SELECT b.congress, 0, 1 FROM bill_cosponsors c JOIN bills b ON b.id = c.bill_id
               WHERE c.bioguide_id = ? AND b.status = 'active') AS bills_by_role
           {of_congress} GROUP BY congress ORDER BY congress DESC NULLS LAST""",
        (subject.id, subject.id, *(() if subject.congress is None else (subject.congress,))),
    ).fetchall()
    items = [
        {**dict(row), "sponsored_url": _build_url("/v1/bills", sponsor=subject.id, congress=row[0])}
        for row in rows
    ]
    return Section(items=items, total=len(items), truncated=False)


def read_seats(subject: Subject) -> Section:
    """Read a member's seats on committees, with the committees' names."""
    section = make_list_reader("committee_memberships", "bioguide_id", by_congress=True)(subject)
    committees = read_titles(subject.db, (item["committee_id"] for item in section.items))
    items = [
        {**item, "committee": committees.get(item["committee_id"], {}).get("title")}
        for item in section.items
    ]
    return section.model_copy(update={"items": items})


_MAX_SUBCOMMITTEES = 60


def read_subcommittees(subject: Subject) -> Section:
    """Read the subcommittees, those that sit now first; of one Congress, those it had."""
    rows = subject.db.execute(
        f"""SELECT id, record, current FROM committees
            WHERE parent_id = ? AND status = 'active' ORDER BY current DESC, id
            LIMIT {_MAX_SUBCOMMITTEES}""",
        (subject.id,),
    ).fetchall()
    records = [from_json(row["record"]) for row in rows]
    if subject.congress is not None:
        records = [record for record in records if _is_of_congress(record, subject.congress)]
    items = [
        {"id": record["id"], "title": record["title"], "current": record["current"]}
        for record in records
    ]
    return Section(items=items, total=len(items), truncated=False)


def _is_of_congress(committee: Mapping[str, Any], congress: int) -> bool:
    known = committee.get("congresses") or []
    return congress in known if known else bool(committee["current"])


def summarize_votes(subject: Subject) -> Section:
    """Count by Congress how often a member voted, missed votes and agreed with the party."""
    items = summarize_member_votes(subject.db, subject.id, subject.congress)
    note = "Counted over the votes that are loaded here."
    if not items:
        note = "No roll call with this member's vote is loaded here."
    return Section(items=items, total=len(items), truncated=False, note=note)


def read_members(subject: Subject) -> Section:
    """Read who sits on a committee: the majority first, each side by rank."""
    page, total, congress = store.list_members(
        subject.db, subject.id, subject.congress, MAX_ITEMS, store.FIRST_MEMBER
    )
    section = _build_section(
        "committee_members",
        [make_card(seat) for seat in add_party_and_state(subject.db, page.rows)],
        total,
        f"{subject.rest_path}/members",
        page.after,
        congress=congress,
    )
    if not total and subject.congress is not None:
        note = f"No roster of the {format_ordinal(subject.congress)} Congress is loaded here."
        return section.model_copy(update={"note": note})
    return section


# --- the four dossiers ---

BILL_SECTIONS: dict[str, SectionReader] = {
    "cosponsors": make_child_reader("bill_cosponsors", "cosponsors", "bioguide_id"),
    "actions": make_child_reader("bill_actions", "actions"),
    "crs_reports": make_link_reader(LinkKind.CRS_REPORT),
    "cost_estimates": make_link_reader(LinkKind.COST_ESTIMATE),
    "saps": make_link_reader(LinkKind.STATEMENT),
    "committee_reports": make_link_reader(LinkKind.COMMITTEE_REPORT),
    "hearings": make_link_reader(LinkKind.HEARING),
    "votes": make_link_reader(LinkKind.VOTE),
    "amendments": make_list_reader("amendments", "bill_id"),
    "laws": make_link_reader(LinkKind.LAW),
}
LEGISLATOR_SECTIONS: dict[str, SectionReader] = {
    "terms": make_field_reader("terms", by_congress=True),
    "committees": read_seats,
    "bill_counts": count_bills,
    "leadership": make_field_reader("leadership", by_congress=True),
    "offices": make_list_reader("staff_directories", "bioguide_id"),
    "speeches": make_list_reader("congressional_record", "speaker", by_congress=True),
    "voting": summarize_votes,
}
COMMITTEE_SECTIONS: dict[str, SectionReader] = {
    "members": read_members,
    "subcommittees": read_subcommittees,
    "hearings": make_list_reader("hearings", "committee", by_congress=True),
    "bills": make_list_reader("bills", "committee", by_congress=True),
    "reports": make_list_reader("committee_reports", "committee", by_congress=True),
}
PUBLIC_LAW_SECTIONS: dict[str, SectionReader] = {
    "originating_bill": make_link_reader(LinkKind.LAW),
    "cfr_sections": make_list_reader("cfr_sections", "law"),
    "implementing_rules": make_list_reader("federal_register", "law"),
    "compilations": make_link_reader(LinkKind.COMPILATION),
}


# --- sections and their URLs ---


def _build_section(
    list_name: str,
    items: list[dict[str, Any]],
    total: int,
    path: str,
    after: tuple[Any, ...] | None,
    **params: Any,
) -> Section:
    more_url = None
    if after is not None:
        more_url = _build_url(
            path, **params, limit=MAX_ITEMS, cursor=cursors.encode(list_name, after)
        )
    return Section(items=items, total=total, truncated=after is not None, more_url=more_url)


def _build_url(path: str, **params: Any) -> str:
    return (
        f"{path}?{urlencode({name: value for name, value in params.items() if value is not None})}"
    )
