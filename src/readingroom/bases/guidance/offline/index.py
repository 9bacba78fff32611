"""Searches the offline copy: passages by words and meaning, the best of each page first."""

import math
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readingroom.bases.guidance.offline.library import GuidanceLibrary, ReadOnlyPassages
from readingroom.core.filters import FilterFields
from readingroom.core.modes import Mode
from readingroom.engine.embedding.embedder import Embedder
from readingroom.engine.index import ChunkIndex
from readingroom.engine.lexical import LexicalDocument, LexicalIndex
from readingroom.engine.shared_index import open_index
from readingroom.storage.chunks import Chunks

_PASSAGES_READ = 300  # for ten pages: a long page may have many of the best
# Beside the cosine, which counts 1. Chosen on the tuning questions, and on public ones about other
# pages of GOV.UK: 0.2 to 0.35, and 0.03 to 0.07, do as well.
_WORDS_WEIGHT = 0.25
_LENGTH_PENALTY = 0.05
_TEXT = "text"


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
        self._page_words: LexicalIndex | None = None
        self._generation = -1
        self._passage_counts: dict[str, int] = {}
        self._opening = threading.Lock()

    def search(self, query: str, page_count: int) -> tuple[list[FoundPassage], str | None]:
        """Return the best passage of each of the best pages, and why meaning was left out if so."""
        index = self._get_index()
        depth = max(_PASSAGES_READ, 6 * page_count)
        library_status = self._library.status()
        search_mode: Mode = "hybrid" if library_status.embedded else "lexical"
        ranking = index.search(query, depth, None, search_mode)
        chunks = index.fetch([chunk_hit.chunk_id for chunk_hit in ranking.hits])
        metadatas = dict(zip(chunks.ids, chunks.metadatas, strict=True))
        best: dict[str, FoundPassage] = {}
        closeness: dict[str, float] = {}
        for chunk_hit in ranking.hits:
            metadata = metadatas.get(chunk_hit.chunk_id)
            if metadata is None:
                continue
            page_path = str(metadata["path"])
            closeness[page_path] = max(closeness.get(page_path, 0.0), chunk_hit.relevance_score)
            best.setdefault(
                page_path,
                FoundPassage(
                    page_path,
                    int(metadata["start"]),
                    int(metadata["stop"]),
                    str(metadata["heading"]),
                    str(metadata["anchor"]),
                    chunk_hit.score,
                    chunk_hit.parts.semantic,
                ),
            )
        degraded = ranking.degraded
        if search_mode == "lexical":
            degraded = "No passage has a vector yet; readingroom guidance sync makes them"
        elif library_status.embedded < library_status.passages:
            embedded_share = 100 * library_status.embedded // library_status.passages
            degraded = degraded or (
                f"{embedded_share} % of the passages have a vector, the others are found by words; "
                "readingroom guidance sync makes the rest"
            )
        word_shares = self._share_words(query)

        def rate_page(passage: FoundPassage) -> float:
            """Return how likely a page answers, by its closest passage and all of its words."""
            # A long page has more chances by accident.
            passage_count = self._passage_counts.get(passage.path, 1)
            return (
                closeness[passage.path]
                + _WORDS_WEIGHT * word_shares.get(passage.path, 0.0)
                - _LENGTH_PENALTY * math.log(passage_count)
            )

        return sorted(best.values(), key=rate_page, reverse=True)[:page_count], degraded

    def _share_words(self, query: str) -> dict[str, float]:
        """Return how well the words of each page match, as a share of the best page's."""
        assert self._page_words is not None
        page_hits = self._page_words.search(query, len(self._passage_counts))
        return {page_hit.id: page_hit.score / page_hits[0].score for page_hit in page_hits}

    def close(self) -> None:
        """Remove this process's files; nothing may be searching."""
        if self._index:
            self._index.close()
        if self._page_words is not None:
            self._page_words.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _get_index(self) -> ChunkIndex:
        """Return the index as the library now is."""
        collection = ReadOnlyPassages(self._library)
        with self._opening:
            generation = collection.generation
            if self._index is None:
                self._folder = Path(tempfile.mkdtemp(prefix="readingroom-guidance-"))
                filter_fields = FilterFields(exact_match=("path",))
                words_path = self._folder / "words.db"
                self._index = open_index(collection, filter_fields, self._embedder, words_path)
                self._page_words = LexicalIndex(
                    self._folder / "pages.db", {_TEXT: 1.0}, FilterFields()
                )
            elif self._generation != generation:
                # Another process wrote: what is derived is built anew.
                self._index.rebuild()
            if self._generation != generation:
                self._passage_counts = self._library.count_passages()
                assert self._page_words is not None
                self._page_words.fill(_join_passages(collection.get()), generation)
                self._generation = generation
            return self._index


def _join_passages(passages: Chunks) -> Iterator[LexicalDocument]:
    """Yield each page with the words of its passages, without the headings above them."""
    texts_by_page: dict[str, list[str]] = {}
    for searched_text, metadata in zip(passages.texts, passages.metadatas, strict=True):
        own_words = searched_text.partition("\n")[2]
        texts_by_page.setdefault(str(metadata["path"]), []).append(own_words)
    for page_path, page_texts in texts_by_page.items():
        yield LexicalDocument(page_path, {_TEXT: "\n".join(page_texts)}, {})
