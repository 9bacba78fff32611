"""What the engine finds for the tuning questions of a corpus, in its first order.

A corpus becomes one JSON file: a list of questions, each with up to thirty candidates. Questions of
kind `many` are those of `tests/fixtures/questions/many`, `unanswered` those there that nothing in
their corpus answers, `tuning` the older ones, `nonsense` and `unanswerable` the older ones that
nothing answers. Test questions are never asked here.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.engine import answers as desk
from benchmarks.federal.questions import find_answers
from benchmarks.planning import questions as planning
from readingroom.bases import BASES
from readingroom.bases.federal.models import Search
from readingroom.bases.federal.search import ranking as federal_ranking
from readingroom.bases.federal.service import FederalService
from readingroom.bases.federal.store import get_database_path
from readingroom.bases.policy.models import SearchPolicy
from readingroom.console.sample import open_sample_settings
from readingroom.core.filters import FilterFields
from readingroom.core.ids import make_request_id
from readingroom.core.progress import no_progress
from readingroom.engine.chunking import split_into_spans
from readingroom.engine.context import make_heading_context, prepend_context
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex
from readingroom.engine.shared.index import open_chunk_index
from readingroom.federation import service as federation
from readingroom.federation.models import DeskSearch
from readingroom.federation.room import open_all_bases
from readingroom.protocol.tool import ToolContext
from readingroom.settings import load_settings
from readingroom.storage.chunks import Chunks, ChunkStore
from tests.support.policy.base import make_service
from tests.support.questions import (
    Question,
    read_many_questions,
    read_questions,
    read_unanswerable_questions,
)

DEPTH = 30
_TODAY = datetime(2026, 1, 15, tzinfo=UTC)
_CHUNKS_PER_BATCH = 256
_BASE_BY_FOLDER = dict.fromkeys(("application", "shop_application"), "documents")
_BASE_BY_FOLDER |= dict.fromkeys(("records", "subjects.py"), "federal")
_BASE_BY_FOLDER |= {"policies": "policy", "govuk.toml#": "guidance", "..": "text"}


@dataclass(frozen=True)
class Candidate:
    """A passage that was found; `section` is what others of the same place have too."""

    text: str
    score: float
    is_right: bool
    section: str
    heading: str = ""


@dataclass(frozen=True)
class Asked:
    """A question, the document that it is about, and what was found, best first."""

    id: str
    kind: str
    document: str
    question: str
    candidates: Sequence[Candidate]


async def collect_plans(data: Path, limit: int | None) -> list[Asked]:
    """Return what is found in the plan that a question is about; bring the plans in first."""
    service = make_service(data, get_now=lambda: _TODAY, embedder=_open_embedder(data))
    asked = []
    async with service.run_service():
        await planning.bring_in(service)
        for kind, questions in (
            ("many", _keep_known(_read_many("plans"))),
            ("tuning", planning._choose_questions("tuning")),
            ("unanswered", _keep_known(read_unanswerable_questions("plans"))),
        ):
            for question in questions[:limit]:
                source, title, _ = planning.PLANS[question.document]
                answer = await service.search(
                    SearchPolicy(
                        query=question.question, sources=[source], mode="hybrid", n_results=DEPTH
                    )
                )
                candidates = [
                    Candidate(
                        *(hit.text, hit.score, planning._is_right(question, hit.source, hit.text)),
                        *(hit.section_ref, make_heading_context([title, hit.section_title])),
                    )
                    for hit in answer.results
                ]
                asked.append(_join(question, kind, candidates))
    return asked


def _read_many(corpus: str) -> list[Question]:
    """Return the hundreds of questions over a corpus, of both times that they were written."""
    return [*read_many_questions(corpus), *read_many_questions(f"{corpus}_more")]


def _keep_known(questions: Iterable[Question]) -> list[Question]:
    """Return the questions about documents that are brought in."""
    return [question for question in questions if question.document in planning.PLANS]


async def collect_guidance(data: Path, limit: int | None) -> list[Asked]:
    """Return what is found in `retrieval/govuk`; embed that first."""
    chunks, index = _open_guidance(data)
    texts, pages = (
        dict(zip(chunks.ids, each, strict=True)) for each in (chunks.texts, chunks.metadatas)
    )
    asked = []
    unanswered = read_unanswerable_questions("guidance")
    for question in (*read_many_questions("guidance"), *unanswered):
        kind = "unanswered" if question.kind == "unanswerable" else "many"
        if kind == "many" and not question.document.startswith("retrieval/govuk"):
            continue
        if sum(each.kind == kind for each in asked) == limit:
            continue
        quote = desk._normalise(question.quote) or None
        candidates = [
            Candidate(
                *(texts[hit.chunk_id], hit.score),
                quote is not None and quote in desk._normalise(texts[hit.chunk_id]),
                *(hit.chunk_id.split("|")[0], str(pages[hit.chunk_id]["page"])),
            )
            for hit in index.search(question.question, DEPTH, None, "hybrid").hits
        ]
        asked.append(_join(question, kind, candidates))
    return asked


def _open_guidance(data: Path) -> tuple[Chunks, ChunkIndex]:
    data.mkdir(parents=True, exist_ok=True)
    embedder = _open_embedder(data)
    collection = ChunkStore(data / "chroma").open_collection("govuk")
    fields = FilterFields(("page",), ())
    index = open_chunk_index(collection, fields, embedder, data / "words.db")
    if not index.count_chunks():
        rows = list(_split_guidance())
        for start in range(0, len(rows), _CHUNKS_PER_BATCH):
            ids, texts, pages = map(
                list, zip(*rows[start : start + _CHUNKS_PER_BATCH], strict=True)
            )
            vectors = embedder.embed_batch(list(map(prepend_context, pages, texts)))
            index.put_chunks(Chunks(ids, texts, [{"page": page} for page in pages], vectors))
    return index.read_chunks(), index


def _split_guidance() -> Iterator[tuple[str, str, str]]:
    """Yield the id, the text and the page's name of each passage."""
    corpus = planning.SHARED / "retrieval" / "govuk" / "corpus.jsonl"
    for row in map(json.loads, corpus.read_text("utf-8").splitlines()):
        page = row["id"].split("#")[0].rsplit("/", 1)[1].replace("-", " ")
        for number, span in enumerate(split_into_spans(row["text"])):
            yield f"{row['id']}|{number}", span.cut_from(row["text"]), page


