"""What a check of a base finds: each disagreement, with the fix."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pydantic import Field

from readingroom.core.errors import KnowledgeError
from readingroom.protocol.tool import Answer


class Complaint(Answer):
    """A disagreement that a check found."""

    subject: str
    problem: str
    fix: str
    repaired: bool = False
    is_note: bool = Field(default=False, exclude=True)
    """Whether it is only worth knowing: nothing fails because of it."""


@dataclass(frozen=True, slots=True)
class RepairableFinding:
    """A disagreement between stores, with the repair where there is one."""

    subject: str
    problem: str
    fix: str
    repair_stores: Callable[[], Awaitable[object]] | None = None

    async def repair_and_report(self, is_repairing: bool) -> Complaint:
        """Return the complaint, after the repair where one is wanted and possible."""
        was_repaired = False
        if is_repairing and self.repair_stores:
            try:
                await self.repair_stores()
                was_repaired = True
            except KnowledgeError:  # then it is reported as not repaired
                pass
        return Complaint(
            subject=self.subject, problem=self.problem, fix=self.fix, repaired=was_repaired
        )
