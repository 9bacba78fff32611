"""What the shell commands share: common options, settings, output, progress, exit codes."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, TypeVar, get_args

import click
from pydantic import BaseModel

from readingroom.console.coroutines import run_async
from readingroom.console.dispatch import dispatch_command
from readingroom.console.layout import make_red, render_styles
from readingroom.core.errors import (
    InvalidArguments,
    InvalidDate,
    InvalidSetting,
    KnowledgeError,
    UnknownSource,
    validate_model,
)
from readingroom.core.progress import ReportProgress, ReportProgressSync
from readingroom.core.settings import (
    MODELS_FOLDER_NAME,
    LogLevel,
    RoomSettings,
    get_default_sample_directory,
    is_sample,
)
from readingroom.core.text import escape_control_characters
from readingroom.interrupts import (
    NOTHING_CHANGED_SENTENCE,
    begin_changes,
    end_command,
    keep_after_interrupt,
    was_interrupted,
)
from readingroom.net.errors import InvalidPath
from readingroom.protocol.command import Command
from readingroom.protocol.sample import write_sample_state
from readingroom.protocol.spec import BaseSpec
from readingroom.storage.errors import (
    DatabaseFailed,
    DataNotEmpty,
    InvalidKeyName,
    StorageFailed,
    StoreUnusable,
    find_operator_detail,
)

CommandFunction = Callable[..., Any]
# Codes, because the error of a command that a server ran has another class.
_WRONG_PARAMETER_CODES = frozenset(
    error_class.code for error_class in (InvalidDate, InvalidKeyName, InvalidPath, UnknownSource)
)
_WRONG_VALUE_CODES = _WRONG_PARAMETER_CODES | {InvalidArguments.code, InvalidSetting.code}
Model = TypeVar("Model", bound=BaseModel)

add_log_level_option = click.option(
    "--log-level", type=click.Choice(get_args(LogLevel)), help="How much to log [info]."
)


def add_common_options(
    command_function: CommandFunction,
    common_setting_names: tuple[str, ...] = (),
    makes_sample: bool = False,
) -> CommandFunction:
    """Give a command `--data`, `--demo` and `--json`, and print its errors to standard error.

    The command receives `settings` and `as_json`. `common_setting_names` are its options that are
    settings; they do not reach it otherwise. `makes_sample`: with `--demo`, an empty directory
    becomes the sample's.
    """

    @click.option("--data", type=click.Path(), help="Data directory [READINGROOM_DATA].")
    @click.option("--demo", is_flag=True, help="Use the sample's own data directory.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")
    @wraps(command_function)
    def run_with_settings(
        *args: Any, data: str | None, demo: bool, as_json: bool, **kwargs: Any
    ) -> Any:
        try:
            data_directory = str(get_sample_folder(data, makes_sample)) if demo else data
            chosen_setting_values = {
                setting_name: kwargs.pop(setting_name) for setting_name in common_setting_names
            }
            # The root command knows how settings are composed; this layer does not.
            load_settings = click.get_current_context().find_root().obj
            settings: RoomSettings = load_settings(
                {"data": data_directory, **chosen_setting_values}
            )
            begin_changes()
            return command_function(*args, settings=settings, as_json=as_json, **kwargs)
        except KnowledgeError as error:
            exit_with_error(error, as_json)
        except OSError as error:  # a full disk, a closed pipe
            exit_with_error(StorageFailed(str(error)), as_json)

    return run_with_settings


def add_embedding_options(command_function: CommandFunction) -> CommandFunction:
    """Give a command that embeds texts what all commands have, and `--device`."""
    command_with_settings = add_common_options(
        command_function, common_setting_names=("embedding_device",)
    )
    return add_device_option(command_with_settings)


add_device_option = click.option(
    "--device",
    "embedding_device",
    type=click.Choice(["cpu", "cuda", "auto"]),
    help="Where many texts are embedded; auto takes a graphics card if there is one. "
    "[READINGROOM_EMBEDDING_DEVICE]",
)


def exit_with_error(error: KnowledgeError, as_json: bool) -> NoReturn:
    """Print the error and exit: with 2 when a setting or a value is wrong, else with 1.

    Raise `KeyboardInterrupt` after an interrupt: the error comes of that, and of nobody else.
    """
    if was_interrupted():
        raise KeyboardInterrupt from error
    end_command()  # else an interrupt could be told beside the error
    error_message = _name_options_in_message(error)
    if operator_detail := find_operator_detail(error):
        error_message = f"{error_message} ({operator_detail})"
    if as_json:
        error_fields = {"code": error.code, "message": error_message, "hint": dict(error.hint)}
        print_text(json.dumps({"error": error_fields}), to_stderr=True)
    else:
        print_text(f"{make_red('Error:')} {error_message}", to_stderr=True)
    # 2 is what click exits with for a bad option, and a setting is often given as one.
    sys.exit(2 if error.code in _WRONG_VALUE_CODES else 1)


def _name_options_in_message(error: KnowledgeError) -> str:
    """Return the message with the options and arguments of the command in place of their fields."""
    click_context = click.get_current_context(silent=True)
    command_parameters = click_context.command.params if click_context else []
    if error.code == InvalidArguments.code and error.hint.get("errors"):
        return _describe_problems(error.hint["errors"], command_parameters)
    if click_context and error.code in _WRONG_PARAMETER_CODES:
        click_parameter = _find_quoted_parameter(click_context, error.message) or next(
            (
                declared_parameter
                for declared_parameter in command_parameters
                if isinstance(declared_parameter, click.Argument)
            ),
            None,
        )
        if click_parameter:
            return f"{_describe_parameter(click_parameter)}: {error.message}"
    return error.message


def _find_quoted_parameter(
    click_context: click.Context, error_message: str
) -> click.Parameter | None:
    """Return the parameter whose value a message quotes."""
    for click_parameter in click_context.command.params:
        argument_value = click_context.params.get(str(click_parameter.name))
        argument_values = argument_value if isinstance(argument_value, tuple) else (argument_value,)
        if any(
            isinstance(argument_text, str) and argument_text and argument_text in error_message
            for argument_text in argument_values
        ):
            return click_parameter
    return None


def _describe_problems(
    field_errors: Sequence[Mapping[str, str]], click_parameters: Sequence[click.Parameter]
) -> str:
    label_by_field_name = {
        click_parameter.name: _describe_parameter(click_parameter)
        for click_parameter in click_parameters
    }
    # The text that a command searches for is its first argument, whatever it is called.
    click_arguments = (
        click_parameter
        for click_parameter in click_parameters
        if isinstance(click_parameter, click.Argument)
    )
    label_by_field_name.setdefault(
        "query", next(map(_describe_parameter, click_arguments), "query")
    )
    return InvalidArguments(
        [
            {
                "field": label_by_field_name.get(
                    field_error["field"].rpartition(".")[2], field_error["field"]
                ),
                # What Pydantic puts before the words of a check of our own.
                "message": field_error["message"].removeprefix("Value error, "),
            }
            for field_error in field_errors
        ]
    ).message


def _describe_parameter(click_parameter: click.Parameter) -> str:
    """Return an option as it is typed (`--limit`), an argument as the help shows it (`QUERY`)."""
    if isinstance(click_parameter, click.Option):
        return max(click_parameter.opts, key=len)
    return click_parameter.human_readable_name


def get_sample_folder(chosen_path: str | None, may_create: bool) -> Path:
    """Return the sample's data directory; `may_create` turns an empty directory into it.

    Raise `InvalidSetting` when there is no sample, and `DataNotEmpty` when the directory holds
    something else.
    """
    sample_folder = (
        Path(chosen_path).expanduser().absolute() if chosen_path else get_default_sample_directory()
    )
    if is_sample(sample_folder):
        return sample_folder
    if not may_create:
        raise InvalidSetting(
            f"There is no sample in {sample_folder} yet: `readingroom serve --demo` makes it"
        )
    if sample_folder.is_dir() and any(
        folder_entry.name != MODELS_FOLDER_NAME for folder_entry in sample_folder.iterdir()
    ):
        raise DataNotEmpty(
            f"{sample_folder} holds data of your own, which the sample must not mix with: choose "
            "an empty directory with --data, or leave --data out"
        )
    sample_folder.mkdir(parents=True, exist_ok=True)
    write_sample_state(sample_folder)
    return sample_folder


def run_command(
    base_command: Command,
    base_spec: BaseSpec,
    settings: RoomSettings,
    report_progress: ReportProgress | None = None,
) -> dict[str, Any]:
    """Return a command's result, from here or from the process that owns the folder."""
    kept_sentence = NOTHING_CHANGED_SENTENCE if base_command.reads_only else None
    with keep_after_interrupt(kept_sentence):
        return run_async(
            dispatch_command, base_command, base_spec, settings, report_progress or print_progress
        )


