"""Any sequence of changes, crashes and restarts, against a model that is too simple to be wrong."""

import contextlib
import tempfile
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from readingroom.bases.policy import timeline
from readingroom.bases.policy.checkup import Checkup
from readingroom.bases.policy.models import GetPolicySection, RevisionPatch, SearchPolicy
from readingroom.core.errors import (
    RevisionOverlap,
    SectionNotFound,
    SoleRevision,
)
from tests.policies import PLAIN, Shelf, plain, shelf, unheard
from tests.requirements import requirement

FIRST = date(2024, 1, 1)
DAYS = 40
STEPS = st.sampled_from(
    [
        *("create:begin", "create:file", "create:registry", "ingest:begin", "ingest:chunks"),
        *("ingest:surplus", "ingest:file", "ingest:registry", "ingest:dates"),
        *("amend:registry", "delete:begin", "delete:registry", "delete:chunks", "delete:file"),
    ]
)


class Crash(Exception):
    """The process is gone. Nothing in a change catches what it did not foresee."""


class Entry:
    """A revision as the model knows it, its days counted from FIRST."""

    def __init__(self, start: int, end: int | None) -> None:
        self.start, self.recorded = start, end
        self.real = end
        self.closer: Entry | None = None
        self.counts = False

    def days(self) -> set[int]:
        return set(range(self.start, DAYS * 3 if self.recorded is None else self.recorded + 1))


