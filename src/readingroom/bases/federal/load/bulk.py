"""Where the official bulk files of each source lie, as their publishers document it.

Listings are read for names and dates only: an address is always built here, never taken from one.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Protocol
from urllib.parse import urlencode

from readingroom.bases.federal.formats.parts.xml import find_text, parse_xml
from readingroom.bases.federal.schema.congress import get_congress_on, get_first_day_of_congress
from readingroom.bases.federal.schema.ids import BILL_TYPES
from readingroom.net.download import RemoteFile, RemoteFileMissing

FIRST_CONGRESS = 108
"""The first of which there are BILLSTATUS files."""

_LEGISLATOR_FILE_NAMES = ("legislators-current.yaml", "legislators-historical.yaml")
_COMMITTEE_FILE_NAMES = ("committees-current.yaml", "committees-historical.yaml")
_ROSTER_FILE_NAMES = ("committee-membership-current.yaml",)
# How far back a sync without `--since` looks.
_DEFAULT_REGISTER_DAY_COUNT = 30
# Without `fields[]` the API leaves out most of what a record here is made of.
_REGISTER_API_FIELDS = (
    *("document_number", "type", "subtype", "title", "abstract", "action", "agencies"),
    *("publication_date", "signing_date", "executive_order_number", "citation", "html_url"),
    *("pdf_url", "raw_text_url", "topics", "cfr_references", "docket_ids"),
    *("regulation_id_numbers", "president"),
)
_ROLL_CALL_ROW_PATTERN = re.compile(
    r"rollnumber=(\d+)[^>]*>\s*\d+\s*</A>\s*</TD>\s*<TD[^>]*>(.*?)</TD>", re.I | re.S
)
_DAY_AND_MONTH_PATTERN = re.compile(r"(\d{1,2}-[A-Z][a-z]{2})")


class ReadListing(Protocol):
    """Reads a listing; `RemoteFileMissing` where there is none."""

    def __call__(self, url: str, accept: str = "*/*") -> bytes: ...


@dataclass(frozen=True, slots=True)
class Hosts:
    """The publishers' addresses, without a slash at the end."""

    govinfo_url: str
    federal_register_url: str
    legislators_url: str
    house_clerk_url: str
    senate_url: str


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """Which files of a source to fetch: those changed since a day, or the current ones."""

    hosts: Hosts
    read_listing: ReadListing
    since: date | None
    today: date

    @property
    def congress_numbers(self) -> range:
        """The Congresses since the day; without a day, the current one."""
        first_congress = get_congress_on((self.since or self.today).isoformat())
        return range(
            max(FIRST_CONGRESS, first_congress), get_congress_on(self.today.isoformat()) + 1
        )


def list_bill_files(request: SyncRequest) -> Iterator[RemoteFile]:
    """A zip for each type of a whole Congress; of one that had begun, the files changed since."""
    for congress in request.congress_numbers:
        for bill_type in BILL_TYPES:
            listing_folder = f"BILLSTATUS/{congress}/{bill_type}"
            if request.since is None or get_first_day_of_congress(congress) >= request.since:
                yield _make_bulk_file(
                    request, f"{listing_folder}/BILLSTATUS-{congress}-{bill_type}.zip"
                )
            else:
                file_name_pattern = re.compile(
                    rf"BILLSTATUS-{congress}{bill_type}\d+\.xml", re.ASCII
                )
                yield from _list_folder_files(request, listing_folder, file_name_pattern)


def list_law_files(request: SyncRequest) -> Iterator[RemoteFile]:
    """`PLAW-117publ103.xml`: USLM, one law a file."""
    for congress in request.congress_numbers:
        for law_kind, law_abbreviation in (("public", "publ"), ("private", "pvtl")):
            file_name_pattern = re.compile(rf"PLAW-{congress}{law_abbreviation}\d+\.xml", re.ASCII)
            yield from _list_folder_files(request, f"PLAW/{congress}/{law_kind}", file_name_pattern)


def list_register_files(request: SyncRequest) -> Iterator[RemoteFile]:
    """A file a day, from the Register's API; nothing is published on weekends."""
    first_day = request.since or request.today - timedelta(days=_DEFAULT_REGISTER_DAY_COUNT)
    for day in _iterate_days(first_day, request.today):
        if day.weekday() < 5:
            # 1,000 is the largest page that the API gives; a day has a few hundred documents.
            query_parameters = [
                ("conditions[publication_date][is]", day.isoformat()),
                ("per_page", "1000"),
            ]
            query_parameters += [("fields[]", field_name) for field_name in _REGISTER_API_FIELDS]
            host_url = request.hosts.federal_register_url
            yield RemoteFile(
                f"{host_url}/api/v1/documents.json?{urlencode(query_parameters)}",
                f"register/{day}.json",
            )


def make_people_file_lister(*file_names: str) -> Callable[[SyncRequest], Iterator[RemoteFile]]:
    def list_people_files(request: SyncRequest) -> Iterator[RemoteFile]:
        for file_name in file_names:
            yield RemoteFile(
                f"{request.hosts.legislators_url}/{file_name}", f"congress-legislators/{file_name}"
            )

    return list_people_files


def list_vote_files(request: SyncRequest) -> Iterator[RemoteFile]:
    """Both chambers: the House by year, the Senate by session."""
    first_day = request.since or date(request.today.year, 1, 1)
    for year in range(first_day.year, request.today.year + 1):
        yield from _list_house_vote_files(request, year, first_day)
        yield from _list_senate_vote_files(request, year, first_day)


