"""Searches the offline copy: passages by words and meaning, the best of each page first."""

from __future__ import annotations

import math
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.bases.guidance.offline.library import GuidanceLibrary
from readingroom.core.arrays import np
from readingroom.core.filters import Filter, FilterFields, In, Metadata, flatten_filter
from readingroom.core.imports import LazyModule
from readingroom.core.modes import Mode
from readingroom.core.scores import ScoreParts
from readingroom.engine.confidence import Calibration, score_compared_passages
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.hybrid import ScoredPassage, rerank_first_passages
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.ranking import ComparedPassage, RankingWeights, measure_evidence
from readingroom.engine.second_look import postpone_second_look
from readingroom.engine.words import LexicalHit
from readingroom.storage.chunks import Chunks, StoredCollection
from readingroom.storage.errors import EmbeddingMismatch

# Most guidance is read from GOV.UK, and no copy of it is searched.
if TYPE_CHECKING:
    from readingroom.engine.index import ChunkHit, ChunkIndex
    from readingroom.engine.shared import index as shared_index
else:
    shared_index = LazyModule("readingroom.engine.shared.index")

_MIN_PASSAGES_READ = 300  # for ten pages: a long page may have many of the best
# Chosen on half of the tuning questions. The best page has more of the question's words than the
# best passage, so words count half with twice the evidence.
_RANKING_WEIGHTS = RankingWeights(word_weight=0.35, half_weight_evidence=1.4)
_LENGTH_PENALTY = 0.03
# Fitted on the same half. The words that a copy lacks say how small it is, not that a page is far.
_CALIBRATION = Calibration(
    constant=-5.04,
    cosine_weight=4.46,
    near_mean_cosine_weight=4.36,
    missing_words_weight=0.0,
    best_coverage_weight=0.0,
    cosine_gap_weight=4.78,
    decline_per_fit=24.0,
)
_TEXT_FIELD_NAME = "text"
_READ_ONLY_MESSAGE = (
    "The passages of the guidance are read only: a sync writes them, by GuidanceLibrary.put_page"
)


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """The best passage of a page for a question."""

    path: str
    start_offset: int
    end_offset: int
    heading: str
    anchor: str
    score: float
    similarity: float | None


