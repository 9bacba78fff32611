"""Records and their texts as answers: bills by version, any record by its id."""

from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json, to_json

from readingroom.bases.federal import store
from readingroom.bases.federal.models import BillText, RecordList
from readingroom.bases.federal.query.links import count_links_and_sponsors
from readingroom.bases.federal.query.sections import (
    OUTLINE_SECTION_NAME,
    compare_versions,
    format_outline,
    get_section,
)
from readingroom.bases.federal.query.votes import describe_roll_call, read_party_tallies
from readingroom.bases.federal.schema.ids import FederalId
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME, Source
from readingroom.core.errors import InvalidArguments, RecordNotFound
from readingroom.protocol.search import Citation, Fetched
from readingroom.storage.database import Database

_METADATA_FIELDS = (
    "published_at",
    "source_org",
    "citation_string",
    "as_of",
    "loaded_up_to",
    "retrieved_at",
)


_MAX_PIECE_CHARS, _MIN_PIECE_CHARS = 12_000, 2_000
"""Characters of a text in one answer: with the record beside it, what a reader can take in."""


def read_record_json(db: Database, record_source: Source, record_id: str) -> str:
    """Return a record as JSON; of the Federal Register, also one of the President's documents.

    Raise RecordNotFound if it is not loaded, and RecordGone if it was withdrawn.
    """
    try:
        return store.read_record_json(db, record_source, record_id)
    except RecordNotFound as missing:
        if record_source.name == "committee_reports":
            raise _name_loaded_parts(db, record_id, missing) from missing
        # A document number alone does not say that the document is the President's.
        if record_source.name != "federal_register":
            raise
        try:
            return store.read_record_json(
                db, SOURCES_BY_NAME["presidential_documents"], f"presdoc:{record_id}"
            )
        except RecordNotFound:
            raise missing from None  # name the id that was requested


def _name_loaded_parts(db: Database, report_id: str, missing: RecordNotFound) -> RecordNotFound:
    """Return an error that names the parts of a report that are loaded, if any are."""
    part_rows = db.execute(
        """SELECT id FROM committee_reports WHERE id >= ? AND id < ? AND status = 'active'
           ORDER BY id LIMIT 20""",
        (f"{report_id}-", f"{report_id}."),
    )
    part_ids = [part_row["id"] for part_row in part_rows]
    if not part_ids:
        return missing
    return RecordNotFound(
        f"{missing.message}, but parts of it are: {', '.join(part_ids)}",
        source="committee_reports",
        candidates=part_ids,
    )


def check_offset(text_offset: int, total_chars: int) -> None:
    """Raise InvalidArguments for an offset behind the end of a text."""
    if text_offset and text_offset >= total_chars:
        problem_text = f"{text_offset} is behind the end: this text has {total_chars} characters"
        raise InvalidArguments([{"field": "offset", "message": problem_text}])


def get_versioned_record_id(db: Database, parsed_id: FederalId) -> FederalId:
    """Return which record has the versions of a text: a bill, or the compilation of a law.

    Raise RecordNotFound for an id of another source, and for a law of which none is loaded.
    """
    if parsed_id.source in ("bills", "statute_compilations"):
        return parsed_id
    if parsed_id.source != "public_laws":
        raise RecordNotFound(
            f"{parsed_id.id} is an id of {parsed_id.source}; versions are kept of bills and of "
            "statute compilations",
            source=parsed_id.source,
        )
    record_row = db.execute(
        "SELECT id FROM statute_compilations WHERE law_id = ? AND status = 'active'",
        (parsed_id.id,),
    ).fetchone()
    if record_row is None:
        raise RecordNotFound(
            f"No compilation of {parsed_id.id} is loaded; `fetch` gives the law as it was passed",
            source="statute_compilations",
        )
    return FederalId("statute_compilations", record_row["id"])


