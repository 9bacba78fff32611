"""An emulator of GOV.UK on loopback: its Content API and Search API over sample pages.

    python -m readingroom.demo.govuk --port 3994

The pages in `govuk.toml` were written for Reading Room in the form of real ones. They are not
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

_PARAMETERS = {
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
_MAX_RESULTS = 1500


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that arrived, whatever its path."""

    time: float
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


Fault = Callable[[Request, Response], Awaitable[Response]]
"""Takes the normal response and returns another one, or the same one later."""


@dataclass
class Emulator:
    """Two APIs over a set of items. Set `fault` to make them misbehave; `seen` lists requests."""

    items: dict[str, Item]
    fault: Fault | None = None
    max_age: int = 300
    lists_total: bool = True
    """Whether a search says how many results there are in all."""
    lists_withdrawn: bool = True
    """Whether a search finds pages that were withdrawn."""
    seen: MutableSequence[SeenRequest] = field(default_factory=list)

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        router = Starlette(
            routes=[
                Route("/api/content/{path:path}", self._make_endpoint(self._content)),
                Route("/api/search.json", self._make_endpoint(self._search)),
            ]
        )

        async def record_and_route(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self._record(Request(scope))
            await router(scope, receive, send)

        return record_and_route

    def _record(self, request: Request) -> None:
        url = request.url
        self.seen.append(
            SeenRequest(time.monotonic(), request.method, url.path, url.query, request.headers)
        )

    def _make_endpoint(
        self, answer: Callable[[Request], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            response = answer(request)
            return await self.fault(request, response) if self.fault else response

        return endpoint

    def _content(self, request: Request) -> Response:
        path = "/" + request.path_params.get("path", "")
        item = self.items.get(path)
        if item is None:
            return self._redirect_to_guide(path)
        status = 410 if item.get("schema_name") == "gone" else 200
        return self._respond(request, item, status)

    def _redirect_to_guide(self, path: str) -> Response:
        """Redirect from a part of a guide, which has its own address, to the guide; else 404."""
        guide, _, slug = path.rpartition("/")
        parts = self.items.get(guide, {}).get("details", {}).get("parts", [])
        if any(part["slug"] == slug for part in parts):
            return Response(status_code=303, headers={"Location": f"/api/content{guide}"})
        return JSONResponse({"errors": {"status": 404}}, 404, self._cache_headers())

    def _respond(self, request: Request, body: object, status: int = 200) -> Response:
        raw = json.dumps(body, ensure_ascii=False).encode()
        tag = f'W/"{hashlib.sha256(raw).hexdigest()[:32]}"'
        headers = {**self._cache_headers(), "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(raw, status, headers, media_type="application/json; charset=utf-8")

    def _cache_headers(self) -> dict[str, str]:
        return {"Cache-Control": f"max-age={self.max_age}, public"}

    def _search(self, request: Request) -> Response:
        params = request.query_params
        problem = _find_problem(params.multi_items())
        if problem:
            return JSONResponse({"error": problem}, 422)
        items = [
            item
            for item in self.items.values()
            if _matches(item, params.multi_items())
            and (self.lists_withdrawn or not item.get("withdrawn_notice"))
        ]
        ordered = _sort(items, params.get("q", ""), params.get("order"))
        start, count = int(params.get("start", 0)), int(params.get("count", 10))
        fields = params.getlist("fields")
        return self._respond(
            request,
            {
                "results": [_make_result(item, fields) for item in ordered[start : start + count]],
                **({"total": len(ordered)} if self.lists_total else {}),
                "start": start,
                "aggregates": {},
                "suggested_queries": [],
                "es_cluster": "A",
            },
        )


@contextmanager
def on_loopback(emulator: Emulator) -> Iterator[str]:
    """Serve the emulator on a free port, in a thread; yield its URL."""
    # Bound here and not by uvicorn: the port must be known before the server runs.
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(emulator.app(), log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # Without force it would wait for clients that keep their connections open.
        server.should_exit = server.force_exit = True
        thread.join()


def sample_items() -> dict[str, Item]:
    """Return the sample pages as items of the Content API, by path."""
    sample = tomllib.loads(SAMPLE.read_text("utf-8"))
    items = {page["path"]: _make_item(page) for page in sample["page"]}
    for page in sample["page"]:
        _link_translation(items, page)
        _link_members(items, page)
    return items


def load_items(folder: Path) -> dict[str, Item]:
    """Return the items in the JSON files of a folder, by path; of two with one path, the last."""
    items = [json.loads(path.read_text("utf-8")) for path in sorted(folder.rglob("*.json"))]
    return {item["base_path"]: item for item in items if isinstance(item.get("base_path"), str)}


# --- items in the form of real ones ---


def _make_item(page: Mapping[str, Any]) -> Item:
    """Return a complete content item for a page of the sample file."""
    schema = page.get("schema", "detailed_guide")
    if schema in ("redirect", "gone"):
        return _make_stub(page, schema)
    return {
        "analytics_identifier": None,
        "base_path": page["path"],
        "content_id": _content_id(page.get("same_as", page["path"])),
        "description": page.get("description", ""),
        "details": _make_details(page, schema),
        "document_type": page.get("document_type", schema),
        "first_published_at": page.get("first", page["updated"]),
        "links": {
            "organisations": [_make_organisation(name) for name in page.get("by", [COMMISSION])],
        },
        "locale": page.get("locale", "en"),
        "phase": "live",
        "public_updated_at": page["updated"],
        "publishing_app": "whitehall",
        "rendering_app": "frontend",
        "schema_name": schema,
        "title": page["title"],
        "updated_at": page["updated"],
        "withdrawn_notice": _make_withdrawn_notice(page),
    }


def _make_stub(page: Mapping[str, Any], schema: str) -> Item:
    """Return the item that replaces a page which is gone or was moved."""
    stub = {
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
        details = {name: page.get(name) for name in ("explanation", "alternative_path")}
        return {**stub, "details": details}
    rule = {"path": page["path"], "type": "exact", "destination": page["destination"]}
    return {**stub, "redirects": [rule]}


def _make_details(page: Mapping[str, Any], schema: str) -> Item:
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
        details["attachments"] = [dict(attachment) for attachment in page["attachments"]]
    if schema == "publication":
        details["documents"] = []
    return details


def _make_withdrawn_notice(page: Mapping[str, Any]) -> Item:
    if "withdrawn" not in page:
        return {}
    return {"explanation": page["withdrawn"], "withdrawn_at": page["withdrawn_at"]}


def _make_organisation(name: str) -> Item:
    real_ids = {COMMISSION: "489e651f-34c8-4b34-bdd7-e13c2324cde3"}
    path = f"/government/organisations/{name}"
    return {
        "base_path": path,
        "content_id": real_ids.get(name, _content_id(path)),
        "locale": "en",
        "title": "Charity Commission" if name == COMMISSION else name.replace("-", " ").title(),
        "api_path": f"/api/content{path}",
        "document_type": "organisation",
    }


def _content_id(path: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"readingroom:sample{path}"))


def _link_translation(items: dict[str, Item], page: Mapping[str, Any]) -> None:
    """Link a translation and its original to each other."""
    if "same_as" not in page:
        return
    versions = [items[page["same_as"]], items[page["path"]]]
    references = [_make_reference(item) for item in versions]
    for item in versions:
        item["links"]["available_translations"] = references


def _link_members(items: dict[str, Item], page: Mapping[str, Any]) -> None:
    """Link a collection to its members."""
    members = [path for group in page.get("groups", []) for path in group["documents"]]
    if members:
        items[page["path"]]["links"]["documents"] = [
            _make_reference(items[path]) for path in members
        ]


def _make_reference(item: Item) -> Item:
    names = ("base_path", "content_id", "title", "locale", "document_type", "public_updated_at")
    return {name: item[name] for name in names}


# --- search ---


def _find_problem(params: Iterable[tuple[str, str]]) -> str | None:
    """Return what is wrong with the parameters, about which GOV.UK is strict; else None."""
    for name, value in params:
        if name not in _PARAMETERS:
            return f"Unexpected parameters: {name}"
        if name in ("count", "start") and not (value.isdecimal() and int(value) <= _MAX_RESULTS):
            return f"Invalid value for {name}"
        if name == "order" and value not in _ORDERS:
            return f"Sorting by {value} is not allowed"
        if name == "filter_public_timestamp" and not _PERIOD.fullmatch(value):
            return "Invalid value for public_timestamp"
    return None


_PERIOD = re.compile(r"(?:(?:from|to):\d{4}-\d{2}-\d{2},?)+")


def _matches(item: Item, params: Iterable[tuple[str, str]]) -> bool:
    """Whether an item passes every filter; several values of one filter are alternatives."""
    if item.get("schema_name") in ("redirect", "gone"):
        return False
    filters: dict[str, set[str]] = {}
    for name, value in params:
        if name.startswith("filter_"):
            filters.setdefault(name.removeprefix("filter_"), set()).add(value)
    return all(_passes_filter(item, name, values) for name, values in filters.items())


def _passes_filter(item: Item, name: str, values: set[str]) -> bool:
    match name:
        case "organisations":
            paths = [organisation["base_path"] for organisation in _organisations(item)]
            slugs = {path.rpartition("/")[2] for path in paths}
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
    organisations: list[Item] = item.get("links", {}).get("organisations", [])
    return organisations


def _sort(items: list[Item], query: str, order: str | None) -> list[Item]:
    words = set(re.findall(r"\w+", query.lower()))
    if words:
        scored = [(_score(item, words), item) for item in items]
        items = [item for score, item in sorted(scored, key=lambda pair: -pair[0]) if score]
    if order:
        name = order.lstrip("-").replace("public_timestamp", "public_updated_at")
        items = sorted(items, key=lambda item: str(item.get(name)), reverse=order[0] == "-")
    return items


def _score(item: Item, words: set[str]) -> int:
    title, rest = str(item.get("title")).lower(), json.dumps(item.get("details")).lower()
    description = str(item.get("description")).lower()
    return sum(9 * (word in title) + 3 * (word in description) + (word in rest) for word in words)


def _make_result(item: Item, fields: list[str]) -> Item:
    """Return the search result for an item; the Search API has its own names for the fields."""
    values = {
        "title": item.get("title"),
        "link": item.get("base_path"),
        "description": item.get("description"),
        "public_timestamp": item.get("public_updated_at"),
        "content_id": item.get("content_id"),
        "format": item.get("schema_name"),
        "content_store_document_type": item.get("document_type"),
    }
    chosen = {name: values[name] for name in fields or values if values.get(name) is not None}
    return {**chosen, "index": "govuk", "es_score": None, "_id": item.get("base_path")}


def main() -> None:
    """Serve the emulator on loopback until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m readingroom.demo.govuk", description=__doc__)
    parser.add_argument("--port", type=int, default=3994)
    parser.add_argument("--items", type=Path, help="a folder of content items as JSON files")
    arguments = parser.parse_args()
    items = load_items(arguments.items) if arguments.items else sample_items()
    listener = socket.create_server(("127.0.0.1", arguments.port))
    print(f"GOVUK_BASE_URL=http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    config = uvicorn.Config(Emulator(items).app(), log_level="warning", lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