class Model:
    """Which revision is in force on a day, found by looking at every one of them."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def on(self, day: int) -> str | None:
        begun = [(e.start, id) for id, e in self.entries.items() if e.counts and e.start <= day]
        if not begun:
            return None
        last = max(begun)[1]
        real = self.entries[last].real
        return last if real is None or day <= real else None

    def closed_by(self, start: int) -> list[Entry]:
        return [e for e in self.entries.values() if e.recorded is None and e.start < start]

    def collides(self, start: int, end: int | None, but: str | None = None) -> bool:
        """Whether a new one shares a day with any that it does not close."""
        wanted = Entry(start, end).days()
        others = [e for id, e in self.entries.items() if id != but]
        closed = [] if but else self.closed_by(start)
        return any(wanted & e.days() for e in others if e not in closed)

    def create(self, id: str, start: int, end: int | None) -> None:
        new = Entry(start, end)
        for one in self.closed_by(start):
            one.recorded, one.closer = start - 1, new
        self.entries[id] = new

    def activate(self, id: str) -> None:
        """What its creation closed is closed from now on."""
        new = self.entries[id]
        new.counts = True
        for one in self.entries.values():
            if one.closer is new:
                one.real = one.recorded

    def delete(self, id: str) -> None:
        gone = self.entries.pop(id)
        for one in [e for e in self.entries.values() if e.closer is gone]:
            one.closer = None
            if not gone.counts:
                later = [e for e in self.entries.values() if e.start > one.start]
                one.closer = min(later, key=lambda e: e.start, default=None)
                one.recorded = one.closer.start - 1 if one.closer else None
                one.real = one.recorded if one.closer and one.closer.counts else None

    def amend(self, id: str, start: int, end: int | None) -> None:
        one = self.entries[id]
        one.start, one.recorded, one.real, one.closer = start, end, end, None


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


class PolicyMachine(RuleBasedStateMachine):
    """Rules change the base and the model alike; after each, they agree on every day."""

    def __init__(self) -> None:
        super().__init__()
        self.held = contextlib.ExitStack()
        self.portal: BlockingPortal = self.held.enter_context(start_blocking_portal())
        folder = self.held.enter_context(tempfile.TemporaryDirectory())
        self.folder = Path(folder) / "policy"
        self.model = Model()
        self.crash_at: str | None = None
        self.open()
        self.call(self.library.add, "NPPF")

    def open(self) -> None:
        context = shelf(self.folder, at=self.at, **PLAIN)
        self.running = self.portal.wrap_async_context_manager(context)
        self.library: Shelf = self.running.__enter__()
        self.call(self.library.service.jobs.idle)

    def close(self) -> None:
        self.running.__exit__(None, None, None)

    def teardown(self) -> None:
        self.close()
        self.held.close()

    def at(self, name: str) -> None:
        if name == self.crash_at:
            self.crash_at = None
            raise Crash(name)

    def call(self, function: Any, *args: Any) -> Any:
        return self.portal.call(function, *args)

    def text(self, label: str) -> bytes:
        return plain(f"This is revision {label}.", "Homes.", "Roads.")

    # --- changes ---

    @rule(
        start=st.integers(0, DAYS - 1), length=st.none() | st.integers(0, 12), waits=st.booleans()
    )
    def create(self, start: int, length: int | None, waits: bool) -> None:
        end = None if length is None else start + length
        label = f"from{start}"
        way = self.library.register if waits else self.library.revise
        last = day(end).isoformat() if end is not None else None
        try:
            id = self.call(way, "NPPF", label, day(start).isoformat(), last, self.text(label))
        except RevisionOverlap:
            assert self.model.collides(start, end)
            return
        assert not self.model.collides(start, end)
        self.model.create(id, start, end)
        if not waits:
            self.model.activate(id)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def ingest_or_reindex(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.entries)))
        self.call(self.ingest, id)
        self.model.activate(id)

    async def ingest(self, id: str) -> None:
        service = self.library.service
        (revision,) = [r for r in await service.registry.revisions("NPPF") if r.revision_id == id]
        with service.ingestion.own_files().open(str(service.ingestion.file_of("NPPF", id))) as file:
            await service.ingestion.ingest(revision, file, unheard)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data(), start=st.integers(0, DAYS - 1), length=st.none() | st.integers(0, 12))
    def amend(self, data: st.DataObject, start: int, length: int | None) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.entries)))
        end = None if length is None else start + length
        patch = RevisionPatch(
            effective_from=day(start), effective_to=None if end is None else day(end)
        )
        try:
            self.call(self.library.registrar.amend_revision, "NPPF", id, patch)
        except RevisionOverlap:
            assert self.model.collides(start, end, but=id)
            return
        assert not self.model.collides(start, end, but=id)
        self.model.amend(id, start, end)

    @precondition(lambda self: self.model.entries)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.entries)))
        counting = [(e.start, one) for one, e in self.model.entries.items() if e.counts]
        try:
            self.call(self.library.registrar.delete_revision, "NPPF", id)
        except SoleRevision:
            assert max(counting)[1] == id
            return
        assert not counting or max(counting)[1] != id
        self.model.delete(id)

    @rule()
    def restart(self) -> None:
        """What was waiting is ingested: no revision stays in `processing`."""
        self.close()
        self.open()
        for id in [id for id, e in self.model.entries.items() if not e.counts]:
            self.model.activate(id)

    @rule(step=STEPS, start=st.integers(0, DAYS - 1))
    def crash_while_creating(self, step: str, start: int) -> None:
        """After it, the revision is there and counts, or there is no trace of it."""
        if self.model.collides(start, None):
            return
        self.crash_at = step
        label = f"from{start}"
        known = set(self.model.entries)
        with contextlib.suppress(Crash):
            self.call(
                self.library.revise, "NPPF", label, day(start).isoformat(), None, self.text(label)
            )
        self.crash_at = None
        self.restart()
        found = self.call(self.library.service.registry.revisions, "NPPF")
        for id in {one.revision_id for one in found} - known:
            self.model.create(id, start, None)
            self.model.activate(id)

    @rule(starts=st.lists(st.integers(0, DAYS - 1), min_size=2, max_size=3, unique=True))
    def create_at_once(self, starts: list[int]) -> None:
        """Writers at the same time: in some order, each sees what those before it did."""
        known = set(self.model.entries)
        self.call(self.together, starts)
        found = self.call(self.library.service.registry.revisions, "NPPF")
        new = {one.revision_id: (one.effective_from - FIRST).days for one in found}
        # Open ones can only have come in rising order, whichever were refused.
        for id, start in sorted(new.items(), key=lambda one: one[1]):
            if id not in known:
                assert not self.model.collides(start, None)
                self.model.create(id, start, None)
                self.model.activate(id)

    async def together(self, starts: list[int]) -> None:
        async def one(start: int) -> None:
            label = f"from{start}"
            with contextlib.suppress(RevisionOverlap):
                await self.library.revise(
                    "NPPF", label, day(start).isoformat(), None, self.text(label)
                )

        async with anyio.create_task_group() as tasks:
            for start in starts:
                tasks.start_soon(one, start)

    # --- what must hold ---

    @invariant()
    def every_day_agrees(self) -> None:
        self.call(self.compare)

    async def compare(self) -> None:
        service = self.library.service
        revisions = await service.registry.revisions("NPPF")
        for number in range(-1, DAYS + 14):
            wanted = self.model.on(number)
            found = timeline.in_force(revisions, day(number))
            assert getattr(found, "revision_id", None) == wanted, (number, found)
            # Where the answer changes, everybody is asked, on both sides of the boundary.
            if {self.model.on(number - 1), self.model.on(number + 1)} != {wanted}:
                await self.compare_search(number, wanted)
        diagnosis = await Checkup(service, repair=False).diagnose()
        assert diagnosis.complaints == []

    async def compare_search(self, number: int, wanted: str | None) -> None:
        service = self.library.service
        on = day(number).isoformat()
        resolved = await service.resolver.resolve_for_policy("NPPF", day(number))
        assert (resolved.revision.revision_id if resolved.revision else None) == wanted
        hits = await service.search(SearchPolicy(query="this revision", effective_date=on))
        assert {hit.revision_id for hit in hits.results} == ({wanted} if wanted else set())
        if wanted:
            asked = GetPolicySection(source="NPPF", section_ref="Para 1", revision_id=wanted)
            try:
                section = await service.section(asked)
            except SectionNotFound as error:  # pragma: no cover - only when it fails
                raise AssertionError(f"{wanted} has no text") from error
            assert section.revision_id == wanted


PolicyMachine.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@requirement("policy:NFR-001", "policy:NFR-003", "policy:FR-007:no-void")
@pytest.mark.slow
class TestAnySequence(PolicyMachine.TestCase):  # type: ignore[name-defined,misc]
    """Hypothesis looks for a sequence after which the base and the model disagree."""
