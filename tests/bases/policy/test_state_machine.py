"""Any sequence of changes, crashes and restarts, against a model that is too simple to be wrong.

The base runs in a process of its own, on a real Valkey and a real ChromaDB, and its crashes are
`kill -9`. Only what reads PDFs and the embedding model are stand-ins.
"""

import copy
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from readingroom.bases.policy.admin_models import RevisionPatch
from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.errors import (
    RevisionBusy,
    RevisionNotFound,
    RevisionOverlap,
    SectionNotFound,
    SoleRevision,
)
from readingroom.bases.policy.models import (
    GetPolicySection,
    IngestPolicyRevision,
    PolicySnapshot,
    RemovePolicyRevision,
    SearchPolicy,
)
from readingroom.core.progress import no_progress
from readingroom.ingest.errors import NoContent
from tests.requirements import requirement
from tests.support.effort import choose_example_count
from tests.support.policy.base import BROKEN, PolicyLibrary, plain
from tests.support.policy.room import Killed, Room
from tests.support.policy.victim import STEPS

FIRST = date(2024, 1, 20)
DAYS = 24
LONGEST = 8
STEPS_OF = {
    "create": STEPS["supersede"],
    "ingest": STEPS["reindex"],
    "amend": STEPS["redate"],
    "delete": STEPS["delete"],
    "remove": STEPS["remove"],
}


def make_day(number: int) -> date:
    return FIRST + timedelta(days=number)


# --- changes, and how the base makes them ---


@dataclass(frozen=True)
class Change:
    """One thing a caller may want, its days counted from FIRST."""

    kind: str
    id: str = ""
    start: int = 0
    end: int | None = None
    readable: bool = True
    """Whether its file can be read; a revision whose file cannot is `failed`."""
    waits: bool = False
    """Whether it stays `processing`, as an upload does until its turn has come."""
    text: str = ""


def interleave(changes: Sequence[Change]) -> Iterator[tuple[Change, ...]]:
    """Every order of the steps of these: a creation is registered, and then its file is read."""
    steps = [
        change
        for change in changes
        for _ in range(2 if change.kind == "create" and not change.waits else 1)
    ]
    # One after the other first, which is what is found most often.
    yield from dict.fromkeys(itertools.permutations(steps))


async def make(library: PolicyLibrary, source: str, change: Change) -> bool | None:
    """Whether it was made: None where the revision was busy, and the caller may ask again."""
    try:
        await MAKING[change.kind](library, source, change)
    except (RevisionOverlap, RevisionNotFound, SoleRevision):
        return False
    except RevisionBusy:
        return None
    except NoContent:
        return True  # the revision now says that it failed
    return True


async def make_at_once(
    library: PolicyLibrary, source: str, changes: Sequence[Change]
) -> list[bool | None]:
    made: list[bool | None] = [None] * len(changes)

    async def one(number: int) -> None:
        made[number] = await make(library, source, changes[number])

    async with anyio.create_task_group() as tasks:
        for number in range(len(changes)):
            tasks.start_soon(one, number)
    return made


def _file(change: Change) -> bytes:
    return plain(f"This is {change.text}.", "Homes.", "Roads.") if change.readable else BROKEN


def _end(change: Change) -> date | None:
    return None if change.end is None else make_day(change.end)


async def _create(library: PolicyLibrary, source: str, change: Change) -> None:
    way = library.register if change.waits else library.revise
    last = _end(change)
    days = make_day(change.start).isoformat(), last.isoformat() if last else None
    await way(source, change.text, *days, _file(change))


async def _ingest(library: PolicyLibrary, source: str, change: Change) -> None:
    path = library.inbox(f"{change.text}.pdf", _file(change))
    question = IngestPolicyRevision(
        source=source, revision_id=change.id, file_path=path, reindex=True
    )
    await library.service.ingest_revision(question, no_progress)


async def _amend(library: PolicyLibrary, source: str, change: Change) -> None:
    patch = RevisionPatch(effective_from=make_day(change.start), effective_to=_end(change))
    await library.admin.amend_revision(source, change.id, patch)


