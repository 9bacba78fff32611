"""Workers on other machines: what their key opens, and what the room believes of their vectors."""

import hashlib
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from readingroom.bases.federal import store
from readingroom.bases.federal.search.queue import count_unembedded
from readingroom.bases.federal.store import get_database_path
from readingroom.storage.keys import KeyRing, WorkerKeys
from tests.support.federal.base import (
    HashedWords,
    make_unembedded_file,
    put_database_file,
    serve_in_process,
)

pytestmark = pytest.mark.anyio
MODEL = HashedWords.identity


class ModelDouble(HashedWords):
    """The stand-in for the model, with what embeds a few texts at once."""

    def embed_each(self, texts: Any) -> Any:
        return [self.embed(text) for text in texts]


@pytest.fixture(scope="module")
def loaded_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_unembedded_file(tmp_path_factory.mktemp("work"))


@pytest.fixture
def data(tmp_path: Path, loaded_file: bytes) -> Path:
    return put_database_file(tmp_path, loaded_file)


def count_waiting(data: Path) -> int:
    with closing(store.connect(get_database_path(data))) as db:
        return count_unembedded(db)


class WorkerClient:
    """Sends what a worker sends, and what it should not."""

    def __init__(self, web: httpx2.AsyncClient, key: str) -> None:
        self.web = web
        self.headers = {"Authorization": f"Bearer {key}"}

    async def claim(self, count: int = 5, model: str = MODEL) -> Any:
        return await self.web.post(
            "/embedding/batches",
            json={"model": model, "max_passages": count},
            headers=self.headers,
        )

    async def send(self, batch: Any, matrix: Any = None, **changes: Any) -> Any:
        texts = [passage["text"] for passage in batch["passages"]]
        matrix = ModelDouble().embed_batch(texts) if matrix is None else matrix
        body = {
            "model": MODEL,
            "ids": [passage["id"] for passage in batch["passages"]],
            "text_digests": [hashlib.sha256(text.encode()).hexdigest() for text in texts],
            "vectors": b64encode(np.asarray(matrix, "<f4").tobytes()).decode(),
        }
        return await self.web.post(
            f"/embedding/batches/{batch['lease_id']}/vectors",
            json=body | changes,
            headers=self.headers,
        )


@asynccontextmanager
async def connect_worker(data: Path, name: str = "box") -> AsyncIterator[WorkerClient]:
    key = WorkerKeys(data).add_key(name)
    async with serve_in_process(data, ModelDouble()) as ask:
        yield WorkerClient(ask.web, key)


async def test_a_workers_key_opens_its_own_routes_and_nothing_else(data: Path) -> None:
    key_ring = KeyRing(data)
    worker_key, operator_key = (
        WorkerKeys(data).add_key("box"),
        key_ring.add_key("me", is_operator=True),
    )
    worker = {"Authorization": f"Bearer {worker_key}"}
    async with serve_in_process(data, ModelDouble()) as ask:
        get = ask.web.get
        assert (await get("/embedding/progress", headers=worker)).status_code == 200
        for path in ("/v1/bills", "/docs", "/metrics", "/openapi.json", "/operations"):
            assert (await get(path, headers=worker)).status_code == 401, path
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert (await ask.web.post("/mcp", json=rpc, headers=worker)).status_code == 401
        operator = {"Authorization": f"Bearer {operator_key}"}
        refused = await get("/embedding/progress", headers=operator)
        assert refused.status_code == 401
        assert "keys add NAME --worker" in refused.json()["error"]["message"]
        assert WorkerKeys(data).revoke_key("box")
        assert (await get("/embedding/progress", headers=worker)).status_code == 401


async def test_where_nobody_needs_a_key_a_worker_does_and_its_key_closes_nothing(
    data: Path,
) -> None:
    async with connect_worker(data) as worker:
        assert (await worker.web.get("/v1/bills")).status_code == 200
        assert (await worker.web.get("/embedding/progress")).status_code == 401


async def test_vectors_are_stored_once_and_the_progress_is_told(data: Path) -> None:
    total = count_waiting(data)
    async with connect_worker(data) as worker:
        batch = (await worker.claim()).json()
        first = (await worker.send(batch)).json()
        again = (await worker.send(batch)).json()

    assert len(batch["passages"]) == 5
    assert (first["stored"], first["dropped"]) == (5, 0)
    assert (again["stored"], again["dropped"]) == (0, 5)
    assert first["progress"]["embedded"] == 5
    assert first["progress"]["total"] == total
    assert count_waiting(data) == total - 5


