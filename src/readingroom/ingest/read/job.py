"""The job that a sandboxed process receives on its command line."""

import json
from dataclasses import asdict, dataclass, field
from typing import Literal

from readingroom.ingest.confine.process import Confinement
from readingroom.ingest.document import PictureFormat, ReadOptions

JobTask = Literal["read", "draw", "find_words", "unpack"]


@dataclass(frozen=True, slots=True)
class Job:
    """What to do with which file, for which parent process, and what the process may do."""

    file_name: str
    options: ReadOptions
    task: JobTask = "read"
    page: int = 0
    """The page to draw, or to find the words of; the first is 1."""
    dpi: int = 0
    picture_format: PictureFormat = "png"
    parent_id: int = 0
    confinement: Confinement = field(default_factory=Confinement)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, job_json: str) -> "Job":
        job_fields = json.loads(job_json)
        read_options = ReadOptions(**job_fields.pop("options"))
        confinement = Confinement(**job_fields.pop("confinement"))
        return cls(options=read_options, confinement=confinement, **job_fields)
