"""Pages of federal records in a browser: what a filter was read as, numbers, links, refusals."""

import contextlib
import html
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.federal.pages.records import make_pages
from readingroom.web.templates import format_day
from tests.support.federal.base import Asked, load_files, make_base, write_world
from tests.support.kit import make_app, open_app_client

pytestmark = pytest.mark.anyio

BROWSER = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = tmp_path_factory.mktemp("record-pages")
    write_world(data / "files", bills=12, votes=2)
    load_files(data, data / "files", embed=False)
    return data


@contextlib.asynccontextmanager
async def serve_with_pages(data: Path) -> AsyncIterator[Asked]:
    """The base served in this process, with its pages."""
    base = make_base(data)
    base = replace(base, make_pages=partial(make_pages, base.service))
    async with open_app_client(make_app(base, data=data, rate_limit=0)) as web:
        yield Asked(web, base)
    base.service.store.close()


async def open_page(ask: Asked, path: str, status: int = 200, **params: Any) -> str:
    answer = await ask.web.get(path, params=params, headers=BROWSER)
    assert answer.status_code == status, answer.text
    return html.unescape(answer.text)


async def read_sponsor(ask: Asked) -> dict[str, Any]:
    """The record of a member who sponsored a loaded bill."""
    bills = await ask.record("/bills", limit=1)
    sponsor_id = bills["results"][0]["sponsors"][0]["bioguide_id"]
    return dict(await ask.record(f"/legislators/{sponsor_id}"))


async def test_a_list_says_whom_it_took_a_written_name_for(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        member = await read_sponsor(ask)
        written = f"{member['first_name']} {member['last_name']} of {member['state']}"
        told = f'Sponsor read as <a href="/records/view?id={member["id"]}">{member["title"]}'
        for path in ("/records/bills", "/records/bills/series"):
            assert told in await open_page(ask, path, sponsor=written)
            assert "read as" not in await open_page(ask, path, sponsor=member["id"])


async def test_a_list_says_which_stored_words_a_filter_was_read_as(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        page = await open_page(ask, "/records/bills", topic="topic:taxation")
        assert "Topic read as Taxation." in page


async def test_a_pending_bill_is_pending_on_the_day_of_its_file(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        bills = await ask.record("/bills", outcome="pending", limit=1)
        bill = bills["results"][0]
        shown = await open_page(ask, "/records/view", id=bill["id"])
    assert f"Pending on {format_day(bill['as_of'])}, the day of its file" in shown


async def test_a_page_of_links_draws_sponsors_and_says_what_it_does_not_draw(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        member = await read_sponsor(ask)
        page = await open_page(ask, "/records/links", id=member["id"])
        assert "by citation or sponsorship" in page
        assert (
            f'votes are not drawn: they are on <a href="/records/view?id={member["id"]}">' in page
        )
        assert f'<a href="/records/bills?sponsor={member["id"]}">Bills sponsored</a>' in page
        bills = (await ask.record("/bills", limit=200))["results"]
        (bill, *_) = [bill for bill in bills if bill["cosponsor_count"]]
        page = await open_page(ask, "/records/links", id=bill["id"])
        assert f"sponsors: {bill['sponsors'][0]['name']} ({bill['id']})" in page
        assert f'href="/records/view?id={bill["sponsors"][0]["bioguide_id"]}"' in page
        assert re.search(rf"cosponsors: [^<]*since [-0-9]+[^<]*\({bill['id']}\)", page)
        assert "The actions and the votes of members are not drawn" in page


async def test_a_page_of_many_links_still_draws_the_sponsor(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("readingroom.bases.federal.pages.links._MAX_LINKS", 1)
    async with serve_with_pages(world) as ask:
        bill = (await ask.record("/bills", limit=1))["results"][0]
        page = await open_page(ask, "/records/links", id=bill["id"])
    assert f"sponsors: {bill['sponsors'][0]['name']} ({bill['id']})" in page


async def test_a_member_page_shows_the_numbers_of_bills_and_votes(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        member = await read_sponsor(ask)
        dossier = await ask.record(f"/legislators/{member['id']}/dossier")
        page = await open_page(ask, "/records/view", id=member["id"])
        assert f'<a href="/records/bills?sponsor={member["id"]}">Bills sponsored</a>' in page
        counts, voting = (read_rows(page, title) for title in ("Bill counts", "Voting"))
        assert counts == [
            [str(item[field]) for field in ("congress", "sponsored", "cosponsored")]
            for item in dossier["bill_counts"]["items"]
        ]
        shown = ("congress", "party", "votes", "missed", "missed_percent", "with_party")
        assert [row[: len(shown)] for row in voting] == [
            [str(item[field]) for field in shown] for item in dossier["voting"]["items"]
        ]
        assert counts and voting
        sponsored_path = re.search(r'"(/records/bills\?sponsor=\w+&congress=\d+)"', page)
        assert sponsored_path, page
        await open_page(ask, sponsored_path[1])


def read_rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table under a heading, row by row."""
    table = page.partition(f"<h2>{title} ")[2].partition("</table>")[0].partition("<tbody>")[2]
    return [
        [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", table)
    ]


async def test_a_refused_filter_keeps_the_form_and_links_those_who_may_be_meant(
    world: Path,
) -> None:
    async with serve_with_pages(world) as ask:
        members = (await ask.record("/legislators", limit=200))["results"]
        bills = (await ask.record("/bills", limit=200))["results"]
        sponsor_ids = {bill["sponsors"][0]["bioguide_id"] for bill in bills}
        surnames = [member["last_name"] for member in members if member["id"] in sponsor_ids]
        shared_name = next(name for name in surnames if surnames.count(name) > 1)
        page = await open_page(ask, "/records/bills", 422, sponsor=shared_name, congress=119)
        assert f'name="sponsor" size="10" maxlength="200" value="{shared_name}"' in page
        assert "It was not accepted" in page and "/read?id=" not in page
        candidates = re.findall(r'<li><a href="(/records/bills\?[^"]*sponsor=(\w+)[^"]*)">', page)
        meant = {member["id"] for member in members if member["last_name"] == shared_name}
        assert len(candidates) > 1 and {member_id for _, member_id in candidates} <= meant
        for address, _ in candidates:
            assert "congress=119" in address
            await open_page(ask, address)
        assert "It was not accepted" in await open_page(ask, "/records/bills", 422, party="Z")


async def test_a_program_still_gets_the_refusal_of_a_filter_as_json(world: Path) -> None:
    async with serve_with_pages(world) as ask:
        for headers, params in (({}, {}), (BROWSER, {"format": "json"})):
            params = {"party": "Z", **params}
            answer = await ask.web.get("/records/bills", params=params, headers=headers)
            assert answer.status_code == 422
            if not headers:
                assert answer.json()["error"]["code"] == "invalid_arguments"
            assert "It was not accepted" not in answer.text


async def test_the_page_of_a_refusal_leads_back_and_speaks_of_no_other_address(
    world: Path,
) -> None:
    async with serve_with_pages(world) as ask:
        page = await open_page(ask, "/records/links", 422, id="nonsense!")
        assert "/read?id=" not in page
        assert '<a href="/records/links">Back to the page of this address</a>' in page
