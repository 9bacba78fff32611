"""Single federal records, made up field by field and written through the loader's own writer."""

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from readingroom.bases.federal import store
from readingroom.bases.federal.load.writer import Writer
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.records import Amendment, Legislator
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME

FORMAT = "benchmark/1"
_WITHDRAWN_AT = "2026-01-01T00:00:00Z"


def amendment(
    number: int,
    title: str,
    day: str | None = "2025-01-01",
    *,
    congress: int = 119,
    facets: dict[str, Sequence[str]] | None = None,
    revision: str = "",
) -> ParsedRecord:
    """An amendment that is found by the words of its title."""
    record = Amendment(
        id=f"samdt:{congress}:{number}",
        title=title,
        congress=congress,
        type="samdt",
        number=number,
        chamber="senate",
        purpose=title,
        **_cite(day, title),
    )
    return ParsedRecord(
        record,
        searchable_fields=SearchableFields(title),
        values_by_facet=facets or {},
        revision=revision or None,
    )


def person(number: int, name: str, *, is_current: bool = True) -> ParsedRecord:
    """A member of Congress who is found by a name."""
    record = Legislator(
        id=f"X{number:06}",
        title=name,
        name=name,
        chamber="house",
        party="D",
        state="OH",
        current=is_current,
        **_cite("2025-01-03", name),
    )
    return ParsedRecord(record, names=(name,))


def _cite(day: str | None, cite: str) -> dict[str, Any]:
    file_stamp = FileStamp("2026-01-01T00:00:00Z", hash_item([day, cite]), day)
    return build_citation_fields(
        file_stamp, url="https://www.congress.gov/x", org="GPO", cite=cite, published_at=day
    )


def write_records(place: store.FederalPlace, *records: ParsedRecord) -> int:
    """Write records as one file; return how many say something new."""
    store.prepare_records(place)
    with closing(store.connect(place, writing=True)) as db:
        writer = Writer(db)
        with writer.transaction():
            written = writer.put_records(records, FORMAT).changed_count
            writer.update_source_counts()
    return written


def withdraw(place: store.FederalPlace, source: str, record_id: str) -> None:
    with closing(store.connect(place, writing=True)) as db:
        writer = Writer(db)
        with writer.transaction():
            writer.withdraw_record(SOURCES_BY_NAME[source], record_id, _WITHDRAWN_AT, "gone", None)
