"""Records and their texts as answers: bills by version, any record by its id."""

from typing import Any
from urllib.parse import urlencode

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.models import BillText, RecordList
from readingroom.bases.federal.query.links import count_links
from readingroom.bases.federal.query.sections import (
    OUTLINE,
    compare_versions,
    find_section,
    format_outline,
)
from readingroom.bases.federal.query.votes import describe_roll_call, tally_by_party
from readingroom.bases.federal.schema.ids import FederalId
from readingroom.bases.federal.schema.sources import BY_NAME, Source
from readingroom.core.errors import RecordNotFound
from readingroom.protocol.search import MAX_TEXT_CHARS, Citation, Fetched
from readingroom.storage.database import Database

_METADATA = (
    "published_at",
    "source_org",
    "citation_string",
    "as_of",
    "loaded_up_to",
    "retrieved_at",
)


def read_record_json(db: Database, source: Source, id: str) -> str:
    """Return a record as JSON; of the Federal Register, also one of the President's documents.

    Raise RecordNotFound if it is not loaded, and RecordGone if it was withdrawn.
    """
    try:
        return store.read_record_json(db, source, id)
    except RecordNotFound as missing:
        # A document number alone does not say that the document is the President's.
        if source.name != "federal_register":
            raise
        try:
            return store.read_record_json(db, BY_NAME["presidential_documents"], f"presdoc:{id}")
        except RecordNotFound:
            raise missing from None  # name the id that was requested


def find_versioned_record(db: Database, parsed: FederalId) -> FederalId:
    """Return which record has the versions of a text: a bill, or the compilation of a law.

    Raise RecordNotFound for an id of another source, and for a law of which none is loaded.
    """
    if parsed.source in ("bills", "statute_compilations"):
        return parsed
    if parsed.source != "public_laws":
        raise RecordNotFound(
            f"{parsed.id} is an id of {parsed.source}; versions are kept of bills and of "
            "statute compilations",
            source=parsed.source,
        )
    row = db.execute(
        "SELECT id FROM statute_compilations WHERE law_id = ? AND status = 'active'", (parsed.id,)
    ).fetchone()
    if row is None:
        raise RecordNotFound(
            f"No compilation of {parsed.id} is loaded; `fetch` gives the law as it was passed",
            source="statute_compilations",
        )
    return FederalId("statute_compilations", row["id"])


def read_bill_text(
    db: Database,
    parsed: FederalId,
    version: str | None,
    offset: int,
    section: str | None = None,
    compare_with: str | None = None,
) -> BillText:
    """Return a version of the text of a bill or a compiled law, or the newest.

    With `section` one section of it, with `compare_with` what differs from that older version.
    Raise RecordNotFound if no such text is loaded, InvalidArguments if there is no such section.
    """
    owner = find_versioned_record(db, parsed)
    id = owner.id
    bill = store.read_record(db, BY_NAME[owner.source], id)
    versions = store.list_texts(db, id)
    part = version.lower() if version else next(iter(versions), None)
    text = _read_version(db, bill, part, version, versions)
    body, older = text.body, None
    if compare_with:
        older = _read_version(db, bill, compare_with.lower(), compare_with, versions)
        body = _compare(older.body, body, section)
    elif section:
        body = choose_section(body, section)
    end = offset + MAX_TEXT_CHARS
    next_offset = end if end < len(body) else None
    params = {
        "version": text.part,
        "section": section,
        "compare_with": older.part if older else None,
        "offset": next_offset,
    }
    query = urlencode({name: value for name, value in params.items() if value is not None})
    return BillText(
        bill_id=id,
        version=text.part,
        stage=text.stage,
        dated=text.dated,
        title=text.title,
        text=body[offset:end],
        offset=offset,
        total_chars=len(body),
        next_offset=next_offset,
        more_url=f"/v1/bills/{id}/body?{query}" if next_offset else None,
        section=section,
        compared_with=older.part if older else None,
        versions=versions,
        url=text.url,
        citation=Citation.model_validate(bill["citation"]),
        loaded_up_to=bill["loaded_up_to"],
    )


