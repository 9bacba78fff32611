"""Reads dockets: the JSON:API of Regulations.gov, version 4."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.xml import parse_iso_date
from readingroom.bases.federal.schema.entries import (
    ParsedRecord,
    Provenance,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_docket_id
from readingroom.bases.federal.schema.records import Docket

_NO_RIN = "Not Assigned"


class Dockets:
    """A docket, or a page of them, as /v4/dockets gives it."""

    format_id: ClassVar[str] = "dockets/1"
    sources: ClassVar[tuple[str, ...]] = ("regulations_dot_gov_dockets",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        head = start.head
        return head.lstrip()[:1] == b"{" and b'"dockets"' in head and b'"attributes"' in head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        data = json.loads(file.data)["data"]
        for item in data if isinstance(data, list) else [data]:
            if item["type"] == "dockets":
                yield _build_docket(item["id"], item["attributes"], provenance)


def _build_docket(number: str, data: dict[str, Any], provenance: Provenance) -> ParsedRecord:
    # An agency may leave a docket without a title.
    title = data.get("title") or number
    modified = data.get("modifyDate") or data.get("lastModifiedDate")
    rin = data.get("rin")
    record = Docket(
        id=make_docket_id(number),
        title=title,
        agency=data.get("agencyId"),
        type=data.get("docketType"),
        abstract=data.get("dkAbstract"),
        rin=rin if rin != _NO_RIN else None,
        keywords=data.get("keywords") or [],
        program=data.get("program"),
        organization=data.get("organization"),
        modified_at=modified,
        **build_citation_fields(
            provenance,
            url=f"https://www.regulations.gov/docket/{number}",
            org="Regulations.gov",
            cite=f"Docket {number}, {title}",
            published_at=parse_iso_date(modified),
            raw_sha256=hash_item(data),
        ),
    )
    # A page of results has no abstract: it makes a docket known, and changes none that is.
    is_summary = "modifyDate" not in data
    names = (title, number, data.get("shortTitle") or "")
    return ParsedRecord(record, partial=is_summary, names=names, revision=modified)
