"""A differential machine: any sequence of the same commands, and both engines answer alike.

Policies, documents, keys and jobs; federal records are in federal/test_shared_machine.py. Answers
of searches are compared as sets with their scores: of equals either may come first.
"""

import random
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from readingroom.bases.documents.models import (
    ApplicationOverview,
    ListIngestedDocuments,
    RemoveDocument,
    SetApplication,
)
from readingroom.bases.policy.admin_models import RevisionPatch
from readingroom.bases.policy.models import (
    ListPolicyRevisions,
    PolicySnapshot,
    RemovePolicyRevision,
    SearchPolicy,
)
from readingroom.engine.shared import counts
from readingroom.storage.jobs.store import MAX_SILENT_SECONDS, JobStore
from readingroom.storage.keys import KeyRing
from readingroom.storage.postgres.database import open_database
from readingroom.storage.postgres.keys import SharedKeyRing
from readingroom.storage.postgres.state import SharedJobStore
from tests.support.differential import WORDS, Sides, choose_seeds, make_folders, make_text
from tests.support.documents.base import PLAIN as PLAIN_DOCUMENTS
from tests.support.documents.base import Desk, open_documents_base
from tests.support.policy.base import PLAIN, PolicyLibrary, open_library, plain
from tests.support.postgres import PostgresServer, make_database

pytestmark = pytest.mark.anyio

_FIRST_DAY = date(2020, 1, 1)
_MODES = ("lexical", "semantic", "hybrid")


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    with make_database(postgres) as url:
        yield url


@pytest.fixture(autouse=True)
def fresh_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """How common words are is read for every search, and not believed for a second."""
    monkeypatch.setattr(counts, "_COUNTS_CACHE_SECONDS", -1.0)
    monkeypatch.setattr(counts, "_PASSING_COUNT_CACHE_SECONDS", -1.0)


def _list_hit_values(hits: Any, *fields: str) -> list[Any]:
    """What was found, in an order that equal scores do not change."""
    told = [hit.model_dump(mode="json") for hit in hits]
    return sorted(([hit[name] for name in fields] for hit in told), key=lambda hit: hit[:2])


# --- policies ---