async def _delete(library: PolicyLibrary, source: str, change: Change) -> None:
    await library.admin.delete_revision(source, change.id)


async def _remove(library: PolicyLibrary, source: str, change: Change) -> None:
    await library.service.remove_revision_chunks(
        RemovePolicyRevision(source=source, revision_id=change.id)
    )


MAKING = {
    "create": _create,
    "ingest": _ingest,
    "amend": _amend,
    "delete": _delete,
    "remove": _remove,
}


# --- the model ---


class Entry:
    """A revision as the model knows it."""

    def __init__(self, start: int, end: int | None, text: str, readable: bool) -> None:
        self.start, self.recorded, self.real = start, end, end
        self.text, self.readable = text, readable
        self.closer: Entry | None = None
        self.can_be_in_force = self.failed = self.has_chunks = False

    @property
    def waits(self) -> bool:
        return not self.can_be_in_force and not self.failed

    def days(self) -> set[int]:
        return set(range(self.start, DAYS * 3 if self.recorded is None else self.recorded + 1))


class Model:
    """Which revision is in force on a day, found by looking at every one of them."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.entries: dict[str, Entry] = {}

    def on(self, number: int) -> str | None:
        begun = [
            (e.start, id)
            for id, e in self.entries.items()
            if e.can_be_in_force and e.start <= number
        ]
        if not begun:
            return None
        last = max(begun)[1]
        real = self.entries[last].real
        return last if real is None or number <= real else None

    def first(self) -> int:
        return min((e.start for e in self.entries.values()), default=DAYS)

    def latest(self) -> str | None:
        counting = [(e.start, id) for id, e in self.entries.items() if e.can_be_in_force]
        return max(counting)[1] if counting else None

    def make(self, change: Change) -> bool:
        """Make a change, or refuse it and stay as it is."""
        if change.kind == "create":
            return self.create(change)
        if change.id not in self.entries:
            return change.kind == "remove"  # there is nothing to remove, which is no error
        return bool(getattr(self, change.kind)(change))

    def create(self, change: Change) -> bool:
        if not self.give_way(change, "", closes_open=True):
            return False
        closed = self.closed_by(change.start)
        if self.collides(change, self.entries.values(), closed):
            return False
        new = Entry(change.start, change.end, change.text, change.readable)
        for one in closed:
            one.recorded, one.closer = change.start - 1, new
        self.entries[self.new_id(change.start)] = new
        if not change.waits:
            self.read(new)
        return True

    def give_way(self, change: Change, id: str, closes_open: bool) -> bool:
        """Take away what failed on the wanted days, unless something else is in the way too."""
        wanted = Entry(change.start, change.end, "", True).days()
        trial = copy.deepcopy(self)
        failed = [
            name
            for name, e in self.entries.items()
            if e.failed
            and name != id
            and wanted & e.days()
            and not (closes_open and e.recorded is None and e.start < change.start)
        ]
        for name in failed:
            trial.delete(Change("delete", id=name))
        but = trial.closed_by(change.start) if closes_open else [trial.entries[id]]
        if failed and trial.collides(change, trial.entries.values(), but):
            return False
        for name in failed:
            self.delete(Change("delete", id=name))
        return True

    def new_id(self, start: int) -> str:
        month = f"rev_{self.source}_{make_day(start):%Y_%m}"
        exact = f"{month}_{make_day(start):%d}"
        names = [month, exact, *(f"{exact}_{number}" for number in range(2, 99))]
        return next(name for name in names if name not in self.entries)

    def closed_by(self, start: int) -> list[Entry]:
        return [e for e in self.entries.values() if e.recorded is None and e.start < start]

    def collides(self, change: Change, others: Iterable[Entry], but: Sequence[Entry] = ()) -> bool:
        wanted = Entry(change.start, change.end, "", True).days()
        return any(wanted & e.days() for e in others if e not in but)

    def read(self, entry: Entry) -> None:
        """Its file is read: it counts, and what its creation closed is closed from now on."""
        if not entry.readable:
            entry.failed = not entry.can_be_in_force
            return
        entry.can_be_in_force, entry.failed, entry.has_chunks = True, False, True
        for one in self.entries.values():
            if one.closer is entry:
                one.real = one.recorded

    def ingest(self, change: Change) -> bool:
        entry = self.entries[change.id]
        if change.readable:
            entry.readable, entry.text = True, change.text
            self.read(entry)
        elif not entry.can_be_in_force:
            entry.failed = True
        return True

    def amend(self, change: Change) -> bool:
        entry = self.entries[change.id]
        if not self.give_way(change, change.id, closes_open=False):
            return False
        if self.collides(change, self.entries.values(), [entry]):
            return False
        entry.start, entry.recorded, entry.real = change.start, change.end, change.end
        entry.closer = None
        return True

    def delete(self, change: Change) -> bool:
        if change.id == self.latest():
            return False
        gone = self.entries.pop(change.id)
        for one in [e for e in self.entries.values() if e.closer is gone]:
            one.closer = None
            if not gone.can_be_in_force:
                later = [e for e in self.entries.values() if e.start > one.start]
                one.closer = min(later, key=lambda e: e.start, default=None)
                one.recorded = one.closer.start - 1 if one.closer else None
                one.real = one.recorded if one.closer and one.closer.can_be_in_force else None
        return True

    def remove(self, change: Change) -> bool:
        self.entries[change.id].has_chunks = False
        return True

    def restarted(self) -> "Model":
        """What was waiting has been read."""
        for entry in self.entries.values():
            if entry.waits:
                self.read(entry)
        return self

    def itself(self) -> "Model":
        return self

    def after(self, changes: Iterable[Change]) -> tuple["Model", list[bool]]:
        copied = copy.deepcopy(self)
        return copied, [copied.make(change) for change in changes]

    def after_steps(self, steps: Sequence[Change]) -> tuple["Model", dict[Change, bool]]:
        """As `after`, where the second time that a creation is named its file is read.

        In between another may delete it, since a retry has the id of what failed before it.
        """
        copied = copy.deepcopy(self)
        outcomes: dict[Change, bool] = {}
        created: dict[Change, Entry] = {}
        for change in steps:
            if change in created:
                outcomes[change] = created[change] in copied.entries.values()
                if outcomes[change]:
                    copied.read(created[change])
            elif change not in outcomes:
                registered = replace(change, waits=True)
                outcomes[change] = copied.make(registered)
                if change.kind == "create" and outcomes[change]:
                    created[change] = list(copied.entries.values())[-1]
        return copied, outcomes

    def state(self) -> dict[str, Any]:
        names = {entry: id for id, entry in self.entries.items()}
        return {
            id: (
                make_day(e.start),
                None if e.recorded is None else make_day(e.recorded),
                names[e.closer] if e.closer else None,
                self.status(id),
                e.text if e.has_chunks else None,
            )
            for id, e in self.entries.items()
        }

    def status(self, id: str) -> str:
        entry = self.entries[id]
        if entry.can_be_in_force:
            return "active" if id == self.latest() else "superseded"
        return "failed" if entry.failed else "processing"


# --- what the base says of itself ---


async def read_state(library: PolicyLibrary, source: str) -> dict[str, Any]:
    """Every revision: its days, who closed it, its status, and which text its chunks hold."""
    found = {}
    for one in await library.service.registry.get_revisions(source):
        chunks = await library.service.store.get_chunks(source, one.revision_id)
        text = chunks[0].text.removeprefix("This is ").removesuffix(".") if chunks else None
        days = one.effective_from, one.effective_to, one.closed_by
        found[one.revision_id] = (*days, str(one.status), text)
    return found


async def survey(
    library: PolicyLibrary, source: str, days: Sequence[date]
) -> list[tuple[Any, ...]]:
    """What each way of asking answers for each day: the resolver, a snapshot, a search, and a
    section asked for on that day.
    """
    service, now = library.service, library.service.get_now
    answers = []
    for one in days:
        resolved = await service.resolver.resolve_for_policy(source, one)
        snapshot = await service.get_snapshot(PolicySnapshot(date=one.isoformat()))
        (entry,) = [policy for policy in snapshot.policies if policy.source == source]
        hits = await service.search(
            SearchPolicy(query="this is", sources=[source], effective_date=one.isoformat())
        )
        service.get_now = lambda on=one: datetime.combine(on, time(12), UTC)
        answers.append(
            (
                resolved.revision.revision_id if resolved.revision else None,
                entry.revision.revision_id if entry.revision else None,
                sorted({hit.revision_id for hit in hits.results}),
                await _section(library, source),
            )
        )
        service.get_now = now
    return answers


async def _section(library: PolicyLibrary, source: str) -> str | None:
    try:
        asked = GetPolicySection(source=source, section_ref="Para 1")
        return (await library.service.get_section(asked)).revision_id
    except (SectionNotFound, RevisionNotFound):
        return None


UNREAD = "it is processing, but no process is reading its file"


async def list_complaints(library: PolicyLibrary) -> list[str]:
    diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()
    return [f"{one.subject}: {one.problem}" for one in diagnosis.complaints]


async def add(library: PolicyLibrary, source: str) -> None:
    await library.add(source)


# --- the machine ---

STARTS = st.integers(0, DAYS - 1)
KINDS = (*["create"] * 3, *["ingest", "amend"] * 2, "delete", "remove")


@dataclass(frozen=True)
class Drawn:
    """A change as it is drawn."""

    kind: str
    which: int
    start: int
    length: int | None
    readable: bool
    waits: bool


DRAWN = st.builds(
    Drawn,
    kind=st.sampled_from(KINDS),
    which=st.integers(0, 11),
    start=STARTS,
    length=st.none() | st.integers(0, LONGEST),
    readable=st.sampled_from([True, True, True, False]),
    waits=st.sampled_from([False, False, True]),
)


class PolicyMachine(RuleBasedStateMachine):
    """Rules change the base and the model alike; after each, they agree on every day.

    Each example has a policy of its own on one base, which an example that fails takes with it.
    """

    room: ClassVar[Room | None] = None
    folders: ClassVar[list[tempfile.TemporaryDirectory[str]]] = []
    numbers: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        if PolicyMachine.room is None:
            self.folders.append(tempfile.TemporaryDirectory())
            PolicyMachine.room = Room(Path(self.folders[-1].name) / "policy")
        self.base = PolicyMachine.room
        PolicyMachine.room = None  # given back when the example has ended well
        self.source = f"P{next(self.numbers)}"
        self.texts = (f"text{number}" for number in itertools.count())
        self.model = Model(self.source)
        self.base.ask(add, self.source)

    def teardown(self) -> None:
        self.compare(self.every_day())
        PolicyMachine.room = self.base

    def every_day(self) -> range:
        """From the day before the first to days after all that end."""
        return range(min(0, self.model.first()) - 1, DAYS + LONGEST + 1)

    def changes(self, drawn: Sequence[Drawn]) -> list[Change]:
        """What was drawn, of the revisions there are. Nothing may be drawn that depends on those:
        who comes first of several writers is chance, and Hypothesis must be able to repeat itself.
        """
        known = sorted(self.model.entries)
        return [
            Change(
                kind=one.kind,
                id=known[one.which % len(known)] if known else "rev_none",
                start=one.start,
                end=None if one.length is None else one.start + one.length,
                readable=one.readable,
                waits=one.waits,
                text=next(self.texts),
            )
            for one in drawn
        ]

    def become(self, candidates: Iterable[Model]) -> None:
        """One of these must be what the base is now; the model goes on as that one."""
        found = self.base.ask(read_state, self.source)
        tried = []
        for candidate in candidates:
            if candidate.state() == found:
                self.model = candidate
                return
            tried.append(candidate.state())
        raise AssertionError(f"the base is {found}, which is none of {tried}")

    @rule(drawn=DRAWN)
    def change(self, drawn: Drawn) -> None:
        """One writer: the base makes and refuses what the model does."""
        (change,) = self.changes([drawn])
        made = self.base.ask(make, self.source, change)
        wanted, (expected,) = self.model.after([change])
        assert made == expected, change
        self.become([wanted])

    @rule(start=STARTS, length=st.integers(0, LONGEST))
    def insert_history(self, start: int, length: int) -> None:
        """A revision whose days all lie before the first."""
        last = min(start, self.model.first()) - 1
        change = Change("create", start=last - length, end=last, text=next(self.texts))
        assert self.base.ask(make, self.source, change) is True
        self.become([self.model.after([change])[0]])

    @rule(drawn=st.lists(DRAWN, min_size=2, max_size=3))
    def change_at_once(self, drawn: list[Drawn]) -> None:
        """Several writers: what they did is what they would have done in some order."""
        changes = self.changes(drawn)
        made = self.base.ask(make_at_once, self.source, changes)
        answered = {
            change: done for change, done in zip(changes, made, strict=True) if done is not None
        }
        # Busy is a creation too whose file another is reading: it is registered by then.
        registered = [
            replace(change, waits=True)
            for change, done in zip(changes, made, strict=True)
            if done is None and change.kind == "create"
        ]
        self.become(
            wanted
            for many in range(len(registered) + 1)
            for some in itertools.combinations(registered, many)
            for steps in interleave([*answered, *some])
            for wanted, outcomes in [self.model.after_steps(steps)]
            if outcomes.items() >= answered.items()
        )

    @rule(drawn=st.lists(DRAWN, min_size=1, max_size=2), step=st.integers(0, 23))
    def be_killed(self, drawn: list[Drawn], step: int) -> None:
        """After it each change has been made, whole, or there is no trace of it."""
        changes = self.changes(drawn)
        steps = [name for change in changes for name in STEPS_OF[change.kind]]
        try:
            kill_at = steps[step % len(steps)]
            self.base.ask(make_at_once, self.source, changes, kill_at=kill_at)
        except Killed:
            self.base.start()
            whole = Model.restarted
        else:  # refused before it came so far
            whole = Model.itself
        orders = (
            steps
            for many in range(len(changes), -1, -1)
            for some in itertools.combinations(changes, many)
            for steps in interleave(some)
        )
        self.become(whole(self.model.after_steps(steps)[0]) for steps in orders)

    @rule()
    def restart(self) -> None:
        """No revision stays in `processing`."""
        if not any(entry.waits for entry in self.model.entries.values()):
            return  # it would show nothing that a kill does not show
        self.base.stop()
        self.base.start()
        self.become([self.model.restarted()])

    @invariant()
    def the_days_around_every_boundary_agree(self) -> None:
        self.compare(
            [
                number
                for number in self.every_day()
                if len({self.model.on(number + near) for near in (-1, 0, 1)}) > 1
            ]
        )

    def compare(self, numbers: Sequence[int]) -> None:
        found = self.base.ask(survey, self.source, [make_day(number) for number in numbers])
        for number, answers in zip(numbers, found, strict=True):
            wanted = self.model.on(number)
            told = wanted if wanted and self.model.entries[wanted].has_chunks else None
            expected = (wanted, wanted, [told] if told else [], told)
            assert answers == expected, (make_day(number), answers, expected)
        # Those of earlier examples may wait too.
        complaints = {
            complaint
            for complaint in self.base.ask(list_complaints)
            if complaint.startswith(f"rev_{self.source}_") or not complaint.endswith(UNREAD)
        }
        assert complaints == {
            f"{id}: {UNREAD}" for id, entry in self.model.entries.items() if entry.waits
        }


PolicyMachine.TestCase.settings = settings(
    max_examples=choose_example_count(full=8, quick=3),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@requirement("policy:NFR-001", "policy:NFR-003", "policy:FR-007:no-void")
@pytest.mark.slow
class TestAnySequence(PolicyMachine.TestCase):  # type: ignore[name-defined,misc]
    """Hypothesis looks for a sequence after which the base and the model disagree."""

    @classmethod
    def tearDownClass(cls) -> None:
        if PolicyMachine.room is not None:
            PolicyMachine.room.stop()
        for folder in PolicyMachine.folders:
            folder.cleanup()
