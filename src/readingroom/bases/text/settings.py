"""Settings of the text base."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from readingroom.core.settings import RoomSettings, setting


class TextSettings(RoomSettings):
    """What an operator can choose for the text base."""

    kb_file: Annotated[Path, AfterValidator(Path.expanduser)] | None = setting(
        None,
        "KB_FILE",
        "The text base's file; by default the packaged sample.",
        for_sample=False,
        flag="--file",
    )
    kb_description: str | None = setting(
        None,
        "READINGROOM_KB_DESCRIPTION",
        "What the text base says it holds.",
        max_length=500,
        for_sample=False,
    )
