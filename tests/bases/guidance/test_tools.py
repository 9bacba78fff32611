"""The guidance base's contract, through a real client, with the emulator as its GOV.UK."""

import contextlib
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from readingroom.bases.guidance.errors import ERROR_CLASSES, ContentOutOfScope
from readingroom.bases.guidance.models import (
    ATTRIBUTION,
    DISCLAIMER,
    ForceRefresh,
    GetContentByPath,
    GetSourceMetadata,
)
from readingroom.bases.guidance.store import CacheLifetimes
from readingroom.core.errors import InvalidSetting, KnowledgeError
from readingroom.demo import govuk
from readingroom.net.errors import UpstreamError, UpstreamUnavailable
from tests.requirements import requirement
from tests.support import faults
from tests.support.govuk import RETURN, Upstream, connect_client, reserve_dead_address, rigged
from tests.support.kit import read_body
from tests.support.processes import HANG_SECONDS

pytestmark = pytest.mark.anyio

RESERVES = "/guidance/charity-reserves-sample"
GUIDE = "/guidance/setting-up-a-charity-sample"


async def ask(url: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """One call on a base that was just opened: an answer."""
    async with connect_client(url) as client:
        return answer(await client.call_tool(tool, arguments))


async def call_for_error(url: str, tool: str, **arguments: Any) -> dict[str, Any]:
    """One call on a base that was just opened: an error."""
    async with connect_client(url) as client:
        return read_error(await client.call_tool(tool, arguments))


def answer(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    told: dict[str, Any] = read_body(result)
    assert (told["attribution"], told["disclaimer"]) == (ATTRIBUTION, DISCLAIMER)
    return told


def read_error(result: Any) -> dict[str, Any]:
    assert result.is_error
    told = read_body(result)
    assert told.keys() == {"error", "attribution", "disclaimer"}
    assert (told["attribution"], told["disclaimer"]) == (ATTRIBUTION, DISCLAIMER)
    failed: dict[str, Any] = told["error"]
    return failed


# --- pages ---


@requirement("guidance:readonly", "guidance:fidelity", "guidance:attribution")
async def test_a_page_comes_untouched_with_its_address_date_and_identifiers(
    upstream: Upstream,
) -> None:
    page = await ask(upstream.url, "get_content_by_path", path=RETURN)
    item = upstream.emulator.items_by_path[RETURN]
    assert page["content"] == item
    assert page["url"] == f"https://www.gov.uk{RETURN}"
    assert page["public_updated_at"] == "2025-07-14T09:00:00Z"
    assert page["identifiers"] == {
        "content_id": item["content_id"],
        "base_path": RETURN,
        "locale": "en",
        "schema_name": "detailed_guide",
        "document_type": "detailed_guide",
    }
    assert page["id"] == f"guidance:{RETURN}"
    assert page["warnings"] == []
    assert {seen.method for seen in upstream.emulator.seen_requests} == {"GET"}


@requirement("guidance:fidelity")
async def test_a_date_that_govuk_does_not_give_is_null(upstream: Upstream) -> None:
    upstream.emulator.items_by_path[RETURN]["public_updated_at"] = None
    del upstream.emulator.items_by_path[RESERVES]["public_updated_at"]
    for path in (RETURN, RESERVES):
        page = await ask(upstream.url, "get_content_by_path", path=path)
        metadata = await ask(upstream.url, "get_source_metadata", path=path)
        assert (page["public_updated_at"], metadata["last_updated"]) == (None, None)
        assert "updated" not in page["citation"]


@requirement("guidance:readonly")
async def test_the_text_is_readable_and_labelled_as_ours(upstream: Upstream) -> None:
    page = await ask(upstream.url, "get_content_by_path", path=RETURN)
    assert "text" in page["enrichment"]
    assert "content" not in page["enrichment"]
    assert "- the **dates** of the financial year" in page["text"]
    assert "[accounts](https://www.gov.uk/guidance/charity-accounts-and-reports)" in page["text"]
    assert "| 31 March | 31 January |" in page["text"]


async def test_parts_and_collections_are_read_too(upstream: Upstream) -> None:
    guide = await ask(upstream.url, "get_content_by_path", path=GUIDE)
    collection = await ask(
        upstream.url,
        "get_content_by_path",
        path="/government/collections/money-and-accounts-sample",
    )
    assert "## Find trustees\n\nYou usually need at least three." in guide["text"]
    assert "## Reporting\n\nWhat you send each year." in collection["text"]
    assert f"- [Prepare a charity annual return](https://www.gov.uk{RETURN})" in collection["text"]


@requirement("guidance:attachments")
async def test_attachments_and_images_are_referenced_not_served(upstream: Upstream) -> None:
    publication = "/government/publications/the-essential-trustee-sample"
    page = await ask(upstream.url, "get_content_by_path", path=publication)
    news = await ask(
        upstream.url,
        "get_content_by_path",
        path="/government/news/commission-publishes-sample-report",
    )
    assert "- [The essential trustee as PDF](https://assets.publishing" in page["text"]
    assert "![A chart of registrations](https://assets.publishing" in news["text"]
    assert all(path.startswith("/api/content/") for path in upstream.paths())


async def test_a_small_window_gets_the_text_alone_and_in_pieces(upstream: Upstream) -> None:
    whole = await ask(upstream.url, "get_content_by_path", path=RETURN)
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        piece = await ask(
            upstream.url,
            "get_content_by_path",
            path=RETURN,
            text_only=True,
            max_chars=100,
            offset=offset,
        )
        assert "content" not in piece
        assert len(piece["text"]) <= 100
        pieces.append(piece["text"])
        offset = piece["next_offset"]
    assert "".join(pieces) == whole["text"]
    assert (piece["text_chars"], whole["next_offset"]) == (len(whole["text"]), None)


async def test_an_offset_past_the_end_is_the_end(upstream: Upstream) -> None:
    page = await ask(
        upstream.url, "get_content_by_path", path=RETURN, offset=9_999_999, max_chars=5
    )
    assert (page["text"], page["next_offset"]) == ("", None)


async def test_a_withdrawn_page_says_so_before_anything_else(upstream: Upstream) -> None:
    path = "/guidance/charity-pandemic-advice-sample"
    page = await ask(upstream.url, "get_content_by_path", path=path)
    assert page["withdrawn"] is True
    assert page["withdrawn_notice"]["withdrawn_at"] == "2022-08-31T16:00:00Z"
    assert page["withdrawn_notice"]["explanation"].startswith("This page is out of date.")
    assert "> **Withdrawn.** This page is out of date." in page["text"][:200]
    assert "(withdrawn)" in page["citation"]
    assert (await ask(upstream.url, "get_content_by_path", path=RETURN))["withdrawn"] is False


async def test_translations_name_each_other(upstream: Upstream) -> None:
    english = await ask(upstream.url, "get_content_by_path", path=RESERVES)
    welsh = await ask(upstream.url, "get_content_by_path", path=f"{RESERVES}.cy")
    assert (english["locale"], welsh["locale"]) == ("en", "cy")
    assert [one["path"] for one in english["translations"]] == [f"{RESERVES}.cy"]
    assert [one["locale"] for one in welsh["translations"]] == ["en"]


async def test_a_page_is_found_by_its_id_wherever_it_is(upstream: Upstream) -> None:
    item = upstream.emulator.items_by_path[RETURN]
    page = await ask(upstream.url, "get_content_by_id", content_id=item["content_id"])
    assert page["content"] == item
    welsh = upstream.emulator.items_by_path[f"{RESERVES}.cy"]
    original = await ask(upstream.url, "get_content_by_id", content_id=welsh["content_id"])
    assert original["locale"] == "en"
    missing = await call_for_error(
        upstream.url, "get_content_by_id", content_id="0" * 8 + "-0000" * 3 + "-" + "0" * 12
    )
    assert missing["code"] == "NOT_FOUND_OR_REDIRECTED"
    bad = await call_for_error(upstream.url, "get_content_by_id", content_id="../x")
    assert bad["code"] == "INVALID_ARGUMENTS"


@requirement("guidance:scope")
@pytest.mark.parametrize("tool", ["get_content_by_path", "get_source_metadata", "force_refresh"])
async def test_a_page_of_another_organisation_is_out_of_scope(
    upstream: Upstream, tool: str
) -> None:
    told = await call_for_error(upstream.url, tool, path="/guidance/gift-aid-sample")
    assert told["code"] == "CONTENT_OUT_OF_SCOPE"
    assert "25p" not in json.dumps(told)


@requirement("guidance:scope")
async def test_a_page_published_together_with_others_is_in_scope(upstream: Upstream) -> None:
    path = "/government/publications/public-benefit-sample"
    metadata = await ask(upstream.url, "get_source_metadata", path=path)
    assert metadata["organisations"] == [
        "Charity Commission",
        "Department For Culture Media And Sport",
    ]


@requirement("guidance:scope")
@pytest.mark.parametrize("links", [{}, {"organisations": []}, {"organisations": "x"}, None, []])
async def test_a_page_that_names_no_organisation_is_out_of_scope(
    upstream: Upstream, links: Any
) -> None:
    upstream.emulator.items_by_path[RETURN]["links"] = links
    told = await call_for_error(upstream.url, "get_content_by_path", path=RETURN)
    assert told["code"] == "CONTENT_OUT_OF_SCOPE"


@requirement("guidance:not-found")
@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/guidance/nothing-here", {"use_tool": "search_guidance"}),
        (
            "/guidance/annual-return-old-address",
            {"redirected_to": RETURN, "use_tool": "get_content_by_path"},
        ),
        (f"{GUIDE}/register", {"redirected_to": GUIDE, "use_tool": "get_content_by_path"}),
        (
            "/guidance/a-page-taken-down",
            {
                "explanation": "It was published in error.",
                "alternative_path": "/guidance/charity-accounts-and-reports",
            },
        ),
    ],
)
@pytest.mark.parametrize("tool", ["get_content_by_path", "get_source_metadata", "force_refresh"])
async def test_what_is_missing_moved_or_gone_is_an_error_that_says_where_to_go(
    upstream: Upstream, tool: str, path: str, hint: dict[str, str]
) -> None:
    told = await call_for_error(upstream.url, tool, path=path)
    assert told["code"] == "NOT_FOUND_OR_REDIRECTED"
    assert told["hint"] == hint


