"""Reads lobbying registrations and reports: the JSON of the Senate's LDA interface."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar

from readingroom.bases.federal.formats.parts.files import FileStartReader, RawFile
from readingroom.bases.federal.formats.parts.mentions import find_bill_links, find_law_links
from readingroom.bases.federal.formats.parts.topics import (
    build_topic,
    build_topic_links,
    drop_repeated_topics,
)
from readingroom.bases.federal.schema.congress import get_congress_on
from readingroom.bases.federal.schema.entries import (
    FileStamp,
    ParsedRecord,
    RecordLink,
    build_citation_fields,
    hash_item,
)
from readingroom.bases.federal.schema.records import Filing, LinkKind, LobbyingActivity

_PUBLISHER = "Secretary of the Senate, Office of Public Records"
_AMENDED_FILING_TYPE_PATTERN = re.compile(r"[1-4MYR][A@].*")  # 1A, 2AY, RA, 3@


class LobbyingFilingLoader:
    """A filing, or a page of filings, as /api/v1/filings/ gives it."""

    format_id: ClassVar[str] = "lda/1"
    record_source_names: ClassVar[tuple[str, ...]] = ("lda_filings",)
    complete_for_columns: ClassVar[str | None] = None

    def recognizes_file(self, file_start_reader: FileStartReader) -> bool:
        return (
            file_start_reader.first_bytes.lstrip()[:1] == b"{"
            and b'"filing_uuid"' in file_start_reader.first_bytes
        )

    def parse(self, raw_file: RawFile, file_stamp: FileStamp) -> Iterator[ParsedRecord]:
        # Money is never a float, not even on its way in.
        file_data = json.loads(raw_file.data, parse_float=Decimal)
        for filing_data in file_data.get("results", [file_data]):
            lobbying_activities = [
                _parse_lobbying_activity(activity_data)
                for activity_data in filing_data.get("lobbying_activities") or ()
            ]
            issue_names = drop_repeated_topics(
                lobbying_activity.issue for lobbying_activity in lobbying_activities
            )
            yield from (build_topic(issue_name, file_stamp, "lda") for issue_name in issue_names)
            yield _build_filing(filing_data, lobbying_activities, issue_names, file_stamp)


def parse_dollars(stated_amount: Any) -> Decimal | None:
    """`"100000.00"` to the cent; nothing where nothing was reported."""
    if stated_amount is None or stated_amount == "":
        return None
    try:
        return Decimal(str(stated_amount)).quantize(Decimal("0.01"))
    except InvalidOperation as error:
        raise ValueError(f"{stated_amount!r} is not an amount of money") from error


def _build_filing(
    filing_data: dict[str, Any],
    lobbying_activities: list[LobbyingActivity],
    issue_names: list[str],
    file_stamp: FileStamp,
) -> ParsedRecord:
    filing_uuid, filing_type, filing_year = (
        str(filing_data["filing_uuid"]).lower(),
        filing_data["filing_type"],
        filing_data["filing_year"],
    )
    registrant_id, registrant_name = _read_id_and_name(filing_data["registrant"])
    client_id, client_name = _read_id_and_name(filing_data["client"])
    is_registration = filing_type.startswith("R")
    posted_at = _convert_to_utc(filing_data.get("dt_posted"))
    income_dollars, expense_dollars = (
        parse_dollars(filing_data.get("income")),
        parse_dollars(filing_data.get("expenses")),
    )
    # Firms report their income from a client; those who lobby for themselves report expenses.
    reported_amount = expense_dollars if income_dollars is None else income_dollars
    filing_type_name = filing_data.get("filing_type_display") or filing_type
    filing_title = f"{filing_type_name} {filing_year}: {registrant_name} for {client_name}"
    filing_url = f"https://lda.senate.gov/filings/public/filing/{filing_uuid}/print/"
    # A registration and the first report of the same quarter are two papers, not one filed again.
    filing_kind = "registration" if is_registration else "report"
    filing_period = filing_data.get("filing_period")
    filing_record = Filing(
        id=f"lda:{filing_uuid}",
        title=filing_title,
        type=filing_type,
        type_name=filing_data.get("filing_type_display"),
        registration=is_registration,
        amendment=_AMENDED_FILING_TYPE_PATTERN.fullmatch(filing_type) is not None,
        year=filing_year,
        period=filing_period,
        registrant_id=registrant_id,
        registrant=registrant_name,
        client_id=client_id,
        client=client_name,
        income=None if income_dollars is None else str(income_dollars),
        expenses=None if expense_dollars is None else str(expense_dollars),
        amount_cents=None if reported_amount is None else int(reported_amount * 100),
        posted_at=posted_at,
        series=f"{registrant_id}:{client_id}:{filing_year}:{filing_period}:{filing_kind}",
        activities=lobbying_activities,
        **build_citation_fields(
            file_stamp,
            url=filing_data.get("filing_document_url") or filing_url,
            org=_PUBLISHER,
            cite=f"LDA filing, {filing_title}",
            published_at=posted_at[:10] if posted_at else None,
            raw_sha256=hash_item(filing_data),
        ),
    )
    filing_links = [
        *_find_filing_links(filing_record),
        *build_topic_links(issue_names, "general_issue_code_display"),
    ]
    return ParsedRecord(
        filing_record, names=(registrant_name, client_name), links=filing_links, revision=posted_at
    )


def _read_id_and_name(organization_data: dict[str, Any]) -> tuple[str, str]:
    """Its number and name; who has no number is known by name."""
    organization_name = organization_data["name"]
    return str(organization_data.get("id") or organization_name), organization_name


def _convert_to_utc(timestamp_text: str | None) -> str | None:
    """In UTC: the clock of Washington goes back once a year, and order matters here."""
    if not timestamp_text:
        return None
    return datetime.fromisoformat(timestamp_text).astimezone(UTC).isoformat(timespec="microseconds")


def _parse_lobbying_activity(activity_data: dict[str, Any]) -> LobbyingActivity:
    lobbyist_entries = (
        lobbyist_data.get("lobbyist") or {}
        for lobbyist_data in activity_data.get("lobbyists") or ()
    )
    lobbyist_names = (
        " ".join(filter(None, map(lobbyist_entry.get, ("first_name", "last_name"))))
        for lobbyist_entry in lobbyist_entries
    )
    return LobbyingActivity(
        issue_code=activity_data.get("general_issue_code"),
        issue=activity_data.get("general_issue_code_display"),
        description=activity_data.get("description"),
        lobbyists=[lobbyist_name for lobbyist_name in lobbyist_names if lobbyist_name],
        government_entities=[
            government_entity_data["name"]
            for government_entity_data in activity_data.get("government_entities") or ()
        ],
    )


def _find_filing_links(filing_record: Filing) -> Iterator[RecordLink]:
    """The bills and laws its descriptions name; bills of the Congress that sat in its year."""
    # Mid-year: on 1 and 2 January the Congress of the year before still sits.
    congress = get_congress_on(f"{filing_record.year}-06-30")
    for lobbying_activity in filing_record.activities:
        description_label = f"description ({lobbying_activity.issue_code})"
        activity_description = lobbying_activity.description or ""
        yield from find_bill_links(
            activity_description, congress, LinkKind.FILING, description_label
        )
        yield from find_law_links(activity_description, LinkKind.FILING, description_label)
