"""Reads dockets: the JSON:API of Regulations.gov, version 4."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.xml import parse_iso_date
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import make_docket_id
from readingroom.bases.federal.schema.records import Docket

_UNASSIGNED_RIN = "Not Assigned"


class DocketLoader:
    """A docket, or a page of them, as /v4/dockets gives it."""

    format_id: ClassVar[str] = "dockets/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("regulations_dot_gov_dockets",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        first_bytes = file_start_reader.first_bytes
        return (
            first_bytes.lstrip()[:1] == b"{"
            and b'"dockets"' in first_bytes
            and b'"attributes"' in first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        docket_or_dockets = json.loads(raw_file.data)["data"]
        for docket_data in (
            docket_or_dockets if isinstance(docket_or_dockets, list) else [docket_or_dockets]
        ):
            if docket_data["type"] == "dockets":
                yield _build_docket(docket_data["id"], docket_data["attributes"], file_stamp)


def _build_docket(
    regulations_docket_number: str, docket_attributes: dict[str, Any], file_stamp: FileStamp
) -> ParsedRecord:
    # An agency may leave a docket without a title.
    docket_title = docket_attributes.get("title") or regulations_docket_number
    modified_at = docket_attributes.get("modifyDate") or docket_attributes.get("lastModifiedDate")
    rule_id_number = docket_attributes.get("rin")
    docket_record = Docket(
        id=make_docket_id(regulations_docket_number),
        title=docket_title,
        agency=docket_attributes.get("agencyId"),
        type=docket_attributes.get("docketType"),
        abstract=docket_attributes.get("dkAbstract"),
        rin=rule_id_number if rule_id_number != _UNASSIGNED_RIN else None,
        keywords=docket_attributes.get("keywords") or [],
        program=docket_attributes.get("program"),
        organization=docket_attributes.get("organization"),
        modified_at=modified_at,
        **build_citation_fields(
            file_stamp,
            url=f"https://www.regulations.gov/docket/{regulations_docket_number}",
            org="Regulations.gov",
            cite=f"Docket {regulations_docket_number}, {docket_title}",
            published_at=parse_iso_date(modified_at),
            raw_sha256=hash_item(docket_attributes),
        ),
    )
    # A page of results has no abstract: it makes a docket known, and changes none that is.
    is_search_result = "modifyDate" not in docket_attributes
    docket_names = (
        docket_title,
        regulations_docket_number,
        docket_attributes.get("shortTitle") or "",
    )
    return ParsedRecord(
        docket_record, is_partial=is_search_result, names=docket_names, revision=modified_at
    )