def build_model(model_class: type[Model], **field_values: Any) -> Model:
    """Return a question or a command made of what was typed. Raise `InvalidArguments`."""
    return validate_model(model_class, field_values)


async def print_progress(
    done_amount: float, total_amount: float | None, progress_message: str | None
) -> None:
    """Print a step to standard error: standard output is for the result."""
    if progress_message:
        print_text(progress_message, to_stderr=True)


@contextmanager
def explain_interrupt(kept_sentence: str) -> Iterator[None]:
    """Say what is kept of a command, and what to do next, when it is stopped or its store fails.

    The sentence begins with a capital letter and has no full stop.
    """
    with keep_after_interrupt(kept_sentence):
        try:
            yield
        except (StorageFailed, StoreUnusable, DatabaseFailed) as error:
            # Without a cause it is no failure of a store: it says itself what to do.
            if error.__cause__ is None or was_interrupted():
                raise
            raise type(error)(f"{error.message}. {kept_sentence}") from error


@contextmanager
def show_progress_bar(bar_label: str, is_hidden: bool) -> Iterator[ReportProgressSync]:
    """Show a progress bar on standard error from the first report on; none for machines."""
    with ExitStack() as exit_stack:
        click_bar: Any = None

        def report_progress(
            done_count: float, total_count: float | None, progress_message: str | None
        ) -> None:
            nonlocal click_bar
            if click_bar is None:
                click_bar = exit_stack.enter_context(
                    click.progressbar(
                        length=None if total_count is None else round(total_count),
                        label=bar_label,
                        file=sys.stderr,
                        hidden=is_hidden,
                        item_show_func=lambda shown_message: (
                            escape_control_characters(str(shown_message)[:60])
                            if shown_message
                            else None
                        ),
                    )
                )
            # Click's bar counts steps and cannot go back; reports may repeat a number.
            click_bar.update(max(0, round(done_count) - click_bar.pos), progress_message)

        yield report_progress


def make_tenths_printer(sentence_template: str) -> ReportProgressSync:
    """Return a callback that prints progress to standard error at every tenth."""
    last_printed_tenth = -1

    def print_reached_tenth(
        done_count: float, total_count: float | None, progress_message: str | None
    ) -> None:
        nonlocal last_printed_tenth
        reached_tenth = int(10 * done_count // total_count) if total_count else 10
        if reached_tenth > last_printed_tenth:
            last_printed_tenth = reached_tenth
            print_text(
                sentence_template.format(round(done_count), round(total_count or 0)), to_stderr=True
            )

    return print_reached_tenth


def print_result(as_json: bool, json_body: object, readable_text: str) -> None:
    """Print a result: its JSON for machines, text for people."""
    print_text(json.dumps(json_body, ensure_ascii=False) if as_json else readable_text)


def print_text(readable_text: str, to_stderr: bool = False) -> None:
    """Print what may quote anybody's words: none of them can command the terminal."""
    output_stream = sys.stderr if to_stderr else sys.stdout
    click.echo(
        render_styles(escape_control_characters(readable_text), output_stream), err=to_stderr
    )
