"""Requirements of the server itself."""

from tests.requirements.model import Requirement

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
    Requirement(
        "room:desk-order",
        "A search over all bases goes by names, then by probability, and shows a text once.",
    ),
    Requirement("room:eval", "Searches are measured on questions with known answers."),
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
        "room:sixth-base",
        "A base is a package and a line in bases/__init__.py; nothing else names it.",
    ),
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
    Requirement(
        "room:connections",
        "Connections that keep the server waiting are closed, and nobody else is refused for them.",
    ),
    Requirement(
        "room:fuzz",
        "5,000 random calls of all routes and tools: no 5xx, none costly, memory stays bounded.",
    ),
    Requirement(
        "room:quoted",
        "Retrieved text is announced as quoted matter in every face, answer, resource and prompt.",
    ),
    Requirement("room:metrics", "Prometheus metrics count calls, errors and latency per tool."),
    Requirement("room:cli", "Every command has --help, --json and clear exit codes."),
    Requirement("room:docs", "Every tool, setting, error and command is documented."),
    Requirement("room:docs:worked", "What a page shows as an answer is what is answered."),
    Requirement("room:pages", "Pages for people load nothing from elsewhere and tell errors too."),
    Requirement(
        "room:console",
        "Pages in a browser: accessible, small, self-contained, printable, and without script.",
    ),
    Requirement(
        "room:jobs",
        "Long work outlives the request and the process: claimed, reported, begun again.",
    ),
    Requirement(
        "room:sign-in",
        "A key signs a browser in: pages only, re-checked at each request, own forms only.",
    ),
    Requirement(
        "room:listings",
        "The face of all bases lists everything, the desk alone, or the bases that are named.",
    ),
    Requirement(
        "room:views",
        "Answers are drawn inside a chat where the host can: self-contained, text stays text.",
    ),
    Requirement(
        "room:consent",
        "Before something is removed the person is asked, where a client can ask.",
    ),
    Requirement("room:skills", "Each prompt is an agent skill too, of tools that exist."),
    Requirement(
        "room:install-links",
        "A link adds the server to Cursor, VS Code or LM Studio, and holds no key.",
    ),
    Requirement(
        "room:host-extras",
        "Hosts get an icon, an address to open, and links to the resources of an answer.",
    ),
    Requirement(
        "room:connectors",
        "Apps connect by a sign-in: tokens bound to a key and a face, ended with the key.",
    ),
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
        "both versions of both SDKs, the libraries on top of them and the inspector all work, "
        "and show every error.",
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
    Requirement("room:restore", "A restore takes only what backup writes, whatever a backup says."),
    Requirement(
        "room:supply:vex", "A known weakness of a package that does no harm here is told so."
    ),
    Requirement("room:paths", "What callers are told names no path of the machine."),
    Requirement("room:ready", "/ready names the bases that cannot answer."),
    Requirement(
        "room:start",
        "/health answers as soon as the port is open; what the first search needs is loaded.",
    ),
    Requirement(
        "room:sample",
        "Answers from the sample corpus are marked as sample everywhere.",
    ),
    Requirement(
        "room:assess",
        "An application is put beside the plan of its authority on its day; the answer says what "
        "was searched, what was left out, why a side is empty, and whether it is known at all.",
    ),
    Requirement(
        "room:desk",
        "search and fetch reach over all bases, "
        "and assess_against_policy sets an application beside the policy in force.",
    ),
    Requirement("room:prompts", "Prompts can be listed, read and completed."),
    Requirement("room:resources", "Resources can be listed, read and completed."),
)
