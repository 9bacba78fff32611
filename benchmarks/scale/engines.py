"""Both engines filled with the same chunks, and what each costs the processor."""

import contextlib
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scale.corpus import (
    CHUNKS_PER_REVISION,
    FIELDS,
    REVISIONS,
    Corpus,
    MemoryCollection,
)
from readingroom.engine.index import EmbeddedIndex
from readingroom.engine.shared.index import SharedIndex
from readingroom.storage.chunks import Chunks
from readingroom.storage.postgres.chunks import PostgresChunkStore
from readingroom.storage.postgres.database import PostgresDatabase
from tests.support.postgres import PostgresServer, make_template, run_server
from tests.support.processes import list_descendants

FORK = multiprocessing.get_context("fork")
DATABASE = "room_template"
COLLECTION = "policy_docs"
SERVER_OPTIONS = (
    *("-c", "listen_addresses=", "-c", "shared_buffers=1GB", "-c", "jit=off"),
    *("-c", "log_min_messages=fatal", "-c", "max_wal_size=8GB", "-c", "autovacuum=off"),
    # Else a part of the work is done by processes that end before they are counted.
    *("-c", "max_parallel_workers_per_gather=0"),
)
# Vectors and texts are made anew each time: nothing is lost with the machine.
_CHUNK_SERVER_OPTIONS = (*SERVER_OPTIONS, "-c", "fsync=off", "-c", "maintenance_work_mem=512MB")
_POLICIES_PER_TRANSACTION = 20
_started = time.monotonic()


def print_progress(message: str) -> None:
    """Print how far it is, with the seconds since the start."""
    print(f"[{time.monotonic() - _started:4.0f} s] {message}", flush=True)


@dataclass
class Engines:
    """The database's server, and the file of words of the embedded engine."""

    server: PostgresServer
    words_path: Path
    corpus: Corpus

    def open_shared(self) -> SharedIndex:
        """The index on the database, on connections of its own."""
        database = PostgresDatabase(self.server.url(DATABASE))
        collection = PostgresChunkStore(database).open_collection(COLLECTION, FIELDS)
        return SharedIndex(collection, FIELDS, self.corpus.embedder)  # type: ignore[arg-type]

    def open_embedded(self) -> EmbeddedIndex:
        """The index in this process, with its vectors read."""
        embedded = EmbeddedIndex(
            MemoryCollection(self.corpus.chunks),
            FIELDS,
            self.corpus.embedder,  # type: ignore[arg-type]
            self.words_path,
        )
        embedded.get_word_index()
        embedded.get_vector_index()
        return embedded


@contextlib.contextmanager
def fill_engines(corpus: Corpus, *, embedded: bool = True) -> Iterator[Engines]:
    """Both engines with all chunks; the embedded one is filled by a second process meanwhile."""
    with (
        run_server(_CHUNK_SERVER_OPTIONS) as server,
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=FORK) as filler,
    ):
        engines = Engines(server, Path(folder) / "words.db", corpus)
        # Forked before anything has a thread or a connection.
        global _filled_corpus
        _filled_corpus = corpus
        filling = filler.submit(_fill_words, engines.words_path) if embedded else None
        make_template(server)
        _fill_database(engines)
        if filling is not None:
            filling.result()
            print_progress("the embedded engine's words are filled")
        yield engines


_filled_corpus: Corpus | None = None


def _fill_words(words_path: Path) -> None:
    assert _filled_corpus is not None
    index = EmbeddedIndex(
        MemoryCollection(_filled_corpus.chunks),
        FIELDS,
        _filled_corpus.embedder,  # type: ignore[arg-type]
        words_path,
    )
    index.get_word_index()
    index.close()


def _fill_database(engines: Engines) -> None:
    """Fill the tables first and index the words then, as a restore may do it."""
    index = engines.open_shared()
    engines.server.execute("DROP INDEX readingroom.policy_docs_chunks_words", DATABASE)
    chunks, step = engines.corpus.chunks, CHUNKS_PER_REVISION * REVISIONS
    per_transaction = step * _POLICIES_PER_TRANSACTION
    for start in range(0, len(chunks), per_transaction):
        index.collection.upsert_chunks(cut(chunks, start, start + per_transaction))
        if start % 100_000 < per_transaction and start:
            print_progress(f"{start:,} chunks are in the database")
    engines.server.execute(
        "CREATE INDEX policy_docs_chunks_words ON readingroom.policy_docs_chunks USING gin (words)",
        DATABASE,
    )
    engines.server.execute("VACUUM ANALYZE", DATABASE)
    index.collection.database.close()
    print_progress(f"all {len(chunks):,} chunks are in the database")


def cut(chunks: Chunks, start: int, end: int) -> Chunks:
    part = slice(start, end)
    return Chunks(
        chunks.ids[part], chunks.texts[part], chunks.metadatas[part], chunks.vectors[part]
    )


def measure_cpu(server: PostgresServer | None, work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of this process, and of the database's processes."""
    # Found before: looking for them costs more than a search.
    backends = list_backends(server) if server else set()
    database_before, own_before = sum_backend_cpu(backends), time.process_time()
    work()
    own = time.process_time() - own_before
    return own, sum_backend_cpu(backends) - database_before


def list_backends(server: PostgresServer) -> set[int]:
    assert server.process is not None
    return {server.process.pid, *list_descendants(server.process.pid)}


def sum_backend_cpu(backends: set[int]) -> float:
    """What the scheduler counted, in nanoseconds: each of them has one thread."""
    total = 0
    for process in backends:
        with contextlib.suppress(OSError):
            total += int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    return total / 1e9