@requirement("guidance:not-found")
@pytest.mark.parametrize(
    ("rule", "target"),
    [
        ({"type": "prefix"}, "/guidance/new/deeper/page"),
        ({"type": "prefix", "segments_mode": "ignore"}, "/guidance/new"),
        (
            {"type": "prefix", "destination": "https://elsewhere.example/x"},
            "https://elsewhere.example/x/deeper/page",
        ),
        ({"type": "exact"}, None),
    ],
)
async def test_a_redirect_item_may_carry_the_rest_of_the_path_along(
    upstream: Upstream, rule: dict[str, str], target: str | None
) -> None:
    path = "/guidance/old/deeper/page"
    rules = [{"path": "/guidance/old", "destination": "/guidance/new", **rule}]
    upstream.emulator.items_by_path[path] = {"schema_name": "redirect", "redirects": rules}
    told = await call_for_error(upstream.url, "get_content_by_path", path=path)
    assert told.get("hint", {}).get("redirected_to") == target
    assert ("use_tool" in told.get("hint", {})) is bool(target and target.startswith("/"))


@requirement("guidance:not-found", "guidance:fidelity")
async def test_a_redirect_to_another_site_is_told_as_it_stands(upstream: Upstream) -> None:
    """A path made of it would send the caller to a page that nobody named."""
    upstream.emulator.apply_fault = faults.failing(301, location="https://elsewhere.example/x")
    told = await call_for_error(upstream.url, "get_content_by_path", path=RETURN)
    assert told["code"] == "NOT_FOUND_OR_REDIRECTED"
    assert told["hint"] == {"redirected_to": "https://elsewhere.example/x"}


