"""The pages that bases add: `/{base}/…`, in the same layout as every page."""

from collections.abc import Iterable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from readingroom.protocol.pages import BasePage
from readingroom.protocol.spec import KnowledgeBase
from readingroom.web.templates import render_page


def make_base_page_routes(bases: Iterable[KnowledgeBase]) -> list[Route]:
    """Return a route for each page of each base."""
    return [
        Route(f"/{base.name}{page.path}", partial(_render_base_page, page))
        for base in bases
        for page in base.pages()
    ]


async def _render_base_page(page: BasePage, request: Request) -> Response:
    title, body = await page.render({**request.query_params, **request.path_params})
    return render_page("base_page.html", title, body=body)
