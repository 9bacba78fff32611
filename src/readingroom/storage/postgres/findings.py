"""A finding about the shared database: what is wrong, and what to do."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """Something about the database that keeps it from working well, and what to do."""

    problem: str
    fix: str
    is_note: bool = False
    """Whether it is only worth knowing: nothing fails because of it."""
