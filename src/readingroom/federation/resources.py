"""The resources of every base by URI: listed, read and completed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from readingroom.core.errors import InvalidCursor, KnowledgeError, RecordNotFound
from readingroom.federation.models import DeskFetch
from readingroom.federation.service import FederationService
from readingroom.protocol.quoting import QUOTED_MATTER_INSTRUCTION
from readingroom.protocol.resources import RESOURCE_SCHEME, ListedResource, ResourceTemplate
from readingroom.protocol.tool import ToolContext

_RESOURCES_PER_PAGE = 100
_MAX_CURSOR_DIGITS = 12
_MAX_RESOURCE_CHARS = 200_000  # of one resource; tools read longer texts page by page


class FederatedResources:
    """What the desk fetches, under addresses that a client can keep."""

    def __init__(self, federation_service: FederationService) -> None:
        self._desk = federation_service
        self.templates: tuple[ResourceTemplate, ...] = tuple(
            replace(resource_template, uri=RESOURCE_SCHEME + resource_template.uri)
            for search_adapter in federation_service.adapters
            for resource_template in search_adapter.templates
        )

    async def list_resources(
        self, page_cursor: str | None
    ) -> tuple[Sequence[ListedResource], str | None]:
        """Return one page of the resources, and the cursor of the next. Raise InvalidCursor."""
        first_index = 0 if page_cursor is None else _parse_cursor(page_cursor)
        listed_resources = [
            replace(listed_resource, uri=RESOURCE_SCHEME + listed_resource.uri)
            for search_adapter in self._desk.adapters
            for listed_resource in await search_adapter.list_resources()
        ]
        end_index = first_index + _RESOURCES_PER_PAGE
        return listed_resources[first_index:end_index], str(end_index) if end_index < len(
            listed_resources
        ) else None

    async def read_resource(self, resource_uri: str, tool_context: ToolContext) -> str:
        """Return the text at a URI. Raise `RecordNotFound` when there is none."""
        resource_path = resource_uri.removeprefix(RESOURCE_SCHEME)
        if resource_uri.startswith(RESOURCE_SCHEME):
            for search_adapter in self._desk.adapters:
                # Lists and overviews first: they are not records, and `fetch` has no id for them.
                if (resource_text := await search_adapter.read_resource(resource_path)) is not None:
                    return resource_text
                if (record_id := search_adapter.parse_resource_path(resource_path)) is not None:
                    return await self._read_record(record_id, tool_context)
        raise RecordNotFound(f"{resource_uri[:200]!r} is not the address of a resource here")

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> list[str]:
        """Return what an argument may be, given how it begins and the arguments before it."""
        try:
            completion_values = [
                completion_value
                for search_adapter in self._desk.adapters
                for completion_value in await search_adapter.complete_argument(
                    argument_name, typed_prefix, earlier_arguments
                )
            ]
        except KnowledgeError:  # an argument before it names nothing
            return []
        return [
            completion_value
            for completion_value in completion_values
            if completion_value.lower().startswith(typed_prefix.lower())
        ]

    async def _read_record(self, record_id: str, tool_context: ToolContext) -> str:
        fetched_record = await self._desk.fetch(DeskFetch(id=record_id), tool_context)
        text_pages, next_offset = [fetched_record.text], fetched_record.next_offset
        while next_offset is not None and next_offset < _MAX_RESOURCE_CHARS:
            next_page = await self._desk.fetch(
                DeskFetch(id=record_id, offset=next_offset), tool_context
            )
            text_pages, next_offset = [*text_pages, next_page.text], next_page.next_offset
        truncation_notice = (
            ""
            if next_offset is None
            else f"\n\n[cut: fetch {record_id} with offset {next_offset} for the rest]"
        )
        citation = fetched_record.citation
        # What its base demands to be repeated with the text, where it does.
        legal_notices = [
            fetched_record.record.get(legal_field_name)
            for legal_field_name in ("attribution", "disclaimer")
        ]
        citation_text = "\n".join(
            filter(
                None,
                [citation.citation_string, citation.url, *legal_notices, QUOTED_MATTER_INSTRUCTION],
            )
        )
        return f"{citation_text}\n\n{''.join(text_pages)}{truncation_notice}"


def _parse_cursor(page_cursor: str) -> int:
    is_positive_number = (
        page_cursor.isascii() and page_cursor.isdecimal() and not page_cursor.startswith("0")
    )
    if (
        len(page_cursor) > _MAX_CURSOR_DIGITS
        or not is_positive_number
        or int(page_cursor) % _RESOURCES_PER_PAGE
    ):
        raise InvalidCursor("This cursor is not one that this list gave out; start without one")
    return int(page_cursor)
