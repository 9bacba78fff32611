"""How a page for people looks: one style, no script, nothing loaded from elsewhere."""

from collections.abc import Iterable, Mapping
from html import escape

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import Scope

from readingroom import __version__

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Vary": "Accept",
}

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 46rem; margin: 2rem auto; padding: 0 1rem }}
pre, code {{ background: #f4f4f2; border-radius: 4px; font-size: .9em }}
pre {{ padding: .8rem; overflow: auto }}
code {{ padding: .1em .3em }}
td {{ padding: .2rem 1rem .2rem 0; vertical-align: top; overflow-wrap: anywhere }}
td:first-child {{ white-space: nowrap }}
@media (prefers-color-scheme: dark) {{
  body {{ background: #1b1b1a; color: #e8e6e1 }}
  a {{ color: #9cc4ff }}
  pre, code {{ background: #2a2a28 }}
}}
</style>
<h1>{title}</h1>
{body}
<p><small>Reading Room {version}</small></p>
</html>
"""


def html_page(
    title: str, body: str, status: int = 200, headers: Mapping[str, str] = {}
) -> Response:
    """A whole page; `body` is markup, whatever stands in it is escaped already."""
    page = _PAGE.format(title=escape(title), body=body, version=__version__)
    return HTMLResponse(page, status, {**HEADERS, **headers})


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Two columns of markup: what something is called, and what there is to say of it."""
    cells = "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in rows)
    return f"<table>{cells}</table>"


def asks_for_html(scope: Scope) -> bool:
    """Whether a browser asks: programs take JSON, and say so or say nothing."""
    return "text/html" in Headers(scope=scope).get("accept", "")