@requirement("guidance:metadata")
async def test_metadata_tells_the_source_without_its_words(upstream: Upstream) -> None:
    metadata = await ask(upstream.url, "get_source_metadata", path=RETURN)
    assert metadata["url"] == f"https://www.gov.uk{RETURN}"
    assert (
        metadata["identifiers"]["content_id"]
        == upstream.emulator.items_by_path[RETURN]["content_id"]
    )
    assert metadata["last_updated"] == "2025-07-14T09:00:00Z"
    assert metadata["licence"] == "OGL v3.0"
    assert "text" not in metadata
    assert "content" not in metadata


# --- search ---


@requirement("guidance:search")
async def test_a_search_gives_title_url_summary_and_date_of_the_commissions_pages(
    upstream: Upstream,
) -> None:
    found = await ask(upstream.url, "search_guidance", query="annual return")
    assert found["results"][0] == {
        "title": "Prepare a charity annual return",
        "url": f"https://www.gov.uk{RETURN}",
        "summary": "What to have at hand before you start your charity's annual return.",
        "public_updated_at": "2025-07-14T09:00:00Z",
        "path": RETURN,
        "id": f"guidance:{RETURN}",
        "document_type": "detailed_guide",
        # What the offline copy alone knows.
        **dict.fromkeys(("passage", "section", "score", "withdrawn", "change_note")),
    }
    (seen,) = upstream.emulator.seen_requests
    assert "filter_organisations=charity-commission" in seen.query
    assert "order=" not in seen.query  # by relevance


