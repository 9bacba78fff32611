"""Requirements of the policy contract."""

from tests.requirements.model import Requirement

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
        "policy:formats",
        "A revision may be a .docx, .md or .html: its headings are its sections, its file is kept "
        "as what it is, and a file that is not what its name says is refused.",
    ),
    Requirement(
        "policy:delete",
        "A policy is deleted whole, after a confirmation: revisions, chunks and files.",
    ),
    Requirement(
        "policy:first-release",
        "A data directory of 0.1.0 with policies and applications opens and answers the same.",
    ),
    Requirement(
        "policy:rest:fuzz",
        "No REST request gets a 5xx or an answer off its schema.",
    ),
    Requirement(
        "policy:vectors:reused",
        "A new revision embeds only the passages that the nearest ones do not have.",
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
    Requirement(
        "policy:references",
        "A reference in a question goes to the exact section first, in every mode.",
    ),
    Requirement(
        "policy:applies",
        "The plans of an authority apply where it decides; those not adopted only on request.",
    ),
    Requirement(
        "policy:order",
        "Headings and neighbours count for a passage; a policy stands before what explains it.",
    ),
)
