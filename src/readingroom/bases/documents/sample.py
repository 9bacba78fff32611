"""The sample's planning applications: described, then their documents ingested."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from readingroom.bases.documents.commands import DescribeApplication, HandedFile, IngestFiles
from readingroom.bases.documents.models import SetApplication
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.demo import corpus
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSampleLoader, SampleStep
from readingroom.storage.handover import hand_over_file

_TURN_AFTER_OTHER_BASES = 1
"""After the policies: scans take longest, and the first questions are about policies."""


class DocumentsSampleLoader(BaseSampleLoader):
    def list_steps(
        self, settings: RoomSettings, corpus_folder: Path, run_command: RunCommand
    ) -> Iterator[SampleStep]:
        application_ref = corpus.load_sample_application()["reference"]
        yield _make_description_step(settings, corpus.load_sample_application(), run_command)
        for sample_file in sorted(corpus.write_application(corpus_folder).iterdir()):
            yield _make_ingest_step(
                settings,
                application_ref,
                [sample_file],
                run_command,
                f"{application_ref}: {sample_file.name}",
            )
        shop_application_ref = corpus.load_shop_application()["reference"]
        yield _make_description_step(settings, corpus.load_shop_application(), run_command)
        shop_files = sorted(corpus.write_shop_application(corpus_folder).iterdir())
        step_title = f"{shop_application_ref}: {len(shop_files)} documents"
        yield _make_ingest_step(settings, shop_application_ref, shop_files, run_command, step_title)


def _make_description_step(
    settings: RoomSettings, application_fields: dict[str, str], run_command: RunCommand
) -> SampleStep:
    def load_application(report_progress: ReportProgressSync) -> None:
        arguments = SetApplication.model_validate_json(json.dumps(application_fields))
        run_command(DescribeApplication(question=arguments), settings)

    return SampleStep(
        f"application {application_fields['reference']}", load_application, _TURN_AFTER_OTHER_BASES
    )


def _make_ingest_step(
    settings: RoomSettings,
    application_ref: str,
    file_paths: Sequence[Path],
    run_command: RunCommand,
    step_title: str,
) -> SampleStep:
    """Return the step for some files. One that cannot be read, as a scan without tesseract, is
    noted there.
    """

    def load_documents(report_progress: ReportProgressSync) -> None:
        base_folder = settings.data / "documents"
        handed_files = [
            HandedFile(name=file_path.name, copied=hand_over_file(base_folder, file_path))
            for file_path in file_paths
        ]
        run_command(IngestFiles(application_ref=application_ref, files=handed_files), settings)

    return SampleStep(step_title, load_documents, _TURN_AFTER_OTHER_BASES)


SAMPLE = DocumentsSampleLoader()
