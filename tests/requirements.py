"""Every requirement of the five specs and of the room itself, by a stable id that tests wear.

A test says what it proves with `@requirement("policy:FR-007:gap")`. What is not built yet carries
`deferred`, the work that will build it. `test_requirements.py` holds both ways.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Requirement:
    """One thing a reader could observe, and the work it waits for, if it waits."""

    id: str
    says: str
    deferred: str | None = None


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test, a class or a module's `pytestmark` with the requirements it proves."""
    return pytest.mark.requirement(*ids)


def _by_id(*groups: tuple[Requirement, ...]) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for one in (one for group in groups for one in group):
        if one.id in found:
            raise ValueError(f"{one.id} is listed twice")
        found[one.id] = one
    return found


POLICY = (
    Requirement(
        "policy:tools",
        "The six policy tools are listed by exact name, each with its input and output schema.",
    ),
    Requirement(
        "policy:FR-001:shape",
        "A search answers status, query, effective_date, results_count and results, each "
        "result holding chunk_id, text, relevance_score, source, revision_id, "
        "version_label, section_ref and page_number.",
    ),
    Requirement(
        "policy:FR-001:rank",
        "Results come best first, scored max(0, 1 - distance / 2), "
        "ten of them unless n_results asks otherwise.",
    ),
    Requirement(
        "policy:FR-001:date",
        "An effective_date keeps only revisions in force that day, both end days included.",
    ),
    Requirement(
        "policy:FR-001:sources",
        "One slug or several in sources keep only those policies, "
        "together with the date when both are given.",
    ),
    Requirement(
        "policy:FR-001:all",
        "Without a date every revision is searched, superseded ones too.",
    ),
    Requirement(
        "policy:FR-001:before",
        "A date before any revision answers results_count 0 and an empty list, not an error.",
    ),
    Requirement("policy:FR-001:invalid-date", "A malformed date is told as invalid_date."),
    Requirement(
        "policy:FR-001:model",
        "The embedding model is a setting and is all-MiniLM-L6-v2 by default.",
    ),
    Requirement(
        "policy:FR-001:unknown-source",
        "A slug in sources that no policy has is named in the answer.",
    ),
    Requirement(
        "policy:FR-002:shape",
        "A section answers status, source, section_ref, revision_id, "
        "version_label, text and page_numbers, the pages sorted and without repeats.",
    ),
    Requirement(
        "policy:FR-002:whole",
        "A section's text is all of its chunks in order, joined by a blank line; what two of them "
        "share stands once.",
    ),
    Requirement(
        "policy:FR-002:default",
        "Without a revision_id the section comes from the latest revision in force today.",
    ),
    Requirement(
        "policy:FR-002:named",
        "A named revision_id is the one that answers, superseded or not.",
    ),
    Requirement(
        "policy:FR-002:asked",
        "A section can be asked for the way people write references.",
    ),
    Requirement(
        "policy:FR-002:missing",
        "A section that no chunk carries is told as section_not_found.",
    ),
    Requirement(
        "policy:FR-003",
        "The list answers policy_count and policies with source, title "
        "and category from the registry; an empty registry gives 0 and an empty list.",
    ),
    Requirement(
        "policy:FR-003:unavailable",
        "Every tool that reads the registry tells registry_unavailable when it cannot be reached.",
    ),
    Requirement(
        "policy:FR-004",
        "Revisions come newest first with revision_id, version_label, effective_from, "
        "effective_to, status and chunk_count, beside source and revision_count; an open "
        "end is null.",
    ),
    Requirement(
        "policy:FR-004:unknown",
        "Asking for the revisions of an unknown source is an error that names the source.",
    ),
    Requirement(
        "policy:FR-005:shape",
        "An ingest answers status, source, revision_id, "
        "chunks_created, page_count and extraction_method.",
    ),
    Requirement(
        "policy:FR-005:checks",
        "A missing file, an unregistered revision and a file without text "
        "are told as file_not_found, revision_not_found and no_content.",
    ),
    Requirement(
        "policy:FR-005:metadata",
        "Every chunk stores source, source_title (the title), revision_id, "
        "version_label, effective_from and effective_to as integers (99991231 while "
        "open), section_ref, page_number and chunk_index.",
    ),
    Requirement(
        "policy:FR-005:ids",
        "Chunk ids are {source}__{revision_id}__{section_ref}__{chunk_index:03d}, "
        "the same on every run.",
    ),
    Requirement("policy:FR-005:ocr", "The text of scanned pages is read by OCR."),
    Requirement(
        "policy:FR-005:reindex",
        "A reindex leaves exactly the new chunks, and the old ones answer until it is done.",
    ),
    Requirement(
        "policy:FR-005:again",
        "Ingesting without reindex over existing chunks changes nothing and says so.",
    ),
    Requirement(
        "policy:FR-006",
        "Removing a revision answers how many chunks went, 0 when there were none, "
        "and leaves the registry as it was but for a chunk_count of 0.",
    ),
    Requirement(
        "policy:FR-006:shape",
        "A removal answers status, source, revision_id and chunks_removed.",
    ),
    Requirement(
        "policy:FR-007:auto",
        "A later revision closes the open one before it at the day before its own start.",
    ),
    Requirement(
        "policy:FR-007:chunks",
        "When a revision is superseded, the dates on its chunks follow.",
    ),
    Requirement(
        "policy:FR-007:before-first",
        "A day before the first revision resolves to none, with reason date_before_first_revision.",
    ),
    Requirement(
        "policy:FR-007:gap",
        "A day between two revisions resolves to none, with reason date_in_gap.",
    ),
    Requirement(
        "policy:FR-007:from",
        "A revision is in force on the day its effective_from names.",
    ),
    Requirement(
        "policy:FR-007:to",
        "A revision is still in force on the day its effective_to names.",
    ),
    Requirement(
        "policy:FR-007:status",
        "Only active and superseded revisions resolve; processing and failed ones never do.",
    ),
    Requirement(
        "policy:FR-007:api",
        "The resolver answers resolve_for_policy, resolve_snapshot and get_revision_ids_for_date.",
    ),
    Requirement(
        "policy:FR-007:no-void",
        "A successor that is still processing or has failed leaves its predecessor in force.",
    ),
    Requirement(
        "policy:FR-008:keys",
        "The registry keeps the spec's four key patterns with their Redis types and every field.",
    ),
    Requirement(
        "policy:FR-008:create",
        "A policy whose slug is already registered is refused.",
    ),
    Requirement(
        "policy:FR-008:overlap",
        "A true overlap with a bounded revision raises RevisionOverlapError, "
        "while one that ends before an open revision starts may be inserted.",
    ),
    Requirement(
        "policy:FR-008:update",
        "A revision's metadata can be changed, and the change is read back.",
    ),
    Requirement(
        "policy:FR-008:delete",
        "A deleted revision is gone from the registry and from the policy's revisions.",
    ),
    Requirement(
        "policy:FR-008:sole",
        "The only active revision of a policy cannot be deleted.",
    ),
    Requirement(
        "policy:FR-008:slug",
        "A slug matches its pattern as a whole and in ASCII, or it is refused.",
    ),
    Requirement("policy:FR-008:category", "A category outside the known ones is refused."),
    Requirement(
        "policy:FR-009:endpoints",
        "Served alone, the base answers /health, /sse, /messages/ and /mcp (GET, POST, "
        "DELETE) on port 3003, with one Server named policy-kb-mcp behind both "
        "transports.",
    ),
    Requirement(
        "policy:NFR-001",
        "The resolver and the search agree on the revision in force on every date, "
        "over all revisions that have chunks.",
    ),
    Requirement(
        "policy:NFR-002",
        "With the seed policies ingested the process stays well inside 2 GB.",
    ),
    Requirement(
        "policy:NFR-003",
        "No operation and no crash leaves an orphan chunk, and chunk_count is always true.",
    ),
    Requirement("policy:nice:batch", "Several queries are answered in one call."),
    Requirement("policy:nice:stream", "A large result set can be read page by page."),
    Requirement(
        "policy:seed",
        "The six seed policies with their seven revisions load, and each of them answers.",
    ),
    Requirement(
        "policy:audit",
        "The revisions that answered can be listed afterwards: "
        "ids and labels are in every answer and in its log line.",
    ),
    Requirement(
        "policy:compare",
        "Two revisions of a policy can be compared, section by section.",
    ),
    Requirement(
        "policy:verify",
        "A quotation can be checked against the revision in force, and its page is told.",
    ),
    Requirement(
        "policy:snapshot",
        "The revision in force of every policy on one date can be read in one call.",
    ),
    Requirement(
        "policy:rest",
        "Policies and revisions are created, read, changed and deleted over REST.",
    ),
    Requirement(
        "policy:rest:fuzz",
        "No REST request gets a 5xx or an answer off its schema.",
    ),
    Requirement(
        "policy:doctor",
        "doctor names every disagreement of registry, chunks and index, and --repair mends it.",
    ),
    # Auth is shared by every face, so the foundation has built it already.
    Requirement(
        "policy:FR-010:missing",
        "A request without an Authorization header gets 401, "
        'code unauthorized and "Missing Authorization header".',
    ),
    Requirement(
        "policy:FR-010:invalid",
        'A request with a wrong key gets 401, code unauthorized and "Invalid bearer token".',
    ),
    Requirement(
        "policy:FR-010:scheme",
        "A request with a scheme other than Bearer gets 401, "
        "code unauthorized and the message that says which format is expected.",
    ),
    Requirement("policy:FR-010:health", "/health answers without a key while one is set."),
    Requirement("policy:FR-010:off", "With MCP_API_KEY unset or empty, requests need no key."),
    Requirement(
        "policy:FR-010:log",
        "A refused request is logged at WARNING with the client's IP, the endpoint and the method.",
    ),
    Requirement("policy:FR-010:constant-time", "Keys are compared with hmac.compare_digest."),
)