@requirement("guidance:search")
async def test_a_result_without_a_date_says_null_and_an_outside_link_stays_as_it_is(
    upstream: Upstream,
) -> None:
    away = {"base_path": "https://register.example/search", "public_updated_at": None}
    upstream.emulator.items_by_path[RETURN].update(away, description=None)
    (annual,) = (await ask(upstream.url, "search_guidance", query="annual"))["results"]
    assert (annual["url"], annual["path"]) == (away["base_path"], None)
    assert (annual["public_updated_at"], annual["summary"]) == (None, "")


@requirement("guidance:search", "guidance:tools")
@pytest.mark.parametrize("missing", ["base_path", "title"])
async def test_a_result_that_nobody_could_cite_is_left_out(
    upstream: Upstream, missing: str
) -> None:
    before = (await ask(upstream.url, "search_guidance", query="reserves"))["results"]
    upstream.emulator.items_by_path[RESERVES].update({missing: None})
    after = (await ask(upstream.url, "search_guidance", query="reserves"))["results"]
    assert after == [one for one in before if one["path"] != RESERVES]
    assert len(after) < len(before)


@requirement("guidance:search")
async def test_results_come_in_pages(upstream: Upstream) -> None:
    async with connect_client(upstream.url) as client:
        titles: list[str] = []
        page: int | None = 1
        while page:
            arguments = {"query": "charity", "page": page, "page_size": 7}
            found = answer(await client.call_tool("search_guidance", arguments))
            titles += [hit["title"] for hit in found["results"]]
            page = found["next_page"]
    assert len(titles) == len(set(titles)) == found["total"] > 20


@requirement("guidance:search")
async def test_filters_narrow_a_search(upstream: Upstream) -> None:
    async def titles(**filters: Any) -> set[str]:
        found = await ask(upstream.url, "search_guidance", query="charity", filters=filters)
        assert found["searched"]["organisation"] == "charity-commission"
        return {hit["title"] for hit in found["results"]}

    assert await titles(format="guide") == {"Setting up a charity"}
    assert await titles(document_type=["guide", "answer"]) >= {"Setting up a charity"}
    assert await titles(public_timestamp_from="2025-07-15") == {"Money and accounts"}
    assert await titles(public_timestamp_to="2021-12-31") == {
        "Running a charity during the pandemic"
    }
    assert await titles(organisation="charity-commission", format="guide")


