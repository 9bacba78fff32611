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
from readingroom.bases.federal.search.passages import Passages
from readingroom.bases.federal.search.ranking import ProposedRecord, RankedRecord, rank_records
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import read_progress
from readingroom.core.modes import Mode
from readingroom.core.scores import Confidence
from readingroom.engine.confidence import judge
from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.lexical import deadline
from readingroom.engine.words import extract_words, parse_query
from readingroom.protocol.search import Citation, Hit
from readingroom.storage.database import Database, Row

WEIGHTS = "10.0, 4.0, 2.0, 1.0"  # title, abstract, action, body
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


def plan_search(question: Search, mode: Mode) -> Plan:
    """Choose the sources to search by words and by meaning.

    Raise SourceNotSearchable or NotSearchableSemantically if one of the sources cannot be.
    """
    requested = find_sources(question.source)
    sources = requested or list_sources_of_shape(Shape.BODY, Shape.SHORT)
    registries = [source for source in sources if source.shape is Shape.REGISTRY]
    if registries:
        raise SourceNotSearchable(
            f"{', '.join(list_source_names(registries))} cannot be searched as text: "
            "look names up with `resolve_entity`, or list them with `list_records`",
            use_tool="resolve_entity",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY, Shape.SHORT)),
        )
    short = [source for source in requested if source.shape is Shape.SHORT]
    if short and mode == "semantic":
        raise NotSearchableSemantically(
            f"{', '.join(list_source_names(short))}: short texts are not searched by meaning "
            "alone; use search or lexical_search",
            valid_sources=list_source_names(list_sources_of_shape(Shape.BODY)),
        )
    # Short texts have vectors too: beside others they would lose without them.
    embedded = (Shape.BODY,) if mode == "semantic" else (Shape.BODY, Shape.SHORT)
    bodies = tuple(source for source in sources if source.shape in embedded)
    filters = question.filters.model_dump(exclude_none=True) if question.filters else {}
    return Plan(
        query=question.query,
        mode=mode,
        lexical=() if mode == "semantic" else tuple(sources),
        semantic=() if mode == "lexical" else bodies,
        facets={name: str(value) for name, value in filters.items()},
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
    with deadline(db, _TIME_LIMIT):
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
        page = ranked[plan.offset : plan.offset + plan.limit]
        index.ask_for_missing({str(record.chunk): record.doc for record in page})
        hits = list(_read_hits(db, page, plan.query))
        nearest = hits[0].citation.citation_string if hits and not plan.offset else ""
        return plan, SearchResult(
            hits=hits,
            # By meaning everything matches a little, so only what was ranked is counted there.
            total=max(matching, len(proposed_docs)),
            searched=_describe_sources(db, plan),
            confidence=judge([record.score for record in ranked], nearest),
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


def _search_by_words(plan: Plan, sources: Sequence[Source], reason: str) -> Plan:
    """Return the plan with these sources searched by words only, and the reason."""
    if not sources:
        return plan
    degraded = Degraded(
        requested_mode=plan.mode,
        used_mode="lexical",
        sources=[*list_source_names(sources), *(plan.degraded.sources if plan.degraded else ())],
        reason=reason,
    )
    return replace(
        plan,
        lexical=tuple(dict.fromkeys((*plan.lexical, *sources))),
        semantic=tuple(source for source in plan.semantic if source not in sources),
        degraded=degraded,
    )


# --- by words ---


def rank_by_words(db: Database, plan: Plan, passages: Passages) -> tuple[list[ProposedRecord], int]:
    """Return records by the BM25 rank of their best passage, and how many match."""
    match = parse_query(plan.query).match_expression
    if match is None:
        return [], 0
    rows = _find_matching(db, match, plan)
    rows = rows[passages.is_of_sources(list_source_names(plan.lexical), rows["chunk"])]
    docs = passages.docs(rows["chunk"])
    # The ranks of FTS5 are negative, the best the lowest. Equal ones go by the record's number.
    best_first = np.lexsort((docs, rows["rank"]))
    _, firsts = np.unique(docs[best_first], return_index=True)
    best = best_first[np.sort(firsts)[: plan.depth]]
    ranks = rows["rank"][best]
    matches = ranks / ranks[0] if len(ranks) else ranks
    proposed = [
        ProposedRecord(int(doc), int(chunk), float(match))
        for doc, chunk, match in zip(docs[best], rows["chunk"][best], matches, strict=True)
    ]
    return proposed, len(firsts)


def _find_matching(db: Database, match: str, plan: Plan) -> NDArray[np.void]:
    """Return every passage that has one of the words and passes the filters, and its rank."""
    condition, values = _build_condition(plan)
    # Tuples, because a common word has very many matches.
    rows = db.iterate_tuples(
        f"""SELECT rowid, bm25(passages_fts, {WEIGHTS}) FROM passages_fts
            WHERE passages_fts MATCH ? {condition}""",
        (match, *values),
    )
    return np.fromiter(rows, np.dtype([("chunk", np.int64), ("rank", np.float64)]))


def _build_condition(plan: Plan) -> tuple[str, list[str]]:
    """Return the filters as SQL that is checked before a row is scored; empty without filters."""
    clauses: list[str] = []
    values: list[str] = []
    if plan.since:
        clauses.append("d.published_at >= ?")
        values.append(plan.since)
    if plan.until:
        clauses.append("d.published_at <= ?")
        values.append(plan.until)
    for name, value in plan.facets.items():
        clauses.append(
            "EXISTS (SELECT 1 FROM facets f WHERE f.field = ? AND f.value = ? AND f.doc = d.doc)"
        )
        values += [name, value]
    if not clauses:
        return "", []
    # EXISTS is checked for each row that has a word. `rowid IN (…)` would make FTS5 search anew for
    # each chunk that passes, and listing those costs more than the search.
    return (
        f"""AND EXISTS (SELECT 1 FROM chunks c JOIN documents d USING (doc)
                        WHERE c.chunk = passages_fts.rowid AND {" AND ".join(clauses)})""",
        values,
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
    sources = list_source_names(plan.semantic)
    where = vectors.build_filter(sources, plan.facets, plan.since, plan.until, docs)
    nearest = index.search(vector, plan.depth, where)
    nearest_docs = passages.docs([chunk for chunk, _ in nearest]).tolist()
    return [
        ProposedRecord(doc, chunk) for doc, (chunk, _) in zip(nearest_docs, nearest, strict=True)
    ]


def _find_docs_by_facets(db: Database, facets: dict[str, str]) -> tuple[int, ...] | None:
    """Return the records that pass filters on fields with several values; None without any."""
    filters = [(name, value) for name, value in facets.items() if name not in vectors.SINGLE]
    if not filters:
        return None
    select = "SELECT doc FROM facets WHERE field = ? AND value = ?"
    sql = " INTERSECT ".join([select] * len(filters))
    return tuple(row["doc"] for row in db.execute(sql, [part for pair in filters for part in pair]))


# --- hits ---


def _read_hits(db: Database, ranking: Sequence[RankedRecord], query: str) -> Iterable[Hit]:
    for ranked in ranking:
        doc = db.execute("SELECT id, source FROM documents WHERE doc = ?", (ranked.doc,)).fetchone()
        passage = db.execute(
            "SELECT part, passages.* FROM chunks JOIN passages USING (chunk) WHERE chunk = ?",
            (ranked.chunk,),
        ).fetchone()
        if doc is None or passage is None:
            continue  # the index in memory may be a load ahead of this reader's snapshot
        shown = _choose_passage(db, ranked.doc, passage, query)
        table = BY_NAME[doc["source"]].name
        title, url, citation, published = db.execute(
            f"""SELECT record ->> 'title', source_url, citation_string, published_at
                FROM {table} WHERE id = ?""",
            (doc["id"],),
        ).fetchone()
        yield Hit(
            id=doc["id"],
            title=title,
            url=url,
            source=doc["source"],
            snippet=cut_snippet(shown, query),
            score=ranked.score,
            parts=ranked.parts,
            published_at=published,
            citation=Citation(citation_string=citation, url=url),
            # What is shown of titles and summaries has no place in the text.
            offset=shown["start"] if shown["part"] == "text" else None,
        )


def _choose_passage(db: Database, doc: int, passage: Row, query: str) -> Row:
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
        (doc, _MIN_PASSAGE),
    ).fetchall()
    return max(
        openings,
        key=lambda opening: _count_stems(opening["body"].lower(), stems),
        default=passage,
    )


def cut_snippet(passage: Row, query: str) -> str:
    """Return the part of a passage that has most words of the query."""
    stems = _list_stems(query)
    fields = [passage[name] for name in ("body", "abstract", "title", "action")]
    best_field = max(
        filter(None, fields), key=lambda field: _count_stems(field.lower(), stems), default=""
    )
    text = " ".join(best_field.split())
    if len(text) <= _SNIPPET_LENGTH:
        return text
    starts = range(0, len(text) - _SNIPPET_LENGTH // 2, _SNIPPET_LENGTH // 3)
    lowered = text.lower()
    best = max(
        starts, key=lambda start: _count_stems(lowered[start : start + _SNIPPET_LENGTH], stems)
    )
    begin = text.rfind(" ", 0, best) + 1 if best else 0
    end = text.rfind(" ", begin, begin + _SNIPPET_LENGTH)
    cut = text[begin : end if end > begin else begin + _SNIPPET_LENGTH].strip()
    return f"{'…' if begin else ''}{cut}{'…' if begin + len(cut) < len(text) else ''}"


def _list_stems(query: str) -> list[str]:
    # Five letters are stem enough to choose a snippet by: regul-ation, regul-ate.
    return [*parse_query(query).phrases, *(word[:5] for word in extract_words(query))]


def _count_stems(text: str, stems: Sequence[str]) -> int:
    return sum(stem in text for stem in stems)


def _describe_sources(db: Database, plan: Plan) -> list[Searched]:
    sources = dict.fromkeys((*plan.lexical, *plan.semantic))
    return [
        Searched(
            source=progress.source,
            records=progress.records,
            loaded_up_to=progress.loaded_up_to,
        )
        for progress in (read_progress(db, source) for source in sources)
    ]
