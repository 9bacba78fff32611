"""The program `readingroom`: handles Ctrl-C first, then imports and runs the command line."""

import signal

if hasattr(signal, "pthread_sigmask"):  # not on Windows
    # Until it is handled: even the next import would else end in a traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

from readingroom.core.imports import import_reference
from readingroom.interrupts import run_program


def main() -> None:
    """Run the command line of this process, and exit."""
    run_program(_run_command_line)


def _run_command_line() -> None:
    # To import it takes longer than somebody needs to press Ctrl-C.
    import_reference("readingroom.cli:main")()


if __name__ == "__main__":
    main()
