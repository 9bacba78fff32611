"""The durable store of chunks and their vectors: ChromaDB behind five methods.

Chunks are read by id or by filter; the search for neighbours is in `engine/vectors.py`. Another
database needs the methods of `StoredCollection` to replace it.
"""

import contextlib
import functools
import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from readingroom.core.arrays import Floats, np
from readingroom.core.filters import (
    Condition,
    Filter,
    In,
    Metadata,
    Range,
    Scalar,
    flatten_filter,
)
from readingroom.core.imports import pause_garbage_collection
from readingroom.storage.errors import EmbeddingMismatch, StoreUnusable
from readingroom.storage.lock import FolderLock

if TYPE_CHECKING:
    import chromadb

logger = logging.getLogger(__name__)

# Chroma's limit is 5,461 with its own metadata rows; this stays clear of it.
_ROWS_PER_BATCH = 5_000
# Chroma builds a graph for searches that we never make, so it is built as cheaply as possible.
_HNSW_SETTINGS: Any = {"space": "l2", "ef_construction": 10, "max_neighbors": 4}
# How Chroma describes the embedding function of a collection that has none.
_NO_EMBEDDING_FUNCTION_TYPES = ("legacy", "unknown")
# What chromadb imports on its way and nothing here uses. jsonschema compiles a grammar for checking
# IRIs where rfc3987-syntax happens to be installed, which is half of the whole import; httpx has a
# command line, for which it imports rich.
_UNUSED_MODULE_NAMES = ("rfc3987_syntax", "httpx._main")
_GENERATION_METADATA_KEY = "generation"
_EMBEDDING_METADATA_KEY = "embedding"


@dataclass(frozen=True)
class Chunks:
    """Some chunks, column by column; `vectors` is empty unless vectors were requested."""

    ids: list[str]
    texts: list[str]
    metadatas: list[Metadata]
    vectors: Floats = field(repr=False, default_factory=lambda: np.empty((0, 0), "f4"))

    def __len__(self) -> int:
        return len(self.ids)