DOCUMENTS = (
    Requirement(
        "documents:corpus",
        "Every real file has a specified outcome through a real client, the server lives on, and "
        "its memory does not grow over three repeats.",
    ),
    Requirement(
        "documents:crash",
        "A kill at any step of an ingest or a removal leaves no registry entry without its chunks "
        "and no chunks without an entry, and ingesting again heals.",
    ),
    Requirement(
        "documents:doctor",
        "The doctor compares registry, chunks, indexes and files, and mends what can be mended.",
    ),
    Requirement(
        "documents:ingest:idempotent",
        "The same bytes under the same reference answer already_ingested "
        "with the document's id and a message.",
    ),
    Requirement(
        "documents:ingest:type",
        "An explicit document_type wins over the classification.",
    ),
    Requirement(
        "documents:ingest:hash",
        "A document's identity is its SHA-256, "
        "and its id the sanitised reference with six hex digits.",
    ),
    Requirement(
        "documents:search:shape",
        "A search answers status, query, results_count and results, "
        "each with chunk_id, text, relevance_score and the ten metadata fields.",
    ),
    Requirement(
        "documents:search:filters",
        "application_ref and document_types restrict the results, "
        "alone or together, to ten unless max_results asks otherwise.",
    ),
    Requirement(
        "documents:text",
        "get_document_text gives the whole text in order, "
        "no overlap repeated, or tells document_not_found or no_chunks.",
    ),
    Requirement(
        "documents:text:fields",
        "get_document_text also answers file_path, document_type and chunk_count.",
    ),
    Requirement(
        "documents:list",
        "The list answers application_ref, document_count and documents with seven "
        "fields each; an application without any gives 0 and an empty list, not an error.",
    ),
    Requirement("documents:pages", 'Each chunk knows the pages it spans, written as "14,15".'),
    Requirement(
        "documents:store",
        "A PersistentClient without telemetry, or memory when there is no directory, "
        "holds application_docs and document_registry, whose embeddings are 384 zeros.",
    ),
    Requirement("documents:ids", "Chunk ids are {ref}_{hash6}_{page:03d}_{chunk:03d}."),
    Requirement(
        "documents:metadata",
        "Chunks and registry entries answer exactly the spec's metadata fields.",
    ),
    Requirement(
        "documents:delete",
        "delete_document removes the document's chunks and its registry entry.",
    ),
    Requirement("documents:remove", "A document can be removed by a tool or a command."),
    Requirement(
        "documents:tools",
        "The tools are listed by exact name: ingest_document, "
        "search_application_docs, get_document_text and list_ingested_documents.",
    ),
    Requirement(
        "documents:ingest:success",
        "An ingest answers status, document_id, chunks_created, "
        "extraction_method, contains_drawings, total_chars and total_words.",
    ),
    Requirement(
        "documents:ingest:skipped",
        "An image-based document answers skipped with reason, image_ratio and total_pages.",
    ),
    Requirement(
        "documents:ingest:errors",
        "A failed ingest is told as file_not_found, "
        "unsupported_file_type, extraction_failed, no_content or no_chunks.",
    ),
    Requirement(
        "documents:ingest:formats",
        "Files ending pdf, png, jpg, jpeg, tiff, tif and bmp are accepted.",
    ),
    Requirement(
        "documents:chunks",
        "Chunks are 800 characters with 200 overlapping, split at the spec's "
        "separators in order, each kept at the end of the chunk before it.",
    ),
    Requirement(
        "documents:embedding",
        "MiniLM gives 384 dimensions in batches of 32, loads on first use, "
        "cuts text at 1,024 characters with a warning and raises ValueError on "
        "blank input.",
    ),
    Requirement(
        "documents:config",
        "The five variables of the spec are read, and have its defaults.",
    ),
    Requirement(
        "documents:transport",
        "Served alone, the base answers the spec's endpoints with its auth on port 3002.",
    ),
    Requirement(
        "documents:type:other",
        "An unknown document_type override is refused, and the known ones are named.",
    ),
    Requirement(
        "documents:application",
        "An application has a record of its own, with its validation date.",
    ),
    Requirement(
        "documents:overview",
        "What an application's documents hold can be seen in one call.",
    ),
    Requirement(
        "documents:folder",
        "A whole folder is ingested in one command, with a result for each file.",
    ),
    Requirement("documents:page-image", "A page of a document can be had as an image."),
    Requirement(
        "documents:rest",
        "What the tools do can be done over REST, references travelling as query parameters.",
    ),
    Requirement(
        "documents:paths",
        "A path outside the roots, a link that leads out, a pipe or a device is file_not_found, "
        "and nothing of it is read.",
    ),
)

