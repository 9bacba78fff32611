"""Reads lobbying registrations and reports: the JSON of the Senate's LDA interface."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStart, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bills, find_laws
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    distinct_topics,
)
from readingroom.bases.federal.schema.congress import congress_on
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    citation_fields,
    digest,
)
from readingroom.bases.federal.schema.records import Filing, LinkKind, LobbyingActivity

_ORG = "Secretary of the Senate, Office of Public Records"
_AMENDMENT = re.compile(r"[1-4MYR][A@].*")  # 1A, 2AY, RA, 3@


class LobbyingFilings:
    """A filing, or a page of filings, as /api/v1/filings/ gives it."""

    name: ClassVar[str] = "lda/1"
    sources: ClassVar[tuple[str, ...]] = ("lda_filings",)
    complete_for: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.lstrip()[:1] == b"{" and b'"filing_uuid"' in start.head

    def read(self, file: RawFile, origin: Provenance) -> Iterator[ParsedRecord]:
        # Money is never a float, not even on its way in.
        told = json.loads(file.data, parse_float=Decimal)
        for one in told.get("results", [told]):
            activities = [_activity(item) for item in one.get("lobbying_activities") or ()]
            issues = distinct_topics(activity.issue for activity in activities)
            yield from (build_topic(issue, origin, "lda") for issue in issues)
            yield _filing(one, activities, issues, origin)


def parse_dollars(written: Any) -> Decimal | None:
    """`"100000.00"` to the cent; nothing where nothing was reported."""
    if written is None or written == "":
        return None
    try:
        return Decimal(str(written)).quantize(Decimal("0.01"))
    except InvalidOperation as error:
        raise ValueError(f"{written!r} is no amount of money") from error


def _filing(
    told: dict[str, Any], activities: list[LobbyingActivity], issues: list[str], origin: Provenance
) -> ParsedRecord:
    uuid, form, year = str(told["filing_uuid"]).lower(), told["filing_type"], told["filing_year"]
    registrant, client = _party(told["registrant"]), _party(told["client"])
    registration = form.startswith("R")
    posted = _moment(told.get("dt_posted"))
    income, expenses = parse_dollars(told.get("income")), parse_dollars(told.get("expenses"))
    amount = expenses if income is None else income
    name = told.get("filing_type_display") or form
    title = f"{name} {year}: {registrant[1]} for {client[1]}"
    page = f"https://lda.senate.gov/filings/public/filing/{uuid}/print/"
    # A registration and the first report of the same quarter are two papers, not one filed again.
    paper = "registration" if registration else "report"
    period = told.get("filing_period")
    record = Filing(
        id=f"lda:{uuid}",
        title=title,
        type=form,
        type_name=told.get("filing_type_display"),
        registration=registration,
        amendment=_AMENDMENT.fullmatch(form) is not None,
        year=year,
        period=period,
        registrant_id=registrant[0],
        registrant=registrant[1],
        client_id=client[0],
        client=client[1],
        income=None if income is None else str(income),
        expenses=None if expenses is None else str(expenses),
        amount_cents=None if amount is None else int(amount * 100),
        posted_at=posted,
        series=f"{registrant[0]}:{client[0]}:{year}:{period}:{paper}",
        activities=activities,
        **citation_fields(
            origin,
            url=told.get("filing_document_url") or page,
            org=_ORG,
            cite=f"LDA filing, {title}",
            published_at=posted[:10] if posted else None,
            raw_sha256=digest(told),
        ),
    )
    links = [*_links(record), *build_topic_links(issues, "general_issue_code_display")]
    return ParsedRecord(record, names=(registrant[1], client[1]), links=links, revision=posted)


def _party(told: dict[str, Any]) -> tuple[str, str]:
    """Its number and name; who has no number is known by name."""
    name = told["name"]
    return str(told.get("id") or name), name


def _moment(written: str | None) -> str | None:
    """In UTC: the clock of Washington goes back once a year, and order matters here."""
    if not written:
        return None
    return datetime.fromisoformat(written).astimezone(UTC).isoformat(timespec="microseconds")


def _activity(told: dict[str, Any]) -> LobbyingActivity:
    people = (one.get("lobbyist") or {} for one in told.get("lobbyists") or ())
    names = (" ".join(filter(None, map(one.get, ("first_name", "last_name")))) for one in people)
    return LobbyingActivity(
        issue_code=told.get("general_issue_code"),
        issue=told.get("general_issue_code_display"),
        description=told.get("description"),
        lobbyists=[name for name in names if name],
        government_entities=[one["name"] for one in told.get("government_entities") or ()],
    )


def _links(record: Filing) -> Iterator[Link]:
    """The bills and laws its descriptions name; bills of the Congress that sat in its year."""
    congress = congress_on(f"{record.year}-06-30")
    for activity in record.activities:
        field = f"description ({activity.issue_code})"
        text = activity.description or ""
        yield from find_bills(text, congress, LinkKind.FILING, field)
        yield from find_laws(text, LinkKind.FILING, field)
