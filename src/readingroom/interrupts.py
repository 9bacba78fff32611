"""Ctrl-C: whenever it comes, a command ends in one line that says what is kept and what to do next.

Only the standard library is imported, and little of it: nothing catches what comes before this.
"""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

INTERRUPTED_STATUS = 130
"""The exit status of an interrupted command, as in a shell: 128 and the number of SIGINT."""
NOTHING_CHANGED_SENTENCE = "Nothing was changed: run the same command again"
CHANGES_KEPT_SENTENCE = (
    "Changes are made whole or not at all, and those that were made are kept: run the same command "
    "again"
)
_REDELIVERY_SECONDS = 0.02
_SHOW_CURSOR = "\033[?25h"  # a progress bar hides it


class _Command:
    """The command that this process runs.

    `handle_press` is what the next Ctrl-C does: at first `interrupt`, then `end_at_once`, and
    `ignore_press` when the command is over. `stop` is how the first one stops the command.
    """

    def __init__(self) -> None:
        self.handle_press: Callable[[], object] = self.interrupt
        # While libraries are imported there is nothing to stop in order, and an exception may get
        # lost: some call Python from C, and drop what it raises.
        self.stop: Callable[[], object] = self.end_at_once
        self.kept_sentence = NOTHING_CHANGED_SENTENCE
        self.is_interrupted = False
        self.exit_status = 0

    def interrupt(self) -> None:
        self.is_interrupted = True
        self.handle_press = self.end_at_once
        _silence_others()
        self.stop()

    def end_at_once(self) -> None:
        # Whatever fails on the way, such as a terminal that has gone away.
        try:
            report_interruption()
        finally:
            os._exit(INTERRUPTED_STATUS)

    def ignore_press(self) -> None:
        pass

    def end_process(self) -> None:
        """End with the status of the command, which is over."""
        # The reader of a pipe may be gone, or the interrupt may have come in the middle of a flush.
        with suppress(OSError, ValueError, RuntimeError):
            sys.stdout.flush()
        os._exit(self.exit_status)


_command = _Command()


def run_program(run_command_line: Callable[[], object]) -> None:
    """Run the command line of this process, and exit with its status.

    The first Ctrl-C ends what the command does in order, the second one at once.
    """
    _install_handlers()
    exit_code: Any = 0
    try:
        run_command_line()
    except SystemExit as system_exit:
        exit_code = system_exit.code
    _command.exit_status = exit_code if isinstance(exit_code, int) else 1
    _command.handle_press = _command.end_process  # only the interpreter is left to end
    sys.exit(exit_code)


def begin_command() -> None:
    """Begin anew: tests run several commands in a process."""
    global _command
    _command = _Command()


def begin_changes() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` from here on: what is begun is stopped in order."""
    _command.kept_sentence = CHANGES_KEPT_SENTENCE
    _command.stop = _raise_interrupt


def end_command() -> None:
    """Ignore Ctrl-C from here on: the command is over, and is only told how it ended."""
    _command.handle_press = _command.ignore_press


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed: what fails afterwards fails because of it."""
    return _command.is_interrupted


def report_interruption() -> int:
    """Print the line about the command that was interrupted; return the exit status."""
    end_command()  # else another press could break the line off, or print it again
    # There may be nobody left who could read it; without a descriptor 2 there is no `stderr`.
    with suppress(OSError, ValueError, AttributeError):
        line_start = f"\n{_SHOW_CURSOR}" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{line_start}Stopped. {_command.kept_sentence}.\n")
        sys.stderr.flush()
    return INTERRUPTED_STATUS


@contextmanager
def keep_after_interrupt(kept_sentence: str | None) -> Iterator[None]:
    """Print this sentence for an interrupt inside: what is kept, and what to do next.

    It begins with a capital letter and has no full stop. None leaves the one outside.
    """
    sentence_before = _command.kept_sentence
    _command.kept_sentence = kept_sentence or sentence_before
    yield
    _command.kept_sentence = sentence_before  # not after an error, which may be the interrupt


def change_kept_sentence(kept_sentence: str) -> None:
    """Print another sentence from here to the end of the enclosing `keep_after_interrupt`."""
    _command.kept_sentence = kept_sentence


@contextmanager
def cancel_on_interrupt(cancel: Callable[[], object]) -> Iterator[None]:
    """Have an interrupt inside call this, and raise nothing: an event loop runs here."""
    stop_before = _command.stop
    _command.stop = cancel
    try:
        yield
    finally:
        _command.stop = stop_before


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let a short step end that is not to be left half done; Ctrl-C is heeded after it."""
    handle_press_before = _command.handle_press
    was_pressed = threading.Event()
    _command.handle_press = was_pressed.set
    try:
        yield
    finally:
        _command.handle_press = handle_press_before
        if was_pressed.is_set():
            handle_press_before()


@contextmanager
def shield_new_processes() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: this one ends them, and tells about it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)


def _install_handlers() -> None:
    """Handle SIGINT here from now on, unless whoever started this process has it ignored."""
    sys.unraisablehook = _handle_unraisable
    threading.excepthook = _handle_thread_exception
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle_signal)
        atexit.register(_prepare_interpreter_end)  # the first one, which is called last
    if hasattr(signal, "pthread_sigmask"):  # __main__ has blocked it until here
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _handle_signal(signal_number: int, frame: FrameType | None) -> None:
    _command.handle_press()


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def _silence_others() -> None:
    """Nobody else is to speak of what the interrupt breaks off: libraries log and warn of it."""
    with suppress(AttributeError):  # they may just be imported
        if logging := sys.modules.get("logging"):
            logging.disable(logging.CRITICAL)
        if warnings := sys.modules.get("warnings"):
            warnings.simplefilter("ignore")


def _handle_unraisable(unraisable: Any) -> None:
    """Send an interrupt again that came where no exception can be raised, as in a destructor."""
    if not was_interrupted():
        sys.__unraisablehook__(unraisable)
    elif (
        issubclass(unraisable.exc_type, KeyboardInterrupt)
        and _command.handle_press == _command.end_at_once
    ):
        _command.handle_press = _command.interrupt
        # Not from here: it would be raised where we are, and be lost again.
        redelivery = threading.Timer(_REDELIVERY_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
        redelivery.daemon = True
        redelivery.start()


def _handle_thread_exception(thread_failure: Any) -> None:
    if not was_interrupted():
        threading.__excepthook__(thread_failure)


def _prepare_interpreter_end() -> None:
    # The interpreter forgets our handler before it ends, but not that a signal is ignored.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if was_interrupted():
        # Not left to the interpreter: it kills itself with SIGINT if a `KeyboardInterrupt` has left
        # an `exec`, as there is one in the import of every dataclass, whoever caught it then.
        _command.end_process()
