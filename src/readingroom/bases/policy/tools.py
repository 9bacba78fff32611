"""The policy base's tools, and the base itself as the server sees it."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from readingroom.bases.policy.ids import PAGE_URI_PREFIX, make_resource_path
from readingroom.bases.policy.models import (
    ComparePolicyRevisions,
    GetPolicySection,
    IngestedRevision,
    IngestPolicyRevision,
    ListPolicyDocuments,
    ListPolicyRevisions,
    PolicyHits,
    PolicyHitsBatch,
    PolicyList,
    PolicySnapshot,
    QuoteCheck,
    RemovedRevision,
    RemovePolicyRevision,
    RevisionDiff,
    RevisionList,
    SearchPolicy,
    SearchPolicyBatch,
    SectionText,
    Snapshot,
    VerifyPolicyQuote,
)
from readingroom.bases.policy.service import PolicyService
from readingroom.bases.policy.settings import PolicySettings
from readingroom.core.imports import LazyModule
from readingroom.core.settings import reveal_secret
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.ingest.context import IngestContext
from readingroom.ingest.setup import make_ingest_context
from readingroom.protocol.errors import StatusDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import (
    MAX_RESOURCE_LINKS,
    ResourceLink,
    Tool,
    ToolContext,
    ToolHints,
    make_tool,
)

if TYPE_CHECKING:
    from readingroom.bases.policy.admin import pictures
else:
    pictures = LazyModule("readingroom.bases.policy.admin.pictures")

_audit_log = logging.getLogger("readingroom.policy.audit")


def open_base(settings: PolicySettings) -> KnowledgeBase:
    """Open the policy base as the settings say."""
    ingest_context = make_ingest_context(settings, "policy", "POLICY_ROOTS", settings.policy_roots)
    knowledge_base = open_policy_base(
        settings.data / "policy", reveal_secret(settings.redis_url), ingest_context
    )
    return replace(knowledge_base, leasable_passages=get_shared_embedder(settings).waiting_texts)


def open_policy_base(
    base_folder: Path,
    redis_url: str | None,
    ingest_context: IngestContext,
) -> KnowledgeBase:
    """Open the policy base on a folder; its stores are opened when it is served."""
    policy_service = PolicyService(base_folder, redis_url, ingest_context)
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
        error_dialect=StatusDialect(),
        tools=_make_tools(policy_service),
        service=policy_service,
        keeps_sessions=True,
        serves_sse=True,
        page_image_readers={
            PAGE_URI_PREFIX: lambda picture_uri: pictures.PolicyPictures(policy_service).read_image(
                picture_uri
            )
        },
        lifespan=policy_service.run_service,
        check_ready=policy_service.check_ready,
        warm_up=policy_service.warm_up,
    )


def _make_tools(policy_service: PolicyService) -> tuple[Tool, ...]:
    return (
        *_make_search_tools(policy_service),
        *_make_reading_tools(policy_service),
        *_make_checking_tools(policy_service),
        *_make_writing_tools(policy_service),
    )


def _make_search_tools(policy_service: PolicyService) -> Iterable[Tool]:
    async def search_policy(arguments: SearchPolicy, tool_context: ToolContext) -> PolicyHits:
        """Find what planning policy says on a topic, in the NPPF and other national policy and
        guidance or in the local plan: housing, green belt, design, heritage, flood risk,
        biodiversity, highways, parking. What does policy require, expect, allow or discourage,
        which policies govern or support this, what rule, standard or minimum applies, when is
        something needed, where is it dealt with and what did it say at the time? Gives passages, as
        policy stood on a day when effective_date is given (else from all revisions, each marked).
        `excluded` says which policies could not answer and why. For a paragraph or section whose
        number you know use `get_policy_section`. For several topics use `search_policy_batch`.
        """
        policy_hits = await policy_service.search(arguments)
        _log_revisions(tool_context, [hit.revision_id for hit in policy_hits.results])
        return policy_hits

    async def search_policy_batch(
        arguments: SearchPolicyBatch, tool_context: ToolContext
    ) -> PolicyHitsBatch:
        """Find the policies on several topics at once, in one go: two, three, five or more subjects
        (parking; trees; heritage; noise), such as the headings of a report. What does planning
        policy, in the NPPF or the local plan, say on each of these? The list of questions is looked
        up together in a single pass, each answered separately and in order, on the same day. For a
        single topic use `search_policy`.
        """
        hits_batch = await policy_service.search_batch(arguments)
        _log_revisions(
            tool_context,
            [hit.revision_id for policy_hits in hits_batch.searches for hit in policy_hits.results],
        )
        return hits_batch

    yield make_tool(search_policy, title="Search policies")
    yield make_tool(search_policy_batch, title="Search policies, several queries")


def _make_reading_tools(policy_service: PolicyService) -> Iterable[Tool]:
    async def get_policy_section(
        arguments: GetPolicySection, tool_context: ToolContext
    ) -> SectionText:
        """Read one section of a policy in full, word for word, when you know its number (`Chapter
        9`, paragraph 116 or `Para 116` of the NPPF, `Policy TR4`, `Policy BSC 1`, `Table 5-2`,
        Annex 2, Appendix B, section 6.2 of the local plan). What exactly does it say, how is it
        written? Gives its text, its pages and the sections in it, from the revision in force today
        or the one named; the reference must be the document's own. When you know the topic and not
        the number, use `search_policy`.
        """
        section_text = await policy_service.get_section(arguments)
        _log_revisions(tool_context, [section_text.revision_id])
        return section_text

    async def list_policy_documents(
        arguments: ListPolicyDocuments, tool_context: ToolContext
    ) -> PolicyList:
        """List all the planning policies held here, the catalogue of the policy library or shelf.
        Which policy documents, plans, guides and manuals do you have, hold or know, and have you
        got this one? Gives the source slug, title and category of each. For the versions of one use
        `list_policy_revisions`. For what was in force on a day use `policy_snapshot`.
        """
        return await policy_service.list_policies()

    async def list_policy_revisions(
        arguments: ListPolicyRevisions, tool_context: ToolContext
    ) -> RevisionList:
        """List the revisions of one policy, such as the NPPF or a local plan: its history or
        timeline of versions and editions, newest first. Which versions exist and how many, which
        one is current, from which date until when was each valid and in force, what did it replace,
        has it been superseded? It returns no text. For what changed in the text use
        `compare_policy_revisions`.
        """
        return await policy_service.list_revisions(arguments)

    async def policy_snapshot(arguments: PolicySnapshot, tool_context: ToolContext) -> Snapshot:
        """Tell which version of every policy was in force on one day, the NPPF, local plans and
        all. What was the whole policy framework as it stood then, the state of all policies as of
        that date, the right edition of each document for an application that was validated, decided
        or appealed? Gives every policy with its revision of that day, or why none was in force. It
        returns no text. For the versions of one policy use `list_policy_revisions`. For what policy
        said on a topic that day use `search_policy`.
        """
        return await policy_service.get_snapshot(arguments)

    yield make_tool(get_policy_section, title="Read a section", list_links=_make_section_links)
    yield make_tool(list_policy_documents, title="List policies")
    yield make_tool(
        list_policy_revisions,
        title="List revisions",
        view="timeline",
        list_links=_make_revision_links,
    )
    yield make_tool(policy_snapshot, title="Everything in force on a day", view="timeline")


def _make_checking_tools(policy_service: PolicyService) -> Iterable[Tool]:
    async def compare_policy_revisions(
        arguments: ComparePolicyRevisions, tool_context: ToolContext
    ) -> RevisionDiff:
        """Compare two versions of a policy, such as the NPPF or a local plan. What changed between
        two dates or editions, what is new or different, how was a paragraph, section or chapter
        modified or reworded? Shows before and after, what was added, deleted and rewritten, as a
        word-by-word diff or redline. The differences are of exact text, not a summary of meaning.
        """
        revision_diff = await policy_service.compare_revisions(arguments)
        _log_revisions(
            tool_context,
            [revision_diff.from_revision.revision_id, revision_diff.to_revision.revision_id],
        )
        return revision_diff

    async def verify_policy_quote(
        arguments: VerifyPolicyQuote, tool_context: ToolContext
    ) -> QuoteCheck:
        """Check a quotation from a policy, such as the NPPF or a local plan. Does it really say
        these words, as somebody claims, is the quote right, or was it made up? Tells whether a
        quoted sentence is accurate and true word for word in the revision in force on a day, and on
        which page, or in which other revision it stands, before you cite or publish it. It does not
        judge what the words mean.
        """
        return await policy_service.verify_quote(arguments)

    yield make_tool(compare_policy_revisions, title="Compare two revisions", view="compare")
    yield make_tool(
        verify_policy_quote,
        title="Check a quotation",
        view="quotation",
        list_links=_make_quote_links,
    )


def _make_writing_tools(policy_service: PolicyService) -> Iterable[Tool]:
    async def ingest_policy_revision(
        arguments: IngestPolicyRevision, tool_context: ToolContext
    ) -> IngestedRevision:
        """Load the PDF of a policy (`/inbox/plan.pdf`) into its revision (`rev_PPG13_1994_03`): add
        a new edition or version of the NPPF, a local plan or SPD to the policy library, or process
        and index the file again, so that it can be searched. The revision must be registered
        already, which the REST API and the command line do. For a file of a planning application
        use `ingest_document`.
        """
        return await policy_service.ingest_revision(arguments, tool_context.report_progress)

    async def remove_policy_revision(
        arguments: RemovePolicyRevision, tool_context: ToolContext
    ) -> RemovedRevision:
        """Take the text of a policy revision (`rev_PPG13_1994_03`) out of the policy library, such
        as a draft local plan or the wrong file loaded by mistake: delete all its chunks from the
        index, so that it no longer turns up in searches. The revision itself stays registered with
        its dates. For a file of a planning application use `remove_document`.
        """
        # One that is not known is no question: this raises for it.
        await policy_service.registry.get_policy(arguments.source)
        chunk_ids = await policy_service.store.get_chunk_ids(
            arguments.source, arguments.revision_id
        )
        await tool_context.require_consent(
            f"Remove the text of {arguments.revision_id} of {arguments.source} from the policy "
            f"library: {len(chunk_ids)} passages? The revision stays registered with its dates."
        )
        return await policy_service.remove_revision_chunks(arguments)

    deletion_hints = ToolHints(read_only=False, destructive=True)
    yield make_tool(
        ingest_policy_revision, title="Ingest a revision", hints=ToolHints(read_only=False)
    )
    yield make_tool(
        remove_policy_revision, title="Remove a revision's chunks", hints=deletion_hints
    )


def _make_section_links(section_text: SectionText) -> list[ResourceLink]:
    resource_path = make_resource_path(
        section_text.source, section_text.revision_id, section_text.section_ref
    )
    return [ResourceLink(resource_path, section_text.citation)]


def _make_revision_links(revision_list: RevisionList) -> list[ResourceLink]:
    return [
        ResourceLink(
            make_resource_path(revision_list.source, revision.revision_id),
            f"{revision_list.source} ({revision.version_label})",
        )
        for revision in revision_list.revisions[:MAX_RESOURCE_LINKS]
    ]


def _make_quote_links(quote_check: QuoteCheck) -> list[ResourceLink]:
    return [
        ResourceLink(
            make_resource_path(
                quote_check.source, quote_place.revision_id, quote_place.section_ref
            ),
            quote_place.citation,
        )
        for quote_place in quote_check.found[:MAX_RESOURCE_LINKS]
    ]


def _log_revisions(tool_context: ToolContext, revision_ids: Iterable[str]) -> None:
    """Log which revisions an answer came from, for auditors."""
    log_fields = {"request_id": tool_context.request_id, "revisions": sorted(set(revision_ids))}
    _audit_log.info("answered from", extra={"fields": log_fields})