TEXT = (
    Requirement(
        "text:FR-1",
        "The file is read into memory at start, "
        "read errors do not stop the server, and each access is logged.",
    ),
    Requirement(
        "text:FR-2",
        "get_kb_info answers file size, content length, status, "
        "last modified and description, or unavailable with minimal fields.",
    ),
    Requirement(
        "text:FR-3",
        "get_kb_content answers the whole text and its length "
        "with status ok or empty, or error with a message.",
    ),
    Requirement(
        "text:FR-4",
        "Over stdio a client shakes hands, "
        "discovers the tools and gets protocol errors for bad requests.",
    ),
    Requirement("text:FR-5", "The content is returned whole, never truncated."),
    Requirement(
        "text:FR-6",
        "Errors are readable, start-up says success or failure in one line, "
        "and the log level is a setting.",
    ),
    Requirement(
        "text:AS-1",
        "For a readable file with text, get_kb_info answers size, "
        "content length, last modified, status available and description.",
    ),
    Requirement(
        "text:AS-2",
        "For a readable file with text, get_kb_content answers status ok, "
        "the full content and its right contentLength.",
    ),
    Requirement(
        "text:AS-3",
        "For an empty file, get_kb_content answers status empty, "
        "contentLength 0 and an empty string.",
    ),
    Requirement(
        "text:AS-4",
        "For a path that does not exist, "
        "get_kb_info answers unavailable with minimal fields and the server goes on.",
    ),
    Requirement(
        "text:AS-5",
        "When a read fails for a moment, "
        "get_kb_content answers status error with a message and nothing is raised past the tool.",
    ),
    Requirement(
        "text:edge",
        "No path configured, an empty file, a locked or failing read, "
        "nearly 10 MB and bytes that are not UTF-8 each get an answer.",
    ),
    Requirement("text:names", "The protocol names get_kb_info and get_kb_content are pinned."),
    Requirement("text:start", "The server answers within 5 seconds of its start."),
    Requirement("text:config", "The file's path is given by argument or by setting."),
    Requirement(
        "text:config-file",
        "Path, description and log level can also come from readingroom.toml.",
    ),
    Requirement(
        "text:plain",
        "Any readable UTF-8 text is served, and its content is never parsed.",
    ),
    Requirement("text:log", "The start, each call and the size of its answer are logged."),
)

