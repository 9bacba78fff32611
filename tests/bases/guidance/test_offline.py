"""The offline copy: fetched politely and once, resumed after a kill, asked when GOV.UK is down."""

import collections
import copy
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from readingroom.bases.guidance.offline import sync
from readingroom.bases.guidance.offline.answers import OfflineGuidance
from readingroom.bases.guidance.offline.index import OfflineIndex, ReadOnlyPassages
from readingroom.bases.guidance.offline.library import (
    GuidanceLibrary,
    PendingPage,
)
from readingroom.bases.guidance.offline.passages import cut_passages
from readingroom.bases.guidance.offline.sync import RESULTS_PER_LIST_PAGE, GuidanceSync, SyncSummary
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.core.progress import no_progress
from readingroom.demo.govuk import ApplyFault, make_sample_content_items
from readingroom.demo.govuk_search import ContentItem
from readingroom.net.errors import UpstreamUnavailable
from readingroom.net.limiter import SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import UpstreamClient
from readingroom.storage.chunks import Chunks
from tests.conftest import SHARED
from tests.requirements import requirement
from tests.support.govuk import (
    RETURN,
    Clock,
    Upstream,
    connect_client,
    reserve_dead_address,
    run_emulator,
)
from tests.support.kit import HANG_SECONDS, read_body
from tests.support.model import EMBEDDER, WordEmbedder
from tests.support.questions import read_many_questions, read_questions

pytestmark = pytest.mark.anyio

EMULATED: Any = WordEmbedder()


def make_items(count: int, originals: list[ContentItem] | None = None) -> dict[str, ContentItem]:
    """Return pages varied from the sample's, or from others, each of another day."""
    readable = originals or [
        item
        for item in make_sample_content_items().values()
        if item["schema_name"] in ("detailed_guide", "answer", "news_article")
        and not item.get("withdrawn_notice")
        and item["links"]["organisations"][0]["base_path"].endswith("/charity-commission")
    ]
    items = {}
    for number in range(count):
        item = copy.deepcopy(readable[number % len(readable)])
        item["base_path"] = f"/guidance/page-{number}"
        item["title"] = f"{item['title']}, part {number}"
        item["public_updated_at"] = f"20{10 + number // 300}-{1 + number % 12:02}-01T00:00:00Z"
        item["details"]["change_history"] = [
            {"public_timestamp": item["public_updated_at"], "note": f"Change number {number}."}
        ]
        items[item["base_path"]] = item
    return items


def read_shared_items() -> list[ContentItem]:
    """Return the real pages of the shared data as if they were the Commission's."""
    commission = {
        "content_id": "489e651f-34c8-4b34-bdd7-e13c2324cde3",
        "base_path": "/government/organisations/charity-commission",
        "title": "The Charity Commission",
    }
    items = []
    for file in sorted((SHARED / "guidance" / "examples").glob("*/frontend/*.json")):
        item = json.loads(file.read_text("utf-8"))
        if item["schema_name"] not in ("redirect", "gone") and isinstance(item["details"], dict):
            item.pop("withdrawn_notice", None)
            items.append(
                {**item, "links": {**item.get("links", {}), "organisations": [commission]}}
            )
    return items


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with run_emulator(make_items(RESULTS_PER_LIST_PAGE + 30)) as running:
        running.emulator.lists_total = running.emulator.lists_withdrawn = False
        yield running


async def synchronize(
    url: str,
    folder: Path,
    clock: Clock | None = None,
    checks_every_page: bool = False,
    embedder: Any = EMULATED,
) -> SyncSummary:
    clock = clock or Clock()
    client = UpstreamClient(
        url,
        SlidingWindow(10, read_clock=clock, sleep=clock.sleep),
        UpstreamMetrics(),
        read_clock=clock,
        sleep=clock.sleep,
    )
    library = GuidanceLibrary(folder)
    try:
        sync_run = GuidanceSync(library, client, embedder, no_progress, clock.sleep, clock)
        return await sync_run.synchronize_pages(checks_every_page)
    finally:
        await client.close()
        library.close()


