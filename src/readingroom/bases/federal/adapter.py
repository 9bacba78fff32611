"""The federal base in searches, fetches and resources over all bases."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar
from urllib.parse import unquote

from readingroom.bases.federal.models import Search
from readingroom.bases.federal.schema import sources
from readingroom.bases.federal.schema.ids import LISTED_ID_FORMS
from readingroom.bases.federal.search.registries import find_registry_records
from readingroom.bases.federal.service import FederalService
from readingroom.core.errors import UnknownSource
from readingroom.protocol.resources import ResourceTemplate
from readingroom.protocol.search import (
    DeskHit,
    DeskRecord,
    PageLinks,
    SearchAdapter,
    SearchRequest,
)
from readingroom.protocol.tool import ToolContext

_MAX_REGISTRY_HITS = 3  # records of registries, found by their names
_MAX_COMPLETIONS = 101  # one more than a client is shown


class FederalAdapter(SearchAdapter):
    """Records with public addresses: their own answers have the common shape already."""

    base_name: ClassVar[str] = "federal"
    question_words_package: ClassVar[str] = __package__
    id_forms = tuple(LISTED_ID_FORMS)
    templates = (
        ResourceTemplate(
            "federal/{id}",
            "federal_record",
            "A federal record",
            "A bill, law, rule, report or person by its id, such as hr:119:1.",
        ),
    )

    def __init__(self, federal_service: FederalService, page_links: PageLinks) -> None:
        self._service = federal_service

    async def search(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> list[DeskHit]:
        search_answer = await self._service.search(
            Search(
                query=search_request.query,
                source=list(search_request.sources) or None,
                since=search_request.since,
                until=search_request.until,
                limit=search_request.limit,
                offset=0,
            )
        )
        hits = list(search_answer.results)
        if not (search_request.sources or search_request.since or search_request.until):
            hits += await self._service.store.query(
                partial(
                    find_registry_records,
                    query_text=search_request.query,
                    max_results=_MAX_REGISTRY_HITS,
                )
            )
        return [DeskHit(**dict(hit), base=self.base_name) for hit in hits]

    async def fetch(self, id: str, offset: int, tool_context: ToolContext) -> DeskRecord:
        return DeskRecord(**dict(await self._service.fetch_record(id, offset)), base=self.base_name)

    async def list_sources(self) -> Sequence[str]:
        return sources.list_source_names(sources.SOURCES)

    async def find_source(self, source_name: str) -> str | None:
        try:
            return sources.get_source(source_name).name
        except UnknownSource:
            return None

    def parse_resource_path(self, resource_path: str) -> str | None:
        path_match = re.fullmatch(r"federal/([^/]+)", resource_path)
        return unquote(path_match[1]) if path_match else None

    async def complete_argument(
        self, argument_name: str, typed_prefix: str, earlier_arguments: Mapping[str, str]
    ) -> Sequence[str]:
        if argument_name in ("id", "bill_id"):
            return await self._service.list_ids(typed_prefix, _MAX_COMPLETIONS)
        return ()
