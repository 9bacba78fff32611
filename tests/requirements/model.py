"""What a requirement is, and the mark that tests carry for it."""

from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Requirement:
    """Something a reader could observe, and the work it waits for, if it is not built yet."""

    id: str
    says: str
    deferred: str | None = None


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test, a class or a module's `pytestmark` with the requirements it proves."""
    return pytest.mark.requirement(*ids)