FEDERAL = (
    Requirement(
        "federal:AC-01",
        "/mcp speaks Streamable HTTP of revision 2025-11-25, with neither stdio nor SSE.",
    ),
    Requirement(
        "federal:AC-02",
        "initialize advertises protocolVersion 2025-11-25, "
        "the name josh and the version of the package.",
    ),
    Requirement(
        "federal:AC-04",
        "tools/list has tools named exactly search and fetch beside the typed ones.",
    ),
    Requirement(
        "federal:AC-05",
        "search answers {results, total, took_ms} exactly as GET /v1/search does.",
    ),
    Requirement(
        "federal:AC-06",
        "fetch routes an id by its type prefix to the right resource and answers the full record.",
    ),
    Requirement("federal:AC-07", "The id of every search result is one that fetch takes."),
    Requirement(
        "federal:AC-08",
        "A typed tool given an identifier reads the record "
        "by SQL and touches neither FTS5 nor vectors.",
    ),
    Requirement(
        "federal:AC-09",
        "tools/list has at least search, fetch, get_bill, get_legislator, "
        "list_committee_members, list_cosponsors, lexical_search and semantic_search.",
    ),
    Requirement(
        "federal:AC-10",
        "The filters of semantic_search narrow the candidates before scoring, "
        "never the best ones after.",
    ),
    Requirement(
        "federal:AC-11",
        "lexical_search runs FTS5 BM25 alone, with no vector retrieval.",
    ),
    Requirement(
        "federal:AC-12",
        "The three search tools refuse a registry source as source_not_searchable, "
        "and _meta.hint.use_tool is resolve_entity.",
    ),
    Requirement(
        "federal:AC-13",
        "semantic_search refuses a short-body source as source_not_searchable_semantically, "
        "with _meta.hint.valid_sources.",
    ),
    Requirement(
        "federal:AC-14",
        "The description of semantic_search lists the body-bearing sources of the live schema.",
    ),
    Requirement(
        "federal:AC-22",
        "A REST error becomes an isError result whose first text holds code, "
        "message and request_id.",
    ),
    Requirement(
        "federal:AC-23",
        "Arguments that fail their schema get -32602 with a message naming the field.",
    ),
    Requirement(
        "federal:AC-26",
        "Every tool call, failed ones too, logs tool_name, "
        "request_id, duration_ms, result_status and caller_kind.",
    ),
    Requirement(
        "federal:A",
        "The seven typed lookups answer: get_bill, get_legislator, get_committee, "
        "list_committee_members, list_cosponsors, get_bill_text and list_member_votes.",
    ),
    Requirement(
        "federal:B",
        "lexical_search, semantic_search and search keep the rules for body, "
        "short-body and registry sources.",
    ),
    Requirement(
        "federal:C",
        "fetch routes every kind of id, "
        "and tells unrecognized_id_format with valid_prefixes for any other.",
    ),
    Requirement(
        "federal:chatgpt",
        "ChatGPT can use search and fetch: id, title and url are never empty.",
    ),
    Requirement(
        "federal:errors",
        "Message, code, request_id and hint of the REST envelope all reach the tool result.",
    ),
    Requirement("federal:landing", "GET /mcp is a page with install notes."),
    Requirement(
        "federal:shared-process",
        "A request over REST and one over MCP pass the same process, request ids and auth.",
    ),
    Requirement("federal:paging", "cursor and offset pass through the tools unchanged."),
    Requirement(
        "federal:not-found",
        "A well-formed id without a record is told as record_not_found.",
    ),
    Requirement(
        "federal:registry-words",
        "The descriptions of the search tools say "
        "that registries are out of scope and name resolve_entity.",
    ),
    Requirement(
        "federal:degraded",
        "When a short-body source or a missing model forces another mode, "
        "degraded holds requested_mode, used_mode, sources and reason.",
    ),
    Requirement(
        "federal:rate-pool",
        "REST and MCP calls of one caller draw on one rate limit.",
    ),
    Requirement(
        "federal:bodies",
        "Eleven sources have a body: each loads from its native format, and answers by search, "
        "fetch and REST.",
    ),
    Requirement("federal:loaded-up-to", "Answers say up to which date their source is loaded."),
    Requirement(
        "federal:votes",
        "How members voted can be read for a roll call and for a member.",
    ),
    Requirement(
        "federal:AC-15",
        "resolve_entity answers the ranked records "
        "that GET /v1/<entity_type>?q= gives for the same query and filters.",
    ),
    Requirement(
        "federal:AC-16",
        "The entity_type enum of resolve_entity is the live list of registry sources.",
    ),
    Requirement("federal:D", "resolve_entity takes registries only and answers full records."),
    Requirement(
        "federal:links",
        "Records name the records they refer to, by ids that fetch takes.",
    ),
    Requirement(
        "federal:AC-17",
        "count, sum and time_series answer the REST aggregate unchanged: "
        "value or buckets, total_buckets, and query_cost.",
    ),
    Requirement(
        "federal:AC-18",
        "The group_by and sum_field enums are the eligible fields "
        "of each resource's AggregationPlan.",
    ),
    Requirement(
        "federal:AC-19",
        "An aggregate over its row budget or its time is told as "
        "aggregate_too_broad or aggregate_timeout, with _meta.hint.suggest_narrowing.",
    ),
    Requirement(
        "federal:E",
        "count, sum and time_series take the enums of the plan and keep to budget and timeout.",
    ),
    Requirement(
        "federal:AC-03",
        "MCP and REST run in one process with the same request ids and the same JOSH_AUTH posture.",
    ),
    Requirement(
        "federal:AC-24",
        "With JOSH_AUTH=disabled calls need no token, "
        "and /.well-known/oauth-protected-resource has an empty authorization_servers.",
    ),
    Requirement(
        "federal:AC-25",
        "With JOSH_AUTH=oauth the RFC 9728 document is served, "
        "and every call needs a valid bearer token that maps to api_keys.",
    ),
    Requirement(
        "federal:auth:disabled",
        "The disabled mode serves both well-known documents and asks for no token.",
    ),
    Requirement(
        "federal:auth:oauth",
        "The oauth mode serves both well-known documents and refuses a call without a valid token.",
    ),
    Requirement("federal:changes", "What changed since a date can be listed."),
    Requirement(
        "federal:AC-27",
        "The manifest gives the name io.github.<org>/josh, "
        "a one-line description, the tools and a link to the install docs.",
    ),
    Requirement(
        "federal:manifest",
        "server.json holds name, description, tools and a link to the docs.",
    ),
    Requirement(
        "federal:install",
        "The landing page links the registry listing and names Cowork, ChatGPT, Claude and Cursor.",
    ),
    Requirement("federal:sync", "A source can be brought up to date without loading it again."),
    Requirement(
        "federal:AC-20",
        "Each of the four dossier tools answers the whole REST dossier, "
        "all sections, in one result.",
    ),
    Requirement("federal:AC-21", "A truncated section of a dossier keeps its more_url."),
    Requirement(
        "federal:F",
        "The four dossiers hold all their sections, and more_url where one is cut.",
    ),
    Requirement(
        "federal:routing",
        "The routing evaluation covers every class of tool, and its questions reach the right one.",
    ),
    Requirement(
        "federal:tls",
        "TLS is had by flags or behind a proxy, and the public URL is a setting.",
    ),
)

