"""Reads reports of the Congressional Research Service, as api.congress.gov gives them in JSON."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bill_links, find_law_links
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.formats.parts.xml import parse_iso_date, strip_html
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    RecordText,
    SearchableFields,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.ids import (
    BILL_TYPES,
    make_bill_id,
    make_law_id,
    parse_federal_id,
)
from readingroom.bases.federal.schema.records import CrsReport, LinkKind

PUBLISHER = "Congressional Research Service"


class CrsReportLoader:
    """`/crsreport/R47892`: a report; `/crsreport`: a list, which knows less of each."""

    format_id: ClassVar[str] = "crs/4"
    record_source_names: ClassVar[tuple[str, ...]] = ("crs_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.lstrip()[:1] == b"{"
            and b'"CRSReport' in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        file_data = json.loads(raw_file.data)
        if report_data := file_data.get("CRSReport"):
            for topic_name in drop_repeated_topics(
                _list_field_values(report_data, "topics", "topic")
            ):
                yield build_topic(topic_name, file_stamp)
            yield _build_report(report_data, file_stamp, is_partial=False)
        for report_data in file_data.get("CRSReports") or ():
            # A list has no summaries: it must not replace a report that was read by itself.
            yield _build_report(report_data, file_stamp, is_partial=True)


def _build_report(
    report_data: dict[str, Any], file_stamp: FileStamp, *, is_partial: bool
) -> ParsedRecord:
    report_id = parse_federal_id(f"crs:{report_data['id']}").id
    report_title = " ".join(report_data["title"].split())
    published_at, updated_at = (
        parse_iso_date(report_data.get("publishDate")),
        report_data.get("updateDate"),
    )
    topic_names = _list_field_values(report_data, "topics", "topic")
    related_items = report_data.get("relatedMaterials") or []
    evidence_by_bill_id, evidence_by_law_id = (
        dict(_find_related_bills(related_items)),
        dict(_find_related_laws(related_items)),
    )
    summary_text = strip_html(report_data.get("summary") or "")
    report_record = CrsReport(
        id=report_id,
        title=report_title,
        type=(report_data.get("contentType") or "").lower() or None,
        archived=(report_data.get("status") or "").lower() == "archived",
        version=report_data.get("version"),
        updated_at=updated_at,
        authors=_list_field_values(report_data, "authors", "author"),
        topics=topic_names,
        bills=list(evidence_by_bill_id),
        laws=list(evidence_by_law_id),
        pdf_url=_find_pdf_url(report_data),
        characters=len(summary_text),
        **build_citation_fields(
            file_stamp,
            url=f"https://www.congress.gov/crs-product/{report_id}",
            org=PUBLISHER,
            cite=f"{report_title}, CRS {report_id}",
            published_at=published_at,
            raw_sha256=hash_item(report_data),
        ),
    )
    type_facet_values = [report_record.type] if report_record.type else []
    return ParsedRecord(
        report_record,
        is_partial=is_partial,
        searchable_fields=SearchableFields(f"{report_title}, CRS {report_id}"),
        values_by_facet={
            "type": type_facet_values,
            "topic": topic_names,
            "bill": report_record.bills,
        },
        text=RecordText(
            "text",
            summary_text,
            report_title,
            report_record.url,
            report_record.raw_sha256,
            dated=published_at,
        )
        if summary_text
        else None,
        links=[
            RecordLink(LinkKind.CRS_REPORT, related_record_id, f"relatedMaterials: {evidence_text}")
            for related_record_id, evidence_text in (
                evidence_by_bill_id | evidence_by_law_id
            ).items()
        ]
        + [
            *_find_title_links(report_title, published_at),
            *build_topic_links(drop_repeated_topics(topic_names), "topics"),
        ],
        revision=updated_at,
    )


def _find_title_links(report_title: str, published_at: str | None) -> Iterator[RecordLink]:
    """The bills and laws in a title; of which Congress a bill is, the report's date says."""
    yield from find_law_links(report_title, LinkKind.CRS_REPORT, "title")
    if published_at:
        yield from find_bill_links(
            report_title, get_congress_on(published_at), LinkKind.CRS_REPORT, "title"
        )


def _list_field_values(
    report_data: dict[str, Any], list_field_name: str, value_field_name: str
) -> list[str]:
    """`[{"topic": "Taxation"}]` as `["Taxation"]`."""
    return [
        list_item[value_field_name].strip()
        for list_item in report_data.get(list_field_name) or ()
        if list_item.get(value_field_name)
    ]


def _find_related_bills(related_items: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Ids, each with how the file writes it."""
    for related_item in related_items:
        if (bill_type := (related_item.get("type") or "").lower()) in BILL_TYPES:
            yield (
                make_bill_id(related_item["congress"], bill_type, related_item["number"]),
                _describe_related_item(related_item),
            )


def _find_related_laws(related_items: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for related_item in related_items:
        if (law_type := (related_item.get("type") or "").upper()) in ("PUB", "PRIV"):
            yield (
                make_law_id(
                    f"{related_item['congress']}-{related_item['number']}",
                    is_private=law_type == "PRIV",
                ),
                _describe_related_item(related_item),
            )


def _describe_related_item(related_item: dict[str, Any]) -> str:
    return ", ".join(
        f"{field_name} {related_item[field_name]}" for field_name in ("type", "number", "congress")
    )


def _find_pdf_url(report_data: dict[str, Any]) -> str | None:
    return next(
        (
            format_data.get("url")
            for format_data in report_data.get("formats") or ()
            if format_data.get("format") == "PDF"
        ),
        None,
    )
