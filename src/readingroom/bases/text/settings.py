"""Settings of the text base."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from readingroom.core.settings import RoomSettings, declare_setting


class TextSettings(RoomSettings):
    """What an operator can choose for the text base."""

    kb_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = declare_setting(
        None,
        "KB_FILE",
        "The text base's file; by default the packaged sample.",
        is_used_by_sample=False,
        flag_name="--file",
    )
    kb_description: str | None = declare_setting(
        None,
        "READINGROOM_KB_DESCRIPTION",
        "What the text base says it holds.",
        max_length=500,
        is_used_by_sample=False,
    )
