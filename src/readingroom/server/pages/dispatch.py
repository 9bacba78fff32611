"""Answers the pages of the bases and of the server: who may open them, their forms, their files."""

import contextlib
import itertools
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from readingroom.core.errors import InvalidArguments, KnowledgeError
from readingroom.core.progress import no_progress
from readingroom.ingest.read.scratch import ScratchFolders
from readingroom.protocol.pages import (
    BasePage,
    FormRefusal,
    PageAnswer,
    PageFile,
    PagePicture,
    PageRequest,
    RenderedPage,
    SeeOther,
    SentFile,
)
from readingroom.protocol.sample import mark_sample_document
from readingroom.server.errors import RoleRequired, Unauthorized
from readingroom.server.mcp.calls import make_tool_context_from_scope
from readingroom.server.observe.requests import ROUTE_PATH_STATE_KEY
from readingroom.server.pages.frame import JSON_PARAMETER_NAME, PageFrame, accepts_html
from readingroom.server.settings import ServerSettings
from readingroom.web.uploads import receive_form

_PICTURE_CACHE_SECONDS = 24 * 3600
_SPOOL_FOLDER_NAME = "uploads"
_DOWNLOAD_HEADERS = {
    # It was written by strangers: saved, never shown, and never run as a page of ours.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STATUSES_FORM_CAN_MEND = (409, 413, 415, 422)
"""What whoever sent a form can do something about."""


class _PageNumberConvertor(Convertor[int]):
    """`{page:page_number}` in a path: no number that is too long for Python to read."""

    regex = "[0-9]{1,6}"

    def convert(self, page_digits: str) -> int:
        return int(page_digits)

    def to_string(self, page_number: int) -> str:
        return str(page_number)


register_url_convertor("page_number", _PageNumberConvertor())


def make_upload_spools(settings: ServerSettings) -> ScratchFolders:
    """Return the folders in which the files of forms are received."""
    return ScratchFolders(settings.data / _SPOOL_FOLDER_NAME)


def make_page_routes(
    base_pages: Iterable[BasePage],
    frame_renderer: PageFrame,
    settings: ServerSettings,
    upload_spools: ScratchFolders,
) -> list[BaseRoute]:
    """Return a route for each page; those that change something are left out of a read-only
    server.
    """
    allowed_pages = [
        base_page
        for base_page in base_pages
        if not (settings.read_only and base_page.method == "POST")
    ]
    return [
        Route(
            base_page.path,
            partial(_answer_page_request, base_page, frame_renderer, settings, upload_spools),
            methods=[base_page.method],
        )
        for base_page in allowed_pages
    ]


async def _answer_page_request(
    base_page: BasePage,
    frame_renderer: PageFrame,
    settings: ServerSettings,
    upload_spools: ScratchFolders,
    request: Request,
) -> Response:
    request.scope["state"][ROUTE_PATH_STATE_KEY] = base_page.path
    visitor = frame_renderer.browser_auth.identify_visitor(request.scope)
    if visitor is None:
        raise Unauthorized("Sign in to open this page")
    if not visitor.has_role(base_page.role):
        raise RoleRequired(f"This takes a key of an {base_page.role}; yours is of a {visitor.role}")
    tracked_parameters = _TrackedParameters({**request.query_params, **request.path_params})
    page_request = PageRequest(
        parameters=tracked_parameters,
        visitor=visitor,
        tool_context=make_tool_context_from_scope(request.scope, no_progress),
        is_sample=settings.is_sample,
        form_token=frame_renderer.browser_auth.make_form_token(request.scope),
    )
    try:
        async with _receive_form(base_page, frame_renderer, settings, upload_spools, request) as (
            form_fields,
            sent_files,
        ):
            tracked_parameters.add_form_fields(form_fields, request.path_params)
            page_request = replace(page_request, files=sent_files)
            page_answer = await base_page.render(page_request)
    except KnowledgeError as error:
        # Also of a form that was too large to be received: its fields are not known then.
        is_json_request = request.query_params.get(JSON_PARAMETER_NAME) == "json"
        is_mendable = error.http_status in _STATUSES_FORM_CAN_MEND and not is_json_request
        if base_page.render_form_page is None or not is_mendable:
            raise
        if base_page.method == "GET" and not _is_for_person(request):
            raise
        page_answer = await _show_form_again(base_page.render_form_page, page_request, error)
    match page_answer:
        case SeeOther(address):
            return RedirectResponse(address, 303)
        case PagePicture(content, media_type):
            cache_headers = {"Cache-Control": f"private, max-age={_PICTURE_CACHE_SECONDS}"}
            return Response(content, media_type=media_type, headers=cache_headers)
        case PageFile(file_path, file_name):
            return FileResponse(
                file_path,
                media_type="application/octet-stream",
                headers=_DOWNLOAD_HEADERS,
                filename=file_name,
            )
        case RenderedPage() if request.query_params.get(JSON_PARAMETER_NAME) == "json":
            return _respond_json(page_answer, settings.is_sample)
        case RenderedPage():
            unused_parameter_names = [
                parameter_name
                for parameter_name, parameter_value in request.query_params.items()
                if parameter_value and parameter_name not in tracked_parameters.used_names
            ]
            return frame_renderer.make_response(
                request.scope, page_answer, unused_parameter_names=unused_parameter_names
            )


class _TrackedParameters(Mapping[str, str]):
    """The parameters of a page, and which of them it has looked at."""

    def __init__(self, values_by_parameter_name: Mapping[str, Any]) -> None:
        self._values_by_name: dict[str, str] = dict(values_by_parameter_name)
        self.used_names = {JSON_PARAMETER_NAME}

    def add_form_fields(
        self, form_fields: Mapping[str, str], path_params: Mapping[str, Any]
    ) -> None:
        """Add the fields of a form, which hide parameters of the query and none of the path."""
        self._values_by_name |= {**form_fields, **path_params}

    def __getitem__(self, parameter_name: str) -> str:
        self.used_names.add(parameter_name)
        return self._values_by_name[parameter_name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values_by_name)

    def __len__(self) -> int:
        return len(self._values_by_name)


def _is_for_person(request: Request) -> bool:
    """Whether a person gets the answer: a program gets an error as one."""
    return accepts_html(request.scope) and request.query_params.get(JSON_PARAMETER_NAME) != "json"


async def _show_form_again(
    render_form_page: Callable[[PageRequest], Awaitable[PageAnswer]],
    page_request: PageRequest,
    error: KnowledgeError,
) -> PageAnswer:
    field_problems = error.errors if isinstance(error, InvalidArguments) else []
    refused_field_names = frozenset(field_problem["field"] for field_problem in field_problems)
    form_refusal = FormRefusal(error.code, error.message, refused_field_names)
    form_answer = await render_form_page(replace(page_request, refusal=form_refusal))
    if isinstance(form_answer, RenderedPage):
        return replace(form_answer, status=error.http_status)
    return form_answer


@contextlib.asynccontextmanager
async def _receive_form(
    base_page: BasePage,
    frame_renderer: PageFrame,
    settings: ServerSettings,
    upload_spools: ScratchFolders,
    request: Request,
) -> AsyncIterator[tuple[dict[str, str], Sequence[SentFile]]]:
    """Yield the fields and the files of a form; files that nobody has moved are deleted after."""
    if base_page.method == "GET":
        yield {}, ()
        return
    # Before the body is read: who may not send it sends it in vain.
    frame_renderer.browser_auth.check_same_origin(request.scope)
    async with upload_spools.make_scratch_folder() as spool_folder:
        file_numbers = itertools.count()
        upload_form = await receive_form(
            request,
            lambda: Path(spool_folder) / str(next(file_numbers)),
            base_page.max_upload_bytes or 0,
            settings.max_body_bytes,
        )
        frame_renderer.browser_auth.check_form_token(request.scope, upload_form.fields)
        yield (
            upload_form.fields,
            [SentFile(file_name, spool_path) for file_name, spool_path in upload_form.files],
        )


def _respond_json(rendered_page: RenderedPage, is_sample: bool) -> Response:
    json_document: Any = rendered_page.data
    if isinstance(json_document, BaseModel):
        json_document = json_document.model_dump(mode="json")
    else:
        json_document = _ANY_TYPE_ADAPTER.dump_python(json_document, mode="json")
    return JSONResponse(mark_sample_document(json_document) if is_sample else json_document)


_ANY_TYPE_ADAPTER: TypeAdapter[Any] = TypeAdapter(Any)
