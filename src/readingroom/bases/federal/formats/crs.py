"""Reads reports of the Congressional Research Service, as api.congress.gov gives them in JSON."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bills, find_laws
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.formats.parts.xml import parse_iso_date, strip_html
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
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

ORG = "Congressional Research Service"


class CrsReports:
    """`/crsreport/R47892`: a report; `/crsreport`: a list, which knows less of each."""

    format_id: ClassVar[str] = "crs/3"
    sources: ClassVar[tuple[str, ...]] = ("crs_reports",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.lstrip()[:1] == b"{" and b'"CRSReport' in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        data = json.loads(file.data)
        if report := data.get("CRSReport"):
            for name in drop_repeated_topics(_list_values(report, "topics", "topic")):
                yield build_topic(name, provenance)
            yield _build_entry(report, provenance, partial=False)
        for report in data.get("CRSReports") or ():
            # A list has no summaries: it must not replace a report that was read by itself.
            yield _build_entry(report, provenance, partial=True)


def _build_entry(data: dict[str, Any], provenance: Provenance, *, partial: bool) -> ParsedRecord:
    id = parse_federal_id(f"crs:{data['id']}").id
    title = " ".join(data["title"].split())
    published, updated = parse_iso_date(data.get("publishDate")), data.get("updateDate")
    topics = _list_values(data, "topics", "topic")
    related = data.get("relatedMaterials") or []
    bills, laws = dict(_find_bills(related)), dict(_find_laws(related))
    body = strip_html(data.get("summary") or "")
    record = CrsReport(
        id=id,
        title=title,
        type=(data.get("contentType") or "").lower() or None,
        archived=(data.get("status") or "").lower() == "archived",
        version=data.get("version"),
        updated_at=updated,
        authors=_list_values(data, "authors", "author"),
        topics=topics,
        bills=list(bills),
        laws=list(laws),
        pdf_url=_find_pdf_url(data),
        characters=len(body),
        **build_citation_fields(
            provenance,
            url=f"https://www.congress.gov/crs-product/{id}",
            org=ORG,
            cite=f"{title}, CRS {id}",
            published_at=published,
            raw_sha256=hash_item(data),
        ),
    )
    types = [record.type] if record.type else []
    return ParsedRecord(
        record,
        partial=partial,
        head=SearchHead(f"{title}, CRS {id}"),
        facets={"type": types, "topic": topics, "bill": record.bills},
        text=Text("text", body, title, record.url, record.raw_sha256, dated=published)
        if body
        else None,
        links=[
            Link(LinkKind.CRS_REPORT, other, f"relatedMaterials: {words}")
            for other, words in (bills | laws).items()
        ]
        + [
            *_find_title_links(title, published),
            *build_topic_links(drop_repeated_topics(topics), "topics"),
        ],
        revision=updated,
    )


def _find_title_links(title: str, published: str | None) -> Iterator[Link]:
    """The bills and laws in a title; of which Congress a bill is, the report's date says."""
    yield from find_laws(title, LinkKind.CRS_REPORT, "title")
    if published:
        yield from find_bills(title, get_congress_on(published), LinkKind.CRS_REPORT, "title")


def _list_values(data: dict[str, Any], field: str, name: str) -> list[str]:
    """`[{"topic": "Taxation"}]` as `["Taxation"]`."""
    return [item[name].strip() for item in data.get(field) or () if item.get(name)]


def _find_bills(related: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Ids, each with how the file writes it."""
    for item in related:
        if (kind := (item.get("type") or "").lower()) in BILL_TYPES:
            yield make_bill_id(item["congress"], kind, item["number"]), _describe(item)


def _find_laws(related: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for item in related:
        if (kind := (item.get("type") or "").upper()) in ("PUB", "PRIV"):
            yield (
                make_law_id(f"{item['congress']}-{item['number']}", private=kind == "PRIV"),
                _describe(item),
            )


def _describe(item: dict[str, Any]) -> str:
    return f"type {item['type']}, number {item['number']}, congress {item['congress']}"


def _find_pdf_url(data: dict[str, Any]) -> str | None:
    return next(
        (
            format.get("url")
            for format in data.get("formats") or ()
            if format.get("format") == "PDF"
        ),
        None,
    )
