"""Everything about one bill, member, committee or law, gathered in one reading of the file."""

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.filters import build_row_filter
from readingroom.bases.federal.models import Section, SectionError
from readingroom.bases.federal.query import cursors, links
from readingroom.bases.federal.schema.congress import began
from readingroom.bases.federal.schema.records import LinkKind
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.core.errors import KnowledgeError

logger = logging.getLogger(__name__)

LONGEST = 20
"""How many items of a section one dossier holds; `more_url` leads to the rest."""


@dataclass(frozen=True)
class Subject:
    """What a dossier is about, and the file it is read from."""

    db: sqlite3.Connection
    source: Source
    record: Mapping[str, Any]
    congress: int | None = None

    @property
    def id(self) -> str:
        return str(self.record["id"])

    @property
    def path(self) -> str:
        return f"/v1/{self.source.path}/{self.id}"


Part = Callable[[Subject], Section]


def gather(subject: Subject, parts: Mapping[str, Part]) -> dict[str, Section]:
    """Every section; one that fails says so, and the others still come."""
    return {name: _attempt(name, part, subject) for name, part in parts.items()}


def _attempt(name: str, part: Part, subject: Subject) -> Section:
    try:
        return part(subject)
    except KnowledgeError as error:
        told = SectionError(code=error.code, message=error.message)
    except (sqlite3.Error, ValueError, KeyError, TypeError) as error:
        logger.error("a section of a dossier failed", exc_info=error)
        told = SectionError(code="section_failed", message=f"{name} could not be read")
    return Section(items=[], total=None, truncated=False, error=told)


# --- kinds of sections ---


def children(table: str, name: str, key: str | None = None) -> Part:
    """What belongs to a bill, in its own order; `key` is the field that has its id."""

    def part(subject: Subject) -> Section:
        page, total = store.children(subject.db, table, "bill_id", subject.id, LONGEST, 0)
        items = [from_json(row["record"]) for row in page.rows]
        if key:
            items = [{"id": item[key], **item} for item in items]
        return _section(items, total, f"{subject.path}/{name}", page.after)

    return part


def linked(kind: LinkKind) -> Part:
    """The records that links lead to, whole; one that is not loaded here by its id alone."""

    def part(subject: Subject) -> Section:
        found, after, total = links.of(subject.db, subject.id, kind, LONGEST, None)
        whole = _whole(subject.db, found)
        return _section(
            [whole[one.id] | {"evidence": one.evidence} for one in found],
            total,
            f"{subject.path}/links",
            after,
            kind=kind.value,
        )

    return part


def _whole(db: sqlite3.Connection, found: Sequence[links.Linked]) -> dict[str, dict[str, Any]]:
    told = {one.id: {"id": one.id, "source": one.source, "loaded": False} for one in found}
    for name in {one.source for one in found if one.source and one.title is not None}:
        ids = [one.id for one in found if one.source == name]
        rows = db.execute(
            f"""SELECT id, record FROM {name}
                WHERE id IN ({", ".join("?" * len(ids))}) AND status = 'active'""",
            ids,
        )
        for row in rows:
            told[row["id"]] = from_json(row["record"]) | {"loaded": True}
    return told


def listed(name: str, field: str, *, by_congress: bool = False) -> Part:
    """The records of a source that its list gives for this one, newest first."""
    source = BY_NAME[name]

    def part(subject: Subject) -> Section:
        filters: dict[str, Any] = {field: subject.id}
        if by_congress and subject.congress is not None:
            filters["congress"] = subject.congress
        row_filter = build_row_filter(source.resource, filters)
        page = store.records(subject.db, source, row_filter, LONGEST, None)
        total = store.count(subject.db, source, row_filter) if page.after else len(page.rows)
        return _section(page.rows, total, f"/v1/{source.path}", page.after, **filters)

    return part


def held(name: str, *, by_congress: bool = False) -> Part:
    """What the record itself tells: terms, offices of leadership."""

    def part(subject: Subject) -> Section:
        items = list(subject.record.get(name) or ())
        if by_congress and subject.congress is not None:
            items = [item for item in items if _falls_into(item, subject.congress)]
        newest = list(reversed(items))[:LONGEST]
        return Section(
            items=newest,
            total=len(items),
            truncated=len(items) > len(newest),
            more_url=subject.path if len(items) > len(newest) else None,
        )

    return part


