"""Finds the record that a citation means where the citation alone does not make up an id.

`H.R. 22` has no Congress, `83 FR 21707` and `143 Cong. Rec. S704` are pages, and the citations that
records print end in a title.
"""

import re
from collections.abc import Sequence

from readingroom.bases.federal.names.code_citations import find_cited_id
from readingroom.bases.federal.schema.congress import LABEL_BY_BILL_TYPE
from readingroom.bases.federal.schema.ids import (
    FederalId,
    parse_amendment_number,
    parse_bill_number,
    parse_federal_id,
)
from readingroom.bases.federal.schema.sources import SOURCES
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
_STATUTES_PAGE_PATTERN = re.compile(r"(\d{1,3})\s?Stat\.?\s?(\d{1,5})", re.ASCII | re.I)
_ROLL_CALL_PATTERN = re.compile(
    r"roll\s?call(?:\s(?:vote|no\.?))*\s(\d{1,4}),?\s(?:of\s)?(?:the\s)?(\d{1,3})(?:st|nd|rd|th)"
    r"\sCongress,?\s([123])(?:st|nd|rd)\ssession",
    re.ASCII | re.I,
)
_REGISTER_ISSUE_PATTERN = re.compile(r"FR-(\d{4}-\d\d-\d\d)", re.ASCII | re.I)
_WEB_ADDRESS_PATTERN = re.compile(r"https?://(?:www\.)?([\w.-]+(?:/[^?#]*)?)", re.ASCII | re.I)
_DATE_AT_END_PATTERN = re.compile(r"\s*\((\d{4}-\d\d-\d\d|n\.d\.)\)$", re.ASCII)
_YEAR_BEFORE_FIRST_REGISTER, _YEAR_BEFORE_CONGRESSIONAL_RECORD = 1935, 1854
_YEAR_BEFORE_STATUTES = 1886
"""The year before the first volume of each, as volumes are counted today."""
_MAX_CANDIDATES, _MAX_CONGRESS = 12, 150


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
            _find_id_by_whole_citation(db, citation)
            or _find_id_at_beginning(citation)
            or _find_id_by_page(db, citation)
            or _find_id_by_stored_citation(db, citation)
            or _find_id_by_web_address(db, citation)
            or _find_id_in_statutes(db, citation)
            or find_cited_id(db, citation)
        )
        if cited_id:
            return cited_id
        if bill_type_and_number := parse_bill_number(citation):
            bill_label = f"{LABEL_BY_BILL_TYPE[bill_type_and_number[0]]} {bill_type_and_number[1]}"
            raise _make_missing_congress_error(
                db, "bills", "{kind}:{congress}:{number}", *bill_type_and_number, bill_label
            ) from unrecognized
        if amendment_type_and_number := parse_amendment_number(citation):
            raise _make_missing_congress_error(
                db,
                "amendments",
                "amdt:{congress}:{kind}:{number}",
                *amendment_type_and_number,
                citation.strip(),
            ) from unrecognized
        _refuse_several_records(db, citation)
        if page_citation := _find_page_citation(citation):
            raise RecordNotFound(
                f"No record that begins on {page_citation} is loaded here"
            ) from unrecognized
        raise


def _find_id_by_whole_citation(db: Database, citation: str) -> FederalId | None:
    """Find the record that prints exactly this citation, among those of the day that it ends in.

    Raise UnrecognizedId where several do.
    """
    date_match = _DATE_AT_END_PATTERN.search(citation.strip())
    if date_match is None:
        return None
    day_text = date_match[1]
    day_sql, day_values = (
        ("published_at IS NULL", ())
        if day_text == "n.d."
        else ("published_at >= ? AND published_at < ?", (day_text, f"{day_text}~"))
    )
    citing_ids = [
        FederalId(record_source.name, record_row["id"])
        for record_source in SOURCES
        for record_row in db.execute(
            f"""SELECT id FROM {record_source.name}
                WHERE {day_sql} AND status = 'active' AND citation_string = ?
                ORDER BY id LIMIT {_MAX_CANDIDATES}""",
            (*day_values, citation.strip()),
        )
    ]
    return _find_only_candidate(db, citing_ids, citation.strip())


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
        return _find_only_candidate(
            db, _keep_those_named_in(db, cited_ids, plain_citation), page_citation
        )
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


