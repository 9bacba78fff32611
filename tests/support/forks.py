"""Processes that run `readingroom` without importing it each time: forks of one that has it all.

To import what a server needs takes longer than most tests. So each worker of pytest keeps a process
with everything imported, in which nothing runs; a command gets a fork of it, with an environment,
descriptors and a process id of its own. Where the start itself is tested, and once for each verb,
`anew` of tests/support/kit.py takes an interpreter of its own.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

_PROGRAM = "readingroom"
_LIBRARIES = ("chromadb", "tokenizers", "valkey.asyncio")
"""What its modules import when they first need it; not onnxruntime, which starts a thread."""
_LINE_BYTES = 1 << 20


class ForkedProcess:
    """What tests use of `subprocess.Popen`, of a process whose parent is another one of ours."""

    def __init__(self, pid: int, ending: int, stdout: IO[str] | None) -> None:
        self.pid = pid
        self.stdout = stdout
        self.returncode: int | None = None
        self._ending = ending
        """Reads the status with which the process ended, when it did."""

    def poll(self) -> int | None:
        return self._read_status(0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the status with which it ended; raise `TimeoutExpired` while it has not."""
        status = self._read_status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(_PROGRAM, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _read_status(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._ending], [], [], seconds)[0]:
            status_digits = os.read(self._ending, 100)
            os.close(self._ending)
            assert status_digits, "the process that forks has ended"
            self.returncode = int(status_digits)
        return self.returncode


def start_fork(
    args: Sequence[str], env: Mapping[str, str], stdout: int, stderr: int
) -> ForkedProcess:
    """Run `readingroom` with these arguments in a fork, whose `stdout` may be `PIPE`."""
    with contextlib.ExitStack() as stack:
        nothing = stack.enter_context(Path(os.devnull).open("rb"))
        ended, ending = os.pipe()
        stack.callback(os.close, ending)
        output = None
        if stdout == subprocess.PIPE:
            reading, stdout = os.pipe()
            stack.callback(os.close, stdout)
            output = os.fdopen(reading, "r")
        request = {"args": list(args), "env": dict(env), "cwd": str(Path.cwd())}
        with _one_asks:
            pid = _get_parent().ask(request, [nothing.fileno(), stdout, stderr, ending])
    return ForkedProcess(pid, ended, output)


class _Parent:
    """The process that forks, as the one that asks it sees it."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        ours, theirs = socket.socketpair()
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        atexit.register(self.close)

    def ask(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        line = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._socket, [line], descriptors)
        self._socket.sendall(line[sent:])
        return int(_read_line(self._socket))

    def close(self) -> None:
        if os.getpid() == self.owner:
            self._socket.close()
            self._process.wait()


_parent: _Parent | None = None
_one_asks = threading.Lock()
"""Of threads that ask at once, one could read the id of the other's process, and end that one."""


def _get_parent() -> _Parent:
    global _parent
    if _parent is None or _parent.owner != os.getpid():
        _parent = _Parent()
    return _parent


def _read_line(connection: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        part = connection.recv(_LINE_BYTES)
        assert part, "the process that forks has ended"
        line += part
    return line


# --- in the process that forks ---


def main(connection: socket.socket) -> None:
    """Fork for each request, and tell how each fork ended; a fork goes on as the program."""
    _import_everything()
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    endings: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            woken.recv(_LINE_BYTES)
            _tell_endings(endings)
        if connection not in ready:
            continue
        line, descriptors, _, _ = socket.recv_fds(connection, _LINE_BYTES, 4)
        if not line:
            return
        if not line.endswith(b"\n"):
            line += _read_line(connection)
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            for end in (connection, woken, wake):
                end.close()
            for ending in endings.values():
                os.close(ending)
            _become_program(json.loads(line), descriptors)
        for descriptor in descriptors[:3]:
            os.close(descriptor)
        endings[pid] = descriptors[3]
        connection.sendall(b"%d\n" % pid)


def _import_everything() -> None:
    package = importlib.import_module(_PROGRAM)
    for module in pkgutil.walk_packages(package.__path__, f"{_PROGRAM}."):
        with contextlib.suppress(ModuleNotFoundError):  # what needs torch
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _tell_endings(endings: dict[int, int]) -> None:
    while endings:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        ending = endings.pop(pid)
        with contextlib.suppress(BrokenPipeError):  # nobody waited
            os.write(ending, b"%d" % os.waitstatus_to_exitcode(status))
        os.close(ending)


def _become_program(request: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Run the program as `python -m readingroom` would, and end with it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for target, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, target)
    for descriptor in descriptors:
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv[1:] = request["args"]
    runpy.run_module(_PROGRAM, run_name="__main__", alter_sys=True)
    sys.exit(0)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
