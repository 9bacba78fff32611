"""Finds the record that a citation means where the citation alone does not make up an id.

`H.R. 22` has no Congress, `83 FR 21707` and `143 Cong. Rec. S704` are pages, and the citations that
records print end in a title.
"""

import re
from collections.abc import Sequence

from readingroom.bases.federal.names.code_citations import find_cited_id
from readingroom.bases.federal.schema.congress import LABEL_BY_BILL_TYPE
from readingroom.bases.federal.schema.ids import FederalId, parse_bill_number, parse_federal_id
from readingroom.bases.federal.schema.uncovered import refuse_uncovered_citation
from readingroom.core.errors import RecordNotFound, UnrecognizedId
from readingroom.core.text import fold_dashes
from readingroom.storage.database import Database

_REGISTER_PAGE_PATTERN = re.compile(
    r"(?:^|\s)(\d{1,3})\s?(?:FR|Fed\.?\s?Reg\.?)\s?(\d{1,6})\b", re.I
)
_CONGRESSIONAL_RECORD_PAGE_PATTERN = re.compile(
    r"(?:^|\s)(\d{1,3})\s?Cong\.?\s?Rec\.?\s?([SHED])\s?(\d{1,5})\b", re.I
)
_DATE_AT_END_PATTERN = re.compile(r"\s*\((?:\d{4}-\d\d-\d\d|n\.d\.)\)$")
_YEAR_BEFORE_FIRST_REGISTER, _YEAR_BEFORE_CONGRESSIONAL_RECORD = 1935, 1854
"""The year before the first volume of each."""
_MAX_CANDIDATES = 12


def resolve_citation(db: Database, citation: str) -> FederalId:
    """Return the id of the one record that a citation means.

    Raise UnrecognizedId, which lists the records it may mean where there are several, and
    RecordNotFound for a record of a kind that no source here has.
    """
    try:
        return parse_federal_id(citation)
    except UnrecognizedId as unrecognized:
        refuse_uncovered_citation(citation)
        cited_id = (
            _find_id_at_beginning(citation)
            or _find_id_by_page(db, citation)
            or _find_id_by_stored_citation(db, citation)
            or find_cited_id(db, citation)
        )
        if cited_id:
            return cited_id
        if bill_type_and_number := parse_bill_number(citation):
            raise _make_missing_congress_error(db, *bill_type_and_number) from unrecognized
        if page_citation := _find_page_citation(citation):
            raise RecordNotFound(
                f"No record that begins on {page_citation} is loaded here"
            ) from unrecognized
        raise


def _find_id_at_beginning(citation: str) -> FederalId | None:
    """Read a citation as records print it: an id's spelling, then a title and a date."""
    citation_parts = _DATE_AT_END_PATTERN.sub("", citation).split(", ")
    for part_count in range(min(len(citation_parts), 3), 0, -1):
        try:
            return parse_federal_id(", ".join(citation_parts[:part_count]))
        except UnrecognizedId:
            continue
    return None


# --- pages ---


def _find_id_by_page(db: Database, citation: str) -> FederalId | None:
    plain_citation = fold_dashes(citation)
    if page_match := _REGISTER_PAGE_PATTERN.search(plain_citation):
        volume_number, page_number = int(page_match[1]), page_match[2]
        register_source_names = ("federal_register", "presidential_documents")
        published_year, page_citation = (
            volume_number + _YEAR_BEFORE_FIRST_REGISTER,
            f"{volume_number} FR {page_number}",
        )
        cited_ids = [
            FederalId(source_name, record_id)
            for source_name in register_source_names
            for record_id in _read_register_ids(db, source_name, published_year, page_citation)
        ]
        return _find_only_candidate(db, cited_ids, page_citation)
    if page_match := _CONGRESSIONAL_RECORD_PAGE_PATTERN.search(plain_citation):
        volume_number, page_number = int(page_match[1]), f"{page_match[2].upper()}{page_match[3]}"
        cited_ids = [
            FederalId("congressional_record", record_id)
            for record_id in _read_congressional_record_ids(
                db, volume_number + _YEAR_BEFORE_CONGRESSIONAL_RECORD, page_number
            )
        ]
        return _find_only_candidate(db, cited_ids, f"{volume_number} Cong. Rec. {page_number}")
    return None


def _find_page_citation(citation: str) -> str | None:
    """Return a citation that is of a page and of nothing else, as it was written."""
    plain_citation = fold_dashes(citation).strip()
    page_match = _REGISTER_PAGE_PATTERN.fullmatch(
        plain_citation
    ) or _CONGRESSIONAL_RECORD_PAGE_PATTERN.fullmatch(plain_citation)
    return plain_citation if page_match else None


def _read_register_ids(
    db: Database, source_name: str, published_year: int, page_citation: str
) -> list[str]:
    """Return the documents of a year that are cited by this page."""
    document_rows = db.execute(
        f"""SELECT id FROM {source_name}
            WHERE published_at BETWEEN ? AND ? AND status = 'active'
              AND record ->> 'fr_citation' = ? ORDER BY id LIMIT {_MAX_CANDIDATES}""",
        (f"{published_year}-01-01", f"{published_year}-12-31", page_citation),
    )
    return [document_row["id"] for document_row in document_rows]


