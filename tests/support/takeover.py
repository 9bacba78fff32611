"""A stand-in for a parser that a hostile document has taken over, inside the real sandbox.

The sandbox starts it as it starts every worker. The worker confines itself and then runs attempts
where it would read the file: each is a line of Python, and what became of it is told.
"""

import json
import sys
import tempfile
from collections.abc import Sequence

import pytest

from readingroom.core.progress import ReportProgress, no_progress
from readingroom.ingest.document import ReadOptions
from readingroom.ingest.errors import ExtractionFailed
from readingroom.ingest.read.sandbox import ConfinedReader, ReadingLimits

# Long enough for a busy machine: what a test waits for is the failure, which comes at once.
GENEROUS = ReadingLimits(wall_seconds=120, silent_seconds=120, cpu_seconds=60)

ALLOWED = "allowed"

_PROGRAM = """
import ctypes, errno, fcntl, json, os, resource, signal, socket, subprocess, sys
from readingroom.ingest.confine import landlock
from readingroom.ingest.document import Refusal
from readingroom.ingest.read import worker

attempts, landlock_abi = json.loads({attempts!r}), {landlock_abi!r}
parent = os.getppid()
libc = ctypes.CDLL(None, use_errno=True)

def expect(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")

def attempt(line):
    try:
        exec(line, globals())
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
    except subprocess.CalledProcessError as error:
        return error.stderr
    return "allowed"

def be_taken_over(*arguments):
    globals()["arguments"] = arguments
    outcomes = {{line: attempt(line) for line in attempts}}
    raise Refusal("extraction_failed", json.dumps(outcomes))

offered = landlock.read_landlock_abi()
landlock.read_landlock_abi = lambda: min(offered, landlock_abi)
worker.read_file = be_taken_over
worker.main()
"""


async def attempt_all(
    attempts: Sequence[str], landlock_abi: int = 99, report: ReportProgress = no_progress
) -> dict[str, str]:
    """Return what became of each attempt: `allowed`, or the name of the error.

    `landlock_abi` plays an older kernel.
    """
    with pytest.raises(ExtractionFailed) as told:
        await be_taken_over(attempts, GENEROUS, landlock_abi, report)
    outcomes: dict[str, str] = json.loads(told.value.message)
    return outcomes


async def be_taken_over(
    attempts: Sequence[str],
    limits: ReadingLimits,
    landlock_abi: int = 99,
    report: ReportProgress = no_progress,
) -> None:
    """Run the attempts in a sandbox with these limits. Raise ExtractionFailed in any case."""
    program = _PROGRAM.format(attempts=json.dumps([*attempts]), landlock_abi=landlock_abi)
    sandbox = ConfinedReader(limits, worker_command=(sys.executable, "-P", "-c", program))
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(b"%PDF-1.7")
        await sandbox.read_document(file, "paper.pdf", ReadOptions(), report)
