"""The confined process: one file on standard input, what was found as JSON lines on its output.

Started by `sandbox.py` as `python -m readingroom.ingest.read.worker JOB`. It is killed with all
that it started when it goes over a limit, and exits when the server that started it is gone.
"""

import base64
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from typing import IO, Any

from readingroom.ingest.document import Document, Refusal
from readingroom.ingest.read.job import Job
from readingroom.ingest.read.reader import picture, read

_LOOKS_A_SECOND = 2
_LARGEST_FILE = 512 * 2**20
"""Bytes that may be written into one file; a page for tesseract takes at most 40 million."""


def main() -> None:
    """Read the file on standard input."""
    job = Job.from_json(sys.argv[1])
    confine(job.memory_bytes, job.cpu_seconds)
    if hasattr(os, "killpg"):  # not on Windows, where the server's end is not noticed
        threading.Thread(target=end_with, args=(job.parent,), daemon=True).start()
    with _private_output() as output:
        _say(output, **_outcome(job, output))


def confine(memory_bytes: int, cpu_seconds: int) -> None:
    """Let the kernel hold this process and all it starts to its limits.

    macOS accepts the memory limit without enforcing it, and Windows has none of this: there, the
    time limits outside still hold.
    """
    try:
        import resource
    except ImportError:
        return
    wanted = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: _LARGEST_FILE,
    }
    for limit, value in wanted.items():
        _, hard = resource.getrlimit(limit)
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (lower, lower))


def end_with(parent: int) -> None:
    """Watch the server; when it is gone, nobody waits for this process or its tesseract."""
    while os.getppid() == parent:
        time.sleep(1 / _LOOKS_A_SECOND)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _private_output() -> IO[str]:
    """The pipe to the server; what libraries print goes nowhere instead of into it."""
    private = os.dup(sys.stdout.fileno())
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    return os.fdopen(private, "w", encoding="utf-8")


def _outcome(job: Job, output: IO[str]) -> dict[str, Any]:
    def report(done: float, total: float | None, message: str | None) -> None:
        _say(output, progress=[done, total, message])

    try:
        data = sys.stdin.buffer.read()
        if job.page is not None:
            png = picture(data, job.name, job.page, job.dpi, job.options)
            return {"picture": base64.b64encode(png).decode("ascii")}
        found = read(data, job.name, job.options, report)
    except Refusal as refusal:
        return {"refusal": [refusal.code, refusal.message]}
    except MemoryError:
        return {"refusal": ["extraction_failed", "Reading the file takes too much memory"]}
    kind = "document" if isinstance(found, Document) else "skipped"
    return {kind: asdict(found)}


def _say(output: IO[str], **message: Any) -> None:
    output.write(json.dumps(message) + "\n")
    output.flush()


if __name__ == "__main__":
    main()
