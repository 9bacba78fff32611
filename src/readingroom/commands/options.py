"""Options that `serve` and `stdio` share: those by which a base chooses a setting of its own."""

from collections.abc import Callable
from typing import Any

import click

from readingroom.bases import BASES

_SETTING_FLAGS = [setting_flag for base_spec in BASES.values() for setting_flag in base_spec.flags]
BASE_SETTING_NAMES = tuple(setting_flag.setting_name for setting_flag in _SETTING_FLAGS)
"""The settings that `add_base_options` sets."""


def add_base_options(click_command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that bases declare in their `BaseSpec`."""
    for setting_flag in reversed(_SETTING_FLAGS):
        add_option = click.option(
            setting_flag.command_line_option,
            setting_flag.setting_name,
            type=click.Path(),
            help=setting_flag.help,
        )
        click_command = add_option(click_command)
    return click_command
