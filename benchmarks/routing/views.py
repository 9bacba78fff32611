"""What the views inside a chat weigh, and what they add to a listing."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import Table
from readingroom.bases import BASES, open_bases
from readingroom.federation.room import make_federated_base
from readingroom.server.faces import Face, make_faces
from readingroom.server.mcp.handlers import make_wire_tool
from readingroom.settings import load_settings
from readingroom.web.views import VIEW_NAMES, make_view_uri, render_view

_MAX_BYTES = 12 * 1024
_MAX_GROWTH = 0.02


def tables() -> Iterator[Table]:
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings({"data": Path(folder)}, {})
        bases = open_bases(BASES, settings)
        room_face, *_ = make_faces(bases, make_federated_base(bases, settings))
        tools_by_view = {
            view: [
                name
                for name, (tool, _) in room_face.tools_and_dialects_by_name.items()
                if tool.view == view
            ]
            for view in VIEW_NAMES
        }
        growth = _measure_growth(room_face)
    verdict = "met" if growth <= _MAX_GROWTH else "**missed**"
    yield Table(
        "Views inside the chat",
        ("view", "tools", "bytes", "target"),
        tuple(_render_view(view, tools) for view, tools in tools_by_view.items()),
        f"One file each, which loads nothing. They add {growth:.2%} to `tools/list` of the face of "
        f"all bases: {verdict} (at most {_MAX_GROWTH:.0%}).",
    )


def _render_view(view: str, tools: list[str]) -> tuple[str, ...]:
    html = render_view(make_view_uri(view), "https://room.example.org") or ""
    byte_count = len(html.encode())
    verdict = "met" if byte_count <= _MAX_BYTES else "**missed**"
    names = ", ".join(f"`{tool}`" for tool in tools)
    return view, names, f"{byte_count:,}", f"{verdict} (at most {_MAX_BYTES:,})"


def _measure_growth(face: Face) -> float:
    """The share by which views make the listing longer."""
    listing = [
        make_wire_tool(tool).model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool, _ in face.tools_and_dialects_by_name.values()
    ]
    whole = len(json.dumps(listing))
    for entry in listing:
        meta = {key: value for key, value in entry.pop("_meta", {}).items() if key[:2] != "ui"}
        if meta:
            entry["_meta"] = meta
    return whole / len(json.dumps(listing)) - 1
