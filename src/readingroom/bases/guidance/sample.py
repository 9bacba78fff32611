"""The sample's GOV.UK: an emulator on loopback, asked in place of the real one."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from readingroom.core.settings import RoomSettings
from readingroom.demo.govuk import Emulator, on_loopback, sample_items


@contextmanager
def replace_settings(settings: RoomSettings) -> Iterator[Mapping[str, Any]]:
    """Run the emulator and give the settings that point to it."""
    # The emulator remembers requests for tests to look at; here that would grow for ever.
    with on_loopback(Emulator(sample_items(), seen=deque(maxlen=1))) as url:
        yield {"govuk_base_url": url}
