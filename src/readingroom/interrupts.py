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


class _Interruption:
    """What became of Ctrl-C in this process: signals belong to the whole of it."""

    def __init__(self) -> None:
        self.begin_command()

    def begin_command(self) -> None:
        """Forget what was before: tests run several commands in a process."""
        self.is_pressed = False
        self.is_reported = False
        self.is_deferred = False
        self.kept_sentence = NOTHING_CHANGED_SENTENCE
        self.cancel: Callable[[], object] | None = None
        self.ended_status: int | None = None


_interruption = _Interruption()


def run_program(run_command_line: Callable[[], object]) -> None:
    """Run the command line of this process, and exit with its status.

    The first Ctrl-C ends what the command does in order, the second one at once.
    """
    exit_status: Any = 0
    try:
        _install_handlers()
        try:
            run_command_line()
        except SystemExit as system_exit:
            exit_status = system_exit.code
        _interruption.ended_status = exit_status if isinstance(exit_status, int) else 1
    except BaseException:
        if not was_interrupted():
            raise
        exit_status = report_interruption()
    _interruption.ended_status = exit_status if isinstance(exit_status, int) else 1
    sys.exit(exit_status)


def begin_command() -> None:
    """Begin anew: nothing was interrupted, and nothing changed yet."""
    _interruption.begin_command()


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed: what fails afterwards fails because of it."""
    return _interruption.is_pressed


def report_interruption() -> int:
    """Print the line about the command that was interrupted, once; return the exit status."""
    if not _interruption.is_reported:
        _interruption.is_deferred = True  # else another press could end us before, or tell it too
        line_start = f"\n{_SHOW_CURSOR}" if sys.stderr.isatty() else ""
        sys.stderr.write(f"{line_start}Stopped. {_interruption.kept_sentence}.\n")
        sys.stderr.flush()
        _interruption.is_reported = True
        _interruption.is_deferred = False
    return INTERRUPTED_STATUS


@contextmanager
def keep_after_interrupt(kept_sentence: str | None) -> Iterator[None]:
    """Print this sentence for an interrupt inside: what is kept, and what to do next.

    It begins with a capital letter and has no full stop. None leaves the one outside.
    """
    sentence_before = _interruption.kept_sentence
    _interruption.kept_sentence = kept_sentence or sentence_before
    yield
    _interruption.kept_sentence = sentence_before  # not after an error, which may be the interrupt


def change_kept_sentence(kept_sentence: str) -> None:
    """Print another sentence from here to the end of the enclosing `keep_after_interrupt`."""
    _interruption.kept_sentence = kept_sentence


@contextmanager
def defer_interrupts() -> Iterator[None]:
    """Let a short step end that is not to be left half done; Ctrl-C is heeded after it."""
    _interruption.is_deferred = True
    was_pressed_before = _interruption.is_pressed
    try:
        yield
    finally:
        _interruption.is_deferred = False
    if _interruption.is_pressed and not was_pressed_before:
        raise KeyboardInterrupt


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


@contextmanager
def cancel_on_interrupt(cancel: Callable[[], object]) -> Iterator[None]:
    """Have an interrupt inside call this, and raise nothing: an event loop runs here."""
    _interruption.cancel = cancel
    try:
        yield
    finally:
        _interruption.cancel = None


def _install_handlers() -> None:
    """Handle SIGINT here from now on, unless whoever started this process has it ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _handle_interrupt)
        atexit.register(_end_process)  # the first one, which is called last
    if hasattr(signal, "pthread_sigmask"):  # __main__ has blocked it until here
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        sys.unraisablehook = _handle_unraisable
        threading.excepthook = _handle_thread_exception


def _handle_interrupt(signal_number: int, frame: FrameType | None) -> None:
    if _interruption.ended_status is not None:  # only the interpreter is left to end
        os._exit(_interruption.ended_status)
    if (_interruption.is_pressed and not _interruption.is_deferred) or _interruption.is_reported:
        os._exit(report_interruption())
    _interruption.is_pressed = True
    _silence_others()
    if _interruption.is_deferred:
        return
    if _interruption.cancel is None:
        raise KeyboardInterrupt
    _interruption.cancel()


def _end_process() -> None:
    """Keep the exit status: the interpreter would change it after an interrupt, or at another."""
    # It forgets our handler before it ends, but not that a signal is ignored.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if _interruption.is_reported:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        # Not left to the interpreter: it kills itself with SIGINT if a `KeyboardInterrupt` has left
        # an `exec`, as there is one in the import of every dataclass, whoever caught it then.
        os._exit(INTERRUPTED_STATUS)


def _silence_others() -> None:
    """Nobody else is to speak of what the interrupt breaks off: libraries log and warn of it."""
    if logging := sys.modules.get("logging"):
        logging.disable(logging.CRITICAL)
    if warnings := sys.modules.get("warnings"):
        warnings.simplefilter("ignore")


def _handle_unraisable(unraisable: Any) -> None:
    """Send an interrupt again that came where no exception can be raised, as in a destructor."""
    if not was_interrupted():
        sys.__unraisablehook__(unraisable)
    elif issubclass(unraisable.exc_type, KeyboardInterrupt) and not _interruption.is_reported:
        _interruption.is_pressed = False
        # Not from here: it would be raised where we are, and be lost again.
        redelivery = threading.Timer(_REDELIVERY_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
        redelivery.daemon = True
        redelivery.start()


def _handle_thread_exception(thread_failure: Any) -> None:
    if not was_interrupted():
        threading.__excepthook__(thread_failure)
