"""The confined process: reads one file from standard input and writes JSON lines to its output.

Started by `sandbox.py`, which calls `main` with a job. It is killed with all that it started when
it exceeds a limit, and exits when the server that started it is gone.
"""

import binascii
import gc
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from readingroom.core.imports import import_reference
from readingroom.ingest.confine.process import confine_process
from readingroom.ingest.document import ContainedEntry, Document, Refusal
from readingroom.ingest.read.job import Job
from readingroom.ingest.read.reader import find_page_words, read_file, render_page

_SECONDS_BETWEEN_PARENT_CHECKS = 0.5


def main() -> None:
    """Read the file on standard input and write the result."""
    # What was imported until now stays, so no collection need look at it.
    gc.freeze()
    gc.enable()
    reading_job = Job.from_json(sys.argv[1])
    # First of all, and before there is a second thread, which would stay unconfined.
    confine_process(reading_job.confinement)
    if hasattr(os, "killpg"):  # not on Windows, where the end of the server goes unnoticed
        threading.Thread(
            target=kill_group_after_parent, args=(reading_job.parent_id,), daemon=True
        ).start()
    with _open_private_output() as output_pipe:
        _write_message(output_pipe, **_run_job(reading_job, output_pipe))


def kill_group_after_parent(parent_process_id: int) -> None:
    """Kill this process and its group as soon as the server that started it is gone."""
    while os.getppid() == parent_process_id:
        time.sleep(_SECONDS_BETWEEN_PARENT_CHECKS)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _open_private_output() -> IO[str]:
    """Return the pipe to the server, and discard what libraries print to standard output."""
    # C libraries print to descriptor 1, and a stray line would not be a message.
    pipe_descriptor = os.dup(sys.stdout.fileno())
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    return os.fdopen(pipe_descriptor, "w", encoding="utf-8")


def _run_job(reading_job: Job, output_pipe: IO[str]) -> dict[str, Any]:
    """Return the fields of the message that ends the job."""

    def report_progress(
        done_step_count: float, total_step_count: float | None, progress_message: str | None
    ) -> None:
        _write_message(output_pipe, progress=[done_step_count, total_step_count, progress_message])

    try:
        file_bytes = sys.stdin.buffer.read()
        match reading_job.task:
            case "draw":
                picture_bytes = render_page(
                    file_bytes,
                    reading_job.file_name,
                    reading_job.page,
                    reading_job.dpi,
                    reading_job.options,
                    reading_job.picture_format,
                )
                return {
                    "picture": binascii.b2a_base64(picture_bytes, newline=False).decode("ascii")
                }
            case "find_words":
                page_words = find_page_words(
                    file_bytes, reading_job.file_name, reading_job.page, reading_job.options
                )
                return {"words": [asdict(page_word) for page_word in page_words]}
            case "unpack":
                return {"unpacked": _unpack_contained_files(file_bytes, reading_job.file_name)}
        read_result = read_file(
            file_bytes, reading_job.file_name, reading_job.options, report_progress
        )
    except Refusal as refusal:
        return {"refusal": [refusal.code, refusal.message]}
    # Raised by Python at RLIMIT_AS. Where a C library meets the limit, the process ends instead.
    except MemoryError:
        return {"refusal": ["extraction_failed", "Reading the file takes too much memory"]}
    message_field_name = "document" if isinstance(read_result, Document) else "skipped_file"
    return {message_field_name: asdict(read_result)}


def _unpack_contained_files(file_bytes: bytes, file_name: str) -> list[dict[str, str]]:
    """Write the files inside a file to the scratch folder; return their names there and here."""
    list_contained_files = import_reference(
        "readingroom.ingest.read.contained:list_contained_files"
    )
    unpacked_entries = []
    for file_index, contained_file in enumerate(list_contained_files(file_bytes, file_name)):
        # Never under a name that the file itself chose.
        unpacked_entry = ContainedEntry(contained_file.name, f"contained-{file_index}")
        Path(unpacked_entry.scratch_name).write_bytes(contained_file.content)
        unpacked_entries.append(asdict(unpacked_entry))
    return unpacked_entries


def _write_message(output_pipe: IO[str], **worker_message: Any) -> None:
    output_pipe.write(json.dumps(worker_message) + "\n")
    output_pipe.flush()
