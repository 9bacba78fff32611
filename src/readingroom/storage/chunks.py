"""The durable store of chunks and their vectors: ChromaDB behind five verbs.

It is asked for chunks by id or by filter and never for neighbours: that is `engine/vectors.py`.
Another database needs `get`, `upsert`, `update_metadata`, `delete` and `count` to take its place.
"""

import contextlib
import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from readingroom.core.filters import Condition, Filter, In, Metadata, Range, Value, conditions
from readingroom.storage.errors import EmbeddingMismatch, StoreUnusable
from readingroom.storage.lock import FolderLock

if TYPE_CHECKING:
    import chromadb

# Chroma's limit is 5,461 with its own metadata rows; this stays clear of it.
_BATCH = 5_000
# Its graph is built but never asked, so it is built as cheaply as can be.
_GRAPH: Any = {"space": "l2", "ef_construction": 10, "max_neighbors": 4}
_GENERATION = "generation"
_EMBEDDING = "embedding"


@dataclass(frozen=True)
class Chunks:
    """Some chunks, column by column. Without vectors where none were asked for."""

    ids: list[str]
    texts: list[str]
    metadatas: list[Metadata]
    vectors: NDArray[np.float32] = field(repr=False, default_factory=lambda: np.empty((0, 0), "f4"))

    def __len__(self) -> int:
        return len(self.ids)


class ChunkStore:
    """One directory of collections, owned by one process; without a directory, in memory."""

    def __init__(self, directory: Path | None) -> None:
        self._lock = FolderLock(directory) if directory else None
        if self._lock:
            self._lock.acquire()
        try:
            self._client = _client(directory)
        except BaseException:
            self.close()
            raise

    def collection(self, name: str) -> "ChunkCollection":
        """The collection of that name, made when it is not there."""
        with _translate_errors():
            return ChunkCollection(
                self._client.get_or_create_collection(
                    # Chroma's own embedding function would download a model.
                    name,
                    embedding_function=None,
                    configuration={"hnsw": _GRAPH},
                )
            )

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()
        if self._lock:
            self._lock.release()


