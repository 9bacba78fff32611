"""An emulator of GOV.UK on loopback: its Content API and Search API over sample pages.

    python -m readingroom.demo.govuk --port 3994

The pages in `govuk.toml` were written for Reading Room in the form of real ones. They are not
GOV.UK's, and they are not guidance. `--items FOLDER` serves content items from JSON files instead.
"""

import argparse
import hashlib
import json
import socket
import threading
import time
import tomllib
import uuid
from collections.abc import (
    Awaitable,
    Callable,
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

from readingroom.demo.govuk_search import (
    ContentItem,
    find_parameter_problem,
    make_search_result,
    matches_filters,
    sort_items,
)

SAMPLE_FILE = Path(__file__).with_name("govuk.toml")
COMMISSION_SLUG = "charity-commission"


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request that arrived, whatever its path."""

    time: float
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


ApplyFault = Callable[[Request, Response], Awaitable[Response]]
"""Takes the normal response and returns another one, or the same one later."""


@dataclass
class GovukEmulator:
    """Two APIs over a set of items. Set `apply_fault` to make them misbehave.

    `seen_requests` lists the requests that arrived.
    """

    items_by_path: dict[str, ContentItem]
    apply_fault: ApplyFault | None = None
    max_age: int = 300
    lists_total: bool = True
    """Whether a search says how many results there are in all."""
    lists_withdrawn: bool = True
    """Whether a search finds pages that were withdrawn."""
    seen_requests: MutableSequence[SeenRequest] = field(default_factory=list)

    def app(self) -> ASGIApp:
        """Return the ASGI application."""
        emulator_app = Starlette(
            routes=[
                Route("/api/content/{path:path}", self._make_endpoint(self._answer_content)),
                Route("/api/search.json", self._make_endpoint(self._answer_search)),
            ]
        )

        async def record_and_route(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self._record_request(Request(scope))
            await emulator_app(scope, receive, send)

        return record_and_route

    def _record_request(self, request: Request) -> None:
        url = request.url
        self.seen_requests.append(
            SeenRequest(time.monotonic(), request.method, url.path, url.query, request.headers)
        )

    def _make_endpoint(
        self, make_response: Callable[[Request], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer_request(request: Request) -> Response:
            response = make_response(request)
            return await self.apply_fault(request, response) if self.apply_fault else response

        return answer_request

    def _answer_content(self, request: Request) -> Response:
        page_path = "/" + request.path_params.get("path", "")
        content_item = self.items_by_path.get(page_path)
        if content_item is None:
            return self._redirect_to_guide(page_path)
        http_status = 410 if content_item.get("schema_name") == "gone" else 200
        return self._make_json_response(request, content_item, http_status)

    def _redirect_to_guide(self, page_path: str) -> Response:
        """Redirect from a part of a guide, which has its own address, to the guide; else 404."""
        guide_path, _, part_slug = page_path.rpartition("/")
        guide_parts = self.items_by_path.get(guide_path, {}).get("details", {}).get("parts", [])
        if any(guide_part["slug"] == part_slug for guide_part in guide_parts):
            return Response(status_code=303, headers={"Location": f"/api/content{guide_path}"})
        return JSONResponse({"errors": {"status": 404}}, 404, self._make_cache_headers())

    def _make_json_response(
        self, request: Request, json_body: object, http_status: int = 200
    ) -> Response:
        body_bytes = json.dumps(json_body, ensure_ascii=False).encode()
        etag = f'W/"{hashlib.sha256(body_bytes).hexdigest()[:32]}"'
        response_headers = {**self._make_cache_headers(), "ETag": etag}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=response_headers)
        return Response(
            body_bytes, http_status, response_headers, media_type="application/json; charset=utf-8"
        )

    def _make_cache_headers(self) -> dict[str, str]:
        return {"Cache-Control": f"max-age={self.max_age}, public"}

    def _answer_search(self, request: Request) -> Response:
        query_params = request.query_params
        problem_text = find_parameter_problem(query_params.multi_items())
        if problem_text:
            return JSONResponse({"error": problem_text}, 422)
        matching_items = [
            content_item
            for content_item in self.items_by_path.values()
            if matches_filters(content_item, query_params.multi_items())
            and (self.lists_withdrawn or not content_item.get("withdrawn_notice"))
        ]
        ordered_items = sort_items(
            matching_items, query_params.get("q", ""), query_params.get("order")
        )
        first_index, result_count = (
            int(query_params.get("start", 0)),
            int(query_params.get("count", 10)),
        )
        wanted_field_names = query_params.getlist("fields")
        return self._make_json_response(
            request,
            {
                "results": [
                    make_search_result(content_item, wanted_field_names)
                    for content_item in ordered_items[first_index : first_index + result_count]
                ],
                **({"total": len(ordered_items)} if self.lists_total else {}),
                "start": first_index,
                "aggregates": {},
                "suggested_queries": [],
                "es_cluster": "A",
            },
        )


@contextmanager
def serve_on_loopback(emulator: GovukEmulator) -> Iterator[str]:
    """Serve the emulator on a free port, in a thread; yield its URL."""
    # Bound here and not by uvicorn: the port must be known before the server runs.
    listener = socket.create_server(("127.0.0.1", 0))
    uvicorn_server = uvicorn.Server(uvicorn.Config(emulator.app(), log_config=None, lifespan="off"))
    server_thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]})
    server_thread.start()
    while not uvicorn_server.started and server_thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        # Without force it would wait for clients that keep their connections open.
        uvicorn_server.should_exit = uvicorn_server.force_exit = True
        server_thread.join()


def make_sample_content_items() -> dict[str, ContentItem]:
    """Return the sample pages as items of the Content API, by path."""
    sample_document = tomllib.loads(SAMPLE_FILE.read_text("utf-8"))
    items_by_page_path = {
        page_entry["path"]: _make_item(page_entry) for page_entry in sample_document["page"]
    }
    for page_entry in sample_document["page"]:
        _link_translation(items_by_page_path, page_entry)
        _link_members(items_by_page_path, page_entry)
    return items_by_page_path


def load_content_items(items_folder: Path) -> dict[str, ContentItem]:
    """Return the items in the JSON files of a folder, by path; of two with one path, the last."""
    content_items = [
        json.loads(item_path.read_text("utf-8"))
        for item_path in sorted(items_folder.rglob("*.json"))
    ]
    return {
        content_item["base_path"]: content_item
        for content_item in content_items
        if isinstance(content_item.get("base_path"), str)
    }


# --- items in the form of real ones ---


def _make_item(page_entry: Mapping[str, Any]) -> ContentItem:
    """Return a complete content item for a page of the sample file."""
    schema_name = page_entry.get("schema", "detailed_guide")
    if schema_name in ("redirect", "gone"):
        return _make_stub_item(page_entry, schema_name)
    return {
        "analytics_identifier": None,
        "base_path": page_entry["path"],
        "content_id": _make_content_id(page_entry.get("same_as", page_entry["path"])),
        "description": page_entry.get("description", ""),
        "details": _make_details(page_entry, schema_name),
        "document_type": page_entry.get("document_type", schema_name),
        "first_published_at": page_entry.get("first", page_entry["updated"]),
        "links": {
            "organisations": [
                _make_organisation(organisation_slug)
                for organisation_slug in page_entry.get("by", [COMMISSION_SLUG])
            ],
        },
        "locale": page_entry.get("locale", "en"),
        "phase": "live",
        "public_updated_at": page_entry["updated"],
        "publishing_app": "whitehall",
        "rendering_app": "frontend",
        "schema_name": schema_name,
        "title": page_entry["title"],
        "updated_at": page_entry["updated"],
        "withdrawn_notice": _make_withdrawn_notice(page_entry),
    }


def _make_stub_item(page_entry: Mapping[str, Any], schema_name: str) -> ContentItem:
    """Return the item that replaces a page which is gone or was moved."""
    stub_item = {
        "base_path": page_entry["path"],
        "content_id": None,
        "description": None,
        "details": {},
        "document_type": schema_name,
        "links": {},
        "locale": "en",
        "public_updated_at": None,
        "schema_name": schema_name,
        "title": None,
        "updated_at": "2025-01-01T00:00:00Z",
    }
    if schema_name == "gone":
        stub_details = {
            field_name: page_entry.get(field_name)
            for field_name in ("explanation", "alternative_path")
        }
        return {**stub_item, "details": stub_details}
    redirect_rule = {
        "path": page_entry["path"],
        "type": "exact",
        "destination": page_entry["destination"],
    }
    return {**stub_item, "redirects": [redirect_rule]}


def _make_details(page_entry: Mapping[str, Any], schema_name: str) -> ContentItem:
    item_details: ContentItem = {"change_history": []}
    if schema_name == "html_publication":
        item_details |= {"public_timestamp": page_entry["updated"], "first_published_version": True}
    if schema_name not in ("answer", "guide"):
        item_details["political"] = False
    if "parts" in page_entry:
        item_details["parts"] = [dict(guide_part) for guide_part in page_entry["parts"]]
    if "body" in page_entry:
        item_details["body"] = page_entry["body"]
    if "groups" in page_entry:
        item_details["collection_groups"] = [
            {
                "title": document_group["title"],
                "body": document_group.get("body", ""),
                "documents": [
                    _make_content_id(document_path) for document_path in document_group["documents"]
                ],
            }
            for document_group in page_entry["groups"]
        ]
    if "attachments" in page_entry:
        item_details["attachments"] = [dict(attachment) for attachment in page_entry["attachments"]]
    if schema_name == "publication":
        item_details["documents"] = []
    return item_details


def _make_withdrawn_notice(page_entry: Mapping[str, Any]) -> ContentItem:
    if "withdrawn" not in page_entry:
        return {}
    return {"explanation": page_entry["withdrawn"], "withdrawn_at": page_entry["withdrawn_at"]}


def _make_organisation(organisation_slug: str) -> ContentItem:
    real_content_ids_by_slug = {COMMISSION_SLUG: "489e651f-34c8-4b34-bdd7-e13c2324cde3"}
    organisation_path = f"/government/organisations/{organisation_slug}"
    return {
        "base_path": organisation_path,
        "content_id": real_content_ids_by_slug.get(
            organisation_slug, _make_content_id(organisation_path)
        ),
        "locale": "en",
        "title": "Charity Commission"
        if organisation_slug == COMMISSION_SLUG
        else organisation_slug.replace("-", " ").title(),
        "api_path": f"/api/content{organisation_path}",
        "document_type": "organisation",
    }


def _make_content_id(page_path: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"readingroom:sample{page_path}"))


def _link_translation(
    items_by_page_path: dict[str, ContentItem], page_entry: Mapping[str, Any]
) -> None:
    """Link a translation and its original to each other."""
    if "same_as" not in page_entry:
        return
    item_versions = [
        items_by_page_path[page_entry["same_as"]],
        items_by_page_path[page_entry["path"]],
    ]
    item_references = [_make_reference(item_version) for item_version in item_versions]
    for item_version in item_versions:
        item_version["links"]["available_translations"] = item_references


def _link_members(
    items_by_page_path: dict[str, ContentItem], page_entry: Mapping[str, Any]
) -> None:
    """Link a collection to its members."""
    member_paths = [
        document_path
        for document_group in page_entry.get("groups", [])
        for document_path in document_group["documents"]
    ]
    if member_paths:
        items_by_page_path[page_entry["path"]]["links"]["documents"] = [
            _make_reference(items_by_page_path[document_path]) for document_path in member_paths
        ]


def _make_reference(content_item: ContentItem) -> ContentItem:
    field_names = (
        "base_path",
        "content_id",
        "title",
        "locale",
        "document_type",
        "public_updated_at",
    )
    return {field_name: content_item[field_name] for field_name in field_names}


def main() -> None:
    """Serve the emulator on loopback until interrupted."""
    argument_parser = argparse.ArgumentParser(
        prog="python -m readingroom.demo.govuk", description=__doc__
    )
    argument_parser.add_argument("--port", type=int, default=3994)
    argument_parser.add_argument(
        "--items", type=Path, help="a folder of content items as JSON files"
    )
    arguments = argument_parser.parse_args()
    items_by_page_path = (
        load_content_items(arguments.items) if arguments.items else make_sample_content_items()
    )
    listener = socket.create_server(("127.0.0.1", arguments.port))
    print(f"GOVUK_BASE_URL=http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn_config = uvicorn.Config(
        GovukEmulator(items_by_page_path).app(), log_level="warning", lifespan="off"
    )
    uvicorn.Server(uvicorn_config).run(sockets=[listener])


if __name__ == "__main__":
    main()
