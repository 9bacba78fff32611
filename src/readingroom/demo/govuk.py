"""A GOV.UK on loopback: its content and search APIs over sample pages.

    python -m readingroom.demo.govuk --port 3994

The pages in `govuk.toml` were written for Reading Room in the shapes of the real ones. They are not
GOV.UK's, and they are not guidance. `--items FOLDER` serves content items from JSON files instead.
"""

import argparse
import hashlib
import json
import re
import socket
import threading
import time
import tomllib
import uuid
from collections.abc import (
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableSequence,
)
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

SAMPLE = Path(__file__).with_name("govuk.toml")
COMMISSION = "charity-commission"

Item = dict[str, Any]

_KNOWN = {
    "q",
    "count",
    "start",
    "order",
    "fields",
    "filter_organisations",
    "filter_format",
    "filter_content_store_document_type",
    "filter_content_id",
    "filter_public_timestamp",
}
_ORDERS = {None, "public_timestamp", "-public_timestamp", "title", "-title"}
_MOST_RESULTS = 1500


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived, wherever it was going."""

    at: float
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


Fault = Callable[[Request, Response], Awaitable[Response]]
"""Takes the answer that would be given and gives another, or the same later."""


@dataclass
class Emulator:
    """Two APIs over a set of items. Set `fault` to make them misbehave; `seen` is what arrived."""

    items: dict[str, Item]
    fault: Fault | None = None
    max_age: int = 300
    seen: MutableSequence[Seen] = field(default_factory=list)

    def app(self) -> ASGIApp:
        routed = Starlette(
            routes=[
                Route("/api/content/{path:path}", self._answered(self._content)),
                Route("/api/search.json", self._answered(self._search)),
            ]
        )

        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self._watch(Request(scope))
            await routed(scope, receive, send)

        return watched

    def _watch(self, request: Request) -> None:
        url = request.url
        self.seen.append(
            Seen(time.monotonic(), request.method, url.path, url.query, request.headers)
        )

    def _answered(
        self, answer: Callable[[Request], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            given = answer(request)
            return await self.fault(request, given) if self.fault else given

        return endpoint

    def _content(self, request: Request) -> Response:
        path = "/" + request.path_params.get("path", "")
        item = self.items.get(path)
        if item is None:
            return self._part_or_nothing(path)
        status = 410 if item.get("schema_name") == "gone" else 200
        return self._tagged(request, item, status)

    def _part_or_nothing(self, path: str) -> Response:
        """A part of a guide has its own address, whose content is that of the guide."""
        guide, _, slug = path.rpartition("/")
        parts = self.items.get(guide, {}).get("details", {}).get("parts", [])
        if any(part["slug"] == slug for part in parts):
            return Response(status_code=303, headers={"Location": f"/api/content{guide}"})
        return JSONResponse({"errors": {"status": 404}}, 404, self._caching())

    def _tagged(self, request: Request, body: object, status: int = 200) -> Response:
        raw = json.dumps(body, ensure_ascii=False).encode()
        tag = f'W/"{hashlib.sha256(raw).hexdigest()[:32]}"'
        headers = {**self._caching(), "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(raw, status, headers, media_type="application/json; charset=utf-8")

    def _caching(self) -> dict[str, str]:
        return {"Cache-Control": f"max-age={self.max_age}, public"}

    def _search(self, request: Request) -> Response:
        asked = request.query_params
        objection = _objection(asked.multi_items())
        if objection:
            return JSONResponse({"error": objection}, 422)
        found = [item for item in self.items.values() if _wanted(item, asked.multi_items())]
        ordered = _ordered(found, asked.get("q", ""), asked.get("order"))
        start, count = int(asked.get("start", 0)), int(asked.get("count", 10))
        fields = asked.getlist("fields")
        return self._tagged(
            request,
            {
                "results": [_result(item, fields) for item in ordered[start : start + count]],
                "total": len(ordered),
                "start": start,
                "aggregates": {},
                "suggested_queries": [],
                "es_cluster": "A",
            },
        )


@contextmanager
def on_loopback(emulator: Emulator) -> Iterator[str]:
    """Serve it on a free port, in a thread, for as long as this is entered; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(emulator.app(), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join()


def sample_items() -> dict[str, Item]:
    """The pages we wrote, by path, in the shapes of the Content API."""
    written = tomllib.loads(SAMPLE.read_text("utf-8"))
    items = {page["path"]: _item(page) for page in written["page"]}
    for page in written["page"]:
        _link_translation(items, page)
        _link_members(items, page)
    return items


def items_in(folder: Path) -> dict[str, Item]:
    """Content items from the JSON files of a folder, by path; of two with one path, the last."""
    read = [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))]
    return {item["base_path"]: item for item in read if isinstance(item.get("base_path"), str)}


