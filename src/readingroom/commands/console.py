"""What every CLI verb shares: its common options, its settings, how it fails and how it speaks."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, NoReturn, TypeVar, get_args

import anyio
import click
from pydantic import BaseModel, ValidationError

from readingroom.commands.sample import sample_folder
from readingroom.core.errors import InvalidArguments, InvalidSetting, KnowledgeError
from readingroom.core.progress import ReportProgress, ReportProgressSync
from readingroom.core.settings import LogLevel, Settings
from readingroom.protocol.command import Command
from readingroom.storage.errors import StorageFailed

Verb = Callable[..., Any]
Model = TypeVar("Model", bound=BaseModel)

log_level = click.option(
    "--log-level", type=click.Choice(get_args(LogLevel)), help="How much to log [info]."
)


def common(verb: Verb, makes_sample: bool = False) -> Verb:
    """`--data`, `--demo` and `--json` for a verb, and its errors told on standard error."""

    @click.option("--data", type=click.Path(), help="Data directory [READINGROOM_DATA].")
    @click.option("--demo", is_flag=True, help="Use the sample's own data directory.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
    @wraps(verb)
    def wrapped(*args: Any, demo: bool, as_json: bool, **kwargs: Any) -> Any:
        try:
            if demo:
                kwargs["data"] = str(sample_folder(kwargs["data"], makes_sample))
            return verb(*args, as_json=as_json, **kwargs)
        except KnowledgeError as error:
            fail(error, as_json)
        except OSError as error:  # a full disk, a closed pipe
            fail(StorageFailed(str(error)), as_json)

    return wrapped


def fail(error: KnowledgeError, as_json: bool) -> NoReturn:
    """End with the error: exit code 2 when a setting is wrong, else 1."""
    if as_json:
        told = {"code": error.code, "message": error.message, "hint": dict(error.hint)}
        click.echo(json.dumps({"error": told}), err=True)
    else:
        click.echo(f"Error: {error.message}", err=True)
    sys.exit(2 if isinstance(error, InvalidSetting) else 1)


def run(
    command: Command, settings: Settings, report: ReportProgress | None = None
) -> dict[str, Any]:
    """A command's result, from here or from the process that owns the folder."""
    # It brings the whole server, which `--help` and the other verbs need not wait for.
    from readingroom.commands.dispatch import dispatch

    return anyio.run(dispatch, command, settings, report or tell)


def asked(kind: type[Model], **values: Any) -> Model:
    """A question or a command made of what was typed."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InvalidArguments.of(error) from error


async def tell(done: float, total: float | None, message: str | None) -> None:
    """A command's step, on standard error: standard output is for its result."""
    if message:
        click.echo(message, err=True)


@contextmanager
def bar(label: str, hidden: bool) -> Iterator[ReportProgressSync]:
    """A progress bar on standard error, drawn when the first step is told; none for machines."""
    with ExitStack() as held:
        drawn: Any = None

        def told(done: float, total: float | None, step: str | None) -> None:
            nonlocal drawn
            if drawn is None:
                drawn = held.enter_context(
                    click.progressbar(
                        length=None if total is None else round(total),
                        label=label,
                        file=sys.stderr,
                        hidden=hidden,
                        item_show_func=lambda step: str(step)[:60] if step else None,
                    )
                )
            drawn.update(max(0, round(done) - drawn.pos), step)

        yield told


def say(as_json: bool, body: object, text: str) -> None:
    """Print a result: its JSON for machines, a sentence for people."""
    click.echo(json.dumps(body, ensure_ascii=False) if as_json else text)