class StoredCollection(Protocol):
    """One collection of chunks, wherever it is kept; a write is durable when its method returns."""

    def read_chunks(
        self,
        chunk_ids: Sequence[str] | None = None,
        where: Filter | None = None,
        with_vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """Return the chunks with these ids, or those that pass the filter, or all.

        Unknown ids are left out. `limit` and `offset` are for reading everything page by page.
        """
        ...

    def upsert_chunks(self, chunks: Chunks) -> None:
        """Add chunks, replacing those with the same ids and all of their metadata."""
        ...

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        ...

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        ...

    def count_chunks(self) -> int:
        """Return how many chunks there are."""
        ...

    @property
    def generation(self) -> int:
        """A number that every write increases; an index built at another one is out of date."""
        ...

    @property
    def embedding_identity(self) -> str | None:
        """Identity of the model that made the vectors; None before the first vector."""
        ...

    def claim_embedding(self, model_identity: str) -> None:
        """Record which model makes the vectors; raise `EmbeddingMismatch` when another one did."""
        ...


class ChunkStore:
    """One directory of collections, owned by one process; without a directory, in memory."""

    def __init__(self, chroma_directory: Path | None) -> None:
        self._lock = FolderLock(chroma_directory) if chroma_directory else None
        if self._lock:
            # Chroma is made for the threads of one process, and nothing in it keeps a second one
            # out.
            self._lock.acquire()
        try:
            self._client = _open_chroma_client(chroma_directory)
        except BaseException:
            self.close()
            raise

    def open_collection(self, collection_name: str) -> "ChunkCollection":
        """Return the collection of that name, which is created when it does not exist.

        Raise `StoreUnusable` for one that names an embedding function: Chroma would build it, and
        the files may name one that runs code of their author's.
        """
        with _translate_chroma_errors():
            chroma_collection = self._client.get_or_create_collection(
                # Chroma's own embedding function would download a model.
                collection_name,
                embedding_function=None,
                configuration={"hnsw": _HNSW_SETTINGS},
            )
            # Not `collection.schema`, which builds what it describes.
            collection_model = chroma_collection.get_model()
        embedding_functions = _find_embedding_functions(
            [collection_model.configuration_json, collection_model.serialized_schema]
        )
        if any(
            embedding_function.get("type") not in _NO_EMBEDDING_FUNCTION_TYPES
            for embedding_function in embedding_functions
        ):
            raise StoreUnusable(
                f"The collection {collection_name} of the chunk store names an embedding function, "
                "which Reading Room never stores: somebody else wrote to it. Restore a backup."
            )
        return ChunkCollection(chroma_collection)

    def close(self) -> None:
        if hasattr(self, "_client"):
            self._client.close()
        if self._lock:
            self._lock.release()


class ChunkCollection:
    """One collection; a write is durable when its method returns."""

    def __init__(self, chroma_collection: "chromadb.Collection") -> None:
        self._chroma_collection = chroma_collection

    def read_chunks(
        self,
        chunk_ids: Sequence[str] | None = None,
        where: Filter | None = None,
        with_vectors: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Chunks:
        """Return the chunks with these ids, or those that pass the filter, or all.

        Unknown ids are left out. `limit` and `offset` are for reading everything page by page.
        """
        filter_conditions = list(flatten_filter(where))
        # Chroma refuses an empty list, and by our rules it passes nothing.
        if any(
            filter_condition.values == ()
            for filter_condition in filter_conditions
            if isinstance(filter_condition, In)
        ):
            return Chunks([], [], [])
        included_fields: Any = ["documents", "metadatas", *(["embeddings"] if with_vectors else [])]
        read_page = functools.partial(
            self._chroma_collection.get,
            where=_translate_filter_to_chroma(filter_conditions),
            include=included_fields,
        )
        with _translate_chroma_errors():
            if chunk_ids is not None:
                chunk_pages = [
                    read_page(ids=id_batch) for id_batch in _split_into_batches(chunk_ids)
                ]
            elif limit is not None:
                chunk_pages = [read_page(limit=limit, offset=offset)]
            else:
                chunk_pages = list(_read_chunk_pages(read_page))
        return _join_chunk_pages(chunk_pages, with_vectors)

    def upsert_chunks(self, chunks: Chunks) -> None:
        """Add chunks, replacing those with the same ids and all of their metadata."""
        if len(set(chunks.ids)) != len(chunks):
            raise ValueError("an id comes twice in one batch")
        if not np.isfinite(chunks.vectors).all():
            raise ValueError("a vector contains a number that is not finite")
        self._increase_generation()
        with _translate_chroma_errors():
            for index_batch in _split_into_batches(range(len(chunks))):
                batch_ids = [chunks.ids[chunk_index] for chunk_index in index_batch]
                self._chroma_collection.upsert(
                    ids=batch_ids,
                    documents=[chunks.texts[chunk_index] for chunk_index in index_batch],
                    metadatas=self._mark_removed_metadata(
                        batch_ids, [chunks.metadatas[chunk_index] for chunk_index in index_batch]
                    ),
                    embeddings=chunks.vectors[index_batch],
                )

    def update_metadata(self, chunk_ids: Sequence[str], metadatas: Sequence[Metadata]) -> None:
        """Merge new values into the metadata of chunks; unknown ids are ignored."""
        self._increase_generation()
        with _translate_chroma_errors():
            for index_batch in _split_into_batches(range(len(chunk_ids))):
                new_metadatas: Any = [dict(metadatas[chunk_index]) for chunk_index in index_batch]
                self._chroma_collection.update(
                    ids=[chunk_ids[chunk_index] for chunk_index in index_batch],
                    metadatas=new_metadatas,
                )

    def delete_chunks(self, chunk_ids: Sequence[str]) -> None:
        """Remove chunks; unknown ids are ignored."""
        self._increase_generation()
        with _translate_chroma_errors():
            for id_batch in _split_into_batches(chunk_ids):
                self._chroma_collection.delete(ids=id_batch)

    def count_chunks(self) -> int:
        with _translate_chroma_errors():
            return self._chroma_collection.count()

    @property
    def generation(self) -> int:
        """A number that every write increases; an index built at another one is out of date."""
        return int((self._chroma_collection.metadata or {}).get(_GENERATION_METADATA_KEY, 0))

    @property
    def embedding_identity(self) -> str | None:
        """Identity of the model that made the vectors; None before the first vector."""
        return (self._chroma_collection.metadata or {}).get(_EMBEDDING_METADATA_KEY)

    def claim_embedding(self, model_identity: str) -> None:
        """Record which model makes the vectors; raise `EmbeddingMismatch` when another one did."""
        stored_identity = self.embedding_identity
        if stored_identity is None:
            self._update_collection_metadata({_EMBEDDING_METADATA_KEY: model_identity})
        elif stored_identity != model_identity:
            raise EmbeddingMismatch(
                f"The vectors of {self._chroma_collection.name} were made by {stored_identity}, "
                f"and {model_identity} is what runs now; the two must not be mixed. Set the model "
                "and the precision back, or ingest everything anew.",
                held=stored_identity,
                running=model_identity,
            )

    def _increase_generation(self) -> None:
        # Before the write: a crash half-way then leaves a number that no index was built at.
        self._update_collection_metadata({_GENERATION_METADATA_KEY: self.generation + 1})

    def _update_collection_metadata(self, added_values: Mapping[str, Any]) -> None:
        # `modify` replaces all of the metadata, so the other values are sent along.
        with _translate_chroma_errors():
            self._chroma_collection.modify(
                metadata={**(self._chroma_collection.metadata or {}), **added_values}
            )

    def _mark_removed_metadata(self, chunk_ids: list[str], new_metadatas: list[Metadata]) -> Any:
        """Return the new metadata with None for each key that is to be removed."""
        # Chroma's upsert merges metadata, and would keep the old keys otherwise.
        stored_chunks = self._chroma_collection.get(ids=chunk_ids, include=["metadatas"])
        old_metadata_by_id = dict(
            zip(stored_chunks["ids"], stored_chunks["metadatas"] or [], strict=True)
        )
        return [
            {**dict.fromkeys(old_metadata_by_id.get(chunk_id) or {}), **chunk_metadata} or None
            for chunk_id, chunk_metadata in zip(chunk_ids, new_metadatas, strict=True)
        ]


# Chroma has no lists in metadata, so numbers are stored as "14,15".


def format_numbers(numbers: Iterable[int]) -> str:
    """Return numbers as one metadata value."""
    return ",".join(map(str, numbers))


def parse_numbers(numbers_text: Scalar) -> tuple[int, ...]:
    """Return the numbers that `format_numbers` wrote."""
    return tuple(int(number_text) for number_text in str(numbers_text).split(",") if number_text)


def _open_chroma_client(chroma_directory: Path | None) -> Any:
    chromadb = _import_chromadb()
    # Telemetry would call another host, which nobody has agreed to.
    settings = chromadb.config.Settings(anonymized_telemetry=False)
    if chroma_directory is None:
        return chromadb.EphemeralClient(settings)
    try:
        return chromadb.PersistentClient(chroma_directory, settings)
    # Of a damaged file Chroma raises an error of any class, from its own clean-up.
    except Exception as error:
        raise StoreUnusable(
            f"The chunk store in {chroma_directory} cannot be opened: {_get_first_cause(error)}"
        ) from error


def _import_chromadb() -> Any:
    """Import chromadb, which takes longer than the rest of the program, when a store is opened."""
    with _hide_modules(_UNUSED_MODULE_NAMES), pause_garbage_collection():
        import chromadb
        import chromadb.config
    return chromadb


@contextlib.contextmanager
def _hide_modules(module_names: Iterable[str]) -> Iterator[None]:
    """Let imports behave as if modules that are not imported yet were not installed."""
    hidden_module_names = [
        module_name for module_name in module_names if module_name not in sys.modules
    ]
    # With None in its place an import fails as it does for a module that is not installed.
    sys.modules.update(dict.fromkeys(hidden_module_names))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for module_name in hidden_module_names:
            del sys.modules[module_name]


def _find_embedding_functions(chroma_configuration: Any) -> Iterator[dict[str, Any]]:
    """Yield every embedding function in a collection's configuration and schema."""
    if isinstance(chroma_configuration, list):
        for configuration_item in chroma_configuration:
            yield from _find_embedding_functions(configuration_item)
    elif isinstance(chroma_configuration, dict):
        for field_name, field_value in chroma_configuration.items():
            if field_name == "embedding_function" and isinstance(field_value, dict):
                yield field_value
            else:
                yield from _find_embedding_functions(field_value)


def _get_first_cause(error: BaseException) -> BaseException:
    return _get_first_cause(error.__context__) if error.__context__ else error


@contextlib.contextmanager
def _translate_chroma_errors() -> Iterator[None]:
    from chromadb.errors import ChromaError, InvalidArgumentError, InvalidDimensionException

    try:
        yield
    except (InvalidArgumentError, InvalidDimensionException) as error:
        raise ValueError(str(error)) from error
    except (ChromaError, OSError) as error:
        logger.error("the chunk store failed: %s", error)
        raise StoreUnusable("The chunk store failed; the server's log has the reason") from error


def _read_chunk_pages(read_page: Callable[..., Any]) -> Iterator[Any]:
    """Yield everything page by page: Chroma cannot return more than 32,766 rows at once."""
    for first_row_number in itertools.count(0, _ROWS_PER_BATCH):
        chunk_page = read_page(limit=_ROWS_PER_BATCH, offset=first_row_number)
        yield chunk_page
        if len(chunk_page["ids"]) < _ROWS_PER_BATCH:
            return


def _split_into_batches(batch_items: Sequence[Any]) -> Iterator[list[Any]]:
    for batch_start in range(0, len(batch_items), _ROWS_PER_BATCH):
        yield list(batch_items[batch_start : batch_start + _ROWS_PER_BATCH])


def _join_chunk_pages(chunk_pages: Iterable[Any], with_vectors: bool) -> Chunks:
    chunk_pages = [chunk_page for chunk_page in chunk_pages if chunk_page["ids"]]
    chunk_ids = [chunk_id for chunk_page in chunk_pages for chunk_id in chunk_page["ids"]]
    vector_matrices = (
        [np.asarray(chunk_page["embeddings"], np.float32) for chunk_page in chunk_pages]
        if with_vectors
        else []
    )
    return Chunks(
        chunk_ids,
        [chunk_text or "" for chunk_page in chunk_pages for chunk_text in chunk_page["documents"]],
        [
            chunk_metadata or {}
            for chunk_page in chunk_pages
            for chunk_metadata in chunk_page["metadatas"]
        ],
        np.concatenate(vector_matrices)
        if chunk_ids and with_vectors
        else np.empty((0, 0), np.float32),
    )


def _translate_filter_to_chroma(filter_conditions: Sequence[Condition]) -> Any:
    """Return the filter in Chroma's language."""
    return _combine_chroma_clauses(
        "$and",
        [
            chroma_clause
            for filter_condition in filter_conditions
            for chroma_clause in _build_chroma_clauses(filter_condition)
        ],
    )


def _build_chroma_clauses(filter_condition: Condition) -> Iterator[Any]:
    match filter_condition:
        case In(field, values):
            # Chroma refuses a list of values of different types.
            values_by_type: dict[object, list[Any]] = {}
            for filter_value in values:
                values_by_type.setdefault(type(filter_value), []).append(filter_value)
            yield _combine_chroma_clauses(
                "$or",
                [
                    {field: {"$in": same_type_values}}
                    for same_type_values in values_by_type.values()
                ],
            )
        case Range(field, low, high):
            if low is not None:
                yield {field: {"$gte": low}}
            if high is not None:
                yield {field: {"$lte": high}}


def _combine_chroma_clauses(chroma_operator: str, chroma_clauses: list[Any]) -> Any:
    # Chroma refuses `$and` and `$or` of fewer than two clauses.
    if len(chroma_clauses) < 2:
        return chroma_clauses[0] if chroma_clauses else None
    return {chroma_operator: chroma_clauses}