async def test_two_workers_get_different_passages_and_a_batch_that_is_given_back_is_given_again(
    data: Path,
) -> None:
    async with connect_worker(data) as worker:
        first, second = (await worker.claim()).json(), (await worker.claim()).json()
        ids = [{passage["id"] for passage in batch["passages"]} for batch in (first, second)]
        assert not ids[0] & ids[1]
        lease = f"/embedding/batches/{first['lease_id']}"
        beat = await worker.web.post(f"{lease}/heartbeat", headers=worker.headers)
        assert beat.json() == {"passages": 5}
        assert (await worker.web.delete(lease, headers=worker.headers)).status_code == 204
        beat = await worker.web.post(f"{lease}/heartbeat", headers=worker.headers)
        assert beat.json() == {"passages": 0}
        rest = (await worker.claim(1000)).json()
        assert ids[0] <= {passage["id"] for passage in rest["passages"]}


async def test_vectors_that_came_after_the_lease_ran_out_are_not_lost(data: Path) -> None:
    async with connect_worker(data) as worker:
        batch = (await worker.claim()).json()
        with closing(store.connect(get_database_path(data), writing=True)) as db:
            db.execute("DELETE FROM embedding_leases")
        assert (await worker.send(batch)).json()["stored"] == 5


async def test_a_passage_that_was_changed_meanwhile_gets_no_vector_of_its_old_text(
    data: Path,
) -> None:
    async with connect_worker(data) as worker:
        batch = (await worker.claim()).json()
        with closing(store.connect(get_database_path(data), writing=True)) as db:
            changed = batch["passages"][0]["id"]
            db.execute(
                "UPDATE passages SET title = title || ' amended', body = body || ' amended' "
                "WHERE chunk = ?",
                (changed,),
            )
        stored = (await worker.send(batch)).json()
        with closing(store.connect(get_database_path(data))) as db:
            embedded = {row["chunk"] for row in db.execute("SELECT chunk FROM vectors")}
    assert stored["stored"] < 5
    assert changed not in embedded


async def test_a_worker_with_another_model_is_refused_and_learns_which_is_wanted(
    data: Path,
) -> None:
    async with connect_worker(data) as worker:
        refused = await worker.claim(model="all-MiniLM-L6-v2@000000000000/int8")
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "embedding_mismatch"
    assert MODEL in refused.json()["error"]["message"]


def spoil(kind: str, matrix: Any) -> Any:
    spoiled = matrix.copy()
    match kind:
        case "not finite":
            spoiled[0, 0] = np.nan
        case "too long":
            spoiled[0] *= 2
        case "one for all":
            spoiled[:] = spoiled[0]
        case "of other texts":
            spoiled = np.roll(spoiled, 1, axis=0)
        case "too few":
            spoiled = spoiled[:-1]
    return spoiled


@pytest.mark.parametrize(
    "kind", ["not finite", "too long", "one for all", "of other texts", "too few"]
)
async def test_wrong_vectors_are_refused_and_all_that_the_worker_sent_is_taken_back(
    data: Path, kind: str
) -> None:
    total = count_waiting(data)
    async with connect_worker(data) as worker:
        good = (await worker.claim()).json()
        assert (await worker.send(good)).json()["stored"] == 5
        bad = (await worker.claim(3)).json()
        matrix = ModelDouble().embed_batch([passage["text"] for passage in bad["passages"]])

        refused = await worker.send(bad, spoil(kind, matrix))

        assert refused.status_code == 422
        assert refused.json()["error"]["code"] == "vectors_refused"
        assert count_waiting(data) == total
        # Nothing more is taken of it, and the passages are there for others.
        assert (await worker.send(good)).json()["error"]["code"] == "vectors_refused"
        assert (await worker.claim()).json()["error"]["code"] == "vectors_refused"
        other = WorkerClient(worker.web, WorkerKeys(data).add_key("other"))
        batch = (await other.claim(1000)).json()
        assert (await other.send(batch)).json()["stored"] == total


async def test_right_vectors_sent_again_and_again_hide_no_wrong_one(data: Path) -> None:
    total = count_waiting(data)
    async with connect_worker(data) as worker:
        batch = (await worker.claim(2)).json()
        right, wrong = batch["passages"]
        padded = {**batch, "passages": [right] * 200 + [wrong]}
        matrix = ModelDouble().embed_batch([right["text"]] * 201)
        refused = await worker.send(padded, matrix)
    assert refused.json()["error"]["code"] == "vectors_refused"
    assert count_waiting(data) == total


@pytest.mark.parametrize(
    "changes",
    [{"vectors": "?"}, {"text_digests": []}, {"ids": [1] * 1025}, {"ids": ["x"]}, {"model": "x"}],
)
async def test_what_is_no_batch_is_an_error_and_stores_nothing(
    data: Path, changes: dict[str, Any]
) -> None:
    total = count_waiting(data)
    async with connect_worker(data) as worker:
        refused = await worker.send((await worker.claim()).json(), **changes)
    assert refused.status_code in (409, 422)
    assert count_waiting(data) == total
