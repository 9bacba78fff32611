"""Requirements of the text contract."""

from tests.requirements.model import Requirement

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
