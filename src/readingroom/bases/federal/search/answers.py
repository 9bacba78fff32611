"""Answers to searches: hits as many as can be read, and what was not looked through."""

import time
from typing import TYPE_CHECKING, Any, Protocol

from readingroom.bases.federal.filters import check_period
from readingroom.bases.federal.models import Search, SearchAnswer
from readingroom.bases.federal.schema.uncovered import describe_uncovered_kinds
from readingroom.bases.federal.search.coverage import EmbeddingCoverage, build_degraded_search
from readingroom.bases.federal.search.passages import PassageOwners
from readingroom.bases.federal.search.search import (
    SearchPlan,
    SearchResult,
    plan_search,
    run_search,
)
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import FederalStore
from readingroom.core.imports import LazyModule
from readingroom.core.modes import Mode
from readingroom.storage.database import Database

if TYPE_CHECKING:
    from readingroom.bases.federal.names import filter_values, gaps
    from readingroom.bases.federal.query import cards
else:
    filter_values = LazyModule("readingroom.bases.federal.names.filter_values")
    gaps = LazyModule("readingroom.bases.federal.names.gaps")
    cards = LazyModule("readingroom.bases.federal.query.cards")


class SearchedRecords(Protocol):
    """The records that are searched, and what is kept in memory of them."""

    store: FederalStore
    vectors: FederalVectors
    passage_owners: PassageOwners
    embedding_coverage: EmbeddingCoverage


async def answer_search(records: SearchedRecords, arguments: Search, mode: Mode) -> SearchAnswer:
    """Search records by words, by meaning, or both, best first."""
    started_at = time.perf_counter()
    check_period(arguments.since, arguments.until, "until")
    arguments, reinterpreted_filters = await _resolve_search_filters(records, arguments)
    search_plan = plan_search(arguments, mode)

    def run_plan(db: Database) -> tuple[SearchPlan, SearchResult]:
        # One snapshot: a hit must still be there when its title is read.
        with db.begin_consistent_read():
            return run_search(db, search_plan, records.vectors, records.passage_owners)

    executed_plan, search_result = await records.store.query(run_plan)
    degraded = executed_plan.degraded
    source_names = [searched.source for searched in search_result.searched_sources]
    if mode != "lexical":
        percents_by_source = await records.store.query(records.embedding_coverage.read_percents)
        degraded = build_degraded_search(mode, degraded, source_names, percents_by_source)
    # Who does not say how many wants an answer that can be read; the rest is a page away.
    keeps_all_hits = "limit" in arguments.model_fields_set
    hits = search_result.hits if keeps_all_hits else list(cards.fit_items(search_result.hits))
    end_offset = arguments.offset + len(hits)
    answer_note = describe_uncovered_kinds(arguments.query)
    if not hits and not arguments.offset and answer_note is None:
        answer_note = await records.store.query(
            lambda db: gaps.describe_search_gaps(db, source_names, executed_plan.facet_filters)
        )
    return SearchAnswer(
        results=hits,
        total=search_result.matching_count,
        took_ms=round((time.perf_counter() - started_at) * 1000, 1),
        mode=mode,
        searched=search_result.searched_sources,
        confidence=search_result.confidence.level,
        confidence_reason=search_result.confidence.reason,
        degraded=degraded,
        next_offset=end_offset if hits and end_offset < search_result.matching_count else None,
        filters_read=reinterpreted_filters,
        note=answer_note,
    )


async def _resolve_search_filters(
    records: SearchedRecords, arguments: Search
) -> tuple[Search, dict[str, Any] | None]:
    """Return the question with filter values as they are stored, and which were changed."""
    if arguments.filters is None:
        return arguments, None
    written_filters = arguments.filters.model_dump(exclude_none=True)
    resolved_filters = await records.store.query(
        lambda db: filter_values.resolve_search_filters(db, written_filters, arguments.source)
    )
    stored_filters = arguments.filters.model_copy(update=resolved_filters)
    return arguments.model_copy(
        update={"filters": stored_filters}
    ), filter_values.find_reinterpreted_values(written_filters, resolved_filters)
