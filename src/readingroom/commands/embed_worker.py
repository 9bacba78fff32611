"""`readingroom embed-worker`: this machine embeds passages for a room or a database elsewhere."""

from pathlib import Path

import click
from pydantic import SecretStr

from readingroom.bases import BASES, open_bases
from readingroom.console.options import (
    add_embedding_options,
    explain_interrupt,
    print_result,
    print_text,
)
from readingroom.core import clock
from readingroom.core.settings import RoomSettings, reveal_secret
from readingroom.engine.embedding.shared import get_shared_embedder
from readingroom.protocol.embedding_work import MAX_BATCH_PASSAGES, EmbeddingProgress
from readingroom.protocol.embedding_worker import (
    DatabaseEmbeddingWork,
    EmbeddingWork,
    EmbeddingWorker,
    HttpEmbeddingWork,
)
from readingroom.protocol.spec import list_leasable_passages

_SECONDS_BETWEEN_REPORTS = 10.0
_SECONDS_BETWEEN_POLLS = 15.0
_DATABASE_SCHEMES = ("postgresql", "postgres")


@click.command("embed-worker")
@click.option(
    "--url",
    help="The address of the room, https://room.example:8000, or of its database, "
    "postgresql://user@host/name. [READINGROOM_DATABASE_URL]",
)
@click.option(
    "--key-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that holds the worker's key; else READINGROOM_WORKER_KEY.",
)
@click.option(
    "--batch",
    "batch_passages",
    type=click.IntRange(1, MAX_BATCH_PASSAGES),
    help="Passages taken at once: what is lost when the worker is killed. [256, on a card 1024]",
)
@click.option("--once", is_flag=True, help="End when everything is embedded; else wait for more.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=600.0,
    show_default=True,
    help="Seconds to wait for a room that does not answer.",
)
@add_embedding_options
def embed_worker(
    url: str | None,
    key_file: Path | None,
    batch_passages: int | None,
    once: bool,
    patience: float,
    settings: RoomSettings,
    as_json: bool,
) -> None:
    """Embed passages for a room that is served elsewhere, on this machine's processor or card.

    \b
    At the room:    readingroom keys add gpu-box --worker     prints the key, this once
                    readingroom serve --host 0.0.0.0
                    readingroom federal load PATH…            or add policies, documents, guidance
    Here:           export READINGROOM_WORKER_KEY=rrw_…
                    readingroom embed-worker --url https://room:8000 --device auto --once

    What somebody is adding comes first, then what people search for, then the newest and most
    linked records. Any number of workers share the work. Stop or kill one at any time: what it had
    is given to another after a minute and a half. The key opens nothing else; the room embeds a few
    texts of each batch itself, and when a vector is wrong it deletes what came with that key.

    Where the room's data is in PostgreSQL, the worker can take and store it there, without a server
    and a key: the role of the URL decides what it may. Better in READINGROOM_DATABASE_URL than in
    --url, which other users of this machine see.
    """
    room_url = url or reveal_secret(settings.database_url)
    if not room_url:
        raise click.UsageError(
            "Name the room with --url, or its database there or in READINGROOM_DATABASE_URL. A "
            "room that keeps its data in a directory is reached through its server: "
            "`readingroom serve` there, and --url with its address here."
        )
    url_scheme = room_url.partition("://")[0].lower()
    if url_scheme in _DATABASE_SCHEMES:
        settings = settings.model_copy(update={"database_url": SecretStr(room_url)})
        embedding_work: EmbeddingWork = _open_database_work(settings, key_file, patience)
    elif url_scheme in ("http", "https"):
        embedding_work = HttpEmbeddingWork(room_url, _read_worker_key(settings, key_file), patience)
    else:
        raise click.BadParameter(
            "an address begins with https://, http:// or postgresql://", param_hint="'--url'"
        )
    progress_printer = _ProgressPrinter(is_quiet=as_json)
    embedding_worker = EmbeddingWorker(
        embedding_work, get_shared_embedder(settings), progress_printer, batch_passages
    )
    with explain_interrupt(
        "Vectors that were stored are kept, and another worker gets what this one had: run the "
        "same command again to go on"
    ):
        stored_count = embedding_worker.embed_until_done(None if once else _SECONDS_BETWEEN_POLLS)
    print_result(as_json, {"stored": stored_count}, f"{stored_count:,} vectors made here.")


def _read_worker_key(settings: RoomSettings, key_file: Path | None) -> str:
    worker_secret = key_file.read_text("utf-8") if key_file else reveal_secret(settings.worker_key)
    if not worker_secret or not worker_secret.strip():
        raise click.UsageError(
            "A worker needs a key: set READINGROOM_WORKER_KEY or --key-file. The room's operator "
            "makes one with `readingroom keys add NAME --worker`."
        )
    return worker_secret.strip()


def _open_database_work(
    settings: RoomSettings, key_file: Path | None, patience_seconds: float
) -> EmbeddingWork:
    if key_file:
        raise click.UsageError(
            "--key-file is for a room that is served: at its database the role of the URL decides."
        )
    base_names = [
        base_name for base_name, base_spec in BASES.items() if base_spec.database_support == "moves"
    ]
    knowledge_bases = open_bases(base_names, settings)
    return DatabaseEmbeddingWork(list_leasable_passages(knowledge_bases), patience_seconds)


class _ProgressPrinter:
    """Prints how far the room is, every few seconds."""

    def __init__(self, is_quiet: bool) -> None:
        self._is_quiet = is_quiet
        self._print_again_at = 0.0

    def __call__(self, embedding_progress: EmbeddingProgress) -> None:
        now_seconds = clock.read_unix_seconds()
        if self._is_quiet or now_seconds < self._print_again_at:
            return
        self._print_again_at = now_seconds + _SECONDS_BETWEEN_REPORTS
        rate_text = (
            f", {embedding_progress.per_second:,.1f} a second"
            if embedding_progress.per_second
            else ""
        )
        time_left_text = (
            f", {_format_duration(embedding_progress.seconds_left)} left"
            if embedding_progress.seconds_left
            else ""
        )
        print_text(
            f"{embedding_progress.embedded:,} of {embedding_progress.total:,} passages "
            f"({embedding_progress.percent:.1f} %)"
            f"{rate_text}{time_left_text}",
            to_stderr=True,
        )


def _format_duration(duration_seconds: float) -> str:
    minute_count = round(duration_seconds / 60)
    return (
        f"{minute_count // 60} h {minute_count % 60} min"
        if minute_count >= 60
        else f"{max(minute_count, 1)} min"
    )
