"""Views inside a chat: an answer drawn in one self-contained HTML file, which loads nothing."""

from functools import cache
from pathlib import Path

from pydantic_core import to_json

VIEW_MEDIA_TYPE = "text/html;profile=mcp-app"
_VIEW_URI_PREFIX = "ui://readingroom/"
_VIEWS_FOLDER = Path(__file__).parent / "views"
VIEW_NAMES = ("compare", "overview", "quotation", "results", "series", "timeline", "vote")


def make_view_uri(view_name: str) -> str:
    """Return the URI of a view. Raise ValueError for a name that no view has."""
    if view_name not in VIEW_NAMES:
        raise ValueError(f"There is no view {view_name!r}; choose from {', '.join(VIEW_NAMES)}")
    return _VIEW_URI_PREFIX + view_name


def render_view(view_uri: str, room_address: str) -> str | None:
    """Return the HTML of a view whose links lead to this address; None for another URI."""
    view_name = view_uri.removeprefix(_VIEW_URI_PREFIX)
    if view_name == view_uri or view_name not in VIEW_NAMES:
        return None
    # As JSON inside a script: an address cannot end the string, nor the element.
    address_json = to_json(room_address).decode().replace("<", "\\u003c")
    return _build_view_html(view_name).replace('"{{room}}"', address_json)


@cache
def _build_view_html(view_name: str) -> str:
    def read_view_file(file_name: str) -> str:
        return (_VIEWS_FOLDER / file_name).read_text("utf-8")

    # One file, because hosts load nothing that a view refers to.
    view_html = read_view_file("frame.html").replace("{{host}}", read_view_file("host.js"))
    return view_html.replace("{{view}}", read_view_file(f"{view_name}.js")).replace(
        "{{name}}", view_name
    )
