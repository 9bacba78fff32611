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
class Finding:
    """A disagreement, and what mends it, where we can."""

    subject: str
    problem: str
    fix: str
    mend: Callable[[], Awaitable[object]] | None = None

    async def told(self, repair: bool) -> Complaint:
        """The complaint; what shall be repaired and can be is mended first."""
        repaired = False
        if repair and self.mend:
            try:
                await self.mend()
                repaired = True
            except KnowledgeError:  # told as it was found
                pass
        return Complaint(
            subject=self.subject, problem=self.problem, fix=self.fix, repaired=repaired
        )