GUIDANCE = (
    Requirement(
        "guidance:tools",
        "The five tools are listed by exact name with input and output schemas: "
        "get_content_by_path, search_guidance, get_source_metadata, force_refresh and "
        "get_error_taxonomy.",
    ),
    Requirement(
        "guidance:attribution",
        "Every answer carries the attribution, errors included.",
    ),
    Requirement("guidance:disclaimer", "Every answer carries the disclaimer, errors included."),
    Requirement(
        "guidance:readonly",
        "Nothing but GET goes upstream, "
        "content is handed on untouched, and enrichment is labelled.",
    ),
    Requirement(
        "guidance:fidelity",
        "Canonical URL, identifiers and public_updated_at are those "
        "of GOV.UK, null where it has none.",
    ),
    Requirement(
        "guidance:scope",
        "Content of any other organisation is told as CONTENT_OUT_OF_SCOPE.",
    ),
    Requirement(
        "guidance:search",
        "A search stays inside the Charity Commission and gives title, "
        "url, summary and public_updated_at.",
    ),
    Requirement(
        "guidance:metadata",
        "The metadata of a path holds url, identifiers, last_updated and licence.",
    ),
    Requirement(
        "guidance:refresh",
        "force_refresh goes past the cache, fetches, and answers refreshed and timestamp.",
    ),
    Requirement(
        "guidance:taxonomy",
        "The error taxonomy is made from the codes that the server itself raises.",
    ),
    Requirement(
        "guidance:cache",
        "Cached answers have a set TTL and a key of identifiers and parameters; "
        "a stale one is served only when the upstream fails, within its limit and marked.",
    ),
    Requirement("guidance:limit", "One client gets at most 10 requests per second."),
    Requirement("guidance:backoff", "Upstream retries wait exponentially longer, with jitter."),
    Requirement(
        "guidance:breaker",
        "Repeated upstream failures open a circuit breaker, "
        "and a failing cache falls back to live fetches.",
    ),
    Requirement(
        "guidance:rate-limited",
        "A refusal for rate is told as UPSTREAM_RATE_LIMITED.",
    ),
    Requirement(
        "guidance:not-found",
        "A path that is missing or moved is told as NOT_FOUND_OR_REDIRECTED.",
    ),
    Requirement("guidance:stale", "A stale answer is marked STALE_CACHE_SERVED with its age."),
    Requirement(
        "guidance:logs",
        "A log line holds correlation id, upstream latency, hit or miss and sizes, "
        "no personal data, and payload previews of at most 4 KB under debug only.",
    ),
    Requirement("guidance:trace", "The caller's trace context is passed on upstream."),
    Requirement(
        "guidance:slo",
        "Cached answers stay under 300 ms at p95 and live ones under 1,000 ms, as documented.",
    ),
    Requirement(
        "guidance:slo:alerts",
        "The uptime objective and its alert rules are documented.",
    ),
    Requirement(
        "guidance:semver",
        "Schemas have a version, and a breaking change fails without a new major one.",
    ),
    Requirement(
        "guidance:migration",
        "A deprecation lasts at least 30 days and has migration notes in the changelog.",
    ),
    Requirement(
        "guidance:config",
        "No secret is in the tree, and every outgoing endpoint is a setting.",
    ),
    Requirement(
        "guidance:supply",
        "Dependencies are pinned, an SBOM is made, and licences are checked.",
    ),
    Requirement(
        "guidance:incident",
        "SECURITY.md holds the incident playbook and the times to remedy.",
    ),
    Requirement("guidance:clients", "Several standard MCP clients see the same behaviour."),
    Requirement(
        "guidance:owners",
        "CODEOWNERS asks the protocol owner to review a change of contract.",
    ),
    Requirement(
        "guidance:ci-gates",
        "The test command runs build, tests, lint, schema validation and licence check.",
    ),
    Requirement("guidance:attachments", "Attachments and images are referenced, not served."),
    Requirement("guidance:no-pii", "No data about a user is stored."),
    Requirement(
        "guidance:changes",
        "recent_changes lists what the Commission has lately published or updated.",
    ),
)

