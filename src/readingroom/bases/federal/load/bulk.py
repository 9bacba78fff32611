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

from readingroom.bases.federal.formats.parts.xml import get_text, parse
from readingroom.bases.federal.schema.congress import began, congress_on
from readingroom.bases.federal.schema.ids import BILL_TYPES
from readingroom.net.download import RemoteFile, RemoteFileMissing

FIRST_CONGRESS = 108
"""The first of which there are BILLSTATUS files."""

_LEGISLATORS = ("legislators-current.yaml", "legislators-historical.yaml")
_COMMITTEES = ("committees-current.yaml", "committees-historical.yaml")
_ROSTERS = ("committee-membership-current.yaml",)
_REGISTER_DAYS = 30
_REGISTER_FIELDS = (
    *("document_number", "type", "subtype", "title", "abstract", "action", "agencies"),
    *("publication_date", "signing_date", "executive_order_number", "citation", "html_url"),
    *("pdf_url", "raw_text_url", "topics", "cfr_references", "docket_ids"),
    *("regulation_id_numbers", "president"),
)
_ROLL = re.compile(
    r"rollnumber=(\d+)[^>]*>\s*\d+\s*</A>\s*</TD>\s*<TD[^>]*>(.*?)</TD>", re.I | re.S
)
_DAY_AND_MONTH = re.compile(r"(\d{1,2}-[A-Z][a-z]{2})")


class Ask(Protocol):
    """Reads a listing; `RemoteFileMissing` where there is none."""

    def __call__(self, url: str, accept: str = "*/*") -> bytes: ...


@dataclass(frozen=True, slots=True)
class Hosts:
    """The publishers' addresses, without a slash at the end."""

    govinfo: str
    federal_register: str
    legislators: str
    house_clerk: str
    senate: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which files of a source are asked for: those changed since a day, or those of now."""

    hosts: Hosts
    ask: Ask
    since: date | None
    today: date

    @property
    def congresses(self) -> range:
        """Those that sat since the day; without one, that of today."""
        first = congress_on((self.since or self.today).isoformat())
        return range(max(FIRST_CONGRESS, first), congress_on(self.today.isoformat()) + 1)


def bills(wanted: Wanted) -> Iterator[RemoteFile]:
    """A zip for each type of a whole Congress; of one that had begun, the files changed since."""
    for congress in wanted.congresses:
        for kind in BILL_TYPES:
            folder = f"BILLSTATUS/{congress}/{kind}"
            if wanted.since is None or began(congress) >= wanted.since:
                yield _bulk(wanted, f"{folder}/BILLSTATUS-{congress}-{kind}.zip")
            else:
                name = re.compile(rf"BILLSTATUS-{congress}{kind}\d+\.xml", re.ASCII)
                yield from _listed(wanted, folder, name)


def public_laws(wanted: Wanted) -> Iterator[RemoteFile]:
    """`PLAW-117publ103.xml`: USLM, one law a file."""
    for congress in wanted.congresses:
        for kind, short in (("public", "publ"), ("private", "pvtl")):
            name = re.compile(rf"PLAW-{congress}{short}\d+\.xml", re.ASCII)
            yield from _listed(wanted, f"PLAW/{congress}/{kind}", name)


def federal_register(wanted: Wanted) -> Iterator[RemoteFile]:
    """A file a day, from the Register's API; nothing is published on weekends."""
    first = wanted.since or wanted.today - timedelta(days=_REGISTER_DAYS)
    for day in _days(first, wanted.today):
        if day.weekday() < 5:
            asked = [("conditions[publication_date][is]", day.isoformat()), ("per_page", "1000")]
            asked += [("fields[]", field) for field in _REGISTER_FIELDS]
            host = wanted.hosts.federal_register
            yield RemoteFile(
                f"{host}/api/v1/documents.json?{urlencode(asked)}", f"register/{day}.json"
            )


def people(*names: str) -> Callable[[Wanted], Iterator[RemoteFile]]:
    def remotes(wanted: Wanted) -> Iterator[RemoteFile]:
        for name in names:
            yield RemoteFile(f"{wanted.hosts.legislators}/{name}", f"congress-legislators/{name}")

    return remotes


