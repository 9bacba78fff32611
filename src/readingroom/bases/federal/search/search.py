"""Searches records by words, by meaning, or both; filters apply before anything is scored."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from readingroom.bases.federal.errors import NotSearchableSemantically, SourceNotSearchable
from readingroom.bases.federal.models import Degraded, Search, Searched
from readingroom.bases.federal.schema.sources import (
    SOURCES_BY_NAME,
    Shape,
    Source,
    list_source_names,
    list_sources_and_included,
    list_sources_of_shape,
)
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.search.full_text import find_passages
from readingroom.bases.federal.search.passages import PassageOwners
from readingroom.bases.federal.search.ranking import ProposedRecord, RankedRecord, rank_records
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import read_progress
from readingroom.core.arrays import NDArray, Vector, np
from readingroom.core.modes import Mode
from readingroom.core.scores import Confidence
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.lexical import enforce_deadline
from readingroom.engine.words import extract_query_words, parse_query
from readingroom.protocol.search import Citation, Hit
from readingroom.storage.database import Database, Row

_SNIPPET_LENGTH = 300
_OPENING_PASSAGE_COUNT = 5
"""How many of a text's first passages may stand in for a short one."""
_MIN_PASSAGE_LENGTH = 80
"""A shorter passage says little more than the title."""
# A search that takes longer is stopped: others wait for its thread.
_TIME_LIMIT_SECONDS = 5.0
_MIN_RANKED_PASSAGES = 100
_NOTHING_EMBEDDED_REASON = "nothing has been embedded yet: run `readingroom federal embed`"


@dataclass(frozen=True)
class SearchPlan:
    """A search: which sources are searched by words, and which by meaning."""

    query: str
    mode: Mode
    lexical_sources: tuple[Source, ...]
    semantic_sources: tuple[Source, ...]
    facet_filters: dict[str, tuple[str, ...]]
    """Fields, each with the values of which a record must have one."""
    since: str | None
    until: str | None
    offset: int
    limit: int
    degraded: Degraded | None = None

    @property
    def ranking_depth(self) -> int:
        """How far both rankings are read: the same for the first pages, so that they agree."""
        return max(_MIN_RANKED_PASSAGES, self.offset + self.limit)


@dataclass
class SearchResult:
    """The hits of a search, how many records match, the sources searched, and how sure it is."""

    hits: list[Hit]
    matching_count: int
    searched_sources: list[Searched]
    confidence: Confidence


def plan_search(arguments: Search, search_mode: Mode) -> SearchPlan:
    """Choose the sources to search by words and by meaning.

    Raise SourceNotSearchable or NotSearchableSemantically if one of the sources cannot be.
    """
    requested_sources = list_sources_and_included(arguments.source)
    searched_sources = requested_sources or list_sources_of_shape(Shape.BODY, Shape.SHORT)
    registry_sources = [
        record_source for record_source in searched_sources if record_source.shape is Shape.REGISTRY
    ]
    if registry_sources:
        raise SourceNotSearchable(
            f"{', '.join(list_source_names(registry_sources))} cannot be searched as text: "
            "look names up with `resolve_entity`, or list them with `list_records`",
            use_tool="resolve_entity",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY, Shape.SHORT)),
        )
    short_sources = [
        record_source for record_source in requested_sources if record_source.shape is Shape.SHORT
    ]
    if short_sources and search_mode == "semantic":
        raise NotSearchableSemantically(
            f"{', '.join(list_source_names(short_sources))}: short texts are not searched by "
            "meaning alone; use search or lexical_search",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY)),
        )
    # Short texts have vectors too: beside others they would lose without them.
    embedded_shapes = (Shape.BODY,) if search_mode == "semantic" else (Shape.BODY, Shape.SHORT)
    semantic_sources = tuple(
        record_source
        for record_source in searched_sources
        if record_source.shape in embedded_shapes
    )
    filter_values = dict(arguments.filters or ())
    return SearchPlan(
        query=arguments.query,
        mode=search_mode,
        lexical_sources=() if search_mode == "semantic" else tuple(searched_sources),
        semantic_sources=() if search_mode == "lexical" else semantic_sources,
        facet_filters={
            filter_name: filter_value if isinstance(filter_value, tuple) else (str(filter_value),)
            for filter_name, filter_value in filter_values.items()
            if filter_value is not None
        },
        since=arguments.since,
        until=arguments.until,
        offset=arguments.offset,
        limit=arguments.limit,
    )


