"""The guidance base in searches, fetches and resources over all bases."""

import copy
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar
from urllib.parse import unquote

from readingroom.bases.guidance.models import (
    ATTRIBUTION,
    DISCLAIMER,
    GetContentByPath,
    PageText,
    SearchGuidance,
    make_guidance_id,
)
from readingroom.bases.guidance.pages.addresses import is_page_address
from readingroom.bases.guidance.service import GuidanceService
from readingroom.bases.guidance.tools import make_call_context
from readingroom.core.errors import KnowledgeError
from readingroom.core.scores import ScoreParts
from readingroom.protocol.resources import ResourceTemplate
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    PageLinks,
    SearchAdapter,
    SearchRequest,
    make_desk_record,
)
from readingroom.protocol.tool import ToolContext

_SOURCE_NAME = "charity-commission"
_MAX_QUERY_CHARS = 500  # characters that GOV.UK's search takes
_LEGAL_TEXT = f"{ATTRIBUTION}. {DISCLAIMER}"


class GuidanceAdapter(SearchAdapter):
    """Pages of GOV.UK: they have a public address, so no page of this server is linked."""

    base_name: ClassVar[str] = "guidance"
    question_words_package: ClassVar[str] = __package__
    id_forms = ("guidance: (guidance:/guidance/charity-reporting)",)
    templates = (
        ResourceTemplate(
            "guidance{+path}",
            "guidance_page",
            "A page of Charity Commission guidance",
            "Its text, by its path on GOV.UK.",
        ),
    )

    def __init__(self, guidance_service: GuidanceService, page_links: PageLinks) -> None:
        self._service = guidance_service

    async def search(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> list[DeskHit]:
        filter_days = {
            "public_timestamp_from": search_request.since,
            "public_timestamp_to": search_request.until,
        }
        arguments = SearchGuidance(
            query=search_request.query[:_MAX_QUERY_CHARS],
            filters={
                filter_name: filter_day
                for filter_name, filter_day in filter_days.items()
                if filter_day
            },
            page=1,
            page_size=search_request.limit,
            order="relevance",
            mode="auto",
        )
        with _add_legal_sentences_to_errors():
            search_results = await self._service.search(arguments, make_call_context(tool_context))
        return [
            DeskHit(
                id=hit.id,
                title=hit.title,
                url=hit.url,
                source=_SOURCE_NAME,
                snippet=hit.passage or hit.summary,
                # GOV.UK gives no score, only an order.
                score=1 / hit_rank if hit.score is None else hit.score,
                published_at=hit.public_updated_at,
                citation=Citation(citation_string=f"Charity Commission, {hit.title}", url=hit.url),
                base=self.base_name,
                parts=None if hit.similarity is None else ScoreParts(semantic=hit.similarity),
                attribution=f"{ATTRIBUTION} {DISCLAIMER}",
            )
            for hit_rank, hit in enumerate(search_results.results, 1)
            if hit.id
        ]

    async def fetch(self, id: str, offset: int, tool_context: ToolContext) -> DeskRecord:
        arguments = GetContentByPath(
            path=id,
            text_only=True,
            section=None,
            offset=0,
            max_chars=None,
        )
        with _add_legal_sentences_to_errors():
            page_answer = await self._service.read_page(arguments, make_call_context(tool_context))
        assert isinstance(page_answer, PageText)
        return make_desk_record(
            self.base_name,
            page_answer.id,
            title=page_answer.title or page_answer.id,
            text=page_answer.text,
            url=page_answer.url,
            citation=page_answer.citation,
            source=_SOURCE_NAME,
            details=page_answer.model_dump(mode="json", exclude={"text", "id", "next_offset"}),
            offset=offset,
        )

    def recognizes_id(self, id: str) -> bool:
        return is_page_address(id)

    def parse_resource_path(self, resource_path: str) -> str | None:
        path_match = re.fullmatch(r"guidance(/.+)", resource_path)
        return make_guidance_id(unquote(path_match[1])) if path_match else None


@contextmanager
def _add_legal_sentences_to_errors() -> Iterator[None]:
    """Give errors the attribution and the disclaimer: the desk's own form of errors has neither."""
    try:
        yield
    except KnowledgeError as error:
        # A copy: callers who wait for the same page share one error.
        attributed_error = copy.copy(error)
        attributed_error.message = f"{error.message.rstrip('.')}. {_LEGAL_TEXT}"
        attributed_error.hint = {
            **error.hint,
            "attribution": ATTRIBUTION,
            "disclaimer": DISCLAIMER,
        }
        raise attributed_error from error
