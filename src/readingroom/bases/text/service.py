"""What the text base can do, with no word of MCP or HTTP in it."""

import logging

from readingroom.bases.text.errors import TextUnreadable
from readingroom.bases.text.models import KbAvailable, KbContent, KbUnavailable
from readingroom.bases.text.store import TextFile

logger = logging.getLogger(__name__)


class TextService:
    """One text file: its description, and its content."""

    def __init__(
        self, text_file: TextFile, text_description: str, is_sample_stand_in: bool = False
    ) -> None:
        self._text_file = text_file
        self.description = text_description
        self.is_stand_in = is_sample_stand_in
        """Whether it is the packaged sample, in a room that is not the sample's."""

    def load_and_log(self) -> None:
        """Read the file now, and log whether it can be served."""
        try:
            loaded_text = self._text_file.load_text()
        except TextUnreadable as error:
            # The server starts all the same: other bases may be served with this one.
            logger.error("Knowledge base unavailable: %s (%s)", error.message, self._text_file.path)
        else:
            size_note = f"{len(loaded_text.content):,} characters, {loaded_text.size_bytes:,} bytes"
            logger.info("Knowledge base ready: %s (%s)", self._text_file.path, size_note)

    async def read_file_info(self) -> KbAvailable | KbUnavailable:
        """Return the size and date of the file, or why it cannot be read."""
        try:
            loaded_text = await self._text_file.read_text()
        except TextUnreadable as error:
            return KbUnavailable(description=self.description, reason=error.message)
        return KbAvailable(
            file_size_bytes=loaded_text.size_bytes,
            content_length=len(loaded_text.content),
            last_modified=loaded_text.modified_at,
            description=self.description,
        )

    async def read_content(self) -> KbContent:
        """Return the text; raise `TextUnreadable`."""
        text_content = (await self._text_file.read_text()).content
        return KbContent(
            status="ok" if text_content else "empty",
            content_length=len(text_content),
            content=text_content,
        )
