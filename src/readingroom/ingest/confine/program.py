"""Runs a program as a reader of documents would start it, to see whether it works there."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from readingroom.ingest.confine.process import Confinement
from readingroom.ingest.confine.program_paths import find_program_paths

_MEMORY_BYTES = 2**30
_TIMEOUT_SECONDS = 60
_CONFINING_SCRIPT = """
import json, os, sys
from readingroom.ingest.confine.process import Confinement, confine_process
confine_process(Confinement(**json.loads(sys.argv[1])))
os.execv(sys.argv[2], sys.argv[2:])
"""


def run_command_confined(
    command_line: Sequence[str], environment_variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Return how the command ended, and what it printed, inside the sandbox.

    Raise `subprocess.TimeoutExpired` when it takes more than a minute.
    """
    with tempfile.TemporaryDirectory(prefix="readingroom-") as scratch_folder:
        confinement = Confinement(
            readable_paths=find_program_paths(environment_variables),
            writable_paths=(scratch_folder, os.devnull),
            memory_bytes=_MEMORY_BYTES,
            cpu_seconds=_TIMEOUT_SECONDS,
        )
        python_command_line = [sys.executable, "-P", "-c", _CONFINING_SCRIPT]
        return subprocess.run(
            [*python_command_line, json.dumps(asdict(confinement)), *command_line],
            env={**environment_variables, "TMPDIR": scratch_folder},
            cwd=scratch_folder,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            start_new_session=True,
        )
