"""`readingroom embed-worker`: it waits for its room, and nothing is lost when either is killed."""

import http.server
import json
import subprocess
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.search.passages import PASSAGE_COLUMNS_SQL
from readingroom.bases.federal.search.queue import count_unembedded
from readingroom.bases.federal.search.vectors import build_embedded_text
from readingroom.bases.federal.store import get_database_path
from readingroom.engine.context import CONTEXT_FIELD_NAME, prepend_context
from readingroom.protocol.embedding_worker import EmbeddingWorker, HttpEmbeddingWork
from readingroom.protocol.errors import RoomUnreachable, WorkRefused
from readingroom.storage.chunks import Chunks, ChunkStore
from readingroom.storage.database import connect
from readingroom.storage.keys import WorkerKeys
from tests.support.federal.base import HashedWords, load_files, write_world
from tests.support.kit import clean_environment, invoke, make_command
from tests.support.model import EMBEDDER, link_model
from tests.support.papers import make_paper
from tests.support.processes import find_free_port, kill_all, wait_until

PROGRESS = {"embedded": 0, "total": 2, "percent": 0.0}
BATCH = {
    "lease_id": "first",
    "model": HashedWords.identity,
    "dimensions": 384,
    "lease_seconds": 90,
    "passages": [{"id": 7, "text": "rail"}, {"id": 9, "text": "broadband"}],
    "progress": PROGRESS,
}
EMPTY = BATCH | {"lease_id": "none", "passages": []}
DONE = PROGRESS | {"embedded": 2, "percent": 100.0}


