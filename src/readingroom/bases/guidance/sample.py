"""The sample's GOV.UK: an emulator on loopback, asked in place of the real one, and its copy."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from readingroom.bases.guidance.offline.sync import synchronize_library
from readingroom.bases.guidance.settings import GuidanceSettings
from readingroom.core.progress import ReportProgressSync, no_progress
from readingroom.core.settings import RoomSettings
from readingroom.demo.govuk import GovukEmulator, make_sample_content_items, serve_on_loopback
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSampleLoader, SampleStep


@contextmanager
def replace_settings(settings: RoomSettings) -> Iterator[Mapping[str, Any]]:
    """Run the emulator and give the settings that point to it."""
    # The emulator remembers requests for tests to look at; here that would grow for ever.
    with serve_on_loopback(
        GovukEmulator(make_sample_content_items(), seen_requests=deque(maxlen=1))
    ) as emulator_url:
        yield {"govuk_base_url": emulator_url}


class GuidanceSampleLoader(BaseSampleLoader):
    """The offline copy, so that searches over all bases find passages and not only pages."""

    def list_steps(
        self, settings: RoomSettings, corpus_folder: Path, run_command: RunCommand
    ) -> Iterator[SampleStep]:
        yield SampleStep("guidance pages", partial(_sync_offline_copy, settings), start_order=1)


def _sync_offline_copy(settings: RoomSettings, report_progress: ReportProgressSync) -> None:
    # The settings of a room have those of every base.
    anyio.run(synchronize_library, cast(GuidanceSettings, settings), False, no_progress)


SAMPLE = GuidanceSampleLoader()