def count_content_requests(upstream: Upstream) -> collections.Counter[str]:
    paths = [path.removeprefix("/api/content") for path in upstream.paths()]
    return collections.Counter(path for path in paths if not path.startswith("/api/"))


@requirement("guidance:offline")
async def test_every_page_is_fetched_once_and_within_the_budget(
    upstream: Upstream, tmp_path: Path
) -> None:
    await check_first_sync(upstream, tmp_path)


@pytest.mark.data
@pytest.mark.full
@requirement("guidance:offline")
async def test_a_thousand_real_pages_are_fetched_once_also_when_the_sync_is_killed(
    tmp_path: Path,
) -> None:
    with run_emulator(make_items(1000, read_shared_items())) as upstream:
        upstream.emulator.lists_total = upstream.emulator.lists_withdrawn = False
        await anyio.to_thread.run_sync(kill_while_fetching, upstream, tmp_path, 400)
        library_folder = tmp_path / "guidance"
        assert GuidanceLibrary(library_folder).read_status().pages == 399
        await check_first_sync(upstream, library_folder, stored_count=399)
        await check_second_sync(upstream, library_folder)


@requirement("guidance:offline")
async def test_the_second_sync_fetches_changed_pages_only(
    upstream: Upstream, tmp_path: Path
) -> None:
    await synchronize(upstream.url, tmp_path)
    await check_second_sync(upstream, tmp_path)


async def check_first_sync(upstream: Upstream, folder: Path, stored_count: int = 0) -> None:
    """The first sync, with every twentieth request refused; its times are those of our clock.

    With `stored_count` it goes on after one that was killed with so many pages.
    """
    clock = Clock()
    sent_at: list[float] = []

    async def refuse_some(request: Request, response: Response) -> Response:
        sent_at.append(clock.now)
        if len(sent_at) % 20 == 0:
            return JSONResponse({}, 429, {"Retry-After": "2"})
        return response

    upstream.emulator.apply_fault = refuse_some
    summary = await synchronize(upstream.url, folder, clock)
    upstream.emulator.apply_fault = None

    paths = set(upstream.emulator.items_by_path)
    assert summary.fetched == len(paths) - stored_count
    assert summary.resumed == bool(stored_count)
    requests = count_content_requests(upstream)
    assert set(requests) == paths
    refused = len(sent_at) // 20
    # The one that was under way when the process was killed is asked for again.
    assert sum(requests.values()) <= len(paths) + refused + bool(stored_count)
    assert all(
        later - earlier >= 1.0 for earlier, later in zip(sent_at, sent_at[10:], strict=False)
    )
    status = GuidanceLibrary(folder).read_status()
    assert status.pages == len(paths)
    assert status.pending == 0
    assert status.embedded == status.passages > len(paths)
    assert status.synced_at is not None


async def check_second_sync(upstream: Upstream, folder: Path) -> None:
    items = upstream.emulator.items_by_path
    changed, withdrawn, gone, new = (
        "/guidance/page-3",
        "/guidance/page-5",
        "/guidance/page-7",
        "/new",
    )
    items[changed]["public_updated_at"] = "2026-01-01T00:00:00Z"
    items[changed]["details"]["body"] = "<p>Trustees must now wear hats.</p>"
    items[withdrawn]["withdrawn_notice"] = {"explanation": "<p>Old.</p>", "withdrawn_at": "2026"}
    del items[gone]
    items[new] = {**copy.deepcopy(items[changed]), "base_path": new}
    upstream.emulator.seen_requests.clear()

    summary = await synchronize(upstream.url, folder)

    assert set(count_content_requests(upstream)) == {changed, withdrawn, gone, new}
    assert set(count_content_requests(upstream).values()) == {1}
    assert (summary.fetched, summary.removed) == (3, 1)
    library = GuidanceLibrary(folder)
    stored = library.read_page(withdrawn)
    assert stored
    assert stored.is_withdrawn
    assert library.read_page(gone) is None
    upstream.emulator.seen_requests.clear()
    assert (await synchronize(upstream.url, folder)).fetched == 0
    assert count_content_requests(upstream) == {}