def _keep_those_named_in(
    db: Database, candidate_ids: Sequence[FederalId], citation: str
) -> Sequence[FederalId]:
    """Return those of several records on a page whose title the citation has, if any has."""
    if len(candidate_ids) < 2:
        return candidate_ids
    named_ids = [
        candidate_id
        for candidate_id in candidate_ids
        if fold_dashes(_read_title(db, candidate_id)).casefold() in citation.casefold()
    ]
    return named_ids or candidate_ids


def _find_id_in_statutes(db: Database, citation: str) -> FederalId | None:
    """Find the law that begins on a page of the Statutes at Large; raise RecordNotFound if none."""
    page_match = _STATUTES_PAGE_PATTERN.fullmatch(citation.strip())
    if page_match is None:
        return None
    enacted_year = int(page_match[1]) + _YEAR_BEFORE_STATUTES
    page_citation = f"{int(page_match[1])} Stat. {int(page_match[2])}"
    law_rows = db.execute(
        f"""SELECT id FROM public_laws
            WHERE published_at BETWEEN ? AND ? AND status = 'active'
              AND record ->> 'statutes_at_large' = ? ORDER BY id LIMIT {_MAX_CANDIDATES}""",
        (f"{enacted_year - 1}-01-01", f"{enacted_year + 1}-12-31", page_citation),
    )
    law_ids = [FederalId("public_laws", law_row["id"]) for law_row in law_rows]
    if not law_ids:
        raise RecordNotFound(
            f"No law that begins at {page_citation} is loaded here; `list_records` of public_laws "
            f"with since={enacted_year}-01-01 and until={enacted_year}-12-31 has that year's",
            source="public_laws",
        )
    return _find_only_candidate(db, law_ids, page_citation)


# --- pages of the web, and what is no one record ---


def _find_id_by_web_address(db: Database, address: str) -> FederalId | None:
    """Find the committee or the office whose page this is.

    Subcommittees have the page of their committee, and a member's offices that of the member: the
    committee and the office in Washington are meant. Raise UnrecognizedId for a page of several.
    """
    address_match = _WEB_ADDRESS_PATTERN.fullmatch(address.strip().rstrip("/"))
    if address_match is None:
        return None
    spellings = [
        f"{scheme}{prefix}{address_match[1]}{end}"
        for scheme in ("https://", "http://")
        for prefix in ("", "www.")
        for end in ("", "/")
    ]
    page_ids = [
        FederalId(source_name, record_row["id"])
        for source_name, first_sql in (
            ("committees", "current DESC NULLS LAST, parent_id NULLS FIRST, id"),
            ("staff_directories", "CASE WHEN id LIKE '%-washington' THEN 0 ELSE 1 END, id"),
            ("committee_memberships", "id"),
        )
        for record_row in db.execute(
            f"""SELECT id FROM {source_name}
                WHERE source_url IN ({", ".join("?" * len(spellings))}) AND status = 'active'
                ORDER BY {first_sql} LIMIT {_MAX_CANDIDATES}""",
            spellings,
        )
    ]
    main_ids = [page_id for page_id in page_ids if _owns_page(db, page_id)]
    if len(main_ids) != 1 and len(page_ids) >= _MAX_CANDIDATES:
        raise RecordNotFound(
            f"{address.strip()} is the page of many committees, seats or offices, and of no single "
            "record: say the id of one, such as HSAG",
        )
    return _find_only_candidate(db, main_ids or page_ids, address.strip())


def _owns_page(db: Database, page_id: FederalId) -> bool:
    if page_id.source != "committees":
        return page_id.id.endswith("-washington")
    committee_row = db.execute(
        "SELECT 1 FROM committees WHERE id = ? AND parent_id IS NULL AND current = 1", (page_id.id,)
    ).fetchone()
    return committee_row is not None


