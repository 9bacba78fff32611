"""Every setting: those of the server, those all bases share, and each base's own."""

from collections.abc import Mapping
from typing import Any

from readingroom.bases import BASES
from readingroom.core.settings import read_settings
from readingroom.server.settings import ServerSettings


class Settings(ServerSettings, *(spec.settings_class for spec in BASES.values())):  # type: ignore[misc]
    """What an operator can choose. Field names are the keys of `readingroom.toml`."""


def load_settings(
    flags: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings in force. Raise `InvalidSetting` with a line for each bad value.

    A flag that is None was not given. An empty variable is not set, unless its setting gives the
    empty string a meaning.
    """
    return read_settings(Settings, flags, environment)