ENGINE = (
    Requirement(
        "engine:chunking:cuts",
        "A text is cut where the splitter that the contracts name cuts it.",
    ),
    Requirement(
        "engine:chunking:offsets",
        "A chunk knows its exact place; every word is in one, none is over the size, "
        "neighbours share at most the overlap.",
    ),
    Requirement("engine:chunking:pages", "A chunk knows which pages it touches."),
    Requirement(
        "engine:embedding:equal",
        "Vectors equal those of sentence-transformers to 1e-5, alone or in any batch.",
    ),
    Requirement(
        "engine:embedding:int8",
        "The int8 model gives near vectors under an identity of its own.",
    ),
    Requirement(
        "engine:embedding:input",
        "Blank text raises ValueError; over 1,024 characters it is cut with a warning.",
    ),
    Requirement("engine:embedding:lazy", "Nothing is imported or loaded before the first text."),
    Requirement("engine:embedding:queries", "A question asked again is not embedded again."),
    Requirement("engine:embedding:progress", "A bulk run says how far it has come."),
    Requirement("engine:embedding:threads", "Threads share one model and get equal vectors."),
    Requirement(
        "engine:embedding:cache",
        "The graph is built once and atomically; a damaged one is noticed and built anew.",
    ),
    Requirement(
        "engine:filters",
        "Equals, in, range and and mean the same to every backend.",
    ),
    Requirement(
        "engine:vectors:exact",
        "A search equals brute force over the stored vectors: ids, scores to 1e-5, ties by id.",
    ),
    Requirement("engine:vectors:writes", "Every write shows in the next search."),
    Requirement(
        "engine:vectors:signs",
        "A scan too large to be exact chooses by signs and finds nearly all the same.",
    ),
    Requirement(
        "engine:vectors:bad-input",
        "Wrong sizes, NaN, unknown fields, k of 0 and beyond are refused or answered, never wrong.",
    ),
    Requirement("engine:vectors:concurrent", "Readers see a write whole or not at all."),
    Requirement(
        "engine:lexical:find",
        "Words are found in any form, titles weigh most, ties come by id.",
    ),
    Requirement("engine:lexical:words", "Empty words are dropped unless a question has no other."),
    Requirement("engine:lexical:safe", "Any text is a question and never query syntax."),
    Requirement(
        "engine:lexical:exact",
        "Within its budget of postings a search ranks exactly as FTS5 does.",
    ),
    Requirement("engine:lexical:filters", "Filters are applied before ranking."),
    Requirement(
        "engine:lexical:budget",
        "Beyond the budget the rarest words choose and all the words rank.",
    ),
    Requirement(
        "engine:lexical:writes",
        "After any writes the index is as if filled anew; a write that fails changes nothing.",
    ),
    Requirement("engine:lexical:bad-input", "Bad questions are refused or find nothing."),
    Requirement("engine:lexical:deadline", "A search has a deadline and says when it is over it."),
    Requirement("engine:lexical:file", "The file is kept, and made anew when it is damaged."),
    Requirement("engine:lexical:concurrent", "Threads search while one writes."),
    Requirement(
        "engine:chunks:verbs",
        "The five verbs put, change, give and count chunks as they are, in batches of any size.",
    ),
    Requirement("engine:chunks:bad-input", "A bad batch is refused and changes nothing."),
    Requirement(
        "engine:chunks:owner",
        "A store directory has one process; a second is refused until the first has gone.",
    ),
    Requirement("engine:chunks:damaged", "A damaged store is told and its folder let go."),
    Requirement(
        "engine:chunks:crash",
        "kill -9 during an upsert loses no acknowledged chunk; the index equals the store.",
    ),
    Requirement(
        "engine:index:search",
        "An index finds by words, by meaning and by both; without a model by words, saying so.",
    ),
    Requirement(
        "engine:index:identity",
        "Vectors of different models or precisions never meet in one collection.",
    ),
    Requirement(
        "engine:index:in-step",
        "After any writes, failures and restarts both indexes agree with the store.",
    ),
    Requirement("engine:index:concurrent", "Readers and a writer share an index."),
    Requirement("engine:hybrid", "Words and meaning rank together under one filter."),
    Requirement("engine:fusion", "Rankings fuse to one deterministic order, ties by id."),
    Requirement(
        "engine:embedding:weights",
        "Weights come from the named folder, the package, the cache or a checked download; "
        "a missing model is told with the ways to get one.",
    ),
)

