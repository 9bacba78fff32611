"""The sample corpus: how it gets into a base, and how answers from it are marked.

They say so in `_meta`, and wherever they name a source.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import SAMPLE_MARK_FILE_NAME, RoomSettings
from readingroom.protocol.command import RunCommand

SAMPLE_META = {"sample": True}
SAMPLE_CITATION_PREFIX = "[sample] "
# Where an answer says what to cite, or whose words it repeats.
_CITATION_FIELDS = ("citation", "citation_string", "attribution")


def mark_sample_citations(answer_json: Any) -> Any:
    """Return the same JSON with every citation in it marked."""
    if isinstance(answer_json, list):
        return [mark_sample_citations(answer_item) for answer_item in answer_json]
    if isinstance(answer_json, dict):
        return {
            field_name: _mark_sample_citation(field_value)
            if field_name in _CITATION_FIELDS and isinstance(field_value, str)
            else mark_sample_citations(field_value)
            for field_name, field_value in answer_json.items()
        }
    return answer_json


def _mark_sample_citation(citation: str) -> str:
    """Mark it once, even when an answer passes here twice."""
    return (
        citation
        if citation.startswith(SAMPLE_CITATION_PREFIX)
        else SAMPLE_CITATION_PREFIX + citation
    )


def mark_sample_document(document_json: Any) -> Any:
    """Do the same for JSON outside of MCP, which has no other place for `_meta`."""
    marked_document = mark_sample_citations(document_json)
    return (
        {**marked_document, "_meta": SAMPLE_META}
        if isinstance(marked_document, dict)
        else marked_document
    )


@dataclass(frozen=True, slots=True)
class SampleStep:
    """A part of the sample that is loaded."""

    title: str
    """What it loads, in words."""
    load: Callable[[ReportProgressSync], object]
    start_order: int = 0
    """Bases whose first step has a lower number begin first; two may load at once."""
    is_last: bool = False
    """Whether it waits until the other steps of all bases have ended."""


class BaseSampleLoader(Protocol):
    """How the sample corpus gets into a base."""

    def list_steps(
        self, settings: RoomSettings, corpus_folder: Path, run_command: RunCommand
    ) -> Iterator[SampleStep]:
        """Yield the steps that load the sample; files may be written to `corpus_folder`."""
        yield from ()


@dataclass(frozen=True, slots=True)
class SampleState:
    """The content of `sample.json`: which corpus is here, and how far loading it has come."""

    corpus: str | None = None
    state: str = "loading"


_NEW_SAMPLE_STATE = SampleState()


def read_sample_state(data_directory: Path) -> SampleState:
    """Return the state of the sample in a data directory."""
    state_json = json.loads((data_directory / SAMPLE_MARK_FILE_NAME).read_text("utf-8"))
    return SampleState(state_json.get("corpus"), state_json.get("state", "loading"))


def write_sample_state(data_directory: Path, sample_state: SampleState = _NEW_SAMPLE_STATE) -> None:
    """Write the state in one step: the file that marks the sample is never missing."""
    explanation_text = "This directory is the sample's: its texts are not the real documents."
    # Replaced in one step: without the file the sample would pass for real data.
    new_state_path = data_directory / f".{SAMPLE_MARK_FILE_NAME}"
    new_state_path.write_text(
        json.dumps({**asdict(sample_state), "note": explanation_text}), "utf-8"
    )
    new_state_path.replace(data_directory / SAMPLE_MARK_FILE_NAME)
