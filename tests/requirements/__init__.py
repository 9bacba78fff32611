"""Every requirement of the five contracts and of the server itself, by a stable id.

A test says what it proves with `@requirement("policy:FR-007:gap")`. What is not built yet has
`deferred`, which names the work that will build it. `tests/project/test_requirements.py` checks
both ways: every id has a test, and every id that a test names exists.
"""

from collections.abc import Iterable

from tests.requirements.documents import DOCUMENTS
from tests.requirements.engine import ENGINE
from tests.requirements.federal import FEDERAL
from tests.requirements.guidance import GUIDANCE
from tests.requirements.ingest import INGEST
from tests.requirements.model import Requirement, requirement
from tests.requirements.policy import POLICY
from tests.requirements.room import ROOM
from tests.requirements.text import TEXT

__all__ = ["REQUIREMENTS", "Requirement", "requirement"]


def _index_by_id(requirements: Iterable[Requirement]) -> dict[str, Requirement]:
    """Raise ValueError when an id is listed twice."""
    index: dict[str, Requirement] = {}
    for each in requirements:
        if each.id in index:
            raise ValueError(f"{each.id} is listed twice")
        index[each.id] = each
    return index


REQUIREMENTS: dict[str, Requirement] = _index_by_id(
    (*POLICY, *DOCUMENTS, *TEXT, *FEDERAL, *GUIDANCE, *ENGINE, *INGEST, *ROOM)
)
