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
    drop_repeated_topics,
)
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    Link,
    ParsedRecord,
    Provenance,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.records import Filing, LinkKind, LobbyingActivity

_ORG = "Secretary of the Senate, Office of Public Records"
_AMENDMENT = re.compile(r"[1-4MYR][A@].*")  # 1A, 2AY, RA, 3@


class LobbyingFilings:
    """A filing, or a page of filings, as /api/v1/filings/ gives it."""

    format_id: ClassVar[str] = "lda/1"
    sources: ClassVar[tuple[str, ...]] = ("lda_filings",)
    complete_for_columns: ClassVar[str | None] = None

    def matches(self, start: FileStart) -> bool:
        return start.head.lstrip()[:1] == b"{" and b'"filing_uuid"' in start.head

    def read(self, file: RawFile, provenance: Provenance) -> Iterator[ParsedRecord]:
        # Money is never a float, not even on its way in.
        data = json.loads(file.data, parse_float=Decimal)
        for result in data.get("results", [data]):
            activities = [_parse_activity(item) for item in result.get("lobbying_activities") or ()]
            issues = drop_repeated_topics(activity.issue for activity in activities)
            yield from (build_topic(issue, provenance, "lda") for issue in issues)
            yield _build_filing(result, activities, issues, provenance)


def parse_dollars(text: Any) -> Decimal | None:
    """`"100000.00"` to the cent; nothing where nothing was reported."""
    if text is None or text == "":
        return None
    try:
        return Decimal(str(text)).quantize(Decimal("0.01"))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not an amount of money") from error


def _build_filing(
    data: dict[str, Any],
    activities: list[LobbyingActivity],
    issues: list[str],
    provenance: Provenance,
) -> ParsedRecord:
    uuid, form, year = str(data["filing_uuid"]).lower(), data["filing_type"], data["filing_year"]
    registrant, client = _read_party(data["registrant"]), _read_party(data["client"])
    registration = form.startswith("R")
    posted = _to_utc(data.get("dt_posted"))
    income, expenses = parse_dollars(data.get("income")), parse_dollars(data.get("expenses"))
    # Firms report their income from a client; those who lobby for themselves report expenses.
    amount = expenses if income is None else income
    name = data.get("filing_type_display") or form
    title = f"{name} {year}: {registrant[1]} for {client[1]}"
    page = f"https://lda.senate.gov/filings/public/filing/{uuid}/print/"
    # A registration and the first report of the same quarter are two papers, not one filed again.
    paper = "registration" if registration else "report"
    period = data.get("filing_period")
    record = Filing(
        id=f"lda:{uuid}",
        title=title,
        type=form,
        type_name=data.get("filing_type_display"),
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
        **build_citation_fields(
            provenance,
            url=data.get("filing_document_url") or page,
            org=_ORG,
            cite=f"LDA filing, {title}",
            published_at=posted[:10] if posted else None,
            raw_sha256=hash_item(data),
        ),
    )
    links = [*_find_links(record), *build_topic_links(issues, "general_issue_code_display")]
    return ParsedRecord(record, names=(registrant[1], client[1]), links=links, revision=posted)


def _read_party(data: dict[str, Any]) -> tuple[str, str]:
    """Its number and name; who has no number is known by name."""
    name = data["name"]
    return str(data.get("id") or name), name


def _to_utc(text: str | None) -> str | None:
    """In UTC: the clock of Washington goes back once a year, and order matters here."""
    if not text:
        return None
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="microseconds")


def _parse_activity(data: dict[str, Any]) -> LobbyingActivity:
    people = (entry.get("lobbyist") or {} for entry in data.get("lobbyists") or ())
    names = (
        " ".join(filter(None, map(person.get, ("first_name", "last_name")))) for person in people
    )
    return LobbyingActivity(
        issue_code=data.get("general_issue_code"),
        issue=data.get("general_issue_code_display"),
        description=data.get("description"),
        lobbyists=[name for name in names if name],
        government_entities=[entity["name"] for entity in data.get("government_entities") or ()],
    )


def _find_links(record: Filing) -> Iterator[Link]:
    """The bills and laws its descriptions name; bills of the Congress that sat in its year."""
    # Mid-year: on 1 and 2 January the Congress of the year before still sits.
    congress = get_congress_on(f"{record.year}-06-30")
    for activity in record.activities:
        field = f"description ({activity.issue_code})"
        text = activity.description or ""
        yield from find_bills(text, congress, LinkKind.FILING, field)
        yield from find_laws(text, LinkKind.FILING, field)
