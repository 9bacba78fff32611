"""Searches records by words, by meaning, or both; filters apply before anything is scored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readingroom.bases.federal.errors import NotSearchableSemantically, SourceNotSearchable
from readingroom.bases.federal.models import Degraded, Search, Searched
from readingroom.bases.federal.schema.sources import (
    BY_NAME,
    Shape,
    Source,
    find_sources,
    list_source_names,
    list_sources_of_shape,
)
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.search.full_text import find_passages
from readingroom.bases.federal.search.passages import Passages
from readingroom.bases.federal.search.ranking import ProposedRecord, RankedRecord, rank_records
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import read_progress
from readingroom.core.modes import Mode
from readingroom.core.scores import Confidence
from readingroom.engine.confidence import judge_confidence
from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.lexical import enforce_deadline
from readingroom.engine.words import extract_words, parse_query
from readingroom.protocol.search import Citation, Hit
from readingroom.storage.database import Database, Row

_SNIPPET_LENGTH = 300
_MAX_OPENINGS = 5
"""How many of a text's first passages may stand in for a short one."""
_MIN_PASSAGE = 80
"""A shorter passage says little more than the title."""
# A search that takes longer is stopped: others wait for its thread.
_TIME_LIMIT = 5.0
_MIN_DEPTH = 100
_UNEMBEDDED = "nothing has been embedded yet: run `readingroom federal embed`"


@dataclass(frozen=True)
class Plan:
    """A search: which sources are searched by words, and which by meaning."""

    query: str
    mode: Mode
    lexical: tuple[Source, ...]
    semantic: tuple[Source, ...]
    facets: dict[str, str]
    since: str | None
    until: str | None
    offset: int
    limit: int
    degraded: Degraded | None = None

    @property
    def depth(self) -> int:
        """How far both rankings are read: the same for the first pages, so that they agree."""
        return max(_MIN_DEPTH, self.offset + self.limit)


@dataclass
class SearchResult:
    """The hits of a search, how many records match, the sources searched, and how sure it is."""

    hits: list[Hit]
    total: int
    searched: list[Searched]
    confidence: Confidence


def plan_search(question: Search, search_mode: Mode) -> Plan:
    """Choose the sources to search by words and by meaning.

    Raise SourceNotSearchable or NotSearchableSemantically if one of the sources cannot be.
    """
    requested = find_sources(question.source)
    wanted_sources = requested or list_sources_of_shape(Shape.BODY, Shape.SHORT)
    registries = [
        record_source for record_source in wanted_sources if record_source.shape is Shape.REGISTRY
    ]
    if registries:
        raise SourceNotSearchable(
            f"{', '.join(list_source_names(registries))} cannot be searched as text: "
            "look names up with `resolve_entity`, or list them with `list_records`",
            use_tool="resolve_entity",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY, Shape.SHORT)),
        )
    short = [record_source for record_source in requested if record_source.shape is Shape.SHORT]
    if short and search_mode == "semantic":
        raise NotSearchableSemantically(
            f"{', '.join(list_source_names(short))}: short texts are not searched by meaning "
            "alone; use search or lexical_search",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY)),
        )
    # Short texts have vectors too: beside others they would lose without them.
    embedded = (Shape.BODY,) if search_mode == "semantic" else (Shape.BODY, Shape.SHORT)
    bodies = tuple(
        record_source for record_source in wanted_sources if record_source.shape in embedded
    )
    filters = question.filters.model_dump(exclude_none=True) if question.filters else {}
    return Plan(
        query=question.query,
        mode=search_mode,
        lexical=() if search_mode == "semantic" else tuple(wanted_sources),
        semantic=() if search_mode == "lexical" else bodies,
        facets={filter_name: str(filter_value) for filter_name, filter_value in filters.items()},
        since=question.since,
        until=question.until,
        offset=question.offset,
        limit=question.limit,
    )


def run_search(
    db: Database, plan: Plan, index: FederalVectors, passages: Passages
) -> tuple[Plan, SearchResult]:
    """Run a search, and return it with the plan, which changes if sources have no vectors."""
    plan, vector = _embed_query(db, plan, index)
    passages.refresh(db)
    with enforce_deadline(db, _TIME_LIMIT):
        by_words, matching = rank_by_words(db, plan, passages) if plan.lexical else ([], 0)
        by_meaning = [] if vector is None else rank_by_meaning(db, plan, vector, index, passages)
        ranked = rank_records(
            db,
            plan.query,
            vector,
            index,
            len(passages),
            by_words,
            by_meaning,
            plan.offset + plan.limit,
        )
        proposed_docs = {proposed.doc for proposed in (*by_words, *by_meaning)}
        page_records = ranked[plan.offset : plan.offset + plan.limit]
        index.ask_for_missing(
            {str(ranked_record.chunk): ranked_record.doc for ranked_record in page_records}
        )
        hits = list(_read_hits(db, page_records, plan.query))
        nearest_citation = hits[0].citation.citation_string if hits and not plan.offset else ""
        return plan, SearchResult(
            hits=hits,
            # By meaning everything matches a little, so only what was ranked is counted there.
            total=max(matching, len(proposed_docs)),
            searched=_describe_sources(db, plan),
            confidence=judge_confidence(
                [ranked_record.score for ranked_record in ranked], nearest_citation
            ),
        )