@requirement("guidance:search")
@pytest.mark.parametrize(
    "filters",
    [
        {"organisation": "hm-revenue-customs"},
        {"organisation": ["charity-commission", "hm-revenue-customs"]},
        {"organisations": "hm-revenue-customs"},
        {"filter_organisations": "hm-revenue-customs"},
        {"format": "guide&filter_organisations=hm-revenue-customs"},
        {"format": []},
        {"format": 5},
        {"public_timestamp_from": "yesterday"},
        {"public_timestamp_from": 86400},
        {"public_timestamp_from": "2024-01-01T10:00:00Z"},
        {"public_timestamp_to": "2024-13-01"},
        {"reject_organisations": "charity-commission"},
        {"count": 1500},
        {"": ""},
        {"nested": {"deep": [1]}},
    ],
)
async def test_an_unknown_filter_or_another_organisation_is_refused_before_it_leaves(
    upstream: Upstream, filters: dict[str, Any]
) -> None:
    told = await call_for_error(upstream.url, "search_guidance", query="x", filters=filters)
    assert told["code"] == "UPSTREAM_PARAMETER_ERROR"
    assert told["hint"]
    assert upstream.emulator.seen_requests == []


async def test_a_parameter_that_govuk_refuses_is_told_as_such(upstream: Upstream) -> None:
    upstream.emulator.apply_fault = faults.failing(422)
    told = await call_for_error(upstream.url, "search_guidance", query="x")
    assert told["code"] == "UPSTREAM_PARAMETER_ERROR"
    assert len(upstream.emulator.seen_requests) == 1


@pytest.mark.parametrize("status", [301, 404, 410])
async def test_a_search_that_is_not_there_is_unavailable(upstream: Upstream, status: int) -> None:
    upstream.emulator.apply_fault = faults.failing(status)
    told = await call_for_error(upstream.url, "search_guidance", query="x")
    assert told["code"] == "UPSTREAM_UNAVAILABLE"


async def test_a_search_that_finds_nothing_says_what_was_searched(upstream: Upstream) -> None:
    found = await ask(upstream.url, "search_guidance", query="zebra  crossing")
    assert (found["results"], found["total"], found["query"]) == ([], 0, "zebra crossing")
    assert found["searched"] == {"organisation": "charity-commission"}


@requirement("guidance:changes")
async def test_recent_changes_are_those_since_a_day_the_latest_first(upstream: Upstream) -> None:
    told = await ask(upstream.url, "recent_changes", since="2025-07-01")
    dates = [change["public_updated_at"] for change in told["changes"]]
    assert dates == sorted(dates, reverse=True)
    assert min(dates) >= "2025-07-01"
    assert len(dates) == told["total"] == 4
    assert all(change["path"] for change in told["changes"])


# --- the cache, seen from outside ---


@requirement("guidance:cache")
async def test_a_second_call_is_answered_from_the_cache_until_the_ttl_is_over(
    upstream: Upstream,
) -> None:
    async with rigged(upstream.url, lifetimes=CacheLifetimes(content_seconds=60)) as rig:
        asked = GetContentByPath(path=RETURN)
        states = []
        for pause in (0, 30, 31):
            rig.wall.now += pause
            states.append((await rig.service.read_page(asked, rig.context())).cache)
    assert [(state.hit, state.age_s) for state in states] == [(False, 0), (True, 30), (False, 0)]
    assert {state.ttl_s for state in states} == {60}
    assert "if-none-match" in upstream.emulator.seen_requests[1].headers
    assert len(upstream.emulator.seen_requests) == 2


@requirement("guidance:cache")
async def test_searches_that_differ_only_in_spaces_and_order_share_an_entry(
    upstream: Upstream,
) -> None:
    async with connect_client(upstream.url) as client:
        for arguments in (
            {
                "query": "annual  return",
                "filters": {"format": "guide", "public_timestamp_from": "2020-01-01"},
            },
            {
                "query": " annual return",
                "filters": {"public_timestamp_from": "2020-01-01", "format": ["guide"]},
            },
        ):
            found = answer(await client.call_tool("search_guidance", arguments))
    assert found["cache"]["hit"] is True
    assert len(upstream.emulator.seen_requests) == 1