class OfflineIndex:
    """The engine's index over the passages of a library, which another process may be writing.

    Its own files are this process's alone and go with it; the library is the truth.
    """

    def __init__(self, guidance_library: GuidanceLibrary, embedder: Embedder) -> None:
        self._library = guidance_library
        self._embedder = embedder
        self._index_folder: Path | None = None
        self._chunk_index: ChunkIndex | None = None
        self._page_word_index: LexicalIndex | None = None
        self._indexed_generation = -1
        self._passage_count_by_page: dict[str, int] = {}
        self._opening_lock = threading.Lock()

    def search_passages(
        self, query_text: str, max_pages: int
    ) -> tuple[list[FoundPassage], str | None]:
        """Return the best passage of each of the best pages, and why meaning was left out if so.

        Scores never rise from one passage to the next.
        """
        chunk_index = self._get_current_index()
        max_passages = max(_MIN_PASSAGES_READ, 6 * max_pages)
        library_status = self._library.read_status()
        search_mode: Mode = "hybrid" if library_status.embedded else "lexical"
        with postpone_second_look():
            chunk_ranking = chunk_index.search(query_text, max_passages, None, search_mode)
        found_chunks = chunk_index.fetch_chunks(
            [chunk_hit.chunk_id for chunk_hit in chunk_ranking.hits]
        )
        metadata_by_chunk_id = dict(zip(found_chunks.ids, found_chunks.metadatas, strict=True))
        text_by_chunk_id = dict(zip(found_chunks.ids, found_chunks.texts, strict=True))
        best_passage_by_page: dict[str, FoundPassage] = {}
        hits_by_page: dict[str, list[ChunkHit]] = {}
        for chunk_hit in chunk_ranking.hits:
            chunk_metadata = metadata_by_chunk_id.get(chunk_hit.chunk_id)
            if chunk_metadata is None:
                continue
            page_path = str(chunk_metadata["path"])
            hits_by_page.setdefault(page_path, []).append(chunk_hit)
            best_passage_by_page.setdefault(
                page_path,
                FoundPassage(
                    page_path,
                    int(chunk_metadata["start"]),
                    int(chunk_metadata["stop"]),
                    str(chunk_metadata["heading"]),
                    str(chunk_metadata["anchor"]),
                    chunk_hit.score,
                    chunk_hit.score_parts.semantic,
                ),
            )
        degraded_reason = chunk_ranking.degraded_reason
        if search_mode == "lexical":
            degraded_reason = "No passage has a vector yet; readingroom guidance sync makes them"
        elif library_status.embedded < library_status.passages:
            embedded_percent = 100 * library_status.embedded // library_status.passages
            degraded_reason = degraded_reason or (
                f"{embedded_percent} % of the passages have a vector, the others are found by "
                "words; readingroom guidance sync makes the rest"
            )
        compared_pages = self._compare_pages(query_text, hits_by_page)
        page_scores = score_compared_passages(compared_pages, _CALIBRATION)
        scored_pages = [
            ScoredPassage(compared_page.passage_id, page_score, ScoreParts())
            for compared_page, page_score in zip(compared_pages, page_scores, strict=True)
        ]
        if search_mode == "hybrid":
            best_passage_text_by_page = {
                page_path: text_by_chunk_id[page_chunk_hits[0].chunk_id]
                for page_path, page_chunk_hits in hits_by_page.items()
            }
            scored_pages = rerank_first_passages(
                query_text,
                scored_pages,
                lambda _: best_passage_text_by_page,
                self._embedder.reranker,
                _CALIBRATION.decline_per_fit,
            )
        return [
            replace(best_passage_by_page[scored_page.passage_id], score=scored_page.score)
            for scored_page in scored_pages[:max_pages]
        ], degraded_reason

    def _compare_pages(
        self, query_text: str, hits_by_page: Mapping[str, Sequence[ChunkHit]]
    ) -> list[ComparedPassage]:
        """Return how likely each page answers, by its closest passage and all of its words.

        The best page comes first, equal ones by path.
        """
        page_word_hits = self._search_page_words(query_text)
        best_word_score = page_word_hits[0].score if page_word_hits else 0.0
        relative_word_score_by_page = {
            word_hit.id: word_hit.score / best_word_score for word_hit in page_word_hits
        }
        word_weight = _RANKING_WEIGHTS.adapt_to_evidence(
            measure_evidence(best_word_score, len(self._passage_count_by_page))
        ).word_weight
        compared_pages = []
        for page_path, page_chunk_hits in hits_by_page.items():
            relative_word_score = relative_word_score_by_page.get(page_path, 0.0)
            # A long page has more chances by accident.
            passage_count = self._passage_count_by_page.get(page_path, 1)
            page_fit = (
                max(chunk_hit.relevance_score for chunk_hit in page_chunk_hits)
                + word_weight * relative_word_score
                - _LENGTH_PENALTY * math.log(passage_count)
            )
            passage_cosines = (chunk_hit.score_parts.semantic for chunk_hit in page_chunk_hits)
            compared_pages.append(
                ComparedPassage(
                    passage_id=page_path,
                    fit=round(page_fit, 6),
                    cosine=max(
                        (
                            passage_cosine
                            for passage_cosine in passage_cosines
                            if passage_cosine is not None
                        ),
                        default=None,
                    ),
                    word_score=relative_word_score,
                    coverage=max(chunk_hit.score_parts.lexical for chunk_hit in page_chunk_hits),
                    found_share=1.0,  # the calibration does not ask
                    matched_terms=(),
                )
            )
        return sorted(
            compared_pages,
            key=lambda compared_page: (-compared_page.fit, compared_page.passage_id),
        )

    def _search_page_words(self, query_text: str) -> list[LexicalHit]:
        """Return the pages that have words of the query, the best first."""
        assert self._page_word_index is not None
        return self._page_word_index.search(query_text, len(self._passage_count_by_page))

    def close(self) -> None:
        """Remove this process's files; nothing may be searching."""
        if self._chunk_index:
            self._chunk_index.close()
        if self._page_word_index is not None:
            self._page_word_index.close()
        if self._index_folder:
            shutil.rmtree(self._index_folder, ignore_errors=True)

    def _get_current_index(self) -> ChunkIndex:
        """Return the index as the library now is."""
        library_passages = ReadOnlyPassages(self._library)
        with self._opening_lock:
            library_generation = library_passages.generation
            if self._chunk_index is None:
                self._index_folder = Path(tempfile.mkdtemp(prefix="readingroom-guidance-"))
                filter_fields = FilterFields(exact_match_fields=("path",))
                word_index_path = self._index_folder / "words.db"
                self._chunk_index = shared_index.open_chunk_index(
                    library_passages, filter_fields, self._embedder, word_index_path
                )
                self._page_word_index = LexicalIndex(
                    self._index_folder / "pages.db", {_TEXT_FIELD_NAME: 1.0}, FilterFields()
                )
            elif self._indexed_generation != library_generation:
                # Another process wrote: what is derived is built anew.
                self._chunk_index.rebuild_indexes()
            if self._indexed_generation != library_generation:
                self._passage_count_by_page = self._library.count_passages_by_page()
                assert self._page_word_index is not None
                self._page_word_index.replace_documents(
                    _make_page_documents(library_passages.read_chunks()), library_generation
                )
                self._indexed_generation = library_generation
            return self._chunk_index