def _read_congressional_record_ids(
    db: Database, published_year: int, page_number_text: str
) -> list[str]:
    """Return the items that begin on a page; if none does, those that go on over it."""
    proceeding_rows = db.execute(
        """SELECT id, record ->> 'pages' AS pages FROM congressional_record
           WHERE published_at BETWEEN ? AND ? AND status = 'active'
           ORDER BY published_at NULLS FIRST, id""",
        (f"{published_year}-01-01", f"{published_year}-12-31"),
    ).fetchall()
    ids_with_pages = [
        (proceeding_row["id"], *_split_page_range(proceeding_row["pages"]))
        for proceeding_row in proceeding_rows
    ]
    ids_beginning_on_page = [
        record_id
        for record_id, first_page_text, _ in ids_with_pages
        if first_page_text == page_number_text
    ]
    bare_page_number = int(page_number_text[1:])
    ids_covering_page = [
        record_id
        for record_id, first_page_text, last_page_text in ids_with_pages
        if first_page_text[:1] == page_number_text[0]
        and int(first_page_text[1:] or 0) <= bare_page_number <= int(last_page_text[1:] or 0)
    ]
    return (ids_beginning_on_page or ids_covering_page)[:_MAX_CANDIDATES]


def _split_page_range(page_range: str | None) -> tuple[str, str]:
    first_page_text, _, last_page_text = (page_range or "").partition("-")
    return first_page_text, last_page_text or first_page_text


def _find_only_candidate(
    db: Database, candidate_ids: Sequence[FederalId], page_citation: str
) -> FederalId | None:
    if len(candidate_ids) <= 1:
        return candidate_ids[0] if candidate_ids else None
    raise UnrecognizedId(
        f"{page_citation} may be several: {_describe_records(db, candidate_ids)}; "
        "fetch one of these ids",
        candidates=[candidate_federal_id.id for candidate_federal_id in candidate_ids],
    )


# --- words and bills ---


def _find_id_by_stored_citation(db: Database, citation: str) -> FederalId | None:
    """Find a record by its whole citation, and a statement by its address: both have no id."""
    column_lookups = [
        ("saps", "citation_string", citation.startswith("Statement of Administration Policy")),
        ("saps", "source_url", citation.startswith(("https://", "http://"))),
        ("statute_compilations", "citation_string", "as amended" in citation),
        ("cbo_cost_estimates", "citation_string", citation.startswith("CBO")),
        ("legislators", "citation_string", "Biographical Directory" in citation),
        ("committees", "citation_string", "Committee on" in citation or "Subcommittee" in citation),
    ]
    for source_name, column_name, is_likely in column_lookups:
        if is_likely:
            record_row = db.execute(
                f"SELECT id FROM {source_name} WHERE {column_name} = ? LIMIT 1", (citation.strip(),)
            ).fetchone()
            if record_row:
                return FederalId(source_name, record_row["id"])
    return None


def _make_missing_congress_error(db: Database, bill_type: str, bill_number: int) -> UnrecognizedId:
    bill_rows = db.execute(
        f"""SELECT id, congress, record ->> 'title' AS title FROM bills
            WHERE id IN (SELECT ? || ':' || congress || ':' || ? FROM
                (WITH RECURSIVE numbers (congress) AS
                    (SELECT 1 UNION ALL SELECT congress + 1 FROM numbers WHERE congress < 999)
                 SELECT congress FROM numbers)) AND status = 'active'
            ORDER BY congress DESC NULLS LAST LIMIT {_MAX_CANDIDATES}""",
        (bill_type, str(bill_number)),
    ).fetchall()
    bill_label = f"{LABEL_BY_BILL_TYPE[bill_type]} {bill_number}"
    if not bill_rows:
        return UnrecognizedId(
            f"{bill_label} of which Congress? None is loaded here; write "
            f"`{bill_type}:119:{bill_number}` for the one of the 119th",
            candidates=[],
        )
    bills_text = "; ".join(
        f"{bill_row['congress']}: `{bill_row['id']}` ({bill_row['title'][:80]})"
        for bill_row in bill_rows
    )
    return UnrecognizedId(
        f"{bill_label} of which Congress? Those loaded here: {bills_text}",
        candidates=[bill_row["id"] for bill_row in bill_rows],
        congresses=[bill_row["congress"] for bill_row in bill_rows],
    )


def _describe_records(db: Database, federal_ids: Sequence[FederalId]) -> str:
    ids_with_titles = []
    for federal_id in federal_ids:
        title_row = db.execute(
            f"SELECT record ->> 'title' AS title FROM {federal_id.source} WHERE id = ?",
            (federal_id.id,),
        ).fetchone()
        ids_with_titles.append(f"`{federal_id.id}` ({title_row['title'][:60]})")
    return "; ".join(ids_with_titles)
