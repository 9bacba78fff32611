"""The text base in searches, fetches and resources over all bases."""

from typing import ClassVar

from readingroom.bases.text.models import TEXT_ID, KbAvailable
from readingroom.bases.text.service import TextService
from readingroom.core.errors import RecordNotFound
from readingroom.engine.chunking import split
from readingroom.engine.words import extract_words
from readingroom.protocol.resources import ListedResource
from readingroom.protocol.search import (
    Citation,
    DeskHit,
    DeskRecord,
    PageLinks,
    SearchAdapter,
    SearchRequest,
    make_record,
)
from readingroom.protocol.tool import ToolCall


class TextAdapter(SearchAdapter):
    """The one text has no index: its passages are few, so their words are counted."""

    base: ClassVar[str] = "text"
    id_forms = (TEXT_ID,)

    def __init__(self, service: TextService, links: PageLinks) -> None:
        self._service = service
        self._links = links

    @property
    def is_searched_unasked(self) -> bool:
        # A sample among somebody's own records would pass for one of them.
        return not self._service.is_stand_in

    async def search(self, request: SearchRequest, call: ToolCall) -> list[DeskHit]:
        content = (await self._service.read_content()).content
        best_passage = find_best_passage(request.query, content)
        if best_passage is None:
            return []
        passage, share_of_words = best_passage
        url = self._links.make_url(TEXT_ID)
        return [
            DeskHit(
                id=TEXT_ID,
                title=self._service.description,
                url=url,
                source=self.base,
                snippet=passage,
                score=share_of_words,
                published_at=None,
                citation=Citation(citation_string=self._service.description, url=url),
                base=self.base,
            )
        ]

    async def fetch(self, id: str, offset: int, call: ToolCall) -> DeskRecord:
        if id != TEXT_ID:
            raise RecordNotFound(f"There is one text here, {TEXT_ID}, not {id[:100]}")
        file_info = await self._service.describe()
        return make_record(
            self.base,
            TEXT_ID,
            title=self._service.description,
            text=(await self._service.read_content()).content,
            url=self._links.make_url(TEXT_ID),
            citation=self._service.description,
            source=self.base,
            details=file_info.model_dump(mode="json") if isinstance(file_info, KbAvailable) else {},
            offset=offset,
        )

    async def list_resources(self) -> list[ListedResource]:
        if self._service.is_stand_in:
            return []
        return [ListedResource("text", TEXT_ID, "Plain text", "The one text, whole.")]

    def parse_resource_path(self, path: str) -> str | None:
        return TEXT_ID if path == "text" else None


def find_best_passage(query: str, text: str) -> tuple[str, float] | None:
    """Return the passage with most of the query's words and the share of them it has.

    None when no passage has at least half of them.
    """
    query_words = set(extract_words(query))
    # Below half, one common word would make any passage a hit.
    best_span, best_count = None, len(query_words) / 2
    for span in split(text):
        shared_count = len(query_words & set(extract_words(span.of(text))))
        if (
            shared_count
            and shared_count >= best_count
            and (best_span is None or shared_count > best_count)
        ):
            best_span, best_count = span, float(shared_count)
    return (best_span.of(text), best_count / len(query_words)) if best_span else None
