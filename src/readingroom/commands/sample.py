"""The sample corpus: loaded into its own data directory while it is already served."""

import logging
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from readingroom.bases import BASES
from readingroom.console.dispatch import dispatch_command
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgressSync, no_progress
from readingroom.core.settings import MODELS_FOLDER_NAME, RoomSettings
from readingroom.demo.corpus import compute_corpus_digest
from readingroom.engine.embedding.machine import count_cores
from readingroom.engine.embedding.weights import download_weights, get_weights_folder
from readingroom.engine.errors import ModelUnavailable
from readingroom.protocol.command import Command
from readingroom.protocol.sample import (
    BaseSampleLoader,
    SampleState,
    SampleStep,
    read_sample_state,
    write_sample_state,
)
from readingroom.storage.lock import FolderLock

logger = logging.getLogger(__name__)

AnnounceStep = Callable[[str], None]
"""Shows a sentence about the loading to whoever watches."""


def reset_outdated_sample(sample_folder: Path, is_reset_wanted: bool) -> None:
    """Empty the directory on request, after a failure, or when its corpus is another one."""
    sample_state = read_sample_state(sample_folder)
    if (
        not is_reset_wanted
        and sample_state.state != "failed"
        and sample_state.corpus in (None, compute_corpus_digest())
    ):
        return
    _check_sample_unused(sample_folder)
    for folder_entry in sample_folder.iterdir():
        # The model would have to be fetched again, a link may lead to somebody's own folder, and
        # what a restore moved aside (`.replaced`) is no part of the sample.
        is_folder_kept = (
            folder_entry.name == MODELS_FOLDER_NAME
            or folder_entry.name.startswith(".")
            or folder_entry.is_symlink()
        )
        if folder_entry.is_dir() and not is_folder_kept:
            shutil.rmtree(folder_entry)
    write_sample_state(sample_folder)


def load_sample_in_background(
    settings: RoomSettings, base_names: Iterable[str], announce_step: AnnounceStep
) -> None:
    """Load what is missing, on a thread that ends with the process."""
    threading.Thread(
        target=_load_sample,
        args=(settings, list(base_names), announce_step),
        name="sample",
        daemon=True,
    ).start()


def _load_sample(
    settings: RoomSettings, base_names: list[str], announce_step: AnnounceStep
) -> None:
    corpus_digest = compute_corpus_digest()
    if read_sample_state(settings.data) == SampleState(corpus_digest, "loaded"):
        return
    write_sample_state(settings.data, SampleState(corpus_digest))
    if not ensure_model(settings, announce_step):
        write_sample_state(settings.data, SampleState(corpus_digest, "failed"))
        return
    with tempfile.TemporaryDirectory(prefix="readingroom-sample-") as corpus_folder:
        steps_of_bases = _list_steps_of_bases(settings, base_names, Path(corpus_folder))
        is_complete = SampleLoader(steps_of_bases, announce_step).load_all_steps()
    if not is_complete:
        write_sample_state(settings.data, SampleState(corpus_digest, "failed"))
        announce_step("sample: not everything could be loaded; the next start begins anew")
        return
    if set(base_names) >= _SAMPLED_BASE_NAMES:
        write_sample_state(settings.data, SampleState(corpus_digest, "loaded"))
    announce_step("sample: everything is loaded")


def ensure_model(settings: RoomSettings, announce_step: AnnounceStep) -> bool:
    """Return whether documents can be embedded; a model that is missing is fetched first."""
    try:
        get_weights_folder(settings.models_folder, settings.embedding_model_dir)
        return True
    except ModelUnavailable as error:
        model_error = error
    if settings.embedding_model_dir is None:
        announce_step("sample: fetching the embedding model, 90 MB")
        try:
            download_weights(settings.model_url, settings.models_folder)
            return True
        except ModelUnavailable as error:
            announce_step(f"sample: {error.message}")
    announce_step(f"sample: nothing can be loaded. {model_error.message} Then start again.")
    return False


