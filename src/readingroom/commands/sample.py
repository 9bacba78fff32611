"""The sample corpus: loaded into its own data directory while it is already served."""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from readingroom.bases import BASES
from readingroom.console.dispatch import dispatch
from readingroom.core.errors import KnowledgeError
from readingroom.core.progress import ReportProgressSync, no_progress
from readingroom.core.settings import MODELS_FOLDER, RoomSettings
from readingroom.demo.corpus import digest
from readingroom.engine.embedding.weights import download_weights, find_weights
from readingroom.engine.errors import ModelUnavailable
from readingroom.protocol.command import Command
from readingroom.protocol.sample import (
    BaseSample,
    SampleState,
    SampleStep,
    read_sample_state,
    write_sample_state,
)
from readingroom.storage.lock import FolderLock

logger = logging.getLogger(__name__)

Announce = Callable[[str], None]
"""Shows a sentence about the loading to whoever watches."""


def renew_sample(sample_folder: Path, reset: bool) -> None:
    """Empty the directory on request, after a failure, or when its corpus is another one."""
    sample_state = read_sample_state(sample_folder)
    if not reset and sample_state.state != "failed" and sample_state.corpus in (None, digest()):
        return
    _check_unused(sample_folder)
    for folder_entry in sample_folder.iterdir():
        # The model would have to be fetched again, a link may lead to somebody's own folder, and
        # what a restore moved aside (`.replaced`) is no part of the sample.
        is_kept = (
            folder_entry.name == MODELS_FOLDER
            or folder_entry.name.startswith(".")
            or folder_entry.is_symlink()
        )
        if folder_entry.is_dir() and not is_kept:
            shutil.rmtree(folder_entry)
    write_sample_state(sample_folder)


def load_in_background(settings: RoomSettings, bases: Iterable[str], announce: Announce) -> None:
    """Load what is missing, on a thread that ends with the process."""
    threading.Thread(
        target=_load_sample, args=(settings, list(bases), announce), name="sample", daemon=True
    ).start()


def _load_sample(settings: RoomSettings, bases: list[str], announce: Announce) -> None:
    corpus = digest()
    if read_sample_state(settings.data) == SampleState(corpus, "loaded"):
        return
    write_sample_state(settings.data, SampleState(corpus))
    if not has_model(settings, announce):
        write_sample_state(settings.data, SampleState(corpus, "failed"))
        return
    with tempfile.TemporaryDirectory(prefix="readingroom-sample-") as corpus_folder:
        sample_steps = _list_steps(settings, bases, Path(corpus_folder))
        outcomes = [
            _run_step(step, f"{step_number} of {len(sample_steps)}", announce)
            for step_number, step in enumerate(sample_steps, 1)
        ]
    if not all(outcomes):
        write_sample_state(settings.data, SampleState(corpus, "failed"))
        announce("sample: not everything could be loaded; the next start begins anew")
        return
    if set(bases) >= _SAMPLED:
        write_sample_state(settings.data, SampleState(corpus, "loaded"))
    announce("sample: everything is loaded")


def has_model(settings: RoomSettings, announce: Announce) -> bool:
    """Return whether documents can be embedded; a model that is missing is fetched first."""
    try:
        find_weights(settings.models, settings.embedding_model_dir)
        return True
    except ModelUnavailable as error:
        model_error = error
    if settings.embedding_model_dir is None:
        announce("sample: fetching the embedding model, 90 MB")
        try:
            download_weights(settings.model_url, settings.models)
            return True
        except ModelUnavailable as error:
            announce(f"sample: {error.message}")
    announce(f"sample: nothing can be loaded. {model_error.message} Then start again.")
    return False


def _list_steps(settings: RoomSettings, bases: list[str], corpus_folder: Path) -> list[SampleStep]:
    sample_steps: list[SampleStep] = []
    for spec in BASES.values():
        if spec.sample and spec.name in bases:
            sample: BaseSample = spec.sample.load()
            sample_steps += sample.steps(settings, corpus_folder, partial(_run_command, spec.name))
    return sorted(sample_steps, key=lambda step: step.turn)


def _run_command(base_name: str, command: Command, settings: RoomSettings) -> dict[str, Any]:
    return anyio.run(dispatch, command, BASES[base_name], settings, no_progress)


def _run_step(step: SampleStep, step_position: str, announce: Announce) -> bool:
    """Return whether a step succeeded; the others are tried in any case."""
    announce(f"sample {step_position}: {step.title}")
    try:
        step.load(_announce_quarters(step.title, announce))
    except KnowledgeError as error:
        announce(f"sample: {step.title} could not be loaded: {error.message}")
        return False
    except Exception as error:
        logger.error("the sample %s could not be loaded", step.title, exc_info=error)
        return False
    return True


def _announce_quarters(step_title: str, announce: Announce) -> ReportProgressSync:
    """Return a callback that says when a quarter, a half and three quarters are done."""
    announced = 0

    def report(
        done_amount: float, total_amount: float | None, progress_message: str | None
    ) -> None:
        nonlocal announced
        quarters = int(4 * done_amount / total_amount) if total_amount else 0
        if announced < quarters < 4:
            announced = quarters
            announce(f"sample: {step_title}, {25 * quarters} %")

    return report


def _check_unused(sample_folder: Path) -> None:
    """Raise `FolderInUse` when a process has one of the bases."""
    for lock_path in sample_folder.glob("*/lock"):
        lock = FolderLock(lock_path.parent)
        lock.acquire()
        lock.release()


_SAMPLED = {spec.name for spec in BASES.values() if spec.sample}