def _embed_query(db: Database, plan: Plan, index: FederalVectors) -> tuple[Plan, Vector | None]:
    """Return the query as a vector, and the plan with sources that have none searched by words."""
    if not plan.semantic:
        return plan, None
    try:
        index.refresh(db)
        reduced = _search_by_words(
            plan, _list_sources_without_vectors(db, plan, index), _UNEMBEDDED
        )
        return reduced, index.embedder.embed(plan.query) if reduced.semantic else None
    except ModelUnavailable as error:
        return _search_by_words(plan, plan.semantic, error.message), None


def _list_sources_without_vectors(
    db: Database, plan: Plan, index: FederalVectors
) -> tuple[Source, ...]:
    """Return the sources with records but no vectors, as after a load; all if nothing has any."""
    missing = [source for source in plan.semantic if source.name not in index.sources]
    return tuple(
        source for source in missing if not len(index) or read_progress(db, source).records
    )


def _search_by_words(plan: Plan, skipped_sources: Sequence[Source], skip_reason: str) -> Plan:
    """Return the plan with these sources searched by words only, and the reason."""
    if not skipped_sources:
        return plan
    degraded = Degraded(
        requested_mode=plan.mode,
        used_mode="lexical",
        sources=[
            *list_source_names(skipped_sources),
            *(plan.degraded.sources if plan.degraded else ()),
        ],
        reason=skip_reason,
    )
    return replace(
        plan,
        lexical=tuple(dict.fromkeys((*plan.lexical, *skipped_sources))),
        semantic=tuple(
            record_source for record_source in plan.semantic if record_source not in skipped_sources
        ),
        degraded=degraded,
    )


# --- by words ---


def rank_by_words(db: Database, plan: Plan, passages: Passages) -> tuple[list[ProposedRecord], int]:
    """Return records by the BM25 rank of their best passage, and how many match."""
    matching_rows = _find_matching(db, plan)
    matching_rows = matching_rows[
        passages.is_of_sources(list_source_names(plan.lexical), matching_rows["chunk"])
    ]
    docs = passages.docs(matching_rows["chunk"])
    # The ranks of FTS5 are negative, the best the lowest. Equal ones go by the record's number.
    best_first = np.lexsort((docs, matching_rows["rank"]))
    _, firsts = np.unique(docs[best_first], return_index=True)
    best = best_first[np.sort(firsts)[: plan.depth]]
    ranks = matching_rows["rank"][best]
    match_strengths = ranks / ranks[0] if len(ranks) else ranks
    proposed = [
        ProposedRecord(int(document_number), int(chunk), float(match_strength))
        for document_number, chunk, match_strength in zip(
            docs[best], matching_rows["chunk"][best], match_strengths, strict=True
        )
    ]
    return proposed, len(firsts)


def _find_matching(db: Database, plan: Plan) -> NDArray[np.void]:
    """Return every passage that has one of the words and passes the filters, and its rank."""
    condition, condition_values = _build_condition(plan)
    matching_rows = find_passages(db, plan.query, condition, condition_values)
    return np.fromiter(matching_rows, np.dtype([("chunk", np.int64), ("rank", np.float64)]))


def _build_condition(plan: Plan) -> tuple[str, list[str]]:
    """Return the filters as SQL that is checked before a row is scored; empty without filters."""
    clauses: list[str] = []
    condition_values: list[str] = []
    if plan.since:
        clauses.append("d.published_at >= ?")
        condition_values.append(plan.since)
    if plan.until:
        clauses.append("d.published_at <= ?")
        condition_values.append(plan.until)
    for filter_name, filter_value in plan.facets.items():
        clauses.append(
            "EXISTS (SELECT 1 FROM facets f WHERE f.field = ? AND f.value = ? AND f.doc = d.doc)"
        )
        condition_values += [filter_name, filter_value]
    if not clauses:
        return "", []
    # EXISTS is checked for each row that has a word. `rowid IN (…)` would make FTS5 search anew for
    # each chunk that passes, and listing those costs more than the search.
    return (
        f"""AND EXISTS (SELECT 1 FROM chunks c JOIN documents d USING (doc)
                        WHERE c.chunk = {{chunk}} AND {" AND ".join(clauses)})""",
        condition_values,
    )


# --- by meaning ---


def rank_by_meaning(
    db: Database,
    plan: Plan,
    vector: Vector,
    index: FederalVectors,
    passages: Passages,
) -> list[ProposedRecord]:
    """Return records by their nearest passage."""
    docs = _find_docs_by_facets(db, plan.facets)
    source_names = list_source_names(plan.semantic)
    vector_filter = vectors.build_filter(source_names, plan.facets, plan.since, plan.until, docs)
    nearest_chunks = index.search(vector, plan.depth, vector_filter)
    document_numbers = passages.docs([chunk for chunk, _ in nearest_chunks]).tolist()
    return [
        ProposedRecord(document_number, chunk, cosine=cosine)
        for document_number, (chunk, cosine) in zip(document_numbers, nearest_chunks, strict=True)
    ]


