"""Hostile paths: none of them makes the server ask another host, or another path."""

import contextlib
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readingroom.bases.guidance.pages.values import is_plain_path
from readingroom.bases.guidance.store import CacheLifetimes, GovukReader
from readingroom.net.breaker import CircuitBreaker
from readingroom.net.cache import Cache, MemoryCacheBackend
from readingroom.net.errors import InvalidPath
from readingroom.net.limiter import SlidingWindow
from readingroom.net.metrics import UpstreamMetrics
from readingroom.net.upstream import Request, UpstreamClient
from tests.requirements import requirement
from tests.support.govuk import RETURN, Upstream, connect_client, run_emulator
from tests.support.kit import read_body

pytestmark = pytest.mark.anyio

HOSTILE = [
    "",
    " ",
    "guidance",
    "http://evil.example/guidance/x",
    "https://evil.example/",
    "https:/guidance/x",
    "https:guidance/x",
    "file:///etc/passwd",
    "ftp://evil.example/x",
    "gopher://127.0.0.1:6379/_x",
    "javascript:alert(1)",
    "data:text/html,x",
    "//evil.example",
    "//evil.example/guidance/x",
    "///evil.example/x",
    "/\\evil.example/x",
    "\\\\evil.example\\x",
    "/guidance//x",
    "//",
    "/@evil.example/x",
    "/user:password@evil.example/x",
    "@evil.example",
    ":@evil.example",
    ":80/x",
    ".evil.example/x",
    "/..",
    "/.",
    "/../search.json",
    "/guidance/../../search.json",
    "/guidance/./x",
    "/guidance/..",
    "/guidance/..;/x",
    "/.../x",
    "/.git/config",
    "/%2e%2e/search.json",
    "/%2E%2E%2Fsearch.json",
    "/guidance/%2e%2e/%2e%2e/search.json",
    "/%252e%252e/search.json",
    "/..%2f..%2fsearch.json",
    "/%c0%ae%c0%ae/x",
    "/guidance%2fx",
    "/guidance/%00",
    "/guidance/\x00x",
    "/guidance/x\r\nHost: evil.example",
    "/guidance/x\r\n\r\nGET /other HTTP/1.1",
    "/guidance/x y",
    "/guidance/\tx",
    "/guidance/x;a=b",
    "/guidance/x&y",
    "/guidance/x?y",
    "/guidance/x?y=z#top",
    f"{RETURN}?page=1",
    f"guidance:{RETURN}?page=1",
    "/guidance/café",
    "/guidance/\uff0e\uff0e/x",
    "/guidance/\u2024\u2024/x",
    "/guidance\u2215x",
    "/guidance\uff0fx",
    "\uff0f\uff0fevil.example",
    "/guidance/x\u202e",
    "/guidance/\ud83d\ude00",
    "/gu\u0131dance",
    "/guidance/x'--",
    '/guidance/x"',
    "/guidance/<script>",
    "/guidance/{x}",
    "/guidance/$(id)",
    "/guidance/`id`",
    "/guidance/x|y",
    "/guidance/*",
    "/[::1]/x",
    "/~root",
    "/-x",
    "/" + "a" * 10_240,
    "/guidance" + "/x" * 5_000,
    "/guidance/" + "../" * 3_000,
]


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with run_emulator() as running:
        yield running


@requirement("guidance:config")
@pytest.mark.parametrize("tool", ["get_content_by_path", "get_source_metadata", "force_refresh"])
async def test_a_hostile_path_is_refused_and_nothing_is_asked(
    upstream: Upstream, tool: str
) -> None:
    upstream.emulator.seen_requests.clear()
    async with connect_client(upstream.url) as client:
        for path in HOSTILE:
            result = await client.call_tool(
                tool, {"path": path.encode("utf-8", "replace").decode()}
            )
            told = read_body(result)["error"]
            assert result.is_error, path
            assert told["code"] in ("INVALID_PATH", "INVALID_ARGUMENTS"), path
    assert len(HOSTILE) >= 60
    assert upstream.emulator.seen_requests == []


ADDRESSES = [
    f"https://www.gov.uk{RETURN}",
    f"HTTPS://WWW.GOV.UK{RETURN}/",
    f"http://www.gov.uk{RETURN}?step-by-step-nav=x&page=1",
    f"www.gov.uk{RETURN}",
    f"gov.uk{RETURN}",
    f"https://www.gov.uk/api/content{RETURN}",
    f"{RETURN}/",
    f"  {RETURN}\n",
    f"{RETURN}#no-such-anchor",
    f"guidance:{RETURN}",
    RETURN[1:],
]


@pytest.mark.parametrize("tool", ["get_content_by_path", "get_source_metadata", "force_refresh"])
async def test_an_address_is_taken_as_people_have_it(upstream: Upstream, tool: str) -> None:
    async with connect_client(upstream.url) as client:
        for address in ADDRESSES:
            answer = read_body(await client.call_tool(tool, {"path": address}))
            assert answer["url"] == f"https://www.gov.uk{RETURN}", address


async def test_the_path_that_was_meant_is_suggested(upstream: Upstream) -> None:
    async with connect_client(upstream.url) as client:

        async def hint(path: str) -> Any:
            told = read_body(await client.call_tool("get_content_by_path", {"path": path}))
            return told["error"].get("hint", {}).get("path")

        assert await hint("guidance") == "/guidance"
        assert await hint(f"https://evil.example{RETURN}") is None
        assert await hint(f"https://www.gov.uk.evil.example{RETURN}") is None
        assert await hint("https://www.gov.uk/../x") is None


CLIENT = UpstreamClient("https://www.gov.uk", SlidingWindow(1), UpstreamMetrics())


@settings(deadline=None)
@given(st.text(max_size=60))
@example("//evil.example")
@example("/a/../b")
def test_any_text_that_passes_stays_on_the_host_and_under_the_api(text: str) -> None:
    if not is_plain_path(text):
        return
    url = CLIENT._build_url(Request("content", f"/api/content{text}"))
    assert (url.scheme, url.host, url.path) == ("https", "www.gov.uk", f"/api/content{text}")
    assert url.raw_path == f"/api/content{text}".encode()


@settings(deadline=None)
@given(st.from_regex(r"(/[a-z0-9][a-z0-9._~-]{0,20}){1,6}", fullmatch=True))
def test_every_plain_path_passes(path: str) -> None:
    assert is_plain_path(path)


@requirement("guidance:config")
async def test_the_client_itself_never_leaves_its_host() -> None:
    """A second wall, should the first one ever be left open."""
    for path in HOSTILE:
        with contextlib.suppress(InvalidPath, httpx2.InvalidURL, UnicodeError):
            url = CLIENT._build_url(Request("content", f"/api/content{path}"))
            assert (url.scheme, url.netloc) == ("https", b"www.gov.uk")
            assert url.path.startswith("/api/content")


def test_an_outage_is_told_while_the_breaker_is_open() -> None:
    now = 0.0
    breaker = CircuitBreaker(failure_threshold=2, pause_seconds=15.0, read_clock=lambda: now)
    limiter, metrics = SlidingWindow(1), UpstreamMetrics()
    client = UpstreamClient("https://www.gov.uk", limiter, metrics, circuit_breaker=breaker)
    cache = Cache(MemoryCacheBackend(), 60.0)
    store = GovukReader("https://www.gov.uk", client, cache, metrics, CacheLifetimes())
    assert store.describe_outage() == ""
    for _ in range(2):
        breaker.record_failure()
    now = 5.0
    assert store.describe_outage() == "GOV.UK keeps failing; it is asked again in 10 s"
    breaker.record_success()
    assert store.describe_outage() == ""