@pytest.mark.parametrize("seed", choose_seeds(1, 25))
async def test_policies(seed: int, url: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    embedded, shared = make_folders(tmp_path, url)
    async with open_library(embedded, **PLAIN) as one, open_library(shared, **PLAIN) as other:
        sides = Sides(one, other, str(embedded), str(shared))
        for source in ("ONE", "TWO"):
            for library in sides.both:
                await library.add(source)
        sources: list[str] = []
        for step in range(14):
            await _change_policy(sides, chance, sources, step)
            await _ask_policies(sides, chance)


async def _change_policy(
    sides: Sides[PolicyLibrary], chance: random.Random, sources: list[str], step: int
) -> None:
    start = _FIRST_DAY + timedelta(days=chance.randrange(60))
    end = start + timedelta(days=chance.randrange(20)) if chance.random() < 0.4 else None
    kind = chance.choice(("revise", "revise", "amend", "delete", "remove"))
    if kind == "revise" or not sides.made[0]:
        source = chance.choice(("ONE", "TWO"))
        content = plain(make_text(chance), make_text(chance))
        days = (start.isoformat(), end.isoformat() if end else None)
        before = len(sides.made[0])
        await sides.make(
            f"revise {source} {days}",
            lambda library: library.revise(source, f"Label {step}", *days, content),
        )
        sources += [source] * (len(sides.made[0]) - before)
        return
    number = chance.randrange(len(sides.made[0]))
    source = sources[number]
    if kind == "amend":
        patch = RevisionPatch(effective_from=start, effective_to=end)
        await sides.run_on_both(
            f"amend {number} {start} {end}",
            lambda library, made: library.admin.amend_revision(source, made(number), patch),
        )
    elif kind == "delete":
        await sides.run_on_both(
            f"delete {number}",
            lambda library, made: library.admin.delete_revision(source, made(number)),
        )
    else:
        await sides.run_on_both(
            f"remove {number}",
            lambda library, made: library.service.remove_revision_chunks(
                RemovePolicyRevision(source=source, revision_id=made(number))
            ),
        )


async def _ask_policies(sides: Sides[PolicyLibrary], chance: random.Random) -> None:
    day = (_FIRST_DAY + timedelta(days=chance.randrange(80))).isoformat()
    question = SearchPolicy(
        query=" ".join(chance.sample(WORDS, 3)),
        mode=chance.choice(_MODES),
        effective_date=chance.choice((None, day)),
        sources=chance.choice((None, ["ONE"])),
    )

    async def search(library: PolicyLibrary, made: Any) -> Any:
        hits = await library.service.search(question)
        return _list_hit_values(hits.results, "version_label", "text", "score")

    await sides.run_on_both(f"search {question}", search)
    await sides.run_on_both(
        f"snapshot {day}",
        lambda library, made: library.service.get_snapshot(PolicySnapshot(date=day)),
    )
    for source in ("ONE", "TWO"):
        await sides.run_on_both(
            f"list {source}",
            lambda library, made, source=source: library.service.list_revisions(
                ListPolicyRevisions(source=source)
            ),
        )


# --- documents ---


@pytest.mark.parametrize("seed", choose_seeds(1, 25))
async def test_documents(seed: int, url: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    embedded, shared = make_folders(tmp_path, url)
    async with (
        open_documents_base(embedded, **PLAIN_DOCUMENTS) as one,
        open_documents_base(shared, **PLAIN_DOCUMENTS) as other,
    ):
        sides = Sides(one, other, str(embedded), str(shared))
        for step in range(12):
            await _change_documents(sides, chance, step)
            await _ask_documents(sides, chance)


_REFERENCES = ("25/00001/F", "25/00002/F")


async def _change_documents(sides: Sides[Desk], chance: random.Random, step: int) -> None:
    kind = chance.choice(("ingest", "ingest", "ingest", "remove", "describe"))
    reference = chance.choice(_REFERENCES)
    if kind == "ingest" or not sides.made[0]:
        content = plain(make_text(chance), make_text(chance))
        name = f"{chance.choice(('letter', 'plan'))} {step % 4}.pdf"

        async def ingest(base: Desk) -> str:
            return str((await base.ingest(name, content, reference)).document_id)

        await sides.make(f"ingest {name} {reference}", ingest)
    elif kind == "remove":
        number = chance.randrange(len(sides.made[0]))
        await sides.run_on_both(
            f"remove {number}",
            lambda base, made: base.service.remove_document(
                RemoveDocument(document_id=made(number))
            ),
        )
    else:
        described = SetApplication(reference=reference, address=make_text(chance, 3))
        await sides.run_on_both(
            f"describe {reference}", lambda base, made: base.service.set_application(described)
        )


async def _ask_documents(sides: Sides[Desk], chance: random.Random) -> None:
    query, mode = " ".join(chance.sample(WORDS, 3)), chance.choice(_MODES)
    reference = chance.choice((None, *_REFERENCES))

    async def search(base: Desk, made: Any) -> Any:
        hits = await base.search(query, mode=mode, application_ref=reference)
        return _list_hit_values(hits.results, "citation", "text", "score", "relevance_score")

    await sides.run_on_both(f"search {query} {mode} {reference}", search)
    for listed in _REFERENCES:
        await sides.run_on_both(
            f"list {listed}",
            lambda base, made, listed=listed: base.service.list_documents(
                ListIngestedDocuments(application_ref=listed)
            ),
        )
        await sides.run_on_both(
            f"overview {listed}",
            lambda base, made, listed=listed: base.service.get_overview(
                ApplicationOverview(application_ref=listed)
            ),
        )


# --- keys and jobs ---


@pytest.mark.parametrize("seed", choose_seeds(2, 60))
async def test_keys(seed: int, url: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    shared_ring = SharedKeyRing(tmp_path / "shared", open_database(url))
    sides = Sides[KeyRing](KeyRing(tmp_path / "embedded"), shared_ring)
    try:
        for _ in range(30):
            await _use_keys(sides, chance)
    finally:
        shared_ring.close()


async def _use_keys(sides: Sides[KeyRing], chance: random.Random) -> None:
    name = chance.choice(("ann", "Ann", "bob", "é", "a b", "x" * 80, ""))
    kind = chance.choice(("add", "add", "subject", "revoke", "holder"))
    if kind == "add":
        read_only = chance.random() < 0.5

        async def add(ring: KeyRing) -> str:
            return ring.add_key(name, read_only=read_only)

        await sides.make(f"add {name!r}", add)
    elif kind == "subject":

        async def add_subject(ring: KeyRing, made: Any) -> Any:
            return ring.add_subject(name, f"subject of {name}")

        await sides.run_on_both(f"subject {name!r}", add_subject)
    elif kind == "revoke":

        async def revoke(ring: KeyRing, made: Any) -> Any:
            return ring.revoke_key(name)

        await sides.run_on_both(f"revoke {name!r}", revoke)
    elif sides.made[0]:
        number = chance.randrange(len(sides.made[0]))

        async def find(ring: KeyRing, made: Any) -> Any:
            holder = ring.find_holder(made(number).encode())
            return holder and [holder.name, holder.read_only, holder.operator]

        await sides.run_on_both(f"holder {number}", find)

    async def list_keys(ring: KeyRing, made: Any) -> Any:
        return [[key.name, key.read_only, key.operator] for key in ring.list_keys()]

    await sides.run_on_both("list", list_keys)


@pytest.mark.parametrize("seed", choose_seeds(2, 60))
async def test_jobs(seed: int, url: str, tmp_path: Path) -> None:
    chance = random.Random(seed)
    seconds = [1_000.0]
    sides = Sides[JobStore](
        JobStore(tmp_path / "embedded", lambda: seconds[0]),
        SharedJobStore(tmp_path / "shared", open_database(url), lambda: seconds[0]),
    )
    for _ in range(40):
        seconds[0] += chance.choice((1.0, MAX_SILENT_SECONDS + 1))
        await _use_jobs(sides, chance)


async def _use_jobs(sides: Sides[JobStore], chance: random.Random) -> None:
    caller, worker = chance.choice(("key:ann", "ip:1")), chance.choice(("one", "two"))
    kind = chance.choice(("add", "add", "claim", "claim", "report", "beat", "end", "fail", "back"))
    if kind == "add" or not sides.made[0]:

        async def add(jobs: JobStore) -> str:
            return jobs.add_job("toy.count", "Count \0", {"text": "a\0b"}, caller).id

        await sides.make(f"add {caller}", add)
        return
    number = chance.randrange(len(sides.made[0]))

    async def act(jobs: JobStore, made: Any) -> Any:
        job_id = made(number)
        if kind == "claim":
            job = jobs.claim_job(("toy.count",), worker)
            return job and [job.id, job.attempts, job.caller, job.state]
        if kind == "report":
            return jobs.report_progress(job_id, worker, 40.5, "half way")
        if kind == "beat":
            return jobs.record_heartbeat(job_id, worker)
        if kind == "end":
            return jobs.finish_job(job_id, worker, {"rows": [["a", 1]]})
        if kind == "fail":
            return jobs.fail_job(job_id, worker, "no room")
        return jobs.put_job_back(job_id, worker)

    await sides.run_on_both(f"{kind} {number} by {worker}", act)

    async def list_jobs(jobs: JobStore, made: Any) -> Any:
        return [
            [job.id, job.state, job.percent, job.phase, job.error, job.attempts, job.ended_at]
            for job in jobs.list_newest_jobs()
        ]

    await sides.run_on_both("list", list_jobs)
