"""What a loader yields: a record, the rows that belong to it, and its searchable text."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from readingroom.bases.federal.schema.columns import ComputedColumnValues, read_column_values
from readingroom.bases.federal.schema.lengths import check_value_lengths
from readingroom.bases.federal.schema.records import LinkKind, Record
from readingroom.protocol.search import Citation

ChildRows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class SearchableFields:
    """The searchable description of a record; search weighs each part differently."""

    title: str
    abstract: str = ""
    action: str = ""


@dataclass(frozen=True)
class RecordText:
    """The text of a record, or one version of it; `part` distinguishes versions."""

    part: str
    body: str
    title: str
    url: str
    raw_sha256: str
    stage: str | None = None
    dated: str | None = None


@dataclass(frozen=True)
class RecordLink:
    """A relation of a record to another, with the words or the field that state it."""

    kind: LinkKind
    id: str
    """Canonical id of the other record, which need not be loaded yet."""
    evidence: str


@dataclass(frozen=True, slots=True)
class PackedRecord:
    """A record as it is stored, in JSON, and the fields of it that a load looks at.

    It goes from one process to another at a third of what the model costs.
    """

    id: str
    source: str
    title: str
    published_at: str | None
    retrieved_at: str
    raw_sha256: str
    as_of: str | None
    short_titles: Sequence[str]
    json: str
    column_values: ComputedColumnValues | None = None
    """What its columns have, where the database is given them."""

    @classmethod
    def pack(cls, full_record: Record, *, includes_columns: bool = False) -> "PackedRecord":
        """Pack a record. Raise `ValueTooLong` for one that could not be looked up."""
        column_values = read_column_values(full_record)
        check_value_lengths(full_record.id, full_record.source, column_values)
        return cls(
            full_record.id,
            full_record.source,
            full_record.title,
            full_record.published_at,
            full_record.retrieved_at,
            full_record.raw_sha256,
            full_record.as_of,
            getattr(full_record, "short_titles", ()),
            dump_record_json(full_record),
            column_values if includes_columns else None,
        )


AnyRecord = Record | PackedRecord


def dump_record_json(full_record: AnyRecord) -> str:
    """Return the JSON that is stored of a record."""
    if isinstance(full_record, PackedRecord):
        return full_record.json
    # That date is the source's, not the record's: it is added when the record is read.
    return full_record.model_dump_json(exclude={"loaded_up_to", *full_record.list_unknown_fields()})


def find_column_values(full_record: AnyRecord) -> ComputedColumnValues | None:
    """Return what the columns of a record have; None of one that was packed without them."""
    if isinstance(full_record, PackedRecord):
        return full_record.column_values
    return read_column_values(full_record)


@dataclass(frozen=True)
class ParsedRecord:
    """A record as one file describes it.

    A partial one comes from a file that knows less than the record's own source: it creates the
    record when there is none, and otherwise leaves it as it is.
    """

    record: AnyRecord
    is_partial: bool = False
    is_fallback: bool = False
    """Whether a partial record says what the record's own source says better: it is merged with
    other such records, and left out where that source is loaded."""
    searchable_fields: SearchableFields | None = None
    text: RecordText | None = None
    values_by_facet: Mapping[str, Sequence[str]] = field(default_factory=dict)
    names: Sequence[str] = ()
    child_rows_by_table: Mapping[str, ChildRows] = field(default_factory=dict)
    """Rows of child tables, by table, each without the id of the record it belongs to."""
    links: Sequence[RecordLink] = ()
    """All are replaced when the same loader reads the record, or this part of it, again."""
    revision: str | None = None
    """The revision that the source states; an older one never replaces a newer one."""

    @property
    def is_mention(self) -> bool:
        """Whether it says nothing but that there is such a record."""
        return self.is_partial and not (self.text or self.links or self.child_rows_by_table)


@dataclass(frozen=True)
class FileProblem:
    """Something that a file names and that was not loaded; the message says what to do."""

    message: str


@dataclass(frozen=True)
class FileStamp:
    """When a file was read, its hash and its date: part of the citation of each of its records."""

    retrieved_at: str
    sha256: str
    file_date: str | None = None
    """The day whose facts the whole file tells, where that is known."""


def build_citation_fields(
    file_stamp: FileStamp,
    *,
    url: str,
    org: str,
    cite: str,
    published_at: str | None,
    as_of: str | None = None,
    raw_sha256: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a record that say where it comes from.

    `as_of` is the date the file states for this record; without one it is the file's own, or else
    the day the record was published.
    """
    citation_string = f"{cite} ({published_at or 'n.d.'})"
    as_of = as_of or file_stamp.file_date or published_at
    return {
        "as_of": as_of[:10] if as_of else None,
        "url": url,
        "source_url": url,
        "source_org": org,
        "published_at": published_at,
        "retrieved_at": file_stamp.retrieved_at,
        "raw_sha256": raw_sha256 or file_stamp.sha256,
        "citation_string": citation_string,
        "citation": Citation(citation_string=citation_string, url=url),
    }


def hash_item(item_data: Any) -> str:
    """Return the hash of one item of a file, which other items of the file do not change."""
    item_json = json.dumps(item_data, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(item_json.encode()).hexdigest()