INGEST = (
    Requirement(
        "documents:ratio",
        "The image ratio decides by IMAGE_RATIO_THRESHOLD, "
        "counted over pages with hardly any text, and a scan that can be read is not skipped.",
    ),
    Requirement("documents:render", "A file named like a rendering never goes to OCR."),
    Requirement(
        "documents:textlayer",
        "The text layer is read first, and a page under 10 characters goes to OCR at 300 DPI.",
    ),
    Requirement(
        "documents:confidence",
        "OCR confidence is averaged per page, and a page under 70 % is logged at WARNING.",
    ),
    Requirement(
        "documents:method",
        "Each page records text_layer or ocr, and the document text_layer, ocr or mixed.",
    ),
    Requirement(
        "documents:classify",
        "The thirteen types are found by filename, then by content, then fall back to other.",
    ),
    Requirement(
        "documents:drawings",
        "contains_drawings is true for a page over the image threshold, "
        "or a filename of a plan, an elevation or a rendering.",
    ),
    Requirement(
        "documents:ocr:off",
        "With ENABLE_OCR=false blank pages stay blank and are reported.",
    ),
    Requirement(
        "ingest:sandbox:failures",
        "An abort, a crash, a hang or too much memory in the process that reads a file is told as "
        "extraction_failed, and an unforeseen reason is in the log.",
    ),
    Requirement(
        "ingest:sandbox:time",
        "Reading ends at the wall limit, after a long silence, or when it says too much.",
    ),
    Requirement(
        "ingest:sandbox:group",
        "The process is killed with all it has started, when it fails, when its caller gives up "
        "and when the server dies, and leaves no file behind.",
    ),
    Requirement("ingest:sandbox:seats", "No more processes run at once than there are cores."),
    Requirement("ingest:sandbox:secrets", "The process that reads a file knows no secret."),
    Requirement("ingest:sandbox:progress", "Progress is told page by page."),
    Requirement(
        "ingest:hostile",
        "Every file made to harm is a typed error within its limits, with no process left.",
    ),
    Requirement(
        "ingest:corpus",
        "Every real document gives an answer or a typed error, in one process that survives.",
    ),
    Requirement(
        "ingest:roots",
        "A file is read from inside the roots only, whatever links and names say, up to a size, "
        "and is hashed and parsed from the same bytes.",
    ),
    Requirement(
        "ingest:settings",
        "Roots, size, time, OCR and the rule for pictures are what the settings say.",
    ),
    Requirement(
        "ingest:classify",
        "A file's type is found by whole words of its name as files are really named, else by "
        "what its text says, else it is other, with the confidence of each.",
    ),
    Requirement("ingest:renderings", "A rendering is known by its name."),
    Requirement(
        "ingest:text:furniture",
        "Running headers, footers and page numbers are in a page's text, not in the document's.",
    ),
    Requirement(
        "ingest:text:paragraphs",
        "Paragraphs are parted by a blank line, also where only the distance shows it.",
    ),
    Requirement(
        "ingest:text:hyphens",
        "A word broken at the end of a line is mended the way the document writes it elsewhere.",
    ),
    Requirement("ingest:text:normal", "Ligatures and exotic signs are normalised, ½ and ² kept."),
    Requirement("ingest:text:turned", "A turned page reads like an upright one."),
    Requirement("ingest:text:labels", "A page knows its number and its printed label."),
    Requirement(
        "ingest:text:encrypted",
        "An encrypted file opens with an empty password, or says that it needs one.",
    ),
    Requirement(
        "ingest:images:ratio",
        "The image ratio is the union of the images on the page, through the forms they lie in.",
    ),
    Requirement(
        "ingest:images:drawings",
        "A page over the image threshold or a name of a drawing makes a document contain drawings.",
    ),
    Requirement(
        "ingest:images:skip",
        "A document of pictures is skipped by its name, by a probe that finds no words, or by "
        "the literal ratio; text layers speak against it.",
    ),
    Requirement(
        "ingest:ocr:recall",
        "OCR finds at least 98 of 100 words of a clean render, and most of a real scan.",
    ),
    Requirement("ingest:ocr:method", "Each page and the document say how their text was read."),
    Requirement(
        "ingest:ocr:formats",
        "PNG, JPEG, BMP and TIFF files are read by what they are; a TIFF's frames are pages.",
    ),
    Requirement("ingest:ocr:turned", "A scan that lies on its side is turned."),
    Requirement("ingest:ocr:confidence", "A page that OCR is unsure of is logged as a WARNING."),
    Requirement("ingest:ocr:lines", "Paragraphs of a scan are paragraphs of the text."),
    Requirement("ingest:ocr:notes", "A page that could not be read says why."),
    Requirement(
        "ingest:chunks",
        "Chunks cover the text, know their pages and sections and never cross a section's start.",
    ),
    Requirement(
        "ingest:sections:framework",
        "In the Framework of December 2024, set by the tests, paragraphs 1 to 243 are all found "
        "under their chapters, and none is invented.",
    ),
    Requirement(
        "ingest:sections:draft",
        "In the draft Framework of December 2025 its 20 chapters and every policy are found.",
    ),
    Requirement(
        "ingest:sections:own-numbering",
        "Numbering that restarts inside a policy belongs to it, and goes on outside after it.",
    ),
    Requirement(
        "ingest:sections:decimal",
        "Decimal paragraphs, their headings and their tables are nested as they are numbered.",
    ),
    Requirement(
        "ingest:sections:mentions",
        "A cross-reference starts no section, wherever in a line it stands.",
    ),
    Requirement("ingest:sections:tables", "A table ends where the text around it goes on."),
    Requirement(
        "ingest:sections:contents",
        "A table of contents holds no sections; each section knows its title and its page.",
    ),
    Requirement("ingest:sections:rising", "Paragraph numbers form one rising sequence."),
)

