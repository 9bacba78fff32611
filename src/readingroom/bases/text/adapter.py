"""The text base in searches, fetches and resources over all bases."""

import math
from collections import Counter
from typing import ClassVar

from readingroom.bases.text.models import TEXT_ID, KbAvailable
from readingroom.bases.text.service import TextService
from readingroom.core.errors import RecordNotFound
from readingroom.engine.chunking import split_into_spans
from readingroom.engine.words import extract_query_words, split_words
from readingroom.protocol.resources import ListedResource
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

_MAX_FULLY_COMPARED_PASSAGES = 12  # passages that are all compared with a question
_MAX_PASSAGES_OF_LONG_TEXT = 5  # of a longer text


class TextAdapter(SearchAdapter):
    """The one text has no index: its passages are few, so their words are counted."""

    base_name: ClassVar[str] = "text"
    question_words_package: ClassVar[str] = __package__
    id_forms = (TEXT_ID,)

    def __init__(self, text_service: TextService, page_links: PageLinks) -> None:
        self._service = text_service
        self._links = page_links

    @property
    def is_searched_unasked(self) -> bool:
        # A sample among somebody's own records would pass for one of them.
        return not self._service.is_stand_in

    async def search(
        self, search_request: SearchRequest, tool_context: ToolContext
    ) -> list[DeskHit]:
        text_content = (await self._service.read_content()).content
        url = self._links.make_record_url(TEXT_ID)
        return [
            DeskHit(
                id=TEXT_ID,
                title=self._service.description,
                url=url,
                source=self.base_name,
                snippet=passage_text,
                score=matched_word_share,
                published_at=None,
                citation=Citation(citation_string=self._service.description, url=url),
                base=self.base_name,
            )
            for passage_text, matched_word_share in find_passages(
                search_request.query, text_content
            )
        ]

    async def fetch(self, id: str, offset: int, tool_context: ToolContext) -> DeskRecord:
        if id != TEXT_ID:
            raise RecordNotFound(f"There is one text here, {TEXT_ID}, not {id[:100]}")
        file_info = await self._service.read_file_info()
        return make_desk_record(
            self.base_name,
            TEXT_ID,
            title=self._service.description,
            text=(await self._service.read_content()).content,
            url=self._links.make_record_url(TEXT_ID),
            citation=self._service.description,
            source=self.base_name,
            details=file_info.model_dump(mode="json") if isinstance(file_info, KbAvailable) else {},
            offset=offset,
        )

    async def list_resources(self) -> list[ListedResource]:
        if self._service.is_stand_in:
            return []
        return [ListedResource("text", TEXT_ID, "Plain text", "The one text, whole.")]

    def parse_resource_path(self, resource_path: str) -> str | None:
        return TEXT_ID if resource_path == "text" else None


def find_passages(query_text: str, whole_text: str) -> list[tuple[str, float]]:
    """Return passages with the share of the query's words that each has, most of them first.

    Of a short text all passages, since one that has no word of the query may answer it; of a long
    one those with most words, rare words counting more.
    """
    query_words = set(extract_query_words(query_text))
    passages = [passage_span.cut_from(whole_text) for passage_span in split_into_spans(whole_text)]
    matched_words_of_passages = [
        query_words & set(split_words(passage_text)) for passage_text in passages
    ]
    passage_count_by_word = Counter(
        matched_word
        for matched_query_words in matched_words_of_passages
        for matched_word in matched_query_words
    )
    rarity_by_word = {
        matched_word: math.log(1 + len(passages) / passage_count_by_word[matched_word])
        for matched_word in passage_count_by_word
    }
    if len(passages) > _MAX_FULLY_COMPARED_PASSAGES:
        ranked_passage_indexes = [
            passage_index
            for passage_index, matched_query_words in enumerate(matched_words_of_passages)
            if matched_query_words
        ]
    else:
        ranked_passage_indexes = list(range(len(passages)))
    ranked_passage_indexes.sort(
        key=lambda passage_index: (
            -sum(
                rarity_by_word[matched_word]
                for matched_word in matched_words_of_passages[passage_index]
            )
        )
    )
    max_passages = (
        _MAX_FULLY_COMPARED_PASSAGES
        if len(passages) <= _MAX_FULLY_COMPARED_PASSAGES
        else _MAX_PASSAGES_OF_LONG_TEXT
    )
    return [
        (
            passages[passage_index],
            len(matched_words_of_passages[passage_index]) / max(len(query_words), 1),
        )
        for passage_index in ranked_passage_indexes[:max_passages]
    ]
