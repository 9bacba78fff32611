"""Finds records by words, by meaning, or by both; filters come before scores on either side."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from readingroom.bases.federal.errors import NotSearchableSemantically, SourceNotSearchable
from readingroom.bases.federal.models import Degraded, Search, Searched
from readingroom.bases.federal.schema.sources import (
    BY_NAME,
    Shape,
    Source,
    find_sources,
    source_names,
    sources_of_shape,
)
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.search.passages import Passages
from readingroom.bases.federal.search.vectors import FederalVectors
from readingroom.bases.federal.store import progress_of
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Vector
from readingroom.engine.errors import ModelUnavailable
from readingroom.engine.hybrid import fuse
from readingroom.engine.lexical import deadline
from readingroom.engine.words import sought, words_of
from readingroom.protocol.search import Citation, Hit

WEIGHTS = "10.0, 4.0, 2.0, 1.0"  # title, abstract, action, body
_TOLD = "'$.title', '$.source_url', '$.citation_string', '$.published_at'"
_SNIPPET = 300
_OPENINGS = 5
_TELLING = 80
_SECONDS = 5.0
_DEPTH = 100
_UNEMBEDDED = "nothing has been embedded yet: run `readingroom federal embed`"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record came in one of the two lists, and the passage that brought it there."""

    doc: int
    chunk: int
    score: float


@dataclass(frozen=True)
class Plan:
    """A search that may be made: which sources, which way each."""

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
        """How far both lists are read: as far for one page as for the next, so that they agree."""
        return max(_DEPTH, self.offset + self.limit)


@dataclass
class Found:
    hits: list[Hit] = field(default_factory=list)
    total: int = 0
    searched: list[Searched] = field(default_factory=list)


def planned(question: Search, mode: Mode) -> Plan:
    """Which sources are looked through and how, or why not."""
    named = find_sources(question.source)
    asked = named or sources_of_shape(Shape.BODY, Shape.SHORT)
    registries = [source for source in asked if source.shape is Shape.REGISTRY]
    if registries:
        raise SourceNotSearchable(
            f"{', '.join(source_names(registries))} cannot be searched as text: "
            "look names up instead",
            use_tool="resolve_entity",
            valid_sources=source_names(sources_of_shape(Shape.BODY, Shape.SHORT)),
        )
    short = [source for source in named if source.shape is Shape.SHORT]
    if short and mode == "semantic":
        raise NotSearchableSemantically(
            f"{', '.join(source_names(short))} has no vectors",
            valid_sources=source_names(sources_of_shape(Shape.BODY)),
        )
    bodies = tuple(source for source in asked if source.shape is Shape.BODY)
    told = question.filters.model_dump(exclude_none=True) if question.filters else {}
    return Plan(
        query=question.query,
        mode=mode,
        lexical=() if mode == "semantic" else tuple(asked),
        semantic=() if mode == "lexical" else bodies,
        facets={name: str(value) for name, value in told.items()},
        since=question.since,
        until=question.until,
        offset=question.offset,
        limit=question.limit,
        degraded=_short_of_vectors(mode, short),
    )


def _short_of_vectors(mode: Mode, short: Sequence[Source]) -> Degraded | None:
    if mode != "hybrid" or not short:
        return None
    names = source_names(short)
    return Degraded(
        requested_mode=mode,
        used_mode="lexical",
        sources=names,
        reason=f"{', '.join(names)}: short texts, searched by words only",
    )


def with_meaning(
    db: sqlite3.Connection, plan: Plan, index: FederalVectors
) -> tuple[Plan, Vector | None]:
    """The question as a vector; what has no vectors is searched by words, and it is said why."""
    if not plan.semantic:
        return plan, None
    try:
        index.refresh(db)
        made = _by_words(plan, _unembedded(db, plan, index), _UNEMBEDDED)
        return made, index.embedder.embed(plan.query) if made.semantic else None
    except ModelUnavailable as error:
        return _by_words(plan, plan.semantic, error.message), None


def _unembedded(db: sqlite3.Connection, plan: Plan, index: FederalVectors) -> tuple[Source, ...]:
    """The sources that have records but no vectors, as after the load of a new one; all of them
    where nothing has been embedded at all.
    """
    lacking = [source for source in plan.semantic if source.name not in index.sources]
    return tuple(one for one in lacking if not len(index) or progress_of(db, one).records)


