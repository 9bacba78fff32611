"""Changes that touch the registry, the chunks and the files together, each under an intent.

Every change records an intent, then takes its steps in an order that keeps searches right at every
moment: a search resolves revisions from the registry, so chunks are stored before the registry
names them and deleted after it has forgotten them. At the next start unfinished intents are
completed or undone, depending on what the registry says.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from readingroom.bases.policy.admin_models import Progress
from readingroom.bases.policy.chunks.store import PolicyStore, build_chunks
from readingroom.bases.policy.ingest.files import RevisionFiles, check_revision_file_name
from readingroom.bases.policy.ingest.progress import IngestionProgress
from readingroom.bases.policy.models import IngestedRevision
from readingroom.bases.policy.registry import timeline
from readingroom.bases.policy.registry.opening import AnyPolicyRegistry
from readingroom.bases.policy.registry.records import PlanStage, Revision
from readingroom.core.arrays import Vector
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgress
from readingroom.ingest.context import IngestContext
from readingroom.ingest.document import Document
from readingroom.ingest.embed import EmbeddedChunks, embed_document
from readingroom.ingest.errors import NoContent
from readingroom.ingest.page_pictures import PagePictures
from readingroom.ingest.private_copy import PrivateCopy
from readingroom.storage.chunks import Chunks
from readingroom.storage.errors import RegistryUnavailable
from readingroom.storage.intents import Intent
from readingroom.storage.postgres.changes import make_change_coordinator

# Of so many other revisions vectors are taken over where the text is the same.
_MAX_REUSED_REVISIONS = 2


class Ingestion:
    """Adds, changes and removes revisions so that the stores always agree."""

    def __init__(
        self,
        base_folder: Path,
        policy_registry: AnyPolicyRegistry,
        policy_store: PolicyStore,
        ingest_context: IngestContext,
    ) -> None:
        self.is_shared, self.get_now = (ingest_context.database is not None, ingest_context.get_now)
        self.files = RevisionFiles(base_folder, ingest_context.database)
        self.pictures = PagePictures(ingest_context.pipeline, base_folder / "pages")
        self._registry, self._store, self._context = policy_registry, policy_store, ingest_context
        database, on_step = ingest_context.database, ingest_context.on_step
        self._change_coordinator = make_change_coordinator("policy", base_folder, database, on_step)
        self.progress = IngestionProgress(database)

    # --- changes ---

    async def create_revision(
        self,
        policy_slug: str,
        spool_path: Path,
        version_label: str,
        first_day: date,
        last_day: date | None,
        notes: str | None,
        draft_plan_stage: PlanStage | None = None,
        extension: str = ".pdf",
    ) -> tuple[Revision, list[Revision]]:
        """Register a revision with its file.

        Returns it, and the open revision before it, if any, that it closes. Raises
        `RevisionOverlap` when it shares a day with another revision.
        """
        async with self._change_coordinator.begin_change(policy_slug):
            unsaved_revision = Revision(
                revision_id="new",
                source=policy_slug,
                version_label=version_label,
                effective_from=first_day,
                effective_to=last_day,
                file_size_bytes=(await anyio.Path(spool_path).stat()).st_size,
                notes=notes,
                stage=draft_plan_stage,
                created_at=self._context.get_now(),
            )
            remaining_revisions, failed_ids = timeline.split_failed(
                await self._registry.get_revisions(policy_slug), unsaved_revision, closes_open=True
            )
            revision_id = timeline.choose_revision_id(
                policy_slug, first_day, [revision.revision_id for revision in remaining_revisions]
            )
            file_path = self.files.build_path(policy_slug, revision_id, extension)
            id_and_path_fields = {"revision_id": revision_id, "file_path": str(file_path)}
            new_revision = unsaved_revision.model_copy(update=id_and_path_fields)
            intent_body = {
                "revision_id": revision_id,
                "file": str(spool_path),
                "extension": extension,
                "created_at": new_revision.created_at.isoformat(),
            }
            async with self._enclose_replacement("create", policy_slug, failed_ids, **intent_body):
                # The registry first: until then a failed revision of the same id has its file.
                changed_revisions = await self._registry.replace_revisions(
                    policy_slug,
                    lambda revisions_before: timeline.replace_failed(
                        *(revisions_before, unsaved_revision, failed_ids, True),
                        partial(timeline.add_revision, new_revision=new_revision),
                    ),
                )
                self._change_coordinator.on_step("create:registry")
                await self._move_new_file(spool_path, new_revision, extension)
                self._change_coordinator.on_step("create:file")
        return new_revision, [
            revision for revision in changed_revisions if revision.closed_by == revision_id
        ]

    async def _move_new_file(self, spool_path: Path, revision: Revision, extension: str) -> None:
        try:
            await self._place_file(spool_path, revision.source, revision.revision_id, extension)
        # A full disk: a registered revision without a file could never be ingested.
        except KnowledgeError:
            await self._registry.delete_revision(revision.source, revision.revision_id)
            raise

    async def ingest_revision(
        self, revision: Revision, private_copy: PrivateCopy, report_progress: ReportProgress
    ) -> IngestedRevision:
        """Read, embed and store a file; the revision counts once all of it is stored.

        Raises:
            RevisionBusy: the revision is being ingested already.
            NoContent: no text was found in the file; the revision is marked as failed.
        """
        async with self.progress.enclose_ingestion(revision.revision_id):
            try:
                # Reading takes minutes, so it runs outside of the lock; others change meanwhile.
                document, embedded_chunks = await self._read_and_embed(
                    revision, private_copy, report_progress
                )
            except KnowledgeError as error:
                await self.mark_failed(revision, error.message)
                raise
            async with self._change_coordinator.begin_change(revision.source):
                return await self._store_revision(revision, document, embedded_chunks, private_copy)

    async def replace_file(self, revision: Revision, spool_path: Path, extension: str) -> None:
        """Replace a revision's file; the new one is read when the revision is next ingested."""
        async with self._change_coordinator.begin_change(revision.source):
            await self._place_file(spool_path, revision.source, revision.revision_id, extension)

    async def remove_chunks(self, policy_slug: str, revision_id: str) -> int:
        """Delete a revision's chunks; returns how many there were.

        A registered revision keeps its entry, with a chunk count of 0.
        """
        async with self._change_coordinator.begin_change(policy_slug):
            chunk_ids = await self._store.get_chunk_ids(policy_slug, revision_id)
            intent_fields = {"source": policy_slug, "revision_id": revision_id}
            async with self._change_coordinator.record_intent("remove", **intent_fields):
                await self._store.delete_chunks(chunk_ids)
                self._change_coordinator.on_step("remove:chunks")
                await self.set_chunk_count(policy_slug, revision_id, 0)
                self._change_coordinator.on_step("remove:registry")
        return len(chunk_ids)

    async def delete_revision(self, policy_slug: str, revision_id: str) -> int:
        """Delete a revision, then its chunks, then its file; returns how many chunks there were.

        Raises:
            RevisionBusy: it is being ingested.
            SoleRevision: it is the only active one of its policy.
        """
        idle_claim = self.progress.claim_idle_revisions([revision_id])
        async with idle_claim, self._change_coordinator.begin_change(policy_slug):
            chunk_ids = await self._store.get_chunk_ids(policy_slug, revision_id)
            intent_fields = {"source": policy_slug, "revision_id": revision_id}
            async with self._change_coordinator.record_intent("delete", **intent_fields):
                # The registry first: no search resolves to the revision while its chunks disappear.
                await self._registry.delete_revision(policy_slug, revision_id)
                self._change_coordinator.on_step("delete:registry")
                await self._store.delete_chunks(chunk_ids)
                self._change_coordinator.on_step("delete:chunks")
                await anyio.to_thread.run_sync(self.files.delete_file, policy_slug, revision_id)
                self._change_coordinator.on_step("delete:file")
                await self._update_metadata(policy_slug)
                self._change_coordinator.on_step("delete:dates")
        return len(chunk_ids)

    async def delete_policy(self, policy_slug: str) -> tuple[int, int]:
        """Delete a policy whole; return how many revisions and chunks it had.

        Raises:
            PolicyNotFound: there is no such policy.
            RevisionBusy: one of its revisions is being ingested.
        """
        async with self._change_coordinator.begin_change(policy_slug):
            revisions = await self._registry.get_revisions(policy_slug)
            revision_ids = [revision.revision_id for revision in revisions]
            chunk_count = sum(revision.chunk_count for revision in revisions)
            intent_fields = {"source": policy_slug, "revision_ids": revision_ids}
            async with (
                self.progress.claim_idle_revisions(revision_ids),
                self._change_coordinator.record_intent("delete_policy", **intent_fields),
            ):
                await self._registry.delete_policy(policy_slug)
                self._change_coordinator.on_step("delete_policy:registry")
                await self._delete_policy_leftovers(policy_slug, revision_ids)
        return len(revision_ids), chunk_count

    async def _delete_policy_leftovers(self, policy_slug: str, revision_ids: Sequence[str]) -> None:
        """Delete the chunks and files of a policy that is not registered any more."""
        for revision_id in revision_ids:
            await self._store.delete_chunks_of_revision(policy_slug, revision_id)
        self._change_coordinator.on_step("delete_policy:chunks")
        await anyio.to_thread.run_sync(self.files.delete_policy_folder, policy_slug)
        self._change_coordinator.on_step("delete_policy:files")

    async def amend_revision(
        self, policy_slug: str, revision_id: str, changed_values: dict[str, Any]
    ) -> None:
        """Change a revision's dates or label, in the registry and on its chunks."""
        async with self._change_coordinator.begin_change(policy_slug):
            revisions = await self._registry.get_revisions(policy_slug)
            revision = timeline.get_revision(revisions, revision_id)
            amended_revision = revision.model_copy(update=changed_values)
            _, failed_ids = timeline.split_failed(revisions, amended_revision, closes_open=False)
            # The intent does not name the revision: all metadata of the policy is written again.
            async with self._enclose_replacement("amend", policy_slug, failed_ids):
                await self._registry.replace_revisions(
                    policy_slug,
                    lambda revisions_before: timeline.replace_failed(
                        *(revisions_before, amended_revision, failed_ids, False),
                        lambda others: timeline.amend_revision(others, revision_id, changed_values),
                    ),
                )
                self._change_coordinator.on_step("amend:registry")
                await self._update_metadata(policy_slug)
                self._change_coordinator.on_step("amend:dates")

    @asynccontextmanager
    async def _enclose_replacement(
        self, intent_kind: str, policy_slug: str, failed_ids: Sequence[str], **intent_body: Any
    ) -> AsyncIterator[None]:
        """Enclose a change that takes failed revisions away; raises `RevisionBusy`."""
        async with AsyncExitStack() as claim_stack:
            for failed_id in failed_ids:
                await claim_stack.enter_async_context(self.progress.enclose_ingestion(failed_id))
            intent_body |= {"source": policy_slug, "replaced_ids": failed_ids}
            async with self._change_coordinator.record_intent(intent_kind, **intent_body):
                yield
                await self._clean_up_deleted(policy_slug, failed_ids)

    async def _clean_up_deleted(self, policy_slug: str, revision_ids: Sequence[str]) -> None:
        """Delete the chunks and files of those of these revisions that are not registered."""
        revisions = await self._registry.get_revisions(policy_slug) if revision_ids else ()
        for revision_id in set(revision_ids) - {revision.revision_id for revision in revisions}:
            await self._store.delete_chunks_of_revision(policy_slug, revision_id)
            await anyio.to_thread.run_sync(self.files.delete_file, policy_slug, revision_id)

    async def update_policy_details(self, policy_slug: str, changed_values: dict[str, Any]) -> None:
        """Change a policy's title, description or category; chunks carry the title too."""
        async with self._change_coordinator.begin_change(policy_slug):
            policy = await self._registry.get_policy(policy_slug)
            async with self._change_coordinator.record_intent("amend", source=policy_slug):
                now = self._context.get_now()
                changed_policy = policy.model_copy(update={**changed_values, "updated_at": now})
                await self._registry.update_policy(changed_policy)
                self._change_coordinator.on_step("amend:policy")
                await self._update_metadata(policy_slug)
                self._change_coordinator.on_step("amend:titles")

    async def reopen_revision(self, revision: Revision) -> None:
        """Put a failed revision back to `processing`."""
        await self._registry.change_revisions(
            revision.source, partial(timeline.reopen_revision, revision_id=revision.revision_id)
        )

    async def mark_failed(self, revision: Revision, error_message: str) -> None:
        """Record that a revision could not be ingested."""
        cut_message = error_message[:500]  # a parser's message can be of any length
        await self._registry.change_revisions(
            revision.source,
            lambda revisions: timeline.record_failure(revisions, revision.revision_id, cut_message),
        )

    async def set_chunk_count(self, policy_slug: str, revision_id: str, chunk_count: int) -> None:
        """Write the number of chunks to the registry; an unknown revision is ignored."""
        await self._registry.change_revisions(
            policy_slug,
            partial(timeline.set_chunk_count, revision_id=revision_id, chunk_count=chunk_count),
        )

    def find_progress(self, revision_id: str) -> Progress | None:
        """Return how far an ingestion that is running now has come, else None."""
        return self.progress.find_progress(revision_id)

    async def locate_file(self, revision: Revision) -> Path:
        """Return where our copy of a revision's file can be read now."""
        slug_and_id = (revision.source, revision.revision_id)
        return await anyio.to_thread.run_sync(self.files.locate_file, *slug_and_id)

    # --- recovery ---

    async def finish_interrupted_changes(self, report_progress: ReportProgress) -> int:
        """Complete or undo every interrupted change; returns how many there were."""
        finish_change = partial(self._finish_change, report_progress=report_progress)
        # Without the registry nobody can tell which way to finish, so recovery waits for it.
        change_count = await self._change_coordinator.recover_changes(
            finish_change, (RegistryUnavailable,)
        )
        await self._delete_unneeded_uploads()
        return change_count

    async def list_unfinished(self) -> list[Intent]:
        """Return the changes that were begun and have not ended."""
        return await self._change_coordinator.list_unfinished()

    async def _finish_change(self, intent: Intent, report_progress: ReportProgress) -> None:
        policy_slug, revision_id = (intent.body["source"], intent.body.get("revision_id", ""))
        revisions_by_id = {
            revision.revision_id: revision
            for revision in await self._registry.get_revisions(policy_slug)
        }
        match intent.kind:
            case "create":
                await self._finish_create(intent, revisions_by_id.get(revision_id))
            case "remove":
                await self._store.delete_chunks_of_revision(policy_slug, revision_id)
                await self.set_chunk_count(policy_slug, revision_id, 0)
            # If the registry still has it, nothing was deleted yet, and the caller may ask again.
            case "delete" if revision_id not in revisions_by_id:
                await self._clean_up_deleted(policy_slug, [revision_id])
                await self._update_metadata(policy_slug)
            case "delete_policy" if not await self._registry.has_policy(policy_slug):
                await self._delete_policy_leftovers(policy_slug, intent.body["revision_ids"])
            case "ingest" if revision_id in revisions_by_id:
                spool_path = Path(intent.body["file"])
                await self._resume_ingest(revisions_by_id[revision_id], spool_path, report_progress)
            case "amend":
                await self._clean_up_deleted(policy_slug, intent.body.get("replaced_ids", ()))
                await self._update_metadata(policy_slug)

    async def _finish_create(self, intent: Intent, revision: Revision | None) -> None:
        """Move the file of a registered revision into place; one that is not leaves no trace."""
        policy_slug, revision_id = intent.body["source"], intent.body["revision_id"]
        # Another one of the same id is the failed one that was to be replaced.
        if revision and revision.created_at.isoformat() == intent.body.get("created_at"):
            spool_path = Path(intent.body["file"])
            if await anyio.Path(spool_path).exists():
                extension = intent.body.get("extension", ".pdf")  # older ones knew no other
                await self._place_file(spool_path, policy_slug, revision_id, extension)
        replaced_ids = intent.body.get("replaced_ids", ())
        await self._clean_up_deleted(policy_slug, [revision_id, *replaced_ids])

    async def _resume_ingest(
        self, revision: Revision, spool_path: Path, report_progress: ReportProgress
    ) -> None:
        """Ingest the same file again, from wherever the interruption left it."""
        final_path = await self.locate_file(revision)
        # The crash came before or after the rename; one of the two has the bytes.
        readable_path = spool_path if await anyio.Path(spool_path).exists() else final_path
        async with self.files.open_copy_in_thread(readable_path) as private_copy:
            await self.ingest_revision(revision, private_copy, report_progress)

    # --- steps of an ingestion ---

    async def _read_and_embed(
        self, revision: Revision, private_copy: PrivateCopy, report_progress: ReportProgress
    ) -> tuple[Document, EmbeddedChunks]:
        async def report_reading(done: float, total: float | None, message: str | None) -> None:
            done_percent = 40 * done / total if total else 0
            self.progress.set_progress(revision.revision_id, "extracting", done_percent, 0)
            await report_progress(done, total, message)

        self.progress.set_progress(revision.revision_id, "extracting", 0, 0)
        check_revision_file_name(private_copy.file_name)
        pipeline = self._context.pipeline
        document = await pipeline.read_document(private_copy, report_reading, find_sections=True)
        if not isinstance(document, Document):
            raise NoContent("The file contains only pictures; no text was found in it")
        return document, await self._embed_chunks(revision, document, report_progress)

    async def _embed_chunks(
        self, revision: Revision, document: Document, report_progress: ReportProgress
    ) -> EmbeddedChunks:
        async def report_embedding(done: float, total: float | None, message: str | None) -> None:
            done_percent = 40 + 55 * done / total if total else 40
            self.progress.set_progress(revision.revision_id, "embedding", done_percent, int(done))
            await report_progress(done, total, message)

        policy = await self._registry.get_policy(revision.source)
        known_vectors_by_text = await self._get_known_vectors(revision)
        return await embed_document(
            document, policy.title, self._context.embedder, report_embedding, known_vectors_by_text
        )

    async def _get_known_vectors(self, revision: Revision) -> dict[str, Vector]:
        """Return, by what was embedded, the vectors of the revisions nearest in time."""
        other_revisions = [
            other_revision
            for other_revision in await self._registry.get_revisions(revision.source)
            if other_revision.revision_id != revision.revision_id
        ]
        first_day = revision.effective_from
        other_revisions.sort(key=lambda other: abs(other.effective_from - first_day))
        return await self._store.read_vectors_by_text(other_revisions[:_MAX_REUSED_REVISIONS])

    async def _store_revision(
        self,
        revision: Revision,
        document: Document,
        embedded_chunks: EmbeddedChunks,
        private_copy: PrivateCopy,
    ) -> IngestedRevision:
        policy_slug, revision_id = revision.source, revision.revision_id
        policy = await self._registry.get_policy(policy_slug)
        revisions = await self._registry.get_revisions(policy_slug)
        # It may have been deleted meanwhile.
        registered_revision = timeline.get_revision(revisions, revision_id)
        last_day = timeline.find_last_day(registered_revision, revisions)
        chunks = build_chunks(document, embedded_chunks, policy, registered_revision, last_day)
        # Percentages are shares of the usual time: reading 40, embedding 55, storing the rest.
        self.progress.set_progress(revision_id, "storing", 95, len(chunks))
        # The caller's own file may be gone or changed by the time a recovery needs it.
        spool_path = await anyio.to_thread.run_sync(self.files.copy_to_spool, private_copy)
        async with self._change_coordinator.record_intent(
            "ingest", source=policy_slug, revision_id=revision_id, file=str(spool_path)
        ):
            self._change_coordinator.on_step("ingest:intent")
            await self._replace_chunks(revision, chunks)
            extension = spool_path.suffix
            await self._place_file(spool_path, policy_slug, revision_id, extension)
            self._change_coordinator.on_step("ingest:file")
            ingest_fields = {
                "chunk_count": len(chunks),
                "page_count": len(document.pages),
                "file_path": str(self.files.build_path(policy_slug, revision_id, extension)),
                "ingested_at": self._context.get_now(),
                "error": None,
            }
            await self._registry.change_revisions(
                policy_slug,
                lambda revisions: timeline.activate_revision(revisions, revision_id, ingest_fields),
            )
            # It is found by searches from now on, whatever the remaining steps take.
            self.progress.set_progress(revision_id, "complete", 100, len(chunks))
            self._change_coordinator.on_step("ingest:registry")
            await self._update_metadata(policy_slug)
            self._change_coordinator.on_step("ingest:dates")
        await self.pictures.store_page_words(private_copy.sha256, document)
        return IngestedRevision(
            source=policy_slug,
            revision_id=revision_id,
            chunks_created=len(chunks),
            page_count=len(document.pages),
            extraction_method=document.method,
        )

    async def _replace_chunks(self, revision: Revision, chunks: Chunks) -> None:
        # New before old: while both exist a search may see a passage twice, but never none.
        await self._store.put_chunks(chunks)
        self._change_coordinator.on_step("ingest:chunks")
        new_chunk_ids = set(chunks.ids)
        stored_chunk_ids = await self._store.get_chunk_ids(revision.source, revision.revision_id)
        obsolete_ids = [chunk_id for chunk_id in stored_chunk_ids if chunk_id not in new_chunk_ids]
        await self._store.delete_chunks(obsolete_ids)
        self._change_coordinator.on_step("ingest:surplus")

    async def _update_metadata(self, policy_slug: str) -> None:
        """Write the registry's dates, labels and title to the chunks of every revision."""
        policy = await self._registry.get_policy(policy_slug)
        revisions = await self._registry.get_revisions(policy_slug)
        for revision in revisions:
            last_day = timeline.find_last_day(revision, revisions)
            await self._store.update_metadata(policy, revision, last_day)

    def pause_changes(self) -> AbstractAsyncContextManager[None]:
        """Return a context in which no change runs, for a backup of all stores."""
        return self._change_coordinator.pause_changes()

    # --- files ---

    async def _place_file(
        self, spool_path: Path, policy_slug: str, revision_id: str, extension: str
    ) -> None:
        await anyio.to_thread.run_sync(
            self.files.move_into_place, spool_path, policy_slug, revision_id, extension
        )

    async def _delete_unneeded_uploads(self) -> None:
        """Delete what no intent names: interrupted uploads left it."""
        needed_paths = {intent.body.get("file", "") for intent in await self.list_unfinished()}
        await anyio.to_thread.run_sync(self.files.delete_unneeded_uploads, needed_paths)
