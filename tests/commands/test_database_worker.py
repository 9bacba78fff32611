"""`readingroom embed-worker` on the room's database: no server, the same leases and checks."""

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS_SQL
from readingroom.bases.federal.search.queue import count_unembedded
from readingroom.bases.federal.search.vectors import build_embedded_text
from readingroom.bases.federal.store import SharedRecords
from readingroom.bases.federal.tools import open_federal
from readingroom.core.settings import RoomSettings
from readingroom.engine.embedding.waiting_texts import WaitingTexts, create_waiting_tables
from readingroom.protocol.embedding_work import LeasablePassages
from readingroom.protocol.embedding_worker import DatabaseEmbeddingWork, EmbeddingWorker
from readingroom.protocol.errors import RoomUnreachable
from readingroom.protocol.spec import list_leasable_passages
from readingroom.storage.errors import DatabaseUnreachable, EmbeddingMismatch, StorageFailed
from readingroom.storage.postgres.state import list_collection_models, open_waiting_tables
from tests.support.federal.base import HashedWords, load_files_into, write_world
from tests.support.kit import clean_environment, invoke, make_command
from tests.support.model import EMBEDDER, link_model
from tests.support.postgres import PostgresServer, make_database
from tests.support.processes import kill_all, wait_until

BATCH_PASSAGES = 8