@requirement("guidance:stale")
async def test_a_stale_page_is_an_answer_with_a_warning_and_its_age(upstream: Upstream) -> None:
    async with rigged(upstream.url, stale_seconds=100) as rig:
        asked = GetContentByPath(path=RETURN)
        fresh = await rig.service.read_page(asked, rig.context())
        upstream.emulator.apply_fault = faults.failing(500)
        rig.wall.now += 100
        stale = await rig.service.read_page(asked, rig.context())
        rig.wall.now += 60
        with pytest.raises(UpstreamUnavailable):
            await rig.service.read_page(asked, rig.context())
    assert (stale.text, stale.cache.stale, stale.cache.age_s) == (fresh.text, True, 100)
    (warning,) = stale.warnings
    assert (warning.code, warning.age_s) == ("STALE_CACHE_SERVED", 100)


@requirement("guidance:refresh")
async def test_a_refresh_fetches_anew_and_the_next_reader_sees_it(upstream: Upstream) -> None:
    async with connect_client(upstream.url) as client:
        answer(await client.call_tool("get_content_by_path", {"path": RETURN}))
        same = answer(await client.call_tool("force_refresh", {"path": RETURN}))
        upstream.emulator.items_by_path[RETURN]["title"] = "A new title"
        done = answer(await client.call_tool("force_refresh", {"path": RETURN}))
        page = answer(await client.call_tool("get_content_by_path", {"path": RETURN}))
    assert (same["refreshed"], same["changed"]) == (True, False)
    assert (done["refreshed"], done["changed"]) == (True, True)
    assert (page["title"], page["cache"]["hit"]) == ("A new title", True)
    assert len(upstream.emulator.seen_requests) == 3
    assert upstream.emulator.seen_requests[1].headers["cache-control"] == "no-cache"


@requirement("guidance:refresh")
async def test_a_page_that_changes_twice_in_one_moment_is_read_as_it_is_now(
    upstream: Upstream,
) -> None:
    async with rigged(upstream.url) as rig:  # its clock stands still
        for title in ("First", "Second", "First"):
            upstream.emulator.items_by_path[RETURN]["title"] = title
            await rig.service.refresh_page(ForceRefresh(path=RETURN), rig.context())
            page = await rig.service.read_page(GetContentByPath(path=RETURN), rig.context())
            assert page.title == title


@requirement("guidance:refresh")
async def test_a_refresh_that_fails_keeps_the_old_copy_and_says_so(upstream: Upstream) -> None:
    async with rigged(upstream.url) as rig:
        await rig.service.read_page(GetContentByPath(path=RETURN), rig.context())
        upstream.emulator.apply_fault = faults.failing(500)
        rig.wall.now += 10
        done = await rig.service.refresh_page(ForceRefresh(path=RETURN), rig.context())
        kept = await rig.service.get_source_metadata(GetSourceMetadata(path=RETURN), rig.context())
        with pytest.raises(UpstreamUnavailable):
            await rig.service.refresh_page(ForceRefresh(path=RESERVES), rig.context())
    assert (done.refreshed, done.changed) == (False, False)
    assert done.timestamp == "1970-01-12T13:46:40Z"
    assert done.warnings[0].code == "STALE_CACHE_SERVED"
    assert (kept.cache.hit, kept.cache.stale) == (True, False)


@requirement("guidance:cache")
async def test_200_callers_of_one_missing_page_cost_one_request(upstream: Upstream) -> None:
    upstream.emulator.apply_fault = faults.slow(0.2)
    async with connect_client(upstream.url) as client:
        texts: list[str] = []

        async def one() -> None:
            page = answer(await client.call_tool("get_content_by_path", {"path": RETURN}))
            texts.append(page["text"])

        async with anyio.create_task_group() as stampede:
            for _ in range(200):
                stampede.start_soon(one)
    assert len(texts) == 200
    assert len(upstream.emulator.seen_requests) == 1


