"""Searching policies on a day over HTTP, beside the algorithm the contract describes."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import chromadb
import numpy as np
from chromadb.config import Settings

from benchmarks.table import Ratio, Table
from readingroom.bases.policy.records import Policy, PolicyCategory, Revision, RevisionStatus
from readingroom.bases.policy.registry import PolicyRegistry
from readingroom.bases.policy.store import COLLECTION, chunk_id, of_registry
from readingroom.core import clock
from readingroom.engine.embedding import Embedder
from readingroom.storage.chunks import Chunks, ChunkStore
from readingroom.storage.keyvalue import check_room, open_key_values
from tests.kit import Served, body, http, serving
from tests.policies import MODELS

POLICIES, REVISIONS = 10, 5
_TARGETS = {1_000: 1.0, 50_000: 0.2}
_BATCH = 5_000
_DAY: Any = {"$and": [{"effective_from": {"$lte": 20210601}}, {"effective_to": {"$gte": 20210601}}]}
_NOTE = (
    f"{POLICIES} policies with {REVISIONS} revisions each, one of which is in force on the day "
    "asked for; vectors at random. Served: `search_policy` with `effective_date` by the SDK's "
    "client over Streamable HTTP, each query new. Described: the same model embeds the query and "
    "ChromaDB answers with its `where` on the dates, in this process, without HTTP. Both take "
    "turns; median of {rounds}. Ratio: served to described, round by round."
)


@dataclass(frozen=True)
class Timings:
    """Seconds of each round, and what the server holds in memory afterwards."""

    served: list[float]
    described: list[float]
    resident_mb: int


def measure(chunks: int, rounds: int) -> Table:
    """Ask both, in turns, new questions."""
    embedder = Embedder(MODELS)
    embedder.embed("load the model")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        (data / "models").symlink_to(MODELS)
        peer = chromadb.PersistentClient(
            Path(folder) / "peer", Settings(anonymized_telemetry=False)
        ).create_collection(COLLECTION, embedding_function=None)
        anyio.run(_fill, data / "policy", peer, chunks, embedder.identity)
        with serving("policy", data=data) as room:
            found = anyio.run(_turns, room, peer, embedder, rounds)
    ratio = Ratio(found.served, found.described)
    target = _TARGETS.get(chunks)
    return Table(
        f"`search_policy` on a day among {chunks:,} chunks",
        ("search", "median ms", "ratio", "target"),
        (
            ("as the contract describes it", _ms(found.described), "1.000", ""),
            ("served", _ms(found.served), str(ratio), ratio.against(target) if target else ""),
            ("resident memory of the server", f"{found.resident_mb} MB", "", "at most 500 MB"),
        ),
        _NOTE.format(rounds=rounds),
    )


async def _turns(room: Served, peer: Any, embedder: Embedder, rounds: int) -> Timings:
    served, described = [], []
    async with http(f"{room.url}/mcp") as client:
        for turn in range(rounds + 2):
            query = f"question {turn} about cycle parking at junctions"
            started = time.perf_counter()
            answer = await client.call_tool(
                "search_policy", {"query": query, "effective_date": "2021-06-01"}
            )
            between = time.perf_counter()
            vector = embedder.embed(query)
            peer.query(query_embeddings=[vector.tolist()], n_results=10, where=_DAY)
            ended = time.perf_counter()
            assert body(answer)["results_count"] == 10
            if turn >= 2:  # the first ones load the model and fill the index
                served.append(between - started)
                described.append(ended - between)
    status = Path(f"/proc/{room.process.pid}/status").read_text("utf-8")  # noqa: ASYNC240 - a moment
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Timings(served, described, int(resident.split()[1]) // 1024)


async def _fill(folder: Path, peer: Any, chunks: int, identity: str) -> None:
    """The same chunks in both; the registry says the same of them."""
    store = ChunkStore(folder / "chroma")
    collection = store.collection(COLLECTION)
    collection.claim(identity)
    async with open_key_values(None, folder / "registry") as client:
        await check_room(client, folder / "room")
        registry = PolicyRegistry(client)
        for policy, revision in _revisions(chunks // (POLICIES * REVISIONS)):
            if revision.effective_from.year == 2017:
                await registry.create_policy(policy)
            await registry.change(policy.source, lambda before, new=revision: [new])
            made = _chunks(policy, revision)
            collection.upsert(made)
            peer.upsert(
                ids=made.ids,
                documents=made.texts,
                metadatas=[dict(one) for one in made.metadatas],
                embeddings=made.vectors,
            )
    store.close()


def _revisions(each: int) -> Iterator[tuple[Policy, Revision]]:
    now = clock.now()
    for number in range(POLICIES):
        policy = Policy(
            source=f"POLICY_{number}",
            title=f"Policy {number}",
            category=PolicyCategory.LOCAL_PLAN,
            created_at=now,
            updated_at=now,
        )
        for year in range(2017, 2017 + REVISIONS):
            last = year == 2016 + REVISIONS
            yield (
                policy,
                Revision(
                    revision_id=f"rev_{policy.source}_{year}_01",
                    source=policy.source,
                    version_label=str(year),
                    effective_from=date(year, 1, 1),
                    effective_to=None if last else date(year, 12, 31),
                    status=RevisionStatus.ACTIVE if last else RevisionStatus.SUPERSEDED,
                    chunk_count=each,
                    created_at=now,
                ),
            )


def _chunks(policy: Policy, revision: Revision) -> Chunks:
    random = np.random.default_rng(abs(hash(revision.revision_id)) % 2**32)
    vectors = random.standard_normal((revision.chunk_count, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    described = of_registry(policy, revision, revision.effective_to)
    numbers = range(revision.chunk_count)
    return Chunks(
        [chunk_id(revision, f"Para {number}", number) for number in numbers],
        [
            f"Paragraph {number} of {revision.revision_id}. " + "Some words. " * 40
            for number in numbers
        ],
        [
            {
                **described,
                "source": policy.source,
                "revision_id": revision.revision_id,
                "section_ref": f"Para {number}",
                "section_path": f"Para {number}",
                "page_number": 1,
                "pages": "1",
                "page_starts": "",
                "chunk_index": number,
                "extraction_method": "text_layer",
                "start": number * 500,
                "end": number * 500 + 480,
            }
            for number in numbers
        ],
        vectors,
    )


def _ms(seconds: list[float]) -> str:
    return f"{1000 * median(seconds):.1f}"