def run_search(
    db: Database,
    search_plan: SearchPlan,
    vector_index: FederalVectors,
    passage_owners: PassageOwners,
) -> tuple[SearchPlan, SearchResult]:
    """Run a search, and return it with the plan, which changes if sources have no vectors."""
    search_plan, query_vector = _embed_query(db, search_plan, vector_index)
    passage_owners.add_new_passages(db)
    with enforce_deadline(db, _TIME_LIMIT_SECONDS):
        word_proposals, matching_count = (
            rank_by_words(db, search_plan, passage_owners)
            if search_plan.lexical_sources
            else ([], 0)
        )
        meaning_proposals = (
            []
            if query_vector is None
            else rank_by_meaning(db, search_plan, query_vector, vector_index, passage_owners)
        )
        ranked_records = rank_records(
            db,
            search_plan.query,
            query_vector,
            vector_index,
            len(passage_owners),
            word_proposals,
            meaning_proposals,
            search_plan.offset + search_plan.limit,
        )
        proposed_document_row_ids = {
            proposed_record.document_row_id
            for proposed_record in (*word_proposals, *meaning_proposals)
        }
        page_records = ranked_records[search_plan.offset : search_plan.offset + search_plan.limit]
        vector_index.prioritize_missing_vectors(
            {
                str(ranked_record.chunk_number): ranked_record.document_row_id
                for ranked_record in page_records
            }
        )
        hits = list(_read_record_hits(db, page_records, search_plan.query))
        first_citation = hits[0].citation.citation_string if hits and not search_plan.offset else ""
        return search_plan, SearchResult(
            hits=hits,
            # By meaning everything matches a little, so only what was ranked is counted there.
            matching_count=max(matching_count, len(proposed_document_row_ids)),
            searched_sources=_list_searched_sources(db, search_plan),
            confidence=judge_confidence(
                [ranked_record.score for ranked_record in ranked_records], first_citation
            ),
        )


def _embed_query(
    db: Database, search_plan: SearchPlan, vector_index: FederalVectors
) -> tuple[SearchPlan, Vector | None]:
    """Return the query as a vector, and the plan with sources that have none searched by words."""
    if not search_plan.semantic_sources:
        return search_plan, None
    try:
        vector_index.apply_vector_changes(db)
        changed_plan = _plan_by_words_only(
            search_plan,
            _list_sources_without_vectors(db, search_plan, vector_index),
            _NOTHING_EMBEDDED_REASON,
        )
        if not changed_plan.semantic_sources:
            return changed_plan, None
        return changed_plan, vector_index.embedder.embed(search_plan.query)
    except ModelUnavailable as error:
        return _plan_by_words_only(search_plan, search_plan.semantic_sources, error.message), None


def _list_sources_without_vectors(
    db: Database, search_plan: SearchPlan, vector_index: FederalVectors
) -> tuple[Source, ...]:
    """Return the sources with records but no vectors, as after a load; all if nothing has any."""
    unindexed_sources = [
        record_source
        for record_source in search_plan.semantic_sources
        if record_source.name not in vector_index.embedded_sources
    ]
    return tuple(
        record_source
        for record_source in unindexed_sources
        if not len(vector_index) or read_progress(db, record_source).records
    )


def _plan_by_words_only(
    search_plan: SearchPlan, skipped_sources: Sequence[Source], skip_reason: str
) -> SearchPlan:
    """Return the plan with these sources searched by words only, and the reason."""
    if not skipped_sources:
        return search_plan
    degraded_search = Degraded(
        requested_mode=search_plan.mode,
        used_mode="lexical",
        sources=[
            *list_source_names(skipped_sources),
            *(search_plan.degraded.sources if search_plan.degraded else ()),
        ],
        reason=skip_reason,
    )
    return replace(
        search_plan,
        lexical_sources=tuple(dict.fromkeys((*search_plan.lexical_sources, *skipped_sources))),
        semantic_sources=tuple(
            record_source
            for record_source in search_plan.semantic_sources
            if record_source not in skipped_sources
        ),
        degraded=degraded_search,
    )


# --- by words ---


def rank_by_words(
    db: Database, search_plan: SearchPlan, passage_owners: PassageOwners
) -> tuple[list[ProposedRecord], int]:
    """Return records by the BM25 rank of their best passage, and how many match."""
    matching_rows = _find_matching_passages(db, search_plan)
    matching_rows = matching_rows[
        passage_owners.mask_passages_of_sources(
            list_source_names(search_plan.lexical_sources), matching_rows["chunk"]
        )
    ]
    document_row_ids = passage_owners.get_document_row_ids(matching_rows["chunk"])
    # The ranks of FTS5 are negative, the best the lowest. Equal ones go by the record's number.
    sorted_row_indexes = np.lexsort((document_row_ids, matching_rows["rank"]))
    _, best_positions = np.unique(document_row_ids[sorted_row_indexes], return_index=True)
    best_row_indexes = sorted_row_indexes[np.sort(best_positions)[: search_plan.ranking_depth]]
    best_ranks = matching_rows["rank"][best_row_indexes]
    match_strengths = best_ranks / best_ranks[0] if len(best_ranks) else best_ranks
    proposed_records = [
        ProposedRecord(int(document_row_id), int(chunk_number), float(match_strength))
        for document_row_id, chunk_number, match_strength in zip(
            document_row_ids[best_row_indexes],
            matching_rows["chunk"][best_row_indexes],
            match_strengths,
            strict=True,
        )
    ]
    return proposed_records, len(best_positions)