def _by_words(plan: Plan, sources: Sequence[Source], reason: str) -> Plan:
    """The same plan with these sources searched by words alone."""
    if not sources:
        return plan
    degraded = Degraded(
        requested_mode=plan.mode,
        used_mode="lexical",
        sources=[*source_names(sources), *(plan.degraded.sources if plan.degraded else ())],
        reason=reason,
    )
    return replace(
        plan,
        lexical=tuple(dict.fromkeys((*plan.lexical, *sources))),
        semantic=tuple(source for source in plan.semantic if source not in sources),
        degraded=degraded,
    )


def run(
    db: sqlite3.Connection,
    plan: Plan,
    vector: Vector | None,
    index: FederalVectors,
    passages: Passages,
) -> Found:
    """The best records of both lists, fused, each with its best passage."""
    passages.refresh(db)
    with deadline(db, _SECONDS):
        by_words, matching = lexical(db, plan, passages) if plan.lexical else ([], 0)
        by_meaning = semantic(db, plan, vector, index, passages) if vector is not None else []
        fused = fused_places(by_words, by_meaning)
        page = fused[plan.offset : plan.offset + plan.limit]
        return Found(
            hits=list(_hits(db, page, plan.query)),
            total=max(matching, len(fused)),
            searched=_searched(db, plan),
        )


# --- by words ---


def lexical(db: sqlite3.Connection, plan: Plan, passages: Passages) -> tuple[list[Place], int]:
    """Records by BM25 of their best passage, and how many there are."""
    match = sought(plan.query).match
    if match is None:
        return [], 0
    found = _matching(db, match, plan)
    found = found[passages.of(source_names(plan.lexical), found["chunk"])]
    docs = passages.docs(found["chunk"])
    best_first = np.lexsort((docs, found["rank"]))
    _, firsts = np.unique(docs[best_first], return_index=True)
    best = best_first[np.sort(firsts)[: plan.depth]]
    places = [
        Place(int(doc), int(chunk), -float(rank))
        for doc, (chunk, rank) in zip(docs[best], found[best], strict=True)
    ]
    return places, len(firsts)


def _matching(db: sqlite3.Connection, match: str, plan: Plan) -> NDArray[np.void]:
    """Every passage that has one of the words and passes the filters, and its rank."""
    narrowed, values = _narrowed(plan)
    rows = db.cursor()
    rows.row_factory = None
    rows.execute(
        f"""SELECT rowid, bm25(passages_fts, {WEIGHTS}) FROM passages_fts
            WHERE passages_fts MATCH ? {narrowed}""",
        (match, *values),
    )
    return np.fromiter(rows, np.dtype([("chunk", np.int64), ("rank", np.float64)]))


def _narrowed(plan: Plan) -> tuple[str, list[str]]:
    """The filters as SQL that is checked before a row is scored; nothing where all may answer."""
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
    # Asked of each row that has a word: `rowid IN (…)` would make FTS5 search anew for each chunk
    # that passes, and listing them all costs more than the search.
    return (
        f"""AND EXISTS (SELECT 1 FROM chunks c JOIN documents d USING (doc)
                        WHERE c.chunk = passages_fts.rowid AND {" AND ".join(clauses)})""",
        values,
    )


# --- by meaning ---


def semantic(
    db: sqlite3.Connection,
    plan: Plan,
    vector: Vector,
    index: FederalVectors,
    passages: Passages,
) -> list[Place]:
    """Records by their nearest passage."""
    docs = _docs_of_many_valued(db, plan.facets)
    where = vectors.where(source_names(plan.semantic), plan.facets, plan.since, plan.until, docs)
    nearest = index.search(vector, plan.depth, where)
    found = passages.docs([chunk for chunk, _ in nearest]).tolist()
    return [Place(doc, chunk, score) for doc, (chunk, score) in zip(found, nearest, strict=True)]


def _docs_of_many_valued(db: sqlite3.Connection, facets: dict[str, str]) -> tuple[int, ...] | None:
    """The records that pass the filters whose field may have find_sources values."""
    many = [(name, value) for name, value in facets.items() if name not in vectors.SINGLE]
    if not many:
        return None
    sql = " INTERSECT ".join(["SELECT doc FROM facets WHERE field = ? AND value = ?"] * len(many))
    return tuple(row["doc"] for row in db.execute(sql, [part for pair in many for part in pair]))


