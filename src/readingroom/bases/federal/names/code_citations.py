"""Citations of parts of the CFR, of executive orders and of the U.S. Code: what is loaded of them.

None of them is an id: a part has many sections, an order is a document of the Register, and the
Code itself is not covered.
"""

import re
from collections.abc import Sequence

from readingroom.bases.federal.schema.ids import FederalId, make_cfr_id
from readingroom.core.errors import KnowledgeError, RecordNotFound, UnrecognizedId
from readingroom.core.text import fold_dashes
from readingroom.storage.database import Database

_CFR_PART_PATTERN = re.compile(
    r"([1-9]\d?)\s?C\.?\s?F\.?\s?R\.?\s?,?\s?(?:(?:Parts?|Pts?\.?)\s?)?(\d{1,4}[a-z]?)", re.I
)
_EXECUTIVE_ORDER_PATTERN = re.compile(
    r"(?:Exec(?:utive|\.)?\s?Order|E\.?\s?O\.?)\s?(?:No\.?\s?|#\s?)?0*(\d{1,5}(?:-[A-Z])?)", re.I
)
_CODE_SECTION_PATTERN = re.compile(
    r"([1-9]\d?)\s?U\.?\s?S\.?\s?C(?:ode|\.)?(?:A\.)?,?\s?(?:\xa7+\s?|sec(?:tion|\.)\s?)?"
    r"(\d{1,5}[a-z]{0,3}(?:-\d{1,3}[a-z]?)?)(?:\s?\([a-z\d]{1,4}\))*(?:\s(?:et\sseq\.?|note))?",
    re.I,
)
_MAX_LISTED_RECORDS = 5


def find_cited_id(db: Database, citation: str) -> FederalId | None:
    """Return the one loaded record of an executive order; None for any other kind of citation.

    Raise UnrecognizedId with what is loaded of a part of the CFR or a section of the U.S. Code,
    and RecordNotFound, which says what is covered, where nothing is.
    """
    plain_citation = " ".join(fold_dashes(citation).split())
    if executive_order_match := _EXECUTIVE_ORDER_PATTERN.fullmatch(plain_citation):
        return _get_executive_order_id(db, executive_order_match[1].upper())
    if cfr_part_match := _CFR_PART_PATTERN.fullmatch(plain_citation):
        raise _make_cfr_part_error(db, int(cfr_part_match[1]), cfr_part_match[2].lower())
    if code_section_match := _CODE_SECTION_PATTERN.fullmatch(plain_citation):
        raise _make_us_code_error(db, f"{code_section_match[1]} U.S.C. {code_section_match[2]}")
    return None


def describe_cited_record(db: Database, citation: str) -> str | None:
    """Return in words where what is cited is found; None for any other text."""
    try:
        cited_id = find_cited_id(db, citation)
    except KnowledgeError as error:
        return error.message
    return f"{citation.strip()} is `{cited_id.id}`: `fetch` it." if cited_id else None


def _get_executive_order_id(db: Database, order_number: str) -> FederalId:
    order_rows = db.execute(
        """SELECT id FROM presidential_documents
           WHERE record ->> 'executive_order_number' = ? AND status = 'active'
           ORDER BY published_at NULLS FIRST, id LIMIT 1""",
        (order_number,),
    ).fetchall()
    if order_rows:
        return FederalId("presidential_documents", order_rows[0]["id"])
    raise RecordNotFound(
        f"Executive Order {order_number} is not loaded here. Those that are, are records of "
        f'presidential_documents; `search` for "Executive Order {order_number}" finds what '
        "mentions it",
        source="presidential_documents",
    )


def _make_cfr_part_error(db: Database, title_number: int, part_number: str) -> KnowledgeError:
    part_citation = f"{title_number} CFR part {part_number}"
    first_section_ids = _list_ids(
        db,
        """SELECT id FROM cfr_sections WHERE cfr_title = ? AND part = ? AND status = 'active'
           ORDER BY id LIMIT 1""",
        (title_number, part_number),
    )
    rule_ids = _list_ids(
        db,
        """SELECT r.id FROM links l JOIN federal_register r ON r.id = l.from_id
           WHERE l.to_id = ? AND l.kind = 'cfr' AND r.status = 'active'
           ORDER BY r.published_at DESC NULLS LAST, r.id LIMIT ?""",
        (make_cfr_id(title_number, part_number), _MAX_LISTED_RECORDS),
    )
    found_phrases = []
    if first_section_ids:
        found_phrases.append(
            f"its sections, such as `{first_section_ids[0]}`, are listed by `list_records` with "
            "source cfr_sections and filters "
            f'{{"cfr_title": {title_number}, "part": "{part_number}"}}'
        )
    if rule_ids:
        found_phrases.append(f"documents of the Register that affect it: {_quote_ids(rule_ids)}")
    if not found_phrases:
        return RecordNotFound(
            f"Nothing of {part_citation} is loaded here: sections are records of cfr_sections "
            f"(`cfr:{title_number}:{part_number}.1`), rules of federal_register",
            source="cfr_sections",
        )
    return UnrecognizedId(
        f"{part_citation} is no single record; {'; '.join(found_phrases)}",
        candidates=[*first_section_ids, *rule_ids],
    )


def _make_us_code_error(db: Database, code_citation: str) -> KnowledgeError:
    citation_like_pattern = f'%"{code_citation}"%'
    citing_ids = [
        record_id
        for source_name in ("statute_compilations", "cfr_sections")
        for record_id in _list_ids(
            db,
            f"""SELECT id FROM {source_name}
                WHERE record ->> 'usc_references' LIKE ? AND status = 'active'
                ORDER BY id LIMIT ?""",
            (citation_like_pattern, _MAX_LISTED_RECORDS),
        )
    ]
    not_covered_text = (
        f"The U.S. Code itself is not covered, so {code_citation} cannot be fetched. The laws "
        "it is made of are in statute_compilations and public_laws"
    )
    if not citing_ids:
        return RecordNotFound(
            f'{not_covered_text}; none loaded here names it: `search` for "{code_citation}"',
            source="statute_compilations",
        )
    return RecordNotFound(
        f"{not_covered_text}; these records name it: {_quote_ids(citing_ids)}",
        source="statute_compilations",
        candidates=citing_ids,
    )


def _list_ids(db: Database, select_sql: str, sql_values: Sequence[object]) -> list[str]:
    return [id_row["id"] for id_row in db.execute(select_sql, tuple(sql_values))]


def _quote_ids(record_ids: Sequence[str]) -> str:
    return ", ".join(f"`{record_id}`" for record_id in record_ids)
