"""The sample's federal records: loaded from their files, then embedded."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from readingroom.bases.federal import store
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.search import vectors
from readingroom.core.progress import ReportProgressSync
from readingroom.core.settings import RoomSettings
from readingroom.demo.corpus import write_more_records
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSampleLoader, SampleStep


class FederalSampleLoader(BaseSampleLoader):
    def list_steps(
        self, settings: RoomSettings, corpus_folder: Path, run_command: RunCommand
    ) -> Iterator[SampleStep]:
        yield SampleStep("federal records", partial(_load_sample_records, settings, corpus_folder))
        # Last: everything can be searched by its words by then, and nobody waits for this.
        yield SampleStep(
            "federal records by meaning", partial(_embed_sample_passages, settings), is_last=True
        )


def _load_sample_records(
    settings: RoomSettings, corpus_folder: Path, report_progress: ReportProgressSync
) -> None:
    records_folder = write_more_records(corpus_folder)
    loading.load(store.get_database_path(settings.data), [records_folder], None)


def _embed_sample_passages(settings: RoomSettings, report_progress: ReportProgressSync) -> None:
    with closing(store.connect(store.get_database_path(settings.data), writing=True)) as db:
        vectors.embed_passages(db, get_shared_embedder(settings), report_progress)


SAMPLE = FederalSampleLoader()