def _refuse_several_records(db: Database, citation: str) -> None:
    """Raise an error for an issue of the Register, and for a roll call without its chamber."""
    if issue_match := _REGISTER_ISSUE_PATTERN.fullmatch(citation.strip()):
        issue_day = issue_match[1]
        raise RecordNotFound(
            f"{citation.strip()} is an issue, whose documents are records: `list_records` of "
            f"federal_register with since={issue_day} and until={issue_day} lists them",
            source="federal_register",
        )
    if vote_match := _ROLL_CALL_PATTERN.fullmatch(citation.strip()):
        possible_ids = [
            f"{chamber}:{int(vote_match[2])}:{vote_match[3]}:{int(vote_match[1])}"
            for chamber in ("house", "senate")
        ]
        vote_rows = db.execute(
            "SELECT id FROM roll_call_votes WHERE id IN (?, ?) AND status = 'active' ORDER BY id",
            possible_ids,
        )
        loaded_ids = [FederalId("roll_call_votes", vote_row["id"]) for vote_row in vote_rows]
        loaded_text = _describe_records(db, loaded_ids) if loaded_ids else "neither"
        raise UnrecognizedId(
            f"{citation.strip()[:100]!r} of which chamber? `{possible_ids[0]}` or "
            f"`{possible_ids[1]}`; loaded here: {loaded_text}",
            candidates=[loaded_id.id for loaded_id in loaded_ids],
        )


# --- words and bills ---


def _find_id_by_stored_citation(db: Database, citation: str) -> FederalId | None:
    """Find a record by its whole citation, and a statement by its address: both have no id."""
    column_lookups = [
        ("saps", "citation_string", citation.startswith("Statement of Administration Policy")),
        ("saps", "source_url", citation.startswith(("https://", "http://"))),
        ("statute_compilations", "citation_string", "as amended" in citation),
        ("cbo_cost_estimates", "citation_string", citation.startswith("CBO")),
    ]
    for source_name, column_name, is_likely in column_lookups:
        if is_likely:
            record_row = db.execute(
                f"SELECT id FROM {source_name} WHERE {column_name} = ? LIMIT 1", (citation.strip(),)
            ).fetchone()
            if record_row:
                return FederalId(source_name, record_row["id"])
    return None


def _make_missing_congress_error(
    db: Database,
    source_name: str,
    id_template: str,
    record_kind: str,
    record_number: int,
    record_label: str,
) -> UnrecognizedId:
    """Return the error for a number of which every Congress may have one."""
    possible_ids = {
        id_template.format(kind=record_kind, congress=congress, number=record_number): congress
        for congress in range(_MAX_CONGRESS, 0, -1)
    }
    id_placeholders_sql = ", ".join("?" * len(possible_ids))
    record_rows = db.execute(
        f"""SELECT id, record ->> 'title' AS title FROM {source_name}
            WHERE id IN ({id_placeholders_sql}) AND status = 'active'""",
        tuple(possible_ids),
    ).fetchall()
    title_by_id = {record_row["id"]: record_row["title"] for record_row in record_rows}
    loaded_ids = [some_id for some_id in possible_ids if some_id in title_by_id][:_MAX_CANDIDATES]
    if not loaded_ids:
        example_id = id_template.format(kind=record_kind, congress=119, number=record_number)
        return UnrecognizedId(
            f"{record_label} of which Congress? None is loaded here; write "
            f"`{example_id}` for the one of the 119th",
            candidates=[],
        )
    records_text = "; ".join(
        f"{possible_ids[loaded_id]}: `{loaded_id}` ({title_by_id[loaded_id][:80]})"
        for loaded_id in loaded_ids
    )
    return UnrecognizedId(
        f"{record_label} of which Congress? Those loaded here: {records_text}",
        candidates=loaded_ids,
        congresses=[possible_ids[loaded_id] for loaded_id in loaded_ids],
    )


def _describe_records(db: Database, federal_ids: Sequence[FederalId]) -> str:
    return "; ".join(
        f"`{federal_id.id}` ({_read_title(db, federal_id)[:60]})" for federal_id in federal_ids
    )


def _read_title(db: Database, federal_id: FederalId) -> str:
    title_row = db.execute(
        f"SELECT record ->> 'title' AS title FROM {federal_id.source} WHERE id = ?",
        (federal_id.id,),
    ).fetchone()
    return str(title_row["title"])