def _list_steps_of_bases(
    settings: RoomSettings, base_names: list[str], corpus_folder: Path
) -> list[list[SampleStep]]:
    """Return the steps of each base in their order."""
    steps_of_bases: list[list[SampleStep]] = []
    for base_spec in BASES.values():
        if base_spec.sample and base_spec.name in base_names:
            base_sample_loader: BaseSampleLoader = base_spec.sample.import_value()
            run_command = partial(_run_sample_command, base_spec.name)
            steps_of_bases.append(
                list(base_sample_loader.list_steps(settings, corpus_folder, run_command))
            )
    return steps_of_bases


def _run_sample_command(
    base_name: str, sample_command: Command, settings: RoomSettings
) -> dict[str, Any]:
    return anyio.run(dispatch_command, sample_command, BASES[base_name], settings, no_progress)


class SampleLoader:
    """One load of the sample: two bases at once, where there are two cores, and vectors last."""

    def __init__(
        self, steps_of_bases: Sequence[Sequence[SampleStep]], announce_step: AnnounceStep
    ) -> None:
        first_steps_of_bases = [
            [sample_step for sample_step in base_steps if not sample_step.is_last]
            for base_steps in steps_of_bases
        ]
        self._waiting_bases = deque(
            sorted(
                (base_steps for base_steps in first_steps_of_bases if base_steps),
                key=lambda base_steps: base_steps[0].start_order,
            )
        )
        self._last_steps = [
            sample_step
            for base_steps in steps_of_bases
            for sample_step in base_steps
            if sample_step.is_last
        ]
        self._step_count = sum(map(len, steps_of_bases))
        self._announce = announce_step
        self._count_lock = threading.Lock()
        self._started_count = self._succeeded_count = 0

    def load_all_steps(self) -> bool:
        """Return whether every step succeeded; each is tried whatever became of the others."""
        # More at once would gain nothing: reading files and embedding take all cores by themselves.
        # No executor: the process would wait for its threads before it ends.
        loader_threads = [
            threading.Thread(target=self._load_waiting_bases, name="sample-base", daemon=True)
            for _ in range(min(2, count_cores()))
        ]
        for loader_thread in loader_threads:
            loader_thread.start()
        for loader_thread in loader_threads:
            loader_thread.join()
        for last_step in self._last_steps:
            self._run_step(last_step)
        return self._succeeded_count == self._step_count

    def _load_waiting_bases(self) -> None:
        while True:
            try:
                base_steps = self._waiting_bases.popleft()
            except IndexError:
                return
            for sample_step in base_steps:
                self._run_step(sample_step)

    def _run_step(self, sample_step: SampleStep) -> None:
        with self._count_lock:
            self._started_count += 1
            self._announce(
                f"sample {self._started_count} of {self._step_count}: {sample_step.title}"
            )
        try:
            sample_step.load(_announce_quarters(sample_step.title, self._announce))
        except KnowledgeError as error:
            self._announce(f"sample: {sample_step.title} could not be loaded: {error.message}")
            return
        except Exception as error:
            logger.error("the sample %s could not be loaded", sample_step.title, exc_info=error)
            return
        with self._count_lock:
            self._succeeded_count += 1


def _announce_quarters(step_title: str, announce_step: AnnounceStep) -> ReportProgressSync:
    """Return a callback that says when a quarter, a half and three quarters are done."""
    announced_quarter_count = 0

    def announce_progress(
        done_amount: float, total_amount: float | None, progress_message: str | None
    ) -> None:
        nonlocal announced_quarter_count
        quarter_count = int(4 * done_amount / total_amount) if total_amount else 0
        if announced_quarter_count < quarter_count < 4:
            announced_quarter_count = quarter_count
            announce_step(f"sample: {step_title}, {25 * quarter_count} %")

    return announce_progress


def _check_sample_unused(sample_folder: Path) -> None:
    """Raise `FolderInUse` when a process has one of the bases."""
    for lock_path in sample_folder.glob("*/lock"):
        folder_lock = FolderLock(lock_path.parent)
        folder_lock.acquire()
        folder_lock.release()


_SAMPLED_BASE_NAMES = {base_spec.name for base_spec in BASES.values() if base_spec.sample}