def read_bill_text(
    db: Database,
    parsed_id: FederalId,
    version_code: str | None,
    text_offset: int,
    section_label: str | None = None,
    compare_with: str | None = None,
) -> BillText:
    """Return a version of the text of a bill or a compiled law, or the newest.

    With `section_label` one section of it, with `compare_with` what differs from that version.
    Raise RecordNotFound if no such text is loaded, InvalidArguments if there is no such section.
    """
    versioned_id = get_versioned_record_id(db, parsed_id)
    versioned_record_id = versioned_id.id
    record_fields = store.read_record(db, SOURCES_BY_NAME[versioned_id.source], versioned_record_id)
    version_codes = store.list_text_parts(db, versioned_record_id)
    folded_version_code = version_code.lower() if version_code else next(iter(version_codes), None)
    stored_text = _read_version(db, record_fields, folded_version_code, version_code, version_codes)
    body_text, older_stored_text = stored_text.body, None
    if compare_with:
        older_stored_text = _read_version(
            db, record_fields, compare_with.lower(), compare_with, version_codes
        )
        body_text = _compare_texts(older_stored_text.body, body_text, section_label)
    elif section_label:
        body_text = get_section_text(body_text, section_label)
    check_offset(text_offset, len(body_text))
    end_offset = text_offset + _MAX_PIECE_CHARS
    next_offset = end_offset if end_offset < len(body_text) else None
    query_params = {
        "version": stored_text.part,
        "section": section_label,
        "compare_with": older_stored_text.part if older_stored_text else None,
        "offset": next_offset,
    }
    query_string = urlencode(
        {
            param_name: param_value
            for param_name, param_value in query_params.items()
            if param_value is not None
        }
    )
    return BillText(
        bill_id=versioned_record_id,
        version=stored_text.part,
        stage=stored_text.stage,
        dated=stored_text.dated,
        title=stored_text.title,
        text=body_text[text_offset:end_offset],
        offset=text_offset,
        total_chars=len(body_text),
        next_offset=next_offset,
        more_url=f"/v1/bills/{versioned_record_id}/body?{query_string}" if next_offset else None,
        section=section_label,
        compared_with=older_stored_text.part if older_stored_text else None,
        versions=version_codes,
        url=stored_text.url,
        citation=Citation.model_validate(record_fields["citation"]),
        loaded_up_to=record_fields["loaded_up_to"],
    )


def _read_version(
    db: Database,
    record_fields: dict[str, Any],
    folded_version_code: str | None,
    version_code: str | None,
    version_codes: list[str],
) -> store.StoredText:
    stored_text = (
        store.read_text(db, record_fields["id"], folded_version_code)
        if folded_version_code
        else None
    )
    if stored_text is None:
        loaded_versions_hint = f": loaded are {', '.join(version_codes)}" if version_codes else ""
        version_phrase = f" in version {version_code!r}" if version_code else ""
        raise RecordNotFound(
            f"No text of {record_fields['id']}{version_phrase} is loaded{loaded_versions_hint}",
            versions=version_codes,
            url=record_fields["url"],
        )
    return stored_text


def _compare_texts(older_text: str, newer_text: str, section_label: str | None) -> str:
    if section_label and section_label.lower() != OUTLINE_SECTION_NAME:
        older_text, newer_text = (
            get_section_text(older_text, section_label),
            get_section_text(newer_text, section_label),
        )
    return compare_versions(older_text, newer_text)


def get_section_text(body_text: str, section_label: str) -> str:
    """Return one section of a text, or the list of its sections for `outline`."""
    if section_label.strip().lower() == OUTLINE_SECTION_NAME:
        return format_outline(body_text)
    found_section = get_section(body_text, section_label)
    return body_text[found_section.start_offset : found_section.end_offset].rstrip()


def fetch_record(
    db: Database,
    record_source: Source,
    record_id: str,
    text_offset: int,
    section_label: str | None = None,
) -> Fetched:
    """Return a record with as much of its text, or of a section of it, as one answer contains."""
    record_fields = from_json(read_record_json(db, record_source, record_id))
    record_id = record_fields["id"]
    text_part_names = store.list_text_parts(db, record_id)
    stored_text = store.read_text(db, record_id, text_part_names[0]) if text_part_names else None
    whole_text = stored_text.body if stored_text else _describe_record(db, record_fields)
    if section_label:
        whole_text = get_section_text(whole_text, section_label)
    check_offset(text_offset, len(whole_text))
    link_count_by_kind = count_links_and_sponsors(db, record_id)
    end_offset = text_offset + _choose_piece_length(record_fields, text_offset)
    next_offset = end_offset if end_offset < len(whole_text) else None
    return Fetched(
        id=record_id,
        title=record_fields["title"],
        text=whole_text[text_offset:end_offset],
        url=record_fields["url"],
        metadata={
            "source": record_fields["source"],
            **{field_name: record_fields.get(field_name) for field_name in _METADATA_FIELDS},
        },
        source=record_fields["source"],
        citation=Citation.model_validate(record_fields["citation"]),
        record=record_fields,
        offset=text_offset,
        total_chars=len(whole_text),
        next_offset=next_offset,
        more_url=_build_fetch_url(record_id, section_label, next_offset) if next_offset else None,
        links=link_count_by_kind,
        links_url=f"/v1/{SOURCES_BY_NAME[record_fields['source']].slug}/{record_id}/links"
        if link_count_by_kind
        else None,
    )


