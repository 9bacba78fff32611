"""The policy base's tools, and the base itself as the server sees it."""

import logging
from collections.abc import Iterable
from pathlib import Path

from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    Ingested,
    IngestPolicyRevision,
    ListPolicyDocuments,
    ListPolicyRevisions,
    PolicyHits,
    PolicyHitsBatch,
    PolicyList,
    PolicySnapshot,
    QuoteCheck,
    Removed,
    RemovePolicyRevision,
    RevisionDiff,
    RevisionList,
    SearchPolicy,
    SearchPolicyBatch,
    SectionText,
    Snapshot,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.routes import policy_router
from readingroom.bases.policy.service import PolicyService
from readingroom.ingest.workbench import Workbench
from readingroom.protocol.dialects import StatusDialect
from readingroom.protocol.knowledge import KnowledgeBase
from readingroom.protocol.tool import Call, Hints, Tool, tool

_audit = logging.getLogger("readingroom.policy.audit")


def open_policy(
    folder: Path,
    redis_url: str | None,
    bench: Workbench,
    read_only: bool = False,
) -> KnowledgeBase:
    """Open the policy base on a folder; its stores are opened when it is served."""
    service = PolicyService(folder, redis_url, bench)
    return KnowledgeBase(
        name="policy",
        server_name="policy-kb-mcp",
        title="Planning policy",
        instructions=(
            "Policies and every revision of them, with the days each was in force. Give the day a "
            "question is about as effective_date (YYYY-MM-DD): the answer then comes from the "
            "revision in force on it. Cite with the `citation` of a result, and check a quotation "
            "with verify_policy_quote before you print it."
        ),
        dialect=StatusDialect(),
        tools=_tools(service),
        service=service,
        stateful=True,
        sse=True,
        routers=(policy_router(service, read_only),),
        running=service.running,
    )


def _tools(service: PolicyService) -> tuple[Tool, ...]:
    return (
        *_searching(service),
        *_reading(service),
        *_checking(service),
        *_writing(service),
    )


def _searching(service: PolicyService) -> Iterable[Tool]:
    async def search_policy(question: SearchPolicy, call: Call) -> PolicyHits:
        """Find what planning policy says, requires or allows on a question, in the local plan or in
        national policy and guidance: which policies cover or govern a topic, what rule, standard or
        minimum applies to parking, housing, green belt, listed buildings or highway safety. Gives
        passages, in the revisions that applied on a day when effective_date is given (else in all
        revisions, each marked). Returns passages, not whole sections: use get_policy_section for
        those. `excluded` says which policies could not answer and why.
        """
        hits = await service.search(question)
        _log_revisions(call, [hit.revision_id for hit in hits.results])
        return hits

    async def search_policy_batch(question: SearchPolicyBatch, call: Call) -> PolicyHitsBatch:
        """Ask several questions of planning policy together in one call: look up multiple topics,
        issues, subjects or queries all at once, at the same time, as search_policy does for one, in
        the same policies, on the same day. Results are not merged: there is one answer for each
        query, in order.
        """
        answers = await service.search_batch(question)
        _log_revisions(call, [hit.revision_id for one in answers.searches for hit in one.results])
        return answers

    yield tool(search_policy, title="Search policies")
    yield tool(search_policy_batch, title="Search policies, several queries")


def _reading(service: PolicyService) -> Iterable[Tool]:
    async def get_policy_section(question: GetPolicySection, call: Call) -> SectionText:
        """Read one section of a policy in full, what exactly it says (`Chapter 9`, paragraph 116 or
        `Para 116` of the NPPF, `Policy TR4`, `Policy BSC 1`, `Table 5-2`, Appendix B, section 6.2
        of the local plan): the text, its pages and the sections in it, from the revision in force
        today or the one named. It does not search: the reference must be the document's own.
        """
        section = await service.section(question)
        _log_revisions(call, [section.revision_id])
        return section

    async def list_policy_documents(question: ListPolicyDocuments, call: Call) -> PolicyList:
        """List all planning policies held here, the policy library: do you have this plan, SPD or
        manual, which policy documents are available, known or in the collection, all their names,
        each with its source slug, title and category. It does not tell revisions or dates: use
        list_policy_revisions or policy_snapshot for those.
        """
        return await service.policies()

    async def list_policy_revisions(question: ListPolicyRevisions, call: Call) -> RevisionList:
        """List the revisions of one policy, its history of versions or editions, newest first: how
        many there have been, which is current or came before, when each came into force (effective
        dates) and ended, what it replaced and whether it is still valid, out of date or superseded.
        It returns no text.
        """
        return await service.revisions(question)

    async def policy_snapshot(question: PolicySnapshot, call: Call) -> Snapshot:
        """Tell which revision (version) of every policy was in force on one day, the complete set
        of policies effective or applied on that date, the editions to use when an application was
        validated or decided: the state of all policies as at a day, or why none was in force. It
        returns no text.
        """
        return await service.snapshot(question)

    yield tool(get_policy_section, title="Read a section")
    yield tool(list_policy_documents, title="List policies")
    yield tool(list_policy_revisions, title="List revisions")
    yield tool(policy_snapshot, title="Everything in force on a day")


def _checking(service: PolicyService) -> Iterable[Tool]:
    async def compare_policy_revisions(
        question: ComparePolicyRevisions, call: Call
    ) -> RevisionDiff:
        """Compare two versions of a policy and show what changed between them, how it was altered
        by an update, old against new, side by side: the differences (a redline), paragraphs,
        chapters or sections added, deleted and reworded, each with a word-level diff. The diff is
        exact text comparison, not a summary of meaning.
        """
        found = await service.compare(question)
        _log_revisions(call, [found.from_revision.revision_id, found.to_revision.revision_id])
        return found

    async def verify_policy_quote(question: VerifyPolicyQuote, call: Call) -> QuoteCheck:
        """Check a quotation before it is published: whether a policy really says it, as somebody
        claims, and the quoted sentence or wording stands in it, true, accurate, cited correctly,
        verbatim, word for word, in the revision in force on a day, and on which page; tells where
        it stands if it is from another revision. It does not judge what the words mean.
        """
        return await service.verify(question)

    yield tool(compare_policy_revisions, title="Compare two revisions")
    yield tool(verify_policy_quote, title="Check a quotation")


def _writing(service: PolicyService) -> Iterable[Tool]:
    async def ingest_policy_revision(question: IngestPolicyRevision, call: Call) -> Ingested:
        """Load a policy PDF into a revision that is registered already (`rev_PPG13_1994_03`):
        import or put the file of a new plan or SPD into the system, or index it again (reindex,
        rebuild the index), so that it can be searched. It does not register revisions: the REST API
        and the command line do.
        """
        return await service.ingest(question, call.report)

    async def remove_policy_revision(question: RemovePolicyRevision, call: Call) -> Removed:
        """Take the indexed text of a policy revision (`rev_PPG13_1994_03`) out of the index, such
        as a draft or the wrong file: delete, drop, clear, wipe or purge all its chunks, so that it
        is no longer searchable. The revision itself stays registered with its dates.
        """
        return await service.remove(question)

    deletes = Hints(read_only=False, destructive=True)
    yield tool(ingest_policy_revision, title="Ingest a revision", hints=Hints(read_only=False))
    yield tool(remove_policy_revision, title="Remove a revision's chunks", hints=deletes)


def _log_revisions(call: Call, revision_ids: Iterable[str]) -> None:
    """An auditor asks later which revisions a review was answered from."""
    fields = {"request_id": call.request_id, "revisions": sorted(set(revision_ids))}
    _audit.info("answered from", extra={"fields": fields})