class ReadOnlyPassages(StoredCollection):
    """The passages of a library as the engine's index reads them; a sync alone writes them."""

    def __init__(self, guidance_library: GuidanceLibrary) -> None:
        self._library = guidance_library

    def read_chunks(
        self,
        chunk_ids: Sequence[str] | None = None,
        where: Filter | None = None,
        with_vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """Return passages by id, by path or all; with vectors, only those that have one."""
        sql_conditions: list[str] = ["vector IS NOT NULL"] if with_vectors else []
        sql_values: list[str | int] = []
        if chunk_ids is not None:
            sql_conditions.append(f"id IN ({','.join('?' * len(chunk_ids))})")
            sql_values += chunk_ids
        for filter_condition in flatten_filter(where):
            assert isinstance(filter_condition, In)
            sql_conditions.append(
                f"{filter_condition.field_name} IN ({','.join('?' * len(filter_condition.values))})"
            )
            sql_values += map(str, filter_condition.values)
        where_clause = f"WHERE {' AND '.join(sql_conditions)}" if sql_conditions else ""
        with self._library.open_database() as db:
            passage_rows = db.execute(
                "SELECT id, searched_text, path, start, stop, heading, anchor, vector "
                f"FROM passages {where_clause} ORDER BY id LIMIT ? OFFSET ?",
                (*sql_values, -1 if limit is None else limit, offset),
            ).fetchall()
        chunk_metadatas: list[Metadata] = [
            {
                "path": passage_row[2],
                "start": passage_row[3],
                "stop": passage_row[4],
                "heading": passage_row[5],
                "anchor": passage_row[6],
            }
            for passage_row in passage_rows
        ]
        vector_matrix = np.empty((0, 0), "f4")
        if with_vectors and passage_rows:
            vector_matrix = np.stack(
                [np.frombuffer(passage_row[7], "<f4") for passage_row in passage_rows]
            )
        return Chunks(
            [passage_row[0] for passage_row in passage_rows],
            [passage_row[1] for passage_row in passage_rows],
            chunk_metadatas,
            vector_matrix,
        )

    def upsert_chunks(self, chunks: Chunks) -> None:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(_READ_ONLY_MESSAGE)

    def update_metadata(
        self, chunk_ids: Sequence[str], chunk_metadatas: Sequence[Metadata]
    ) -> None:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(_READ_ONLY_MESSAGE)

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Raise `NotImplementedError`."""
        raise NotImplementedError(_READ_ONLY_MESSAGE)

    def count_chunks(self) -> int:
        """Return how many passages there are."""
        return self._library.read_status().passages

    @property
    def generation(self) -> int:
        """A number that every change of the library raises."""
        return self._library.generation

    @property
    def embedding_identity(self) -> str | None:
        """Identity of the model that made the vectors; None before the first vector."""
        return self._library.read_state_value("embedding")

    def claim_embedding(self, model_identity: str) -> None:
        """Raise `EmbeddingMismatch` when another model made the vectors."""
        if self.embedding_identity not in (None, model_identity):
            raise EmbeddingMismatch(
                f"The vectors of the guidance were made by {self.embedding_identity}, and "
                f"{model_identity} is what runs now: `readingroom guidance sync` makes them anew.",
                held=self.embedding_identity,
                running=model_identity,
            )


def _make_page_documents(passage_chunks: Chunks) -> Iterator[LexicalDocument]:
    """Yield each page with the words of its passages, without the headings above them."""
    passage_texts_by_page: dict[str, list[str]] = {}
    for searched_text, chunk_metadata in zip(
        passage_chunks.texts, passage_chunks.metadatas, strict=True
    ):
        passage_text = searched_text.partition("\n")[2]
        passage_texts_by_page.setdefault(str(chunk_metadata["path"]), []).append(passage_text)
    for page_path, passage_texts in passage_texts_by_page.items():
        yield LexicalDocument(page_path, {_TEXT_FIELD_NAME: "\n".join(passage_texts)}, {})