async def collect_federal(data: Path, limit: int | None) -> list[Asked]:
    """Return what is found in a federal base that is loaded, and embedded as far as it is."""
    path = get_database_path(data)
    service = FederalService(path, _open_embedder(data))
    asked = []
    older = [question for question in read_questions("federal") if question.split == "tuning"]
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        for kind, questions in (
            ("many", _read_many("federal")),
            ("tuning", older),
            ("unanswered", read_unanswerable_questions("federal")),
        ):
            for question in questions[:limit]:
                right_ids = find_answers(db, question)
                if not right_ids and kind != "unanswered":
                    continue  # people, committees, votes and filings have no text
                with _record_passages() as passages:
                    await service.search(Search(query=question.question, limit=20), "hybrid")
                candidates = [
                    Candidate(text, score, (owner := _find_owner(db, id)) in right_ids, owner)
                    for id, text, score in passages
                ]
                asked.append(_join(question, kind, candidates))
    service.store.close()
    return asked


@contextmanager
def _record_passages() -> Iterator[list[tuple[str, str, float]]]:
    """Record the id, text and score of what the federal base would read again."""
    recorded: list[tuple[str, str, float]] = []

    def record(
        query: str, passages: Sequence[Any], fetch_texts: Callable[..., Mapping[str, str]], *_: Any
    ) -> list[Any]:
        texts = fetch_texts([passage.passage_id for passage in passages[:DEPTH]])
        recorded.extend(
            (passage.passage_id, texts.get(passage.passage_id, ""), passage.score)
            for passage in passages[:DEPTH]
        )
        return list(passages)

    with _replace_function(federal_ranking, "rerank_first_passages", record):
        yield recorded


def _find_owner(db: sqlite3.Connection, chunk: str) -> str:
    rows = db.execute(
        "SELECT d.id FROM chunks JOIN documents d USING (doc) WHERE chunk = ?", (chunk,)
    )
    return str(rows.fetchone()[0])


async def collect_sample(data: Path, limit: int | None) -> list[Asked]:
    """Return what the desk finds in all bases of a data directory with the sample in it."""
    rows = [*desk.read_questions("tuning")[:limit], *list(_read_many_rows())[:limit]]
    call = ToolContext(make_request_id(), "benchmark", no_progress)
    asked = []
    with open_sample_settings(load_settings({"data": data}), BASES.values()) as settings:
        room = open_all_bases(settings)
        async with room.lifespan():
            for row in rows:
                hits = await _search_desk(room.service, row, call)
                candidates = [
                    Candidate(
                        *(f"{hit.title}. {hit.snippet}", hit.score),
                        *(await desk._is_right(room.service, row, hit, call), hit.id),
                    )
                    for hit in hits
                ]
                is_unanswered = row["id"].startswith("many-unanswerable")
                kind = row["split"] if row["kind"] == "answerable" else row["kind"]
                kind = "unanswered" if is_unanswered else kind
                values = (row["id"], kind, row["document"], row["question"])
                asked.append(Asked(*values, candidates))
    return asked


async def _search_desk(service: Any, row: desk.Row, call: ToolContext) -> list[Any]:
    """Return the best hits in the order that they have before any is read again."""
    rankings: list[Any] = []
    rank_hits = federation.rank_hits

    def record(query: str, hits: Any, embedder: Any, reranker: Any, *others: Any) -> list[Any]:
        rankings.append(rank_hits(query, hits, embedder, None, *others))
        return rankings[-1]

    with _replace_function(federation, "rank_hits", record):
        await service.search(DeskSearch(query=row["question"]), call)
    return sorted(rankings[0], key=lambda hit: -hit.score)[:DEPTH]


def _read_many_rows() -> Iterator[desk.Row]:
    for question in read_unanswerable_questions("sample"):
        yield asdict(question)
    for question in _read_many("sample"):
        document = question.document.removeprefix("govuk.toml#")
        base = _BASE_BY_FOLDER[question.document.split("/")[0]]
        yield asdict(question) | {"split": "many", "document": document, "base": base}


@contextmanager
def _replace_function(module: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    original = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, original)


def _join(question: Question, kind: str, candidates: Sequence[Candidate]) -> Asked:
    return Asked(question.id, kind, question.document, question.question, candidates)


def _open_embedder(data: Path) -> Embedder:
    embedder = Embedder(data / "models")
    embedder.reranker = None  # the first order is wanted
    return embedder


COLLECTORS = {
    "plans": collect_plans,
    "guidance": collect_guidance,
    "federal": collect_federal,
    "sample": collect_sample,
}
