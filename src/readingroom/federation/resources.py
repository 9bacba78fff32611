"""The resources of every base by URI: listed, read and completed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from readingroom.core.errors import InvalidCursor, KnowledgeError, RecordNotFound
from readingroom.federation.models import DeskFetch
from readingroom.federation.service import DeskService
from readingroom.protocol.quoting import QUOTED_MATTER_INSTRUCTION
from readingroom.protocol.resources import RESOURCE_SCHEME, ListedResource, ResourceTemplate
from readingroom.protocol.tool import ToolCall

_RESOURCES_PER_PAGE = 100
_MAX_CURSOR_DIGITS = 12
_MAX_RESOURCE_CHARS = 200_000  # of one resource; tools read longer texts page by page


class RoomResources:
    """What the desk fetches, under addresses that a client can keep."""

    def __init__(self, desk: DeskService) -> None:
        self._desk = desk
        self.templates: tuple[ResourceTemplate, ...] = tuple(
            replace(template, uri=RESOURCE_SCHEME + template.uri)
            for adapter in desk.adapters
            for template in adapter.templates
        )

    async def list_resources(
        self, cursor: str | None
    ) -> tuple[Sequence[ListedResource], str | None]:
        """Return one page of the resources, and the cursor of the next. Raise InvalidCursor."""
        page_start = 0 if cursor is None else _parse_cursor(cursor)
        resources = [
            replace(resource, uri=RESOURCE_SCHEME + resource.uri)
            for adapter in self._desk.adapters
            for resource in await adapter.list_resources()
        ]
        page_end = page_start + _RESOURCES_PER_PAGE
        return resources[page_start:page_end], str(page_end) if page_end < len(resources) else None

    async def read_resource(self, uri: str, call: ToolCall) -> str:
        """Return the text at a URI. Raise `RecordNotFound` when there is none."""
        resource_path = uri.removeprefix(RESOURCE_SCHEME)
        if uri.startswith(RESOURCE_SCHEME):
            for adapter in self._desk.adapters:
                # Lists and overviews first: they are not records, and `fetch` has no id for them.
                if (resource_text := await adapter.read_resource(resource_path)) is not None:
                    return resource_text
                if (record_id := adapter.parse_resource_path(resource_path)) is not None:
                    return await self._read_record(record_id, call)
        raise RecordNotFound(f"{uri[:200]!r} is not the address of a resource here")

    async def complete_argument(
        self, argument_name: str, prefix: str, earlier_arguments: Mapping[str, str]
    ) -> list[str]:
        """Return what an argument may be, given how it begins and the arguments before it."""
        try:
            completions = [
                completion
                for adapter in self._desk.adapters
                for completion in await adapter.complete_argument(
                    argument_name, prefix, earlier_arguments
                )
            ]
        except KnowledgeError:  # an argument before it names nothing
            return []
        return [
            completion
            for completion in completions
            if completion.lower().startswith(prefix.lower())
        ]

    async def _read_record(self, record_id: str, call: ToolCall) -> str:
        record = await self._desk.fetch(DeskFetch(id=record_id), call)
        text_pages, next_offset = [record.text], record.next_offset
        while next_offset is not None and next_offset < _MAX_RESOURCE_CHARS:
            next_page = await self._desk.fetch(DeskFetch(id=record_id, offset=next_offset), call)
            text_pages, next_offset = [*text_pages, next_page.text], next_page.next_offset
        cut_notice = (
            ""
            if next_offset is None
            else f"\n\n[cut: fetch {record_id} with offset {next_offset} for the rest]"
        )
        citation = record.citation
        # What its base demands to be repeated with the text, where it does.
        legal_notices = [
            record.record.get(legal_field) for legal_field in ("attribution", "disclaimer")
        ]
        citation_text = "\n".join(
            filter(
                None,
                [citation.citation_string, citation.url, *legal_notices, QUOTED_MATTER_INSTRUCTION],
            )
        )
        return f"{citation_text}\n\n{''.join(text_pages)}{cut_notice}"


def _parse_cursor(cursor: str) -> int:
    is_number = cursor.isascii() and cursor.isdecimal() and not cursor.startswith("0")
    if len(cursor) > _MAX_CURSOR_DIGITS or not is_number or int(cursor) % _RESOURCES_PER_PAGE:
        raise InvalidCursor("This cursor is not one that this list gave out; start without one")
    return int(cursor)
