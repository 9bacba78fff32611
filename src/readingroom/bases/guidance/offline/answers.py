"""Answers from the offline copy, in the shapes of those from GOV.UK, each with its age."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from readingroom.bases.guidance.models import (
    CacheState,
    Hit,
    OfflineCopy,
    PageSection,
    RecentChanges,
    make_guidance_id,
)
from readingroom.bases.guidance.offline.index import FoundPassage, OfflineIndex
from readingroom.bases.guidance.offline.library import GuidanceLibrary, StoredPage
from readingroom.bases.guidance.pages.page import GovukPage
from readingroom.bases.guidance.pages.values import find_text
from readingroom.core import clock
from readingroom.core.lru import LRUCache
from readingroom.core.scores import Confidence
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.embedding.embedder import Embedder
from readingroom.net.cache import CacheEntry, Reply, ServedReply
from readingroom.net.errors import UpstreamError, UpstreamUnavailable

_MAX_RANKED_PAGES = 200
_SECONDS_PER_DAY = 86_400
_MAX_RECENT_HITS = 4_096  # about 8 MB


@dataclass(frozen=True, slots=True)
class _PageHit:
    """A passage of a page as a hit without a score, and what filters ask of the page."""

    hit: Hit
    schema_name: str | None


@dataclass(frozen=True, slots=True)
class OfflineHits:
    """A page of what a search of the copy found, and how close the best of all is."""

    hits: list[Hit]
    total_count: int
    confidence: Confidence
    offline_copy: OfflineCopy


class OfflineGuidance:
    """The offline copy of the guidance, searched and read; it may not exist yet."""

    def __init__(
        self, guidance_library: GuidanceLibrary, embedder: Embedder, max_age_days: float
    ) -> None:
        self.library = guidance_library
        self._offline_index = OfflineIndex(guidance_library, embedder)
        self._max_age_days = max_age_days
        # By the copy's generation too: after a sync the old ones are asked for no more.
        self._recent_hits: LRUCache[tuple[int, str, int], _PageHit] = LRUCache(_MAX_RECENT_HITS)

    @property
    def is_synced(self) -> bool:
        """Whether a sync was ever completed, so that the copy is whole."""
        return self.library.has_database and self.library.read_status().synced_at is not None

    def close(self) -> None:
        self._offline_index.close()
        self.library.close()

    def search(
        self,
        query_text: str,
        filter_values_by_name: dict[str, Any],
        first_index: int,
        max_hits: int,
        newest_first: bool,
    ) -> OfflineHits:
        """Return the best pages, each with its best passage."""
        # Read first: a hit of a later generation is kept under this one, which is over by then.
        library_generation = self.library.generation
        best_passages, degraded_reason = self._offline_index.search_passages(
            query_text, _MAX_RANKED_PAGES
        )
        hits = []
        for best_passage in best_passages:
            page_hit = self._find_page_hit(library_generation, best_passage)
            if page_hit and _is_passing_filters(page_hit, filter_values_by_name):
                hits.append(_copy_hit_with_score(page_hit.hit, best_passage))
        best_title = hits[0].title if hits else ""
        answer_confidence = judge_confidence([hit.score or 0.0 for hit in hits], best_title)
        if newest_first:
            hits.sort(key=lambda hit: hit.public_updated_at or "", reverse=True)
        return OfflineHits(
            hits[first_index : first_index + max_hits],
            len(hits),
            answer_confidence,
            self._make_offline_copy(degraded_reason),
        )

    def _find_page_hit(self, library_generation: int, passage: FoundPassage) -> _PageHit | None:
        """Return the hit of a passage, whose page is rendered once for all searches."""
        hit_key = (library_generation, passage.path, passage.start_offset)
        page_hit = self._recent_hits.get(hit_key)
        if page_hit is None and (stored_page := self.library.read_page(passage.path)):
            govuk_page = stored_page.parse_page()
            page_hit = _PageHit(
                _make_offline_hit(govuk_page, passage), govuk_page.identifiers.schema_name
            )
            self._recent_hits.put(hit_key, page_hit)
        return page_hit

    def list_changes(self, arguments: RecentChanges) -> tuple[list[Hit], OfflineCopy]:
        """Return the pages that changed since a day, the latest first, with what was changed."""
        hits = []
        for stored_page in self.library.iterate_pages():
            govuk_page = stored_page.parse_page()
            changed_day = (govuk_page.public_updated_at or "")[:10]
            if changed_day >= arguments.since.isoformat():
                hits.append(_make_offline_hit(govuk_page, None))
        hits.sort(key=lambda hit: hit.public_updated_at or "", reverse=True)
        return hits, self._make_offline_copy(None)

    def add_change_notes(self, hits: list[Hit], since_day: date) -> list[Hit]:
        """Return GOV.UK's own hits with the notes that the copy has on changes since a day."""
        if not self.is_synced:
            return hits
        hits_with_notes = []
        for hit in hits:
            stored_page = self.library.read_page(hit.path) if hit.path else None
            change_note_text = (
                _find_change_note_text(stored_page.parse_page(), since_day) if stored_page else None
            )
            hits_with_notes.append(
                hit.model_copy(update={"change_note": change_note_text})
                if change_note_text
                else hit
            )
        return hits_with_notes

    def read_stale_page(
        self, page_path: str, upstream_error: UpstreamError
    ) -> tuple[GovukPage, ServedReply] | None:
        """Return a page to answer with while GOV.UK fails; None where it is missing or too old."""
        stored_page = self.library.read_page(page_path) if self.library.has_database else None
        if stored_page is None:
            return None
        age_seconds = max(0.0, clock.read_unix_seconds() - stored_page.checked_at)
        if age_seconds > self._max_age_days * _SECONDS_PER_DAY:
            return None
        return stored_page.parse_page(), _make_reply_of_stored_page(
            stored_page, age_seconds, upstream_error
        )

    def can_replace_govuk(self) -> bool:
        """Whether the copy is young enough to answer a search while GOV.UK fails."""
        if not self.is_synced:
            return False
        return self._make_offline_copy(None).age_s <= self._max_age_days * _SECONDS_PER_DAY

    def _make_offline_copy(self, degraded_reason: str | None) -> OfflineCopy:
        library_status = self.library.read_status()
        if library_status.synced_at is None:
            raise UpstreamUnavailable(
                "There is no offline copy of the guidance yet: `readingroom guidance sync` makes it"
            )
        return OfflineCopy(
            synced_at=clock.from_timestamp(library_status.synced_at).isoformat(timespec="seconds"),
            age_s=round(max(0.0, clock.read_unix_seconds() - library_status.synced_at), 3),
            pages=library_status.pages,
            degraded=degraded_reason,
        )


