"""Requirements of the guidance contract."""

from tests.requirements.model import Requirement

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
        "guidance:offline",
        "An offline copy is synchronized within the budget, resumed, and answers with its age "
        "while GOV.UK fails.",
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
    Requirement(
        "guidance:hostile",
        "A hostile page costs time and memory in proportion to its length, is cut at a limit, "
        "and leads to no address but a web or mail address.",
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
