"""The settings of a command that uses the sample."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from readingroom.core.settings import AnySettings
from readingroom.protocol.spec import BaseSpec


@contextmanager
def open_sample_settings(
    settings: AnySettings, base_specs: Iterable[BaseSpec]
) -> Iterator[AnySettings]:
    """Give the settings to work with: for the sample, with what its bases replace."""
    with ExitStack() as exit_stack:
        setting_changes: dict[str, Any] = {}
        if settings.is_sample:
            for base_spec in base_specs:
                if base_spec.sample_settings:
                    setting_changes |= exit_stack.enter_context(base_spec.sample_settings(settings))
        yield settings.model_copy(update=setting_changes)