class ChunkCollection:
    """The five verbs on one collection. A write is durable when its verb returns."""

    def __init__(self, collection: "chromadb.Collection") -> None:
        self._collection = collection

    def get(
        self,
        ids: Sequence[str] | None = None,
        where: Filter | None = None,
        vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """The chunks with these ids or that pass this filter, or all; unknown ids are left out.

        `limit` and `offset` are for whoever reads everything page by page.
        """
        wanted = list(conditions(where))
        if any(part.values == () for part in wanted if isinstance(part, In)):
            return Chunks([], [], [])
        shown: Any = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
        ask = functools.partial(self._collection.get, where=_where(wanted), include=shown)
        with _translate_errors():
            if ids is not None:
                found = [ask(ids=batch) for batch in _batches(ids)]
            elif limit is not None:
                found = [ask(limit=limit, offset=offset)]
            else:
                found = list(_pages(ask))
        return _joined(found, vectors)

    def upsert(self, chunks: Chunks) -> None:
        """Put chunks in place of those with the same ids; all their metadata is replaced."""
        if len(set(chunks.ids)) != len(chunks):
            raise ValueError("an id comes twice in one batch")
        if not np.isfinite(chunks.vectors).all():
            raise ValueError("a vector holds something that is not a finite number")
        self._begin_write()
        with _translate_errors():
            for batch in _batches(range(len(chunks))):
                ids = [chunks.ids[row] for row in batch]
                self._collection.upsert(
                    ids=ids,
                    documents=[chunks.texts[row] for row in batch],
                    metadatas=self._replacing(ids, [chunks.metadatas[row] for row in batch]),
                    embeddings=chunks.vectors[batch],
                )

    def update_metadata(self, ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Lay new values over the old ones of chunks that are there; other ids are ignored."""
        self._begin_write()
        with _translate_errors():
            for batch in _batches(range(len(ids))):
                laid: Any = [dict(metadatas[row]) for row in batch]
                self._collection.update(ids=[ids[row] for row in batch], metadatas=laid)

    def delete(self, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are ignored."""
        self._begin_write()
        with _translate_errors():
            for batch in _batches(ids):
                self._collection.delete(ids=batch)

    def count(self) -> int:
        with _translate_errors():
            return self._collection.count()

    @property
    def generation(self) -> int:
        """A number that every write raises before it begins: what was derived under another one
        is out of date.
        """
        return int((self._collection.metadata or {}).get(_GENERATION, 0))

    @property
    def embedding(self) -> str | None:
        """What made the vectors in here; None before the first."""
        return (self._collection.metadata or {}).get(_EMBEDDING)

    def claim(self, embedding: str) -> None:
        """Say what makes the vectors; refused when what is here was made by something else."""
        held = self.embedding
        if held is None:
            self._note({_EMBEDDING: embedding})
        elif held != embedding:
            raise EmbeddingMismatch(
                f"The vectors of {self._collection.name} were made by {held}, and {embedding} is "
                "what runs now; the two must not be mixed. Set the model and the precision back, "
                "or ingest everything anew.",
                held=held,
                running=embedding,
            )

    def _begin_write(self) -> None:
        self._note({_GENERATION: self.generation + 1})

    def _note(self, added: Mapping[str, Any]) -> None:
        with _translate_errors():
            self._collection.modify(metadata={**(self._collection.metadata or {}), **added})

    def _replacing(self, ids: list[str], new: list[Metadata]) -> Any:
        """The new metadata with a None for each key to go: Chroma's upsert merges otherwise."""
        held = self._collection.get(ids=ids, include=["metadatas"])
        old = dict(zip(held["ids"], held["metadatas"] or [], strict=True))
        return [
            {**dict.fromkeys(old.get(id) or {}), **metadata} or None
            for id, metadata in zip(ids, new, strict=True)
        ]


# Chroma has no list metadata, so numbers travel as "14,15".


def written(numbers: Iterable[int]) -> str:
    """Numbers as metadata can hold them."""
    return ",".join(map(str, numbers))


def numbers_of(value: Value) -> tuple[int, ...]:
    """What `written` wrote."""
    return tuple(int(number) for number in str(value).split(",") if number)


def _client(directory: Path | None) -> Any:
    chromadb = _import_chromadb()
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    if directory is None:
        return chromadb.EphemeralClient(settings)
    try:
        return chromadb.PersistentClient(directory, settings)
    except Exception as error:  # a damaged file comes up as an error of its clean-up, of any kind
        raise StoreUnusable(
            f"The chunk store in {directory} cannot be opened: {_first_cause(error)}"
        ) from error


def _import_chromadb() -> Any:
    """Import chromadb, which takes longer than the rest of the program, when a store is opened."""
    # It imports jsonschema, which compiles a grammar for checking IRIs where rfc3987-syntax happens
    # to be installed: more than half of the whole import. Nothing here checks the format of IRIs.
    hidden = "rfc3987_syntax"
    is_hidden = hidden not in sys.modules
    if is_hidden:
        sys.modules[hidden] = None  # type: ignore[assignment]
    try:
        import chromadb
        import chromadb.config
    finally:
        if is_hidden:
            del sys.modules[hidden]
    return chromadb


def _first_cause(error: BaseException) -> BaseException:
    return _first_cause(error.__context__) if error.__context__ else error


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    from chromadb.errors import ChromaError, InvalidArgumentError, InvalidDimensionException

    try:
        yield
    except (InvalidArgumentError, InvalidDimensionException) as error:
        raise ValueError(str(error)) from error
    except (ChromaError, OSError) as error:
        raise StoreUnusable(f"The chunk store failed: {error}") from error


def _pages(ask: Callable[..., Any]) -> Iterator[Any]:
    """All that Chroma has, page by page: more than 32,766 rows at once are too many for it."""
    for offset in itertools.count(0, _BATCH):
        page = ask(limit=_BATCH, offset=offset)
        yield page
        if len(page["ids"]) < _BATCH:
            return


def _batches(items: Sequence[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(items), _BATCH):
        yield list(items[start : start + _BATCH])


def _joined(found: Iterable[Any], vectors: bool) -> Chunks:
    parts = [part for part in found if part["ids"]]
    ids = [id for part in parts for id in part["ids"]]
    kept = [np.asarray(part["embeddings"], np.float32) for part in parts] if vectors else []
    return Chunks(
        ids,
        [text or "" for part in parts for text in part["documents"]],
        [metadata or {} for part in parts for metadata in part["metadatas"]],
        np.concatenate(kept) if ids and vectors else np.empty((0, 0), np.float32),
    )


def _where(wanted: Sequence[Condition]) -> Any:
    """The filter in Chroma's language, which knows no list of mixed kinds and no `$and` of one."""
    return _one_of("$and", [clause for part in wanted for clause in _clauses(part)])


def _clauses(part: Condition) -> Iterator[Any]:
    match part:
        case In(field, values):
            kinds: dict[object, list[Any]] = {}
            for value in values:
                kinds.setdefault(type(value), []).append(value)
            yield _one_of("$or", [{field: {"$in": of_kind}} for of_kind in kinds.values()])
        case Range(field, low, high):
            if low is not None:
                yield {field: {"$gte": low}}
            if high is not None:
                yield {field: {"$lte": high}}


def _one_of(operator: str, clauses: list[Any]) -> Any:
    if len(clauses) < 2:
        return clauses[0] if clauses else None
    return {operator: clauses}
