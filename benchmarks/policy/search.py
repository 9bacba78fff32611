"""Searching policies on a day over HTTP, beside the algorithm the contract describes."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import httpx2
import numpy as np

from benchmarks.policy.peer import DescribedSearch
from benchmarks.server.wires import MODERN, call_tool
from benchmarks.table import Ratio, Table
from readingroom.bases.policy.chunks.store import (
    CHUNK_COLLECTION_NAME,
    build_registry_metadata,
    format_chunk_id,
)
from readingroom.bases.policy.registry.records import (
    Policy,
    PolicyCategory,
    Revision,
    RevisionStatus,
)
from readingroom.bases.policy.registry.store import PolicyRegistry
from readingroom.core import clock
from readingroom.storage.chunks import Chunks, ChunkStore
from readingroom.storage.keyvalue import check_room_id, open_key_values
from tests.support.kit import POST, serve_room
from tests.support.model import MODELS, link_model
from tests.support.processes import read_resident_mb

POLICIES, REVISIONS = 10, 5
_TARGETS = {1_000: 1.0, 50_000: 0.2}
_DAY = "2021-06-01"
_WARM_UP_ROUNDS = 5  # turns that load models, fill the index and open connections
_NOTE = (
    f"{POLICIES} policies with {REVISIONS} revisions each, one of which is in force on the day "
    "asked for; vectors at random, each query new. Described: the same model embeds the query and "
    "ChromaDB answers with its `where` on the dates; in process that is all there is, over HTTP it "
    "stands behind the bare SDK server, which checks nothing and adds no field. Ours: "
    "`search_policy` as it is served. Both servers are processes of their own and get the same "
    "bytes from one plain HTTP client. All take turns; median of {rounds}. Ratios: ours to the "
    "other, round by round; the target is that over HTTP. Our server held {memory} MB at the end."
)

Search = Callable[[str], Any]


def measure(chunks: int, rounds: int) -> Table:
    """Ask all three, in turns, new questions."""
    with tempfile.TemporaryDirectory() as folder:
        data, peer_folder = link_model(Path(folder) / "data"), Path(folder) / "peer"
        described_search = DescribedSearch(peer_folder, MODELS)
        anyio.run(_fill_stores, data / "policy", described_search, chunks)
        shutil.copytree(peer_folder, Path(folder) / "served")
        with (
            serve_room("policy", data=data, env={"READINGROOM_RATE_LIMIT": "0"}) as server,
            _run_peer(Path(folder) / "served") as peer_url,
        ):
            in_process_seconds, peer_seconds, our_seconds = _take_turns(
                [
                    lambda query: described_search.search(query, _DAY),
                    _search_over_http(peer_url),
                    _search_over_http(server.url),
                ],
                rounds,
            )
            memory = read_resident_mb(server.process.pid)
    to_peer, to_algorithm = Ratio(our_seconds, peer_seconds), Ratio(our_seconds, in_process_seconds)
    target = _TARGETS.get(chunks)
    return Table(
        f"`search_policy` on a day among {chunks:,} chunks",
        ("search", "median ms", "ratio", "target"),
        (
            (
                "described, in process",
                _render_milliseconds(in_process_seconds),
                str(to_algorithm),
                "",
            ),
            (
                "described, over HTTP",
                _render_milliseconds(peer_seconds),
                str(to_peer),
                to_peer.against(target) if target else "",
            ),
            ("ours, over HTTP", _render_milliseconds(our_seconds), "", ""),
        ),
        _NOTE.format(rounds=rounds, memory=memory),
    )


def _take_turns(searches: list[Search], rounds: int) -> list[list[float]]:
    """The seconds of every round, for each."""
    seconds_by_search: list[list[float]] = [[] for _ in searches]
    for turn in range(rounds + _WARM_UP_ROUNDS):
        for number, search in enumerate(searches):
            query = f"question {turn} about cycle parking at junctions"
            started = time.perf_counter()
            answer = search(query)
            ended = time.perf_counter()
            assert _read_body(answer)["results_count"] == 10
            if turn >= _WARM_UP_ROUNDS:
                seconds_by_search[number].append(ended - started)
    return seconds_by_search


def _search_over_http(url: str) -> Search:
    http_client = httpx2.Client(base_url=url, timeout=60, trust_env=False)

    def search(query: str) -> httpx2.Response:
        message = call_tool("search_policy", {"query": query, "effective_date": _DAY})
        return http_client.post(
            "/mcp", content=message.encode(MODERN), headers={**POST, **message.headers(MODERN)}
        )

    return search


def _read_body(answer: Any) -> Any:
    """What was found; of an HTTP answer, the structured content of its one message."""
    if isinstance(answer, dict):
        return answer
    (line,) = [line for line in answer.text.splitlines() if "structuredContent" in line]
    return json.loads(line.removeprefix("data: "))["result"]["structuredContent"]


@contextmanager
def _run_peer(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.policy.peer", str(folder), str(MODELS)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


async def _fill_stores(folder: Path, described_search: DescribedSearch, chunks: int) -> None:
    """The same chunks in both; the registry says the same of them."""
    store = ChunkStore(folder / "chroma")
    collection = store.open_collection(CHUNK_COLLECTION_NAME)
    collection.claim_embedding(described_search.embedder.identity)
    async with open_key_values(None, folder / "registry") as client:
        await check_room_id(client, folder / "room")
        registry = PolicyRegistry(client)
        for policy, revision in _make_revisions(chunks // (POLICIES * REVISIONS)):
            if revision.effective_from.year == 2017:
                await registry.create_policy(policy)
            await registry.change_revisions(policy.source, lambda before, new=revision: [new])
            new_chunks = _make_chunks(policy, revision)
            collection.upsert_chunks(new_chunks)
            described_search.collection.upsert(
                ids=new_chunks.ids,
                documents=new_chunks.texts,
                metadatas=[dict(metadata) for metadata in new_chunks.metadatas],
                embeddings=new_chunks.vectors,
            )
    store.close()


def _make_revisions(chunk_count: int) -> Iterator[tuple[Policy, Revision]]:
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
            is_last = year == 2016 + REVISIONS
            yield (
                policy,
                Revision(
                    revision_id=f"rev_{policy.source}_{year}_01",
                    source=policy.source,
                    version_label=str(year),
                    effective_from=date(year, 1, 1),
                    effective_to=None if is_last else date(year, 12, 31),
                    status=RevisionStatus.ACTIVE if is_last else RevisionStatus.SUPERSEDED,
                    chunk_count=chunk_count,
                    created_at=now,
                ),
            )


def _make_chunks(policy: Policy, revision: Revision) -> Chunks:
    generator = np.random.default_rng(abs(hash(revision.revision_id)) % 2**32)
    vectors = generator.standard_normal((revision.chunk_count, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    described_metadata = build_registry_metadata(policy, revision, revision.effective_to)
    numbers = range(revision.chunk_count)
    return Chunks(
        [format_chunk_id(revision, f"Para {number}", number) for number in numbers],
        [
            f"Paragraph {number} of {revision.revision_id}. " + "Some words. " * 40
            for number in numbers
        ],
        [
            {
                **described_metadata,
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


def _render_milliseconds(seconds: list[float]) -> str:
    return f"{1000 * median(seconds):.1f}"