def roll_call_votes(wanted: Wanted) -> Iterator[RemoteFile]:
    """Both chambers: the House by year, the Senate by session."""
    first = wanted.since or date(wanted.today.year, 1, 1)
    for year in range(first.year, wanted.today.year + 1):
        yield from _of_house(wanted, year, first)
        yield from _of_senate(wanted, year, first)


LAYOUTS: Mapping[str, Callable[[Wanted], Iterator[RemoteFile]]] = {
    "bills": bills,
    "public_laws": public_laws,
    "federal_register": federal_register,
    "presidential_documents": federal_register,
    "legislators": people(*_LEGISLATORS),
    "committees": people(*_COMMITTEES),
    "committee_memberships": people(*_LEGISLATORS[:1], *_COMMITTEES[:1], *_ROSTERS),
    "staff_directories": people(*_LEGISLATORS[:1], "legislators-district-offices.yaml"),
    "roll_call_votes": roll_call_votes,
}


# --- govinfo ---


def _bulk(wanted: Wanted, path: str) -> RemoteFile:
    return RemoteFile(f"{wanted.hosts.govinfo}/bulkdata/{path}", path)


def _listed(wanted: Wanted, folder: str, name: re.Pattern[str]) -> Iterator[RemoteFile]:
    """The files of a folder, by its listing; a folder with nothing in it is not there."""
    url = f"{wanted.hosts.govinfo}/bulkdata/json/{folder}"
    try:
        told = json.loads(wanted.ask(url, "application/json"))
    except RemoteFileMissing:
        return
    for file in told["files"]:
        if name.fullmatch(file["justFileName"]) and _since(file, wanted.since):
            yield _bulk(wanted, f"{folder}/{file['justFileName']}")


def _since(file: Mapping[str, str], since: date | None) -> bool:
    """`13-Jul-2026 23:36`; a file whose date cannot be read is taken."""
    try:
        told = file["formattedLastModifiedTime"]
        changed = datetime.strptime(told, "%d-%b-%Y %H:%M").date()  # noqa: DTZ007 a day
    except (KeyError, ValueError):
        return True
    return since is None or changed >= since


# --- votes ---


def _of_house(wanted: Wanted, year: int, first: date) -> Iterator[RemoteFile]:
    """The clerk lists a hundred votes a page, `ROLL_000.asp` and on; the index has a few only."""
    root = f"{wanted.hosts.house_clerk}/evs/{year}"
    for hundred in range(0, 3000, 100):
        try:
            page = wanted.ask(f"{root}/ROLL_{hundred:03}.asp").decode("utf-8", "replace")
        except RemoteFileMissing:
            return
        rows = _ROLL.findall(page)
        for number, cell in rows:
            if _voted(cell, year) >= first:
                file = f"roll{int(number):03}.xml"
                yield RemoteFile(f"{root}/{file}", f"votes/house/{year}/{file}")
        if not rows:
            return


def _of_senate(wanted: Wanted, year: int, first: date) -> Iterator[RemoteFile]:
    congress, session = congress_on(f"{year}-06-01"), 2 - year % 2
    root = f"{wanted.hosts.senate}/legislative/LIS"
    try:
        menu = parse(wanted.ask(f"{root}/roll_call_lists/vote_menu_{congress}_{session}.xml"))
    except RemoteFileMissing:
        return
    for vote in menu.iterfind("votes/vote"):
        number = get_text(vote, "vote_number") or ""
        if number.isdecimal() and _voted(get_text(vote, "vote_date") or "", year) >= first:
            file = f"vote_{congress}_{session}_{int(number):05}.xml"
            folder = f"vote{congress}{session}"
            yield RemoteFile(
                f"{root}/roll_call_votes/{folder}/{file}", f"votes/senate/{folder}/{file}"
            )


def _voted(cell: str, year: int) -> date:
    """`17-Nov`, in a listing of one year; what cannot be read counts as new."""
    found = _DAY_AND_MONTH.search(cell)
    try:
        told = f"{found[1] if found else ''}-{year}"
        return datetime.strptime(told, "%d-%b-%Y").date()  # noqa: DTZ007 a day
    except ValueError:
        return date.max


def _days(first: date, last: date) -> Iterator[date]:
    for number in range((last - first).days + 1):
        yield first + timedelta(days=number)
