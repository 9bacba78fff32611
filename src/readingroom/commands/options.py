"""Options that `serve` and `stdio` share: those by which a base chooses a setting of its own."""

from collections.abc import Callable
from typing import Any

import click

from readingroom.bases import BASES

_SETTING_FLAGS = [flag for spec in BASES.values() for flag in spec.flags]
BASE_SETTING_NAMES = tuple(flag.setting for flag in _SETTING_FLAGS)
"""The settings that `add_base_options` sets."""


def add_base_options(click_command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that bases declare in their `BaseSpec`."""
    for flag in reversed(_SETTING_FLAGS):
        add_option = click.option(
            flag.command_line_option, flag.setting, type=click.Path(), help=flag.help
        )
        click_command = add_option(click_command)
    return click_command