async def test_asked_for_everything_it_asks_conditionally(
    upstream: Upstream, tmp_path: Path
) -> None:
    await synchronize(upstream.url, tmp_path)
    upstream.emulator.items_by_path["/guidance/page-9"]["title"] = "Changed without a new date"
    upstream.emulator.seen_requests.clear()
    summary = await synchronize(upstream.url, tmp_path, checks_every_page=True)
    assert summary.fetched == 1
    assert summary.unchanged == len(upstream.emulator.items_by_path) - 1
    requests = [
        seen for seen in upstream.emulator.seen_requests if seen.path.startswith("/api/content")
    ]
    assert all(seen.headers.get("if-none-match") for seen in requests)


@requirement("guidance:offline")
async def test_a_sync_that_is_killed_goes_on_where_it_stopped(
    upstream: Upstream, tmp_path: Path
) -> None:
    """No page that it had is fetched again."""
    await anyio.to_thread.run_sync(kill_while_fetching, upstream, tmp_path, 40)
    stored = GuidanceLibrary(tmp_path / "guidance").read_status().pages
    assert stored == 39

    summary = await synchronize(upstream.url, tmp_path / "guidance")

    assert summary.resumed
    assert summary.fetched == len(upstream.emulator.items_by_path) - stored
    # The one that was under way is asked for again, and no other.
    assert (
        sum(count_content_requests(upstream).values()) == len(upstream.emulator.items_by_path) + 1
    )
    listings = [seen for seen in upstream.emulator.seen_requests if seen.path == "/api/search.json"]
    assert len(listings) == 2


def kill_while_fetching(upstream: Upstream, data_folder: Path, page_number: int) -> None:
    """Kill a sync of another process while GOV.UK keeps it waiting for its so many-eth page."""
    has_arrived, may_answer = threading.Event(), threading.Event()
    answered = 0

    async def hang_at_the_page(request: Request, response: Response) -> Response:
        nonlocal answered
        answered += request.url.path.startswith("/api/content")
        if answered == page_number and not may_answer.is_set():
            has_arrived.set()
            await anyio.to_thread.run_sync(may_answer.wait)
        return response

    upstream.emulator.apply_fault = hang_at_the_page
    environment = {
        "GOVUK_BASE_URL": upstream.url,
        "READINGROOM_DATA": str(data_folder),
        "EMBEDDING_MODEL_DIR": str(data_folder / "no-model"),
        "RATE_LIMIT_PER_SECOND": "1000",
        "READINGROOM_GOVUK_TIMEOUT_SECONDS": "120",
        "PATH": "/usr/bin:/bin",
    }
    command = [sys.executable, "-m", "readingroom", "guidance", "sync", "--json"]
    try:
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            has_hung = has_arrived.wait(HANG_SECONDS)
            process.kill()
        assert has_hung
    finally:
        may_answer.set()


@pytest.fixture
def few_pages() -> Iterator[Upstream]:
    with run_emulator(make_items(16)) as running:
        yield running


def answer_badly(bad_replies: dict[str, Response]) -> ApplyFault:
    """Return a fault: these pages get these replies, all others their own."""

    async def fault(request: Request, response: Response) -> Response:
        return bad_replies.get(request.url.path.removeprefix("/api/content"), response)

    return fault