def _read_version(
    db: Database, bill: dict[str, Any], part: str | None, version: str | None, versions: list[str]
) -> store.StoredText:
    text = store.read_text(db, bill["id"], part) if part else None
    if text is None:
        loaded = f": loaded are {', '.join(versions)}" if versions else ""
        raise RecordNotFound(
            f"No text of {bill['id']}{f' in version {version!r}' if version else ''} is loaded"
            f"{loaded}",
            versions=versions,
            url=bill["url"],
        )
    return text


def _compare(older: str, newer: str, section: str | None) -> str:
    if section and section.lower() != OUTLINE:
        older, newer = choose_section(older, section), choose_section(newer, section)
    return compare_versions(older, newer)


def choose_section(body: str, section: str) -> str:
    """Return one section of a text, or the list of its sections for `outline`."""
    if section.strip().lower() == OUTLINE:
        return format_outline(body)
    found = find_section(body, section)
    return body[found.start : found.end].rstrip()


def fetch_record(
    db: Database, source: Source, id: str, offset: int, section: str | None = None
) -> Fetched:
    """Return a record with as much of its text, or of a section of it, as one answer contains."""
    record = from_json(read_record_json(db, source, id))
    id = record["id"]
    parts = store.list_texts(db, id)
    stored = store.read_text(db, id, parts[0]) if parts else None
    text = stored.body if stored else _describe_any(db, record)
    if section:
        text = choose_section(text, section)
    links = count_links(db, id)
    end = offset + MAX_TEXT_CHARS
    next_offset = end if end < len(text) else None
    return Fetched(
        id=id,
        title=record["title"],
        text=text[offset:end],
        url=record["url"],
        metadata={"source": record["source"], **{name: record.get(name) for name in _METADATA}},
        source=record["source"],
        citation=Citation.model_validate(record["citation"]),
        record=record,
        offset=offset,
        total_chars=len(text),
        next_offset=next_offset,
        more_url=_build_fetch_url(id, section, next_offset) if next_offset else None,
        links=links,
        links_url=f"/v1/{BY_NAME[record['source']].path}/{id}/links" if links else None,
    )


def _build_fetch_url(id: str, section: str | None, offset: int) -> str:
    params = {"id": id, "section": section, "offset": offset}
    named = {name: value for name, value in params.items() if value is not None}
    return f"/v1/fetch?{urlencode(named, safe=':')}"


def _describe_any(db: Database, record: dict[str, Any]) -> str:
    if record["source"] == "roll_call_votes":
        tallies = tally_by_party(db, record["id"])
        return f"{_describe(record)}\n\n{describe_roll_call(record, tallies)}"
    return _describe(record)


def render_bill_text(text: BillText) -> Fetched:
    """Return a piece of a bill's text in the shape of a fetched record."""
    return Fetched(
        id=text.bill_id,
        title=text.title,
        text=text.text,
        url=text.url,
        metadata={"source": "bills", "version": text.version, "stage": text.stage},
        source="bills",
        citation=text.citation,
        record={"versions": text.versions},
        offset=text.offset,
        total_chars=text.total_chars,
        next_offset=text.next_offset,
        more_url=text.more_url,
        links={},
        links_url=None,
    )


def render_list(path: str, page: RecordList, more_url: str | None) -> Fetched:
    """Return a page of a list in the shape of a fetched record: a line for each item."""
    lines = [" | ".join(f"{name}: {value}" for name, value in row.items()) for row in page.results]
    text = "\n".join(lines) or "Nothing here."
    title = f"{page.part or page.source} of {page.id}" if page.id else f"List of {page.source}"
    return Fetched(
        id=page.id or path,
        title=title,
        text=text,
        url=path,
        metadata={"source": page.source, "total": page.total, "loaded_up_to": page.loaded_up_to},
        source=page.source,
        citation=Citation(citation_string=title, url=path),
        record=page.model_dump(),
        total_chars=len(text),
        more_url=more_url,
        links={},
        links_url=None,
    )


def _describe(record: dict[str, Any]) -> str:
    """Return the text of a record that has none of its own, made of its fields."""
    summary, latest = record.get("summary") or {}, record.get("latest_action") or {}
    lines = (
        record["title"],
        record.get("abstract"),
        record.get("description"),
        summary.get("text"),
        record.get("jurisdiction"),
        f"Latest action ({latest.get('date')}): {latest['text']}" if latest else None,
        record["citation_string"],
    )
    return "\n\n".join(line for line in lines if line)
