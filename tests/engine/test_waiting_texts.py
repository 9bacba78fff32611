"""Texts that ingestions wait for, embedded by workers: of each base, and in both stores."""

import hashlib
import re
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readingroom.bases.guidance.offline.library import GuidanceLibrary
from readingroom.bases.guidance.offline.sync import GuidanceSync
from readingroom.engine.embedding.received import LEASE_SECONDS
from readingroom.engine.embedding.waiting_texts import (
    WaitingTexts,
    WorkerAidedEmbedder,
    create_waiting_tables,
)
from readingroom.engine.errors import VectorsRefused
from readingroom.protocol import checked_embedding
from readingroom.protocol.checked_embedding import EmbeddingBroker
from readingroom.protocol.embedding_work import LeasedBatch, SentVectors
from readingroom.storage.database import StateFile, StateTables
from readingroom.storage.errors import StorageFailed
from readingroom.storage.postgres.state import SharedTables
from tests.support import engines
from tests.support.documents.base import PLAIN as PLAIN_DOCUMENTS
from tests.support.documents.base import open_documents_base
from tests.support.federal.base import HashedWords
from tests.support.policy.base import PLAIN as PLAIN_POLICIES
from tests.support.policy.base import open_library, plain

pytestmark = pytest.mark.anyio

TEXTS = [f"passage number {number} about cycles" for number in range(20)]


