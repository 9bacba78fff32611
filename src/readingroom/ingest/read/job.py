"""The order that a sandboxed process receives."""

import json
from dataclasses import asdict, dataclass

from readingroom.ingest.document import Options


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be read, by whose order, and within what."""

    name: str
    options: Options
    parent: int
    memory_bytes: int
    cpu_seconds: int
    page: int | None = None
    """This page is wanted, as a picture, and nothing else."""
    dpi: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        fields = json.loads(text)
        return cls(**fields | {"options": Options(**fields["options"])})
