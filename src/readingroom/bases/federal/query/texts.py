"""Records and their texts as answers: bills by version, any record by its id."""

from typing import Any

from pydantic_core import from_json

from readingroom.bases.federal import store
from readingroom.bases.federal.models import BillText, RecordList
from readingroom.bases.federal.query.links import count_links
from readingroom.bases.federal.query.votes import describe_roll_call, tally_by_party
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


def read_bill_text(db: Database, id: str, version: str | None, offset: int) -> BillText:
    """Return a version of a bill's text, or the newest; raise RecordNotFound if none is loaded."""
    bill = store.read_record(db, BY_NAME["bills"], id)
    versions = store.list_texts(db, id)
    part = version.lower() if version else next(iter(versions), None)
    text = store.read_text(db, id, part) if part else None
    if text is None:
        raise RecordNotFound(
            f"No text of {id}{f' in version {version!r}' if version else ''} is loaded",
            versions=versions,
            url=bill["url"],
        )
    end = offset + MAX_TEXT_CHARS
    next_offset = end if end < len(text.body) else None
    more_url = f"/v1/bills/{id}/body?version={text.part}&offset={next_offset}"
    return BillText(
        bill_id=id,
        version=text.part,
        stage=text.stage,
        dated=text.dated,
        title=text.title,
        text=text.body[offset:end],
        offset=offset,
        total_chars=len(text.body),
        next_offset=next_offset,
        more_url=more_url if next_offset else None,
        versions=versions,
        url=text.url,
        citation=Citation.model_validate(bill["citation"]),
        loaded_up_to=bill["loaded_up_to"],
    )


def fetch_record(db: Database, source: Source, id: str, offset: int) -> Fetched:
    """Return a record with as much of its text as one answer contains."""
    record = from_json(read_record_json(db, source, id))
    id = record["id"]
    parts = store.list_texts(db, id)
    stored = store.read_text(db, id, parts[0]) if parts else None
    text = stored.body if stored else _describe_any(db, record)
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
        more_url=f"/v1/fetch?id={id}&offset={next_offset}" if next_offset else None,
        links=links,
        links_url=f"/v1/{BY_NAME[record['source']].path}/{id}/links" if links else None,
    )


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