ROOM = (
    Requirement(
        "room:structured",
        "Every tool has an output schema, and its structured content equals its text item.",
    ),
    Requirement(
        "room:error-shape",
        "Each base tells every error in one shape, always with isError.",
    ),
    Requirement("room:bounds", "Every argument is bounded, and an unknown argument is refused."),
    Requirement("room:host", "A request whose Host is not allowed is refused."),
    Requirement("room:origin", "A request whose Origin is not allowed is refused."),
    Requirement("room:sessions", "A session answers only the key that opened it."),
    Requirement(
        "room:log",
        "Each call is one log line with the five fields, and no line holds a secret.",
    ),
    Requirement("room:two-commands", "make serve and make test work from a fresh clone."),
    Requirement("room:conformance", "The official conformance suite passes on both wires."),
    Requirement(
        "room:lock",
        "A base's folder has one owner at a time, and a command finds the live one.",
    ),
    Requirement(
        "room:keys",
        "Keys are named, stored hashed, and refused from the moment they are revoked.",
    ),
    Requirement(
        "room:read-only",
        "With --read-only no tool that writes is listed or can be called.",
    ),
    Requirement(
        "room:limits",
        "A caller's rate, the size of a body and the number of sessions are limited.",
    ),
    Requirement("room:metrics", "Prometheus metrics count calls, errors and latency per tool."),
    Requirement("room:cli", "Every command has --help, --json and clear exit codes."),
    Requirement("room:docs", "Every tool, setting, error and command is documented."),
    Requirement("room:docs:worked", "What a page shows as an answer is what is answered."),
    Requirement("room:pages", "Pages for people load nothing from elsewhere and tell errors too."),
    Requirement(
        "room:auth:open-paths",
        "While a key is set only /health, matched exactly, is open without one.",
    ),
    Requirement(
        "room:auth:bind",
        "Without a key the server binds to loopback only, and another address needs --insecure.",
    ),
    Requirement(
        "room:shutdown",
        "Ctrl-C ends the server cleanly within 2 seconds while streams are open.",
    ),
    Requirement("room:request-id", "X-Request-ID is echoed when sent and made when not."),
    Requirement(
        "room:internal",
        "An unexpected failure is told as internal with the request id, never with its text.",
    ),
    Requirement(
        "room:handshake",
        "One URL answers the 2025-11-25 handshake and the 2026-07-28 wire, "
        "with the name of the face and the version of the package.",
    ),
    Requirement(
        "room:admin",
        "A command reaches the live owner over the loopback admin route with the local key.",
    ),
    Requirement("room:otel", "Spans are exported when an exporter is configured."),
    Requirement("room:landing", "GET /mcp by a browser is a page, and / is an index."),
    Requirement("room:unknown-tool", "An unknown tool is told as -32602 on every face."),
    Requirement(
        "room:invalid-arguments",
        "A bad argument is told in the base's dialect naming the field, and as -32602 for federal.",
    ),
    Requirement(
        "room:settings",
        "A flag beats the environment, which beats readingroom.toml, which beats the default.",
    ),
    Requirement(
        "room:clients",
        "The Python SDK over stdio, Streamable HTTP on both wires and SSE, "
        "and the TypeScript inspector all work.",
    ),
    Requirement("room:dialects", "The error body of each base is the one its dialect prescribes."),
    Requirement("room:crash", "kill -9 at any moment loses nothing that was acknowledged."),
    Requirement("room:roots", "No file outside the configured roots is read."),
    Requirement(
        "room:connect", "A client's configuration is printed or written, and keeps what it had."
    ),
    Requirement("room:doctor", "doctor checks data and machine; each line says what to do."),
    Requirement(
        "room:packages", "The wheel works alone; image, service and bundle hold to their rules."
    ),
    Requirement("room:backup", "A backup taken under load restores to equal answers."),
    Requirement(
        "room:sample",
        "Answers from the sample corpus are marked as sample everywhere.",
    ),
    Requirement(
        "room:desk",
        "search and fetch reach over all bases, "
        "and assess_against_policy sets an application beside the policy in force.",
    ),
    Requirement("room:prompts", "Prompts can be listed, read and completed."),
    Requirement("room:resources", "Resources can be listed, read and completed."),
)

REQUIREMENTS: dict[str, Requirement] = _by_id(
    POLICY, DOCUMENTS, TEXT, FEDERAL, GUIDANCE, ENGINE, INGEST, ROOM
)
