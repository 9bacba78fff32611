"""Processes that begin one change of a policy base and kill themselves at a named step, and what a
restart finds afterwards. The tests and the benchmark share it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from readingroom.bases.policy.admin_models import PolicyPatch, RevisionPatch
from readingroom.bases.policy.doctor import PolicyDoctor
from readingroom.bases.policy.models import IngestPolicyRevision, RemovePolicyRevision, SearchPolicy
from readingroom.core.progress import no_progress
from readingroom.protocol.doctor import Complaint
from tests.support.policy.base import PLAIN, PolicyLibrary, open_library, plain
from tests.support.victim import KillAtStep, do_and_be_killed

OLD, NEW = "rev_NPPF_2023_09", "rev_NPPF_2024_12"


@dataclass(frozen=True)
class Change:
    """What is there before, what is done, and which revisions may answer for 2025 afterwards."""

    says: str
    prepare: Callable[[PolicyLibrary], Awaitable[object]]
    make: Callable[[PolicyLibrary], Awaitable[object]]
    outcomes: tuple[tuple[str, ...], ...]
    lasts_from: str
    """The step from which on a caller may have been told that it is done, so it must be kept."""
    is_kept: Callable[[PolicyLibrary], Awaitable[bool]]


def _text(label: str) -> bytes:
    return plain(f"Cycle parking follows the {label} standard.", "Homes.", "Roads.", "Trees.")


async def add_first_revision(library: PolicyLibrary) -> None:
    await library.add("NPPF", "National Planning Policy Framework")
    await library.revise("NPPF", "September 2023", "2023-09-05", content=_text("September 2023"))


async def add_second_revision(library: PolicyLibrary) -> None:
    await add_first_revision(library)
    await library.revise("NPPF", "December 2024", "2024-12-12", content=_text("December 2024"))


async def supersede(library: PolicyLibrary) -> None:
    await library.revise("NPPF", "December 2024", "2024-12-12", content=_text("December 2024"))


async def reindex(library: PolicyLibrary) -> None:
    """With a file of other, and fewer, chunks."""
    path = library.inbox("other.pdf", plain("Cycle parking is free."))
    question = IngestPolicyRevision(source="NPPF", revision_id=NEW, file_path=path, reindex=True)
    await library.service.ingest_revision(question, no_progress)


async def remove(library: PolicyLibrary) -> None:
    await library.service.remove_revision_chunks(
        RemovePolicyRevision(source="NPPF", revision_id=OLD)
    )


async def delete(library: PolicyLibrary) -> None:
    await library.admin.delete_revision("NPPF", OLD)


async def delete_policy(library: PolicyLibrary) -> None:
    await library.admin.delete_policy("NPPF")


async def redate(library: PolicyLibrary) -> None:
    patch = RevisionPatch.model_validate_json('{"effective_to": "2024-06-30"}')
    await library.admin.amend_revision("NPPF", OLD, patch)


async def retitle(library: PolicyLibrary) -> None:
    await library.admin.update_policy_details("NPPF", PolicyPatch(title="The Framework"))


async def insert(library: PolicyLibrary) -> None:
    await library.revise("NPPF", "July 2021", "2021-07-20", "2023-09-04", _text("July 2021"))


async def _has_revision(library: PolicyLibrary, revision_id: str) -> bool:
    revisions = await library.service.registry.get_revisions("NPPF")
    return revision_id in [one.revision_id for one in revisions if one.can_be_in_force]


async def _is_superseded(library: PolicyLibrary) -> bool:
    return await _has_revision(library, NEW)


async def _is_inserted(library: PolicyLibrary) -> bool:
    return await _has_revision(library, "rev_NPPF_2021_07")


async def _is_reindexed(library: PolicyLibrary) -> bool:
    chunks = await library.service.store.get_chunks("NPPF", NEW)
    return [chunk.text for chunk in chunks] == ["Cycle parking is free."]


async def _is_removed(library: PolicyLibrary) -> bool:
    return (await library.admin.get_revision("NPPF", OLD)).chunk_count == 0


async def _is_deleted(library: PolicyLibrary) -> bool:
    return not await _has_revision(library, OLD)


async def _is_policy_deleted(library: PolicyLibrary) -> bool:
    folder = library.folder / "NPPF"
    return not await library.service.registry.has_policy("NPPF") and not folder.exists()


async def _is_redated(library: PolicyLibrary) -> bool:
    return str((await library.admin.get_revision("NPPF", OLD)).effective_to) == "2024-06-30"


async def _is_retitled(library: PolicyLibrary) -> bool:
    return (await library.admin.get_policy("NPPF")).title == "The Framework"


_SEP, _DEC = ("September 2023",), ("December 2024",)

CHANGES = {
    "supersede": Change(
        "a successor created and ingested",
        *(add_first_revision, supersede, (_SEP, _DEC), "create:registry", _is_superseded),
    ),
    "insert": Change(
        "history inserted", add_second_revision, insert, (_DEC,), "create:registry", _is_inserted
    ),
    "reindex": Change(
        "a reindex with another file",
        add_second_revision,
        reindex,
        (_DEC,),
        "ingest:begin",
        _is_reindexed,
    ),
    "remove": Change(
        "chunks removed", add_second_revision, remove, (_DEC,), "remove:begin", _is_removed
    ),
    "delete": Change(
        "a revision deleted", add_second_revision, delete, (_DEC,), "delete:registry", _is_deleted
    ),
    "delete_policy": Change(
        "a policy deleted",
        *(
            add_second_revision,
            delete_policy,
            (_DEC, ()),
            "delete_policy:registry",
            _is_policy_deleted,
        ),
    ),
    "redate": Change(
        "dates changed", add_second_revision, redate, (_DEC,), "amend:registry", _is_redated
    ),
    "retitle": Change(
        "a title changed", add_second_revision, retitle, (_DEC,), "amend:policy", _is_retitled
    ),
}

_CREATE = ("create:begin", "create:registry", "create:file", "create:end")
_INGEST = (
    *("ingest:begin", "ingest:intent", "ingest:chunks", "ingest:surplus", "ingest:file"),
    *("ingest:registry", "ingest:dates", "ingest:end"),
)
STEPS = {
    "supersede": (*_CREATE, *_INGEST),
    "insert": (*_CREATE, *_INGEST),
    "reindex": _INGEST,
    "remove": ("remove:begin", "remove:chunks", "remove:registry", "remove:end"),
    "delete": (
        *("delete:begin", "delete:registry", "delete:chunks", "delete:file"),
        *("delete:dates", "delete:end"),
    ),
    "delete_policy": (
        *("delete_policy:begin", "delete_policy:registry", "delete_policy:chunks"),
        *("delete_policy:files", "delete_policy:end"),
    ),
    "redate": ("amend:begin", "amend:registry", "amend:dates", "amend:end"),
    "retitle": ("amend:begin", "amend:policy", "amend:titles", "amend:end"),
}


def must_last(change: str, step: str) -> bool:
    """Whether a kill at this step may come after the answer that says it is done."""
    return STEPS[change].index(step) >= STEPS[change].index(CHANGES[change].lasts_from)


async def list_steps(folder: Path, change: str) -> tuple[str, ...]:
    """The named steps that a change really passes, in order."""
    passed: list[str] = []
    async with open_library(folder, on_step=passed.append, **PLAIN) as library:
        await CHANGES[change].prepare(library)
        passed.clear()
        await CHANGES[change].make(library)
    return tuple(passed)


def kill_at(folder: Path, change: str, step: str) -> None:
    """Prepare the base and make the change in a process that kills itself at the step."""
    do_and_be_killed(_change, folder, change, step)


def kill_recovery_at(folder: Path, step: str) -> None:
    """Start on what another kill left, and be killed while mending it."""
    do_and_be_killed(_recover, folder, step)


async def _change(folder: Path, change: str, step: str) -> None:
    trap = KillAtStep(step)
    async with open_library(folder, on_step=trap, **PLAIN) as library:
        await CHANGES[change].prepare(library)
        trap.is_set = True
        await CHANGES[change].make(library)


async def _recover(folder: Path, step: str) -> None:
    async with open_library(folder, on_step=KillAtStep(step, is_set=True), **PLAIN) as library:
        await library.settled()


@dataclass(frozen=True)
class Aftermath:
    """What is there once the base has been started again. Orphans and counts are counted here,
    not by the checkup.
    """

    orphans: int
    wrong_counts: int
    complaints: list[Complaint]
    in_force: tuple[str, ...]
    is_kept: bool
    leftovers: list[str]

    @property
    def is_whole(self) -> bool:
        return not (self.orphans or self.wrong_counts or self.complaints or self.leftovers)


async def examine_aftermath(folder: Path, change: str) -> Aftermath:
    """Start the base, let it finish what it finds, and count."""
    async with open_library(folder, **PLAIN) as library:
        await library.settled()
        held = {
            key: len(of)
            for key, of in (await library.service.store.group_metadata_by_revision()).items()
        }
        revisions = await library.service.registry.get_revisions("NPPF")
        counts = {("NPPF", one.revision_id): one.chunk_count for one in revisions}
        diagnosis = await PolicyDoctor(library.service, is_repairing=False).diagnose_policies()
        return Aftermath(
            orphans=sum(count for key, count in held.items() if key not in counts),
            wrong_counts=sum(held.get(key, 0) != count for key, count in counts.items()),
            complaints=diagnosis.complaints,
            in_force=await _in_force(library),
            is_kept=await CHANGES[change].is_kept(library),
            leftovers=[
                path.name for path in library.service.ingestion.files.uploads_folder.glob("*")
            ],
        )


async def _in_force(library: PolicyLibrary) -> tuple[str, ...]:
    hits = await library.service.search(
        SearchPolicy(query="cycle parking", effective_date="2025-01-01", n_results=50)
    )
    return tuple(sorted({f"{hit.version_label}" for hit in hits.results}))
