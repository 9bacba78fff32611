"""Reads reports of the Congressional Research Service, as api.congress.gov gives them in JSON."""

import json
from collections.abc import Iterator
from typing import Any, ClassVar

from readingroom.bases.federal.formats.billstatus import strip_html
from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bills, find_laws
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    distinct_topics,
)
from readingroom.bases.federal.formats.parts.xml import iso_date
from readingroom.bases.federal.schema.congress import congress_on
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    SearchHead,
    Text,
    citation_fields,
    digest,
)
from readingroom.bases.federal.schema.ids import BILL_TYPES, bill_id, federal_id, law_id
from readingroom.bases.federal.schema.records import CrsReport, LinkKind

ORG = "Congressional Research Service"


class CrsReports:
    """`/crsreport/R47892`: a report; `/crsreport`: a list, which knows less of each."""

    name: ClassVar[str] = "crs/3"
    sources: ClassVar[tuple[str, ...]] = ("crs_reports",)
    complete_for: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.lstrip()[:1] == b"{" and b'"CRSReport' in start.head

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        told = json.loads(file.data)
        if one := told.get("CRSReport"):
            for name in distinct_topics(_each(one, "topics", "topic")):
                yield build_topic(name, origin)
            yield _entry(one, origin, partial=False)
        for one in told.get("CRSReports") or ():
            yield _entry(one, origin, partial=True)


def _entry(told: dict[str, Any], origin: Provenance, *, partial: bool) -> ParsedRecord:
    id = federal_id(f"crs:{told['id']}").id
    title = " ".join(told["title"].split())
    published, updated = iso_date(told.get("publishDate")), told.get("updateDate")
    topics = _each(told, "topics", "topic")
    related = told.get("relatedMaterials") or []
    bills, laws = dict(_bills(related)), dict(_laws(related))
    body = strip_html(told.get("summary") or "")
    record = CrsReport(
        id=id,
        title=title,
        type=(told.get("contentType") or "").lower() or None,
        archived=(told.get("status") or "").lower() == "archived",
        version=told.get("version"),
        updated_at=updated,
        authors=_each(told, "authors", "author"),
        topics=topics,
        bills=list(bills),
        laws=list(laws),
        pdf_url=_pdf(told),
        characters=len(body),
        **citation_fields(
            origin,
            url=f"https://www.congress.gov/crs-product/{id}",
            org=ORG,
            cite=f"{title}, CRS {id}",
            published_at=published,
            raw_sha256=digest(told),
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
        + [*_named(title, published), *build_topic_links(distinct_topics(topics), "topics")],
        revision=updated,
    )


def _named(title: str, published: str | None) -> Iterator[Link]:
    """The bills and laws in a title; of which Congress a bill is, the report's date says."""
    yield from find_laws(title, LinkKind.CRS_REPORT, "title")
    if published:
        yield from find_bills(title, congress_on(published), LinkKind.CRS_REPORT, "title")


def _each(told: dict[str, Any], field: str, name: str) -> list[str]:
    """`[{"topic": "Taxation"}]` as `["Taxation"]`."""
    return [one[name].strip() for one in told.get(field) or () if one.get(name)]


def _bills(related: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Ids, each with how the file writes it."""
    for one in related:
        if (kind := (one.get("type") or "").lower()) in BILL_TYPES:
            yield bill_id(one["congress"], kind, one["number"]), _written(one)


def _laws(related: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in related:
        if (kind := (one.get("type") or "").upper()) in ("PUB", "PRIV"):
            yield (
                law_id(f"{one['congress']}-{one['number']}", private=kind == "PRIV"),
                _written(one),
            )


def _written(one: dict[str, Any]) -> str:
    return f"type {one['type']}, number {one['number']}, congress {one['congress']}"


def _pdf(told: dict[str, Any]) -> str | None:
    return next(
        (one.get("url") for one in told.get("formats") or () if one.get("format") == "PDF"), None
    )