class CountingWords(HashedWords):
    """The stand-in for the model, which remembers what it was asked to embed in bulk."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_each(self, texts: Sequence[str]) -> Any:
        return [self.embed(text) for text in texts]

    def embed_batch(self, texts: Sequence[str], *options: Any) -> Any:
        self.embedded += texts
        return super().embed_batch(texts)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


def make_waiting(tables: StateTables, now: Callable[[], float] | None = None) -> WaitingTexts:
    embedder: Any = CountingWords()
    return WaitingTexts(tables, embedder, now or Clock())


def list_embedded(waiting: WaitingTexts) -> list[str]:
    embedder: Any = waiting.embedder
    return list(embedder.embedded)


def answer(batch: LeasedBatch) -> SentVectors:
    texts = [passage.text for passage in batch.passages]
    return SentVectors(
        model=batch.model,
        ids=[passage.id for passage in batch.passages],
        text_digests=[hashlib.sha256(text.encode()).hexdigest() for text in texts],
        vectors=b64encode(HashedWords().embed_batch(texts).astype("<f4").tobytes()).decode(),
    )


@pytest.fixture
def file_tables(tmp_path: Path) -> StateTables:
    return StateFile(tmp_path / "embedding.db", "The texts", create_waiting_tables)


@pytest.fixture(params=[engines.EMBEDDED, engines.SHARED])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateTables]:
    """In a file, or in the database that a policy base in `tmp_path` stands on."""
    if request.param == engines.EMBEDDED:
        yield request.getfixturevalue("file_tables")
        return
    with engines.use_postgres(request.getfixturevalue("postgres")):
        database = engines.find_database(tmp_path / "policy")
        assert database is not None
        yield SharedTables(database, "waiting_texts", "The texts")


def test_what_a_worker_made_is_not_made_here_nor_again_after_a_crash(tables: StateTables) -> None:
    waiting = make_waiting(tables)
    room = EmbeddingBroker([waiting])
    assert (
        room.claim_batch(HashedWords.identity, 8).passages == []
    )  # now the room knows of a worker
    waiting.offer_to_workers(TEXTS)
    batch = room.claim_batch(HashedWords.identity, 8)

    stored = room.store_vectors("box", batch.lease_id, answer(batch))

    assert stored.stored == 8
    assert waiting.count_passages() == (8, 12)
    assert room.store_vectors("box", batch.lease_id, answer(batch)).dropped == 8
    vectors = waiting.embed_with_workers(TEXTS)
    made_elsewhere = {passage.text for passage in batch.passages}
    assert sorted(list_embedded(waiting)) == sorted(set(TEXTS) - made_elsewhere)
    expected = HashedWords().embed_batch(TEXTS)
    assert np.array_equal(np.stack([vectors[text] for text in TEXTS]), expected)
    # The room is killed before it could keep them, and asked for the same document again.
    heir = make_waiting(tables)
    assert heir.embed_with_workers(TEXTS).keys() == set(TEXTS)
    assert list_embedded(heir) == []


def test_what_a_silent_worker_had_is_made_here_and_no_text_is_left_in_the_table(
    tables: StateTables,
) -> None:
    clock = Clock()
    waiting = make_waiting(tables, clock)
    room = EmbeddingBroker([waiting])
    room.claim_batch(HashedWords.identity, 8)
    waiting.offer_to_workers(TEXTS)
    batch = room.claim_batch(HashedWords.identity, 8)
    assert room.extend_lease(batch.lease_id).passages == 8
    clock.seconds += LEASE_SECONDS + 1

    assert waiting.embed_with_workers(TEXTS).keys() == set(TEXTS)

    assert sorted(list_embedded(waiting)) == sorted(TEXTS)
    room.release_lease(room.claim_batch(HashedWords.identity, 8).lease_id)
    waiting.embed_with_workers(TEXTS)
    assert waiting.count_passages() == (20, 0)
    with tables.begin_reading() as db:
        assert {row[0] for row in db.execute("SELECT passage_text FROM waiting_texts")} == {""}
    clock.seconds += 3601
    room.claim_batch(HashedWords.identity, 8)
    assert waiting.count_passages() == (0, 0)


def test_a_worker_that_only_gives_signs_of_life_loses_its_batch(
    tables: StateTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = make_waiting(tables)
    room = EmbeddingBroker([waiting])
    room.claim_batch(HashedWords.identity, 8)
    waiting.offer_to_workers(TEXTS)
    batch = room.claim_batch(HashedWords.identity, 1000)
    assert room.extend_lease(batch.lease_id).passages == len(TEXTS)
    monkeypatch.setattr(checked_embedding, "_MAX_LEASE_SECONDS", -1.0)

    assert room.extend_lease(batch.lease_id).passages == 0

    assert len(room.claim_batch(HashedWords.identity, 1000).passages) == len(TEXTS)


def test_a_batch_that_is_given_back_is_given_again_and_wrong_vectors_are_made_anew(
    tables: StateTables,
) -> None:
    waiting = make_waiting(tables)
    room = EmbeddingBroker([waiting])
    room.claim_batch(HashedWords.identity, 8)
    waiting.offer_to_workers(TEXTS)
    returned = room.claim_batch(HashedWords.identity, 1000)
    assert room.claim_batch(HashedWords.identity, 1000).passages == []
    room.release_lease(returned.lease_id)
    good = room.claim_batch(HashedWords.identity, 5)
    room.store_vectors("box", good.lease_id, answer(good))
    bad = room.claim_batch(HashedWords.identity, 5)
    wrong = answer(bad).model_copy(update={"vectors": answer(good).vectors})

    with pytest.raises(VectorsRefused):
        room.store_vectors("box", bad.lease_id, wrong)

    with pytest.raises(VectorsRefused, match="wrong before"):
        room.store_vectors("box", good.lease_id, answer(good))
    vectors = waiting.embed_with_workers(TEXTS)
    assert sorted(list_embedded(waiting)) == sorted(TEXTS)
    assert np.array_equal(vectors[TEXTS[3]], HashedWords().embed(TEXTS[3]))


def test_a_lease_of_passages_that_are_not_offered_here_stores_nothing(
    file_tables: StateTables,
) -> None:
    room = EmbeddingBroker([make_waiting(file_tables)])
    room.claim_batch(HashedWords.identity, 8)
    sent = SentVectors(model=HashedWords.identity, ids=[1], text_digests=["0"], vectors="")
    assert room.store_vectors("box", "other.1", sent).dropped == 1
    assert room.extend_lease("other.1").passages == 0
    room.release_lease("other.1")


def test_without_workers_nothing_is_written_and_without_a_table_the_room_embeds(
    tmp_path: Path,
) -> None:
    table_file = tmp_path / "embedding.db"
    waiting = make_waiting(StateFile(table_file, "The texts", create_waiting_tables))
    embedder = WorkerAidedEmbedder(waiting)
    embedder.offer_to_workers(TEXTS)
    assert np.array_equal(embedder.embed_batch(TEXTS), HashedWords().embed_batch(TEXTS))
    assert not table_file.exists()

    class BrokenTables:
        def has_data(self) -> bool:
            return True

        def begin_reading(self) -> Any:
            raise StorageFailed("The disk is gone")

        begin_writing = begin_reading

    broken: Any = BrokenTables()
    embedder = WorkerAidedEmbedder(make_waiting(broken))
    embedder.offer_to_workers(TEXTS)
    assert np.array_equal(embedder.embed_batch(TEXTS), HashedWords().embed_batch(TEXTS))


@contextmanager
def run_helped_embedder(
    tables: StateTables, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, set[str]]]:
    """An embedder that leaves everything to a worker, which runs meanwhile; what that one made."""
    waiting = make_waiting(tables)
    monkeypatch.setattr(waiting, "_claim_texts_for_here", lambda texts: [])
    room = EmbeddingBroker([waiting])
    room.claim_batch(HashedWords.identity, 1)
    made: set[str] = set()
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            batch = room.claim_batch(HashedWords.identity, 3)
            if batch.passages:
                room.store_vectors("box", batch.lease_id, answer(batch))
                made.update(passage.text for passage in batch.passages)
            else:
                is_over.wait(0.01)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield WorkerAidedEmbedder(waiting), made
    finally:
        is_over.set()
        worker.join()
    assert list_embedded(waiting) == []


PARAGRAPHS = [f"Homes of kind {number} need {number} trees." for number in range(7)]


async def test_a_policy_is_embedded_by_a_worker(
    tables: StateTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_helped_embedder(tables, monkeypatch) as (embedder, made):
        options = PLAIN_POLICIES | {"embedder": embedder}
        async with open_library(tmp_path / "policy", **options) as library:
            await library.add("PLAN")
            await library.revise("PLAN", "First", "2024-01-01", content=plain(*PARAGRAPHS))
            index: Any = library.service.store._index
            chunks = index.collection.read_chunks(with_vectors=True)
    assert len(made) == len(chunks.ids) == len(PARAGRAPHS)
    check_vectors(made, chunks)


async def test_a_document_is_embedded_by_a_worker(
    file_tables: StateTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_helped_embedder(file_tables, monkeypatch) as (embedder, made):
        options = PLAIN_DOCUMENTS | {"embedder": embedder}
        async with open_documents_base(tmp_path / "documents", **options) as documents:
            await documents.ingest("report.pdf", plain(*PARAGRAPHS))
            index: Any = documents.service.store._index
            chunks = index.collection.read_chunks(with_vectors=True)
    assert len(made) == len(chunks.ids) == len(PARAGRAPHS)
    check_vectors(made, chunks)


def check_vectors(made: set[str], chunks: Any) -> None:
    """Each chunk has the vector that its text has under its title."""
    texts = {text.partition("\n")[2]: text for text in made}
    for text, vector in zip(chunks.texts, chunks.vectors, strict=True):
        assert np.allclose(vector, HashedWords().embed(texts[text]), atol=1e-6)


async def test_guidance_is_embedded_by_a_worker(
    file_tables: StateTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = GuidanceLibrary(tmp_path)
    library.create_database()
    with library._open_transaction() as db:
        db.executemany(
            "INSERT INTO passages (id, path, start, stop, heading, anchor, searched_text) "
            "VALUES (?, '/guidance/a', 0, 1, '', '', ?)",
            [(f"a#{number}", text) for number, text in enumerate(PARAGRAPHS)],
        )
    nothing: Any = None
    messages: list[str | None] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        messages.append(message)

    with run_helped_embedder(file_tables, monkeypatch) as (embedder, made):
        await GuidanceSync(library, nothing, embedder, report)._embed_all_passages()
    assert made == set(PARAGRAPHS)
    assert library.read_status().embedded == len(PARAGRAPHS)
    assert re.fullmatch(r"7 of 7 passages embedded, \S+ a second, 0 s left", messages[-1] or "")
    library.close()