@requirement("guidance:offline")
async def test_pages_that_cannot_be_fetched_or_read_are_skipped_named_and_tried_again(
    few_pages: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    malformed, refused, failing, unreadable = (f"/guidance/page-{n}" for n in (3, 5, 7, 9))
    few_pages.emulator.apply_fault = answer_badly(
        {
            malformed: Response(b'{"title": ', media_type="application/json"),
            refused: JSONResponse({}, 422),
            failing: JSONResponse({}, 500),
        }
    )

    def cut_or_fail(page: GovukPage) -> Any:
        if page.path == unreadable:
            raise RecursionError
        return cut_passages(page)

    monkeypatch.setattr(sync, "cut_passages", cut_or_fail)
    summary = await synchronize(few_pages.url, tmp_path)

    bad_paths = {malformed, refused, failing, unreadable}
    assert {page.path for page in summary.skipped} == bad_paths
    assert summary.fetched == len(few_pages.emulator.items_by_path) - len(bad_paths)
    library = GuidanceLibrary(tmp_path)
    assert library.read_status().synced_at is not None
    assert {page.path for page in library.list_pending_pages(10)} == bad_paths

    few_pages.emulator.apply_fault = None
    monkeypatch.undo()
    few_pages.emulator.seen_requests.clear()
    summary = await synchronize(few_pages.url, tmp_path)
    assert summary.skipped == []
    assert set(count_content_requests(few_pages)) == bad_paths
    assert library.read_status().pending == 0


async def test_a_page_that_was_skipped_keeps_the_age_of_the_copy_that_is_left(
    few_pages: Upstream, tmp_path: Path
) -> None:
    path = "/guidance/page-3"
    await synchronize(few_pages.url, tmp_path)
    library = GuidanceLibrary(tmp_path)
    before = library.read_page(path)
    few_pages.emulator.items_by_path[path]["public_updated_at"] = "2026-01-01T00:00:00Z"
    few_pages.emulator.apply_fault = answer_badly({path: JSONResponse([])})
    await synchronize(few_pages.url, tmp_path)
    after, other = library.read_page(path), library.read_page("/guidance/page-4")
    assert before
    assert after
    assert other
    assert after.checked_at == before.checked_at < other.checked_at


async def test_when_every_page_fails_the_sync_ends_and_the_next_goes_on(
    few_pages: Upstream, tmp_path: Path
) -> None:
    few_pages.emulator.apply_fault = answer_badly(
        dict.fromkeys(few_pages.emulator.items_by_path, JSONResponse({}, 503))
    )
    with pytest.raises(UpstreamUnavailable, match="5 pages in a row"):
        await synchronize(few_pages.url, tmp_path)
    assert len(count_content_requests(few_pages)) == 5
    few_pages.emulator.apply_fault = None
    summary = await synchronize(few_pages.url, tmp_path)
    assert summary.resumed
    assert summary.fetched == len(few_pages.emulator.items_by_path)


@pytest.mark.parametrize(
    ("bound", "value", "told"),
    [
        ("MAX_PAGES", 10, "10 pages"),
        ("MAX_SYNC_BYTES", 1, "0 MB"),
        ("MAX_SYNC_SECONDS", 0.5, "hours"),
    ],
)
async def test_a_sync_has_bounds_and_keeps_what_it_had(
    few_pages: Upstream,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    value: float,
    told: str,
) -> None:
    monkeypatch.setattr(sync, "PAGES_PER_BATCH", 4)
    monkeypatch.setattr(sync, bound, value)
    with pytest.raises(UpstreamUnavailable, match=told):
        await synchronize(few_pages.url, tmp_path)
    fetched_count = GuidanceLibrary(tmp_path).read_status().pages
    assert fetched_count < len(few_pages.emulator.items_by_path)
    monkeypatch.undo()
    summary = await synchronize(few_pages.url, tmp_path)
    assert summary.resumed
    assert summary.fetched == len(few_pages.emulator.items_by_path) - fetched_count


@pytest.fixture
async def copied(tmp_path: Path) -> OfflineGuidance:
    """The sample's pages as an offline copy."""
    with run_emulator() as upstream:
        await synchronize(upstream.url, tmp_path)
    return OfflineGuidance(GuidanceLibrary(tmp_path), EMULATED, max_age_days=30)


async def call(url: str, offline: OfflineGuidance | None, tool: str, **arguments: Any) -> Any:
    async with connect_client(url, offline_guidance=offline, timeout_seconds=2.0) as client:
        return read_body(await client.call_tool(tool, arguments))


@requirement("guidance:offline")
@pytest.mark.parametrize("mode", ["live", "auto", "offline"])
async def test_when_govuk_is_down_a_search_gives_passages_with_their_age(
    copied: OfflineGuidance, mode: str
) -> None:
    with reserve_dead_address() as url:
        found = await call(
            url, copied, "search_guidance", query="annual return deadline", mode=mode
        )
    best = found["results"][0]
    assert best["path"] == RETURN
    assert best["passage"]
    assert 0 <= best["score"] <= 1
    assert found["offline"]["pages"] > 20
    assert found["cache"]["age_s"] == found["offline"]["age_s"] >= 0
    scores = [hit["score"] for hit in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert found["confidence"] in ("strong", "fair")
    codes = [warning["code"] for warning in found["warnings"]]
    assert codes == (["STALE_CACHE_SERVED"] if mode == "live" else [])


async def test_what_the_copy_does_not_know_is_called_none(copied: OfflineGuidance) -> None:
    newest = copied.search("annual return deadline", {}, 0, 5, newest_first=True)
    assert newest.confidence.level in ("strong", "fair")  # of the best, wherever it stands
    unknown = copied.search("zyx banana wxq", {}, 0, 5, newest_first=False)
    assert unknown.confidence.level == "none"


async def test_govuk_s_own_results_have_no_confidence_and_say_why(upstream: Upstream) -> None:
    found = await call(upstream.url, None, "search_guidance", query="reserves", mode="live")
    assert found["results"]
    assert found["confidence"] is None
    assert "no scores" in found["confidence_reason"]


async def test_a_search_says_how_far_the_vectors_are_and_the_newest_pages_get_theirs_first(
    copied: OfflineGuidance, tmp_path: Path
) -> None:
    library = GuidanceLibrary(tmp_path)
    with library.open_database() as db, db.transaction():
        db.execute("UPDATE passages SET vector = NULL WHERE rowid % 2 = 0")
        newest_path = db.execute("SELECT max(path) FROM passages WHERE vector IS NULL").fetchone()[
            0
        ]
        db.execute("UPDATE pages SET listed_timestamp = '2001-01-01T00:00:00Z'")
        db.execute(
            "UPDATE pages SET listed_timestamp = '2030-01-01T00:00:00Z' WHERE path = ?",
            (newest_path,),
        )
    status = library.read_status()
    assert 0 < status.embedded < status.passages

    ids = [passage_id for passage_id, _ in library.list_unembedded_passages(1000)]
    assert len(ids) == status.passages - status.embedded
    with library.open_database() as db:
        paths = dict(db.execute("SELECT id, path FROM passages").fetchall())
    assert paths[ids[0]] == newest_path
    degraded = copied.search("charity reserves", {}, 0, 5, False).offline_copy.degraded
    assert f"{100 * status.embedded // status.passages} % of the passages" in str(degraded)
    library.close()


@requirement("guidance:offline")
async def test_when_govuk_is_down_a_page_is_read_from_the_copy_and_marked(
    copied: OfflineGuidance,
) -> None:
    with reserve_dead_address() as url:
        page = await call(url, copied, "get_content_by_path", path=RETURN)
    assert page["content"] == make_sample_content_items()[RETURN]
    assert page["cache"]["stale"] is True
    assert [warning["code"] for warning in page["warnings"]] == ["STALE_CACHE_SERVED"]


async def test_a_copy_that_is_too_old_does_not_answer(tmp_path: Path) -> None:
    with run_emulator() as upstream:
        await synchronize(upstream.url, tmp_path)
    offline = OfflineGuidance(GuidanceLibrary(tmp_path), EMULATED, max_age_days=0)
    with reserve_dead_address() as url:
        error = (await call(url, offline, "get_content_by_path", path=RETURN))["error"]
    assert error["code"] == "UPSTREAM_UNAVAILABLE"


async def test_without_a_copy_offline_says_how_to_make_one_and_makes_nothing(
    tmp_path: Path,
) -> None:
    offline = OfflineGuidance(GuidanceLibrary(tmp_path / "guidance"), EMULATED, max_age_days=30)
    with reserve_dead_address() as url:
        told = await call(url, offline, "search_guidance", query="reserves", mode="offline")
    assert "readingroom guidance sync" in told["error"]["message"]
    assert list(tmp_path.iterdir()) == []


async def test_what_changed_since_a_day_comes_with_its_note(
    upstream: Upstream, tmp_path: Path
) -> None:
    await synchronize(upstream.url, tmp_path)
    offline = OfflineGuidance(GuidanceLibrary(tmp_path), EMULATED, max_age_days=30)
    live = await call(upstream.url, offline, "recent_changes", since="2010-12-01", page_size=100)
    assert live["offline"] is None
    assert live["changes"][0]["change_note"].startswith("Change number ")
    with reserve_dead_address() as url:
        down = await call(url, offline, "recent_changes", since="2010-12-01", page_size=100)
    assert {hit["path"] for hit in down["changes"]} == {hit["path"] for hit in live["changes"]}
    assert down["offline"]["age_s"] >= 0
    assert down["changes"][0]["change_note"].startswith("Change number ")


async def test_a_reader_sees_what_another_process_has_synchronized(tmp_path: Path) -> None:
    items = make_items(5)
    with run_emulator(items) as upstream:
        await synchronize(upstream.url, tmp_path)
        index = OfflineIndex(GuidanceLibrary(tmp_path), EMULATED)
        assert not any(passage.path == "/new" for passage in index.search_passages("hats", 10)[0])
        new = copy.deepcopy(items["/guidance/page-1"])
        new |= {"base_path": "/new", "title": "Hats", "details": {"body": "<p>Wear hats.</p>"}}
        upstream.emulator.items_by_path["/new"] = new
        await synchronize(upstream.url, tmp_path)
        (first, *_), _ = index.search_passages("hats", 10)
    assert first.path == "/new"
    index.close()


async def test_a_hit_shows_its_page_as_the_last_sync_has_it(tmp_path: Path) -> None:
    items = make_items(3)
    items["/hats"] = copy.deepcopy(items["/guidance/page-1"])
    items["/hats"] |= {"base_path": "/hats", "title": "Hats", "details": {"body": "<p>Hats.</p>"}}
    with run_emulator(items) as upstream:
        await synchronize(upstream.url, tmp_path)
        offline = OfflineGuidance(GuidanceLibrary(tmp_path), EMULATED, max_age_days=30)
        for title, text in (("Hats", "Hats."), ("Caps", "Hats and caps.")):
            upstream.emulator.items_by_path["/hats"] |= {
                "title": title,
                "details": {"body": f"<p>{text}</p>"},
                "public_updated_at": "2026-01-01T00:00:00Z",
            }
            await synchronize(upstream.url, tmp_path, checks_every_page=True)
            for _ in range(2):  # rendered, and from memory
                found = offline.search("hats", {}, 0, 10, newest_first=False)
                assert found.hits[0].title == title
                assert str(found.hits[0].passage).endswith(text)
                assert found.hits[0].score
                assert found.offline_copy.pages == len(items)
        assert not offline.search("hats", {"filter_format": ["none"]}, 0, 10, False).hits
    offline.close()


async def test_a_page_with_all_the_words_comes_before_one_with_a_single_passage(
    tmp_path: Path,
) -> None:
    """Each passage of the first has one of the words; the second has one of them twice."""
    question = "hats gloves scarves boots coats belts socks ties"
    filler = " ".join(f"Filler{number} and more." for number in range(40))
    bodies = {
        "/spread": "".join(
            f"<h2>Part {number}</h2><p>{word}. {filler}</p>"
            for number, word in enumerate(question.split())
        ),
        "/alone": f"<p>hats hats. {filler}</p>",
    }
    items = make_items(8)  # a word that half of the pages have tells nothing
    original = items["/guidance/page-0"]
    items |= {
        path: {**copy.deepcopy(original), "base_path": path, "title": "Clothes"}
        | {"description": "", "details": {"body": html}}
        for path, html in bodies.items()
    }
    with run_emulator(items) as upstream:
        await synchronize(upstream.url, tmp_path)
    index = OfflineIndex(GuidanceLibrary(tmp_path), EMULATED)
    passages_found, _ = index.search_passages(question, 10)
    index.close()
    paths = [passage.path for passage in passages_found if passage.path in bodies]
    assert paths == ["/spread", "/alone"]


@pytest.mark.data
@pytest.mark.full
@requirement("guidance:offline")
def test_the_right_page_is_found_first_for_four_questions_in_five(tmp_path: Path) -> None:
    library = GuidanceLibrary(tmp_path)
    library.create_database()
    paths = {}
    for file in sorted((SHARED / "guidance" / "examples").glob("*/frontend/*.json")):
        raw = file.read_bytes()
        page = GovukPage(json.loads(raw))
        paths[str(file.relative_to(SHARED))] = page.path
        if page.content["schema_name"] not in ("redirect", "gone"):
            pending = PendingPage(page.path, None, None)
            library.put_page(page, cut_passages(page), raw, None, pending, 0.0)
    while passages := library.list_unembedded_passages(64):
        vectors = EMBEDDER.embed_batch([text for _, text in passages])
        library.put_vectors([id for id, _ in passages], vectors, EMBEDDER.identity)
    index = OfflineIndex(library, EMBEDDER)
    asked = collections.Counter[str]()
    found_first = collections.Counter[str]()
    for question in read_questions("guidance"):
        right = {paths[document] for document, _ in question.answers if document in paths}
        if question.kind == "answerable" and right:
            passages_found, _ = index.search_passages(question.question, 10)
            asked[question.split] += 1
            found_first[question.split] += bool(passages_found) and passages_found[0].path in right
    index.close()
    print({split: f"{found_first[split]} of {count}" for split, count in asked.items()})
    assert asked.total() >= 80
    assert found_first.total() / asked.total() >= 0.80


@pytest.mark.full
@requirement("guidance:offline")
async def test_the_sample_s_questions_find_their_page_and_are_seldom_called_none(
    tmp_path: Path,
) -> None:
    with run_emulator() as upstream:
        await synchronize(upstream.url, tmp_path, embedder=EMBEDDER)
    offline = OfflineGuidance(GuidanceLibrary(tmp_path), EMBEDDER, max_age_days=30)
    places, called_none = [], 0
    for question in read_many_questions("sample"):
        sample_file, _, right_path = question.document.partition("#")
        if not sample_file.endswith("govuk.toml"):
            continue
        answer = offline.search(question.question, {}, 0, 100, newest_first=False)
        page_paths = [hit.path for hit in answer.hits]
        places.append(page_paths.index(right_path) if right_path in page_paths else len(page_paths))
        called_none += answer.confidence.level == "none"
    nonsense_levels = [
        offline.search(question.question, {}, 0, 1, newest_first=False).confidence.level
        for question in read_questions("field")
        if question.kind == "nonsense" and question.split == "tuning"
    ]
    offline.close()
    print(collections.Counter(nonsense_levels), called_none, collections.Counter(places))
    assert len(places) == 91
    assert sum(place == 0 for place in places) / len(places) >= 0.60
    assert sum(place < 3 for place in places) / len(places) >= 0.78
    assert called_none / len(places) <= 0.04
    assert sum(level in ("none", "weak") for level in nonsense_levels) >= 36


async def test_the_index_cannot_write_the_passages_of_the_library(tmp_path: Path) -> None:
    passages = ReadOnlyPassages(GuidanceLibrary(tmp_path))
    for write in (
        lambda: passages.upsert_chunks(Chunks([], [], [])),
        lambda: passages.update_metadata(["/page#0"], [{}]),
        lambda: passages.delete_chunks(["/page#0"]),
    ):
        with pytest.raises(NotImplementedError, match="read only"):
            write()