def make_offline_cache_state(
    offline_copy: OfflineCopy, upstream_error: UpstreamError | None
) -> CacheState:
    """Return where an answer of the copy came from, in the words of one from the cache."""
    return CacheState(
        hit=True, age_s=offline_copy.age_s, ttl_s=0.0, stale=upstream_error is not None
    )


def _make_offline_hit(govuk_page: GovukPage, passage: FoundPassage | None) -> Hit:
    page_section = None
    if passage and passage.heading:
        page_section = PageSection(heading=passage.heading, anchor=passage.anchor or None)
    url_fragment = f"#{passage.anchor}" if passage and passage.anchor else ""
    return Hit(
        title=govuk_page.title or govuk_page.path,
        url=govuk_page.url + url_fragment,
        summary=find_text(govuk_page.content.get("description")) or "",
        public_updated_at=govuk_page.public_updated_at,
        path=govuk_page.path,
        id=make_guidance_id(govuk_page.path),
        document_type=govuk_page.identifiers.document_type,
        passage=govuk_page.text[passage.start_offset : passage.end_offset] if passage else None,
        section=page_section,
        score=None,
        withdrawn=govuk_page.withdrawn_notice is not None,
        change_note=govuk_page.change_notes[0].note if govuk_page.change_notes else None,
    )


def _copy_hit_with_score(hit: Hit, passage: FoundPassage) -> Hit:
    """Return the hit of a passage with what the passage is worth in this search."""
    # Rounded, but never to 0: that is what a hit with none of the words has.
    scored_hit = hit.model_copy(update={"score": max(round(passage.score, 6), 1e-6)})
    scored_hit.set_similarity(passage.similarity)
    return scored_hit


def _find_change_note_text(govuk_page: GovukPage, since_day: date) -> str | None:
    later_notes = (
        change_note
        for change_note in govuk_page.change_notes
        if change_note.changed_at[:10] >= since_day.isoformat()
    )
    return next((change_note.note for change_note in later_notes), None)


def _is_passing_filters(page_hit: _PageHit, filter_values_by_name: dict[str, Any]) -> bool:
    """Whether a page passes filters that are named as GOV.UK's search names them."""
    updated_day = (page_hit.hit.public_updated_at or "")[:10]
    page_values_by_filter = {
        "filter_format": page_hit.schema_name,
        "filter_content_store_document_type": page_hit.hit.document_type,
    }
    for filter_name, allowed_values in filter_values_by_name.items():
        if filter_name == "filter_public_timestamp":
            period_bounds = dict(
                bound_name_and_day.split(":", 1)
                for bound_name_and_day in allowed_values[0].split(",")
            )
            if not period_bounds.get("from", "") <= updated_day <= period_bounds.get("to", "9999"):
                return False
        elif page_values_by_filter.get(filter_name) not in allowed_values:
            return False
    return True


def _make_reply_of_stored_page(
    stored_page: StoredPage, age_seconds: float, upstream_error: UpstreamError
) -> ServedReply:
    cache_entry = CacheEntry(
        Reply(200, stored_page.body, stored_page.etag), stored_page.checked_at, 0.0
    )
    return ServedReply(
        cache_entry, is_from_cache=True, age_seconds=age_seconds, failure=upstream_error
    )
