"""Reads GOV.UK's two APIs through the cache: a path or a search in, what is there out."""

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio.to_thread
from pydantic_core import from_json

from readingroom.bases.guidance.errors import NotFoundOrRedirected
from readingroom.bases.guidance.markdown import to_markdown
from readingroom.bases.guidance.page import WEBSITE, Page, is_plain_path
from readingroom.net.cache import Cache, Cached, Entry, Held, Reply
from readingroom.net.errors import InvalidPath, UpstreamUnavailable
from readingroom.net.metrics import Meter
from readingroom.net.upstream import Errand, Params, Request, UpstreamClient

_CONTENT = "/api/content"
_SEARCH = "/api/search.json"
_READ_PAGES = 64  # kept parsed, so that a page that is asked for often is read once


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long answers are fresh, in seconds."""

    content: float = 60.0
    search: float = 30.0


class GovukStore:
    """GOV.UK as far as this base sees it."""

    def __init__(
        self, base_url: str, client: UpstreamClient, cache: Cache, meter: Meter, fresh: Lifetimes
    ) -> None:
        self._base_url = base_url
        self._client = client
        self._cache = cache
        self._meter = meter
        self._fresh = fresh
        self._pages: OrderedDict[bytes, Page] = OrderedDict()

    async def page(self, path: str, errand: Errand) -> tuple[Page, Cached]:
        """The page at a path, or why there is none."""
        request = Request("content", _content(path))
        cached = await self._read(request, self._fresh.content, errand)
        return await self._opened(path, cached), cached

    async def refresh(self, path: str, errand: Errand) -> tuple[Page, Cached]:
        """The same, asked for anew."""
        request = Request("content", _content(path), past_caches=True)

        async def fetch(held: Held) -> Reply | None:
            return await self._client.get(request, errand)

        started = time.perf_counter()
        cached = await self._cache.refresh(self._key(request), self._fresh.content, fetch)
        self._note(request, cached, errand, started)
        return await self._opened(path, cached), cached

    async def held(self, path: str) -> Entry | None:
        """What the cache has of a page; nothing is fetched."""
        return await self._cache.held(self._key(Request("content", _content(path))))

    async def search(self, params: Params, errand: Errand) -> tuple[Mapping[str, Any], Cached]:
        """The envelope of a search."""
        request = Request("search", _SEARCH, tuple(sorted(params)))
        cached = await self._read(request, self._fresh.search, errand)
        if cached.reply.status != 200:
            raise UpstreamUnavailable("GOV.UK's search is not where it was")
        found = await anyio.to_thread.run_sync(from_json, cached.reply.body)
        return found, cached

    async def _read(self, request: Request, ttl: float, errand: Errand) -> Cached:
        async def fetch(held: Held) -> Reply | None:
            asked = replace(request, etag=held.etag, hurried=held.is_spare)
            return await self._client.get(asked, errand)

        started = time.perf_counter()
        cached = await self._cache.read(self._key(request), ttl, fetch)
        self._note(request, cached, errand, started)
        return cached

    def _key(self, request: Request) -> str:
        """What an answer depends on: the host, the path, the parameters in their order."""
        return f"{self._base_url}{request.path}?{urlencode(request.params)}"

    def _note(self, request: Request, cached: Cached, errand: Errand, started: float) -> None:
        self._meter.read(request.endpoint, cached.outcome, time.perf_counter() - started)
        errand.facts["cache"] = cached.outcome

    async def _opened(self, path: str, cached: Cached) -> Page:
        """The page an entry holds; parsed once for as long as its bytes stay the same."""
        raw = cached.reply.body
        page = self._pages.get(raw) if cached.reply.status == 200 else None
        if page is None:
            page = await anyio.to_thread.run_sync(_parsed, path, cached.reply)
            self._pages[raw] = page
            if len(self._pages) > _READ_PAGES:
                self._pages.popitem(last=False)
        return page


def _content(path: str) -> str:
    if not is_plain_path(path):
        raise InvalidPath(
            "The path must be that of a GOV.UK page and nothing more, such as "
            "/guidance/charity-annual-return: no address, no query, no escapes",
            **_suggestion(path),
        )
    return _CONTENT + path


def _suggestion(text: str) -> dict[str, str]:
    """The path that was probably meant, where the text is a whole address or lacks its slash."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return {}
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    at_home = (parts.scheme, parts.netloc) in (("", ""), ("https", "www.gov.uk"))
    return {"path": path} if at_home and is_plain_path(path) and path != "/" else {}


def _parsed(path: str, reply: Reply) -> Page:
    """What a reply holds, in a worker thread: pages can be long."""
    if reply.status == 200:
        page = Page(from_json(reply.body))
        if page.content.get("schema_name") == "redirect":
            raise _moved(path, _destination(path, page.content.get("redirects")))
        if page.content.get("schema_name") == "gone":
            raise _gone(path, page.content)
        _ = page.text  # made here, not where the loop waits for it
        return page
    if reply.status == 410:
        raise _gone(path, _object(reply.body))
    if reply.location is not None:
        raise _moved(path, _target(reply.location))
    raise NotFoundOrRedirected(f"GOV.UK has no page at {path}", use_tool="search_guidance")


def _moved(path: str, target: str | None) -> NotFoundOrRedirected:
    if target is None:
        return NotFoundOrRedirected(f"{path} was moved, GOV.UK does not say where to")
    hint = {"redirected_to": target}
    if is_plain_path(target):
        hint["use_tool"] = "get_content_by_path"
    return NotFoundOrRedirected(f"{path} was moved to {target}", **hint)


def _gone(path: str, content: Mapping[str, Any]) -> NotFoundOrRedirected:
    details = content.get("details")
    details = details if isinstance(details, Mapping) else {}
    hint = {}
    if details.get("explanation"):
        hint["explanation"] = to_markdown(str(details["explanation"]), WEBSITE)
    if details.get("alternative_path"):
        hint["alternative_path"] = str(details["alternative_path"])
    return NotFoundOrRedirected(f"The page at {path} was taken down", **hint)


def _target(location: str) -> str | None:
    """A redirect's target: a path of the same site, or the address of another as it stands."""
    try:
        parts = urlsplit(location)
    except ValueError:
        return None
    elsewhere = parts.netloc not in ("", urlsplit(WEBSITE).netloc)
    if elsewhere and not parts.path.startswith(_CONTENT):
        return location
    path = parts.path.removeprefix(_CONTENT)
    return path if is_plain_path(path) else None


def _destination(path: str, redirects: Any) -> str | None:
    """Where a redirect item sends this path: the longest rule that fits."""
    rules = [rule for rule in _rules(redirects) if _fits(rule, path)]
    if not rules:
        return None
    rule = max(rules, key=lambda rule: len(str(rule["path"])))
    target = str(rule["destination"])
    if rule.get("type") == "prefix" and rule.get("segments_mode", "preserve") == "preserve":
        target += path.removeprefix(str(rule["path"]))
    return target


def _rules(redirects: Any) -> Sequence[Mapping[str, Any]]:
    whole = isinstance(redirects, list)
    return [
        rule
        for rule in (redirects if whole else [])
        if isinstance(rule, Mapping) and rule.get("path") and rule.get("destination")
    ]


def _fits(rule: Mapping[str, Any], path: str) -> bool:
    start = str(rule["path"])
    return path == start or (rule.get("type") == "prefix" and path.startswith(f"{start}/"))


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        found = from_json(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
