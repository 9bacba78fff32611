"""How much a property is tried: a few examples in `make test`, all of them in `make test-all`."""

from hypothesis import settings


def choose_example_count(full: int, quick: int) -> int:
    """The number of examples for the profile that `--full` chose; see tests/conftest.py."""
    return full if settings.get_current_profile_name() == "full" else quick