# --- both ---


def fused_places(by_words: Sequence[Place], by_meaning: Sequence[Place]) -> list[Place]:
    """Both lists as one; of a record's two passages, the one that placed it higher is shown."""
    # Equal scores come in the order of ids, so the numbers are written to sort as they count.
    rankings = [[f"{place.doc:012}" for place in places] for places in (by_words, by_meaning)]
    shown = _better_passages(by_words, by_meaning)
    return [Place(int(doc), shown[int(doc)], score) for doc, score in fuse(rankings)]


def _better_passages(*rankings: Sequence[Place]) -> dict[int, int]:
    ranked = [(rank, place) for places in rankings for rank, place in enumerate(places)]
    ranked.sort(key=lambda one: -one[0])
    return {place.doc: place.chunk for _, place in ranked}


# --- what the caller sees ---


def _hits(db: sqlite3.Connection, places: Sequence[Place], query: str) -> Iterable[Hit]:
    for place in places:
        doc = db.execute("SELECT id, source FROM documents WHERE doc = ?", (place.doc,)).fetchone()
        passage = db.execute("SELECT * FROM passages WHERE chunk = ?", (place.chunk,)).fetchone()
        if doc is None or passage is None:
            continue  # the index in memory is shared, and may be a load ahead of this reader
        # All at once: each column of a record reads the whole of its JSON.
        (found,) = db.execute(
            f"SELECT json_extract(record, {_TOLD}) FROM {BY_NAME[doc['source']].name} WHERE id = ?",
            (doc["id"],),
        ).fetchone()
        title, url, citation, published = from_json(found)
        yield Hit(
            id=doc["id"],
            title=title,
            url=url,
            source=doc["source"],
            snippet=snippet(_telling(db, place.doc, passage, query), query),
            score=round(place.score, 6),
            published_at=published,
            citation=Citation(citation_string=citation, url=url),
        )


def _telling(db: sqlite3.Connection, doc: int, passage: sqlite3.Row, query: str) -> sqlite3.Row:
    """The passage itself, unless it says little more than the title, which stands beside it anyway:
    then the one of the text's first that has most of the words.
    """
    if len(passage["body"] or passage["abstract"]) >= _TELLING:
        return passage
    stems = _stems(query)
    openings = db.execute(
        f"""SELECT passages.* FROM chunks JOIN passages USING (chunk)
            WHERE doc = ? AND part = 'text' AND ordinal < {_OPENINGS} AND length(body) >= ?
            ORDER BY ordinal""",
        (doc, _TELLING),
    ).fetchall()
    return max(openings, key=lambda one: _holding(one["body"].lower(), stems), default=passage)


def snippet(passage: sqlite3.Row, query: str) -> str:
    """The stretch of a passage that holds most of the question's words."""
    stems = _stems(query)
    parts = [passage[name] for name in ("body", "abstract", "title", "action")]
    told = max(filter(None, parts), key=lambda part: _holding(part.lower(), stems), default="")
    text = " ".join(told.split())
    if len(text) <= _SNIPPET:
        return text
    starts = range(0, len(text) - _SNIPPET // 2, _SNIPPET // 3)
    lowered = text.lower()
    best = max(starts, key=lambda at: _holding(lowered[at : at + _SNIPPET], stems))
    begin = text.rfind(" ", 0, best) + 1 if best else 0
    end = text.rfind(" ", begin, begin + _SNIPPET)
    cut = text[begin : end if end > begin else begin + _SNIPPET].strip()
    return f"{'…' if begin else ''}{cut}{'…' if begin + len(cut) < len(text) else ''}"


def _stems(query: str) -> list[str]:
    return [*sought(query).phrases, *(word[:5] for word in words_of(query))]


def _holding(text: str, stems: Sequence[str]) -> int:
    """How many of the words and phrases a text has."""
    return sum(stem in text for stem in stems)


def _searched(db: sqlite3.Connection, plan: Plan) -> list[Searched]:
    sources = dict.fromkeys((*plan.lexical, *plan.semantic))
    progress = [progress_of(db, source) for source in sources]
    return [
        Searched(source=one.source, records=one.records, loaded_up_to=one.loaded_up_to)
        for one in progress
    ]