# --- items in their real shapes ---


def _item(page: Mapping[str, Any]) -> Item:
    """A content item from the few words of the sample file."""
    schema = page.get("schema", "detailed_guide")
    if schema in ("redirect", "gone"):
        return _marker(page, schema)
    return {
        "analytics_identifier": None,
        "base_path": page["path"],
        "content_id": _content_id(page.get("same_as", page["path"])),
        "description": page.get("description", ""),
        "details": _details(page, schema),
        "document_type": page.get("document_type", schema),
        "first_published_at": page.get("first", page["updated"]),
        "links": {
            "organisations": [_organisation(name) for name in page.get("by", [COMMISSION])],
        },
        "locale": page.get("locale", "en"),
        "phase": "live",
        "public_updated_at": page["updated"],
        "publishing_app": "whitehall",
        "rendering_app": "frontend",
        "schema_name": schema,
        "title": page["title"],
        "updated_at": page["updated"],
        "withdrawn_notice": _withdrawn(page),
    }


def _marker(page: Mapping[str, Any], schema: str) -> Item:
    """What stands where a page was."""
    bare = {
        "base_path": page["path"],
        "content_id": None,
        "description": None,
        "details": {},
        "document_type": schema,
        "links": {},
        "locale": "en",
        "public_updated_at": None,
        "schema_name": schema,
        "title": None,
        "updated_at": "2025-01-01T00:00:00Z",
    }
    if schema == "gone":
        told = {name: page.get(name) for name in ("explanation", "alternative_path")}
        return {**bare, "details": told}
    rule = {"path": page["path"], "type": "exact", "destination": page["destination"]}
    return {**bare, "redirects": [rule]}


def _details(page: Mapping[str, Any], schema: str) -> Item:
    details: Item = {"change_history": []}
    if schema == "html_publication":
        details |= {"public_timestamp": page["updated"], "first_published_version": True}
    if schema not in ("answer", "guide"):
        details["political"] = False
    if "parts" in page:
        details["parts"] = [dict(part) for part in page["parts"]]
    if "body" in page:
        details["body"] = page["body"]
    if "groups" in page:
        details["collection_groups"] = [
            {
                "title": group["title"],
                "body": group.get("body", ""),
                "documents": [_content_id(path) for path in group["documents"]],
            }
            for group in page["groups"]
        ]
    if "attachments" in page:
        details["attachments"] = [dict(one) for one in page["attachments"]]
    if schema == "publication":
        details["documents"] = []
    return details


def _withdrawn(page: Mapping[str, Any]) -> Item:
    if "withdrawn" not in page:
        return {}
    return {"explanation": page["withdrawn"], "withdrawn_at": page["withdrawn_at"]}


def _organisation(name: str) -> Item:
    known = {COMMISSION: "489e651f-34c8-4b34-bdd7-e13c2324cde3"}
    path = f"/government/organisations/{name}"
    return {
        "base_path": path,
        "content_id": known.get(name, _content_id(path)),
        "locale": "en",
        "title": "Charity Commission" if name == COMMISSION else name.replace("-", " ").title(),
        "api_path": f"/api/content{path}",
        "document_type": "organisation",
    }


def _content_id(path: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"readingroom:sample{path}"))


def _link_translation(items: dict[str, Item], page: Mapping[str, Any]) -> None:
    """A translation and its original name each other."""
    if "same_as" not in page:
        return
    both = [items[page["same_as"]], items[page["path"]]]
    named = [_reference(item) for item in both]
    for item in both:
        item["links"]["available_translations"] = named


