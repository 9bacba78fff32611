"""Checks whether the file of the text base can be read."""

import os
from collections.abc import Iterator

from readingroom.bases.text.settings import TextSettings
from readingroom.protocol.command import RunCommand
from readingroom.protocol.doctor import Complaint


def check_text_file(
    settings: TextSettings, is_repairing: bool, run_command: RunCommand
) -> Iterator[Complaint]:
    """Yield a complaint when KB_FILE names a file that cannot be read."""
    if settings.kb_file is not None and not os.access(settings.kb_file, os.R_OK):
        yield Complaint(
            subject="text",
            problem=f"KB_FILE is {settings.kb_file}, which cannot be read",
            fix="correct KB_FILE, or unset it for the packaged sample",
        )
