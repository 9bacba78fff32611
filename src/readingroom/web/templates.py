"""HTML pages from the templates in `web/templates`: no script, nothing loaded from elsewhere."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from readingroom import __version__

# No script at all, and nothing from elsewhere. `Vary`: programs get JSON at the same address.
PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    ),
    "Vary": "Accept",
}


def render_page(
    template: str,
    title: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] = {},
    **values: Any,
) -> Response:
    """Return the page that `web/templates/{template}` makes of the values, all of them escaped."""
    page = _make_environment().get_template(template)
    html = page.render(title=title, version=__version__, status=status, **values)
    return HTMLResponse(html, status, {**PAGE_HEADERS, **headers})


def accepts_html(scope: Scope) -> bool:
    """Whether a browser is asking: programs accept JSON, or do not say what they accept."""
    return "text/html" in Headers(scope=scope).get("accept", "")


@cache
def _make_environment() -> Environment:
    return Environment(
        loader=PackageLoader("readingroom.web"),
        autoescape=True,  # always: no template here makes anything but HTML
        # A misspelt name in a template is an error, and not a gap in the page.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