def _link_members(items: dict[str, Item], page: Mapping[str, Any]) -> None:
    """A collection carries references to its members."""
    members = [path for group in page.get("groups", []) for path in group["documents"]]
    if members:
        items[page["path"]]["links"]["documents"] = [_reference(items[path]) for path in members]


def _reference(item: Item) -> Item:
    names = ("base_path", "content_id", "title", "locale", "document_type", "public_updated_at")
    return {name: item[name] for name in names}


# --- search ---


def _objection(asked: Iterable[tuple[str, str]]) -> str | None:
    """Why the search would not be taken, as GOV.UK's is strict about its parameters."""
    for name, value in asked:
        if name not in _KNOWN:
            return f"Unexpected parameters: {name}"
        if name in ("count", "start") and not (value.isdecimal() and int(value) <= _MOST_RESULTS):
            return f"Invalid value for {name}"
        if name == "order" and value not in _ORDERS:
            return f"Sorting by {value} is not allowed"
        if name == "filter_public_timestamp" and not _PERIOD.fullmatch(value):
            return "Invalid value for public_timestamp"
    return None


_PERIOD = re.compile(r"(?:(?:from|to):\d{4}-\d{2}-\d{2},?)+")


def _wanted(item: Item, asked: Iterable[tuple[str, str]]) -> bool:
    """Whether an item passes every filter; several values of one filter are alternatives."""
    if item.get("schema_name") in ("redirect", "gone"):
        return False
    filters: dict[str, set[str]] = {}
    for name, value in asked:
        if name.startswith("filter_"):
            filters.setdefault(name.removeprefix("filter_"), set()).add(value)
    return all(_passes(item, name, values) for name, values in filters.items())


def _passes(item: Item, name: str, values: set[str]) -> bool:
    match name:
        case "organisations":
            slugs = {one["base_path"].rpartition("/")[2] for one in _organisations(item)}
            return bool(slugs & values)
        case "format":
            return item.get("schema_name") in values
        case "content_store_document_type":
            return item.get("document_type") in values
        case "content_id":
            return item.get("content_id") in values
    day = str(item.get("public_updated_at") or "")[:10]
    (period,) = values
    ends = dict(end.split(":") for end in period.split(",") if end)
    return ends.get("from", "") <= day <= ends.get("to", "9999")


def _organisations(item: Item) -> list[Item]:
    found: list[Item] = item.get("links", {}).get("organisations", [])
    return found


def _ordered(items: list[Item], query: str, order: str | None) -> list[Item]:
    words = set(re.findall(r"\w+", query.lower()))
    if words:
        scored = [(_score(item, words), item) for item in items]
        items = [item for score, item in sorted(scored, key=lambda one: -one[0]) if score]
    if order:
        name = order.lstrip("-").replace("public_timestamp", "public_updated_at")
        items = sorted(items, key=lambda item: str(item.get(name)), reverse=order[0] == "-")
    return items


def _score(item: Item, words: set[str]) -> int:
    title, rest = str(item.get("title")).lower(), json.dumps(item.get("details")).lower()
    description = str(item.get("description")).lower()
    return sum(9 * (word in title) + 3 * (word in description) + (word in rest) for word in words)


def _result(item: Item, fields: list[str]) -> Item:
    """What a search says of an item: its own names for what the Content API calls otherwise."""
    whole = {
        "title": item.get("title"),
        "link": item.get("base_path"),
        "description": item.get("description"),
        "public_timestamp": item.get("public_updated_at"),
        "content_id": item.get("content_id"),
        "format": item.get("schema_name"),
        "content_store_document_type": item.get("document_type"),
    }
    chosen = {name: whole[name] for name in fields or whole if whole.get(name) is not None}
    return {**chosen, "index": "govuk", "es_score": None, "_id": item.get("base_path")}


def main() -> None:
    """Serve on loopback until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m readingroom.demo.govuk", description=__doc__)
    parser.add_argument("--port", type=int, default=3994)
    parser.add_argument("--items", type=Path, help="a folder of content items as JSON files")
    asked = parser.parse_args()
    items = items_in(asked.items) if asked.items else sample_items()
    listener = socket.create_server(("127.0.0.1", asked.port))
    print(f"GOVUK_BASE_URL=http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Emulator(items).app(), log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
