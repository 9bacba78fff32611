"""The resources of every base by URI: listed, read and completed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from readingroom.core.errors import InvalidCursor, KnowledgeError, RecordNotFound
from readingroom.federation.models import DeskFetch
from readingroom.federation.service import DeskService
from readingroom.protocol.quoting import QUOTED_MATTER
from readingroom.protocol.resources import ListedResource, ResourceTemplate
from readingroom.protocol.tool import ToolCall

SCHEME = "readingroom://"
_PAGE_SIZE = 100
_MAX_CURSOR_DIGITS = 12
_MAX_CHARS = 200_000  # of one resource; tools read longer texts page by page


class RoomResources:
    """What the desk fetches, under addresses that a client can keep."""

    def __init__(self, desk: DeskService) -> None:
        self._desk = desk
        self.templates: tuple[ResourceTemplate, ...] = tuple(
            replace(template, uri=SCHEME + template.uri)
            for adapter in desk.adapters
            for template in adapter.templates
        )

    async def resources(self, cursor: str | None) -> tuple[Sequence[ListedResource], str | None]:
        """Return one page of the resources, and the cursor of the next. Raise InvalidCursor."""
        start = 0 if cursor is None else _parse_cursor(cursor)
        resources = [
            replace(resource, uri=SCHEME + resource.uri)
            for adapter in self._desk.adapters
            for resource in await adapter.list_resources()
        ]
        end = start + _PAGE_SIZE
        return resources[start:end], str(end) if end < len(resources) else None

    async def read(self, uri: str, call: ToolCall) -> str:
        """Return the text at a URI. Raise `RecordNotFound` when there is none."""
        path = uri.removeprefix(SCHEME)
        if uri.startswith(SCHEME):
            for adapter in self._desk.adapters:
                # Lists and overviews first: they are not records, and `fetch` has no id for them.
                if (text := await adapter.read_resource(path)) is not None:
                    return text
                if (id := adapter.parse_resource_path(path)) is not None:
                    return await self._read_record(id, call)
        raise RecordNotFound(f"{uri[:200]!r} is not the address of a resource here")

    async def complete(self, name: str, prefix: str, values: Mapping[str, str]) -> list[str]:
        """Return what an argument may be, given how it begins and the arguments before it."""
        try:
            candidates = [
                value
                for adapter in self._desk.adapters
                for value in await adapter.complete(name, prefix, values)
            ]
        except KnowledgeError:  # an argument before it names nothing
            return []
        return [value for value in candidates if value.lower().startswith(prefix.lower())]

    async def _read_record(self, id: str, call: ToolCall) -> str:
        record = await self._desk.fetch(DeskFetch(id=id), call)
        texts, offset = [record.text], record.next_offset
        while offset is not None and offset < _MAX_CHARS:
            page = await self._desk.fetch(DeskFetch(id=id, offset=offset), call)
            texts, offset = [*texts, page.text], page.next_offset
        cut_notice = (
            "" if offset is None else f"\n\n[cut: fetch {id} with offset {offset} for the rest]"
        )
        citation = record.citation
        # What its base demands to be repeated with the text, where it does.
        legal = [record.record.get(name) for name in ("attribution", "disclaimer")]
        head = "\n".join(
            filter(None, [citation.citation_string, citation.url, *legal, QUOTED_MATTER])
        )
        return f"{head}\n\n{''.join(texts)}{cut_notice}"


def _parse_cursor(cursor: str) -> int:
    is_number = cursor.isascii() and cursor.isdecimal() and not cursor.startswith("0")
    if len(cursor) > _MAX_CURSOR_DIGITS or not is_number or int(cursor) % _PAGE_SIZE:
        raise InvalidCursor("This cursor is not one that this list gave out; start without one")
    return int(cursor)
