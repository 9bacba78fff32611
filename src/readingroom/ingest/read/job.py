"""The job that a sandboxed process receives on its command line."""

import json
from dataclasses import asdict, dataclass, field

from readingroom.ingest.confine.process import Confinement
from readingroom.ingest.document import ReadOptions


@dataclass(frozen=True, slots=True)
class Job:
    """Which file to read and how, for which parent process, and what the process may do."""

    file_name: str
    options: ReadOptions
    page: int | None = None
    """Render this page as a picture instead of reading the file."""
    dpi: int = 0
    parent_id: int = 0
    confinement: Confinement = field(default_factory=Confinement)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Job":
        fields = json.loads(text)
        options = ReadOptions(**fields.pop("options"))
        confinement = Confinement(**fields.pop("confinement"))
        return cls(options=options, confinement=confinement, **fields)