# --- faults, as the caller sees them ---

_SLOW, _DRIPPING = faults.slow(3600), faults.drip(0.2)


@requirement("guidance:breaker")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (faults.failing(500), "UPSTREAM_UNAVAILABLE"),
        (faults.failing(429, retry_after="30"), "UPSTREAM_RATE_LIMITED"),
        (_SLOW, "UPSTREAM_UNAVAILABLE"),
        (_DRIPPING, "UPSTREAM_UNAVAILABLE"),
        (faults.truncated, "UPSTREAM_UNAVAILABLE"),
        (faults.cut_off, "UPSTREAM_UNAVAILABLE"),
        (faults.as_html, "UPSTREAM_UNAVAILABLE"),
        (faults.huge, "UPSTREAM_UNAVAILABLE"),
        (faults.failing(403), "UPSTREAM_UNAVAILABLE"),
    ],
    ids=["500", "429", "slow", "drip", "truncated", "cut-off", "html", "huge", "403"],
)
async def test_each_fault_is_told_with_its_code_within_the_deadline(
    upstream: Upstream, fault: govuk.ApplyFault, code: str
) -> None:
    upstream.emulator.apply_fault = fault
    # Short for those alone that last: a busy machine may need longer for the others.
    seconds = 1.0 if fault in (_SLOW, _DRIPPING) else 60.0
    async with connect_client(upstream.url, timeout_seconds=seconds) as client:
        with anyio.fail_after(HANG_SECONDS):
            told = read_error(await client.call_tool("get_content_by_path", {"path": RETURN}))
    assert told["code"] == code
    assert len(upstream.emulator.seen_requests) <= 4


async def test_nobody_at_home_is_unavailable_not_rate_limited() -> None:
    with reserve_dead_address() as url:
        told = await call_for_error(url, "get_content_by_path", path=RETURN)
    assert told["code"] == "UPSTREAM_UNAVAILABLE"


@requirement("guidance:backoff")
async def test_a_host_that_flaps_is_answered_through(upstream: Upstream) -> None:
    upstream.emulator.apply_fault = faults.every_other(faults.failing(500))
    async with connect_client(upstream.url, cache_lifetimes=CacheLifetimes(0, 0)) as client:
        for _ in range(5):
            answer(await client.call_tool("get_content_by_path", {"path": RETURN}))
    assert len(upstream.emulator.seen_requests) == 10


@requirement("guidance:limit", "guidance:rate-limited")
async def test_a_client_over_its_rate_waits_a_second_and_is_then_refused(
    upstream: Upstream,
) -> None:
    async with connect_client(upstream.url, requests_per_second=2) as client:
        outcomes: list[dict[str, Any]] = []

        async def one() -> None:
            outcomes.append(read_body(await client.call_tool("get_error_taxonomy")))

        started = time.monotonic()
        async with anyio.create_task_group() as burst:
            for _ in range(10):
                burst.start_soon(one)
        seconds = int(time.monotonic() - started) + 1
    refused = [told["error"] for told in outcomes if "error" in told]
    # Two for each second begun; on a busy machine the ten take longer, and more of them pass.
    assert 2 <= 10 - len(refused) <= 2 * seconds
    assert {told["code"] for told in refused} <= {"UPSTREAM_RATE_LIMITED"}
    assert all(told["hint"]["retry_after"] >= 1 for told in refused)


@requirement("guidance:limit")
async def test_what_is_in_the_cache_counts_for_nobodys_limit(upstream: Upstream) -> None:
    async with connect_client(upstream.url, requests_per_second=2) as client:
        answers: list[dict[str, Any]] = []

        async def read() -> None:
            answers.append(
                read_body(await client.call_tool("get_source_metadata", {"path": RETURN}))
            )

        async with anyio.create_task_group() as burst:
            for _ in range(50):
                burst.start_soon(read)
    assert all("error" not in answer for answer in answers)
    assert len(upstream.emulator.seen_requests) == 1


