"""The sample's federal records: loaded from their files, then embedded."""

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from readingroom.bases.federal import store
from readingroom.bases.federal.load import loading
from readingroom.bases.federal.search import vectors
from readingroom.core.progress import no_progress_sync
from readingroom.core.settings import RoomSettings
from readingroom.demo.corpus import write_records
from readingroom.engine.embedding.shared import embedder_for
from readingroom.protocol.command import RunCommand
from readingroom.protocol.sample import BaseSample, SampleStep


class FederalSample(BaseSample):
    def steps(self, settings: RoomSettings, folder: Path, run: RunCommand) -> Iterator[SampleStep]:
        yield "federal records", partial(_load, settings, folder)
        yield "federal records by meaning", partial(_embed, settings)


def _load(settings: RoomSettings, folder: Path) -> None:
    loading.load(store.get_database_path(settings.data), [write_records(folder)], None)


def _embed(settings: RoomSettings) -> None:
    with closing(store.connect(store.get_database_path(settings.data), writing=True)) as db:
        vectors.embed(db, embedder_for(settings), no_progress_sync)


SAMPLE = FederalSample()
