"""Searches the offline copy: passages by words and meaning, the best of each page first."""

import math
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

from readingroom.bases.guidance.offline.library import GuidanceLibrary, PassageCollection
from readingroom.core.filters import FilterFields
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex
from readingroom.engine.shared_index import open_index

_PASSAGES_READ = 60  # for ten pages: a long page may have many of the best
# Chosen on the tuning half of tests/fixtures/questions/guidance.tsv: 0.03 to 0.1, and 1 to 2, do
# as well.
_LENGTH_PENALTY = 0.05
_SECOND_PASSAGE_WEIGHT = 1.5


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """The best passage of a page for a question."""

    path: str
    start: int
    end: int
    heading: str
    anchor: str
    score: float
    similarity: float | None


class OfflineIndex:
    """The engine's index over the passages of a library, which another process may be writing.

    Its own files are this process's alone and go with it; the library is the truth.
    """

    def __init__(self, library: GuidanceLibrary, embedder: Embedder) -> None:
        self._library = library
        self._embedder = embedder
        self._folder: Path | None = None
        self._index: ChunkIndex | None = None
        self._generation = -1
        self._passage_counts: dict[str, int] = {}
        self._opening = threading.Lock()

    def search(self, query: str, page_count: int) -> tuple[list[FoundPassage], str | None]:
        """Return the best passage of each of the best pages, and why meaning was left out if so."""
        index = self._get_index()
        depth = max(_PASSAGES_READ, 6 * page_count)
        search_mode: Mode = "hybrid" if self._library.status().embedded else "lexical"
        ranking = index.search(query, depth, None, search_mode)
        chunks = index.fetch([chunk_hit.chunk_id for chunk_hit in ranking.hits])
        metadatas = dict(zip(chunks.ids, chunks.metadatas, strict=True))
        best: dict[str, FoundPassage] = {}
        second_scores: dict[str, float] = {}
        for chunk_hit in ranking.hits:
            metadata = metadatas.get(chunk_hit.chunk_id)
            if metadata is None:
                continue
            page_path = str(metadata["path"])
            if page_path in best:
                second_scores.setdefault(page_path, chunk_hit.score)
                continue
            best[page_path] = FoundPassage(
                page_path,
                int(metadata["start"]),
                int(metadata["stop"]),
                str(metadata["heading"]),
                str(metadata["anchor"]),
                chunk_hit.score,
                chunk_hit.parts.semantic,
            )
        degraded = ranking.degraded
        if search_mode == "lexical":
            degraded = "No passage has a vector yet; readingroom guidance sync makes them"

        def rate(passage: FoundPassage) -> float:
            return self._rate_page(passage, second_scores.get(passage.path, 0.0))

        return sorted(best.values(), key=rate, reverse=True)[:page_count], degraded

    def _rate_page(self, passage: FoundPassage, second_score: float) -> float:
        """Return how likely a page answers, by its best passage and the one after it.

        A long page has more chances by accident.
        """
        probability = min(max(passage.score, 1e-6), 1 - 1e-6)
        passage_count = self._passage_counts.get(passage.path, 1)
        log_odds = math.log(probability / (1 - probability))
        return (
            log_odds
            + _SECOND_PASSAGE_WEIGHT * second_score
            - _LENGTH_PENALTY * math.log(passage_count)
        )

    def close(self) -> None:
        """Remove this process's files; nothing may be searching."""
        if self._index:
            self._index.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _get_index(self) -> ChunkIndex:
        """Return the index as the library now is."""
        collection = PassageCollection(self._library)
        with self._opening:
            if self._generation != collection.generation:
                self._passage_counts = self._library.count_passages()
            if self._index is None:
                self._folder = Path(tempfile.mkdtemp(prefix="readingroom-guidance-"))
                filter_fields = FilterFields(exact_match=("path",))
                words_path = self._folder / "words.db"
                self._index = open_index(collection, filter_fields, self._embedder, words_path)
                self._generation = collection.generation
            elif self._generation != collection.generation:
                # Another process wrote: what is derived is built anew.
                self._generation = collection.generation
                self._index.rebuild()
            return self._index
