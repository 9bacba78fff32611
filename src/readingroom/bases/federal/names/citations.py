"""Finds the record that a citation means where the citation alone does not make up an id.

`H.R. 22` has no Congress, `83 FR 21707` and `143 Cong. Rec. S704` are pages, and the citations that
records print end in a title.
"""

import re
from collections.abc import Sequence

from readingroom.bases.federal.schema.congress import SPOKEN
from readingroom.bases.federal.schema.ids import FederalId, parse_bill_number, parse_federal_id
from readingroom.core.errors import UnrecognizedId
from readingroom.core.text import fold_dashes
from readingroom.storage.database import Database

_REGISTER_PAGE = re.compile(r"(?:^|\s)(\d{1,3})\s?(?:FR|Fed\.?\s?Reg\.?)\s?(\d{1,6})\b", re.I)
_RECORD_PAGE = re.compile(r"(?:^|\s)(\d{1,3})\s?Cong\.?\s?Rec\.?\s?([SHED])\s?(\d{1,5})\b", re.I)
_DATE_AT_END = re.compile(r"\s*\((?:\d{4}-\d\d-\d\d|n\.d\.)\)$")
_REGISTER_FIRST_YEAR, _RECORD_FIRST_YEAR = 1935, 1854
"""The year before the first volume of each."""
_MAX_CANDIDATES = 12


def find_cited_id(db: Database, text: str) -> FederalId:
    """Return the id of the one record that a citation means.

    Raise UnrecognizedId, which lists the records it may mean where there are several.
    """
    try:
        return parse_federal_id(text)
    except UnrecognizedId as unrecognized:
        found = _find_by_beginning(text) or _find_by_page(db, text) or _find_by_words(db, text)
        if found:
            return found
        if bill := parse_bill_number(text):
            raise _ask_for_congress(db, *bill) from unrecognized
        raise


def _find_by_beginning(text: str) -> FederalId | None:
    """Read a citation as records print it: an id's spelling, then a title and a date."""
    parts = _DATE_AT_END.sub("", text).split(", ")
    for end in range(min(len(parts), 3), 0, -1):
        try:
            return parse_federal_id(", ".join(parts[:end]))
        except UnrecognizedId:
            continue
    return None


# --- pages ---


def _find_by_page(db: Database, text: str) -> FederalId | None:
    plain = fold_dashes(text)
    if match := _REGISTER_PAGE.search(plain):
        volume, page = int(match[1]), match[2]
        sources = ("federal_register", "presidential_documents")
        year, cited = volume + _REGISTER_FIRST_YEAR, f"{volume} FR {page}"
        ids = [
            FederalId(source, id)
            for source in sources
            for id in _read_register_ids(db, source, year, cited)
        ]
        return _choose_only(db, ids, cited)
    if match := _RECORD_PAGE.search(plain):
        volume, page = int(match[1]), f"{match[2].upper()}{match[3]}"
        ids = [
            FederalId("congressional_record", id)
            for id in _read_record_pages(db, volume + _RECORD_FIRST_YEAR, page)
        ]
        return _choose_only(db, ids, f"{volume} Cong. Rec. {page}")
    return None


def _read_register_ids(db: Database, source: str, year: int, cited: str) -> list[str]:
    """Return the documents of a year that are cited by this page."""
    rows = db.execute(
        f"""SELECT id FROM {source}
            WHERE published_at BETWEEN ? AND ? AND status = 'active'
              AND record ->> 'fr_citation' = ? ORDER BY id LIMIT {_MAX_CANDIDATES}""",
        (f"{year}-01-01", f"{year}-12-31", cited),
    )
    return [row["id"] for row in rows]


def _read_record_pages(db: Database, year: int, page: str) -> list[str]:
    """Return the items that begin on a page; if none does, those that go on over it."""
    rows = db.execute(
        """SELECT id, record ->> 'pages' AS pages FROM congressional_record
           WHERE published_at BETWEEN ? AND ? AND status = 'active'
           ORDER BY published_at, id""",
        (f"{year}-01-01", f"{year}-12-31"),
    ).fetchall()
    spans = [(row["id"], *_split_pages(row["pages"])) for row in rows]
    beginning = [id for id, first, _ in spans if first == page]
    number = int(page[1:])
    covering = [
        id
        for id, first, last in spans
        if first[:1] == page[0] and int(first[1:] or 0) <= number <= int(last[1:] or 0)
    ]
    return (beginning or covering)[:_MAX_CANDIDATES]


def _split_pages(pages: str | None) -> tuple[str, str]:
    first, _, last = (pages or "").partition("-")
    return first, last or first


def _choose_only(db: Database, ids: Sequence[FederalId], cited: str) -> FederalId | None:
    if len(ids) <= 1:
        return ids[0] if ids else None
    raise UnrecognizedId(
        f"{cited} may be several: {_list_titles(db, ids)}; fetch one of these ids",
        candidates=[each.id for each in ids],
    )


# --- words and bills ---


def _find_by_words(db: Database, text: str) -> FederalId | None:
    """Find a record by its whole citation, and a statement by its address: both have no id."""
    lookups = [
        ("saps", "citation_string", text.startswith("Statement of Administration Policy")),
        ("saps", "source_url", text.startswith(("https://", "http://"))),
        ("statute_compilations", "citation_string", "as amended" in text),
        ("cbo_cost_estimates", "citation_string", text.startswith("CBO")),
        ("legislators", "citation_string", "Biographical Directory" in text),
        ("committees", "citation_string", "Committee on" in text or "Subcommittee" in text),
    ]
    for source, column, is_likely in lookups:
        if is_likely:
            row = db.execute(
                f"SELECT id FROM {source} WHERE {column} = ? LIMIT 1", (text.strip(),)
            ).fetchone()
            if row:
                return FederalId(source, row["id"])
    return None


def _ask_for_congress(db: Database, kind: str, number: int) -> UnrecognizedId:
    rows = db.execute(
        f"""SELECT id, congress, record ->> 'title' AS title FROM bills
            WHERE id IN (SELECT ? || ':' || congress || ':' || ? FROM
                (WITH RECURSIVE numbers (congress) AS
                    (SELECT 1 UNION ALL SELECT congress + 1 FROM numbers WHERE congress < 999)
                 SELECT congress FROM numbers)) AND status = 'active'
            ORDER BY congress DESC LIMIT {_MAX_CANDIDATES}""",
        (kind, str(number)),
    ).fetchall()
    cited = f"{SPOKEN[kind]} {number}"
    if not rows:
        return UnrecognizedId(
            f"{cited} of which Congress? None is loaded here; write `{kind}:119:{number}` "
            "for the one of the 119th",
            candidates=[],
        )
    titles = "; ".join(f"{row['congress']}: `{row['id']}` ({row['title'][:80]})" for row in rows)
    return UnrecognizedId(
        f"{cited} of which Congress? Those loaded here: {titles}",
        candidates=[row["id"] for row in rows],
        congresses=[row["congress"] for row in rows],
    )


def _list_titles(db: Database, ids: Sequence[FederalId]) -> str:
    titles = []
    for each in ids:
        row = db.execute(
            f"SELECT record ->> 'title' AS title FROM {each.source} WHERE id = ?", (each.id,)
        ).fetchone()
        titles.append(f"`{each.id}` ({row['title'][:60]})")
    return "; ".join(titles)
