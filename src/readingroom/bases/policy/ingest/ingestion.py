"""Changes that touch the registry, the chunks and the files together, each under an intent.

Every change writes down what it is about to do, then does it in an order in which each moment in
between is a right answer: a search resolves revisions from the registry, so chunks are there before
the registry says so, and go after it has forgotten them. At the start unfinished intents are
brought to the end or taken back by looking at what the registry says.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from readingroom.bases.policy.admin_models import Progress
from readingroom.bases.policy.errors import RevisionBusy
from readingroom.bases.policy.models import Ingested
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.records import Revision
from readingroom.bases.policy.registry.store import PolicyRegistry
from readingroom.bases.policy.store import PolicyStore, chunks_from
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Document
from readingroom.ingest.embed import Vectors, embed_document
from readingroom.ingest.errors import NoContent
from readingroom.ingest.intake import Intake, Roots, open_in_thread
from readingroom.storage.changes import Changes
from readingroom.storage.chunks import Chunks
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.intents import Intent

LARGEST = 50 * 1024 * 1024


class Ingestion:
    """Brings revisions in and out, and changes them, so that the stores always agree."""

    def __init__(
        self,
        folder: Path,
        registry: PolicyRegistry,
        store: PolicyStore,
        bench: IngestContext,
    ) -> None:
        self._folder = folder
        self._registry = registry
        self._store = store
        self._bench = bench
        self._changes = Changes(folder / "intents.db", bench.on_step)
        self._busy: dict[str, Progress] = {}

    # --- what can be done ---

    async def create(
        self, source: str, spool: Path, label: str, start: date, end: date | None, notes: str | None
    ) -> tuple[Revision, list[Revision]]:
        """Register a revision with its file; returns it, and the revision it will supersede."""
        async with self._changes.one_at_a_time(source):
            before = await self._registry.revisions(source)
            revision_id = timeline.new_id(source, start, [one.revision_id for one in before])
            new = Revision(
                revision_id=revision_id,
                source=source,
                version_label=label,
                effective_from=start,
                effective_to=end,
                file_path=str(self.file_of(source, revision_id)),
                file_size_bytes=(await anyio.Path(spool).stat()).st_size,
                notes=notes,
                created_at=self._bench.now(),
            )
            async with self._changes.intent(
                "create", source=source, revision_id=revision_id
            ) as intent:
                await anyio.to_thread.run_sync(self._keep_file, spool, source, revision_id)
                self._changes.on_step("create:file")
                try:
                    changed = await self._registry.change(
                        source, lambda at: timeline.create(at, new)
                    )
                except KnowledgeError:
                    await self._take_back(intent)
                    raise
                self._changes.on_step("create:registry")
        return new, [one for one in changed if one.revision_id != revision_id]

    async def ingest(self, revision: Revision, intake: Intake, report: ReportProgress) -> Ingested:
        """Read, embed and store a file; the revision counts from the moment all of it is there."""
        with self._working(revision.revision_id):
            try:
                document, vectors = await self._prepared(revision, intake, report)
            except KnowledgeError as error:
                await self.abandon(revision, error.message)
                raise
            async with self._changes.one_at_a_time(revision.source):
                return await self._committed(revision, document, vectors, intake)

    async def exchange_file(self, revision: Revision, spool: Path) -> None:
        """Put another file in the place of a revision's; it is read when it is ingested."""
        async with self._changes.one_at_a_time(revision.source):
            await anyio.to_thread.run_sync(
                self._keep_file, spool, revision.source, revision.revision_id
            )

    async def remove_chunks(self, source: str, revision_id: str) -> int:
        """Delete a revision's chunks, registered or not; the registry only learns that there are
        none.
        """
        async with self._changes.one_at_a_time(source):
            ids = await self._store.ids_of(source, revision_id)
            async with self._changes.intent("remove", source=source, revision_id=revision_id):
                await self._store.delete(ids)
                self._changes.on_step("remove:chunks")
                await self.recount(source, revision_id, 0)
                self._changes.on_step("remove:registry")
        return len(ids)

    async def delete(self, source: str, revision_id: str) -> int:
        """Forget a revision, then its chunks, then its file."""
        if revision_id in self._busy:
            raise RevisionBusy(f"{revision_id} is being ingested; delete it when that has ended")
        async with self._changes.one_at_a_time(source):
            ids = await self._store.ids_of(source, revision_id)
            async with self._changes.intent("delete", source=source, revision_id=revision_id):
                await self._registry.delete_revision(source, revision_id)
                self._changes.on_step("delete:registry")
                await self._store.delete(ids)
                self._changes.on_step("delete:chunks")
                await self._drop_file(source, revision_id)
                self._changes.on_step("delete:file")
                await self._describe_all(source)
                self._changes.on_step("delete:dates")
        return len(ids)

    async def amend(self, source: str, revision_id: str, values: dict[str, Any]) -> None:
        """Change a revision's dates or label, in the registry and on its chunks."""
        async with (
            self._changes.one_at_a_time(source),
            self._changes.intent("amend", source=source),
        ):
            await self._registry.change(
                source, lambda before: timeline.amend(before, revision_id, values)
            )
            self._changes.on_step("amend:registry")
            await self._describe_all(source)
            self._changes.on_step("amend:dates")

    async def amend_policy(self, source: str, values: dict[str, Any]) -> None:
        """Change a policy's title, description or category; chunks carry the title too."""
        async with self._changes.one_at_a_time(source):
            policy = await self._registry.policy(source)
            async with self._changes.intent("amend", source=source):
                changed = policy.model_copy(update={**values, "updated_at": self._bench.now()})
                await self._registry.update_policy(changed)
                self._changes.on_step("amend:policy")
                await self._describe_all(source)
                self._changes.on_step("amend:titles")

    async def reopen(self, revision: Revision) -> None:
        """A failed revision is tried again."""
        await self._registry.change(
            revision.source, lambda before: timeline.retry(before, revision.revision_id)
        )

    async def abandon(self, revision: Revision, why: str) -> None:
        """A revision that cannot be ingested says so."""
        await self._registry.change(
            revision.source, lambda before: timeline.fail(before, revision.revision_id, why[:500])
        )

    async def recount(self, source: str, revision_id: str, held: int) -> None:
        """The registry learns how many chunks there really are, if it knows the revision."""

        def counted(before: timeline.Revisions) -> list[Revision]:
            known = [one for one in before if one.revision_id == revision_id]
            return [one.model_copy(update={"chunk_count": held}) for one in known]

        await self._registry.change(source, counted)

    def progress(self, revision_id: str) -> Progress | None:
        return self._busy.get(revision_id)

    def file_of(self, source: str, revision_id: str) -> Path:
        return self._folder / source / revision_id / "document.pdf"

    @property
    def uploads(self) -> Path:
        return self._folder / "uploads"

    def own_files(self) -> Roots:
        return Roots("the policy folder", (self._folder,), LARGEST)

    # --- what is done at the start ---

    async def recover(self, report: ReportProgress) -> int:
        """Bring every unfinished change to an end; returns how many there were."""

        async def finish(intent: Intent) -> None:
            await self._finish(intent, report)

        count = await self._changes.recover(finish, fatal=(RegistryUnavailable,))
        await self._sweep_uploads()
        return count

    async def unfinished(self) -> list[Intent]:
        return await self._changes.unfinished()

    async def _finish(self, intent: Intent, report: ReportProgress) -> None:
        source, revision_id = intent.body["source"], intent.body.get("revision_id", "")
        known = {one.revision_id: one for one in await self._registry.revisions(source)}
        match intent.kind:
            case "create":
                await self._take_back(intent)
            case "remove":
                await self._store.delete(await self._store.ids_of(source, revision_id))
                await self.recount(source, revision_id, 0)
            case "delete" if revision_id not in known:
                await self._store.delete(await self._store.ids_of(source, revision_id))
                await self._drop_file(source, revision_id)
                await self._describe_all(source)
            case "ingest" if revision_id in known:
                await self._ingest_again(known[revision_id], Path(intent.body["file"]), report)
            case "amend":
                await self._describe_all(source)

    async def _take_back(self, intent: Intent) -> None:
        """A file that was put in place for a revision that was never registered goes."""
        source, revision_id = intent.body["source"], intent.body["revision_id"]
        known = [one.revision_id for one in await self._registry.revisions(source)]
        if revision_id not in known:
            await self._drop_file(source, revision_id)

    async def _ingest_again(self, revision: Revision, spool: Path, report: ReportProgress) -> None:
        """From the file that was being ingested, wherever the interruption left it."""
        kept = self.file_of(revision.source, revision.revision_id)
        file = spool if await anyio.Path(spool).exists() else kept
        async with open_in_thread(self.own_files().open(str(file))) as intake:
            await self.ingest(revision, intake, report)

    # --- the steps of an ingest ---

    async def _prepared(
        self, revision: Revision, intake: Intake, report: ReportProgress
    ) -> tuple[Document, Vectors]:
        async def reading(done: float, total: float | None, message: str | None) -> None:
            self._note(revision, "extracting", 40 * done / total if total else 0, 0)
            await report(done, total, message)

        self._note(revision, "extracting", 0, 0)
        document = await self._bench.pipeline.read(intake, reading, find_sections=True)
        if not isinstance(document, Document):
            raise NoContent("The file holds nothing but pictures; no text was found in it")
        return document, await self._embedded(revision, document, report)

    async def _embedded(
        self, revision: Revision, document: Document, report: ReportProgress
    ) -> Vectors:
        async def embedding(done: float, total: float | None, message: str | None) -> None:
            self._note(revision, "embedding", 40 + 55 * done / total if total else 40, int(done))
            await report(done, total, message)

        return await embed_document(document, self._bench.embedder, embedding)

    async def _committed(
        self, revision: Revision, document: Document, vectors: Vectors, intake: Intake
    ) -> Ingested:
        source, revision_id = revision.source, revision.revision_id
        policy = await self._registry.policy(source)
        revisions = await self._registry.revisions(source)
        current = timeline.find(revisions, revision_id)  # it may have been deleted meanwhile
        end = timeline.closing(current, revisions)
        chunks = chunks_from(document, vectors, policy, current, end)
        self._note(revision, "storing", 95, len(chunks))
        spool = await anyio.to_thread.run_sync(self._spooled, intake)
        async with self._changes.intent(
            "ingest", source=source, revision_id=revision_id, file=str(spool)
        ):
            self._changes.on_step("ingest:intent")
            await self._exchange_chunks(revision, chunks)
            await anyio.to_thread.run_sync(self._keep_file, spool, source, revision_id)
            self._changes.on_step("ingest:file")
            values = {
                "chunk_count": len(chunks),
                "page_count": len(document.pages),
                "file_path": str(self.file_of(source, revision_id)),
                "ingested_at": self._bench.now(),
                "error": None,
            }
            await self._registry.change(
                source, lambda before: timeline.finish(before, revision_id, values)
            )
            self._note(revision, "complete", 100, len(chunks))  # it answers from now on
            self._changes.on_step("ingest:registry")
            await self._describe_all(source)
            self._changes.on_step("ingest:dates")
        return Ingested(
            source=source,
            revision_id=revision_id,
            chunks_created=len(chunks),
            page_count=len(document.pages),
            extraction_method=document.method,
        )

    async def _exchange_chunks(self, revision: Revision, chunks: Chunks) -> None:
        await self._store.put(chunks)
        self._changes.on_step("ingest:chunks")
        kept = set(chunks.ids)
        held = await self._store.ids_of(revision.source, revision.revision_id)
        await self._store.delete([id for id in held if id not in kept])
        self._changes.on_step("ingest:surplus")

    async def _describe_all(self, source: str) -> None:
        """The chunks of every revision say the dates, label and title that the registry says."""
        policy = await self._registry.policy(source)
        revisions = await self._registry.revisions(source)
        for one in revisions:
            await self._store.describe(policy, one, timeline.closing(one, revisions))

    def paused(self) -> AbstractAsyncContextManager[None]:
        """No change is half done in here, and none begins: for whoever copies all the stores."""
        return self._changes.paused()

    # --- how far it has come ---

    @contextmanager
    def _working(self, revision_id: str) -> Iterator[None]:
        if revision_id in self._busy:
            raise RevisionBusy(f"{revision_id} is being ingested already; wait until it is active")
        self._busy[revision_id] = Progress(phase="queued", percent_complete=0, chunks_processed=0)
        try:
            yield
        finally:
            del self._busy[revision_id]

    def _note(self, revision: Revision, phase: str, percent: float, chunks: int) -> None:
        self._busy[revision.revision_id] = Progress(
            phase=phase, percent_complete=int(percent), chunks_processed=chunks
        )

    # --- files ---

    def _spooled(self, intake: Intake) -> Path:
        """A copy of our own of what is being ingested: the start after a crash needs it."""
        self.uploads.mkdir(parents=True, exist_ok=True)
        spool = self.uploads / f"{uuid.uuid4().hex}.pdf"
        intake.file.seek(0)
        with spool.open("wb") as copy:
            shutil.copyfileobj(intake.file, copy)
        return spool

    def _keep_file(self, spool: Path, source: str, revision_id: str) -> None:
        final = self.file_of(source, revision_id)
        final.parent.mkdir(parents=True, exist_ok=True)
        spool.replace(final)

    async def _drop_file(self, source: str, revision_id: str) -> None:
        folder = self.file_of(source, revision_id).parent
        await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))

    async def _sweep_uploads(self) -> None:
        """What no intent names any more was left by an upload that never ended."""
        needed = {intent.body.get("file") for intent in await self.unfinished()}
        for path in self.uploads.glob("*.pdf"):
            if str(path) not in needed:
                path.unlink(missing_ok=True)