def _choose_piece_length(record_fields: dict[str, Any], text_offset: int) -> int:
    """Return how much text one answer has: beside a long record less, when it is read first."""
    if text_offset:
        return _MAX_PIECE_CHARS
    return max(_MIN_PIECE_CHARS, _MAX_PIECE_CHARS - len(to_json(record_fields)) // 2)


def _build_fetch_url(record_id: str, section_label: str | None, text_offset: int) -> str:
    query_params = {"id": record_id, "section": section_label, "offset": text_offset}
    stated_params = {
        param_name: param_value
        for param_name, param_value in query_params.items()
        if param_value is not None
    }
    return f"/v1/fetch?{urlencode(stated_params, safe=':')}"


def _describe_record(db: Database, record_fields: dict[str, Any]) -> str:
    if record_fields["source"] == "roll_call_votes":
        tally_by_party = read_party_tallies(db, record_fields)
        roll_call_text = describe_roll_call(record_fields, tally_by_party)
        return f"{_describe_fields(record_fields)}\n\n{roll_call_text}"
    return _describe_fields(record_fields)


def make_fetched_bill_text(text_answer: BillText) -> Fetched:
    """Return a piece of a bill's text in the shape of a fetched record."""
    return Fetched(
        id=text_answer.bill_id,
        title=text_answer.title,
        text=text_answer.text,
        url=text_answer.url,
        metadata={"source": "bills", "version": text_answer.version, "stage": text_answer.stage},
        source="bills",
        citation=text_answer.citation,
        record={"versions": text_answer.versions},
        offset=text_answer.offset,
        total_chars=text_answer.total_chars,
        next_offset=text_answer.next_offset,
        more_url=text_answer.more_url,
        links={},
        links_url=None,
    )


def make_fetched_list(list_path: str, record_list: RecordList, more_url: str | None) -> Fetched:
    """Return a page of a list in the shape of a fetched record: a line for each item."""
    result_lines = [
        " | ".join(f"{field_name}: {field_value}" for field_name, field_value in result_row.items())
        for result_row in record_list.results
    ]
    list_text = "\n".join(result_lines) or f"Nothing here. {record_list.note or ''}".rstrip()
    list_title = (
        f"{record_list.part or record_list.source} of {record_list.id}"
        if record_list.id
        else f"List of {record_list.source}"
    )
    return Fetched(
        id=record_list.id or list_path,
        title=list_title,
        text=list_text,
        url=list_path,
        metadata={
            "source": record_list.source,
            "total": record_list.total,
            "loaded_up_to": record_list.loaded_up_to,
        },
        source=record_list.source,
        citation=Citation(citation_string=list_title, url=list_path),
        record=record_list.model_dump(),
        total_chars=len(list_text),
        more_url=more_url,
        links={},
        links_url=None,
    )


def _describe_fields(record_fields: dict[str, Any]) -> str:
    """Return the text of a record that has none of its own, made of its fields."""
    bill_summary, latest_action = (
        record_fields.get("summary") or {},
        record_fields.get("latest_action") or {},
    )
    paragraph_texts = (
        record_fields["title"],
        record_fields.get("abstract"),
        record_fields.get("description"),
        bill_summary.get("text"),
        record_fields.get("jurisdiction"),
        f"Latest action ({latest_action.get('date')}): {latest_action['text']}"
        if latest_action
        else None,
        record_fields["citation_string"],
    )
    return "\n\n".join(paragraph_text for paragraph_text in paragraph_texts if paragraph_text)
