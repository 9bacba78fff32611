"""Reads cost estimates of the Congressional Budget Office: its own feed, and what bills name.

A bill's status names its estimates by title and address; CBO's feed describes them. Where both are
loaded the feed is right.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import ClassVar
from xml.etree.ElementTree import Element

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.xml import find_text, hash_element, parse_xml
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    SearchableFields,
    build_citation_fields,
)
from readingroom.bases.federal.schema.ids import parse_estimate_id, parse_federal_id
from readingroom.bases.federal.schema.records import CboEstimate, LinkKind
from readingroom.core.errors import UnrecognizedId

PUBLISHER = "Congressional Budget Office"
_BILL_NUMBER_PATTERN = re.compile(r"\b(?:H|S)\.\s?(?:(?:R|J|Con)\.?\s?)?(?:Res\.\s?)?\d+", re.ASCII)


class CostEstimateLoader:
    """`119congress-cost-estimates.xml`: the estimates of a Congress, as CBO lists them."""

    format_id: ClassVar[str] = "cbo/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("cbo_cost_estimates",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            b"<response>" in file_start_reader.first_bytes
            and b"cbo.gov/" in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        for item_element in parse_xml(raw_file.data).findall("item"):
            yield _parse_feed_item(item_element, file_stamp)


def build_estimate_record(
    url: str,
    estimate_title: str,
    published_at: str | None,
    bill_ids: list[str],
    file_stamp: FileStamp,
    *,
    estimate_description: str | None = None,
    raw_sha256: str | None = None,
    is_partial: bool = False,
) -> ParsedRecord:
    """Return the record of an estimate, whoever describes it; the URL has its number.

    Raise ValueError for a URL that is not of a publication of CBO.
    """
    estimate_id = parse_estimate_id(url)
    if estimate_id is None:
        raise ValueError(f"{url!r} is not the address of a publication of CBO")
    congress = get_congress_on(published_at) if published_at else None
    estimate_record = CboEstimate(
        id=estimate_id,
        title=estimate_title,
        congress=congress,
        description=estimate_description,
        bills=bill_ids,
        **build_citation_fields(
            file_stamp,
            url=url,
            org=PUBLISHER,
            cite=f"CBO, {estimate_title}, Publication {estimate_id.partition(':')[2]}",
            published_at=published_at,
            raw_sha256=raw_sha256,
        ),
    )
    values_by_facet = {"congress": [str(congress)] if congress else [], "bill": bill_ids}
    return ParsedRecord(
        estimate_record,
        is_partial=is_partial,
        searchable_fields=SearchableFields(estimate_title, estimate_description or ""),
        values_by_facet=values_by_facet,
        # What a bill's file says of an estimate is a link of the bill.
        links=()
        if is_partial
        else [
            RecordLink(LinkKind.COST_ESTIMATE, bill_id, f"Title: {estimate_title}")
            for bill_id in bill_ids
        ],
    )


def _parse_feed_item(item_element: Element, file_stamp: FileStamp) -> ParsedRecord:
    published_at = _parse_feed_date(find_text(item_element, "Date"))
    estimate_title = find_text(item_element, "Title") or "Cost estimate"
    text_naming_bills = f"{find_text(item_element, 'Bill_Number') or ''} {estimate_title}"
    return build_estimate_record(
        find_text(item_element, "Link") or "",
        estimate_title,
        published_at,
        _find_estimated_bill_ids(text_naming_bills, get_congress_on(published_at))
        if published_at
        else [],
        file_stamp,
        estimate_description=find_text(item_element, "Description"),
        raw_sha256=hash_element(item_element),
    )


def _find_estimated_bill_ids(text_naming_bills: str, congress: int) -> list[str]:
    """The bills a text names; CBO leaves out the Congress, which the date tells."""
    bill_ids: dict[str, None] = {}
    for bill_match in _BILL_NUMBER_PATTERN.finditer(text_naming_bills):
        try:
            bill_ids[parse_federal_id(bill_match[0], congress).id] = None
        except UnrecognizedId:
            continue
    return list(bill_ids)


def _parse_feed_date(printed_date: str | None) -> str | None:
    """`Fri, 11 Sep 2026 17:00:00 -0400` as a date; what cannot be read is no date."""
    try:
        return datetime.strptime(printed_date or "", "%a, %d %b %Y %H:%M:%S %z").date().isoformat()
    except ValueError:
        return None
