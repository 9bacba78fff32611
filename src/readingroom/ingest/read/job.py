"""The job that a sandboxed process receives on its command line."""

import json
from dataclasses import asdict, dataclass

from readingroom.ingest.document import ReadOptions


@dataclass(frozen=True, slots=True)
class Job:
    """Which file to read and how, for which parent process, within which limits."""

    name: str
    options: ReadOptions
    parent: int
    memory_bytes: int
    cpu_seconds: int
    page: int | None = None
    """Render this page as a picture instead of reading the file."""
    dpi: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        fields = json.loads(text)
        return cls(**fields | {"options": ReadOptions(**fields["options"])})