class CountingModel(HashedWords):
    """The stand-in for the model, which remembers the texts of batches."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed_each(self, texts: Any) -> Any:
        return [self.embed(text) for text in texts]

    def embed_batch(self, texts: Any) -> Any:
        self.embedded += texts
        return super().embed_batch(texts)


class OtherModel(CountingModel):
    identity = "other-words/1"


@pytest.fixture(scope="module")
def loaded_url(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("database_worker")
    write_world(folder / "files", bills=6, votes=1)
    with make_database(postgres) as url:
        load_files_into(SharedRecords(url), folder / "files", embed=False)
        yield url


@pytest.fixture
def url(loaded_url: str) -> str:
    """A database whose federal records have no vector."""
    execute(loaded_url, "DELETE FROM vectors")
    execute(loaded_url, "DELETE FROM embedding_leases")
    execute(loaded_url, "DELETE FROM embedded_elsewhere")
    return loaded_url


def execute(url: str, sql: str) -> None:
    with closing(SharedRecords(url).connect(writing=True)) as db:
        db.execute(sql)


def read(url: str, sql: str) -> list[Any]:
    with closing(SharedRecords(url).connect(writing=False)) as db:
        return list(db.execute(sql).fetchall())


def count_waiting(url: str) -> int:
    with closing(SharedRecords(url).connect(writing=False)) as db:
        return count_unembedded(db)


def offer(url: str, model: Any) -> list[LeasablePassages]:
    return list_leasable_passages([open_federal(SharedRecords(url), model)])


def make_worker(
    offered: list[LeasablePassages], model: Any, wait: Callable[[float], None] = lambda _: None
) -> EmbeddingWorker:
    return EmbeddingWorker(
        DatabaseEmbeddingWork(offered, sleep=wait), model, lambda progress: None, 4, wait
    )


def test_a_worker_embeds_what_a_load_left_in_the_database(url: str) -> None:
    model = CountingModel()
    total = count_waiting(url)

    assert (
        make_worker(offer(url, model), model).embed_until_done(None)
        == total
        == len(model.embedded)
        > 8
    )

    assert count_waiting(url) == 0
    assert read(url, "SELECT * FROM embedding_leases") == []
    rows = read(
        url,
        f"""SELECT {PASSAGE_COLUMNS_SQL}, v.embedding, v.model
            FROM chunks c JOIN passages p USING (chunk) JOIN vectors v USING (chunk)""",
    )
    assert {row["model"] for row in rows} == {model.identity}
    stored = np.stack([np.frombuffer(row["embedding"], np.float32) for row in rows])
    expected = model.embed_batch([build_embedded_text(row) for row in rows])
    assert np.array_equal(stored, expected)


def test_two_workers_share_the_passages_and_embed_none_twice(url: str) -> None:
    models = [CountingModel(), CountingModel()]
    total = count_waiting(url)
    workers = [make_worker(offer(url, model), model) for model in models]
    with ThreadPoolExecutor(len(workers)) as threads:
        stored_counts = list(threads.map(lambda worker: worker.embed_until_done(None), workers))
    assert sum(stored_counts) == total == len(models[0].embedded) + len(models[1].embedded)
    assert count_waiting(url) == 0


@pytest.mark.parametrize("ending", ["is killed", "gives it back"])
def test_what_a_worker_had_that_ended_is_taken_over(url: str, ending: str) -> None:
    other_room = DatabaseEmbeddingWork(offer(url, CountingModel()))
    lease = other_room.claim_batch(CountingModel.identity, 4)
    total = count_waiting(url)
    waits = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        assert len(waits) < 10
        if len(waits) == 1:
            assert count_waiting(url) == 4  # all but what the other has
        elif ending == "gives it back":
            other_room.release_lease(lease.lease_id)
        else:  # as if the time of its lease had passed
            execute(url, "UPDATE embedding_leases SET expires_at = 0")

    model = CountingModel()
    assert make_worker(offer(url, model), model, wait).embed_until_done(None) == total
    assert len(waits) >= 2
    assert count_waiting(url) == 0


def test_texts_that_an_ingestion_waits_for_are_embedded_first_and_only_once(
    url: str, tmp_path: Path
) -> None:
    settings = RoomSettings(data=tmp_path, database_url=SecretStr(url))
    model, own_model = CountingModel(), CountingModel()
    worker_side, room_side = (
        WaitingTexts(open_waiting_tables(settings, create_waiting_tables), side)  # type: ignore[arg-type]
        for side in (model, own_model)
    )
    texts = [f"Homes near stop {number} have gardens" for number in range(10)]
    offered: list[LeasablePassages] = [worker_side, *offer(url, model)]
    DatabaseEmbeddingWork([worker_side]).claim_batch(
        model.identity, 1
    )  # now the room knows of a worker
    assert room_side.offer_to_workers(texts)

    make_worker(offered, model).embed_until_done(None)

    assert sorted(model.embedded[: len(texts)]) == sorted(texts)
    vectors = room_side.embed_with_workers(texts)
    assert own_model.embedded == []
    expected = HashedWords().embed_batch(texts)
    assert np.array_equal(np.stack([vectors[text] for text in texts]), expected)


def test_a_worker_with_another_model_is_refused_and_deletes_nothing(
    url: str, tmp_path: Path
) -> None:
    make_worker(offer(url, first := CountingModel()), first).embed_until_done(None)
    vector_count = len(read(url, "SELECT chunk FROM vectors"))
    other = OtherModel()
    with pytest.raises(EmbeddingMismatch, match=r"hashed-words/1.*other-words/1"):
        make_worker(offer(url, other), other).embed_until_done(None)
    assert len(read(url, "SELECT chunk FROM vectors")) == vector_count
    # The same where only policies or documents say which model the room has.
    settings = RoomSettings(data=tmp_path, database_url=SecretStr(url))
    assert list_collection_models(settings) == []
    execute(url, "INSERT INTO readingroom.collections (name, embedding) VALUES ('p', 'mine/1')")
    try:
        waiting = WaitingTexts(
            open_waiting_tables(settings, create_waiting_tables),
            other,  # type: ignore[arg-type]
            list_stored_identities=lambda: list_collection_models(settings),
        )
        with pytest.raises(EmbeddingMismatch, match=r"mine/1.*other-words/1"):
            make_worker([waiting], other).embed_until_done(None)
    finally:
        execute(url, "DELETE FROM readingroom.collections WHERE name = 'p'")


class FailingPassages:
    """Passages of a database that is away for the first questions."""

    name, is_backlog, embedder = "failing", True, CountingModel()

    def __init__(self, failures: list[Exception]) -> None:
        self._failures = failures

    def read_stored_model(self) -> str | None:
        if self._failures:
            raise self._failures.pop()
        return None

    def claim_passages(self, lease_id: str, max_passages: int) -> list[tuple[int, str]]:
        return []

    def count_passages(self) -> tuple[int, int]:
        return 0, 0


def fail_with(reason: Exception) -> StorageFailed:
    failure = StorageFailed("The records cannot be used")
    failure.__cause__ = reason
    return failure


def test_a_database_that_is_away_is_waited_for_and_one_that_refuses_is_not() -> None:
    def make_room(
        failures: list[Exception], patience_seconds: float = 600.0
    ) -> DatabaseEmbeddingWork:
        passages: Any = FailingPassages(failures)
        return DatabaseEmbeddingWork([passages], patience_seconds, lambda seconds: None)

    away = DatabaseUnreachable("the connection is lost")
    assert make_room([fail_with(away), away]).claim_batch(CountingModel.identity, 4).passages == []
    with pytest.raises(RoomUnreachable, match="the connection is lost"):
        make_room([away], 0).claim_batch("any", 4)
    with pytest.raises(StorageFailed):
        make_room([StorageFailed("permission denied")]).claim_batch("any", 4)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "readingroom serve"),  # a room in a directory
        (["--url", "sqlite:///var/room.db"], "postgresql://"),
        (["--url", "postgresql://me:se%cret@host/room"], "cannot be read"),
        (["--url", "postgresql://me:x@secret@host/room"], "cannot be read"),
        (["--url", "postgresql://me@host/room", "--key-file", __file__], "--key-file"),
    ],
)
def test_an_address_that_cannot_be_used_is_told_without_its_password(
    tmp_path: Path, options: list[str], told: str
) -> None:
    ended = invoke("embed-worker", "--once", "--data", str(tmp_path), *options)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "cret" not in ended.stdout + ended.stderr


def test_a_database_that_nobody_answers_for_is_told_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://me:secret@/room?host={tmp_path}"
    ended = invoke("embed-worker", "--once", "--data", str(tmp_path), "--url", url)
    assert ended.returncode == 1
    assert "cannot be used" in ended.stderr
    assert "secret" not in ended.stdout + ended.stderr


@pytest.mark.full
def test_a_killed_worker_on_the_database_loses_one_batch_and_nothing_is_wrong(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    EMBEDDER.load()
    write_world(tmp_path / "files", bills=30, votes=1)
    work = (
        *("embed-worker", "--once", "--json", "--batch", str(BATCH_PASSAGES)),
        *("--data", str(link_model(tmp_path / "worker"))),
    )
    processes: list[subprocess.Popen[bytes]] = []

    def start(url: str) -> subprocess.Popen[bytes]:
        environment = clean_environment({"READINGROOM_DATABASE_URL": url})
        process = subprocess.Popen(
            make_command(*work), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        processes.append(process)
        return process

    with make_database(postgres) as url:
        load_files_into(SharedRecords(url), tmp_path / "files", embed=False)
        total = count_waiting(url)
        try:
            worker = start(url)
            wait_until(lambda: total - count_waiting(url) >= 2 * BATCH_PASSAGES)
            worker.kill()
            worker.wait()
            stored_before = total - count_waiting(url)
            # What is done twice at most.
            assert len(read(url, "SELECT chunk FROM embedding_leases")) <= BATCH_PASSAGES
            execute(url, "UPDATE embedding_leases SET expires_at = 0")
            answers = [heir.communicate(timeout=300)[0] for heir in (start(url), start(url))]
            made = [json.loads(answer)["stored"] for answer in answers]
            assert sum(made) == total - stored_before
        finally:
            kill_all(processes)
        rows = read(
            url,
            f"""SELECT {PASSAGE_COLUMNS_SQL}, v.embedding
                FROM chunks c JOIN passages p USING (chunk) JOIN vectors v USING (chunk)""",
        )
        assert len(rows) == total
        stored = np.stack([np.frombuffer(row["embedding"], np.float32) for row in rows])
        expected = EMBEDDER.embed_batch([build_embedded_text(row) for row in rows])
        assert (stored * expected).sum(axis=1).min() > 0.9999
