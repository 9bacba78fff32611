"""The sample's planning application: described, then its documents ingested one by one."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from readingroom.bases.documents.commands import DescribeApplication, HandedFile, IngestFiles
from readingroom.bases.documents.models import SetApplication
from readingroom.core.settings import RoomSettings
from readingroom.demo import corpus
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSample, SampleStep
from readingroom.storage.handover import hand_over


class DocumentsSample(BaseSample):
    def steps(
        self, settings: RoomSettings, corpus_folder: Path, run: RunCommand
    ) -> Iterator[SampleStep]:
        application = corpus.application()
        reference = application["reference"]
        yield f"application {reference}", partial(_set_application, settings, application, run)
        for file in sorted(corpus.write_application(corpus_folder).iterdir()):
            yield f"{reference}: {file.name}", partial(_ingest_file, settings, reference, file, run)


def _set_application(settings: RoomSettings, application: dict[str, str], run: RunCommand) -> None:
    question = SetApplication.model_validate_json(json.dumps(application))
    run(DescribeApplication(question=question), settings)


def _ingest_file(settings: RoomSettings, reference: str, file: Path, run: RunCommand) -> None:
    """Ingest one file. One that cannot be read, as a scan without tesseract, is noted there."""
    handed_file = HandedFile(name=file.name, copied=hand_over(settings.data / "documents", file))
    run(IngestFiles(application_ref=reference, files=[handed_file]), settings)


SAMPLE = DocumentsSample()