def _find_matching_passages(db: Database, search_plan: SearchPlan) -> "NDArray[np.void]":
    """Return every passage that has one of the words and passes the filters, and its rank."""
    sql_condition, condition_values = _build_condition(search_plan)
    matching_rows = find_passages(db, search_plan.query, sql_condition, condition_values)
    return np.fromiter(matching_rows, np.dtype([("chunk", np.int64), ("rank", np.float64)]))


def _build_condition(search_plan: SearchPlan) -> tuple[str, list[str]]:
    """Return the filters as SQL that is checked before a row is scored; empty without filters."""
    sql_clauses: list[str] = []
    condition_values: list[str] = []
    if search_plan.since:
        sql_clauses.append("d.published_at >= ?")
        condition_values.append(search_plan.since)
    if search_plan.until:
        sql_clauses.append("d.published_at <= ?")
        condition_values.append(search_plan.until)
    for filter_name, allowed_values in search_plan.facet_filters.items():
        value_placeholders_sql = ", ".join("?" * len(allowed_values))
        sql_clauses.append(
            "EXISTS (SELECT 1 FROM facets f WHERE f.field = ? "
            f"AND f.value IN ({value_placeholders_sql}) AND f.doc = d.doc)"
        )
        condition_values += [filter_name, *allowed_values]
    if not sql_clauses:
        return "", []
    # EXISTS is checked for each row that has a word. `rowid IN (…)` would make FTS5 search anew for
    # each chunk that passes, and listing those costs more than the search.
    return (
        f"""AND EXISTS (SELECT 1 FROM chunks c JOIN documents d USING (doc)
                        WHERE c.chunk = {{chunk}} AND {" AND ".join(sql_clauses)})""",
        condition_values,
    )


# --- by meaning ---


def rank_by_meaning(
    db: Database,
    search_plan: SearchPlan,
    query_vector: Vector,
    vector_index: FederalVectors,
    passage_owners: PassageOwners,
) -> list[ProposedRecord]:
    """Return records by their nearest passage."""
    allowed_document_row_ids = _find_document_row_ids_by_facets(db, search_plan.facet_filters)
    source_names = list_source_names(search_plan.semantic_sources)
    vector_filter = vectors.build_vector_filter(
        source_names,
        search_plan.facet_filters,
        search_plan.since,
        search_plan.until,
        allowed_document_row_ids,
    )
    nearest_chunks = vector_index.find_nearest(
        query_vector, search_plan.ranking_depth, vector_filter
    )
    document_row_ids = passage_owners.get_document_row_ids(
        [chunk_number for chunk_number, _ in nearest_chunks]
    ).tolist()
    return [
        ProposedRecord(document_row_id, chunk_number, cosine=chunk_cosine)
        for document_row_id, (chunk_number, chunk_cosine) in zip(
            document_row_ids, nearest_chunks, strict=True
        )
    ]


def _find_document_row_ids_by_facets(
    db: Database, facet_filters: dict[str, tuple[str, ...]]
) -> tuple[int, ...] | None:
    """Return the records that pass filters on fields with several values; None without any."""
    multivalued_filters = {
        facet_name: allowed_values
        for facet_name, allowed_values in facet_filters.items()
        if facet_name not in vectors.SINGLE_VALUE_FIELDS
    }
    if not multivalued_filters:
        return None
    document_row_ids_sql = " INTERSECT ".join(
        "SELECT doc FROM facets WHERE field = ? AND value IN "
        f"({', '.join('?' * len(facet_values))})"
        for facet_values in multivalued_filters.values()
    )
    sql_values = [
        sql_value
        for facet_name, allowed_values in multivalued_filters.items()
        for sql_value in (facet_name, *allowed_values)
    ]
    return tuple(
        document_row["doc"] for document_row in db.execute(document_row_ids_sql, sql_values)
    )


# --- hits ---


