"""The text base's two tools, and `open_text`, which opens the base for the server."""

from pathlib import Path

from readingroom.bases.text.models import (
    GetKbContent,
    GetKbInfo,
    KbAvailable,
    KbContent,
    KbUnavailable,
)
from readingroom.bases.text.service import TextService
from readingroom.bases.text.settings import TextSettings
from readingroom.bases.text.store import SAMPLE_FILE, TextFile
from readingroom.protocol.errors import TextDialect
from readingroom.protocol.spec import KnowledgeBase
from readingroom.protocol.tool import Tool, ToolContext, make_tool

_SAMPLE_DESCRIPTION = (
    "Azure Managed Grafana: tiers, sign-in and roles, data sources, dashboards, alerting, "
    "networking (sample text written for Reading Room)."
)
_DEFAULT_DESCRIPTION = "A plain text knowledge base."


def open_base(settings: TextSettings) -> KnowledgeBase:
    """Open the text base as the settings say."""
    return open_text(settings.kb_file, settings.kb_description, settings.is_sample)


def open_text(
    kb_file: Path | None, kb_description: str | None, is_sample_room: bool = False
) -> KnowledgeBase:
    """Open the text base on a file (the packaged sample when none is named) and read it."""
    default_description = _DEFAULT_DESCRIPTION if kb_file else _SAMPLE_DESCRIPTION
    is_sample_stand_in = kb_file is None and not is_sample_room
    text_service = TextService(
        TextFile(kb_file or SAMPLE_FILE), kb_description or default_description, is_sample_stand_in
    )
    text_service.load_and_log()
    return KnowledgeBase(
        name="text",
        server_name="kb-mcp",
        title="Plain text",
        instructions=(
            "One plain text. Call get_kb_info to learn what it is about and how long it is, then "
            "get_kb_content for all of it. There is no search: quote from the content."
        ),
        error_dialect=TextDialect(),
        tools=_make_tools(text_service),
        service=text_service,
        serves_sse=True,
    )


def _make_tools(text_service: TextService) -> tuple[Tool, ...]:
    async def get_kb_info(
        arguments: GetKbInfo, tool_context: ToolContext
    ) -> KbAvailable | KbUnavailable:
        """Tell what the plain text knowledge base (kb) is about, without the text. Which subject
        does its description name, how long or big is the file, does it exist, can it be read, when
        was it last changed? For the text itself use `get_kb_content`.
        """
        return await text_service.read_file_info()

    async def get_kb_content(arguments: GetKbContent, tool_context: ToolContext) -> KbContent:
        """Read the whole text of the plain text knowledge base (kb), every word from start to
        finish: its complete contents, raw and unmodified, to print, copy or quote. It is not
        searched or cut. For its length and subject alone use `get_kb_info`.
        """
        return await text_service.read_content()

    return (
        make_tool(get_kb_info, title="Describe the text"),
        make_tool(get_kb_content, title="Read the whole text"),
    )