class ScriptedRoom(http.server.BaseHTTPRequestHandler):
    """Gives the answers that are next in its script, and remembers what it was sent."""

    script: list[tuple[int, Any]]
    received: list[tuple[str, Any]]

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.received.append((self.path, json.loads(content or b"null")))
        status, answer = self.script.pop(0)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = do_POST

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serve_scripted_room(*script: tuple[int, Any]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    received: list[tuple[str, Any]] = []
    handler = type("Room", (ScriptedRoom,), {"script": list(script), "received": received})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", received
        server.shutdown()


def make_worker(url: str, **options: Any) -> EmbeddingWorker:
    embedder: Any = HashedWords()
    room = HttpEmbeddingWork(url, "rrw_key", sleep=lambda seconds: None, **options)
    return EmbeddingWorker(room, embedder, lambda progress: None, sleep=lambda seconds: None)


def test_a_room_that_is_away_is_asked_again_and_gets_what_was_made_meanwhile() -> None:
    stored = {"stored": 2, "dropped": 0, "progress": DONE}
    script = [(503, {}), (200, BATCH), (502, {}), (503, {}), (200, stored), (200, EMPTY)]
    with serve_scripted_room(*script, (200, DONE)) as (url, received):
        assert make_worker(url).embed_until_done(None) == 2

    sent = [body for path, body in received if path == "/embedding/batches/first/vectors"]
    assert len(sent) == 3  # until it was taken
    assert sent[0]["ids"] == [7, 9]
    vectors = np.frombuffer(b64decode(sent[0]["vectors"]), "<f4").reshape(2, 384)
    assert np.array_equal(vectors, HashedWords().embed_batch(["rail", "broadband"]))


def test_a_worker_that_is_refused_gives_its_passages_back_and_says_why() -> None:
    refusal = {"error": {"code": "vectors_refused", "message": "not that of its text"}}
    with (
        serve_scripted_room((200, BATCH), (422, refusal), (204, {})) as (url, received),
        pytest.raises(WorkRefused, match="not that of its text"),
    ):
        make_worker(url).embed_until_done(None)
    assert received[-1][0] == "/embedding/batches/first"


def test_patience_ends_with_what_to_do() -> None:
    with (
        serve_scripted_room(*[(503, {})] * 50) as (url, _),
        pytest.raises(RoomUnreachable, match="start the worker again"),
    ):
        make_worker(url, patience_seconds=0).embed_until_done(None)


def test_a_worker_without_a_key_is_told_how_to_get_one(tmp_path: Path) -> None:
    told = invoke("embed-worker", "--url", "http://127.0.0.1:1", "--data", str(tmp_path))
    assert told.returncode == 2
    assert "keys add NAME --worker" in told.stderr


def test_the_key_of_a_worker_is_made_listed_and_revoked(tmp_path: Path) -> None:
    made = invoke("keys", "add", "box", "--worker", "--json", "--data", str(tmp_path))
    assert WorkerKeys(tmp_path).find_worker_name(json.loads(made.stdout)["key"].encode()) == "box"
    shown = invoke("keys", "list", "--json", "--data", str(tmp_path))
    assert [(key["name"], key["worker"]) for key in json.loads(shown.stdout)["keys"]] == [
        ("box", True)
    ]
    invoke("keys", "revoke", "box", "--data", str(tmp_path))
    assert WorkerKeys(tmp_path).list_keys() == []


BATCH_PASSAGES = 8


def start(*args: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        make_command(*args),
        env=clean_environment(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def count_rows(data: Path, table: str) -> int:
    with closing(store.connect(get_database_path(data))) as db:
        return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.full
def test_a_killed_worker_and_a_killed_room_lose_one_batch_and_nothing_is_wrong(
    tmp_path: Path,
) -> None:
    data = link_model(tmp_path / "data")
    EMBEDDER.load()
    write_world(tmp_path / "files", bills=30, votes=1)
    load_files(data, tmp_path / "files", embed=False)
    with closing(store.connect(get_database_path(data))) as db:
        total = count_unembedded(db)
    key = WorkerKeys(data).add_key("box")
    port = str(find_free_port())
    serve = ("serve", "federal", "--port", port, "--json", "--data", str(data))
    work = (
        *("embed-worker", "--url", f"http://127.0.0.1:{port}", "--once", "--json"),
        *("--batch", str(BATCH_PASSAGES), "--data", str(link_model(tmp_path / "worker"))),
    )
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(room := start(*serve))
        processes.append(worker := start(*work, READINGROOM_WORKER_KEY=key))
        wait_until(lambda: count_rows(data, "vectors") >= 2 * BATCH_PASSAGES)
        worker.kill()
        worker.wait()
        room.kill()
        room.wait()
        stored_before = count_rows(data, "vectors")
        assert count_rows(data, "embedding_leases") <= BATCH_PASSAGES  # what is done twice at most
        processes.append(heir := start(*work, READINGROOM_WORKER_KEY=key))
        processes.append(start(*serve))
        # As if the time of the dead worker's lease had passed.
        with closing(store.connect(get_database_path(data), writing=True)) as db, db.transaction():
            db.execute("UPDATE embedding_leases SET expires_at = 0")
        answer, _ = heir.communicate(timeout=600)
        assert heir.returncode == 0
        assert json.loads(answer) == {"stored": total - stored_before}
    finally:
        kill_all(processes)
    with closing(store.connect(get_database_path(data))) as db:
        assert count_unembedded(db) == 0
        rows = db.execute(
            f"""SELECT {PASSAGE_COLUMNS_SQL}, v.embedding, v.model
                FROM chunks c JOIN passages p USING (chunk) JOIN vectors v USING (chunk)"""
        ).fetchall()
    assert len(rows) == total
    assert {row["model"] for row in rows} == {EMBEDDER.identity}
    stored = np.stack([np.frombuffer(row["embedding"], np.float32) for row in rows])
    expected = EMBEDDER.embed_batch([build_embedded_text(row) for row in rows])
    assert (stored * expected).sum(axis=1).min() > 0.9999


def read_waiting(data: Path, condition: str) -> dict[str, bytes]:
    """The vectors of waiting texts, by the digests of the texts."""
    if not (data / "embedding.db").exists():
        return {}
    with closing(connect(data / "embedding.db")) as db:
        rows = db.execute(f"SELECT digest, vector FROM waiting_texts WHERE {condition}")
        return dict(rows.fetchall())


def read_document_chunks(data: Path) -> Chunks:
    with closing(ChunkStore(data / "documents" / "chroma")) as chunk_store:
        return chunk_store.open_collection("application_docs").read_chunks(with_vectors=True)


@pytest.mark.full
def test_a_document_that_a_worker_embeds_survives_the_kill_of_worker_and_room(
    tmp_path: Path,
) -> None:
    data = link_model(tmp_path / "data")
    EMBEDDER.load()
    sentence = "Homes near stop {} have {} trees, a shed for cycles and a path to the river. "
    # So many that a quick room has some left when the worker asks for its second batch.
    pages = ["".join(sentence.format(page, line) for line in range(24)) for page in range(600)]
    report = tmp_path / "report.pdf"
    report.write_bytes(make_paper(*pages))
    key = WorkerKeys(data).add_key("box")
    port = str(find_free_port())
    serve = ("serve", "documents", "--port", port, "--json", "--data", str(data))
    work = (
        *("embed-worker", "--url", f"http://127.0.0.1:{port}", "--json"),
        *("--batch", str(BATCH_PASSAGES), "--data", str(link_model(tmp_path / "worker"))),
    )
    ingest = (
        *("documents", "ingest", str(report), "--application", "25/01178/REM"),
        *("--json", "--data", str(data)),
    )
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(room := start(*serve))
        processes.append(worker := start(*work, READINGROOM_WORKER_KEY=key))
        wait_until((data / "embedding.db").exists)
        processes.append(ingesting := start(*ingest))
        wait_until(lambda: len(read_waiting(data, "worker IS NOT NULL")) >= 2 * BATCH_PASSAGES)
        worker.kill()
        worker.wait()
        room.kill()
        room.wait()
        assert ingesting.wait(300) != 0
        made_before = read_waiting(data, "vector IS NOT NULL")
        # What is done twice at most: the worker's batch, and the one that the room had itself.
        leased = read_waiting(
            data, "vector IS NULL AND lease_id IS NOT NULL AND lease_id != 'room'"
        )
        assert len(leased) <= BATCH_PASSAGES
        assert len(read_waiting(data, "vector IS NULL AND lease_id = 'room'")) <= 64
        # As if the time of the dead ones' leases had passed.
        with closing(connect(data / "embedding.db")) as db, db.transaction():
            db.execute("UPDATE waiting_texts SET lease_until = 0")
        processes.append(room := start(*serve))
        processes.append(start(*work, READINGROOM_WORKER_KEY=key))
        wait_until(lambda: invoke("documents", "list", "--data", str(data)).returncode == 0)
        processes.append(again := start(*ingest))
        assert again.wait(600) == 0
        made_after = read_waiting(data, "vector IS NOT NULL")
        assert {digest: made_after[digest] for digest in made_before} == made_before
    finally:
        kill_all(processes)
    chunks = read_document_chunks(data)
    embedded_texts = [
        prepend_context(str(metadata[CONTEXT_FIELD_NAME]), text)
        for text, metadata in zip(chunks.texts, chunks.metadatas, strict=True)
    ]
    assert len(made_after) == len(set(embedded_texts)) > 3 * 64
    expected = EMBEDDER.embed_batch(embedded_texts)
    assert (np.asarray(chunks.vectors) * expected).sum(axis=1).min() > 0.9999
