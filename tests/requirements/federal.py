"""Requirements of the federal contract."""

from tests.requirements.model import Requirement

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