def _read_record_hits(
    db: Database, ranked_records: Sequence[RankedRecord], query_text: str
) -> Iterable[Hit]:
    chunk_numbers = [ranked_record.chunk_number for ranked_record in ranked_records]
    passage_rows = db.execute(
        f"""SELECT d.id, d.source, c.part, passages.* FROM chunks c
            JOIN passages USING (chunk) JOIN documents d USING (doc)
            WHERE c.chunk IN ({db.dialect.parameter_numbers_sql})""",
        (json.dumps(chunk_numbers),),
    )
    row_by_chunk = {passage_row["chunk"]: passage_row for passage_row in passage_rows}
    for ranked_record in ranked_records:
        passage_row = row_by_chunk.get(ranked_record.chunk_number)
        if passage_row is None:
            continue  # the index in memory may be a load ahead of this reader's snapshot
        shown_passage_row = _choose_passage(
            db, ranked_record.document_row_id, passage_row, query_text
        )
        table_name = SOURCES_BY_NAME[passage_row["source"]].name
        record_title, source_url, citation_string, published_at = db.execute(
            f"""SELECT record ->> 'title', source_url, citation_string, published_at
                FROM {table_name} WHERE id = ?""",
            (passage_row["id"],),
        ).fetchone()
        yield Hit(
            id=passage_row["id"],
            title=record_title,
            url=source_url,
            source=passage_row["source"],
            snippet=cut_snippet(shown_passage_row, query_text),
            score=ranked_record.score,
            parts=ranked_record.score_parts,
            published_at=published_at,
            citation=Citation(citation_string=citation_string, url=source_url),
            # What is shown of titles and summaries has no place in the text.
            offset=shown_passage_row["start"] if shown_passage_row["part"] == "text" else None,
        )


def _choose_passage(db: Database, document_row_id: int, passage_row: Row, query_text: str) -> Row:
    """Return the passage, or one with more to say if it is little more than the title.

    That is the one with most words of the query among the first passages of the text.
    """
    if len(passage_row["body"] or passage_row["abstract"]) >= _MIN_PASSAGE_LENGTH:
        return passage_row
    word_stems = _list_query_stems(query_text)
    opening_rows = db.execute(
        f"""SELECT part, passages.* FROM chunks JOIN passages USING (chunk)
            WHERE doc = ? AND part = 'text' AND ordinal < {_OPENING_PASSAGE_COUNT}
                AND length(body) >= ?
            ORDER BY ordinal""",
        (document_row_id, _MIN_PASSAGE_LENGTH),
    ).fetchall()
    return max(
        opening_rows,
        key=lambda opening_row: _count_stems(opening_row["body"].lower(), word_stems),
        default=passage_row,
    )


def cut_snippet(passage_row: Row, query_text: str) -> str:
    """Return the part of a passage that has most words of the query."""
    word_stems = _list_query_stems(query_text)
    field_texts = [
        passage_row[field_name] for field_name in ("body", "abstract", "title", "action")
    ]
    best_field_text = max(
        filter(None, field_texts),
        key=lambda field_text: _count_stems(field_text.lower(), word_stems),
        default="",
    )
    plain_text = " ".join(best_field_text.split())
    if len(plain_text) <= _SNIPPET_LENGTH:
        return plain_text
    candidate_offsets = range(0, len(plain_text) - _SNIPPET_LENGTH // 2, _SNIPPET_LENGTH // 3)
    lowered_text = plain_text.lower()
    best_start_offset = max(
        candidate_offsets,
        key=lambda start_offset: _count_stems(
            lowered_text[start_offset : start_offset + _SNIPPET_LENGTH], word_stems
        ),
    )
    snippet_offset = plain_text.rfind(" ", 0, best_start_offset) + 1 if best_start_offset else 0
    end_offset = plain_text.rfind(" ", snippet_offset, snippet_offset + _SNIPPET_LENGTH)
    snippet_text = plain_text[
        snippet_offset : end_offset
        if end_offset > snippet_offset
        else snippet_offset + _SNIPPET_LENGTH
    ].strip()
    has_more = snippet_offset + len(snippet_text) < len(plain_text)
    return f"{'…' if snippet_offset else ''}{snippet_text}{'…' if has_more else ''}"


def _list_query_stems(query_text: str) -> list[str]:
    # Five letters are stem enough to choose a snippet by: regul-ation, regul-ate.
    return [
        *parse_query(query_text).phrases,
        *(query_word_text[:5] for query_word_text in extract_query_words(query_text)),
    ]


def _count_stems(passage_text: str, word_stems: Sequence[str]) -> int:
    return sum(word_stem in passage_text for word_stem in word_stems)


def _list_searched_sources(db: Database, search_plan: SearchPlan) -> list[Searched]:
    searched_sources = dict.fromkeys((*search_plan.lexical_sources, *search_plan.semantic_sources))
    return [
        Searched(
            source=source_progress.source,
            records=source_progress.records,
            loaded_up_to=source_progress.loaded_up_to,
        )
        for source_progress in (
            read_progress(db, record_source) for record_source in searched_sources
        )
    ]