def _find_docs_by_facets(db: Database, facets: dict[str, str]) -> tuple[int, ...] | None:
    """Return the records that pass filters on fields with several values; None without any."""
    filters = [
        (facet_name, facet_value)
        for facet_name, facet_value in facets.items()
        if facet_name not in vectors.SINGLE
    ]
    if not filters:
        return None
    select = "SELECT doc FROM facets WHERE field = ? AND value = ?"
    sql = " INTERSECT ".join([select] * len(filters))
    return tuple(
        row["doc"] for row in db.execute(sql, [sql_value for pair in filters for sql_value in pair])
    )


# --- hits ---


def _read_hits(db: Database, ranking: Sequence[RankedRecord], query: str) -> Iterable[Hit]:
    for ranked in ranking:
        document_row = db.execute(
            "SELECT id, source FROM documents WHERE doc = ?", (ranked.doc,)
        ).fetchone()
        passage = db.execute(
            "SELECT part, passages.* FROM chunks JOIN passages USING (chunk) WHERE chunk = ?",
            (ranked.chunk,),
        ).fetchone()
        if document_row is None or passage is None:
            continue  # the index in memory may be a load ahead of this reader's snapshot
        shown_passage = _choose_passage(db, ranked.doc, passage, query)
        table_name = BY_NAME[document_row["source"]].name
        title, url, citation, published = db.execute(
            f"""SELECT record ->> 'title', source_url, citation_string, published_at
                FROM {table_name} WHERE id = ?""",
            (document_row["id"],),
        ).fetchone()
        yield Hit(
            id=document_row["id"],
            title=title,
            url=url,
            source=document_row["source"],
            snippet=cut_snippet(shown_passage, query),
            score=ranked.score,
            parts=ranked.parts,
            published_at=published,
            citation=Citation(citation_string=citation, url=url),
            # What is shown of titles and summaries has no place in the text.
            offset=shown_passage["start"] if shown_passage["part"] == "text" else None,
        )


def _choose_passage(db: Database, document_number: int, passage: Row, query: str) -> Row:
    """Return the passage, or one with more to say if it is little more than the title.

    That is the one with most words of the query among the first passages of the text.
    """
    if len(passage["body"] or passage["abstract"]) >= _MIN_PASSAGE:
        return passage
    stems = _list_stems(query)
    openings = db.execute(
        f"""SELECT part, passages.* FROM chunks JOIN passages USING (chunk)
            WHERE doc = ? AND part = 'text' AND ordinal < {_MAX_OPENINGS} AND length(body) >= ?
            ORDER BY ordinal""",
        (document_number, _MIN_PASSAGE),
    ).fetchall()
    return max(
        openings,
        key=lambda opening: _count_stems(opening["body"].lower(), stems),
        default=passage,
    )


def cut_snippet(passage: Row, query: str) -> str:
    """Return the part of a passage that has most words of the query."""
    stems = _list_stems(query)
    passage_fields = [passage[field_name] for field_name in ("body", "abstract", "title", "action")]
    best_field = max(
        filter(None, passage_fields),
        key=lambda field: _count_stems(field.lower(), stems),
        default="",
    )
    plain_text = " ".join(best_field.split())
    if len(plain_text) <= _SNIPPET_LENGTH:
        return plain_text
    starts = range(0, len(plain_text) - _SNIPPET_LENGTH // 2, _SNIPPET_LENGTH // 3)
    lowered = plain_text.lower()
    best = max(
        starts, key=lambda start: _count_stems(lowered[start : start + _SNIPPET_LENGTH], stems)
    )
    begin = plain_text.rfind(" ", 0, best) + 1 if best else 0
    end_offset = plain_text.rfind(" ", begin, begin + _SNIPPET_LENGTH)
    snippet_text = plain_text[
        begin : end_offset if end_offset > begin else begin + _SNIPPET_LENGTH
    ].strip()
    has_more = begin + len(snippet_text) < len(plain_text)
    return f"{'…' if begin else ''}{snippet_text}{'…' if has_more else ''}"


def _list_stems(query: str) -> list[str]:
    # Five letters are stem enough to choose a snippet by: regul-ation, regul-ate.
    return [*parse_query(query).phrases, *(query_word[:5] for query_word in extract_words(query))]


def _count_stems(passage_text: str, stems: Sequence[str]) -> int:
    return sum(stem in passage_text for stem in stems)


def _describe_sources(db: Database, plan: Plan) -> list[Searched]:
    searched_sources = dict.fromkeys((*plan.lexical, *plan.semantic))
    return [
        Searched(
            source=progress.source,
            records=progress.records,
            loaded_up_to=progress.loaded_up_to,
        )
        for progress in (read_progress(db, record_source) for record_source in searched_sources)
    ]
