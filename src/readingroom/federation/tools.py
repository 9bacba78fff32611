"""The desk's tools, and the desk itself as the server sees it: a base made of the others."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from readingroom.bases import BASES
from readingroom.engine.embedding.cross_encoder.reranker import Reranker
from readingroom.engine.embedding.embedder import Embedder
from readingroom.federation import DESK_NAME
from readingroom.federation.fan_out import FanOut
from readingroom.federation.models import (
    AssessAgainstPolicy,
    Assessment,
    DeskAnswer,
    DeskFetch,
    DeskSearch,
)
from readingroom.federation.prompts import PROMPTS
from readingroom.federation.resources import FederatedResources
from readingroom.federation.service import FederationService
from readingroom.protocol.errors import FederalDialect
from readingroom.protocol.pages import BasePages
from readingroom.protocol.search import DeskRecord, PageLinks, SearchAdapter
from readingroom.protocol.spec import BaseSpec, KnowledgeBase, LazyImport
from readingroom.protocol.tool import Tool, ToolContext, make_tool
from readingroom.storage.jobs.store import JobStore

# Imported for servers alone: Jinja2 would slow every command down.
_LAZY_MAKE_PAGES = LazyImport("readingroom.federation.pages:make_pages")


def open_federation(
    knowledge_bases: Sequence[KnowledgeBase],
    embedder: Embedder,
    server_address: str,
    absence_reason_by_base: Mapping[str, str] = {},
    base_spec_by_name: Mapping[str, BaseSpec] = BASES,
    reranker: Reranker | None = None,
) -> KnowledgeBase:
    """Return the desk over open bases.

    `server_address` is where a person can read what they hold; empty when this process serves no
    pages. `absence_reason_by_base` maps bases that could not be opened to the reason.
    """
    federation_service = FederationService(
        _make_adapters(knowledge_bases, PageLinks(server_address), base_spec_by_name),
        {
            base_spec.id_prefix or "": base_spec.name
            for base_spec in base_spec_by_name.values()
            if base_spec.adapter
        },
        embedder,
        FanOut(),
        absence_reason_by_base,
        reranker,
    )
    return KnowledgeBase(
        name=DESK_NAME,
        server_name="reading-room",
        title="Reading Room",
        instructions=(
            "search looks through every base at once; fetch(id) reads any result whole. Cite "
            "`citation.citation_string` with its `url`. For policy give the day as `date`."
        ),
        error_dialect=FederalDialect(),
        tools=tuple(_make_tools(federation_service)),
        service=federation_service,
        prompts=PROMPTS,
        resources=FederatedResources(federation_service),
        lifespan=federation_service.run_inside,
        warm_up=federation_service.warm_up,
        make_pages=partial(_make_pages, federation_service, knowledge_bases),
    )


def _make_pages(
    federation_service: FederationService,
    knowledge_bases: Sequence[KnowledgeBase],
    job_store: JobStore,
) -> BasePages:
    pages_by_base = {
        opened_base.name: opened_base.make_pages(job_store) for opened_base in knowledge_bases
    }
    federation_pages: BasePages = _LAZY_MAKE_PAGES(federation_service, pages_by_base)
    return federation_pages


def _make_adapters(
    knowledge_bases: Sequence[KnowledgeBase],
    page_links: PageLinks,
    base_spec_by_name: Mapping[str, BaseSpec],
) -> dict[str, SearchAdapter]:
    adapters_by_base = {}
    for opened_base in knowledge_bases:
        base_spec = base_spec_by_name.get(opened_base.name)
        if base_spec and base_spec.adapter:
            adapters_by_base[opened_base.name] = base_spec.adapter(opened_base.service, page_links)
    return adapters_by_base


def _make_tools(federation_service: FederationService) -> Iterator[Tool]:
    async def search(arguments: DeskSearch, tool_context: ToolContext) -> DeskAnswer:
        """Search everything held here at once, across all collections, libraries and databases
        (planning policy, application documents, charity guidance, U.S. federal records, plain
        text), when you have a topic and no id. Is there anything on this subject, whatever kind of
        source it is in, wherever it may be? What are the government, Congress and its agencies
        doing, or what have they done, said or published about it: bills, rules, hearings and
        reports, recently or since a year? Gives passages found by words and meaning, each with a
        citation and an id. To open one use `fetch`.
        """
        return await federation_service.search(arguments, tool_context)

    async def fetch(arguments: DeskFetch, tool_context: ToolContext) -> DeskRecord:
        """Open any document or record of any knowledge base when you have its id, whatever its
        kind: what a search result gave, or an id that another record names (a law `pl:110-140`, a
        CRS report `R41234`, `IF11810`, a Federal Register document `2024-00321`, a vote
        `house:117:1:9`, a speech `crec:CREC-2011-03-02-pt1-PgS1234`, `policy:…`,
        `doc:19_00017_FUL_3c9a01`, `guidance:/…`). Returns the whole record, to show, read or cite.
        Long texts come in pieces: go on with `offset` = `next_offset`. It does not search.
        """
        return await federation_service.fetch(arguments, tool_context)

    async def assess_against_policy(
        arguments: AssessAgainstPolicy, tool_context: ToolContext
    ) -> Assessment:
        """Check a planning application (`19/00017/FUL`, `19/00019/REM`) against policy on a topic.
        Does the proposal comply with the policy it must meet, is it acceptable, does it satisfy the
        standards, how does it measure up or square with them? Sets what the applicant's documents
        say next to what the policies in force on the validation date or another day require, both
        sides together, each passage cited. It retrieves only and judges nothing.
        """
        return await federation_service.assess_against_policy(arguments, tool_context)

    yield make_tool(search, title="Search everything", view="results")
    yield make_tool(fetch, title="Fetch anything by id")
    if {"application", "policy"} <= {
        search_adapter.role for search_adapter in federation_service.adapters
    }:
        yield make_tool(assess_against_policy, title="Put an application beside its policy")
