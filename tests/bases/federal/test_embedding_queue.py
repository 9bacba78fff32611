"""What waits for a vector: the most wanted first, and nothing embedded by two at once."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.search import vectors
from readingroom.bases.federal.search.queue import (
    LEASE_SECONDS,
    EmbeddingQueue,
    count_unembedded,
    make_local_lease_id,
    release_dead_leases,
)
from readingroom.bases.federal.store import get_database_path
from readingroom.core.progress import no_progress_sync
from readingroom.storage.database import Database
from tests.support.federal.base import (
    HashedWords,
    make_unembedded_file,
    put_database_file,
    serve_in_process,
)


class Clock:
    """A time that passes when it is told to."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(scope="module")
def loaded_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_unembedded_file(tmp_path_factory.mktemp("queue"))


@pytest.fixture
def data(tmp_path: Path, loaded_file: bytes) -> Path:
    return put_database_file(tmp_path, loaded_file)


@pytest.fixture
def db(data: Path) -> Iterator[Database]:
    with closing(store.connect(get_database_path(data), writing=True)) as connection:
        yield connection


def list_days(db: Database, chunks: list[int]) -> list[str]:
    return [
        db.execute(
            "SELECT published_at FROM chunks JOIN documents USING (doc) WHERE chunk = ?", (chunk,)
        ).fetchone()[0]
        or ""
        for chunk in chunks
    ]


def claim_all(db: Database, queue: EmbeddingQueue, size: int) -> list[list[int]]:
    batches = []
    while rows := queue.claim_passages(db, f"lease {len(batches)}", size):
        batches.append([row["chunk"] for row in rows])
    return batches


def test_every_passage_is_given_out_once_and_the_newest_records_come_first(db: Database) -> None:
    db.execute("DELETE FROM links")

    batches = claim_all(db, EmbeddingQueue(), 7)

    chunks = [chunk for batch in batches for chunk in batch]
    assert len(chunks) == len(set(chunks)) == count_unembedded(db)
    assert all(len(batch) == 7 for batch in batches[:-1])
    days = list_days(db, chunks)
    assert days == sorted(days, reverse=True)


def test_what_others_link_to_comes_before_what_is_a_little_newer(db: Database) -> None:
    db.execute("DELETE FROM links")
    oldest_id, oldest_doc = db.execute(
        "SELECT id, doc FROM documents JOIN chunks USING (doc) JOIN passages USING (chunk) "
        "WHERE source = 'bills' ORDER BY published_at LIMIT 1"
    ).fetchone()
    db.executemany(
        "INSERT INTO links (from_id, kind, to_id, loader, evidence) VALUES (?, 'x', ?, 't', 'e')",
        [(f"from:{number}", oldest_id) for number in range(2**20 // 1000)],
    )

    (row,) = EmbeddingQueue().claim_passages(db, "first", 1)

    assert row["doc"] == oldest_doc


def test_what_a_search_asked_for_comes_before_everything(db: Database) -> None:
    queue = EmbeddingQueue()
    queue.claim_passages(db, "first", 1)
    wanted_doc = db.execute(
        "SELECT doc FROM documents WHERE source = 'bills' ORDER BY published_at LIMIT 1"
    ).fetchone()[0]

    queue.prioritize_documents([wanted_doc])

    assert queue.claim_passages(db, "second", 1)[0]["doc"] == wanted_doc


@pytest.mark.anyio
async def test_a_search_tells_the_queue_which_of_its_hits_have_no_vector(data: Path) -> None:
    async with serve_in_process(data) as ask:
        answer = await ask.answer("search", query="rail", source=["bills"])
        queue = ask.base.service.vectors.queue
        with closing(store.connect(get_database_path(data), writing=True)) as db:
            first_docs = {row["doc"] for row in queue.claim_passages(db, "first", 3)}
            hit_ids = tuple(hit["id"] for hit in answer["results"])
            marks = ", ".join("?" * len(hit_ids))
            hit_docs = {
                row["doc"]
                for row in db.execute(f"SELECT doc FROM documents WHERE id IN ({marks})", hit_ids)
            }
    assert hit_docs
    assert first_docs <= hit_docs


def test_a_lease_holds_while_its_holder_is_alive_and_ends_when_it_falls_silent(
    db: Database,
) -> None:
    clock = Clock()
    queue, other_queue = EmbeddingQueue(clock), EmbeddingQueue(clock)
    leased = {row["chunk"] for row in queue.claim_passages(db, "silent", 5)}
    clock.seconds += LEASE_SECONDS - 1
    assert queue.extend_lease(db, "silent") == 5
    clock.seconds += LEASE_SECONDS - 1
    others = {chunk for batch in claim_all(db, other_queue, 50) for chunk in batch}
    assert not leased & others
    assert len(leased | others) == count_unembedded(db)

    clock.seconds += 2

    assert {row["chunk"] for row in other_queue.claim_passages(db, "heir", 5)} == leased
    assert queue.extend_lease(db, "silent") == 0


def test_embedding_here_leaves_what_a_worker_has_and_takes_it_when_the_worker_is_dead(
    db: Database,
) -> None:
    clock = Clock()
    embedder = HashedWords()
    EmbeddingQueue(clock).claim_passages(
        db, "a worker", 5
    )  # long ago, as the clock of the machine sees it
    db.execute("UPDATE embedding_leases SET expires_at = 9e9")
    counts = []

    def end_lease(seconds: float) -> None:
        counts.append(count_unembedded(db))
        db.execute("UPDATE embedding_leases SET expires_at = 0")

    total = count_unembedded(db)
    done = vectors.embed_passages(db, embedder, no_progress_sync, end_lease)  # type: ignore[arg-type]

    assert counts == [5]
    assert done == total
    assert count_unembedded(db) == 0
    assert db.execute("SELECT count(*) FROM embedding_leases").fetchone()[0] == 0


def test_a_run_that_was_stopped_gives_back_what_it_had(db: Database) -> None:
    class StopsAtSecondBatch(HashedWords):
        texts_per_batch = 4
        calls = 0

        def embed_batch(self, texts):  # type: ignore[no-untyped-def]
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().embed_batch(texts)

    total = count_unembedded(db)
    with pytest.raises(KeyboardInterrupt):
        vectors.embed_passages(db, StopsAtSecondBatch(), no_progress_sync)  # type: ignore[arg-type]
    assert count_unembedded(db) == total - 4
    assert db.execute("SELECT count(*) FROM embedding_leases").fetchone()[0] == 0

    assert vectors.embed_passages(db, HashedWords(), no_progress_sync) == total - 4  # type: ignore[arg-type]


def test_what_a_dead_process_of_this_machine_had_need_not_be_waited_for(db: Database) -> None:
    own_lease = make_local_lease_id()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    dead_lease = own_lease.replace(f":{own_lease.split(':')[2]}:", f":{dead.pid}:")
    queue = EmbeddingQueue()
    queue.claim_passages(db, own_lease, 3)
    queue.claim_passages(db, dead_lease, 3)

    release_dead_leases(db)

    assert queue.extend_lease(db, own_lease) == 3
    assert queue.extend_lease(db, dead_lease) == 0
