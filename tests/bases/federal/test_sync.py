"""`federal sync` against official hosts on loopback: polite, resumed, whole or not at all."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.load import sync as syncing
from readingroom.bases.federal.load.bulk import FILE_LISTERS_BY_SOURCE, Hosts, SyncRequest
from readingroom.bases.federal.schema.sources import SOURCES_BY_NAME
from readingroom.bases.federal.store import get_database_path
from readingroom.core import clock
from readingroom.core.errors import UnknownSource
from readingroom.net.download import DownloadedFile, Downloads, RemoteFile, RemoteFileMissing
from readingroom.net.errors import DownloadFailed
from tests.requirements import requirement
from tests.support.federal.bulkhost import Host, run_bulk_host
from tests.support.federal.world import World, register_document
from tests.support.kit import run

CONTENT = bytes(range(256)) * 8_000


@pytest.fixture
def host() -> Iterator[Host]:
    with run_bulk_host() as served:
        yield served


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def downloads(tmp_path: Path, waits: list[float]) -> Iterator[Downloads]:
    with closing(Downloads(tmp_path / "files", pause_seconds=0.25, sleep=waits.append)) as opened:
        yield opened


def make_hosts(host: Host) -> Hosts:
    return Hosts(host.url, host.url, f"{host.url}/congress-legislators", host.url, host.url)


def fetch_file(downloads: Downloads, host: Host, name: str = "a.zip") -> DownloadedFile:
    return downloads.fetch_file(RemoteFile(f"{host.url}/{name}", name))


# --- one file ---


@requirement("federal:sync")
def test_a_file_comes_whole_with_its_checksum_and_is_asked_for_politely(
    host: Host, downloads: Downloads, waits: list[float]
) -> None:
    host.files["/a.zip"] = CONTENT
    first = fetch_file(downloads, host)
    assert first.is_new and first.path.read_bytes() == CONTENT
    assert first.sha256 == hashlib.sha256(CONTENT).hexdigest()
    again = fetch_file(downloads, host)
    assert not again.is_new
    assert waits == [0.25]
    host.files["/a.zip"] = CONTENT[:100]
    assert fetch_file(downloads, host).path.read_bytes() == CONTENT[:100]


@requirement("federal:sync")
def test_what_broke_off_goes_on_where_it_was(host: Host, downloads: Downloads) -> None:
    host.files["/a.zip"] = CONTENT
    host.break_off["/a.zip"] = 1_000_000
    assert fetch_file(downloads, host).path.read_bytes() == CONTENT
    assert host.asked == [("/a.zip", None), ("/a.zip", "bytes=1000000-")]


@pytest.mark.parametrize("heedless", [False, True])
def test_a_file_that_changed_meanwhile_is_fetched_from_its_beginning(
    host: Host, tmp_path: Path, heedless: bool
) -> None:
    host.files["/a.zip"] = CONTENT
    host.heedless |= {"/a.zip"} if heedless else set()

    def changing(seconds: float) -> None:
        host.files["/a.zip"] = CONTENT[::-1]

    host.break_off["/a.zip"] = 1_000_000
    with closing(Downloads(tmp_path / "files", pause_seconds=0, sleep=changing)) as downloads:
        assert fetch_file(downloads, host).path.read_bytes() == CONTENT[::-1]


def test_a_file_that_does_not_end_is_given_up(
    host: Host, downloads: Downloads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readingroom.net.download.MAX_FILE_BYTES", 1_000_000)
    host.files["/a.zip"] = CONTENT
    with pytest.raises(DownloadFailed, match="longer than any"):
        fetch_file(downloads, host)
    assert not list(tmp_path.rglob("a.zip*"))


def test_nothing_half_written_counts(host: Host, tmp_path: Path) -> None:
    host.files["/a.zip"] = CONTENT
    folder = tmp_path / "files"

    class Killed(BaseException):
        pass

    def killed(done: float, total: float | None, message: str | None) -> None:
        raise Killed

    with closing(Downloads(folder, pause_seconds=0)) as downloads, pytest.raises(Killed):
        downloads.fetch_file(RemoteFile(f"{host.url}/a.zip", "a.zip"), killed)
    assert not (folder / "a.zip").exists()
    with closing(Downloads(folder, pause_seconds=0)) as downloads:
        assert fetch_file(downloads, host).path.read_bytes() == CONTENT
    assert host.asked[-1][1] is not None


def test_a_file_damaged_on_disk_is_fetched_again(host: Host, downloads: Downloads) -> None:
    host.files["/a.zip"] = CONTENT
    path = fetch_file(downloads, host).path
    path.write_bytes(b"x" + CONTENT[1:])
    assert fetch_file(downloads, host).is_new
    assert path.read_bytes() == CONTENT


def test_a_host_that_is_busy_is_waited_for_and_one_that_fails_is_told(
    host: Host, downloads: Downloads, waits: list[float]
) -> None:
    host.files["/a.zip"] = CONTENT
    host.refuse["/a.zip"] = 503
    assert fetch_file(downloads, host).is_new
    # The host says `Retry-After: 0`, which does not shorten our own wait.
    assert waits == [1.0, 0.25]
    with pytest.raises(RemoteFileMissing):
        fetch_file(downloads, host, "b.zip")
    host.refuse["/a.zip"] = 301
    with pytest.raises(DownloadFailed, match="301"):
        fetch_file(downloads, host)


@pytest.mark.parametrize("status", [206, 304])
def test_what_was_never_asked_for_is_no_file(host: Host, downloads: Downloads, status: int) -> None:
    host.files["/a.zip"] = CONTENT
    host.refuse["/a.zip"] = status
    assert fetch_file(downloads, host).path.read_bytes() == CONTENT


def test_a_hash_that_the_host_tells_must_be_that_of_the_file(
    host: Host, downloads: Downloads
) -> None:
    host.files["/a.zip"] = CONTENT
    host.digests["/a.zip"] = f"sha-256=:{base64.b64encode(bytes(32)).decode()}:"
    with pytest.raises(DownloadFailed, match="came damaged"):
        fetch_file(downloads, host)
    told = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
    for right in (f"sha-256=:{told}:", "sha-256=no hash", "md5=:x:"):
        host.digests["/a.zip"] = right
        assert fetch_file(downloads, host).path.read_bytes() == CONTENT


@pytest.mark.parametrize("told", [b"<html>Back soon</html>", b"[]", b'{"files": [1]}', b"\xff"])
def test_a_listing_that_is_none_is_told(host: Host, tmp_path: Path, told: bytes) -> None:
    for kind in ("public", "private"):
        for congress in (119, 120):
            host.files[f"/bulkdata/json/PLAW/{congress}/{kind}"] = told
    source = SOURCES_BY_NAME["public_laws"]
    with pytest.raises(DownloadFailed, match="listing cannot be read"):
        syncing.sync(get_database_path(tmp_path), source, None, make_hosts(host), 0)


@pytest.mark.parametrize("name", ["../a.zip", "/etc/a.zip", "x/../../a.zip", ""])
def test_a_name_that_leads_out_is_refused(host: Host, downloads: Downloads, name: str) -> None:
    with pytest.raises(DownloadFailed):
        downloads.fetch_file(RemoteFile(f"{host.url}/a.zip", name))


# --- where the files of each source are ---


def make_listing(*files: tuple[str, str]) -> bytes:
    told = [
        {"justFileName": name, "formattedLastModifiedTime": day, "folder": False}
        for name, day in files
    ]
    return json.dumps({"files": told}).encode()


def list_remote_names(host: Host, source: str, since: date | None, today: date) -> list[str]:
    def ask(url: str, accept: str = "*/*") -> bytes:
        path = url.removeprefix(host.url)
        if path not in host.files:
            raise RemoteFileMissing(url)
        return host.files[path]

    wanted = SyncRequest(make_hosts(host), ask, since, today)
    return [one.url.removeprefix(host.url) for one in FILE_LISTERS_BY_SOURCE[source](wanted)]


def test_bills_come_as_zips_or_as_the_files_changed_since(host: Host) -> None:
    whole = list_remote_names(host, "bills", None, date(2026, 11, 15))
    assert whole[0] == "/bulkdata/BILLSTATUS/119/hr/BILLSTATUS-119-hr.zip"
    assert len(whole) == 8
    host.files["/bulkdata/json/BILLSTATUS/119/hr"] = make_listing(
        ("BILLSTATUS-119hr1.xml", "13-Jul-2026 23:36"),
        ("BILLSTATUS-119hr2.xml", "01-Jan-2026 23:36"),
        ("BILLSTATUS-119-hr.zip", "13-Jul-2026 23:36"),
        ("../../evil.xml", "13-Jul-2026 23:36"),
    )
    since = list_remote_names(host, "bills", date(2026, 7, 1), date(2026, 11, 15))
    assert since == ["/bulkdata/BILLSTATUS/119/hr/BILLSTATUS-119hr1.xml"]
    # The 119th began in January 2025: of the 118th, what changed; of the 119th, everything.
    assert len(list_remote_names(host, "bills", date(2024, 12, 1), date(2026, 11, 15))) == 8


def test_laws_register_people_and_votes_lie_where_they_are_published(host: Host) -> None:
    today = date(2026, 11, 16)
    host.files["/bulkdata/json/PLAW/119/public"] = make_listing(
        ("PLAW-119publ1.xml", "13-Jul-2026 23:36")
    )
    laws = list_remote_names(host, "public_laws", None, today)
    assert laws == ["/bulkdata/PLAW/119/public/PLAW-119publ1.xml"]
    days = list_remote_names(host, "federal_register", date(2026, 11, 13), today)
    assert [re.findall(r"%5D=(\d{4}-\d\d-\d\d)&", one) for one in days] == [
        ["2026-11-13"],
        ["2026-11-16"],
    ]
    assert list_remote_names(host, "legislators", None, today) == [
        "/congress-legislators/legislators-current.yaml",
        "/congress-legislators/legislators-historical.yaml",
    ]
    assert list_remote_names(host, "staff_directories", None, today)[-1] == (
        "/congress-legislators/legislators-district-offices.yaml"
    )
    row = '<TR><TD><A HREF="vote.asp?year=2026&rollnumber={0}">{0}</A></TD>\n<TD>{1}</TD></TR>'
    host.files["/evs/2026/ROLL_000.asp"] = "".join(
        row.format(number, day) for number, day in ((2, "12-Nov"), (1, "3-Jan"))
    ).encode()
    host.files["/legislative/LIS/roll_call_lists/vote_menu_119_2.xml"] = (
        b"<vote_summary><votes><vote><vote_number>00192</vote_number><vote_date>14-Nov</vote_date>"
        b"</vote><vote><vote_number>00001</vote_number><vote_date>06-Jan</vote_date></vote>"
        b"</votes></vote_summary>"
    )
    assert list_remote_names(host, "roll_call_votes", date(2026, 11, 1), today) == [
        "/evs/2026/roll002.xml",
        "/legislative/LIS/roll_call_votes/vote1192/vote_119_2_00192.xml",
    ]


# --- the whole ---


@requirement("federal:sync")
def test_a_sync_fetches_applies_and_the_next_one_finds_nothing_new(
    host: Host, tmp_path: Path
) -> None:
    world = World(1, people=20)
    host.files["/congress-legislators/legislators-current.yaml"] = world.legislators().encode()
    first = _run_sync(host, tmp_path)
    assert (first["downloaded"], first["missing"], first["failed"]) == (1, 1, 0)
    assert first["update"]["changes"]["legislators"]["new"] == 20
    again = _run_sync(host, tmp_path)
    assert (again["downloaded"], again["unchanged"]) == (0, 1)
    assert again["update"]["changes"] == {}
    fewer = world.legislators().replace("Republican", "Independent")
    host.files["/congress-legislators/legislators-current.yaml"] = fewer.encode()
    changed = _run_sync(host, tmp_path)
    assert changed["update"]["changes"]["legislators"]["changed"] > 0
    refused = run("federal", "sync", "saps", "--data", str(tmp_path))
    assert refused.returncode == 2
    assert "cannot be fetched" in refused.stderr


def _run_sync(host: Host, data: Path) -> Any:
    env = {
        "READINGROOM_LEGISLATORS_URL": f"{host.url}/congress-legislators",
        "READINGROOM_SYNC_PAUSE_SECONDS": "0",
    }
    done = run("federal", "sync", "legislators", "--data", str(data), "--json", env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_host_that_has_none_of_the_files_is_no_success(host: Host, tmp_path: Path) -> None:
    ended = run(
        *("federal", "sync", "legislators", "--data", str(tmp_path)),
        env={"READINGROOM_LEGISLATORS_URL": host.url, "READINGROOM_SYNC_PAUSE_SECONDS": "0"},
    )
    assert ended.returncode == 1
    assert "2 not there" in ended.stdout
    assert "docs/settings.md" in ended.stdout


@pytest.mark.data
@requirement("federal:sync")
def test_official_files_come_over_the_wire_as_they_lie(
    host: Host, tmp_path: Path, shared_data: Path
) -> None:
    official = shared_data / "federal"
    bill = official / "billstatus/samples/formatChange/future/BILLSTATUS-117hr6658.xml"
    folder = "/bulkdata/{}BILLSTATUS/117/hr"
    host.files[folder.format("json/")] = make_listing((bill.name, "17-Nov-2022 10:00"))
    host.files[f"{folder.format('')}/{bill.name}"] = bill.read_bytes()
    vote = next((official / "samples").glob("*enate*"))
    menu = "/legislative/LIS/roll_call_lists/vote_menu_108_2.xml"
    host.files[menu] = (
        b"<vote_summary><votes><vote><vote_number>00213</vote_number>"
        b"<vote_date>17-Nov</vote_date></vote></votes></vote_summary>"
    )
    lis = "/legislative/LIS/roll_call_votes/vote1082/vote_108_2_00213.xml"
    host.files[lis] = vote.read_bytes()
    path = get_database_path(tmp_path)
    came = [
        syncing.sync(path, SOURCES_BY_NAME[source], since, make_hosts(host), 0)
        for source, since in (
            ("bills", date(2022, 11, 1)),
            ("roll_call_votes", date(2004, 11, 1)),
        )
    ]
    tallies = [one.update.changes for one in came if one.update]
    assert tallies[0]["bills"].new == 1
    assert tallies[1]["roll_call_votes"].new == 1


def test_a_register_day_is_read_by_its_loader(host: Host, tmp_path: Path) -> None:
    document = register_document("2025-00001", "2025-02-03", "Noise")
    told = {"count": 1, "results": [{"excerpts": "Noise. " * 1000} | document]}
    host.files["/api/v1/documents.json"] = json.dumps(told).encode()
    path = get_database_path(tmp_path)
    week_ago = clock.now().date() - timedelta(days=7)
    done = syncing.sync(path, SOURCES_BY_NAME["federal_register"], week_ago, make_hosts(host), 0)
    assert done.failed == 0
    assert done.update.changes["federal_register"].new == 1
    with pytest.raises(UnknownSource):
        syncing.sync(path, SOURCES_BY_NAME["topic_taxonomy"], None, make_hosts(host), 0)