FILE_LISTERS_BY_SOURCE: Mapping[str, Callable[[SyncRequest], Iterator[RemoteFile]]] = {
    "bills": list_bill_files,
    "public_laws": list_law_files,
    "federal_register": list_register_files,
    "presidential_documents": list_register_files,
    "legislators": make_people_file_lister(*_LEGISLATOR_FILE_NAMES),
    "committees": make_people_file_lister(*_COMMITTEE_FILE_NAMES),
    # With the people and committees that seats refer to, so that those are no stubs.
    "committee_memberships": make_people_file_lister(
        *_LEGISLATOR_FILE_NAMES[:1], *_COMMITTEE_FILE_NAMES[:1], *_ROSTER_FILE_NAMES
    ),
    "staff_directories": make_people_file_lister(
        *_LEGISLATOR_FILE_NAMES[:1], "legislators-district-offices.yaml"
    ),
    "roll_call_votes": list_vote_files,
}


# --- govinfo ---


def _make_bulk_file(request: SyncRequest, bulk_path: str) -> RemoteFile:
    return RemoteFile(f"{request.hosts.govinfo_url}/bulkdata/{bulk_path}", bulk_path)


def _list_folder_files(
    request: SyncRequest, listing_folder: str, file_name_pattern: re.Pattern[str]
) -> Iterator[RemoteFile]:
    """The files of a folder, by its listing; a folder with nothing in it is not there."""
    listing_url = f"{request.hosts.govinfo_url}/bulkdata/json/{listing_folder}"
    try:
        folder_listing = json.loads(request.read_listing(listing_url, "application/json"))
    except RemoteFileMissing:
        return
    for listed_file in folder_listing["files"]:
        if file_name_pattern.fullmatch(listed_file["justFileName"]) and _has_changed_since(
            listed_file, request.since
        ):
            yield _make_bulk_file(request, f"{listing_folder}/{listed_file['justFileName']}")


def _has_changed_since(listed_file: Mapping[str, str], since_day: date | None) -> bool:
    """`13-Jul-2026 23:36`; a file whose date cannot be read is taken."""
    try:
        modified_text = listed_file["formattedLastModifiedTime"]
        modified_day = datetime.strptime(modified_text, "%d-%b-%Y %H:%M").date()  # noqa: DTZ007 a day
    except (KeyError, ValueError):
        return True
    return since_day is None or modified_day >= since_day


# --- votes ---


def _list_house_vote_files(
    request: SyncRequest, year: int, first_day: date
) -> Iterator[RemoteFile]:
    """The clerk lists a hundred votes a page, `ROLL_000.asp` and on; the index has a few only."""
    root_url = f"{request.hosts.house_clerk_url}/evs/{year}"
    # A bound for a host that answers every page; no year has had half as many votes.
    for first_roll_number in range(0, 3000, 100):
        try:
            listing_html = request.read_listing(
                f"{root_url}/ROLL_{first_roll_number:03}.asp"
            ).decode("utf-8", "replace")
        except RemoteFileMissing:
            return
        vote_rows = _ROLL_CALL_ROW_PATTERN.findall(listing_html)
        for roll_number, date_text in vote_rows:
            if _parse_listed_vote_date(date_text, year) >= first_day:
                file_name = f"roll{int(roll_number):03}.xml"
                yield RemoteFile(f"{root_url}/{file_name}", f"votes/house/{year}/{file_name}")
        # A page behind the last vote may be there all the same, and be empty.
        if not vote_rows:
            return


def _list_senate_vote_files(
    request: SyncRequest, year: int, first_day: date
) -> Iterator[RemoteFile]:
    # A session lasts a year, the first of a Congress an odd one; June is in the middle of either.
    congress, session_number = get_congress_on(f"{year}-06-01"), 2 - year % 2
    root_url = f"{request.hosts.senate_url}/legislative/LIS"
    try:
        vote_menu_element = parse_xml(
            request.read_listing(
                f"{root_url}/roll_call_lists/vote_menu_{congress}_{session_number}.xml"
            )
        )
    except RemoteFileMissing:
        return
    for vote_element in vote_menu_element.iterfind("votes/vote"):
        vote_number = find_text(vote_element, "vote_number") or ""
        if (
            vote_number.isdecimal()
            and _parse_listed_vote_date(find_text(vote_element, "vote_date") or "", year)
            >= first_day
        ):
            file_name = f"vote_{congress}_{session_number}_{int(vote_number):05}.xml"
            session_folder = f"vote{congress}{session_number}"
            yield RemoteFile(
                f"{root_url}/roll_call_votes/{session_folder}/{file_name}",
                f"votes/senate/{session_folder}/{file_name}",
            )


def _parse_listed_vote_date(date_text: str, year: int) -> date:
    """`17-Nov`, in a listing of one year; what cannot be read counts as new."""
    date_match = _DAY_AND_MONTH_PATTERN.search(date_text)
    try:
        day_text = f"{date_match[1] if date_match else ''}-{year}"
        return datetime.strptime(day_text, "%d-%b-%Y").date()  # noqa: DTZ007 a day
    except ValueError:
        return date.max


def _iterate_days(first_day: date, last_day: date) -> Iterator[date]:
    for day_index in range((last_day - first_day).days + 1):
        yield first_day + timedelta(days=day_index)