def _falls_into(stretch: Mapping[str, Any], congress: int) -> bool:
    """Whether a stretch of time has a day in common with a Congress."""
    begins, ends = began(congress).isoformat(), began(congress + 1).isoformat()
    start, end = stretch.get("start") or "", stretch.get("end") or "9999"
    return bool(start < ends and end > begins)


# --- sections of one kind of dossier alone ---


def bill_counts(subject: Subject) -> Section:
    """How many bills a member sponsored and cosponsored in each Congress."""
    rows = subject.db.execute(
        """SELECT congress, sum(sponsored) AS sponsored, sum(cosponsored) AS cosponsored FROM (
               SELECT congress, 1 AS sponsored, 0 AS cosponsored FROM bills
               WHERE sponsor = :id AND status = 'active'
               UNION ALL
               SELECT b.congress, 0, 1 FROM bill_cosponsors c JOIN bills b ON b.id = c.bill_id
               WHERE c.bioguide_id = :id AND b.status = 'active')
           WHERE :congress IS NULL OR congress = :congress
           GROUP BY congress ORDER BY congress DESC""",
        {"id": subject.id, "congress": subject.congress},
    ).fetchall()
    told = [
        {**dict(row), "sponsored_url": _url("/v1/bills", sponsor=subject.id, congress=row[0])}
        for row in rows
    ]
    return Section(items=told, total=len(told), truncated=False)


def seats(subject: Subject) -> Section:
    """A member's seats on committees, with the committees' names."""
    found = listed("committee_memberships", "bioguide_id", by_congress=True)(subject)
    committees = links.named(subject.db, (item["committee_id"] for item in found.items))
    named = [
        {**item, "committee": committees.get(item["committee_id"], {}).get("title")}
        for item in found.items
    ]
    return found.model_copy(update={"items": named})


def members(subject: Subject) -> Section:
    """Who sits on a committee: the majority first, each side by rank."""
    page, total, congress = store.members(
        subject.db, subject.id, subject.congress, LONGEST, store.FIRST_MEMBER
    )
    return _section(page.rows, total, f"{subject.path}/members", page.after, congress=congress)


# --- the four dossiers ---

BILL: dict[str, Part] = {
    "cosponsors": children("bill_cosponsors", "cosponsors", "bioguide_id"),
    "actions": children("bill_actions", "actions"),
    "crs_reports": linked(LinkKind.CRS_REPORT),
    "cost_estimates": linked(LinkKind.COST_ESTIMATE),
    "saps": linked(LinkKind.STATEMENT),
    "committee_reports": linked(LinkKind.COMMITTEE_REPORT),
    "hearings": linked(LinkKind.HEARING),
    "votes": linked(LinkKind.VOTE),
    "amendments": listed("amendments", "bill_id"),
    "laws": linked(LinkKind.LAW),
}
LEGISLATOR: dict[str, Part] = {
    "terms": held("terms", by_congress=True),
    "committees": seats,
    "bill_counts": bill_counts,
    "leadership": held("leadership", by_congress=True),
    "offices": listed("staff_directories", "bioguide_id"),
    "speeches": listed("congressional_record", "speaker", by_congress=True),
}
COMMITTEE: dict[str, Part] = {
    "members": members,
    "subcommittees": listed("committees", "parent_id"),
    "hearings": listed("hearings", "committee", by_congress=True),
    "bills": listed("bills", "committee", by_congress=True),
    "reports": listed("committee_reports", "committee", by_congress=True),
}
PUBLIC_LAW: dict[str, Part] = {
    "originating_bill": linked(LinkKind.LAW),
    "cfr_sections": listed("cfr_sections", "law"),
    "implementing_rules": listed("federal_register", "law"),
    "compilations": linked(LinkKind.COMPILATION),
}


# --- tools ---


def _section(
    items: list[dict[str, Any]],
    total: int,
    path: str,
    after: tuple[Any, ...] | None,
    **params: Any,
) -> Section:
    more = None
    if after is not None:
        more = _url(path, **params, limit=LONGEST, cursor=cursors.encode(after))
    return Section(items=items, total=total, truncated=after is not None, more_url=more)


def _url(path: str, **params: Any) -> str:
    return f"{path}?{urlencode({k: v for k, v in params.items() if v is not None})}"
