"""What a check of a base finds: each disagreement, with the fix."""

from readingroom.protocol.tool import Answer


class Complaint(Answer):
    """A disagreement that a check found."""

    subject: str
    problem: str
    fix: str
    repaired: bool = False