@requirement("guidance:limit")
async def test_no_second_sees_more_than_ten_requests_upstream(upstream: Upstream) -> None:
    """The budget is the server's, however many clients of its own it has."""
    paths = [path for path, item in upstream.emulator.items_by_path.items() if item["title"]][:25]
    async with rigged(upstream.url, per_second=10, has_real_time=True) as rig:

        async def one(path: str) -> None:
            with contextlib.suppress(ContentOutOfScope):
                await rig.service.read_page(GetContentByPath(path=path), rig.context())

        started = time.monotonic()
        async with anyio.create_task_group() as burst:
            for path in paths:
                burst.start_soon(one, path)
    times = sorted(seen.time for seen in upstream.emulator.seen_requests)
    assert len(times) == 25
    # What is exact is when they leave (test_upstream); a busy machine can only make them later.
    assert times[10] - started > 0.99
    assert times[20] - started > 1.99


# --- the taxonomy ---


@requirement("guidance:taxonomy")
async def test_the_taxonomy_lists_the_codes_that_can_be_told(upstream: Upstream) -> None:
    told = await ask(upstream.url, "get_error_taxonomy")
    known = {kind["code"]: kind["description"] for kind in told["errors"]}
    assert known["UPSTREAM_RATE_LIMITED"] == "GOV.UK API rate limit exceeded"
    assert known["NOT_FOUND_OR_REDIRECTED"] == "Requested path not found or redirected"
    assert known["STALE_CACHE_SERVED"] == "Stale cache served due to upstream failure"
    assert known["CONTENT_OUT_OF_SCOPE"] == "Content is not part of Charity Commission guidance"
    assert known.keys() == {
        *(kind.code.upper() for kind in UpstreamError.__subclasses__()),
        "INVALID_ARGUMENTS",
        "INTERNAL",
    }
    assert all(known.values())
    assert upstream.emulator.seen_requests == []


@requirement("guidance:taxonomy")
def test_what_the_base_and_its_upstream_raise_is_in_the_taxonomy() -> None:
    source = Path(__file__).parents[3] / "src" / "readingroom"
    written = "".join(
        path.read_text("utf-8")
        for folder in ("bases/guidance", "net")
        for path in (source / folder).glob("*.py")
        if path.name not in ("download.py", "errors.py")  # files of another base; definitions
    )
    named = {
        kind
        for kind in _list_error_classes(KnowledgeError)
        if re.search(rf"\b{kind.__name__}\(", written)
    }
    named.remove(InvalidSetting)  # told when the server starts, never to a caller
    assert named
    assert named <= set(ERROR_CLASSES)


def _list_error_classes(kind: type[KnowledgeError]) -> Iterator[type[KnowledgeError]]:
    for child in kind.__subclasses__():
        yield child
        yield from _list_error_classes(child)


@requirement("guidance:attribution", "guidance:disclaimer")
async def test_every_answer_and_every_error_carries_both_sentences(upstream: Upstream) -> None:
    """Whatever is called with whatever: `answer` and `error` look for them."""
    good: dict[str, dict[str, Any]] = {
        "get_content_by_path": {"path": RETURN},
        "get_content_by_id": {"content_id": upstream.emulator.items_by_path[RETURN]["content_id"]},
        "search_guidance": {"query": "x"},
        "search_in_page": {"path": RETURN, "query": "deadline"},
        "verify_guidance_quote": {"path": RETURN, "quote": "Send it"},
        "recent_changes": {"since": "2025-01-01"},
        "get_source_metadata": {"path": RETURN},
        "force_refresh": {"path": RETURN},
        "get_error_taxonomy": {},
    }
    async with connect_client(upstream.url) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed == good.keys()
        for tool, arguments in good.items():
            told = answer(await client.call_tool(tool, arguments))
            assert told["attribution"] == "Source: GOV.UK, Charity Commission guidance, OGL v3.0"
            assert told["disclaimer"] == "This is guidance, not legal advice."
            read_error(await client.call_tool(tool, {"nonsense": 1}))
